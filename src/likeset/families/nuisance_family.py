"""Families with a number that nobody knows: what they share.

Such a family is no law of y given z, and says so where one is needed: ``known(value)`` is the law for one value.
"""

from __future__ import annotations

from typing import Any, ClassVar, NoReturn

import numpy as np

from likeset._typing import Array
from likeset.arguments import LARGEST
from likeset.errors import InvalidArgumentError
from likeset.families.base import Family, refuse
from likeset.families.outside import Outside
from likeset.families.unknown import Unknown

_HALF_DECADES = 10.0 ** np.arange(-3.0, 3.25, 0.25)
_WIDEST = (1e-9, 1e9)  # of the scales in forecasts where none are given; beyond, forecasts get worse and stay valid
_RATIO = 10.0


class NuisanceFamily:
    """A family of laws, one for each value of a number: ``nuisance`` is its name, ``unknown`` what is known of it.

    Written like the family itself, with :class:`~likeset.Unknown` in place of the number.
    """

    convex = True
    discrete = False
    observation_shape: tuple[int, ...] = ()
    nuisance: ClassVar[str]
    constructor: ClassVar[Any]  # of the laws, and of this family

    def __init__(self, unknown: Unknown) -> None:
        self.unknown = unknown

    def __repr__(self) -> str:
        return f"{self.constructor.__name__}({self.nuisance}={self.unknown!r})"

    def settings(self) -> dict[str, Any]:
        """Constructor arguments."""
        return {self.nuisance: self.unknown}

    def known(self, value: float) -> Family:
        """The law for one value of the number."""
        return self.constructor(self.unknown.checked(self.nuisance, value))  # type: ignore[no-any-return]

    @property
    def typical(self) -> float:
        """A value that the number may have: one, if that is possible."""
        return min(max(1.0, self.unknown.lo), self.unknown.hi)

    def outside(self) -> Outside | None:
        """Laws outside all of them, for the alarm; None where nothing is known of such."""
        return None

    def observations(self, y: Any) -> Array:
        """As of any of the laws, in units in which squares of residuals are not lost."""
        found: Array = self.constructor().observations(y)
        lost = (found != 0.0) & (np.abs(found) < 1 / LARGEST)
        refuse(
            found, lost, f"is not zero and below {1 / LARGEST:g}", "use units in which typical entries are of order one"
        )
        return found

    def log_density(self, y: Array, z: Array) -> Array:
        """Refused: there are many."""
        self._refuse("no density")

    def derivatives(self, y: Array, z: Array) -> tuple[Array, Array]:
        """Refused: there are many."""
        self._refuse("no density")

    def sample(self, z: Array, rng: np.random.Generator) -> Array:
        """Refused: from which law?"""
        self._refuse("no law to sample from")

    def outcomes(self, z: Array) -> tuple[Array, Array]:
        """Refused: of which law?"""
        self._refuse("no law to integrate over")

    def curvature_bounds(self, bound: float) -> tuple[float, float]:
        """Refused: they depend on the number."""
        self._refuse("no bounds of its curvature, which FTRL and BiasWeighting need")

    def penalised_fit(self, penalty: float, bound: float) -> NoReturn:
        """Refused: it depends on the number."""
        self._refuse("no penalised fit, which FTRL needs")

    def mean(self, z: Array) -> Array:
        """E[y], where it is the same for every value."""
        self._refuse("no mean")

    def breakpoints(self, z: float) -> Array:
        """Edges of panels over y for densities of whatever scale."""
        return np.concatenate([z - _HALF_DECADES[::-1], [z], z + _HALF_DECADES])

    def _refuse(self, lacks: str) -> NoReturn:
        raise InvalidArgumentError(
            self.nuisance, self.unknown, f"is not known, so that {self!r} has {lacks} of its own",
            f"ask family.known({self.nuisance}) for the law with one value, or leave predictor and weighting to "
            "their defaults",
        )  # fmt: skip


def grid_of_scales(unknown: Unknown) -> Array:
    """A geometric grid over the range of a scale, with a ratio of ten at most."""
    lo = max(unknown.lo, min(_WIDEST[0], unknown.hi * 1e-3))
    hi = min(unknown.hi, max(_WIDEST[1], unknown.lo * 1e3))
    count = 1 + int(np.ceil(np.log(hi / lo) / np.log(_RATIO)))
    return np.geomspace(lo, hi, max(count, 2))
