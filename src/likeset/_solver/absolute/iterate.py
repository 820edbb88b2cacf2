r"""Variables and multipliers of the interior point methods, all lanes: how far a step may go, and taking it.

One type serves joint sets and mixtures: a joint set has one level, whose slack and multiplier are those of a single
window, and its minimum problem has none. Few arrays with named rows, instead of one array for every name: what is
compiled grows with the number of arrays that go in and out of functions.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from likeset._solver.absolute.ball_cone import SPARE, boundary_rate
from likeset._solver.absolute.points import INVERSE_DUALS, INVERSE_PARTS
from likeset._solver.linalg.matrix import SUMS
from likeset._typing import EPS, Array
from likeset.compiling import inner

PRIMAL, DUAL = 0, 1


class Iterate(NamedTuple):
    """Primal and dual variables of all lanes; the same type holds Newton directions.

    delta    step from the centre, (d, lanes)
    parts    PRIMAL: r, then t, the parts of the residuals above and below the prediction; DUAL: their multipliers
             lam w - u, then lam w + u, (2, lanes, 2n)
    levels   PRIMAL: slack s, DUAL: multiplier v (lam, in a joint set) of every level, (2, lanes, W)
    cone     PRIMAL: (bound, theta), DUAL: its multiplier y, (2, d + 1, lanes)
    height   level of a mixture's minimum problem, (lanes,)
    """

    delta: Array
    parts: Array
    levels: Array
    cone: Array
    height: Array


def new_iterate(d: int, n: int, W: int, lanes: int) -> Iterate:
    """An iterate of zeros for dimension d, n points and W levels.

    Kernels are given their memory: compiling what would allocate it in them takes a second.
    """
    return Iterate(
        np.zeros((d, lanes)),
        np.zeros((2, lanes, 2 * n)),
        np.zeros((2, lanes, W)),
        np.zeros((2, d + 1, lanes)),
        np.zeros(lanes),
    )


@inner(fastmath=SUMS)
def set_ball(at: Iterate, m: int, centre: Array, bound: float, mu: float) -> None:
    """Set the ball's vectors of a lane by its delta, to the product mu."""
    primal, dual = at.cone[PRIMAL], at.cone[DUAL]
    square = 0.0
    for j in range(centre.size):
        primal[1 + j, m] = centre[j] + at.delta[j, m]
        square += primal[1 + j, m] ** 2
    factor = mu / max(bound * bound - square, EPS * bound * bound)
    primal[0, m], dual[0, m] = bound, factor * bound
    for j in range(centre.size):
        dual[1 + j, m] = -factor * primal[1 + j, m]


@inner(fastmath=SUMS)
def largest_rate(step: Array, inverse: Array) -> float:
    """The largest -step / variable, at least 0; four chains of maxima run in parallel."""
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    n = step.size // 4
    for i in range(n):
        a = max(a, -step[i] * inverse[i])
        b = max(b, -step[n + i] * inverse[n + i])
        c = max(c, -step[2 * n + i] * inverse[2 * n + i])
        d = max(d, -step[3 * n + i] * inverse[3 * n + i])
    for i in range(4 * n, step.size):
        a = max(a, -step[i] * inverse[i])
    return max(max(a, b), max(c, d))


@inner(fastmath=SUMS)
def longest_step(at: Iterate, pairs: Array, eta: Array, step: Iterate, out: Array) -> None:
    """Longest multiple of the step that stays in all cones (inf if there is no limit), per lane.

    One length for primal and dual variables: two lengths zigzag along the curved side of the ball. ``pairs`` holds
    the reciprocals of the points' variables, ``eta`` scratch.
    """
    _, lanes, W = at.levels.shape
    of_ball, of_dual, spare, more = eta[SPARE], eta[SPARE + 1], eta[SPARE + 2], eta[SPARE + 3]
    boundary_rate(at.cone[PRIMAL], step.cone[PRIMAL], spare, more, of_ball)
    boundary_rate(at.cone[DUAL], step.cone[DUAL], spare, more, of_dual)
    for m in range(lanes):
        primal = largest_rate(step.parts[PRIMAL, m], pairs[INVERSE_PARTS, m])
        dual = largest_rate(step.parts[DUAL, m], pairs[INVERSE_DUALS, m])
        rate = max(max(of_ball[m], of_dual[m]), max(primal, dual))
        for side in range(2):
            for k in range(W):
                rate = max(rate, -step.levels[side, m, k] / at.levels[side, m, k])
        out[m] = 1.0 / rate


@inner(fastmath=SUMS)
def gap_after(at: Iterate, step: Iterate, length: Array, gap: Array) -> None:
    """Sum of all products after a multiple of the step: the duality gap of feasible iterates."""
    for m in range(length.size):
        gap[m] = add_products(at.parts, step.parts, m, length[m]) + add_products(at.levels, step.levels, m, length[m])
    cone, step_cone = at.cone, step.cone
    for j in range(cone.shape[1]):
        for m in range(length.size):
            primal = cone[PRIMAL, j, m] + length[m] * step_cone[PRIMAL, j, m]
            gap[m] += primal * (cone[DUAL, j, m] + length[m] * step_cone[DUAL, j, m])


@inner(fastmath=SUMS)
def add_products(x: Array, dx: Array, m: int, length: float) -> float:
    """The sum of (x + length dx) of the primal side times that of the dual side, in lane m."""
    total = 0.0
    for i in range(x.shape[2]):
        total += (x[PRIMAL, m, i] + length * dx[PRIMAL, m, i]) * (x[DUAL, m, i] + length * dx[DUAL, m, i])
    return total


@inner(fastmath=SUMS)
def move(at: Iterate, step: Iterate, length: Array) -> None:
    """Add a multiple of the step to the iterate."""
    for side in range(2):
        for m in range(length.size):
            for i in range(at.parts.shape[2]):
                at.parts[side, m, i] += length[m] * step.parts[side, m, i]
            for k in range(at.levels.shape[2]):
                at.levels[side, m, k] += length[m] * step.levels[side, m, k]
        for j in range(at.cone.shape[1]):
            for m in range(length.size):
                at.cone[side, j, m] += length[m] * step.cone[side, j, m]
    for j in range(at.delta.shape[0]):
        for m in range(length.size):
            at.delta[j, m] += length[m] * step.delta[j, m]
    for m in range(length.size):
        at.height[m] += length[m] * step.height[m]


@inner()
def copy_lane(source: Iterate, i: int, out: Iterate, m: int) -> None:
    """Copy lane i of an iterate to lane m of another."""
    for side in range(2):
        for k in range(out.parts.shape[2]):
            out.parts[side, m, k] = source.parts[side, i, k]
        for k in range(out.levels.shape[2]):
            out.levels[side, m, k] = source.levels[side, i, k]
        for j in range(out.cone.shape[1]):
            out.cone[side, j, m] = source.cone[side, j, i]
    for j in range(out.delta.shape[0]):
        out.delta[j, m] = source.delta[j, i]
    out.height[m] = source.height[i]


@inner()
def clear_lane(step: Iterate, m: int) -> None:
    """Set a direction to zero in one lane (it may hold NaN, which no multiple of 0 removes)."""
    for side in range(2):
        for k in range(step.parts.shape[2]):
            step.parts[side, m, k] = 0.0
        for k in range(step.levels.shape[2]):
            step.levels[side, m, k] = 0.0
        for j in range(step.cone.shape[1]):
            step.cone[side, j, m] = 0.0
    for j in range(step.delta.shape[0]):
        step.delta[j, m] = 0.0
    step.height[m] = 0.0
