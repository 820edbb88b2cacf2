r"""Bounds of any function of two linear predictors whose steepness is known: an outer polygon, cut into cells.

    max { f(x'theta, y'theta) : theta in C },      |df/du1| <= L1,  |df/du2| <= L2

Certified half-planes cos(t) u1 + sin(t) u2 <= h(t), at many angles t all around, leave a polygon that holds the joint
projection of C. In a cell [c1 - r1, c1 + r1] x [c2 - r2, c2 + r2] that meets it,

    f <= f(c1, c2) + L1 r1 + L2 r2.

From below: the points of C that attain the h(t) span a polygon inside the projection, and f is known at every c in it.
Cells that cannot hold more than what is attained are dropped, the others are cut into four, until the two bounds meet.
"""

from __future__ import annotations

from math import inf, pi
from typing import TYPE_CHECKING, Any

import numpy as np

from likeset._typing import EPS, Array, Mask
from likeset.answers.combinations import pair_support
from likeset.answers.pairs import ACCURACY, Bounds, Function, evaluated
from likeset.arguments import real_array
from likeset.errors import InvalidArgumentError, ShapeError
from likeset.progress import counted

if TYPE_CHECKING:
    from likeset.sets import LikelihoodSet

_ANGLES = 256
_FIRST = 8  # cells along each side to begin with
_LEVELS = 14
_MOST_CELLS = 60_000
_OUTWARD = 1e-10
_PROBES = 33


def bounds_of_steep(s: LikelihoodSet, function: Any, X: Array, Y: Array, steepness: Any) -> Bounds:
    """Extrema of function(x'theta, y'theta) over the set for pairs of rows (already checked, of equal number)."""
    steep = real_array("steepness", steepness)
    if steep.shape != (2,) or not (steep >= 0.0).all():
        raise ShapeError(
            "steepness", steepness, "is not a pair", "pass (L1, L2), the largest slopes in both predictors"
        )
    if not callable(function) or isinstance(function, type):
        raise InvalidArgumentError("function", function, "is not a function", "pass e.g. lambda a, b: a * b")
    found = Bounds(np.full(len(X), -inf), np.full(len(X), inf), np.full(len(X), inf))
    (low, high), (low_y, high_y) = s.interval(X), s.interval(Y)
    for i in counted(range(len(X)), len(X), "bounding functions of pairs"):
        box = np.array([[low[i], high[i]], [low_y[i], high_y[i]]])
        if np.isfinite(box).all():
            found.lower[i], found.upper[i], found.gap[i] = _one(s, function, X[i], Y[i], steep, box)
    return found


def _one(s: LikelihoodSet, f: Function, x: Array, y: Array, steep: Array, box: Array) -> tuple[float, float, float]:
    middle, half = box.mean(axis=1), np.maximum(0.5 * np.diff(box, axis=1)[:, 0], 1e-300)
    _check_steepness(f, box, steep)
    angles = np.linspace(0.0, 2 * pi, _ANGLES, endpoint=False)
    normals = np.column_stack([np.cos(angles), np.sin(angles)])
    rows = np.repeat(x[None], _ANGLES, axis=0), np.repeat(y[None], _ANGLES, axis=0)
    heights, points = pair_support(s, *rows, normals[:, 0] / half[0], normals[:, 1] / half[1])
    heights = heights - normals @ (middle / half) + _OUTWARD * (1.0 + np.abs(normals @ (middle / half)))
    corners = (points - middle) / half
    corners = corners[np.isfinite(corners).all(axis=1)]
    search = _Cells(f, middle, half, steep * half, normals, heights, corners)
    high, most = search.maximum(1.0)
    low, least = search.maximum(-1.0)
    return -low, high, max(high - most, low - least)


class _Cells:
    """The polygon in units in which the box of the two intervals is [-1, 1]^2."""

    def __init__(
        self, f: Function, middle: Array, half: Array, steep: Array, normals: Array, heights: Array, corners: Array
    ) -> None:
        self.f, self.middle, self.half, self.steep = f, middle, half, steep
        self.normals, self.heights, self.corners = normals, heights, corners
        self.edges = _edges(corners)

    def maximum(self, sign: float) -> tuple[float, float]:
        """(certified bound, value attained) of the maximum of sign f."""
        side = np.linspace(-1.0, 1.0, 2 * _FIRST + 1)[1::2]
        cells = np.stack(np.meshgrid(side, side, indexing="ij"), axis=-1).reshape(-1, 2)
        r, slack = 1.0 / _FIRST, 2e-10  # cells overlap a little, for the rounding of the ends of the intervals
        best = float(self._at(self.corners, sign).max(initial=-inf))
        done = -inf  # bound of the cells that were dropped
        for _ in range(_LEVELS):
            near = (cells @ self.normals.T - (r + slack) * np.abs(self.normals).sum(axis=1) <= self.heights).all(axis=1)
            cells = cells[near]
            if not len(cells):
                break
            values = self._at(cells, sign)
            inside = self._attained(cells)
            best = max(best, float(values[inside].max(initial=-inf)))
            bounds = values + (r + slack) * self.steep.sum()
            goal = best + 0.5 * ACCURACY * self._spread(best, sign)
            open_ones = bounds > goal
            done = max(done, float(bounds[~open_ones].max(initial=-inf)))
            if not open_ones.any() or 4 * open_ones.sum() > _MOST_CELLS:
                done = max(done, float(bounds.max()))
                break
            left = float(bounds[open_ones].max())
            corners = 0.5 * r * np.array([[-1, -1], [-1, 1], [1, -1], [1, 1]])
            cells, r = (cells[open_ones][:, None] + corners).reshape(-1, 2), 0.5 * r
        else:
            done = max(done, left)
        ceiling = max(done, best)
        return ceiling + 8 * EPS * abs(ceiling), best

    def _spread(self, best: float, sign: float) -> float:
        """The width of what is attained, so far."""
        lowest = float(self._at(self.corners, sign).min(initial=inf))
        return best - lowest if best > lowest > -inf else 0.0

    def _attained(self, cells: Array) -> Mask:
        """Whether centres lie in the polygon of the points attained."""
        if self.edges is None:
            return np.zeros(len(cells), dtype=bool)
        return np.asarray((cells @ self.edges[:, :2].T + self.edges[:, 2] <= -1e-9).all(axis=1))

    def _at(self, u: Array, sign: float) -> Array:
        z = self.middle + self.half * u
        return sign * evaluated(self.f, z[:, 0], z[:, 1])


def _edges(corners: Array) -> Array | None:
    """Rows (n1, n2, c) with n'u + c <= 0 in the convex hull; None where that is a point or a line."""
    from scipy.spatial import ConvexHull, QhullError

    try:
        return np.asarray(ConvexHull(corners).equations)
    except (QhullError, ValueError):
        return None


def _check_steepness(f: Function, box: Array, steep: Array) -> None:
    """Refuse a steepness that neighbours on a grid over both intervals contradict."""
    sides = [np.linspace(low, high, _PROBES) for low, high in box]
    values = evaluated(f, *(part.ravel() for part in np.meshgrid(*sides, indexing="ij"))).reshape(_PROBES, _PROBES)
    if not np.isfinite(values).all():
        raise InvalidArgumentError(
            "function", f, "is not finite for all plausible values", "pass a function of limited steepness"
        )
    for axis, side in enumerate(sides):
        steps = np.abs(np.diff(values, axis=axis)).max()
        width = side[1] - side[0]
        if steps > steep[axis] * width * (1.0 + 1e-9) + 64 * EPS * np.abs(values).max():
            raise InvalidArgumentError(
                "steepness", steep, f"is less than the slope {steps / width:g} seen along argument {axis + 1}",
                "pass bounds of both partial derivatives over all plausible values",
            )  # fmt: skip
