"""The few things that tables ask of a set, in one place: intervals of means, contrasts against a control, evidence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from likeset._typing import Array
from likeset.families import Bernoulli, Binomial, Gaussian, Laplace, Logistic, NegativeBinomial, Poisson
from likeset.families.base import Family
from likeset.sets import LikelihoodSet

Ends = tuple[Array, Array]
_IDENTITY = (Gaussian, Laplace, Logistic)
_LOGARITHM = (Poisson, NegativeBinomial)
_LOGIT = (Bernoulli, Binomial)


@dataclass(frozen=True)
class Contrast:
    """Certified ends of a contrast of means, one entry per pair."""

    lower: Array
    upper: Array


def mean_ends(family: Family, ends: Ends) -> Ends:
    """Ends of E[y] for ends of z; the mean is monotone in z, and may fall."""
    low, high = (_mean(family, end) for end in ends)
    return np.minimum(low, high), np.maximum(low, high)


def mean_rises(family: Family) -> bool:
    """Whether larger z means larger outcomes."""
    low, high = _mean(family, np.array([-0.5, 0.5]))
    return bool(high >= low)


def z_differences(s: LikelihoodSet, X: Array, Y: Array) -> Ends:
    """Ends of x'theta - y'theta, row by row."""
    return s.interval(X - Y)


def contrasts(s: LikelihoodSet, family: Family, X: Array, Y: Array) -> dict[str, Contrast]:
    """Difference, ratio and odds ratio of the means at rows X against rows Y, as far as they make sense."""
    if hasattr(s, "contrast"):
        found: Any = {of: s.contrast(X, Y, of=of) for of in kinds(family)}
        return {of: Contrast(np.asarray(c.lower), np.asarray(c.upper)) for of, c in found.items()}
    between = z_differences(s, X, Y)
    one, other = mean_ends(family, s.interval(X)), mean_ends(family, s.interval(Y))
    found = {}
    for of in kinds(family):
        if (of == "difference" and isinstance(family, _IDENTITY)) or (of == "odds" and isinstance(family, _LOGIT)):
            ends = between if of == "difference" else _exponentials(between)
        elif of == "ratio" and isinstance(family, _LOGARITHM):
            ends = _exponentials(between)
        else:
            ends = _outer(of, one, other)
        found[of] = Contrast(*ends)
    return found


def kinds(family: Family) -> tuple[str, ...]:
    """Which contrasts make sense: ratios of positive means, odds of proportions."""
    if isinstance(family, _LOGIT):
        return "difference", "ratio", "odds"
    return ("difference",) if isinstance(family, (*_IDENTITY,)) else ("difference", "ratio")


def log_e_values(s: LikelihoodSet, X: Array) -> Array | None:
    """Evidence against x'theta = 0, in nats, for every row."""
    if not hasattr(s, "evidence"):
        return None
    return np.atleast_1d(s.evidence(X, equal=0.0).log_e_value)


def _mean(family: Family, z: Array) -> Array:
    """E[y] at z, infinite ends included."""
    with np.errstate(all="ignore"):
        finite = np.clip(z, -1e3, 1e3)
        mean = np.asarray(family.mean(finite), dtype=np.float64)
        if isinstance(family, _IDENTITY):
            return np.where(np.isinf(z), z, family.mean(np.where(np.isinf(z), 0.0, z)))
        return mean


def _exponentials(ends: Ends) -> Ends:
    with np.errstate(over="ignore"):
        return np.exp(ends[0]), np.exp(ends[1])


def _outer(of: str, one: Ends, other: Ends) -> Ends:
    """From the two intervals alone: valid, and wider than need be."""
    with np.errstate(all="ignore"):
        if of == "difference":
            return one[0] - other[1], one[1] - other[0]
        return _divided(one[0], other[1], 0.0), _divided(one[1], other[0], np.inf)


def _divided(a: Array, b: Array, otherwise: float) -> Array:
    return np.divide(
        a, b, out=np.full(np.broadcast_shapes(a.shape, b.shape), otherwise), where=(b > 0) & np.isfinite(b)
    )


__all__ = ["Contrast", "contrasts", "kinds", "log_e_values", "mean_ends", "mean_rises", "z_differences"]
