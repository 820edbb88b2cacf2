r"""Likelihood ratios, and tilts of them along one contrast: sums that are convex in theta, and such that are not.

M_k   likelihood ratios with their shares, sums of gain + a A(z) - s z over groups: convex in theta
D_u = c_u + sum_r [ u v_r s_r - a_r (A(z_r + u v_r) - A(z_r)) ]: not convex

A row's A may be that of z and an offset, A(z + o).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from math import inf

import numpy as np

from likeset._solver.evaluate import evaluate_terms, log_sum_exp
from likeset._solver.problem import CompiledTerms, CurveTerms, VoiceTable
from likeset._solver.voice_sums import group_pulls, voice_exponents
from likeset._typing import Array, IntArray
from likeset.compiling import REORDER, kernel
from likeset.curves import SOFTPLUS, Curve, curve_value, sigmoid
from likeset.elementwise import FAR, exp_parts, log_parts
from likeset.parts import worked_out


@dataclass(frozen=True)
class CurveSum:
    """sum_i c_i A(z_i + o_i): ``index`` the covariate of every part, ``shifts`` its o, ``factors`` its c."""

    index: IntArray
    shifts: Array
    factors: Array


@dataclass(frozen=True)
class Ratios:
    """The M_k: groups (rows of X by ``owners``) in voices."""

    X: Array
    owners: IntArray
    terms: CompiledTerms
    gains: Array
    voices: VoiceTable
    curve: Curve

    def at(self, theta: Array) -> tuple[Array, Array, float]:
        """Every M_k and its gradient, and what rounding goes by."""
        z = (self.X @ theta)[self.owners]
        value, first, _ = evaluate_terms(self.terms, z)
        voices = self.voices
        slopes = np.zeros((len(voices.log_shares), self.X.shape[1]))
        gather(voices.starts, voices.members, first, self.owners, self.X, slopes)
        sizes = float(np.abs(self.gains).sum() + np.abs(value).sum() + np.abs(first * z).sum())
        return voice_exponents(voices, self.gains + value), slopes, sizes

    @worked_out
    def _parts(self) -> tuple[IntArray, Array, Array]:
        """Group, offset and a of every part of a loss: rows with offsets that no sum absorbs."""
        assert not isinstance(self.terms, CurveTerms)
        return self.terms.owners, self.terms.shifts_or_zero, self.terms.weights

    def curved(self, shares: Array) -> CurveSum:
        """The part of sum_k shares_k M_k that bends."""
        pulls = group_pulls(self.voices, shares, len(self.gains))
        if isinstance(self.terms, CurveTerms):  # of one covariate: a sum
            factors = np.bincount(self.owners, pulls * self.terms.a, minlength=len(self.X)).astype(np.float64)
            return CurveSum(np.arange(len(self.X)), np.zeros(len(self.X)), factors)
        groups, shifts, a = self._parts
        return CurveSum(self.owners[groups], shifts, pulls[groups] * a)


@kernel()
def gather(starts: IntArray, members: IntArray, first: Array, owners: IntArray, X: Array, slopes: Array) -> None:
    """slopes[k] = sum of first_b x_b over the groups b of voice k."""
    for k in range(starts.shape[0] - 1):
        for i in range(starts[k], starts[k + 1]):
            b = members[i]
            row, slope = owners[b], first[b]
            for j in range(X.shape[1]):
                slopes[k, j] += slope * X[row, j]


@dataclass(frozen=True)
class Tilt:
    """The D_u of one contrast, u > 0 and -u: rows by number of covariate, ``tilts`` v, ``logs`` the c_u less the rows.

    ``silent`` is the log of what does not depend on theta.
    """

    index: IntArray
    a: Array
    s: Array
    shifts: Array
    tilts: Array
    effects: Array
    logs: Array
    silent: float

    def log_ratio(self, curve: Curve, z: Array, rounding: float) -> tuple[float, float]:
        """log of the sum over all u, and the least it can be where every D_u is off by ``rounding`` of its size.

        Far from the data the D_u that say nothing are the difference of enormous numbers: their size is no matter.
        """
        u = np.concatenate([self.effects, -self.effects])
        grown, sizes = np.zeros((2, len(self.effects))), np.zeros((2, len(self.effects)))
        at = z[self.index] + self.shifts
        with np.errstate(over="ignore", invalid="ignore"):
            tilted_sums(int(curve), self.a, at, self.tilts, self.effects, grown, sizes)
            values = np.tile(self.logs, 2) + u * float(self.tilts @ self.s) - grown.ravel()
        sizes = np.abs(u) * float(np.abs(self.tilts) @ (np.abs(self.s) + self.a)) + sizes.ravel()
        values, least = np.where(np.isnan(values), -inf, values), np.full(len(u), -inf)
        np.subtract(values, rounding * sizes, out=least, where=np.isfinite(values) & np.isfinite(sizes))
        found, lowered = log_sum_exp(np.array([np.append(values, self.silent), np.append(least, self.silent)]))
        return float(found), float(lowered)


@kernel(fastmath=REORDER)
def tilted_sums(curve: int, a: Array, z: Array, tilts: Array, effects: Array, grown: Array, sizes: Array) -> None:
    """Add a (A(z + h) - A(z)) of every row to ``grown``, and its size to ``sizes``: of h = u v, and of h = -u v.

    softplus: with p = A'(|h|'s side) nothing cancels in  log(1 + p (e^|h| - 1)),  mirrored where h < 0.
    """
    furthest = 0.0
    for k in range(effects.shape[0]):
        furthest = max(furthest, effects[k])
    for r in range(a.shape[0]):
        # first the one of u and -u whose h is positive
        up, v = (0, tilts[r]) if tilts[r] >= 0.0 else (1, -tilts[r])
        if curve == SOFTPLUS:
            if v * furthest <= FAR:
                p, q = sigmoid(z[r]), sigmoid(-z[r])
                for k in range(effects.shape[0]):
                    h = v * effects[k]
                    _, rest = exp_parts(h)
                    rise, _ = log_parts(p * (rest + h))
                    fall, _ = log_parts(q * (rest + h))
                    grown[up, k] += a[r] * rise
                    sizes[up, k] += a[r] * rise
                    grown[1 - up, k] += a[r] * (fall - h)
                    sizes[1 - up, k] += a[r] * (fall + h)
            else:
                base = curve_value(SOFTPLUS, z[r])
                for k in range(effects.shape[0]):
                    h = v * effects[k]
                    rise, fall = curve_value(SOFTPLUS, z[r] + h) - base, curve_value(SOFTPLUS, z[r] - h) - base
                    grown[up, k] += a[r] * rise
                    sizes[up, k] += a[r] * (rise + base)
                    grown[1 - up, k] += a[r] * fall
                    sizes[1 - up, k] += a[r] * (h + base)
        else:
            mass = a[r] * math.exp(z[r])
            for k in range(effects.shape[0]):
                h = v * effects[k]
                rise, fall = mass * math.expm1(h), mass * math.expm1(-h)
                grown[up, k] += rise
                sizes[up, k] += rise
                grown[1 - up, k] += fall
                sizes[1 - up, k] -= fall
