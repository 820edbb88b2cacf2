r"""The next point of every direction: a quadratic step that stays near both boundaries.

At a point theta = theta_c + delta of C with gradient g and multipliers (lam, mu)
(:mod:`~likeset._solver.certificate`), the Lagrangian bends like  M = lam H + mu I,  and the linearised problem

    max a'p - p'Mp/2   subject to   g'p <= slack_g = e - dF,    theta'p <= slack_b = (radius^2 - |theta|^2)/2

has the solution  p = M^-1 (a - alpha g - beta theta)  with (alpha, beta) from four possible sets of active constraints
(:func:`active_multipliers`).

*Following the boundaries.* Such a step leaves C by a second-order amount, and along a ray back to C the *worse*
violated constraint decides for both. Where the two boundaries meet that can cost more than the step gained. So the
slacks are measured again where the step ends,

    slack_g <- e - dF(delta + p) + g'p,        slack_b <- slack_b - |p|^2/2,

and (alpha, beta) computed anew: p moves in the plane of M^-1 g and M^-1 theta, towards the edge of C, without another
factorisation (:func:`follow_boundaries`). The aim is that of the rays, just inside: e stands for (1 - SLIVER) e.
Away from the ball there is nothing to balance, and the ray does as well.
"""

from __future__ import annotations

import math

import numpy as np

from likeset._solver.linalg.lanes import LANES, BoolArray, backward_lanes, dot_lanes, factor_lanes, forward_lanes
from likeset._solver.smooth.rays import centred_terms, directional
from likeset._typing import Array
from likeset.compiling import njit

CORRECTIONS = 3
FOLLOWED = 1e-12  # slacks that move by a smaller share of e and e2 are settled


@njit(cache=True, error_model="numpy")
def active_multipliers(
    ga: float, gg: float, gb: float, ba: float, bb: float, slack_g: float, slack_b: float
) -> tuple[float, float]:
    """Multipliers (alpha, beta) >= 0 of max a'p - p'Mp/2 s.t. g'p <= slack_g, b'p <= slack_b.

    The arguments are inner products in the metric of M^-1 (ga = g'M^-1 a, ...), and p = M^-1 (a - alpha g - beta b).
    """
    tiny = 1e-14
    if ga <= slack_g and ba <= slack_b:
        return 0.0, 0.0
    if gg > 0.0:
        alpha = (ga - slack_g) / gg
        if alpha >= 0.0 and ba - alpha * gb <= slack_b + tiny * abs(ba):
            return alpha, 0.0
    if bb > 0.0:
        beta = (ba - slack_b) / bb
        if beta >= 0.0 and ga - beta * gb <= slack_g + tiny * abs(ga):
            return 0.0, beta
    determinant = gg * bb - gb * gb
    if determinant <= 1e-14 * gg * bb:  # parallel constraints: the tighter one
        return max(0.0, (ga - slack_g) / gg) if gg > 0.0 else 0.0, 0.0
    alpha = (bb * (ga - slack_g) - gb * (ba - slack_b)) / determinant
    beta = (gg * (ba - slack_b) - gb * (ga - slack_g)) / determinant
    return max(0.0, alpha), max(0.0, beta)


@njit(cache=True, error_model="numpy", fastmath={"contract"})
def linearised_steps(
    A: Array,
    G: Array,
    B: Array,
    hessians: Array,
    rest: Array,
    lam: Array,
    mu: Array,
    slack_g: Array,
    slack_b: Array,
) -> tuple[Array, Array, Array, BoolArray]:
    """The step p of every direction, and what :func:`follow_boundaries` needs to improve it.

    Rows of A, G, B (n, d): the a, g, theta of every direction. The leading block of H is full: ``hessians``
    (r (r+1)/2, n) holds packed upper triangles. The other d - r coordinates have the diagonal curvatures ``rest``
    (n, d - r) only. Where M is not positive definite within rounding it gets a share of its own diagonal on top.

    Returns p (n, d); M^-1 g and M^-1 theta (2, n, d); (ga, gg, gb, ba, bb, alpha, beta) of
    :func:`active_multipliers` (n, 7); and whether a direction has the ball to follow. Where not, M^-1 g and M^-1 theta
    may be left out.
    """
    n, d = A.shape
    leading = d - rest.shape[1]
    steps, solved, products = np.empty((n, d)), np.empty((2, n, d)), np.empty((n, 7))
    follows = np.zeros(n, dtype=np.bool_)
    for first in range(0, n, LANES):
        last = min(first + LANES, n)
        lanes = last - first
        M = np.empty((hessians.shape[0], lanes))
        failed = factor_shifted(M, hessians[:, first:last], lam[first:last], mu[first:last], leading)
        ya, yg, yb = np.empty((d, lanes)), np.empty((d, lanes)), np.empty((d, lanes))
        pivots = np.empty((d - leading, lanes))  # of the diagonal part, square roots
        for m in range(lanes):
            i = first + m
            for j in range(d):
                ya[j, m], yg[j, m], yb[j, m] = A[i, j], G[i, j], B[i, j]
            for j in range(d - leading):
                pivots[j, m] = math.sqrt(lam[i] * rest[i, j] + mu[i])
        for y in (ya, yg, yb):
            forward_lanes(M, y[:leading])
            y[leading:] /= pivots
        ga, gg, gb = dot_lanes(yg, ya), dot_lanes(yg, yg), dot_lanes(yg, yb)
        ba, bb = dot_lanes(yb, ya), dot_lanes(yb, yb)
        for m in range(lanes):
            alpha, beta = active_multipliers(ga[m], gg[m], gb[m], ba[m], bb[m], slack_g[first + m], slack_b[first + m])
            products[first + m, :5] = ga[m], gg[m], gb[m], ba[m], bb[m]
            products[first + m, 5:] = alpha, beta
            for j in range(d):
                ya[j, m] -= alpha * yg[j, m] + beta * yb[j, m]
        backward_lanes(M, ya[:leading])
        ya[leading:] /= pivots
        square = dot_lanes(ya, ya)
        any_follows = False
        for m in range(lanes):
            i = first + m
            for j in range(d):
                steps[i, j] = A[i, j] if failed[m] else ya[j, m]
            on_ball = products[i, 6] > 0.0 or ba[m] - products[i, 5] * gb[m] > slack_b[i] - 0.5 * square[m]
            follows[i] = on_ball and not failed[m]
            any_follows |= follows[i]
        if any_follows:
            for v, y in enumerate((yg, yb)):
                backward_lanes(M, y[:leading])
                y[leading:] /= pivots
                for m in range(lanes):
                    for j in range(d):
                        solved[v, first + m, j] = y[j, m]
    return steps, solved, products, follows


@njit(cache=True, error_model="numpy")
def factor_shifted(M: Array, hessians: Array, lam: Array, mu: Array, d: int) -> BoolArray:
    """Write the factors of lam H + mu I to M, with more on the diagonal where need be; True where that failed."""
    lanes = M.shape[1]
    extra, failed = np.zeros(lanes), np.zeros(lanes, dtype=np.bool_)
    for _ in range(12):
        fill_lanes(M, hessians, lam, mu, extra, d)
        failed[:] = False
        if factor_lanes(M, d, failed):
            break
        for m in range(lanes):
            if failed[m]:
                extra[m] = max(1e-14, 100.0 * extra[m])
    return failed


@njit(cache=True, error_model="numpy")
def fill_lanes(M: Array, hessians: Array, lam: Array, mu: Array, extra: Array, d: int) -> None:
    """M = lam H + mu I, plus extra times its own diagonal and a little against rounding."""
    lanes = M.shape[1]
    for position in range(M.shape[0]):
        for m in range(lanes):
            M[position, m] = lam[m] * hessians[position, m]
    largest, row = np.zeros(lanes), 0
    for j in range(d):
        for m in range(lanes):
            M[row, m] += mu[m]
            largest[m] = max(largest[m], M[row, m])
        row += d - j
    row = 0
    for j in range(d):
        for m in range(lanes):
            M[row, m] += extra[m] * M[row, m] + 1e-16 * largest[m] + 1e-300
        row += d - j


@njit(cache=True, error_model="numpy", fastmath={"reassoc", "contract"})
def inner(x: Array, y: Array) -> float:
    """x'y."""
    total = 0.0
    for j in range(x.shape[0]):
        total += x[j] * y[j]
    return total


@njit(cache=True, error_model="numpy", fastmath={"contract"})
def follow_boundaries(
    steps: Array,
    solved: Array,
    products: Array,
    follows: BoolArray,
    slack_g: Array,
    slack_b: Array,
    Y: Array,
    U: Array,
    X: Array,
    curve: int,
    a: Array,
    z: Array,
    base: Array,
    g_c: Array,
    g_turned: Array,
    e: float,
    e2: float,
) -> None:
    """Correct the steps, in place, by the slacks where they end; the first four arguments as made above.

    Y (n, d) and U (n, K) hold the points delta and X delta. The rest describes C as in ``rays``;
    X and g_turned = g_c are in the coordinates of the steps.
    """
    d, K = steps.shape[1], U.shape[1]
    u, gu, bu = np.empty(K), np.empty(K), np.empty(K)
    D, slope, weight = np.empty(K), np.empty(K), np.empty(K)
    for i in np.flatnonzero(follows):
        p, g_solved, b_solved = steps[i], solved[0, i], solved[1, i]
        ga, gg, gb, ba, bb, alpha, beta = products[i]
        room_g, room_b = slack_g[i], slack_b[i]
        linear = inner(g_c, Y[i])
        for k in range(K):
            u[k] = U[i, k] + inner(X[k], p)
            gu[k], bu[k] = inner(X[k], g_solved), inner(X[k], b_solved)
        for _ in range(CORRECTIONS):
            centred_terms(curve, a, z, base, u, 1.0, D, slope, weight)
            rise = linear + inner(g_turned, p) + directional(D, slope, weight, u)[0]
            new_g, new_b = e - rise + ga - alpha * gg - beta * gb, slack_b[i] - 0.5 * inner(p, p)
            moved = max(abs(new_g - room_g) / e, 2.0 * abs(new_b - room_b) / e2)
            if not moved < math.inf or moved < FOLLOWED:
                break
            room_g, room_b = new_g, new_b
            new_alpha, new_beta = active_multipliers(ga, gg, gb, ba, bb, room_g, room_b)
            more_g, more_b = new_alpha - alpha, new_beta - beta
            alpha, beta = new_alpha, new_beta
            for j in range(d):
                p[j] -= more_g * g_solved[j] + more_b * b_solved[j]
            for k in range(K):
                u[k] -= more_g * gu[k] + more_b * bu[k]
