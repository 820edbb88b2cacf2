r"""The products (variable times multiplier) that a Newton step aims at.

* ``aim_at``             all products equal: 0 for the predictor, mu for a centring step;
* ``aim_with_curvature`` Mehrotra: mu minus the products of the predictor's changes, which Newton's linear
  model leaves out;
* ``pull_in_outliers``   Gondzio: usually one or two products alone limit the length of a step. Look a little
  further than the step can go, and correct the products that would leave [1/10, 10] times mu.

For the ball, the product of its scaled primal and dual vectors p and q is the Jordan product
p o q = (p'q, p_0 q_1 + q_0 p_1), whose two eigenvalues v_0 -+ |v_1| take the place of the product.
"""

from __future__ import annotations

import numpy as np

from likeset.support.ball_cone import scale, unscale
from likeset.support.dense import compiled
from likeset.support.primal_dual import Iterate, Problem, Workspace
from likeset.support.terms import Array

NARROW = 0.1  # products outside [NARROW, 1 / NARROW] times mu are outliers


@compiled
def aim_at(work: Workspace, target: float) -> None:
    """Aim at all products equal to target."""
    work.product_above[:] = target
    work.product_below[:] = target
    work.scalars[3] = target
    work.cone_product[:] = 0.0
    work.cone_product[0] = target


@compiled
def jordan_product(p: Array, q: Array, out: Array) -> None:
    """Set out = p o q; out may be p."""
    total = 0.0
    for j in range(p.size):
        total += p[j] * q[j]
    head = p[0]
    for j in range(1, p.size):
        out[j] = head * q[j] + q[0] * p[j]
    out[0] = total


@compiled
def aim_with_curvature(problem: Problem, work: Workspace, predictor: Iterate, target: float) -> None:
    """Aim at the target less the products of the predictor's changes."""
    for i in range(problem.weights.size):
        work.product_above[i] = target - predictor.above[i] * predictor.dual_above[i]
        work.product_below[i] = target - predictor.below[i] * predictor.dual_below[i]
    work.scalars[3] = target - predictor.level[0] * predictor.level[1]
    if problem.radius < np.inf:
        unscale(work.cone_point, work.scalars[2], predictor.ball, work.cone_a)
        scale(work.cone_point, work.scalars[2], predictor.dual_ball, work.cone_b)
        jordan_product(work.cone_a, work.cone_b, work.cone_product)
        for j in range(work.cone_product.size):
            work.cone_product[j] = -work.cone_product[j]
        work.cone_product[0] += target


@compiled
def correction(product: float, target: float) -> float:
    """What to add to a product to bring it back to [NARROW, 1 / NARROW] target, not too much at once."""
    if product < NARROW * target:
        return NARROW * target - product
    return max(min(target / NARROW - product, 0.0), -target / NARROW)


@compiled
def pull_in_outliers(
    problem: Problem, at: Iterate, work: Workspace, step: Iterate, length: float, target: float
) -> None:
    """Correct the aims by the outliers among the products that a step of this length would give."""
    for i in range(problem.weights.size):
        work.product_above[i] += correction(
            (at.above[i] + length * step.above[i]) * (at.dual_above[i] + length * step.dual_above[i]), target
        )
        work.product_below[i] += correction(
            (at.below[i] + length * step.below[i]) * (at.dual_below[i] + length * step.dual_below[i]), target
        )
    work.scalars[3] += correction(
        (at.level[0] + length * step.level[0]) * (at.level[1] + length * step.level[1]), target
    )
    if problem.radius < np.inf:
        p, q, eta = work.cone_a, work.cone_b, work.scalars[2]
        for j in range(p.size):
            p[j] = at.ball[j] + length * step.ball[j]
            q[j] = at.dual_ball[j] + length * step.dual_ball[j]
        unscale(work.cone_point, eta, p, p)
        scale(work.cone_point, eta, q, q)
        jordan_product(p, q, p)
        size = 0.0
        for j in range(1, p.size):
            size += p[j] * p[j]
        size = np.sqrt(size)
        high, low = correction(p[0] + size, target), correction(p[0] - size, target)
        work.cone_product[0] += 0.5 * (high + low)
        if size > 0.0:
            for j in range(1, p.size):
                work.cone_product[j] += 0.5 * (high - low) * p[j] / size
