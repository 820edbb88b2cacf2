r"""Exponential families with one of the three curves of :mod:`likeset.curves`."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from likeset._typing import Array
from likeset.arguments import floats, real_number
from likeset.curves import Curve, curve_derivatives, curve_heights
from likeset.errors import ShapeError
from likeset.families.base import Family, largest_predictor, misfit
from likeset.families.beliefs import Posterior
from likeset.families.evidence_sums import EvidenceSums
from likeset.families.fitted_posterior import LaplacePosterior
from likeset.families.penalised import CurveFit
from likeset.families.sums import CurveSums


class CurveFamily(Family):
    """Exponential families:  -log p(y | z) = a(y) A(z) - s(y) z - c(y),  one convex curve A, a(y) >= 0.

    A subclass names its ``curve`` and implements ``statistics``; densities, derivatives and merging of
    repeated covariates follow.
    """

    curve: ClassVar[Curve]
    convex: bool = True
    discrete: bool = False
    observation_shape: tuple[int, ...] = ()

    fast_windows: ClassVar[bool] = True
    fast_without_bound: ClassVar[bool] = True

    canonical_scale: float | None = None
    """a(y) when it is the same for every y, so that a A(z) is the log-partition function; else None."""

    referenced: ClassVar[bool] = False
    """Whether evidence is counted from a reference near y (``reference``, ``statistics_from``): families whose
    log-densities are large beside the evidence where outcomes are."""

    def statistics(self, y: Array) -> tuple[Array, Array, Array]:
        """(a, s, c) of each observation."""
        raise NotImplementedError  # every subclass has its own

    def information(self, z: Array) -> Array:
        """I(z) = a A''(z), where a(y) is the same for every y."""
        if self.canonical_scale is None:
            raise NotImplementedError  # a subclass without a canonical scale has its own
        with np.errstate(over="ignore"):
            return self.canonical_scale * curve_derivatives(self.curve, floats("z", z))[1]

    def reference(self, y: Array) -> float:
        """A value o of z at which the observation y is likely."""
        raise NotImplementedError  # if ``referenced``

    def statistics_from(self, y: Array, origin: float) -> tuple[float, float, float]:
        """(a, s, c) of one observation, -log p(y | z) = a [A(z) - A(o) - A'(o) (z - o)] - s (z - o) - c.

        c is log p(y | o), and like s to be computed from y and o without cancellation.
        """
        raise NotImplementedError  # if ``referenced``

    def log_density(self, y: Array, z: Array) -> Array:
        """log p(y | z) = s z - a A(z) + c."""
        a, s, c = self.statistics(self._in_support(y))
        z = floats("z", z)
        try:
            with np.errstate(over="ignore", invalid="ignore"):
                return s * z - a * curve_heights(self.curve, z) + c
        except ValueError:
            raise misfit(s, z) from None

    def derivatives(self, y: Array, z: Array) -> tuple[Array, Array]:
        """First and second derivative of log p in z: s - a A'(z) and -a A''(z)."""
        a, s, _ = self.statistics(self._in_support(y))
        z = floats("z", z)
        try:
            with np.errstate(over="ignore", invalid="ignore"):
                first, second = curve_derivatives(self.curve, z)
                return s - a * first, -a * second
        except ValueError:
            raise misfit(s, z) from None

    def merged_sums(self) -> CurveSums:
        """Sums of a(y) and s(y)."""
        return CurveSums(self)

    def evidence_sums(self) -> EvidenceSums:
        """The same, counted from references and added with compensation."""
        return EvidenceSums(self)

    def posterior(self, priors: Array) -> Posterior:
        """Modes and curvatures."""
        return LaplacePosterior(self, priors)

    def penalised_fit(self, penalty: float, bound: float) -> CurveFit:
        """The anchored fit."""
        return CurveFit(self, real_number("penalty", penalty), largest_predictor(bound))

    def _allows(self, *y: float) -> bool:
        """Whether one observation, the numbers that describe it, is certain to lie in the support."""
        return False

    def _in_support(self, y: Any) -> Array:
        """Observations of any shape, checked. For the one that the engine asks about this is plain arithmetic."""
        array = floats("y", y)
        numbers = 2 if self.observation_shape else 1
        if self.observation_shape and (array.ndim == 0 or array.shape[-1] != numbers):
            raise ShapeError("y", y, f"has shape {array.shape}", "pass (time, event) pairs along the last axis")
        if array.size != numbers or not self._allows(*array.ravel().tolist()):
            self.observations(array.reshape(-1, *self.observation_shape))
        return array

    def __repr__(self) -> str:
        inside = ", ".join(f"{k}={v:g}" for k, v in self.settings().items())
        return f"{type(self).__name__}({inside})"

    def settings(self) -> dict[str, float]:
        """Constructor arguments, for saving."""
        return {}
