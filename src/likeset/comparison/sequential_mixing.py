"""Sequential likelihood mixing: the numerator is a running posterior predictive."""

from __future__ import annotations

from typing import Self

from likeset.arguments import positive
from likeset.comparison.base import check_model, default_penalty
from likeset.comparison.forecasting import ForecastingSet
from likeset.families.base import Family
from likeset.predictors.mixture import Mixture
from likeset.spaces.base import Space


class SequentialMixing(ForecastingSet):
    r"""Each observation is predicted by mixing the model over what the earlier ones left plausible.

        C = { theta in Theta : L_t(theta) <= log(1/alpha) + sum_s -log ∫ p_nu(y_s | x_s) dmu_{s-1}(nu) }

    mu_{s-1} is a Gaussian belief about theta from the prior N(0, I/lambda) and the first s - 1 observations: exact for
    Gaussian noise (then this is NR 2021), a Laplace or variational approximation elsewhere. Whatever the quality of the
    approximation, the predictive is a density fixed before y_s, so the ratio is a martingale and coverage is exact.
    Assumes the family and theta* in Theta. Cut with Theta.

    One prior; ``ConfidenceSequence`` mixes over five widths by default and so need not know lambda.

    penalty   lambda, by default 1 / B^2; chosen before the data

    Source: Kirschner, Krause, Meziu, Mutny (2025), Confidence estimation via sequential likelihood mixing,
    arXiv 2502.14689.
    """

    name = "SLM 2025"
    unknown_numbers = True
    provable = True
    anytime = True
    assumptions = "the family, theta* in Theta"
    source = "Kirschner, Krause, Meziu, Mutny 2025, arXiv 2502.14689"

    def __init__(self, space: Space, alpha: float, family: Family, penalty: float | None = None) -> None:
        super().__init__(space, alpha, family)
        self.penalty = default_penalty(space) if penalty is None else positive("penalty", penalty)
        self._start(Mixture(precisions=[self.penalty]))

    @classmethod
    def for_model(cls, family: Family, space: Space, alpha: float) -> Self | None:
        """Every family with exact extrema."""
        check_model(family, space, alpha)
        return cls(space, alpha, family) if family.convex else None
