r"""Contrasts of means: differences, ratios and odds ratios of E[y] at two covariates.

With m(z) = E[y given z] and d = x'theta - y'theta, where a contrast is a function of d alone its bounds are those of d,
exact for every family that says so (``mean_link``):

    m affine in z           m(x'theta) - m(y'theta) = slope d              Gaussian and other noise around z
    log m affine in z       m(x'theta) / m(y'theta) = exp(slope d)         counts, rates, survival times
    logit m affine in z     odds(x'theta) / odds(y'theta) = exp(slope d)   proportions

Otherwise it is a function of two linear predictors, monotone in each (:mod:`~likeset.pairs`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from likeset._typing import EPS, Array
from likeset.errors import InvalidArgumentError
from likeset.families.answers import mean_link
from likeset.families.base import Family
from likeset.pairs import Bounds, bounds_of_function

if TYPE_CHECKING:
    from likeset.sets import LikelihoodSet

LINK = {"difference": "identity", "ratio": "log", "odds": "logit"}
"""The contrasts, and the scale on which the mean must be affine in z for exact bounds."""


def contrast_of_means(s: LikelihoodSet, family: Family, X: Array, Y: Array, of: str) -> Bounds:
    """Bounds of the contrast ``of`` E[y] at rows X against rows Y."""
    link = mean_link(family)
    if link is not None and link == LINK[of]:
        return _of_difference(s, family, X, Y, of)
    if of != "difference":
        _refuse_unless_positive(s, family, X, Y, of)
    mean = family.mean
    contrasts = {
        "difference": lambda a, b: mean(a) - mean(b),
        "ratio": lambda a, b: mean(a) / mean(b),
        "odds": lambda a, b: mean(a) / (1.0 - mean(a)) * (1.0 - mean(b)) / mean(b),
    }
    return bounds_of_function(s, contrasts[of], X, Y)


def _of_difference(s: LikelihoodSet, family: Family, X: Array, Y: Array, of: str) -> Bounds:
    """An increasing or decreasing function of d = x'theta - y'theta."""
    ends = np.asarray(family.mean(np.array([0.0, 1.0])), dtype=np.float64)
    slope = 1.0  # of the log odds
    if of != "odds":
        slope = float(ends[1] - ends[0] if of == "difference" else np.log(ends[1]) - np.log(ends[0]))
    ones = np.ones(len(X))
    ends_of_d = []
    for first, second in ((X, Y), (Y, X)):
        points = s._pair_support(first, second, ones, -ones)[1]
        ends_of_d.append((s.upper_difference(first, second), points[:, 0] - points[:, 1]))
    (upper, high_attained), (lower, low_attained) = ends_of_d
    high, high_attained, low, low_attained = upper, high_attained, -lower, -low_attained
    if slope < 0:
        high, high_attained, low, low_attained = low, low_attained, high, high_attained

    def rescaled(d: Array) -> Array:
        with np.errstate(over="ignore", invalid="ignore"):
            return slope * d if of == "difference" else np.exp(slope * d)

    low, high = rescaled(low), rescaled(high)
    with np.errstate(invalid="ignore"):
        gap = np.fmax(high - rescaled(high_attained), rescaled(low_attained) - low)
    gap = np.where(np.isfinite(gap), np.maximum(gap, 0.0), 0.0)
    rounding = 8 * EPS
    low = np.where(np.isfinite(low), low - rounding * np.abs(low), low)
    high = np.where(np.isfinite(high), high + rounding * np.abs(high), high)
    return Bounds(low, high, gap)


def _refuse_unless_positive(s: LikelihoodSet, family: Family, X: Array, Y: Array, of: str) -> None:
    """A ratio is monotone where both means are positive, odds where they are proportions."""
    for rows in (X, Y):
        ends = np.clip(np.array(s.interval(rows)), -1e300, 1e300)
        means = np.asarray(family.mean(ends), dtype=np.float64)
        if not (means > 0.0).all():
            raise InvalidArgumentError(
                "of", of, f"needs positive means, and {means.min():g} is a plausible one", 'ask for of="difference"'
            )
        if of == "odds" and not (means < 1.0).all():
            raise InvalidArgumentError(
                "of", of, f"needs means below one, and {means.max():g} is a plausible one", 'ask for of="ratio"'
            )
