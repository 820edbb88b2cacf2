"""One iteration of the predictor-corrector method, in all lanes: one factorisation, three steps computed, one taken.

See :mod:`~likeset._solver.absolute.goals` for what the three steps aim at.
"""

from __future__ import annotations

import numpy as np

from likeset._solver.absolute.goals import set_goals
from likeset._solver.absolute.iterate import Iterate, clear_lane, copy_lane, gap_after, longest_step, move
from likeset._solver.absolute.newton_system import factorise, newton_step
from likeset._solver.absolute.primal_dual import (
    AFTER,
    CENTRED,
    DIRECTIONS,
    GAP,
    LENGTH,
    LONGEST,
    PREDICTED,
    TARGET,
    Problem,
    Workspace,
)
from likeset.compiling import inner

STEP_FRACTION = 0.9  # of the way to the boundary is the least to go,
MORE_FRACTION = 0.09  # and so much more after a predictor that could go all the way
HIGHEST_TARGET = 0.3  # of the present mu
LEAST_GAIN = 0.01  # in step length: otherwise centring is not worth its detour
SHORTEST_STEP = 1e-7  # a shorter step means that rounding has taken over


@inner()
def advance(problem: Problem, at: Iterate, work: Workspace, step: Iterate, trial: Iterate) -> None:
    """One iteration with predictor, corrector and centring; writes the lengths of the steps taken.

    GAP is the sum of all products now. A lane where rounding has taken over stays where it is: length 0.
    """
    factorise(problem, work.vectors[DIRECTIONS], at, work)
    of_lanes = work.of_lanes
    gap, length, target, predicted = of_lanes[GAP], of_lanes[LENGTH], of_lanes[TARGET], of_lanes[PREDICTED]
    longest, after, centred = of_lanes[LONGEST], of_lanes[AFTER], of_lanes[CENTRED]
    lanes = gap.size
    for m in range(lanes):
        target[m] = centred[m] = 0.0
    # The gap of a point with all products equal to mu is degree * mu.
    degree = 2.0 * problem.weights.size + at.levels.shape[2] + (1.0 if problem.bound < np.inf else 0.0)
    for stage in range(3):
        into = trial if stage == 2 else step
        set_goals(problem, at, work, step, target, stage)
        newton_step(problem, at, work, into)
        longest_step(at, work.pairs, work.eta, into, longest)
        if stage == 0:
            for m in range(lanes):
                predicted[m] = min(longest[m], 1.0)
            gap_after(at, step, predicted, after)
            for m in range(lanes):
                target[m] = min((after[m] / gap[m]) ** 3, HIGHEST_TARGET) * gap[m] / degree
        else:
            for m in range(lanes):
                if stage == 1 or min(longest[m], 1.0) > min(length[m], 1.0) + LEAST_GAIN:
                    centred[m], length[m] = stage - 1.0, longest[m]
    for m in range(lanes):
        if centred[m] > 0.0:
            copy_lane(trial, m, step, m)
        length[m] = min((STEP_FRACTION + MORE_FRACTION * predicted[m]) * length[m], 1.0)
        if not length[m] > SHORTEST_STEP or not np.isfinite(step.delta[0, m]):
            length[m] = 0.0
            clear_lane(step, m)
    move(at, step, length)
