r"""Maximum likelihood with any quadratic penalty over the ball, refitted after every observation.

    theta_hat = argmin_{|theta| <= B}  F(theta) + (theta - c)'P_t (theta - c),      F(theta) = sum_k phi_k(x_k'theta)

P_t, ``penalty(t, d)``, may change with the number t of observations; c is the ``centre``. Smooth terms: Newton steps
over the ball with a certified gap, F being convex and the penalty with modulus 2 min eig P_t. Laplace noise: with a
multiplier mu >= 0 of the ball,

    P_t + mu I = L L',     c_mu = (P_t + mu I)^-1 P_t c,     theta = c_mu + L'^-1 v

turns the problem into one with the penalty |v|^2 and no ball, which interior points solve; mu is zero, or such that
|theta| = B. Where P_t = lambda I and c = 0, :mod:`~likeset.families.penalised` is faster.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import inf

import numpy as np

from likeset._solver.evaluate import evaluate_terms
from likeset._solver.newton import SATURATED, Evaluation, minimise_convex
from likeset._solver.problem import CurveTerms, PointTerms, SmoothTerms
from likeset._typing import Array
from likeset.embedded import Embedded
from likeset.families.merged import MergedData, with_columns
from likeset.families.penalised import GOAL, NOT_AHEAD, LookAhead
from likeset.families.sums import Sums
from likeset.state_checks import expect_array, expect_number
from likeset.undo import Undo

Ahead = tuple[Embedded, LookAhead] | None
Penalty = Callable[[int, int], Array]
"""P_t, from the number of observations so far and the dimension; positive definite."""


class QuadraticFit:
    """Refit from scratch, warm-started."""

    def __init__(self, sums: Sums, penalty: Penalty, centre: Array | None, bound: float) -> None:
        self.data, self.penalty, self.centre, self.bound = MergedData(sums), penalty, centre, bound
        self.theta, self.t = np.zeros(0), 0

    def observe(self, phi: Embedded, y: Array) -> None:
        """Merge the observation."""
        self.data.add(phi, y)
        self.t += 1

    def estimate(self, phi: Embedded, look_ahead: LookAhead = NOT_AHEAD) -> Array:
        """theta_hat; ``look_ahead`` = (a, s) adds the term a A(z) - s z, z = x'theta, of the row about to come."""
        d = len(phi.coordinates)
        P = self.penalty(self.t, d)
        centre = np.zeros(d) if self.centre is None else self.centre
        X, terms = with_columns(self.data.coordinates, d), self.data.terms()
        start = np.pad(self.theta, (0, d - len(self.theta)))
        if isinstance(terms, PointTerms):
            self.theta = minimise_absolute(X, terms, P, centre, self.bound, start)
        else:
            ahead = None if not look_ahead[0] else (phi, look_ahead)
            self.theta = self._minimise_smooth(X, terms, P, centre, start, ahead)
        return self.theta

    def _minimise_smooth(
        self,
        X: Array,
        terms: SmoothTerms,
        P: Array,
        centre: Array,
        start: Array,
        ahead: tuple[Embedded, LookAhead] | None,
    ) -> Array:
        groups = [(X, terms, 0.0)]
        if ahead is not None:
            phi, (a, s) = ahead
            shift = phi.law.shift if getattr(phi.law, "stays_shifted", False) else 0.0
            curve = self.data.sums.family.curve
            groups.append((phi.coordinates[None], CurveTerms(curve, np.array([a]), np.array([s])), shift))

        def evaluate(theta: Array) -> Evaluation:
            off = theta - centre
            pull = P @ off
            value = size = float(off @ pull)
            gradient, parts = 2.0 * pull, []
            for rows, some, shift in groups:
                heights, first, second = evaluate_terms(some, rows @ theta + shift)
                value, size = value + float(heights.sum()), size + float(np.abs(heights).sum())
                gradient = gradient + rows.T @ first
                parts.append((rows, first, second))

            def hessian() -> Array:
                return sum((_curvature(*part, self.bound) for part in parts), 2.0 * P)

            return value, size, gradient, hessian

        start = start if self.t else centre.copy()
        start = start * min(1.0, self.bound / max(float(np.linalg.norm(start)), 1e-300))
        ridge = float(np.linalg.eigvalsh(P)[0]) * (1.0 - 1e-9)
        return minimise_convex(evaluate, ridge, self.bound, start, GOAL).theta

    def remember(self, undo: Undo, phi: Embedded) -> None:
        """Keep data and estimate."""
        undo.keep(self)
        self.data.remember(undo, phi)

    def state(self) -> dict[str, Array]:
        """Data, estimate and the number of observations."""
        return self.data.state() | {"theta": self.theta, "t": np.array([float(self.t)])}

    def restore(self, state: dict[str, Array]) -> None:
        """The inverse of ``state``."""
        self.data.restore(state)
        self.theta = expect_array(state, "theta", (None,))
        self.t = int(expect_number(state, "t"))

    def fits(self, count: int, dimension: int) -> bool:
        """Whether data and estimate are those of so many distinct covariates and dimensions."""
        return self.data.fits(count, dimension) and len(self.theta) == dimension

    def resume(self, data: MergedData) -> None:
        """After ``restore``: take a copy of the ledger's data."""
        self.data = data.copy()


def _curvature(rows: Array, first: Array, second: Array, bound: float) -> Array:
    """X' diag(phi'') X; where there is none to speak of, that of parabolas as wide as z can go (saturated losses)."""
    reach = (bound if bound < inf else 1.0) * np.sqrt(np.einsum("ij,ij->i", rows, rows))
    if float(second @ reach) <= SATURATED * float(np.abs(first).sum()):
        second = np.maximum(second, np.abs(first) / np.maximum(reach, 1e-300))
    return np.asarray((rows.T * second) @ rows)


def minimise_absolute(X: Array, terms: PointTerms, P: Array, centre: Array, bound: float, start: Array) -> Array:
    """The minimiser of  sum_k sum_i u_ki |y_ki - x_k'theta| + (theta - c)'P (theta - c)  over |theta| <= bound."""
    from scipy.optimize import brentq

    from likeset._solver.absolute.kernel import minimise_penalised

    owner = np.repeat(np.arange(len(X)), np.diff(terms.starts))
    identity = np.eye(len(P))

    def free(mu: float) -> Array:
        full = P + mu * identity
        L = np.linalg.cholesky(full)
        middle = np.asarray(np.linalg.solve(full, P @ centre), dtype=np.float64)
        if not len(terms.points):
            return middle
        rows = np.ascontiguousarray(np.linalg.solve(L, X.T).T)
        shifted = replace(terms, points=terms.points - (X @ middle)[owner])
        v = minimise_penalised(rows, shifted, 1.0, inf, np.asarray(L.T @ (start - middle), dtype=np.float64))
        return np.asarray(middle + np.linalg.solve(L.T, v))

    def shortfall(mu: float) -> float:
        """Nearly linear in mu, and zero where |theta| is the bound."""
        return 1.0 / max(float(np.linalg.norm(free(mu))), 1e-300) - 1.0 / bound

    theta = free(0.0)
    if np.linalg.norm(theta) > bound:
        high = float(np.trace(P)) / len(P)
        while shortfall(high) < 0.0:
            high *= 4.0
        theta = free(float(brentq(shortfall, 0.0, high, xtol=1e-12 * high, rtol=1e-11)))
    return theta * min(1.0, bound / max(float(np.linalg.norm(theta)), 1e-300))
