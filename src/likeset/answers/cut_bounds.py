r"""Maxima of x'theta over a convex set C cut with half-spaces g_j'theta >= b_j, and with | A theta |_1 <= r.

For every lambda >= 0 and every theta of the cut, x'theta <= x'theta + sum_j lambda_j (g_j'theta - b_j), so that

    D(lambda) = h(x + sum_j lambda_j g_j) - sum_j lambda_j b_j,        h the support function of C,

is an outer bound, whatever lambda is; the least of them is the maximum over the cut (strong duality, if the cut has an
inner point). D is convex, with the slope g_j'theta - b_j at the maximiser theta. From inside: maximisers theta_i found
on the way are points of C, and so are their averages; the best average that obeys the half-spaces is a linear program,

    max sum_i w_i x'theta_i   subject to   sum_i w_i (g_j'theta_i - b_j) >= 0,   w >= 0,   sum_i w_i = 1,

whose multipliers are the next lambda to look at (Dantzig and Wolfe). Where C is round, quasi-Newton steps on D are far
quicker, and come first. The search ends when the two bounds meet.

An l1 ball is the half-spaces s'A theta <= r of all signs s, far too many to write down: those that a point of the
search breaks are added, s = sign(A theta). Any of them give outer bounds.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from math import inf

import numpy as np

from likeset._solver import Kernel
from likeset._solver.linalg.threads import SingleThreadedBlas
from likeset._typing import EPS, Array, IntArray, Mask
from likeset.answers.directions import split
from likeset.errors import EmptySetError
from likeset.spaces.base import Basis

ACCURACY = 1e-7
"""Gap, relative to the width of the whole set along x, at which the search ends."""
_KERNEL = 1e-10  # gap asked of the kernels
_STEPS = 60  # of the quasi-Newton method
_MORE_STEPS = 15  # after a half-space was added
_PROGRAMS = 80
_MOST_POINTS = 160
_INSIDE = 1e-9  # slack below which a half-space counts as obeyed, in units of theta's size


@dataclass(frozen=True)
class Ball1:
    """| A theta |_1 <= r."""

    A: Array
    r: float

    def norm(self, theta: Array) -> float:
        """| A theta |_1."""
        return float(np.abs(self.A @ theta).sum())


class CutBounds:
    """What is known about one cut, shared by all questions: half-spaces so far, points of C, an inner point."""

    def __init__(
        self, kernel: Kernel, basis: Basis, bound: float, alpha: float, G: Array, b: Array, balls: tuple[Ball1, ...],
        mixes: bool, holds: Callable[[Array], bool],
    ) -> None:  # fmt: skip
        self.kernel, self.basis, self.bound, self.alpha = kernel, basis, bound, alpha
        self.balls, self.mixes = balls, mixes  # whether averages of points of C are in C
        self.holds = holds  # whether a point is in C
        d = G.shape[1]
        self.G, self.b = np.zeros((0, d)), np.zeros(0)
        for row, least in zip(G, b, strict=True):
            self._add(row, float(least))
        both = np.vstack([np.eye(d), -np.eye(d)])
        _, upper, points = self.solve(both)
        self.reach = np.maximum(np.abs(upper[:d]), np.abs(upper[d:]))  # of |theta_i| over C
        self.size = float(np.linalg.norm(self.reach))
        self.points = points[np.isfinite(points).all(axis=1)]
        with SingleThreadedBlas():
            self._find_inner()

    # -- the set ------------------------------------------------------------------------------------------------

    def solve(self, V: Array) -> tuple[Array, Array, Array]:
        """v'theta attained, outer bounds of h(v), and maximisers, for the rows of V."""
        with SingleThreadedBlas():
            inside, outside = self.basis.coordinates(V)
            leaving, spill = split(self.bound, inside, outside)
            found = self.kernel.solve(inside, _KERNEL, outside=leaving)
            points = self.basis.lift(found.points[:, :-1], found.points[:, -1], V)
        with np.errstate(invalid="ignore"):
            return np.einsum("ij,ij->i", V, points), found.upper + spill, points

    def dual(self, x: Array, multipliers: Array) -> tuple[Array, Array, Array]:
        """D from below (at the point attained) and certified from above, rounding included, and the points."""
        V = x + multipliers @ self.G
        paid = multipliers @ self.b
        attained, upper, points = self.solve(V)
        # x + G'lambda is off by so much in every entry, and theta is at most so large
        slips = (len(self.b) + 2) * EPS * (np.abs(x) + multipliers @ np.abs(self.G))
        endless = np.flatnonzero(self.reach == inf)
        if len(endless):  # where theta may be any length, only sums without rounding help
            slips[:, endless] = np.where(self._exact(x, multipliers, V, endless), 0.0, slips[:, endless])
        cost = np.zeros(slips.shape)
        np.multiply(slips, self.reach, out=cost, where=slips > 0.0)
        rounding = cost.sum(axis=1) + 4 * EPS * (len(self.b) + 1) * (multipliers @ np.abs(self.b) + np.abs(upper))
        return attained - paid, upper - paid + np.where(np.isfinite(upper), rounding, 0.0), points

    def _exact(self, x: Array, multipliers: Array, V: Array, columns: IntArray) -> Mask:
        """Whether entries of x + G'lambda are free of rounding."""
        x = np.broadcast_to(x, V.shape)

        def same(i: int, c: int) -> bool:
            parts = (Fraction(m) * Fraction(g) for m, g in zip(multipliers[i], self.G[:, c], strict=True))
            return Fraction(V[i, c]) == Fraction(x[i, c]) + sum(parts)

        return np.array([[same(i, int(c)) for c in columns] for i in range(len(V))])

    def slacks(self, points: Array) -> Array:
        """g_j'theta - b_j for rows of points."""
        return np.asarray(points @ self.G.T - self.b)

    def _add(self, row: Array, least: float) -> None:
        """One more half-space, in units of about its normal: a power of two, without rounding."""
        length = float(np.linalg.norm(row))
        size = 2.0 ** round(np.log2(length)) if length else 0.0
        if size == 0.0:
            if least > 0.0:
                raise EmptySetError(self.alpha)
            return
        self.G, self.b = np.vstack([self.G, row / size]), np.append(self.b, least / size)

    def _signs_broken_by(self, theta: Array) -> bool:
        """Add the half-spaces of l1 balls that a point breaks; whether there were any."""
        before = len(self.b)
        for ball in self.balls:
            if ball.norm(theta) > ball.r + _INSIDE * (ball.r + self.size * EPS):
                self._add(-np.where(ball.A @ theta >= 0.0, 1.0, -1.0) @ ball.A, -ball.r)
                if (self.G[:-1] == self.G[-1]).all(axis=1).any():  # known, and still broken
                    self.G, self.b = self.G[:-1], self.b[:-1]
        return len(self.b) > before

    # -- a point of the cut -------------------------------------------------------------------------------------

    def _find_inner(self) -> None:
        """An average of points of C with as much slack as possible, about; EmptySetError if none can have any."""
        self.inner: Array | None = None
        for _ in range(_PROGRAMS):
            if not len(self.points):
                return
            if not len(self.b):
                self.inner = self.points.mean(axis=0)
                if not self._signs_broken_by(self.inner):
                    return
                continue
            most, shares, multipliers = _most_slack(self.slacks(self.points))
            middle = shares @ self.points
            if self._signs_broken_by(middle):
                continue
            _, upper, points = self.dual(np.zeros(len(middle)), multipliers[None])
            if upper[0] < 0.0:
                raise EmptySetError(self.alpha)
            if most > 0.5 * upper[0]:
                self.inner = middle
                return
            if upper[0] - most <= _INSIDE * self.size or not np.isfinite(points).all():
                return  # no inner point, such as between two half-spaces that touch
            self.points = np.vstack([self.points, points])

    def _inwards(self, theta: Array) -> Array | None:
        """The point of the cut on the way from theta to the inner point, as close to theta as can be."""
        slack = self.slacks(theta[None])[0]
        if (slack >= -EPS * (self.size + np.abs(self.b))).all() and not any(b.norm(theta) > b.r for b in self.balls):
            return theta
        if self.inner is None:
            near = (slack >= -_INSIDE * self.size).all()
            return theta if near and not any(b.norm(theta) > b.r + _INSIDE * self.size for b in self.balls) else None
        have = self.slacks(self.inner[None])[0]
        with np.errstate(divide="ignore", invalid="ignore"):
            share = float(np.max(np.where(slack < 0.0, -slack / np.maximum(have - slack, 1e-300), 0.0), initial=0.0))
        for ball in self.balls:
            over, room = ball.norm(theta) - ball.r, ball.r - ball.norm(self.inner)
            share = max(share, over / (over + room) if over > 0.0 < over + room else 0.0)
        share = share * (1.0 + 8 * EPS)
        return theta + share * (self.inner - theta) if share <= 1.0 and self.mixes else None

    # -- one question -------------------------------------------------------------------------------------------

    def maximum(self, x: Array) -> tuple[float, Array, float]:
        """(value attained in the cut, where, certified outer bound) of the maximum of x'theta."""
        search = _Search(self, x)
        if not search.finished:
            with SingleThreadedBlas():
                search.run()
        self.points = np.vstack([self.points, search.points[-4:]])[-_MOST_POINTS:]
        return search.value, search.at, search.ceiling


class _Search:
    """The search for one maximum."""

    def __init__(self, cut: CutBounds, x: Array) -> None:
        self.cut, self.x = cut, x
        self.length = float(np.linalg.norm(x)) or 1.0
        both = np.array([x, -x])
        _, upper, points = cut.dual(both, np.zeros((2, len(cut.b))))
        self.least = -float(upper[1])  # of x'theta over C
        width = float(upper[0] + upper[1])
        self.unit = (
            width if 0.0 < width < inf else self.length * max(cut.size, 1e-300) if cut.size < inf else self.length
        )
        self.value, self.at, self.ceiling = -inf, np.full(len(x), np.nan), float(upper[0])
        self.best = np.zeros(len(cut.b))
        self.points = points[np.isfinite(points).all(axis=1)]
        for point in [*self.points, *([] if cut.inner is None else [cut.inner])]:
            self._attain(point)

    @property
    def finished(self) -> bool:
        """Whether the two bounds have met."""
        return self.ceiling - self.value <= ACCURACY * self.unit

    def run(self) -> None:
        """Quasi-Newton steps, then linear programs; again from the start where half-spaces were added."""
        self._try_corner()
        self._descend(_STEPS)
        for _ in range(_PROGRAMS):
            if self.finished or not self.cut.mixes or not self.ceiling < inf:
                return
            pool = np.vstack([self.cut.points, self.points])[-_MOST_POINTS:]
            if self.cut.inner is not None:
                pool = np.vstack([self.cut.inner, pool])
            found = _best_average((pool @ self.x) / self.unit, self.cut.slacks(pool) / max(self.cut.size, 1e-300))
            if found is None:
                return
            shares, multipliers = found
            theta = shares @ pool
            self._attain(theta)
            if self.cut._signs_broken_by(theta):
                self.best = np.pad(self.best, (0, len(self.cut.b) - len(self.best)))
                self._descend(_MORE_STEPS)
                continue
            if self.finished:
                return
            multipliers = multipliers * (self.unit / max(self.cut.size, 1e-300))
            before = self.ceiling
            trials = np.array([multipliers, 0.5 * (multipliers + self.best), 0.1 * multipliers + 0.9 * self.best])
            self._look(trials)
            if before - self.ceiling <= 0.0 and np.abs(multipliers - self.best).max() <= 1e-12 * self.length:
                return

    def _look(self, multipliers: Array) -> tuple[Array, Array]:
        """Bounds for some multipliers, noted; D attained, and the points."""
        attained, upper, points = self.cut.dual(self.x, multipliers)
        for ceiling, one, point in zip(upper, multipliers, points, strict=True):
            if ceiling < self.ceiling:
                self.ceiling, self.best = float(ceiling), one.copy()
            if np.isfinite(point).all():
                self.points = np.vstack([self.points, point])
                self._attain(point)
        if self.ceiling < self.least - 64 * EPS * (abs(self.least) + abs(self.ceiling)):
            raise EmptySetError(self.cut.alpha)
        return attained, points

    def _attain(self, theta: Array) -> None:
        inside = self.cut._inwards(theta)
        if inside is None:
            return
        # What half-spaces without an inner point are broken by counts at its price: x'theta + lambda's <= D(lambda).
        broken = np.minimum(self.cut.slacks(inside[None])[0], 0.0)
        value = float(self.x @ inside + np.pad(self.best, (0, len(broken) - len(self.best))) @ broken)
        if value > self.value:
            self.value, self.at = value, inside

    def _try_corner(self) -> None:
        """A corner of the half-spaces, whose multipliers leave nothing of x: the answer where it lies in C."""
        from scipy.optimize import linprog

        if not len(self.cut.b):
            return
        found = linprog(-self.x, -self.cut.G, -self.cut.b, bounds=(None, None), method="highs")
        if found.status == 0:
            self._look(np.maximum(-found.ineqlin.marginals, 0.0)[None])
            theta = np.asarray(found.x, dtype=np.float64)
            if self.cut.holds(theta):
                self._attain(theta)

    def _descend(self, steps: int) -> None:
        from scipy.optimize import minimize

        if not len(self.cut.b) or self.finished or not self.ceiling < inf:
            return

        def height(u: Array) -> tuple[float, Array]:
            attained, points = self._look(u[None] * self.length)
            if self.finished:
                raise StopIteration  # which ends the method, as if it had converged
            if not np.isfinite(points).all():
                return 1e300, np.zeros(len(u))
            return float(attained[0]) / self.unit, self.cut.slacks(points)[0] * (self.length / self.unit)

        options = {"maxiter": steps, "maxfun": 2 * steps, "ftol": 1e-13, "gtol": 1e-9, "maxcor": 30}
        start = self.best / self.length
        with suppress(StopIteration):
            minimize(height, start, jac=True, method="L-BFGS-B", bounds=[(0.0, None)] * len(start), options=options)


def _most_slack(slacks: Array) -> tuple[float, Array, Array]:
    """Shares of points (rows) whose average has the largest least slack, that slack, and its multipliers."""
    from scipy.optimize import linprog

    n, k = slacks.shape
    unit = float(np.abs(slacks).max()) or 1.0
    cost = np.append(np.zeros(n), -1.0)
    above = np.column_stack([-slacks.T / unit, np.ones(k)])
    one = np.append(np.ones(n), 0.0)[None]
    found = linprog(cost, above, np.zeros(k), one, [1.0], [(0.0, None)] * n + [(None, None)], method="highs")
    shares = np.maximum(found.x[:n], 0.0)
    shares /= shares.sum()
    multipliers = np.maximum(-found.ineqlin.marginals, 0.0)
    return float((shares @ slacks).min()), shares, multipliers / max(float(multipliers.sum()), 1e-300)


def _best_average(values: Array, slacks: Array) -> tuple[Array, Array] | None:
    """Shares of points whose average has the largest value and no slack below zero, and multipliers; None: none has."""
    from scipy.optimize import linprog

    tight = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    found = linprog(
        -values, -slacks.T, np.zeros(slacks.shape[1]), np.ones((1, len(values))), [1.0], method="highs", options=tight
    )
    if found.status != 0:
        return None
    shares = np.maximum(found.x, 0.0)
    return shares / shares.sum(), np.maximum(-found.ineqlin.marginals, 0.0)
