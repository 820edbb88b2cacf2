r"""Ends of announced contrasts where the evidence is not convex: tilts of exponential families with covariates.

    log R(theta) = log [ sum_k exp M_k(theta) + sum_u exp D_u(theta) ],      C = { log R <= level }

The set of the M_k alone is convex and holds C: it has a kernel, which answers for whatever is not an announced
contrast, and gives ranges of the covariates' z to start from. For an announced one there is a search
(:mod:`~likeset._solver.tilt_search`) and a proof (:mod:`~likeset._solver.tilt_proof`), once for each end of a set.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf

import numpy as np

from likeset._solver.problem import Kernel, Solution, with_column
from likeset._solver.tilt_bends import second_derivatives
from likeset._solver.tilt_proof import Proof, ranges_of_ratios
from likeset._solver.tilt_search import Search, There
from likeset._solver.tilt_sides import Side
from likeset._solver.tilt_terms import Ratios, Tilt
from likeset._typing import EPS, Array, IntArray, Mask
from likeset.parts import worked_out

OPEN = 0.01  # between theta_b and the bound, of the distance to the centre: as good as nothing
_TRIES, _PART = 3, 0.5  # proofs from beyond an end, so far on the way to what is known
_LESS = (0.0, 0.1, 0.3, 1.0, 3.0)  # nats below what is attained: levels above which log R is tried to be proved
_PARALLEL = 1e-12
_ABOVE = 4.0 * 2.0 ** np.arange(7)  # nats above the level: other levels that ranges are found for


@dataclass(frozen=True)
class Ranges:
    """Of the z of all covariates over { log sum_k exp M_k <= level }."""

    level: float
    low: Array
    high: Array


@dataclass(frozen=True)
class End:
    """About the maximiser of one contrast, or of minus it, and an outer bound of the maximum."""

    point: Array
    upper: float


class TiltedKernel(Kernel):
    """C with tilts of announced contrasts: certified ends of these, the bounds of the M_k alone of anything else.

    ``outer`` makes the kernel of { log sum_k exp M_k <= level } of a level, ``height`` is log R of points; ``bound``
    that of theta.
    """

    def __init__(
        self, outer: Callable[[float], Kernel], ratios: Ratios, contrasts: Array, tilts: list[Tilt], level: float,
        bound: float, height: Callable[[Array], Array],
    ) -> None:  # fmt: skip
        self._outer_at, self._outer = outer, outer(level)
        self._ratios, self._contrasts, self._tilts = ratios, contrasts, tilts
        self._level, self._bound, self._height = level, bound, height
        self.status, self.centre = self._outer.status, self._outer.centre
        self._ranges: dict[float, Ranges | None] = {}
        self._ends: dict[tuple[int, bool], End] = {}
        if self.status == "regular":
            self._settle()

    def _settle(self) -> None:
        """A centre with a small log R: Newton's steps for the M_k from the outer centre."""
        theta, best = self.centre, inf
        for _ in range(9):
            values, slopes, _ = self._ratios.at(theta)
            height = float(np.logaddexp.reduce(values))
            if not height < best - 1e-9:
                break
            best, settled = height, theta
            shares = np.exp(values - height)
            try:
                theta = theta - np.linalg.solve(self._hessian(theta, shares), shares @ slopes)
            except np.linalg.LinAlgError:
                break
            if not np.isfinite(theta).all() or float(np.linalg.norm(theta)) > self._bound:
                break
        if best < inf:
            first, last = self._height(np.array([self.centre, settled]))
            self.centre = settled if last <= first else self.centre

    def _hessian(self, theta: Array, shares: Array) -> Array:
        """Of sum_k shares_k M_k."""
        X, ratios = self._ratios.X, self._ratios
        per_row = second_derivatives(ratios.curve, ratios.curved(shares), X @ theta)
        return (X * per_row[:, None]).T @ X

    @worked_out
    def _scale(self) -> Array:
        """A metric, rows W of |W delta|."""
        values, _, _ = self._ratios.at(self.centre)
        H = self._hessian(self.centre, np.exp(values - np.logaddexp.reduce(values)))
        w, E = np.linalg.eigh(H if np.isfinite(H).all() else np.eye(len(H)))
        return np.sqrt(np.maximum(w, 1e-12 * max(float(w.max()), 1e-300)))[:, None] * E.T

    def _ranges_at(self, level: float) -> Ranges | None:
        """From the extent of the outer set along its axes; None if some direction is open, or the level too high."""
        nats = level - self._level
        if nats > _ABOVE[-1]:
            return None
        above = self._level if nats <= 0.0 else self._level + float(_ABOVE[np.searchsorted(_ABOVE, nats)])
        if above not in self._ranges:
            outer, X, found = self._outer if nats <= 0.0 else self._outer_at(above), self._ratios.X, None
            if outer.status == "regular":
                ends = outer.solve(np.vstack([self._scale, -self._scale])).upper
                if np.isfinite(ends).all():
                    high, low = ends[: len(self._scale)], -ends[len(self._scale) :]
                    rows = X @ np.linalg.inv(self._scale)
                    middle, spread = rows @ (0.5 * (low + high)), np.abs(rows) @ (0.5 * (high - low))
                    spread = spread * (1.0 + 1e-9) + 1e-12 * np.abs(middle)
                    ends_of_z = middle - spread, middle + spread
                    found = Ranges(above, *ranges_of_ratios(self._ratios, self.centre, above, *ends_of_z))
            self._ranges[above] = found
        return self._ranges[above]

    # -- directions -----------------------------------------------------------------------------------------------

    def _which(self, A: Array) -> tuple[IntArray, Mask]:
        """The contrast that every direction nearly is a multiple of, -1 for none, and whether a positive one."""
        lengths, own = np.linalg.norm(A, axis=1), np.linalg.norm(self._contrasts, axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            cosines = (A / lengths[:, None]) @ (self._contrasts / own[:, None]).T
        if not cosines.size or self.status != "regular":
            return np.full(len(A), -1), np.ones(len(A), dtype=bool)
        best = np.argmax(np.abs(cosines), axis=1)
        chosen = cosines[np.arange(len(A)), best]
        return np.where(np.abs(chosen) >= 1.0 - _PARALLEL, best, -1), chosen > 0.0

    def _solve(self, A: Array, near: Array | None, tolerance: float) -> Solution:
        found = self._outer.solve(A, tolerance)
        upper, points = found.upper.copy(), found.points.copy()
        which, along = self._which(A)
        for i in np.flatnonzero(which >= 0):
            end = self._end(int(which[i]), bool(along[i]))
            upper[i] = min(upper[i], self._scaled(end, A[i], int(which[i]), bool(along[i])))
            points[i] = end.point
        for row in range(len(A)):
            points[row] = self._pulled_in(points[row])
        values = np.minimum(np.einsum("ij,ij->i", A, points), upper) if self._attained else np.full(len(A), -inf)
        return Solution(values, points, upper)

    def bounds(self, A: Array, outside: Array) -> Array:
        """The outer bounds of ``solve`` alone."""
        upper = self._outer.bounds(A, outside)
        which, along = self._which(A)
        for i in np.flatnonzero((which >= 0) & (outside == 0.0)):
            end = self._end(int(which[i]), bool(along[i]))
            upper[i] = min(upper[i], self._scaled(end, A[i], int(which[i]), bool(along[i])))
        return upper

    def _scaled(self, end: End, a: Array, contrast: int, along: bool) -> float:
        """The bound of a = s c + r: s times that of the contrast c, and the most that r'theta can be.

        A row that is a multiple of c as it was given may not be one in the coordinates of the basis, by rounding; and
        however small the angle is, theta may be large across it.
        """
        own = self._contrasts[contrast] if along else -self._contrasts[contrast]
        share = float(a @ own) / float(own @ own)
        rest, size = a - share * own, float(np.linalg.norm(a))
        length = float(np.linalg.norm(rest))
        more = length * self._bound if length > 0.0 else 0.0
        if more > 64 * EPS * size * self._bound or more == inf:
            more = min(more, float(self._outer.bounds(rest[None], np.zeros(1))[0]))
        found = share * end.upper
        reach = size * (float(np.linalg.norm(self.centre)) + float(np.linalg.norm(end.point)))
        return found + more + 8 * EPS * (abs(found) + abs(more) + (reach if reach < inf else 0.0))

    @worked_out
    def _attained(self) -> bool:
        """Whether a point of C is known: the centre, on the way to which all others are looked for."""
        return float(self._height(self.centre[None])[0]) <= self._level

    def _end(self, contrast: int, along: bool) -> End:
        """The end of a contrast, upwards if ``along``."""
        if (contrast, along) not in self._ends:
            a = self._contrasts[contrast] if along else -self._contrasts[contrast]
            outer = self._outer.solve(a[None], 1e-7)
            end = End(outer.points[0], float(outer.upper[0]))
            ranges = self._ranges_at(self._level) if np.isfinite(end.upper) else None
            if ranges is not None:
                with np.errstate(all="ignore"):  # far away, where nothing is claimed, numbers overflow
                    end = self._improved(end, a, self._search(contrast, along), ranges)
            self._ends[contrast, along] = end
        return self._ends[contrast, along]

    def _search(self, contrast: int, along: bool) -> Search:
        side = Side(self._tilts[contrast], along, self._ratios.curve, self._ratios.X)
        return Search(self._ratios, side, self._scale)

    def _improved(self, end: End, a: Array, search: Search, ranges: Ranges) -> End:
        """A proof from where the end is; if that leaves much open, from where log R is least somewhat beyond.

        There Phi is above the level, and may fall short of log R by as much.
        """
        there = search.climbed(a, self.centre, self._level)
        start, height = float(a @ self.centre), float(a @ there.theta)
        if not (np.isfinite(there.theta).all() and height > start):
            return end
        end = End(there.theta, min(end.upper, self._reach(search, there, a, ranges, end.upper)))
        low = height
        for _ in range(_TRIES):
            if not end.upper - low > OPEN * (height - start):
                break
            b = low + _PART * (end.upper - low)
            point = self.centre + (b - start) / (height - start) * (end.point - self.centre)
            beyond = search.least(a, b, point)
            if beyond is None:
                break
            upper = self._reach(search, beyond, a, ranges, end.upper)
            low = b if upper > b + 0.5 * (end.upper - b) else low
            end = End(end.point, min(end.upper, upper))
        return end

    def _reach(self, search: Search, there: There, a: Array, ranges: Ranges, known: float) -> float:
        """An outer bound of a'theta over C, proved from there."""
        height = float(a @ there.theta)
        proof = Proof(self._ratios, search.side, there, a, self._level)
        reach = height + proof.within(ranges.low, ranges.high, known - height).reach
        return reach + 64 * EPS * (abs(height) + abs(reach))

    def least(self, a: Array, b: float) -> tuple[float, float]:
        """Bounds of the least log R with a'theta >= b, where a is a multiple of an announced contrast.

        The first is proved, -inf where nothing is; the second is attained, or inf.
        """
        (which,), (along,) = self._which(a[None])
        start = float(a @ self.centre)
        if which < 0 or not np.isfinite(b):
            return -inf, inf
        if start >= b:
            return -inf, float(self._height(self.centre[None])[0])
        end = self._end(int(which), bool(along))
        run = float(a @ end.point) - start
        share = (b - start) / run if run > 0.0 else inf
        with np.errstate(all="ignore"):
            search = self._search(int(which), bool(along))
            there = search.least(a, b, self.centre + share * (end.point - self.centre))
            if there is None:
                return -inf, inf
            ahead = max(float(a @ there.theta) - b + 64 * EPS * float(np.abs(a) @ np.abs(there.theta)), 0.0)
            proved = -inf
            for less in _LESS:
                level = there.height - less
                ranges = self._ranges_at(level)
                if ranges is None:
                    continue
                proof = Proof(self._ratios, search.side, there, a, level, ahead)
                proved = max(proved, min(proof.within(ranges.low, ranges.high, inf).least, level))
                if proved > level - less:  # the next level is no higher
                    break
            return proved, self._attained_at(there.theta)

    def _attained_at(self, point: Array) -> float:
        """log R there, inf outside Theta."""
        if float(np.linalg.norm(point)) > self._bound:
            return inf
        return float(self._height(point[None])[0])

    def _pulled_in(self, point: Array) -> Array:
        """The point, or one on the way to the centre that is in C."""
        if not np.isfinite(point).all():
            return self.centre
        for back in (0.0, 1e-9, 1e-7, 1e-5, 1e-4, 1e-3, 1e-2, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9):
            trial = point + back * (self.centre - point)
            if self._attained_at(trial) <= self._level:
                return trial
        return self.centre

    def _solve_outside(self, A: Array, outside: Array, near: Array | None, tolerance: float) -> Solution:
        if not outside.any():
            found = self._solve(A, None, tolerance)
            return Solution(found.values, with_column(found.points), found.upper)
        leaving = self._outer.solve(A, tolerance, outside)
        points = with_column(np.tile(self.centre, (len(A), 1)))
        values = A @ self.centre if self._attained else np.full(len(A), -inf)
        return Solution(values, points, leaving.upper)
