r"""An orthonormal basis of the span of kernel sections, by a Cholesky factorisation with one row per new point.

    K_PP = L L',     coordinates(x) = L^-1 k(P, x),     outside(x)^2 = k(x, x) - |coordinates(x)|^2.

A point whose section lies in the span up to ``RANK_TOLERANCE`` (relative, in the square) adds no basis vector.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from likeset.spaces.base import Array
from likeset.support.threads import SingleThreadedBlas

if TYPE_CHECKING:
    from likeset.spaces.rkhs import RKHS

RANK_TOLERANCE = 1e-13


class SharedRows:
    """Basis points and Cholesky rows, append-only, shared by every basis that is a prefix of them."""

    def __init__(self, capacity: int, dim: int, domain_size: int) -> None:
        self.points = np.zeros((capacity, dim))
        self.factor = np.zeros((capacity, capacity))
        self.on_domain = np.zeros((domain_size, capacity))  # coordinates of every domain point: more Cholesky rows
        self.places = np.zeros(capacity, dtype=np.intp)  # numbers of the points in the domain
        self.filled = 0


class RKHSBasis:
    """The first ``size`` basis points of a shared table: an immutable basis that grows without copying."""

    def __init__(self, space: RKHS, table: SharedRows, size: int) -> None:
        self.space, self._table, self._size = space, table, size

    def __deepcopy__(self, memo: dict[int, Any]) -> RKHSBasis:
        return self  # immutable: the table only grows, and a basis never looks beyond its own size

    @property
    def dimension(self) -> int:
        """Number of basis vectors."""
        return self._size

    @property
    def points(self) -> Array:
        """The basis points P."""
        return self._table.points[: self._size]

    @property
    def factor(self) -> Array:
        """L with K_PP = L L'."""
        return self._table.factor[: self._size, : self._size]

    def coordinates(self, x: Array) -> tuple[Array, Array]:
        """L^-1 k(P, x) and the length of the rest of k_x."""
        if self.space.domain is not None:
            inside = self._table.on_domain[self.space.places(x), : self._size]
        else:
            inside = self._solve(self.space.gram(self.points, x)).T
        squared = self.space.diagonal(x) - np.einsum("ij,ij->i", inside, inside)
        return np.ascontiguousarray(inside), np.sqrt(np.maximum(squared, 0.0))

    def including(self, x: Array) -> RKHSBasis:
        """One more Cholesky row, unless k_x is in the span to numerical rank."""
        inside, outside = self.coordinates(x[None, :])
        if outside[0] ** 2 <= RANK_TOLERANCE * self.space.diagonal(x[None, :])[0]:
            return self
        table, n = self._table, self._size
        if table.filled != n or n == len(table.points):
            grown = SharedRows(max(16, 2 * n), x.shape[0], len(table.on_domain))
            grown.points[:n], grown.factor[:n, :n] = self.points, self.factor
            grown.on_domain[:, :n], grown.places[:n] = table.on_domain[:, :n], table.places[:n]
            table = grown
        table.points[n], table.factor[n, :n], table.factor[n, n] = x, inside[0], outside[0]
        if self.space.domain is not None:
            table.places[n] = self.space.places(x[None, :])[0]
            section = self.space.gram(self.space.domain, x[None, :])[:, 0]
            table.on_domain[:, n] = (section - table.on_domain[:, :n] @ inside[0]) / outside[0]
        table.filled = n + 1
        return RKHSBasis(self.space, table, n + 1)

    def parameters(self, theta: Any) -> tuple[Array, Array]:
        """Functions by their values on the domain -> coordinates of their projection on the span, and their norms."""
        values = self.space.values_on_domain(theta)
        return self._projected(values), self.space.norms(values)

    def project(self, theta: Any, name: str = "theta") -> Array:
        """The coordinates alone."""
        return self._projected(self.space.values_on_domain(theta, name))

    def lift(self, coordinates: Array, outside: Array, x: Array) -> Array:
        """Functions as values on the domain; without a domain, at the basis points and, last, at x itself."""
        if self.space.domain is not None:
            return self._on_domain(coordinates, outside, x)
        at_points = coordinates @ self.factor.T
        return np.column_stack([at_points, self.evaluate(coordinates, outside, x, x)]) if x.shape[1] else at_points

    def evaluate(self, coordinates: Array, outside: Array, x: Array, at: Array) -> Array:
        """Row by row, the value at ``at`` of the function with these coordinates and component outside the span."""
        there, _ = self.coordinates(at)
        values = np.einsum("ij,ij->i", coordinates, there)
        if np.any(outside):
            here, length = self.coordinates(x)
            section = np.array([self.space.gram(x[i : i + 1], at[i : i + 1])[0, 0] for i in range(len(x))])
            rest = section - np.einsum("ij,ij->i", here, there)
            values = values + outside * np.divide(rest, length, out=np.zeros_like(rest), where=length > 0)
        return values

    def _projected(self, values: Array) -> Array:
        at_points = values[:, self._table.places[: self._size]]
        return np.ascontiguousarray(self._solve(at_points.T).T)

    def _on_domain(self, coordinates: Array, outside: Array, x: Array) -> Array:
        everywhere = self._table.on_domain[:, : self._size]
        values = coordinates @ everywhere.T
        if np.any(outside):
            here, length = self.coordinates(x)
            rest = self.space.gram(x, self.space.domain) - here @ everywhere.T  # type: ignore[arg-type]
            scale = np.divide(outside, length, out=np.zeros_like(outside), where=length > 0)
            values = values + scale[:, None] * rest
        return values

    def state(self) -> dict[str, Array]:
        """Basis points, Cholesky factor, and the domain's coordinates."""
        on_domain = self._table.on_domain[:, : self._size]
        return {"points": self.points, "factor": self.factor, "on_domain": on_domain}

    def _solve(self, right: Array) -> Array:
        if self._size == 0:
            return np.zeros((0, right.shape[1]))
        from scipy.linalg.lapack import dtrtrs  # what solve_triangular calls, for a tenth of its overhead

        with SingleThreadedBlas():
            return np.asarray(dtrtrs(self.factor, right, lower=1)[0])
