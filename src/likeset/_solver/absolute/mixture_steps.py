"""One iteration of Mehrotra's predictor-corrector method for window mixtures of absolute values, in all lanes.

As :mod:`~likeset._solver.absolute.predictor_corrector`, with the windows' slacks and voices in place of one level.
"""

from __future__ import annotations

import numpy as np

from likeset._solver.absolute.iterate import Iterate, clear_lane, gap_after, longest_step, move
from likeset._solver.absolute.mixture_data import (
    DIRECTIONS,
    GAP,
    LENGTH,
    REACHABLE,
    TARGET,
    Problem,
    Workspace,
    ball_weight,
)
from likeset._solver.absolute.mixture_system import factorise, newton_step
from likeset._solver.linalg.matrix import SUMS
from likeset.compiling import inner

STEP_FRACTION = 0.99  # of the way to the boundary
SHORTEST_STEP = 1e-7  # a shorter step means that rounding has taken over
CENTRING_POWER = 3  # Mehrotra: the shorter the predictor, the more centring


@inner()
def degree(problem: Problem) -> float:
    """Number of products."""
    return 2.0 * problem.weights.size + problem.heights.size + ball_weight(problem)


@inner(fastmath=SUMS)
def advance(problem: Problem, at: Iterate, work: Workspace, step: Iterate, least_target: float) -> None:
    """One predictor-corrector iteration aiming at mu >= least_target; writes the lengths of the steps taken.

    GAP is the sum of all products now. A lane where rounding has taken over stays where it is: length 0.
    """
    factorise(problem, work.vectors[DIRECTIONS], at, work)
    gap, length = work.of_lanes[GAP], work.of_lanes[LENGTH]
    target, reachable = work.of_lanes[TARGET], work.of_lanes[REACHABLE]
    for m in range(gap.size):
        target[m] = 0.0
    for stage in range(2):  # predictor, corrector
        newton_step(problem, at, work, step, target, float(stage))
        longest_step(at, work.pairs, work.eta, step, length)
        if stage == 0:
            for m in range(gap.size):
                length[m] = min(length[m], 1.0)
            gap_after(at, step, length, reachable)
            for m in range(gap.size):
                target[m] = max((reachable[m] / gap[m]) ** CENTRING_POWER * gap[m] / degree(problem), least_target)
    for m in range(gap.size):
        length[m] = min(STEP_FRACTION * length[m], 1.0)
        if not length[m] > SHORTEST_STEP or not np.isfinite(step.delta[0, m]):
            length[m] = 0.0
            clear_lane(step, m)
    move(at, step, length)
