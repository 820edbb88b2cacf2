r"""Regularised maximum likelihood over a ball, with a certified gap.

    minimise  G(theta) = sum_k phi_k(x_k' theta) + ridge |theta|^2   subject to  |theta| <= radius.

Each iteration minimises the second-order model of G over the *same* ball: the step p solves

    (H + mu I) p = -(g + mu theta),     mu >= 0,     mu (|theta + p| - radius) = 0,

(g, H: gradient and Hessian), first with mu = 0, which is the plain Newton step and nearly always ends inside the
ball; otherwise mu is the root of 1/|theta + p(mu)| = 1/radius, found by Newton's method on that (concave) equation
with one small Cholesky factorisation per trial. A halving line search makes G fall.

The gap needs no convergence theory. G is convex, and strongly so with modulus 2 ridge, hence everywhere in the ball

    G(theta') >= G(theta) + g'(theta' - theta) + ridge |theta' - theta|^2,

and the minimum of the right-hand side over the ball has a closed form (:func:`tangent_minimum`).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from likeset._solver.problem import CallableTerms, CurveTerms
from likeset._typing import EPS, Array
from likeset.compiling import njit
from likeset.curves import term_all, term_all_from

MAX_HALVINGS = 60
CENTRED = 0.01  # a point is central in {G <= level} when value - min G is at most this share of level - value
ROUNDING = 16 * EPS
# A convex function at a point: value, size of its summands, gradient, and how to get the Hessian.
Evaluation = tuple[float, float, Array, Callable[[], Array]]


@njit(cache=True, error_model="numpy", fastmath={"reassoc", "contract"})
def cholesky_shifted(H: Array, shift: float, L: Array) -> bool:
    """Write the Cholesky factor of H + shift I to the lower triangle of L; False if not positive definite."""
    d = H.shape[0]
    for i in range(d):
        for j in range(i + 1):
            total = H[i, j]
            if i == j:
                total += shift
            for m in range(j):
                total -= L[i, m] * L[j, m]
            if i == j:
                # A pivot that is all rounding is no pivot: compare it with the diagonal it came from.
                if not total > 1e-15 * (H[i, i] + shift):
                    return False
                L[i, i] = math.sqrt(total)
            else:
                L[i, j] = total / L[j, j]
    return True


@njit(cache=True, error_model="numpy", fastmath={"reassoc", "contract"})
def solve_lower(L: Array, x: Array) -> None:
    """x <- L^-1 x."""
    for i in range(x.shape[0]):
        total = x[i]
        for j in range(i):
            total -= L[i, j] * x[j]
        x[i] = total / L[i, i]


@njit(cache=True, error_model="numpy", fastmath={"contract"})
def solve_lower_transposed(L: Array, x: Array) -> None:
    """x <- L'^-1 x, by rows of L."""
    for i in range(x.shape[0] - 1, -1, -1):
        x[i] /= L[i, i]
        for j in range(i):
            x[j] -= L[i, j] * x[i]


@njit(cache=True, error_model="numpy")
def norm(x: Array) -> float:
    """|x|."""
    total = 0.0
    for i in range(x.shape[0]):
        total += x[i] * x[i]
    return math.sqrt(total)


@njit(cache=True, error_model="numpy")
def tangent_minimum(g: Array, theta: Array, ridge: float, radius: float) -> float:
    """min over |theta'| <= radius of  g'(theta' - theta) + ridge |theta' - theta|^2  (never positive).

    The free minimiser is c = theta - g / (2 ridge), with value -|g|^2 / (4 ridge). If it lies outside the ball the
    minimiser is radius c/|c|. Multiplying out by ridge avoids the division, so that ridge = 0 gives the linear
    bound -(g'theta + radius |g|) from the same line.
    """
    inner, g_square, theta_square, c_square = 0.0, 0.0, 0.0, 0.0
    for i in range(g.shape[0]):
        inner += g[i] * theta[i]
        g_square += g[i] * g[i]
        theta_square += theta[i] * theta[i]
        c_square += (2.0 * ridge * theta[i] - g[i]) ** 2  # |2 ridge c|^2
    if g_square == 0.0:
        return 0.0
    if ridge > 0.0 and (math.isinf(radius) or c_square <= (2.0 * ridge * radius) ** 2):
        return -g_square / (4.0 * ridge)
    if math.isinf(radius):
        return -math.inf
    both = math.sqrt(c_square) + math.sqrt(g_square)
    return min(0.0, (2.0 * (ridge * theta_square - inner) / both - radius) * (0.5 * both - ridge * radius))


@njit(cache=True, error_model="numpy")
def ball_step(g: Array, H: Array, theta: Array, radius: float, L: Array, p: Array, x: Array) -> None:
    """Write to p the step to the minimiser of g'p + p'Hp/2 over |theta + p| <= radius; L and x are workspace."""
    d = theta.shape[0]
    largest = 0.0
    inner = 0.0
    for i in range(d):
        largest = max(largest, H[i, i])
        inner += g[i] * theta[i]
    # Where H is singular a tiny shift picks, among the equally good steps, nearly the shortest.
    tiny = 1e-13 * largest
    if tiny == 0.0:
        tiny = norm(g) / radius if radius < math.inf else norm(g)
        if tiny == 0.0:
            p[:] = 0.0
            return
    mu = 0.0
    if norm(theta) >= 0.999 * radius and inner < 0.0:  # at the sphere: the multiplier hardly moves between calls
        mu = -inner / (radius * radius)
    shift = 0.0
    for _ in range(100):
        while not cholesky_shifted(H, mu + shift, L):
            shift = max(tiny, 10.0 * shift)
            if not shift < math.inf:  # H holds inf or nan: no step
                p[:] = 0.0
                return
        for i in range(d):
            p[i] = -(g[i] + mu * theta[i])
        solve_lower(L, p)
        solve_lower_transposed(L, p)
        for i in range(d):
            x[i] = theta[i] + p[i]
        length = norm(x)
        if mu == 0.0 and length <= radius:
            return
        if abs(length - radius) <= 1e-9 * radius:
            break
        solve_lower(L, x)
        ratio = length / norm(x)
        mu = max(0.0, mu + ratio * ratio * (length - radius) / radius)
    for i in range(d):
        p[i] = (theta[i] + p[i]) * (radius / length) - theta[i]


@njit(cache=True, error_model="numpy")
def newton_ball(
    X: Array,
    curve: int,
    a: Array,
    s: Array,
    ridge: float,
    radius: float,
    start: Array,
    gap_target: float,
    max_iterations: int,
) -> tuple[Array, float, float, int]:
    """Minimise sum_k [a_k A(x_k'theta) - s_k x_k'theta] + ridge |theta|^2 over |theta| <= radius.

    Returns (theta, value, lower_bound, iterations), where lower_bound <= min G is certified. Stops when
    value - lower_bound <= gap_target, when rounding allows no further progress, or after ``max_iterations``. With
    ridge = 0 and radius = inf no bound exists (lower_bound = -inf) and the Newton decrement decides.
    """
    none = np.empty(0)
    return newton_ball_level(X, curve, a, s, none, ridge, radius, start, gap_target, -math.inf, max_iterations)


@njit(cache=True, error_model="numpy")
def newton_ball_level(
    X: Array,
    curve: int,
    a: Array,
    s: Array,
    origins: Array,
    ridge: float,
    radius: float,
    start: Array,
    gap_target: float,
    level: float,
    max_iterations: int,
) -> tuple[Array, float, float, int]:
    """:func:`newton_ball` that also stops when the answer to "does {G <= level} meet the ball?" is clear.

    Terms may be counted from ``origins`` (none: an empty array), see :class:`~likeset._solver.problem.CurveTerms`.
    Yes: theta is well inside, value - lower_bound <= CENTRED (level - value). No: lower_bound > level.
    """
    K, d = X.shape
    theta = start.copy()
    trial, g, p, x = np.empty(d), np.empty(d), np.empty(d), np.empty(d)
    H, L = np.empty((d, d)), np.empty((d, d))
    slope, weight = np.empty(K), np.empty(K)
    length = norm(theta)
    if length > radius:
        theta *= radius / length
    value, size = _evaluate(X, curve, a, s, origins, ridge, theta, slope, weight)
    if not value < math.inf:
        theta[:] = 0.0
        value, size = _evaluate(X, curve, a, s, origins, ridge, theta, slope, weight)
    lower = -math.inf
    iteration = 0
    while True:
        for i in range(d):
            g[i] = 2.0 * ridge * theta[i]
        for k in range(K):
            for i in range(d):
                g[i] += slope[k] * X[k, i]
        lower = max(lower, value + tangent_minimum(g, theta, ridge, radius))
        if value - lower <= max(gap_target, CENTRED * (level - value)) or iteration >= max_iterations:
            break
        if level > -math.inf and lower > level + 4.0 * ROUNDING * size:
            break
        for i in range(d):
            for j in range(i):
                H[i, j] = 0.0
            H[i, i] = 2.0 * ridge
        for k in range(K):
            for i in range(d):
                scaled = weight[k] * X[k, i]
                for j in range(i + 1):
                    H[i, j] += scaled * X[k, j]
        ball_step(g, H, theta, radius, L, p, x)
        descent = 0.0
        for i in range(d):
            descent += g[i] * p[i]
        if descent >= 0.0 or (lower == -math.inf and -descent <= 2.0 * gap_target):
            break
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
            break
        stalled = -descent <= ROUNDING * size  # the model promises less than rounding: this is the last step
        theta, trial = trial, theta
        value, size = new_value, new_size
        if stalled:
            max_iterations = min(max_iterations, iteration)
    return theta, value, lower, iteration


@njit(cache=True, error_model="numpy")
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
    terms: CurveTerms | CallableTerms,
    ridge: float,
    radius: float,
    start: Array,
    gap_target: float,
    max_iterations: int = 200,
    level: float = -math.inf,
) -> tuple[Array, float, float, int]:
    """The same as :func:`newton_ball_level` for any smooth terms: curves go there, user functions are met here."""
    start = np.ascontiguousarray(start, dtype=np.float64)
    if isinstance(terms, CurveTerms):
        X, a, s = np.ascontiguousarray(X), np.ascontiguousarray(terms.a), np.ascontiguousarray(terms.s)
        curve, origins = int(terms.curve), np.empty(0) if terms.origins is None else terms.origins
        result: tuple[Array, float, float, int] = newton_ball_level(
            X, curve, a, s, origins, ridge, radius, start, gap_target, level, max_iterations
        )
        return result

    def evaluate(point: Array) -> Evaluation:
        heights, first, second = terms.evaluate(X @ point)
        penalty = ridge * float(point @ point)
        gradient = X.T @ first + 2.0 * ridge * point

        def hessian() -> Array:
            return np.asarray((X.T * second) @ X + 2.0 * ridge * np.eye(X.shape[1]))

        return float(np.sum(heights)) + penalty, float(np.sum(np.abs(heights))) + penalty, gradient, hessian

    start = start * min(1.0, radius / max(float(np.linalg.norm(start)), 1e-300))
    return minimise_convex(evaluate, start, ridge, radius, gap_target, max_iterations, level)


def minimise_convex(
    evaluate: Callable[[Array], Evaluation],
    start: Array,
    ridge: float,
    radius: float,
    gap_target: float,
    max_iterations: int,
    level: float,
) -> tuple[Array, float, float, int]:
    """:func:`newton_ball_level` for any function that is convex with modulus 2 ridge; |start| <= radius."""
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
            lower = max(lower, value + tangent_minimum(g, theta, ridge, radius))
            enough = max(gap_target, CENTRED * (level - value))
            if value - lower <= enough or stalled or iteration >= max_iterations:
                break
            if level > -math.inf and lower > level + 4.0 * ROUNDING * size:
                break
            ball_step(g, hessian(), theta, radius, L, p, x)
            descent = float(g @ p)
            if descent >= 0.0 or (lower == -math.inf and -descent <= 2.0 * gap_target):
                break
            iteration += 1
            step = 1.0
            for _ in range(MAX_HALVINGS):
                trial = evaluate(theta + step * p)
                if trial[0] <= value + 1e-4 * step * descent + ROUNDING * size:
                    break
                step *= 0.5
            else:
                break
            stalled = -descent <= ROUNDING * size
            theta = theta + step * p
            value, size, g, hessian = trial
    return theta, value, lower, iteration
