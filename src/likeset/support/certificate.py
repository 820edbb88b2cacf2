r"""An outer bound from any tangent, and the next step from its multipliers.

F is convex, so a tangent at any point (gradient g, centred coordinates of :mod:`~likeset.support.rays`) encloses
the set  C = { dF <= e, |theta_c + delta| <= B }  in a half-space cut with the ball:

    C  in  { g'delta <= h,  |theta_c + delta| <= B },        h = e - dF + g'delta   at the point of tangency.

A linear function a'delta is maximised over that shape in closed form (:func:`certificate`). With r = a'g/|g|^2,
a_perp = a - r g, theta_perp = theta_c - (g'theta_c/|g|^2) g and

    t  = e2 + |theta_perp|^2 - h (2 g'theta_c + h)/|g|^2          (squared radius of the disc they share)
    UB = r h - a_perp'theta_perp + |a_perp| sqrt(t)
    mu = |a_perp|/sqrt(t),    lam = (a'g - mu (h + g'theta_c))/|g|^2,

unless the ball's own maximiser B a/|a| lies in the half-space: then UB = B|a| - a'theta_c, mu = |a|/B, lam = 0.
The multipliers (lam, mu) are those of an optimum; at the solution of the original problem UB is attained.

The step p (:func:`sqp_steps`) solves the problem with both constraints linearised and the curvature of the
Lagrangian,   max a'p - p'Mp/2,  M = lam H + mu I,   g'p <= e - dF,   (theta_c + delta)'p <= slack of the ball / 2,
by trying the four possible sets of active constraints.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from likeset.support.lanes import LANES, backward_lanes, dot_lanes, factor_lanes, forward_lanes
from likeset.support.terms import Array


@njit(cache=True, error_model="numpy")
def certificate(a: Array, g: Array, h: float, theta_c: Array, e2: float, radius: float) -> tuple[float, float, float]:
    """(UB, lam, mu): the maximum of a'delta over the half-space g'delta <= h cut with the ball."""
    ag, gg, aa, g_theta, a_theta, theta_theta = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for j in range(a.shape[0]):
        ag += a[j] * g[j]
        gg += g[j] * g[j]
        aa += a[j] * a[j]
        g_theta += g[j] * theta_c[j]
        a_theta += a[j] * theta_c[j]
    length = math.sqrt(aa)
    if not gg < math.inf:
        return radius * length - a_theta, 0.0, length / radius
    if radius * ag <= (h + g_theta) * length or gg == 0.0:
        return radius * length - a_theta, 0.0, length / radius
    r = ag / gg
    c = g_theta / gg
    perp_square, a_theta_perp = 0.0, 0.0
    for j in range(a.shape[0]):
        a_j = a[j] - r * g[j]
        theta_j = theta_c[j] - c * g[j]
        perp_square += a_j * a_j
        a_theta_perp += a_j * theta_j
        theta_theta += theta_j * theta_j
    a_perp = math.sqrt(perp_square)
    t = math.sqrt(max(e2 + theta_theta - h * (2.0 * g_theta + h) / gg, 1e-16 * e2))
    bound = r * h - a_theta_perp + a_perp * t
    mu = a_perp / t
    return bound, max(0.0, (ag - mu * (h + g_theta)) / gg), mu


@njit(cache=True, error_model="numpy")
def certify(
    A: Array, delta: Array, G: Array, rise: Array, theta_c: Array, e: float, e2: float, radius: float
) -> tuple[Array, Array, Array]:
    """(UB, lam, mu) of every direction (row of A) from the tangent at its point (delta, gradient G, rise = dF)."""
    n = A.shape[0]
    upper, lam, mu = np.empty(n), np.empty(n), np.empty(n)
    for i in range(n):
        along = 0.0
        for j in range(A.shape[1]):
            along += G[i, j] * delta[i, j]
        upper[i], lam[i], mu[i] = certificate(A[i], G[i], e - rise[i] + along, theta_c, e2, radius)
    return upper, lam, mu


@njit(cache=True, error_model="numpy")
def active_multipliers(
    ga: float, gg: float, gq: float, qa: float, qq: float, slack_g: float, slack_q: float
) -> tuple[float, float]:
    """Multipliers (alpha, beta) >= 0 of max a'p - p'Mp/2 s.t. g'p <= slack_g, q'p <= slack_q.

    The arguments are inner products in the metric of M^-1 (ga = g'M^-1 a, ...), and p = M^-1 (a - alpha g - beta q).
    """
    tiny = 1e-14
    if ga <= slack_g and qa <= slack_q:
        return 0.0, 0.0
    if gg > 0.0:
        alpha = (ga - slack_g) / gg
        if alpha >= 0.0 and qa - alpha * gq <= slack_q + tiny * abs(qa):
            return alpha, 0.0
    if qq > 0.0:
        beta = (qa - slack_q) / qq
        if beta >= 0.0 and ga - beta * gq <= slack_g + tiny * abs(ga):
            return 0.0, beta
    determinant = gg * qq - gq * gq
    if determinant <= 1e-14 * gg * qq:  # parallel constraints: the tighter one
        return max(0.0, (ga - slack_g) / gg) if gg > 0.0 else 0.0, 0.0
    alpha = (qq * (ga - slack_g) - gq * (qa - slack_q)) / determinant
    beta = (gg * (qa - slack_q) - gq * (ga - slack_g)) / determinant
    return max(0.0, alpha), max(0.0, beta)


@njit(cache=True, error_model="numpy")
def sqp_steps(
    A: Array,
    delta: Array,
    G: Array,
    hessians: Array,
    rise: Array,
    lam: Array,
    mu: Array,
    theta_c: Array,
    e: float,
    e2: float,
) -> Array:
    """The step p of every direction (row of A). ``hessians`` (d (d+1)/2, n) holds packed upper triangles.

    Where M = lam H + mu I is not positive definite within rounding, it gets a share of its own diagonal on top.
    """
    n, d = A.shape
    steps = np.empty((n, d))
    for first in range(0, n, LANES):
        last = min(first + LANES, n)
        lanes = last - first
        M = np.empty((hessians.shape[0], lanes))
        extra, failed = np.zeros(lanes), np.zeros(lanes, dtype=np.bool_)
        for _ in range(12):
            fill_lanes(M, hessians[:, first:last], lam[first:last], mu[first:last], extra, d)
            failed[:] = False
            if factor_lanes(M, d, failed):
                break
            for m in range(lanes):
                if failed[m]:
                    extra[m] = max(1e-14, 100.0 * extra[m])
        ya, yg, yq, square = np.empty((d, lanes)), np.empty((d, lanes)), np.empty((d, lanes)), np.zeros(lanes)
        for m in range(lanes):
            for j in range(d):
                ya[j, m], yg[j, m], yq[j, m] = A[first + m, j], G[first + m, j], theta_c[j] + delta[first + m, j]
                square[m] += delta[first + m, j] * (theta_c[j] + yq[j, m])  # |delta|^2 + 2 theta_c'delta
        forward_lanes(M, ya)
        forward_lanes(M, yg)
        forward_lanes(M, yq)
        ga, gg, gq, qa, qq = (
            dot_lanes(yg, ya), dot_lanes(yg, yg), dot_lanes(yg, yq), dot_lanes(yq, ya), dot_lanes(yq, yq),
        )  # fmt: skip
        for m in range(lanes):
            slack_g, slack_q = e - rise[first + m], 0.5 * (e2 - square[m])
            alpha, beta = active_multipliers(ga[m], gg[m], gq[m], qa[m], qq[m], slack_g, slack_q)
            for j in range(d):
                ya[j, m] -= alpha * yg[j, m] + beta * yq[j, m]
        backward_lanes(M, ya)
        for m in range(lanes):
            for j in range(d):
                steps[first + m, j] = A[first + m, j] if failed[m] else ya[j, m]
    return steps


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
