r"""Support function for Gaussian noise: the eigenbasis and the centre of an ellipsoid cut with a ball.

Terms phi_k(z) = a_k (z - o_k)^2 / 2 - s_k (z - o_k) add up to a quadratic, so that

    C = { theta : F(theta) = theta'H theta / 2 - b'theta + constant <= level,  |theta| <= B },
    H = sum_k a_k x_k x_k',   b = sum_k (s_k + a_k o_k) x_k.

Where means are large beside the noise b and the constant are huge and F is not: they serve to find the centre, and
all that is said about F comes from the z_k - o_k there.

Once per set: eigenvectors of H, in which H = diag(h), and the minimiser of F over the ball, exact by the
secular equation, as the centre (:mod:`~likeset._solver.quadratic.centre`). Per direction:
:mod:`~likeset._solver.quadratic.pencil`.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np

from likeset._solver.linalg.eigen import eigen
from likeset._solver.problem import CurveTerms, Kernel, LevelSet, Solution, with_column, with_zero
from likeset._solver.quadratic.centre import Quadratic, phase_one
from likeset._solver.quadratic.pencil import Cut, maximise, outer_bounds
from likeset._typing import EPS, Array

EIGEN_ERROR = 16 * EPS  # error of an eigenvalue or singular value relative to the largest
RESOLUTION = 1e-8  # relative looseness at which the eigenvalues of H are recomputed from X itself


@dataclass(frozen=True)
class Prepared(Kernel):
    """An ellipsoid cut with a ball, ready for any direction."""

    status: str  # "regular", "point" or "empty"
    minimum_bound: float  # certified lower bound of min F over the ball
    basis: Array  # orthonormal columns, shape (d, r)
    cut: Cut
    closed_form = True
    share = 1 << 16

    @property
    def centre(self) -> Array:  # type: ignore[override]
        """theta_c, shape (d,): the minimiser of F over the ball."""
        return self.basis @ self.cut.origin

    def _solve(self, A: Array, near: Array | None, tolerance: float) -> Solution:
        """Where the set is unbounded the value and the bound are +inf and the point is NaN."""
        return self._solved(A, None, tolerance)

    def _solve_outside(self, A: Array, outside: Array, near: Array | None, tolerance: float) -> Solution:
        return self._solved(A, outside, tolerance)

    def _solved(self, A: Array, outside: Array | None, tolerance: float) -> Solution:
        A, basis, rest, orthogonal = self._directions(A, outside)
        n = len(A)
        values, upper, steps, along = maximise(A, A @ basis, rest, self.cut, tolerance)
        points = (self.cut.origin + steps) @ basis.T
        if orthogonal is not None:
            points += np.divide(along, rest, out=np.zeros(n), where=rest > 0)[:, None] * orthogonal
        elif outside is not None:
            points = with_column(points, along)
        return Solution(values, points, upper)

    def bounds(self, A: Array, outside: Array) -> Array:
        """The outer bounds of ``solve`` alone."""
        if self.status == "empty":
            return np.full(len(A), -inf)
        A, basis, rest, _ = self._directions(A, outside)
        return outer_bounds(A, A @ basis, rest, self.cut, 1e-7)

    def _directions(self, A: Array, outside: Array | None) -> tuple[Array, Array, Array, Array | None]:
        """A, the basis, the lengths of the rows of A beyond it, and their parts there if these belong to A."""
        A, basis = np.ascontiguousarray(A, dtype=np.float64), self.basis
        if basis.shape[0] == basis.shape[1]:
            return A, basis, np.zeros(len(A)) if outside is None else outside, None
        if outside is not None:
            A, basis = with_column(A, outside), with_zero(basis)
        orthogonal = A - (A @ basis) @ basis.T
        return A, basis, np.linalg.norm(orthogonal, axis=1), orthogonal


def prepare(level_set: LevelSet) -> Prepared:
    """Phase I and the eigenbasis: everything that does not depend on the direction.

    The eigenvalues of H = X'diag(a)X have an absolute error of a few eps |H|; they are lowered by it, so that
    the bounds stay outer. If that loosens the weakest curvature that matters by more than RESOLUTION, they
    are recomputed as squared singular values of diag(sqrt a) X, with relative error eps sqrt(|H|/h) only.
    """
    terms = level_set.terms
    if not isinstance(terms, CurveTerms):
        raise TypeError(f"the quadratic kernel needs CurveTerms, got {type(terms).__name__}")
    K, d = level_set.X.shape
    level, bound = float(level_set.level), float(level_set.bound)
    # With few covariates, work in their span; with more than d/2, finding the span would cost more.
    span = np.linalg.qr(level_set.X.T)[0] if d >= 2 * K else None
    X = np.ascontiguousarray(level_set.X if span is None else level_set.X @ span)

    origins = np.zeros(K) if terms.origins is None else terms.origins
    F = Quadratic(X, terms.a, terms.s, origins, *spectrum_of_hessian(X, terms.a))
    cut, minimum, lower = phase_one(F, level, bound)
    weakest = 0.0 if span is not None or not len(cut.lowered) else cut.lowered[0]
    flattest = cut.slack / (2 * bound * bound) if bound < inf else 0.0
    if len(cut.lowered) and cut.curvature[0] - cut.lowered[0] > RESOLUTION * max(weakest, flattest):
        F = Quadratic(X, terms.a, terms.s, origins, *spectrum_of_factor(X, terms.a))
        cut, minimum, lower = phase_one(F, level, bound)

    padding = cut.slack - cut.inner_slack if cut.slack < inf else 0.0
    status = "regular"
    if level - minimum <= padding:
        status = "empty" if lower > level + padding else "point"
    basis = F.rotation if span is None else span @ F.rotation
    return Prepared(status, lower, basis, cut)


def spectrum_of_hessian(X: Array, a: Array) -> tuple[Array, Array, Array]:
    """Eigenvalues of H = X'diag(a)X (ascending), the same lowered by their error, and eigenvectors."""
    values, vectors = eigen((X.T * a) @ X)
    curvature = np.maximum(values, 0.0)
    error = EIGEN_ERROR * curvature[-1] if len(values) else 0.0
    return curvature, np.maximum(values - error, 0.0), vectors


def spectrum_of_factor(X: Array, a: Array) -> tuple[Array, Array, Array]:
    """The same from the singular values of diag(sqrt a) X: slower, and accurate for small eigenvalues too."""
    d = X.shape[1]
    factor = np.sqrt(a)[:, None] * X
    if len(factor) > d:  # the triangle has the same singular values, and left vectors of n x n are never made
        factor = np.asarray(np.linalg.qr(factor, mode="r"))
    _, singular, transposed = np.linalg.svd(factor, full_matrices=True)
    root = np.zeros(d)
    root[d - len(singular) :] = singular[::-1]
    lowered = np.maximum(root - EIGEN_ERROR * root[-1], 0.0) ** 2
    return root**2, lowered, np.ascontiguousarray(transposed[::-1].T)
