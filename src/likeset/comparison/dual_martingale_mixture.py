"""DMM: a solver-free band around the martingale-mixture set, the tightest of several ellipsoids."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Self

import numpy as np

from likeset.arguments import positive
from likeset.comparison.base import Comparison, default_penalty, finite_bound
from likeset.comparison.convex_martingale_mixture import squared_mixture_radius
from likeset.comparison.least_squares import LeastSquares
from likeset.errors import EmptySetError
from likeset.families.base import Array, Family
from likeset.families.gaussian import Gaussian
from likeset.spaces.base import Basis, Embedded, Space

_OUTWARD = 1e-10
GRID = 2.0 ** np.arange(-12.0, 13.0)
"""The b tried, as multiples of a = sigma^2 / c."""


class DualMartingaleMixture(Comparison):
    r"""The ellipsoids that contain CMM, one for each b, intersected direction by direction.

        mean_b(x) +- sqrt( (R^2 + b B^2 - b y'(K + bI)^-1 y) / b ) s_b(x),    tightest over a grid of b
        R^2 as in CMM,     s_b^2 = k(x,x) - k'(K + bI)^-1 k

    Checked: |y - f|^2 <= R^2 and |f| <= B imply |y - f|^2 + b |f|^2 <= R^2 + b B^2 for every b > 0; completing the
    square gives the ellipsoid. All b hold at once, so the minimum over b is valid, whatever the grid. Ends up close to
    CMM cut with Theta, without a solver; b = a is AMM. Assumes sigma-sub-Gaussian noise and |f*| <= B.

    spread   c > 0, by default B^2; chosen before the data. The grid of b is fixed: a / 4096, ..., 4096 a.

    Source: Flynn, Reeb (2024), Tighter confidence bounds for sequential kernel regression, arXiv 2403.12732.
    """

    name = "DMM"
    provable = True
    anytime = True
    assumptions = "linear mean, sigma-sub-Gaussian noise, |theta*| <= B"
    source = "Flynn, Reeb 2024, arXiv 2403.12732"

    def __init__(self, space: Space, alpha: float, sigma: float, spread: float | None = None) -> None:
        self.sigma = positive("sigma", sigma)
        super().__init__(space, alpha, Gaussian(self.sigma))
        self.bound = finite_bound(space, "DMM")
        self.spread = 1 / default_penalty(space) if spread is None else positive("spread", spread)
        self._sums = LeastSquares()

    @classmethod
    def for_model(cls, family: Family, space: Space, alpha: float) -> Self | None:
        """Gaussian noise, finite bound."""
        if not isinstance(family, Gaussian) or not np.isfinite(space.bound):
            return None
        return cls(space, alpha, family.sigma)

    def _observe(self, phi: Embedded, y: Array) -> None:
        self._sums.add(phi.coordinates, float(y))

    def _snapshot(self) -> EllipsoidFamily:
        squared = squared_mixture_radius(self._sums, self.sigma, self.spread, self.alpha)
        grid: Array = GRID * np.float64(self.sigma**2 / self.spread)
        return EllipsoidFamily(self.space, self._stream.basis, self.alpha, self._sums, squared, grid)


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

    @cached_property
    def _spectrum(self) -> tuple[Array, Array, Array]:
        """Eigenvectors and eigenvalues (d, 1) of sum x x', and sum x y in the eigenbasis (d, 1)."""
        values, vectors = np.linalg.eigh(self._gram)
        return vectors, np.maximum(values, 0.0)[:, None], (vectors.T @ self._moment)[:, None]

    @cached_property
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
        inside, norms = self._basis.parameters(theta)
        residual = self._energy - 2 * inside @ self._moment + np.einsum("ij,jk,ik->i", inside, self._gram, inside)
        with np.errstate(invalid="ignore"):
            room = self.space.bound**2 * (1 + _OUTWARD) - norms**2
            allowed = np.minimum(self._grid[0] * room, self._grid[-1] * room)
        answers = residual - self._squared_radius <= allowed + self._slack
        return answers[0].item() if len(answers) == 1 and np.ndim(theta) < 2 else answers
