"""Many groups of Gaussian noise as few, once for all levels and scales: a million rows are read once in a look.

Kernels make few rows of many, too (:mod:`likeset._solver.quadratic.mixture`); but every e-value asks at many levels,
and where the scale is unknown there is one kernel for every scale that is looked at.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf

import numpy as np

from likeset._solver.problem import CurveTerms, MixtureSet, Terms, VoiceTable, is_quadratic
from likeset._solver.quadratic.mixture import Fewer, fewer_rows, is_cheap, reference
from likeset._typing import Array

MANY = 500  # groups; fewer are quick as they are


@dataclass(frozen=True)
class FewGroups:
    """Rows that stand for many, in the voices that they stood in."""

    fewer: Fewer

    def at(self, scale: float, log_shares: Array, threshold: float) -> MixtureSet | None:
        """The set with ``scale`` times the terms and gains, its level raised; None where that would cost too much."""
        small = self.fewer.small
        assert isinstance(small.terms, CurveTerms)
        target = replace(
            small, terms=small.terms.scaled(np.full(len(small.X), scale)), gains=scale * small.gains,
            voices=replace(small.voices, log_shares=log_shares), level=threshold,
        )  # fmt: skip
        cost = self.fewer.cost(target, scale)
        return replace(target, level=threshold + cost) if is_cheap(cost, threshold) else None


def few_groups(X: Array, terms: Terms, gains: Array, voices: VoiceTable, bound: float) -> FewGroups | None:
    """Few groups for many, whose rows are those of X; None where there are few, or where it is not worth while."""
    if len(gains) < MANY or len(voices.log_shares) < 2 or not isinstance(terms, CurveTerms) or not is_quadratic(terms):
        return None
    held = np.zeros(len(gains), dtype=bool)
    held[voices.members] = True
    number = np.cumsum(held) - 1
    table = VoiceTable(voices.starts, number[voices.members], np.zeros(len(voices.log_shares)))
    target = MixtureSet(np.ascontiguousarray(X[held]), terms.at(held), gains[held], table, inf, bound)
    fewer = fewer_rows(target, reference(target))
    return None if fewer is None else FewGroups(fewer)
