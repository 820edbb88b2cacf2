r"""The free constants of the sub-exponential set, and how they are chosen before any data.

radius = sqrt(lambda) (B + k K) + [ d log 1/(1-k) + log(1/alpha) + log det(V / lambda) / 2 ] / (sqrt(lambda) k K)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from likeset.arguments import error_level, positive, positive_integer, real_number
from likeset.errors import InvalidArgumentError


@dataclass(frozen=True)
class SubExponentialConstants:
    """The four free numbers of the set: lambda, k, nu and the ball radius K = nu^2 / (gamma max|x|)."""

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
        """sqrt(lambda)(B + kK) + [d log 1/(1-k) + log(1/alpha) + log det(V / lambda) / 2] / (sqrt(lambda) k K)."""
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
    return _chosen(
        positive("nu", nu), positive("gamma", gamma), positive_integer("dimension", dimension),
        positive("bound", bound), error_level("alpha", alpha), positive("longest", longest),
        positive_integer("horizon", horizon),
    )  # fmt: skip


@cache
def _chosen(
    nu: float, gamma: float, dimension: int, bound: float, alpha: float, longest: float, horizon: int
) -> SubExponentialConstants:
    enlarged = nu * np.geomspace(1.0, 30.0, 40)[:, None, None]
    k = np.linspace(0.02, 0.9, 45)[:, None]
    penalty = np.geomspace(1e-4, 1e8, 121) / bound**2
    ball = enlarged**2 / (gamma * longest)
    spread = 0.5 * horizon * longest**2 / (dimension * enlarged**2)
    concentrated = 0.5 * horizon * longest**2 / enlarged**2 + spread
    log_determinant = (dimension - 1) * np.log1p(spread / penalty) + np.log1p(concentrated / penalty)
    width = _radius(penalty, k, ball, log_determinant, dimension, bound, alpha) / np.sqrt(concentrated + penalty)
    i, j, m = np.unravel_index(np.argmin(width), width.shape)
    return SubExponentialConstants(float(penalty[m]), float(k[j, 0]), float(enlarged[i, 0, 0]), float(ball[i, 0, 0]))


def _radius(penalty: Any, k: Any, ball: Any, log_determinant: Any, dimension: int, bound: float, alpha: float) -> Any:
    step = np.sqrt(penalty) * k * ball
    price = dimension * np.log(1 / (1 - k)) + np.log(1 / alpha) + 0.5 * log_determinant
    return np.sqrt(penalty) * bound + step + price / step
