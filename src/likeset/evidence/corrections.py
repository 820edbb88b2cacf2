r"""Corrections of a model's mean, learnt as it goes: the same noise around z' instead of what the model believes.

    z' = m + u a'b,        a = (1)  or  (1, t, t^2),        t = m / r

    symbol   here
    m        what the model believes of z
    u        the unit of the noise, I(m)^-1/2
    r        root mean square of the m seen so far
    b        the correction, with a Gaussian belief N(mean, covariance) that takes one Newton step per observation

A constant correction finds an intercept that is missing, powers of the forecast a mean that is bent (Ramsey's RESET).
They are laws outside the model for the alarm: normalised, and fixed before y.
"""

from __future__ import annotations

from math import hypot, sqrt

import numpy as np

from likeset._typing import Array
from likeset.families.outside import Outside
from likeset.undo import Undo

PRIOR = 0.5  # deviation of b
SUREST = 1e12
LONGEST = 1.0  # step of a'b: one wild outcome must not send a correction away


class Correction:
    """One correction, running. Plain numbers: a few are too few for arrays."""

    def remember(self, undo: Undo) -> None:
        """Everything is replaced, nothing written into."""
        undo.keep(self)

    def log_density(self, law: Outside, y: Array, m: float, s: float) -> float:
        """log p(y | z') before, and then learn from y."""
        information = law.information(m)
        unit = 1.0 / sqrt(max(information, 1e-300))
        shift, wide = self._believed(m)
        z = m + unit * shift
        found = law.own(y, z, hypot(s, unit * sqrt(wide)))
        sure = min(unit * unit * law.information(z), SUREST)
        gain = 1.0 / (1.0 + sure * wide)
        longest = LONGEST / max(wide, 1e-300)
        step = min(max(gain * unit * law.slope(y, z), -longest), longest)
        self._learn(m, step, sure * gain)
        return found

    def state(self) -> Array:
        """As one array."""
        raise NotImplementedError

    def restore(self, state: Array) -> None:
        """The inverse of ``state``; ValueError if it is not one."""
        raise NotImplementedError

    def _believed(self, m: float) -> tuple[float, float]:
        """Mean and variance of a'b."""
        raise NotImplementedError

    def _learn(self, m: float, step: float, sure: float) -> None:
        """With v = covariance a for this m: mean += step v, covariance -= sure v v'."""
        raise NotImplementedError


class Shift(Correction):
    """A constant correction, a = (1)."""

    def __init__(self) -> None:
        self.mean, self.variance = 0.0, PRIOR**2
        self.square, self.count = 0.0, 0.0  # sum of m^2, and how many

    def _believed(self, m: float) -> tuple[float, float]:
        return self.mean, self.variance

    def _learn(self, m: float, step: float, sure: float) -> None:
        v = self.variance
        self.mean, self.variance = self.mean + step * v, v - sure * v * v
        self.square, self.count = self.square + m * m, self.count + 1.0

    def state(self) -> Array:
        """As one array."""
        return np.array([self.mean, self.variance, self.square, self.count])

    def restore(self, state: Array) -> None:
        """The inverse of ``state``; ValueError if it is not one."""
        self.mean, self.variance, self.square, self.count = _numbers(state, 4)


class Bend(Correction):
    """Powers of the forecast, a = (1, t, t^2)."""

    def __init__(self) -> None:
        self.mean = (0.0, 0.0, 0.0)
        self.covariance = PRIOR**2, 0.0, 0.0, 0.0, PRIOR**2, 0.0, 0.0, 0.0, PRIOR**2  # row after row
        self.square, self.count = 0.0, 0.0
        self._spread = (0.0, 0.0, 0.0)  # v, of the m that was asked for last

    def _believed(self, m: float) -> tuple[float, float]:
        typical = sqrt((self.square + m * m) / (self.count + 1.0))
        t = m / typical if typical > 0.0 else 0.0
        q = t * t
        c00, c01, c02, c10, c11, c12, c20, c21, c22 = self.covariance
        u, v, w = c00 + c01 * t + c02 * q, c10 + c11 * t + c12 * q, c20 + c21 * t + c22 * q
        self._spread = u, v, w
        b0, b1, b2 = self.mean
        return b0 + b1 * t + b2 * q, u + v * t + w * q

    def _learn(self, m: float, step: float, sure: float) -> None:
        u, v, w = self._spread
        b0, b1, b2 = self.mean
        self.mean = b0 + step * u, b1 + step * v, b2 + step * w
        c00, c01, c02, c10, c11, c12, c20, c21, c22 = self.covariance
        su, sv, sw = sure * u, sure * v, sure * w
        self.covariance = (
            c00 - su * u, c01 - su * v, c02 - su * w,
            c10 - sv * u, c11 - sv * v, c12 - sv * w,
            c20 - sw * u, c21 - sw * v, c22 - sw * w,
        )  # fmt: skip
        self.square, self.count = self.square + m * m, self.count + 1.0

    def state(self) -> Array:
        """As one array."""
        return np.array([*self.mean, *self.covariance, self.square, self.count])

    def restore(self, state: Array) -> None:
        """The inverse of ``state``; ValueError if it is not one."""
        numbers = _numbers(state, 14)
        self.mean, self.covariance = tuple(numbers[:3]), tuple(numbers[3:12])  # type: ignore[assignment]
        self.square, self.count = numbers[12:]


def _numbers(state: Array, count: int) -> list[float]:
    if state.shape != (count,) or not np.isfinite(state).all():
        raise ValueError("not a correction")
    return state.tolist()
