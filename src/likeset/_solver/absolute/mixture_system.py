r"""The Newton system of :mod:`~likeset._solver.absolute.mixture_data`: factorise once, then solve for several targets.

With alpha_i = r_i / (u_i w_b - nu_i), beta_i = t_i / (u_i w_b + nu_i), h_i = 1 / (alpha_i + beta_i), eliminating what
is local to points leaves the steps of delta and of v,

    (sum_b h_b x_b x_b' + ball block) d_delta = rhs + B'd_v,                 D d_v = R - B d_delta,
    B_k = sum_{b in W_k} e_b x_b,   e_b = sum_{i of b} u_i h_i (alpha_i - beta_i) - l_b,
    D = E - 1 1'/lam,   E = diag((1 + s_k)/v_k) + sum_b sigma_b 1_b 1_b',
    sigma_b = sum_{i of b} 4 u_i^2 h_i alpha_i beta_i

(1_b marks the windows that hold b); :mod:`~likeset._solver.absolute.mixture_voices` solves with D.
"""

from __future__ import annotations

import numpy as np

from likeset._solver.absolute.ball_cone import cone_divide, jordan_product, scale, scaling_point
from likeset._solver.absolute.mixture_data import Iterate, Problem, Workspace, ball_weight
from likeset._solver.absolute.mixture_voices import factor_windows, move_windows, push_windows
from likeset._solver.absolute.newton_system import weigh_lane
from likeset._solver.linalg.dense import cholesky, cholesky_solve, compiled, copy, gather, inner, weighted_gram
from likeset._typing import Array, IntArray


@inner
def sum_by_owner(owner: IntArray, values: Array, out: Array, m: int) -> None:
    """Set out[m, k] to the sum of the values[m, i] with owner[i] = k."""
    for k in range(out.shape[1]):
        out[m, k] = 0.0
    for i in range(owner.size):
        out[m, owner[i]] += values[m, i]


@compiled
def weigh_points(problem: Problem, at: Iterate, work: Workspace) -> None:
    """Stiffness, shares and misfits of the points, and what they add up to per covariate; z is in ``rows``.

    Afterwards ``rows`` holds sum_i nu_i and ``lengths`` l_b z_b + sum_i u_i (r_i + t_i).
    """
    owner, weights, offsets, n = problem.owner, problem.weights, problem.offsets, problem.weights.size
    parts, duals, ratios, shares = at.parts, at.duals, work.ratios, work.shares
    stiffness, misfit, force = work.stiffness, work.misfit, work.force
    K = problem.slopes.size
    for m in range(parts.shape[0]):
        weigh_lane(at.parts, at.duals, work, m)
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
    of_ball, of_level = np.empty(lanes), np.empty(lanes)
    for i in range(d):
        for m in range(lanes):
            square = work.inverse_eta[m] * work.inverse_eta[m]
            work.M[i, i, m] += square
            of_ball[m], of_level[m] = 2.0 * square * w[1 + i, m], work.along[i, m] / work.divisor[m]
        for j in range(i, d):
            for m in range(lanes):
                work.M[i, j, m] += of_ball[m] * w[1 + j, m] + of_level[m] * work.along[j, m]
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
        f, line = work.solved[m], work.line
        for j in range(d):
            line[j] = work.along[j, m] * (work.pushed[m] / work.divisor[m])
        for k in range(W):
            Z = work.upper[m, k, W:]
            for j in range(d):
                line[j] += Z[j] * f[k]
        for j in range(d):
            step.delta[j, m] += line[j] + work.gradient[j, m] + other[1 + j, m] - at.dual_ball[1 + j, m]

    cholesky_solve(work.M, work.inverse, step.delta)

    np.dot(step.delta.T, problem.Xt, work.rows)
    move_windows(problem, at, work, step)
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
