r"""Contrasts of means of announced pairs of arms: E[y] at one covariate against E[y] at another, by the pair's own set.

    of            contrast                        F                   of z and z', as  F(z) - F(z')
    difference    E[y] - E'[y]                    mean
    ratio         E[y] / E'[y]                    log mean            exp of it
    odds          p / (1 - p) by p' / (1 - p')    log odds            exp of it

F is monotone in z, and a certified search in the two linear predictors answers (:mod:`likeset._solver.pairs`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from likeset._solver.pairs import largest_difference
from likeset._typing import EPS, Array, Mask
from likeset.answers.pairs import Bounds
from likeset.errors import EmptySetError, InvalidArgumentError
from likeset.families.base import Family
from likeset.families.canonical import Canonical

if TYPE_CHECKING:
    from likeset.sets import LikelihoodSet


@dataclass(frozen=True)
class Scale:
    """F of one kind of contrast: monotone in z."""

    F: Callable[[Array], Array]
    rising: bool

    def at(self, form: Canonical) -> Scale:
        """The same as a function of u = sign z + shift."""
        F, sign, shift = self.F, form.sign, form.shift
        if sign == 1.0 and shift == 0.0:
            return self
        return Scale(lambda u: F(sign * (u - shift)), self.rising == (sign > 0.0))

    def negated(self, z: Array) -> Array:
        """-F."""
        return -self.F(z)


def scale_of(family: Family, of: str) -> Scale:
    """F for a family and a kind of contrast; a typed error where it makes no sense."""

    def mean(z: Array) -> Array:
        with np.errstate(all="ignore"):
            return np.asarray(family.mean(np.clip(z, -1e3, 1e3)), dtype=np.float64)

    def log_mean(z: Array) -> Array:
        with np.errstate(divide="ignore"):
            return np.log(mean(z))

    probe = np.array([-1.0, -0.25, 0.0, 0.5, 1.0])
    if of == "odds":
        if not hasattr(family, "trials"):
            raise InvalidArgumentError(
                "of", of, f"makes no sense for {family!r}", 'odds are of proportions; use "ratio"'
            )
        F: Callable[[Array], Array] = np.asarray
    else:
        if of == "ratio" and not (mean(probe) > 0.0).all():
            raise InvalidArgumentError(
                "of", of, f"makes no sense for {family!r}, whose mean can be negative", 'use "difference"'
            )
        F = log_mean if of == "ratio" else mean
    values = F(probe)
    return Scale(F, bool(values[-1] > values[0]))


def of_announced_pairs(s: LikelihoodSet, family: Family, X: Array, Y: Array, of: str) -> tuple[Mask, Bounds]:
    """Which rows are announced pairs of arms, and bounds for these."""
    n = len(X)
    announced, found = np.zeros(n, dtype=bool), Bounds(np.zeros(n), np.zeros(n), np.zeros(n))
    if s._questions is None or s._questions.measured is not None:
        return announced, found
    lengths = [np.hypot(np.linalg.norm(i, axis=1), o) for i, o in map(s._basis.coordinates, (X, Y))]
    for row in range(n):
        reach = np.array([lengths[0][row], lengths[1][row]])
        pair = s._questions.pair(s._others, s.space, X[row], Y[row], reach)
        if pair is None:
            continue
        scale = scale_of(family, of).at(s._questions.form)
        high, most = largest_difference(pair, scale.F, scale.rising)
        low, least = largest_difference(pair, scale.negated, not scale.rising)
        if not high >= -low:
            raise EmptySetError(s.alpha)
        ends = np.array([-low, high, -least, most])
        if of != "difference":
            with np.errstate(over="ignore"):
                ends = np.exp(ends) * np.array([1.0 - 8 * EPS, 1.0 + 8 * EPS, 1.0, 1.0])
        announced[row] = True
        found.lower[row], found.upper[row] = ends[:2]
        found.gap[row] = max(ends[1] - ends[3], ends[2] - ends[0])
    return announced, found
