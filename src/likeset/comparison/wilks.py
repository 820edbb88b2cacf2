"""Wilks' likelihood-ratio intervals for one fixed sample: what textbooks offer."""

from __future__ import annotations

from typing import Self

import numpy as np

from likeset.arguments import positive_integer
from likeset.comparison.base import Comparison, check_model, is_one_convex_law
from likeset.comparison.likelihood import LevelSnapshot, level_snapshot, likelihood_terms, lowest
from likeset.families.base import Family
from likeset.spaces.base import Space
from likeset.spaces.linear import Linear


def chi_square_quantile(alpha: float, degrees: int) -> float:
    """q with P(chi^2_degrees > q) = alpha."""
    from scipy.special import chdtri

    return float(chdtri(degrees, alpha))


class Wilks(Comparison):
    r"""Parameters whose log-likelihood is within half a chi-square quantile of the maximum over Theta.

        L_t(theta) - L_t(theta_hat) <= chi2_{degrees, 1-alpha} / 2

    With ``degrees=1`` (default) the band is, for each x, the profile-likelihood interval of x'theta; membership of a
    whole theta needs ``degrees=dim``. **Valid only asymptotically, for one n fixed beforehand and covariates that do
    not depend on the y**: looking repeatedly makes it miss, in the end with certainty. A reference, not a competitor.
    Cut with Theta.

    Source: Wilks (1938).
    """

    name = "Wilks (fixed n)"
    provable = False
    anytime = False
    assumptions = "the family, n fixed beforehand, large n, covariates not adaptive"
    source = "Wilks 1938"

    def __init__(self, space: Space, alpha: float, family: Family, degrees: int = 1) -> None:
        super().__init__(space, alpha, family)
        self.degrees = positive_integer("degrees", degrees)
        self._estimate = np.zeros(0)

    @classmethod
    def for_model(cls, family: Family, space: Space, alpha: float) -> Self | None:
        """Finite-dimensional models."""
        check_model(family, space, alpha)
        return cls(space, alpha, family) if is_one_convex_law(family) and isinstance(space, Linear) else None

    def _snapshot(self) -> LevelSnapshot:
        X, terms, constant = likelihood_terms(self._stream)
        self._estimate, minimum = lowest(X, terms, self.space.bound, start=self._estimate)
        allowed = 0.5 * chi_square_quantile(self.alpha, self.degrees)
        return level_snapshot(self._stream, self.alpha, minimum + constant + allowed - np.log(1 / self.alpha))
