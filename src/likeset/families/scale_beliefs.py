r"""What is believed of theta and of the noise's variance together, for Gaussian noise (normal-inverse-gamma beliefs).

Priors  theta | sigma ~ N(0, sigma^2 I / lambda_j),  1/sigma^2 ~ Gamma(a, rate b).  With m_j and S_j the mean and, in
units of sigma^2, the covariance of theta, and

    r_s = x_s'S_j x_s,     B_j = sum_s (y_s - x_s'm_j)^2 / (2 (1 + r_s)),     D_j = sum_s log(1 + r_s)

summed one observation after the other, each with the beliefs before it, the forecasts are Student's t,

    y ~ x'm_j + sqrt((1 + r) (b + B_j) / (a + n/2)) t_{2a + n},

and their product over n observations is the marginal likelihood

    log Q_j = log Gamma(a + n/2) - log Gamma(a) + a log b - (a + n/2) log(b + B_j) - D_j / 2 - (n/2) log 2 pi.

The forecasts that are recorded blend over lambda_j and over rates b = sigma_k^2 / 2 for sigma_k on a wide geometric
grid (a = 1/2: tails so heavy that a coarse grid will do). They depend on no sigma, as a forecast for everybody must.

A numerator *for the test of one sigma* may depend on it. With b = a sigma^2 the prior is centred at the sigma that is
tested, no range has to be guessed, the first observation costs no more than any other, and in s = 1/sigma^2

    G_j(s) = log Q_j + (n/2) log(2 pi / s)
           = log Gamma(N) - log Gamma(a) + a log a - D_j/2 - N log(a + B_j s),        N = a + n/2,

which is convex in s: :mod:`likeset._solver.nuisance`. Small shapes a make sets bounded early, large ones narrow later:
``SHAPES`` are blended.
"""

from __future__ import annotations

from math import lgamma, log

import numpy as np

from likeset._solver.nuisance import MarginalGain
from likeset._typing import Array
from likeset.embedded import Embedded
from likeset.families.beliefs import Beliefs, ExactPosterior
from likeset.families.predictive import StudentPredictive
from likeset.state_checks import expect_array, expect_number

SHAPES = (0.5, 2.0, 8.0, 32.0)
FORECAST_SHAPE = 0.5


class ScalePosterior(ExactPosterior):
    """Beliefs about theta in units of sigma, and the sums that tell about sigma.

    Components are pairs (lambda_j, sigma_k), the latter running faster.
    """

    def __init__(self, priors: Array, sigmas: Array) -> None:
        super().__init__(1.0, priors)
        self.rates = FORECAST_SHAPE * np.asarray(sigmas, dtype=np.float64) ** 2
        self.count = 0
        self.squares, self.rest = np.zeros((2, len(self.beliefs.priors)))  # B_j, and what rounding took from it
        self.log_growth = np.zeros(len(self.beliefs.priors))  # D_j
        self._latest: tuple[Embedded, Array, Array] | None = None  # what was said of z where y is about to come

    @property
    def components(self) -> int:
        """Number of densities that are blended."""
        return len(self.rates) * len(self.beliefs.priors)

    def predict(self, phi: Embedded) -> tuple[Array, Array]:
        """Mean of z, and its standard deviation in units of sigma, for every component."""
        mean, sd = super().predict(phi)
        self._latest = (phi, mean, sd)
        return np.repeat(mean, len(self.rates)), np.repeat(sd, len(self.rates))

    def predictive(self, mean: Array, sd: Array, phi: Embedded) -> StudentPredictive:
        """The forecasts of all components, from what ``predict`` returned."""
        shape = FORECAST_SHAPE + 0.5 * self.count
        variance = (self.squares[:, None] + self.rates).ravel() / shape * (1.0 + sd * sd)
        around = mean if phi.law is None else mean + phi.law.shift
        return StudentPredictive(2.0 * shape, around, np.sqrt(variance))

    def observe(self, phi: Embedded, y: Array) -> None:
        """Add to B_j and D_j, then rank-one updates."""
        if self._latest is None or self._latest[0] is not phi:
            self.predict(phi)
        assert self._latest is not None
        _, mean, sd = self._latest
        self._latest = None
        spread = sd * sd
        noisy = float(y) if phi.law is None else float(y) - phi.law.shift  # of x'theta alone
        new = 0.5 * (noisy - mean) ** 2 / (1.0 + spread)
        total = self.squares + new
        larger = np.maximum(self.squares, new)
        self.rest = self.rest + ((larger - total) + np.minimum(self.squares, new))
        self.squares, self.log_growth = total, self.log_growth + np.log1p(spread)
        self.count += 1
        super().observe(phi, y)

    def gain(self) -> MarginalGain:
        """G of the marginal likelihoods with priors centred at the sigma that is tested, equal shares for all."""
        a = np.array(SHAPES)[:, None]
        N = a + 0.5 * self.count
        free = [lgamma(n) - lgamma(shape) + shape * log(shape) for n, shape in zip(N[:, 0], SHAPES, strict=True)]
        constants = np.array(free)[:, None] - 0.5 * self.log_growth - log(len(SHAPES) * len(self.squares))
        full = [np.broadcast_to(part, constants.shape).ravel() for part in (N, a, self.squares + self.rest)]
        return MarginalGain(constants.ravel(), full[0], full[1], full[2])

    def believed(self, shares: Array) -> tuple[Beliefs, Array, Array]:
        """Of theta alone: one Gaussian per lambda_j with sigma^2 as it is thought to be (in the geometric mean).

        Beliefs, their shares, and 1/sigma^2 under each.
        """
        beliefs, table = self.settled(), shares.reshape(len(self.beliefs.priors), len(self.rates))
        total = table.sum(axis=1)
        variances = (self.squares[:, None] + self.rates) / (FORECAST_SHAPE + 0.5 * self.count)
        within = np.where(total[:, None] > 0.0, table, 1.0)
        logs = (within * np.log(variances)).sum(axis=1) / within.sum(axis=1)
        beliefs.priors = beliefs.priors * np.exp(-logs)
        beliefs.factors *= np.exp(-0.5 * logs)[:, None, None]
        return beliefs, total, np.exp(-logs)

    def state(self) -> dict[str, Array]:
        """Beliefs and sums."""
        sums = {"squares": self.squares, "rest": self.rest, "log_growth": self.log_growth}
        return super().state() | sums | {"count": np.array([float(self.count)])}

    def restore(self, state: dict[str, Array]) -> None:
        """The inverse of ``state``."""
        super().restore(state)
        J = len(self.beliefs.priors)
        squares, rest, growth = (expect_array(state, name, (J,)) for name in ("squares", "rest", "log_growth"))
        count = expect_number(state, "count")
        if count != int(count) or (squares < 0).any() or (growth < 0).any():
            raise ValueError("sums of squares or counts are negative, or no whole numbers")
        self.squares, self.rest, self.log_growth, self.count = squares, rest, growth, int(count)
