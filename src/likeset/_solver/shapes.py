r"""Weibull lifetimes of unknown shape p:  e^{z} t^p - e [z + log p + (p - 1) log t]  is convex in (z, p) together.

So sets in (theta, p) are convex; :mod:`~likeset._solver.search` has their bounds.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, inf, log
from typing import Any

import numpy as np

from likeset._solver.problem import CurveTerms
from likeset._typing import Array, IntArray
from likeset.arguments import positive
from likeset.curves import Curve
from likeset.errors import InvalidArgumentError


@dataclass(frozen=True)
class ShapeTerms:
    """-log p of Weibull lifetimes of every group:  sum_i w_i [ e^z t_i^p - e_i (z + log p + (p - c) log t_i) ].

    One entry per observation: ``owners`` its group, ``log_times``, ``events`` e_i, ``weights`` w_i. ``jacobian`` c is 1
    for densities of t and 0 for densities of log t. The shape p lies in [lo, hi].
    """

    owners: IntArray
    log_times: Array
    events: Array
    weights: Array
    count: int
    jacobian: float
    lo: float
    hi: float

    def at(self, p: float) -> tuple[CurveTerms, Array]:
        """phi_g at shape p, and the part of the log-density that is free of z."""
        a = self._summed(self.weights * np.exp(p * self.log_times))
        free = self.weights * self.events * (log(p) + (p - self.jacobian) * self.log_times)
        return CurveTerms(Curve.EXPONENTIAL, a, self._summed(self.weights * self.events)), self._summed(free)

    def derivatives(self, p: float, z: Array) -> tuple[Array, Array, Array]:
        """-log p of every group at z, one number each, and its first two derivatives in the shape."""
        u, e, w = self.log_times, self.events, self.weights
        with np.errstate(over="ignore", invalid="ignore"):
            mass = w * np.exp(p * u + z[self.owners])
            value = mass - w * e * (z[self.owners] + log(p) + (p - self.jacobian) * u)
            first = mass * u - w * e * (1.0 / p + u)
            second = mass * u * u + w * e / (p * p)
            return self._summed(value), self._summed(first), self._summed(second)

    def _summed(self, per_observation: Array) -> Array:
        return np.bincount(self.owners, per_observation, minlength=self.count).astype(np.float64)

    def likely(self, location: Array) -> float:
        """The p with the highest likelihood if z = p location at the groups; log p is pulled to zero a little."""
        v = self.log_times + location[self.owners]
        u, low, high = 0.0, log(self.lo), log(self.hi)
        u = min(max(u, low), high)
        for _ in range(60):
            p = exp(u)
            with np.errstate(over="ignore", invalid="ignore"):
                mass = self.weights * np.exp(np.minimum(p * v, 700.0))
                first = float((mass - self.weights * self.events) @ v) - float(self.weights @ self.events) / p
                bend = p * p * float(mass @ v**2) + p * float((mass - self.weights * self.events) @ v)
            slope = p * first + u
            low, high = (u, high) if slope < 0.0 else (low, u)
            new = u - slope / (bend + 1.0) if bend + 1.0 > 0.0 else inf
            new = new if low < new < high else 0.5 * (low + high)
            if abs(new - u) < 1e-6:
                break
            u = new
        return exp(u)

    def kindest(self, z: Array) -> Array:
        """The p of [lo, hi] with the highest likelihood for every row of z at the groups: Newton's method in log p."""
        of_rows, deaths = z[:, self.owners], float(self.weights @ self.events)
        line = float((self.weights * self.events) @ self.log_times)
        low, high = np.full(len(z), log(self.lo)), np.full(len(z), log(self.hi))
        u = np.clip(np.zeros(len(z)), low, high)
        for _ in range(80):
            p = np.exp(u)
            with np.errstate(over="ignore", invalid="ignore"):
                mass = self.weights * np.exp(p[:, None] * self.log_times + of_rows)
                first = (mass * self.log_times).sum(axis=1) - line - deaths / p  # in p
                second = (mass * self.log_times**2).sum(axis=1) + deaths / p**2
                slope, bend = p * first, p * p * second + p * first
            low, high = np.where(first < 0.0, u, low), np.where(first > 0.0, u, high)
            with np.errstate(divide="ignore", invalid="ignore"):
                new = u - slope / bend
            new = np.where((new > low) & (new < high) & (bend > 0.0), new, 0.5 * (low + high))
            done = np.abs(new - u) <= 1e-13 * (1.0 + np.abs(u))
            u = new
            if done.all():
                break
        return np.clip(np.exp(u), self.lo, self.hi)

    def checked(self, name: str, shape: Any) -> float:
        """A shape in the range, or a typed error."""
        number = positive(name, shape)
        if not self.lo <= number <= self.hi:
            raise InvalidArgumentError(name, shape, f"is outside [{self.lo:g}, {self.hi:g}]", "pass a possible value")
        return number
