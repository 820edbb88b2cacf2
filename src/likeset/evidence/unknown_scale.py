r"""Evidence where the scale of the noise is unknown: the set lives in (theta, scale), and answers are its projection.

    log R(theta, s) = s F(theta) + G(s),        log R(theta) = min over s of log R(theta, s),       s = scale^-k

    symbol    here
    F         the terms of scale one, ``terms.unit``, and what is free of theta, ``terms.rest``
    G         ``gain``: what the numerator has earned, less M log s (:mod:`likeset._solver.nuisance`)

Since log R(theta) grows with F(theta), the set is { F <= F* } cut with Theta: the kernels of known scales serve it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf
from typing import Any, TypeAlias

import numpy as np

from likeset._solver import Kernel
from likeset._solver.evaluate import reweighted, values_and_slopes
from likeset._solver.nuisance import FURTHEST, Gain, PlainGain, ScaleTerms, largest, plausible, projected
from likeset._solver.problem import Terms, VoiceTable
from likeset._solver.shapes import ShapeTerms
from likeset._typing import EPS, Array
from likeset.evidence.evidence import ROUNDING, Evidence, Groups
from likeset.evidence.judging import Judging
from likeset.evidence.noiseless import fits_without_noise
from likeset.evidence.scale_voices import ScaleVoices
from likeset.evidence.unknown_shape import ShapeEvidence
from likeset.parts import worked_out


def evidence_of(
    groups: Groups,
    terms: Terms | ScaleTerms | ShapeTerms,
    gains: Array,
    voices: VoiceTable,
    threshold: float,
    bound: float,
    gain: Gain | None = None,
    parts: tuple[VoiceTable, float] | None = None,
) -> AnyEvidence:
    """What the data say; ``gain`` is that of a numerator made for every scale, where there is one.

    ``parts``: the voices that may miss something, and the log share of those that hear everything.
    """
    if isinstance(terms, ScaleTerms):
        if parts is None or not len(parts[0].log_shares):
            return ScaleEvidence(groups, terms, gains, threshold, bound, gain)
        return ScaleVoices(groups, terms, gains, parts[0], parts[1], gain, threshold, bound)
    if isinstance(terms, ShapeTerms):
        return ShapeEvidence(groups, terms, gains, voices, threshold, bound)
    return Evidence(groups, terms, gains, voices, threshold, bound)


AnyEvidence: TypeAlias = "Evidence | ScaleEvidence | ScaleVoices | ShapeEvidence"


@dataclass(frozen=True)
class ScaleEvidence(Judging):
    """log R as a function of theta and the scale; C = { theta in Theta : min over scales of log R <= threshold }.

    ``gains`` are what forecasts that know no scale have earned, sum w log q of every group. They count where there is
    no ``own_gain``.
    """

    groups: Groups
    terms: ScaleTerms
    gains: Array
    threshold: float
    bound: float
    own_gain: Gain | None = None

    @worked_out
    def gain(self) -> Gain:
        """G."""
        if self.own_gain is not None:
            return self.own_gain
        return PlainGain(float((self.gains + self.terms.constants).sum()), float(self.terms.counts.sum()))

    @worked_out
    def says_nothing(self) -> bool:
        """Whether log R is the same for every theta, and below the threshold."""
        return not self.terms.counts.any() or bool(np.isneginf(self.gains).any()) or self.threshold == inf

    # -- one parameter ------------------------------------------------------------------------------------------

    def log_ratio(self, values: Array, scale: float | None = None) -> Array:
        """log R of parameters with the z ``values`` at the covariates, one row each; for one scale, or the least."""
        if not self.terms.counts.any():
            return np.zeros(len(values))
        if np.isneginf(self.gains).any():
            return np.full(len(values), -inf)
        return self._ratio(self._losses(values)[0].sum(axis=1), scale)[0]

    def contributions(self, values: Array) -> Array:
        """What every group adds to log R at the scale that is kindest to theta; the numerator by number of rows."""
        losses = self._losses(values)[0]
        if self.says_nothing:
            return np.zeros_like(losses)
        _, t = self._ratio(losses.sum(axis=1), None)
        share = self.terms.counts / self.terms.counts.sum()
        return np.exp(t)[:, None] * losses + self.gain.derivatives(t)[0][:, None] * share

    def log_ratio_with_rounding(self, values: Array, norms: Array, scale: float | None = None) -> tuple[Array, Array]:
        """log R of parameters with these z and norms, and how far off it may be."""
        if self.says_nothing:
            return self.log_ratio(values, scale), np.zeros(len(values))
        losses, slopes = self._losses(values)
        ratio, t = self._ratio(losses.sum(axis=1), scale)
        reach = norms[:, None] * self.groups.spread(np.linalg.norm(self.groups.coordinates, axis=1))
        with np.errstate(over="ignore"):  # at scale zero
            sizes = np.exp(t) * (np.abs(losses) + 2.0 * self.terms.rest + slopes * reach).sum(axis=1)
        sizes += np.array([self.gain.size(float(at)) for at in t])
        return ratio, 4 * ROUNDING * (1.0 + sizes)

    @property
    def level_sets(self) -> Evidence:
        """A convex function of theta with the same level sets: F, less what is free of theta."""
        return self._level_set

    def nats(self, heights: Array) -> Array:
        """log R where the function of ``level_sets`` has these values."""
        return self._projected(np.maximum(heights + self.terms.rest.sum(), 0.0))[0]

    def height_of_a_nat(self, height: float) -> float:
        """By how much that function grows, about, where log R grows by one."""
        t = projected(self.gain, np.array([max(height + float(self.terms.rest.sum()), 0.0)]), self.terms.range)[1]
        return float(np.exp(-t[0]))

    @worked_out
    def size(self) -> float:
        """What the rounding of log R is proportional to."""
        return self.gain.size(self._largest[1])

    # -- all of them --------------------------------------------------------------------------------------------

    @worked_out
    def _largest(self) -> tuple[float, float]:
        """F* and the log s where it is attained."""
        return largest(self.gain, self.threshold, self.terms.range)

    @worked_out
    def _level_set(self) -> Evidence:
        """The projected set, as evidence of scale one: terms without gains, and F* as the threshold."""
        rest = float(self.terms.rest.sum())
        level = inf if self.says_nothing else self._largest[0]
        if self.terms.lo == 0.0:
            level = max(level, 0.0)  # a theta that explains every outcome needs no noise
        if level < inf:
            level += 64 * EPS * (abs(level) + rest) - rest
        joint = VoiceTable.joint(len(self.gains))
        return Evidence(self.groups, self.terms.unit, np.zeros(len(self.gains)), joint, level, self.bound)

    @worked_out
    def charge(self) -> float:
        """Nats by which bounds raise the threshold, because covariates were merged to numerical rank."""
        found = 0.0 if self.says_nothing else self._level_set.charge
        return found * float(np.exp(self._largest[1])) if found else 0.0

    @worked_out
    def kernel(self) -> Kernel:
        """What answers for extrema and emptiness."""
        return self._level_set.kernel

    def interval_of_scale(self) -> tuple[float, float] | None:
        """The least and the largest scale that some theta makes plausible; None if there is none."""
        low, high = self.terms.range
        if self.says_nothing:
            return self.terms.scale(high), self.terms.scale(low)
        kernel: Any = self.kernel
        if kernel.status == "empty":
            return None
        found = plausible(self.gain, least_loss(kernel, self.terms), self.threshold, (low, high))
        if found is None:
            return (0.0, 0.0) if self.terms.lo == 0.0 else None
        return self.terms.scale(found[1]), self.terms.scale(found[0])

    @property
    def fits_without_noise(self) -> bool:
        """Whether some theta explains all outcomes, and these are more than it has coordinates."""
        return fits_without_noise(self.groups, self.terms, self.bound)

    def voiced(self) -> ScaleVoices:
        """The same as one voice of several, which others may stand beside."""
        nothing = np.zeros(0, dtype=np.int64)
        none = VoiceTable(np.zeros(1, dtype=np.int64), nothing, np.zeros(0))
        return ScaleVoices(self.groups, self.terms, self.gains, none, 0.0, self.own_gain, self.threshold, self.bound)

    def reweighted(self, weights: Array, threshold: float) -> ScaleEvidence:
        """Every covariate counts with a weight v in [0, 1]; by forecasts that know no scale."""
        v = self.groups.spread(weights)
        terms = replace(
            self.terms, unit=reweighted(self.terms.unit, v), rest=v * self.terms.rest, counts=v * self.terms.counts,
            constants=v * self.terms.constants,
        )  # fmt: skip
        gains = np.where(v > 0, v * np.where(v > 0, self.gains, 0.0), 0.0)
        return replace(self, terms=terms, gains=gains, threshold=threshold, own_gain=None)

    def _losses(self, values: Array) -> tuple[Array, Array]:
        """F of every group, which is not negative, and how steep it is at most."""
        losses, slopes = values_and_slopes(self.terms.unit, self.groups.spread(values))
        return np.maximum(losses + self.terms.rest, 0.0), slopes

    def _ratio(self, F: Array, scale: float | None) -> tuple[Array, Array]:
        """log R and the log s it belongs to."""
        if scale is None:
            return self._projected(F)
        t = np.full(len(F), self.terms.log_s(scale))
        return F * np.exp(t) + self.gain.derivatives(t)[0], t

    def _projected(self, F: Array) -> tuple[Array, Array]:
        """min over s of log R; -inf at scale zero, where that is possible, of what explains every outcome."""
        found, t = projected(self.gain, F, self.terms.range)
        if self.terms.lo == 0.0:
            found, t = np.where(F == 0.0, -inf, found), np.where(F == 0.0, FURTHEST, t)
        return found, t


def least_loss(kernel: Any, terms: ScaleTerms) -> float:
    """A lower bound of F over Theta; zero where the kernel knows none."""
    lower = float(getattr(kernel, "minimum_bound", -inf))
    rest = float(terms.rest.sum())
    found = lower + rest - 64 * EPS * (abs(lower) + rest)
    return max(found, 0.0) if found == found else 0.0
