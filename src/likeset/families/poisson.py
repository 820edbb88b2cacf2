"""Poisson counts with log link."""

from __future__ import annotations

from typing import Any

import numpy as np

from likeset.arguments import floats, real_array
from likeset.errors import InvalidArgumentError
from likeset.families.base import (
    Array,
    CurveFamily,
    largest_predictor,
    node_count,
    observation_vector,
    predictor_vector,
    refuse,
    source_of_noise,
)
from likeset.special import log_gamma
from likeset.support.terms import Curve

_LARGEST = 36.0  # e^36 is about 2^52: beyond, whole numbers are not exact


class Poisson(CurveFamily):
    """Counts y ~ Poisson(e^z):  -log p(y | z) = e^z - y z + log y!.

    >>> float(Poisson().log_density(0.0, 0.0))
    -1.0
    """

    curve = Curve.EXPONENTIAL
    discrete = True
    canonical_scale = 1.0

    def observations(self, y: Any) -> Array:
        """Non-negative whole numbers."""
        counts = observation_vector(y)
        refuse(
            counts,
            (counts < 0) | (counts != np.floor(counts)),
            "is not a count",
            "Poisson observations are the integers 0, 1, 2, ...",
        )
        refuse(counts, counts > 2.0**53, "is too large to be an exact count", "counts go up to 2^53")
        return counts

    def _allows(self, *y: float) -> bool:
        return 0.0 <= y[0] <= 2.0**53 and y[0].is_integer()

    def statistics(self, y: Array) -> tuple[Array, Array, Array]:
        """a = 1, s = y, c = -log y!."""
        return np.ones_like(y), y, -log_gamma(y + 1.0)

    def sample(self, z: Array, rng: np.random.Generator) -> Array:
        """Counts with mean e^z."""
        z = real_array("z", z)
        if z.size and z.max() > _LARGEST:
            raise InvalidArgumentError("z", z, f"is above {_LARGEST:g}: counts would not be exact", "pass smaller z")
        return np.asarray(source_of_noise(rng).poisson(np.exp(z)), dtype=np.float64)

    def mean(self, z: Array) -> Array:
        """E[y] = e^z."""
        with np.errstate(over="ignore"):
            return np.exp(floats("z", z))

    def curvature_bounds(self, bound: float) -> tuple[float, float]:
        """mu = e^-B, L = e^B."""
        bound = largest_predictor(bound)
        with np.errstate(over="ignore"):
            return float(np.exp(-bound)), float(np.exp(bound))

    def outcomes(self, z: Array) -> tuple[Array, Array]:
        """Every count within twelve standard deviations (and sixty more) of some mean e^z."""
        z = predictor_vector(z)
        with np.errstate(over="ignore"):
            low, high = np.exp(np.min(z)), np.exp(np.max(z))
        node_count(z, high + 12 * np.sqrt(high) + 60)
        counts = np.arange(max(np.floor(low - 12 * np.sqrt(low)), 0.0), high + 12 * np.sqrt(high) + 60)
        return counts, np.ones_like(counts)
