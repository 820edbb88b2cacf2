r"""The support function of a likelihood set with smooth terms (Poisson, Bernoulli, Binomial, Weibull, user's own).

    C = { theta : F(theta) = sum_k phi_k(x_k' theta) <= level,  |theta| <= bound },     h(a) = max { a'theta : C }.

The method, one idea per module:

* here: F is constant on the orthogonal complement of the covariates. If they do not span R^d we work in an
  orthonormal basis of their span, plus one flat coordinate along the part of a outside the span;
* :mod:`~likeset._solver.smooth.phase_one`     a central point, or a certificate that there is none;
* :mod:`~likeset._solver.smooth.sqp`           all directions in lock-step, from the solution of a quadratic model
  (:mod:`~likeset._solver.smooth.ellipsoids`) in steps along both boundaries (:mod:`~likeset._solver.smooth.steps`,
  :mod:`~likeset._solver.smooth.leading`, :mod:`~likeset._solver.smooth.rays`) until the outer bound of
  :mod:`~likeset._solver.certificate` is met;
* :mod:`~likeset._solver.smooth.unbounded`     what to do without a ball.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from likeset._solver.linalg.matrix import cholesky
from likeset._solver.problem import CurveTerms, Kernel, LevelSet, SmoothTerms, Solution, with_column, with_zero
from likeset._solver.smooth.phase_one import bounded_set, height
from likeset._solver.smooth.sqp import CentredSet
from likeset._solver.smooth.unbounded import UnboundedSet, unbounded_set
from likeset._typing import EPS, Array
from likeset.parts import worked_out

SAFE_SQUARE = 1e-200  # squared lengths between this and its inverse lose nothing
IN_SPAN = 1e-13  # a unit direction with a smaller part outside the span of the covariates lies in the span


@dataclass(frozen=True)
class Prepared(Kernel):
    """A level set ready for directions.

    status          "regular", "point" (a single point within rounding) or "empty" (certified)
    centre          a point of C (d,); the best point found if empty
    minimum_bound   certified lower bound of min F over the ball
    basis           (d, r) orthonormal basis of the span of the covariates, None if they span R^d
    body            the set around the centre, in that basis; None if empty or if F does not restrict the ball
    """

    status: str
    centre: Array
    minimum_bound: float
    bound: float
    basis: Array | None
    body: CentredSet | UnboundedSet | None
    share = 512

    @worked_out
    def padded(self) -> Prepared:
        """The same, with a flat coordinate: one that a span without all of R^d has already."""
        d = len(self.centre)
        basis = np.eye(d + 1, d) if self.basis is None else with_zero(self.basis)
        body = self.body.with_flat() if self.basis is None and isinstance(self.body, CentredSet) else self.body
        return replace(self, centre=with_zero(self.centre), basis=basis, body=body)

    def _solve(self, A: Array, near: Array | None, tolerance: float) -> Solution:
        square = np.einsum("ij,ij->i", A, A)
        if len(A) and square.min() > SAFE_SQUARE and square.max() < 1.0 / SAFE_SQUARE:
            length = np.sqrt(square)
            points, upper = self._solve_unit(A / length[:, None], tolerance)
            upper *= length
        else:
            points, upper = self._solve_any_length(A, tolerance)
        values = np.einsum("ij,ij->i", A, points)
        return Solution(values=values, points=points, upper=np.maximum(upper, values))

    def _solve_any_length(self, A: Array, tolerance: float) -> tuple[Array, Array]:
        """Points and outer bounds for directions whose squares may under- or overflow, or that vanish."""
        largest = np.max(np.abs(A), axis=1, initial=0.0)
        scaled = A / np.where(largest > 0.0, largest, 1.0)[:, None]
        length = np.sqrt(np.einsum("ij,ij->i", scaled, scaled))
        moving = length > 0.0
        unit = scaled[moving] / length[moving, None]
        points, upper = np.tile(self.centre, (len(A), 1)), np.zeros(len(A))
        if len(unit):
            points[moving], bounds = self._solve_unit(unit, tolerance)
            upper[moving] = bounds * length[moving] * largest[moving]
        return points, upper

    def _solve_unit(self, unit: Array, tolerance: float) -> tuple[Array, Array]:
        """Points and outer bounds for directions of length one."""
        if self.body is None:
            return (unit * self.bound if self.bound < math.inf else 0.0 * unit), np.full(len(unit), self.bound)
        if self.basis is None:
            delta, upper = self.body.maximise(unit, tolerance)
            return self.centre + delta, self._outer(unit, upper)
        inside = unit @ self.basis
        outside = unit - inside @ self.basis.T
        outside -= (outside @ self.basis) @ self.basis.T  # once more: orthogonal to full precision
        flat = np.sqrt(np.einsum("ij,ij->i", outside, outside))
        flat[flat < IN_SPAN] = 0.0
        if self.bound == math.inf:
            reached = flat == 0.0
            delta, upper = np.zeros_like(inside), np.full(len(unit), math.inf)
            delta[reached], upper[reached] = self.body.maximise(inside[reached], tolerance)
            points = self.centre + delta @ self.basis.T
        else:
            outside /= np.where(flat > 0.0, flat, math.inf)[:, None]
            delta, upper = self.body.maximise(with_column(inside, flat), tolerance)
            points = self.centre + delta[:, :-1] @ self.basis.T + delta[:, -1:] * outside
        return points, self._outer(unit, upper)

    def _outer(self, unit: Array, upper: Array) -> Array:
        """Bounds measured from zero, rounding included, from those measured from the centre."""
        rounding = 8 * EPS * float(np.linalg.norm(self.centre))
        return np.minimum(unit @ self.centre + upper + rounding, self.bound)


def prepare(level_set: LevelSet) -> Prepared:
    """Phase I, centre and factorisations of a set with smooth terms."""
    X, terms, level, bound = level_set.X, level_set.terms, float(level_set.level), float(level_set.bound)
    if not isinstance(terms, SmoothTerms):
        raise TypeError(f"smooth terms expected, got {type(terms).__name__}; points have a kernel of their own")
    d = X.shape[1]
    X = np.ascontiguousarray(X, dtype=np.float64)
    if isinstance(terms, CurveTerms):
        used = (terms.a != 0.0) | (terms.s != 0.0)
        if not used.all():
            X, terms = X[used], terms.at(used)
    if len(X) == 0 or level == math.inf:
        lower = 0.0 if len(X) == 0 else -math.inf
        return Prepared("empty" if lower > level else "regular", np.zeros(d), lower, bound, None, None)
    if bound == 0.0 or not X.any():  # F is the same everywhere
        there = height(X, terms, np.zeros(d), level)
        status = "empty" if there.value > level + there.error else ("point" if bound == 0.0 else "regular")
        return Prepared(status, np.zeros(d), there.value, bound, None, None)
    basis = span_basis(X, bound)
    flat = basis is not None
    reduced = X if basis is None else np.ascontiguousarray(X @ basis)
    body: CentredSet | UnboundedSet | None
    if bound < math.inf:
        status, theta_c, lower, body = bounded_set(reduced, terms, level, bound, flat)
    else:
        status, theta_c, lower, body = unbounded_set(reduced, terms, level)
    centre = theta_c if basis is None else basis @ theta_c
    return Prepared(status, centre, lower, bound, basis, None if status == "empty" else body)


def span_basis(X: Array, bound: float = math.inf) -> Array | None:
    """Orthonormal basis (d, r) of the span of the rows of X (K, d); None if that is all of R^d.

    With a ball, coordinates in excess do no harm, and fewer covariates than dimensions need no decision on their rank.
    """
    K, d = X.shape
    if d > K and bound < math.inf:
        return np.linalg.qr(X.T)[0]
    if d <= K:
        # The usual case, cheaply: a Gram matrix that is safely regular.
        scaled = X / np.maximum(np.abs(X).max(axis=0), 1e-300)
        gram = scaled.T @ scaled
        if cholesky(gram, -1e-10 * float(gram.trace()), gram):  # so every eigenvalue is at least that share of all
            return None
    _, singular, rows = np.linalg.svd(X, full_matrices=False)
    rank = int(np.sum(singular > max(K, d) * EPS * singular[0]))
    return None if rank == d else np.ascontiguousarray(rows[:rank].T)
