r"""The reward of an arm: any monotone function g of its linear predictor z = x'theta.

Bounds of z are bounds of g(z): an increasing g keeps their order, a decreasing one exchanges them. Which arm looks best
depends on the direction of g only, so policies compare *scores*, z or -z, and show rewards.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from likeset.bandits.protocols import Array
from likeset.errors import InvalidArgumentError

_PROBES = np.linspace(-8.0, 8.0, 65)  # where a function of the user's own is looked at to see its direction


@dataclass(frozen=True)
class Reward:
    """A monotone function of z, and its direction.

    >>> Reward(np.exp, increasing=True).bounds(np.array([0.0]), np.array([1.0]))
    (array([1.]), array([2.71828183]))
    """

    function: Callable[[Array], Array]
    increasing: bool = True

    @property
    def sign(self) -> float:
        """+1 for increasing rewards, -1 for decreasing ones; the score of an arm is sign * z."""
        return 1.0 if self.increasing else -1.0

    @property
    def counts_scores(self) -> bool:
        """Whether rewards are the scores themselves, so that differences of one are differences of the other."""
        return self.function is _itself or self.function is _negative

    def __call__(self, z: Any) -> Array:
        """g(z)."""
        with np.errstate(over="ignore"):
            return np.asarray(self.function(np.asarray(z, dtype=np.float64)), dtype=np.float64)

    def bounds(self, lower: Array, upper: Array) -> tuple[Array, Array]:
        """Bounds of the reward from bounds of z."""
        return (self(lower), self(upper)) if self.increasing else (self(upper), self(lower))

    def of_scores(self, scores: Array) -> Array:
        """Rewards from scores."""
        return self(self.sign * scores)

    def score_bounds(self, lower: Array, upper: Array) -> tuple[Array, Array]:
        """Bounds of the score sign * z from bounds of z."""
        return (lower, upper) if self.increasing else (-upper, -lower)


def _itself(z: Array) -> Array:
    return z


def _negative(z: Array) -> Array:
    return -z


INCREASING = Reward(_itself, True)
DECREASING = Reward(_negative, False)


def as_reward(reward: Any, family: Any = None) -> Reward:
    """What users may say about the reward, made a :class:`Reward`.

    "increasing" (z itself), "decreasing" (-z), "mean" (E[y given z] of the family), a :class:`Reward`, or any
    vectorised function of z, whose direction is found by looking at it between -8 and 8; one that turns is refused.
    """
    if isinstance(reward, Reward):
        low, high = reward(np.array([-1.0, 1.0]))
        if reward.sign * (high - low) < 0:
            raise InvalidArgumentError(
                "reward", reward, "goes the other way", f"say Reward(function, increasing={not reward.increasing})"
            )
        return reward
    if isinstance(reward, str):
        if reward == "increasing":
            return INCREASING
        if reward == "decreasing":
            return DECREASING
        if reward == "mean":
            if not hasattr(family, "mean"):
                raise InvalidArgumentError(
                    "reward", reward, "needs the sequence's family, and it has none", "pass a function of z instead"
                )
            return _from_function(family.mean, "reward")
    elif callable(reward):
        return _from_function(reward, "reward")
    raise InvalidArgumentError(
        "reward", reward, "is not a reward", 'use "increasing", "decreasing", "mean" or a monotone function of z'
    )


def _from_function(function: Callable[[Array], Array], name: str) -> Reward:
    try:
        with np.errstate(over="ignore"):
            values = np.asarray(function(_PROBES.copy()), dtype=np.float64)
    except Exception as error:
        raise InvalidArgumentError(
            name, function, f"failed on an array of z ({error})", "pass a function that is vectorised in z"
        ) from error
    if values.shape != _PROBES.shape or np.isnan(values).any():
        raise InvalidArgumentError(
            name, function, f"returned shape {values.shape} or NaN for {len(_PROBES)} values of z",
            "pass a function that is vectorised in z and defined for every z",
        )  # fmt: skip
    steps = np.sign(values[1:] - values[:-1])
    if (steps >= 0).all() and (steps > 0).any():
        return Reward(function, True)
    if (steps <= 0).all() and (steps < 0).any():
        return Reward(function, False)
    raise InvalidArgumentError(
        name, function, "is not monotone in z between -8 and 8",
        "bounds of z are bounds of the reward for monotone functions only",
    )  # fmt: skip
