r"""Sets in (theta, p) with an unknown shape p: bounds are maxima over p of bounds at fixed p.

For Weibull lifetimes  e^{z} t^p - e [z + log p + (p - 1) log t]  is convex in (z, p) together, so that the set is
convex, upper_p(x) is concave in p, and its maximum is found, and certified, by :mod:`~likeset._solver.concave`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import exp, inf, log
from typing import Any

import numpy as np

from likeset._solver.concave import ConcaveSearch
from likeset._solver.problem import CurveTerms, Kernel, Solution
from likeset._typing import Array, IntArray
from likeset.arguments import positive
from likeset.curves import Curve
from likeset.errors import InvalidArgumentError

GAP = 1e-7


@dataclass(frozen=True)
class ShapeTerms:
    """-log p of Weibull lifetimes of every group:  sum_i w_i [ e^z t_i^p - e_i (z + log p + (p - c) log t_i) ].

    One entry per observation: ``owners`` its group, ``log_times``, ``events`` e_i, ``weights`` w_i. ``jacobian`` c is 1
    for densities of t and 0 for densities of log t. The shape p lies in [lo, hi].
    """

    owners: IntArray
    log_times: Array
    events: Array
    weights: Array
    count: int
    jacobian: float
    lo: float
    hi: float

    def at(self, p: float) -> tuple[CurveTerms, Array]:
        """phi_g at shape p, and the part of the log-density that is free of z."""
        a = self._summed(self.weights * np.exp(p * self.log_times))
        free = self.weights * self.events * (log(p) + (p - self.jacobian) * self.log_times)
        return CurveTerms(Curve.EXPONENTIAL, a, self._summed(self.weights * self.events)), self._summed(free)

    def _summed(self, per_observation: Array) -> Array:
        return np.bincount(self.owners, per_observation, minlength=self.count).astype(np.float64)

    def likely(self, location: Array) -> float:
        """The p with the highest likelihood if z = p location at the groups; log p is pulled to zero a little."""
        v = self.log_times + location[self.owners]
        u, low, high = 0.0, log(self.lo), log(self.hi)
        u = min(max(u, low), high)
        for _ in range(60):
            p = exp(u)
            with np.errstate(over="ignore", invalid="ignore"):
                mass = self.weights * np.exp(np.minimum(p * v, 700.0))
                first = float((mass - self.weights * self.events) @ v) - float(self.weights @ self.events) / p
                bend = p * p * float(mass @ v**2) + p * float((mass - self.weights * self.events) @ v)
            slope = p * first + u
            low, high = (u, high) if slope < 0.0 else (low, u)
            new = u - slope / (bend + 1.0) if bend + 1.0 > 0.0 else inf
            new = new if low < new < high else 0.5 * (low + high)
            if abs(new - u) < 1e-6:
                break
            u = new
        return exp(u)

    def kindest(self, z: Array) -> Array:
        """The p of [lo, hi] with the highest likelihood for every row of z at the groups: Newton's method in log p."""
        of_rows, deaths = z[:, self.owners], float(self.weights @ self.events)
        line = float((self.weights * self.events) @ self.log_times)
        low, high = np.full(len(z), log(self.lo)), np.full(len(z), log(self.hi))
        u = np.clip(np.zeros(len(z)), low, high)
        for _ in range(80):
            p = np.exp(u)
            with np.errstate(over="ignore", invalid="ignore"):
                mass = self.weights * np.exp(p[:, None] * self.log_times + of_rows)
                first = (mass * self.log_times).sum(axis=1) - line - deaths / p  # in p
                second = (mass * self.log_times**2).sum(axis=1) + deaths / p**2
                slope, bend = p * first, p * p * second + p * first
            low, high = np.where(first < 0.0, u, low), np.where(first > 0.0, u, high)
            with np.errstate(divide="ignore", invalid="ignore"):
                new = u - slope / bend
            new = np.where((new > low) & (new < high) & (bend > 0.0), new, 0.5 * (low + high))
            done = np.abs(new - u) <= 1e-13 * (1.0 + np.abs(u))
            u = new
            if done.all():
                break
        return np.clip(np.exp(u), self.lo, self.hi)

    def checked(self, name: str, shape: Any) -> float:
        """A shape in the range, or a typed error."""
        number = positive(name, shape)
        if not self.lo <= number <= self.hi:
            raise InvalidArgumentError(name, shape, f"is outside [{self.lo:g}, {self.hi:g}]", "pass a possible value")
        return number


class ShapeKernel(Kernel):
    """Kernels at fixed p, and a search over p for every direction.

    at          the kernel of the set at a shape, prepared when first asked for
    least       (lower, upper) bounds of the smallest log R - level over theta at a shape, which is convex in p
    low, high   the range of p;  ``start`` one that should be plausible;  ``radius`` of Theta
    """

    def __init__(
        self,
        at: Callable[[float], Kernel],
        least: Callable[[float], tuple[float, float]],
        low: float,
        high: float,
        start: float,
        radius: float = inf,
    ) -> None:
        self.radius = radius
        self.at, self.least, self.low, self.high = at, least, low, high
        self._start = min(max(start, low), high)

    @cached_property
    def _deepest(self) -> tuple[float, float, float]:
        """The p at which most is plausible, the smallest log R - level there, and a lower bound of it over all p."""
        search = ConcaveSearch(self.low, self.high)

        def height(p: float) -> tuple[float, float]:
            lower, upper = self.least(p)
            return -upper, -lower

        for p in sorted({self._start, *(min(max(self._start * r, self.low), self.high) for r in (0.8, 1.25))}):
            search.learn(p, *height(p))
        value, bound = search.run(height, 1e-8)
        return search.best[1], -value, -bound

    @cached_property
    def status(self) -> str:  # type: ignore[override]
        """Empty if no p has a plausible theta."""
        return "empty" if self._deepest[2] > 0.0 else "regular"

    @cached_property
    def centre(self) -> Array:  # type: ignore[override]
        """That of the set at the shape at which most is plausible."""
        return self.at(self._deepest[0]).centre

    @cached_property
    def interval(self) -> tuple[float, float]:
        """The least and the largest p at which some theta is plausible, outward."""
        return self._interval(1e-8)

    @cached_property
    def _rough_interval(self) -> tuple[float, float]:
        return self._interval(0.02)

    def _interval(self, precision: float) -> tuple[float, float]:
        best, ends = self._deepest[0], []
        for end in (self.low, self.high):
            inside, outside = best, end
            if self.least(outside)[0] <= 0.0:
                ends.append(outside)
                continue
            while abs(outside - inside) > precision * inside:
                middle = math.sqrt(inside * outside)
                inside, outside = (middle, outside) if self.least(middle)[0] <= 0.0 else (inside, middle)
            ends.append(outside)
        return ends[0], ends[1]

    def _solve(self, A: Array, near: Array | None, tolerance: float) -> Solution:
        return self._searched(A, None)

    def _solve_outside(self, A: Array, outside: Array, near: Array | None, tolerance: float) -> Solution:
        return self._searched(A, outside)

    def _searched(self, A: Array, outside: Array | None) -> Solution:
        best, _, _ = self._deepest
        if self.at(best).status == "empty":
            # Too close to empty to find a point of it, and not certain to be: all that is sure is Theta.
            lengths = np.linalg.norm(A, axis=1) if outside is None else np.hypot(np.linalg.norm(A, axis=1), outside)
            upper = np.zeros(len(A))
            np.multiply(self.radius, lengths, out=upper, where=lengths > 0.0)
            columns = A.shape[1] + (outside is not None)
            return Solution(np.full(len(A), -inf), np.full((len(A), columns), np.nan), upper)
        low, high = self._rough_interval
        first = sorted({best, best + 0.4 * (high - best), best - 0.4 * (best - low)})
        answers = {p: self.at(p).solve(A, outside=outside) for p in first}
        columns = A.shape[1] + (outside is not None)
        values, points, upper = np.full(len(A), -inf), np.full((len(A), columns), np.nan), np.full(len(A), -inf)
        for i in range(len(A)):
            search = ConcaveSearch(low, high)
            kept: dict[float, tuple[float, Array]] = {}

            def note(p: float, found: Solution, j: int, kept: dict[float, tuple[float, Array]] = kept) -> None:
                kept[p] = (float(found.values[j]), found.points[j])

            def evaluate(p: float, i: int = i, note: Callable[..., None] = note) -> tuple[float, float]:
                row = None if outside is None else outside[i : i + 1]
                found = self.at(p).solve(A[i : i + 1], outside=row)
                note(p, found, 0)
                return float(found.values[0]), float(found.upper[0])

            for p in sorted(first, key=lambda p: p != best):  # one where the set is not empty comes first
                note(p, answers[p], i)
                search.learn(p, float(answers[p].values[i]), float(answers[p].upper[i]))
            if search.points and max(upper for _, _, upper in search.points) < inf:
                values[i], upper[i] = search.run(evaluate, GAP)
            else:
                values[i], upper[i] = search.best[0], inf
            values[i], points[i] = max(kept.values(), key=lambda pair: pair[0])
        return Solution(values, points, upper)
