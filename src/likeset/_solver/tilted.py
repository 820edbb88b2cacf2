r"""Ends of announced contrasts where the evidence is not convex: tilts of exponential families with covariates.

    log R(theta) = log [ sum_k exp M_k(theta) + sum_u exp D_u(theta) ],      C = { log R <= level }

The set of the M_k alone is convex and holds C: it has a kernel, which answers for whatever is not an announced
contrast, and gives ranges of the covariates' z to start from. For an announced one there is a search
(:mod:`~likeset._solver.tilt_search`).
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf

import numpy as np

from likeset._solver.evaluate import log_sum_exp
from likeset._solver.problem import Kernel, Solution, with_column
from likeset._solver.tilt_search import Search
from likeset._solver.tilt_terms import Ratios, Tilt
from likeset._solver.voice_sums import group_pulls
from likeset._typing import Array, IntArray, Mask
from likeset.parts import worked_out

OPEN = 0.02  # between theta_b and the bound, of the distance to the centre: then quieter tilts are not tried
_QUIETER = (0.0, 1.0, 2.0, 4.0)  # nats
_PARALLEL = 1e-12


class TiltedKernel(Kernel):
    """C with tilts of announced contrasts: certified ends of these, the bounds of the M_k alone of anything else.

    ``outer`` is the kernel of { log sum_k exp M_k <= level }, ``height`` log R of points; ``bound`` that of theta.
    """

    def __init__(
        self, outer: Kernel, ratios: Ratios, contrasts: Array, tilts: list[Tilt], level: float, bound: float,
        height: Callable[[Array], Array],
    ) -> None:  # fmt: skip
        self._outer, self._ratios, self._contrasts, self._tilts = outer, ratios, contrasts, tilts
        self._level, self._bound, self._height = level, bound, height
        self.status, self.centre = outer.status, outer.centre
        self._box: tuple[Array, Array, Array] | None = None
        if self.status == "regular":
            self._settle()

    def _settle(self) -> None:
        """A centre with a small log R: Newton's steps for the M_k from the outer centre."""
        theta = self.centre
        best = float(self._height(theta[None])[0])
        for _ in range(8 if np.isfinite(best) else 0):
            values, slopes, second, _ = self._ratios.at(theta)
            shares = np.exp(values - log_sum_exp(values))
            pulls = group_pulls(self._ratios.voices, shares, len(second)) * second
            per_row = np.bincount(self._ratios.owners, pulls, minlength=len(self._ratios.X))
            H = (self._ratios.X * per_row[:, None]).T @ self._ratios.X
            try:
                theta = theta - np.linalg.solve(H, shares @ slopes)
            except np.linalg.LinAlgError:
                return
            if not np.isfinite(theta).all() or float(np.linalg.norm(theta)) > self._bound:
                return
            height = float(self._height(theta[None])[0])
            if not height < best - 1e-9:
                return
            best, self.centre = height, theta

    def _ranges(self) -> tuple[Array, Array, Array]:
        """A metric, and ranges of the z of all covariates, from the extent of the outer set along its axes."""
        if self._box is None:
            X = self._ratios.X
            values, _, second, _ = self._ratios.at(self.centre)
            shares = np.exp(values - log_sum_exp(values))
            pulls = group_pulls(self._ratios.voices, shares, len(second)) * second
            per_row = np.bincount(self._ratios.owners, pulls, minlength=len(X))
            H = (X * per_row[:, None]).T @ X
            w, E = np.linalg.eigh(H)
            scale = np.sqrt(np.maximum(w, 1e-12 * max(float(w.max()), 1e-300)))[:, None] * E.T
            ends = self._outer.solve(np.vstack([scale, -scale])).upper
            if not np.isfinite(ends).all():  # some direction is open: no range is known
                self._box = scale, np.full(len(X), -inf), np.full(len(X), inf)
                return self._box
            high, low = ends[: len(scale)], -ends[len(scale) :]
            rows = X @ np.linalg.inv(scale)
            middle, spread = rows @ (0.5 * (low + high)), np.abs(rows) @ (0.5 * (high - low))
            spread = spread * (1.0 + 1e-9) + 1e-12 * np.abs(middle)
            self._box = scale, middle - spread, middle + spread
        return self._box

    def _which(self, A: Array) -> tuple[IntArray, Mask]:
        """The contrast that every direction is a multiple of, -1 for none, and whether a positive one."""
        lengths, own = np.linalg.norm(A, axis=1), np.linalg.norm(self._contrasts, axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            cosines = (A / lengths[:, None]) @ (self._contrasts / own[:, None]).T
        if not cosines.size:
            return np.full(len(A), -1), np.ones(len(A), dtype=bool)
        best = np.argmax(np.abs(cosines), axis=1)
        chosen = cosines[np.arange(len(A)), best]
        return np.where(np.abs(chosen) >= 1.0 - _PARALLEL, best, -1), chosen > 0.0

    def _solve(self, A: Array, near: Array | None, tolerance: float) -> Solution:
        found = self._outer.solve(A, tolerance)
        upper, points = found.upper.copy(), found.points.copy()
        which, along = self._which(A)
        if self.status == "regular":
            for i in np.flatnonzero(which >= 0):
                with np.errstate(all="ignore"):  # far away, where nothing is claimed, numbers overflow
                    tilt, start = self._tilts[which[i]], points[i]
                    points[i], upper[i] = self._end(A[i], tilt, bool(along[i]), start, float(upper[i]))
        for row in range(len(A)):
            points[row] = self._pulled_in(points[row])
        values = np.minimum(np.einsum("ij,ij->i", A, points), upper) if self._attained else np.full(len(A), -inf)
        return Solution(values, points, upper)

    @worked_out
    def _attained(self) -> bool:
        """Whether a point of C is known: the centre, on the way to which all others are looked for."""
        return float(self._height(self.centre[None])[0]) <= self._level

    def _end(self, a: Array, tilt: Tilt, downwards: bool, known: Array, upper: float) -> tuple[Array, float]:
        """About the maximiser of a'theta, and a bound, from those of the outer set.

        R is at least what it is with quieter tilts, for which a bound may be easier to prove.
        """
        scale, low, high = self._ranges()
        if not (np.isfinite(low).all() and np.isfinite(upper)):
            return known, upper
        best: Array | None = None
        for quieter in _QUIETER:
            search = Search(self._ratios, tilt.quieter(quieter), downwards, self._level)
            point, there = search.climbed(a, self.centre if best is None else best, scale)
            if not np.isfinite(point).all():
                break
            upper = min(upper, search.certified(a, point, there, low, high, upper))
            best = point if best is None else best
            if not upper - float(a @ best) > OPEN * float(a @ (best - self.centre)):
                break
        return known if best is None else best, upper

    def _pulled_in(self, point: Array) -> Array:
        """The point, or one on the way to the centre that is in C."""
        if not np.isfinite(point).all():
            return self.centre
        for back in (0.0, 1e-9, 1e-7, 1e-5, 1e-4, 1e-3, 1e-2, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9):
            trial = point + back * (self.centre - point)
            if float(np.linalg.norm(trial)) <= self._bound and float(self._height(trial[None])[0]) <= self._level:
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
