r"""What an iterate proves: half-spaces that contain the set, points that lie in it."""

from __future__ import annotations

import math

import numpy as np

from likeset._solver.absolute.mixture_data import Iterate, Problem
from likeset._solver.linalg.dense import compiled, dot
from likeset._typing import EPS, Array


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
