"""One iteration of Mehrotra's predictor-corrector method, in all lanes.

A step towards products 0 (the predictor) tells how far one can get; the second step aims there and corrects
for the curvature that the first one saw.
"""

from __future__ import annotations

import numpy as np

from likeset.support.ball_cone import boundary_rate
from likeset.support.dense import compiled
from likeset.support.newton_system import factorise, newton_step
from likeset.support.primal_dual import Iterate, Problem, Workspace
from likeset.support.terms import Array

STEP_FRACTION = 0.99  # of the way to the boundary
SHORTEST_STEP = 1e-7  # a shorter step means that rounding has taken over


@compiled
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


@compiled
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


@compiled
def add_products(x: Array, dx: Array, y: Array, dy: Array, length: Array, out: Array) -> None:
    """Add the column sums of (x + length dx) (y + length dy) to out."""
    for i in range(x.shape[0]):
        for m in range(out.size):
            out[m] += (x[i, m] + length[m] * dx[i, m]) * (y[i, m] + length[m] * dy[i, m])


@compiled
def gap_after(problem: Problem, at: Iterate, step: Iterate, length: Array) -> Array:
    """Sum of all products after a multiple of the step: the duality gap of feasible iterates."""
    gap = np.zeros(length.size)
    parts, duals, step_parts, step_duals = at.parts, at.duals, step.parts, step.duals
    for m in range(length.size):
        alpha, total = length[m], 0.0
        for i in range(parts.shape[1]):
            total += (parts[m, i] + alpha * step_parts[m, i]) * (duals[m, i] + alpha * step_duals[m, i])
        gap[m] = total
    if problem.level_is_free:
        add_products(at.level[:1], step.level[:1], at.level[1:], step.level[1:], length, gap)
    if problem.radius < np.inf:
        add_products(at.ball, step.ball, at.dual_ball, step.dual_ball, length, gap)
    return gap


@compiled
def add_multiple(x: Array, length: Array, dx: Array) -> None:
    """Add length * dx to x."""
    for i in range(x.shape[0]):
        for m in range(length.size):
            x[i, m] += length[m] * dx[i, m]


@compiled
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


@compiled
def degree(problem: Problem) -> float:
    """Number of products: the gap of a point with all products equal to mu is degree * mu."""
    extra = (1.0 if problem.level_is_free else 0.0) + (1.0 if problem.radius < np.inf else 0.0)
    return 2.0 * problem.weights.size + extra


@compiled
def advance(
    problem: Problem,
    A: Array,
    at: Iterate,
    work: Workspace,
    step: Iterate,
    gap: Array,
    least_target: float,
) -> Array:
    """One predictor-corrector iteration aiming at mu >= least_target; returns the lengths of the steps taken.

    A lane where rounding has taken over stays where it is: length 0.
    """
    factorise(problem, A, at, work)
    target = np.zeros(gap.size)
    newton_step(problem, at, work, step, target, 0.0)
    length = np.minimum(longest_step(problem, at, work, step), 1.0)
    reachable = gap_after(problem, at, step, length)
    for m in range(gap.size):
        target[m] = max((reachable[m] / gap[m]) ** 3 * gap[m] / degree(problem), least_target)
    newton_step(problem, at, work, step, target, 1.0)
    length = longest_step(problem, at, work, step)
    for m in range(gap.size):
        length[m] = min(STEP_FRACTION * length[m], 1.0)
        if not length[m] > SHORTEST_STEP or not np.isfinite(step.delta[0, m]):
            length[m] = 0.0
            clear_lane(step, m)
    move(at, step, length)
    return length


@compiled
def clear_lane(step: Iterate, m: int) -> None:
    """Set a direction to zero in one lane (it may hold NaN, which no multiple of 0 removes)."""
    step.delta[:, m] = 0.0
    step.parts[m] = 0.0
    step.duals[m] = 0.0
    step.ball[:, m] = 0.0
    step.dual_ball[:, m] = 0.0
    step.level[:, m] = 0.0
