"""The few things that tables ask of a set, in one place: intervals of means, contrasts against a control, evidence."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from likeset._typing import Array
from likeset.answers.mean_contrasts import announced_pairs, within_pairs
from likeset.errors import InvalidArgumentError, LikesetError
from likeset.families.base import Family
from likeset.sets import LikelihoodSet

Ends = tuple[Array, Array]
Pair = tuple[float, float]
_PROBES = np.linspace(-3.0, 3.0, 13)
_FAR = 1e3
_PIECES = 512


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


def predictor_ends(s: LikelihoodSet, X: Array) -> Ends:
    """Bounds of x'theta, by all that the set knows: levels also by the pairs that they were announced in."""
    return within_pairs(s, X, *s.interval(X))


def contrasts(s: LikelihoodSet, scale: Scale, X: Array, Y: Array) -> dict[str, Contrast]:
    """Difference, ratio and odds ratio of the means at rows X against rows Y, as far as they make sense.

    Announced pairs of arms have sets of their own, all of whose answers agree. For other rows: exact where they are a
    function of the difference in z. Otherwise outer bounds over all pairs of predictors that the intervals of both and
    of their difference allow; ``LikelihoodSet.contrast`` has sharper ones, at a hundred times the cost.
    """
    announced = announced_pairs(s, X, Y)
    if not announced.any():
        return _by_intervals(s, scale, X, Y)
    others = _by_intervals(s, scale, X[~announced], Y[~announced]) if not announced.all() else {}
    found = {}
    for of in scale.contrasts:
        own, ends = s.contrast(X[announced], Y[announced], of), np.empty((2, len(X)))
        ends[:, announced] = own.lower, own.upper
        if others:
            ends[:, ~announced] = others[of].lower, others[of].upper
        found[of] = Contrast(*ends)
    return found


def _by_intervals(s: LikelihoodSet, scale: Scale, X: Array, Y: Array) -> dict[str, Contrast]:
    between, one, other = s.interval(X - Y), s.interval(X), s.interval(Y)
    exact = {"identity": "difference", "log": "ratio", "logit": "odds"}.get(scale.link)
    found = {}
    for of in scale.contrasts:
        if of == exact:
            found[of] = Contrast(*(between if of == "difference" else _exponentials(between)))
            continue
        top = [_largest(scale, of, *ends) for ends in _by_row(one, other, between)]
        bottom = [_largest(scale, of, *ends) for ends in _by_row(other, one, (-between[1], -between[0]))]
        with np.errstate(divide="ignore"):
            low = -np.array(bottom) if of == "difference" else 1.0 / np.array(bottom)
        found[of] = Contrast(low, np.array(top))
    return found


def _by_row(*ends: Ends) -> Iterator[list[tuple[float, float]]]:
    for i in range(len(ends[0][0])):
        yield [(float(low[i]), float(high[i])) for low, high in ends]


def _largest(scale: Scale, of: str, x: Pair, y: Pair, between: Pair) -> float:
    """Upper bound of m(zx) - m(zy), or of m(zx) / m(zy), over zx in x, zy in y with zx - zy in between.

    The contrast is monotone in both, so its maximum lies on one edge, zx = zy + step, or in the corner if the edge
    passes it by. The edge is cut into pieces; of each the best zx and the best zy bound it from above.
    """
    step = between[1] if scale.rises else between[0]
    corner = (x[1], y[0]) if scale.rises else (x[0], y[1])
    start, stop = max(y[0], x[0] - step), min(y[1], x[1] - step)
    missed = step >= corner[0] - corner[1] if scale.rises else step <= corner[0] - corner[1]
    if missed or not (math.isfinite(start) and math.isfinite(stop)) or start > stop:
        zx, zy = np.array([corner[0]]), np.array([corner[1]])
    else:
        points = np.linspace(start, stop, _PIECES + 1)
        zx, zy = (points[1:] + step, points[:-1]) if scale.rises else (points[:-1] + step, points[1:])
    first, second = (scale.mean_ends((z, z))[0] for z in (zx, zy))
    with np.errstate(all="ignore"):
        values = first - second if of == "difference" else np.where(second > 0, first / second, np.inf)
    return float(np.max(values))


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


def _exponentials(ends: Ends) -> Ends:
    with np.errstate(over="ignore"):
        return np.exp(ends[0]), np.exp(ends[1])
