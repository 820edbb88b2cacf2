r"""Laws outside families with an unknown number, for the alarm.

A scale or a shape that nobody knows cannot be wrong, so laws of other scales say nothing here: what is left are other
*forms* of noise, and means that are shifted or bent. They are made with the number as it is thought to be before y, so
they are densities fixed before y like all others, and depend on no value that is tested. While nothing is known of it,
in the first rows, they say what the model says.

**Noise of unknown scale.** Student's t with 3 degrees; Gumbel's law, one tail of which is long. The family's own noise
is a t law with one degree per row, or its counterpart for Laplace noise, as forecasts with a scale learnt from few rows
must be.

**Lifetimes of unknown shape.** Log-normal and log-logistic ones, at the place where a Weibull law of shape p and rate
e^m would be fitted to them. It is fitted where E[T^p] = e^-m and E[T^p log T]/E[T^p] - E[log T] = 1/p, hence

    log T ~ N(mu, 1/p^2),             mu = -m/p - 1/(2p)
    log T ~ logistic(mu, 1/(2p)),     mu = -m/p - log(pi/2)/p
"""

from __future__ import annotations

from math import erfc, exp, hypot, inf, log, log1p, pi, sin, sqrt

from likeset._typing import Array
from likeset.families.alternatives import HEAVY, Lifetimes
from likeset.families.outside import Believed, Outside, Student

TAILS = (0.1, 0.2, 0.35, 0.5, 0.7)
SKEWED = (0.5, 1.0)
WIDTHS = (0.7, 0.85, 1.0)
_EULER = 0.5772156649015329
_LOG_ROOT = 0.5 * log(2.0 * pi)
_TO_GUMBEL = sqrt(6.0) / pi  # its scale, for deviation one


class NoiseOfUnknownScale(Outside):
    """Other forms of noise around z, of a scale that is learnt."""

    silent = 3

    def __init__(self, sharp: bool, scale: float = 1.0, freedom: float = 1.0) -> None:
        self.sharp, self.scale, self.freedom = sharp, scale, freedom
        self._student = Student(freedom)
        self.deviation = scale * sqrt(2.0) if sharp else scale
        self.names = _NAMES_OF_SHARP_NOISE if sharp else _NAMES_OF_NOISE

    def learnt(self, believed: Believed) -> NoiseOfUnknownScale:
        """At the scale believed, with one degree per row."""
        return NoiseOfUnknownScale(self.sharp, believed.number, believed.rows + 1.0)

    def log_densities(self, y: Array, m: float, s: float) -> list[float]:
        """Student's t, Gumbel's law to both sides; normal noise beside Laplace noise."""
        above, wide = float(y) - m, self.deviation
        found = [HEAVY.log_density(abs(above), hypot(c * wide, s)) for c in TAILS]
        for c in SKEWED:
            width = hypot(c * wide, s) * _TO_GUMBEL
            found += [_gumbel(above / width) - log(width), _gumbel(-above / width) - log(width)]
        if self.sharp:
            found.append(self._student.log_density(abs(above), hypot(self.scale * sqrt(0.5 * pi), s)))
        return found

    def own(self, y: Array, z: float, s: float) -> float:
        """Student's t; for Laplace noise its counterpart, a two-sided Pareto law."""
        misfit = abs(float(y) - z)
        if not self.sharp:
            return self._student.log_density(misfit, hypot(self.scale, s))
        rate = hypot(self.scale, s / sqrt(2.0)) * self.freedom
        return log(0.5 * self.freedom / rate) - (self.freedom + 1.0) * log1p(misfit / rate)

    def slope(self, y: Array, z: float) -> float:
        """Bounded, as tails are heavy."""
        u = (float(y) - z) / self.scale
        if self.sharp:
            return ((u > 0.0) - (u < 0.0)) * (1.0 + 1.0 / self.freedom) / (1.0 + abs(u) / self.freedom) / self.scale
        return (self.freedom + 1.0) / (self.freedom / u + u) / self.scale if u else 0.0

    def information(self, z: float) -> float:
        """1/scale^2, for many rows."""
        return 1.0 / self.scale / self.scale


def _gumbel(u: float) -> float:
    """log-density of Gumbel's law of scale one and mean zero."""
    v = u + _EULER
    return -v - exp(-v) if v > -700.0 else -inf


_NAMES_OF_NOISE = (
    *(f"heavy tails (Student's t of {c:g} deviations)" for c in TAILS),
    *(f"noise with a long tail to the {side} ({c:g} deviations)" for c in SKEWED for side in ("right", "left")),
)
_NAMES_OF_SHARP_NOISE = (*_NAMES_OF_NOISE, "normal noise")


class LifetimesOfUnknownShape(Lifetimes):
    """Log-normal and log-logistic lifetimes, of a shape that is learnt."""

    silent = 10

    def __init__(self, logs: bool, shape: float = 1.0) -> None:
        super().__init__(shape, logs)
        self.names = _NAMES_OF_LIFETIMES

    def learnt(self, believed: Believed) -> LifetimesOfUnknownShape:
        """At the shape believed."""
        return LifetimesOfUnknownShape(self.logs, believed.number)

    def log_densities(self, y: Array, m: float, s: float) -> list[float]:
        """Log-normal, then log-logistic; the probability of a longer life where a time is censored."""
        p, at, event = self.shape, self._log_time(y), float(y[1])
        happened = 0.0 if self.logs else at
        found = []
        for c in WIDTHS:
            width = hypot(c, s) / p
            u = (at + (m + 0.5 * c * c) / p) / width
            found.append(-0.5 * u * u - _LOG_ROOT - log(width) - happened if event else _log_above(u))
        for c in WIDTHS:
            width = hypot(0.5 * c, s * sqrt(3.0) / pi) / p
            u = (at + (m + _log_moment(0.5 * c)) / p) / width
            alive = -max(u, 0.0) - log1p(exp(-abs(u)))  # -log(1 + e^u)
            found.append(u + 2.0 * alive - log(width) - happened if event else alive)
        return found


def _log_above(u: float) -> float:
    """log P(N > u)."""
    if u < 25.0:
        return log(0.5 * erfc(u / sqrt(2.0)))
    return -0.5 * u * u - _LOG_ROOT - log(u) + log1p(-1.0 / (u * u))  # a lower bound: less than the mass is no harm


def _log_moment(v: float) -> float:
    """log E[e^X] of a logistic variable of scale v < 1."""
    return log(pi * v / sin(pi * v))


_NAMES_OF_LIFETIMES = (
    *(f"log-normal lifetimes ({c:g} times as wide)" for c in WIDTHS),
    *(f"log-logistic lifetimes ({c:g} times as wide)" for c in WIDTHS),
)
