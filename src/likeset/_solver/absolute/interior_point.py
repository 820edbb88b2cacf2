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

from likeset._solver.absolute.predictor_corrector import advance, gaps
from likeset._solver.absolute.primal_dual import Iterate, Problem, new_iterate, new_workspace
from likeset._solver.linalg.dense import compiled, dot, inner
from likeset._typing import EPS, Array

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


@inner
def residuals(problem: Problem, delta: Array) -> Array:
    """p_i - x_i'delta for all points."""
    z = problem.X @ delta
    return problem.offsets - z[problem.owner]


@inner
def excess(problem: Problem, delta: Array) -> float:
    """G(delta) - allowance."""
    total = dot(problem.weights, np.abs(residuals(problem, delta)))
    return total + dot(problem.slope, delta) - problem.allowance


@inner
def start_lane(problem: Problem, at: Iterate, m: int, lam: float, mu: float) -> None:
    """Set a lane to products equal to mu at its delta, with a given lam. Level and stationarity may fail.

    r t = mu (r + t) / (2 lam w) with r - t = p - z gives  r + t = mu / (lam w) + sqrt((mu / (lam w))^2 + (p - z)^2).
    """
    n = problem.weights.size
    delta = at.delta[:, m].copy()
    residual = residuals(problem, delta)
    for i in range(n):
        share = mu / (lam * problem.weights[i])
        total = share + np.sqrt(share * share + residual[i] * residual[i])
        # The smaller part from the product, not from a difference of nearly equal numbers.
        large = 0.5 * (total + abs(residual[i]))
        small = 0.5 * share * total / large
        at.parts[m, i], at.parts[m, n + i] = (large, small) if residual[i] > 0.0 else (small, large)
    for i in range(2 * n):
        at.duals[m, i] = mu / at.parts[m, i]
    at.level[0, m], at.level[1, m] = lam, mu / lam
    if problem.radius < np.inf:
        theta = problem.centre + delta
        factor = mu / max(problem.radius**2 - dot(theta, theta), EPS * problem.radius**2)
        at.ball[0, m], at.dual_ball[0, m] = problem.radius, factor * problem.radius
        for j in range(theta.size):
            at.ball[1 + j, m], at.dual_ball[1 + j, m] = theta[j], -factor * theta[j]


@inner
def multipliers(problem: Problem, at: Iterate, m: int) -> Array:
    """The u_i of a lane, from the pairs lam w_i - u_i and lam w_i + u_i."""
    n = problem.weights.size
    u = np.empty(n)
    for i in range(n):
        u[i] = 0.5 * (at.duals[m, n + i] - at.duals[m, i])
    return u


@inner
def pull_of(problem: Problem, u: Array) -> Array:
    """sum_i u_i x_i."""
    sums = np.zeros(problem.X.shape[0])
    for i in range(u.size):
        sums[problem.owner[i]] += u[i]
    return problem.Xt @ sums


@inner
def outer_bound(problem: Problem, a: Array, at: Iterate, m: int, slack: float, reach: float) -> float:
    """The certificate: a bound of a'delta over C from any positive multipliers, those of lane m.

    slack   level - F(centre), rounded up
    reach   sum_i w_i |x_i|, which measures the rounding error of the mismatch
    """
    n = problem.weights.size
    lam = at.level[0, m]
    for i in range(n):  # rounding may leave |u_i| above lam w_i by a hair
        lam = max(lam, 0.5 * (at.duals[m, i] + at.duals[m, n + i]) / problem.weights[i])
    mismatch = a - lam * problem.slope + pull_of(problem, multipliers(problem, at, m))
    size = np.sqrt(dot(mismatch, mismatch)) + 4.0 * EPS * (np.sqrt(dot(a, a)) + lam * reach)
    bound: float = lam * slack + problem.radius * size - dot(mismatch, problem.centre)
    for i in range(n):
        p = problem.offsets[i]
        spare = lam * problem.weights[i] - 0.5 * (at.duals[m, i] + at.duals[m, n + i])
        bound += p * (at.duals[m, i] + spare) if p > 0.0 else -p * (at.duals[m, n + i] + spare)
    return bound


@inner
def judge_minimum(problem: Problem, at: Iterate, stop: Stop, found: Found) -> bool:
    """Whether the minimum of F + ridge |theta|^2 is found; centre and slope of the problem are 0. The bound:

    F(theta) + ridge |theta|^2 >= u'y - max over the ball of  v'theta - ridge |theta|^2,   v = sum_i u_i x_i.
    """
    point = at.delta[:, 0].copy()
    value = dot(problem.weights, np.abs(residuals(problem, point))) + problem.ridge * dot(point, point)
    if value < found.values[0]:
        found.steps[0], found.values[0] = point, value
    u = multipliers(problem, at, 0)
    v = pull_of(problem, u)
    size = np.sqrt(dot(v, v))
    reach = min(problem.radius, 0.5 * size / problem.ridge)  # |theta| at the maximum above
    bound = dot(u, problem.offsets) - reach * (size - problem.ridge * reach)
    if bound > found.bounds[0]:
        found.u[:], found.bounds[0] = u, bound
    enough = max(stop.tolerance * found.values[0], stop.rounding)
    if stop.level > -np.inf:
        enough = max(enough, 0.01 * (stop.level - found.values[0]))
        if found.bounds[0] > stop.level + stop.rounding:
            return True
    return found.values[0] - found.bounds[0] <= enough


@inner
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
) -> bool:
    """Whether lane m has found the maximum of direction i, or is in its last iteration.

    gap      sum of its products
    misfit   what is left of the violation of level and stationarity, relative to the start
    """
    delta = at.delta[:, m].copy()
    value = dot(a, delta)
    if not last and (gap > 0.5 * stop.tolerance * value or misfit > 0.01 * stop.tolerance):
        return False
    bound, previous = outer_bound(problem, a, at, m, stop.slack, stop.reach), found.bounds[i]
    if bound < previous:
        found.bounds[i] = bound
    found.steps[i], found.values[i] = delta, value
    # The mismatch times the radius may exceed the gap: go on as long as that helps.
    return last or bound - value <= stop.tolerance * value or not bound - value < 0.5 * (previous - value)


@compiled
def follow(problem: Problem, A: Array, starts: Array, lam: Array, mu: Array, stop: Stop, found: Found) -> int:
    """Follow the path of every row of A (of the minimum, if the level is not free); total number of iterations.

    Path i starts at starts[i], inside the ball, with multiplier lam[i] of the level and products mu[i]. A lane that
    has finished takes over the next path. One function for both tasks: compiling is expensive.
    """
    n_paths, d = A.shape
    n = problem.weights.size
    most = max(1, min(LANES, POINTS_IN_CACHE // max(n, 1)))
    rounds = max(1, -(-n_paths // most))
    lanes = -(-n_paths // rounds)  # no more than it takes to be done in as many rounds: few stay idle in the last
    at, step, trial = new_iterate(d, n, lanes), new_iterate(d, n, lanes), new_iterate(d, n, lanes)
    work = new_workspace(problem.Xt, n, lanes)
    directions = np.zeros((d, lanes))
    index = np.full(lanes, -1)  # the path each lane works on
    count = np.zeros(lanes, dtype=np.int64)
    misfit, no_step = np.zeros(lanes), np.zeros(lanes)
    upcoming, n_finished, iterations = 0, 0, 0
    while n_finished < n_paths:
        for m in range(lanes):
            if index[m] < 0 and upcoming < n_paths:
                directions[:, m], at.delta[:, m] = A[upcoming], starts[upcoming]
                if problem.level_is_free and excess(problem, starts[upcoming]) > stop.slack:
                    at.delta[:, m] = 0.0  # the start is a mere guess
                start_lane(problem, at, m, lam[upcoming], mu[upcoming])
                index[m], count[m], misfit[m] = upcoming, 0, 1.0
                upcoming += 1
        length = advance(problem, directions, at, work, step, trial)
        iterations += 1
        gap = gaps(problem, at, at, no_step)
        for m in range(lanes):
            i = index[m]
            if i < 0:
                continue
            count[m] += 1
            misfit[m] *= 1.0 - length[m]
            last = length[m] == 0.0 or count[m] >= MAX_ITERATIONS
            if problem.level_is_free:
                finished = judge_maximum(problem, A[i], at, m, gap[m], misfit[m], last, stop, found, i)
            else:
                finished = judge_minimum(problem, at, stop, found) or last
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
    start = guess * min(1.0, 0.9 * problem.radius / max(float(np.linalg.norm(guess)), 1e-300))
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
