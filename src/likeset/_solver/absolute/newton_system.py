r"""The Newton system of :mod:`~likeset._solver.absolute.primal_dual`: factorise once, then solve for several targets.

What is local to points is eliminated first (:mod:`~likeset._solver.absolute.points`). Inserting it in the stationarity
and level equations leaves d_delta and d_lam; then d_lam is eliminated. Whatever is local to points is done lane after
lane; whatever is local to dimensions is done for all lanes at once.
"""

from __future__ import annotations

import numpy as np

from likeset._solver.absolute.ball_cone import INVERSE, POINT, SPARE, move_ball, push_ball, scale_ball
from likeset._solver.absolute.iterate import DUAL, PRIMAL, Iterate
from likeset._solver.absolute.points import (
    AIMS,
    FORCE,
    MISFIT,
    RATIOS,
    SHARES,
    STIFFNESS,
    aim_lane,
    move_lane,
    push_lane,
    sum_segments,
    weigh_lane,
)
from likeset._solver.absolute.primal_dual import (
    BORDER,
    BORDER_ROWS,
    GRADIENT,
    LEVEL_FORCE,
    LEVEL_GOAL,
    LEVEL_MISFIT,
    LEVEL_STEP,
    ROW_STIFFNESS,
    ROWS,
    SCALE,
    Problem,
    Workspace,
)
from likeset._solver.linalg.lanes import backward_lanes, factor_lanes, forward_lanes
from likeset._solver.linalg.matrix import LOST_PIVOT, SUMS, weighted_gram
from likeset._typing import Array
from likeset.compiling import inner


@inner(fastmath=SUMS)
def weigh_points(problem: Problem, parts: Array, work: Workspace) -> None:
    """Stiffness, shares and misfits of the points, and what they add to the equations of delta and lam."""
    weights, starts, n = problem.weights, problem.starts, problem.weights.size
    for m in range(parts.shape[1]):
        rows = work.rows[ROWS, m]
        weigh_lane(parts, problem.offsets, problem.owner, rows, work.pairs, work.singles, m)
        primal, dual, ratios, shares = parts[PRIMAL, m], parts[DUAL, m], work.pairs[RATIOS, m], work.pairs[SHARES, m]
        force = work.singles[FORCE, m]
        sum_segments(starts, work.singles[STIFFNESS, m], work.rows[ROW_STIFFNESS, m])
        for i in range(n):
            force[i] = 0.5 * (dual[n + i] - dual[i])  # u
        sum_segments(starts, force, rows)
        if problem.level_is_free:
            scale, misfit = 0.0, 0.0
            for i in range(n):
                scale += 4.0 * weights[i] * weights[i] * shares[i] * ratios[n + i]
            for i in range(n):
                misfit -= weights[i] * (primal[i] + primal[n + i])
            work.level[SCALE, m], work.level[LEVEL_MISFIT, m] = scale, misfit
            for i in range(n):
                force[i] = weights[i] * (shares[i] - shares[n + i])
            sum_segments(starts, force, work.rows[BORDER_ROWS, m])


@inner(allocates=True, fastmath=SUMS)
def assemble(problem: Problem, work: Workspace) -> None:
    """M: the sums of h x x' over the covariates, the ball block, the ridge and the border's square."""
    _, d, lanes = work.vectors.shape
    M, w, inverse_eta, border, level = work.M, work.cones[POINT], work.eta[INVERSE], work.vectors[BORDER], work.level
    if work.products.shape[0] > 0:
        np.dot(work.products, work.rows[ROW_STIFFNESS].T, M)
    else:
        for m in range(lanes):
            weighted_gram(problem.Xt, work.rows[ROW_STIFFNESS], m, work.scaled, M)
    # Without a ball w = 1 / eta = 0, without a level border = 0: what is missing adds nothing.
    of_ball, of_level = work.eta[SPARE], work.eta[SPARE + 1]
    row = 0
    for i in range(d):
        for m in range(lanes):
            square = inverse_eta[m] * inverse_eta[m]
            M[row, m] += square + 2.0 * problem.ridge
            of_ball[m], of_level[m] = 2.0 * square * w[1 + i, m], border[i, m] / level[SCALE, m]
        for j in range(i, d):
            for m in range(lanes):
                M[row, m] += of_ball[m] * w[1 + j, m] + of_level[m] * border[j, m]
            row += 1


@inner(allocates=True, fastmath=SUMS)
def factorise(problem: Problem, A: Array, at: Iterate, work: Workspace) -> None:
    """Residuals of the optimality conditions for directions A (d, lanes), and the Cholesky factor of M.

    border       = sum_i w_i (h_i alpha_i - h_i beta_i) x_i - slope
    ball block   = (I + 2 w_1 w_1') / eta^2
    """
    d, lanes = A.shape
    gradient, border, level = work.vectors[GRADIENT], work.vectors[BORDER], work.level
    np.dot(at.delta.T, problem.Xt, work.rows[ROWS])  # z
    weigh_points(problem, at.parts, work)
    np.dot(problem.Xt, work.rows[ROWS].T, gradient)
    for j in range(d):
        for m in range(lanes):
            theta = problem.centre[j] + at.delta[j, m]
            gradient[j, m] += A[j, m] + at.cone[DUAL, 1 + j, m] - 2.0 * problem.ridge * theta
    if problem.bound < np.inf:
        scale_ball(at.cone, work.cones, work.eta)
    if problem.level_is_free:
        s, lam = at.levels[PRIMAL], at.levels[DUAL]
        for m in range(lanes):
            level[SCALE, m] += s[m, 0] / lam[m, 0]
            level[LEVEL_MISFIT, m] += problem.allowance - s[m, 0]
        np.dot(problem.Xt, work.rows[BORDER_ROWS].T, border)
        for j in range(d):
            for m in range(lanes):
                gradient[j, m] -= lam[m, 0] * problem.slope[j]
                level[LEVEL_MISFIT, m] -= problem.slope[j] * at.delta[j, m]
                border[j, m] -= problem.slope[j]
    assemble(problem, work)
    factor_lanes(work.M, d, LOST_PIVOT, work.lost, work.eta[SPARE], work.eta[SPARE + 1])


@inner(allocates=True, fastmath=SUMS)
def newton_step(problem: Problem, at: Iterate, work: Workspace, step: Iterate) -> None:
    """Newton step towards the products that the workspace sets as goals."""
    _, d, lanes = work.vectors.shape
    weights, n, has_ball = problem.weights, problem.weights.size, problem.bound < np.inf
    pairs, singles, level, rows = work.pairs, work.singles, work.level, work.rows[ROWS]
    border, delta = work.vectors[BORDER], step.delta

    # Right-hand side.
    for m in range(lanes):
        aim_lane(at.parts, pairs, m)
        if problem.level_is_free:
            shares, aims, misfit, total = pairs[SHARES, m], pairs[AIMS, m], singles[MISFIT, m], 0.0
            for i in range(n):
                total += 2.0 * weights[i] * (shares[n + i] * aims[i] + shares[i] * aims[n + i])
            for i in range(n):
                total += weights[i] * (shares[i] - shares[n + i]) * misfit[i]
            goal = level[LEVEL_GOAL, m] / at.levels[DUAL, m, 0] - at.levels[PRIMAL, m, 0]
            step.levels[PRIMAL, m, 0] = goal
            level[LEVEL_FORCE, m] = total + goal - level[LEVEL_MISFIT, m]
            level[LEVEL_STEP, m] = level[LEVEL_FORCE, m] / level[SCALE, m]
        push_lane(pairs, singles, m)
        sum_segments(problem.starts, singles[FORCE, m], rows[m])
    np.dot(problem.Xt, rows.T, delta)
    for j in range(d):
        for m in range(lanes):
            delta[j, m] += work.vectors[GRADIENT, j, m]
    if has_ball:
        push_ball(at.cone[DUAL], work.cones, work.eta, delta)
    if problem.level_is_free:
        for j in range(d):
            for m in range(lanes):
                delta[j, m] += border[j, m] * level[LEVEL_STEP, m]

    forward_lanes(work.M, d, delta)
    backward_lanes(work.M, d, delta)

    # Back-substitution.
    if problem.level_is_free:
        for j in range(d):
            for m in range(lanes):
                level[LEVEL_FORCE, m] -= border[j, m] * delta[j, m]
    np.dot(delta.T, problem.Xt, rows)
    for m in range(lanes):
        lam_step = 0.0
        if problem.level_is_free:
            lam_step = level[LEVEL_FORCE, m] / level[SCALE, m]
            step.levels[DUAL, m, 0] = lam_step
            step.levels[PRIMAL, m, 0] -= at.levels[PRIMAL, m, 0] / at.levels[DUAL, m, 0] * lam_step
        move_lane(problem.owner, rows[m], 2.0 * lam_step, weights, pairs, singles, step.parts, m)
    if has_ball:
        move_ball(at.cone[DUAL], work.cones, work.eta, delta, step.cone)
