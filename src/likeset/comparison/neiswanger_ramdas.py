"""NR 2021: the prior-posterior ratio of a Gaussian process."""

from __future__ import annotations

import numpy as np

from likeset.arguments import positive
from likeset.comparison.base import default_penalty
from likeset.comparison.least_squares import LeastSquaresSet
from likeset.comparison.likelihood import LevelSnapshot, level_snapshot
from likeset.spaces.base import Space


class NeiswangerRamdas(LeastSquaresSet):
    r"""Parameters whose likelihood is at least alpha times the marginal likelihood under a Gaussian prior.

        C = { theta in Theta : -log L(theta) <= log(1/alpha) - log p(D) },     p(D) = ∫ L(theta) N(theta; 0, I/lambda)
        -log p(D) = n log(sigma sqrt(2 pi)) + [ |y|^2/sigma^2 - theta_hat'V theta_hat + log det(V / lambda) ] / 2

    with V and theta_hat of ridge regression (V = sum x x'/sigma^2 + lambda I). The paper's display has the signs of
    both likelihoods wrong; this is the set it means. Assumes y = x'theta + sigma-sub-Gaussian noise (the Gaussian ratio
    is a supermartingale under it) and theta* in Theta; the prior need not be right. Cut with Theta. The same set as
    ``ConfidenceSequence`` with ``Mixture(precisions=[lambda])``, through a closed form instead of a product.

    penalty   lambda, precision of the prior, by default 1 / B^2; chosen before the data

    Source: Neiswanger, Ramdas (2021), Uncertainty quantification using martingales for misspecified Gaussian processes.
    """

    name = "NR 2021"
    provable = True
    anytime = True
    needs_bound = False
    assumptions = "linear mean, sigma-sub-Gaussian noise, theta* in Theta"
    source = "Neiswanger, Ramdas 2021"

    def __init__(self, space: Space, alpha: float, sigma: float, penalty: float | None = None) -> None:
        super().__init__(space, alpha, sigma)
        self.penalty = default_penalty(space) if penalty is None else positive("penalty", penalty)

    def _snapshot(self) -> LevelSnapshot:
        ridge, sums = self._sums.ridge(self.sigma, self.penalty), self._sums
        constant = sums.count * np.log(self.sigma * np.sqrt(2 * np.pi))
        loss = constant + 0.5 * (sums.energy / self.sigma**2 - ridge.explained + ridge.log_determinant)
        return level_snapshot(self._stream, self.alpha, float(loss))
