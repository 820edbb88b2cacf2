r"""Sets in (theta, p) with one more number p: bounds are maxima over p of bounds at a fixed p.

If the set is convex in (theta, p), upper_p(x) is concave in p, and its maximum is found, and certified, by
:mod:`~likeset._solver.concave`. So it is for the shape of Weibull lifetimes. A scale, p = scale^k (sigma^2 of Gaussian,
b of Laplace noise), comes with evidence that is convex in (eta, s) = (theta/p, 1/p); the map (eta, s) -> (theta, p) is
projective and takes convex sets to convex sets.

Kernels at a fixed p are dear and directions are cheap: every p that is asked for serves all directions that want to
look near it.
"""

from __future__ import annotations

from collections.abc import Callable
from math import exp, inf, log
from typing import Protocol

import numpy as np

from likeset._solver.concave import ConcaveSearch
from likeset._solver.problem import Kernel, Solution
from likeset._typing import Array
from likeset.parts import worked_out

GAP = 1e-7
SHARP = 0.1  # share of it that bounds at one p may be apart: what they are apart cannot be closed by the search
ROUGH = 0.02  # relative precision of the range that is searched
LEAST = 1e-10  # of a plausible p, below which no kernel is asked: numbers mean little there, and concavity bounds it
_STEPS = 40
_FAR = 2.0  # ratio of two p
_NEAR = 0.1  # of the open interval: how far a p that is prepared may be from the one that was wanted


class Depth(Protocol):
    """How far the least evidence at p lies below the level: bounds, both -inf if that cannot be told."""

    def __call__(self, p: float) -> tuple[float, float]:
        """(lower, upper)."""
        ...


class SearchKernel(Kernel):
    """Kernels at fixed p, and a search over p for every direction.

    at            the kernel of the set at p, prepared when first asked for
    depth         how far the least evidence lies below the level, concave in p, or in 1/p if ``inverse``
    low, high     the range of p > 0;  ``start`` one that should be plausible;  ``bound`` of Theta
    """

    share = 8

    def __init__(
        self,
        at: Callable[[float], Kernel],
        depth: Depth,
        low: float,
        high: float,
        start: float,
        bound: float = inf,
        inverse: bool = False,
    ) -> None:
        self.at, self.depth, self.low, self.high, self.bound, self.inverse = at, depth, low, high, bound, inverse
        self._start = min(max(start, low), high)

    # -- where the set is ---------------------------------------------------------------------------------------

    @worked_out
    def _plausible(self) -> tuple[float, bool]:
        """A p at which the set is not empty, and True; or False, and whether it is certain that there is none."""
        if self.at(self._start).status != "empty":
            return self._start, True
        ends = (1.0 / self.high, 1.0 / self.low) if self.inverse else (self.low, self.high)
        search = ConcaveSearch(*ends)

        def p_of(c: float) -> float:
            return min(max(1.0 / c if self.inverse else c, self.low), self.high)

        middle = 1.0 / self._start if self.inverse else self._start
        for c in sorted({min(max(middle * r, ends[0]), ends[1]) for r in (0.8, 1.0, 1.25)}):
            search.learn(c, *self.depth(p_of(c)))
        for number in range(_STEPS):
            found, at = search.best
            if found >= 0.0 and self.at(p_of(at)).status != "empty":
                return p_of(at), True
            ceiling, where, (left, right) = search.ceiling()
            if ceiling < 0.0:
                return p_of(at), False
            top = search.top() if number % 2 == 0 else None
            if top is not None:  # the ceiling leads astray where upper bounds of the depth are far off
                search.learn(top, *self.depth(p_of(top)))
                continue
            width = right - left
            if where not in ends:
                where = min(max(where, left + 0.05 * width), right - 0.05 * width)
            elif right > _FAR * left:  # an end where numbers may overflow: a part of the way shows which way it goes
                where = right / _FAR if where == left else left * _FAR
            if width <= 1e-13 * abs(where) or where in {c for c, _, _ in search.points}:
                break
            search.learn(where, *self.depth(p_of(where)))
        return p_of(search.best[1]), True  # too close to tell: not certain to be empty

    @worked_out
    def status(self) -> str:  # type: ignore[override]
        """Empty if it is certain that no p has a plausible theta, a point if none was found."""
        best, found = self._plausible
        return ("regular" if self.at(best).status != "empty" else "point") if found else "empty"

    @worked_out
    def centre(self) -> Array:  # type: ignore[override]
        """That of the set at a plausible p."""
        return self.at(self._plausible[0]).centre

    @worked_out
    def interval(self) -> tuple[float, float]:
        """The least and the largest p at which some theta is plausible, outward."""
        return self._interval(1e-9)

    @worked_out
    def _rough_interval(self) -> tuple[float, float]:
        return self._interval(ROUGH)

    def _interval(self, precision: float) -> tuple[float, float]:
        best = self._plausible[0]
        return self._end(best, self.low, precision), self._end(best, self.high, precision)

    @property
    def _floor(self) -> float:
        """The least p that kernels are asked about, if the set there is not empty."""
        return max(self.low, LEAST * self._plausible[0])

    def _end(self, best: float, limit: float, precision: float) -> float:
        """The last p before the limit that is not known to have an empty set, within the precision and outward."""
        furthest = self._floor if limit == self.low else limit
        inside, outside, last = log(best), log(best), log(furthest)
        step = 0.25 if last > inside else -0.25
        while True:  # further and further until the set is empty
            outside = min(inside + step, last) if step > 0 else max(inside + step, last)
            if self._is_empty(exp(outside), furthest if outside == last else None):
                break
            if outside == last:
                return limit
            inside, step = outside, 2.0 * step
        while abs(outside - inside) > precision:
            middle = 0.5 * (inside + outside)
            if not min(inside, outside) < middle < max(inside, outside):
                break
            inside, outside = (inside, middle) if self._is_empty(exp(middle)) else (middle, outside)
        return exp(outside)

    def _is_empty(self, p: float, exact: float | None = None) -> bool:
        return self.at(p if exact is None else exact).status == "empty"

    # -- bounds -------------------------------------------------------------------------------------------------

    def _solve(self, A: Array, near: Array | None, tolerance: float) -> Solution:
        return self._searched(A, None)

    def _solve_outside(self, A: Array, outside: Array, near: Array | None, tolerance: float) -> Solution:
        return self._searched(A, outside)

    def _searched(self, A: Array, outside: Array | None) -> Solution:
        best, columns = self._plausible[0], A.shape[1] + (outside is not None)
        if self.at(best).status == "empty":
            # Too close to empty to find a point of it, and not certain to be: all that is sure is Theta.
            lengths = np.linalg.norm(A, axis=1) if outside is None else np.hypot(np.linalg.norm(A, axis=1), outside)
            upper = np.zeros(len(A))
            np.multiply(self.bound, lengths, out=upper, where=lengths > 0.0)
            return Solution(np.full(len(A), -inf), np.full((len(A), columns), np.nan), upper)
        low, high = self._rough_interval
        searches = [ConcaveSearch(low, high, self._floor) for _ in A]
        values, points = np.full(len(A), -inf), np.full((len(A), columns), np.nan)
        made: list[float] = []

        def ask(p: float, rows: list[int]) -> None:
            """Bounds at p for some of the directions, from the best points they have."""
            known = points[rows][:, : A.shape[1]]
            near = np.where(np.isfinite(known), known, 0.0) if made else None
            beyond = None if outside is None else outside[rows]
            found = self.at(p).solve(A[rows], SHARP * GAP, outside=beyond, near=near)
            if p not in made:
                made.append(p)
            for j, i in enumerate(rows):
                searches[i].learn(p, float(found.values[j]), float(found.upper[j]))
                if found.values[j] > values[i]:
                    values[i], points[i] = found.values[j], found.points[j]

        everyone = list(range(len(A)))
        for p in (best, best + 0.4 * (high - best), best - 0.4 * (best - low)):
            if p not in made:
                ask(p, everyone)
        rooms = GAP * np.abs(values - A @ self.at(best).centre)  # in parts of the half-widths: units do not matter
        open_ones = [i for i in everyone if max(upper for _, _, upper in searches[i].points) < inf]
        for _ in range(_STEPS):
            wanted: dict[float, list[int]] = {}
            for i in open_ones:
                where = searches[i].next(float(rooms[i]), made, _NEAR)
                if where is not None:
                    wanted.setdefault(where, []).append(i)
            if not wanted:
                break
            for p, rows in wanted.items():
                ask(p, rows)
            open_ones = [i for rows in wanted.values() for i in rows]
        upper = np.array([search.ceiling()[0] for search in searches])
        return Solution(values, points, np.maximum(upper, values))
