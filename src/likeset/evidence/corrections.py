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
    """One correction: ``powers`` is the number of features a. Plain numbers: three are too few for arrays."""

    def __init__(self, powers: int) -> None:
        self.mean = [0.0] * powers
        self.covariance = [[PRIOR**2 if i == j else 0.0 for j in range(powers)] for i in range(powers)]
        self.square, self.count = 0.0, 0.0  # sum of m^2, and how many

    def remember(self, undo: Undo) -> None:
        """Everything is replaced, nothing written into."""
        undo.keep(self)

    def log_density(self, law: Outside, y: Array, m: float, s: float) -> float:
        """log p(y | z') before, and then learn from y."""
        information = law.information(m)
        unit = 1.0 / sqrt(max(information, 1e-300))
        if len(self.mean) == 1:
            a = _ONE
        else:
            typical = sqrt((self.square + m * m) / (self.count + 1.0))
            t = m / typical if typical > 0.0 else 0.0
            a = [1.0, t, t * t]
        spread = [_dot(row, a) for row in self.covariance]
        wide = _dot(spread, a)
        z = m + unit * _dot(self.mean, a)
        found = law.own(y, z, hypot(s, unit * sqrt(wide)))
        sure = min(unit * unit * law.information(z), SUREST)
        gain = 1.0 / (1.0 + sure * wide)
        longest = LONGEST / max(wide, 1e-300)
        step = min(max(gain * unit * law.slope(y, z), -longest), longest)
        sure *= gain
        self.mean = [b + step * v for b, v in zip(self.mean, spread, strict=True)]
        self.covariance = [
            [c - sure * v * u for c, u in zip(row, spread, strict=True)]
            for row, v in zip(self.covariance, spread, strict=True)
        ]
        self.square, self.count = self.square + m * m, self.count + 1.0
        return found

    def state(self) -> Array:
        """As one array."""
        return np.array([*self.mean, *(c for row in self.covariance for c in row), self.square, self.count])

    def restore(self, state: Array) -> None:
        """The inverse of ``state``; ValueError if it is not one."""
        k = len(self.mean)
        if state.shape != (k + k * k + 2,) or not np.isfinite(state).all():
            raise ValueError("not a correction")
        self.mean = state[:k].tolist()
        self.covariance = state[k : k + k * k].reshape(k, k).tolist()
        self.square, self.count = float(state[-2]), float(state[-1])


_ONE = [1.0]


def _dot(u: list[float], v: list[float]) -> float:
    total = 0.0
    for a, b in zip(u, v, strict=True):
        total += a * b
    return total
