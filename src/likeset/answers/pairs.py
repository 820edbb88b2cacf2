r"""Bounds of a function of two linear predictors: an outer polygon of their joint projection.

    max { f(x'theta, y'theta) : theta in C },      f monotone in each of its arguments

Signs are chosen so that f rises in both u1 = +-x'theta and u2 = +-y'theta. The projection of C is convex, and every
direction (cos t, sin t) of the quadrant cuts off a half-plane with a certified h(t):

    cos(t) u1 + sin(t) u2 <= h(t).

Half-planes at t_0 = 0 < t_1 < ... < t_k = pi/2 leave a polygon whose upper right boundary is a chain of edges. f is
largest on that chain. On a piece of an edge, u1 falls and u2 rises, so that f(its largest u1, its largest u2) bounds f,
whatever f is like in between: pieces are halved until that costs next to nothing. From below, f is known at the
maximisers of the directions. The next direction is the gradient of f where the bound is attained, and the search ends
when the two are closer than ``ACCURACY`` of the width. The first polygon, t = 0 and pi/2 alone, is the box of the two
intervals: more directions only take away from it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import inf, pi
from typing import TYPE_CHECKING, Any

import numpy as np

from likeset._typing import EPS, Array, IntArray
from likeset.answers.combinations import pair_support
from likeset.errors import InvalidArgumentError
from likeset.progress import meter, part

if TYPE_CHECKING:
    from likeset.sets import LikelihoodSet

ACCURACY = 1e-4
"""Distance of a bound from what is attained, relative to the width, at which refinement ends."""
_ROUNDS = 24
_LIKELY = 3  # rounds that are left, when it is said how far the search is
_CLOSEST = 1e-3  # angle between directions below which more of them tell nothing
_PIECES = 16  # that an edge, and what is left of it, is cut into
_CUTS = 6
_MOST = 1024
_PROBES = 17
_OUTWARD = 1e-10  # of the widths of u, for the rounding of the polygon's vertices

Function = Callable[[Array, Array], Array]


@dataclass(frozen=True)
class Bounds:
    """Certified bounds, one per row; ``low, high = bounds`` takes them apart.

    lower, upper   no parameter of the set goes beyond them
    gap            how far the set's own extrema lie inside at most, the larger of both ends; inf where the parts of a
                   covariate outside the span of those seen were taken at their worst
    """

    lower: Array
    upper: Array
    gap: Array

    def __iter__(self) -> Iterator[Array]:
        return iter((self.lower, self.upper))


def bounds_of_function(s: LikelihoodSet, function: Function, X: Array, Y: Array) -> Bounds:
    """Extrema of function(x'theta, y'theta) over the set for pairs of rows (already checked, of equal number)."""
    if not len(X):
        return Bounds(np.zeros(0), np.zeros(0), np.zeros(0))
    with np.errstate(all="ignore"):  # functions may be infinite at the ends
        return _bounds(s, function, X, Y)


def _bounds(s: LikelihoodSet, function: Function, X: Array, Y: Array) -> Bounds:
    low, high = s.interval(X)
    low_y, high_y = s.interval(Y)
    n, box = len(X), np.array([low, high, low_y, high_y])
    rising = np.array([directions_of(function, box[:, i]) for i in range(n)]).reshape(n, 2)
    widths = np.array([_width(low, high), _width(low_y, high_y)]).T
    # Each row has two jobs: the maximum of f, and that of -f.
    jobs = [
        _Job(function, 1.0 - 2.0 * flip, signs * (1.0 - 2.0 * flip), width)
        for signs, width in zip(np.where(rising, 1.0, -1.0), widths, strict=True)
        for flip in (0, 1)
    ]
    rows = np.repeat(np.arange(n), 2)
    support, active = _Supports(s, X, Y), np.arange(len(jobs))
    with meter("bounding functions of pairs", 1.0) as at:
        done, all_of_them = 0, (2 + _LIKELY) * len(jobs)  # directions
        for angle in (0.0, 0.5 * pi):
            with part(at, done / all_of_them, (done + len(jobs)) / all_of_them):
                _add(support, jobs, rows, np.full(len(jobs), angle), active)
            done += len(jobs)
        for _ in range(_ROUNDS):
            active = np.array([j for j in active if jobs[j].improve(_spread(jobs, int(j) // 2))], dtype=np.int64)
            if not len(active):
                break
            all_of_them = done + _LIKELY * len(active)
            with part(at, done / all_of_them, (done + len(active)) / all_of_them):
                _add(support, jobs, rows, np.array([jobs[j].next_angle for j in active]), active)
            done += len(active)
    for j in active:
        jobs[j].improve(_spread(jobs, int(j) // 2))
    upper, lower = np.array([j.ceiling for j in jobs[::2]]), -np.array([j.ceiling for j in jobs[1::2]])
    gaps = np.array([max(0.0, job.ceiling - job.best) if job.ceiling < inf else 0.0 for job in jobs])
    return Bounds(lower, upper, np.maximum(gaps[::2], gaps[1::2]))


def _spread(jobs: list[_Job], row: int) -> float:
    """The width of what is attained, or of the bounds where that is not known."""
    top, bottom = jobs[2 * row], jobs[2 * row + 1]
    width = top.best + bottom.best
    return width if width > -inf else top.ceiling + bottom.ceiling


class _Supports:
    """h of combinations  c1 u1 + c2 u2  for pairs of rows, and the u where they are attained."""

    def __init__(self, s: LikelihoodSet, X: Array, Y: Array) -> None:
        self.s, self.X, self.Y = s, X, Y

    def solve(self, rows: IntArray, first: Array, second: Array) -> tuple[Array, Array]:
        """Outer bounds of first * x'theta + second * y'theta; (x'theta, y'theta) where attained, NaN if not known."""
        return pair_support(self.s, self.X[rows], self.Y[rows], first, second)


def _add(support: _Supports, jobs: list[_Job], rows: IntArray, angles: Array, active: IntArray) -> None:
    scales = np.array([jobs[j].signs / jobs[j].width for j in active])
    first, second = np.cos(angles) * scales[:, 0], np.sin(angles) * scales[:, 1]
    first[angles == 0.5 * pi] = 0.0
    heights, points = support.solve(rows[active], first, second)
    for j, angle, height, point in zip(active, angles, heights, points, strict=True):
        jobs[j].add(float(angle), float(height), point)


class _Job:
    """One maximum: the directions so far, the bound and the best value attained, in units of the widths."""

    def __init__(self, function: Function, sign: float, signs: Array, width: Array) -> None:
        self.function, self.sign, self.signs, self.width = function, sign, signs, width
        self.angles, self.heights = np.empty(0), np.empty(0)
        self.points = np.empty((0, 2))
        self.best, self.ceiling, self.next_angle = -inf, inf, 0.25 * pi

    def f(self, u1: Array, u2: Array) -> Array:
        """The function, rising in both arguments."""
        z = self.signs * self.width
        return self.sign * evaluated(self.function, z[0] * u1, z[1] * u2)

    def add(self, angle: float, height: float, point: Array) -> None:
        """One more half-plane, and a point of the projection."""
        same = np.abs(self.angles - angle) < 1e-9
        if same.any():  # asked for again, since rounding had made it useless
            self.heights = np.where(same, np.minimum(self.heights, height), self.heights)
            return
        at = int(np.searchsorted(self.angles, angle))
        u = point * self.signs / self.width
        self.angles, self.heights = np.insert(self.angles, at, angle), np.insert(self.heights, at, height)
        self.points = np.insert(self.points, at, u, axis=0)
        if np.isfinite(u).all():
            self.best = max(self.best, float(self.f(u[:1], u[1:])[0]))

    def improve(self, width: float) -> bool:
        """Bound f by the polygon; whether another direction may help, and which."""
        if not np.isfinite(self.heights).all():
            finite = self.heights[np.isin(self.angles, (0.0, 0.5 * pi))]
            self.ceiling = min(self.ceiling, _outward(float(self.f(finite[:1], finite[1:])[0])))
            return False
        angles, heights, numbers = _tight(self.angles, self.heights)
        u1, u2 = _vertices(angles, heights)
        tolerance = 0.25 * ACCURACY * (width if 0.0 < width < inf else 0.0)
        value, at1, at2, edge = self._largest_on_chain(u1 + _OUTWARD, u2 + _OUTWARD, tolerance)
        self.ceiling = min(self.ceiling, _outward(value))
        if self.ceiling - self.best <= (ACCURACY * width if width < inf else 0.0):
            return False
        return self._choose_angle(angles, numbers, at1, at2, edge)

    def _largest_on_chain(self, u1: Array, u2: Array, tolerance: float) -> tuple[float, float, float, float]:
        """A bound of f on the chain, where it is, and on which edge: i + 0.5 is the vertex after edge i."""
        at_vertices = self.f(u1, u2)
        k = int(np.argmax(at_vertices))
        best = (float(at_vertices[k]), float(u1[k]), float(u2[k]), k + 0.5)
        if len(u1) == 1:
            return best
        # Pieces of all inner edges, from (high u1, low u2) to (low u1, high u2); those that matter are cut again.
        starts, steps = np.array([u1[:-1], u2[:-1]]), np.array([np.diff(u1), np.diff(u2)])
        edges = np.arange(1.0, len(u1))
        for _ in range(_CUTS):
            steps = np.repeat(steps / _PIECES, _PIECES, axis=1)
            starts = np.repeat(starts, _PIECES, axis=1) + steps * np.tile(np.arange(_PIECES), len(edges))
            edges = np.repeat(edges, _PIECES)
            middles = starts + 0.5 * steps
            values = self.f(np.append(starts[0], middles[0]), np.append(starts[1] + steps[1], middles[1]))
            bounds, inner = values[: len(edges)], values[len(edges) :]
            i = int(np.argmax(inner))
            if inner[i] > best[0]:
                best = (float(inner[i]), float(middles[0][i]), float(middles[1][i]), float(edges[i]))
            again = bounds > best[0] + tolerance
            if not again.any() or again.sum() > _MOST:
                break
            starts, steps, edges = starts[:, again], steps[:, again], edges[again]
        # Pieces left out earlier are below the best value and the tolerance.
        return max(best[0] + tolerance, float(bounds.max())), *best[1:]

    def _choose_angle(self, angles: Array, numbers: IntArray, at1: float, at2: float, edge: float) -> bool:
        """The gradient of f there; where that is a direction already, the side of the edge that is not attained."""
        step = 1e-5
        near1, near2 = np.array([at1 + step, at1 - step, at1, at1]), np.array([at2, at2, at2 + step, at2 - step])
        values = self.f(near1, near2)
        slope1, slope2 = float(values[0] - values[1]), float(values[2] - values[3])
        wanted = float(np.arctan2(slope2, slope1)) if np.isfinite([slope1, slope2]).all() else 0.25 * pi
        if edge != int(edge):  # a vertex: between the two directions that meet there
            low, high = angles[int(edge)], angles[int(edge) + 1]
        else:
            i = int(edge)
            attained = self.points[numbers[i]]
            above = not np.isfinite(attained).all() or at2 > attained[1]
            low, high = (angles[i], angles[i + 1]) if above else (angles[i - 1], angles[i])
        if high - low < _CLOSEST:
            return False
        margin = 0.1 * (high - low)
        inside = low + margin < wanted < high - margin
        self.next_angle = float(wanted if inside else 0.5 * (low + high))
        return True


def _vertices(angles: Array, heights: Array) -> tuple[Array, Array]:
    """Where the lines of neighbouring directions meet."""
    cos, sin = np.cos(angles), np.sin(angles)
    cos[angles == 0.5 * pi] = 0.0
    turn = np.sin(np.diff(angles))
    u1 = (heights[:-1] * sin[1:] - heights[1:] * sin[:-1]) / turn
    u2 = (heights[1:] * cos[:-1] - heights[:-1] * cos[1:]) / turn
    return u1, u2


def _tight(angles: Array, heights: Array) -> tuple[Array, Array, IntArray]:
    """Without half-planes that the others imply, which rounding can make: leaving one out leaves more room."""
    numbers = np.arange(len(angles))
    while len(numbers) > 2:
        u1, u2 = _vertices(angles[numbers], heights[numbers])
        wrong = (np.diff(u1) > 0.0) | (np.diff(u2) < 0.0)
        if not wrong.any():
            break
        numbers = np.delete(numbers, 1 + int(np.argmax(wrong)))
    return angles[numbers], heights[numbers], numbers


def _outward(value: float) -> float:
    return value + 8 * EPS * abs(value) if np.isfinite(value) else (inf if np.isnan(value) else value)


def _width(low: Array, high: Array) -> Array:
    width = np.where(np.isfinite(high) & np.isfinite(low), high, 1.0) - np.where(np.isfinite(low), low, 0.0)
    return np.where(np.isfinite(width) & (width > 0.0), width, 1.0)


# -- the user's function -------------------------------------------------------------------------------------------


def evaluated(function: Function, z1: Array, z2: Array) -> Array:
    """Values of a user's function, or a typed error."""
    try:
        with np.errstate(all="ignore"):
            values = np.asarray(function(z1.copy(), z2.copy()), dtype=np.float64)
    except Exception as error:
        raise InvalidArgumentError(
            "function", function, f"failed on arrays of z ({type(error).__name__})",
            "pass a function of two arrays that returns one number for each pair",
        ) from error  # fmt: skip
    if values.shape != z1.shape:
        raise InvalidArgumentError(
            "function", function, f"returned shape {values.shape} for arrays of shape {z1.shape}",
            "pass a function of two arrays that returns one number for each pair",
        )  # fmt: skip
    return values


def directions_of(function: Any, box: Array) -> tuple[bool, bool]:
    """Whether the function rises in each of its arguments, as seen on a grid over the box of both intervals."""
    if not callable(function) or isinstance(function, type):
        raise InvalidArgumentError("function", function, "is not a function", "pass e.g. lambda a, b: a * np.exp(b)")
    ends = np.where(np.isfinite(box), box, np.array([-8.0, 8.0, -8.0, 8.0]))
    grid1, grid2 = np.linspace(ends[0], ends[1], _PROBES), np.linspace(ends[2], ends[3], _PROBES)
    z1, z2 = (part.ravel() for part in np.meshgrid(grid1, grid2, indexing="ij"))
    values = evaluated(function, z1, z2).reshape(_PROBES, _PROBES)
    if np.isnan(values).any():
        raise InvalidArgumentError(
            "function", function, f"is NaN somewhere on [{ends[0]:g}, {ends[1]:g}] x [{ends[2]:g}, {ends[3]:g}]",
            "pass a function that is defined for all plausible values of the two predictors",
        )  # fmt: skip
    found = []
    for axis in (0, 1):
        first, second = np.take(values, range(_PROBES - 1), axis), np.take(values, range(1, _PROBES), axis)
        noise = 64 * EPS * np.maximum(np.abs(first), np.abs(second))
        with np.errstate(invalid="ignore"):
            rises, falls = (second - first > noise).any(), (first - second > noise).any()
        if rises and falls:
            raise InvalidArgumentError(
                "function", function, f"is not monotone in its {('first', 'second')[axis]} argument",
                "pass a function that rises or falls in each argument, for all plausible values of the other",
            )  # fmt: skip
        found.append(bool(rises) or not falls)
    return found[0], found[1]
