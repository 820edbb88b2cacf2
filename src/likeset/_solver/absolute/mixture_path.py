r"""Path following for window mixtures of absolute values: the analytic centre, and the support function.

Variables and Newton system are those of :mod:`~likeset._solver.absolute.mixture_data`, the iteration is Mehrotra's
(:mod:`~likeset._solver.absolute.mixture_steps`). On the central path of the minimum problem the level falls to min Phi
together with mu; where it passes the level of the set lies the set's analytic centre, and there the paths of all
directions begin, with one factorisation for the first step of all.
"""

from __future__ import annotations

import numpy as np

from likeset._solver.absolute.mixture_bounds import exponents, half_space, phi, pulled_inside
from likeset._solver.absolute.mixture_data import Iterate, Problem, Workspace, ball_weight, new_iterate, new_workspace
from likeset._solver.absolute.mixture_steps import advance, copy_lane, degree, gap_after, longest_step, move
from likeset._solver.absolute.mixture_system import factorise, newton_step
from likeset._solver.certificate import certificate
from likeset._solver.linalg.dense import compiled, copy, dot
from likeset._typing import Array, IntArray

FIRST_STEP = 0.7  # part of the way to the boundary taken by the shared first step
MAX_ITERATIONS = 60
LANES = 16
NUMBERS_IN_CACHE = 65536  # of all lanes together, for points and the windows' matrices


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
def maximise(
    problem: Problem,
    A: Array,
    centre: Iterate,
    level: float,
    outer_level: float,
    room: float,
    outer_radius: float,
    tolerance: float,
) -> tuple[Array, Array, IntArray]:
    """Maximise a'delta for the rows a of A: points of the set (n, d), certified bounds, iterations of each direction.

    A lane that has finished its direction takes over the next one. Points satisfy ``level``, bounds ``outer_level``.
    """
    n_directions, d = A.shape
    n, W = problem.weights.size, problem.heights.size
    lanes = max(1, min(LANES, n_directions, NUMBERS_IN_CACHE // (4 * n + W * (W + d))))
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
