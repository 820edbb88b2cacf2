r"""Plug-in forecasts of online learning: Follow-the-Regularised-Leader and Vovk-Azoury-Warmuth."""

from __future__ import annotations

from likeset._typing import Array
from likeset.arguments import positive
from likeset.embedded import Embedded
from likeset.errors import InvalidArgumentError
from likeset.families.answers import canonical_scale, look_ahead, penalised_fit
from likeset.families.base import Family
from likeset.families.merged import MergedData
from likeset.families.penalised import NOT_AHEAD
from likeset.predictors.base import PlugIn
from likeset.spaces.base import Space
from likeset.undo import Undo


class FTRL:
    r"""Follow-the-Regularised-Leader (Algorithm 1, line 3): q_s = p_{theta_s} with

        theta_s = argmin_{|theta| <= B}  sum_{j<s} -log p_theta(y_j | x_j) + lambda |theta|^2.

    lambda is ``penalty``. The losses in the fit are never weighted; with no data, theta = 0.
    """

    def __init__(self, penalty: float = 1.0) -> None:
        self.penalty = positive("penalty", penalty)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(penalty={self.penalty:g})"

    def settings(self) -> dict[str, object]:
        """Constructor arguments."""
        return {"penalty": self.penalty}

    def start(self, family: Family, space: Space) -> PlugInForecaster:
        """A forecaster with no data: theta = 0."""
        return PlugInForecaster(family, space, self.penalty, looks_ahead=False)


class VAW(FTRL):
    r"""Vovk-Azoury-Warmuth (Theorem 5): FTRL that also knows the covariate it is about to be asked for,

        theta_s = argmin_{|theta| <= B}  sum_{j<s} -log p_theta(y_j | x_j) + lambda |theta|^2 + A(x_s'theta),

    A the log-partition function of the family: canonical exponential families only (Gaussian, Poisson,
    Bernoulli, Binomial).
    """

    def start(self, family: Family, space: Space) -> PlugInForecaster:
        """A forecaster with no data."""
        if canonical_scale(family) is None:
            raise InvalidArgumentError(
                "predictor",
                self,
                f"needs a log-partition function, which {family!r} does not have in z",
                "use FTRL or Mixture",
            )
        return PlugInForecaster(family, space, self.penalty, looks_ahead=True)


class PlugInForecaster:
    """Running state of FTRL and VAW: a penalised fit."""

    def __init__(self, family: Family, space: Space, penalty: float, looks_ahead: bool) -> None:
        self.family, self.looks_ahead = family, looks_ahead
        self.fit = penalised_fit(family, penalty, space.bound)

    def forecast(self, phi: Embedded) -> PlugIn:
        """p at z = x'theta_s."""
        law = phi.law_or(self.family)
        ahead = look_ahead(law) if self.looks_ahead else NOT_AHEAD
        return PlugIn(law, float(phi.coordinates @ self.fit.estimate(phi, ahead)))

    def observe(self, phi: Embedded, y: Array) -> None:
        """Add the observation to the fit."""
        self.fit.observe(phi, y)

    def remember(self, undo: Undo, phi: Embedded) -> None:
        """Keep what the fit will change."""
        self.fit.remember(undo, phi)

    def state(self) -> dict[str, Array]:
        """The fit's state."""
        return self.fit.state()

    def restore(self, state: dict[str, Array]) -> None:
        """The inverse of ``state``."""
        self.fit.restore(state)

    def fits(self, count: int, dimension: int) -> bool:
        """Whether the fit is that of so many distinct covariates and dimensions."""
        return self.fit.fits(count, dimension)

    def resume(self, data: MergedData) -> None:
        """After ``restore``: take a copy of the ledger's data."""
        self.fit.resume(data)
