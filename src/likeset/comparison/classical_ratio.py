"""The classical likelihood ratio: a plug-in estimate in the numerator, no weights."""

from __future__ import annotations

from typing import Self

from likeset.comparison.base import check_model, is_one_convex_law
from likeset.comparison.forecasting import ForecastingSet
from likeset.families.base import Family
from likeset.predictors.ftrl import FTRL
from likeset.spaces.base import Space


class ClassicalRatio(ForecastingSet):
    r"""The running likelihood ratio of Robbins and Wald with the paper's estimator and w = 1.

        C = { theta in Theta : L_t(theta) <= log(1/alpha) + sum_s -log p(y_s | x_s'theta_s) }
        theta_s = argmin_{|theta| <= B} sum_{j<s} -log p_theta(y_j | x_j) + lambda |theta|^2

    Assumes the family and theta* in Theta; nothing else. Cut with Theta. The same as
    ``ConfidenceSequence(family, space, alpha, FTRL(penalty), Unweighted())``.

    penalty   lambda, of FTRL; chosen before the data

    Source: Robbins, Siegmund (1972); Wasserman, Ramdas, Balakrishnan (2020), Universal inference; the paper's "LR".
    """

    name = "LR unweighted"
    provable = True
    anytime = True
    assumptions = "the family, theta* in Theta"
    source = "Robbins, Siegmund 1972; Wasserman, Ramdas, Balakrishnan 2020"

    def __init__(self, space: Space, alpha: float, family: Family, penalty: float = 1.0) -> None:
        super().__init__(space, alpha, family)
        self._start(FTRL(penalty))

    @classmethod
    def for_model(cls, family: Family, space: Space, alpha: float) -> Self | None:
        """Every family with exact extrema."""
        check_model(family, space, alpha)
        return cls(space, alpha, family) if is_one_convex_law(family) else None
