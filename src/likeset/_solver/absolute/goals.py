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

from likeset._solver.absolute.ball_cone import jordan_product, scale, tail_product
from likeset._solver.absolute.primal_dual import Iterate, Problem, Workspace
from likeset._solver.linalg.dense import inner
from likeset._typing import Array

LOWEST, HIGHEST = 0.1, 10.0  # products between these multiples of mu count as central


@inner
def aim_at_zero(work: Workspace) -> None:
    """Goals of the predictor."""
    work.goals[:] = 0.0
    work.cone_goal[:] = 0.0
    work.scalars[4] = 0.0


@inner
def aim_with_curvature(problem: Problem, work: Workspace, step: Iterate, target: Array) -> None:
    """Goals of the corrector: target (one number per lane) minus the products of the predictor, held in ``step``."""
    goals, parts, duals, cone = work.goals, step.parts, step.duals, work.cone_goal
    for m in range(target.size):
        for i in range(goals.shape[1]):
            goals[m, i] = target[m] - parts[m, i] * duals[m, i]
    if problem.level_is_free:
        for m in range(target.size):
            work.scalars[4, m] = target[m] - step.level[0, m] * step.level[1, m]
    if problem.radius < np.inf:
        scale(work.cone_point, work.scalars[3], -1.0, step.ball, work.cone_a)
        scale(work.cone_point, work.scalars[2], 1.0, step.dual_ball, work.cone_b)
        jordan_product(work.cone_a, work.cone_b)
        for j in range(cone.shape[0]):
            for m in range(target.size):
                cone[j, m] = -work.cone_a[j, m]
        for m in range(target.size):
            cone[0, m] += target[m]


@inner
def shift(product: float, mu: float) -> float:
    """What brings a product into [LOWEST mu, HIGHEST mu]; downwards by HIGHEST mu at most."""
    return max(LOWEST * mu - product, 0.0) + max(min(HIGHEST * mu - product, 0.0), -HIGHEST * mu)


@inner
def aim_at_centre(problem: Problem, at: Iterate, work: Workspace, step: Iterate, target: Array) -> None:
    """Shift the corrector's goals by what its full step, held in ``step``, leaves to be desired."""
    goals, parts, duals, cone = work.goals, at.parts, at.duals, work.cone_goal
    step_parts, step_duals = step.parts, step.duals
    for m in range(target.size):
        mu = target[m]
        for i in range(goals.shape[1]):
            goals[m, i] += shift((parts[m, i] + step_parts[m, i]) * (duals[m, i] + step_duals[m, i]), mu)
    if problem.level_is_free:
        for m in range(target.size):
            product = (at.level[0, m] + step.level[0, m]) * (at.level[1, m] + step.level[1, m])
            work.scalars[4, m] += shift(product, target[m])
    if problem.radius < np.inf:
        v, other = work.cone_a, work.cone_b
        scale(work.cone_point, work.scalars[3], -1.0, step.ball, v)
        scale(work.cone_point, work.scalars[2], 1.0, step.dual_ball, other)
        for j in range(cone.shape[0]):
            for m in range(target.size):
                v[j, m] += work.cone_dual[j, m]
        for j in range(cone.shape[0]):
            for m in range(target.size):
                other[j, m] += work.cone_dual[j, m]
        jordan_product(v, other)
        size = tail_product(v, v)
        for m in range(target.size):
            size[m] = np.sqrt(size[m])
            low, high = shift(v[0, m] - size[m], target[m]), shift(v[0, m] + size[m], target[m])
            cone[0, m] += 0.5 * (high + low)
            size[m] = 0.5 * (high - low) / size[m] if size[m] > 0.0 else 0.0
        for j in range(1, cone.shape[0]):
            for m in range(target.size):
                cone[j, m] += size[m] * v[j, m]
