"""Heavy tails: Student's t noise with known degrees of freedom and scale."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from likeset._typing import Array
from likeset.arguments import LARGEST, floats, positive, real_array
from likeset.errors import InvalidArgumentError
from likeset.families.base import (
    largest_predictor,
    misfit,
    node_count,
    observation_vector,
    panels,
    predictor_vector,
    source_of_noise,
)
from likeset.special import log_rising


class StudentT:
    """y = z + scale * noise of Student's t law with ``df`` degrees of freedom (one: Cauchy's).

    -log p(y | z) = (df + 1)/2 log(1 + v^2/df) + log [scale sqrt(df pi) Gamma(df/2) / Gamma((df + 1)/2)],
    v = (y - z)/scale.

    *Not* convex in z: beyond |v| = sqrt(df) the curve bends down, so that a far outlier tells next to nothing, and
    sets may fall into pieces. ``contains`` and ``log_ratio`` are exact; ``upper``, ``lower`` and ``is_empty`` raise
    :class:`~likeset.NotConvexError` (with :class:`Logistic` or :class:`Laplace` noise they are exact). The mean is z
    for df > 1 and does not exist (NaN) otherwise.

    >>> float(StudentT(df=1.0).log_density(0.0, 0.0).round(6)) == round(-float(np.log(np.pi)), 6)
    True
    """

    convex = False
    discrete = False
    observation_shape: tuple[int, ...] = ()
    largest_offset = LARGEST

    def __init__(self, df: float, scale: float = 1.0) -> None:
        self.df = positive("df", df)
        if not 0.1 <= self.df <= 1e12:
            raise InvalidArgumentError("df", df, "is not between 0.1 and 1e12", "use Gaussian(sigma) for large df")
        self.scale = positive("scale", scale)
        self._constant = log_rising(0.5 * self.df, 0.5) - 0.5 * math.log(math.pi * self.df) - math.log(self.scale)

    @classmethod
    def example(cls) -> StudentT:
        """An instance for the contract suite."""
        return StudentT(df=5.0, scale=0.5)

    def __repr__(self) -> str:
        return f"StudentT(df={self.df:g}, scale={self.scale:g})"

    def settings(self) -> dict[str, float]:
        """Constructor arguments."""
        return {"df": self.df, "scale": self.scale}

    def observations(self, y: Any) -> Array:
        """Any finite real number."""
        return observation_vector(y)

    def log_density(self, y: Array, z: Array) -> Array:
        """-(df + 1)/2 log(1 + v^2/df) and a constant."""
        v = self._misfit(y, z)
        with np.errstate(over="ignore"):
            # 2 log |v| - log df where the square overflows
            near = np.log1p(v * v / self.df)
            far = 2.0 * np.log(np.maximum(np.abs(v), 1.0)) - math.log(self.df)
        return self._constant - 0.5 * (self.df + 1.0) * np.where(np.isfinite(near), near, far)

    def derivatives(self, y: Array, z: Array) -> tuple[Array, Array]:
        """(df + 1) v / (df + v^2) / scale  and  (df + 1) (v^2 - df) / (df + v^2)^2 / scale^2."""
        v = np.clip(self._misfit(y, z), -1e70, 1e70)
        total = self.df + v * v
        first = (self.df + 1.0) * v / total / self.scale
        return first, (self.df + 1.0) * (v * v - self.df) / total / total / self.scale**2

    def _misfit(self, y: Array, z: Array) -> Array:
        """v of checked arguments."""
        y, z = floats("y", y), floats("z", z)
        self.observations(y.ravel())
        try:
            with np.errstate(invalid="ignore", over="ignore"):
                return np.subtract(y, z) / self.scale
        except ValueError:
            raise misfit(y, z) from None

    def sample(self, z: Array, rng: np.random.Generator) -> Array:
        """z + scale * noise, as far as 1e100."""
        z = real_array("z", z)
        noise = source_of_noise(rng).standard_t(self.df, size=z.shape)
        return np.asarray(np.clip(z + self.scale * noise, -1e100, 1e100))

    def mean(self, z: Array) -> Array:
        """E[y] = z for df > 1; NaN where there is no mean."""
        z = floats("z", z)
        return z if self.df > 1.0 else np.full_like(z, np.nan)

    def information(self, z: Array) -> Array:
        """I(z) = (df + 1) / ((df + 3) scale^2)."""
        return np.full_like(floats("z", z), (self.df + 1.0) / ((self.df + 3.0) * self.scale**2))

    def curvature_bounds(self, bound: float) -> tuple[float, float]:
        """mu = 0 (it is negative far out: not convex), L = (df + 1)/(df scale^2)."""
        largest_predictor(bound)
        return 0.0, (self.df + 1.0) / (self.df * self.scale**2)

    def outcomes(self, z: Array) -> tuple[Array, Array]:
        """Panels of the width of the peak around every z; outside twice as wide each, until 1e-9 is left."""
        z, width = predictor_vector(z), 2.0 * self.scale * min(1.0, math.sqrt(self.df))
        low, high = np.min(z) - 2 * width, np.max(z) + 2 * width
        near = np.linspace(low, high, 2 + node_count(z, (high - low) / width))
        reach = 9.0 * math.log(10.0) / self.df + math.log(8.0 + math.sqrt(self.df))  # log of the outermost |v|
        tail = width * (2.0 ** np.arange(1, 3 + math.ceil(reach / math.log(2.0))) - 1.0)
        return panels(np.concatenate([low - tail, near, high + tail]), nodes_per_panel=8)
