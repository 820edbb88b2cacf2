r"""The model of a study that chooses: where its parameter lives, and what z means in units of the outcome.

Linear models: z = x'theta, as in any study. Smooth models: z = c + f(x), with f a function of the factors, all scaled
to [-1, 1], in the RKHS of a Matern kernel,

    |f|_k <= NORM,      k(x, x) = s^2,      [c - s, c + s] = the range of z that the declared range of means allows.

The length scale (LENGTH, a fifth of each interval) and NORM are guesses, and part of what is assumed, as the declared
range is: certificates are right if the truth is in this model. They are generous: Hartmann's and Branin's functions
have norms of 5.6 and 5.1 in these units, smooth random ones about 3 (1500 points). Choices do not rest on them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import brentq

from likeset._typing import Array
from likeset.bandits.rewards import Reward
from likeset.bandits.safety import Below
from likeset.errors import InvalidArgumentError
from likeset.sequence import ConfidenceSequence
from likeset.spaces import RKHS, Linear
from likeset.spaces.mixed_kernel import MixedKernel
from likeset.study.asking import Scale
from likeset.study.definition import Definition
from likeset.study.factors import Levels

LENGTH, NORM = 0.4, 8.0
_CHANCES = (0.02, 0.98)  # the range of a proportion, where none is declared
_FAR = 700.0


def space_of(definition: Definition) -> Any:
    """Where the parameter of the outcome lives."""
    if not definition.smooth:
        return Linear(len(definition.columns), definition.bound)
    low, high = z_range(definition)
    norm = definition.bound if np.isfinite(definition.bound) else NORM
    return RKHS(MixedKernel(_lengths(definition), 0.5 * (high - low)), norm, dim=len(definition.factors))


def constraint_sequence(definition: Definition, name: str, alpha: float) -> ConfidenceSequence:
    """The sequence of a constraint, over the same points."""
    constraint = definition.campaign.safe[name]
    level = constraint.alpha or alpha
    if not definition.smooth:
        space: Any = Linear(len(definition.columns), constraint.bound or np.inf)
    else:
        space = RKHS(MixedKernel(_lengths(definition)), _constraint_norm(name, constraint), dim=len(definition.factors))
    return ConfidenceSequence(constraint.family, space, level)


def _constraint_norm(name: str, constraint: Below) -> float:
    if constraint.bound is not None:
        return constraint.bound
    if Scale(constraint.family).link in ("log", "logit"):
        return NORM
    raise InvalidArgumentError(
        f"safe[{name!r}]", constraint, "needs a bound in a smooth model: nothing else tells how large it can be",
        f"say ls.{type(constraint).__name__}(..., bound=8 times the largest deviation from 0 that it can have); "
        f"in a shell, --safe '{name}{'<' if constraint.sign > 0 else '>'}{constraint.threshold:g}:law:bound'",
    )  # fmt: skip


def _lengths(definition: Definition) -> list[float]:
    return [0.0 if isinstance(f, Levels) else LENGTH for f in definition.factors]


def z_range(definition: Definition) -> tuple[float, float]:
    """The values of z that the declared range of the mean outcome allows, in rising order."""
    scale, declared = Scale(definition.family), definition.campaign.range
    if declared is None:
        if scale.link != "logit":
            raise InvalidArgumentError(
                "range", None, "is missing: a smooth model must know what the mean outcome can be at all",
                "pass e.g. range=(0, 100) for a yield in per cent",
            )  # fmt: skip
        declared = _CHANCES
    if scale.link in ("none", "identity"):
        return declared
    ends = sorted(_inverse(definition.family, mean, declared) for mean in declared)
    return ends[0], ends[1]


def _inverse(family: Any, mean: float, declared: tuple[float, float]) -> float:
    def miss(z: float) -> float:
        with np.errstate(all="ignore"):
            return float(np.nan_to_num(np.asarray(family.mean(np.array([z])))[0], posinf=1e300)) - mean

    try:
        return float(brentq(miss, -_FAR, _FAR, xtol=1e-12))
    except ValueError:
        raise InvalidArgumentError(
            "range", declared, f"has an end that {family!r} never has as its mean", "move the end inward a little"
        ) from None


@dataclass(frozen=True)
class _Paid:
    """sign * E[y] at z = centre + what the set bounds, kept in the declared range; can be pickled."""

    scale: Scale
    sign: float
    centre: float
    low: float
    high: float

    def __call__(self, z: Array) -> Array:
        at = np.clip(np.asarray(z, dtype=np.float64) + self.centre, self.low, self.high)
        return self.sign * self.scale.mean_ends((at, at))[0]


@dataclass(frozen=True)
class Surface:
    """z in units of the outcome: ``centre`` is added to what the set bounds, means beyond the range are not believed.

    ``sign`` is 1 where the goal is to maximise the mean and -1 where it is to minimise it.
    """

    scale: Scale
    sign: float
    centre: float = 0.0
    low: float = -np.inf
    high: float = np.inf

    @property
    def reward(self) -> Reward:
        """What a choice pays: the mean outcome, or what it is below zero."""
        rises = self.scale.rises == (self.sign > 0) if self.scale.link != "none" else self.sign > 0
        return Reward(_Paid(self.scale, self.sign, self.centre, self.low, self.high), bool(rises))

    def mean_ends(self, ends: tuple[Array, Array]) -> tuple[Array, Array]:
        """Ends of the mean outcome for ends of what the set bounds."""
        low, high = (np.clip(np.asarray(end) + self.centre, self.low, self.high) for end in ends)
        return self.scale.mean_ends((low, high))


def surface_of(definition: Definition) -> Surface:
    """What z means in this study."""
    sign = 1.0 if definition.goal == "maximise" else -1.0
    scale = Scale(definition.family)
    if not definition.smooth:
        return Surface(scale, sign)
    low, high = z_range(definition)
    declared = definition.campaign.range is not None
    ends = (low, high) if declared else (-np.inf, np.inf)
    return Surface(scale, sign, 0.5 * (low + high), *ends)
