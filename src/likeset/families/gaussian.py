"""Gaussian noise, of known standard deviation or not (:mod:`likeset.families.gaussian_unknown`)."""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np

from likeset._typing import Array
from likeset.arguments import LARGEST, floats, positive, real_array
from likeset.curves import Curve
from likeset.families.alternatives import Noise
from likeset.families.base import (
    largest_predictor,
    misfit,
    moments,
    node_count,
    observation_vector,
    panels,
    predictor_vector,
    source_of_noise,
)
from likeset.families.curve_family import CurveFamily
from likeset.families.exact_posterior import ExactPosterior
from likeset.families.predictive import GaussianPredictive
from likeset.families.responses import Response
from likeset.families.unknown import Unknown


class Gaussian(CurveFamily):
    """y = z + sigma * standard normal noise.

    -log p(y | z) = (y - z)^2 / (2 sigma^2) + log(sigma sqrt(2 pi)),
    that is a = 1/sigma^2, A(z) = z^2/2, s = y/sigma^2.

    If sigma is not known, ``Gaussian(sigma=Unknown())`` or ``Gaussian(sigma=Unknown(lo, hi))``.

    >>> Gaussian(sigma=0.5).log_density(np.array([1.0]), np.array([1.0])).round(4)
    array([-0.2258])
    """

    mean_link = "identity"

    curve = Curve.QUADRATIC
    referenced = True
    largest_offset = LARGEST

    def __new__(cls, sigma: float | Unknown = 1.0) -> Self:
        """Of unknown sigma, a family of such laws."""
        if cls is Gaussian and isinstance(sigma, Unknown):
            from likeset.families.gaussian_unknown import GaussianOfUnknownScale  # which is made of these

            return GaussianOfUnknownScale(sigma)  # type: ignore[return-value]
        return super().__new__(cls)

    def __init__(self, sigma: float | Unknown = 1.0) -> None:
        self.sigma = positive("sigma", sigma)
        self.canonical_scale = 1.0 / self.sigma**2
        self._log_scale = math.log(self.sigma) + 0.5 * math.log(2 * math.pi)

    def settings(self) -> dict[str, float]:
        """Constructor arguments."""
        return {"sigma": self.sigma}

    def observations(self, y: Any) -> Array:
        """Any finite real number."""
        return observation_vector(y)

    def _allows(self, *y: float) -> bool:
        return abs(y[0]) <= LARGEST

    def statistics(self, y: Array) -> tuple[Array, Array, Array]:
        """a = 1/sigma^2, s = y/sigma^2, c = -y^2/(2 sigma^2) - log(sigma sqrt(2 pi))."""
        precision = 1.0 / self.sigma**2
        s = y * precision
        return np.full_like(s, precision), s, -0.5 * y * s - self._log_scale

    def log_density(self, y: Array, z: Array) -> Array:
        """-(y - z)^2 / (2 sigma^2) - log(sigma sqrt(2 pi))."""
        with np.errstate(over="ignore"):
            u = self._misfit(y, z) / self.sigma
            return -0.5 * u * u - self._log_scale

    def derivatives(self, y: Array, z: Array) -> tuple[Array, Array]:
        """(y - z) / sigma^2 and -1 / sigma^2."""
        first = self._misfit(y, z) / self.sigma**2
        return first, np.full_like(first, -1.0 / self.sigma**2)

    def _misfit(self, y: Array, z: Array) -> Array:
        """y - z of checked arguments."""
        y, z = self._in_support(y), floats("z", z)
        try:
            return y - z
        except ValueError:
            raise misfit(y, z) from None

    def reference(self, y: Array) -> float:
        """y itself."""
        return float(y)

    def statistics_from(self, y: Array, origin: float) -> tuple[float, float, float]:
        """a = 1/sigma^2, s = (y - o)/sigma^2, c = log p(y | o)."""
        u = (float(y) - origin) / self.sigma
        return 1.0 / self.sigma**2, u / self.sigma, -0.5 * u * u - self._log_scale

    def posterior(self, priors: Array) -> ExactPosterior:
        """Exact beliefs."""
        return ExactPosterior(1.0 / self.sigma**2, priors)

    def predictive(self, mean: Array, sd: Array, reach: float) -> GaussianPredictive:
        """Exact predictive densities, N(m_j, s_j^2 + sigma^2)."""
        return GaussianPredictive(self.sigma, *moments(mean, sd))

    def outside(self) -> Noise:
        """Noise of other scales, and with heavier tails."""
        return Noise(float(self.sigma), False)

    def unbiased_response(self) -> Response:
        """y itself."""
        return Response(float, self.sigma, self.sigma, None)

    def sample(self, z: Array, rng: np.random.Generator) -> Array:
        """z + sigma * noise."""
        return np.asarray(source_of_noise(rng).normal(real_array("z", z), self.sigma))

    def mean(self, z: Array) -> Array:
        """E[y] = z."""
        return floats("z", z)

    def curvature_bounds(self, bound: float) -> tuple[float, float]:
        """mu = L = 1/sigma^2."""
        largest_predictor(bound)
        return 1.0 / self.sigma**2, 1.0 / self.sigma**2

    def outcomes(self, z: Array) -> tuple[Array, Array]:
        """Panels of one sigma, 12 sigma beyond every z."""
        z = predictor_vector(z)
        low, high = np.min(z) - 12 * self.sigma, np.max(z) + 12 * self.sigma
        return panels(np.linspace(low, high, 2 + node_count(z, (high - low) / self.sigma)), nodes_per_panel=10)
