r"""Penalised maximum likelihood over the ball, refitted after every observation.

    theta_hat = argmin_{|theta| <= B}  F(theta) + lambda |theta|^2,      F(theta) = sum_k phi_k(x_k'theta)

For exponential families a refit rarely looks at all covariates. F is kept as a quadratic around an *anchor*
theta_0 (gradient g, Hessian H; a new observation adds its own), and its minimiser theta_0 + delta is accepted while
the third derivatives, |A'''| <= A'' for every curve here, prove that it is as good as exact: with
u = max_k |x_k| |delta|, the gradient of F at theta_0 + delta misses that of the quadratic by at most

    (e^u - 1 - u)/u * |delta|_H      in the norm of H^-1,

so the objective is within half its square of the minimum. When that exceeds the tolerance the anchor moves to
theta_0 + delta, which costs one look at all covariates (a Newton step whose accuracy is then judged in the same way).
Early on, when steps are long, Newton's method with a line search takes over until its duality gap closes.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Protocol

import numpy as np

from likeset._solver.ball_step import ball_step
from likeset._solver.newton import CurveSum, Goal, minimise_over_ball, newton_ball
from likeset._solver.problem import PointTerms
from likeset._typing import Array
from likeset.compiling import REORDER, kernel
from likeset.curves import curve_slopes
from likeset.embedded import Embedded
from likeset.families.merged import MergedData, with_columns
from likeset.families.sums import CurveSums, Sums, softplus_items
from likeset.state_checks import expect_array, expect_number
from likeset.undo import Undo

if TYPE_CHECKING:
    from likeset.families.curve_family import CurveFamily

GRADIENT_TOLERANCE = 1e-4  # in the norm of H^-1: the objective is then within 5e-9 nats of its minimum
GOAL = Goal(1e-9, iterations=100)
MAX_ANCHOR_MOVES = 6
BLOCK = 128  # covariates expanded at a time

LookAhead = tuple[float, float]
NOT_AHEAD: LookAhead = (0.0, 0.0)


@kernel(allocates=True, fastmath=REORDER)
def expand(X: Array, curve: int, a: Array, s: Array, theta: Array) -> tuple[Array, Array]:
    """Gradient and Hessian of F(theta) = sum_k a_k A(x_k'theta) - s_k x_k'theta."""
    K, d = X.shape
    g, H = np.zeros(d), np.zeros((d, d))
    columns = np.empty((d, BLOCK))  # a block of covariates by coordinate, for sums over contiguous numbers
    z, slope, weight, weighted = np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK)
    for start in range(0, K, BLOCK):
        size = min(BLOCK, K - start)
        block, height, score = X[start : start + size], a[start : start + size], s[start : start + size]
        for k in range(BLOCK):
            z[k] = 0.0
        for i in range(d):
            x, t = columns[i], theta[i]
            for k in range(size):
                x[k] = block[k, i]
                z[k] += t * x[k]
        for k in range(size):
            first, second = curve_slopes(curve, z[k])
            slope[k], weight[k] = height[k] * first - score[k], height[k] * second
        for i in range(d):
            x = columns[i]
            total = 0.0
            for k in range(size):
                total += slope[k] * x[k]
                weighted[k] = weight[k] * x[k]
            g[i] += total
            for j in range(i + 1):
                x = columns[j]
                total = 0.0
                for k in range(size):
                    total += weighted[k] * x[k]
                H[i, j] += total
    for i in range(d):
        for j in range(i):
            H[j, i] = H[i, j]
    return g, H


@kernel()
def add_term(g: Array, H: Array, anchor: Array, x: Array, curve: int, a: float, s: float) -> None:
    """Add the expansion at the anchor of a A(x'theta) - s x'theta to (g, H)."""
    d = x.shape[0]
    z = 0.0
    for i in range(d):
        z += x[i] * anchor[i]
    first, second = curve_slopes(curve, z)
    slope, weight = a * first - s, a * second
    for i in range(d):
        g[i] += slope * x[i]
        for j in range(d):
            H[i, j] += weight * x[i] * x[j]


@kernel(allocates=True)
def anchored_minimum(
    g: Array, H: Array, anchor: Array, ridge: float, bound: float, longest: float, exact: bool
) -> tuple[Array, float]:
    """Minimiser over the ball of the quadratic plus ridge |theta|^2, and the bound on its gradient error."""
    d = anchor.shape[0]
    full_g, full_H = g + 2.0 * ridge * anchor, H.copy()
    for i in range(d):
        full_H[i, i] += 2.0 * ridge
    L, delta, work = np.empty((d, d)), np.empty(d), np.empty(d)
    ball_step(full_g, full_H, anchor, bound, L, delta, work)
    if exact:
        return anchor + delta, 0.0
    square, curved = 0.0, 0.0
    for i in range(d):
        square += delta[i] * delta[i]
        for j in range(d):
            curved += delta[i] * H[i, j] * delta[j]
    u = longest * math.sqrt(square)
    relative = math.inf if u > 1.0 else (0.5 * u if u < 1e-6 else (math.expm1(u) - u) / u)
    return anchor + delta, relative * math.sqrt(max(curved, 0.0))


class Fit(Protocol):
    """A penalised estimate that learns."""

    def observe(self, phi: Embedded, y: Array) -> None:
        """Learn from one observation."""
        ...

    def estimate(self, phi: Embedded, look_ahead: LookAhead = NOT_AHEAD) -> Array:
        """theta_hat; ``look_ahead`` = (a, s) adds the term a A(z) - s z, z = x'theta, of the row about to come."""
        ...

    def remember(self, undo: Undo, phi: Embedded) -> None:
        """Before ``observe``, or an estimate, at phi: keep what they will change."""
        ...

    def state(self) -> dict[str, Array]:
        """Everything needed to continue bit for bit."""
        ...

    def restore(self, state: dict[str, Array]) -> None:
        """The inverse of ``state``."""
        ...

    def fits(self, count: int, dimension: int) -> bool:
        """Whether this is a fit to so many distinct covariates and dimensions."""
        ...

    def resume(self, data: MergedData) -> None:
        """After ``restore``: take a copy of the ledger's data."""
        ...


class CurveFit:
    """The anchored fit for exponential families."""

    def __init__(self, family: CurveFamily, penalty: float, bound: float) -> None:
        self.family, self.penalty, self.bound = family, penalty, bound
        self.curve = int(family.curve)
        self.sums = CurveSums(family)
        self.data = MergedData(self.sums)
        self.anchor, self.g, self.H = np.zeros(0), np.zeros(0), np.zeros((0, 0))
        self.longest = 0.0

    def observe(self, phi: Embedded, y: Array) -> None:
        """Merge the observation and add its expansion at the anchor."""
        if getattr(phi.law, "stays_shifted", False):
            self.data.add(phi, y)
            return
        a, s, _ = map(float, phi.law_or(self.family).statistics(y))
        self.data.place(phi)
        self.sums.accumulate(phi.index, a, s)
        self._grow(len(phi.coordinates))
        add_term(self.g, self.H, self.anchor, phi.coordinates, self.curve, a, s)
        self.longest = max(self.longest, math.sqrt(float(phi.coordinates @ phi.coordinates)))

    def estimate(self, phi: Embedded, look_ahead: LookAhead = NOT_AHEAD) -> Array:
        """theta_hat; ``look_ahead`` = (a, s) adds the term a A(z) - s z, z = x'theta, of the row about to come."""
        x = phi.coordinates
        self._grow(len(x))
        if self.sums.shifted or (look_ahead[0] and getattr(phi.law, "stays_shifted", False)):
            return self._minimise_items(phi, look_ahead)
        longest = max(self.longest, math.sqrt(float(x @ x))) if look_ahead[0] else self.longest
        for _ in range(MAX_ANCHOR_MOVES):
            g, H = self.g, self.H
            if look_ahead[0]:
                g, H = g.copy(), H.copy()
                add_term(g, H, self.anchor, x, self.curve, *look_ahead)
            theta, error = anchored_minimum(g, H, self.anchor, self.penalty, self.bound, longest, self.curve == 0)
            if error <= GRADIENT_TOLERANCE:
                return theta
            if error > 0.5:
                break  # too far for Newton's method without a line search
            self._move_anchor(theta)
        theta = self._minimise(x, look_ahead)
        self._move_anchor(theta)
        return theta

    def remember(self, undo: Undo, phi: Embedded) -> None:
        """Keep data, anchor and expansion."""
        undo.keep(self, written=("g", "H"))
        self.data.remember(undo, phi)

    def _move_anchor(self, theta: Array) -> None:
        X, count = with_columns(self.data.coordinates, len(theta)), self.data.count
        self.anchor = theta
        self.g, self.H = expand(X, self.curve, self.sums.a[:count], self.sums.s[:count], theta)

    def _minimise(self, x: Array, look_ahead: LookAhead) -> Array:
        X, count = with_columns(self.data.coordinates, len(x)), self.data.count
        a, s = self.sums.a[:count], self.sums.s[:count]
        if look_ahead[0]:
            X, a, s = np.vstack([X, x]), np.append(a, look_ahead[0]), np.append(s, look_ahead[1])
        return newton_ball(CurveSum(X, self.curve, a, s), self.penalty, self.bound, self.anchor, GOAL).theta

    def _minimise_items(self, phi: Embedded, look_ahead: LookAhead) -> Array:
        """Newton's method on all terms: rows with offsets that the sums cannot absorb have no anchor."""
        X, count = with_columns(self.data.coordinates, len(phi.coordinates)), self.data.count
        a, s, items = self.sums.a[:count], self.sums.s[:count], self.sums.shifted
        if look_ahead[0]:
            X, a, s, items = np.vstack([X, phi.coordinates]), np.append(a, 0.0), np.append(s, 0.0), items.copy()
            items.insert(count, getattr(phi.law, "shift", 0.0), 0.0, look_ahead[0], affine=True)
        terms = softplus_items(items, a, s)
        theta = minimise_over_ball(X, terms, self.penalty, self.bound, self.anchor, GOAL).theta
        if self.sums.shifted:
            self.anchor = theta  # from now on only a place to start from
        return theta

    def _grow(self, dimension: int) -> None:
        extra = dimension - len(self.anchor)
        if extra > 0:
            self.anchor, self.g = np.pad(self.anchor, (0, extra)), np.pad(self.g, (0, extra))
            self.H = np.pad(self.H, (0, extra))

    def state(self) -> dict[str, Array]:
        """Data, anchor and expansion."""
        own = {"anchor": self.anchor, "g": self.g, "H": self.H, "longest": np.array([self.longest])}
        return self.data.state() | own

    def restore(self, state: dict[str, Array]) -> None:
        """The inverse of ``state``."""
        self.data.restore(state)
        self.anchor = expect_array(state, "anchor", (None,))
        d = len(self.anchor)
        self.g, self.H = expect_array(state, "g", (d,)), expect_array(state, "H", (d, d))
        self.longest = expect_number(state, "longest")

    def fits(self, count: int, dimension: int) -> bool:
        """Whether data and expansion are those of so many distinct covariates and dimensions."""
        return self.data.fits(count, dimension) and len(self.anchor) == dimension

    def resume(self, data: MergedData) -> None:
        """After ``restore``: take a copy of the ledger's data."""
        self.data = data.copy()
        assert isinstance(self.data.sums, CurveSums)
        self.sums = self.data.sums


class DirectFit:
    """Refit from scratch, warm-started: Laplace noise (interior point) and smooth terms of any kind (Newton)."""

    def __init__(self, sums: Sums, penalty: float, bound: float) -> None:
        self.data, self.penalty, self.bound = MergedData(sums), penalty, bound
        self.theta = np.zeros(0)
        self.stale = False

    def observe(self, phi: Embedded, y: Array) -> None:
        """Merge the observation."""
        self.data.add(phi, y)
        self.stale = True

    def estimate(self, phi: Embedded, look_ahead: LookAhead = NOT_AHEAD) -> Array:
        """theta_hat over the observations so far."""
        assert not look_ahead[0]
        dimension = len(phi.coordinates)
        self.theta = np.pad(self.theta, (0, dimension - len(self.theta)))
        if self.stale:
            X, terms = with_columns(self.data.coordinates, dimension), self.data.terms()
            if isinstance(terms, PointTerms):
                from likeset._solver.absolute.kernel import minimise_penalised

                self.theta = minimise_penalised(X, terms, self.penalty, self.bound, self.theta)
            else:
                self.theta = minimise_over_ball(X, terms, self.penalty, self.bound, self.theta, GOAL).theta
            self.stale = False
        return self.theta

    def remember(self, undo: Undo, phi: Embedded) -> None:
        """Keep data and estimate."""
        undo.keep(self)
        self.data.remember(undo, phi)

    def state(self) -> dict[str, Array]:
        """Data and estimate."""
        return self.data.state() | {"theta": self.theta, "stale": np.array([float(self.stale)])}

    def restore(self, state: dict[str, Array]) -> None:
        """The inverse of ``state``."""
        self.data.restore(state)
        self.theta = expect_array(state, "theta", (None,))
        self.stale = bool(expect_number(state, "stale"))

    def fits(self, count: int, dimension: int) -> bool:
        """Whether data and estimate are those of so many distinct covariates and dimensions."""
        return self.data.fits(count, dimension) and len(self.theta) == dimension

    def resume(self, data: MergedData) -> None:
        """After ``restore``: take a copy of the ledger's data."""
        self.data = data.copy()
