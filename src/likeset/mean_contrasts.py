r"""Contrasts of means: E[y] at one covariate against E[y] at another.

    of            contrast                        F                   of z and z', as  F(z) - F(z')
    difference    E[y] - E'[y]                    mean
    ratio         E[y] / E'[y]                    log mean            exp of it
    odds          p / (1 - p) by p' / (1 - p')    log odds            exp of it

F is monotone in z. Where it is affine (Gaussian differences, ratios of Poisson means, odds) extrema over the set are
exact. For announced pairs of arms (:class:`~likeset.Contrasts`) of exponential families a certified search in the two
linear predictors answers (:mod:`likeset._solver.pairs`); otherwise the two intervals do, which is valid and wider.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf

import numpy as np

from likeset._typing import Array
from likeset.arguments import choice
from likeset.errors import InvalidArgumentError
from likeset.families.base import Family

KINDS = ("difference", "ratio", "odds")


@dataclass(frozen=True)
class MeanContrast:
    """Certified ends of contrasts of means, one entry per pair of rows.

    lower, upper   ends, rounded outward
    """

    lower: Array
    upper: Array


@dataclass(frozen=True)
class Scale:
    """F of one kind of contrast: monotone in z. ``slope`` is its slope where it is affine, else None."""

    F: Callable[[Array], Array]
    rising: bool
    slope: float | None
    of: str

    def contrast(self, lower: Array, upper: Array) -> MeanContrast:
        """Ends of F(z) - F(z') as ends of the contrast."""
        if self.of == "difference":
            return MeanContrast(lower, upper)
        with np.errstate(over="ignore"):
            return MeanContrast(np.exp(lower), np.exp(upper))


def scale_of(family: Family | None, of: str) -> Scale:
    """F for a family and a kind of contrast; a typed error where it makes no sense."""
    of = choice("of", of, KINDS)
    if family is None:
        raise InvalidArgumentError("of", of, "needs a family that has means", "ask a ConfidenceSequence's set")

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
    slope = float(values[-1] - values[0]) / 2.0
    affine = np.allclose(values, values[2] + slope * probe, rtol=0.0, atol=1e-12 * max(1.0, abs(slope)))
    return Scale(F, slope > 0.0, slope if affine else None, of)


def from_intervals(scale: Scale, one: tuple[Array, Array], other: tuple[Array, Array]) -> tuple[Array, Array]:
    """Ends of F(z) - F(z') from intervals of z and z' alone."""
    with np.errstate(invalid="ignore"):
        ends = [np.sort(np.stack([scale.F(end) for end in interval]), axis=0) for interval in (one, other)]
        low, high = ends[0][0] - ends[1][1], ends[0][1] - ends[1][0]
    return np.where(np.isnan(low), -inf, low), np.where(np.isnan(high), inf, high)
