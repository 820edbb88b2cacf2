"""AY 2011: the sub-Gaussian ellipsoid of linear bandits."""

from __future__ import annotations

import numpy as np

from likeset.arguments import flag, positive
from likeset.comparison.base import default_penalty, finite_bound
from likeset.comparison.ellipsoid import Ellipsoid
from likeset.comparison.least_squares import LeastSquaresSet
from likeset.spaces.base import Space


class AbbasiYadkori(LeastSquaresSet):
    r"""Ridge regression with a self-normalised radius.

        V = sum x x' / sigma^2 + lambda I,     theta_hat = V^-1 sum x y / sigma^2
        |theta - theta_hat|_V <= sqrt( 2 log(1/alpha) + log( det V / det lambda I ) ) + sqrt(lambda) B

    Assumes y = x'theta + noise, sigma-sub-Gaussian given the past, and |theta*| <= B. Holds at all times, for adaptive
    x, and in an RKHS. Not cut with Theta (``within_theta=True`` does it). At d = 1, x = 1 and without its bias term
    sqrt(lambda) B this is the normal-mixture boundary of Robbins.

    sigma         sub-Gaussian constant of the noise
    penalty       lambda, by default 1 / B^2; chosen before the data
    within_theta  cut the ellipsoid with { |theta| <= B }

    Source: Abbasi-Yadkori, Pal, Szepesvari (2011), Improved algorithms for linear stochastic bandits, Theorem 2.

    >>> import likeset as ls
    >>> ay = AbbasiYadkori(ls.Linear(dim=2, bound=1.0), alpha=0.05, sigma=0.5)
    >>> ay.update([[1.0, 0.0]] * 50, [0.3] * 50)
    >>> low, high = ay.set.interval([1.0, 0.0])
    >>> bool(low[0] < 0.3 < high[0])
    True
    """

    name = "AY 2011"
    provable = True
    anytime = True
    needs_bound = True
    assumptions = "linear mean, sigma-sub-Gaussian noise, |theta*| <= B"
    source = "Abbasi-Yadkori, Pal, Szepesvari 2011"

    def __init__(
        self, space: Space, alpha: float, sigma: float, penalty: float | None = None, within_theta: bool = False
    ) -> None:
        super().__init__(space, alpha, sigma)
        self.bound = finite_bound(space, "AY 2011")
        self.penalty = default_penalty(space) if penalty is None else positive("penalty", penalty)
        self.within_theta = flag("within_theta", within_theta)

    def _snapshot(self) -> Ellipsoid:
        ridge = self._sums.ridge(self.sigma, self.penalty)
        radius = np.sqrt(2 * np.log(1 / self.alpha) + ridge.log_determinant) + np.sqrt(self.penalty) * self.bound
        return self._ellipsoid(
            centre=ridge.centre, precision=ridge.precision, outside=self.penalty, squared_radius=radius**2
        )
