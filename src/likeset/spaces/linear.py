"""Finite-dimensional linear models: z = x'theta with theta in a ball of R^dim."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, sqrt
from typing import Any

import numpy as np

from likeset._typing import EPS, Array
from likeset.arguments import LARGEST, positive, positive_integer, rows
from likeset.compiling import REORDER, kernel
from likeset.errors import InvalidArgumentError

_SHORTEST = 1 / LARGEST  # of a covariate's largest entry; the square of a shorter one may be zero
_NEW_DIRECTION = 64 * EPS  # times sqrt(dim): a residual below this share of |x| is rounding


@dataclass(frozen=True)
class LinearBasis:
    """Orthonormal basis (columns of ``vectors``) of the span of the covariates, by Gram-Schmidt."""

    vectors: Array

    @property
    def dimension(self) -> int:
        """Number of basis vectors."""
        return self.vectors.shape[1]

    def coordinates(self, x: Array) -> tuple[Array, Array]:
        """Q'x and |x - QQ'x|."""
        inside = x @ self.vectors
        if self.vectors.shape[1] == len(self.vectors):
            return inside, np.zeros(len(x))
        outside = np.empty(len(x))
        lengths_apart(x, inside @ self.vectors.T, _NEW_DIRECTION * sqrt(x.shape[1]), outside)
        return inside, outside

    def including(self, x: Array) -> LinearBasis:
        """Append the unit vector of the part of x outside the span, if there is one."""
        dim, r = self.vectors.shape
        if r == dim:
            return self
        residual = self._reject(x[None, :])
        length = np.linalg.norm(residual)
        if length <= _NEW_DIRECTION * sqrt(dim) * np.linalg.norm(x):
            return self
        unit = self._reject(residual / length)[0]
        unit /= np.linalg.norm(unit)
        return LinearBasis(np.ascontiguousarray(np.column_stack([self.vectors, unit])))

    def values(self, theta: Any, x: Array, name: str = "theta") -> Array:
        """x'theta for all pairs of rows."""
        return np.asarray(rows(name, theta, self.vectors.shape[0]) @ x.T)

    def norms(self, theta: Any) -> Array:
        """Euclidean lengths."""
        return np.asarray(np.linalg.norm(rows("theta", theta, self.vectors.shape[0]), axis=1))

    def project(self, theta: Any, name: str = "theta") -> Array:
        """Q'theta."""
        return np.asarray(rows(name, theta, self.vectors.shape[0]) @ self.vectors)

    def lift(self, coordinates: Array, outside: Array, x: Array) -> Array:
        """Q coordinates + outside * unit vector of x's part outside the span."""
        theta = coordinates @ self.vectors.T
        if np.any(outside):
            residual = self._reject(x)
            length = np.linalg.norm(residual, axis=1)
            scale = np.divide(outside, length, out=np.zeros_like(outside), where=length > 0)
            theta = theta + scale[:, None] * residual
        return theta

    def evaluate(self, coordinates: Array, outside: Array, x: Array, at: Array) -> Array:
        """at'theta, row by row."""
        return np.einsum("ij,ij->i", self.lift(coordinates, outside, x), at)

    def state(self) -> dict[str, Array]:
        """The basis vectors."""
        return {"vectors": self.vectors}

    def _reject(self, x: Array) -> Array:
        # Twice is enough for orthogonality to rounding.
        once = x - (x @ self.vectors) @ self.vectors.T
        return once - (once @ self.vectors) @ self.vectors.T


@kernel(fastmath=REORDER)
def lengths_apart(x: Array, y: Array, rounding: float, out: Array) -> None:
    """Set out_i = |x_i - y_i| for rows x_i and y_i; zero where that is at most ``rounding`` |x_i|."""
    for i in range(x.shape[0]):
        length = apart = 0.0
        for j in range(x.shape[1]):
            length += x[i, j] * x[i, j]
            apart += (x[i, j] - y[i, j]) * (x[i, j] - y[i, j])
        out[i] = sqrt(apart) if apart > rounding * rounding * length else 0.0


class Linear:
    """Linear predictors z = x'theta with Theta = { theta in R^dim : |theta| <= bound }; all of R^dim without a bound.

    >>> Linear(dim=3, bound=2.0), Linear(dim=3)
    (Linear(dim=3, bound=2), Linear(dim=3))
    """

    def __init__(self, dim: int, bound: float = inf) -> None:
        self.dim = positive_integer("dim", dim, 10**6, "vectors of such a length would not fit into memory")
        self.bound = positive("bound", bound, infinite=True)

    def __repr__(self) -> str:
        return f"Linear(dim={self.dim}, bound={self.bound:g})" if self.bound < inf else f"Linear(dim={self.dim})"

    def settings(self) -> dict[str, Any]:
        """Constructor arguments."""
        return {"dim": self.dim, "bound": self.bound}

    @property
    def covariate_shape(self) -> tuple[int, ...]:
        """(dim,)."""
        return (self.dim,)

    def covariates(self, x: Any, name: str = "x") -> Array:
        """Rows of length dim, finite; of length zero, too: a control group coded 0 has z = 0 whatever theta is."""
        array = rows(name, x, self.dim)
        sizes = np.abs(array)
        if array.size and sizes.min() >= _SHORTEST:  # the usual case, cheaply
            return array
        usable = (sizes >= _SHORTEST).any(axis=1) | ~array.any(axis=1)
        if not usable.all():
            index = int(np.argmin(usable))
            raise InvalidArgumentError(
                f"{name}[{index}]",
                array[index],
                "is so short that its square is zero",
                "use units in which covariates are of order one, or exact zeros",
            )
        return array

    @property
    def turn(self) -> Array:
        """The matrix T for which theta lives in a ball as T'^-1 theta seen by covariates T x: here the identity."""
        return np.eye(self.dim)

    def correlation(self, x: Array, y: Array) -> Array:
        """x'y / (|x| |y|) for all pairs of rows; a zero vector correlates with itself alone."""
        lengths = [np.linalg.norm(rows, axis=1) for rows in (x, y)]
        first, second = (rows / np.where(n > 0, n, 1.0)[:, None] for rows, n in zip((x, y), lengths, strict=True))
        return np.asarray(first @ second.T + np.outer(lengths[0] == 0, lengths[1] == 0))

    def start(self) -> LinearBasis:
        """The empty basis."""
        return LinearBasis(np.zeros((self.dim, 0)))

    def restore(self, state: dict[str, Array]) -> LinearBasis:
        """The basis whose ``state`` this is; ValueError if its vectors are not orthonormal."""
        vectors = np.ascontiguousarray(state["vectors"])
        if vectors.ndim != 2 or vectors.shape[0] != self.dim or vectors.shape[1] > self.dim:
            raise ValueError(f"basis vectors of shape {vectors.shape} do not fit {self.dim} dimensions")
        if not np.abs(vectors.T @ vectors - np.eye(vectors.shape[1])).max(initial=0.0) <= 1e-12:
            raise ValueError("the basis vectors are not orthonormal")
        return LinearBasis(vectors)
