r"""A convex set of the plane from outside: a polygon of tangents, refined where a question touches it.

    C = { v in a box :  f(v) <= level },      f convex, with its gradient

At any point p, in C or not, f(v) >= f(p) + g'(v - p): all of C obeys g'(v - p) <= level - f(p). A box cut with such
half-planes is a polygon that holds C. What is asked for is the largest G(v) = F(v_1) + H(v_2) over C, F and H monotone.
It is largest on the boundary of the polygon, where pieces of edges bound it, whatever F is like in between. From that
point towards the inside, a point p on the boundary of C is found, its tangent cuts the polygon, and so on, until what
is attained in C is close enough. Cuts for one question serve the next ones.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf

import numpy as np

from likeset._typing import EPS, Array

TOLERANCE = 5e-4  # of the width found, at which refinement ends
_MOST_CUTS = 60  # of one question
_ENDLESS_CUTS = 16  # after which what is infinite on the polygon may be so on C
_PHASE_ONE = 80
_PIECES = 12  # that an edge, and what is left of it, is cut into
_SPLITS = 5
_OUTWARD = 1e-10  # of the box: by how much cuts are moved out, for the rounding of vertices
_NEAR = 1e-5  # of the way to a vertex: how well the boundary is known
_STEPS = 12
_ROUGHLY = 0.1  # of the way from what is attained to the bound: better, pieces of edges need not be known

Heights = Callable[[Array], tuple[Array, Array]]
Function = Callable[[Array], Array]


class Outline:
    """A polygon around C in the box [low, high], and a point inside C, if one was found.

    ``low`` and ``high`` are finite; ``level`` is the level with what rounding may add.
    """

    def __init__(self, heights: Heights, level: float, low: Array, high: Array, start: Array) -> None:
        self._heights, self.level = heights, level
        self.low, self.high, self.width = low, high, high - low
        self.corners = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
        self.centre: Array | None = None
        self._find_centre(np.clip((start - low) / np.where(self.width > 0.0, self.width, 1.0), 0.0, 1.0))

    @property
    def is_empty(self) -> bool:
        """Whether nothing is left: C is certainly empty."""
        return len(self.corners) == 0

    def at(self, v: Array) -> Array:
        """Points of the plane from coordinates in the box, never outside of it."""
        return np.clip(self.low + self.width * v, self.low, self.high)

    def f(self, v: Array) -> tuple[Array, Array]:
        """f and its gradient in the coordinates of the box."""
        values, gradients = self._heights(self.at(v))
        return values, gradients * self.width

    def cut(self, v: Array, value: float, gradient: Array) -> None:
        """Leave out what lies beyond the tangent at v."""
        length = float(np.abs(gradient).max())
        if not (np.isfinite(value) and 0.0 < length < inf):
            return
        normal = gradient / length
        self.corners = _clipped(self.corners, normal, float(normal @ v) + (self.level - value) / length + _OUTWARD)

    def _find_centre(self, start: Array) -> None:
        """A point with f < level, by cuts at centres of the polygon: each takes away a good part of it."""
        point = start
        for _ in range(_PHASE_ONE):
            value, gradient = (part[0] for part in self.f(point[None]))
            if value <= self.level:
                self.centre = point
                return
            before = len(self.corners)
            self.cut(point, float(value), gradient)
            if self.is_empty:
                return
            point = _centroid(self.corners)
            if before == len(self.corners) and not np.isfinite(value):
                return

    def largest(self, F: Function, H: Function) -> tuple[float, float]:
        """(certified upper bound, attained value) of the largest F(v_1) + H(v_2) over C; -inf where none is known."""
        best = scale = -inf
        origin = -inf
        if self.centre is not None:
            best = origin = float(self._G(F, H, self.centre[None])[0])
        bound = inf
        for cuts in range(_MOST_CUTS):
            if self.is_empty:
                return -inf, -inf
            scale = max(best - origin, 1e-12 * abs(best)) if best > -inf else inf
            tolerance = 0.25 * TOLERANCE * scale if 0.0 < scale < inf else 0.0
            here, at = self._on_edges(F, H, best, tolerance)
            bound = min(bound, here)
            if self.centre is None or bound - best <= TOLERANCE * scale or (bound == inf and cuts == _ENDLESS_CUTS):
                break
            attained = self._cut_towards(at)
            if attained is None:  # the point itself is in C
                best = max(best, float(self._G(F, H, at[None])[0]))
                break
            best = max(best, float(self._G(F, H, attained[None])[0]))
        return max(bound, best), best

    def _G(self, F: Function, H: Function, v: Array) -> Array:
        m = self.at(v)
        with np.errstate(invalid="ignore"):
            return np.asarray(F(m[:, 0]) + H(m[:, 1]))

    def _on_edges(self, F: Function, H: Function, best: float, tolerance: float) -> tuple[float, Array]:
        """An upper bound of G on the polygon, and the point of its edges where G was largest.

        As good as it need be beside what is ``best`` so far.
        """
        starts = self.corners
        ends = np.concatenate([starts[1:], starts[:1]])
        top, where, bound = -inf, starts[0], inf
        for split in range(_SPLITS):
            # At first whole edges: most of them are too far away to matter.
            t = np.linspace(0.0, 1.0, _PIECES + 1 if split else 2)[None, :, None]
            points = starts[:, None, :] * (1.0 - t) + ends[:, None, :] * t
            m = self.at(points.reshape(-1, 2)).reshape(points.shape)
            first, second = F(m[..., 0]), H(m[..., 1])
            with np.errstate(invalid="ignore"):
                own = first + second
                bounds = np.maximum(first[:, 1:], first[:, :-1]) + np.maximum(second[:, 1:], second[:, :-1])
            rounding = 8 * EPS * np.maximum(np.abs(first[:, 1:]) + np.abs(second[:, 1:]), 1e-300)
            with np.errstate(invalid="ignore"):
                bounds = bounds + np.where(np.isfinite(rounding), rounding, 0.0)
            bounds = np.where(np.isnan(bounds), inf, bounds)
            own = np.where(np.isnan(own), inf, own)  # infinite parts of both signs: nothing is known there
            i = int(np.argmax(own))
            if own.ravel()[i] > top:
                top, where = float(own.ravel()[i]), points.reshape(-1, 2)[i]
            bound = float(bounds.max())
            again = bounds > top + tolerance
            if not again.any() or bound == inf or bound - top <= _ROUGHLY * (top - best):
                break
            starts, ends = points[:, :-1][again], points[:, 1:][again]
        # Pieces left out earlier are below the best value and the tolerance.
        return max(bound, top + tolerance), where

    def _cut_towards(self, at: Array) -> Array | None:
        """Cut with the tangent where the way from the centre to ``at`` leaves C; the last point known inside."""
        assert self.centre is not None
        way = at - self.centre
        inner, outer = 0.0, 1.0
        values, gradients = self.f(np.array([self.centre, at]))
        if not values[1] > self.level:
            return None
        low, (high, gradient) = float(values[0]), (float(values[1]), gradients[1])
        for _ in range(_STEPS):
            # Convexity: the tangent at the outer point meets the level outside C, the chord meets it inside.
            slope = float(gradient @ way)
            newton = outer - (high - self.level) / slope if np.isfinite(high) and slope > 0.0 else inner
            chord = inner + (outer - inner) * (self.level - low) / (high - low) if np.isfinite(high) else inner
            tried = np.unique(np.clip([newton, chord, 0.5 * (inner + outer)], inner, outer))
            values, gradients = self.f(self.centre + tried[:, None] * way)
            within = values <= self.level
            if within.any():
                k = int(np.flatnonzero(within)[-1])
                if tried[k] > inner:
                    inner, low = float(tried[k]), float(values[k])
            if not within.all():
                k = int(np.flatnonzero(~within)[0])
                if tried[k] < outer:
                    outer, high, gradient = float(tried[k]), float(values[k]), gradients[k]
            if outer - inner <= _NEAR:
                break
        self.cut(self.centre + outer * way, high, gradient)
        return np.asarray(self.centre + inner * way)


def _clipped(corners: Array, normal: Array, limit: float) -> Array:
    """The part of a convex polygon with normal'v <= limit."""
    if not len(corners):
        return corners
    over = corners @ normal - limit
    kept: list[Array] = []
    for i in range(len(corners)):
        j = (i + 1) % len(corners)
        if over[i] <= 0.0:
            kept.append(corners[i])
        if (over[i] < 0.0 < over[j]) or (over[j] < 0.0 < over[i]):
            share = over[i] / (over[i] - over[j])
            kept.append(corners[i] + share * (corners[j] - corners[i]))
    return np.array(kept).reshape(-1, 2)


def _centroid(corners: Array) -> Array:
    """Of a polygon's area; the mean of its corners where it has next to none."""
    following = np.roll(corners, -1, axis=0)
    cross = corners[:, 0] * following[:, 1] - following[:, 0] * corners[:, 1]
    area = 0.5 * cross.sum()
    if not abs(area) > 1e-14:
        return np.asarray(corners.mean(axis=0))
    return np.asarray(((corners + following) * cross[:, None]).sum(axis=0) / (6.0 * area))
