r"""Counts whose variance exceeds their mean: negative binomial with known dispersion, and the geometric law.

Both have mean e^z. With r = 1/dispersion, m = z - log r, A(m) = log(1 + e^m) and s = A',

    p(y | z) = Gamma(y + r) / (Gamma(r) y!)  s(-m)^r  s(m)^y,
    -log p(y | z) = r A(m) + y A(-m) - c(y)  =  (y + r) log(r + e^z) - y z + ...,

and since A(-m) = A(m) - m, the curvature in z is (y + r) s(m) s(-m) > 0: convex for every y and every dispersion.
For r = 1 this is a multiple of the softplus curve at z itself.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from likeset._typing import Array
from likeset.arguments import floats, positive, real_array
from likeset.curves import Curve, curve_heights
from likeset.elementwise import softplus_remainder, softplus_sides
from likeset.errors import InvalidArgumentError
from likeset.families.base import (
    largest_predictor,
    misfit,
    node_count,
    observation_vector,
    predictor_vector,
    refuse,
    source_of_noise,
)
from likeset.families.canonical import Canonical
from likeset.families.curve_family import CurveFamily
from likeset.families.loss_family import LossFamily
from likeset.families.sorted_sums import MeanSums
from likeset.losses import Loss, Triple
from likeset.special import log_rising, sigmoid

_LARGEST = 36.0  # e^36 is about 2^52: beyond, whole numbers are not exact


def _counts(y: Any) -> Array:
    """Non-negative whole numbers."""
    counts = observation_vector(y)
    refuse(
        counts, (counts < 0) | (counts != np.floor(counts)), "is not a count", "counts are the integers 0, 1, 2, ..."
    )
    refuse(counts, counts > 2.0**53, "is too large to be an exact count", "counts go up to 2^53")
    return counts


def _sampled(z: Any, r: float, rng: Any) -> Array:
    """Poisson counts with a mean that has a Gamma law of shape r: p = s(-m) is the probability of a success."""
    z = real_array("z", z)
    if z.size and z.max() > _LARGEST:
        raise InvalidArgumentError("z", z, f"is above {_LARGEST:g}: counts would not be exact", "pass smaller z")
    source = source_of_noise(rng)
    rates = np.exp(z) * source.gamma(r, size=z.shape) / r
    return np.asarray(source.poisson(np.minimum(rates, 2.0**53)), dtype=np.float64)


def _enumerated(z: Any, r: float) -> tuple[Array, Array]:
    """Counts from 0 to where the largest mean leaves less than 1e-14."""
    z = predictor_vector(z)
    with np.errstate(over="ignore"):
        mean = float(np.exp(np.max(z)))
    node_count(z, mean)
    # Chernoff at half the largest exponent: P(y >= k) <= e^(-t k) [1 - (mean/r)(e^t - 1)]^-r, (mean/r)(e^t - 1) = 1/2.
    t = min(math.log1p(0.5 * r / mean), 1.0) if mean > 0.0 else 1.0
    tail = (32.3 - r * math.log1p(-min(mean / r * math.expm1(t), 0.5))) / t
    counts = np.arange(float(node_count(z, tail + 2.0)))
    return counts, np.ones_like(counts)


def negative_binomial(y: float, z: float, r: float, log_r: float) -> Triple:
    """L = r A(m) + y A(-m), L' = r s(m) - y s(-m), L'' = (y + r) s(m) s(-m); m = z - log r."""
    above, below, s, t = softplus_sides(z - log_r)
    return r * above + y * below, r * s - y * t, (y + r) * s * t


def negative_binomial_remainder(y: float, z: float, u: float, r: float, log_r: float) -> Triple:
    """L is (y + r) A(m) and a line."""
    D, slope, second = softplus_remainder(z - log_r, u)
    return (y + r) * D, (y + r) * slope, (y + r) * second


class NegativeBinomial(LossFamily):
    """Counts with mean e^z and variance  e^z + dispersion e^2z:  Poisson counts whose mean varies, by a Gamma law.

    -log p(y | z) = (y + r) log(r + e^z) - y z - r log r - log [Gamma(y + r) / (Gamma(r) y!)],   r = 1/dispersion,

    convex in z: the curvature is (y + r) r e^z / (r + e^z)^2. As the dispersion goes to zero, the law becomes
    Poisson's; one is :class:`Geometric`.

    >>> family = NegativeBinomial(dispersion=0.5)
    >>> float(family.log_density(0.0, 0.0).round(6)) == round(2 * float(np.log(2 / 3)), 6)      # s(-m)^r, r = 2
    True
    """

    mean_link = "log"

    loss = Loss(negative_binomial, negative_binomial_remainder)
    discrete = True
    size_name = "exposure"

    def __init__(self, dispersion: float) -> None:
        self.dispersion = positive("dispersion", dispersion)
        if not 1e-12 <= self.dispersion <= 1e12:
            raise InvalidArgumentError(
                "dispersion", dispersion, "is not between 1e-12 and 1e12", "use Poisson() where there is none"
            )
        self._r = 1.0 / self.dispersion
        self.parameters = (self._r, math.log(self._r))

    @classmethod
    def example(cls) -> NegativeBinomial:
        """An instance for the contract suite."""
        return NegativeBinomial(dispersion=0.5)

    def settings(self) -> dict[str, float]:
        """Constructor arguments."""
        return {"dispersion": self.dispersion}

    def canonical_form(self) -> Canonical:
        """r A(u) + y A(-u) = (y + r) A(u) - y u at u = z - log r."""
        return Canonical(Curve.SOFTPLUS, shift=-self.parameters[1], sums=self._canonical_sums)

    def _canonical_sums(self, y: Array, w: Array) -> tuple[Array, Array]:
        return w * (y + self._r), w * y

    def observations(self, y: Any) -> Array:
        """Non-negative whole numbers."""
        return _counts(y)

    def constant(self, y: float) -> float:
        """c = log [Gamma(y + r) / (Gamma(r) y!)], the larger of y and r taken together with their sum."""
        r = self._r
        if y >= r:
            return log_rising(y + 1.0, r - 1.0) - math.lgamma(r)
        return log_rising(r, y) - math.lgamma(y + 1.0)

    def merged_sums(self) -> MeanSums:
        """One mean per covariate: the loss is affine in y."""
        return MeanSums(self)

    def sample(self, z: Array, rng: np.random.Generator) -> Array:
        """Counts."""
        return _sampled(z, self._r, rng)

    def mean(self, z: Array) -> Array:
        """E[y] = e^z."""
        with np.errstate(over="ignore"):
            return np.exp(floats("z", z))

    def information(self, z: Array) -> Array:
        """I(z) = r s(m) = e^z / (1 + dispersion e^z)."""
        return self._r * sigmoid(floats("z", z) - self.parameters[1])

    def curvature_bounds(self, bound: float) -> tuple[float, float]:
        """The least and the largest information over |z| <= B (the curvature itself depends on y)."""
        bound, r = largest_predictor(bound), self._r
        low, high = sigmoid(np.array([-bound, bound]) - self.parameters[1])
        return float(r * low), float(r * high)

    def outcomes(self, z: Array) -> tuple[Array, Array]:
        """Every count up to where the largest mean leaves less than 1e-14."""
        return _enumerated(z, self._r)


class Geometric(CurveFamily):
    """Failures y = 0, 1, 2, ... before the first success, with mean e^z: the odds of a failure are e^z.

    The probability of a success is s(-z) = 1/(1 + e^z), and

    -log p(y | z) = (y + 1) log(1 + e^z) - y z,

    convex in z: a = y + 1, s = y with the softplus curve. This is ``NegativeBinomial(dispersion=1)``. The other common
    choice, z the log-odds of a *success*, is convex, too, and gives the same sets with the sign of theta turned round.

    >>> float(Geometric().log_density(2.0, 0.0).round(6)) == round(3 * float(np.log(0.5)), 6)
    True
    """

    mean_link = "log"

    curve = Curve.SOFTPLUS
    discrete = True
    size_name = "exposure"

    def observations(self, y: Any) -> Array:
        """Non-negative whole numbers."""
        return _counts(y)

    def _allows(self, *y: float) -> bool:
        return 0.0 <= y[0] <= 2.0**53 and y[0].is_integer()

    def statistics(self, y: Array) -> tuple[Array, Array, Array]:
        """a = y + 1, s = y, c = 0."""
        return y + 1.0, y, np.zeros_like(y)

    def log_density(self, y: Array, z: Array) -> Array:
        """-A(z) - y A(-z): nothing cancels for large counts."""
        y, z = self._in_support(y), floats("z", z)
        try:
            with np.errstate(over="ignore", invalid="ignore"):
                return -curve_heights(self.curve, z) - y * curve_heights(self.curve, -z)
        except ValueError:
            raise misfit(y, z) from None

    def sample(self, z: Array, rng: np.random.Generator) -> Array:
        """Counts."""
        return _sampled(z, 1.0, rng)

    def mean(self, z: Array) -> Array:
        """E[y] = e^z."""
        with np.errstate(over="ignore"):
            return np.exp(floats("z", z))

    def information(self, z: Array) -> Array:
        """I(z) = s(z)."""
        return sigmoid(floats("z", z))

    def curvature_bounds(self, bound: float) -> tuple[float, float]:
        """The least and the largest information over |z| <= B: s(-B) and s(B)."""
        bound = largest_predictor(bound)
        return float(sigmoid(-bound)), float(sigmoid(bound))

    def outcomes(self, z: Array) -> tuple[Array, Array]:
        """Every count up to where the largest mean leaves less than 1e-14."""
        return _enumerated(z, 1.0)
