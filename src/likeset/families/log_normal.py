"""Positive outcomes whose logarithms have Gaussian noise of known deviation."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from likeset._typing import Array
from likeset.arguments import floats
from likeset.curves import Curve
from likeset.embedded import Embedded
from likeset.errors import InvalidArgumentError
from likeset.families.alternatives import Noise
from likeset.families.base import moments, observation_vector, refuse
from likeset.families.curve_family import CurveFamily
from likeset.families.exact_posterior import ExactPosterior
from likeset.families.gaussian import Gaussian
from likeset.families.predictive import LogNormalPredictive
from likeset.families.responses import Response
from likeset.families.unknown import Unknown


class _LogPosterior(ExactPosterior):
    """Exact beliefs from log y."""

    def observe(self, phi: Embedded, y: Array) -> None:
        """Learn from log y."""
        super().observe(phi, np.log(y))


class LogNormal(CurveFamily):
    """Positive y with log y ~ N(z, sigma^2): the median of y is e^z, its mean e^(z + sigma^2/2).

    -log p(y | z) = (log y - z)^2 / (2 sigma^2) + log(y sigma sqrt(2 pi)).

    The Jacobian log y cancels in every ratio: sets equal those of :class:`Gaussian` on log y.

    >>> float(LogNormal(sigma=0.5).log_density(1.0, 0.0).round(4))
    -0.2258
    """

    mean_link = "log"

    curve = Curve.QUADRATIC
    referenced = True

    def __init__(self, sigma: float = 1.0) -> None:
        if isinstance(sigma, Unknown):
            raise InvalidArgumentError(
                "sigma", sigma, "has to be known here", "use Gaussian(sigma=Unknown()) for the logarithms of y"
            )
        self._noise = Gaussian(sigma)
        self.sigma = self._noise.sigma
        self.canonical_scale = self._noise.canonical_scale

    def settings(self) -> dict[str, float]:
        """Constructor arguments."""
        return {"sigma": self.sigma}

    def observations(self, y: Any) -> Array:
        """Positive numbers."""
        numbers = observation_vector(y)
        refuse(numbers, numbers <= 0, "is not positive", "observations of a log-normal law are > 0")
        return numbers

    def _allows(self, *y: float) -> bool:
        return 0.0 < y[0] <= 1e100

    def statistics(self, y: Array) -> tuple[Array, Array, Array]:
        """Those of log y, and c less log y."""
        logs = np.log(y)
        a, s, c = self._noise.statistics(logs)
        return a, s, c - logs

    def log_density(self, y: Array, z: Array) -> Array:
        """That of log y, less log y."""
        logs = np.log(self._in_support(y))
        return self._noise.log_density(logs, z) - logs

    def derivatives(self, y: Array, z: Array) -> tuple[Array, Array]:
        """(log y - z) / sigma^2 and -1 / sigma^2."""
        return self._noise.derivatives(np.log(self._in_support(y)), z)

    def reference(self, y: Array) -> float:
        """log y."""
        return math.log(float(y))

    def statistics_from(self, y: Array, origin: float) -> tuple[float, float, float]:
        """Those of log y, and c less log y."""
        log_y = math.log(float(y))
        a, s, c = self._noise.statistics_from(np.asarray(log_y), origin)
        return a, s, c - log_y

    def posterior(self, priors: Array) -> ExactPosterior:
        """Exact beliefs."""
        return _LogPosterior(1.0 / self.sigma**2, priors)

    def predictive(self, mean: Array, sd: Array, reach: float) -> LogNormalPredictive:
        """Exact predictive densities."""
        return LogNormalPredictive(self.sigma, *moments(mean, sd))

    def outside(self) -> Noise:
        """Noise of other scales, and with heavier tails."""
        return Noise(float(self.sigma), False, math.log)

    def unbiased_response(self) -> Response:
        """log y."""
        return Response(lambda y: math.log(float(y)), self.sigma, self.sigma, None)

    def sample(self, z: Array, rng: np.random.Generator) -> Array:
        """e^(z + sigma * noise)."""
        with np.errstate(over="ignore"):
            return np.asarray(np.clip(np.exp(self._noise.sample(z, rng)), np.finfo(float).tiny, 1e100))

    def mean(self, z: Array) -> Array:
        """E[y] = e^(z + sigma^2/2)."""
        with np.errstate(over="ignore"):
            return np.exp(floats("z", z) + 0.5 * self.sigma**2)

    def curvature_bounds(self, bound: float) -> tuple[float, float]:
        """mu = L = 1/sigma^2."""
        return self._noise.curvature_bounds(bound)

    def outcomes(self, z: Array) -> tuple[Array, Array]:
        """Integrated in log y."""
        logs, weights = self._noise.outcomes(z)
        inside = (logs > -700.0) & (logs < 230.0)  # numbers that are positive and below 1e100
        y = np.exp(logs[inside])
        return y, weights[inside] * y
