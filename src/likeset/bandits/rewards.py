r"""The reward of an arm: any monotone function g of its linear predictor z = x'theta.

Bounds of z are bounds of g(z): an increasing g keeps their order, a decreasing one exchanges them. Which arm looks best
depends on the direction of g only, so policies compare *scores*, z or -z, and show rewards.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from likeset._typing import Array
from likeset.arguments import flag, floats
from likeset.errors import InvalidArgumentError, PieceError, ShapeError
from likeset.spaces import RKHS, Linear

_USUAL = 8.0  # functions of the user's own are looked at between -8 and 8 at least, to see their direction
_PROBES = 65


@dataclass(frozen=True)
class Reward:
    """A monotone function of z, and its direction.

    >>> Reward(np.exp, increasing=True).bounds(np.array([0.0]), np.array([1.0]))
    (array([1.]), array([2.71828183]))
    """

    function: Callable[[Array], Array]
    increasing: bool = True

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise InvalidArgumentError(
                "function", self.function, "is not callable", "pass a function of z, e.g. np.exp"
            )
        object.__setattr__(self, "increasing", flag("increasing", self.increasing))

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
        numbers = floats("z", z)
        try:
            with np.errstate(over="ignore", invalid="ignore"):
                values = np.asarray(self.function(numbers), dtype=np.float64)
        except Exception as error:
            raise PieceError(
                f"the reward {self.function!r} failed on an array of z ({type(error).__name__}: {error}); it must be "
                "vectorised in z and return numbers."
            ) from error
        if values.shape != numbers.shape:
            raise PieceError(
                f"the reward {self.function!r} returned shape {values.shape} for z of shape {numbers.shape}; it must "
                "be vectorised in z."
            )
        return values

    def bounds(self, lower: Array, upper: Array) -> tuple[Array, Array]:
        """Bounds of the reward from bounds of z."""
        return self.band(*self.score_bounds(lower, upper))

    def of_scores(self, scores: Array) -> Array:
        """Rewards from scores."""
        return self(self.sign * floats("scores", scores))

    def band(self, low: Array, high: Array) -> tuple[Array, Array]:
        """Bounds of the reward from bounds of the score; a function whose bounds cross is not monotone, and refused."""
        low, high = floats("low", low), floats("high", high)
        if low.shape != high.shape:
            raise ShapeError("high", high, f"has shape {high.shape}", f"pass as many as low has: {low.shape}")
        if (low > high).any():
            raise InvalidArgumentError("low", low, "is above high somewhere", "pass (low, high) of every score")
        lowest, highest = self.of_scores(low), self.of_scores(high)
        crossed = lowest > highest
        if crossed.any():
            i = int(np.argmax(crossed))
            ends = sorted(self.sign * float(np.ravel(score)[i]) for score in (low, high))
            raise PieceError(
                f"the reward {self.function!r} is not {'increasing' if self.increasing else 'decreasing'} between z = "
                f"{ends[0]:g} and {ends[1]:g}: bounds of z are bounds of the reward for monotone functions only."
            )
        return lowest, highest

    def score_bounds(self, lower: Array, upper: Array) -> tuple[Array, Array]:
        """Bounds of the score sign * z from bounds of z."""
        lower, upper = floats("lower", lower), floats("upper", upper)
        if lower.shape != upper.shape or (lower > upper).any():
            raise InvalidArgumentError(
                "lower", lower, "is not below upper everywhere", "pass (lower, upper) of every z"
            )
        return (lower, upper) if self.increasing else (-upper, -lower)


def _itself(z: Array) -> Array:
    return z


def _negative(z: Array) -> Array:
    return -z


INCREASING = Reward(_itself, True)
DECREASING = Reward(_negative, False)


def reach_of(space: Any, arms: Array | None, box: Array | None = None) -> float | None:
    """The largest |z| that the arms, or a box of covariates, and the bound on |theta| allow; None where nothing tells.

    Nothing tells it without a finite bound, for arms that come later, for a box in a function space, and in a space of
    the user's own.
    """
    bound = getattr(space, "bound", np.inf)
    if not np.isfinite(bound):
        return None
    if isinstance(space, Linear) and box is not None:
        return float(bound * np.linalg.norm(np.abs(box).max(axis=1)))
    if arms is None or not isinstance(space, (Linear, RKHS)):
        return None
    lengths = np.linalg.norm(arms, axis=1) if isinstance(space, Linear) else np.sqrt(space.diagonal(arms))
    return float(bound * lengths.max())


def as_reward(reward: Any, family: Any = None, reach: float | None = None) -> Reward:
    """What users may say about the reward, made a :class:`Reward`.

    "increasing" (z itself), "decreasing" (-z), "mean" (E[y given z] of the family), a :class:`Reward`, or any
    vectorised function of z. Functions are looked at on a grid of |z| <= ``reach``, the largest |z| that can occur, and
    of |z| <= 8 in any case: one that turns there is refused. Not checked are what lies between the points of the grid
    and, where the reach is not known, whatever lies beyond 8: that the function is monotone there is the user's claim.
    """
    if isinstance(reward, Reward):
        if not reward.counts_scores:
            seen = _from_function(reward.function, reach)
            if seen.increasing is not reward.increasing:
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
            return _from_function(family.mean, reach)
    elif callable(reward):
        return _from_function(reward, reach)
    raise InvalidArgumentError(
        "reward", reward, "is not a reward", 'use "increasing", "decreasing", "mean" or a monotone function of z'
    )


def _from_function(function: Callable[[Array], Array], reach: float | None) -> Reward:
    far = max(_USUAL, reach or 0.0)
    probes = np.unique(np.concatenate([np.linspace(-_USUAL, _USUAL, _PROBES), np.linspace(-far, far, _PROBES)]))
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            values = np.asarray(function(probes.copy()), dtype=np.float64)
    except Exception as error:
        raise InvalidArgumentError(
            "reward", function, f"failed on an array of z ({type(error).__name__})",
            "pass a function that is vectorised in z and returns numbers",
        ) from error  # fmt: skip
    if values.shape != probes.shape or np.isnan(values).any():
        raise InvalidArgumentError(
            "reward", function,
            f"returned shape {values.shape} or NaN for {len(probes)} values of z between {-far:g} and {far:g}",
            "pass a function that is vectorised in z and defined for every z that the arms can reach",
        )  # fmt: skip
    rises, falls = values[1:] > values[:-1], values[1:] < values[:-1]
    if rises.any() and not falls.any():
        return Reward(function, True)
    if falls.any() and not rises.any():
        return Reward(function, False)
    raise InvalidArgumentError(
        "reward", function, f"is not monotone in z between {-far:g} and {far:g}, which the arms can reach",
        "bounds of z are bounds of the reward for monotone functions only",
    )  # fmt: skip
