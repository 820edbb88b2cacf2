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
from likeset.support.dense import add_transposed, compiled, dot, multiply
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
from likeset.support.products import aim_at, aim_with_curvature, pull_in_outliers
from likeset.support.terms import Array, IntArray

EPS = float(np.finfo(np.float64).eps)
STEP_FRACTION = 0.99  # of the way to the boundary
SHORTEST_STEP = 1e-7  # a shorter step means that rounding has taken over
FIRST_STEP = 0.7  # part of the way to the boundary taken by the shared first step
MAX_ITERATIONS = 60
MAX_CORRECTIONS = 2  # of outliers, per iteration
LONG_ENOUGH = 0.9  # no correction of outliers for steps of this length


@compiled
def longest_step(problem: Problem, at: Iterate, work: Workspace, step: Iterate, level_is_free: bool) -> float:
    """Longest multiple of the step that stays in all cones (inf if there is no limit).

    One length for primal and dual variables: two lengths zigzag along the curved side of the ball.
    """
    r, t, q, v = 0.0, 0.0, 0.0, 0.0  # four chains of maxima run in parallel
    for i in range(at.above.size):
        r = max(r, -step.above[i] * work.inverse_above[i])
        t = max(t, -step.below[i] * work.inverse_below[i])
        q = max(q, -step.dual_above[i] * work.inverse_dual_above[i])
        v = max(v, -step.dual_below[i] * work.inverse_dual_below[i])
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
    for i in range(at.above.size):
        gap += (at.above[i] + length * step.above[i]) * (at.dual_above[i] + length * step.dual_above[i])
        gap += (at.below[i] + length * step.below[i]) * (at.dual_below[i] + length * step.dual_below[i])
    if level_is_free:
        gap += (at.level[1] + length * step.level[1]) * (at.level[0] + length * step.level[0])
    if problem.radius < np.inf:
        for j in range(at.ball.size):
            gap += (at.ball[j] + length * step.ball[j]) * (at.dual_ball[j] + length * step.dual_ball[j])
    return gap


@compiled
def move(at: Iterate, step: Iterate, length: float) -> None:
    """Add a multiple of the step to the iterate."""
    for j in range(at.delta.size):
        at.delta[j] += length * step.delta[j]
    for i in range(at.above.size):
        at.above[i] += length * step.above[i]
        at.below[i] += length * step.below[i]
        at.dual_above[i] += length * step.dual_above[i]
        at.dual_below[i] += length * step.dual_below[i]
    for j in range(at.ball.size):
        at.ball[j] += length * step.ball[j]
        at.dual_ball[j] += length * step.dual_ball[j]
    at.level[0] += length * step.level[0]
    at.level[1] += length * step.level[1]


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
    trial: Iterate,
    gap: float,
    least_target: float,
    level_is_free: bool,
) -> bool:
    """One predictor-corrector iteration aiming at mu >= least_target; False if rounding stops progress."""
    if not factorise(problem, a, at, work, level_is_free):
        return False
    aim_at(work, 0.0)
    newton_step(problem, at, work, step, level_is_free)
    length = min(1.0, longest_step(problem, at, work, step, level_is_free))
    reachable = gap_after(problem, at, step, length, level_is_free)
    target = max((reachable / gap) ** 3 * gap / degree(problem, level_is_free), least_target)
    aim_with_curvature(problem, work, step, target)
    newton_step(problem, at, work, step, level_is_free)
    length = longest_step(problem, at, work, step, level_is_free)
    for _ in range(MAX_CORRECTIONS):
        if length >= LONG_ENOUGH:
            break
        wish = min(1.0, 1.5 * length + 0.3)
        pull_in_outliers(problem, at, work, step, wish, target)
        newton_step(problem, at, work, trial, level_is_free)
        longer = longest_step(problem, at, work, trial, level_is_free)
        if longer < length + 0.1 * (wish - length):
            break
        length = longer
        step, trial = trial, step
    length = min(1.0, STEP_FRACTION * length)
    if not length > SHORTEST_STEP:
        return False
    move(at, step, length)
    return True


@compiled
def start_minimum(problem: Problem, at: Iterate, mu: float) -> None:
    """Set the iterate at delta to products equal to mu with lam = 1 (stationarity may fail).

    r t = mu (r + t) / (2 w) with r - t = p - z gives  r + t = mu / w + sqrt(mu^2 / w^2 + (p - z)^2).
    """
    z = np.empty(problem.Xt.shape[1])
    multiply(problem.Xt, at.delta, z)
    for i in range(problem.weights.size):
        w = problem.weights[i]
        residual = problem.offsets[i] - z[problem.owner[i]]
        total = mu / w + np.hypot(mu / w, residual)
        # The smaller part from the product, not from a difference of nearly equal numbers.
        large = 0.5 * (total + abs(residual))
        small = 0.5 * mu / w * total / large
        at.above[i], at.below[i] = (large, small) if residual > 0.0 else (small, large)
        at.dual_above[i] = mu / at.above[i]
        at.dual_below[i] = mu / at.below[i]
    at.level[0], at.level[1] = 1.0, 0.0
    if problem.radius < np.inf:
        at.ball[0] = problem.radius
        at.ball[1:] = problem.centre + at.delta
        square = problem.radius**2 - dot(at.ball[1:], at.ball[1:])
        at.dual_ball[:] = -mu / square * at.ball
        at.dual_ball[0] = mu / square * problem.radius


@compiled
def objective(problem: Problem, delta: Array) -> float:
    """The sum of w_i |p_i - x_i'delta|."""
    z = np.empty(problem.Xt.shape[1])
    multiply(problem.Xt, delta, z)
    total = 0.0
    for i in range(problem.weights.size):
        total += problem.weights[i] * abs(problem.offsets[i] - z[problem.owner[i]])
    return total


@compiled
def mismatch(problem: Problem, a: Array, at: Iterate) -> Array:
    """The vector a - lam slope + sum_i u_i x_i, which the ball has to absorb."""
    sums = np.zeros(problem.Xt.shape[1])
    for i in range(problem.weights.size):
        sums[problem.owner[i]] += 0.5 * (at.dual_below[i] - at.dual_above[i])
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
    at, step, trial = new_iterate(d, n), new_iterate(d, n), new_iterate(d, n)
    work = new_workspace(problem.Xt.shape[1], d, n)
    zero = np.zeros(d)
    start_minimum(problem, at, max(dot(problem.weights, np.abs(problem.offsets)), rounding) / n)
    theta, lowest = np.zeros(d), np.inf
    u, bound = np.zeros(n), 0.0
    for _ in range(MAX_ITERATIONS):
        value = objective(problem, at.delta)
        if value < lowest:
            theta, lowest = at.delta.copy(), value
        candidate = 0.5 * (at.dual_below - at.dual_above)
        pull = mismatch(problem, zero, at)
        lower = dot(candidate, problem.offsets) - problem.radius * np.sqrt(dot(pull, pull))
        if lower > bound:
            u, bound = candidate, lower
        if bound > level + rounding or lowest - bound <= max(0.01 * (level - lowest), 0.01 * rounding):
            break
        gap = gap_after(problem, at, step, 0.0, False)
        if not advance(problem, zero, at, work, step, trial, gap, 0.0, False):
            break
    return theta, lowest, u, bound


@compiled
def find_centre(problem: Problem) -> Iterate:
    """Analytic centre of { G <= allowance } in the ball, with its multipliers (lam about 1).

    On the central path of min G with all products mu, the gap is degree * mu, and the point is the analytic
    centre for the level  G + mu: follow the path to  mu = (allowance - lower bound) / (degree + 1).
    """
    d, n = problem.centre.size, problem.weights.size
    at, step, trial = new_iterate(d, n), new_iterate(d, n), new_iterate(d, n)
    work = new_workspace(problem.Xt.shape[1], d, n)
    zero = np.zeros(d)
    at.delta[:] = -problem.centre
    products = degree(problem, False)
    far = objective(problem, at.delta)
    start_minimum(problem, at, max(far, problem.allowance) / products)
    for _ in range(MAX_ITERATIONS):
        gap = gap_after(problem, at, step, 0.0, False)
        mu = gap / products
        total = dot(problem.slope, at.delta) + dot(problem.weights, at.above + at.below)
        at.level[1] = problem.allowance - total
        m = mismatch(problem, zero, at) + at.dual_ball[1:]
        balanced = 0.5 * mu < at.level[1] < 2.0 * mu
        if balanced and problem.radius * np.sqrt(dot(m, m)) < 0.01 * gap:
            break
        aim = max((at.level[1] + gap) / (products + 1.0), 0.1 * mu)
        at.level[1] = 0.0
        if not advance(problem, zero, at, work, step, trial, gap, aim, False):
            break
    return at


@compiled
def outer_bound(problem: Problem, a: Array, at: Iterate, slack: float, reach: float) -> float:
    """The certificate: a bound of a'delta over C from any positive multipliers.

    slack   level - F(centre), rounded up
    reach   sum_i w_i |x_i|, which measures the rounding error of the mismatch
    """
    lam = at.level[0]
    for i in range(problem.weights.size):  # rounding may leave |u_i| above lam w_i by a hair
        lam = max(lam, 0.5 * (at.dual_above[i] + at.dual_below[i]) / problem.weights[i])
    m = mismatch(problem, a, at) - (lam - at.level[0]) * problem.slope
    noise = 4.0 * EPS * (np.sqrt(dot(a, a)) + lam * reach)
    bound: float = lam * slack + problem.radius * (np.sqrt(dot(m, m)) + noise) - dot(m, problem.centre)
    for i in range(problem.weights.size):
        p = problem.offsets[i]
        spare = lam * problem.weights[i] - 0.5 * (at.dual_above[i] + at.dual_below[i])
        bound += p * (at.dual_above[i] + spare) if p > 0.0 else -p * (at.dual_below[i] + spare)
    return bound


@compiled
def start_support(problem: Problem, a: Array, at: Iterate, step: Iterate, work: Workspace, mu: float) -> None:
    """From the analytic centre towards a, using the factorisation at the centre.

    Multiplying all multipliers by a factor keeps the centre central; the factor is chosen such that a full
    Newton step for the direction a goes FIRST_STEP of the way to the boundary. It is then dual feasible.
    """
    work.gradient[:] = a
    aim_at(work, mu)
    newton_step(problem, at, work, step, True)
    length = FIRST_STEP * longest_step(problem, at, work, step, True)
    move(at, step, length)
    factor = 1.0 / length
    at.dual_above[:] *= factor
    at.dual_below[:] *= factor
    at.dual_ball[:] *= factor
    at.level[0] *= factor


@compiled
def maximise(
    problem: Problem, A: Array, start: Iterate, slack: float, reach: float, tolerance: float
) -> tuple[Array, Array, IntArray]:
    """Points theta - centre (n, d), certified bounds of a'(theta - centre) and iteration counts."""
    n, d = A.shape
    n_points, n_rows = problem.weights.size, problem.Xt.shape[1]
    at = new_iterate(d, n_points)
    step, trial = new_iterate(d, n_points), new_iterate(d, n_points)
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
            if not advance(problem, a, at, work, step, trial, gap, 0.0, True):
                break
            counts[index] += 1
        steps[index] = at.delta
        bounds[index] = outer_bound(problem, a, at, slack, reach)
    return steps, bounds, counts


@compiled
def minimise_ridge(problem: Problem, guess: Array) -> Array:
    """The minimiser of F + ridge |theta|^2 over the ball; centre and slope of the problem are 0."""
    d, n = problem.centre.size, problem.weights.size
    at, step, trial = new_iterate(d, n), new_iterate(d, n), new_iterate(d, n)
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
        value = dot(problem.weights, at.above + at.below) + problem.ridge * dot(at.delta, at.delta)
        if gap <= 1e-10 * value:
            break
        if not advance(problem, zero, at, work, step, trial, gap, 0.0, False):
            break
    return at.delta
