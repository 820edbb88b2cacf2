r"""Optimality conditions of window mixtures of absolute values, and their Newton system.

The function is  Phi(theta) = log sum_k exp m_k,  m_k = height_k + sum_{b in W_k} [ l_b z_b + sum_{i of b} u_i |p_i - z_b| ]
with theta = centre + delta, z_b = x_b'delta. Two problems share one Newton system:

    support   max  a'delta      subject to  Phi <= level, |theta| <= radius
    minimum   min  level        subject to  Phi <= level, |theta| <= radius         (a = 0)

As in :mod:`~likeset.support.primal_dual` residuals are split, p_i - z_b = r_i - t_i with r, t >= 0. The log-sum-exp is
taken apart by its own multipliers. With v_k > 0 the multiplier of window k, lam = sum_k v_k that of Phi <= level,

    s_k = level + log(v_k / lam) - m_k >= 0,        v_k s_k = 0          (voices v_k / lam = exp(m_k - level))
    |nu_i| <= u_i w_b,  w_b = sum_{k: b in W_k} v_k,   kept as the pair  u_i w_b - nu_i (of r)  and  u_i w_b + nu_i (of t)
    a - sum_b w_b l_b x_b + sum_i nu_i x_i + y_1 = 0,  y the ball's multiplier in the second-order cone,

and all products (variable times multiplier) vanish at the optimum. Newton's method aims at products equal to mu > 0:
a window far below the level then is an inactive constraint like any other, and only log(v_k / lam) is not linear.

With alpha_i = r_i / (u_i w_b - nu_i), beta_i = t_i / (u_i w_b + nu_i), h_i = 1 / (alpha_i + beta_i), eliminating what is
local to points leaves the steps of delta and of v,

    (sum_b h_b x_b x_b' + ball block) d_delta = rhs + B'd_v,                 D d_v = R - B d_delta,
    B_k = sum_{b in W_k} e_b x_b,   e_b = sum_{i of b} u_i h_i (alpha_i - beta_i) - l_b,
    D = E - 1 1'/lam,   E = diag((1 + s_k)/v_k) + sum_b sigma_b 1_b 1_b',   sigma_b = sum_{i of b} 4 u_i^2 h_i alpha_i beta_i

(1_b marks the windows that hold b). With y = E^-1 1, D^-1 = E^-1 + y y'/(lam - 1'y), where the divisor tends to zero
and would be lost in rounding; it equals  sum_k y_k s_k + sum_b sigma_b w_b (1_b'y),  a sum of positive numbers. In the
minimum problem 1'd_v = 0, and the same formula holds with the divisor -1'y.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from likeset.support.ball_cone import cone_divide, jordan_product, scale, scaling_point
from likeset.support.dense import cholesky, cholesky_solve, compiled, copy, gather, inner, weighted_gram
from likeset.support.terms import Array, IntArray

BALL_SHARE = 0.1


class Problem(NamedTuple):
    """The data of Phi and the ball.

    owner        the row of X that each point belongs to
    masks        (W, K): one where covariate b belongs to window k; masks_t its transpose
    minimising   True for the minimum problem, False for the support problem
    """

    X: Array
    Xt: Array
    owner: IntArray
    offsets: Array
    weights: Array
    slopes: Array
    masks: Array
    masks_t: Array
    heights: Array
    centre: Array
    radius: float
    minimising: bool


class Iterate(NamedTuple):
    """Primal and dual variables of all lanes; the same type holds Newton directions.

    delta             step from the centre, (d, lanes)
    parts, duals      r, then t, (lanes, 2n), and their multipliers
    slacks, voices    s and v, (lanes, W)
    ball, dual_ball   (radius, theta) and its multiplier y, (d + 1, lanes)
    level             (lanes,)
    """

    delta: Array
    parts: Array
    duals: Array
    slacks: Array
    voices: Array
    ball: Array
    dual_ball: Array
    level: Array


class Workspace(NamedTuple):
    """What the Newton system keeps between factorisation and solution.

    Per point, (lanes, 2n) or (lanes, n): see :class:`likeset.support.primal_dual.Workspace`.
    Per covariate, (lanes, K): row_stiffness h_b (with W ones behind), border e_b, spread sigma_b, and scratch.
    Per window, (lanes, W): misfit of s, aims, roots sqrt(v), direction y, solved L^-1 sqrt(v) R, and scratch; the factor
    L of sqrt(v) E sqrt(v), (lanes, W, W), and Z = L^-1 sqrt(v) B, (lanes, W, d).
    Per dimension, (d, lanes): gradient, along B'y; M (d, d, lanes) and the inverse of its pivots.
    """

    inverse_parts: Array
    inverse_duals: Array
    ratios: Array
    shares: Array
    aims: Array
    stiffness: Array
    misfit: Array
    force: Array
    row_stiffness: Array
    border: Array
    spread: Array
    rows: Array
    lengths: Array
    pulls: Array
    window_misfit: Array
    window_aims: Array
    roots: Array
    direction: Array
    solved: Array
    sums: Array
    L: Array
    Z: Array
    scaled_masks: Array
    joined: Array
    scaled: Array
    gram: Array
    M: Array
    inverse: Array
    gradient: Array
    along: Array
    cone_point: Array
    cone_dual: Array
    cone_a: Array
    cone_b: Array
    divisor: Array
    eta: Array
    inverse_eta: Array
    pushed: Array


@inner
def sum_by_owner(owner: IntArray, values: Array, out: Array, m: int) -> None:
    """Set out[m, k] to the sum of the values[m, i] with owner[i] = k."""
    for k in range(out.shape[1]):
        out[m, k] = 0.0
    for i in range(owner.size):
        out[m, owner[i]] += values[m, i]


@compiled
def ball_weight(problem: Problem) -> float:
    """How many of the others the ball's product is worth on the central path.

    With the weight of one among hundreds the analytic centre would lie next to the sphere, and paths be bent there.
    """
    return max(1.0, BALL_SHARE * (2.0 * problem.weights.size + problem.heights.size))


@compiled
def new_iterate(d: int, n: int, W: int, lanes: int) -> Iterate:
    """An iterate of zeros for dimension d, n points and W windows."""
    parts, windows, ball = np.zeros((2, lanes, 2 * n)), np.zeros((2, lanes, W)), np.zeros((2, d + 1, lanes))
    return Iterate(
        np.zeros((d, lanes)), parts[0], parts[1], windows[0], windows[1], ball[0], ball[1], np.zeros(lanes)
    )  # fmt: skip


@compiled
def new_workspace(problem: Problem, lanes: int) -> Workspace:
    """Scratch memory for one problem."""
    K, d = problem.X.shape
    n, W = problem.weights.size, problem.heights.size
    pairs, points, rows = np.zeros((5, lanes, 2 * n)), np.zeros((3, lanes, n)), np.zeros((5, lanes, K))
    windows, vectors, cone = np.zeros((6, lanes, W)), np.zeros((3, d, lanes)), np.zeros((4, d + 1, lanes))
    scalars = np.zeros((4, lanes))
    joined = np.zeros((d, K + W))
    joined[:, :K] = problem.Xt
    return Workspace(
        pairs[0], pairs[1], pairs[2], pairs[3], pairs[4], points[0], points[1], points[2],
        np.ones((lanes, K + W)), rows[0], rows[1], rows[2], rows[3], rows[4],
        windows[0], windows[1], windows[2], windows[3], windows[4], windows[5],
        np.zeros((lanes, W, W)), np.zeros((lanes, W, d)), np.zeros((W, K)), joined, np.zeros((d, K + W)),
        np.zeros((d, d)), np.zeros((d, d, lanes)), vectors[0], vectors[1], vectors[2],
        cone[0], cone[1], cone[2], cone[3], scalars[0], scalars[1], scalars[2], scalars[3],
    )  # fmt: skip


@compiled
def weigh_points(problem: Problem, at: Iterate, work: Workspace) -> None:
    """Stiffness, shares and misfits of the points, and what they add up to per covariate; z is in ``rows``.

    Afterwards ``rows`` holds sum_i nu_i and ``lengths`` l_b z_b + sum_i u_i (r_i + t_i).
    """
    owner, weights, offsets, n = problem.owner, problem.weights, problem.offsets, problem.weights.size
    parts, duals, ratios, shares = at.parts, at.duals, work.ratios, work.shares
    inverse_parts, inverse_duals = work.inverse_parts, work.inverse_duals
    stiffness, misfit, force = work.stiffness, work.misfit, work.force
    K = problem.slopes.size
    for m in range(parts.shape[0]):
        for i in range(2 * n):
            inverse_parts[m, i] = 1.0 / parts[m, i]
        for i in range(2 * n):
            inverse_duals[m, i] = 1.0 / duals[m, i]
        for i in range(2 * n):
            ratios[m, i] = parts[m, i] * inverse_duals[m, i]
        for i in range(n):
            stiffness[m, i] = 1.0 / (ratios[m, i] + ratios[m, n + i])
        for i in range(n):
            shares[m, i] = stiffness[m, i] * ratios[m, i]
        for i in range(n):
            shares[m, n + i] = stiffness[m, i] * ratios[m, n + i]
        gather(owner, work.rows, force, m)
        for i in range(n):
            misfit[m, i] = offsets[i] - force[m, i] - (parts[m, i] - parts[m, n + i])
        for i in range(n):
            force[m, i] = weights[i] * (parts[m, i] + parts[m, n + i])
        sum_by_owner(owner, force, work.lengths, m)
        for b in range(K):
            work.lengths[m, b] += problem.slopes[b] * work.rows[m, b]
        for b in range(K):
            work.row_stiffness[m, b] = 0.0
        for i in range(n):
            work.row_stiffness[m, owner[i]] += stiffness[m, i]
        for i in range(n):
            force[m, i] = 4.0 * weights[i] * weights[i] * shares[m, i] * ratios[m, n + i]
        sum_by_owner(owner, force, work.spread, m)
        for i in range(n):
            force[m, i] = weights[i] * (shares[m, i] - shares[m, n + i])
        sum_by_owner(owner, force, work.border, m)
        for b in range(K):
            work.border[m, b] -= problem.slopes[b]
        for i in range(n):
            force[m, i] = 0.5 * (duals[m, n + i] - duals[m, i])
        sum_by_owner(owner, force, work.rows, m)


@compiled
def factor_windows(problem: Problem, at: Iterate, work: Workspace, m: int) -> None:
    """L, Z, y = E^-1 1, B'y and the divisor of one lane."""
    W, K = problem.masks.shape
    d = problem.X.shape[1]
    L, Z, root, y = work.L[m], work.Z[m], work.roots[m], work.direction[m]
    S, masks = work.scaled_masks, problem.masks
    for b in range(K):
        work.lengths[m, b] = np.sqrt(work.spread[m, b])
    for k in range(W):
        root[k] = np.sqrt(at.voices[m, k])
        for b in range(K):
            S[k, b] = root[k] * masks[k, b] * work.lengths[m, b]
    np.dot(S, S.T, L)
    for k in range(W):
        for b in range(K):
            S[k, b] = root[k] * masks[k, b] * work.border[m, b]
    np.dot(S, problem.X, Z)
    for k in range(W):
        L[k, k] += 1.0 + at.slacks[m, k]
        for j in range(k + 1):
            total = L[k, j]
            for i in range(j):
                total -= L[k, i] * L[j, i]
            L[k, j] = total / L[j, j] if j < k else np.sqrt(total)  # total >= 1: E is at least the identity
        inverse = 1.0 / L[k, k]
        y[k] = root[k]
        for j in range(k):
            factor = L[k, j]
            y[k] -= factor * y[j]
            for i in range(d):
                Z[k, i] -= factor * Z[j, i]
        y[k] *= inverse
        for i in range(d):
            Z[k, i] *= inverse
    for i in range(d):
        work.along[i, m] = 0.0
    for k in range(W):
        for i in range(d):
            work.along[i, m] += Z[k, i] * y[k]
    back_substitute(L, y)
    divisor, total = 0.0, 0.0
    for k in range(W):
        y[k] *= root[k]
        divisor += y[k] * at.slacks[m, k]
        total += y[k]
    if problem.minimising:
        work.divisor[m] = -total
    else:
        for b in range(K):
            marked = 0.0
            for k in range(W):
                marked += masks[k, b] * y[k]
            divisor += marked * work.spread[m, b] * work.pulls[m, b]
        work.divisor[m] = divisor
    joined = work.joined
    for i in range(d):
        for k in range(W):
            joined[i, K + k] = Z[k, i]


@compiled
def back_substitute(L: Array, x: Array) -> None:
    """x <- L'^-1 x."""
    for k in range(x.size - 1, -1, -1):
        x[k] /= L[k, k]
        for j in range(k):
            x[j] -= L[k, j] * x[k]


@compiled
def factorise(problem: Problem, A: Array, at: Iterate, work: Workspace) -> None:
    """Residuals of the optimality conditions for directions A (d, lanes), and the Cholesky factor of M."""
    d, lanes = A.shape
    W, K = problem.masks.shape
    gradient, w = work.gradient, work.cone_point
    np.dot(at.delta.T, problem.Xt, work.rows)
    weigh_points(problem, at, work)
    np.dot(work.lengths, problem.masks_t, work.sums)
    np.dot(at.voices, problem.masks, work.pulls)
    for m in range(lanes):
        lam = 0.0
        for k in range(W):
            lam += at.voices[m, k]
        for k in range(W):
            m_k = problem.heights[k] + work.sums[m, k]
            work.window_misfit[m, k] = at.level[m] + np.log(at.voices[m, k] / lam) - m_k - at.slacks[m, k]
        for b in range(K):
            work.rows[m, b] -= work.pulls[m, b] * problem.slopes[b]
    np.dot(problem.Xt, work.rows.T, gradient)
    scaling_point(at.ball, at.dual_ball, w, work.eta)
    for m in range(lanes):
        work.inverse_eta[m] = 1.0 / work.eta[m]
    scale(w, work.eta, 1.0, at.dual_ball, work.cone_dual)
    for j in range(d):
        for m in range(lanes):
            gradient[j, m] += A[j, m] + at.dual_ball[1 + j, m]
    for m in range(lanes):
        factor_windows(problem, at, work, m)
        weighted_gram(work.joined, work.row_stiffness, m, work.scaled, work.gram)
        for i in range(d):
            for j in range(i, d):
                work.M[i, j, m] = work.gram[i, j]
    for i in range(d):
        for m in range(lanes):
            work.M[i, i, m] += work.inverse_eta[m] * work.inverse_eta[m]
        for j in range(i, d):
            for m in range(lanes):
                square = 2.0 * work.inverse_eta[m] * work.inverse_eta[m] * w[1 + i, m] * w[1 + j, m]
                work.M[i, j, m] += square + work.along[i, m] * work.along[j, m] / work.divisor[m]
    cholesky(work.M, work.inverse)


@compiled
def push_points(problem: Problem, at: Iterate, work: Workspace, step: Iterate, target: Array, curvature: float) -> None:
    """What the points push: sum_i h (misfit - aim_r + aim_t) per covariate in ``rows``, Q_b in ``lengths``."""
    weights, n = problem.weights, problem.weights.size
    parts, aims, inverse_duals, shares = at.parts, work.aims, work.inverse_duals, work.shares
    step_parts, step_duals = step.parts, step.duals
    stiffness, misfit, force = work.stiffness, work.misfit, work.force
    for m in range(parts.shape[0]):
        for i in range(2 * n):
            product = target[m] - curvature * step_parts[m, i] * step_duals[m, i]
            aims[m, i] = product * inverse_duals[m, i] - parts[m, i]
        for i in range(n):
            force[m, i] = weights[i] * (
                2.0 * (shares[m, n + i] * aims[m, i] + shares[m, i] * aims[m, n + i])
                + (shares[m, i] - shares[m, n + i]) * misfit[m, i]
            )
        sum_by_owner(problem.owner, force, work.lengths, m)
        for i in range(n):
            force[m, i] = stiffness[m, i] * (misfit[m, i] - aims[m, i] + aims[m, n + i])
        sum_by_owner(problem.owner, force, work.rows, m)


@compiled
def bend_of_log(x: float) -> float:
    """What log(1 + x) - x has to be corrected by, about -x^2/2, after a first-order step x of a voice (relative).

    Upwards log(1 + x) - x itself. Downwards 1 + x - e^x: solving log(1 + x') = x then gives x' = e^x - 1 > -1, where the
    first-order step x < -1 is impossible.
    """
    return np.log1p(x) - x if x > 0.0 else 1.0 + x - np.exp(x)


@compiled
def push_windows(
    problem: Problem, at: Iterate, work: Workspace, step: Iterate, target: Array, curvature: float
) -> None:
    """R, then L^-1 sqrt(v) R in ``solved`` and y'R / divisor in ``pushed``; mask Q is in ``sums``.

    The second-order correction knows the true change of log v_k - log lam along the predictor.
    """
    W = problem.heights.size
    for m in range(target.size):
        f, L = work.solved[m], work.L[m]
        lam, lam_step, pushed = 0.0, 0.0, 0.0
        for k in range(W):
            lam += at.voices[m, k]
            lam_step += step.voices[m, k]
        of_sum = bend_of_log(lam_step / lam)
        for k in range(W):
            product = target[m] - curvature * step.slacks[m, k] * step.voices[m, k]
            work.window_aims[m, k] = product / at.voices[m, k] - at.slacks[m, k]
            bend = curvature * (bend_of_log(step.voices[m, k] / at.voices[m, k]) - of_sum)
            R = work.window_aims[m, k] - work.window_misfit[m, k] - bend + work.sums[m, k]
            pushed += work.direction[m, k] * R
            f[k] = work.roots[m, k] * R
            for j in range(k):
                f[k] -= L[k, j] * f[j]
            f[k] /= L[k, k]
        work.pushed[m] = pushed


@compiled
def move_points(problem: Problem, work: Workspace, step: Iterate) -> None:
    """Back-substitution for the points, given the steps of w (in pulls) and of z = x'delta (in rows)."""
    weights, owner, n = problem.weights, problem.owner, problem.weights.size
    shares, aims, ratios = work.shares, work.aims, work.ratios
    stiffness, force = work.stiffness, work.force
    step_parts, step_duals = step.parts, step.duals
    for m in range(step_parts.shape[0]):
        gather(owner, work.rows, step_parts, m)
        for i in range(n):
            force[m, i] -= stiffness[m, i] * step_parts[m, i]
        for i in range(n):
            step_parts[m, i] = 2.0 * weights[i] * work.pulls[m, owner[i]]
        for i in range(n):
            step_duals[m, i] = step_parts[m, i] * shares[m, n + i] - force[m, i]
        for i in range(n):
            step_duals[m, n + i] = step_parts[m, i] * shares[m, i] + force[m, i]
        for i in range(2 * n):
            step_parts[m, i] = aims[m, i] - ratios[m, i] * step_duals[m, i]


@compiled
def newton_step(problem: Problem, at: Iterate, work: Workspace, step: Iterate, target: Array, curvature: float) -> None:
    """Newton step towards products equal to target (one number per lane).

    With curvature = 1 what the step already held in ``step`` (the predictor) would do to second order is taken into
    account: Mehrotra's correction. With 0 it is ignored.
    """
    d, lanes = work.gradient.shape
    W = problem.heights.size
    push_points(problem, at, work, step, target, curvature)
    np.dot(work.lengths, problem.masks_t, work.sums)
    push_windows(problem, at, work, step, target, curvature)
    np.dot(problem.Xt, work.rows.T, step.delta)
    aim, other = work.cone_a, work.cone_b
    scale(work.cone_point, work.inverse_eta, -1.0, step.ball, aim)
    scale(work.cone_point, work.eta, 1.0, step.dual_ball, other)
    jordan_product(aim, other)
    for j in range(d + 1):
        for m in range(lanes):
            aim[j, m] *= -curvature
    for m in range(lanes):
        aim[0, m] += ball_weight(problem) * target[m]
    cone_divide(work.cone_dual, aim)
    scale(work.cone_point, work.inverse_eta, -1.0, aim, other)
    for m in range(lanes):
        Z, f = work.Z[m], work.solved[m]
        for j in range(d):
            step.delta[j, m] += work.gradient[j, m] + other[1 + j, m] - at.dual_ball[1 + j, m]
            step.delta[j, m] += work.along[j, m] * (work.pushed[m] / work.divisor[m])
        for k in range(W):
            for j in range(d):
                step.delta[j, m] += Z[k, j] * f[k]

    cholesky_solve(work.M, work.inverse, step.delta)

    np.dot(step.delta.T, problem.Xt, work.rows)
    for m in range(lanes):
        Z, f, v = work.Z[m], work.solved[m], step.voices[m]
        for j in range(d):
            work.pushed[m] -= work.along[j, m] * step.delta[j, m]
        for k in range(W):
            total = f[k]
            for j in range(d):
                total -= Z[k, j] * step.delta[j, m]
            v[k] = total
        back_substitute(work.L[m], v)
        push = work.pushed[m] / work.divisor[m]
        for k in range(W):
            v[k] = work.roots[m, k] * v[k] + work.direction[m, k] * push
            step.slacks[m, k] = work.window_aims[m, k] - at.slacks[m, k] / at.voices[m, k] * v[k]
        step.level[m] = -push if problem.minimising else 0.0
    np.dot(step.voices, problem.masks, work.pulls)
    move_points(problem, work, step)
    for m in range(lanes):
        step.ball[0, m] = 0.0
    copy(step.delta, step.ball[1:])
    scale(work.cone_point, work.inverse_eta, -1.0, step.ball, work.cone_b)
    for j in range(d + 1):
        for m in range(lanes):
            work.cone_a[j, m] -= work.cone_b[j, m]
    scale(work.cone_point, work.inverse_eta, -1.0, work.cone_a, step.dual_ball)
    for j in range(d + 1):
        for m in range(lanes):
            step.dual_ball[j, m] -= at.dual_ball[j, m]
