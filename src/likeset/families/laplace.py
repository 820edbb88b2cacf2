"""Laplace (double exponential) noise, of known scale or not (:mod:`likeset.families.laplace_unknown`)."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from likeset._typing import Array
from likeset.arguments import LARGEST, floats, positive, real_array
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
from likeset.families.predictive import LaplacePredictive
from likeset.families.responses import Response
from likeset.families.sorted_sums import PointSums
from likeset.families.unknown import Unknown
from likeset.families.variational import VariationalPosterior


class Laplace:
    """y = z + Laplace noise:  -log p(y | z) = |y - z| / scale + log(2 scale).

    The log-density is piecewise linear in z: sets are polyhedra cut with a ball. If the scale is not known,
    ``Laplace(scale=Unknown())`` or ``Laplace(scale=Unknown(lo, hi))``.

    >>> float(Laplace(scale=0.5).log_density(1.5, 1.0))
    -1.0
    """

    mean_link = "identity"

    convex = True
    fast_windows = True
    fast_without_bound = True
    discrete = False
    observation_shape: tuple[int, ...] = ()
    largest_offset = LARGEST

    def __new__(cls, scale: float | Unknown = 1.0) -> Self:
        """Of unknown scale, a family of such laws."""
        if cls is Laplace and isinstance(scale, Unknown):
            from likeset.families.laplace_unknown import LaplaceOfUnknownScale  # which is made of these

            return LaplaceOfUnknownScale(scale)  # type: ignore[return-value]
        return super().__new__(cls)

    def __init__(self, scale: float | Unknown = 1.0) -> None:
        self.scale = positive("scale", scale)

    def __repr__(self) -> str:
        return f"Laplace(scale={self.scale:g})"

    def settings(self) -> dict[str, float]:
        """Constructor arguments."""
        return {"scale": self.scale}

    def observations(self, y: Any) -> Array:
        """Any finite real number."""
        return observation_vector(y)

    def log_density(self, y: Array, z: Array) -> Array:
        """-|y - z| / scale - log(2 scale)."""
        return -np.abs(_difference(y, z)) / self.scale - np.log(2 * self.scale)

    def derivatives(self, y: Array, z: Array) -> tuple[Array, Array]:
        """sign(y - z) / scale, and 0 (almost everywhere)."""
        first = np.sign(_difference(y, z)) / self.scale
        return first, np.zeros_like(first)

    def merged_sums(self) -> PointSums:
        """Sorted points."""
        return PointSums(self)

    def posterior(self, priors: Array) -> VariationalPosterior:
        """Variational beliefs: the density has no curvature."""
        return VariationalPosterior(PointSums(self), priors)

    def predictive(self, mean: Array, sd: Array, reach: float) -> LaplacePredictive:
        """Exact predictive densities of Gaussian beliefs."""
        return LaplacePredictive(self.scale, *moments(mean, sd))

    def outside(self) -> Noise:
        """Noise of other scales, and with heavier tails."""
        return Noise(float(self.scale), True)

    def unbiased_response(self) -> Response:
        """y itself."""
        b = self.scale
        return Response(float, np.sqrt(2.0) * b, None, (2.0 * b, np.sqrt(2.0) * b))

    def sample(self, z: Array, rng: np.random.Generator) -> Array:
        """z + Laplace noise."""
        return np.asarray(source_of_noise(rng).laplace(real_array("z", z), self.scale))

    def mean(self, z: Array) -> Array:
        """E[y] = z."""
        return floats("z", z)

    def information(self, z: Array) -> Array:
        """I(z) = 1/scale^2."""
        return np.full_like(floats("z", z), 1.0 / self.scale**2)

    def curvature_bounds(self, bound: float) -> tuple[float, float]:
        """mu = L = 1/scale: a heuristic, as the density is not smooth (any choice keeps coverage)."""
        largest_predictor(bound)
        return 1.0 / self.scale, 1.0 / self.scale

    def outcomes(self, z: Array) -> tuple[Array, Array]:
        """Panels that break at the kinks y = z: narrow near the kinks, wide in the tails, 30 scales beyond every z."""
        z = predictor_vector(z)
        near = np.array([np.min(z) - 6 * self.scale, np.max(z) + 6 * self.scale])
        narrow = np.linspace(near[0], near[1], 2 + node_count(z, 4 * (near[1] - near[0]) / self.scale))
        tail = 2 * self.scale * np.arange(1, 13)
        return panels(np.concatenate([near[0] - tail, narrow, near[1] + tail, np.ravel(z)]), nodes_per_panel=8)


def _difference(y: Array, z: Array) -> Array:
    y, z = floats("y", y), floats("z", z)
    try:
        with np.errstate(invalid="ignore"):
            return np.subtract(y, z)
    except ValueError:
        raise misfit(y, z) from None
