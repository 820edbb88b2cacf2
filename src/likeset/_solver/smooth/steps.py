r"""The next point of every direction: a quadratic step that stays near both boundaries.

At a point theta = theta_c + delta of C with gradient g and multipliers (lam, mu)
(:mod:`~likeset._solver.certificate`), the Lagrangian bends like  M = lam H + mu I,  and the linearised problem

    max a'p - p'Mp/2   subject to   g'p <= slack_g = e - dF,    theta'p <= slack_b = (bound^2 - |theta|^2)/2

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

from likeset._solver.linalg.lanes import LANES, backward_lanes, dot_lanes, factor_lanes, forward_lanes
from likeset._solver.linalg.matrix import dot
from likeset._solver.smooth.centred import CentredTerms, centred_terms
from likeset._solver.smooth.rays import directional
from likeset._typing import Array, Mask
from likeset.compiling import inner, kernel
from likeset.curves import centred_curve
from likeset.losses import FOREIGN

CORRECTIONS = 3
FOLLOWED = 1e-12  # slacks that move by a smaller share of e and e2 are settled


@inner()
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


@kernel(allocates=True, fastmath={"contract"})
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
) -> tuple[Array, Array, Array, Mask]:
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
    lanes = min(n, LANES)
    M, y, inner_products = np.empty((hessians.shape[0], lanes)), np.empty((3, d, lanes)), np.empty((6, lanes))
    pivots = np.empty((d - leading, lanes))  # of the diagonal part, reciprocals of square roots
    failed = np.empty(lanes, dtype=np.bool_)
    for first in range(0, n, LANES):
        if n - first < lanes:
            lanes = n - first
            M, y, inner_products = np.empty((hessians.shape[0], lanes)), np.empty((3, d, lanes)), np.empty((6, lanes))
            pivots = np.empty((d - leading, lanes))
        factor_shifted(M, hessians, lam, mu, first, leading, failed)
        ya, yg, yb = y[0], y[1], y[2]  # a, g and theta, then U'^-1 of them
        ga, gg, gb = inner_products[0], inner_products[1], inner_products[2]
        ba, bb, square = inner_products[3], inner_products[4], inner_products[5]
        for m in range(lanes):
            i = first + m
            for j in range(d):
                ya[j, m], yg[j, m], yb[j, m] = A[i, j], G[i, j], B[i, j]
            for j in range(d - leading):
                pivots[j, m] = 1.0 / math.sqrt(lam[i] * rest[i, j] + mu[i])
        for v in range(3):
            forward_lanes(M, leading, y[v])
            scale_rest(pivots, leading, y[v])
        dot_lanes(yg, ya, ga)
        dot_lanes(yg, yg, gg)
        dot_lanes(yg, yb, gb)
        dot_lanes(yb, ya, ba)
        dot_lanes(yb, yb, bb)
        for m in range(lanes):
            i = first + m
            alpha, beta = active_multipliers(ga[m], gg[m], gb[m], ba[m], bb[m], slack_g[i], slack_b[i])
            for v in range(5):
                products[i, v] = inner_products[v, m]
            products[i, 5], products[i, 6] = alpha, beta
            for j in range(d):
                ya[j, m] -= alpha * yg[j, m] + beta * yb[j, m]
        backward_lanes(M, leading, ya)
        scale_rest(pivots, leading, ya)
        dot_lanes(ya, ya, square)
        any_follows = False
        for m in range(lanes):
            i = first + m
            for j in range(d):
                steps[i, j] = A[i, j] if failed[m] else ya[j, m]
            on_ball = products[i, 6] > 0.0 or ba[m] - products[i, 5] * gb[m] > slack_b[i] - 0.5 * square[m]
            follows[i] = on_ball and not failed[m]
            any_follows |= follows[i]
        if any_follows:
            for v in range(1, 3):
                backward_lanes(M, leading, y[v])
                scale_rest(pivots, leading, y[v])
                for m in range(lanes):
                    for j in range(d):
                        solved[v - 1, first + m, j] = y[v, j, m]
    return steps, solved, products, follows


@inner(fastmath={"contract"})
def scale_rest(pivots: Array, leading: int, x: Array) -> None:
    """Multiply the rows of x beyond the leading ones by those of ``pivots``."""
    for j in range(pivots.shape[0]):
        for m in range(pivots.shape[1]):
            x[leading + j, m] *= pivots[j, m]


@inner(allocates=True)
def factor_shifted(M: Array, hessians: Array, lam: Array, mu: Array, first: int, d: int, failed: Mask) -> None:
    """Write the factors of lam H + mu I to M, with more on the diagonal where need be; ``failed`` where that failed.

    Lane m of M belongs to column first + m of the Hessians.
    """
    lanes = M.shape[1]
    extra, largest, spare = np.zeros(lanes), np.empty(lanes), np.empty(lanes)
    for _ in range(12):
        # M = lam H + mu I, plus extra times its own diagonal and a little against rounding
        for position in range(M.shape[0]):
            for m in range(lanes):
                M[position, m] = lam[first + m] * hessians[position, first + m]
        for m in range(lanes):
            largest[m] = 0.0
            failed[m] = False
        row = 0
        for j in range(d):
            for m in range(lanes):
                M[row, m] += mu[first + m]
                largest[m] = max(largest[m], M[row, m])
            row += d - j
        row = 0
        for j in range(d):
            for m in range(lanes):
                M[row, m] += extra[m] * M[row, m] + 1e-16 * largest[m] + 1e-300
            row += d - j
        if factor_lanes(M, d, 0.0, failed, spare, largest):
            break
        for m in range(lanes):
            if failed[m]:
                extra[m] = max(1e-14, 100.0 * extra[m])


@kernel(allocates=True, fastmath={"contract"})
def follow_boundaries(
    steps: Array,
    solved: Array,
    products: Array,
    follows: Mask,
    slack_g: Array,
    slack_b: Array,
    Y: Array,
    U: Array,
    X: Array,
    terms: CentredTerms,
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
    curve, a, z, base = terms.curve, terms.a, terms.z, terms.base  # read once, as in ``project_rays``
    for i in range(follows.shape[0]):
        if not follows[i]:
            continue
        p, g_solved, b_solved = steps[i], solved[0, i], solved[1, i]
        ga, gg, gb, ba, bb = products[i, 0], products[i, 1], products[i, 2], products[i, 3], products[i, 4]
        alpha, beta = products[i, 5], products[i, 6]
        room_g, room_b = slack_g[i], slack_b[i]
        linear = dot(g_c, Y[i])
        for k in range(K):
            u[k] = U[i, k] + dot(X[k], p)
            gu[k], bu[k] = dot(X[k], g_solved), dot(X[k], b_solved)
        for _ in range(CORRECTIONS):
            if curve == FOREIGN:
                centred_terms(terms, u, 1.0, D, slope, weight)
            else:
                centred_curve(curve, a, z, base, u, 1.0, D, slope, weight)
            rise = linear + dot(g_turned, p) + directional(D, slope, weight, u)[0]
            new_g, new_b = e - rise + ga - alpha * gg - beta * gb, slack_b[i] - 0.5 * dot(p, p)
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
