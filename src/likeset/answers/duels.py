"""Which arms are beaten: the certified answer of voices that compare every arm with every other."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from likeset._solver.borders import surely_below
from likeset._solver.pairs import PairSet
from likeset._solver.problem import VoiceTable
from likeset._typing import Array, IntArray, Mask
from likeset.evidence.evidence import Evidence
from likeset.evidence.pairs import pair_set
from likeset.evidence.unknown_scale import AnyEvidence
from likeset.families.canonical import Canonical
from likeset.spaces.base import Space
from likeset.voices.duels import Duels

if TYPE_CHECKING:
    from likeset.sets import LikelihoodSet

TILTED = 0.7  # of what a duel has, for tilts; the rest is for the ratios of its two arms


@dataclass(frozen=True)
class ArmsInDuels:
    """The arms announced, and the voices that hear rows, without an alarm, whose forecasts are of all rows."""

    duels: Duels
    heard: VoiceTable
    form: Canonical

    one_set = True
    measured = None

    def of_all(self, others: AnyEvidence) -> AnyEvidence:
        """The evidence that everything but duels goes by: what they leave of the error level."""
        return quieter(others, self.duels.share)

    def of_one(self, others: AnyEvidence, contrast: int) -> Evidence:
        """No question has a set of its own."""
        raise AssertionError(contrast)

    def asked(self, space: Space, X: Array, Y: Array | None = None) -> IntArray | None:
        """One set answers."""
        return None

    def pair(self, others: AnyEvidence, space: Space, x: Array, y: Array, lengths: Array) -> PairSet | None:
        """Duels tell which arm is best, and not by how much: no contrast has been announced."""
        return None

    def duel(self, others: Evidence, space: Space, x: Array, y: Array, lengths: Array) -> PairSet | None:
        """The set of (u, u') of the two arms for "x is best" against y, in the order in which that says u >= u'."""
        duels = self.duels
        arms = space.covariates(duels.arms, "arms")
        if not all((arms == row).all(axis=1).any() for row in (x, y)):
            return None
        order = slice(None) if duels.largest == (self.form.sign > 0.0) else slice(None, None, -1)
        seen = others.groups.covariates
        found = [np.flatnonzero((seen == row).all(axis=1)) for row in (x, y)][order]
        first, second = (int(one[0]) if len(one) else None for one in found)
        odds = (len(arms) - 1) / duels.share
        evidence = replace(others, voices=self.heard)
        return pair_set(evidence, (first, second), lengths[order], TILTED, odds, self.form, falling=True)


def quieter(others: AnyEvidence, share: float) -> AnyEvidence:
    """The same voices with what ``share`` leaves of the error level."""
    if not isinstance(others, Evidence):
        return others
    voices = others.voices
    return replace(others, voices=VoiceTable(voices.starts, voices.members, voices.log_shares + np.log1p(-share)))


def beaten(s: LikelihoodSet, X: Array, Y: Array) -> Mask:
    """Whether row x surely is not the best arm, since y is better; False where these are no announced duels."""
    found = np.zeros(len(X), dtype=bool)
    questions, others = s._questions, s._others
    if not isinstance(questions, ArmsInDuels) or not isinstance(others, Evidence):
        return found
    lengths = np.column_stack([np.hypot(np.linalg.norm(i, axis=1), o) for i, o in map(s._basis.coordinates, (X, Y))])
    for row in range(len(X)):
        pair = questions.duel(others, s.space, X[row], Y[row], lengths[row])
        found[row] = pair is not None and surely_below(pair)
    return found
