"""One iteration of Mehrotra's predictor-corrector method for window mixtures of absolute values, in all lanes.

As :mod:`~likeset._solver.absolute.predictor_corrector`, with the windows' slacks and voices in place of one level.
"""

from __future__ import annotations

import numpy as np

from likeset._solver.absolute.ball_cone import boundary_rate
from likeset._solver.absolute.mixture_data import Iterate, Problem, Workspace, ball_weight
from likeset._solver.absolute.mixture_system import factorise, newton_step
from likeset._solver.absolute.predictor_corrector import add_multiple, largest_rate
from likeset._solver.linalg.dense import compiled
from likeset._typing import Array

STEP_FRACTION = 0.99  # of the way to the boundary
SHORTEST_STEP = 1e-7  # a shorter step means that rounding has taken over
CENTRING_POWER = 3  # Mehrotra: the shorter the predictor, the more centring


@compiled
def degree(problem: Problem) -> float:
    """Number of products."""
    return 2.0 * problem.weights.size + problem.heights.size + ball_weight(problem)


@compiled
def longest_step(at: Iterate, work: Workspace, step: Iterate) -> Array:
    """Longest multiple of the step that stays in all cones (inf if there is no limit), per lane."""
    lanes, W = at.slacks.shape
    rate, of_ball = boundary_rate(at.ball, step.ball), boundary_rate(at.dual_ball, step.dual_ball)
    for m in range(lanes):
        primal = largest_rate(step.parts, work.inverse_parts, m)
        dual = largest_rate(step.duals, work.inverse_duals, m)
        rate[m] = max(max(rate[m], of_ball[m]), max(primal, dual))
        for k in range(W):
            rate[m] = max(rate[m], -step.slacks[m, k] / at.slacks[m, k])
            rate[m] = max(rate[m], -step.voices[m, k] / at.voices[m, k])
        rate[m] = 1.0 / rate[m]
    return rate


@compiled
def gap_after(at: Iterate, step: Iterate, length: Array) -> Array:
    """Sum of all products after a multiple of the step: the duality gap of feasible iterates."""
    gap = np.zeros(length.size)
    for m in range(length.size):
        alpha, total = length[m], 0.0
        for i in range(at.parts.shape[1]):
            total += (at.parts[m, i] + alpha * step.parts[m, i]) * (at.duals[m, i] + alpha * step.duals[m, i])
        for k in range(at.slacks.shape[1]):
            total += (at.slacks[m, k] + alpha * step.slacks[m, k]) * (at.voices[m, k] + alpha * step.voices[m, k])
        gap[m] = total
    for j in range(at.ball.shape[0]):
        for m in range(length.size):
            primal = at.ball[j, m] + length[m] * step.ball[j, m]
            gap[m] += primal * (at.dual_ball[j, m] + length[m] * step.dual_ball[j, m])
    return gap


@compiled
def move(at: Iterate, step: Iterate, length: Array) -> None:
    """Add a multiple of the step to the iterate."""
    add_multiple(at.delta, length, step.delta)
    for m in range(length.size):
        for i in range(at.parts.shape[1]):
            at.parts[m, i] += length[m] * step.parts[m, i]
        for i in range(at.parts.shape[1]):
            at.duals[m, i] += length[m] * step.duals[m, i]
        for k in range(at.slacks.shape[1]):
            at.slacks[m, k] += length[m] * step.slacks[m, k]
            at.voices[m, k] += length[m] * step.voices[m, k]
        at.level[m] += length[m] * step.level[m]
    add_multiple(at.ball, length, step.ball)
    add_multiple(at.dual_ball, length, step.dual_ball)


@compiled
def clear_lane(step: Iterate, m: int) -> None:
    """Set a direction to zero in one lane (it may hold NaN, which no multiple of 0 removes)."""
    step.delta[:, m] = 0.0
    step.parts[m] = 0.0
    step.duals[m] = 0.0
    step.slacks[m] = 0.0
    step.voices[m] = 0.0
    step.ball[:, m] = 0.0
    step.dual_ball[:, m] = 0.0
    step.level[m] = 0.0


@compiled
def advance(
    problem: Problem, A: Array, at: Iterate, work: Workspace, step: Iterate, gap: Array, least_target: float
) -> Array:
    """One predictor-corrector iteration aiming at mu >= least_target; returns the lengths of the steps taken.

    A lane where rounding has taken over stays where it is: length 0.
    """
    factorise(problem, A, at, work)
    target = np.zeros(gap.size)
    newton_step(problem, at, work, step, target, 0.0)
    length = np.minimum(longest_step(at, work, step), 1.0)
    reachable = gap_after(at, step, length)
    for m in range(gap.size):
        target[m] = max((reachable[m] / gap[m]) ** CENTRING_POWER * gap[m] / degree(problem), least_target)
    newton_step(problem, at, work, step, target, 1.0)
    length = longest_step(at, work, step)
    for m in range(gap.size):
        length[m] = min(STEP_FRACTION * length[m], 1.0)
        if not length[m] > SHORTEST_STEP or not np.isfinite(step.delta[0, m]):
            length[m] = 0.0
            clear_lane(step, m)
    move(at, step, length)
    return length


@compiled
def copy_lane(source: Iterate, i: int, out: Iterate, m: int) -> None:
    """Copy lane i of an iterate to lane m of another."""
    out.parts[m] = source.parts[i]
    out.duals[m] = source.duals[i]
    out.slacks[m] = source.slacks[i]
    out.voices[m] = source.voices[i]
    for j in range(out.delta.shape[0]):
        out.delta[j, m] = source.delta[j, i]
    for j in range(out.ball.shape[0]):
        out.ball[j, m], out.dual_ball[j, m] = source.ball[j, i], source.dual_ball[j, i]
    out.level[m] = source.level[i]
