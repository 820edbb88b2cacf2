"""Logistic noise with known scale: tails like Laplace's, smooth in the middle."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from likeset._typing import Array
from likeset.arguments import LARGEST, floats, positive, real_array
from likeset.elementwise import softplus_remainder, softplus_sides
from likeset.families.base import (
    largest_predictor,
    node_count,
    observation_vector,
    panels,
    predictor_vector,
    source_of_noise,
)
from likeset.families.loss_family import LossFamily
from likeset.losses import Loss, Triple


def logistic(y: float, z: float, scale: float) -> Triple:
    """L = A(v) + A(-v), L' = [s(v) - s(-v)]/scale, L'' = 2 s(v) s(-v)/scale^2;  v = (z - y)/scale, A = log(1 + e^v)."""
    above, below, s, t = softplus_sides((z - y) / scale)
    return above + below, (s - t) / scale, 2.0 * s * t / (scale * scale)


def logistic_remainder(y: float, z: float, u: float, scale: float) -> Triple:
    """A(v) + A(-v) is 2 A(v) and a line."""
    D, slope, second = softplus_remainder((z - y) / scale, u / scale)
    return 2.0 * D, 2.0 * slope / scale, 2.0 * second / (scale * scale)


class Logistic(LossFamily):
    """y = z + scale * standard logistic noise.

    -log p(y | z) = log(1 + e^v) + log(1 + e^-v) + log(scale),   v = (z - y)/scale;

    the noise has standard deviation pi scale / sqrt(3). An outlier weighs as little as under Laplace noise: the slope
    in z is at most 1/scale. The sets are smooth.

    >>> float(Logistic(scale=0.5).log_density(1.0, 1.0).round(6)) == round(float(np.log(0.5)), 6)
    True
    """

    mean_link = "identity"

    loss = Loss(logistic, logistic_remainder)
    largest_offset = LARGEST

    def __init__(self, scale: float = 1.0) -> None:
        self.scale = positive("scale", scale)
        self.parameters = (self.scale,)

    def settings(self) -> dict[str, float]:
        """Constructor arguments."""
        return {"scale": self.scale}

    def observations(self, y: Any) -> Array:
        """Any finite real number."""
        return observation_vector(y)

    def constant(self, y: float) -> float:
        """c = -log(scale)."""
        return -math.log(self.scale)

    def _absorbed(self, y: float, shift: float) -> tuple[float, float]:
        """y - shift."""
        return y - shift, 0.0

    def sample(self, z: Array, rng: np.random.Generator) -> Array:
        """z + logistic noise."""
        return np.asarray(source_of_noise(rng).logistic(real_array("z", z), self.scale))

    def mean(self, z: Array) -> Array:
        """E[y] = z."""
        return floats("z", z)

    def information(self, z: Array) -> Array:
        """I(z) = 1/(3 scale^2)."""
        return np.full_like(floats("z", z), 1.0 / (3.0 * self.scale**2))

    def curvature_bounds(self, bound: float) -> tuple[float, float]:
        """mu = 0 (far from y the loss is nearly straight), L = 1/(2 scale^2)."""
        largest_predictor(bound)
        return 0.0, 0.5 / self.scale**2

    def outcomes(self, z: Array) -> tuple[Array, Array]:
        """Panels of two scales around every z, wider ones as far as 40 scales out."""
        z = predictor_vector(z)
        near = np.array([np.min(z) - 4 * self.scale, np.max(z) + 4 * self.scale])
        narrow = np.linspace(near[0], near[1], 2 + node_count(z, 0.5 * (near[1] - near[0]) / self.scale))
        tail = self.scale * np.array([2.0, 5.0, 9.0, 15.0, 23.0, 36.0])
        return panels(np.concatenate([near[0] - tail, narrow, near[1] + tail]), nodes_per_panel=8)
