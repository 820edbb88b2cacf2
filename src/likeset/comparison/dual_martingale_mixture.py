"""DMM: a solver-free band around the martingale-mixture set, the tightest of several ellipsoids."""

from __future__ import annotations

import numpy as np

from likeset._typing import Array
from likeset.arguments import positive
from likeset.comparison.base import default_penalty, finite_bound
from likeset.comparison.convex_martingale_mixture import squared_mixture_radius
from likeset.comparison.ellipsoid_family import EllipsoidFamily
from likeset.comparison.least_squares import LeastSquaresSet
from likeset.spaces.base import Space

GRID = 2.0 ** np.arange(-12.0, 13.0)
"""The b tried, as multiples of a = sigma^2 / c."""


class DualMartingaleMixture(LeastSquaresSet):
    r"""The ellipsoids that contain CMM, one for each b, intersected direction by direction.

        mean_b(x) +- sqrt( (R^2 + b B^2 - b y'(K + bI)^-1 y) / b ) s_b(x),    tightest over a grid of b
        R^2 as in CMM,     s_b^2 = k(x,x) - k'(K + bI)^-1 k

    Checked: |y - f|^2 <= R^2 and |f| <= B imply |y - f|^2 + b |f|^2 <= R^2 + b B^2 for every b > 0; completing the
    square gives the ellipsoid. All b hold at once, so the minimum over b is valid, whatever the grid. Ends up close to
    CMM cut with Theta, without a solver; b = a is AMM. Assumes sigma-sub-Gaussian noise and |f*| <= B.

    spread   c > 0, by default B^2; chosen before the data. The grid of b is fixed: a / 4096, ..., 4096 a.

    Source: Flynn, Reeb (2024), Tighter confidence bounds for sequential kernel regression, arXiv 2403.12732.
    """

    name = "DMM"
    provable = True
    anytime = True
    needs_bound = True
    assumptions = "linear mean, sigma-sub-Gaussian noise, |theta*| <= B"
    source = "Flynn, Reeb 2024, arXiv 2403.12732"

    def __init__(self, space: Space, alpha: float, sigma: float, spread: float | None = None) -> None:
        super().__init__(space, alpha, sigma)
        self.bound = finite_bound(space, "DMM")
        self.spread = 1 / default_penalty(space) if spread is None else positive("spread", spread)

    def _snapshot(self) -> EllipsoidFamily:
        squared = squared_mixture_radius(self._sums, self.sigma, self.spread, self.alpha)
        grid: Array = GRID * np.float64(self.sigma**2 / self.spread)
        padded = (np.sqrt(squared) + self.misfit * self.sigma) ** 2
        return EllipsoidFamily(self.space, self._stream.basis, self.alpha, self._sums, padded, grid)
