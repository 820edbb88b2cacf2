r"""The Newton system of :mod:`~likeset._solver.absolute.primal_dual`: factorise once, then solve for several targets.

With alpha_i = r_i / (lam w_i - u_i), beta_i = t_i / (lam w_i + u_i) and h_i = 1 / (alpha_i + beta_i), linearising
the products and the split of the residuals at point i gives

    d_u = h (misfit - aim_r + aim_t - x'd_delta) + h (alpha - beta) w d_lam,

where aim_r and aim_t are the steps of r and t that would give the wanted products with the multipliers kept.
Inserting this in the stationarity and level equations leaves d_delta and d_lam; then d_lam is eliminated.

Whatever is local to points is done lane after lane, in loops over points that write one array each (only such
loops are vectorised); whatever is local to dimensions is done for all lanes at once.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from likeset._solver.absolute.ball_cone import cone_divide, scale, scaling_point
from likeset._solver.absolute.primal_dual import Iterate, Problem, Workspace
from likeset._solver.linalg.dense import cholesky, cholesky_solve, copy, gather, inner, sum_segments, weighted_gram
from likeset._typing import Array


@inner
def weigh_lane(parts: Array, duals: Array, work: Any, m: int) -> None:
    """1/r, 1/t and the like, alpha and beta (``ratios``), h (``stiffness``), h alpha and h beta (``shares``)."""
    n = parts.shape[1] // 2
    inverse_parts, inverse_duals = work.inverse_parts, work.inverse_duals
    ratios, stiffness, shares = work.ratios, work.stiffness, work.shares
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


@inner
def weigh_points(problem: Problem, at: Iterate, work: Workspace) -> None:
    """Stiffness, shares and misfits of the points, and what they add to the equations of delta and lam."""
    owner, starts, weights, offsets, n = (
        problem.owner,
        problem.starts,
        problem.weights,
        problem.offsets,
        problem.weights.size,
    )
    parts, duals, ratios, shares = at.parts, at.duals, work.ratios, work.shares
    stiffness, misfit, force = work.stiffness, work.misfit, work.force
    for m in range(parts.shape[0]):
        weigh_lane(at.parts, at.duals, work, m)
        gather(owner, work.rows, force, m)  # z
        for i in range(n):
            misfit[m, i] = offsets[i] - force[m, i] - (parts[m, i] - parts[m, n + i])
        sum_segments(starts, stiffness, work.row_stiffness, m)
        for i in range(n):
            force[m, i] = 0.5 * (duals[m, n + i] - duals[m, i])  # u
        sum_segments(starts, force, work.rows, m)
        if problem.level_is_free:
            border_scale, level_misfit = 0.0, 0.0
            for i in range(n):
                border_scale += 4.0 * weights[i] * weights[i] * shares[m, i] * ratios[m, n + i]
            for i in range(n):
                level_misfit -= weights[i] * (parts[m, i] + parts[m, n + i])
            work.scalars[0, m], work.scalars[1, m] = border_scale, level_misfit
            for i in range(n):
                force[m, i] = weights[i] * (shares[m, i] - shares[m, n + i])
            sum_segments(starts, force, work.border_rows, m)


@inner
def assemble(problem: Problem, work: Workspace) -> None:
    """M: the sums of h x x' over the covariates, the ball block, the ridge and the border's square."""
    d, lanes = work.gradient.shape
    M, gram, packed, w, border = work.M, work.one_gram, work.packed, work.cone_point, work.border
    inverse_eta, first, second = work.scalars[3], work.scalars[5], work.scalars[6]
    if work.pairs.shape[0] > 0:
        np.dot(work.pairs, work.row_stiffness.T, packed)
    else:
        for m in range(lanes):
            weighted_gram(problem.Xt, work.row_stiffness, m, work.one_scaled, gram)
            row = 0
            for i in range(d):
                for j in range(i, d):
                    packed[row, m] = gram[i, j]
                    row += 1
    row = 0
    for i in range(d):
        for m in range(lanes):
            first[m] = 0.0
            second[m] = 0.0
            packed[row, m] += 2.0 * problem.ridge
        if problem.radius < np.inf:
            for m in range(lanes):
                first[m] = 2.0 * inverse_eta[m] * inverse_eta[m] * w[1 + i, m]
                packed[row, m] += inverse_eta[m] * inverse_eta[m]
        if problem.level_is_free:
            for m in range(lanes):
                second[m] = border[i, m] / work.scalars[0, m]
        for j in range(i, d):
            for m in range(lanes):
                M[i, j, m] = packed[row, m] + first[m] * w[1 + j, m] + second[m] * border[j, m]
            row += 1


@inner
def factorise(problem: Problem, A: Array, at: Iterate, work: Workspace) -> None:
    """Residuals of the optimality conditions for directions A (d, lanes), and the Cholesky factor of M.

    border       = sum_i w_i (h_i alpha_i - h_i beta_i) x_i - slope
    border_scale = s / lam + 4 sum_i w_i^2 h_i alpha_i beta_i
    ball block   = (I + 2 w_1 w_1') / eta^2
    """
    d, lanes = A.shape
    lam, s = at.level[0], at.level[1]
    gradient, border = work.gradient, work.border
    np.dot(at.delta.T, problem.Xt, work.rows)  # z
    weigh_points(problem, at, work)
    np.dot(problem.Xt, work.rows.T, gradient)
    for j in range(d):
        for m in range(lanes):
            gradient[j, m] += A[j, m] - lam[m] * problem.slope[j]
    if problem.ridge > 0.0:
        for j in range(d):
            for m in range(lanes):
                gradient[j, m] -= 2.0 * problem.ridge * (problem.centre[j] + at.delta[j, m])
    if problem.radius < np.inf:
        scaling_point(at.ball, at.dual_ball, work.cone_point, work.scalars[2])
        for m in range(lanes):
            work.scalars[3, m] = 1.0 / work.scalars[2, m]
        scale(work.cone_point, work.scalars[2], 1.0, at.dual_ball, work.cone_dual)
        for j in range(d):
            for m in range(lanes):
                gradient[j, m] += at.dual_ball[1 + j, m]
    if problem.level_is_free:
        for m in range(lanes):
            work.scalars[0, m] += s[m] / lam[m]
            work.scalars[1, m] += problem.allowance - s[m]
        for j in range(d):
            for m in range(lanes):
                work.scalars[1, m] -= problem.slope[j] * at.delta[j, m]
        np.dot(problem.Xt, work.border_rows.T, border)
        for j in range(d):
            for m in range(lanes):
                border[j, m] -= problem.slope[j]
    assemble(problem, work)
    cholesky(work.M, work.inverse)


@inner
def push_points(problem: Problem, at: Iterate, work: Workspace, level_force: Array) -> None:
    """Right-hand side from the points: the forces on u, summed in rows, and the force on the level."""
    weights, n = problem.weights, problem.weights.size
    parts, inverse_duals, goals, aims, shares = at.parts, work.inverse_duals, work.goals, work.aims, work.shares
    stiffness, misfit, force = work.stiffness, work.misfit, work.force
    for m in range(parts.shape[0]):
        for i in range(2 * n):
            aims[m, i] = goals[m, i] * inverse_duals[m, i] - parts[m, i]
        for i in range(n):
            force[m, i] = stiffness[m, i] * (misfit[m, i] - aims[m, i] + aims[m, n + i])
        sum_segments(problem.starts, force, work.rows, m)
        total = 0.0
        for i in range(n):
            total += 2.0 * weights[i] * (shares[m, n + i] * aims[m, i] + shares[m, i] * aims[m, n + i])
        for i in range(n):
            total += weights[i] * (shares[m, i] - shares[m, n + i]) * misfit[m, i]
        level_force[m] = total


@inner
def move_points(problem: Problem, work: Workspace, step: Iterate, lam_step: Array) -> None:
    """Back-substitution for the points, given the steps of lam and of z = x'delta (in rows)."""
    weights, n = problem.weights, problem.weights.size
    shares, aims, ratios = work.shares, work.aims, work.ratios
    stiffness, force = work.stiffness, work.force
    step_parts, step_duals = step.parts, step.duals
    for m in range(step_parts.shape[0]):
        gather(problem.owner, work.rows, step_parts, m)
        for i in range(n):
            force[m, i] -= stiffness[m, i] * step_parts[m, i]
        double = 2.0 * lam_step[m]
        for i in range(n):
            step_duals[m, i] = double * weights[i] * shares[m, n + i] - force[m, i]
        for i in range(n):
            step_duals[m, n + i] = double * weights[i] * shares[m, i] + force[m, i]
        for i in range(2 * n):
            step_parts[m, i] = aims[m, i] - ratios[m, i] * step_duals[m, i]


@inner
def newton_step(problem: Problem, at: Iterate, work: Workspace, step: Iterate) -> None:
    """Newton step towards the products that the workspace sets as goals.

    The goal of the ball is that of the scaled product, (W^{-1} v) o (W y).
    """
    d, lanes = work.gradient.shape
    has_ball = problem.radius < np.inf
    lam, s = at.level[0], at.level[1]
    border_scale, level_misfit, inverse_eta = work.scalars[0], work.scalars[1], work.scalars[3]
    level_goal, level_force, lam_step = work.scalars[4], work.scalars[5], work.scalars[6]

    # Right-hand side.
    push_points(problem, at, work, level_force)
    np.dot(problem.Xt, work.rows.T, step.delta)
    for j in range(d):
        for m in range(lanes):
            step.delta[j, m] += work.gradient[j, m]
    if has_ball:
        aim, other = work.cone_a, work.cone_b
        copy(work.cone_goal, aim)
        cone_divide(work.cone_dual, aim)
        scale(work.cone_point, inverse_eta, -1.0, aim, other)
        for j in range(d):
            for m in range(lanes):
                step.delta[j, m] += other[1 + j, m] - at.dual_ball[1 + j, m]
    if problem.level_is_free:
        for m in range(lanes):
            step.level[1, m] = level_goal[m] / lam[m] - s[m]
            level_force[m] += step.level[1, m] - level_misfit[m]
            lam_step[m] = level_force[m] / border_scale[m]
        for j in range(d):
            for m in range(lanes):
                step.delta[j, m] += work.border[j, m] * lam_step[m]

    cholesky_solve(work.M, work.inverse, step.delta)

    # Back-substitution.
    for m in range(lanes):
        lam_step[m] = 0.0
    if problem.level_is_free:
        for j in range(d):
            for m in range(lanes):
                level_force[m] -= work.border[j, m] * step.delta[j, m]
        for m in range(lanes):
            lam_step[m] = level_force[m] / border_scale[m]
            step.level[0, m] = lam_step[m]
            step.level[1, m] -= s[m] / lam[m] * lam_step[m]
    np.dot(step.delta.T, problem.Xt, work.rows)
    move_points(problem, work, step, lam_step)
    if has_ball:
        for m in range(lanes):
            step.ball[0, m] = 0.0
        copy(step.delta, step.ball[1:])
        scale(work.cone_point, inverse_eta, -1.0, step.ball, work.cone_b)
        for j in range(d + 1):
            for m in range(lanes):
                work.cone_a[j, m] -= work.cone_b[j, m]
        scale(work.cone_point, inverse_eta, -1.0, work.cone_a, step.dual_ball)
        for j in range(d + 1):
            for m in range(lanes):
                step.dual_ball[j, m] -= at.dual_ball[j, m]
