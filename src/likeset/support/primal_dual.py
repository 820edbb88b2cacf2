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

Several problems that differ in the direction a are solved side by side: the last axis of every array of
variables is the lane (see :mod:`~likeset.support.dense`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from likeset.support.ball_cone import cone_divide, jordan_product, scale, scaling_point
from likeset.support.dense import (
    cholesky,
    cholesky_solve,
    compiled,
    copy,
    gather,
    sum_by_owner,
    weighted_gram,
)
from likeset.support.terms import Array, IntArray


class Problem(NamedTuple):
    """The data of G, the level and the ball; ``owner`` tells the row of X that each point belongs to."""

    X: Array
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
    """Primal and dual variables, one column per lane; the same type holds Newton directions.

    delta             step from the centre
    parts             r, then t: the parts of the residuals above and below the prediction
    duals             lam w - u, then lam w + u: their multipliers
    ball, dual_ball   (radius, theta) and its multiplier y
    level             lam, s
    """

    delta: Array
    parts: Array
    duals: Array
    ball: Array
    dual_ball: Array
    level: Array


class Workspace(NamedTuple):
    """What the Newton system keeps between factorisation and solution, one column per lane.

    Two rows per point, first for r, then for t:
    inverse_parts, inverse_duals   reciprocals (divisions are slow)
    ratios      alpha = r / (lam w - u), then beta = t / (lam w + u)
    shares      h alpha, then h beta; they sum to 1
    aims        the step of r and t if the multipliers stayed as they are
    One row per point:
    stiffness   h = 1 / (alpha + beta)
    misfit      p - z - (r - t)
    force       what drives u
    One row per covariate, and scratch without lanes for the sum of h x x':
    row_stiffness, rows, one_row, one_scaled, one_gram
    One row per dimension, and M:
    M, inverse  the Newton matrix, then its Cholesky factor; reciprocals of its diagonal
    border      column of lam
    gradient    stationarity residual
    pull        scratch
    cone_...    scaling point w of the ball's cone, W y, and scratch
    scalars     border_scale, level misfit, eta, 1 / eta, scratch, scratch
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
    one_row: Array
    one_scaled: Array
    one_gram: Array
    M: Array
    inverse: Array
    border: Array
    gradient: Array
    pull: Array
    cone_point: Array
    cone_dual: Array
    cone_a: Array
    cone_b: Array
    scalars: Array


@compiled
def new_iterate(d: int, n: int, lanes: int) -> Iterate:
    """An iterate of zeros for dimension d and n points."""
    parts, ball = np.zeros((2, 2 * n, lanes)), np.zeros((2, d + 1, lanes))
    return Iterate(np.zeros((d, lanes)), parts[0], parts[1], ball[0], ball[1], np.zeros((2, lanes)))


@compiled
def new_workspace(n_rows: int, d: int, n: int, lanes: int) -> Workspace:
    """Scratch memory for n_rows covariates, dimension d and n points."""
    pairs, points, rows = np.zeros((5, 2 * n, lanes)), np.zeros((3, n, lanes)), np.zeros((2, n_rows, lanes))
    vectors, cone = np.zeros((4, d, lanes)), np.zeros((4, d + 1, lanes))
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
        np.zeros(n_rows),
        np.zeros((d, n_rows)),
        np.zeros((d, d)),
        np.zeros((d, d, lanes)),
        vectors[0],
        vectors[1],
        vectors[2],
        vectors[3],
        cone[0],
        cone[1],
        cone[2],
        cone[3],
        np.zeros((6, lanes)),
    )


@compiled
def add_outer_products(problem: Problem, work: Workspace, level_is_free: bool) -> None:
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
        if level_is_free:
            for m in range(lanes):
                second[m] = border[i, m] / work.scalars[0, m]
        for j in range(i, d):
            for m in range(lanes):
                work.M[i, j, m] += first[m] * w[1 + j, m] + second[m] * border[j, m]


@compiled
def factorise(problem: Problem, A: Array, at: Iterate, work: Workspace, level_is_free: bool) -> None:
    """Residuals of the optimality conditions for directions A (d, lanes), and the Cholesky factor of M.

    border       = sum_i w_i (h_i alpha_i - h_i beta_i) x_i - slope
    border_scale = s / lam + 4 sum_i w_i^2 h_i alpha_i beta_i
    ball block   = (I + 2 w_1 w_1') / eta^2

    Loops write one array each: only such loops are vectorised.
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
    if level_is_free:
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
    add_outer_products(problem, work, level_is_free)
    cholesky(work.M, work.inverse)


@compiled
def newton_step(
    problem: Problem,
    at: Iterate,
    work: Workspace,
    step: Iterate,
    target: Array,
    curvature: float,
    level_is_free: bool,
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
    if level_is_free:
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
    if level_is_free:
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
