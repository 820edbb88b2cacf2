r"""Which products of variables and multipliers a Newton step of :mod:`~likeset._solver.absolute.newton_system` aims at.

Three goals are set in turn, each with the factorisation of the same iterate:

1. the *predictor* aims at products 0, and tells how far one can get;
2. the *corrector* aims at a common target mu and takes off the products of the predictor's own steps, the part that
   linearising leaves out (Mehrotra);
3. *centring* looks at the products that a full step of the corrector would give. Those outside [LOWEST mu, HIGHEST mu]
   are what shortens steps, now or next time. The goal is shifted by as much as they are outside (Gondzio).

For the ball the products are the eigenvalues v_0 -+ |v_1| of the vector v = (W^{-1} primal) o (W dual). Its curved side
gains most from centring: a third fewer iterations.
"""

from __future__ import annotations

import numpy as np

from likeset._solver.absolute.ball_cone import FIRST, GOAL, SPARE, ball_products, tail_product
from likeset._solver.absolute.iterate import DUAL, PRIMAL, Iterate
from likeset._solver.absolute.points import GOALS
from likeset._solver.absolute.primal_dual import LEVEL_GOAL, Problem, Workspace
from likeset._solver.linalg.matrix import SUMS
from likeset._typing import Array
from likeset.compiling import inner

LOWEST, HIGHEST = 0.1, 10.0  # products between these multiples of mu count as central


@inner(fastmath=SUMS)
def shift(product: float, mu: float) -> float:
    """What brings a product into [LOWEST mu, HIGHEST mu]; downwards by HIGHEST mu at most."""
    return max(LOWEST * mu - product, 0.0) + max(min(HIGHEST * mu - product, 0.0), -HIGHEST * mu)


@inner(fastmath=SUMS)
def set_goals(problem: Problem, at: Iterate, work: Workspace, step: Iterate, target: Array, stage: int) -> None:
    """The goals of one stage (0, 1, 2 for the three above); ``step`` holds the step of the stage before.

    The target mu is one number per lane, 0 in the first stage, where the step is not looked at.
    """
    cone = work.cones[GOAL]
    for m in range(target.size):
        mu, goals = target[m], work.pairs[GOALS, m]
        primal, dual, d_primal, d_dual = (
            at.parts[PRIMAL, m],
            at.parts[DUAL, m],
            step.parts[PRIMAL, m],
            step.parts[DUAL, m],
        )
        if stage == 0:
            for i in range(goals.size):
                goals[i] = 0.0
        elif stage == 1:
            for i in range(goals.size):
                goals[i] = mu - d_primal[i] * d_dual[i]
        else:
            for i in range(goals.size):
                goals[i] += shift((primal[i] + d_primal[i]) * (dual[i] + d_dual[i]), mu)
        if stage == 0 or not problem.level_is_free:
            work.level[LEVEL_GOAL, m] = 0.0
        elif stage == 1:
            work.level[LEVEL_GOAL, m] = mu - step.levels[PRIMAL, m, 0] * step.levels[DUAL, m, 0]
        else:
            work.level[LEVEL_GOAL, m] += shift(
                (at.levels[PRIMAL, m, 0] + step.levels[PRIMAL, m, 0])
                * (at.levels[DUAL, m, 0] + step.levels[DUAL, m, 0]),
                mu,
            )
    if stage == 0:
        for j in range(cone.shape[0]):
            for m in range(target.size):
                cone[j, m] = 0.0
    elif problem.bound < np.inf:
        v = work.cones[FIRST]
        ball_products(stage - 1.0, step.cone, work.cones, work.eta)
        if stage == 1:
            for j in range(cone.shape[0]):
                for m in range(target.size):
                    cone[j, m] = -v[j, m]
            for m in range(target.size):
                cone[0, m] += target[m]
        else:
            size = work.eta[SPARE]
            tail_product(v, v, size)
            for m in range(target.size):
                size[m] = np.sqrt(size[m])
                low, high = shift(v[0, m] - size[m], target[m]), shift(v[0, m] + size[m], target[m])
                cone[0, m] += 0.5 * (high + low)
                size[m] = 0.5 * (high - low) / size[m] if size[m] > 0.0 else 0.0
            for j in range(1, cone.shape[0]):
                for m in range(target.size):
                    cone[j, m] += size[m] * v[j, m]
