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

from likeset.support.ball_cone import cone_divide, scale, scaling_point, unscale
from likeset.support.dense import (
    add_outer,
    add_transposed,
    cholesky,
    cholesky_solve,
    compiled,
    dot,
    multiply,
    weighted_gram,
)
from likeset.support.terms import Array, IntArray


class Problem(NamedTuple):
    """The data of G, the level and the ball; ``Xt`` is X', ``owner[i]`` the row of X that point i belongs to."""

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

    delta                   step from the centre
    above, below            r and t, the two parts of each residual
    dual_above, dual_below  lam w - u and lam w + u
    ball, dual_ball         (radius, theta) and its multiplier y
    level                   [lam, s]
    """

    delta: Array
    above: Array
    below: Array
    dual_above: Array
    dual_below: Array
    ball: Array
    dual_ball: Array
    level: Array


class Workspace(NamedTuple):
    """What the Newton system keeps between factorisation and solution.

    inverse_...         reciprocals of r, t and the pair of multipliers: divisions are slow
    alpha, beta         r / (lam w - u) and t / (lam w + u)
    stiffness           h_i = 1 / (alpha_i + beta_i)
    share_above, -below h_i alpha_i and h_i beta_i; they sum to 1
    product_above, -below, cone_product   the products to aim at
    aim_above, -below   the step of r and t if the multipliers stayed as they are
    misfit              p_i - z_i - (r_i - t_i)
    row_stiffness, rows one number per covariate
    scaled              scratch of the shape of X'
    M                   the Newton matrix, then its Cholesky factor
    border, gradient    column of lam; stationarity residual
    cone_point, cone_dual, cone_a, cone_b   scaling w, W y and scratch of the ball's cone
    scalars             [border_scale, level misfit, eta, product of lam and s to aim at]
    """

    inverse_above: Array
    inverse_below: Array
    inverse_dual_above: Array
    inverse_dual_below: Array
    alpha: Array
    beta: Array
    stiffness: Array
    share_above: Array
    share_below: Array
    product_above: Array
    product_below: Array
    aim_above: Array
    aim_below: Array
    misfit: Array
    row_stiffness: Array
    rows: Array
    scaled: Array
    M: Array
    border: Array
    gradient: Array
    cone_point: Array
    cone_dual: Array
    cone_product: Array
    cone_a: Array
    cone_b: Array
    scalars: Array


@compiled
def new_iterate(d: int, n: int) -> Iterate:
    """An iterate of zeros for dimension d and n points."""
    return Iterate(
        np.zeros(d),
        np.zeros(n),
        np.zeros(n),
        np.zeros(n),
        np.zeros(n),
        np.zeros(d + 1),
        np.zeros(d + 1),
        np.zeros(2),
    )


@compiled
def copy_iterate(source: Iterate, target: Iterate) -> None:
    """Copy all variables of an iterate."""
    target.delta[:] = source.delta
    target.above[:] = source.above
    target.below[:] = source.below
    target.dual_above[:] = source.dual_above
    target.dual_below[:] = source.dual_below
    target.ball[:] = source.ball
    target.dual_ball[:] = source.dual_ball
    target.level[:] = source.level


@compiled
def new_workspace(n_rows: int, d: int, n: int) -> Workspace:
    """Scratch memory for n_rows covariates, dimension d and n points."""
    points = np.empty((14, n))
    vectors = np.empty((2, d))
    cone = np.empty((5, d + 1))
    return Workspace(
        points[0],
        points[1],
        points[2],
        points[3],
        points[4],
        points[5],
        points[6],
        points[7],
        points[8],
        points[9],
        points[10],
        points[11],
        points[12],
        points[13],
        np.empty(n_rows),
        np.empty(n_rows),
        np.empty((d, n_rows)),
        np.empty((d, d)),
        vectors[0],
        vectors[1],
        cone[0],
        cone[1],
        cone[2],
        cone[3],
        cone[4],
        np.zeros(4),
    )


@compiled
def factorise(problem: Problem, a: Array, at: Iterate, work: Workspace, level_is_free: bool) -> bool:
    """Residuals of the optimality conditions and the Cholesky factor of M; False if M is not definite.

    border       = sum_i w_i (share_above_i - share_below_i) x_i - slope
    border_scale = s / lam + 4 sum_i w_i^2 h_i alpha_i beta_i
    ball block   = (I + 2 w_1 w_1') / eta^2
    """
    Xt, owner, weights = problem.Xt, problem.owner, problem.weights
    d = Xt.shape[0]
    lam, s = at.level[0], at.level[1]
    gradient, border, M = work.gradient, work.border, work.M

    multiply(Xt, at.delta, work.rows)  # z
    level_misfit = problem.allowance - s - dot(problem.slope, at.delta)
    border_scale = s / lam
    work.row_stiffness[:] = 0.0
    for i in range(weights.size):
        k = owner[i]
        work.inverse_above[i] = 1.0 / at.above[i]
        work.inverse_below[i] = 1.0 / at.below[i]
        work.inverse_dual_above[i] = 1.0 / at.dual_above[i]
        work.inverse_dual_below[i] = 1.0 / at.dual_below[i]
        alpha = at.above[i] * work.inverse_dual_above[i]
        beta = at.below[i] * work.inverse_dual_below[i]
        h = 1.0 / (alpha + beta)
        work.alpha[i] = alpha
        work.beta[i] = beta
        work.stiffness[i] = h
        work.share_above[i] = h * alpha
        work.share_below[i] = h * beta
        work.row_stiffness[k] += h
        border_scale += 4.0 * weights[i] * weights[i] * (h * alpha) * beta
        work.misfit[i] = problem.offsets[i] - work.rows[k] - (at.above[i] - at.below[i])
        level_misfit -= weights[i] * (at.above[i] + at.below[i])
    work.scalars[0], work.scalars[1] = border_scale, level_misfit

    weighted_gram(Xt, work.row_stiffness, work.scaled, M)

    work.rows[:] = 0.0  # sums of the u_i
    for i in range(weights.size):
        work.rows[owner[i]] += 0.5 * (at.dual_below[i] - at.dual_above[i])
    for j in range(d):
        gradient[j] = a[j] - lam * problem.slope[j]
    add_transposed(Xt, work.rows, gradient)

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
        work.rows[:] = 0.0
        for i in range(weights.size):
            work.rows[owner[i]] += weights[i] * (work.share_above[i] - work.share_below[i])
        for j in range(d):
            border[j] = -problem.slope[j]
        add_transposed(Xt, work.rows, border)
        add_outer(M, border, 1.0 / border_scale)
    return cholesky(M)


@compiled
def newton_step(problem: Problem, at: Iterate, work: Workspace, step: Iterate, level_is_free: bool) -> None:
    """Newton step towards the products asked for in the workspace (see :mod:`~likeset.support.products`)."""
    Xt, owner, weights = problem.Xt, problem.owner, problem.weights
    d = Xt.shape[0]
    has_ball = problem.radius < np.inf
    lam, s = at.level[0], at.level[1]
    border_scale, level_misfit, eta = work.scalars[0], work.scalars[1], work.scalars[2]

    # Right-hand sides. 'level_force' drives the level equation, 'rows' the stationarity equation.
    slack_aim = work.scalars[3] / lam - s
    level_force = slack_aim - level_misfit
    work.rows[:] = 0.0
    for i in range(weights.size):
        above = work.product_above[i] * work.inverse_dual_above[i] - at.above[i]
        below = work.product_below[i] * work.inverse_dual_below[i] - at.below[i]
        work.aim_above[i] = above
        work.aim_below[i] = below
        high, low = work.share_above[i], work.share_below[i]
        work.rows[owner[i]] += work.stiffness[i] * (work.misfit[i] - above + below)
        level_force += weights[i] * (2.0 * (low * above + high * below) + (high - low) * work.misfit[i])

    for j in range(d):
        step.delta[j] = work.gradient[j]
    add_transposed(Xt, work.rows, step.delta)
    if has_ball:
        work.cone_a[:] = work.cone_product
        cone_divide(work.cone_dual, work.cone_a)
        unscale(work.cone_point, eta, work.cone_a, work.cone_b)
        for j in range(d):
            step.delta[j] += work.cone_b[1 + j] - at.dual_ball[1 + j]
    if level_is_free:
        for j in range(d):
            step.delta[j] += work.border[j] * (level_force / border_scale)
    cholesky_solve(work.M, step.delta)

    # Back-substitution.
    lam_step = 0.0
    if level_is_free:
        lam_step = (level_force - dot(work.border, step.delta)) / border_scale
        step.level[0] = lam_step
        step.level[1] = slack_aim - s / lam * lam_step
    multiply(Xt, step.delta, work.rows)
    for i in range(weights.size):
        above, below = work.aim_above[i], work.aim_below[i]
        free = work.stiffness[i] * (work.misfit[i] - above + below - work.rows[owner[i]])
        pull = 2.0 * weights[i] * lam_step
        step.dual_above[i] = work.share_below[i] * pull - free
        step.dual_below[i] = work.share_above[i] * pull + free
        step.above[i] = above - work.alpha[i] * step.dual_above[i]
        step.below[i] = below - work.beta[i] * step.dual_below[i]
    if has_ball:
        step.ball[0] = 0.0
        step.ball[1:] = step.delta
        unscale(work.cone_point, eta, step.ball, work.cone_b)
        for j in range(d + 1):
            work.cone_a[j] -= work.cone_b[j]
        unscale(work.cone_point, eta, work.cone_a, step.dual_ball)
        for j in range(d + 1):
            step.dual_ball[j] -= at.dual_ball[j]
