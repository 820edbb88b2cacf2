"""Lifetimes from a Weibull law whose shape nobody knows."""

from __future__ import annotations

from math import inf
from typing import Any, ClassVar

import numpy as np

from likeset._typing import Array
from likeset.arguments import floats, has_shape
from likeset.errors import ShapeError
from likeset.families.nuisance_family import NuisanceFamily
from likeset.families.outside_unknown import LifetimesOfUnknownShape
from likeset.families.shape_beliefs import ShapePosterior
from likeset.families.shape_sums import ShapeSums
from likeset.families.unknown import Unknown
from likeset.families.weibull import LogWeibull, Weibull

LOWEST, HIGHEST = 0.05, 20.0  # of the shape, where the range is left open
_RATIO = 1.2


class WeibullOfUnknownShape(NuisanceFamily):
    """Lifetimes of a Weibull law with a shape in [lo, hi]; made by ``Weibull(shape=Unknown(lo, hi))``.

    -log p is convex in (z, shape), so that sets for theta are convex and their bounds exact
    (:mod:`likeset._solver.shapes`). An end that is left open is 0.05 or 20.

    >>> family = Weibull(shape=Unknown(0.5, 4.0))
    >>> family, family.known(1.5)
    (Weibull(shape=Unknown(lo=0.5, hi=4)), Weibull(shape=1.5))
    """

    nuisance = "shape"
    patience_pays = True
    constructor: ClassVar[Any] = Weibull
    observation_shape = (2,)
    jacobian = 1.0  # densities are of t, not of log t

    def __init__(self, shape: Unknown) -> None:
        super().__init__(shape)
        self.shape = shape
        self.lo = shape.lo if shape.lo > 0.0 else min(LOWEST, 0.5 * shape.hi)
        self.hi = shape.hi if shape.hi < inf else max(HIGHEST, 2.0 * shape.lo)

    @property
    def typical(self) -> float:
        """A shape that is possible: one, if it is."""
        return min(max(1.0, self.lo), self.hi)

    def observations(self, y: Any) -> Array:
        """As of the laws with the smallest and with the largest shape; rows (entry, exit, event) are refused."""
        count = len(y) if isinstance(y, list | tuple) or (isinstance(y, np.ndarray) and y.ndim) else 0
        if count and has_shape(y, (count, 3)):
            raise ShapeError(
                "y", y, "has rows (entry, exit, event), whose likelihood is not convex in an unknown shape",
                f"pass pairs (time, event), or the shape: {self.constructor.__name__}(shape=1.5)",
            )  # fmt: skip
        self.constructor(self.lo).observations(y)
        return self.constructor(self.hi).observations(y)  # type: ignore[no-any-return]

    def information(self, z: Array) -> Array:
        """I(z) = 1 for a time that is not censored, whatever the shape."""
        return np.ones_like(floats("z", z))

    def breakpoints(self, z: float) -> Array:
        """Edges of panels over times of every order of magnitude."""
        logs = np.linspace(-40.0, 40.0, 81) / max(self.lo, 0.2)
        return np.exp(np.clip(logs, -300.0, 300.0)) if self.jacobian else logs

    def merged_sums(self) -> ShapeSums:
        """All lifetimes."""
        return ShapeSums(self, self.jacobian, self.lo, self.hi)

    def outside(self) -> LifetimesOfUnknownShape:
        """Other laws of lifetimes."""
        return LifetimesOfUnknownShape(logs=not self.jacobian)

    def posterior(self, priors: Array) -> ShapePosterior:
        """Beliefs about theta at a running estimate of the shape, blended over a grid of shapes."""
        # Beyond a range that was given, too: a numerator that can be right where the range is wrong refutes it.
        low, high = min(self.lo, max(self.lo / 3.0, LOWEST)), max(self.hi, min(3.0 * self.hi, HIGHEST))
        count = 2 + int(np.log(high / low) / np.log(_RATIO))
        return ShapePosterior(self.merged_sums(), priors, np.geomspace(low, high, count))


class LogWeibullOfUnknownShape(WeibullOfUnknownShape):
    """Logarithms of such lifetimes; made by ``LogWeibull(shape=Unknown(lo, hi))``."""

    constructor = LogWeibull
    jacobian = 0.0
