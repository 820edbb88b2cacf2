r"""From a point inside C along a ray to the boundary of C.

All arithmetic is centred at a point theta_c inside C = { F <= level, |theta| <= bound }: with delta = theta -
theta_c, u = X delta and z = X theta_c,

    dF(delta) = F(theta_c + delta) - F(theta_c) = g_c'delta + sum_k D_k(u_k) <= e        (likelihood)
    |delta|^2 + 2 theta_c'delta <= e2                                                    (ball)

where D_k(u) = phi_k(z_k + u) - phi_k(z_k) - phi_k'(z_k) u is a Bregman remainder, e = level - F(theta_c) and
e2 = bound^2 - |theta_c|^2. On the ray t -> t y both are functions of one variable, and u = t (X y) costs nothing.
The ball gives a closed form t_ball; the likelihood gives

    psi(t) = t g_c'y + sum_k D_k(t u_k) - e,       psi(0) = -e < 0, psi convex,

whose root is bracketed and found by the root of the local second-order model (psi, psi', psi'').
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from likeset._solver.smooth.centred import CalledTerms, CentredTerms, centred_terms, extremes, one_extreme
from likeset._typing import Array, IntArray, Mask
from likeset.compiling import REORDER, inner, kernel
from likeset.curves import centred_curve
from likeset.losses import FOREIGN

MAX_TRIALS = 80
# The accepted point lies in a sliver just inside the likelihood boundary: -2 SLIVER e <= psi <= 0.
SLIVER = 1e-10


@inner(fastmath=REORDER)
def directional(D: Array, slope: Array, weight: Array, u: Array) -> tuple[float, float, float]:
    """(sum_k D_k, sum_k slope_k u_k, sum_k weight_k u_k^2)."""
    total, first, second = 0.0, 0.0, 0.0
    for k in range(u.shape[0]):
        total += D[k]
        first += slope[k] * u[k]
        second += weight[k] * u[k] * u[k]
    return total, first, second


@kernel()
def ball_crossing(square: float, inner: float, e2: float) -> float:
    """The largest t with t^2 |y|^2 + 2 t theta_c'y <= e2, given square = |y|^2 and inner = theta_c'y."""
    if square == 0.0:
        return math.inf
    root = math.sqrt(inner * inner + square * e2)
    return e2 / (inner + root) if inner > 0.0 else (root - inner) / square


@kernel()
def next_trial(
    trial: int, t: float, psi: float, first: float, second: float, low: float, high: float, open_end: bool, aim: float
) -> tuple[float, float, float, bool, bool]:
    """The search for the root of psi after its value and derivatives at t: (t, low, high, open_end, whether t is it).

    The next t is the root of the second-order model around this one, kept inside the bracket (low, high). ``open_end``
    says that psi(high) is not known yet: then high itself, where the ball ends, may be the answer. |psi| <= ``aim``
    will do.
    """
    if abs(psi) <= aim or (psi <= 0.0 and open_end and t >= high) or trial == MAX_TRIALS:
        return t, low, high, open_end, True
    if psi <= 0.0:
        low = t
    else:
        high, open_end = t, False
    if trial == MAX_TRIALS - 1 or high - low <= 1e-15 * high:
        # What is left of psi is rounding: settle for the point known to be inside.
        return low, low, high, open_end, psi <= 0.0
    discriminant = first * first - 2.0 * psi * second
    root = math.nan
    if first > 0.0:
        root = t - (2.0 * psi / (first + math.sqrt(discriminant)) if discriminant >= 0.0 else psi / first)
    if open_end and psi < 0.0 and not root < high:
        root = high
    elif not (root > low and root < high):
        root = 0.5 * (low + high)
    return root, low, high, open_end, False


@kernel(allocates=True)
def project_rays(
    Y: Array,
    U: Array,
    terms: CentredTerms,
    g_c: Array,
    theta_c: Array,
    e: float,
    e2: float,
    slopes: Array,
    weights: Array,
    rise: Array,
) -> None:
    """Scale every row of Y (n, d), and of U = Y X' (n, K), onto the boundary of C, in place.

    Writes at the new points  slopes[i, k] = phi_k'(z_k + u) - phi_k'(z_k),  weights[i, k] = phi_k''(z_k + u)  and
    rise[i] = dF.
    """
    n, K = U.shape
    D = np.empty(K)
    extreme = extremes(terms)
    # Whoever reads an array out of a tuple counts a reference to it: for every row that took as long as its terms.
    curve, a, z, base = terms.curve, terms.a, terms.z, terms.base
    aim = e * (1.0 - SLIVER)
    for i in range(n):
        linear, square, inner = 0.0, 0.0, 0.0
        for j in range(Y.shape[1]):
            linear += g_c[j] * Y[i, j]
            square += Y[i, j] * Y[i, j]
            inner += theta_c[j] * Y[i, j]
        low, high, open_end = 0.0, ball_crossing(square, inner, e2), True
        t = min(1.0, high)
        for trial in range(MAX_TRIALS + 1):
            if curve == FOREIGN:
                centred_terms(terms, U[i], t, D, slopes[i], weights[i])
            else:
                centred_curve(curve, a, z, base, U[i], t, D, slopes[i], weights[i])
            for x in extreme:
                D[x], slopes[i, x], weights[i, x] = one_extreme(terms, x, t * U[i, x])
            total, first, second = directional(D, slopes[i], weights[i], U[i])
            rise[i] = t * linear + total
            t, low, high, open_end, found = next_trial(
                trial, t, rise[i] - aim, linear + first, second, low, high, open_end, SLIVER * e
            )
            if found:
                break
        for j in range(Y.shape[1]):
            Y[i, j] *= t
        for k in range(K):
            U[i, k] *= t


@kernel(allocates=True)
def ball_crossings(Y: Array, theta_c: Array, e2: float) -> Array:
    """:func:`ball_crossing` of every row of Y."""
    n, d = Y.shape
    found = np.empty(n)
    for i in range(n):
        square, inner = 0.0, 0.0
        for j in range(d):
            square += Y[i, j] * Y[i, j]
            inner += theta_c[j] * Y[i, j]
        found[i] = ball_crossing(square, inner, e2)
    return found


class Rays(NamedTuple):
    """The search along many rays: slopes g_c'y at the centre, where each is, its bracket, and whether that is open."""

    linear: Array
    t: Array
    low: Array
    high: Array
    open_end: Mask


@kernel(allocates=True)
def take_trials(
    trial: int,
    todo: IntArray,
    value: Array,
    first: Array,
    second: Array,
    value_c: Array,
    slope_c: Array,
    e: float,
    U: Array,
    rays: Rays,
    slopes: Array,
    weights: Array,
    rise: Array,
) -> Mask:
    """What the trials of the rays ``todo`` say, whose terms are given, and where to go next; which are not done."""
    left = np.ones(todo.size, dtype=np.bool_)
    D = np.empty(U.shape[1])
    linear, t, low, high, open_end = rays
    aim = e * (1.0 - SLIVER)
    for j in range(todo.size):
        i = todo[j]
        for k in range(D.size):
            D[k] = value[j, k] - value_c[k] - slope_c[k] * (t[i] * U[i, k])
            slopes[i, k] = first[j, k] - slope_c[k]
            weights[i, k] = second[j, k]
        total, slope, bend = directional(D, slopes[i], weights[i], U[i])
        rise[i] = t[i] * linear[i] + total
        t[i], low[i], high[i], open_end[i], found = next_trial(
            trial, t[i], rise[i] - aim, linear[i] + slope, bend, low[i], high[i], open_end[i], SLIVER * e
        )
        left[j] = not found
    return left


def project_called_rays(
    Y: Array,
    U: Array,
    terms: CalledTerms,
    g_c: Array,
    theta_c: Array,
    e: float,
    e2: float,
    slopes: Array,
    weights: Array,
    rise: Array,
) -> None:
    """:func:`project_rays` for a user's function: the same search, all rays at once."""
    n = len(Y)
    high = ball_crossings(Y, theta_c, e2)
    rays = Rays(Y @ g_c, np.minimum(1.0, high), np.zeros(n), high, np.ones(n, dtype=np.bool_))
    todo = np.arange(n)
    for trial in range(MAX_TRIALS + 1):
        shift = rays.t[todo, None] * (U if len(todo) == n else U[todo])
        with np.errstate(over="ignore", invalid="ignore"):
            value, first, second = map(np.ascontiguousarray, terms.evaluate(terms.z + shift))
        todo = todo[
            take_trials(
                trial, todo, value, first, second, terms.value, terms.slope, e, U, rays, slopes, weights, rise
            )
        ]  # fmt: skip
        if not len(todo):
            break
    Y *= rays.t[:, None]
    U *= rays.t[:, None]
