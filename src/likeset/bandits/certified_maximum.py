r"""An upper bound of max f over a whole box, by branch and bound.

Function spaces. u(x) = max over the set of f(x) is Lipschitz in the kernel's metric, for any set in the ball |f| <= B:

    u(x) <= u(c) + B |k_x - k_c|,        |k_x - k_c|^2 = k(x, x) + k(c, c) - 2 k(x, c).

For kernels that fall with the distance in every coordinate (squared-exponential, Matern, rational quadratic; products
and sums of them and of constants) the farthest point of a cell with centre c is its corner, so a cell's maximum is at
most u(c) + B |k_corner - k_c|, and at most B sqrt(k(c, c)). Cells are split along their longest side, measured by the
kernel, the highest bound first, until the bound is within ``tolerance`` of a value attained or the budget is used up.
Whatever is left, the highest bound of the cells that cover the box is certified. Cost: one solve per cell. The number
of cells grows like (B / (tolerance l))^d for d coordinates of length scale l, near the maximum: fine in one dimension,
minutes in three, which is where it stops; with data that say little, all cells have the bound B sqrt(k(c, c)).

Linear models. u is convex in x, so its maximum over a box is attained at a vertex.

Integers and categories are enumerated.
"""

from __future__ import annotations

import heapq
from itertools import count, product
from typing import Any

import numpy as np

from likeset._typing import Array
from likeset.bandits.rewards import Reward
from likeset.bandits.running import score_uppers
from likeset.progress import meter
from likeset.spaces import RKHS, Linear
from likeset.spaces.mixed_kernel import MixedKernel

MOST_CONTINUOUS, MOST_COMBINATIONS = 3, 64
_BATCH, _ROUNDING, _FAR = 32, 1e-9, 1e300
_FALLING = ("RBF", "Matern", "RationalQuadratic", "ConstantKernel")


def falls_with_distance(kernel: Any) -> bool:
    """Whether k(x, y) is known to fall as y leaves x in any number: scikit-learn's stationary kernels, and ours."""
    if isinstance(kernel, MixedKernel):
        return kernel.falls_with_distance
    if not type(kernel).__module__.startswith("sklearn."):
        return False
    name = type(kernel).__name__
    if name in ("Sum", "Product"):
        return falls_with_distance(kernel.k1) and falls_with_distance(kernel.k2)
    return name in _FALLING


def can_certify(space: Any, box: Any) -> bool:
    """Whether the maximum over this box can be certified."""
    combinations = int(np.prod([len(values) for values in box.values if values is not None], initial=1))
    if combinations > MOST_COMBINATIONS:
        return False
    continuous = sum(values is None for values in box.values)
    if isinstance(space, Linear):
        return continuous <= 12
    return isinstance(space, RKHS) and continuous <= MOST_CONTINUOUS and falls_with_distance(space.kernel)


def certified_maximum(current: Any, space: Any, reward: Reward, box: Any, tolerance: float, budget: int) -> float:
    """A certified upper bound of the score anywhere in the box, with at most about ``budget`` solves."""
    if isinstance(space, Linear):
        ends = [low_high if values is None else values for low_high, values in zip(box.box, box.values, strict=True)]
        vertices = np.array(list(product(*ends)))
        return float(score_uppers(current, reward, space.covariates(vertices)).max())
    return _branch_and_bound(current, space, reward, box, tolerance, budget)


def _branch_and_bound(current: Any, space: RKHS, reward: Reward, box: Any, tolerance: float, budget: int) -> float:
    continuous = [j for j, values in enumerate(box.values) if values is None]
    fixed = [values for values in box.values if values is not None]
    low, high = box.box[continuous, 0], box.box[continuous, 1]
    starts = [(0.5 * (low + high), 0.5 * (high - low), np.array(rest)) for rest in product(*fixed)]
    heap: list[tuple[float, int, Array, Array, Array]] = []
    attained, solved, number = -np.inf, 0, count()

    def point(centre: Array, rest: Array) -> Array:
        x = np.empty(len(box.values))
        x[continuous] = centre
        x[[j for j in range(len(x)) if j not in continuous]] = rest
        return x

    def push(cells: list[tuple[Array, Array, Array]]) -> None:
        nonlocal attained, solved
        centres = np.array([point(centre, rest) for centre, _, rest in cells])
        corners = np.array([point(centre + half, rest) for centre, half, rest in cells])
        uppers = score_uppers(current, reward, centres)
        own, apart = space.diagonal(centres), np.array([space.gram(a[None], b[None])[0, 0] for a, b in
                                                        zip(centres, corners, strict=True)])  # fmt: skip
        reach = np.sqrt(np.maximum(2.0 * (own - apart), 0.0) + _ROUNDING * own)  # rounding of the difference, outward
        bounds = np.minimum(uppers + space.bound * reach, space.bound * np.sqrt(own) * (1.0 + _ROUNDING))
        attained, solved = max(attained, float(uppers.max())), solved + len(cells)
        for cell, ceiling in zip(cells, bounds, strict=True):
            heapq.heappush(heap, (-float(ceiling), next(number), *cell))

    push(starts)
    if not continuous:
        return attained
    limit = float(reward.of_scores(np.array([_FAR]))[0])  # of a reward that is known to end: nothing lies above it
    with meter("certifying the maximum over the box", budget) as at:
        while solved < budget and -heap[0][0] > attained + tolerance:
            if np.isfinite(limit) and float(reward.of_scores(np.array([attained]))[0]) >= limit:
                break
            cells: list[tuple[Array, Array, Array]] = []
            for _ in range(min(_BATCH, len(heap))):
                rank, _, centre, half, rest = heapq.heappop(heap)
                if -rank <= attained + tolerance and cells:
                    heapq.heappush(heap, (rank, next(number), centre, half, rest))
                    break
                side = _longest(space, point(centre, rest), half, continuous)
                step = np.zeros(len(half))
                step[side] = 0.5 * half[side]
                smaller = half - step
                cells += [(centre - step, smaller, rest), (centre + step, smaller, rest)]
            push(cells)
            at(solved)
    return -heap[0][0]


def _longest(space: RKHS, centre: Array, half: Array, continuous: list[int]) -> int:
    """The side along which the kernel falls most."""
    ends = np.repeat(centre[None, :], len(half), axis=0)
    ends[np.arange(len(half)), continuous] += half
    return int(np.argmin(space.gram(centre[None, :], ends)[0]))
