r"""Evidence: what the data say about every parameter, in one object.

Observations are merged into *groups*, one for each covariate and class (:mod:`~likeset.evidence.ledger`), and groups
speak in *voices*, ratios that are averaged:

    log R(theta) = log sum_k pi_k exp sum_{g in voice k} [ gain_g + phi_g(x_g'theta)],   C = Theta cut with R <= 1/alpha

    symbol    here
    x_g       a row of ``covariates``, and of ``coordinates`` in the basis
    phi_g     ``terms``: convex functions of z = x_g'theta
    gain_g    ``gains``: what the forecasts earned, less the part of the likelihood that is free of theta
    pi_k      ``voices``: shares of the error level, and which groups each voice holds

One voice that holds every group is the joint set; windows are voices over covariates; whoever has another idea writes
another table of voices. A voice that holds an outcome forecast with density zero has ratio zero for good and is left
out; one that holds nothing has ratio one.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import inf, isfinite
from typing import ClassVar

import numpy as np

from likeset import _solver
from likeset._solver import Kernel
from likeset._solver.ball import Ball
from likeset._solver.charge import charge_of, minima
from likeset._solver.evaluate import log_sum_exp, reweighted, term_values, values_and_slopes
from likeset._solver.problem import MixtureSet, Terms, VoiceTable
from likeset._solver.voice_sums import voice_exponents
from likeset._typing import EPS, Array, IntArray
from likeset.evidence.at_all_levels import AtAllLevels
from likeset.evidence.few_groups import MANY, few_groups
from likeset.evidence.own_levels import OwnLevels
from likeset.parts import worked_out

_CENTRES = 5  # of sets at higher levels that are looked at
ROUNDING = 64 * EPS


@dataclass(frozen=True)
class Groups:
    """Where observations were made: the covariates seen, and which of them every group belongs to.

    covariates    as given, one row per distinct covariate
    coordinates   of these in the basis
    outside       lengths outside its span
    owners        the covariate of every group, or the combination, counted after the covariates; every covariate has a
                  group, and the first ones of all of them come in their order
    loads         combinations sum_k loads[k, j] x_k of covariates, one per column, that directional voices look along
    """

    covariates: Array
    coordinates: Array
    outside: Array
    owners: IntArray
    loads: Array | None = None

    @property
    def one_each(self) -> bool:
        """Whether groups are covariates: as many as there are of them, then, and in the same order."""
        return self.loads is None and len(self.owners) == len(self.covariates)

    @worked_out
    def rows(self) -> Array:
        """Coordinates of the covariates and of the combinations."""
        own = self.coordinates
        return own if self.loads is None else np.vstack([own, self.loads.T @ own])

    @worked_out
    def lengths(self) -> Array:
        """|x| of every group, in the basis; of a combination, the sum of those it is made of."""
        own = np.linalg.norm(self.coordinates, axis=1)
        more = [] if self.loads is None else [np.abs(self.loads).T @ own]
        return self._taken(np.concatenate([own, *more]))

    @worked_out
    def sticking_out(self) -> Array:
        """How far every group sticks out of the basis at most."""
        more = [] if self.loads is None else [np.abs(self.loads).T @ self.outside]
        return self._taken(np.concatenate([self.outside, *more]))

    def spread(self, values: Array) -> Array:
        """z of every group (last axis) from z of the covariates."""
        return self._taken(values if self.loads is None else np.concatenate([values, values @ self.loads], axis=-1))

    def _taken(self, per_covariate: Array) -> Array:
        return per_covariate if self.one_each else per_covariate[..., self.owners]

    def gathered(self, per_group: Array) -> Array:
        """Sums per covariate (last axis) of entries per group."""
        if self.one_each:
            return per_group
        count = len(self.covariates)
        own = self.owners < count
        out = np.zeros((count, *per_group.shape[:-1]))
        np.add.at(out, self.owners[own], np.moveaxis(per_group, -1, 0)[own])
        return np.moveaxis(out, 0, -1)

    def without_combinations(self) -> Groups:
        """The covariates and their groups alone."""
        own = self.owners[self.owners < len(self.covariates)]
        return Groups(self.covariates, self.coordinates, self.outside, own)


@dataclass(frozen=True)
class Evidence(OwnLevels):
    """log R as a function of theta, and the set { log R <= threshold, |theta| <= bound }."""

    groups: Groups
    terms: Terms
    gains: Array
    voices: VoiceTable
    threshold: float
    bound: float
    convex: ClassVar[bool] = True  # in theta
    _at_all_levels: AtAllLevels = field(default_factory=AtAllLevels, repr=False, compare=False, kw_only=True)

    @worked_out
    def known_gains(self) -> Array:
        """The gains, zero for groups that no audible voice holds: an outcome was forecast with density zero."""
        if isfinite(self.gains.dot(self.gains)):  # the usual case, cheaply
            return self.gains
        lost = np.isneginf(self.gains)
        return np.where(lost, 0.0, self.gains) if lost.any() else self.gains

    @worked_out
    def audible(self) -> VoiceTable:
        """The voices whose ratio is not zero for good: those without an outcome that was forecast with density zero."""
        voices = self.voices
        if self.known_gains is self.gains:
            return voices
        owners, lost = voices.owners, np.isneginf(self.gains)
        keep = np.bincount(owners, weights=lost[voices.members], minlength=len(voices.log_shares)) == 0
        sizes = np.diff(voices.starts)[keep]
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        return VoiceTable(starts, voices.members[keep[owners]], voices.log_shares[keep])

    @worked_out
    def says_nothing(self) -> bool:
        """Whether log R is the same for every theta, and below the threshold."""
        return len(self.audible.members) == 0 or self.threshold == inf

    # -- one parameter ------------------------------------------------------------------------------------------

    def contributions(self, values: Array) -> Array:
        """gain_g + phi_g at z (n, number of covariates); -inf where q was zero, whatever the likelihood."""
        return self._contributions(term_values(self.terms, self.groups.spread(values)))

    def log_ratio(self, values: Array) -> Array:
        """log R of parameters with the z ``values`` at the covariates, one row each."""
        if len(self.gains) == 0:
            return np.zeros(len(values))  # shares add up to one only within rounding
        return log_sum_exp(voice_exponents(self.audible, self.contributions(values)))

    def log_ratio_with_rounding(self, values: Array, norms: Array) -> tuple[Array, Array]:
        """log R of parameters with these z and norms, and how far off it may be."""
        losses, slopes = values_and_slopes(self.terms, self.groups.spread(values))
        # Gains and losses cancel: the rounding of their sum is that of the numbers it was made from. So does the
        # rounding of z = x'theta count, times the slope of the loss.
        reach = norms[:, None] * self.groups.lengths
        parts = np.abs(losses) + np.abs(self.known_gains) + np.abs(slopes) * reach
        found = log_sum_exp(voice_exponents(self.audible, self._contributions(losses)))
        sizes = 1.0 + voice_exponents(self.audible, parts).max(axis=1, initial=0.0)
        return found, 4 * ROUNDING * sizes

    @worked_out
    def size(self) -> float:
        """The sum of the gains' sizes, which the rounding of log R is proportional to."""
        return float(np.abs(self.known_gains).sum())

    # -- all of them --------------------------------------------------------------------------------------------

    @worked_out
    def charge(self) -> float:
        """Nats by which bounds raise the threshold, because covariates were merged to numerical rank.

        See :mod:`likeset._solver.charge`.
        """
        if not np.count_nonzero(self.groups.outside):
            return 0.0
        squares = np.where(np.isneginf(self.gains), 0.0, self.groups.sticking_out**2)
        if not squares.any():
            return 0.0
        lowest, slack = minima(self.terms), 0.0
        if lowest is not None:
            quiet = voice_exponents(self.audible, np.where(np.isneginf(self.gains), 0.0, self.known_gains + lowest))
            slack = self.threshold - float(quiet.min(initial=inf))
        reach = self.bound * np.hypot(self.groups.lengths, np.sqrt(squares))
        return charge_of(self.terms, squares, self.bound, slack, reach)

    @property
    def closed_form(self) -> bool:
        """Whether the kernel has a closed form; it is not prepared for this."""
        return _solver.has_closed_form(self._target)

    @worked_out
    def kernel(self) -> Kernel:
        """What answers for extrema and emptiness."""
        return _solver.prepare_reduced(self._target)

    @worked_out
    def _target(self) -> MixtureSet | Ball:
        gains = self.known_gains
        owners = None if self.groups.one_each else self.groups.owners
        X = self.groups.rows if owners is None else self.groups.rows[owners]
        level = self.threshold + self.charge
        if len(gains) >= MANY:  # the very same at all levels
            parts = (self.groups, self.terms, self.gains, self.voices, self.bound)
            few = self._at_all_levels.once(
                parts, "few", lambda: few_groups(X, self.terms, gains, self.audible, self.bound)
            )
            found = None if few is None else few.at(1.0, self.audible.log_shares, level)
            if found is not None:
                return _solver.reduced(found)
        return _solver.reduced(MixtureSet(X, self.terms, gains, self.audible, level, self.bound, owners))

    def reweighted(self, weights: Array, threshold: float) -> Evidence:
        """One voice, in which every covariate counts with a weight v in [0, 1]: sum_g v_g [gain_g + phi_g]."""
        groups, terms, own = self.groups, self.terms, self.gains
        if groups.loads is not None:
            groups = groups.without_combinations()
            kept = np.arange(len(own)) < len(groups.owners)
            terms, own = reweighted(terms, np.ones(len(own)), kept), own[kept]
        v = groups.spread(weights)
        gains = np.where(v > 0, v * np.where(v > 0, own, 0.0), 0.0)
        joint = VoiceTable.joint(len(gains))
        return replace(
            self, groups=groups, terms=reweighted(terms, v), gains=gains, voices=joint, threshold=threshold
        )  # fmt: skip

    def _contributions(self, losses: Array) -> Array:
        if self.known_gains is self.gains:
            return self.gains + losses
        return self.gains + np.where(np.isneginf(self.gains), 0.0, losses)


def depth_of(evidence: Evidence) -> tuple[float, float]:
    """Bounds of level - min log R, from whether sets at higher levels are empty; for sets that are empty, or nearly so.

    A set at a higher level that is not empty has a centre nearer to where log R is least, and that is tried next.
    """
    kernel = evidence.kernel
    level = evidence.threshold + evidence.charge
    attained = _below(evidence, level, kernel)
    if kernel.status != "empty":
        return 0.0, 0.0
    for _ in range(_CENTRES):
        better = attained
        for part in (0.9999, 0.99, 0.9, 0.5):
            kernel = replace(evidence, threshold=evidence.threshold - part * attained).kernel
            if kernel.status == "empty":
                return attained, part * attained
            better = max(better, _below(evidence, level, kernel))
            if better > 0.99 * attained:  # both are negative
                break
        if not better > 0.9999 * attained:
            break
        attained = better
    return attained, 0.0


def _below(evidence: Evidence, level: float, kernel: Kernel) -> float:
    """How far log R at the centre of a kernel lies below the level."""
    return level - float(evidence.log_ratio((evidence.groups.coordinates @ kernel.centre)[None])[0])
