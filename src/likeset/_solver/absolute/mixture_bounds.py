r"""What an iterate proves: half-spaces that contain the set, points that lie in it."""

from __future__ import annotations

import math

import numpy as np

from likeset._solver.absolute.iterate import DUAL, Iterate
from likeset._solver.absolute.mixture_data import Problem
from likeset._solver.linalg.matrix import SUMS, dot
from likeset._typing import EPS, Array
from likeset.compiling import inner, kernel


@inner(fastmath=SUMS)
def exponents(problem: Problem, delta: Array, sums: Array, m: Array) -> None:
    """Write m_k; ``sums`` is scratch, one number per covariate."""
    K, W = problem.slopes.size, problem.heights.size
    for b in range(K):
        z = dot(problem.X[b], delta)
        sums[b] = problem.slopes[b] * z
        for i in range(problem.starts[b], problem.starts[b + 1]):
            sums[b] += problem.weights[i] * abs(problem.offsets[i] - z)
    for k in range(W):
        m[k] = problem.heights[k] + dot(problem.masks[k], sums)


@kernel(fastmath=SUMS)
def log_average(problem: Problem, delta: Array, sums: Array, m: Array) -> float:
    """log sum_k exp m_k; the last two arguments are scratch, one number per covariate and per window."""
    exponents(problem, delta, sums, m)
    top, total = m[0], 0.0
    for k in range(m.size):
        top = max(top, m[k])
    for k in range(m.size):
        total += math.exp(m[k] - top)
    return float(top + math.log(total))


def log_average_at(problem: Problem, delta: Array) -> float:
    """The same with memory of its own, for Python."""
    return float(log_average(problem, delta, np.empty(len(problem.slopes)), np.empty(len(problem.heights))))


@inner(fastmath=SUMS)
def half_space(problem: Problem, at: Iterate, m: int, pulls: Array, g: Array) -> float:
    """Write g; return f with  Phi(delta) >= f + g'delta  for every delta, from the multipliers of lane m.

    ``pulls`` is scratch, one number per covariate.
    """
    n, K, W = problem.weights.size, problem.slopes.size, problem.heights.size
    voices, dual = at.levels[DUAL, m], at.parts[DUAL, m]
    lam, value = 0.0, 0.0
    for b in range(K):
        pulls[b] = 0.0
    for k in range(W):
        lam += voices[k]
    for k in range(W):
        share = voices[k] / lam
        if share > 0.0:
            value += share * (problem.heights[k] - math.log(share))
            for b in range(K):
                pulls[b] += share * problem.masks[k, b]
    for j in range(g.size):
        g[j] = 0.0
    for b in range(K):
        pull = pulls[b] * problem.slopes[b]
        for i in range(problem.starts[b], problem.starts[b + 1]):
            below, above = dual[i], dual[n + i]
            nu = problem.weights[i] * pulls[b] * max(-1.0, min(1.0, (above - below) / (above + below)))
            pull -= nu
            value += nu * problem.offsets[i]
        for j in range(g.size):
            g[j] += pull * problem.X[b, j]
    return value


@inner(fastmath=SUMS)
def pull_inside(
    problem: Problem, delta: Array, level: float, room: float, square_room: float, sums: Array, m: Array
) -> None:
    """Move delta to the last point of the set, but for a sliver, on the way from the centre (room nats below).

    The last two arguments are scratch of :func:`log_average`.
    """
    inner, square = dot(problem.centre, delta), dot(delta, delta)
    t = 1.0
    if square + 2.0 * inner > square_room:
        root = np.sqrt(inner * inner + square * square_room)
        t = square_room / (inner + root) if inner > 0.0 else (root - inner) / square
        t *= 1.0 - 2.0 * EPS
    for _ in range(30):
        for j in range(delta.size):
            delta[j] *= t
        excess = log_average(problem, delta, sums, m) - level
        if not excess > 0.0:
            return
        t = room / (room + excess * (1.0 + 1e-9) + 4.0 * EPS * room)  # Phi is convex along the way
    for j in range(delta.size):
        delta[j] = 0.0
