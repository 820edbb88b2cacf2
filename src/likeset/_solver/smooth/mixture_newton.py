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

Points lie on the boundary only as exactly as the step that leads there is good: what a'delta gains by it, squared,
since that is about what it leaves to be gained. Every tangent has a valid bound.

Directions start at the best point known: the maximiser over a similar set, if the caller has one, that of an earlier
direction, or a guess from the second-order model of all terms, a / (kappa curvature + spring), for the best of several
kappa: how much of that curvature counts is not known beforehand.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from likeset._solver.certificate import certificate
from likeset._solver.linalg.matrix import cholesky, dot, solve_lower, solve_lower_transposed
from likeset._solver.smooth.leading import NEGLIGIBLE, SMALL
from likeset._solver.smooth.mixture_sums import (
    UNSEEN,
    Centred,
    Local,
    draw_lines,
    gradient_of,
    hessian_factor,
    pull_together,
    rise_along,
    small_hessian,
    stretch,
    workspace,
)
from likeset._solver.smooth.rays import SLIVER
from likeset._solver.smooth.steps import active_multipliers
from likeset._typing import EPS, Array
from likeset.compiling import REORDER, inner, kernel

MAX_ITERATIONS = 100
CORRECTIONS = 3
ENOUGH = 1e-3  # share of e by which a step away from the ball may miss the boundary: the ray sees to that
KAPPAS = (1.0, 30.0, 1000.0)
ROUGH = 1e-2  # accuracy of points that are compared only
ROUNDING = 2 * EPS


class Scratch(NamedTuple):
    """Memory for the steps of a direction: vectors of K numbers, of d, and matrices d x d (none in many dimensions)."""

    row: Array
    along_g: Array
    along_q: Array
    before_u: Array
    before_p: Array
    apart: Array
    g: Array
    p: Array
    to_g: Array
    to_q: Array
    H: Array


@kernel(allocates=True)
def scratch(K: int, d: int) -> Scratch:
    """Room for one direction after the other."""
    square = d if d < SMALL else 0
    return Scratch(
        np.empty(K), np.empty(K), np.empty(K), np.empty(K), np.empty(d), np.empty(d), np.empty(d), np.empty(d),
        np.empty(d), np.empty(d), np.empty((square, square)),
    )  # fmt: skip


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
def multiply(Xt: Array, x: Array, out: Array) -> None:
    """out = X x."""
    for b in range(out.shape[0]):
        out[b] = 0.0
    for j in range(x.shape[0]):
        factor = x[j]
        for b in range(out.shape[0]):
            out[b] += factor * Xt[j, b]


@inner(allocates=True, fastmath=REORDER)
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


@inner(allocates=True)
def curvature(c: Centred, at: Local, lam: float, mu: float, w: Scratch) -> tuple[Array, Array]:
    """The Hessian of Phi: all of it in a few dimensions, otherwise its leading block and the diagonal of the rest."""
    if w.H.shape[0] > 0:
        small_hessian(c, at, w.g, w.H, w.row, w.apart)
        return w.H, np.empty(0)
    return leading_hessian(hessian_factor(c, at, w.g), lam, mu)


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
def accuracy_after(gain: float, value: float) -> float:
    """How exactly to find the boundary after a step by which a'delta, which was ``value``, should gain so much."""
    if not 0.0 < gain < value:
        return ROUGH if gain > 0.0 else SLIVER
    return max(SLIVER, ROUGH * (gain / value) ** 2)


@inner()
def move_in_plane(x: Array, more_g: float, along_g: Array, more_q: float, along_q: Array) -> None:
    """What a step is made of, as its multipliers grow: x -= more_g along_g + more_q along_q."""
    for j in range(x.shape[0]):
        x[j] -= more_g * along_g[j] + more_q * along_q[j]


@inner()
def follow_both_boundaries(
    c: Centred, a: Array, delta: Array, u: Array, w: Scratch, slacks: tuple[float, float], new_u: Array, at: Local
) -> tuple[float, float, float]:
    """Turn p = M^-1 a into the step of the model, corrected where it ends; write X (delta + p) to ``new_u``.

    to_g = M^-1 g and to_q = M^-1 q with q = theta_c + delta, the gradients of the two constraints; ``slacks`` is the
    room left at delta. As in ``steps``, the multipliers are computed anew from the room left where
    the step ends, without another factorisation, until that is as exact as it need be. A correction that leads further
    away from the boundary of the likelihood is taken back.

    Returns what ``rise_along`` says of the end, with what it leaves in ``at``; :data:`UNSEEN` if it was not asked.
    """
    p, to_g, to_q = w.p, w.to_g, w.to_q
    qa, qq = 0.0, 0.0
    for j in range(p.shape[0]):
        q = c.theta_c[j] + delta[j]
        qa += q * p[j]
        qq += q * to_q[j]
    ga, gg, gq = dot(w.g, p), dot(w.g, to_g), dot(w.g, to_q)
    alpha, beta = active_multipliers(ga, gg, gq, qa, qq, slacks[0], slacks[1])
    move_in_plane(p, alpha, to_g, beta, to_q)
    multiply(c.Xt, p, new_u)
    for b in range(u.shape[0]):
        new_u[b] += u[b]
    value, room_g, room_q, miss = dot(a, delta), slacks[0], slacks[1], math.inf
    for correction in range(CORRECTIONS):
        draw_lines(c, new_u, at)
        seen = rise_along(c, new_u, 1.0, at)
        rise = seen[0]
        if correction > 0 and not abs(c.e - rise) < miss:
            copy(w.before_p, p)
            copy(w.before_u, new_u)
            break
        if not rise < math.inf or (beta == 0.0 and abs(c.e - rise) <= ENOUGH * c.e):
            return seen
        miss = abs(c.e - rise)
        new_room_g = c.e - rise + ga - alpha * gg - beta * gq
        new_room_q = slacks[1] - 0.5 * dot(p, p)
        accuracy = accuracy_after(dot(a, p), value)
        if abs(new_room_g - room_g) <= accuracy * c.e and abs(new_room_q - room_q) <= accuracy * c.e2:
            return seen
        room_g, room_q = new_room_g, new_room_q
        new_alpha, new_beta = active_multipliers(ga, gg, gq, qa, qq, room_g, room_q)
        more_g, more_q = new_alpha - alpha, new_beta - beta
        alpha, beta = new_alpha, new_beta
        if correction == 0:
            multiply(c.Xt, to_g, w.along_g)
            multiply(c.Xt, to_q, w.along_q)
        copy(p, w.before_p)
        copy(new_u, w.before_u)
        move_in_plane(p, more_g, to_g, more_q, to_q)
        move_in_plane(new_u, more_g, w.along_g, more_q, w.along_q)
    return UNSEEN


@inner(allocates=True)
def maximise_direction(
    c: Centred, a: Array, start: Array, tolerance: float, best: Array, w: Scratch, at: Local, trial_at: Local
) -> float:
    """Write a feasible near-maximiser of a'delta to ``best``; return the certified outer bound."""
    d, K = c.Xt.shape
    delta, trial, u, trial_u = np.empty(d), np.empty(d), np.empty(K), np.empty(K)
    g, p, to_g, to_q = w.g, w.p, w.to_g, w.to_q
    copy(start, delta)
    multiply(c.Xt, delta, u)
    rise = stretch(c, delta, u, ROUGH, at, UNSEEN)
    value = dot(a, delta)
    upper, damping, gained = math.inf, 0.0, True
    rounding = ROUNDING * math.sqrt(dot(c.theta_c, c.theta_c))
    for _ in range(MAX_ITERATIONS):
        pull_together(c, at)
        gradient_of(c, at, g)
        h = c.e - rise + dot(g, delta)
        ceiling, lam, mu = certificate(a, g, h, c.theta_c, c.e2, c.bound)
        sharper = upper - ceiling > 0.1 * (upper - value)
        upper = min(upper, ceiling)
        if upper - value <= max(tolerance * upper, rounding) or not (gained or sharper):
            break
        H, rest = curvature(c, at, lam, mu, w)
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
            slacks = c.e - rise, 0.5 * (c.e2 - square)
            seen = follow_both_boundaries(c, a, delta, u, w, slacks, trial_u, trial_at)
            for j in range(d):
                trial[j] = delta[j] + p[j]
            new_rise = stretch(c, trial, trial_u, accuracy_after(dot(a, p), value), trial_at, seen)
            new_value = dot(a, trial)
            # Within the sliver of the ray a value may fall although the point improves.
            gained, improved = new_value > value, new_value > value - 4.0 * SLIVER * abs(value)
            relaxed = 0.1 * damping if damping > 1e-2 else 0.0
            damping = relaxed if improved else max(0.3, 5.0 * damping)
        if not improved:
            break
        delta, trial, u, trial_u, rise, value = trial, delta, trial_u, u, new_rise, new_value
        at, trial_at = trial_at, at
    copy(delta, best)
    return upper


@kernel(allocates=True)
def maximise_directions(
    c: Centred, A: Array, curvatures: Array, spring: float, near: Array, tolerance: float
) -> tuple[Array, Array]:
    """(delta, upper) for unit rows of A (n, d): feasible points and outer bounds of a'delta.

    ``near`` holds points (n, d) from which to start, or none (0, d).
    """
    n, d = A.shape
    points, upper = np.empty((n, d)), np.empty(n)
    K, W = c.Xt.shape[1], c.log_voices.shape[0]
    at, trial_at, w = workspace(K, W), workspace(K, W), scratch(K, d)
    u, guess, start = np.empty(K), np.empty(d), np.empty(d)
    served, grown = 0, 1.0
    for i in range(n):
        known = -math.inf
        for m in range(i):
            value = dot(A[i], points[m])
            if value > known:
                known = value
                copy(points[m], start)
        # A guess that served the direction before will serve again, and be as much too short; the others are for the
        # first one.
        first = -1 if near.shape[0] > 0 else (0 if i == 0 else served)
        for k in range(first, len(KAPPAS) if i == 0 else max(first, served) + 1):
            factor = grown if i > 0 and k == served else 1.0
            for j in range(d):
                guess[j] = near[i, j] if k < 0 else factor * A[i, j] / (KAPPAS[k] * curvatures[j] + spring)
            length = dot(A[i], guess)
            multiply(c.Xt, guess, u)
            stretch(c, guess, u, ROUGH, at, UNSEEN)
            value = dot(A[i], guess)
            if k >= 0 and value > 0.0 and length > 0.0 and (value > known or k == served):
                grown = factor * value / length
            if value > known:
                known = value
                copy(guess, start)
                served = max(k, 0)
                if k < 0 and value > 0.0:
                    break  # better than the maximisers of all earlier directions: no need for guesses
        upper[i] = maximise_direction(c, A[i], start, tolerance, points[i], w, at, trial_at)
    return points, upper
