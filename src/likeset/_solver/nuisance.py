r"""An unknown scale of the noise: what is left of a ratio when the scale is projected out.

Noise with a scale has a negative log-likelihood  s F(theta) - M log s  in s = scale^-k (Gaussian: F half the residual
sum of squares, k = 2, M = n/2; Laplace: F the sum of absolute residuals, k = 1, M = n), so that the evidence against
(theta, s) is

    log R(theta, s) = s F(theta) + G(s),        G(s) = (what the numerator has earned) - M log s.

The numerator may depend on the s that is tested: for every s its own predictable, normalised density, so that R is a
martingale at the truth. All that is needed here is that *G is convex in s*:

* :class:`PlainGain`      a numerator that does not depend on s:  G(s) = log Q - M log s
* :class:`MarginalGain`   marginal likelihoods under priors centred at the s that is tested (Gaussian noise):
                          G(s) = log sum_j exp( c_j - N_j log(a_j + B_j s) ), a log-sum-exp of convex functions
* :class:`EitherGain`     two numerators, averaged: the model's own and that of the alarm

Then  min_s log R  is an increasing function of F alone, the projected set is { F(theta) <= F* }, and with t = log s

    F* = max_s (L - G(s)) / s  = -G'(s0)  where  G(s0) - s0 G'(s0) = L:

for every other s the tangent at s0 says  s F + G(s) >= G(s0) - s0 G'(s0) + s (F + G'(s0)), above L if F > -G'(s0).
G - s G' falls as s grows, so that an s0 a little too small gives an F* a little too large: outward.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Any, Protocol

import numpy as np

from likeset._solver.problem import Terms
from likeset._typing import EPS, Array
from likeset.arguments import positive
from likeset.errors import InvalidArgumentError
from likeset.parts import worked_out

FURTHEST = 650.0  # |log s| beyond which no data can tell: e^650 is about the largest number there is
_STEPS = 100
_CLOSE = 256 * EPS
_TINY = 5e-324


class Gain(Protocol):
    """G as a function of t = log s, any number of t at once."""

    def derivatives(self, t: Array) -> tuple[Array, Array, Array]:
        """G, dG/dt and d^2G/dt^2."""
        ...

    def size(self, t: float) -> float:
        """What the rounding error of G is proportional to."""
        ...

    @property
    def start(self) -> float:
        """A t near which the data lie."""
        ...


@dataclass(frozen=True)
class PlainGain:
    """G = log_q - count t."""

    log_q: float
    count: float

    def derivatives(self, t: Array) -> tuple[Array, Array, Array]:
        """A straight line in t."""
        t = np.asarray(t)
        return self.log_q - self.count * t, np.full_like(t, -self.count), np.zeros_like(t)

    def size(self, t: float) -> float:
        """Sizes of both parts."""
        return abs(self.log_q) + abs(self.count * t)

    start = 0.0  # Newton's method on straight lines needs no better one


@dataclass(frozen=True)
class MarginalGain:
    """G = log sum_j exp( constants_j - powers_j log(offsets_j + slopes_j e^t) ); offsets > 0, slopes >= 0."""

    constants: Array
    powers: Array
    offsets: Array
    slopes: Array

    def derivatives(self, t: Array) -> tuple[Array, Array, Array]:
        """With v_j the shares of the summands and p_j = slopes_j s / (offsets_j + slopes_j s)."""
        odds = np.asarray(t)[..., None] + self._log_odds
        small = np.exp(-np.abs(odds))
        p = np.where(odds >= 0.0, 1.0, small) / (1.0 + small)
        parts = self._at_zero - self.powers * (np.maximum(odds, 0.0) + np.log1p(small))
        top = parts.max(axis=-1)
        shares = np.exp(parts - top[..., None])
        sizes = shares.sum(axis=-1)
        first = -self.powers * p
        mean = (shares * first).sum(axis=-1) / sizes
        bend = (shares * (first * (1.0 - p) + (first - mean[..., None]) ** 2)).sum(axis=-1) / sizes
        return top + np.log(sizes), mean, bend

    def size(self, t: float) -> float:
        """The largest summand, part by part."""
        logs = np.log(self.offsets) + np.logaddexp(0.0, t + self._log_odds)
        return float((np.abs(self.constants) + self.powers * (1.0 + np.abs(logs))).max())

    @property
    def start(self) -> float:
        """log(N/B) of the summand that fits best."""
        with np.errstate(divide="ignore"):
            slopes = np.log(self.slopes)
        if not slopes.min() > -inf:
            return 0.0
        best = int(np.argmax(self.constants - self.powers * slopes))
        return float(np.log(self.powers[best]) - slopes[best])

    @worked_out
    def _log_odds(self) -> Array:
        """Of p_j at t = 0."""
        with np.errstate(divide="ignore"):
            return np.log(self.slopes / self.offsets)

    @worked_out
    def _at_zero(self) -> Array:
        """The summands where s vanishes."""
        return self.constants - self.powers * np.log(self.offsets)


@dataclass(frozen=True)
class EitherGain:
    """G = log( v_1 e^G_1 + v_2 e^G_2 ) of two numerators with shares v: convex in s, as a log-sum-exp of such G_i."""

    gains: tuple[Gain, Gain]
    log_shares: tuple[float, float]

    def derivatives(self, t: Array) -> tuple[Array, Array, Array]:
        """With the shares of the summands at t."""
        parts = [gain.derivatives(t) for gain in self.gains]
        values = np.stack([value + share for (value, _, _), share in zip(parts, self.log_shares, strict=True)])
        top = values.max(axis=0)
        shares = np.exp(values - top)
        sizes = shares.sum(axis=0)
        shares = shares / sizes
        first = np.stack([part[1] for part in parts])
        mean = (shares * first).sum(axis=0)
        bend = (shares * (np.stack([part[2] for part in parts]) + (first - mean) ** 2)).sum(axis=0)
        return top + np.log(sizes), mean, bend

    def size(self, t: float) -> float:
        """The larger one."""
        return max(gain.size(t) for gain in self.gains)

    @property
    def start(self) -> float:
        """That of the first."""
        return self.gains[0].start


@dataclass(frozen=True)
class ScaleTerms:
    """-log p of every group at scale s:  s [unit_g(z) + rest_g] - counts_g log s + constants_g.

    ``unit`` has the terms for s = 1, less ``rest``, the part that is free of z; ``power`` is k in s = scale^-k, and
    the scale lies in [lo, hi].
    """

    unit: Terms
    rest: Array
    counts: Array
    constants: Array
    power: int
    lo: float
    hi: float

    @property
    def range(self) -> tuple[float, float]:
        """The least and the largest log s."""
        with np.errstate(divide="ignore"):
            low, high = -self.power * np.log(np.array([self.hi, self.lo]))
        return max(float(low), -FURTHEST), min(float(high), FURTHEST)

    def checked(self, name: str, scale: Any) -> float:
        """A scale in the range, or a typed error."""
        number = positive(name, scale)
        if not self.lo <= number <= self.hi:
            raise InvalidArgumentError(name, scale, f"is outside [{self.lo:g}, {self.hi:g}]", "pass a possible value")
        return number

    def log_s(self, scale: float) -> float:
        """t of a scale."""
        return -self.power * float(np.log(scale))

    def scale(self, t: float) -> float:
        """The scale of t; 0 and infinity where nothing is known of it."""
        if abs(t) >= FURTHEST:
            return 0.0 if t > 0 else inf
        return min(max(float(np.exp(-t / self.power)), self.lo), self.hi)


def projected(gain: Gain, F: Array, span: tuple[float, float]) -> tuple[Array, Array]:
    """min over s of s F + G(s), and the t = log s where it is: the root of log(-dG/dt) - t - log F."""
    F = np.asarray(F, dtype=np.float64)
    with np.errstate(divide="ignore"):
        log_F = np.log(np.maximum(F, 0.0))

    def falls(t: Array) -> tuple[Array, Array]:
        _, first, second = gain.derivatives(t)
        with np.errstate(divide="ignore", invalid="ignore"):
            # Not where -dG/dt vanishes by rounding: G is flat there, whichever side the root is on.
            return np.log(np.maximum(-first, _TINY)) - t - np.resize(log_F, len(t)), second / first - 1.0

    t = _root(falls, np.full(F.shape, min(max(gain.start, span[0]), span[1])), span)
    with np.errstate(over="ignore", invalid="ignore"):
        return np.where(F > 0.0, F * np.exp(t), 0.0) + gain.derivatives(t)[0], t


def largest(gain: Gain, level: float, span: tuple[float, float]) -> tuple[float, float]:
    """F*, outward, and the t = log s where it is attained; negative where no s is plausible with any F >= 0."""
    level += 16 * EPS * (abs(level) + 1.0)

    def falls(t: Array) -> tuple[Array, Array]:
        value, first, second = gain.derivatives(t)
        return value - first - level, first - second

    t = float(_root(falls, np.array([min(max(gain.start, span[0]), span[1])]), span)[0])
    if span[0] < t < span[1]:
        # A step down that makes up for the rounding of G: dP/dt is -s^2 G'', the price a little of F*.
        rounding = 16 * EPS * gain.size(t)
        slope = float(falls(np.array([t]))[1][0])
        t = max(t + rounding / slope if slope < 0.0 else span[0], t - 1.0, span[0])
    value, first, _ = (float(part[0]) for part in gain.derivatives(np.array([t])))
    slack = 16 * EPS * gain.size(t)
    with np.errstate(over="ignore"):
        ends = (level - value + slack) * float(np.exp(np.float64(-t)))
        inner = -first * float(np.exp(np.float64(-t))) * (1 + 16 * EPS)
    found = ends if t in span else max(ends, inner)
    return (found if found < 1e250 else inf), t


def plausible(gain: Gain, least: float, level: float, span: tuple[float, float]) -> tuple[float, float] | None:
    """All t = log s with  s least + G(s) <= level, an interval since the left side is convex in s; None if there is
    none. ``least`` is a lower bound of F."""
    value, best = projected(gain, np.array([least]), span)
    if not float(value[0]) <= level + 64 * EPS * gain.size(float(best[0])):
        return None

    def excess(t: float) -> float:
        with np.errstate(over="ignore"):
            of_data = max(least, 0.0) * float(np.exp(t)) if least > 0.0 else 0.0
        return of_data + float(gain.derivatives(np.array([t]))[0][0]) - level

    ends = []
    for end in span:
        inside, outside = float(best[0]), end
        if excess(outside) <= 0.0:
            ends.append(outside)
            continue
        while abs(outside - inside) > 1e-12 * (1.0 + abs(inside)):
            middle = 0.5 * (inside + outside)
            if not inside < middle < outside and not outside < middle < inside:
                break
            inside, outside = (middle, outside) if excess(middle) <= 0.0 else (inside, middle)
        ends.append(outside)
    return ends[0], ends[1]


def _root(falls: Callable[[Array], tuple[Array, Array]], guess: Array, span: tuple[float, float]) -> Array:
    """Where falling functions are zero, or the end of the span next to that: Newton's method between brackets."""
    low, high = np.full(guess.shape, span[0]), np.full(guess.shape, span[1])
    # One call for the ends and the first guess: calls cost more than numbers.
    values, slopes = falls(np.concatenate([low, high, guess]))
    count = len(guess)
    at_low, at_high = values[:count] <= 0.0, values[count : 2 * count] >= 0.0
    t, value, slope = guess, values[2 * count :], slopes[2 * count :]
    for step_number in range(_STEPS):
        if step_number:
            value, slope = falls(t)
        low, high = np.where(value > 0.0, t, low), np.where(value < 0.0, t, high)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            step = -value / slope
            new = t + step
        close = _CLOSE * (1.0 + np.abs(t))
        there = (value == 0.0) | (np.abs(step) <= close)  # whatever rounding says about the side
        new = np.where(there, t, np.where((low < new) & (new < high), new, 0.5 * (low + high)))
        done = there | (np.abs(new - t) <= close)
        t = new
        if (done | at_low | at_high).all():
            break
    return np.where(at_low, span[0], np.where(at_high, span[1], t))
