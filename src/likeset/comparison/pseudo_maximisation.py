r"""The free constants of the sub-exponential set, and how they are chosen before any data.

    radius = sqrt(lambda) B + min over 0 < r <= sqrt(lambda) k K of  r/2 + price / r
    price  = d log 1/(1-k) + log(1/alpha) + log det(V / lambda) / 2

The proof of the paper's Proposition 3 bounds x'S - x'Vx / 2 by the price, at all times at once and for all |x| <= k K;
x = r V^-1 S / |S|_{V^-1} has |x| <= r / sqrt(lambda), whence |S|_{V^-1} r - r^2/2 <= price for every r up to
sqrt(lambda) k K. The best r is sqrt(2 price), or the largest one. (The paper takes the largest and loses the 1/2.)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from likeset.arguments import error_level, positive, positive_integer, real_number
from likeset.comparison.tails import Tails
from likeset.errors import InvalidArgumentError


@dataclass(frozen=True)
class SubExponentialConstants:
    """The four free numbers of the set: lambda, k, nu and the ball radius K <= nu^2 / (gamma max|x|)."""

    penalty: float
    k: float
    nu: float
    ball: float

    def __post_init__(self) -> None:
        for name in ("penalty", "k", "nu", "ball"):
            object.__setattr__(self, name, positive(name, getattr(self, name)))  # frozen, and floats from here on
        if self.k >= 1:
            raise InvalidArgumentError("k", self.k, "is not between 0 and 1", "use choose_constants")

    def radius(self, log_determinant: float, dimension: int, bound: float, alpha: float) -> float:
        """The radius above; ``log_determinant`` is log det(V / lambda)."""
        if not 0.0 <= (number := real_number("log_determinant", log_determinant)) < np.inf:
            raise InvalidArgumentError(
                "log_determinant", log_determinant, "is not log det >= 0", "pass log det(V / penalty)"
            )
        dimension, bound = positive_integer("dimension", dimension), positive("bound", bound)
        return float(_radius(self.penalty, self.k, self.ball, number, dimension, bound, error_level("alpha", alpha)))


def choose_constants(
    nu: float, gamma: float, dimension: int, bound: float, alpha: float, longest: float = 1.0, horizon: int = 200
) -> SubExponentialConstants:
    """The constants with the narrowest band after ``horizon`` observations: half at one x, half spread over all d.

    The band at that x is radius * |x| / sqrt(eigenvalue + lambda). Nothing here looks at data. A larger nu than the
    noise needs is allowed, and enlarges K. Found on a grid, as the problem has no closed form.
    """
    tails = Tails(positive("nu", nu), 1 / positive("gamma", gamma))
    return constants_for(tails, dimension, bound, alpha, longest, horizon)


def constants_for(
    tails: Tails, dimension: int, bound: float, alpha: float, longest: float = 1.0, horizon: int = 200
) -> SubExponentialConstants:
    """The same for noise whose tails are known: each nu comes with the smallest gamma that it allows."""
    return _chosen(
        tails, positive_integer("dimension", dimension), positive("bound", bound), error_level("alpha", alpha),
        positive("longest", longest), positive_integer("horizon", horizon),
    )  # fmt: skip


@cache
def _chosen(
    tails: Tails, dimension: int, bound: float, alpha: float, longest: float, horizon: int
) -> SubExponentialConstants:
    least = 1.0 if tails.log_mgf is None else 1.01
    nu = tails.deviation * np.geomspace(least, 30.0, 60)[:, None, None]
    k = np.linspace(0.02, 0.9, 45)[:, None]
    penalty = np.geomspace(1e-4, 1e8, 121) / bound**2
    ball = nu**2 * tails.reach(nu) / longest
    spread = 0.5 * horizon * longest**2 / (dimension * nu**2)
    concentrated = 0.5 * horizon * longest**2 / nu**2 + spread
    log_determinant = (dimension - 1) * np.log1p(spread / penalty) + np.log1p(concentrated / penalty)
    width = _radius(penalty, k, ball, log_determinant, dimension, bound, alpha) / np.sqrt(concentrated + penalty)
    i, j, m = np.unravel_index(np.argmin(width), width.shape)
    return SubExponentialConstants(float(penalty[m]), float(k[j, 0]), float(nu[i, 0, 0]), float(ball[i, 0, 0]))


def _radius(penalty: Any, k: Any, ball: Any, log_determinant: Any, dimension: int, bound: float, alpha: float) -> Any:
    price = dimension * np.log(1 / (1 - k)) + np.log(1 / alpha) + 0.5 * log_determinant
    step = np.minimum(np.sqrt(penalty) * k * ball, np.sqrt(2 * price))
    return np.sqrt(penalty) * bound + step / 2 + price / step
