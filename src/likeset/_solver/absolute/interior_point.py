r"""Path following for sums of absolute values: the minimum and the support function.

The variables and the Newton system are those of ``primal_dual``. Both tasks follow a central
path, the curve of points whose products (variable times multiplier) all equal mu, towards mu = 0.

Where to start matters as much as how to iterate. A point with products mu sees the absolute values smoothed at a
width of about mu / (lam w). From the analytic centre of the set, where the smoothing uses up just the slack of the
level, steps are short: with hundreds of points that width is far below their distances, and the way to the boundary
crosses many kinks. So a direction starts with a wider smoothing, which violates level and stationarity; Newton's method
removes that along the way, and needs half as many iterations.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from likeset._solver.absolute.iterate import DUAL, PRIMAL, Iterate, gap_after, new_iterate, set_ball
from likeset._solver.absolute.points import FORCE, split_residual
from likeset._solver.absolute.predictor_corrector import advance
from likeset._solver.absolute.primal_dual import (
    COUNT,
    DIRECTIONS,
    GAP,
    LENGTH,
    MISFIT_LEFT,
    PATH,
    STILL,
    Problem,
    Workspace,
    new_workspace,
)
from likeset._solver.linalg.matrix import SUMS, dot
from likeset._typing import EPS, Array
from likeset.compiling import inner, kernel

MAX_ITERATIONS = 60
LANES = 32  # directions solved side by side, at most
POINTS_IN_CACHE = 12288  # of all lanes together


class Stop(NamedTuple):
    """When to stop.

    tolerance         relative accuracy
    level, rounding   of the minimum: see :func:`minimise`
    slack             of the maximum: level - F(centre), rounded up
    reach             of the maximum: sum_i w_i |x_i|, which measures the rounding error of the mismatch
    """

    tolerance: float
    level: float
    rounding: float
    slack: float
    reach: float


class Found(NamedTuple):
    """Results, one row per path: points, values, certified bounds; the multipliers u of the minimum's bound."""

    steps: Array
    values: Array
    bounds: Array
    u: Array


@inner(fastmath=SUMS)
def residuals(problem: Problem, delta: Array, m: int, out: Array) -> None:
    """Write p_i - x_i'delta[:, m] for all points."""
    for k in range(problem.starts.size - 1):
        z = 0.0
        for j in range(delta.shape[0]):
            z += problem.X[k, j] * delta[j, m]
        for i in range(problem.starts[k], problem.starts[k + 1]):
            out[i] = problem.offsets[i] - z


@inner(fastmath=SUMS)
def start_lane(problem: Problem, at: Iterate, m: int, lam: float, mu: float, slack: float, residual: Array) -> None:
    """Set a lane to products equal to mu at its delta, with a given lam. Level and stationarity may fail.

    A delta outside the set (G - allowance > slack) is a guess that failed: zero takes its place.
    """
    d, n = at.delta.shape[0], problem.weights.size
    for attempt in range(2):
        residuals(problem, at.delta, m, residual)
        excess = -problem.allowance
        for i in range(n):
            excess += problem.weights[i] * abs(residual[i])
        for j in range(d):
            excess += problem.slope[j] * at.delta[j, m]
        if attempt == 1 or not (problem.level_is_free and excess > slack):
            break
        for j in range(d):
            at.delta[j, m] = 0.0
    for i in range(n):
        split_residual(at.parts, m, i, residual[i], mu / (lam * problem.weights[i]), mu)
    if problem.level_is_free:
        at.levels[DUAL, m, 0], at.levels[PRIMAL, m, 0] = lam, mu / lam
    if problem.bound < np.inf:
        set_ball(at, m, problem.centre, problem.bound, mu)


@inner(fastmath=SUMS)
def pull_of(problem: Problem, dual: Array, out: Array) -> None:
    """Write sum_i u_i x_i, u from its multipliers."""
    n = problem.weights.size
    for j in range(out.size):
        out[j] = 0.0
    for k in range(problem.starts.size - 1):
        total = 0.0
        for i in range(problem.starts[k], problem.starts[k + 1]):
            total += 0.5 * (dual[n + i] - dual[i])
        for j in range(out.size):
            out[j] += total * problem.X[k, j]


@inner(fastmath=SUMS)
def ceiling_of(problem: Problem, a: Array, at: Iterate, m: int, slack: float, reach: float, mismatch: Array) -> float:
    """The certificate: a bound of a'delta over C from any positive multipliers, those of lane m.

    slack   level - F(centre), rounded up
    reach   sum_i w_i |x_i|, which measures the rounding error of the mismatch
    """
    n, dual = problem.weights.size, at.parts[DUAL, m]
    lam = at.levels[DUAL, m, 0]
    for i in range(n):  # rounding may leave |u_i| above lam w_i by a hair
        lam = max(lam, 0.5 * (dual[i] + dual[n + i]) / problem.weights[i])
    pull_of(problem, dual, mismatch)
    for j in range(a.size):
        mismatch[j] += a[j] - lam * problem.slope[j]
    size = np.sqrt(dot(mismatch, mismatch)) + 4.0 * EPS * (np.sqrt(dot(a, a)) + lam * reach)
    ceiling = lam * slack + problem.bound * size - dot(mismatch, problem.centre)
    for i in range(n):
        p = problem.offsets[i]
        spare = lam * problem.weights[i] - 0.5 * (dual[i] + dual[n + i])
        ceiling += p * (dual[i] + spare) if p > 0.0 else -p * (dual[n + i] + spare)
    return ceiling


@inner(fastmath=SUMS)
def judge_minimum(problem: Problem, at: Iterate, m: int, stop: Stop, found: Found, residual: Array, v: Array) -> bool:
    """Whether the minimum of F + ridge |theta|^2 is found; centre and slope of the problem are 0. The bound:

    F(theta) + ridge |theta|^2 >= u'y - max over the ball of  v'theta - ridge |theta|^2,   v = sum_i u_i x_i.
    """
    d, n, ridge, dual = at.delta.shape[0], problem.weights.size, problem.ridge, at.parts[DUAL, m]
    residuals(problem, at.delta, m, residual)
    value = 0.0
    for i in range(n):
        value += problem.weights[i] * abs(residual[i])
    for j in range(d):
        value += ridge * at.delta[j, m] ** 2
    if value < found.values[0]:
        found.values[0] = value
        for j in range(d):
            found.steps[0, j] = at.delta[j, m]
    pull_of(problem, dual, v)
    size = np.sqrt(dot(v, v))
    reach = min(problem.bound, 0.5 * size / ridge)  # |theta| at the maximum above
    lower = -reach * (size - ridge * reach)
    for i in range(n):
        lower += 0.5 * (dual[n + i] - dual[i]) * problem.offsets[i]
    if lower > found.bounds[0]:
        found.bounds[0] = lower
        for i in range(n):
            found.u[i] = 0.5 * (dual[n + i] - dual[i])
    enough = max(stop.tolerance * found.values[0], stop.rounding)
    if stop.level > -np.inf:
        enough = max(enough, 0.01 * (stop.level - found.values[0]))
        if found.bounds[0] > stop.level + stop.rounding:
            return True
    return found.values[0] - found.bounds[0] <= enough


@inner(fastmath=SUMS)
def judge_maximum(
    problem: Problem,
    a: Array,
    at: Iterate,
    m: int,
    gap: float,
    misfit: float,
    last: bool,
    stop: Stop,
    found: Found,
    i: int,
    mismatch: Array,
) -> bool:
    """Whether lane m has found the maximum of direction i, or is in its last iteration.

    gap      sum of its products
    misfit   what is left of the violation of level and stationarity, relative to the start
    """
    value = 0.0
    for j in range(a.size):
        value += a[j] * at.delta[j, m]
    if not last and (gap > 0.5 * stop.tolerance * value or misfit > 0.01 * stop.tolerance):
        return False
    ceiling, previous = ceiling_of(problem, a, at, m, stop.slack, stop.reach, mismatch), found.bounds[i]
    if ceiling < previous:
        found.bounds[i] = ceiling
    found.values[i] = value
    for j in range(a.size):
        found.steps[i, j] = at.delta[j, m]
    # The mismatch times the bound may exceed the gap: go on as long as that helps.
    return last or ceiling - value <= stop.tolerance * value or not ceiling - value < 0.5 * (previous - value)


def follow(problem: Problem, A: Array, starts: Array, lam: Array, mu: Array, stop: Stop, found: Found) -> int:
    """Follow the path of every row of A (of the minimum, if the level is not free); total number of iterations.

    Path i starts at starts[i], inside the ball, with multiplier lam[i] of the level and products mu[i].
    """
    n_paths, d = A.shape
    n = problem.weights.size
    most = max(1, min(LANES, POINTS_IN_CACHE // max(n, 1)))
    rounds = max(1, -(-n_paths // most))
    lanes = -(-n_paths // rounds)  # no more than it takes to be done in as many rounds: few stay idle in the last
    at, step, trial = (new_iterate(d, n, 1 if problem.level_is_free else 0, lanes) for _ in range(3))
    return follow_lanes(problem, A, starts, lam, mu, stop, found, at, step, trial, new_workspace(problem.Xt, n, lanes))


@kernel(fastmath=SUMS)
def follow_lanes(
    problem: Problem,
    A: Array,
    starts: Array,
    lam: Array,
    mu: Array,
    stop: Stop,
    found: Found,
    at: Iterate,
    step: Iterate,
    trial: Iterate,
    work: Workspace,
) -> int:
    """The loop of :func:`follow`, with its memory. A lane that has finished takes over the next path.

    One function for both tasks: compiling is expensive.
    """
    n_paths, d = A.shape
    directions, mismatch, index, count = work.vectors[DIRECTIONS], work.line, work.turns[PATH], work.turns[COUNT]
    misfit, length = work.of_lanes[MISFIT_LEFT], work.of_lanes[LENGTH]
    gap, no_step, lanes = work.of_lanes[GAP], work.of_lanes[STILL], length.size
    upcoming, n_finished, iterations = 0, 0, 0
    while n_finished < n_paths:
        for m in range(lanes):
            if index[m] < 0 and upcoming < n_paths:
                for j in range(d):
                    directions[j, m], at.delta[j, m] = A[upcoming, j], starts[upcoming, j]
                residual = work.singles[FORCE, m]  # not in use between iterations
                start_lane(problem, at, m, lam[upcoming], mu[upcoming], stop.slack, residual)
                index[m], count[m], misfit[m] = upcoming, 0, 1.0
                upcoming += 1
        gap_after(at, at, no_step, gap)
        advance(problem, at, work, step, trial)
        gap_after(at, at, no_step, gap)
        iterations += 1
        for m in range(lanes):
            i = index[m]
            if i < 0:
                continue
            count[m] += 1
            misfit[m] *= 1.0 - length[m]
            last = length[m] == 0.0 or count[m] >= MAX_ITERATIONS
            if problem.level_is_free:
                finished = judge_maximum(problem, A[i], at, m, gap[m], misfit[m], last, stop, found, i, mismatch)
            else:
                residual = work.singles[FORCE, m]
                finished = judge_minimum(problem, at, m, stop, found, residual, mismatch) or last
            if finished:
                index[m] = -1
                n_finished += 1
    return iterations


def minimise(
    problem: Problem, guess: Array, level: float, rounding: float, accuracy: float
) -> tuple[Array, float, Array, float]:
    """Minimise F + ridge |theta|^2 over the ball: theta, the value there, multipliers u, and a lower bound.

    Stops when the gap is below max(accuracy * value, rounding), or below 1 % of the slack level - value, or
    when the lower bound exceeds the level. For an exact minimum let the level be -inf, which switches the
    last two off. Centre and slope of the problem are 0.
    """
    d, n = problem.centre.size, problem.weights.size
    if not problem.offsets.any():  # the minimum is 0, at 0, and there is no scale to start from
        return np.zeros(d), 0.0, np.zeros(n), 0.0
    start = guess * min(1.0, 0.9 * problem.bound / max(float(np.linalg.norm(guess)), 1e-300))
    mu = max(float(problem.weights @ np.abs(problem.offsets)), rounding) / n
    found = Found(np.zeros((1, d)), np.full(1, np.inf), np.zeros(1), np.zeros(n))
    stop = Stop(accuracy, level, rounding, 0.0, 0.0)
    follow(problem, np.zeros((1, d)), start[None, :], np.ones(1), np.full(1, mu), stop, found)
    return found.steps[0], float(found.values[0]), found.u, float(found.bounds[0])


def maximise(
    problem: Problem, A: Array, starts: tuple[Array, Array, Array], slack: float, reach: float, tolerance: float
) -> tuple[Array, Array, int]:
    """Maximise a'delta for the rows a of A: points delta (n, d), certified bounds, and total iterations.

    The starts are points inside the ball, multipliers lam of the level, and products mu.
    """
    found = Found(np.zeros(A.shape), np.zeros(len(A)), np.full(len(A), np.inf), np.zeros(0))
    iterations = follow(problem, A, *starts, Stop(tolerance, 0.0, 0.0, slack, reach), found)
    return found.steps, found.bounds, iterations
