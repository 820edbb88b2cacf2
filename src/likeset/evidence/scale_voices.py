r"""Evidence of several voices where the scale of the noise is unknown: the set lives in (theta, scale).

    log R(theta, s) = log sum_k pi_k exp[ s F_k(theta) + G_k(s) ],       log R(theta) = min over s = scale^-k of it

    symbol    here
    F_k       the terms of scale one, ``terms.unit`` and ``terms.rest``, of the groups that voice k holds
    G_k       log Q_k - M_k log s for numerators Q_k that know no scale; the gain of a numerator made for every scale,
              ``own_gain``, for the voice that hears everything; free of s for directional voices

In the coordinates (eta, s) = (s theta, s) every voice is convex: s F(eta/s) is the perspective of a convex function,
G_k is convex in s. So is their log-sum-exp, and its level sets, seen in (theta, 1/s), are convex as well. Bounds for
theta are maxima over the scale of bounds at a fixed one (:mod:`likeset._solver.search`), where the set is that of a
known scale with other shares: no kernel sees anything new.

The numerator of a voice must be the same from its first observation on. So ``own_gain`` belongs to voices that hear
everything by their definition, and not to those that have not missed anything yet.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import exp, inf, log
from typing import Any, ClassVar

import numpy as np

from likeset._solver import Kernel
from likeset._solver.ball import Ball
from likeset._solver.evaluate import log_sum_exp, reweighted, values_and_slopes
from likeset._solver.nuisance import Gain, ScaleTerms
from likeset._solver.problem import CurveTerms, VoiceTable
from likeset._solver.search import SearchKernel
from likeset._solver.voice_sums import voice_exponents
from likeset._typing import EPS, Array
from likeset.evidence.at_all_levels import AtAllLevels
from likeset.evidence.directional import with_directions
from likeset.evidence.evidence import ROUNDING, Evidence, Groups, depth_of
from likeset.evidence.few_groups import FewGroups, few_groups
from likeset.evidence.noiseless import fits_without_noise, noiseless
from likeset.evidence.own_levels import OwnLevels
from likeset.evidence.voices_by_scale import VoicesByScale
from likeset.parts import worked_out
from likeset.voices.directions import Measured

_FURTHEST = 600.0  # |log s| up to which kernels are asked
_FAR = 10.0  # |log s| between the scale that fits best and the largest plausible one that only tied outcomes have
_CLEARLY = 1e-3  # nats that the search for the least of a convex function may be off; it is by far less
_NOTHING = 1e-9  # nats that all terms together are worth at most where s is so small that they do not count


@dataclass(frozen=True)
class ScaleVoices(OwnLevels):
    """log R as a function of theta and the scale; ``gains`` are sum w log q of every group.

    voices     of every group; ``own`` is the log share of the voice that hears everything and has ``own_gain``
    """

    groups: Groups
    terms: ScaleTerms
    gains: Array
    voices: VoiceTable
    own: float
    own_gain: Gain | None
    threshold: float
    bound: float
    convex: ClassVar[bool] = False  # in theta alone: only level sets are
    _made: dict[float, Evidence] = field(default_factory=dict, init=False, repr=False, compare=False)
    _at_all_levels: AtAllLevels = field(default_factory=AtAllLevels, repr=False, compare=False, kw_only=True)

    def with_directions(self, measured: Measured, share: float, count: int) -> ScaleVoices:
        """The average with the voices of ``count`` contrasts, which have ``share`` of the error level."""
        unit = Evidence(self.groups, self.terms.unit, self.gains, self.voices, self.threshold, self.bound)
        wide = with_directions(unit, replace(measured, scale=1.0), share, count)
        more = np.zeros(len(wide.gains) - len(self.gains))
        terms = replace(
            self.terms, unit=wide.terms, rest=np.append(self.terms.rest, more),
            counts=np.append(self.terms.counts, more), constants=np.append(self.terms.constants, more),
        )  # fmt: skip
        own = self.own + log(1.0 - share)
        return replace(self, groups=wide.groups, terms=terms, gains=wide.gains, voices=wide.voices, own=own)

    @property
    def by_scale(self) -> VoicesByScale:
        """All voices that are not silent for good, and what they have earned at every scale."""
        return self._once("by scale", self._gains_by_scale)  # type: ignore[no-any-return]

    def _gains_by_scale(self) -> VoicesByScale:
        hears_all, finite = self.own > -inf, np.where(np.isneginf(self.gains), 0.0, self.gains)
        table = self._audible()
        bare = VoiceTable(table.starts, table.members, np.zeros(len(table.log_shares)))
        log_q, counts = voice_exponents(bare, np.stack([finite + self.terms.constants, self.terms.counts]))
        own_gain = self.own_gain if hears_all else None
        if own_gain is not None:
            log_q[0] = counts[0] = 0.0
        elif hears_all and np.isneginf(self.gains).any():
            log_q[0] = -inf
        return VoicesByScale(table, log_q, counts, hears_all, own_gain, self.terms.range, self.terms.lo == 0.0)

    def _audible(self) -> VoiceTable:
        heard = Evidence(self.groups, self.terms.unit, self.gains, self.voices, self.threshold, self.bound).audible
        if self.own == -inf:
            return heard
        # Directional voices have groups of their own, which the voice of all data does not hold.
        everything = np.flatnonzero(self.terms.counts > 0.0)
        starts = np.concatenate([[0], len(everything) + heard.starts])
        members = np.concatenate([everything, heard.members])
        return VoiceTable(starts, members, np.append(self.own, heard.log_shares))

    @worked_out
    def says_nothing(self) -> bool:
        """Whether log R is the same for every theta, and below the threshold."""
        return len(self.by_scale.table.members) == 0 or self.threshold == inf

    # -- one parameter ------------------------------------------------------------------------------------------

    def log_ratio(self, values: Array, scale: float | None = None) -> Array:
        """log R of parameters with the z ``values`` at the covariates, one row each; for one scale, or the least."""
        if len(self.by_scale.table.members) == 0:
            return np.zeros(len(values))
        return self._ratio(self._sums(self._losses(values)[0]), scale)[0]

    def contributions(self, values: Array) -> Array:
        """What every group adds to the log ratio of all data at the scale kindest to theta, by forecasts recorded."""
        losses = self._losses(values)[0]
        if self.says_nothing:
            return np.zeros_like(losses)
        _, t = self._ratio(self._sums(losses), None)
        free = self.gains + self.terms.constants
        return np.exp(t)[:, None] * losses + free - self.terms.counts * t[:, None]

    def log_ratio_with_rounding(self, values: Array, norms: Array, scale: float | None = None) -> tuple[Array, Array]:
        """log R of parameters with these z and norms, and how far off it may be."""
        if self.says_nothing:
            return self.log_ratio(values, scale), np.zeros(len(values))
        losses, slopes = self._losses(values)
        ratio, t = self._ratio(self._sums(losses), scale)
        reach = norms[:, None] * self.groups.lengths
        parts = self._sums(np.abs(losses) + 2.0 * self.terms.rest + slopes * reach)
        with np.errstate(over="ignore"):  # at scale zero
            sizes = np.exp(t) * parts.max(axis=1, initial=0.0) + self.by_scale.sizes(t)
        return ratio, 4 * ROUNDING * (1.0 + sizes)

    @worked_out
    def size(self) -> float:
        """What the rounding of log R is proportional to."""
        return float(self.by_scale.sizes(np.array([self._start]))[0]) if not self.says_nothing else 0.0

    # -- all of them --------------------------------------------------------------------------------------------

    def at(self, t: float) -> Evidence:
        """The evidence at t = log s: that of a known scale, with what numerators earned in the shares."""
        if t not in self._made:
            s, table = exp(t), self.by_scale.table
            shares = self.by_scale.gains(np.array([t]))[0][0]
            kept = np.isfinite(shares)
            if not kept.all():
                owners = table.owners
                members, sizes = table.members[kept[owners]], np.diff(table.starts)[kept]
                table = VoiceTable(np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64), members, shares[kept])
            else:
                table = VoiceTable(table.starts, table.members, shares)
            slack = 16 * EPS * (1.0 + float(self.by_scale.sizes(np.array([t]))[0]) + s * float(self.terms.rest.sum()))
            few = self._few
            found = None if few is None or not kept.all() else few.at(s, shares, self.threshold + slack)
            if found is not None:
                X = found.X
                groups = Groups(X, X, np.zeros(len(X)), np.arange(len(X)))
                self._made[t] = Evidence(groups, found.terms, found.gains, found.voices, found.level, self.bound)
            else:
                self._made[t] = Evidence(
                    self.groups, reweighted(self.terms.unit, np.full(len(self.gains), s)), s * self.terms.rest, table,
                    self.threshold + slack, self.bound,
                )  # fmt: skip
        return self._made[t]

    @property
    def _few(self) -> FewGroups | None:
        """Few groups that stand for many; None where covariates stick out of the basis, and are charged for."""

        def make() -> FewGroups | None:
            if self.groups.sticking_out.any():
                return None
            X = self.groups.rows[self.groups.owners]
            return few_groups(X, self.terms.unit, self.terms.rest, self.by_scale.table, self.bound)

        return self._once("few", make)  # type: ignore[no-any-return]

    def _once(self, name: str, make: Callable[[], Any]) -> Any:
        """What is the same at all levels, made when first asked for."""
        parts = (self.groups, self.terms, self.gains, self.voices, self.own, self.own_gain, self.bound)
        return self._at_all_levels.once(parts, name, make)

    @worked_out
    def _span(self) -> tuple[float, float]:
        """The t that are searched."""
        low, high = self.terms.range
        low, high = max(low, -_FURTHEST), min(high, _FURTHEST)
        if self.bound < inf and not self.says_nothing:
            # Below this t the terms are worth nothing anywhere in Theta, and all that counts is G.
            most = float(self._sums(self._losses(np.zeros((1, len(self.groups.covariates))))[0]).max())
            reach = self.bound * np.hypot(self.groups.lengths, self.groups.sticking_out)
            unit = self.terms.unit
            weights = unit.a if isinstance(unit, CurveTerms) else self.terms.counts
            most = 4.0 * (most + float((weights * reach**self.terms.power).sum()))
            if most > 0.0:
                low = max(low, min(log(_NOTHING / most), high))
        return low, high

    def _kernel_at(self, p: float) -> Kernel:
        t = min(max(-log(p), self._span[0]), self._span[1])
        if t == self._span[0] and self.terms.range[0] < t:
            # The end stands for all smaller s: there R is at least what it is with F = 0.
            least = float(log_sum_exp(self.by_scale.gains(np.array([t]))[0])[0])
            empty = least > self.threshold + 16 * EPS * (1.0 + float(self.by_scale.sizes(np.array([t]))[0]))
            return Ball(self.groups.coordinates.shape[1], self.bound, empty=empty)
        return self.at(t).kernel

    @worked_out
    def _start(self) -> float:
        """A t that should be plausible: the kindest to the theta that fits best."""
        F = self._once("least", self._least)
        kindest = float(self.by_scale.kindest(F)[0])

        def plausible(t: float) -> bool:
            return bool(self.by_scale.at(F, np.array([t]))[0] <= self.threshold)

        low, high = self.terms.range[0], kindest - _FAR
        if high <= low or not plausible(high):
            return kindest
        # Residuals that are nothing beside scales that are plausible, too: sets are wide near the largest of these.
        while high - low > 0.1:
            middle = 0.5 * (low + high)
            low, high = (low, middle) if plausible(middle) else (middle, high)
        return high + 1.0

    def _least(self) -> Array:
        """F of every voice where its sum over all groups is least, one row."""
        joint = Evidence(
            self.groups, self.terms.unit, np.zeros(len(self.gains)), VoiceTable.joint(len(self.gains)),
            float(self._losses(np.zeros((1, len(self.groups.covariates))))[0].sum()) * 1.01 + 1e-290, self.bound,
        )  # fmt: skip
        return self._sums(self._losses((self.groups.coordinates @ joint.kernel.centre)[None])[0])

    @worked_out
    def charge(self) -> float:
        """Nats by which bounds raise the threshold, because covariates were merged to numerical rank."""
        kernel = self.kernel
        if not isinstance(kernel, SearchKernel) or not self.groups.sticking_out.any():
            return 0.0
        ends = (-log(p) for p in (*kernel._rough_interval, kernel._plausible[0]))
        return max(self.at(min(max(t, self._span[0]), self._span[1])).charge for t in ends)

    @worked_out
    def kernel(self) -> Kernel:
        """What answers for extrema and emptiness."""
        if self.says_nothing:
            return Ball(self.groups.coordinates.shape[1], self.bound)
        if self._refuted_at_every_scale:
            return self._noiseless
        low, high = self._span
        return SearchKernel(
            self._kernel_at, self._depth, exp(-high), exp(-low), exp(-self._start), self.bound, inverse=True
        )  # fmt: skip

    @worked_out
    def _refuted_at_every_scale(self) -> bool:
        """Whether R is above the level even where a theta explains every outcome, at whatever scale above zero."""
        nothing = np.zeros((1, len(self.by_scale.table.log_shares)))
        t = self.by_scale.kindest(nothing)
        rounding = 64 * EPS * (1.0 + float(self.by_scale.sizes(t)[0]))
        return float(self.by_scale.at(nothing, t)[0]) > self.threshold + _CLEARLY + rounding

    @worked_out
    def _noiseless(self) -> Kernel:
        """The set at scale zero: every theta that explains all outcomes, up to rounding; none if there is noise."""
        dimension = self.groups.coordinates.shape[1]
        rounding = 64 * EPS * (1.0 + self.by_scale.sizes(np.zeros(1))[0])
        if self.terms.lo > 0.0 or self.by_scale.without_noise > self.threshold + rounding:
            return Ball(dimension, self.bound, empty=True)
        return noiseless(self.groups, self.terms, self.bound)

    @property
    def fits_without_noise(self) -> bool:
        """Whether some theta explains all outcomes, and these are more than it has coordinates."""
        return fits_without_noise(self.groups, self.terms, self.bound)

    def interval_of_scale(self) -> tuple[float, float] | None:
        """The least and the largest scale that some theta makes plausible; None if there is none."""
        low, high = self.terms.range
        if self.says_nothing:
            return self.terms.scale(high), self.terms.scale(low)
        kernel = self.kernel
        if kernel.status == "empty":
            return None
        if not isinstance(kernel, SearchKernel):
            return 0.0, 0.0
        ends = kernel.interval
        return (
            self.terms.scale(high if ends[0] <= kernel.low else -log(ends[0])),
            self.terms.scale(low if ends[1] >= kernel.high else -log(ends[1])),
        )

    def reweighted(self, weights: Array, threshold: float) -> ScaleVoices:
        """One voice, in which every covariate counts with a weight v in [0, 1]; by forecasts that know no scale."""
        groups, terms, kept = self.groups, self.terms, np.ones(len(self.gains), dtype=bool)
        if groups.loads is not None:
            groups = groups.without_combinations()
            kept = np.arange(len(self.gains)) < len(groups.owners)
        v, every = groups.spread(weights), np.ones(len(self.gains))
        every[kept] = v
        terms = replace(
            terms, unit=reweighted(terms.unit, every, kept), rest=v * terms.rest[kept], counts=v * terms.counts[kept],
            constants=v * terms.constants[kept],
        )  # fmt: skip
        gains = np.where(v > 0, v * np.where(v > 0, self.gains[kept], 0.0), 0.0)
        none = VoiceTable(np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0))
        return replace(
            self, groups=groups, terms=terms, gains=gains, voices=none, own=0.0, own_gain=None, threshold=threshold
        )  # fmt: skip

    def _depth(self, p: float) -> tuple[float, float]:
        """Bounds of level - min over theta of log R, where the set at p is empty."""
        return depth_of(self.at(min(max(-log(p), self._span[0]), self._span[1])))

    # -- inside -------------------------------------------------------------------------------------------------

    def _losses(self, values: Array) -> tuple[Array, Array]:
        """F of every group, which is not negative, and how steep it is at most."""
        losses, slopes = values_and_slopes(self.terms.unit, self.groups.spread(values))
        return np.maximum(losses + self.terms.rest, 0.0), np.abs(slopes)

    def _sums(self, per_group: Array) -> Array:
        """Sums over the groups of every voice."""
        table = self.by_scale.table
        return voice_exponents(VoiceTable(table.starts, table.members, np.zeros(len(table.log_shares))), per_group)

    def _ratio(self, F: Array, scale: float | None) -> tuple[Array, Array]:
        """log R and the log s it belongs to, from F of every voice."""
        if scale is None:
            return self.by_scale.least(F)
        t = np.full(len(F), self.terms.log_s(scale))
        return self.by_scale.at(F, t), t
