r"""Regularised maximum likelihood over a ball, with a certified gap.

    minimise  G(theta) = sum_k phi_k(x_k' theta) + ridge |theta|^2   subject to  |theta| <= bound.

Each iteration minimises the second-order model of G over the *same* ball (:mod:`~likeset._solver.ball_step`); a halving
line search makes G fall. The gap needs no convergence theory: G is convex, and strongly so with modulus 2 ridge, so
every tangent bounds it from below, in closed form over the ball.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from likeset._solver.ball_step import ball_step, tangent_minimum
from likeset._solver.linalg.matrix import cholesky, dot
from likeset._solver.problem import CurveTerms, SmoothTerms
from likeset._typing import EPS, Array
from likeset.compiling import inner, kernel
from likeset.curves import term_all, term_all_from

MAX_HALVINGS = 60
CENTRED = 0.01  # a point is central in {G <= level} when value - min G is at most this share of level - value
ROUNDING = 16 * EPS
SATURATED = 1e-6  # all curvature beside all slopes, over the reach of z, below which there is none to speak of
# A convex function at a point: value, size of its summands, gradient, and how to get the Hessian.
Evaluation = tuple[float, float, Array, Callable[[], Array]]


class CurveSum(NamedTuple):
    """F(theta) = sum_k phi_k(x_k'theta), phi_k as in :class:`~likeset._solver.problem.CurveTerms`."""

    X: Array
    curve: int
    a: Array
    s: Array
    origins: Array = np.empty(0)


class Goal(NamedTuple):
    """When to stop: at a gap, after so many iterations, or when it is clear whether {G <= level} meets the ball.

    Yes: theta is well inside, value - lower <= CENTRED (level - value). No: lower > level.
    """

    gap: float
    level: float = -math.inf
    iterations: int = 200


class Minimum(NamedTuple):
    """What was found: G(theta) = value, and lower <= min G is certified."""

    theta: Array
    value: float
    lower: float
    iterations: int


def curve_sum(X: Array, terms: CurveTerms) -> CurveSum:
    """The sum of curve terms, for compiled code."""
    a, s = np.ascontiguousarray(terms.a), np.ascontiguousarray(terms.s)
    origins = np.empty(0) if terms.origins is None else terms.origins
    return CurveSum(np.ascontiguousarray(X), int(terms.curve), a, s, origins)


def newton_ball(F: CurveSum, ridge: float, bound: float, start: Array, goal: Goal) -> Minimum:
    """Minimise F(theta) + ridge |theta|^2 over |theta| <= bound.

    Stops at the goal, or when rounding allows no further progress. With ridge = 0 and bound = inf nothing is certified
    (lower = -inf) and the Newton decrement decides.
    """
    theta, found = start[None].copy(), np.empty((1, 3))
    newton_balls(F, np.array([ridge]), bound, theta, goal, found, np.empty((0, 0, 0)))
    value, lower, iterations = found[0].tolist()
    return Minimum(theta[0], value, lower, int(iterations))


@kernel(allocates=True)
def newton_balls(
    F: CurveSum, ridges: Array, bound: float, thetas: Array, goal: Goal, found: Array, factors: Array
) -> None:
    """:func:`newton_ball` for several ridges, each from its row of ``thetas`` (J, d), where the minimiser goes.

    ``found`` (J, 3): value, lower bound, iterations. ``factors`` (J, d, d), or (0, ...) if not wanted: lower Cholesky
    factors of the Hessians of G there.
    """
    X, level = F.X, goal.level
    K, d = X.shape
    theta, trial, g, p, x = np.empty(d), np.empty(d), np.empty(d), np.empty(d), np.empty(d)
    H, L = np.empty((d, d)), np.empty((d, d))
    slope, weight = np.empty(K), np.empty(K)
    for j in range(ridges.size):
        ridge, left = ridges[j], goal.iterations
        for i in range(d):
            theta[i] = thetas[j, i]
        length = math.sqrt(dot(theta, theta))
        if length > bound:
            for i in range(d):
                theta[i] *= bound / length
        value, size = _evaluate(F, ridge, theta, slope, weight)
        if not value < math.inf:
            for i in range(d):
                theta[i] = 0.0
            value, size = _evaluate(F, ridge, theta, slope, weight)
        lower = -math.inf
        iteration = 0
        finished = False
        while True:
            if not finished:
                for i in range(d):
                    g[i] = 2.0 * ridge * theta[i]
                for k in range(K):
                    for i in range(d):
                        g[i] += slope[k] * X[k, i]
                lower = max(lower, value + tangent_minimum(g, theta, ridge, bound))
                if value - lower <= max(goal.gap, CENTRED * (level - value)) or iteration >= left:
                    finished = True
                if level > -math.inf and lower > level + 4.0 * ROUNDING * size:
                    finished = True
            if finished and factors.shape[0] == 0:
                break
            for i in range(d):
                for m in range(i):
                    H[i, m] = 0.0
                H[i, i] = 2.0 * ridge
            for k in range(K):
                for i in range(d):
                    scaled = weight[k] * X[k, i]
                    for m in range(i + 1):
                        H[i, m] += scaled * X[k, m]
            if finished:
                cholesky(H, 0.0, factors[j])
                break
            ball_step(g, H, theta, bound, L, p, x)
            descent = 0.0
            for i in range(d):
                descent += g[i] * p[i]
            if descent >= 0.0 or (lower == -math.inf and -descent <= 2.0 * goal.gap):
                finished = True
                continue
            step = 1.0
            moved = False
            for _ in range(MAX_HALVINGS):
                for i in range(d):
                    trial[i] = theta[i] + step * p[i]
                new_value, new_size = _evaluate(F, ridge, trial, slope, weight)
                if new_value <= value + 1e-4 * step * descent + ROUNDING * size:
                    moved = True
                    break
                step *= 0.5
            iteration += 1
            if not moved:
                _evaluate(F, ridge, theta, slope, weight)  # the curvature here, not there
                finished = True
                continue
            if -descent <= ROUNDING * size:  # the model promises less than rounding: this is the last step
                left = min(left, iteration)
            theta, trial = trial, theta
            value, size = new_value, new_size
        for i in range(d):
            thetas[j, i] = theta[i]
        found[j, 0], found[j, 1], found[j, 2] = value, lower, iteration


@inner()
def _evaluate(F: CurveSum, ridge: float, theta: Array, slope: Array, weight: Array) -> tuple[float, float]:
    """G(theta) and the sum of the absolute values of its terms; phi_k' and phi_k'' go to slope and weight."""
    X, curve, a, s, origins = F.X, F.curve, F.a, F.s, F.origins
    value, size = 0.0, 0.0
    for i in range(theta.shape[0]):
        value += ridge * theta[i] * theta[i]
    size += value
    for k in range(X.shape[0]):
        z = 0.0
        for i in range(theta.shape[0]):
            z += X[k, i] * theta[i]
        if origins.shape[0] == 0:
            part, part_size, slope[k], weight[k] = term_all(curve, a[k], s[k], z)
        else:
            part, part_size, slope[k], weight[k] = term_all_from(curve, a[k], s[k], origins[k], z)
        value += part
        size += part_size
    return value, size


@kernel()
def measured_sum(F: CurveSum, theta: Array, found: Array) -> None:
    """To found: F(theta) summed without loss, the sum of its parts' sizes, sum_k |phi_k'| |x_k|, sum_k phi_k' z_k."""
    X, curve, a, s, origins = F.X, F.curve, F.a, F.s, F.origins
    value, lost, size, reach, pull = 0.0, 0.0, 0.0, 0.0, 0.0
    for k in range(X.shape[0]):
        z, square = 0.0, 0.0
        for i in range(theta.shape[0]):
            z += X[k, i] * theta[i]
            square += X[k, i] * X[k, i]
        if origins.shape[0] == 0:
            part, part_size, slope, _ = term_all(curve, a[k], s[k], z)
        else:
            part, part_size, slope, _ = term_all_from(curve, a[k], s[k], origins[k], z)
        total = value + part
        lost += value - total + part if abs(value) >= abs(part) else part - total + value
        value = total
        size += part_size
        reach += abs(slope) * math.sqrt(square)
        pull += slope * z
    found[0], found[1], found[2], found[3] = value + lost if abs(value) < math.inf else value, size, reach, pull


def minimise_over_ball(X: Array, terms: SmoothTerms, ridge: float, bound: float, start: Array, goal: Goal) -> Minimum:
    """The same as :func:`newton_ball` for any smooth terms: curves go there, user functions are met here."""
    start = np.ascontiguousarray(start, dtype=np.float64)
    if isinstance(terms, CurveTerms):
        return newton_ball(curve_sum(X, terms), ridge, bound, start, goal)

    smooth = terms
    reach = (bound if bound < math.inf else 1.0) * np.sqrt(np.einsum("ij,ij->i", X, X))

    def evaluate(point: Array) -> Evaluation:
        heights, first, second = smooth.evaluate(X @ point)
        penalty = ridge * float(point @ point)
        gradient = X.T @ first + 2.0 * ridge * point

        def hessian() -> Array:
            weights = second
            if float(second @ reach) <= SATURATED * float(np.abs(first).sum()):
                # Far out a loss may be a straight line, which has no curvature: the one of a parabola with this
                # slope, as wide as z can go, makes steps of a sensible length.
                weights = np.maximum(second, np.abs(first) / np.maximum(reach, 1e-300))
            return np.asarray((X.T * weights) @ X + 2.0 * ridge * np.eye(X.shape[1]))

        return float(np.sum(heights)) + penalty, float(np.sum(np.abs(heights))) + penalty, gradient, hessian

    start = start * min(1.0, bound / max(float(np.linalg.norm(start)), 1e-300))
    return minimise_convex(evaluate, ridge, bound, start, goal)


def minimise_convex(
    evaluate: Callable[[Array], Evaluation], ridge: float, bound: float, start: Array, goal: Goal
) -> Minimum:
    """:func:`newton_ball` for any function that is convex with modulus 2 ridge; |start| <= bound."""
    d, theta, level = len(start), start, goal.level
    p, x, L = np.empty(d), np.empty(d), np.empty((d, d))
    with np.errstate(over="ignore", invalid="ignore"):
        value, size, g, hessian = evaluate(theta)
        if not value < math.inf:
            theta = np.zeros(d)
            value, size, g, hessian = evaluate(theta)
        lower, iteration, stalled = -math.inf, 0, False
        while True:
            lower = max(lower, value + tangent_minimum(g, theta, ridge, bound))
            enough = max(goal.gap, CENTRED * (level - value))
            if value - lower <= enough or stalled or iteration >= goal.iterations:
                break
            if level > -math.inf and lower > level + 4.0 * ROUNDING * size:
                break
            ball_step(g, hessian(), theta, bound, L, p, x)
            descent = float(g @ p)
            if descent >= 0.0 or (lower == -math.inf and -descent <= 2.0 * goal.gap):
                break
            iteration += 1
            step = 1.0
            for _ in range(MAX_HALVINGS):
                there = theta + step * p
                if (there == theta).all():  # the next point that can be written is further away, and every iteration
                    return Minimum(theta, value, lower, iteration)  # would find the same
                trial = evaluate(there)
                if trial[0] <= value + 1e-4 * step * descent + ROUNDING * size:
                    break
                step *= 0.5
            else:
                break
            stalled = -descent <= ROUNDING * size
            theta = there
            value, size, g, hessian = trial
    return Minimum(theta, value, lower, iteration)
