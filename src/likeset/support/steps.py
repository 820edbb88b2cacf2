r"""The next point of every direction: a quadratic step that stays near both boundaries.

At a point theta = theta_c + delta of C with gradient g and multipliers (lam, mu)
(:mod:`~likeset.support.certificate`), the Lagrangian bends like  M = lam H + mu I,  and the linearised problem

    max a'p - p'Mp/2   subject to   g'p <= slack_g = e - dF,    theta'p <= slack_b = (radius^2 - |theta|^2)/2

has the solution  p = M^-1 (a - alpha g - beta theta)  with (alpha, beta) from four possible sets of active constraints
(:func:`active_multipliers`).

*Following the boundaries.* Such a step leaves C by a second-order amount, and along a ray back to C the *worse* violated
constraint decides for both. Where the two boundaries meet that can cost more than the step gained. So the slacks
are measured again where the step ends,

    slack_g <- e - dF(delta + p) + g'p,        slack_b <- slack_b - |p|^2/2,

and (alpha, beta) computed anew: p moves in the plane of M^-1 g and M^-1 theta, towards the edge of C, without another
factorisation (:func:`follow_boundaries`).
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from likeset.support.lanes import LANES, backward_lanes, factor_lanes, forward_lanes
from likeset.support.rays import centred_terms, directional
from likeset.support.terms import Array

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
def solve_metric(vectors: Array, hessians: Array, rest: Array, lam: Array, mu: Array) -> Array:
    """M^-1 v for every vector v (three for each of n directions, (3, n, d)), M = lam H + mu I.

    The leading block of H is full: ``hessians`` (r (r+1)/2, n) holds packed upper triangles. The other d - r
    coordinates have the diagonal curvatures ``rest`` (n, d - r) only. Where M is not positive definite within
    rounding it gets a share of its own diagonal on top; if that does not help, a is its own solution, the others
    vanish.
    """
    n, d = vectors.shape[1:]
    leading = d - rest.shape[1]
    solved = np.empty((3, n, d))
    for first in range(0, n, LANES):
        last = min(first + LANES, n)
        lanes = last - first
        M = np.empty((hessians.shape[0], lanes))
        extra, failed = np.zeros(lanes), np.zeros(lanes, dtype=np.bool_)
        for _ in range(12):
            fill_lanes(M, hessians[:, first:last], lam[first:last], mu[first:last], extra, leading)
            failed[:] = False
            if factor_lanes(M, leading, failed):
                break
            for m in range(lanes):
                if failed[m]:
                    extra[m] = max(1e-14, 100.0 * extra[m])
        x = np.empty((leading, 3 * lanes))
        for v in range(3):
            for m in range(lanes):
                for j in range(leading):
                    x[j, v * lanes + m] = vectors[v, first + m, j]
        for v in range(3):
            part = x[:, v * lanes : (v + 1) * lanes]
            forward_lanes(M, part)
            backward_lanes(M, part)
            for m in range(lanes):
                i = first + m
                for j in range(leading):
                    solved[v, i, j] = part[j, m]
                for j in range(leading, d):
                    solved[v, i, j] = vectors[v, i, j] / (lam[i] * rest[i, j - leading] + mu[i])
                if failed[m]:
                    for j in range(d):
                        solved[v, i, j] = vectors[v, i, j] if v == 0 else 0.0
    return solved


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


@njit(cache=True, error_model="numpy")
def linearised_steps(vectors: Array, solved: Array, slack_g: Array, slack_b: Array) -> Array:
    """The steps p of the linearised problem; ``vectors`` holds (a, g, theta) of every direction."""
    n, d = vectors.shape[1:]
    steps = np.empty((n, d))
    for i in range(n):
        g, b = vectors[1, i], vectors[2, i]
        a_solved, g_solved, b_solved = solved[0, i], solved[1, i], solved[2, i]
        alpha, beta = active_multipliers(
            inner(g, a_solved), inner(g, g_solved), inner(g, b_solved), inner(b, a_solved), inner(b, b_solved),
            slack_g[i], slack_b[i],
        )  # fmt: skip
        for j in range(d):
            steps[i, j] = a_solved[j] - alpha * g_solved[j] - beta * b_solved[j]
    return steps


@njit(cache=True, error_model="numpy", fastmath={"contract"})
def follow_boundaries(
    vectors: Array,
    solved: Array,
    images: Array,
    slack_g: Array,
    slack_b: Array,
    U: Array,
    linear: Array,
    curve: int,
    a: Array,
    z: Array,
    base: Array,
    g_c: Array,
    e: float,
    e2: float,
) -> Array:
    """The steps p with slacks corrected where they end.

    ``images`` (3, n, K) holds X M^-1 v; U = X delta and linear = g_c'delta belong to the points delta. The rest
    describes C as in :mod:`~likeset.support.rays`.
    """
    n, d = vectors.shape[1:]
    K = U.shape[1]
    steps = np.empty((n, d))
    u, D, slope, weight = np.empty(K), np.empty(K), np.empty(K), np.empty(K)
    for i in range(n):
        g, b, p = vectors[1, i], vectors[2, i], steps[i]
        a_solved, g_solved, b_solved = solved[0, i], solved[1, i], solved[2, i]
        ga, gg, gb = inner(g, a_solved), inner(g, g_solved), inner(g, b_solved)
        ba, bb = inner(b, a_solved), inner(b, b_solved)
        room_g, room_b = slack_g[i], slack_b[i]
        for correction in range(CORRECTIONS + 1):
            alpha, beta = active_multipliers(ga, gg, gb, ba, bb, room_g, room_b)
            square = 0.0
            for j in range(d):
                p[j] = a_solved[j] - alpha * g_solved[j] - beta * b_solved[j]
                square += p[j] * p[j]
            if correction == CORRECTIONS:
                break
            for k in range(K):
                u[k] = U[i, k] + images[0, i, k] - alpha * images[1, i, k] - beta * images[2, i, k]
            centred_terms(curve, a, z, base, u, 1.0, D, slope, weight)
            rise = linear[i] + inner(g_c, p) + directional(D, slope, weight, u)[0]
            new_g, new_b = e - rise + ga - alpha * gg - beta * gb, slack_b[i] - 0.5 * square
            moved = max(abs(new_g - room_g) / e, 2.0 * abs(new_b - room_b) / e2)
            if not moved < math.inf or moved < FOLLOWED:
                break
            room_g, room_b = new_g, new_b
    return steps
