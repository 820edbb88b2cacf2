"""Positive outcomes with known shape, that is with a known ratio of deviation to mean: the Gamma law."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from likeset._typing import Array
from likeset.arguments import floats, positive, real_array
from likeset.curves import Curve
from likeset.elementwise import exp_parts
from likeset.errors import InvalidArgumentError
from likeset.families.base import (
    largest_predictor,
    node_count,
    observation_vector,
    panels,
    predictor_vector,
    refuse,
    source_of_noise,
)
from likeset.families.canonical import Canonical
from likeset.families.loss_family import LossFamily
from likeset.families.sorted_sums import MeanSums
from likeset.losses import Loss, Triple


def gamma(y: float, z: float, shape: float) -> Triple:
    """L = k (z + y e^-z), L' = k (1 - y e^-z), L'' = k y e^-z."""
    e, _ = exp_parts(-z)
    ratio = y * e
    return shape * (z + ratio), shape * (1.0 - ratio), shape * ratio


def gamma_remainder(y: float, z: float, u: float, shape: float) -> Triple:
    """D = k y e^-z [e^-u - 1 + u], L' changes by -k y e^-z [e^-u - 1]; for large -u by sums of what overflows last."""
    bend = shape * y * exp_parts(-z)[0]
    growth, remainder = exp_parts(-u)
    there = shape * y * exp_parts(-(z + u))[0]
    is_near = abs(u) < 1.0
    D = bend * remainder if is_near else there + bend * (u - 1.0)
    slope = -bend * (remainder - u) if is_near else bend - there
    return D, slope, bend * growth if is_near else there


class Gamma(LossFamily):
    """Positive y with mean e^z and deviation e^z / sqrt(shape):  y = e^z * Gamma noise of mean one.

    -log p(y | z) = k (z + y e^-z) - (k - 1) log y - k log k + log Gamma(k),   k = shape,

    convex in z: the curvature is k y e^-z. Shape one is the exponential law, with the *mean* e^z, where
    :class:`Exponential` has the rate e^z.

    >>> float(Gamma(shape=1.0).log_density(2.0, 0.0))
    -2.0
    """

    mean_link = "log"

    loss = Loss(gamma, gamma_remainder)

    def __init__(self, shape: float = 1.0) -> None:
        self.shape = positive("shape", shape)
        if not 0.05 <= self.shape <= 1e12:
            raise InvalidArgumentError(
                "shape", shape, "is not between 0.05 and 1e12", "below, y is often smaller than numbers go"
            )
        self.parameters = (self.shape,)
        self._constant = self.shape * math.log(self.shape) - math.lgamma(self.shape)

    @classmethod
    def example(cls) -> Gamma:
        """An instance for the contract suite."""
        return Gamma(shape=2.0)

    def settings(self) -> dict[str, float]:
        """Constructor arguments."""
        return {"shape": self.shape}

    def canonical_form(self) -> Canonical:
        """k (z + y e^-z) = k y e^u - k u at u = -z."""
        return Canonical(Curve.EXPONENTIAL, sign=-1.0, unit=self.shape**-0.5, sums=self._canonical_sums)

    def _canonical_sums(self, y: Array, w: Array) -> tuple[Array, Array]:
        return w * self.shape * y, w * self.shape

    def observations(self, y: Any) -> Array:
        """Positive numbers."""
        numbers = observation_vector(y)
        refuse(numbers, numbers <= 0, "is not positive", "observations of a Gamma law are > 0")
        return numbers

    def constant(self, y: float) -> float:
        """c = (k - 1) log y + k log k - log Gamma(k)."""
        return (self.shape - 1.0) * math.log(y) + self._constant

    def _absorbed(self, y: float, shift: float) -> tuple[float, float]:
        """y e^-shift: k (z + o + y e^-(z + o)) has the constant k o."""
        return y * math.exp(-shift), self.shape * shift

    def merged_sums(self) -> MeanSums:
        """One mean per covariate: the loss is affine in y."""
        return MeanSums(self)

    def sample(self, z: Array, rng: np.random.Generator) -> Array:
        """e^z times Gamma noise; drawn as logarithms, since a small shape has tiny outcomes: G_k = G_(k+1) U^(1/k)."""
        z, source, k = real_array("z", z), source_of_noise(rng), self.shape
        logs = np.log(source.gamma(k + 1.0, size=z.shape)) - source.exponential(size=z.shape) / k
        with np.errstate(over="ignore"):
            y = np.exp(z + logs - math.log(k))
        return np.asarray(np.clip(y, np.finfo(float).tiny, 1e100))

    def mean(self, z: Array) -> Array:
        """E[y] = e^z."""
        with np.errstate(over="ignore"):
            return np.exp(floats("z", z))

    def information(self, z: Array) -> Array:
        """I(z) = k."""
        return np.full_like(floats("z", z), self.shape)

    def curvature_bounds(self, bound: float) -> tuple[float, float]:
        """mu = k e^-B, L = k e^B, as for survival times (the curvature k y e^-z depends on y)."""
        bound = largest_predictor(bound)
        with np.errstate(over="ignore"):
            return float(self.shape * np.exp(-bound)), float(self.shape * np.exp(bound))

    def outcomes(self, z: Array) -> tuple[Array, Array]:
        """Integrated in v = log y - z: log p is -k (e^v - 1 - v) and a constant, e^kv far to the left."""
        z, k = predictor_vector(z), self.shape
        lowest = (math.log(1e-13) + math.lgamma(k + 1.0)) / k - math.log(k)  # less than 1e-13 lies below
        highest = min(math.sqrt(80.0 / k), math.log(2.0 + 80.0 / k))  # k (e^v - 1 - v) >= 40 there
        low, bend, high = np.min(z) + lowest, np.min(z) + max(lowest, -20.0), np.max(z) + highest
        near = np.linspace(bend, high, 2 + node_count(z, (high - bend) * max(1.0, math.sqrt(k)) / 2.0))
        far = np.linspace(low, bend, 2 + node_count(z, k * (bend - low) / 3.0))
        logs, weights = panels(np.concatenate([far, near]), nodes_per_panel=10)
        inside = (logs > -700.0) & (logs < 230.0)  # numbers that are positive and below 1e100
        y = np.exp(logs[inside])
        return y, weights[inside] * y
