"""WWR 2023: kernel AY with regularisation that grows with the amount of data."""

from __future__ import annotations

import numpy as np

from likeset.arguments import flag, positive, real_number
from likeset.comparison.base import default_penalty, finite_bound
from likeset.comparison.ellipsoid import Ellipsoid
from likeset.comparison.least_squares import LeastSquaresSet
from likeset.errors import InvalidArgumentError
from likeset.spaces.base import Space


class GrowingPenalty(LeastSquaresSet):
    r"""The ellipsoid of AY 2011 with a larger lambda for later times, which smooth kernels reward.

        [ (sigma / sqrt(rho)) sqrt( log det(I + K/rho) + 2 log(1/delta) ) + B ] s_rho(x),    rho = sigma^2 lambda

    Checked: for *one* rho fixed beforehand this is AY 2011 (s_rho^2 = lambda x'V^-1 x), valid at all times.
    A rho that changes with t is **not** covered by that: each rho has its own mixing law, and its own exceptional
    event. What is implemented pays for it: in epoch j = 0, 1, ... (2^j to 2^{j+1} - 1 observations)

        lambda_j = lambda_0 2^{j exponent},      delta_j = 6 alpha / (pi^2 (j + 1)^2),      sum_j delta_j = alpha,

    and a union bound over the epochs gives coverage at all times. Assumes sigma-sub-Gaussian noise and |f*| <= B. Not
    cut with Theta unless ``within_theta=True``.

    penalty    lambda_0, by default 1 / B^2       exponent   growth of lambda, by default 1/4; both before the data

    Source: Whitehouse, Wu, Ramdas (2023), On the sublinear regret of GP-UCB, whose theorem is for one rho (chosen from
    the horizon); the epochs are added here.
    """

    name = "WWR 2023"
    provable = True
    anytime = True
    needs_bound = True
    assumptions = "linear mean, sigma-sub-Gaussian noise, |theta*| <= B"
    source = "Whitehouse, Wu, Ramdas 2023, with a union bound over epochs"

    def __init__(
        self,
        space: Space,
        alpha: float,
        sigma: float,
        penalty: float | None = None,
        exponent: float = 0.25,
        within_theta: bool = False,
    ) -> None:
        super().__init__(space, alpha, sigma)
        self.bound = finite_bound(space, "WWR 2023")
        self.penalty = default_penalty(space) if penalty is None else positive("penalty", penalty)
        self.exponent = real_number("exponent", exponent)
        if not 0 <= self.exponent <= 1:
            raise InvalidArgumentError("exponent", exponent, "is not between 0 and 1", "pass e.g. 0.25")
        self.within_theta = flag("within_theta", within_theta)

    def _snapshot(self) -> Ellipsoid:
        epoch = max(self.n_observations, 1).bit_length() - 1
        penalty = self.penalty * 2.0 ** (epoch * self.exponent)
        delta = 6 * self.alpha / (np.pi * (epoch + 1)) ** 2
        ridge = self._sums.ridge(self.sigma, penalty)
        radius = np.sqrt(2 * np.log(1 / delta) + ridge.log_determinant) + np.sqrt(penalty) * self.bound
        return self._ellipsoid(
            centre=ridge.centre, precision=ridge.precision, outside=penalty, squared_radius=float(radius**2)
        )
