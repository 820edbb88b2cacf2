r"""Scoring: log q(y) of a forecast. What the sequence's own predictors say is believed; the rest is inspected first.

A density that is not ours is looked at in the neighbourhood of the y that came, at every scale, and where the family
puts its mass (:mod:`~likeset.evidence.inspection`). Whatever is found there can only lower the score:

    log q(y) - charge,      charge >= 0:  the log of the largest credible mass above one, and what separates
                                          the value at y from those of its neighbours or of arrays that hold y.

Write q' for the density with its charge, zero where it is refused. Then ∫ q' <= 1 as long as the inspection sees the
excess *at the outcomes that raise the score*; excess mass at outcomes that never come does no harm.
"""

from __future__ import annotations

import numpy as np

from likeset._typing import Array
from likeset.embedded import Embedded
from likeset.errors import PieceError
from likeset.evidence.inspection import Inspection
from likeset.families import FAMILIES
from likeset.families.answers import ChecksItself
from likeset.families.base import Family
from likeset.families.predictive import QuadraturePredictive, count_of_densities
from likeset.predictors import Blend, Forecast, MixtureForecast, PlugIn

_ROUNDING = 1e-9  # shares may sum to this much above one


class Scoring:
    """Scores the forecasts of one sequence; ``trusted`` says that they come from built-in predictors it started."""

    def __init__(self, family: Family, bound: float, predictor: object, trusted: bool) -> None:
        self.family, self.bound, self.predictor, self.trusted = family, bound, predictor, trusted
        self._inspection = Inspection(family, predictor)
        self._checked = family if isinstance(family, ChecksItself) else None

    def check_family(self, phi: Embedded, y: Array) -> None:
        """Refuse a family of the user's own that fails for a z that Theta reaches here, or at this y."""
        if self._checked is not None:
            reach = self._reach(phi) + abs(getattr(phi.law, "shift", 0.0))
            if np.isfinite(reach):
                self._checked.check_reach(reach)
            self._checked.check_outcome(float(y), reach)

    def score(self, forecast: Forecast, phi: Embedded, y: Array) -> float:
        """log q(y), or a PieceError before anything is recorded."""
        if self.trusted:
            return log_density_at(forecast, y, self.predictor)
        law = phi.law_or(self.family)
        if self._checked is not None:
            reached = max([z for z in _plugged_in(forecast, law) if np.isfinite(z)], default=0.0)
            self._checked.check_reach(reached + abs(getattr(phi.law, "shift", 0.0)))
        log_mass = log_mass_by_construction(forecast, law, self.predictor)
        log_q = log_density_at(forecast, y, self.predictor)
        if log_mass is not None:
            return log_q - log_mass
        return log_q - self._inspection.charge(forecast, self._reach(phi), y, log_q, phi.law)

    def _reach(self, phi: Embedded) -> float:
        length = float(np.linalg.norm(phi.coordinates))
        return self.bound * length if length else 0.0


def log_density_at(forecast: Forecast, y: Array, predictor: object) -> float:
    """log q(y) as one number below infinity."""
    _refuse_what_is_no_forecast(forecast, predictor)
    try:
        log_q = float(np.asarray(forecast.log_density(y)).reshape(()))
    except Exception as error:
        raise PieceError(
            f"the forecast {forecast!r} of {predictor!r} did not return one number for log_density(y): {error}"
        ) from error
    if not log_q < np.inf:
        raise PieceError(
            f"the forecast of {predictor!r} has log-density {log_q} at y = {y}; "
            "a density must be a number below infinity (zero density, -inf, is allowed)."
        )
    return log_q


def _refuse_what_is_no_forecast(forecast: object, predictor: object) -> None:
    if type(forecast) is Blend:
        for component in forecast.components:
            _refuse_what_is_no_forecast(component, predictor)
    elif not callable(getattr(forecast, "log_density", None)):
        raise PieceError(
            f"forecast(phi) of {predictor!r} returned {forecast!r}, which is no density of y but a "
            f"{type(forecast).__name__}; return an object with log_density(y), e.g. PlugIn(family, z)."
        )


def log_mass_by_construction(forecast: Forecast, family: Family, predictor: object) -> float | None:
    """0, or the rounding of the shares, if the forecast is a mixture of densities of this family; None if unknown."""
    if type(forecast) is PlugIn:
        return 0.0 if _has_outcomes_of(forecast.family, family) else None
    if type(forecast) is MixtureForecast:
        log_total = log_total_of_shares(forecast.log_shares, predictor)
        densities = count_of_densities(forecast.components, forecast.family)
        known = densities == len(forecast.log_shares) and _has_outcomes_of(forecast.family, family)
        return log_total if known else None
    if type(forecast) is Blend:
        log_total = log_total_of_shares(forecast.log_shares, predictor)
        masses = [log_mass_by_construction(component, family, predictor) for component in forecast.components]
        kept = [mass for mass in masses if mass is not None]
        return log_total + max(kept, default=0.0) if len(kept) == len(masses) == len(forecast.log_shares) else None
    return None


def log_total_of_shares(log_shares: Array, predictor: object) -> float:
    """log sum_j pi_j if that is rounding above 0, else 0; a PieceError where the shares are not shares."""
    shares = np.asarray(log_shares, dtype=np.float64)
    with np.errstate(over="ignore"):
        total = float(np.sum(np.exp(shares))) if shares.ndim == 1 else np.nan
    if not total <= 1.0 + _ROUNDING:
        raise PieceError(
            f"the forecast of {predictor!r} mixes densities with shares that are no list of shares or sum to "
            f"{total:.6g}, above one; normalise them: log_shares - logsumexp(log_shares) (rule 3 of validity)."
        )
    return max(np.log(total), 0.0) if total else 0.0


def _plugged_in(forecast: Forecast, family: Family) -> list[float]:
    """|z| of the densities of this family that a forecast is made of: they may lie beyond Theta."""
    if type(forecast) is Blend:
        return [z for component in forecast.components for z in _plugged_in(component, family)]
    if type(forecast) is PlugIn and forecast.family is family:
        return [abs(forecast.z)]
    if type(forecast) is MixtureForecast and type(forecast.components) is QuadraturePredictive:
        return [float(np.abs(forecast.components.z).max())] if forecast.components.family is family else []
    return []


def _has_outcomes_of(own: Family, family: Family) -> bool:
    """Whether densities of the family ``own`` are densities for outcomes of ``family``."""
    same_outcomes = type(own) is type(family) and (not family.discrete or own.settings() == family.settings())
    return own is family or (same_outcomes and type(own) in FAMILIES)
