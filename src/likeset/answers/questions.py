"""Announced questions: which evidence answers which of them.

Simultaneous contrasts are voices in one average, and one set answers everything. Otherwise every announced question has
a set of its own, in which its voices stand beside the others, and the others alone answer whatever was not announced.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from likeset._solver.pairs import PairSet
from likeset._solver.problem import VoiceTable
from likeset._typing import Array, IntArray
from likeset.answers.duels import quieter
from likeset.evidence.directional import with_directions
from likeset.evidence.evidence import Evidence
from likeset.evidence.pairs import pair_set
from likeset.evidence.scale_voices import ScaleVoices
from likeset.evidence.tilted import with_tilts
from likeset.evidence.unknown_scale import AnyEvidence, ScaleEvidence
from likeset.evidence.unknown_shape import ShapeEvidence
from likeset.families.canonical import Canonical
from likeset.spaces.base import Space
from likeset.spaces.linear import Linear
from likeset.voices.contrasts import Contrasts
from likeset.voices.directions import Measured
from likeset.voices.tilts import Tilted

PARALLEL = 1e-12  # a question is an announced one if the cosine of the two is this close to one


@dataclass(frozen=True)
class Questions:
    """The contrasts announced, and what is known about them; ``measured`` is None for pairs of arms.

    ``heard``: the voices that hear rows, without an alarm, whose forecasts are of all rows; ``form``: the
    curve that pairs of arms go by; ``coordinates``: of the contrasts in the basis, where voices are tilts of rows.
    """

    contrasts: Contrasts
    measured: Measured | Tilted | None
    heard: VoiceTable
    form: Canonical
    coordinates: Array | None = None

    @property
    def one_set(self) -> bool:
        """Whether one set answers all questions."""
        return self.contrasts.simultaneous

    def of_all(self, others: AnyEvidence) -> AnyEvidence:
        """The evidence that ``contains`` and questions that were not announced go by."""
        if not self.contrasts.simultaneous:
            return others
        if self.measured is None:  # the rest is for the pairs
            return quieter(others, self.contrasts.share)
        return self._beside(others, self.measured, len(self.contrasts.A))

    def of_one(self, others: AnyEvidence, contrast: int) -> Evidence | ScaleVoices:
        """The evidence that one announced question has of its own."""
        assert self.measured is not None
        return self._beside(others, self.measured.only(contrast), 1)

    def _beside(self, others: AnyEvidence, measured: Measured | Tilted, count: int) -> Evidence | ScaleVoices:
        """The other voices, and those of ``count`` contrasts."""
        if isinstance(measured, Tilted):
            assert isinstance(others, Evidence) and self.coordinates is not None
            return with_tilts(others, measured, self.coordinates, self.form.curve, self.contrasts.share, count)
        if isinstance(others, Evidence):
            return with_directions(others, measured, self.contrasts.share, count)
        assert not isinstance(others, ShapeEvidence)
        several = others.voiced() if isinstance(others, ScaleEvidence) else others
        return several.with_directions(measured, self.contrasts.share, count)

    def asked(self, space: Space, X: Array, Y: Array | None = None) -> IntArray | None:
        """Which contrast x'theta (or x'theta - y'theta) is, row by row, -1 for none; None if one set answers all."""
        if self.contrasts.simultaneous or self.measured is None:
            return None
        return announced(self.contrasts, space, X, Y)

    @property
    def odds(self) -> float:
        """By how much a pair's ratio must be larger than 1/alpha: all pairs share the error level, or each has it."""
        return len(self.contrasts.A) / self.contrasts.share if self.contrasts.simultaneous else 1.0

    def pair(self, others: AnyEvidence, space: Space, x: Array, y: Array, lengths: Array) -> PairSet | None:
        """The set of the two linear predictors at x and y, if that pair of arms was announced."""
        contrasts = self.contrasts
        if self.measured is not None or contrasts.minus is None or not isinstance(others, Evidence):
            return None
        first, second = space.covariates(contrasts.A, "A"), space.covariates(contrasts.minus, "minus")
        hit = ((first == x) & (second == y)).all(axis=1) | ((first == y) & (second == x)).all(axis=1)
        if not hit.any():
            return None
        seen = others.groups.covariates
        at = [np.flatnonzero((seen == arm).all(axis=1)) for arm in (x, y)]
        arms = tuple(int(found[0]) if len(found) else None for found in at)
        evidence = replace(others, voices=self.heard)
        return pair_set(evidence, (arms[0], arms[1]), lengths, contrasts.share, self.odds, self.form)


def announced(contrasts: Contrasts, space: Space, X: Array, Y: Array | None = None) -> IntArray:
    """The contrast that x'theta, or x'theta - y'theta, is a multiple of, by number, for every row; -1 for none."""
    first = space.covariates(contrasts.A, "A")
    second = None if contrasts.minus is None else space.covariates(contrasts.minus, "minus")
    if isinstance(space, Linear):
        asked = X if Y is None else X - Y
        rows = first if second is None else first - second
        return _parallel(asked, rows)
    found = np.full(len(X), -1)
    if (Y is None) != (second is None):
        return found
    for j in range(len(first)):
        if Y is None or second is None:
            hit = (first[j] == X).all(axis=1)
        else:
            hit = ((first[j] == X) & (second[j] == Y)).all(axis=1)
            hit |= ((second[j] == X) & (first[j] == Y)).all(axis=1)
        found[hit & (found < 0)] = j
    return found


def _parallel(asked: Array, rows: Array) -> IntArray:
    """The first of ``rows`` that is a multiple of each row asked for, -1 if there is none."""
    lengths = np.linalg.norm(asked, axis=1)
    units = asked / np.where(lengths > 0.0, lengths, 1.0)[:, None]
    cosines = np.abs(units @ (rows / np.linalg.norm(rows, axis=1)[:, None]).T)
    best = np.argmax(cosines, axis=1)
    return np.where(cosines[np.arange(len(asked)), best] >= 1.0 - PARALLEL, best, -1)
