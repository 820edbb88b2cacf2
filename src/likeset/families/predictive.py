r"""Predictive densities  q_j(y) = ∫ p(y | z) N(z; m_j, s_j^2) dz  of J Gaussian beliefs about z, at once.

Closed forms for Gaussian noise (also of log y, and of unknown scale) and Laplace noise; a fixed Gauss-Hermite rule
otherwise. The rule need not be accurate: a finite mixture of the family's densities *is* a density, so validity does
not depend on it.
"""

from __future__ import annotations

from functools import cache
from math import lgamma, log, pi, sqrt
from typing import Any, Protocol

import numpy as np

from likeset._solver.evaluate import log_sum_exp
from likeset._typing import Array
from likeset.families.base import Family
from likeset.special import log_normal_cdf, log_scaled_normal_tail

_HERMITE_NODES = 40
_ROOT_TWO_PI = sqrt(2 * pi)


class Predictive(Protocol):
    """J predictive densities."""

    def log_densities(self, y: Array) -> Array:
        """log q_j(y) along a new last axis of length J."""
        ...


class GaussianPredictive:
    """N(m_j, s_j^2 + sigma^2)."""

    def __init__(self, sigma: float, mean: Array, sd: Array) -> None:
        self.mean = mean
        self.sd = np.sqrt(sd * sd + sigma**2)
        self.log_scale = np.log(_ROOT_TWO_PI * self.sd)

    def log_densities(self, y: Array) -> Array:
        """Normal log-densities."""
        u = (np.asarray(y)[..., None] - self.mean) / self.sd
        return -0.5 * u * u - self.log_scale

    def count_for(self, family: Family) -> int | None:
        """J, if these are J densities of the family's outcomes."""
        intact = np.array_equal(self.log_scale, np.log(_ROOT_TWO_PI * self.sd))
        return _of_numbers(family, self.mean, self.sd) if intact else None


class LogNormalPredictive(GaussianPredictive):
    """Of y > 0 with log y ~ N(m_j, s_j^2 + sigma^2)."""

    def log_densities(self, y: Array) -> Array:
        """Normal log-densities of log y, less log y."""
        y = np.asarray(y, dtype=np.float64)
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.log(y)
            values = super().log_densities(logs) - logs[..., None]
        return np.where((y > 0.0)[..., None], values, -np.inf)


class StudentPredictive:
    """Student's t with ``df`` degrees of freedom around m_j with scale s_j: noise of unknown standard deviation."""

    def __init__(self, df: float, mean: Array, scale: Array) -> None:
        self.df, self.mean, self.scale = df, mean, scale
        self.log_scale = np.log(scale) + _student_constant(df)

    def log_densities(self, y: Array) -> Array:
        """log t-densities; for large u the square is taken of 1/u instead."""
        u = np.abs((np.asarray(y)[..., None] - self.mean) / self.scale) / sqrt(self.df)
        tails = np.log1p(np.minimum(u, 1.0) ** 2)
        if not (u <= 1.0).all():
            with np.errstate(divide="ignore"):
                far = 2.0 * np.log(u) + np.log1p(np.minimum(1.0 / u, 1.0) ** 2)
            tails = np.where(u > 1.0, far, tails)
        return -0.5 * (self.df + 1.0) * tails - self.log_scale

    def count_for(self, family: Family) -> int | None:
        """J, if these are J densities of the family's outcomes."""
        intact = self.df > 0 and np.array_equal(self.log_scale, np.log(self.scale) + _student_constant(self.df))
        return _of_numbers(family, self.mean, self.scale) if intact else None


def _student_constant(df: float) -> float:
    """log of the integral of (1 + u^2/df)^-(df + 1)/2."""
    return lgamma(0.5 * df) - lgamma(0.5 * (df + 1.0)) + 0.5 * log(df * pi)


class ParetoPredictive:
    """A two-sided Pareto law, N/(2 r_j) (1 + |y - m_j| / r_j)^-(N + 1): Laplace noise of unknown scale."""

    def __init__(self, power: float, mean: Array, rate: Array) -> None:
        self.power, self.mean, self.rate = power, mean, rate
        self.log_scale = np.log(2.0 * rate / power)

    def log_densities(self, y: Array) -> Array:
        """The logarithms."""
        u = np.abs(np.asarray(y)[..., None] - self.mean) / self.rate
        return -(self.power + 1.0) * np.log1p(u) - self.log_scale

    def count_for(self, family: Family) -> int | None:
        """J, if these are J densities of the family's outcomes."""
        intact = self.power > 0 and np.array_equal(self.log_scale, np.log(2.0 * self.rate / self.power))
        return _of_numbers(family, self.mean, self.rate) if intact else None


class LaplacePredictive:
    r"""Laplace noise of scale b around N(m, s^2); with u = y - m,

    q(y) = (1/2b) e^{s^2/2b^2} [ e^{-u/b} Phi(u/s - s/b) + e^{u/b} Phi(-u/s - s/b) ].

    With t = s/b -+ u/s, each bracket times the factor before it is e^{-u^2/2s^2} [ e^{t^2/2} Phi(-t) ]: for t > 0 the
    tail is scaled before the logarithm is taken, and the large exponents cancel on paper instead of in the machine.
    """

    def __init__(self, scale: float, mean: Array, sd: Array) -> None:
        self.scale, self.mean, self.sd = scale, mean, np.maximum(sd, 1e-9 * scale)

    def log_densities(self, y: Array) -> Array:
        """The two one-sided terms, added in logs."""
        u, s, b = np.asarray(y)[..., None] - self.mean, self.sd, self.scale
        return np.logaddexp(self._side(u / s, s / b), self._side(-u / s, s / b)) - np.log(2 * b)

    @staticmethod
    def _side(v: Array, ratio: Array) -> Array:
        """log of e^{ratio^2/2 - v ratio} Phi(v - ratio), with v = u/s and ratio = s/b."""
        t = ratio - v
        near = ratio * (0.5 * ratio - v) + log_normal_cdf(np.maximum(-t, 0.0))  # t <= 0
        return np.where(t > 0, log_scaled_normal_tail(np.maximum(t, 0.0)) - 0.5 * v * v, near)

    def count_for(self, family: Family) -> int | None:
        """J, if these are J densities of the family's outcomes."""
        intact = self.scale > 0 and bool((self.sd > 0).all())
        return _of_numbers(family, self.mean, self.sd) if intact else None


class QuadraturePredictive:
    """Gauss-Hermite in z with nodes clipped to the reachable |z| <= reach: a finite mixture of family densities."""

    def __init__(self, family: Family, mean: Array, sd: Array, reach: float) -> None:
        nodes, self.log_weights = hermite_rule()
        self.family = family
        self.z = np.clip(mean[:, None] + sd[:, None] * nodes, -reach, reach)

    def log_densities(self, y: Array) -> Array:
        """log sum_i v_i p(y | z_ji)."""
        y = np.asarray(y, dtype=np.float64)
        columns = y[..., None, None, :] if self.family.observation_shape else y[..., None, None]
        return log_sum_exp(self.log_weights + self.family.log_density(columns, self.z))

    def count_for(self, family: Family) -> int | None:
        """J, if these are J densities of the family's outcomes."""
        rows = np.ndim(self.z) == 2 and self.z.shape[1] == len(self.log_weights)
        intact = self.family is family and rows and float(np.exp(self.log_weights).sum()) <= 1.0 + 1e-12
        return len(self.z) if intact else None


@cache
def hermite_rule() -> tuple[Array, Array]:
    """Nodes, and logarithms of weights that sum to one, of the rule for a standard normal variable."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(_HERMITE_NODES)
    return nodes, np.log(weights / weights.sum())


def count_of_densities(components: object, family: Family) -> int | None:
    """How many densities of this family's outcomes these are, if they are as they were made; None if unknown."""
    known: Any = type(components)
    built_in = known in (
        GaussianPredictive, LogNormalPredictive, StudentPredictive, ParetoPredictive, LaplacePredictive,
        QuadraturePredictive,
    )  # fmt: skip
    return known.count_for(components, family) if built_in else None


def _of_numbers(family: Family, mean: Array, sd: Array) -> int | None:
    """The number of densities over all real numbers, if outcomes are real numbers."""
    same_length = np.shape(mean) == np.shape(sd) and np.ndim(mean) == 1
    return len(mean) if same_length and not family.discrete and family.observation_shape == () else None
