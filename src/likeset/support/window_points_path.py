r"""Path following for window mixtures of absolute values: the analytic centre, and the support function.

Variables and Newton system are those of :mod:`~likeset.support.window_points_system`, the iteration is Mehrotra's as in
:mod:`~likeset.support.predictor_corrector`. On the central path of the minimum problem the level falls towards min Phi
together with mu; where it passes the level of the set lies the set's analytic centre, and there the paths of all
directions begin, with one factorisation for the first step of all.
"""

from __future__ import annotations

import math

import numpy as np

from likeset.support.ball_cone import boundary_rate
from likeset.support.certificate import certificate
from likeset.support.dense import compiled, copy, dot
from likeset.support.predictor_corrector import add_multiple, largest_rate
from likeset.support.terms import Array
from likeset.support.window_points_system import (
    Iterate,
    Problem,
    Workspace,
    ball_weight,
    factorise,
    new_iterate,
    new_workspace,
    newton_step,
)

EPS = float(np.finfo(np.float64).eps)
STEP_FRACTION = 0.99  # of the way to the boundary
SHORTEST_STEP = 1e-7  # a shorter step means that rounding has taken over
FIRST_STEP = 0.7  # part of the way to the boundary taken by the shared first step
MAX_ITERATIONS = 60
CENTRING_POWER = 3  # Mehrotra: the shorter the predictor, the more centring
LANES = 16
NUMBERS_IN_CACHE = 16384  # of all lanes together, for points and the windows' matrices


@compiled
def exponents(problem: Problem, delta: Array) -> Array:
    """m_k."""
    K = problem.slopes.size
    z, sums = np.empty(K), np.empty(K)
    for b in range(K):
        z[b] = dot(problem.X[b], delta)
        sums[b] = problem.slopes[b] * z[b]
    for i in range(problem.offsets.size):
        b = problem.owner[i]
        sums[b] += problem.weights[i] * abs(problem.offsets[i] - z[b])
    m = problem.heights.copy()
    for k in range(m.size):
        m[k] += dot(problem.masks[k], sums)
    return m


@compiled
def phi(problem: Problem, delta: Array) -> float:
    """log sum_k exp m_k."""
    m = exponents(problem, delta)
    top = m.max()
    total = 0.0
    for k in range(m.size):
        total += math.exp(m[k] - top)
    return float(top + math.log(total))


@compiled
def half_space(problem: Problem, at: Iterate, m: int, g: Array) -> float:
    """Write g; return f with  Phi(delta) >= f + g'delta  for every delta, from the multipliers of lane m."""
    n, K, W = problem.weights.size, problem.slopes.size, problem.heights.size
    lam = 0.0
    for k in range(W):
        lam += at.voices[m, k]
    value, pulls, pull = 0.0, np.zeros(K), np.zeros(K)
    for k in range(W):
        share = at.voices[m, k] / lam
        if share > 0.0:
            value += share * (problem.heights[k] - math.log(share))
            for b in range(K):
                pulls[b] += share * problem.masks[k, b]
    for i in range(n):
        b = problem.owner[i]
        below, above = at.duals[m, i], at.duals[m, n + i]
        nu = problem.weights[i] * pulls[b] * max(-1.0, min(1.0, (above - below) / (above + below)))
        pull[b] -= nu
        value += nu * problem.offsets[i]
    g[:] = 0.0
    for b in range(K):
        pull[b] += pulls[b] * problem.slopes[b]
        for j in range(g.size):
            g[j] += pull[b] * problem.X[b, j]
    return value


@compiled
def degree(problem: Problem) -> float:
    """Number of products."""
    return 2.0 * problem.weights.size + problem.heights.size + ball_weight(problem)


@compiled
def longest_step(at: Iterate, work: Workspace, step: Iterate) -> Array:
    """Longest multiple of the step that stays in all cones (inf if there is no limit), per lane."""
    lanes, W = at.slacks.shape
    rate, of_ball = boundary_rate(at.ball, step.ball), boundary_rate(at.dual_ball, step.dual_ball)
    for m in range(lanes):
        primal = largest_rate(step.parts, work.inverse_parts, m)
        dual = largest_rate(step.duals, work.inverse_duals, m)
        rate[m] = max(max(rate[m], of_ball[m]), max(primal, dual))
        for k in range(W):
            rate[m] = max(rate[m], -step.slacks[m, k] / at.slacks[m, k])
            rate[m] = max(rate[m], -step.voices[m, k] / at.voices[m, k])
        rate[m] = 1.0 / rate[m]
    return rate


@compiled
def gap_after(at: Iterate, step: Iterate, length: Array) -> Array:
    """Sum of all products after a multiple of the step: the duality gap of feasible iterates."""
    gap = np.zeros(length.size)
    for m in range(length.size):
        alpha, total = length[m], 0.0
        for i in range(at.parts.shape[1]):
            total += (at.parts[m, i] + alpha * step.parts[m, i]) * (at.duals[m, i] + alpha * step.duals[m, i])
        for k in range(at.slacks.shape[1]):
            total += (at.slacks[m, k] + alpha * step.slacks[m, k]) * (at.voices[m, k] + alpha * step.voices[m, k])
        gap[m] = total
    for j in range(at.ball.shape[0]):
        for m in range(length.size):
            primal, dual = (
                at.ball[j, m] + length[m] * step.ball[j, m],
                at.dual_ball[j, m] + length[m] * step.dual_ball[j, m],
            )
            gap[m] += primal * dual
    return gap


@compiled
def move(at: Iterate, step: Iterate, length: Array) -> None:
    """Add a multiple of the step to the iterate."""
    add_multiple(at.delta, length, step.delta)
    for m in range(length.size):
        for i in range(at.parts.shape[1]):
            at.parts[m, i] += length[m] * step.parts[m, i]
        for i in range(at.parts.shape[1]):
            at.duals[m, i] += length[m] * step.duals[m, i]
        for k in range(at.slacks.shape[1]):
            at.slacks[m, k] += length[m] * step.slacks[m, k]
            at.voices[m, k] += length[m] * step.voices[m, k]
        at.level[m] += length[m] * step.level[m]
    add_multiple(at.ball, length, step.ball)
    add_multiple(at.dual_ball, length, step.dual_ball)


@compiled
def clear_lane(step: Iterate, m: int) -> None:
    """Set a direction to zero in one lane (it may hold NaN, which no multiple of 0 removes)."""
    step.delta[:, m] = 0.0
    step.parts[m] = 0.0
    step.duals[m] = 0.0
    step.slacks[m] = 0.0
    step.voices[m] = 0.0
    step.ball[:, m] = 0.0
    step.dual_ball[:, m] = 0.0
    step.level[m] = 0.0


@compiled
def advance(
    problem: Problem, A: Array, at: Iterate, work: Workspace, step: Iterate, gap: Array, least_target: float
) -> Array:
    """One predictor-corrector iteration aiming at mu >= least_target; returns the lengths of the steps taken.

    A lane where rounding has taken over stays where it is: length 0.
    """
    factorise(problem, A, at, work)
    target = np.zeros(gap.size)
    newton_step(problem, at, work, step, target, 0.0)
    length = np.minimum(longest_step(at, work, step), 1.0)
    reachable = gap_after(at, step, length)
    for m in range(gap.size):
        target[m] = max((reachable[m] / gap[m]) ** CENTRING_POWER * gap[m] / degree(problem), least_target)
    newton_step(problem, at, work, step, target, 1.0)
    length = longest_step(at, work, step)
    for m in range(gap.size):
        length[m] = min(STEP_FRACTION * length[m], 1.0)
        if not length[m] > SHORTEST_STEP or not np.isfinite(step.delta[0, m]):
            length[m] = 0.0
            clear_lane(step, m)
    move(at, step, length)
    return length


@compiled
def start_minimum(problem: Problem, at: Iterate, level: float) -> None:
    """Set the single lane of an iterate at delta = 0 (theta = centre, inside the ball) near the central path.

    The wanted products mu come from how far Phi may have to fall. Stationarity and the windows' equations may fail.
    """
    n, W = problem.weights.size, problem.heights.size
    m = exponents(problem, at.delta[:, 0].copy())
    top = m.max()
    mu = (max(top - level, 0.0) + 1.0) / degree(problem)
    at.level[0] = top + W * mu
    total = 0.0
    for k in range(W):
        at.voices[0, k] = 1.0 / (at.level[0] - m[k])
        total += at.voices[0, k]
    pulls = np.zeros(problem.slopes.size)
    for k in range(W):
        at.voices[0, k] /= total
        at.slacks[0, k] = mu / at.voices[0, k]
        for b in range(pulls.size):
            pulls[b] += at.voices[0, k] * problem.masks[k, b]
    for i in range(n):
        b = problem.owner[i]
        residual = problem.offsets[i] - dot(problem.X[b], at.delta[:, 0].copy())
        share = mu / (problem.weights[i] * pulls[b])
        total = share + np.sqrt(share * share + residual * residual)
        # The smaller part from the product, not from a difference of nearly equal numbers.
        large = 0.5 * (total + abs(residual))
        small = 0.5 * share * total / large
        at.parts[0, i], at.parts[0, n + i] = (large, small) if residual > 0.0 else (small, large)
    for i in range(2 * n):
        at.duals[0, i] = mu / at.parts[0, i]
    theta = problem.centre + at.delta[:, 0]
    factor = ball_weight(problem) * mu / (problem.radius**2 - dot(theta, theta))
    at.ball[0, 0], at.dual_ball[0, 0] = problem.radius, factor * problem.radius
    for j in range(theta.size):
        at.ball[1 + j, 0], at.dual_ball[1 + j, 0] = theta[j], -factor * theta[j]


@compiled
def find_centre(problem: Problem, level: float, rounding: float) -> tuple[Iterate, Array, float, float, int]:
    """Analytic centre of { Phi <= level } in the ball with its multipliers; best point, Phi there, lower bound of Phi.

    ``problem`` is the minimum problem. The path is left where its level meets the level of the set, or, in thin sets,
    where the gap is below the rounding error, or where the lower bound shows that the set is empty.
    """
    d, n, W = problem.centre.size, problem.weights.size, problem.heights.size
    at, step = new_iterate(d, n, W, 1), new_iterate(d, n, W, 1)
    work = new_workspace(problem, 1)
    none, g = np.zeros((d, 1)), np.empty(d)
    start_minimum(problem, at, level)
    products = degree(problem)
    best, lowest, bound = np.zeros(d), np.inf, -np.inf
    iterations = 0
    for _ in range(MAX_ITERATIONS):
        point = at.delta[:, 0].copy()
        value = phi(problem, point)
        if value < lowest:
            best, lowest = point, value
        f = half_space(problem, at, 0, g)
        lower = f - problem.radius * np.sqrt(dot(g, g)) - dot(g, problem.centre)
        bound = max(bound, lower)
        if bound > level + rounding or lowest - bound <= rounding:
            break
        gap = gap_after(at, step, np.zeros(1))
        mu = gap[0] / products
        above = at.level[0] - level
        # Near the centre: the levels differ by less than the gap, and what the certificate lacks is small.
        if abs(above) <= 0.3 * gap[0] and at.level[0] - lower <= 1.5 * gap[0] and value < level:
            break
        aim = max((gap[0] - above) / products, 0.1 * mu)
        iterations += 1
        if advance(problem, none, at, work, step, gap, aim)[0] == 0.0:
            break
    return at, best, lowest, bound, iterations


@compiled
def settle(problem: Problem, at: Iterate, level: float) -> int:
    """Centring steps at a fixed level: products nearly equal, equations nearly satisfied."""
    d, n, W = problem.centre.size, problem.weights.size, problem.heights.size
    step = new_iterate(d, n, W, 1)
    work = new_workspace(problem, 1)
    none = np.zeros((d, 1))
    at.level[0] = level
    iterations, length = 0, 0.0
    for _ in range(12):
        mu = gap_after(at, step, np.zeros(1))[0] / degree(problem)
        factorise(problem, none, at, work)
        worst = 0.0
        for k in range(W):
            worst = max(worst, at.voices[0, k] * abs(work.window_misfit[0, k]))
        if iterations > 0 and worst <= 0.1 * mu * W and length >= 0.9:
            break
        newton_step(problem, at, work, step, np.full(1, mu), 0.0)
        length = min(1.0, 0.9 * longest_step(at, work, step)[0])
        if not length > SHORTEST_STEP or not np.isfinite(step.delta[0, 0]):
            break
        move(at, step, np.full(1, length))
        clear_lane(step, 0)
        iterations += 1
    return iterations


@compiled
def copy_lane(source: Iterate, i: int, out: Iterate, m: int) -> None:
    """Copy lane i of an iterate to lane m of another."""
    out.parts[m] = source.parts[i]
    out.duals[m] = source.duals[i]
    out.slacks[m] = source.slacks[i]
    out.voices[m] = source.voices[i]
    for j in range(out.delta.shape[0]):
        out.delta[j, m] = source.delta[j, i]
    for j in range(out.ball.shape[0]):
        out.ball[j, m], out.dual_ball[j, m] = source.ball[j, i], source.dual_ball[j, i]
    out.level[m] = source.level[i]


@compiled
def start_support(
    problem: Problem, A: Array, centre: Iterate, out: Iterate, step: Iterate, shared: Workspace, mu: float
) -> None:
    """From the analytic centre towards the columns of A, using the factorisation at the centre.

    Multiplying all multipliers by a factor keeps the centre central; the factor is chosen such that a full Newton step
    for the direction goes FIRST_STEP of the way to the boundary. It is then dual feasible.
    """
    lanes = A.shape[1]
    for m in range(lanes):
        copy_lane(centre, 0, out, m)
    copy(A, shared.gradient)
    newton_step(problem, out, shared, step, np.full(lanes, mu), 0.0)
    length = FIRST_STEP * longest_step(out, shared, step)
    move(out, step, length)
    for m in range(lanes):
        factor = 1.0 / length[m]
        out.duals[m] *= factor
        out.voices[m] *= factor
        out.dual_ball[:, m] *= factor


@compiled
def pulled_inside(problem: Problem, delta: Array, level: float, room: float, square_room: float) -> Array:
    """The last point of the set, but for a sliver, on the way from the centre (room nats below the level) to delta."""
    inner, square = dot(problem.centre, delta), dot(delta, delta)
    t = 1.0
    if square + 2.0 * inner > square_room:
        root = np.sqrt(inner * inner + square * square_room)
        t = square_room / (inner + root) if inner > 0.0 else (root - inner) / square
        t *= 1.0 - 2.0 * EPS
    for _ in range(30):
        excess = phi(problem, t * delta) - level
        if not excess > 0.0:
            return t * delta
        t *= room / (room + excess * (1.0 + 1e-9) + 4.0 * EPS * room)  # Phi is convex along the way
    return np.zeros(delta.size)


@compiled
def maximise(
    problem: Problem,
    A: Array,
    centre: Iterate,
    level: float,
    outer_level: float,
    room: float,
    outer_radius: float,
    tolerance: float,
) -> tuple[Array, Array, Array]:
    """Maximise a'delta for the rows a of A: points of the set (n, d), certified bounds, iterations of each direction.

    A lane that has finished its direction takes over the next one. Points satisfy ``level``, bounds ``outer_level``.
    """
    n_directions, d = A.shape
    n, W = problem.weights.size, problem.heights.size
    lanes = max(1, min(LANES, n_directions, NUMBERS_IN_CACHE // (4 * n + W * W + W * d)))
    at, step, ready = new_iterate(d, n, W, lanes), new_iterate(d, n, W, lanes), new_iterate(d, n, W, lanes)
    work, shared = new_workspace(problem, lanes), new_workspace(problem, lanes)
    directions, ready_directions = np.zeros((d, lanes)), np.zeros((d, lanes))
    points, bounds = np.zeros((n_directions, d)), np.full(n_directions, np.inf)
    for m in range(lanes):
        copy_lane(centre, 0, at, m)
    factorise(problem, directions, at, shared)
    mu = gap_after(at, step, np.zeros(lanes))[0] / degree(problem)
    square = dot(problem.centre, problem.centre)
    e2, outer_e2 = problem.radius**2 - square, outer_radius**2 - square

    none, g = np.zeros(lanes), np.empty(d)
    index = np.full(lanes, -1)  # the direction each lane works on
    count = np.zeros(lanes, dtype=np.int64)
    iterations = np.zeros(n_directions, dtype=np.int64)
    values = np.full(n_directions, 0.0)
    upcoming, n_finished = 0, 0
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
        gap = gap_after(at, step, none)
        length = advance(problem, directions, at, work, step, gap, 0.0)
        gap = gap_after(at, step, none)
        for m in range(lanes):
            i = index[m]
            if i < 0:
                continue
            count[m] += 1
            delta = at.delta[:, m].copy()
            last = length[m] == 0.0 or count[m] >= MAX_ITERATIONS
            if last or gap[m] <= 0.5 * tolerance * dot(A[i], delta):
                f = half_space(problem, at, m, g)
                bound, _, _ = certificate(A[i], g, outer_level - f, problem.centre, outer_e2, outer_radius)
                bounds[i] = min(bounds[i], bound)
                inside = pulled_inside(problem, delta, level, room, e2)
                value = dot(A[i], inside)
                if value > values[i]:
                    values[i] = value
                    points[i] = inside
                if last or bounds[i] - values[i] <= tolerance * bounds[i]:
                    iterations[i] = count[m]
                    index[m] = -1
                    n_finished += 1
    return points, bounds, iterations
