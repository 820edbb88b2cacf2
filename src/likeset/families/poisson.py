"""Poisson counts with log link."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from likeset._typing import Array
from likeset.arguments import floats, real_array
from likeset.curves import Curve
from likeset.errors import InvalidArgumentError
from likeset.families.alternatives import Counts
from likeset.families.base import (
    largest_predictor,
    misfit,
    node_count,
    observation_vector,
    predictor_vector,
    refuse,
    source_of_noise,
)
from likeset.families.curve_family import CurveFamily
from likeset.special import log_gamma

STIRLING_FROM = 16.0
_LARGEST = 36.0  # e^36 is about 2^52: beyond, whole numbers are not exact


class Poisson(CurveFamily):
    """Counts y ~ Poisson(e^z):  -log p(y | z) = e^z - y z + log y!.

    >>> float(Poisson().log_density(0.0, 0.0))
    -1.0
    """

    mean_link = "log"

    curve = Curve.EXPONENTIAL
    referenced = True
    discrete = True
    canonical_scale = 1.0
    size_name = "exposure"

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

    def log_density(self, y: Array, z: Array) -> Array:
        """log p(y | z) = log p(y | log y) - y [e^u - 1 - u] with u = z - log y: for large counts nothing cancels."""
        y, z = self._in_support(y), floats("z", z)
        try:
            return self._from_peak(y, z)
        except ValueError:
            raise misfit(y, z) from None

    @staticmethod
    def _from_peak(y: Array, z: Array) -> Array:
        with np.errstate(over="ignore", invalid="ignore"):
            if y.size == 1:
                count = float(y.reshape(()))
                if count == 0.0:
                    return np.broadcast_to(-np.exp(z), np.broadcast_shapes(y.shape, z.shape))
                u = z - math.log(count) + np.zeros(y.shape)
                return log_peak(count) - count * (np.expm1(u) - u)
            counts = np.maximum(y, 1.0)
            u = z - np.log(counts)
            peaks = np.reshape([log_peak(count) for count in counts.ravel().tolist()], counts.shape)
            return np.where(y > 0, peaks - counts * (np.expm1(u) - u), -np.exp(z))

    def reference(self, y: Array) -> float:
        """log y, or zero for no counts."""
        return math.log(max(float(y), 1.0))

    def statistics_from(self, y: Array, origin: float) -> tuple[float, float, float]:
        """a = 1, s = y - e^o, c = log p(y | o)."""
        count, mean = float(y), math.exp(origin)
        if count == 0.0:
            return 1.0, -mean, -mean
        u = origin - math.log(count)
        return 1.0, count - mean, log_peak(count) - count * (math.expm1(u) - u)

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

    def outside(self) -> Counts:
        """Counts with more or less variance."""
        return Counts()

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


def log_peak(y: float) -> float:
    """log p(y | z = log y) = y log y - y - log y!, for y >= 1; by Stirling's series where the three are large.

    >>> round(log_peak(1.0), 6), round(log_peak(1e12), 6)
    (-1.0, -14.734449)
    """
    if y < STIRLING_FROM:
        return y * math.log(y) - y - math.lgamma(y + 1.0)
    r = 1.0 / (y * y)
    series = (1.0 / 12 - r * (1.0 / 360 - r * (1.0 / 1260 - r * (1.0 / 1680 - r / 1188)))) / y
    return -0.5 * math.log(2 * math.pi * y) - series
