r"""Linear models with theta in an ellipsoid: Theta = { theta : theta'M theta <= bound^2 }.

With M = L L' and u = L'theta, x'theta = (L^-1 x)'u and |u| <= bound: the ball of :class:`~likeset.Linear` in other
coordinates, so every answer is as exact as there. A penalty lambda |u|^2 = lambda theta'M theta of FTRL, and the priors
of mixtures, have the shape of M as well: the matrix penalties of Algorithm 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from likeset._typing import Array
from likeset.arguments import positive, real_array, rows
from likeset.errors import InvalidArgumentError, ShapeError
from likeset.spaces.linear import Linear, LinearBasis

WORST_CONDITION = 1e12  # of M; beyond it rounding in L^-1 x would show


@dataclass(frozen=True)
class EllipsoidBasis:
    """A basis of the span of the L^-1 x, and the way there and back."""

    inner: LinearBasis
    factor: Array  # L
    inverse: Array  # L^-1

    @property
    def dimension(self) -> int:
        """Number of basis vectors."""
        return self.inner.dimension

    def coordinates(self, x: Array) -> tuple[Array, Array]:
        """Those of L^-1 x."""
        return self.inner.coordinates(self._turned(x))

    def including(self, x: Array) -> EllipsoidBasis:
        """Append what is new of L^-1 x."""
        inner = self.inner.including(self._turned(x[None, :])[0])
        return self if inner is self.inner else EllipsoidBasis(inner, self.factor, self.inverse)

    def values(self, theta: Any, x: Array, name: str = "theta") -> Array:
        """x'theta for all pairs of rows."""
        return self.inner.values(theta, x, name)

    def norms(self, theta: Any) -> Array:
        """|L'theta|, or a little less."""
        u = rows("theta", theta, len(self.factor)) @ self.factor
        return np.asarray(np.linalg.norm(u, axis=1) * (1 - 1e-15 * len(self.factor)))

    def project(self, theta: Any, name: str = "theta") -> Array:
        """Coordinates of L'theta."""
        return self.inner.project(rows(name, theta, len(self.factor)) @ self.factor, name)

    def lift(self, coordinates: Array, outside: Array, x: Array) -> Array:
        """theta = L'^-1 u."""
        turned = self._turned(x) if x.shape[-1] == len(self.factor) else x
        return np.asarray(self.inner.lift(coordinates, outside, turned) @ self.inverse)

    def evaluate(self, coordinates: Array, outside: Array, x: Array, at: Array) -> Array:
        """at'theta, row by row."""
        return np.einsum("ij,ij->i", self.lift(coordinates, outside, x), at)

    def state(self) -> dict[str, Array]:
        """The basis vectors."""
        return self.inner.state()

    def _turned(self, x: Array) -> Array:
        return np.ascontiguousarray(x @ self.inverse.T)


class LinearEllipsoid:
    """Linear predictors z = x'theta with Theta = { theta : theta'M theta <= bound^2 }; M is the ``metric``.

    Coefficients of different size, or known to be smooth or correlated. A ball around another centre c is the same with
    ``offset=x @ c`` in ``update``; theta is then what is to be added to c.

    >>> import likeset as ls
    >>> space = ls.LinearEllipsoid([[1.0, 0.0], [0.0, 0.01]], bound=2.0)     # |theta_1| <= 2, |theta_2| <= 20
    >>> space
    LinearEllipsoid(dim=2, bound=2)
    >>> ls.ConfidenceSequence(ls.Poisson(), space).set.upper([[1.0, 0.0], [0.0, 1.0]]).round(6)
    array([ 2., 20.])
    """

    def __init__(self, metric: Any, bound: float = 1.0) -> None:
        matrix = real_array("metric", metric)
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not len(matrix):
            raise ShapeError("metric", metric, f"has shape {matrix.shape}", "pass a square matrix")
        if not np.allclose(matrix, matrix.T, rtol=1e-12, atol=0.0):
            raise InvalidArgumentError("metric", metric, "is not symmetric", "pass (M + M') / 2")
        self.metric = 0.5 * (matrix + matrix.T)
        sizes = np.linalg.eigvalsh(self.metric)
        if not sizes[0] > sizes[-1] / WORST_CONDITION:
            raise InvalidArgumentError(
                "metric", metric, f"has eigenvalues from {sizes[0]:g} to {sizes[-1]:g}",
                f"pass a positive definite matrix with eigenvalues within a factor of {WORST_CONDITION:g}",
            )  # fmt: skip
        self.bound = positive("bound", bound)
        self.dim = len(self.metric)
        self._linear = Linear(self.dim, self.bound)
        self._factor: Array = np.asarray(np.linalg.cholesky(self.metric), dtype=np.float64)
        self._inverse: Array = np.asarray(np.linalg.inv(self._factor), dtype=np.float64)

    def __repr__(self) -> str:
        return f"LinearEllipsoid(dim={self.dim}, bound={self.bound:g})"

    @classmethod
    def example(cls) -> LinearEllipsoid:
        """An instance for the contract suite."""
        return cls([[1.0, 0.2], [0.2, 0.5]], 1.5)

    def settings(self) -> dict[str, Any]:
        """Constructor arguments."""
        return {"metric": self.metric.tolist(), "bound": self.bound}

    @property
    def covariate_shape(self) -> tuple[int, ...]:
        """(dim,)."""
        return (self.dim,)

    def covariates(self, x: Any, name: str = "x") -> Array:
        """Rows of length dim, as of a linear space."""
        return self._linear.covariates(x, name)

    @property
    def turn(self) -> Array:
        """L^-1: theta lives in a ball as L'theta, seen by covariates L^-1 x."""
        return self._inverse.copy()

    def correlation(self, x: Array, y: Array) -> Array:
        """x'M^-1 y over the lengths: how much two covariates have in common, as Theta sees it."""
        return self._linear.correlation(x @ self._inverse.T, y @ self._inverse.T)

    def start(self) -> EllipsoidBasis:
        """The empty basis."""
        return EllipsoidBasis(self._linear.start(), self._factor, self._inverse)

    def restore(self, state: dict[str, Array]) -> EllipsoidBasis:
        """The basis whose ``state`` this is; ValueError if its vectors are not orthonormal."""
        return EllipsoidBasis(self._linear.restore(state), self._factor, self._inverse)
