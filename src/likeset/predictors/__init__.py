"""Predictors: who supplies the numerator of the ratio."""

from likeset.predictors.aggregate import Aggregate
from likeset.predictors.base import Believer, Blend, Forecast, Forecaster, PlugIn, Predictor
from likeset.predictors.belief import Belief
from likeset.predictors.fixed import Fixed
from likeset.predictors.ftrl import FTRL, VAW
from likeset.predictors.mixture import Mixture, MixtureForecast

PREDICTORS = (FTRL, VAW, Mixture, Aggregate, Fixed)
"""Every built-in predictor; found here by saving and by the checks."""

__all__ = [
    "FTRL", "PREDICTORS", "VAW", "Aggregate", "Belief", "Believer", "Blend", "Fixed", "Forecast", "Forecaster",
    "Mixture", "MixtureForecast", "PlugIn", "Predictor",
]  # fmt: skip
