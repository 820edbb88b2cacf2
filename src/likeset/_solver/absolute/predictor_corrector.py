"""One iteration of the predictor-corrector method, in all lanes: one factorisation, three steps computed, one taken.

See :mod:`~likeset._solver.absolute.goals` for what the three steps aim at.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from likeset._solver.absolute.ball_cone import boundary_rate
from likeset._solver.absolute.goals import aim_at_centre, aim_at_zero, aim_with_curvature
from likeset._solver.absolute.newton_system import factorise, newton_step
from likeset._solver.absolute.primal_dual import Iterate, Problem, Workspace
from likeset._solver.linalg.dense import inner, merged
from likeset._typing import Array

BoolArray = NDArray[np.bool_]
STEP_FRACTION = 0.9  # of the way to the boundary is the least to go,
MORE_FRACTION = 0.09  # and so much more after a predictor that could go all the way
HIGHEST_TARGET = 0.3  # of the present mu
LEAST_GAIN = 0.01  # in step length: otherwise centring is not worth its detour
SHORTEST_STEP = 1e-7  # a shorter step means that rounding has taken over


@inner
def largest_rate(step: Array, inverse: Array, m: int) -> float:
    """The largest -step / variable of lane m, at least 0; four chains of maxima run in parallel."""
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    n = step.shape[1] // 4
    for i in range(n):
        a = max(a, -step[m, i] * inverse[m, i])
        b = max(b, -step[m, n + i] * inverse[m, n + i])
        c = max(c, -step[m, 2 * n + i] * inverse[m, 2 * n + i])
        d = max(d, -step[m, 3 * n + i] * inverse[m, 3 * n + i])
    for i in range(4 * n, step.shape[1]):
        a = max(a, -step[m, i] * inverse[m, i])
    return max(max(a, b), max(c, d))


@inner
def longest_step(problem: Problem, at: Iterate, work: Workspace, step: Iterate) -> Array:
    """Longest multiple of the step that stays in all cones (inf if there is no limit), per lane.

    One length for primal and dual variables: two lengths zigzag along the curved side of the ball.
    """
    rate = np.zeros(at.level.shape[1])
    for m in range(rate.size):
        primal = largest_rate(step.parts, work.inverse_parts, m)
        dual = largest_rate(step.duals, work.inverse_duals, m)
        rate[m] = max(primal, dual)
    if problem.level_is_free:
        for i in range(2):
            for m in range(rate.size):
                rate[m] = max(rate[m], -step.level[i, m] / at.level[i, m])
    if problem.radius < np.inf:
        of_ball, of_dual = boundary_rate(at.ball, step.ball), boundary_rate(at.dual_ball, step.dual_ball)
        for m in range(rate.size):
            rate[m] = max(rate[m], max(of_ball[m], of_dual[m]))
    for m in range(rate.size):
        rate[m] = 1.0 / rate[m]
    return rate


@inner
def gaps(problem: Problem, at: Iterate, step: Iterate, length: Array) -> Array:
    """Sums of all products after a multiple of the step, per lane: the duality gaps of feasible iterates."""
    parts, duals, step_parts, step_duals = at.parts, at.duals, step.parts, step.duals
    out = np.zeros(length.size)
    for m in range(length.size):
        total = 0.0
        for i in range(parts.shape[1]):
            total += (parts[m, i] + length[m] * step_parts[m, i]) * (duals[m, i] + length[m] * step_duals[m, i])
        out[m] = total
    if problem.level_is_free:
        level, step_level = at.level, step.level
        for m in range(length.size):
            out[m] += (level[0, m] + length[m] * step_level[0, m]) * (level[1, m] + length[m] * step_level[1, m])
    if problem.radius < np.inf:
        v, y, step_v, step_y = at.ball, at.dual_ball, step.ball, step.dual_ball
        for j in range(v.shape[0]):
            for m in range(length.size):
                out[m] += (v[j, m] + length[m] * step_v[j, m]) * (y[j, m] + length[m] * step_y[j, m])
    return out


@inner
def add_multiple(x: Array, length: Array, dx: Array) -> None:
    """Add length * dx to x."""
    for i in range(x.shape[0]):
        for m in range(length.size):
            x[i, m] += length[m] * dx[i, m]


@inner
def move(at: Iterate, step: Iterate, length: Array) -> None:
    """Add a multiple of the step to the iterate."""
    add_multiple(at.delta, length, step.delta)
    for m in range(length.size):
        for i in range(at.parts.shape[1]):
            at.parts[m, i] += length[m] * step.parts[m, i]
        for i in range(at.parts.shape[1]):
            at.duals[m, i] += length[m] * step.duals[m, i]
    add_multiple(at.ball, length, step.ball)
    add_multiple(at.dual_ball, length, step.dual_ball)
    add_multiple(at.level, length, step.level)


@inner
def degree(problem: Problem) -> float:
    """Number of products: the gap of a point with all products equal to mu is degree * mu."""
    extra = (1.0 if problem.level_is_free else 0.0) + (1.0 if problem.radius < np.inf else 0.0)
    return 2.0 * problem.weights.size + extra


@merged
def advance(problem: Problem, A: Array, at: Iterate, work: Workspace, step: Iterate, trial: Iterate) -> Array:
    """One iteration with predictor, corrector and centring; returns the lengths of the steps taken.

    A lane where rounding has taken over stays where it is: length 0.
    """
    factorise(problem, A, at, work)
    lanes = A.shape[1]
    target, predicted, length = np.zeros(lanes), np.zeros(lanes), np.zeros(lanes)
    centred = np.zeros(lanes, dtype=np.bool_)
    now = gaps(problem, at, at, length)  # the length is still 0
    for stage in range(3):
        into = trial if stage == 2 else step
        if stage == 0:
            aim_at_zero(work)
        elif stage == 1:
            aim_with_curvature(problem, work, step, target)
        else:
            aim_at_centre(problem, at, work, step, target)
        newton_step(problem, at, work, into)
        longest = longest_step(problem, at, work, into)
        if stage == 0:
            for m in range(lanes):
                predicted[m] = min(longest[m], 1.0)
            after = gaps(problem, at, step, predicted)
            for m in range(lanes):
                target[m] = min((after[m] / now[m]) ** 3, HIGHEST_TARGET) * now[m] / degree(problem)
        else:
            for m in range(lanes):
                if stage == 1 or min(longest[m], 1.0) > min(length[m], 1.0) + LEAST_GAIN:
                    centred[m], length[m] = stage == 2, longest[m]
    take_lanes(trial, centred, step)
    for m in range(lanes):
        length[m] = min((STEP_FRACTION + MORE_FRACTION * predicted[m]) * length[m], 1.0)
        if not length[m] > SHORTEST_STEP or not np.isfinite(step.delta[0, m]):
            length[m] = 0.0
            clear_lane(step, m)
    move(at, step, length)
    return length


@inner
def take_columns(source: Array, taken: BoolArray, out: Array) -> None:
    """Copy the columns that are marked."""
    for j in range(out.shape[0]):
        for m in range(taken.size):
            out[j, m] = source[j, m] if taken[m] else out[j, m]


@inner
def take_lanes(source: Iterate, taken: BoolArray, out: Iterate) -> None:
    """Copy the lanes that are marked."""
    for m in range(taken.size):
        if taken[m]:
            for j in range(out.parts.shape[1]):
                out.parts[m, j] = source.parts[m, j]
            for j in range(out.parts.shape[1]):
                out.duals[m, j] = source.duals[m, j]
    take_columns(source.delta, taken, out.delta)
    take_columns(source.ball, taken, out.ball)
    take_columns(source.dual_ball, taken, out.dual_ball)
    take_columns(source.level, taken, out.level)


@inner
def clear_lane(step: Iterate, m: int) -> None:
    """Set a direction to zero in one lane (it may hold NaN, which no multiple of 0 removes)."""
    step.delta[:, m] = 0.0
    step.parts[m] = 0.0
    step.duals[m] = 0.0
    step.ball[:, m] = 0.0
    step.dual_ball[:, m] = 0.0
    step.level[:, m] = 0.0
