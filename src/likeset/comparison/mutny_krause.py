"""MK 2021: the Poisson ellipsoid with worst-case curvature. Its radius here is a heuristic."""

from __future__ import annotations

from typing import Self

import numpy as np

from likeset._solver.problem import CurveTerms
from likeset._typing import Array
from likeset.comparison.base import check_model, finite_bound
from likeset.comparison.laplace_approximation import LaplaceApproximation
from likeset.errors import InvalidArgumentError
from likeset.families.base import Family
from likeset.families.poisson import Poisson
from likeset.spaces.base import Space


class MutnyKrause(LaplaceApproximation):
    r"""Penalised Poisson regression with the largest curvature on Theta in place of the estimated one.

        theta_hat = argmin L_t(theta) + lambda |theta|^2 / 2,      V = sum e^B x x' + lambda I
        |theta - theta_hat|_V^2 <= 2 log(1/alpha)

    As the paper plots it. **No coverage**: with this radius no proof exists, and the largest curvature makes the
    ellipsoid the *smallest*, not the safest. lambda I is added, and the estimate penalised and not
    constrained, as in ``LaplaceApproximation``. Not cut with Theta unless ``within_theta=True``.

    penalty   lambda, by default 1 / B^2; chosen before the data

    Source: Emmenegger, Mutny, Krause (2023), appendix "Poisson heuristics", after Mutny, Krause (2021), No-regret
    algorithms for capturing events in Poisson point processes.
    """

    name = "MK 2021"
    provable = False
    anytime = True
    assumptions = "none that would make it true with this radius"
    source = "Emmenegger, Mutny, Krause 2023, appendix, after Mutny, Krause 2021"

    def __init__(
        self, space: Space, alpha: float, family: Poisson, penalty: float | None = None, within_theta: bool = False
    ) -> None:
        if not isinstance(family, Poisson):
            raise InvalidArgumentError(
                "family", family, "is not Poisson", "use LaplaceApproximation for other families"
            )
        super().__init__(space, alpha, family, penalty, within_theta)
        self.bound = finite_bound(space, "MK 2021")

    @classmethod
    def for_model(cls, family: Family, space: Space, alpha: float) -> Self | None:
        """Poisson counts, finite bound."""
        check_model(family, space, alpha)
        return cls(space, alpha, family) if isinstance(family, Poisson) and np.isfinite(space.bound) else None

    def _curvature(self, X: Array, terms: CurveTerms) -> Array:
        """a_k e^B: a_k counts the observations at x_k."""
        return np.asarray(terms.a * np.exp(self.bound))
