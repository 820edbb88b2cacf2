r"""Several voices and an unknown scale: how their ratio depends on the scale where theta is given.

    log R(t) = log sum_k pi_k exp[ s F_k + G_k(t) ],        s = e^t = scale^-k

F_k is the loss of scale one that voice k hears at theta, G_k what its numerator has earned. R is convex in s.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np

from likeset._solver.evaluate import log_sum_exp
from likeset._solver.nuisance import FURTHEST, Gain
from likeset._solver.problem import VoiceTable
from likeset._typing import Array

_NEWTON = 120


@dataclass(frozen=True)
class VoicesByScale:
    """G of every voice, and log R from F of every voice, one row per theta.

    table         log pi_k; if ``hears_all``, the voice that hears everything is the first
    log_q, counts log Q_k and M_k, where G_k = log Q_k - M_k t; zero for the voice with ``own_gain``
    own_gain      G of the voice that hears everything, by a numerator made for every scale
    ends          of the t that are possible
    has_zero      whether scale zero is possible
    """

    table: VoiceTable
    log_q: Array
    counts: Array
    hears_all: bool
    own_gain: Gain | None
    ends: tuple[float, float]
    has_zero: bool

    def gains(self, t: Array) -> tuple[Array, Array, Array]:
        """log pi_k + G_k, dG_k/dt and its second derivative at every t, along a new last axis."""
        value = self.table.log_shares + self.log_q - self.counts * t[:, None]
        first, second = np.broadcast_to(-self.counts, value.shape).copy(), np.zeros(value.shape)
        if self.own_gain is not None:
            own, first[:, 0], second[:, 0] = self.own_gain.derivatives(t)
            value[:, 0] += own
        return value, first, second

    def sizes(self, t: Array) -> Array:
        """What the rounding of the largest G is proportional to."""
        log_q = np.where(np.isfinite(self.log_q), self.log_q, 0.0)
        sizes = np.max(np.abs(log_q) + self.counts * np.abs(t)[:, None], axis=1)
        if self.own_gain is not None:
            sizes = np.maximum(sizes, [self.own_gain.size(float(at)) for at in t])
        return np.asarray(sizes)

    def least(self, F: Array) -> tuple[Array, Array]:
        """log R at the scale that is kindest to every row of F, and the t of that scale."""
        t = self.kindest(F)
        found = self.at(F, t)
        if self.has_zero:
            exact = ~F.any(axis=1)
            if exact.any():
                found[exact], t[exact] = np.minimum(found[exact], self.without_noise), FURTHEST
        return found, t

    def at(self, F: Array, t: Array) -> Array:
        """log R at t."""
        with np.errstate(over="ignore", invalid="ignore"):
            grown = np.where(F > 0.0, F * np.exp(t)[:, None], 0.0)
        return log_sum_exp(self.gains(t)[0] + grown)

    @property
    def without_noise(self) -> float:
        """log R at scale zero of a theta that explains every outcome: of voices that hear outcomes nothing is left."""
        hears = self.counts > 0.0
        hears[:1] |= self.hears_all
        rest = self.table.log_shares + self.log_q
        return float(np.logaddexp.reduce(rest[~hears], initial=-inf))

    def kindest(self, F: Array) -> Array:
        """Where log R is least, for every row of F: R is convex in s, so its slope in t = log s changes sign once."""
        low, high = (np.full(len(F), end) for end in self.ends)
        t = np.clip(np.zeros(len(F)), low, high)
        counts, total = self.counts.sum(), F.sum(axis=1)
        if counts > 0.0:
            t = np.clip(np.where(total > 0.0, np.log(counts / np.where(total > 0.0, total, 1.0)), high), low, high)
        for number in range(_NEWTON):
            value, first, second = self.gains(t)
            with np.errstate(over="ignore", invalid="ignore"):
                grown = np.where(F > 0.0, F * np.exp(t)[:, None], 0.0)
                value, first, second = value + grown, first + grown, second + grown
                top = value.max(axis=1, keepdims=True)
                shares = np.exp(value - top)
                shares /= shares.sum(axis=1, keepdims=True)
                slope = (shares * first).sum(axis=1)
                bend = (shares * (second + (first - slope[:, None]) ** 2)).sum(axis=1)
                slope = np.where(np.isfinite(slope), slope, inf)
                low, high = np.where(slope < 0.0, t, low), np.where(slope > 0.0, t, high)
                new = t - np.divide(slope, bend, out=np.full(len(t), np.nan), where=bend > 0.0)
            # Between brackets, and halved now and then: where R grows like exp(e^t), Newton's steps have length one.
            steady = (bend > 0.0) & (low < new) & (new < high) & ((number % 4 != 3) | (np.abs(new - t) < 0.5))
            new = np.where(slope == 0.0, t, np.where(steady, new, 0.5 * (low + high)))
            done = np.abs(new - t) <= 1e-12 * (1.0 + np.abs(t))
            t = new
            if done.all():
                break
        return t
