r"""Evidence where the shape of a law of lifetimes is unknown: the set lives in (theta, p), answers are its projection.

    log R(theta, p) = log sum_k pi_k exp sum_{g in voice k} [ log q_g + phi_g(x_g'theta; p) ],
    log R(theta)    = min over p of log R(theta, p)

At a fixed p this is the :class:`~likeset.evidence.evidence.Evidence` of a known shape. phi is convex in (theta, p)
together, hence so is the log-sum-exp, and bounds are maxima over p (:mod:`likeset._solver.search`). The numerator, a
blend over shapes, does not depend on the one that is tested.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import inf
from typing import Any, ClassVar

import numpy as np

from likeset._solver.evaluate import log_sum_exp
from likeset._solver.problem import Kernel, VoiceTable
from likeset._solver.search import SearchKernel
from likeset._solver.shapes import ShapeTerms
from likeset._solver.voice_sums import voice_exponents
from likeset._typing import Array
from likeset.evidence.evidence import Evidence, Groups, depth_of
from likeset.evidence.own_levels import OwnLevels
from likeset.parts import worked_out

_NEWTON = 80


@dataclass(frozen=True)
class ShapeEvidence(OwnLevels):
    """log R as a function of theta and the shape; ``gains`` are sum w log q of every group."""

    groups: Groups
    terms: ShapeTerms
    gains: Array
    voices: VoiceTable
    threshold: float
    bound: float
    convex: ClassVar[bool] = True  # in theta, once the shape is projected out
    _made: dict[float, Evidence] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"_made": {}}

    def at(self, p: float) -> Evidence:
        """The evidence at one shape."""
        if p not in self._made:
            terms, free = self.terms.at(p)
            self._made[p] = Evidence(self.groups, terms, self.gains - free, self.voices, self.threshold, self.bound)
        return self._made[p]

    @worked_out
    def says_nothing(self) -> bool:
        """Whether log R is the same for every theta, and below the threshold."""
        return not self.terms.weights.any() or self.at(self.terms.lo).says_nothing

    def log_ratio(self, values: Array, shape: float | None = None) -> Array:
        """log R of parameters with the z ``values`` at the covariates, one row each; for one shape, or the least."""
        if not self.terms.weights.any():
            return np.zeros(len(values))
        found = [self.at(p).log_ratio(values[i : i + 1])[0] for i, p in enumerate(self._shapes(values, shape))]
        return np.array(found)

    def contributions(self, values: Array) -> Array:
        """What every group adds to log R at the shape that is kindest to theta."""
        if not self.terms.weights.any():
            return np.zeros((len(values), len(self.gains)))
        shapes = self._shapes(values, None)
        return np.concatenate([self.at(p).contributions(values[i : i + 1]) for i, p in enumerate(shapes)])

    def log_ratio_with_rounding(self, values: Array, norms: Array, shape: float | None = None) -> tuple[Array, Array]:
        """log R of parameters with these z and norms, and how far off it may be."""
        if self.says_nothing:
            return self.log_ratio(values, shape), np.zeros(len(values))
        found = [
            self.at(p).log_ratio_with_rounding(values[i : i + 1], norms[i : i + 1])
            for i, p in enumerate(self._shapes(values, shape))
        ]
        return np.concatenate([pair[0] for pair in found]), np.concatenate([pair[1] for pair in found])

    @worked_out
    def size(self) -> float:
        """What the rounding of log R is proportional to."""
        return self.at(float(self._shapes(self._origin, None)[0])).size if len(self.gains) else 0.0

    @worked_out
    def charge(self) -> float:
        """Nats by which bounds raise the threshold, because covariates were merged to numerical rank."""
        return 0.0 if self.says_nothing else self.at(float(self._shapes(self._origin, None)[0])).charge

    @worked_out
    def kernel(self) -> Kernel:
        """What answers for extrema and emptiness."""
        if self.says_nothing:
            return self.at(self.terms.lo).kernel if len(self.gains) else replace(self, threshold=inf).at(1.0).kernel
        start = float(self._shapes(self._origin, None)[0])
        return SearchKernel(
            lambda p: self.at(p).kernel, lambda p: depth_of(self.at(p)), self.terms.lo, self.terms.hi, start, self.bound
        )  # fmt: skip

    def interval_of_scale(self) -> tuple[float, float] | None:
        """The least and the largest shape that some theta makes plausible; None if there is none."""
        if self.says_nothing:
            return self.terms.lo, self.terms.hi
        kernel = self.kernel
        assert isinstance(kernel, SearchKernel)
        return None if kernel.status == "empty" else kernel.interval

    def reweighted(self, weights: Array, threshold: float) -> ShapeEvidence:
        """Every covariate counts with a weight v in [0, 1]."""
        v = self.groups.spread(weights)
        terms = replace(self.terms, weights=self.terms.weights * v[self.terms.owners])
        gains = np.where(v > 0, v * np.where(v > 0, self.gains, 0.0), 0.0)
        return ShapeEvidence(self.groups, terms, gains, VoiceTable.joint(len(gains)), threshold, self.bound)

    @property
    def _origin(self) -> Array:
        return np.zeros((1, len(self.groups.covariates)))

    def _shapes(self, values: Array, shape: float | None) -> Array:
        """The shape to ask about for every row of z."""
        if shape is not None:
            return np.full(len(values), shape)
        z, audible = self.groups.spread(values), self.at(self.terms.lo).audible
        if len(audible.log_shares) <= 1:
            return self.terms.kindest(z)
        return np.array([self._kindest(row, audible) for row in z])

    def _kindest(self, z: Array, voices: VoiceTable) -> float:
        """Where log R is least for z at the groups: convex in p, by Newton's method between brackets."""
        gains = np.where(np.isneginf(self.gains), 0.0, self.gains)
        low, high = self.terms.lo, self.terms.hi
        p = float(self.terms.kindest(z[None])[0])
        bare = VoiceTable(voices.starts, voices.members, np.zeros(len(voices.log_shares)))
        for _ in range(_NEWTON):
            value, first, second = self.terms.derivatives(p, z)
            with np.errstate(over="ignore", invalid="ignore"):
                exponents = voices.log_shares + voice_exponents(bare, gains + value)
                first, second = voice_exponents(bare, np.stack([first, second]))
                shares = np.exp(exponents - float(log_sum_exp(exponents)))
                slope = float(shares @ first)
                bend = float(shares @ (second + (first - slope) ** 2))
            slope = slope if slope == slope else inf
            low, high = (p, high) if slope < 0.0 else (low, p)
            new = p - slope / bend if 0.0 < bend < inf else inf
            new = new if low < new < high else 0.5 * (low + high)
            if slope == 0.0 or abs(new - p) <= 1e-12 * p:
                break
            p = new
        return p
