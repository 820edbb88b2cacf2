"""A fixed alternative: the sequential likelihood ratio against one parameter."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from likeset._typing import Array
from likeset.arguments import real_array
from likeset.embedded import Embedded
from likeset.errors import InvalidArgumentError, ShapeError
from likeset.families.base import Family
from likeset.predictors.base import PlugIn
from likeset.spaces.base import Space
from likeset.undo import Undo


class Fixed:
    """Forecast with one parameter chosen beforehand: q_s = p_theta, or z = f(x) for a function f.

    theta is what ``LikelihoodSet.contains`` takes: a vector of the linear model, z = x'theta, or the values of a
    function on the domain of an RKHS, z = theta at the place of x. Where there is no domain, pass the function itself.

    >>> Fixed([0.5, -1.0])
    Fixed([0.5, -1.0])
    """

    def __init__(self, theta: Any) -> None:
        self.function: Callable[[Array], float] | None = theta if callable(theta) else None
        self.theta = np.zeros(0) if callable(theta) else np.atleast_1d(real_array("theta", theta))
        if self.theta.ndim != 1:
            raise ShapeError("theta", theta, f"has shape {self.theta.shape}", "pass one parameter vector")

    def __repr__(self) -> str:
        return f"Fixed({self.function or self.theta.tolist()})"

    @classmethod
    def example(cls) -> Fixed:
        """An instance for the contract suite."""
        return Fixed([0.3, -0.2])

    def settings(self) -> dict[str, object]:
        """Constructor arguments."""
        return {"theta": self.theta.tolist()}

    def start(self, family: Family, space: Space) -> FixedForecaster:
        """A forecaster for this family."""
        if self.function is not None:
            return FixedForecaster(family, self.function)
        function: Callable[[Array], float] = self._linear
        if isinstance(space, FunctionSpace):
            function = ValuesOnDomain(space, self.theta)
        if isinstance(space, FunctionSpace) and space.domain is None:
            raise InvalidArgumentError(
                "theta", self.theta, f"says nothing about functions in {space!r}, which has no domain",
                "pass the function itself, Fixed(lambda x: ...), or give RKHS(..., domain=points)",
            )  # fmt: skip
        space.start().norms(self.theta)  # raises if theta does not fit the space
        return FixedForecaster(family, function)

    def _linear(self, x: Array) -> float:
        return float(x @ self.theta)


@runtime_checkable
class FunctionSpace(Protocol):
    """A space whose parameters are values on a domain, if it has one, and not vectors to multiply x with."""

    domain: Array | None

    def places(self, points: Array) -> NDArray[np.intp]:
        """Numbers of domain points."""
        ...


@dataclass(frozen=True)
class ValuesOnDomain:
    """x -> the value at the place of x in the domain."""

    space: FunctionSpace
    values: Array

    def __call__(self, x: Array) -> float:
        """f(x)."""
        return float(self.values[self.space.places(x[None])[0]])


class FixedForecaster:
    """Running state of :class:`Fixed` (there is none)."""

    def __init__(self, family: Family, function: Callable[[Array], float]) -> None:
        self.family, self.function = family, function

    def forecast(self, phi: Embedded) -> PlugIn:
        """p_theta at x."""
        return PlugIn(phi.law_or(self.family), self.function(phi.x))

    def observe(self, phi: Embedded, y: Array) -> None:
        """Nothing to learn."""

    def remember(self, undo: Undo, phi: Embedded) -> None:
        """Nothing to keep."""

    def state(self) -> dict[str, Array]:
        """Nothing to save."""
        return {}

    def restore(self, state: dict[str, Array]) -> None:
        """Nothing to restore."""
