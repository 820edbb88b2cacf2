"""Scoring: log q(y) of a forecast, after checking what can be checked of densities that are not our own."""

from __future__ import annotations

import numpy as np

from likeset.errors import PieceError
from likeset.families import FAMILIES
from likeset.families.base import Array, Family
from likeset.predictors import Blend, Forecast, MixtureForecast, PlugIn

_LIKELIHOOD_REACH = 6.0  # |z| up to which a foreign forecast's total probability is looked at


def score(forecast: Forecast, family: Family, reach: float, y: Array, predictor: object) -> float:
    """log q(y), or a PieceError that names the ``predictor``; ``reach`` is the largest |z| that Theta allows here."""
    foreign = not _is_density_of(forecast, family)
    if foreign:
        _check_total_probability(forecast, family, reach, y, predictor)
    try:
        log_q = float(np.asarray(forecast.log_density(y)).reshape(()))
    except (TypeError, ValueError) as error:
        raise PieceError(
            f"the forecast {forecast!r} of {predictor!r} did not return one number for log_density(y): {error}"
        ) from error
    if np.isnan(log_q) or log_q == np.inf:
        raise PieceError(
            f"the forecast of {predictor!r} has log-density {log_q} at y = {y}; "
            "a density must be a number below infinity (zero density, -inf, is allowed)."
        )
    is_probability = family.discrete or (family.observation_shape == (2,) and y[1] == 0)
    if foreign and is_probability and log_q > 1e-9:
        raise PieceError(
            f"the forecast of {predictor!r} gives y = {y} a probability above one (log q = {log_q:.4g}); "
            "normalise it (rule 3 of validity)."
        )
    return log_q


def _check_total_probability(forecast: Forecast, family: Family, reach: float, y: Array, predictor: object) -> None:
    """Refuse a foreign forecast whose density integrates to more than one, over Theta's reach or around y."""
    reach = min(reach, _LIKELIHOOD_REACH)
    grid = np.linspace(-reach, reach, 7)
    # A spike between nodes fools one rule, hardly two.
    rules = [[family.outcomes(grid + shift) for shift in (0.0, 0.37)]]
    if not family.discrete and not family.observation_shape:
        rules.append([family.outcomes(np.array([float(y) + shift])) for shift in (0.0, 0.37)])
    for pair in rules:
        mass = min(_total_probability(forecast, *rule, predictor) for rule in pair)
        if not mass <= 1.001:
            raise PieceError(
                f"the forecast {forecast!r} of {predictor!r} is not a density: it integrates to {mass:.4g} "
                "over the outcomes; normalise it (rule 3 of validity)."
            )


def _total_probability(forecast: Forecast, y: Array, v: Array, predictor: object) -> float:
    try:
        values = np.asarray(forecast.log_density(y), dtype=np.float64)
    except Exception as error:
        raise PieceError(
            f"the forecast {forecast!r} of {predictor!r} failed on an array of outcomes: {error}; "
            "log_density(y) must be vectorised in y."
        ) from error
    if values.shape != v.shape:
        raise PieceError(
            f"the forecast {forecast!r} of {predictor!r} returned shape {values.shape} for {len(v)} "
            "outcomes; log_density(y) must be vectorised in y."
        )
    with np.errstate(over="ignore"):
        mass = float(np.sum(v * np.exp(values)))
    return np.inf if np.isnan(mass) else mass


def _is_density_of(forecast: Forecast, family: Family) -> bool:
    """Whether a forecast is a density of this family's outcomes by construction."""
    if type(forecast) is PlugIn or type(forecast) is MixtureForecast:
        own = forecast.family
        same_outcomes = type(own) is type(family) and (not family.discrete or own.settings() == family.settings())
        return own is family or (same_outcomes and type(own) in FAMILIES)
    if type(forecast) is Blend:
        shares = float(np.exp(forecast.log_shares).sum())
        return shares <= 1.0 + 1e-9 and all(_is_density_of(c, family) for c in forecast.components)
    return False
