r"""Maximising a'delta over a window mixture, one direction after another: feasible Newton steps along the boundary.

One iteration, from a point on the boundary of C = { Phi - Phi(theta_c) <= e, |theta_c + delta| <= bound }:

1. gradient g of Phi; the tangent's certificate (:mod:`~likeset._solver.certificate`) gives an outer bound and the
   multipliers (lam, mu); stop where the bound meets a'delta;
2. the step p of the quadratic model, M = lam H + mu I, with both constraints linearised. Coordinates come sorted by
   curvature, and beyond the leading ones, where lam h_ii is small beside mu, only the diagonal of H is kept
   (:mod:`~likeset._solver.smooth.leading`: a matter of cost, bounds do not depend on M);
3. *correction*: at the end of the step both constraints are violated to second order. Steps in the metric of M, by
   multiples of M^-1 g and M^-1 theta, take that back. Without it, pulling the point back towards the centre costs
   more than the step gained wherever likelihood and ball are active together, in function spaces the rule;
4. along the ray from the centre onto the boundary. A step that does not raise a'delta is undone and M is damped.

Directions start at the best point known: the maximiser over a similar set, if the caller has one, that of an earlier
direction, or a guess from the second-order model of all terms, a / (kappa curvature + spring), for the best of several
kappa: how much of that curvature counts is not known beforehand.
"""

from __future__ import annotations

import math

import numpy as np

from likeset._solver.certificate import certificate
from likeset._solver.linalg.matrix import cholesky, dot, solve_lower, solve_lower_transposed
from likeset._solver.smooth.leading import NEGLIGIBLE
from likeset._solver.smooth.mixture_sums import Centred, gradient_of, hessian_factor, rise_along, stretch, workspace
from likeset._solver.smooth.rays import SLIVER
from likeset._solver.smooth.steps import CORRECTIONS, Plane, active_multipliers, move_in_plane
from likeset._typing import EPS, Array
from likeset.compiling import REORDER, inner, kernel

MAX_ITERATIONS = 100
ENOUGH = 1e-3  # share of e by which a step away from the ball may miss the boundary: the ray sees to that
KAPPAS = (1.0, 30.0, 1000.0)
ROUGH = 1e-2  # accuracy of points that are compared only
ROUNDING = 2 * EPS


@inner(fastmath={"contract"})
def solve(L: Array, rest: Array, x: Array) -> None:
    """x <- M^-1 x, where the leading block of M is LL' and what follows is the diagonal ``rest``."""
    for i in range(rest.shape[0]):
        x[L.shape[0] + i] /= rest[i]
    solve_lower(L, x)
    solve_lower_transposed(L, x)


@inner()
def copy(source: Array, out: Array) -> None:
    """out = source; ``out[:] = source`` takes seconds to compile, for the sake of its error messages."""
    for j in range(out.shape[0]):
        out[j] = source[j]


@inner(fastmath=REORDER)
def multiply(X: Array, x: Array, out: Array) -> None:
    """out = X x."""
    for b in range(X.shape[0]):
        out[b] = dot(X[b], x)


@inner(fastmath=REORDER)
def leading_hessian(S: Array, lam: float, mu: float) -> tuple[Array, Array]:
    """The leading block of H = S'S that counts beside mu/lam, and the diagonal of the rest."""
    rows, d = S.shape
    diagonal = np.zeros(d)
    for k in range(rows):
        for j in range(d):
            diagonal[j] += S[k, j] * S[k, j]
    r = d
    while r > 1 and lam * diagonal[r - 1] < NEGLIGIBLE * mu:
        r -= 1
    leading = np.empty((rows, r))
    for k in range(rows):
        for j in range(r):
            leading[k, j] = S[k, j]
    return np.dot(leading.T, leading), diagonal[r:]


@inner()
def lagrangian(H: Array, rest: Array, lam: float, mu: float, damping: float, M: Array, pivots: Array) -> None:
    """M = (1 + damping) (lam H + mu I), positive definite by a tiny share of its largest entry at least."""
    d = H.shape[0]
    largest = 0.0
    for i in range(d):
        largest = max(largest, lam * H[i, i] + mu)
    for i in range(d):
        for j in range(i):
            M[i, j] = (1.0 + damping) * lam * H[i, j]
        M[i, i] = (1.0 + damping) * (lam * H[i, i] + mu) + 1e-14 * largest
    for i in range(rest.shape[0]):
        pivots[i] = (1.0 + damping) * (lam * rest[i] + mu)


@inner()
def follow_both_boundaries(
    c: Centred, delta: Array, u: Array, p: Array, g: Array, to_g: Array, to_q: Array, slacks: tuple[float, float]
) -> Array:
    """Turn p = M^-1 a into the step of the model, corrected where it ends; returns X (delta + p).

    to_g = M^-1 g and to_q = M^-1 q with q = theta_c + delta, the gradients of the two constraints; ``slacks`` is the
    room left at delta. As in ``steps``, the multipliers are computed anew from the room left where
    the step ends, without another factorisation.
    """
    K, d = c.X.shape
    at = workspace(K, c.log_voices.shape[0])
    qa, qq = 0.0, 0.0
    for j in range(d):
        q = c.theta_c[j] + delta[j]
        qa += q * p[j]
        qq += q * to_q[j]
    new_u, gu, qu = np.empty(K), np.empty(K), np.empty(K)
    for b in range(K):
        new_u[b] = u[b] + dot(c.X[b], p)
        gu[b], qu[b] = dot(c.X[b], to_g), dot(c.X[b], to_q)
    plane = Plane(dot(g, p), dot(g, to_g), dot(g, to_q), qa, qq)
    alpha, beta = 0.0, 0.0
    room_g, room_q = slacks
    for correction in range(CORRECTIONS + 1):
        new_alpha, new_beta = active_multipliers(plane, room_g, room_q)
        move_in_plane(p, new_alpha - alpha, to_g, new_beta - beta, to_q)
        move_in_plane(new_u, new_alpha - alpha, gu, new_beta - beta, qu)
        alpha, beta = new_alpha, new_beta
        rise = rise_along(c, new_u, 1.0, at)[0] if correction < CORRECTIONS else math.inf
        if not rise < math.inf or (beta == 0.0 and abs(c.e - rise) <= ENOUGH * c.e):
            break
        room_g = c.e - rise + plane.ga - alpha * plane.gg - beta * plane.gb
        room_q = slacks[1] - 0.5 * dot(p, p)
    return new_u


@inner()
def maximise_direction(c: Centred, a: Array, start: Array, tolerance: float, best: Array) -> float:
    """Write a feasible near-maximiser of a'delta to ``best``; return the certified outer bound."""
    K, d = c.X.shape
    at, trial_at = workspace(K, c.log_voices.shape[0]), workspace(K, c.log_voices.shape[0])
    delta, u = np.empty(d), np.empty(K)
    copy(start, delta)
    multiply(c.X, delta, u)
    rise = stretch(c, delta, u, SLIVER, at)
    g, p, to_g, to_q, trial = np.empty(d), np.empty(d), np.empty(d), np.empty(d), np.empty(d)
    value = dot(a, delta)
    upper, damping = math.inf, 0.0
    rounding = ROUNDING * math.sqrt(dot(c.theta_c, c.theta_c))
    for _ in range(MAX_ITERATIONS):
        gradient_of(c, at, g)
        h = c.e - rise + dot(g, delta)
        ceiling, lam, mu = certificate(a, g, h, c.theta_c, c.e2, c.bound)
        upper = min(upper, ceiling)
        if upper - value <= max(tolerance * upper, rounding):
            break
        H, rest = leading_hessian(hessian_factor(c, at, g), lam, mu)
        M, pivots = np.empty_like(H), np.empty_like(rest)
        improved = False
        while not improved and damping < 1e12:
            lagrangian(H, rest, lam, mu, damping, M, pivots)
            if not cholesky(M, 0.0, M):
                damping = max(1e-10, 100.0 * damping)
                continue
            square = 0.0
            for j in range(d):
                p[j], to_g[j], to_q[j] = a[j], g[j], c.theta_c[j] + delta[j]
                square += delta[j] * (delta[j] + 2.0 * c.theta_c[j])
            solve(M, pivots, p)
            solve(M, pivots, to_g)
            solve(M, pivots, to_q)
            trial_u = follow_both_boundaries(c, delta, u, p, g, to_g, to_q, (c.e - rise, 0.5 * (c.e2 - square)))
            for j in range(d):
                trial[j] = delta[j] + p[j]
            new_rise = stretch(c, trial, trial_u, SLIVER, trial_at)
            new_value = dot(a, trial)
            improved = new_value > value
            relaxed = 0.1 * damping if damping > 1e-2 else 0.0
            damping = relaxed if improved else max(0.3, 5.0 * damping)
        if not improved:
            break
        delta, trial, u, rise, value = trial, delta, trial_u, new_rise, new_value
        at, trial_at = trial_at, at
    copy(delta, best)
    return upper


@kernel()
def maximise_directions(
    c: Centred, A: Array, curvatures: Array, spring: float, near: Array, tolerance: float
) -> tuple[Array, Array]:
    """(delta, upper) for unit rows of A (n, d): feasible points and outer bounds of a'delta.

    ``near`` holds points (n, d) from which to start, or none (0, d).
    """
    n, d = A.shape
    points, upper = np.empty((n, d)), np.empty(n)
    K = c.X.shape[0]
    at, u, guess, start = workspace(K, c.log_voices.shape[0]), np.empty(K), np.empty(d), np.empty(d)
    served = 0
    for i in range(n):
        known = -math.inf
        for m in range(i):
            value = dot(A[i], points[m])
            if value > known:
                known = value
                copy(points[m], start)
        # A guess that served the direction before will serve again; the others are for the first one.
        first = -1 if near.shape[0] > 0 else (0 if i == 0 else served)
        for k in range(first, len(KAPPAS) if i == 0 else max(first, served) + 1):
            for j in range(d):
                guess[j] = near[i, j] if k < 0 else A[i, j] / (KAPPAS[k] * curvatures[j] + spring)
            multiply(c.X, guess, u)
            stretch(c, guess, u, ROUGH, at)
            value = dot(A[i], guess)
            if value > known:
                known = value
                copy(guess, start)
                served = max(k, 0)
                if k < 0 and value > 0.0:
                    break  # better than the maximisers of all earlier directions: no need for guesses
        upper[i] = maximise_direction(c, A[i], start, tolerance, points[i])
    return points, upper
