r"""What an interior point step does at every point by itself, in one lane.

A residual is split, p - z = r - t with r, t >= 0. Their multipliers are the pair lam w - u and lam w + u, lam w >= |u|:
with alpha = r / (lam w - u), beta = t / (lam w + u) and h = 1 / (alpha + beta), linearising the products gives

    d_u = h (misfit - aim_r + aim_t - x'd_delta) + h (alpha - beta) w d_lam,

where aim_r and aim_t are the steps of r and t that would give the wanted products with the multipliers kept.
Loops over points write one array each: only such loops are vectorised.

``pairs`` (6, lanes, 2n), first for r, then for t:

    INVERSE_PARTS, INVERSE_DUALS   reciprocals (divisions are slow)
    RATIOS      alpha, then beta
    SHARES      h alpha, then h beta; they sum to 1
    GOALS       the products to be reached
    AIMS        the step of r and t towards these products if the multipliers stayed as they are

``singles`` (3, lanes, n):

    STIFFNESS   h
    MISFIT      p - z - (r - t)
    FORCE       what drives u, and scratch
"""

from __future__ import annotations

import numpy as np

from likeset._solver.linalg.matrix import SUMS
from likeset._typing import Array, IntArray
from likeset.compiling import inner

INVERSE_PARTS, INVERSE_DUALS, RATIOS, SHARES, GOALS, AIMS = 0, 1, 2, 3, 4, 5
STIFFNESS, MISFIT, FORCE = 0, 1, 2


@inner(fastmath=SUMS)
def split_residual(parts: Array, m: int, i: int, residual: float, share: float, mu: float) -> None:
    """Set r, t and their multipliers of point i to products equal to mu; share is mu / (lam w).

    r t = mu (r + t) / (2 lam w) with r - t = residual gives  r + t = share + sqrt(share^2 + residual^2).
    """
    n = parts.shape[2] // 2
    total = share + np.sqrt(share * share + residual * residual)
    # The smaller part from the product, not from a difference of nearly equal numbers.
    large = 0.5 * (total + abs(residual))
    small = 0.5 * share * total / large
    above, below = (large, small) if residual > 0.0 else (small, large)
    parts[0, m, i], parts[0, m, n + i] = above, below
    parts[1, m, i], parts[1, m, n + i] = mu / above, mu / below


@inner(fastmath=SUMS)
def weigh_lane(parts: Array, offsets: Array, owner: IntArray, z: Array, pairs: Array, singles: Array, m: int) -> None:
    """Reciprocals, ratios, stiffness, shares and misfits of lane m; z is that of every covariate."""
    n = offsets.size
    primal, dual = parts[0, m], parts[1, m]
    inverse_primal, inverse_dual, ratios, shares = (
        pairs[INVERSE_PARTS, m], pairs[INVERSE_DUALS, m], pairs[RATIOS, m], pairs[SHARES, m]
    )  # fmt: skip
    stiffness, misfit, force = singles[STIFFNESS, m], singles[MISFIT, m], singles[FORCE, m]
    for i in range(2 * n):
        inverse_primal[i] = 1.0 / primal[i]
    for i in range(2 * n):
        inverse_dual[i] = 1.0 / dual[i]
    for i in range(2 * n):
        ratios[i] = primal[i] * inverse_dual[i]
    for i in range(n):
        stiffness[i] = 1.0 / (ratios[i] + ratios[n + i])
    for i in range(n):
        shares[i] = stiffness[i] * ratios[i]
    for i in range(n):
        shares[n + i] = stiffness[i] * ratios[n + i]
    for i in range(n):
        force[i] = z[owner[i]]
    for i in range(n):
        misfit[i] = offsets[i] - force[i] - (primal[i] - primal[n + i])


@inner(fastmath=SUMS)
def aim_lane(parts: Array, pairs: Array, m: int) -> None:
    """Aims of lane m, from its goals."""
    goals, inverse_dual, aims, primal = pairs[GOALS, m], pairs[INVERSE_DUALS, m], pairs[AIMS, m], parts[0, m]
    for i in range(primal.size):
        aims[i] = goals[i] * inverse_dual[i] - primal[i]


@inner(fastmath=SUMS)
def push_lane(pairs: Array, singles: Array, m: int) -> None:
    """What the aims of lane m push u by: h (misfit - aim_r + aim_t), in ``force``."""
    aims, stiffness, misfit, force = pairs[AIMS, m], singles[STIFFNESS, m], singles[MISFIT, m], singles[FORCE, m]
    n = force.size
    for i in range(n):
        force[i] = stiffness[i] * (misfit[i] - aims[i] + aims[n + i])


@inner(fastmath=SUMS)
def move_lane(
    owner: IntArray, z_step: Array, scale: float, weights: Array, pairs: Array, singles: Array, step: Array, m: int
) -> None:
    """Back-substitution: the steps of r and t and of their multipliers; those of lam w are scale * weights / 2.

    The weights may be those held in the place of the step of r.
    """
    n = owner.size
    primal, dual, shares, aims, ratios = step[0, m], step[1, m], pairs[SHARES, m], pairs[AIMS, m], pairs[RATIOS, m]
    stiffness, force = singles[STIFFNESS, m], singles[FORCE, m]
    for i in range(n):
        dual[i] = z_step[owner[i]]
    for i in range(n):
        force[i] -= stiffness[i] * dual[i]
    for i in range(n):
        dual[i] = scale * weights[i] * shares[n + i] - force[i]
    for i in range(n):
        dual[n + i] = scale * weights[i] * shares[i] + force[i]
    for i in range(2 * n):
        primal[i] = aims[i] - ratios[i] * dual[i]


@inner(fastmath=SUMS)
def sum_segments(starts: IntArray, values: Array, out: Array) -> None:
    """Set out[k] to the sum of values[i] over i from starts[k] to starts[k + 1] - 1."""
    for k in range(starts.size - 1):
        first, last = starts[k], starts[k + 1]
        if last == first + 1:
            out[k] = values[first]
        else:
            total = 0.0
            for i in range(first, last):
                total += values[i]
            out[k] = total
