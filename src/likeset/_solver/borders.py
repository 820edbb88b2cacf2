r"""What the set of two means says of a line or a curve between them: no difference, a ratio, a margin.

    border    m_1 = (a m_2 + b) / (c m_2 + d),    rising:  ad > bc,  c m_2 + d > 0

Equal means, means that differ by a number, have a given ratio or a given odds ratio are borders, whichever of the three
curves :mod:`~likeset._solver.pairs` goes by. log R is convex in the means. If it is lower at some point on one side of
a border than anywhere on the border, then every y on the other side has a point b of the border between the two,
log R(b) <= max of both, and so log R(y) >= log R(b): the least log R on the border is that of the other side.

*Its least value on a border*, which need not be straight. A piece of it lies in a triangle: its two ends, and the point
where the tangents of the border at these meet. Over the triangle log R is at least

    max over lambda in [0, 1] of the least, over the three corners, of  lambda l_1 + (1 - lambda) l_2,

l_1 and l_2 being the tangents of log R at the ends. Pieces that might hold less than what is attained are cut into
smaller ones; what is lost falls with the square of their length.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf

import numpy as np

from likeset._solver.evaluate import log_sum_exp
from likeset._solver.pairs import PairSet, minimisers
from likeset._typing import Array, Mask

ACCURACY = 1e-9  # of the least log R on a border, relative to 1 + |log R|
_PIECES = 16  # to begin with
_PARTS = 6  # that a piece is cut into
_ROUNDS = 24
_MOST = 2048  # pieces at once
_PROBES = 9  # of the border between the two means that are most likely
_BISECTIONS = 24  # of ranges: pieces get short by themselves


@dataclass(frozen=True)
class Border:
    """m_1 = (a m_2 + b) / (c m_2 + d)."""

    a: float = 1.0
    b: float = 0.0
    c: float = 0.0
    d: float = 1.0

    def at(self, t: Array) -> Array:
        """The points with m_2 = t, where c t + d > 0."""
        return np.stack([(self.a * t + self.b) / (self.c * t + self.d), t], axis=-1)

    def where(self, m: Array) -> Array:
        """m_2 of the points with m_1 = m, where a - c m > 0."""
        return (self.d * m - self.b) / (self.a - self.c * m)

    def corners(self, s: Array, t: Array) -> Array:
        """Where the tangents at the points with m_2 = s and m_2 = t meet."""
        width = self.c * (s + t) + 2.0 * self.d
        first, second = self.a * (s + t) + 2.0 * self.b, 2.0 * self.c * s * t + self.d * (s + t)
        return np.stack([first / width, second / width], axis=-1)

    def side(self, m: Array) -> int:
        """1 where m_1 is above the border, -1 below it, 0 on it."""
        width = self.c * m[1] + self.d
        if width > 0.0:
            return int(np.sign(m[0] * width - (self.a * m[1] + self.b)))
        return 1 if self.c > 0.0 else -1  # beyond its pole the border is at -inf or inf

    def within(self, low: Array, high: Array) -> tuple[float, float]:
        """The range of m_2 on which the border runs through the box [low, high]; a first end above the second: none."""
        start, end = float(low[1]), float(high[1])
        # On the branch c t + d > 0 the border rises to a / c from below (c > 0), or from it upwards (c < 0).
        if self.a - self.c * low[0] > 0.0:
            start = max(start, float(self.where(low[0])))
        elif self.c > 0.0:
            return inf, -inf
        top = self.a - self.c * float(high[0]) if self.c else self.a
        if top > 0.0:
            end = min(end, float(self.where(high[0])) if high[0] < inf else inf)
        elif self.c < 0.0:
            return inf, -inf
        return start, end


EQUAL = Border()


@dataclass(frozen=True)
class Division:
    """log R on a border and on either side of it.

    ``least`` is a certified lower bound of its minimum on the border, ``attained`` a value; ``apart`` the side of the
    border that C is on if ``least`` exceeds the level, zero otherwise; ``likely`` the side of the most likely means,
    ``somewhere`` log R there; ``lowest`` a lower bound of log R everywhere.
    """

    least: float
    attained: float
    apart: int
    likely: int
    lowest: float
    somewhere: float

    def against(self, side: int) -> tuple[float, float]:
        """Bounds of the least log R on one side, the border included; on the border for 0."""
        if side == 0 or (self.likely == -side and self.somewhere < self.least):
            return self.least, self.attained
        return self.lowest, min(self.attained, self.somewhere if self.likely in (0, side) else inf)


def division(target: PairSet, border: Border = EQUAL) -> Division:
    """What log R is on a border, and what that says of either side."""
    z = target.most_likely()
    likely = border.side(target.means(z))
    somewhere = float(target.values(z[None])[0]) + target.rounding
    least, attained = _least(target, border)
    least -= target.rounding
    sure = least > target.level and somewhere < least
    return Division(least, attained, likely if sure else 0, likely, _floor(target), somewhere)


def surely_below(target: PairSet) -> bool:
    """Whether C surely has no point with z_1 >= z_2."""
    found = division(target)
    if found.least == inf or found.likely >= 0 or found.least <= target.level:
        return False
    return found.apart < 0 or target.enclosed() is None


def _floor(target: PairSet) -> float:
    """A lower bound of log R: the ratios alone, each where it is least."""
    low, high = np.broadcast_to(target.low, target.a.shape), np.broadcast_to(target.high, target.a.shape)
    parts = target.losses(minimisers(target.curve, target.a, target.s, low, high))
    parts = np.where((target.a == 0.0) & (target.s == 0.0), 0.0, parts)
    return float(log_sum_exp((target.constants + parts.sum(axis=1))[None])[0]) - target.rounding


def _least(target: PairSet, border: Border) -> tuple[float, float]:
    """(lower bound, attained value) of the least log R on the border, within the box."""
    ends = target.means(np.array([target.low, target.high]))
    start, end = border.within(*ends)
    if not start <= end:
        return inf, inf
    if not target.total_a.any():  # nothing was seen of either arm
        value = float(target.heights(border.at(np.array([min(max(0.0, start), end)])))[0][0])
        return value, value
    likely = target.means(target.most_likely())
    other = float(border.where(likely[0])) if border.a > border.c * likely[0] else float(likely[1])
    t = np.clip(np.linspace(float(likely[1]), other, _PROBES), start, end)
    t = t[np.isfinite(t)]
    values = target.heights(border.at(t))[0] if len(t) else np.array([inf])
    if not np.isfinite(values).any():
        return -inf, inf
    # Beyond these ranges log R exceeds what is attained already.
    best = float(values.min())
    ranges = replace(target, level=best).ranges(_BISECTIONS)
    if ranges is not None:
        first, last = border.within(*target.means_around(*ranges))
        start, end = max(start, first), min(end, last)
    if not (np.isfinite([start, end]).all() and start <= end):
        return -inf, best
    chosen = t[int(np.argmin(values))]
    points = np.unique(np.append(np.linspace(start, end, _PIECES + 1), np.clip(chosen, start, end)))
    pieces = _Pieces.between(target, border, points)
    done, best = inf, min(best, pieces.attained)
    for _ in range(_ROUNDS):
        open_ones = pieces.bounds < best - ACCURACY * (1.0 + abs(best))
        done = min(done, float(pieces.bounds[~open_ones].min(initial=inf)))
        left = float(pieces.bounds[open_ones].min(initial=inf))
        if not open_ones.any() or _PARTS * open_ones.sum() > _MOST:
            break
        pieces = pieces.cut(target, border, open_ones)
        best = min(best, pieces.attained)
    return min(done, left, best), best


@dataclass(frozen=True)
class _Pieces:
    """Pieces of a border: m_2 of their ends, log R there, and lower bounds of it on each."""

    first: Array
    last: Array
    attained: float
    bounds: Array

    @classmethod
    def between(cls, target: PairSet, border: Border, points: Array) -> _Pieces:
        """Between neighbours of rows of rising m_2, one row or several."""
        rows = np.atleast_2d(points)
        where = border.at(rows)
        values, slopes = (part.reshape(*rows.shape, -1) for part in target.heights(where.reshape(-1, 2)))
        first, last = rows[:, :-1].ravel(), rows[:, 1:].ravel()
        ends = [
            (where[:, part].reshape(-1, 2), values[:, part].reshape(-1), slopes[:, part].reshape(-1, 2))
            for part in (slice(None, -1), slice(1, None))
        ]
        triangle = np.stack([ends[0][0], ends[1][0], border.corners(first, last)], axis=1)
        tangents = []
        for at, height, slope in ends:
            with np.errstate(invalid="ignore", over="ignore"):
                plane = height[:, None] + np.einsum("nki,ni->nk", triangle - at[:, None], slope)
            tangents.append(np.where(np.isfinite(plane).all(axis=1)[:, None], plane, -inf))
        finite = values[np.isfinite(values)]
        return cls(first, last, float(finite.min(initial=inf)), _highest_floor(*tangents))

    def cut(self, target: PairSet, border: Border, which: Mask) -> _Pieces:
        """Some of them, each in several parts."""
        share = np.linspace(0.0, 1.0, _PARTS + 1)
        first, last = self.first[which, None], self.last[which, None]
        return _Pieces.between(target, border, np.clip(first + share * (last - first), first, last))


def _highest_floor(one: Array, other: Array) -> Array:
    """max over lambda in [0, 1] of min_i lambda one_i + (1 - lambda) other_i, row by row, or a little less."""
    found = np.maximum(one.min(axis=1), other.min(axis=1))
    with np.errstate(invalid="ignore", divide="ignore"):
        for i, j in ((0, 1), (0, 2), (1, 2)):
            apart = (one[:, i] - one[:, j]) - (other[:, i] - other[:, j])
            share = np.clip((other[:, j] - other[:, i]) / apart, 0.0, 1.0)[:, None]
            mixed = (share * one + (1.0 - share) * other).min(axis=1)
            found = np.where(mixed > found, mixed, found)  # not where it is no number
    return found
