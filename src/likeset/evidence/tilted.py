r"""Evidence with directional voices that are not convex: exponential families with covariates.

    log R = log [ (1 - share) R_others + share / count sum_j R_j ],    R_j the voice of contrast j, one before it opens

The fields of :class:`Evidence` are those of (1 - share) R_others alone, at the same threshold: whoever asks for the
convex function gets a set that holds this one. ``log_ratio`` is that of the whole, and so are certified ends of the
contrasts (:mod:`likeset._solver.tilted`).
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from math import inf, log
from typing import ClassVar

import numpy as np

from likeset._solver import Kernel
from likeset._solver.evaluate import log_sum_exp
from likeset._solver.problem import CompiledTerms, VoiceTable
from likeset._solver.tilt_terms import Ratios, Tilt
from likeset._solver.tilted import TiltedKernel
from likeset._typing import Array
from likeset.curves import Curve
from likeset.evidence.evidence import ROUNDING, Evidence
from likeset.parts import worked_out
from likeset.voices.tilts import Tilted, effects


@dataclass(frozen=True)
class TiltedEvidence(Evidence):
    """The average of other voices and of the tilts of contrasts, whose coordinates are the rows of ``contrasts``.

    ``silent`` is the log of the share of contrasts whose voices are closed, ``curve`` that of the family.
    """

    tilted: Tilted
    contrasts: Array
    curve: Curve
    share: float
    silent: float
    convex: ClassVar[bool] = False

    @worked_out
    def _tilts(self) -> list[Tilt]:
        found, t = [], self.tilted
        for j in range(len(t.which)):
            u, masses = effects(t.lambdas[j])
            at_zero = 1.0 - 2.0 * float(np.exp(masses).sum())
            found.append(
                Tilt(t.index, t.a, t.s, t.shifts, np.ascontiguousarray(t.tilts[:, j]), u, masses + log(self.share),
                     log(self.share) + log(at_zero))
            )  # fmt: skip
        return found

    @property
    def others(self) -> Evidence:
        """The convex part: never above log R."""
        return Evidence(**{field.name: getattr(self, field.name) for field in fields(Evidence)})

    @worked_out
    def says_nothing(self) -> bool:
        """Whether log R is the same for every theta, and below the threshold."""
        return self.threshold == inf or (len(self.audible.members) == 0 and not len(self.tilted.index))

    def log_ratio(self, values: Array) -> Array:
        """log R of parameters with the z ``values`` at the covariates, one row each."""
        if len(self.gains) == 0:
            return np.zeros(len(values))
        others = super().log_ratio(values)
        return self._with_tilts(values, others, others)[0]

    def log_ratio_with_rounding(self, values: Array, norms: Array) -> tuple[Array, Array]:
        """log R of parameters with these z and norms, and how far off it may be."""
        if len(self.gains) == 0:
            return np.zeros(len(values)), np.zeros(len(values))
        others, rounding = super().log_ratio_with_rounding(values, norms)
        lowered, off = others.copy(), np.zeros(len(values))
        np.subtract(others, rounding, out=lowered, where=np.isfinite(others))
        found, least = self._with_tilts(values, others, lowered)
        np.subtract(found, least, out=off, where=np.isfinite(found))
        return found, off + 4 * ROUNDING

    def _with_tilts(self, values: Array, others: Array, least: Array) -> tuple[Array, Array]:
        """log R, and the least it can be, from both of the others."""
        found, lowered = others.copy(), least.copy()
        for i, z in enumerate(values):
            parts = np.array([tilt.log_ratio(self.curve, z, 4 * ROUNDING) for tilt in self._tilts]).reshape(-1, 2)
            for total, rest, own in ((found, others, parts[:, 0]), (lowered, least, parts[:, 1])):
                total[i] = float(log_sum_exp(np.array([rest[i], self.silent, *own])))
        return found, lowered

    @property
    def closed_form(self) -> bool:
        """Never."""
        return False

    @worked_out
    def kernel(self) -> Kernel:
        """What answers for extrema and emptiness."""
        others = self.others
        terms, groups = self.terms, self.groups
        if not isinstance(terms, CompiledTerms) or not len(self.tilted.index) or others.says_nothing:
            return others.kernel
        ratios = Ratios(groups.coordinates, groups.owners, terms, self.known_gains, self.audible, self.curve)
        return TiltedKernel(
            lambda level: replace(others, threshold=level).kernel, ratios, self.contrasts, self._tilts, self.threshold,
            self.bound, lambda points: self.log_ratio(points @ groups.coordinates.T),
        )  # fmt: skip

    def reweighted(self, weights: Array, threshold: float) -> Evidence:
        """One voice, in which every covariate counts with a weight: of the other voices."""
        return self.others.reweighted(weights, threshold)


def with_tilts(
    others: Evidence, tilted: Tilted, contrasts: Array, curve: Curve, share: float, count: int
) -> TiltedEvidence:
    """The average of ``others`` and of the voices of ``count`` contrasts, which have ``share`` of the error level."""
    voices = others.voices
    quieter = VoiceTable(voices.starts, voices.members, voices.log_shares + np.log1p(-share))
    closed = count - len(tilted.which)
    return TiltedEvidence(
        others.groups, others.terms, others.gains, quieter, others.threshold, others.bound, tilted,
        contrasts[tilted.which], curve, share / count, log(share * closed / count) if closed else -inf,
    )  # fmt: skip
