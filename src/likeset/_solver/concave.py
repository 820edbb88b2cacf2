r"""The maximum of a concave function of one variable, from a few values of it, with a certificate.

At a point p one learns bounds V <= f(p) <= U, or that f(p) = -inf. For p_1 < p_2 <= p the line through (p_1, V_1) and
(p_2, U_2) lies above f beyond p_2, and so from the other side. Between neighbours the lower of the two lines is an
outer bound. What is returned is the highest of all these bounds: nothing is assumed but concavity, and slopes are not
needed.

Where to look next is a matter of cost only. Around the best value known f is about a parabola, c (p - v)^2 below its
top: at v, if that is not known as well as need be, and otherwise a little to both sides, where three points h apart
leave a gap of about c h^2. Where there is no such parabola: at the highest point of the outer bound.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Sequence
from itertools import pairwise
from math import inf, sqrt

MOST = 60  # evaluations
TRUSTED = 10  # points up to which parabolas alone are followed; from then on every second time
APART = 0.6  # share of the distance h at which c h^2 is the tolerance: of points that close the gap

Line = tuple[float, float, float]
"""(p, height there, slope)."""


class ConcaveSearch:
    """Maximises over [low, high]; below ``floor`` nothing is evaluated, and lines from above it are the bounds.

    >>> f = lambda p: (1.0 - (p - 1.2) ** 2,) * 2            # V and U
    >>> search = ConcaveSearch(0.0, 4.0)
    >>> for p in (0.5, 1.0, 3.0):
    ...     search.learn(p, *f(p))
    >>> value, ceiling = search.run(f, 1e-9)
    >>> bool(value <= 1.0 <= ceiling <= value + 2e-9), len(search.points) < 30
    (True, True)
    """

    def __init__(self, low: float, high: float, floor: float = -inf) -> None:
        self.ends, self.floor = [low, high], floor
        self.lost = [False, False]  # whether f is -inf at that end
        self.points: list[tuple[float, float, float]] = []

    def learn(self, p: float, value: float, upper: float) -> None:
        """Bounds of f(p); both -inf beyond its domain, an interval, of which some point must be known first."""
        if upper > -inf:
            insort(self.points, (p, value, upper))
        else:
            side = int(p > self.points[0][0])
            self.ends[side], self.lost[side] = p, True

    @property
    def best(self) -> tuple[float, float]:
        """The largest value known, and where."""
        p, value, _ = max(self.points, key=lambda point: point[1])
        return value, p

    def ceiling(self) -> tuple[float, float, tuple[float, float]]:
        """The outer bound of the maximum, where it is attained, and the neighbours between which that is."""
        points = self.points
        upper, p = max((upper, p) for p, _, upper in points)
        found = (upper, p, (p, p))
        edges = [self.ends[0], *(p for p, _, _ in points), self.ends[1]]
        for i, (left, right) in enumerate(pairwise(edges)):
            if left < right:
                height, where = _peak(left, right, _line(points, i - 2, i - 1), _line(points, i + 1, i))
                if height > found[0]:
                    found = (height, where, (left, right))
        return found

    def run(self, evaluate: Callable[[float], tuple[float, float]], tolerance: float) -> tuple[float, float]:
        """The largest value and the bound: until they are closer than the tolerance, relative to 1 + |value|."""
        for _ in range(MOST):
            where = self.next(tolerance * (1.0 + abs(self.best[0])))
            if where is None:
                break
            self.learn(where, *evaluate(where))
        return self.best[0], self.ceiling()[0]

    def next(self, tolerance: float, handy: Sequence[float] = (), near: float = 0.0) -> float | None:
        """Where to look next; None if value and bound differ by the tolerance at most, or nothing is left to look at.

        One of the ``handy`` places will do if it is not farther off than ``near``, in parts of the open interval.
        """
        ceiling, where, (left, right) = self.ceiling()
        value, _ = self.best
        width = right - left
        if ceiling - value <= tolerance or width <= 1e-13 * abs(where):
            return None
        known = {p for p, _, _ in self.points}
        turn = len(self.points) < TRUSTED or len(self.points) % 2 == 0
        wanted = self._on_parabola(tolerance) if turn else None
        if wanted is not None:
            p, room = wanted
            first, last = self.points[0][0], self.points[-1][0]  # beyond these f may be known to be -inf
            close = [q for q in handy if abs(q - p) < room and q not in known and first < q < last]
            p = min(close, key=lambda q: abs(q - p), default=p)
            if p not in known and p >= self.floor:
                return p
        untried = {
            end for end, lost in zip(self.ends, self.lost, strict=True) if not lost and end >= self.floor
        } - known
        if where not in untried:  # at an end of the range the answer may be; elsewhere keep a distance
            where = min(max(where, left + 0.05 * width), right - 0.05 * width)
            close = [p for p in handy if left < p < right and abs(p - where) <= near * width]
            where = min(close, key=lambda p: abs(p - where), default=where)
        where = max(where, self.floor)
        return None if where in known else where

    def top(self) -> float | None:
        """Where the parabola through the best value and its neighbours has its top; None where that is no new place."""
        points = self.points
        i = max(range(len(points)), key=lambda j: points[j][1])
        if not 0 < i < len(points) - 1:
            return None
        where, bend = _vertex(points[i - 1 : i + 2])
        known = {p for p, _, _ in points}
        inside = points[i - 1][0] < where < points[i + 1][0]
        return where if 0.0 < bend < inf and inside and where not in known else None

    def _on_parabola(self, tolerance: float) -> tuple[float, float] | None:
        """Where to look by the parabola through the best point and its neighbours, and how far off will do."""
        points = self.points
        i = max(range(len(points)), key=lambda j: points[j][1])
        if not 0 < i < len(points) - 1:
            return None
        p, q, r = (point[0] for point in points[i - 1 : i + 2])
        # The three that are closest together tell most, even if the top is beyond them.
        triples = [points[j : j + 3] for j in (i - 2, i - 1, i) if j >= 0 and j + 3 <= len(points)]
        top, bend = _vertex(min(triples, key=lambda three: three[2][0] - three[0][0]))
        if not (0.0 < bend < inf and p < top < r):
            top, bend = _vertex(points[i - 1 : i + 2])
        if not 0.0 < bend < inf:
            return None
        apart = APART * sqrt(tolerance / bend)
        if abs(top - q) > 0.5 * apart:
            far = max(apart, 0.05 * min(q - p, r - q))  # not so near to what is known that nothing is learnt
            top = q + far * (1.0 if top > q else -1.0) if abs(top - q) < far else top
            # Within the neighbours: where f is known to be -inf nothing is learnt.
            return (top, min(0.2 * abs(top - q), top - p, r - top)) if p < top < r else None
        if r - q > 2.0 * apart:
            return q + apart, 0.5 * apart
        return (q - apart, 0.5 * apart) if q - p > 2.0 * apart else None


def _vertex(three: list[tuple[float, float, float]]) -> tuple[float, float]:
    """Where the parabola through three points has its top, and c in c (p - top)^2."""
    (p, at_p, _), (q, at_q, _), (r, at_r, _) = three
    rise, fall = (at_q - at_p) / (q - p), (at_q - at_r) / (r - q)
    bend = (rise + fall) / (r - p)
    return q + 0.5 * (rise * (r - q) - fall * (q - p)) / (bend * (r - p)) if bend > 0.0 else q, bend


def _line(points: list[tuple[float, float, float]], far: int, near: int) -> Line | None:
    """Through V at the point number ``far`` and U at ``near``, which is next to the gap; None where there is none."""
    if not (0 <= far < len(points) and 0 <= near < len(points)):
        return None
    p, _, upper = points[near]
    q, value, _ = points[far]
    return p, upper, (upper - value) / (p - q)


def _peak(left: float, right: float, a: Line | None, b: Line | None) -> tuple[float, float]:
    """The highest point of the lower of two lines on [left, right]: height and place."""
    lines = [line for line in (a, b) if line is not None]
    if not lines:
        return inf, 0.5 * (left + right)
    candidates = [left, right]
    if a is not None and b is not None and a[2] != b[2]:
        crossing = (b[1] - b[2] * b[0] - a[1] + a[2] * a[0]) / (a[2] - b[2])
        if left < crossing < right:
            candidates.append(crossing)
    heights = [min(line[1] + line[2] * (p - line[0]) for line in lines) for p in candidates]
    best = max(range(len(heights)), key=heights.__getitem__)
    return heights[best], candidates[best]
