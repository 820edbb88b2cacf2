r"""The windows' part of the Newton system: solving  D d_v = R - B d_delta  for the voices of the windows.

    D = E - 1 1'/lam,   E = diag((1 + s_k)/v_k) + sum_b sigma_b 1_b 1_b'       (1_b marks the windows that hold b)

With y = E^-1 1, D^-1 = E^-1 + y y'/(lam - 1'y), where the divisor tends to zero and would
be lost in rounding; it equals  sum_k y_k s_k + sum_b sigma_b w_b (1_b'y),  a sum of positive numbers. In the
minimum problem 1'd_v = 0, and the same formula holds with the divisor -1'y.

All is scaled by sqrt(v): sqrt(v) E sqrt(v) is at least the identity, whatever the voices.
"""

from __future__ import annotations

import numpy as np

from likeset._solver.absolute.iterate import DUAL, PRIMAL, Iterate
from likeset._solver.absolute.mixture_data import (
    ALONG,
    BORDER,
    DIRECTION,
    DIVISOR,
    PULLS,
    PUSHED,
    ROOTS,
    SOLVED,
    SPREAD,
    SUM,
    WINDOW_AIMS,
    WINDOW_MISFIT,
    Problem,
    Workspace,
)
from likeset._solver.linalg.matrix import SUMS, eliminate, solve_upper
from likeset.compiling import inner


@inner(fastmath=SUMS)
def fill_windows(problem: Problem, at: Iterate, work: Workspace, m: int) -> None:
    """sqrt(v) [E sqrt(v), B, 1] of one lane; of E the upper triangle."""
    W, (K, d) = problem.heights.size, problem.X.shape
    U, root, slacks, voices = work.upper[m], work.windows[ROOTS, m], at.levels[PRIMAL, m], at.levels[DUAL, m]
    spread, border = work.rows[SPREAD, m], work.rows[BORDER, m]
    first, holders = problem.first_holder, problem.holders
    for k in range(W):
        row = U[k]
        for j in range(row.size):
            row[j] = 0.0
        root[k] = np.sqrt(voices[k])
        row[k] = 1.0 + slacks[k]
        row[W + d] = root[k]
    for b in range(K):
        sigma, e, x = spread[b], border[b], problem.X[b]
        for i in range(first[b], first[b + 1]):
            k = holders[i]
            row, factor = U[k], sigma * root[k]
            for j in range(i, first[b + 1]):
                row[holders[j]] += factor * root[holders[j]]
            factor, part = e * root[k], U[k, W:]
            for j in range(d):
                part[j] += factor * x[j]


@inner(fastmath=SUMS)
def factor_windows(problem: Problem, at: Iterate, work: Workspace, m: int) -> None:
    """U, Z, y = E^-1 1, B'y and the divisor of one lane."""
    W, (K, d) = problem.heights.size, problem.X.shape
    fill_windows(problem, at, work, m)
    U, y, line, joined = work.upper[m], work.windows[DIRECTION, m], work.line, work.joined
    eliminate(U)
    for i in range(d):
        line[i] = 0.0
    for k in range(W):
        Z = U[k, W:]
        y[k] = Z[d]
        for i in range(d):
            line[i] += Z[i] * y[k]
        for i in range(d):
            joined[i, K + k] = Z[i]
    for i in range(d):
        work.vectors[ALONG, i, m] = line[i]
    solve_upper(U, y)
    divisor, total = 0.0, 0.0
    for k in range(W):
        y[k] *= work.windows[ROOTS, m, k]
        divisor += y[k] * at.levels[PRIMAL, m, k]
        total += y[k]
    for b in range(K):
        marked = 0.0
        for i in range(problem.first_holder[b], problem.first_holder[b + 1]):
            marked += y[problem.holders[i]]
        divisor += marked * work.rows[SPREAD, m, b] * work.rows[PULLS, m, b]
    work.scalars[DIVISOR, m] = -total if problem.minimising else divisor


@inner(fastmath=SUMS)
def bend_of_log(x: float) -> float:
    """What log(1 + x) - x has to be corrected by, about -x^2/2, after a first-order step x of a voice (relative).

    Upwards log(1 + x) - x itself. Downwards 1 + x - e^x: solving log(1 + x') = x then gives x' = e^x - 1 > -1, where
    the first-order step x < -1 is impossible.
    """
    return np.log1p(x) - x if x > 0.0 else 1.0 + x - np.exp(x)


@inner(fastmath=SUMS)
def push_windows(at: Iterate, work: Workspace, step: Iterate, mu: float, curvature: float, m: int) -> None:
    """R, then U'^-1 sqrt(v) R (SOLVED) and y'R (PUSHED), of lane m; mask Q is in SUM.

    The second-order correction knows the true change of log v_k - log lam along the predictor.
    """
    f, U, roots, aims = work.windows[SOLVED, m], work.upper[m], work.windows[ROOTS, m], work.windows[WINDOW_AIMS, m]
    slacks, voices = at.levels[PRIMAL, m], at.levels[DUAL, m]
    slack_steps, voice_steps = step.levels[PRIMAL, m], step.levels[DUAL, m]
    W = f.size
    lam, lam_step, pushed = 0.0, 0.0, 0.0
    for k in range(W):
        lam += voices[k]
        lam_step += voice_steps[k]
    of_sum = bend_of_log(lam_step / lam)
    for k in range(W):
        aims[k] = (mu - curvature * slack_steps[k] * voice_steps[k]) / voices[k] - slacks[k]
        bend = curvature * (bend_of_log(voice_steps[k] / voices[k]) - of_sum)
        R = aims[k] - work.windows[WINDOW_MISFIT, m, k] - bend + work.windows[SUM, m, k]
        pushed += work.windows[DIRECTION, m, k] * R
        f[k] = roots[k] * R
    for k in range(W):
        row = U[k]
        f[k] /= row[k]
        for j in range(k + 1, W):
            f[j] -= row[j] * f[k]
    work.scalars[PUSHED, m] = pushed


@inner(fastmath=SUMS)
def move_windows(problem: Problem, at: Iterate, work: Workspace, step: Iterate, m: int) -> None:
    """Back-substitution for voices, slacks and the level of lane m, given the step of delta."""
    W, d = problem.heights.size, problem.X.shape[1]
    f, line, v = work.windows[SOLVED, m], work.line, step.levels[DUAL, m]
    pushed = work.scalars[PUSHED, m]
    for j in range(d):
        line[j] = step.delta[j, m]
        pushed -= work.vectors[ALONG, j, m] * line[j]
    for k in range(W):
        Z, total = work.upper[m, k, W:], f[k]
        for j in range(d):
            total -= Z[j] * line[j]
        v[k] = total
    solve_upper(work.upper[m], v)
    push = pushed / work.scalars[DIVISOR, m]
    for k in range(W):
        v[k] = work.windows[ROOTS, m, k] * v[k] + work.windows[DIRECTION, m, k] * push
        ratio = at.levels[PRIMAL, m, k] / at.levels[DUAL, m, k]
        step.levels[PRIMAL, m, k] = work.windows[WINDOW_AIMS, m, k] - ratio * v[k]
    step.height[m] = -push if problem.minimising else 0.0
