"""The few things that tables ask of a set, in one place: intervals of means, contrasts against a control, evidence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from likeset._typing import Array
from likeset.errors import LikesetError
from likeset.families.base import Family
from likeset.sets import LikelihoodSet

Ends = tuple[Array, Array]
_PROBES = np.linspace(-3.0, 3.0, 13)
_FAR = 1e3


@dataclass(frozen=True)
class Contrast:
    """Certified ends of a contrast of means, one entry per pair."""

    lower: Array
    upper: Array


class Scale:
    """How E[y] depends on z, as the family says it: ``link`` is "identity", "log", "logit", "other", or "none".

    "none": the mean depends on a number that nobody knows, too; tables then speak of z.
    """

    def __init__(self, family: Family) -> None:
        self.family = family
        law: Any = family
        try:
            mean = np.asarray(family.mean(_PROBES), dtype=np.float64)
        except LikesetError:
            mean, law = None, family.known(family.typical)  # type: ignore[attr-defined]
        self.link = "none" if mean is None else _link(mean, self._mean(np.array([_FAR]))[0])
        low, high = np.asarray(law.mean(_PROBES[[0, -1]]), dtype=np.float64)
        self.rises = bool(high >= low)

    def mean_ends(self, ends: Ends) -> Ends:
        """Ends of E[y] for ends of z; the mean is monotone in z, and may fall."""
        if self.link == "none":
            return ends
        low, high = (self._mean(end) for end in ends)
        return np.minimum(low, high), np.maximum(low, high)

    @property
    def contrasts(self) -> tuple[str, ...]:
        """Which contrasts make sense: ratios of positive means, odds of proportions."""
        kinds = {"none": (), "identity": ("difference",), "logit": ("difference", "ratio", "odds")}
        return kinds.get(self.link, ("difference", "ratio"))  # type: ignore[return-value]

    def _mean(self, z: Array) -> Array:
        """E[y] at z, infinite ends included."""
        with np.errstate(all="ignore"):
            mean = np.asarray(self.family.mean(np.clip(z, -_FAR, _FAR)), dtype=np.float64)
            beyond = np.abs(z) > _FAR
            if not beyond.any() or getattr(self, "link", "") != "identity":
                return mean
            return np.where(beyond, z, mean)


def contrasts(s: LikelihoodSet, scale: Scale, X: Array, Y: Array) -> dict[str, Contrast]:
    """Difference, ratio and odds ratio of the means at rows X against rows Y, as far as they make sense."""
    if hasattr(s, "contrast"):
        found: Any = {of: s.contrast(X, Y, of=of) for of in scale.contrasts}
        return {of: Contrast(np.asarray(c.lower), np.asarray(c.upper)) for of, c in found.items()}
    between = s.interval(X - Y)
    one, other = scale.mean_ends(s.interval(X)), scale.mean_ends(s.interval(Y))
    exact = {"identity": "difference", "log": "ratio", "logit": "odds"}.get(scale.link)
    ends = {of: _outer(of, one, other) for of in scale.contrasts if of != exact}
    if exact is not None:
        ends[exact] = between if exact == "difference" else _exponentials(between)
    return {of: Contrast(*ends[of]) for of in scale.contrasts}


def log_e_values(s: LikelihoodSet, X: Array) -> Array | None:
    """Evidence against x'theta = 0, in nats, for every row."""
    if not hasattr(s, "evidence"):
        return None
    return np.atleast_1d(s.evidence(X, equal=0.0).log_e_value)


def _link(mean: Array, top: float) -> str:
    if np.allclose(mean, _PROBES, rtol=1e-12, atol=1e-12):
        return "identity"
    if np.allclose(mean, np.exp(_PROBES), rtol=1e-9):
        return "log"
    if np.isfinite(top) and np.allclose(mean, top / (1.0 + np.exp(-_PROBES)), rtol=1e-9):
        return "logit"
    return "other"


def _exponentials(ends: Ends) -> Ends:
    with np.errstate(over="ignore"):
        return np.exp(ends[0]), np.exp(ends[1])


def _outer(of: str, one: Ends, other: Ends) -> Ends:
    """From the two intervals alone: valid, and wider than need be."""
    if of == "difference":
        with np.errstate(all="ignore"):
            return one[0] - other[1], one[1] - other[0]
    return _divided(one[0], other[1], 0.0), _divided(one[1], other[0], np.inf)


def _divided(a: Array, b: Array, otherwise: float) -> Array:
    answer = np.full(np.broadcast_shapes(a.shape, b.shape), otherwise)
    return np.divide(a, b, out=answer, where=(b > 0) & np.isfinite(a) & np.isfinite(b))
