r"""Likelihood ratios, and tilts of them along one contrast: sums that are convex in theta, and such that are not.

M_k   likelihood ratios with their shares, sums of gain + a A(z) - s z over groups: convex in theta
D_u = c_u + sum_r [ u v_r s_r - a_r (A(z_r + u v_r) - A(z_r)) ]: not convex
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf

import numpy as np

from likeset._solver.evaluate import evaluate_terms, log_sum_exp
from likeset._solver.problem import CurveTerms, VoiceTable
from likeset._solver.voice_sums import group_pulls, voice_exponents
from likeset._typing import Array, IntArray
from likeset.curves import Curve, curve_derivatives

_POINTS = 9  # at which the second derivative of tilted softplus terms is computed on a range
_SOFTPLUS_FOURTH = 0.125  # the largest |A''''| of softplus


@dataclass(frozen=True)
class Ratios:
    """The M_k: groups (rows of X by ``owners``) in voices."""

    X: Array
    owners: IntArray
    terms: CurveTerms
    gains: Array
    voices: VoiceTable

    def at(self, theta: Array) -> tuple[Array, Array, Array, Array]:
        """Every M_k, its gradient, second derivatives of the groups' terms, and sizes that rounding goes by."""
        z = (self.X @ theta)[self.owners]
        value, first, second = evaluate_terms(self.terms, z)
        parts = self.gains + value
        voices = self.voices
        slopes = np.zeros((len(voices.log_shares), self.X.shape[1]))
        for k in range(len(slopes)):
            members = voices.members[voices.starts[k] : voices.starts[k + 1]]
            pulled = np.bincount(self.owners[members], first[members], minlength=len(self.X))
            slopes[k] = pulled @ self.X
        sizes = np.abs(self.gains) + np.abs(value) + np.abs(first * z)
        return voice_exponents(voices, parts), slopes, second, sizes

    def coefficients(self, shares: Array) -> Array:
        """sum_k shares_k a_g over the groups of every covariate: what A'' is multiplied by in Phi."""
        pulls = group_pulls(self.voices, shares, len(self.gains)) * self.terms.a
        return np.bincount(self.owners, pulls, minlength=len(self.X)).astype(np.float64)


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

    def quieter(self, nats: float) -> Tilt:
        """With so many nats less."""
        return replace(self, logs=self.logs - nats, silent=self.silent - nats) if nats else self

    def heights(self, curve: Curve, z: Array, u: Array, logs: Array) -> tuple[Array, Array, Array]:
        """Every D_u at the z of the covariates, A(z + h) - A(z) differentiated once (rows by u), and sizes."""
        at = z[self.index] + self.shifts
        h = self.tilts[:, None] * u
        with np.errstate(over="ignore", invalid="ignore"):
            if curve is Curve.EXPONENTIAL:
                growth = np.exp(at)[:, None] * np.expm1(h)
                first = growth
            else:
                # log(1 + (e^h - 1) A'(z)), mirrored where h < 0: nothing cancels.
                towards = np.where(h < 0.0, -at[:, None], at[:, None])
                growth = np.log1p(np.expm1(np.abs(h)) / (1.0 + np.exp(-towards))) + np.minimum(h, 0.0)
                far = np.logaddexp(0.0, at[:, None] + h) - np.logaddexp(0.0, at)[:, None]
                growth = np.where(np.isfinite(growth), growth, far)
                first = 1.0 / (1.0 + np.exp(-(at[:, None] + h))) - 1.0 / (1.0 + np.exp(-at))[:, None]
            pushed = u * float(self.tilts @ self.s)
            values = logs + pushed - self.a @ growth
        sizes = np.abs(u) * float(np.abs(self.tilts) @ np.abs(self.s)) + self.a @ (np.abs(growth) + np.abs(h))
        return np.where(np.isnan(values), -inf, values), first, sizes

    def log_ratio(self, curve: Curve, z: Array, rounding: float) -> tuple[float, float]:
        """log of the sum over all u, and the least it can be where every D_u is off by ``rounding`` of its size.

        Far from the data the D_u that say nothing are the difference of enormous numbers: their size is no matter.
        """
        u, logs = np.concatenate([self.effects, -self.effects]), np.tile(self.logs, 2)
        values, _, sizes = self.heights(curve, z, u, logs)
        least = np.full(len(u), -inf)
        np.subtract(values, rounding * sizes, out=least, where=np.isfinite(values) & np.isfinite(sizes))
        found, lowered = log_sum_exp(np.array([np.append(values, self.silent), np.append(least, self.silent)]))
        return float(found), float(lowered)

    def least_curvature(self, curve: Curve, low: Array, high: Array, u: Array, shares: Array) -> Array:
        """A lower bound of the second derivative of sum_u shares_u D_u along every covariate, z in [low, high]."""
        low, high = low[self.index] + self.shifts, high[self.index] + self.shifts
        h = self.tilts[:, None] * u
        if curve is Curve.EXPONENTIAL:
            bend = -np.expm1(h) @ shares
            found = bend * np.exp(np.where(bend > 0.0, low, high))
        else:
            found = np.full(len(low), inf)
            for part in np.linspace(0.0, 1.0, _POINTS):
                at = low + part * (high - low)
                here = curve_derivatives(curve, at)[1]
                there = curve_derivatives(curve, at[:, None] + h)[1] @ shares
                found = np.minimum(found, here * shares.sum() - there)
            # Between two points it is no steeper than |h| |A''''|.
            found -= _SOFTPLUS_FOURTH * (np.abs(h) @ shares) * (high - low) / (2 * (_POINTS - 1))
        return np.bincount(self.index, self.a * found).astype(np.float64)
