"""The uncovered heuristic: an ellipsoid of fixed radius, as bandit practice uses it."""

from __future__ import annotations

from typing import Self

import numpy as np

from likeset._typing import Array
from likeset.arguments import flag, positive
from likeset.comparison.base import Comparison, check_model, default_penalty
from likeset.comparison.ellipsoid import Ellipsoid
from likeset.comparison.least_squares import LeastSquares
from likeset.comparison.responses import refuse_censored, response
from likeset.embedded import Embedded
from likeset.errors import InvalidArgumentError
from likeset.families.base import Family
from likeset.spaces.base import Space
from likeset.undo import Undo


class Heuristic(Comparison):
    r"""The ellipsoid of AY 2011 with radius^2 = 2 log(1/alpha), whatever the dimension and the time.

        V = sum x x' / deviation^2 + lambda I,    theta_hat = V^-1 sum x r / deviation^2
        |theta - theta_hat|_V^2 <= 2 log(1/alpha)

    r is the unbiased response for z and ``deviation`` its standard deviation (:mod:`likeset.comparison.responses`).
    **No coverage**: the radius pays neither for the dimension nor for looking at all times; in simulations it fails.
    Differs from the paper in the penalty, lambda |theta|^2 / 2 for its lambda |theta|^2, and in the estimate, which is
    not constrained to Theta. Not cut with Theta unless ``within_theta=True``.

    penalty   lambda, by default 1 / B^2; chosen before the data

    Source: the paper (Emmenegger, Mutny, Krause 2023, section 4.2, "Additive noise models"), after common practice.
    """

    name = "heuristic"
    provable = False
    anytime = True
    assumptions = "none that would make it true"
    source = "common practice; Emmenegger, Mutny, Krause 2023"

    def __init__(
        self, space: Space, alpha: float, family: Family, penalty: float | None = None, within_theta: bool = False
    ) -> None:
        super().__init__(space, alpha, family)
        found = response(family)
        if found is None:
            raise InvalidArgumentError(
                "family", family, "has a mean that is not linear in z", "use LaplaceApproximation for counts"
            )
        self._response = found
        self.penalty = default_penalty(space) if penalty is None else positive("penalty", penalty)
        self.within_theta = flag("within_theta", within_theta)
        self._sums = LeastSquares()

    @classmethod
    def for_model(cls, family: Family, space: Space, alpha: float) -> Self | None:
        """Gaussian, Laplace and uncensored survival times."""
        check_model(family, space, alpha)
        return None if response(family) is None else cls(space, alpha, family)

    def _refuse(self, X: Array, Y: Array) -> None:
        refuse_censored(Y)

    def _remember(self, undo: Undo, phi: Embedded) -> None:
        undo.keep(self)
        self._sums.remember(undo)

    def _observe(self, phi: Embedded, y: Array) -> None:
        self._sums.add(phi.coordinates, self._response.of(y))

    def _snapshot(self) -> Ellipsoid:
        ridge = self._sums.ridge(self._response.deviation, self.penalty)
        return self._ellipsoid(
            centre=ridge.centre,
            precision=ridge.precision,
            outside=self.penalty,
            squared_radius=2 * float(np.log(1 / self.alpha)),
        )
