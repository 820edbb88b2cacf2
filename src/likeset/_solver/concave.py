r"""The maximum of a concave function of one variable, from a few values of it, with a certificate.

At a point p one learns bounds V <= f(p) <= U, or that f(p) = -inf. For p_1 < p_2 <= p the line through (p_1, V_1) and
(p_2, U_2) lies above f beyond p_2, and so from the other side. Between neighbours the lower of the two lines is an
outer bound, whose highest point is where to look next. What is returned is the highest of all these bounds: nothing is
assumed but concavity, and slopes are not needed.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Sequence
from itertools import pairwise
from math import inf

MOST = 60  # evaluations

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
        untried = {
            end for end, lost in zip(self.ends, self.lost, strict=True) if not lost and end >= self.floor
        } - known
        if where not in untried:  # at an end of the range the answer may be; elsewhere keep a distance
            where = min(max(where, left + 0.05 * width), right - 0.05 * width)
            close = [p for p in handy if left < p < right and abs(p - where) <= near * width]
            where = min(close, key=lambda p: abs(p - where), default=where)
        where = max(where, self.floor)
        return None if where in known else where


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
