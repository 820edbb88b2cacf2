"""Wald's intervals for one fixed sample: estimate plus or minus two standard errors."""

from __future__ import annotations

from typing import Self

import numpy as np

from likeset._solver.evaluate import evaluate_terms
from likeset._solver.problem import PointTerms, Terms
from likeset._typing import Array
from likeset.arguments import flag, positive_integer
from likeset.comparison.base import Comparison, check_model, is_one_convex_law
from likeset.comparison.ellipsoid import Ellipsoid
from likeset.comparison.likelihood import likelihood_terms, lowest
from likeset.comparison.wilks import chi_square_quantile
from likeset.families.base import Family
from likeset.families.laplace import Laplace
from likeset.spaces.base import Space
from likeset.spaces.linear import Linear


class Wald(Comparison):
    r"""The estimate plus or minus standard errors from the observed information.

        (theta - theta_hat)' I (theta - theta_hat) <= chi2_{degrees, 1-alpha}
        I = sum -(d/dz)^2 log p(y | x'theta_hat) x x'

    theta_hat the maximum-likelihood estimate over Theta (expected information 1/scale^2 for Laplace noise). With
    ``degrees=1`` (default) the band is the textbook interval of x'theta; membership of a whole theta needs
    ``degrees=dim``. **Valid only asymptotically, for one n fixed beforehand and covariates that do not depend on the
    y.** A reference, not a competitor. Unbounded in directions not yet observed; not cut with Theta unless
    ``within_theta=True``.

    Source: Wald (1943).
    """

    name = "Wald (fixed n)"
    provable = False
    anytime = False
    assumptions = "the family, n fixed beforehand, large n, covariates not adaptive"
    source = "Wald 1943"

    def __init__(
        self, space: Space, alpha: float, family: Family, degrees: int = 1, within_theta: bool = False
    ) -> None:
        super().__init__(space, alpha, family)
        self.degrees = positive_integer("degrees", degrees)
        self.within_theta = flag("within_theta", within_theta)
        self._estimate = np.zeros(0)

    @classmethod
    def for_model(cls, family: Family, space: Space, alpha: float) -> Self | None:
        """Finite-dimensional models."""
        check_model(family, space, alpha)
        return cls(space, alpha, family) if is_one_convex_law(family) and isinstance(space, Linear) else None

    def _snapshot(self) -> Ellipsoid:
        X, terms, _ = likelihood_terms(self._stream)
        self._estimate = lowest(X, terms, self.space.bound, start=self._estimate)[0]
        return self._ellipsoid(
            centre=self._estimate,
            precision=(X.T * self._information(X, terms)) @ X,
            outside=0.0,
            squared_radius=chi_square_quantile(self.alpha, self.degrees),
        )

    def _information(self, X: Array, terms: Terms) -> Array:
        if isinstance(terms, PointTerms):
            assert isinstance(self.family, Laplace)
            return np.diff(terms.starts) / self.family.scale**2
        return evaluate_terms(terms, X @ self._estimate)[2]
