r"""Contrasts of means: differences, ratios and odds ratios of E[y] at two covariates.

With m(z) = E[y given z] and d = x'theta - y'theta, where a contrast is a function of d alone its bounds are those of d,
exact for every family that says so (``mean_link``):

    m affine in z           m(x'theta) - m(y'theta) = slope d              Gaussian and other noise around z
    log m affine in z       m(x'theta) / m(y'theta) = exp(slope d)         counts, rates, survival times
    logit m affine in z     odds(x'theta) / odds(y'theta) = exp(slope d)   proportions

Otherwise it is a function of two linear predictors, monotone in each (:mod:`~likeset.answers.pairs`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from likeset._typing import EPS, Array
from likeset.answers.combinations import pair_support
from likeset.answers.margins import slope_of
from likeset.answers.mean_contrasts import of_announced_pairs
from likeset.answers.pairs import Bounds, bounds_of_function
from likeset.errors import InvalidArgumentError
from likeset.families.base import Family

if TYPE_CHECKING:
    from likeset.sets import LikelihoodSet


def contrast_of_means(s: LikelihoodSet, family: Family, X: Array, Y: Array, of: str) -> Bounds:
    """Bounds of the contrast ``of`` E[y] at rows X against rows Y; pairs that were announced by sets of their own."""
    announced, found = of_announced_pairs(s, family, X, Y, of)
    if not announced.all():
        rest = _not_announced(s, family, X[~announced], Y[~announced], of)
        for mine, theirs in zip((found.lower, found.upper, found.gap), (rest.lower, rest.upper, rest.gap), strict=True):
            mine[~announced] = theirs
    return found


def _not_announced(s: LikelihoodSet, family: Family, X: Array, Y: Array, of: str) -> Bounds:
    slope = slope_of(family, of)
    if slope is not None:
        return _of_difference(s, slope, X, Y, of)
    mean = family.mean
    contrasts = {
        "difference": lambda a, b: mean(a) - mean(b),
        "ratio": lambda a, b: mean(a) / mean(b),
        "odds": lambda a, b: mean(a) / (1.0 - mean(a)) * (1.0 - mean(b)) / mean(b),
    }
    if of == "difference":
        return bounds_of_function(s, contrasts[of], X, Y)
    outer = _quotient_of_ends(s, family, X, Y, of)
    # A mean that may be zero, or a proportion that may be one: an end is zero or infinite, and the ends say it all.
    open_end = ~((outer.lower > 0.0) & np.isfinite(outer.upper))
    if open_end.all():
        return outer
    inner = bounds_of_function(s, contrasts[of], X[~open_end], Y[~open_end])
    for whole, part in ((outer.lower, inner.lower), (outer.upper, inner.upper), (outer.gap, inner.gap)):
        whole[~open_end] = part
    return outer


def _of_difference(s: LikelihoodSet, slope: float, X: Array, Y: Array, of: str) -> Bounds:
    """An increasing or decreasing function of d = x'theta - y'theta."""
    ones = np.ones(len(X))
    ends_of_d = []
    for first, second in ((X, Y), (Y, X)):
        points = pair_support(s, first, second, ones, -ones)[1]
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


def _quotient_of_ends(s: LikelihoodSet, family: Family, X: Array, Y: Array, of: str) -> Bounds:
    """[least of the first / largest of the second, largest / least] from each row's own interval; refuses other means.

    A ratio is monotone where both means are positive, odds where they are proportions.
    """
    ends = []
    for rows in (X, Y):
        means = np.sort(np.asarray(family.mean(np.clip(np.array(s.interval(rows)), -1e300, 1e300)), np.float64), axis=0)
        if (means < 0.0).any():
            raise InvalidArgumentError(
                "of", of, f"needs positive means, and {means.min():g} is a plausible one", 'ask for of="difference"'
            )
        if of == "odds" and (means > 1.0).any():
            raise InvalidArgumentError(
                "of", of, f"needs means below one, and {means.max():g} is a plausible one", 'ask for of="ratio"'
            )
        with np.errstate(divide="ignore"):
            ends.append(means if of == "ratio" else means / (1.0 - means))
    (low, high), (least, most) = ends
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        lower, upper = low / most, high / least
    lower = np.where(np.isfinite(lower), lower * (1.0 - 8 * EPS), 0.0)
    upper = np.where(np.isfinite(upper), upper * (1.0 + 8 * EPS), np.inf)
    return Bounds(lower, upper, np.full(len(X), np.inf))
