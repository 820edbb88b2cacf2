"""Coordinates in the span of the covariates, outside which F is flat."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from likeset._solver.problem import with_column
from likeset._typing import EPS, Array, IntArray


@dataclass(frozen=True)
class Span:
    """Coordinates in an orthonormal basis of the covariates' span, and one for all that is outside it.

    basis      (d, r) with orthonormal columns, or None if nothing is reduced
    outside    whether a last coordinate stands for the part of a direction outside the span (F is flat there)
    """

    basis: Array | None
    outside: bool
    dimension: int

    def reduce(self, A: Array) -> Array:
        """Directions in the reduced coordinates."""
        if self.basis is None:
            return A
        inner = A @ self.basis
        if not self.outside:
            return inner
        rest = np.linalg.norm(A - inner @ self.basis.T, axis=1)
        return with_column(inner, rest)

    def expand(self, points: Array, A: Array) -> Array:
        """Points from reduced coordinates; the last one runs along the outside part of the direction."""
        if self.basis is None:
            return points
        rank = self.basis.shape[1]
        full = points[:, :rank] @ self.basis.T
        if self.outside:
            rest = A - (A @ self.basis) @ self.basis.T
            size = np.linalg.norm(rest, axis=1, keepdims=True)
            genuine = size > 64.0 * EPS * np.linalg.norm(A, axis=1, keepdims=True)  # not a rounding error
            full += points[:, rank:] * np.divide(rest, size, out=np.zeros_like(rest), where=genuine)
        return np.asarray(full)

    def contains(self, A: Array, size: Array) -> Array:
        """Whether directions of the given norms lie in the span, up to rounding."""
        if self.basis is None:
            return np.ones(len(A), dtype=bool)
        rest = np.linalg.norm(A - (A @ self.basis) @ self.basis.T, axis=1)
        return np.asarray(rest <= 64.0 * EPS * np.sqrt(self.dimension) * size)


def reduce_to_span(
    X: Array, points: Array, weights: Array, owner: IntArray, level: float, bound: float
) -> tuple[Span, Array, float]:
    """Reduced coordinates, the covariates in them, and a ball that contains C and every minimiser of F.

    With a ball, K < d covariates span at most K dimensions and no rank has to be decided. Without one (or
    with one so large that rounding errors times the bound matter), the singular values give the rank, and
    |diag(W) X theta| <= sum_k W_k |x_k'theta| <= F(theta) + F(0) bounds C.
    """
    n_rows, d = X.shape
    size_of_F = float(weights @ np.abs(points))
    reach = float(np.max(np.linalg.norm(X, axis=1), initial=0.0))
    total = np.bincount(owner, weights, minlength=n_rows)
    generous = 1e3 * (np.abs(points).max() + max(level, 0.0) / total.max())
    if bound * reach <= generous or (reach == 0.0 and np.isfinite(bound)):
        if n_rows >= d:
            return Span(None, False, d), X, bound
        basis = np.linalg.qr(X.T)[0]
        return Span(basis, True, d), with_column(X @ basis), bound
    _, sizes, rows = np.linalg.svd(X, full_matrices=False)
    rank = int(np.sum(sizes > 8.0 * EPS * max(n_rows, d) * sizes[0]))
    basis = np.ascontiguousarray(rows[:rank].T)
    inner = np.ascontiguousarray(X @ basis)
    if rank < d and np.isfinite(bound):
        return Span(basis, True, d), with_column(inner), bound
    smallest = float(np.linalg.svd(total[:, None] * inner, compute_uv=False)[-1])
    bounding = 1.01 * (max(level, size_of_F) + size_of_F) / smallest
    return Span(basis, False, d), inner, min(bound, bounding)
