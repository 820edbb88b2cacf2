r"""The windows' part of the Newton system: solving  D d_v = R - B d_delta  for the voices of the windows.

    D = E - 1 1'/lam,   E = diag((1 + s_k)/v_k) + sum_b sigma_b 1_b 1_b'       (1_b marks the windows that hold b)

With y = E^-1 1, D^-1 = E^-1 + y y'/(lam - 1'y), where the divisor tends to zero and would
be lost in rounding; it equals  sum_k y_k s_k + sum_b sigma_b w_b (1_b'y),  a sum of positive numbers. In the
minimum problem 1'd_v = 0, and the same formula holds with the divisor -1'y.

All is scaled by sqrt(v): sqrt(v) E sqrt(v) is at least the identity, whatever the voices.
"""

from __future__ import annotations

import numpy as np

from likeset._solver.absolute.mixture_data import Iterate, Problem, Workspace
from likeset._solver.linalg.dense import compiled
from likeset._typing import Array


@compiled
def fill_windows(problem: Problem, at: Iterate, work: Workspace, m: int) -> None:
    """sqrt(v) [E sqrt(v), B, 1] of one lane; of E the upper triangle."""
    W, (K, d) = problem.heights.size, problem.X.shape
    U, root = work.upper[m], work.roots[m]
    first, holders = problem.first_holder, problem.holders
    for k in range(W):
        row = U[k]
        for j in range(row.size):
            row[j] = 0.0
        root[k] = np.sqrt(at.voices[m, k])
        row[k] = 1.0 + at.slacks[m, k]
        row[W + d] = root[k]
    for b in range(K):
        sigma, e, x = work.spread[m, b], work.border[m, b], problem.X[b]
        for i in range(first[b], first[b + 1]):
            k = holders[i]
            row, factor = U[k], sigma * root[k]
            for j in range(i, first[b + 1]):
                row[holders[j]] += factor * root[holders[j]]
            factor, part = e * root[k], U[k, W:]
            for j in range(d):
                part[j] += factor * x[j]


@compiled
def eliminate(U: Array) -> None:
    """Cholesky factorisation of the left square of U, with forward substitution in the columns beside it."""
    width = U.shape[1]
    for k in range(U.shape[0]):
        row, blocks = U[k], k // 4
        for block in range(blocks):  # subtract four earlier rows in one pass
            i = 4 * block
            r0, r1, r2, r3 = U[i], U[i + 1], U[i + 2], U[i + 3]
            f0, f1, f2, f3 = r0[k], r1[k], r2[k], r3[k]
            for j in range(k, width):
                row[j] -= f0 * r0[j] + f1 * r1[j] + f2 * r2[j] + f3 * r3[j]
        for i in range(4 * blocks, k):
            earlier, factor = U[i], U[i, k]
            for j in range(k, width):
                row[j] -= factor * earlier[j]
        inverse = 1.0 / np.sqrt(row[k])  # the pivot is at least 1: so is sqrt(v) E sqrt(v)
        for j in range(k, width):
            row[j] *= inverse


@compiled
def back_substitute(U: Array, x: Array) -> None:
    """x <- U^-1 x."""
    for k in range(x.size - 1, -1, -1):
        row, total = U[k], x[k]
        for j in range(k + 1, x.size):
            total -= row[j] * x[j]
        x[k] = total / row[k]


@compiled
def factor_windows(problem: Problem, at: Iterate, work: Workspace, m: int) -> None:
    """U, Z, y = E^-1 1, B'y and the divisor of one lane."""
    W, (K, d) = problem.heights.size, problem.X.shape
    fill_windows(problem, at, work, m)
    U, y, line, joined = work.upper[m], work.direction[m], work.line, work.joined
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
        work.along[i, m] = line[i]
    back_substitute(U, y)
    divisor, total = 0.0, 0.0
    for k in range(W):
        y[k] *= work.roots[m, k]
        divisor += y[k] * at.slacks[m, k]
        total += y[k]
    for b in range(K):
        marked = 0.0
        for i in range(problem.first_holder[b], problem.first_holder[b + 1]):
            marked += y[problem.holders[i]]
        divisor += marked * work.spread[m, b] * work.pulls[m, b]
    work.divisor[m] = -total if problem.minimising else divisor


@compiled
def bend_of_log(x: float) -> float:
    """What log(1 + x) - x has to be corrected by, about -x^2/2, after a first-order step x of a voice (relative).

    Upwards log(1 + x) - x itself. Downwards 1 + x - e^x: solving log(1 + x') = x then gives x' = e^x - 1 > -1, where
    the first-order step x < -1 is impossible.
    """
    return np.log1p(x) - x if x > 0.0 else 1.0 + x - np.exp(x)


@compiled
def push_windows(
    problem: Problem, at: Iterate, work: Workspace, step: Iterate, target: Array, curvature: float
) -> None:
    """R, then U'^-1 sqrt(v) R in ``solved`` and y'R / divisor in ``pushed``; mask Q is in ``sums``.

    The second-order correction knows the true change of log v_k - log lam along the predictor.
    """
    W = problem.heights.size
    for m in range(target.size):
        f, U = work.solved[m], work.upper[m]
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
        for k in range(W):
            row = U[k]
            f[k] /= row[k]
            for j in range(k + 1, W):
                f[j] -= row[j] * f[k]
        work.pushed[m] = pushed


@compiled
def move_windows(problem: Problem, at: Iterate, work: Workspace, step: Iterate) -> None:
    """Back-substitution for voices, slacks and the level, given the step of delta."""
    W, d = problem.heights.size, problem.X.shape[1]
    for m in range(step.level.size):
        f, line, v = work.solved[m], work.line, step.voices[m]
        for j in range(d):
            line[j] = step.delta[j, m]
            work.pushed[m] -= work.along[j, m] * line[j]
        for k in range(W):
            Z, total = work.upper[m, k, W:], f[k]
            for j in range(d):
                total -= Z[j] * line[j]
            v[k] = total
        back_substitute(work.upper[m], v)
        push = work.pushed[m] / work.divisor[m]
        for k in range(W):
            v[k] = work.roots[m, k] * v[k] + work.direction[m, k] * push
            step.slacks[m, k] = work.window_aims[m, k] - at.slacks[m, k] / at.voices[m, k] * v[k]
        step.level[m] = -push if problem.minimising else 0.0
