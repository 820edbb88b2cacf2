"""Where log R is about least over Theta: what every search for the evidence against a hypothesis starts from."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf
from typing import TYPE_CHECKING

import numpy as np

from likeset._typing import EPS, Array, Mask

if TYPE_CHECKING:
    from likeset.sets import LikelihoodSet

ACCURACY = 1e-7
"""Gap, relative to 1 + |log R|, at which the search for a level ends."""
COARSE = 1e-4
"""The same where log R is not convex, and every level solved for gives one inequality."""
_STEPS = tuple(10.0 ** np.arange(-9, 15))
_FEW_STEPS = (1e-2, 1.0, 1e2)  # where every level is a search over scales
_SOLVES = 24


@dataclass(frozen=True)
class Floor:
    """A point with the least log R that was found.

    centre      the point, in coordinates
    value       log R there, or the height of a convex function with the same level sets
    certified   a level at which the set is empty, or -inf
    unit        by how much heights grow where log R grows by one nat
    rounding    of heights
    """

    centre: Array
    value: float
    certified: float
    unit: float
    rounding: float


def find_floor(s: LikelihoodSet) -> Floor:
    """Levels further and further below the least value known until a set is empty; then halves of what is open."""
    evidence, centre = s._evidence.level_sets, s._kernel.centre
    accuracy = ACCURACY if evidence.convex else COARSE
    value = height(s, centre)
    unit = s._evidence.height_of_a_nat(value) if np.isfinite(value) else 1.0
    rounding = 64 * EPS * (unit + (abs(value) if np.isfinite(value) else 0.0) + evidence.size)
    certified, steps = -inf, iter(_STEPS if evidence.convex else _FEW_STEPS)
    nats = float(s._evidence.nats(np.array([value]))[0])
    length = unit * (1.0 + abs(nats) if np.isfinite(nats) else 1.0)
    for _ in range(_SOLVES if evidence.convex else len(_FEW_STEPS)):
        if not np.isfinite(value) or close(s, np.array([certified]), np.array([value]), accuracy)[0]:
            break
        level = value - next(steps) * length if certified == -inf else 0.5 * (certified + value)
        asked = replace(evidence, threshold=level)
        kernel, solved_level = asked.kernel, level + asked.charge
        if kernel.status == "empty":
            certified = max(certified, solved_level)
            continue
        found = height(s, kernel.centre)
        if found < value:
            centre = kernel.centre
        elif kernel.status == "point" and certified > -inf:
            break
        value = min(value, found, solved_level if kernel.status == "regular" else inf)
    return Floor(centre, value, certified, unit, rounding)


def height(s: LikelihoodSet, point: Array) -> float:
    """log R in the basis, of coordinates."""
    evidence = s._evidence.level_sets
    return float(evidence.log_ratio(point[None] @ evidence.groups.coordinates.T)[0])


def close(s: LikelihoodSet, low: Array, high: Array, accuracy: float) -> Mask:
    """Whether bounds agree, in nats, relative to 1 + their size."""
    if not np.isfinite(low).any():
        return np.zeros(len(low), dtype=bool)
    low, high = s._evidence.nats(low), s._evidence.nats(high)
    with np.errstate(invalid="ignore"):
        return np.asarray(high - low <= accuracy * (1.0 + np.abs(high)))
