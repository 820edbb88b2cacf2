r"""Regularised maximum likelihood over a ball, with a certified gap.

    minimise  G(theta) = sum_k phi_k(x_k' theta) + ridge |theta|^2   subject to  |theta| <= bound.

Each iteration minimises the second-order model of G over the *same* ball: the step p solves

    (H + mu I) p = -(g + mu theta),     mu >= 0,     mu (|theta + p| - bound) = 0,

(g, H: gradient and Hessian), first with mu = 0, which is the plain Newton step and nearly always ends inside the
ball; otherwise mu is the root of 1/|theta + p(mu)| = 1/bound, found by Newton's method on that (concave) equation
with one small Cholesky factorisation per trial. A halving line search makes G fall.

The gap needs no convergence theory. G is convex, and strongly so with modulus 2 ridge, hence everywhere in the ball

    G(theta') >= G(theta) + g'(theta' - theta) + ridge |theta' - theta|^2,

and the minimum of the right-hand side over the ball has a closed form (:func:`tangent_minimum`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from likeset._solver.linalg.matrix import cholesky, dot, solve_lower, solve_lower_transposed
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


@kernel()
def tangent_minimum(g: Array, theta: Array, ridge: float, bound: float) -> float:
    """min over |theta'| <= bound of  g'(theta' - theta) + ridge |theta' - theta|^2  (never positive).

    The free minimiser is c = theta - g / (2 ridge), with value -|g|^2 / (4 ridge). If it lies outside the ball the
    minimiser is bound c/|c|. Multiplying out by ridge avoids the division, so that ridge = 0 gives the
    linear -(g'theta + bound |g|) from the same line.
    """
    inner, g_square, theta_square, c_square = 0.0, 0.0, 0.0, 0.0
    for i in range(g.shape[0]):
        inner += g[i] * theta[i]
        g_square += g[i] * g[i]
        theta_square += theta[i] * theta[i]
        c_square += (2.0 * ridge * theta[i] - g[i]) ** 2  # |2 ridge c|^2
    if g_square == 0.0:
        return 0.0
    if ridge > 0.0 and (math.isinf(bound) or c_square <= (2.0 * ridge * bound) ** 2):
        return -g_square / (4.0 * ridge)
    if math.isinf(bound):
        return -math.inf
    both = math.sqrt(c_square) + math.sqrt(g_square)
    return min(0.0, (2.0 * (ridge * theta_square - inner) / both - bound) * (0.5 * both - ridge * bound))


@kernel()
def ball_step(g: Array, H: Array, theta: Array, bound: float, L: Array, p: Array, x: Array) -> None:
    """Write to p the step to the minimiser of g'p + p'Hp/2 over |theta + p| <= bound; L and x are workspace."""
    d = theta.shape[0]
    largest = 0.0
    inner = 0.0
    for i in range(d):
        largest = max(largest, H[i, i])
        inner += g[i] * theta[i]
    # Where H is singular a tiny shift picks, among the equally good steps, nearly the shortest.
    tiny = 1e-13 * largest
    if tiny == 0.0:
        tiny = math.sqrt(dot(g, g)) / bound if bound < math.inf else math.sqrt(dot(g, g))
        if tiny == 0.0:
            for i in range(d):
                p[i] = 0.0
            return
    mu = 0.0
    # At the sphere the multiplier hardly moves between calls.
    if math.sqrt(dot(theta, theta)) >= 0.999 * bound and inner < 0.0:
        mu = -inner / (bound * bound)
    shift = 0.0
    for _ in range(100):
        while not cholesky(H, mu + shift, L):
            shift = max(tiny, 10.0 * shift)
            if not shift < math.inf:  # H holds inf or nan: no step
                for i in range(d):
                    p[i] = 0.0
                return
        for i in range(d):
            p[i] = -(g[i] + mu * theta[i])
        solve_lower(L, p)
        solve_lower_transposed(L, p)
        for i in range(d):
            x[i] = theta[i] + p[i]
        length = math.sqrt(dot(x, x))
        if mu == 0.0 and length <= bound:
            return
        if abs(length - bound) <= 1e-9 * bound:
            break
        solve_lower(L, x)
        ratio = length / math.sqrt(dot(x, x))
        mu = max(0.0, mu + ratio * ratio * (length - bound) / bound)
    for i in range(d):
        p[i] = (theta[i] + p[i]) * (bound / length) - theta[i]


class CurveSum(NamedTuple):
    """F(theta) = sum_k phi_k(x_k'theta), phi_k as in :class:`~likeset._solver.problem.CurveTerms`."""

    X: Array
    curve: int
    a: Array
    s: Array
    origins: Array


class Goal(NamedTuple):
    """When to stop: at a gap, after so many iterations, or when it is clear whether {G <= level} meets the ball.

    Yes: theta is well inside, value - lower <= CENTRED (level - value). No: lower > level.
    """

    gap: float
    level: float = -math.inf
    iterations: int = 200


def curve_sum(X: Array, terms: CurveTerms) -> CurveSum:
    """The sum of curve terms, for compiled code."""
    a, s = np.ascontiguousarray(terms.a), np.ascontiguousarray(terms.s)
    origins = np.empty(0) if terms.origins is None else terms.origins
    return CurveSum(np.ascontiguousarray(X), int(terms.curve), a, s, origins)


def newton_ball(
    X: Array,
    curve: int,
    a: Array,
    s: Array,
    ridge: float,
    bound: float,
    start: Array,
    gap_target: float,
    max_iterations: int,
) -> tuple[Array, float, float, int]:
    """Minimise sum_k [a_k A(x_k'theta) - s_k x_k'theta] + ridge |theta|^2 over |theta| <= bound.

    Returns (theta, value, lower, iterations), where lower <= min G is certified. Stops when
    value - lower <= gap_target, when rounding allows no further progress, or after ``max_iterations``. With
    ridge = 0 and bound = inf nothing is certified (lower = -inf) and the Newton decrement decides.
    """
    goal = Goal(gap_target, iterations=max_iterations)
    return newton_ball_level(CurveSum(X, curve, a, s, np.empty(0)), ridge, bound, start, goal)


def newton_ball_level(
    F: CurveSum, ridge: float, bound: float, start: Array, goal: Goal
) -> tuple[Array, float, float, int]:
    """:func:`newton_ball` for terms that may be counted from origins, and other goals."""
    theta, found = start[None].copy(), np.empty((1, 3))
    newton_balls(F, np.array([ridge]), bound, theta, goal, found, np.empty((0, 0, 0)))
    value, lower, iterations = found[0].tolist()
    return theta[0], value, lower, int(iterations)


@kernel()
def newton_balls(
    F: CurveSum, ridges: Array, bound: float, thetas: Array, goal: Goal, found: Array, factors: Array
) -> None:
    """:func:`newton_ball_level` for several ridges, each from its row of ``thetas`` (J, d), where the minimiser goes.

    ``found`` (J, 3): value, lower bound, iterations. ``factors`` (J, d, d), or (0, ...) if not wanted: lower Cholesky
    factors of the Hessians of G there.
    """
    X, a, s, origins = F.X, F.a, F.s, F.origins
    K, d = X.shape
    curve, level = F.curve, goal.level
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
        value, size = _evaluate(X, curve, a, s, origins, ridge, theta, slope, weight)
        if not value < math.inf:
            for i in range(d):
                theta[i] = 0.0
            value, size = _evaluate(X, curve, a, s, origins, ridge, theta, slope, weight)
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
                new_value, new_size = _evaluate(X, curve, a, s, origins, ridge, trial, slope, weight)
                if new_value <= value + 1e-4 * step * descent + ROUNDING * size:
                    moved = True
                    break
                step *= 0.5
            iteration += 1
            if not moved:
                _evaluate(X, curve, a, s, origins, ridge, theta, slope, weight)  # the curvature here, not there
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
def _evaluate(
    X: Array, curve: int, a: Array, s: Array, origins: Array, ridge: float, theta: Array, slope: Array, weight: Array
) -> tuple[float, float]:
    """G(theta) and the sum of the absolute values of its terms; phi_k' and phi_k'' go to slope and weight."""
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


def minimise_over_ball(
    X: Array,
    terms: SmoothTerms,
    ridge: float,
    bound: float,
    start: Array,
    gap_target: float,
    max_iterations: int = 200,
    level: float = -math.inf,
) -> tuple[Array, float, float, int]:
    """The same as :func:`newton_ball_level` for any smooth terms: curves go there, user functions are met here."""
    start = np.ascontiguousarray(start, dtype=np.float64)
    if isinstance(terms, CurveTerms):
        return newton_ball_level(curve_sum(X, terms), ridge, bound, start, Goal(gap_target, level, max_iterations))

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
    return minimise_convex(evaluate, start, ridge, bound, gap_target, max_iterations, level)


def minimise_convex(
    evaluate: Callable[[Array], Evaluation],
    start: Array,
    ridge: float,
    bound: float,
    gap_target: float,
    max_iterations: int,
    level: float,
) -> tuple[Array, float, float, int]:
    """:func:`newton_ball_level` for any function that is convex with modulus 2 ridge; |start| <= bound."""
    d = len(start)
    theta = start
    p, x, L = np.empty(d), np.empty(d), np.empty((d, d))
    with np.errstate(over="ignore", invalid="ignore"):
        value, size, g, hessian = evaluate(theta)
        if not value < math.inf:
            theta = np.zeros(d)
            value, size, g, hessian = evaluate(theta)
        lower, iteration, stalled = -math.inf, 0, False
        while True:
            lower = max(lower, value + tangent_minimum(g, theta, ridge, bound))
            enough = max(gap_target, CENTRED * (level - value))
            if value - lower <= enough or stalled or iteration >= max_iterations:
                break
            if level > -math.inf and lower > level + 4.0 * ROUNDING * size:
                break
            ball_step(g, hessian(), theta, bound, L, p, x)
            descent = float(g @ p)
            if descent >= 0.0 or (lower == -math.inf and -descent <= 2.0 * gap_target):
                break
            iteration += 1
            step = 1.0
            for _ in range(MAX_HALVINGS):
                there = theta + step * p
                if (there == theta).all():  # the next point that can be written is further away, and every iteration
                    return theta, value, lower, iteration  # would find the same
                trial = evaluate(there)
                if trial[0] <= value + 1e-4 * step * descent + ROUNDING * size:
                    break
                step *= 0.5
            else:
                break
            stalled = -descent <= ROUNDING * size
            theta = there
            value, size, g, hessian = trial
    return theta, value, lower, iteration
