"""CMM: the martingale-mixture set of kernel regression, solved exactly."""

from __future__ import annotations

import numpy as np

from likeset.arguments import positive
from likeset.comparison.base import default_penalty
from likeset.comparison.least_squares import LeastSquares, LeastSquaresSet
from likeset.comparison.likelihood import LevelSnapshot, level_snapshot
from likeset.spaces.base import Space


def squared_mixture_radius(sums: LeastSquares, sigma: float, spread: float, alpha: float) -> float:
    """R^2 = a y'(K + aI)^-1 y + sigma^2 log det(I + K/a) + 2 sigma^2 log(1/alpha),  a = sigma^2 / c.

    On the span, a y'(K + aI)^-1 y = |y|^2 - |theta_hat|_V^2 sigma^2 and log det(I + K/a) = log det(c V).
    """
    ridge = sums.ridge(sigma, 1 / spread)
    residual = sums.energy - sigma**2 * ridge.explained
    return residual + sigma**2 * (ridge.log_determinant + 2 * float(np.log(1 / alpha)))


class ConvexMartingaleMixture(LeastSquaresSet):
    r"""Functions whose squared residuals stay below a data-dependent radius, cut with the ball.

        C = { f : |y - f|^2 <= R^2, |f| <= B },   a = sigma^2 / c
        R^2 = a y'(K + aI)^-1 y + sigma^2 log det(I + K/a) + 2 sigma^2 log(1/alpha)

    Checked: with mixing law N(0, cK) over the values of f, the martingale
    exp( sum (f - f*)(y - f*)/sigma^2 - (f - f*)^2 / (2 sigma^2) ), mixed over f, is the Gaussian likelihood ratio of
    the marginal likelihood to f*; so the set is NR 2021 with lambda = 1/c, computed here from R^2. It needs only
    sigma-sub-Gaussian noise, and |f*| <= B for the cut.

    spread   c > 0, prior variance, by default B^2; chosen before the data

    Source: Flynn, Reeb, Kandemir, Peters (2023), Improved algorithms for stochastic linear bandits using tail bounds
    for martingale mixtures; Flynn, Reeb (2024), arXiv 2403.12732.
    """

    name = "CMM"
    provable = True
    anytime = True
    needs_bound = False
    assumptions = "linear mean, sigma-sub-Gaussian noise, theta* in Theta"
    source = "Flynn et al. 2023; Flynn, Reeb 2024, arXiv 2403.12732"

    def __init__(self, space: Space, alpha: float, sigma: float, spread: float | None = None) -> None:
        super().__init__(space, alpha, sigma)
        self.spread = 1 / default_penalty(space) if spread is None else positive("spread", spread)

    def _snapshot(self) -> LevelSnapshot:
        squared = squared_mixture_radius(self._sums, self.sigma, self.spread, self.alpha)
        # L(f) = |y - f|^2 / (2 sigma^2) + n log(sigma sqrt(2 pi)), and the level is to be R^2 / (2 sigma^2) + the same.
        constant = self._sums.count * np.log(self.sigma * np.sqrt(2 * np.pi))
        loss = squared / (2 * self.sigma**2) + constant - np.log(1 / self.alpha)
        return level_snapshot(self._stream, self.alpha, float(loss))
