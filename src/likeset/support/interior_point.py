r"""Path following for sums of absolute values: the minimum, the analytic centre, and the support function.

The variables and the Newton system are those of :mod:`~likeset.support.primal_dual`. All three tasks follow a
central path, the curve of points whose products (variable times multiplier) all equal mu, towards mu = 0.

The central path of  min F  passes through the analytic centres of the sublevel sets of F, and that centre is
where the paths of all directions a begin. So a start at the analytic centre of the set serves all
directions, does not depend on units, and the first Newton step of all directions shares one factorisation.
"""

from __future__ import annotations

import numpy as np

from likeset.support.dense import compiled, copy, dot
from likeset.support.newton_system import factorise, newton_step
from likeset.support.predictor_corrector import advance, degree, gap_after, longest_step, move
from likeset.support.primal_dual import Iterate, Problem, Workspace, new_iterate, new_workspace
from likeset.support.terms import Array

EPS = float(np.finfo(np.float64).eps)
FIRST_STEP = 0.7  # part of the way to the boundary taken by the shared first step
MAX_ITERATIONS = 60
LANES = 16  # directions solved side by side, at most
POINTS_IN_CACHE = 4096  # of all lanes together


@compiled
def residuals(problem: Problem, delta: Array) -> Array:
    """p_i - x_i'delta for all points."""
    z = problem.X @ delta
    return problem.offsets - z[problem.owner]


@compiled
def start_minimum(problem: Problem, at: Iterate, mu: float) -> None:
    """Set the single lane of an iterate at delta to products equal to mu with lam = 1.

    r t = mu (r + t) / (2 w) with r - t = p - z gives  r + t = mu / w + sqrt(mu^2 / w^2 + (p - z)^2).
    Stationarity may fail.
    """
    n = problem.weights.size
    residual = residuals(problem, at.delta[:, 0].copy())
    for i in range(n):
        share = mu / problem.weights[i]
        total = share + np.sqrt(share * share + residual[i] * residual[i])
        # The smaller part from the product, not from a difference of nearly equal numbers.
        large = 0.5 * (total + abs(residual[i]))
        small = 0.5 * share * total / large
        at.parts[0, i], at.parts[0, n + i] = (large, small) if residual[i] > 0.0 else (small, large)
    for i in range(2 * n):
        at.duals[0, i] = mu / at.parts[0, i]
    at.level[0, 0], at.level[1, 0] = 1.0, 0.0
    if problem.radius < np.inf:
        theta = problem.centre + at.delta[:, 0]
        factor = mu / (problem.radius**2 - dot(theta, theta))
        at.ball[0, 0], at.dual_ball[0, 0] = problem.radius, factor * problem.radius
        for j in range(theta.size):
            at.ball[1 + j, 0], at.dual_ball[1 + j, 0] = theta[j], -factor * theta[j]


@compiled
def multipliers(problem: Problem, at: Iterate, m: int) -> Array:
    """The u_i of a lane, from the pairs lam w_i - u_i and lam w_i + u_i."""
    n = problem.weights.size
    u = np.empty(n)
    for i in range(n):
        u[i] = 0.5 * (at.duals[m, n + i] - at.duals[m, i])
    return u


@compiled
def pull_of(problem: Problem, u: Array) -> Array:
    """sum_i u_i x_i."""
    sums = np.zeros(problem.X.shape[0])
    for i in range(u.size):
        sums[problem.owner[i]] += u[i]
    return problem.Xt @ sums


@compiled
def minimise(
    problem: Problem, guess: Array, level: float, rounding: float, accuracy: float
) -> tuple[Array, float, Array, float]:
    """Minimise F + ridge |theta|^2 over the ball: theta, the value there, multipliers u, and a lower bound.

    Stops when the gap is below max(accuracy * value, rounding), or below 1 % of the slack level - value, or
    when the lower bound exceeds the level. For an exact minimum let the level be -inf, which switches the
    last two off. Centre and slope of the problem are 0. The bound:

        F(theta) + ridge |theta|^2 >= u'y - max over the ball of  v'theta - ridge |theta|^2,   v = sum_i u_i x_i.
    """
    d, n = problem.centre.size, problem.weights.size
    at, step = new_iterate(d, n, 1), new_iterate(d, n, 1)
    work = new_workspace(problem.X.shape[0], d, n, 1)
    none = np.zeros((d, 1))
    size = np.sqrt(dot(guess, guess))
    at.delta[:, 0] = guess * min(1.0, 0.9 * problem.radius / max(size, 1e-300))
    start_minimum(problem, at, max(dot(problem.weights, np.abs(problem.offsets)), rounding) / n)
    theta, lowest = np.zeros(d), np.inf
    u, bound = np.zeros(n), 0.0
    for _ in range(MAX_ITERATIONS):
        point = at.delta[:, 0].copy()
        value = dot(problem.weights, np.abs(residuals(problem, point))) + problem.ridge * dot(point, point)
        if value < lowest:
            theta, lowest = point, value
        candidate = multipliers(problem, at, 0)
        v = pull_of(problem, candidate)
        size = np.sqrt(dot(v, v))
        reach = min(problem.radius, 0.5 * size / problem.ridge)  # |theta| at the maximum above
        lower = dot(candidate, problem.offsets) - reach * (size - problem.ridge * reach)
        if lower > bound:
            u, bound = candidate, lower
        enough = max(accuracy * lowest, rounding)
        if level > -np.inf:
            if bound > level + rounding:
                break
            enough = max(enough, 0.01 * (level - lowest))
        if lowest - bound <= enough:
            break
        gap = gap_after(problem, at, step, np.zeros(1))
        if advance(problem, none, at, work, step, gap, 0.0)[0] == 0.0:
            break
    return theta, lowest, u, bound


@compiled
def find_centre(problem: Problem) -> Iterate:
    """Analytic centre of { G <= allowance } in the ball, with its multipliers (lam about 1), in one lane.

    On the central path of min G with all products mu, the gap is degree * mu, and the point is the analytic
    centre for the level  G + mu: follow the path to  mu = (allowance - lower bound) / (degree + 1).
    """
    d, n = problem.centre.size, problem.weights.size
    at, step = new_iterate(d, n, 1), new_iterate(d, n, 1)
    work = new_workspace(problem.X.shape[0], d, n, 1)
    none = np.zeros((d, 1))
    at.delta[:, 0] = -problem.centre
    products = degree(problem)
    far = dot(problem.weights, np.abs(residuals(problem, -problem.centre)))
    start_minimum(problem, at, max(far, problem.allowance) / products)
    for _ in range(MAX_ITERATIONS):
        gap = gap_after(problem, at, step, np.zeros(1))
        mu = gap[0] / products
        total = dot(problem.slope, at.delta[:, 0])
        for i in range(n):
            total += problem.weights[i] * (at.parts[0, i] + at.parts[0, n + i])
        slack = problem.allowance - total
        m = pull_of(problem, multipliers(problem, at, 0)) - problem.slope + at.dual_ball[1:, 0]
        at.level[1, 0] = slack
        if 0.5 * mu < slack < 2.0 * mu and problem.radius * np.sqrt(dot(m, m)) < 0.01 * gap[0]:
            break
        aim = max((slack + gap[0]) / (products + 1.0), 0.1 * mu)
        at.level[1, 0] = 0.0
        if advance(problem, none, at, work, step, gap, aim)[0] == 0.0:
            break
    return at


@compiled
def outer_bound(problem: Problem, a: Array, at: Iterate, m: int, slack: float, reach: float) -> float:
    """The certificate: a bound of a'delta over C from any positive multipliers, those of lane m.

    slack   level - F(centre), rounded up
    reach   sum_i w_i |x_i|, which measures the rounding error of the mismatch
    """
    n = problem.weights.size
    lam = at.level[0, m]
    for i in range(n):  # rounding may leave |u_i| above lam w_i by a hair
        lam = max(lam, 0.5 * (at.duals[m, i] + at.duals[m, n + i]) / problem.weights[i])
    mismatch = a - lam * problem.slope + pull_of(problem, multipliers(problem, at, m))
    size = np.sqrt(dot(mismatch, mismatch)) + 4.0 * EPS * (np.sqrt(dot(a, a)) + lam * reach)
    bound: float = lam * slack + problem.radius * size - dot(mismatch, problem.centre)
    for i in range(n):
        p = problem.offsets[i]
        spare = lam * problem.weights[i] - 0.5 * (at.duals[m, i] + at.duals[m, n + i])
        bound += p * (at.duals[m, i] + spare) if p > 0.0 else -p * (at.duals[m, n + i] + spare)
    return bound


@compiled
def copy_lane(source: Iterate, i: int, out: Iterate, m: int) -> None:
    """Copy lane i of an iterate to lane m of another."""
    for j in range(out.parts.shape[1]):
        out.parts[m, j] = source.parts[i, j]
    for j in range(out.parts.shape[1]):
        out.duals[m, j] = source.duals[i, j]
    for j in range(out.delta.shape[0]):
        out.delta[j, m] = source.delta[j, i]
    for j in range(out.ball.shape[0]):
        out.ball[j, m], out.dual_ball[j, m] = source.ball[j, i], source.dual_ball[j, i]
    for j in range(2):
        out.level[j, m] = source.level[j, i]


@compiled
def start_support(
    problem: Problem, A: Array, centre: Iterate, out: Iterate, step: Iterate, shared: Workspace, mu: float
) -> None:
    """From the analytic centre towards the columns of A, using the factorisation at the centre.

    Multiplying all multipliers by a factor keeps the centre central; the factor is chosen such that a full
    Newton step for the direction goes FIRST_STEP of the way to the boundary. It is then dual feasible.
    """
    lanes = A.shape[1]
    for m in range(lanes):
        copy_lane(centre, 0, out, m)
    copy(A, shared.gradient)
    newton_step(problem, out, shared, step, np.full(lanes, mu), 0.0)
    length = FIRST_STEP * longest_step(problem, out, shared, step)
    move(out, step, length)
    for m in range(lanes):
        factor = 1.0 / length[m]
        out.duals[m] *= factor
        out.dual_ball[:, m] *= factor
        out.level[0, m] *= factor


@compiled
def maximise(
    problem: Problem, A: Array, centre: Iterate, slack: float, reach: float, tolerance: float
) -> tuple[Array, Array, int]:
    """Maximise a'delta for the rows a of A: points delta (n, d), certified bounds, and total iterations.

    A lane that has finished its direction takes over the next one.
    """
    n_directions, d = A.shape
    n, n_rows = problem.weights.size, problem.X.shape[0]
    lanes = max(1, min(LANES, n_directions, POINTS_IN_CACHE // max(n, 1)))
    at, step, ready = new_iterate(d, n, lanes), new_iterate(d, n, lanes), new_iterate(d, n, lanes)
    work, shared = new_workspace(n_rows, d, n, lanes), new_workspace(n_rows, d, n, lanes)
    directions, ready_directions = np.zeros((d, lanes)), np.zeros((d, lanes))
    steps, bounds = np.zeros((n_directions, d)), np.full(n_directions, np.inf)
    for m in range(lanes):
        copy_lane(centre, 0, at, m)
    factorise(problem, directions, at, shared)
    mu = gap_after(problem, at, step, np.zeros(lanes))[0] / degree(problem)

    none = np.zeros(lanes)
    index = np.full(lanes, -1)  # the direction each lane works on
    count = np.zeros(lanes, dtype=np.int64)
    upcoming, n_finished, iterations = 0, 0, 0
    while n_finished < n_directions:
        for m in range(lanes):
            if index[m] < 0 and upcoming < n_directions:
                if upcoming % lanes == 0:
                    for i in range(lanes):
                        ready_directions[:, i] = A[min(upcoming + i, n_directions - 1)]
                    start_support(problem, ready_directions, centre, ready, step, shared, mu)
                copy_lane(ready, upcoming % lanes, at, m)
                directions[:, m] = A[upcoming]
                index[m], count[m] = upcoming, 0
                upcoming += 1
        gap = gap_after(problem, at, step, none)
        length = advance(problem, directions, at, work, step, gap, 0.0)
        iterations += 1
        gap = gap_after(problem, at, step, none)
        for m in range(lanes):
            if index[m] < 0:
                continue
            count[m] += 1
            a = A[index[m]]
            delta = at.delta[:, m].copy()
            if gap[m] <= 0.5 * tolerance * dot(a, delta) or length[m] == 0.0 or count[m] >= MAX_ITERATIONS:
                steps[index[m]] = delta
                bounds[index[m]] = outer_bound(problem, a, at, m, slack, reach)
                index[m] = -1
                n_finished += 1
    return steps, bounds, iterations
