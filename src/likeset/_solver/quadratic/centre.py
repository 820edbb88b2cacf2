r"""Phase I of the quadratic kernel: the minimum of F over the ball, and how sure we are of it.

In the eigenbasis of the Hessian, F = sum_i h_i t_i^2 / 2 - b_i t_i + constant. Its minimiser over |t| <= B,

    t_i = b_i / (h_i + nu),      nu = 0, or the root of |t(nu)| = B     (the secular equation),

is the centre theta_c from which everything else is measured. By F(theta) >= F(theta) + nu (|theta|^2 - B^2) / 2,
minimised over delta coordinate by coordinate, F is at least F(theta_c) - nu e2 / 2 - sum_i c_i^2 / (2 (h_i + nu)) with
c = g + nu theta_c; each summand is also at most 2 B |c_i|, because |delta_i| <= 2 B.

The centre is solved for twice where that helps: b is rounded like the largest outcome, the gradient like the
largest residual, and a step from the first centre with the gradient there takes out what b had lost.
"""

from __future__ import annotations

from math import inf, sqrt
from typing import NamedTuple

import numpy as np

from likeset._solver.quadratic.pencil import MAX_STEPS, ROUNDING, Cut
from likeset._typing import EPS, Array
from likeset.compiling import REORDER, inner, kernel

WELL_CENTRED = 1e-9  # share of level - F by which a centre may miss the minimum


class Quadratic(NamedTuple):
    """F = sum_k a_k (z_k - o_k)^2 / 2 - s_k (z_k - o_k), and the eigenbasis of its Hessian.

    origins, curvature     o_k;  h_i, in ascending order
    lowered                what is sure of h_i: less its rounding error, zero where nothing is
    rotation               eigenvectors, one column each
    """

    X: Array
    a: Array
    s: Array
    origins: Array
    curvature: Array
    lowered: Array
    rotation: Array


def phase_one(F: Quadratic, level: float, bound: float) -> tuple[Cut, float, float]:
    """The set seen from the minimum of F over the ball, F there, and a lower bound of F on the ball."""
    work = np.empty((6, len(F.curvature)))
    slacks_and_rooms, start, minimum, lower = find_centre(*F, level, bound, np.empty((2, len(F.X))), work)
    return Cut(F.curvature, F.lowered, work[1], work[0], bound, *slacks_and_rooms, start), minimum, lower


@kernel(fastmath=REORDER)
def find_centre(
    X: Array, a: Array, s: Array, origins: Array, curvature: Array, lowered: Array, rotation: Array,
    level: float, bound: float, of_rows: Array, work: Array,
) -> tuple[tuple[float, float, float, float], float, float, float]:  # fmt: skip
    """Write theta_c to work[0] and the gradient there to work[1]; the other arrays (2, K) and (6, r) are scratch.

    Returns slack, room, inner slack and inner room of the :class:`Cut`, its first guess of rho, F(theta_c), and a
    lower bound of F on the ball. The slack is inf if F falls for ever along a line without ball.
    """
    F = Quadratic(X, a, s, origins, curvature, lowered, rotation)  # here: handed over as one it takes microseconds
    pull, pull_square, length_square = of_rows[0], 0.0, 0.0
    for k in range(X.shape[0]):
        pull[k] = s[k] + a[k] * origins[k]
        pull_square += pull[k] * pull[k]
        for j in range(X.shape[1]):
            length_square += X[k, j] * X[k, j]
    noise = ROUNDING * sqrt(pull_square * length_square)  # rounding error of a coordinate of b
    origin, gradient, b = work[0], work[1], work[2]
    turn(X, pull, rotation, work[5], b)
    padding, room, nu, minimum, gap = 0.0, 0.0, 0.0, 0.0, inf
    for attempt in range(2):
        new_origin, new_gradient = (origin, gradient) if attempt == 0 else (work[3], work[4])
        new_nu = ball_minimiser(curvature, lowered, b, noise, bound, new_origin)
        new_minimum, new_padding, noise = seen_from(F, new_origin, level, of_rows, work[5], new_gradient)
        new_gap, new_room = fall_below(lowered, new_gradient, new_origin, new_nu, bound, noise)
        if attempt == 0 or new_gap < gap:
            padding, room, nu, minimum, gap = new_padding, new_room, new_nu, new_minimum, new_gap
            if attempt == 1:
                for i in range(origin.shape[0]):
                    origin[i], gradient[i] = new_origin[i], new_gradient[i]
        if not gap > WELL_CENTRED * (level - minimum):
            break
        for i in range(origin.shape[0]):
            b[i] = curvature[i] * origin[i] - gradient[i]
    gap += padding
    slack = max(level - minimum, 0.0) if gap < inf else inf
    outer_slack, outer_room = slack + padding, room + ROUNDING * bound * bound if bound < inf else 0.0
    stiffest = curvature[curvature.shape[0] - 1] if curvature.shape[0] > 0 else 0.0
    start = max(nu + 2 * outer_slack / (bound * bound), EPS * stiffest)
    return (outer_slack, outer_room, slack, room), start, minimum, minimum - gap


@inner(fastmath=REORDER)
def turn(X: Array, weights: Array, rotation: Array, total: Array, out: Array) -> None:
    """Set out = rotation' X' weights; ``total`` is scratch."""
    d = X.shape[1]
    for j in range(d):
        total[j] = out[j] = 0.0
    for k in range(X.shape[0]):
        for j in range(d):
            total[j] += weights[k] * X[k, j]
    for j in range(d):
        for i in range(d):
            out[i] += total[j] * rotation[j, i]


@inner(fastmath=REORDER)
def seen_from(
    F: Quadratic, origin: Array, level: float, of_rows: Array, theta: Array, gradient: Array
) -> tuple[float, float, float]:
    """At a centre: F, what F's rounding can be worth on C, and the rounding of the gradient, which is written.

    What is computed is a neighbour of F, with every z_k off by some delta_k <= eps |x_k| |theta| or so. On C, where
    sum_k phi_k'^2 / (2 a_k) = F - sum_k min phi_k is at most level - sum_k min phi_k, the two differ by no more than
    sum_k |phi_k'| delta_k + a_k delta_k^2 / 2, and the first sum is at most the square root of 2 (level - sum_k
    min phi_k) sum_k a_k delta_k^2.
    """
    X, a, s, origins, rotation = F.X, F.a, F.s, F.origins, F.rotation
    K, d = X.shape
    origin_square = 0.0
    for j in range(d):
        total = 0.0
        for i in range(d):
            total += rotation[j, i] * origin[i]
        theta[j] = total
        origin_square += origin[j] * origin[j]
    slopes = of_rows[1]
    unit = (8 + d) * EPS * sqrt(origin_square)
    minimum, spread, squared_length, squared_slopes, squared_sums = 0.0, 0.0, 0.0, 0.0, 0.0
    size = highest = abs(level) if abs(level) < inf else 0.0
    for k in range(K):
        step, square = 0.0, 0.0
        for j in range(d):
            step += X[k, j] * theta[j]
            square += X[k, j] * X[k, j]
        step -= origins[k]
        slopes[k] = a[k] * step - s[k]
        bend, tilt = 0.5 * a[k] * step * step, s[k] * step
        squared_length += square
        squared_slopes += slopes[k] * slopes[k]
        squared_sums += s[k] * s[k]
        minimum += bend - tilt
        size += bend + abs(tilt)
        spread += a[k] * square
        if a[k] > 0.0:
            highest += 0.5 * s[k] * s[k] / a[k]
    turn(X, slopes, rotation, theta, gradient)
    spread *= unit * unit
    padding = ROUNDING * size + sqrt(2 * highest * spread) + 0.5 * spread
    return minimum, padding, ROUNDING * sqrt((squared_slopes + squared_sums) * squared_length)


@inner()
def fall_below(
    lowered: Array, gradient: Array, origin: Array, nu: float, bound: float, noise: float
) -> tuple[float, float]:
    """How much lower than at the centre F can be on the ball, and the room B^2 - |theta_c|^2."""
    square, gap = 0.0, 0.0
    for i in range(origin.shape[0]):
        square += origin[i] * origin[i]
        c = abs(gradient[i] + nu * origin[i])
        if lowered[i] + nu > 0.0:
            gap += min(0.5 * c * c / (lowered[i] + nu), 2 * bound * c)
        elif c > noise:
            gap += 2 * bound * c
    room = max(bound * bound - square, 0.0)
    return gap + 0.5 * nu * room if nu > 0.0 else gap, room


@inner()
def ball_minimiser(h: Array, lowered: Array, b: Array, noise: float, bound: float, t: Array) -> float:
    """Write the minimiser of sum_i h_i t_i^2 / 2 - b_i t_i over |t| <= bound; return the multiplier nu of the ball.

    Newton's method on 1/bound - 1/|t(nu)|. A coordinate that is flat to rounding stays at zero: its b is cleared.
    """
    r = h.shape[0]
    square = 0.0
    for i in range(r):
        if lowered[i] == 0.0 and (abs(b[i]) <= noise or bound == inf):
            b[i] = 0.0
        t[i] = 0.0
        square += b[i] * b[i]
    nu, low, high = 0.0, 0.0, sqrt(square) / bound  # the root if all h were zero
    for _ in range(MAX_STEPS):
        square, fall = 0.0, 0.0  # |t|^2 and -(|t|^2)'/2
        for i in range(r):
            if b[i] != 0.0:
                stiffness = h[i] + nu
                t[i] = b[i] / stiffness if stiffness > 0.0 else inf
                square += t[i] * t[i]
                fall += t[i] * t[i] / stiffness if stiffness > 0.0 else inf
        norm = sqrt(square)
        if norm <= bound and (nu == 0.0 or norm >= bound * (1 - 4 * EPS)):
            break
        if norm > bound:
            low = nu
        else:
            high = nu
        guess = nu + square / fall * (norm - bound) / bound if norm < inf else 0.0
        if not low < guess < high:
            guess = sqrt(low * high) if low > 0.0 else 1e-3 * high
        if guess <= low or guess >= high:
            break
        nu = guess
    norm = sqrt(square)
    if norm > bound * (1 - 4 * EPS):  # keep the centre in the ball after a change of basis, too
        for i in range(r):
            t[i] *= bound / norm * (1 - 4 * EPS)
    return nu
