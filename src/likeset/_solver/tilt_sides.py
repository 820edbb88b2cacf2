r"""The tilts of one contrast that speak against one side of it: their values, gradients and curvatures in theta.

    D_u(theta) = c_u + sum_r [ u v_r s_r - a_r (A(z_r + h_ru) - A(z_r)) ],      h_ru = u v_r

    e^z           A(z + h) - A(z) = e^z (e^h - 1)
    log(1 + e^z)  A(z + h) - A(z) = log(1 + p (e^|h| - 1)) + min(h, 0),       p = A'(z) for h > 0 and A'(-z) for h < 0

All u have one sign, so a row is mirrored for all of them or for none. e^h - 1 is computed once, whatever theta is.
"""

from __future__ import annotations

from math import inf

import numpy as np

from likeset._solver.tilt_terms import Tilt
from likeset._typing import Array, IntArray
from likeset.compiling import REORDER, kernel
from likeset.curves import Curve
from likeset.elementwise import log_parts
from likeset.special import sigmoid

FURTHEST = 600.0  # the largest |h|: a u that is larger somewhere is left out, which makes R smaller
_FIFTH = 0.129  # the largest fifth derivative of softplus, in size


class Side:
    """The D_u of a tilt for u > 0, or for -u; ``logs`` are c_u and what does not depend on theta."""

    def __init__(self, tilt: Tilt, downwards: bool, curve: Curve, X: Array) -> None:
        furthest = float(np.abs(tilt.tilts).max(initial=0.0))
        near = tilt.effects * furthest <= FURTHEST
        effects = tilt.effects[near]
        self.curve, self.X, self.tilt, self.near = curve, X, tilt, near
        self.u = -effects if downwards else effects
        self.shifted = bool(tilt.shifts.any())
        v = tilt.tilts
        self.mirrored = curve is Curve.SOFTPLUS
        self.up = (v < 0.0) == downwards if self.mirrored else np.ones(len(v), dtype=bool)
        steps = v[:, None] * self.u
        self.growths = np.expm1(np.abs(steps) if self.mirrored else steps)
        pushed = float(v @ tilt.s)
        if self.mirrored:
            pushed -= float((tilt.a * v)[~self.up].sum())
        self.logs = tilt.logs[near] + self.u * pushed
        self.size = np.abs(self.u) * float(np.abs(v) @ (np.abs(tilt.s) + 2.0 * tilt.a))
        self.lengths = np.abs(v)

    def at(self, z: Array) -> tuple[Array, Array, Array]:
        """Every D_u at the z of the covariates, the gradients as rows, and sizes for rounding.

        Slopes of what is far below may be no numbers.
        """
        t, slopes = self.tilt, np.zeros((self.X.shape[1], len(self.u)))
        if self.mirrored:
            here, there = self._chances(z)
            grown = np.zeros(len(self.u))
            first = np.empty(len(self.u))
            softplus_tilts(t.a, here, there, self.up, self.growths, self.X, t.index, grown, slopes, first)
            values = self.logs - grown
        else:
            mass = t.a * np.exp(self._moved(z))
            values = self.logs - mass @ self.growths
            slopes = -(self.X[t.index] * mass[:, None]).T @ self.growths
            grown = mass @ np.abs(self.growths)
        return np.where(np.isnan(values), -inf, values), slopes.T, self.size + grown

    def bends(self, z: Array, shares: Array) -> tuple[Array, Array, Array]:
        """Second and third derivatives of sum_u shares_u D_u along every covariate, and a bound of the fourth in size.

        For e^z, where the second one says all, the others are zeros.
        """
        t, count = self.tilt, len(self.X)
        chosen = shares > 0.0
        if not self.mirrored:
            second = -t.a * np.exp(self._moved(z)) * (self.growths[:, chosen] @ shares[chosen])
            return _per_covariate(t.index, second, count), np.zeros(count), np.zeros(count)
        here, there = self._chances(z)
        second, third = np.empty(len(here)), np.empty(len(here))
        softplus_bends(here, there, self.up, self.growths, shares, second, third)
        fourth = _FIFTH * t.a * self.lengths * float(np.abs(self.u) @ shares)
        return (
            _per_covariate(t.index, t.a * second, count), _per_covariate(t.index, t.a * third, count),
            _per_covariate(t.index, fourth, count),
        )  # fmt: skip

    def _moved(self, z: Array) -> Array:
        return z[self.tilt.index] + self.tilt.shifts if self.shifted else z[self.tilt.index]

    def _chances(self, z: Array) -> tuple[Array, Array]:
        """A'(z) and A'(-z), in this order for rows that are not mirrored."""
        at = self._moved(z)
        at = np.where(self.up, at, -at)
        return sigmoid(at), sigmoid(-at)


def _per_covariate(index: IntArray, values: Array, count: int) -> Array:
    return np.bincount(index, values, minlength=count).astype(np.float64)


@kernel(fastmath=REORDER)
def softplus_tilts(
    a: Array, here: Array, there: Array, up: Array, growths: Array, X: Array, index: IntArray, grown: Array,
    slopes: Array, first: Array,
) -> None:  # fmt: skip
    """Add a (A(z + h) - A(z)) of every row, without min(h, 0), to ``grown``; less its gradient to ``slopes``."""
    for r in range(a.shape[0]):
        p = here[r]
        pull = -a[r] * p * there[r]
        if not up[r]:
            pull = -pull
        for k in range(grown.shape[0]):
            y = p * growths[r, k]
            logarithm, _ = log_parts(y)
            grown[k] += a[r] * logarithm
            first[k] = pull * growths[r, k] / (1.0 + y)
        for j in range(slopes.shape[0]):
            x = X[index[r], j]
            for k in range(grown.shape[0]):
                slopes[j, k] += x * first[k]


@kernel(fastmath=REORDER)
def softplus_bends(
    here: Array, there: Array, up: Array, growths: Array, shares: Array, second: Array, third: Array
) -> None:
    """Second and third derivative of -sum_u shares_u (A(z + h) - A(z)) of every row.

    With E = e^|h| - 1, p = A'(z), q = 1 - p and D = 1 + p E:  A''(z + h) = p q (1 + E) / D^2 and
    A'''(z + h) = A''(z + h) (q - p (1 + E)) / D.
    """
    for r in range(here.shape[0]):
        p, q = here[r], there[r]
        bend, turn, total = 0.0, 0.0, 0.0
        for k in range(shares.shape[0]):
            growth = growths[r, k]
            inverse = 1.0 / (1.0 + p * growth)
            part = shares[k] * ((1.0 + growth) * inverse * inverse)
            bend += part
            turn += part * ((q - p * (1.0 + growth)) * inverse)
            total += shares[k]
        second[r] = p * q * (total - bend)
        third[r] = p * q * (total * (q - p) - turn)
        if not up[r]:
            third[r] = -third[r]
