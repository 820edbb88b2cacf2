"""Many groups of Gaussian noise as few, once for all scales and levels: a million rows are read once in a look.

Kernels make few rows of many, too (:mod:`likeset._solver.quadratic.mixture`); but where the scale is unknown there is
one kernel for every scale that is looked at, and every e-value asks at many levels.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np

from likeset._solver.problem import CurveTerms, MixtureSet, VoiceTable, is_quadratic
from likeset._solver.quadratic.mixture import Fewer, fewer_rows, is_cheap, reference
from likeset._typing import Array
from likeset.evidence.evidence import Groups

MANY = 500  # groups; fewer are quick as they are


@dataclass(frozen=True)
class FewGroups:
    """Groups and terms of scale one; ``members`` of the voices, and what is free of theta in ``rest``."""

    fewer: Fewer
    groups: Groups
    members: VoiceTable

    def at(self, s: float, log_shares: Array, threshold: float) -> tuple[CurveTerms, Array, VoiceTable, float] | None:
        """Terms, gains, voices and the raised threshold at scale s; None where few groups would cost too much."""
        small = self.fewer.small
        assert isinstance(small.terms, CurveTerms)
        terms = small.terms.scaled(np.full(len(small.X), s))
        table = VoiceTable(self.members.starts, self.members.members, log_shares)
        target = MixtureSet(small.X, terms, s * small.gains, table, threshold, small.bound)
        cost = self.fewer.cost(target, s)
        return (terms, target.gains, table, threshold + cost) if is_cheap(cost, threshold) else None


def few_groups(groups: Groups, unit: object, rest: Array, table: VoiceTable, bound: float) -> FewGroups | None:
    """Few groups for many; None where there are few, or where they do not lie in the span of the basis."""
    if len(rest) < MANY or not isinstance(unit, CurveTerms) or not is_quadratic(unit) or groups.sticking_out.any():
        return None
    held = np.zeros(len(rest), dtype=bool)
    held[table.members] = True
    held &= unit.a > 0.0
    if not held[table.members].all():
        return None
    number = np.cumsum(held) - 1
    X = groups.rows[groups.owners[held]]
    target = MixtureSet(
        np.ascontiguousarray(X), unit.at(held), rest[held],
        VoiceTable(table.starts, number[table.members], np.zeros(len(table.log_shares))), inf, bound,
    )  # fmt: skip
    fewer = fewer_rows(target, reference(target))
    if fewer is None:
        return None
    small, count = fewer.small, len(fewer.small.X)
    made = Groups(small.X, small.X, np.zeros(count), np.arange(count))
    return FewGroups(fewer, made, small.voices)
