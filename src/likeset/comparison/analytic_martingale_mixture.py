"""AMM: the closed-form band around the martingale-mixture set."""

from __future__ import annotations

import numpy as np

from likeset.arguments import flag, positive
from likeset.comparison.base import default_penalty, finite_bound
from likeset.comparison.ellipsoid import Ellipsoid
from likeset.comparison.least_squares import LeastSquaresSet
from likeset.spaces.base import Space


class AnalyticMartingaleMixture(LeastSquaresSet):
    r"""CMM relaxed to one ellipsoid, always inside that of AY 2011 with lambda = 1/c.

        mean_a(x) +- sqrt( c log det(I + K/a) + 2 c log(1/alpha) + B^2 ) s_a(x),     a = sigma^2 / c
        s_a^2 = k(x,x) - k'(K + aI)^-1 k

    Checked: |y - f|^2 <= R^2 and |f|^2 <= B^2 add up to |y - f|^2 + a |f|^2 <= R^2 + a B^2; completing the square,
    with V = sum x x'/sigma^2 + I/c and s_a^2 = x'V^-1 x / c,

        |f - mean_a|_V^2 <= log det(cV) + 2 log(1/alpha) + B^2 / c.

    AY 2011 has (sqrt(log det + 2 log 1/alpha) + B/sqrt(c))^2 on the right. Assumes sigma-sub-Gaussian noise and
    |f*| <= B. Not cut with Theta unless ``within_theta=True``.

    spread   c > 0, by default B^2; chosen before the data

    Source: Flynn et al. (2023); Flynn, Reeb (2024), arXiv 2403.12732.
    """

    name = "AMM"
    provable = True
    anytime = True
    needs_bound = True
    assumptions = "linear mean, sigma-sub-Gaussian noise, |theta*| <= B"
    source = "Flynn et al. 2023; Flynn, Reeb 2024, arXiv 2403.12732"

    def __init__(
        self, space: Space, alpha: float, sigma: float, spread: float | None = None, within_theta: bool = False
    ) -> None:
        super().__init__(space, alpha, sigma)
        self.bound = finite_bound(space, "AMM")
        self.spread = 1 / default_penalty(space) if spread is None else positive("spread", spread)
        self.within_theta = flag("within_theta", within_theta)

    def _snapshot(self) -> Ellipsoid:
        ridge = self._sums.ridge(self.sigma, 1 / self.spread)
        squared = ridge.log_determinant + 2 * np.log(1 / self.alpha) + self.bound**2 / self.spread
        return self._ellipsoid(
            centre=ridge.centre, precision=ridge.precision, outside=1 / self.spread, squared_radius=float(squared)
        )
