"""A fixed alternative: the sequential likelihood ratio against one parameter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from likeset.arguments import real_array
from likeset.errors import ShapeError
from likeset.families.base import Array, Family
from likeset.predictors.base import PlugIn
from likeset.spaces.base import Embedded, Space
from likeset.undo import Undo


class Fixed:
    """Forecast with one parameter chosen beforehand: q_s = p_theta, or z = f(x) for a function f.

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
        if self.function is None:
            dim = space.start().parameters(self.theta)[0].shape[0]  # raises if theta does not fit the space
            assert dim == 1
        return FixedForecaster(family, self)


class FixedForecaster:
    """Running state of :class:`Fixed` (there is none)."""

    def __init__(self, family: Family, fixed: Fixed) -> None:
        self.family, self.fixed = family, fixed

    def forecast(self, phi: Embedded) -> PlugIn:
        """p_theta at x."""
        if self.fixed.function is not None:
            return PlugIn(self.family, self.fixed.function(phi.x))
        return PlugIn(self.family, float(phi.x @ self.fixed.theta))

    def observe(self, phi: Embedded, y: Array) -> None:
        """Nothing to learn."""

    def remember(self, undo: Undo, phi: Embedded) -> None:
        """Nothing to keep."""

    def state(self) -> dict[str, Array]:
        """Nothing to save."""
        return {}

    def restore(self, state: dict[str, Array]) -> None:
        """Nothing to restore."""
