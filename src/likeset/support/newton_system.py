r"""The Newton system of :mod:`~likeset.support.primal_dual`: factorise once, then solve for several targets.

With alpha_i = r_i / (lam w_i - u_i), beta_i = t_i / (lam w_i + u_i) and h_i = 1 / (alpha_i + beta_i), linearising
the products and the split of the residuals at point i gives

    d_u = h (misfit - aim_r + aim_t - x'd_delta) + h (alpha - beta) w d_lam,

where aim_r and aim_t are the steps of r and t that would give the wanted products with the multipliers kept.
Inserting this in the stationarity and level equations leaves d_delta and d_lam; then d_lam is eliminated.

Loops over points and lanes write one array each: only such loops are vectorised.
"""

from __future__ import annotations

import numpy as np

from likeset.support.ball_cone import cone_divide, jordan_product, scale, scaling_point
from likeset.support.dense import cholesky, cholesky_solve, compiled, copy, gather, sum_by_owner, weighted_gram
from likeset.support.primal_dual import Iterate, Problem, Workspace
from likeset.support.terms import Array


@compiled
def add_outer_products(problem: Problem, work: Workspace) -> None:
    """Add to M the sums of h x x' over the covariates, the ball block, the ridge and the border's square."""
    d, lanes = work.gradient.shape
    gram, w, border, inverse_eta = work.one_gram, work.cone_point, work.border, work.scalars[3]
    for m in range(lanes):
        for k in range(work.one_row.size):
            work.one_row[k] = work.row_stiffness[k, m]
        weighted_gram(problem.Xt, work.one_row, work.one_scaled, gram)
        for i in range(d):
            for j in range(i, d):
                work.M[i, j, m] = gram[i, j]
    if problem.ridge > 0.0:
        for j in range(d):
            for m in range(lanes):
                work.M[j, j, m] += 2.0 * problem.ridge
    first, second = work.scalars[4], work.scalars[5]
    for i in range(d):
        for m in range(lanes):
            first[m] = 0.0
            second[m] = 0.0
        if problem.radius < np.inf:
            for m in range(lanes):
                first[m] = 2.0 * inverse_eta[m] * inverse_eta[m] * w[1 + i, m]
                work.M[i, i, m] += inverse_eta[m] * inverse_eta[m]
        if problem.level_is_free:
            for m in range(lanes):
                second[m] = border[i, m] / work.scalars[0, m]
        for j in range(i, d):
            for m in range(lanes):
                work.M[i, j, m] += first[m] * w[1 + j, m] + second[m] * border[j, m]


@compiled
def factorise(problem: Problem, A: Array, at: Iterate, work: Workspace) -> None:
    """Residuals of the optimality conditions for directions A (d, lanes), and the Cholesky factor of M.

    border       = sum_i w_i (h_i alpha_i - h_i beta_i) x_i - slope
    border_scale = s / lam + 4 sum_i w_i^2 h_i alpha_i beta_i
    ball block   = (I + 2 w_1 w_1') / eta^2
    """
    owner, weights = problem.owner, problem.weights
    n = weights.size
    d, lanes = A.shape
    lam, s = at.level[0], at.level[1]
    stiffness, misfit, force, rows, ratios, shares = (
        work.stiffness,
        work.misfit,
        work.force,
        work.rows,
        work.ratios,
        work.shares,
    )
    gradient, border = work.gradient, work.border

    for i in range(2 * n):
        for m in range(lanes):
            work.inverse_parts[i, m] = 1.0 / at.parts[i, m]
    for i in range(2 * n):
        for m in range(lanes):
            work.inverse_duals[i, m] = 1.0 / at.duals[i, m]
    for i in range(2 * n):
        for m in range(lanes):
            ratios[i, m] = at.parts[i, m] * work.inverse_duals[i, m]
    for i in range(n):
        for m in range(lanes):
            stiffness[i, m] = 1.0 / (ratios[i, m] + ratios[n + i, m])
    for i in range(n):
        for m in range(lanes):
            shares[i, m] = stiffness[i, m] * ratios[i, m]
    for i in range(n):
        for m in range(lanes):
            shares[n + i, m] = stiffness[i, m] * ratios[n + i, m]
    np.dot(problem.X, at.delta, rows)
    gather(owner, rows, force)  # z
    for i in range(n):
        for m in range(lanes):
            misfit[i, m] = problem.offsets[i] - force[i, m] - (at.parts[i, m] - at.parts[n + i, m])

    for i in range(n):
        for m in range(lanes):
            force[i, m] = 0.5 * (at.duals[n + i, m] - at.duals[i, m])  # u
    sum_by_owner(owner, force, rows)
    np.dot(problem.Xt, rows, gradient)
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
        border_scale, level_misfit = work.scalars[0], work.scalars[1]
        for m in range(lanes):
            border_scale[m] = s[m] / lam[m]
            level_misfit[m] = problem.allowance - s[m]
        for j in range(d):
            for m in range(lanes):
                level_misfit[m] -= problem.slope[j] * at.delta[j, m]
        for i in range(n):
            for m in range(lanes):
                border_scale[m] += 4.0 * weights[i] * weights[i] * shares[i, m] * ratios[n + i, m]
        for i in range(n):
            for m in range(lanes):
                level_misfit[m] -= weights[i] * (at.parts[i, m] + at.parts[n + i, m])
        for i in range(n):
            for m in range(lanes):
                force[i, m] = weights[i] * (shares[i, m] - shares[n + i, m])
        sum_by_owner(owner, force, rows)
        np.dot(problem.Xt, rows, border)
        for j in range(d):
            for m in range(lanes):
                border[j, m] -= problem.slope[j]
    sum_by_owner(owner, stiffness, work.row_stiffness)
    add_outer_products(problem, work)
    cholesky(work.M, work.inverse)


@compiled
def newton_step(
    problem: Problem,
    at: Iterate,
    work: Workspace,
    step: Iterate,
    target: Array,
    curvature: float,
) -> None:
    """Newton step towards products equal to target (one number per lane).

    With curvature = 1 the products of the step already held in ``step`` (the predictor) are subtracted from
    the target: Mehrotra's second-order correction. With 0 they are ignored.
    """
    owner, weights = problem.owner, problem.weights
    n = weights.size
    d, lanes = work.gradient.shape
    has_ball = problem.radius < np.inf
    lam, s = at.level[0], at.level[1]
    border_scale, level_misfit, eta, inverse_eta = work.scalars[0], work.scalars[1], work.scalars[2], work.scalars[3]
    level_force, lam_step = work.scalars[4], work.scalars[5]
    stiffness, misfit, force, rows, aims, shares = (
        work.stiffness,
        work.misfit,
        work.force,
        work.rows,
        work.aims,
        work.shares,
    )

    # Right-hand side.
    for i in range(2 * n):
        for m in range(lanes):
            product = target[m] - curvature * step.parts[i, m] * step.duals[i, m]
            aims[i, m] = product * work.inverse_duals[i, m] - at.parts[i, m]
    for i in range(n):
        for m in range(lanes):
            force[i, m] = stiffness[i, m] * (misfit[i, m] - aims[i, m] + aims[n + i, m])
    sum_by_owner(owner, force, rows)
    np.dot(problem.Xt, rows, step.delta)
    for j in range(d):
        for m in range(lanes):
            step.delta[j, m] += work.gradient[j, m]
    if has_ball:
        aim, other = work.cone_a, work.cone_b
        scale(work.cone_point, inverse_eta, -1.0, step.ball, aim)
        scale(work.cone_point, eta, 1.0, step.dual_ball, other)
        jordan_product(aim, other)
        for j in range(d + 1):
            for m in range(lanes):
                aim[j, m] *= -curvature
        for m in range(lanes):
            aim[0, m] += target[m]
        cone_divide(work.cone_dual, aim)
        scale(work.cone_point, inverse_eta, -1.0, aim, other)
        for j in range(d):
            for m in range(lanes):
                step.delta[j, m] += other[1 + j, m] - at.dual_ball[1 + j, m]
    if problem.level_is_free:
        for m in range(lanes):
            step.level[1, m] = (target[m] - curvature * step.level[0, m] * step.level[1, m]) / lam[m] - s[m]
            level_force[m] = step.level[1, m] - level_misfit[m]
        for i in range(n):
            for m in range(lanes):
                level_force[m] += weights[i] * (
                    2.0 * (shares[n + i, m] * aims[i, m] + shares[i, m] * aims[n + i, m])
                    + (shares[i, m] - shares[n + i, m]) * misfit[i, m]
                )
        for m in range(lanes):
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
    np.dot(problem.X, step.delta, rows)
    for i in range(n):
        for m in range(lanes):
            force[i, m] -= stiffness[i, m] * rows[owner[i], m]
    for i in range(n):
        for m in range(lanes):
            step.duals[i, m] = 2.0 * weights[i] * lam_step[m] * shares[n + i, m] - force[i, m]
    for i in range(n):
        for m in range(lanes):
            step.duals[n + i, m] = 2.0 * weights[i] * lam_step[m] * shares[i, m] + force[i, m]
    for i in range(2 * n):
        for m in range(lanes):
            step.parts[i, m] = aims[i, m] - work.ratios[i, m] * step.duals[i, m]
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
