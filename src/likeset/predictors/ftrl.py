r"""Plug-in forecasts of online learning: Follow-the-Regularised-Leader and Vovk-Azoury-Warmuth."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from likeset._typing import Array
from likeset.embedded import Embedded
from likeset.errors import InvalidArgumentError, ShapeError
from likeset.families.answers import canonical_scale, look_ahead, penalised_fit, quadratic_fit
from likeset.families.base import Family
from likeset.families.merged import MergedData
from likeset.families.penalised import NOT_AHEAD, Fit
from likeset.predictors.base import PlugIn
from likeset.predictors.regulariser import Regulariser, checked_centre, checked_penalty
from likeset.spaces.base import Space
from likeset.undo import Undo


class FTRL:
    r"""Follow-the-Regularised-Leader (Algorithm 1, line 3): q_s = p_{theta_s} with

        theta_s = argmin_{theta in Theta}  sum_{j<s} -log p_theta(y_j | x_j) + lambda |theta|^2.

    lambda is ``penalty``. The losses in the fit are never weighted; with no data, theta = 0. Any quadratic regulariser
    will do, in linear spaces: a positive definite matrix P as ``penalty`` and a ``centre`` c make the last term
    (theta - c)'P (theta - c); what is known beforehand of coefficients, such as their sizes or an earlier estimate,
    goes there. A function of t as ``penalty``, of the number of observations so far, returns a number or a matrix:
    regularisers that change with time. Files do not hold functions: ``load(path, predictor=...)`` takes it again.

    >>> import numpy as np, likeset as ls
    >>> ls.FTRL(), ls.FTRL(np.diag([1.0, 0.01]), centre=[0.5, 0.0]), ls.FTRL(lambda t: np.sqrt(1.0 + t))
    (FTRL(penalty=1), FTRL(penalty=2 x 2, centre=[0.5, 0]), FTRL(penalty=function of t))
    """

    def __init__(self, penalty: Any = 1.0, centre: Any = None) -> None:
        self.penalty, self.centre = checked_penalty(penalty), checked_centre(centre)
        if isinstance(self.penalty, np.ndarray) and self.centre is not None and len(self.penalty) != len(self.centre):
            raise ShapeError(
                "centre",
                centre,
                f"has {len(self.centre)} entries",
                f"pass {len(self.penalty)}, as many as the penalty",
            )

    def __repr__(self) -> str:
        if isinstance(self.penalty, np.ndarray):
            said = f"{len(self.penalty)} x {len(self.penalty)}"
        else:
            said = "function of t" if callable(self.penalty) else f"{self.penalty:g}"
        centre = "" if self.centre is None else f", centre=[{', '.join(f'{c:g}' for c in self.centre)}]"
        return f"{type(self).__name__}(penalty={said}{centre})"

    def settings(self) -> dict[str, object] | None:
        """Constructor arguments; None if the penalty is a function, which cannot be written down."""
        if callable(self.penalty):
            return None
        penalty = self.penalty.tolist() if isinstance(self.penalty, np.ndarray) else self.penalty
        return {"penalty": penalty} | ({} if self.centre is None else {"centre": self.centre.tolist()})

    def start(self, family: Family, space: Space) -> PlugInForecaster:
        """A forecaster with no data."""
        return PlugInForecaster(family, space, self, looks_ahead=False)


class VAW(FTRL):
    r"""Vovk-Azoury-Warmuth (Theorem 5): FTRL that also knows the covariate it is about to be asked for,

        theta_s = argmin_{theta in Theta}  sum_{j<s} -log p_theta(y_j | x_j) + lambda |theta|^2 + A(x_s'theta),

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
        return PlugInForecaster(family, space, self, looks_ahead=True)


class PlugInForecaster:
    """Running state of FTRL and VAW: a penalised fit."""

    def __init__(self, family: Family, space: Space, settings: FTRL, looks_ahead: bool) -> None:
        self.family, self.looks_ahead = family, looks_ahead
        self.turn: Array | None = (
            None  # theta may leave the span of the covariates: in all coordinates of a linear space
        )
        self.fit: Fit
        if isinstance(settings.penalty, float) and settings.centre is None:
            self.fit = penalised_fit(family, settings.penalty, space.bound)
        else:
            regulariser = Regulariser.on(space, settings.penalty, settings.centre)
            self.turn = regulariser.turn
            self.fit = quadratic_fit(family, regulariser.at, regulariser.centre, space.bound)

    def forecast(self, phi: Embedded) -> PlugIn:
        """p at z = x'theta_s."""
        law, seen = phi.law_or(self.family), self._seen(phi)
        ahead = look_ahead(law) if self.looks_ahead else NOT_AHEAD
        return PlugIn(law, float(seen.coordinates @ self.fit.estimate(seen, ahead)))

    def observe(self, phi: Embedded, y: Array) -> None:
        """Add the observation to the fit."""
        self.fit.observe(self._seen(phi), y)

    def remember(self, undo: Undo, phi: Embedded) -> None:
        """Keep what the fit will change."""
        self.fit.remember(undo, self._seen(phi))

    def state(self) -> dict[str, Array]:
        """The fit's state."""
        return self.fit.state()

    def restore(self, state: dict[str, Array]) -> None:
        """The inverse of ``state``."""
        self.fit.restore(state)

    def fits(self, count: int, dimension: int) -> bool:
        """Whether the fit is that of so many distinct covariates and dimensions."""
        if self.turn is not None:
            dimension = len(self.turn) if count else 0
        return self.fit.fits(count, dimension)

    def resume(self, data: MergedData) -> None:
        """After ``restore``: take a copy of the ledger's data, in the coordinates of the fit."""
        own = getattr(self.fit, "data", None)
        self.fit.resume(data)
        if self.turn is not None and own is not None:
            self.fit.data.measure(own.coordinates)  # type: ignore[attr-defined]

    def _seen(self, phi: Embedded) -> Embedded:
        """The covariate as the fit sees it."""
        return phi if self.turn is None else replace(phi, coordinates=self.turn @ phi.x)
