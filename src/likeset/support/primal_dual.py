r"""Optimality conditions of sums of absolute values with a level and a ball, and their Newton system.

Two problems share one Newton system. With theta = centre + delta, z_i = x_i'delta and offsets p_i,

    support   max  a'delta                      subject to  G(delta) <= allowance, |theta| <= radius
    minimum   min  G(delta) + ridge |theta|^2   subject to                         |theta| <= radius

    G(delta) = slope'delta + sum_i w_i |p_i - z_i|.

Split every residual into the parts above and below the prediction, p_i - z_i = r_i - t_i with r, t >= 0.
The level reads  slope'delta + sum_i w_i (r_i + t_i) + s = allowance  with s >= 0. The multipliers are

    lam   of the level (fixed at 1 in the minimum problem),
    u_i   of the split, |u_i| <= lam w_i, kept as the pair  lam w_i - u_i (of r)  and  lam w_i + u_i (of t),
    y     of the ball, in the second-order cone.

The pair keeps multipliers close to their limits accurate; its sum stays 2 lam w_i at steps of any length.
At the optimum the stationarity residual  a - lam slope + sum_i u_i x_i + y_1 - 2 ridge theta  vanishes and
so do all products of a variable and its multiplier. Newton's method aims at products equal to mu, for a mu
that falls to 0 (Mehrotra's predictor and corrector). Eliminating what is local to a point, then lam, leaves

    M d_delta = right-hand side,
    M = sum_k (sum_{i of k} h_i) x_k x_k'  +  ball block  +  2 ridge I  +  border border' / border_scale,

so an iteration costs O(points) scalar work and one d x d factorisation over the *distinct* covariates.
Eliminating lam before factorising matters: at a vertex cut out by d - 1 points and the level, M without its
last term is nearly singular.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from likeset.support.ball_cone import cone_divide, jordan_product, scale, scaling_point, unscale
from likeset.support.dense import (
    add_outer,
    add_transposed,
    cholesky,
    cholesky_solve,
    compiled,
    copy,
    dot,
    gather,
    multiply,
    sum_by_owner,
    weighted_gram,
)
from likeset.support.terms import Array, IntArray


class Problem(NamedTuple):
    """The data of G, the level and the ball.

    Xt       X', one column per covariate
    owner    the column that each point belongs to
    """

    Xt: Array
    owner: IntArray
    offsets: Array
    weights: Array
    slope: Array
    centre: Array
    allowance: float
    radius: float
    ridge: float


class Iterate(NamedTuple):
    """Primal and dual variables; the same type holds Newton directions.

    delta             step from the centre
    parts             r, then t: the parts of the residuals above and below the prediction
    duals             lam w - u, then lam w + u: their multipliers
    ball, dual_ball   (radius, theta) and its multiplier y
    level             [lam, s]
    """

    delta: Array
    parts: Array
    duals: Array
    ball: Array
    dual_ball: Array
    level: Array


class Workspace(NamedTuple):
    """What the Newton system keeps between factorisation and solution.

    Two numbers per point, first for r, then for t:
    inverse_parts, inverse_duals   reciprocals (divisions are slow)
    ratios      alpha = r / (lam w - u), then beta = t / (lam w + u)
    shares      h alpha, then h beta; they sum to 1
    aims        the step of r and t if the multipliers stayed as they are
    One number per point:
    stiffness   h = 1 / (alpha + beta)
    misfit      p - z - (r - t)
    force       what drives u
    One number per covariate:
    row_stiffness, rows
    Others:
    scaled      scratch of the shape of X'
    M           the Newton matrix, then its Cholesky factor
    border      column of lam
    gradient    stationarity residual
    diagonal    scratch of length d
    cone_...    scaling point w of the ball's cone, W y, and scratch
    scalars     [border_scale, level misfit, eta]
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
    rows: Array
    scaled: Array
    M: Array
    border: Array
    gradient: Array
    diagonal: Array
    cone_point: Array
    cone_dual: Array
    cone_a: Array
    cone_b: Array
    scalars: Array


@compiled
def new_iterate(d: int, n: int) -> Iterate:
    """An iterate of zeros for dimension d and n points."""
    return Iterate(np.zeros(d), np.zeros(2 * n), np.zeros(2 * n), np.zeros(d + 1), np.zeros(d + 1), np.zeros(2))


@compiled
def copy_iterate(source: Iterate, target: Iterate) -> None:
    """Copy all variables of an iterate."""
    copy(source.delta, target.delta)
    copy(source.parts, target.parts)
    copy(source.duals, target.duals)
    copy(source.ball, target.ball)
    copy(source.dual_ball, target.dual_ball)
    copy(source.level, target.level)


@compiled
def new_workspace(n_rows: int, d: int, n: int) -> Workspace:
    """Scratch memory for n_rows covariates, dimension d and n points."""
    pairs, points, rows = np.empty((5, 2 * n)), np.empty((3, n)), np.empty((2, n_rows))
    vectors, cone = np.empty((3, d)), np.empty((4, d + 1))
    return Workspace(
        pairs[0],
        pairs[1],
        pairs[2],
        pairs[3],
        pairs[4],
        points[0],
        points[1],
        points[2],
        rows[0],
        rows[1],
        np.empty((d, n_rows)),
        np.empty((d, d)),
        vectors[0],
        vectors[1],
        vectors[2],
        cone[0],
        cone[1],
        cone[2],
        cone[3],
        np.zeros(3),
    )


@compiled
def factorise(problem: Problem, a: Array, at: Iterate, work: Workspace, level_is_free: bool) -> bool:
    """Residuals of the optimality conditions and the Cholesky factor of M; False if that breaks down.

    border       = sum_i w_i (h_i alpha_i - h_i beta_i) x_i - slope
    border_scale = s / lam + 4 sum_i w_i^2 h_i alpha_i beta_i
    ball block   = (I + 2 w_1 w_1') / eta^2

    Loops write one array each: only such loops are vectorised.
    """
    Xt, owner, weights = problem.Xt, problem.owner, problem.weights
    d, n = Xt.shape[0], weights.size
    lam, s = at.level[0], at.level[1]
    above, below = at.parts[:n], at.parts[n:]
    dual_above, dual_below = at.duals[:n], at.duals[n:]
    share_above, share_below = work.shares[:n], work.shares[n:]
    alpha, beta = work.ratios[:n], work.ratios[n:]
    stiffness, misfit, force, rows = work.stiffness, work.misfit, work.force, work.rows
    gradient, border, M = work.gradient, work.border, work.M

    for i in range(2 * n):
        work.inverse_parts[i] = 1.0 / at.parts[i]
    for i in range(2 * n):
        work.inverse_duals[i] = 1.0 / at.duals[i]
    for i in range(2 * n):
        work.ratios[i] = at.parts[i] * work.inverse_duals[i]
    for i in range(n):
        stiffness[i] = 1.0 / (alpha[i] + beta[i])
    for i in range(n):
        share_above[i] = stiffness[i] * alpha[i]
    for i in range(n):
        share_below[i] = stiffness[i] * beta[i]
    multiply(Xt, at.delta, rows)
    gather(owner, rows, force)  # z
    for i in range(n):
        misfit[i] = problem.offsets[i] - force[i] - (above[i] - below[i])

    sum_by_owner(owner, stiffness, work.row_stiffness)
    weighted_gram(Xt, work.row_stiffness, work.scaled, M)
    for i in range(n):
        force[i] = 0.5 * (dual_below[i] - dual_above[i])  # u
    sum_by_owner(owner, force, rows)
    for j in range(d):
        gradient[j] = a[j] - lam * problem.slope[j]
    add_transposed(Xt, rows, gradient)
    if problem.ridge > 0.0:
        for j in range(d):
            M[j, j] += 2.0 * problem.ridge
            gradient[j] -= 2.0 * problem.ridge * (problem.centre[j] + at.delta[j])
    if problem.radius < np.inf:
        eta = scaling_point(at.ball, at.dual_ball, work.cone_point)
        scale(work.cone_point, eta, at.dual_ball, work.cone_dual)
        work.scalars[2] = eta
        add_outer(M, work.cone_point[1:], 2.0 / (eta * eta))
        for j in range(d):
            M[j, j] += 1.0 / (eta * eta)
            gradient[j] += at.dual_ball[1 + j]
    if level_is_free:
        border_scale = s / lam
        level_misfit = problem.allowance - s - dot(problem.slope, at.delta)
        for i in range(n):
            border_scale += 4.0 * weights[i] * weights[i] * share_above[i] * beta[i]
            level_misfit -= weights[i] * (above[i] + below[i])
        work.scalars[0], work.scalars[1] = border_scale, level_misfit
        for i in range(n):
            force[i] = weights[i] * (share_above[i] - share_below[i])
        sum_by_owner(owner, force, rows)
        for j in range(d):
            border[j] = -problem.slope[j]
        add_transposed(Xt, rows, border)
        add_outer(M, border, 1.0 / border_scale)
    return cholesky(M, work.diagonal)


@compiled
def newton_step(
    problem: Problem,
    at: Iterate,
    work: Workspace,
    step: Iterate,
    target: float,
    curvature: float,
    level_is_free: bool,
) -> None:
    """Newton step towards products equal to target.

    With curvature = 1 the products of the step already held in ``step`` (the predictor) are subtracted from
    the target: Mehrotra's second-order correction. With 0 they are ignored.
    """
    Xt, owner, weights = problem.Xt, problem.owner, problem.weights
    d, n = Xt.shape[0], weights.size
    has_ball = problem.radius < np.inf
    lam, s = at.level[0], at.level[1]
    border_scale, eta = work.scalars[0], work.scalars[2]
    share_above, share_below = work.shares[:n], work.shares[n:]
    aim_above, aim_below = work.aims[:n], work.aims[n:]
    step_above, step_below = step.duals[:n], step.duals[n:]
    stiffness, misfit, force, rows = work.stiffness, work.misfit, work.force, work.rows

    # Right-hand side.
    for i in range(2 * n):
        product = target - curvature * step.parts[i] * step.duals[i]
        work.aims[i] = product * work.inverse_duals[i] - at.parts[i]
    for i in range(n):
        force[i] = stiffness[i] * (misfit[i] - aim_above[i] + aim_below[i])
    sum_by_owner(owner, force, rows)
    copy(work.gradient, step.delta)
    add_transposed(Xt, rows, step.delta)
    if has_ball:
        aim, other = work.cone_a, work.cone_b
        unscale(work.cone_point, eta, step.ball, aim)
        scale(work.cone_point, eta, step.dual_ball, other)
        jordan_product(aim, other)
        for j in range(d + 1):
            aim[j] *= -curvature
        aim[0] += target
        cone_divide(work.cone_dual, aim)
        unscale(work.cone_point, eta, aim, other)
        for j in range(d):
            step.delta[j] += other[1 + j] - at.dual_ball[1 + j]
    slack_aim = (target - curvature * step.level[0] * step.level[1]) / lam - s
    level_force = slack_aim - work.scalars[1]
    if level_is_free:
        for i in range(n):
            level_force += 2.0 * weights[i] * (share_below[i] * aim_above[i] + share_above[i] * aim_below[i])
            level_force += weights[i] * (share_above[i] - share_below[i]) * misfit[i]
        for j in range(d):
            step.delta[j] += work.border[j] * (level_force / border_scale)

    cholesky_solve(work.M, step.delta)

    # Back-substitution.
    lam_step = 0.0
    if level_is_free:
        lam_step = (level_force - dot(work.border, step.delta)) / border_scale
        step.level[0] = lam_step
        step.level[1] = slack_aim - s / lam * lam_step
    multiply(Xt, step.delta, rows)
    gather(owner, rows, step_above)
    for i in range(n):
        force[i] -= stiffness[i] * step_above[i]
    for i in range(n):
        step_above[i] = 2.0 * lam_step * weights[i] * share_below[i] - force[i]
    for i in range(n):
        step_below[i] = 2.0 * lam_step * weights[i] * share_above[i] + force[i]
    for i in range(2 * n):
        step.parts[i] = work.aims[i] - work.ratios[i] * step.duals[i]
    if has_ball:
        step.ball[0] = 0.0
        for j in range(d):
            step.ball[1 + j] = step.delta[j]
        unscale(work.cone_point, eta, step.ball, work.cone_b)
        for j in range(d + 1):
            work.cone_a[j] -= work.cone_b[j]
        unscale(work.cone_point, eta, work.cone_a, step.dual_ball)
        for j in range(d + 1):
            step.dual_ball[j] -= at.dual_ball[j]
