r"""Families with a smooth loss of their own, compiled."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from likeset._typing import Array
from likeset.arguments import floats
from likeset.families.base import Family, misfit
from likeset.families.sorted_sums import LossSums
from likeset.losses import Loss


class LossFamily(Family):
    """-log p(y | z) = L(y, z) - c(y)  for real outcomes, L smooth and convex in z: logistic noise, for example.

    A subclass names its ``loss``, sets ``parameters`` (the numbers that the loss takes after y and z; a tuple) and may
    override ``constant``, which is c; densities, derivatives, merging, beliefs, sets and windows follow. One term is
    kept for every distinct pair of covariate and outcome.
    """

    loss: ClassVar[Loss]
    parameters: tuple[float, ...] = ()
    convex: bool = True
    discrete: bool = False
    observation_shape: tuple[int, ...] = ()
    fast_windows: ClassVar[bool] = True

    def constant(self, y: float) -> float:
        """c(y) of one observation."""
        return 0.0

    def _absorbed(self, y: float, shift: float) -> tuple[float, float] | None:
        """(y', d) with L(y, z + shift) = L(y', z) + d, if there are such; otherwise the shift stays with the term."""
        return None

    def log_density(self, y: Array, z: Array) -> Array:
        """log p(y | z) = c(y) - L(y, z)."""
        y, values = self._evaluated(y, z)
        constants = np.reshape([self.constant(each) for each in y.ravel().tolist()], y.shape)
        return constants - values[0]

    def derivatives(self, y: Array, z: Array) -> tuple[Array, Array]:
        """First and second derivative of log p in z: -L' and -L''."""
        _, (_, first, second) = self._evaluated(y, z)
        return -first, -second

    def _evaluated(self, y: Any, z: Any) -> tuple[Array, tuple[Array, Array, Array]]:
        """Checked y, and L, L', L'' at (y, z)."""
        y, z = floats("y", y), floats("z", z)
        self.observations(y.ravel())
        try:
            return y, self.loss.at(y, z, self.parameters)
        except ValueError:
            raise misfit(y, z) from None

    def merged_sums(self) -> LossSums:
        """Distinct outcomes with their weights."""
        return LossSums(self)

    def __repr__(self) -> str:
        inside = ", ".join(f"{k}={v:g}" for k, v in self.settings().items())
        return f"{type(self).__name__}({inside})"

    def settings(self) -> dict[str, float]:
        """Constructor arguments, for saving."""
        return {}
