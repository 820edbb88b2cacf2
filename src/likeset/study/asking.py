"""The few things that tables ask of a set, in one place: intervals of means, contrasts against a control, evidence."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from likeset._typing import Array
from likeset.answers.mean_contrasts import within_pairs
from likeset.errors import InvalidArgumentError, LikesetError
from likeset.families.answers import mean_link
from likeset.families.base import Family
from likeset.sets import LikelihoodSet

Ends = tuple[Array, Array]
_PROBES = np.linspace(-3.0, 3.0, 13)
_FAR, _ENDLESS = 1e300, 1e290


class Scale:
    """How E[y] depends on z, as the family says it: ``link`` is "identity", "log", "logit", "other", or "none".

    "none": the mean depends on a number that nobody knows, too; tables then speak of z. ``top``: the largest mean.
    """

    def __init__(self, family: Family) -> None:
        self.family = family
        law: Any = family
        try:
            mean = np.asarray(family.mean(_PROBES), dtype=np.float64)
        except LikesetError:
            mean, law = None, family.known(family.typical)  # type: ignore[attr-defined]
        low, high = np.asarray(law.mean(_PROBES[[0, -1]]), dtype=np.float64)
        self.rises = bool(high >= low)
        self._far = (math.nan, math.nan) if mean is None else (self._far_end(-1.0), self._far_end(1.0))
        self.top = math.inf if mean is None else self._far[int(self.rises)]
        self.link = "none" if mean is None else _link(mean, self.top)

    def mean_ends(self, ends: Ends) -> Ends:
        """Ends of E[y] for ends of z; the mean is monotone in z, and may fall."""
        if self.link == "none":
            return ends
        low, high = (self._mean(end) for end in ends)
        return np.minimum(low, high), np.maximum(low, high)

    @property
    def contrasts(self) -> tuple[str, ...]:
        """Which contrasts make sense: ratios of positive means, odds of proportions."""
        if self.link == "none":
            return ()
        kinds = {"log": ("difference", "ratio"), "logit": ("difference", "ratio", "odds")}
        return kinds.get(mean_link(self.family) or "", ("difference",))

    def _mean(self, z: Array) -> Array:
        """E[y] at z, infinite ends included."""
        near = np.abs(z) < _FAR
        with np.errstate(all="ignore"):
            mean = np.asarray(self.family.mean(np.where(near, z, 0.0)), dtype=np.float64)
        return np.where(near, mean, np.where(z < 0.0, *self._far))

    def _far_end(self, sign: float) -> float:
        """E[y] as z goes to infinity, or minus infinity; of a mean that is integrated nothing is known there."""
        try:
            with np.errstate(all="ignore"):
                mean = float(self.family.mean(np.array([sign * _FAR]))[0])
        except LikesetError:
            return sign * math.inf if self.rises else -sign * math.inf
        return math.copysign(math.inf, mean) if abs(mean) >= _ENDLESS else mean


def predictor_ends(s: LikelihoodSet, X: Array) -> Ends:
    """Bounds of x'theta, by all that the set knows: levels also by the pairs that they were announced in."""
    return within_pairs(s, X, *s.interval(X))


def contrasts(s: LikelihoodSet, scale: Scale, X: Array, Y: Array) -> dict[str, Ends]:
    """Ends of the difference, ratio and odds ratio of the means at rows X against rows Y, as far as they make sense."""
    found = {of: s.contrast(X, Y, of) for of in scale.contrasts}
    return {of: (np.ravel(bounds.lower), np.ravel(bounds.upper)) for of, bounds in found.items()}


def log_e_values(s: LikelihoodSet, X: Array) -> Array:
    """Evidence against x'theta = 0, in nats, for every row."""
    return np.atleast_1d(s.evidence(X, equal=0.0).log_e_value)


def log_e_values_of_margin(s: LikelihoodSet, X: Array, Y: Array, margin: float) -> Array | None:
    """Evidence against "the means at rows X and Y differ by the margin or more", in nats, for every row.

    None where no evidence about a difference of means can be had: proportions, say, that depend on several factors.
    """
    try:
        either = [
            s.evidence(X, minus=Y, of="difference", **{side: limit}).log_e_value
            for side, limit in (("above", margin), ("below", -margin))
        ]
    except InvalidArgumentError:
        return None
    return np.minimum(*either)


def _link(mean: Array, top: float) -> str:
    if np.allclose(mean, _PROBES, rtol=1e-12, atol=1e-12):
        return "identity"
    if np.allclose(mean, np.exp(_PROBES), rtol=1e-9):
        return "log"
    if np.isfinite(top) and np.allclose(mean, top / (1.0 + np.exp(-_PROBES)), rtol=1e-9):
        return "logit"
    return "other"


def exponentials(ends: Any) -> Any:
    """Ends of exp(z) for ends of z."""
    with np.errstate(over="ignore"):
        return np.exp(ends[0]), np.exp(ends[1])
