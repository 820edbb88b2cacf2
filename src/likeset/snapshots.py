"""From what a sequence has recorded to the set of the parameters that this leaves."""

from __future__ import annotations

from math import log
from typing import TYPE_CHECKING

from likeset._solver.nuisance import Gain, ScaleTerms
from likeset._solver.problem import VoiceTable
from likeset.answers.duels import ArmsInDuels
from likeset.answers.questions import Questions
from likeset.evidence.running import Running
from likeset.evidence.unknown_scale import evidence_of
from likeset.families.answers import nuisance
from likeset.families.canonical import canonical_form
from likeset.predictors import Mixture
from likeset.sets import LikelihoodSet
from likeset.voices.contrasts import Contrasts
from likeset.voices.duels import Duels
from likeset.voices.tilts import Tilts
from likeset.weights import Unweighted

if TYPE_CHECKING:
    from likeset.sequence import ConfidenceSequence


def set_of(sequence: ConfidenceSequence, running: Running) -> LikelihoodSet:
    """The set of everything in ``running``; later observations do not change it."""
    ledger, membership, basis = running.ledger, running.membership, running.basis
    gains = ledger.gains.copy()
    voices = VoiceTable.joint(len(gains)) if membership is None else membership.table
    # Where a scale is unknown, the voices that hear everything may have a numerator made for every scale.
    parts = membership.whole_and_part if membership is not None and nuisance(sequence.family) else None
    terms, gain = ledger.terms(), _gain_by_scale(sequence, running)
    heard = None if running.alarm is None else running.alarm.heard()
    if heard is not None:
        voices = heard.beside(voices, len(gains))
        if isinstance(terms, ScaleTerms):
            gain, parts = heard.beside_scales(gain, parts, terms, gains)
    evidence = evidence_of(
        ledger.groups(basis.dimension), terms, gains, voices, -log(sequence.alpha), sequence.space.bound, gain, parts
    )
    questions = None if membership is None else _questions(sequence, running, membership.table)
    return LikelihoodSet(
        sequence.space, basis, evidence, sequence.alpha, sequence.family.convex, len(ledger), questions,
        sequence.family, heard,
    )  # fmt: skip


def _gain_by_scale(sequence: ConfidenceSequence, running: Running) -> Gain | None:
    """What a numerator made for the test of every scale has earned: the default one, of all rows at full weight."""
    if type(sequence.predictor) is Mixture and type(sequence.weighting) is Unweighted:
        return running.forecaster.gain()  # type: ignore[attr-defined, no-any-return]
    return None


def _questions(sequence: ConfidenceSequence, running: Running, heard: VoiceTable) -> Questions | ArmsInDuels | None:
    """Announced questions, if there are any; ``heard`` are the voices that hear rows."""
    form, voices = canonical_form(sequence.family), sequence.voices
    if form is None:
        return None
    if isinstance(voices, Duels):
        return ArmsInDuels(voices, heard, form)
    if not isinstance(voices, Contrasts):
        return None
    directions = running.directions
    if isinstance(directions, Tilts):
        inside = running.basis.coordinates(sequence.space.covariates(voices.A, "A"))[0]
        return Questions(voices, directions.tilted(), heard, form, inside)
    return Questions(voices, None if directions is None else directions.measured(), heard, form)
