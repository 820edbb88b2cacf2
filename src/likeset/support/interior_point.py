r"""Path following for sums of absolute values: the minimum, the analytic centre, and the support function.

The variables and the Newton system are those of :mod:`~likeset.support.primal_dual`. All three tasks follow a
central path, the curve of points whose products (variable times multiplier) all equal mu, with Mehrotra's
predictor and corrector: a step towards mu = 0 tells how far one can get, the second step aims there and
corrects for the curvature seen by the first.

The central path of  min F  passes through the analytic centres of the sublevel sets of F, and that centre is
where the paths of all directions a begin. So a start at the analytic centre of the set serves all
directions, does not depend on units, and the first Newton step of all directions shares one factorisation.
"""

from __future__ import annotations

import numpy as np

from likeset.support.ball_cone import boundary_step
from likeset.support.dense import add_transposed, compiled, copy, dot, gather, multiply, sum_by_owner
from likeset.support.primal_dual import (
    Iterate,
    Problem,
    Workspace,
    copy_iterate,
    factorise,
    new_iterate,
    new_workspace,
    newton_step,
)
from likeset.support.terms import Array, IntArray

EPS = float(np.finfo(np.float64).eps)
STEP_FRACTION = 0.99  # of the way to the boundary
SHORTEST_STEP = 1e-7  # a shorter step means that rounding has taken over
FIRST_STEP = 0.7  # part of the way to the boundary taken by the shared first step
MAX_ITERATIONS = 60


@compiled
def longest_step(problem: Problem, at: Iterate, work: Workspace, step: Iterate, level_is_free: bool) -> float:
    """Longest multiple of the step that stays in all cones (inf if there is no limit).

    One length for primal and dual variables: two lengths zigzag along the curved side of the ball.
    """
    n = problem.weights.size
    r, t, q, v = 0.0, 0.0, 0.0, 0.0  # four chains of maxima run in parallel
    for i in range(n):
        r = max(r, -step.parts[i] * work.inverse_parts[i])
        t = max(t, -step.parts[n + i] * work.inverse_parts[n + i])
        q = max(q, -step.duals[i] * work.inverse_duals[i])
        v = max(v, -step.duals[n + i] * work.inverse_duals[n + i])
    rate = max(max(r, t), max(q, v))
    if level_is_free:
        rate = max(rate, max(-step.level[0] / at.level[0], -step.level[1] / at.level[1]))
    length = 1.0 / rate if rate > 0.0 else np.inf
    if problem.radius < np.inf:
        length = min(length, boundary_step(at.ball, step.ball))
        length = min(length, boundary_step(at.dual_ball, step.dual_ball))
    return length


@compiled
def gap_after(problem: Problem, at: Iterate, step: Iterate, length: float, level_is_free: bool) -> float:
    """Sum of all products after a multiple of the step: the duality gap of feasible iterates."""
    gap = 0.0
    for i in range(at.parts.size):
        gap += (at.parts[i] + length * step.parts[i]) * (at.duals[i] + length * step.duals[i])
    if level_is_free:
        gap += (at.level[1] + length * step.level[1]) * (at.level[0] + length * step.level[0])
    if problem.radius < np.inf:
        for j in range(at.ball.size):
            gap += (at.ball[j] + length * step.ball[j]) * (at.dual_ball[j] + length * step.dual_ball[j])
    return gap


@compiled
def add_multiple(v: Array, factor: float, w: Array) -> None:
    """Add factor * w to v."""
    for i in range(v.size):
        v[i] += factor * w[i]


@compiled
def move(at: Iterate, step: Iterate, length: float) -> None:
    """Add a multiple of the step to the iterate."""
    add_multiple(at.delta, length, step.delta)
    add_multiple(at.parts, length, step.parts)
    add_multiple(at.duals, length, step.duals)
    add_multiple(at.ball, length, step.ball)
    add_multiple(at.dual_ball, length, step.dual_ball)
    add_multiple(at.level, length, step.level)


@compiled
def degree(problem: Problem, level_is_free: bool) -> float:
    """Number of products: the gap of a point with all products equal to mu is degree * mu."""
    extra = (1.0 if level_is_free else 0.0) + (1.0 if problem.radius < np.inf else 0.0)
    return 2.0 * problem.weights.size + extra


@compiled
def advance(
    problem: Problem,
    a: Array,
    at: Iterate,
    work: Workspace,
    step: Iterate,
    gap: float,
    least_target: float,
    level_is_free: bool,
) -> bool:
    """One predictor-corrector iteration aiming at mu >= least_target; False if rounding stops progress."""
    if not factorise(problem, a, at, work, level_is_free):
        return False
    newton_step(problem, at, work, step, 0.0, 0.0, level_is_free)
    length = min(1.0, longest_step(problem, at, work, step, level_is_free))
    reachable = gap_after(problem, at, step, length, level_is_free)
    target = max((reachable / gap) ** 3 * gap / degree(problem, level_is_free), least_target)
    newton_step(problem, at, work, step, target, 1.0, level_is_free)
    length = min(1.0, STEP_FRACTION * longest_step(problem, at, work, step, level_is_free))
    if not length > SHORTEST_STEP:
        return False
    move(at, step, length)
    return True


@compiled
def residuals(problem: Problem, delta: Array) -> Array:
    """p_i - x_i'delta for all points."""
    z = np.empty(problem.Xt.shape[1])
    multiply(problem.Xt, delta, z)
    out = np.empty(problem.weights.size)
    gather(problem.owner, z, out)
    for i in range(out.size):
        out[i] = problem.offsets[i] - out[i]
    return out


@compiled
def start_minimum(problem: Problem, at: Iterate, mu: float) -> None:
    """Set the iterate at delta to products equal to mu with lam = 1 (stationarity may fail).

    r t = mu (r + t) / (2 w) with r - t = p - z gives  r + t = mu / w + sqrt(mu^2 / w^2 + (p - z)^2).
    """
    n = problem.weights.size
    residual = residuals(problem, at.delta)
    for i in range(n):
        share = mu / problem.weights[i]
        total = share + np.hypot(share, residual[i])
        # The smaller part from the product, not from a difference of nearly equal numbers.
        large = 0.5 * (total + abs(residual[i]))
        small = 0.5 * share * total / large
        at.parts[i], at.parts[n + i] = (large, small) if residual[i] > 0.0 else (small, large)
    for i in range(2 * n):
        at.duals[i] = mu / at.parts[i]
    at.level[0], at.level[1] = 1.0, 0.0
    if problem.radius < np.inf:
        at.ball[0] = problem.radius
        at.ball[1:] = problem.centre + at.delta
        factor = mu / (problem.radius**2 - dot(at.ball[1:], at.ball[1:]))
        at.dual_ball[:] = -factor * at.ball
        at.dual_ball[0] = factor * problem.radius


@compiled
def objective(problem: Problem, delta: Array) -> float:
    """The sum of w_i |p_i - x_i'delta|."""
    return dot(problem.weights, np.abs(residuals(problem, delta)))


@compiled
def multipliers(problem: Problem, at: Iterate) -> Array:
    """The u_i, from the pairs lam w_i - u_i and lam w_i + u_i."""
    n = problem.weights.size
    return 0.5 * (at.duals[n:] - at.duals[:n])


@compiled
def mismatch(problem: Problem, a: Array, at: Iterate) -> Array:
    """The vector a - lam slope + sum_i u_i x_i, which the ball has to absorb."""
    sums = np.empty(problem.Xt.shape[1])
    sum_by_owner(problem.owner, multipliers(problem, at), sums)
    m: Array = a - at.level[0] * problem.slope
    add_transposed(problem.Xt, sums, m)
    return m


@compiled
def find_minimum(problem: Problem, level: float, rounding: float) -> tuple[Array, float, Array, float]:
    """Minimise F over the ball (centre and slope are 0): theta, F(theta), multipliers u, lower bound.

    Stops when the gap is small against the slack level - F, or when the lower bound exceeds the level.
    The bound: F(theta) >= sum_i u_i (y_i - x_i'theta) >= u'y - radius |sum_i u_i x_i|.
    """
    d, n = problem.centre.size, problem.weights.size
    at, step = new_iterate(d, n), new_iterate(d, n)
    work = new_workspace(problem.Xt.shape[1], d, n)
    zero = np.zeros(d)
    start_minimum(problem, at, max(dot(problem.weights, np.abs(problem.offsets)), rounding) / n)
    theta, lowest = np.zeros(d), np.inf
    u, bound = np.zeros(n), 0.0
    for _ in range(MAX_ITERATIONS):
        value = objective(problem, at.delta)
        if value < lowest:
            theta, lowest = at.delta.copy(), value
        candidate = multipliers(problem, at)
        pull = mismatch(problem, zero, at)
        lower = dot(candidate, problem.offsets) - problem.radius * np.sqrt(dot(pull, pull))
        if lower > bound:
            u, bound = candidate, lower
        if bound > level + rounding or lowest - bound <= max(0.01 * (level - lowest), 0.01 * rounding):
            break
        gap = gap_after(problem, at, step, 0.0, False)
        if not advance(problem, zero, at, work, step, gap, 0.0, False):
            break
    return theta, lowest, u, bound


@compiled
def find_centre(problem: Problem) -> Iterate:
    """Analytic centre of { G <= allowance } in the ball, with its multipliers (lam about 1).

    On the central path of min G with all products mu, the gap is degree * mu, and the point is the analytic
    centre for the level  G + mu: follow the path to  mu = (allowance - lower bound) / (degree + 1).
    """
    d, n = problem.centre.size, problem.weights.size
    at, step = new_iterate(d, n), new_iterate(d, n)
    work = new_workspace(problem.Xt.shape[1], d, n)
    zero = np.zeros(d)
    at.delta[:] = -problem.centre
    products = degree(problem, False)
    far = objective(problem, at.delta)
    start_minimum(problem, at, max(far, problem.allowance) / products)
    for _ in range(MAX_ITERATIONS):
        gap = gap_after(problem, at, step, 0.0, False)
        mu = gap / products
        total = dot(problem.slope, at.delta) + dot(problem.weights, at.parts[:n] + at.parts[n:])
        at.level[1] = problem.allowance - total
        m = mismatch(problem, zero, at) + at.dual_ball[1:]
        balanced = 0.5 * mu < at.level[1] < 2.0 * mu
        if balanced and problem.radius * np.sqrt(dot(m, m)) < 0.01 * gap:
            break
        aim = max((at.level[1] + gap) / (products + 1.0), 0.1 * mu)
        at.level[1] = 0.0
        if not advance(problem, zero, at, work, step, gap, aim, False):
            break
    return at


@compiled
def outer_bound(problem: Problem, a: Array, at: Iterate, slack: float, reach: float) -> float:
    """The certificate: a bound of a'delta over C from any positive multipliers.

    slack   level - F(centre), rounded up
    reach   sum_i w_i |x_i|, which measures the rounding error of the mismatch
    """
    n = problem.weights.size
    lam = at.level[0]
    for i in range(n):  # rounding may leave |u_i| above lam w_i by a hair
        lam = max(lam, 0.5 * (at.duals[i] + at.duals[n + i]) / problem.weights[i])
    m = mismatch(problem, a, at) - (lam - at.level[0]) * problem.slope
    noise = 4.0 * EPS * (np.sqrt(dot(a, a)) + lam * reach)
    bound: float = lam * slack + problem.radius * (np.sqrt(dot(m, m)) + noise) - dot(m, problem.centre)
    for i in range(n):
        p = problem.offsets[i]
        spare = lam * problem.weights[i] - 0.5 * (at.duals[i] + at.duals[n + i])
        bound += p * (at.duals[i] + spare) if p > 0.0 else -p * (at.duals[n + i] + spare)
    return bound


@compiled
def start_support(problem: Problem, a: Array, at: Iterate, step: Iterate, work: Workspace, mu: float) -> None:
    """From the analytic centre towards a, using the factorisation at the centre.

    Multiplying all multipliers by a factor keeps the centre central; the factor is chosen such that a full
    Newton step for the direction a goes FIRST_STEP of the way to the boundary. It is then dual feasible.
    """
    copy(a, work.gradient)
    newton_step(problem, at, work, step, mu, 0.0, True)
    length = FIRST_STEP * longest_step(problem, at, work, step, True)
    move(at, step, length)
    factor = 1.0 / length
    at.duals[:] *= factor
    at.dual_ball[:] *= factor
    at.level[0] *= factor


@compiled
def maximise(
    problem: Problem, A: Array, start: Iterate, slack: float, reach: float, tolerance: float
) -> tuple[Array, Array, IntArray]:
    """Points theta - centre (n, d), certified bounds of a'(theta - centre) and iteration counts."""
    n, d = A.shape
    n_points, n_rows = problem.weights.size, problem.Xt.shape[1]
    at, step = new_iterate(d, n_points), new_iterate(d, n_points)
    work, shared = new_workspace(n_rows, d, n_points), new_workspace(n_rows, d, n_points)
    steps, bounds, counts = np.zeros((n, d)), np.full(n, np.inf), np.zeros(n, dtype=np.int64)
    factorise(problem, np.zeros(d), start, shared, True)
    mu = gap_after(problem, start, step, 0.0, True) / degree(problem, True)
    for index in range(n):
        a = A[index]
        if not np.any(a != 0.0):
            bounds[index] = 0.0
            continue
        copy_iterate(start, at)
        start_support(problem, a, at, step, shared, mu)
        for _ in range(MAX_ITERATIONS):
            gap = gap_after(problem, at, step, 0.0, True)
            if gap <= 0.5 * tolerance * dot(a, at.delta):
                break
            if not advance(problem, a, at, work, step, gap, 0.0, True):
                break
            counts[index] += 1
        steps[index] = at.delta
        bounds[index] = outer_bound(problem, a, at, slack, reach)
    return steps, bounds, counts


@compiled
def minimise_ridge(problem: Problem, guess: Array) -> Array:
    """The minimiser of F + ridge |theta|^2 over the ball; centre and slope of the problem are 0."""
    d, n = problem.centre.size, problem.weights.size
    at, step = new_iterate(d, n), new_iterate(d, n)
    work = new_workspace(problem.Xt.shape[1], d, n)
    zero = np.zeros(d)
    at_zero = dot(problem.weights, np.abs(problem.offsets))
    if at_zero == 0.0:
        return zero
    size = np.sqrt(dot(guess, guess))
    at.delta[:] = guess * min(1.0, 0.9 * problem.radius / max(size, 1e-300))
    start_minimum(problem, at, at_zero / degree(problem, False))
    for _ in range(MAX_ITERATIONS):
        gap = gap_after(problem, at, step, 0.0, False)
        value = dot(problem.weights, at.parts[:n] + at.parts[n:]) + problem.ridge * dot(at.delta, at.delta)
        if gap <= 1e-10 * value:
            break
        if not advance(problem, zero, at, work, step, gap, 0.0, False):
            break
    return at.delta
