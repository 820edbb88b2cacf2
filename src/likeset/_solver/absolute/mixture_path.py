r"""Path following for window mixtures of absolute values: the analytic centre, and the support function.

Variables and Newton system are those of :mod:`~likeset._solver.absolute.mixture_data`, the iteration is Mehrotra's
(:mod:`~likeset._solver.absolute.mixture_steps`). On the central path of the minimum problem the level falls to min Phi
together with mu; where it passes the level of the set lies the set's analytic centre, and there the paths of all
directions begin, with one factorisation for the first step of all.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from likeset._solver.absolute.iterate import (
    DUAL,
    PRIMAL,
    Iterate,
    copy_lane,
    gap_after,
    longest_step,
    move,
    new_iterate,
    set_ball,
)
from likeset._solver.absolute.mixture_bounds import exponents, half_space, log_average, pull_inside
from likeset._solver.absolute.mixture_data import (
    COUNT,
    DIRECTIONS,
    GAP,
    GRADIENT,
    LENGTH,
    LENGTHS,
    PATH,
    STILL,
    SUM,
    TARGET,
    Problem,
    Workspace,
    ball_weight,
    new_workspace,
)
from likeset._solver.absolute.mixture_steps import advance, degree
from likeset._solver.absolute.mixture_system import factorise, newton_step
from likeset._solver.absolute.points import split_residual
from likeset._solver.certificate import certificate
from likeset._solver.linalg.matrix import SUMS, dot
from likeset._typing import Array, IntArray
from likeset.compiling import inner, kernel

FIRST_STEP = 0.7  # part of the way to the boundary taken by the shared first step
MAX_ITERATIONS = 60
LANES = 16
NUMBERS_IN_CACHE = 65536  # of all lanes together, for points and the windows' matrices


class Stop(NamedTuple):
    """What is wanted.

    level          of the set; points satisfy it
    outer_level    with what rounding can be worth; bounds are of this set, in the ball of ``outer_bound``
    room           of the support: level - Phi(centre)
    rounding       of the minimum: gap that is good enough
    tolerance      of the support: relative accuracy
    """

    level: float
    outer_level: float
    outer_bound: float
    room: float
    rounding: float
    tolerance: float


class Found(NamedTuple):
    """Results, one row per path: points, values there, certified bounds, iterations."""

    points: Array
    values: Array
    bounds: Array
    iterations: IntArray


@inner(fastmath=SUMS)
def start_minimum(problem: Problem, at: Iterate, work: Workspace, level: float) -> None:
    """Set the single lane of an iterate at delta = 0 (theta = centre, inside the ball) near the central path.

    The wanted products mu come from how far Phi may have to fall. Stationarity and the windows' equations may fail.
    """
    W = problem.heights.size
    slacks, voices = at.levels[PRIMAL, 0], at.levels[DUAL, 0]
    point, m = work.point, work.windows[SUM, 0]
    for j in range(point.size):
        point[j] = 0.0
    exponents(problem, point, work.rows[LENGTHS, 0], m)
    top, total = m[0], 0.0
    for k in range(W):
        top = max(top, m[k])
    mu = (max(top - level, 0.0) + 1.0) / degree(problem)
    at.height[0] = top + W * mu
    for k in range(W):
        voices[k] = 1.0 / (at.height[0] - m[k])
        total += voices[k]
    for k in range(W):
        voices[k] /= total
        slacks[k] = mu / voices[k]
    for b in range(problem.slopes.size):
        pull = 0.0
        for k in range(W):
            pull += voices[k] * problem.masks[k, b]
        for i in range(problem.starts[b], problem.starts[b + 1]):
            split_residual(at.parts, 0, i, problem.offsets[i], mu / (problem.weights[i] * pull), mu)
    set_ball(at, 0, problem.centre, problem.bound, ball_weight(problem) * mu)


@inner(fastmath=SUMS)
def start_support(
    problem: Problem, A: Array, centre: Iterate, out: Iterate, step: Iterate, shared: Workspace, mu: float
) -> None:
    """From the analytic centre towards the columns of A, using the factorisation at the centre.

    Multiplying all multipliers by a factor keeps the centre central; the factor is chosen such that a full Newton step
    for the direction goes FIRST_STEP of the way to the boundary. It is then dual feasible.
    """
    d, lanes = A.shape
    target, length = shared.of_lanes[TARGET], shared.of_lanes[LENGTH]
    lane = centre.delta.shape[1] - 1  # 0, the only one; functions would be compiled once more for a literal
    for m in range(lanes):
        copy_lane(centre, lane, out, m)
        target[m] = mu
        for j in range(d):
            shared.vectors[GRADIENT, j, m] = A[j, m]
    newton_step(problem, out, shared, step, target, 0.0)
    longest_step(out, shared.pairs, shared.eta, step, length)
    for m in range(lanes):
        length[m] *= FIRST_STEP
    move(out, step, length)
    for m in range(lanes):
        factor = 1.0 / length[m]
        for i in range(out.parts.shape[2]):
            out.parts[DUAL, m, i] *= factor
        for k in range(out.levels.shape[2]):
            out.levels[DUAL, m, k] *= factor
        for j in range(d + 1):
            out.cone[DUAL, j, m] *= factor


@inner(fastmath=SUMS)
def judge_minimum(
    problem: Problem, at: Iterate, m: int, gap: float, stop: Stop, found: Found, work: Workspace
) -> tuple[bool, float]:
    """Whether the path of the minimum may be left, and the products to aim at otherwise.

    It is left where its level meets the level of the set, or, in thin sets, where the gap is below the rounding error,
    or where the lower bound shows that the set is empty.
    """
    point, g, of_rows = work.point, work.g, work.rows[LENGTHS, m]
    for j in range(point.size):
        point[j] = at.delta[j, m]
    value = log_average(problem, point, of_rows, work.windows[SUM, m])
    if value < found.values[0]:
        found.values[0] = value
        for j in range(point.size):
            found.points[0, j] = point[j]
    f = half_space(problem, at, m, of_rows, g)
    lower = f - problem.bound * np.sqrt(dot(g, g)) - dot(g, problem.centre)
    found.bounds[0] = max(found.bounds[0], lower)
    decided = found.bounds[0] > stop.level + stop.rounding or found.values[0] - found.bounds[0] <= stop.rounding
    above = at.height[0] - stop.level
    # Near the centre: the levels differ by less than the gap, and what the certificate lacks is small.
    central = abs(above) <= 0.3 * gap and at.height[0] - lower <= 1.5 * gap and value < stop.level
    return decided or central, max(gap - above, 0.1 * gap) / degree(problem)


@inner(fastmath=SUMS)
def judge_maximum(
    problem: Problem, a: Array, at: Iterate, m: int, stop: Stop, found: Found, i: int, work: Workspace
) -> bool:
    """Note what lane m proves about direction i, and its point; whether its bound is attained to the tolerance."""
    point, g, of_rows = work.point, work.g, work.rows[LENGTHS, m]
    square = dot(problem.centre, problem.centre)
    f = half_space(problem, at, m, of_rows, g)
    room = stop.outer_bound * stop.outer_bound - square
    ceiling, _, _ = certificate(a, g, stop.outer_level - f, problem.centre, room, stop.outer_bound)
    found.bounds[i] = min(found.bounds[i], ceiling)
    ball_room = problem.bound * problem.bound - square
    pull_inside(problem, point, stop.level, stop.room, ball_room, of_rows, work.windows[SUM, m])
    value = dot(a, point)
    if value > found.values[i]:
        found.values[i] = value
        for j in range(point.size):
            found.points[i, j] = point[j]
    return found.bounds[i] - found.values[i] <= stop.tolerance * found.bounds[i]


def follow(problem: Problem, A: Array, centre: Iterate, stop: Stop, found: Found) -> None:
    """Follow the path of the minimum to the set's analytic centre, or from there those of all rows of A.

    The single lane of ``centre`` is written in the one case and read in the other.
    """
    n_paths, d = A.shape
    n, W = problem.weights.size, problem.heights.size
    lanes = max(1, min(LANES, n_paths, NUMBERS_IN_CACHE // (4 * n + W * (W + d))))
    at, step, ready = (new_iterate(d, n, W, lanes) for _ in range(3))
    work, shared = new_workspace(problem, lanes), new_workspace(problem, 0 if problem.minimising else lanes)
    follow_lanes(problem, A, centre, stop, found, at, step, ready, work, shared)


@kernel(fastmath=SUMS)
def follow_lanes(
    problem: Problem,
    A: Array,
    centre: Iterate,
    stop: Stop,
    found: Found,
    at: Iterate,
    step: Iterate,
    ready: Iterate,
    work: Workspace,
    shared: Workspace,
) -> None:
    """The loop of :func:`follow`, with its memory. A lane that has finished its direction takes over the next one.

    One function for both tasks: compiling is expensive.
    """
    n_paths, d = A.shape
    directions, ready_directions = work.vectors[DIRECTIONS], shared.vectors[DIRECTIONS]
    gap, none, length, point = work.of_lanes[GAP], work.of_lanes[STILL], work.of_lanes[LENGTH], work.point
    index, count, lanes = work.turns[PATH], work.turns[COUNT], gap.size
    lane = centre.delta.shape[1] - 1  # 0, the only one; functions would be compiled once more for a literal
    if problem.minimising:
        start_minimum(problem, at, work, stop.level)
    else:
        for m in range(lanes):
            index[m] = -1  # the direction each lane works on
            copy_lane(centre, lane, at, m)
        factorise(problem, directions, at, shared)
        gap_after(at, step, none, gap)
    mu, least_target = gap[0] / degree(problem), 0.0
    upcoming, n_finished = 0, 0
    while n_finished < n_paths:
        for m in range(lanes):
            if index[m] < 0 and upcoming < n_paths:
                if upcoming % lanes == 0:
                    for i in range(lanes):
                        for j in range(d):
                            ready_directions[j, i] = A[min(upcoming + i, n_paths - 1), j]
                    start_support(problem, ready_directions, centre, ready, step, shared, mu)
                copy_lane(ready, upcoming % lanes, at, m)
                for j in range(d):
                    directions[j, m] = A[upcoming, j]
                index[m], count[m] = upcoming, 0
                upcoming += 1
        gap_after(at, step, none, gap)
        if problem.minimising:
            good, least_target = judge_minimum(problem, at, lane, gap[0], stop, found, work)
            if good or count[0] >= MAX_ITERATIONS:
                break
        advance(problem, at, work, step, least_target)
        if problem.minimising:
            count[0] += 1
            if length[0] == 0.0:
                break
            continue
        gap_after(at, step, none, gap)
        for m in range(lanes):
            i = index[m]
            if i < 0:
                continue
            count[m] += 1
            for j in range(d):
                point[j] = at.delta[j, m]
            last = length[m] == 0.0 or count[m] >= MAX_ITERATIONS
            if last or gap[m] <= 0.5 * stop.tolerance * dot(A[i], point):
                good = judge_maximum(problem, A[i], at, m, stop, found, i, work)
                if last or good:
                    found.iterations[i] = count[m]
                    index[m] = -1
                    n_finished += 1
    if problem.minimising:
        found.iterations[0] = count[0]
        copy_lane(at, lane, centre, lane)


def find_centre(problem: Problem, level: float, rounding: float) -> tuple[Iterate, Array, float, float]:
    """Analytic centre of { Phi <= level } in the ball with its multipliers; best point, Phi there, lower bound of Phi.

    ``problem`` is the minimum problem.
    """
    d, n, W = len(problem.centre), len(problem.weights), len(problem.heights)
    centre = Iterate(
        np.zeros((d, 1)), np.zeros((2, 1, 2 * n)), np.zeros((2, 1, W)), np.zeros((2, d + 1, 1)), np.zeros(1)
    )
    found = Found(np.zeros((1, d)), np.full(1, np.inf), np.full(1, -np.inf), np.zeros(1, dtype=np.int64))
    follow(problem, np.zeros((1, d)), centre, Stop(level, level, problem.bound, 0.0, rounding, 0.0), found)
    return centre, found.points[0], float(found.values[0]), float(found.bounds[0])


def maximise(
    problem: Problem,
    A: Array,
    centre: Iterate,
    level: float,
    outer_level: float,
    room: float,
    outer_bound: float,
    tolerance: float,
) -> tuple[Array, Array, IntArray]:
    """Maximise a'delta for the rows a of A: points of the set (n, d), certified bounds, iterations of each direction.

    Points satisfy ``level``, bounds ``outer_level``.
    """
    n = len(A)
    found = Found(np.zeros(A.shape), np.zeros(n), np.full(n, np.inf), np.zeros(n, dtype=np.int64))
    follow(problem, A, centre, Stop(level, outer_level, outer_bound, room, 0.0, tolerance), found)
    return found.points, found.bounds, found.iterations
