r"""The hyper-mixture: sequential likelihood mixing over Gaussian priors of several widths. The default numerator.

For prior precisions lambda_1, ..., lambda_J, each with its Gaussian belief N(m_j, S_j) about theta,

    q_s(y) = sum_j pi_j ∫ p(y | z) N(z; x'm_j, x'S_j x) dz,      pi_j <- pi_j q_j(y_s) / q_s(y_s).

For Gaussian noise beliefs and integrals are exact, and with one precision the set is the prior-posterior-ratio set.
Elsewhere the belief is approximate and q_s still is a normalised density, so coverage is exact all the same.
A mixture hedges over the uncertain z, which a plug-in estimate cannot: this is where its gain comes from.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from likeset._solver.evaluate import log_sum_exp
from likeset._solver.nuisance import Gain
from likeset._typing import Array
from likeset.arguments import real_array
from likeset.embedded import Embedded
from likeset.errors import InvalidArgumentError
from likeset.families.answers import information, posterior, predictive, prior_precisions
from likeset.families.base import Family
from likeset.families.merged import MergedData
from likeset.families.predictive import Predictive
from likeset.predictors.base import updated_shares
from likeset.predictors.belief import Belief
from likeset.spaces.base import Basis, Space
from likeset.state_checks import expect_log_shares
from likeset.undo import Undo

DEFAULT_GRID = (1.0, 4.0, 16.0, 64.0, 256.0)
UNBOUNDED_SCALE = 10.0  # stands in for B in the default precisions when the space has no bound


class Mixture:
    """Mixture over N(0, I/lambda) priors; ``precisions`` are the lambdas, by default {1, 4, 16, 64, 256} / B^2.

    >>> Mixture(precisions=[1.0])
    Mixture(precisions=[1.0])
    """

    def __init__(self, precisions: Sequence[float] | None = None) -> None:
        self.precisions: Array | None = None
        if precisions is not None:
            array = np.atleast_1d(real_array("precisions", precisions))
            if array.ndim != 1 or len(array) == 0 or not (array > 0).all():
                raise InvalidArgumentError(
                    "precisions", precisions, "is not a list of positive numbers", "pass prior precisions > 0"
                )
            self.precisions = array

    def __repr__(self) -> str:
        return f"Mixture({'' if self.precisions is None else f'precisions={self.precisions.tolist()}'})"

    def settings(self) -> dict[str, object]:
        """Constructor arguments."""
        return {"precisions": None if self.precisions is None else self.precisions.tolist()}

    def start(self, family: Family, space: Space) -> MixtureForecaster:
        """A forecaster with prior beliefs."""
        scale = space.bound if np.isfinite(space.bound) else UNBOUNDED_SCALE
        precisions = self.precisions
        if precisions is None:
            in_noise = prior_precisions(family)
            precisions = np.array(DEFAULT_GRID) / scale**2 if in_noise is None else in_noise
        return MixtureForecaster(family, space.bound, precisions)


class MixtureForecast:
    """sum_j pi_j q_j, frozen."""

    __slots__ = ("components", "family", "log_shares")

    def __init__(self, family: Family, components: Predictive, log_shares: Array) -> None:
        self.family, self.components, self.log_shares = family, components, log_shares

    def log_density(self, y: Array) -> Array:
        """log sum_j pi_j q_j(y)."""
        return log_sum_exp(self.log_shares + self.components.log_densities(y))


class MixtureForecaster:
    """Running state of :class:`Mixture`: beliefs and the log of their shares."""

    def __init__(self, family: Family, bound: float, precisions: Array) -> None:
        self.family, self.bound = family, bound
        self.posterior = posterior(family, precisions)
        count = getattr(self.posterior, "components", len(precisions))
        self.log_shares = np.full(count, -np.log(count))
        self._latest: tuple[Embedded, MixtureForecast] | None = None
        self._moments = (np.zeros(0), np.zeros(0))  # of z at the latest covariate

    def forecast(self, phi: Embedded) -> MixtureForecast:
        """The predictive mixture at phi."""
        mean, sd = self.posterior.predict(phi)
        own = getattr(self.posterior, "predictive", None)  # of beliefs that are not about theta alone
        law = phi.law_or(self.family)
        if own is None:
            x = phi.coordinates
            reach = self.bound * float(np.sqrt(x @ x))
            components = predictive(law, mean, sd, reach)
        else:
            components = own(mean, sd, phi)
        made = MixtureForecast(law, components, self.log_shares)
        self._latest, self._moments = (phi, made), (mean, sd)
        return made

    def spread(self, phi: Embedded) -> float:
        """sum_j pi_j I(m_j) s_j^2: the variance of z in units of the noise, I the information of one y about z."""
        if not (self._latest and self._latest[0] is phi):
            self.forecast(phi)
        mean, sd = self._moments
        with np.errstate(over="ignore", invalid="ignore"):
            expected = float(np.exp(self.log_shares) @ (information(phi.law_or(self.family), mean) * sd**2))
        return expected if expected == expected else np.inf

    def observe(self, phi: Embedded, y: Array) -> None:
        """Bayes' rule for the shares, then for the beliefs."""
        made = self._latest[1] if self._latest and self._latest[0] is phi else self.forecast(phi)
        self.log_shares = updated_shares(self.log_shares, made.components.log_densities(y))
        self.posterior.observe(phi, y)

    def belief(self, space: Space, basis: Basis) -> Belief:
        """What is believed now, frozen, for questions in terms of this basis."""
        shares = np.exp(self.log_shares)
        own, precision = getattr(self.posterior, "believed", None), None  # of beliefs that are not about theta alone
        if own is None:
            beliefs = self.posterior.settled()
        else:
            beliefs, shares, precision = own(shares)
        return Belief(
            self.family, space, basis, beliefs.priors, shares / shares.sum(), beliefs.means, beliefs.factors, precision
        )  # fmt: skip

    def gain(self) -> Gain | None:
        """What a numerator made for the test of one scale has earned so far, where beliefs know one."""
        own = getattr(self.posterior, "gain", None)
        return None if own is None else own()

    def remember(self, undo: Undo, phi: Embedded) -> None:
        """Keep shares and beliefs."""
        undo.keep(self)
        self.posterior.remember(undo, phi)

    def state(self) -> dict[str, Array]:
        """Shares and beliefs."""
        return {"log_shares": self.log_shares} | self.posterior.state()

    def restore(self, state: dict[str, Array]) -> None:
        """The inverse of ``state``."""
        self.log_shares = expect_log_shares(state, "log_shares", len(self.log_shares))
        self.posterior.restore(state)

    def fits(self, count: int, dimension: int) -> bool:
        """Whether the beliefs are those of so many distinct covariates and dimensions."""
        return self.posterior.fits(count, dimension)

    def resume(self, data: MergedData) -> None:
        """After ``restore``: take a copy of the ledger's data."""
        self.posterior.resume(data)
