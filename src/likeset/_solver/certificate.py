r"""An outer bound from any tangent, and its multipliers.

F is convex, so a tangent at any point (gradient g, centred coordinates of :mod:`~likeset._solver.smooth.rays`) encloses
the set  C = { dF <= e, |theta_c + delta| <= B }  in a half-space cut with the ball:

    C  in  { g'delta <= h,  |theta_c + delta| <= B },        h = e - dF + g'delta   at the point of tangency.

A linear function a'delta is maximised over that shape in closed form (:func:`certificate`). With r = a'g/|g|^2,
a_perp = a - r g, theta_perp = theta_c - (g'theta_c/|g|^2) g and

    t  = e2 + |theta_perp|^2 - h (2 g'theta_c + h)/|g|^2          (squared radius of the disc they share)
    UB = r h - a_perp'theta_perp + |a_perp| sqrt(t)
    mu = |a_perp|/sqrt(t),    lam = (a'g - mu (h + g'theta_c))/|g|^2,

unless the ball's own maximiser B a/|a| lies in the half-space: then UB = B|a| - a'theta_c, mu = |a|/B, lam = 0.
The multipliers (lam, mu) are those of an optimum; at the solution of the original problem UB is attained.
"""

from __future__ import annotations

import math

import numpy as np

from likeset._solver.smooth.rays import SLIVER
from likeset._typing import Array
from likeset.compiling import kernel


@kernel()
def certificate(a: Array, g: Array, h: float, theta_c: Array, e2: float, bound: float) -> tuple[float, float, float]:
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
        return bound * length - a_theta, 0.0, length / bound
    if bound * ag <= (h + g_theta) * length or gg == 0.0:
        return bound * length - a_theta, 0.0, length / bound
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
    ceiling = r * h - a_theta_perp + a_perp * t
    mu = a_perp / t
    return ceiling, max(0.0, (ag - mu * (h + g_theta)) / gg), mu


@kernel(allocates=True)
def certify(
    A: Array, delta: Array, G: Array, rise: Array, theta_c: Array, e: float, e2: float, bound: float
) -> tuple[Array, Array, Array, Array, Array]:
    """(UB, lam, mu) of every direction (row of A) from the tangent at its point (delta, gradient G, rise = dF).

    Also the slacks (1 - SLIVER) e - dF and (bound^2 - |theta_c + delta|^2)/2 of the two constraints there.
    """
    n = A.shape[0]
    upper, lam, mu, slack_g, slack_b = np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    for i in range(n):
        along, square = 0.0, 0.0
        for j in range(A.shape[1]):
            along += G[i, j] * delta[i, j]
            square += delta[i, j] * (2.0 * theta_c[j] + delta[i, j])
        slack_g[i], slack_b[i] = e * (1.0 - SLIVER) - rise[i], 0.5 * (e2 - square)
        upper[i], lam[i], mu[i] = certificate(A[i], G[i], e - rise[i] + along, theta_c, e2, bound)
    return upper, lam, mu, slack_g, slack_b
