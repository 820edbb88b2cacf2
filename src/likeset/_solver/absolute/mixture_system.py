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

from likeset._solver.absolute.ball_cone import (
    FIRST,
    GOAL,
    INVERSE,
    POINT,
    SPARE,
    ball_products,
    move_ball,
    push_ball,
    scale_ball,
)
from likeset._solver.absolute.iterate import DUAL, PRIMAL, Iterate
from likeset._solver.absolute.mixture_data import (
    ALONG,
    BORDER,
    DIVISOR,
    GRADIENT,
    LENGTHS,
    PULLS,
    PUSHED,
    ROWS,
    SOLVED,
    SPREAD,
    SUM,
    WINDOW_MISFIT,
    Problem,
    Workspace,
    ball_weight,
)
from likeset._solver.absolute.mixture_voices import factor_windows, move_windows, push_windows
from likeset._solver.absolute.points import (
    AIMS,
    FORCE,
    INVERSE_DUALS,
    MISFIT,
    RATIOS,
    SHARES,
    STIFFNESS,
    move_lane,
    push_lane,
    sum_segments,
    weigh_lane,
)
from likeset._solver.linalg.lanes import backward_lanes, factor_lanes, forward_lanes
from likeset._solver.linalg.matrix import LOST_PIVOT, SUMS, weighted_gram
from likeset._typing import Array
from likeset.compiling import inner


@inner(fastmath=SUMS)
def weigh_points(problem: Problem, parts: Array, work: Workspace) -> None:
    """Stiffness, shares and misfits of the points, and what they add up to per covariate; z is in ROWS.

    Afterwards ROWS holds sum_i nu_i and LENGTHS l_b z_b + sum_i u_i (r_i + t_i).
    """
    weights, starts, slopes, n = problem.weights, problem.starts, problem.slopes, problem.weights.size
    for m in range(parts.shape[1]):
        rows, lengths, border = work.rows[ROWS, m], work.rows[LENGTHS, m], work.rows[BORDER, m]
        weigh_lane(parts, problem.offsets, problem.owner, rows, work.pairs, work.singles, m)
        primal, dual, ratios, shares = parts[PRIMAL, m], parts[DUAL, m], work.pairs[RATIOS, m], work.pairs[SHARES, m]
        force = work.singles[FORCE, m]
        sum_segments(starts, work.singles[STIFFNESS, m], work.row_stiffness[m])
        for i in range(n):
            force[i] = weights[i] * (primal[i] + primal[n + i])
        sum_segments(starts, force, lengths)
        for i in range(n):
            force[i] = 4.0 * weights[i] * weights[i] * shares[i] * ratios[n + i]
        sum_segments(starts, force, work.rows[SPREAD, m])
        for i in range(n):
            force[i] = weights[i] * (shares[i] - shares[n + i])
        sum_segments(starts, force, border)
        for b in range(slopes.size):
            lengths[b] += slopes[b] * rows[b]
            border[b] -= slopes[b]
        for i in range(n):
            force[i] = 0.5 * (dual[n + i] - dual[i])
        sum_segments(starts, force, rows)


@inner(allocates=True, fastmath=SUMS)
def factorise(problem: Problem, A: Array, at: Iterate, work: Workspace) -> None:
    """Residuals of the optimality conditions for directions A (d, lanes), and the Cholesky factor of M."""
    d, lanes = A.shape
    W, K = problem.masks.shape
    M, gradient, w, inverse_eta = work.M, work.vectors[GRADIENT], work.cones[POINT], work.eta[INVERSE]
    np.dot(at.delta.T, problem.Xt, work.rows[ROWS])
    weigh_points(problem, at.parts, work)
    np.dot(work.rows[LENGTHS], problem.masks_t, work.windows[SUM])
    np.dot(at.levels[DUAL], problem.masks, work.rows[PULLS])
    for m in range(lanes):
        lam, slacks, voices = 0.0, at.levels[PRIMAL, m], at.levels[DUAL, m]
        for k in range(W):
            lam += voices[k]
        for k in range(W):
            m_k = problem.heights[k] + work.windows[SUM, m, k]
            work.windows[WINDOW_MISFIT, m, k] = at.height[m] + np.log(voices[k] / lam) - m_k - slacks[k]
        for b in range(K):
            work.rows[ROWS, m, b] -= work.rows[PULLS, m, b] * problem.slopes[b]
    np.dot(problem.Xt, work.rows[ROWS].T, gradient)
    scale_ball(at.cone, work.cones, work.eta)
    for j in range(d):
        for m in range(lanes):
            gradient[j, m] += A[j, m] + at.cone[DUAL, 1 + j, m]
    for m in range(lanes):
        factor_windows(problem, at, work, m)
        weighted_gram(work.joined, work.row_stiffness, m, work.scaled, M)
    of_ball, of_level = work.eta[SPARE], work.eta[SPARE + 1]
    along, row = work.vectors[ALONG], 0
    for i in range(d):
        for m in range(lanes):
            square = inverse_eta[m] * inverse_eta[m]
            M[row, m] += square
            of_ball[m], of_level[m] = 2.0 * square * w[1 + i, m], along[i, m] / work.scalars[DIVISOR, m]
        for j in range(i, d):
            for m in range(lanes):
                M[row, m] += of_ball[m] * w[1 + j, m] + of_level[m] * along[j, m]
            row += 1
    factor_lanes(M, d, LOST_PIVOT, work.lost, of_ball, of_level)


@inner(allocates=True, fastmath=SUMS)
def newton_step(problem: Problem, at: Iterate, work: Workspace, step: Iterate, target: Array, curvature: float) -> None:
    """Newton step towards products equal to target (one number per lane).

    With curvature = 1 what the step already held in ``step`` (the predictor) would do to second order is taken into
    account: Mehrotra's correction. With 0 it is ignored.
    """
    _, d, lanes = work.vectors.shape
    W, n, weights, starts = problem.heights.size, problem.weights.size, problem.weights, problem.starts
    pairs, singles, delta, cone = work.pairs, work.singles, step.delta, work.cones
    for m in range(lanes):
        primal, dual = step.parts[PRIMAL, m], step.parts[DUAL, m]
        now, inverse = at.parts[PRIMAL, m], pairs[INVERSE_DUALS, m]
        shares, aims, misfit, force = pairs[SHARES, m], pairs[AIMS, m], singles[MISFIT, m], singles[FORCE, m]
        for i in range(2 * n):
            aims[i] = (target[m] - curvature * primal[i] * dual[i]) * inverse[i] - now[i]
        for i in range(n):
            force[i] = weights[i] * (
                2.0 * (shares[n + i] * aims[i] + shares[i] * aims[n + i]) + (shares[i] - shares[n + i]) * misfit[i]
            )
        sum_segments(starts, force, work.rows[LENGTHS, m])
        push_lane(pairs, singles, m)
        sum_segments(starts, singles[FORCE, m], work.rows[ROWS, m])
    np.dot(work.rows[LENGTHS], problem.masks_t, work.windows[SUM])
    np.dot(problem.Xt, work.rows[ROWS].T, delta)
    for m in range(lanes):
        push_windows(at, work, step, target[m], curvature, m)
        f, line, share = work.windows[SOLVED, m], work.line, work.scalars[PUSHED, m] / work.scalars[DIVISOR, m]
        for j in range(d):
            line[j] = work.vectors[ALONG, j, m] * share + work.vectors[GRADIENT, j, m]
        for k in range(W):
            Z = work.upper[m, k, W:]
            for j in range(d):
                line[j] += Z[j] * f[k]
        for j in range(d):
            delta[j, m] += line[j]
    ball_products(0.0, step.cone, cone, work.eta)
    for j in range(d + 1):
        for m in range(lanes):
            cone[GOAL, j, m] = -curvature * cone[FIRST, j, m]
    for m in range(lanes):
        cone[GOAL, 0, m] += ball_weight(problem) * target[m]
    push_ball(at.cone[DUAL], cone, work.eta, delta)

    forward_lanes(work.M, d, delta)
    backward_lanes(work.M, d, delta)

    np.dot(delta.T, problem.Xt, work.rows[ROWS])
    for m in range(lanes):
        move_windows(problem, at, work, step, m)
    np.dot(step.levels[DUAL], problem.masks, work.rows[PULLS])
    for m in range(lanes):
        for i in range(n):
            step.parts[PRIMAL, m, i] = weights[i] * work.rows[PULLS, m, problem.owner[i]]
        own = step.parts[PRIMAL, m]
        move_lane(problem.owner, work.rows[ROWS, m], 2.0, own, pairs, singles, step.parts, m)
    move_ball(at.cone[DUAL], cone, work.eta, delta, step.cone)
