r"""Several ellipsoids at once: the snapshot of DMM.

    C = { f : |y - f|^2 + b |f|^2 <= R^2 + b B^2  for every b of a grid }

One eigendecomposition of sum x x' answers all b and all directions.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from likeset._typing import Array
from likeset.comparison.least_squares import LeastSquares
from likeset.errors import EmptySetError
from likeset.parts import worked_out
from likeset.spaces.base import Basis, Space

_OUTWARD = 1e-10


class EllipsoidFamily:
    """{ f : |y - f|^2 + b |f|^2 <= R^2 + b B^2 for every b of a grid }; an immutable snapshot."""

    radius = None  # several ellipsoids: no single number

    def __init__(
        self, space: Space, basis: Basis, alpha: float, sums: LeastSquares, squared_radius: float, grid: Array
    ) -> None:
        self.space, self.alpha, self.n_observations, self._basis = space, alpha, sums.count, basis
        self._gram, self._moment, self._energy = sums.gram.copy(), sums.moment.copy(), sums.energy
        self._squared_radius, self._grid = squared_radius, grid
        self._slack = _OUTWARD * (squared_radius + sums.energy)

    @worked_out
    def _spectrum(self) -> tuple[Array, Array, Array]:
        """Eigenvectors and eigenvalues (d, 1) of sum x x', and sum x y in the eigenbasis (d, 1)."""
        values, vectors = np.linalg.eigh(self._gram)
        return vectors, np.maximum(values, 0.0)[:, None], (vectors.T @ self._moment)[:, None]

    @worked_out
    def _squared_radii(self) -> Array:
        """R^2 + b B^2 - b y'(K + bI)^-1 y for every b, rounded outward."""
        _, values, moment = self._spectrum
        unexplained = self._energy - np.sum(moment**2 / (values + self._grid), axis=0)
        return self._squared_radius + self._grid * self.space.bound**2 - unexplained + self._slack

    @property
    def is_empty(self) -> bool:
        """Whether an ellipsoid is empty: a certified alarm. (``interval`` notices ellipsoids that do not meet.)"""
        return bool((self._squared_radii < 0).any())

    def interval(self, X: Any) -> tuple[Array, Array]:
        """(lower, upper) for every row of X."""
        inside, outside = self._basis.coordinates(self.space.covariates(X, "X"))
        if self.is_empty:
            raise EmptySetError(self.alpha)
        vectors, values, moment = self._spectrum
        projected, b = inside @ vectors, self._grid
        middle = projected @ (moment / (values + b))
        squared = projected**2 @ (b / (values + b)) + outside[:, None] ** 2
        reach = np.sqrt(self._squared_radii / b * squared)
        reach = reach + _OUTWARD * (reach + np.abs(middle))
        low, high = np.max(middle - reach, axis=1), np.min(middle + reach, axis=1)
        if (low > high).any():  # no function is in all ellipsoids, though none of them is empty
            raise EmptySetError(self.alpha)
        return low, high

    def upper(self, X: Any) -> Array:
        """Upper end of the band."""
        return self.interval(X)[1]

    def lower(self, X: Any) -> Array:
        """Lower end of the band."""
        return self.interval(X)[0]

    def contains(self, theta: Any) -> Any:
        """Whether f is in every ellipsoid: |y - f|^2 - R^2 <= b (B^2 - |f|^2), linear in b, so at both ends."""
        inside, norms = self._basis.project(theta), self._basis.norms(theta)
        residual = self._energy - 2 * inside @ self._moment + np.einsum("ij,jk,ik->i", inside, self._gram, inside)
        with np.errstate(invalid="ignore"):
            room = self.space.bound**2 * (1 + _OUTWARD) - norms**2
            allowed = np.minimum(self._grid[0] * room, self._grid[-1] * room)
        answers = residual - self._squared_radius <= allowed + self._slack
        return answers[0].item() if len(answers) == 1 and np.ndim(theta) < 2 else answers
