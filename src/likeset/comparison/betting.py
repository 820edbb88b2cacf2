r"""Means of outcomes in [0, 1] by betting, without a model (Waudby-Smith and Ramdas 2023).

A gambler who doubts that the mean is m bets on every outcome, with stakes fixed before it comes:

    K+_t(m) = prod_s [1 + l_s (y_s - m)],  l_s <= c/m,          K-_t(m) = prod_s [1 - l_s (y_s - m)],  l_s <= c/(1 - m).

If E[y_s | past] = m, both are martingales, whatever else the law is, so { m : K+ and K- are below 2/alpha } covers m at
all times with probability 1 - alpha. K+ falls in m and K- rises: the set is an interval, found by bisection.

Stakes: the predictable plug-in  l_s = sqrt( 2 log(2/alpha) / (v_{s-1} s log(1 + s)) ),  v the regularised variance of
what came before, with c = 1/2.
"""

from __future__ import annotations

from math import log, sqrt
from typing import Any

import numpy as np

from likeset._typing import Array
from likeset.arguments import error_level, real_number
from likeset.errors import EmptySetError, InvalidArgumentError
from likeset.families.base import observation_vector, refuse

_CAP = 0.5
_STEPS = 60


class BettingMean:
    """A confidence sequence for the mean of outcomes in [0, 1] at one place: no model, no covariates.

    What it needs is that every outcome has the same mean given the past; what it gives up is everything that
    covariates and a likelihood share between places.

    >>> mean = BettingMean(alpha=0.05)
    >>> mean.update([0.2, 0.4, 0.3, 0.1] * 50)
    >>> low, high = mean.interval()
    >>> bool(0.15 < low < 0.25 < high < 0.35)
    True
    """

    name, provable, anytime = "betting", True, True
    assumptions, source = "y in [0, 1], E[y | past] constant", "Waudby-Smith and Ramdas (2023), section 4"

    def __init__(self, alpha: float = 0.05) -> None:
        self.alpha = error_level("alpha", alpha)
        self._y, self._stakes = np.zeros(0), np.zeros(0)
        self._sum, self._squares = 0.5, 0.25  # with one outcome at 1/2 and a variance of 1/4 thrown in

    def __repr__(self) -> str:
        return f"BettingMean(alpha={self.alpha:g}) with {self.n_observations} observations"

    @property
    def n_observations(self) -> int:
        """Number of outcomes seen."""
        return len(self._y)

    def update(self, y: Any) -> None:
        """Record outcomes in [0, 1], in order."""
        outcomes = observation_vector(y)
        refuse(outcomes, (outcomes < 0) | (outcomes > 1), "is outside [0, 1]", "scale outcomes to [0, 1] beforehand")
        total, squares, stakes = self._sum, self._squares, []
        for s, outcome in enumerate(outcomes.tolist(), start=self.n_observations + 1):
            stakes.append(sqrt(2.0 * log(2.0 / self.alpha) / (squares / s * s * log(1.0 + s))))
            total += outcome
            squares += (outcome - total / (s + 1.0)) ** 2
        self._y, self._stakes = np.concatenate([self._y, outcomes]), np.concatenate([self._stakes, stakes])
        self._sum, self._squares = total, squares

    def log_wealth(self, m: float) -> Array:
        """(log K+, log K-) against the mean m, a number in [0, 1]."""
        m = real_number("m", m)
        if not 0.0 <= m <= 1.0:
            raise InvalidArgumentError("m", m, "is outside [0, 1]", "pass a mean of outcomes in [0, 1]")
        with np.errstate(divide="ignore"):
            up = np.minimum(self._stakes, _CAP / m if m > 0 else np.inf)
            down = np.minimum(self._stakes, _CAP / (1.0 - m) if m < 1 else np.inf)
            gains = self._y - m
            return np.array([np.log1p(up * gains).sum(), np.log1p(np.maximum(-down * gains, -1.0)).sum()])

    def contains(self, mean: Any) -> bool:
        """Whether this mean is not refuted."""
        m = real_number("mean", mean)
        return 0.0 <= m <= 1.0 and bool((self.log_wealth(m) <= log(2.0 / self.alpha) + 1e-12).all())

    def interval(self) -> tuple[float, float]:
        """(low, high): all means that are not refuted, rounded outward."""
        threshold = log(2.0 / self.alpha)
        low = _crossing(lambda m: bool(self.log_wealth(m)[0] > threshold), 0.0, 1.0)
        high = _crossing(lambda m: bool(self.log_wealth(m)[1] > threshold), 1.0, 0.0)
        if low > high:
            raise EmptySetError(self.alpha)
        return low, high


def _crossing(refuted: Any, start: float, end: float) -> float:
    """The last point from ``start`` on, towards ``end``, at which what is refuted at the start still is (outward)."""
    if not refuted(start):
        return start
    for _ in range(_STEPS):
        middle = 0.5 * (start + end)
        start, end = (middle, end) if refuted(middle) else (start, middle)
    return start
