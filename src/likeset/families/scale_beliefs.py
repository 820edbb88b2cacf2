r"""What is believed of theta and of the scale of the noise together.

**Gaussian noise** (normal-inverse-gamma beliefs, exact).

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

**Laplace noise.** The beliefs about theta are variational, in units of a running estimate of the scale b. A forecast is
Laplace around x'm_j with the scale c b, c^2 = 1 + r/2 so that variances agree, and 1/b ~ Gamma(a, rate); with
e_s = |y_s - x_s'm_j| / c_s, E_j = sum e_s, D_j = sum log c_s the product of the forecasts is in closed form again,

    log Q_j = log Gamma(a + n) - log Gamma(a) + a log rate - (a + n) log(rate + E_j) - D_j - n log 2,

and G_j(s) as above, with s = 1/b, N = a + n, E_j for B_j and D_j for D_j / 2. Nothing asks m_j and c to be good ones.
"""

from __future__ import annotations

import copy
from math import lgamma, log
from typing import Any, Self

import numpy as np

from likeset._solver.nuisance import MarginalGain
from likeset._solver.problem import PointTerms
from likeset._typing import Array
from likeset.embedded import Embedded
from likeset.families.beliefs import Beliefs
from likeset.families.exact_posterior import ExactPosterior
from likeset.families.fitted_posterior import FittedPosterior
from likeset.families.outside import Believed
from likeset.families.predictive import ParetoPredictive, StudentPredictive
from likeset.families.sorted_sums import PointSums
from likeset.families.variational import fit_variational
from likeset.state_checks import expect_array, expect_number
from likeset.undo import Undo

SHAPES = (0.1, 0.5, 2.0, 8.0, 32.0)
FORECAST_SHAPE = 0.5


class ScaleSums:
    """B_j, D_j and the number of observations: what J sequences of forecasts have told about the scale.

    ``power`` is k in s = scale^-k: 2 for Gaussian noise, 1 for Laplace noise. Blended over scales sigma_k, the latter
    running faster, in forecasts that know none.
    """

    def __init__(self, count: int, scales: Array, power: int) -> None:
        self.power, self.n = power, 0
        self.rates = FORECAST_SHAPE * np.asarray(scales, dtype=np.float64) ** power
        self.losses, self.rest = np.zeros((2, count))  # B_j, and what rounding took from it
        self.log_growth = np.zeros(count)  # D_j
        self._powers: Array | None = None

    @property
    def components(self) -> int:
        """Number of densities that are blended."""
        return len(self.rates) * len(self.losses)

    @property
    def shape(self) -> float:
        """a + n/k of the forecasts."""
        return FORECAST_SHAPE + self.n / self.power

    @property
    def rate(self) -> Array:
        """b + B_j of every component."""
        return (self.losses[:, None] + self.rates).ravel()

    @property
    def powers(self) -> Array:
        """(b + B_j) / (a + n/k) of every component: scale^k as it is thought to be. Read only: made once per n."""
        if self._powers is None:
            self._powers = self.rate / self.shape
        return self._powers

    def spread_out(self, per_prior: Array) -> Array:
        """One entry per component."""
        return per_prior.repeat(len(self.rates))

    def add(self, losses: Array, log_growth: Array) -> None:
        """One observation; arrays are replaced, not written to."""
        total = self.losses + losses
        self.rest = self.rest + ((np.maximum(self.losses, losses) - total) + np.minimum(self.losses, losses))
        self.losses, self.log_growth, self.n = total, self.log_growth + log_growth, self.n + 1
        self._powers = None

    def gain(self) -> MarginalGain:
        """G of the marginal likelihoods with priors centred at the scale that is tested, equal shares for all."""
        a = np.array(SHAPES)[:, None]
        N = a + self.n / self.power
        free = [lgamma(n) - lgamma(shape) + shape * log(shape) for n, shape in zip(N[:, 0], SHAPES, strict=True)]
        constants = np.array(free)[:, None] - self.log_growth - log(len(SHAPES) * len(self.losses))
        full = [np.broadcast_to(part, constants.shape).ravel() for part in (N, a, self.losses + self.rest)]
        return MarginalGain(constants.ravel(), full[0], full[1], full[2])

    def state(self) -> dict[str, Array]:
        """The sums."""
        sums = {"losses": self.losses, "losses_rest": self.rest, "log_growth": self.log_growth}
        return sums | {"count": np.array([float(self.n)])}

    def restore(self, state: dict[str, Array]) -> None:
        """The inverse of ``state``."""
        names = ("losses", "losses_rest", "log_growth")
        losses, rest, growth = (expect_array(state, name, self.losses.shape) for name in names)
        count = expect_number(state, "count")
        if count != int(count) or (losses < 0).any() or (growth < 0).any():
            raise ValueError("losses or counts are negative, or no whole numbers")
        self.losses, self.rest, self.log_growth, self.n = losses, rest, growth, int(count)
        self._powers = None


class _WithScale:
    """What beliefs of theta in units of a scale share, whatever the noise: the sums that tell about the scale.

    Stands before a posterior, whose methods it completes.
    """

    scale: ScaleSums
    _latest: tuple[Embedded, Array, Array] | None = None  # what was said of z where y is about to come

    @property
    def components(self) -> int:
        """Number of densities that are blended."""
        return self.scale.components

    def predict(self, phi: Embedded) -> tuple[Array, Array]:
        """Mean of z, and its standard deviation in units of the scale, for every component."""
        mean, sd = super().predict(phi)  # type: ignore[misc]
        self._latest = (phi, mean, sd)
        return self.scale.spread_out(mean), self.scale.spread_out(sd)

    def believed_of_z(self, shares: Array, mean: Array, sd: Array) -> Believed:
        """z as ``predict`` said, and the scale in the geometric mean."""
        logs = np.log(self.scale.powers) / self.scale.power
        number = float(np.exp(shares @ logs / shares.sum()))
        centre = float(shares @ mean)
        variance = float(shares @ ((number * sd) ** 2 + (mean - centre) ** 2))
        return Believed(centre, float(np.sqrt(variance)), number, self.scale.n)

    def rescaled(self, ratios: Array) -> Self:
        """A copy in other units, with sums of its own."""
        other = super().rescaled(ratios)  # type: ignore[misc]
        other.scale = copy.copy(self.scale)
        return other  # type: ignore[no-any-return]

    def evidence(self) -> None:
        """Of theta and of the scale together: not known in other units."""

    def gain(self) -> MarginalGain:
        """What numerators made for the test of every scale have earned."""
        return self.scale.gain()

    def remember(self, undo: Undo, phi: Embedded) -> None:
        """Keep beliefs and sums."""
        super().remember(undo, phi)  # type: ignore[misc]
        undo.keep(self.scale)

    def believed(self, shares: Array) -> tuple[Beliefs, Array, Array]:
        """Of theta alone: :func:`of_theta_alone`."""
        return of_theta_alone(self.settled(), self.scale, shares)  # type: ignore[attr-defined]

    def state(self) -> dict[str, Array]:
        """Beliefs and sums."""
        return super().state() | self.scale.state()  # type: ignore[misc]

    def restore(self, state: dict[str, Array]) -> None:
        """The inverse of ``state``."""
        super().restore(state)  # type: ignore[misc]
        self.scale.restore(state)


class ScalePosterior(_WithScale, ExactPosterior):
    """Gaussian noise: beliefs about theta in units of sigma, and the sums that tell about sigma."""

    def __init__(self, priors: Array, sigmas: Array) -> None:
        super().__init__(1.0, priors)
        self.scale = ScaleSums(len(self.beliefs.priors), sigmas, 2)

    def predictive(self, mean: Array, sd: Array, phi: Embedded) -> StudentPredictive:
        """The forecasts of all components, from what ``predict`` returned."""
        variance = self.scale.powers * (1.0 + sd * sd)
        around = mean if phi.law is None else mean + phi.law.shift
        return StudentPredictive(2.0 * self.scale.shape, around, np.sqrt(variance))

    def observe(self, phi: Embedded, y: Array) -> None:
        """Add to B_j and D_j, then rank-one updates."""
        mean, sd = _latest(self, phi)
        spread = sd * sd
        noisy = float(y) if phi.law is None else float(y) - phi.law.shift  # of x'theta alone
        self.scale.add(0.5 * (noisy - mean) ** 2 / (1.0 + spread), 0.5 * np.log1p(spread))
        super().observe(phi, y)


class LaplaceScalePosterior(_WithScale, FittedPosterior):
    """Laplace noise: variational beliefs about theta in units of a running scale, and the sums that tell about it."""

    def __init__(self, sums: PointSums, priors: Array, scales: Array) -> None:
        super().__init__(sums, priors)
        self.scale = ScaleSums(len(self.beliefs.priors), scales, 1)

    def predictive(self, mean: Array, sd: Array, phi: Embedded) -> ParetoPredictive:
        """The forecasts of all components, from what ``predict`` returned."""
        return ParetoPredictive(self.scale.shape, mean, self.scale.rate * np.sqrt(1.0 + 0.5 * sd * sd))

    def observe(self, phi: Embedded, y: Array) -> None:
        """Add to E_j and D_j; merge the observation."""
        mean, sd = _latest(self, phi)
        wider = np.sqrt(1.0 + 0.5 * sd * sd)
        self.scale.add(np.abs(float(y) - mean) / wider, np.log(wider))
        super().observe(phi, y)

    def fit(self) -> None:
        """A few damped sweeps from the last fit, in units of the mean absolute residual of the best belief."""
        terms = self.data.terms()
        assert isinstance(terms, PointTerms)
        X = self.data.coordinates
        means, factors = self.beliefs.writable()
        owners = np.repeat(np.arange(len(X)), np.diff(terms.starts))
        best = int(np.argmin(self.scale.losses))
        residuals = np.abs(terms.points - (X @ means[best])[owners])
        freedom = max(len(residuals) - X.shape[1], 1)
        unit = float(residuals.sum()) / freedom
        if not unit > 1e-9 * float(np.abs(terms.points).max(initial=0.0)):
            unit = max(float(np.abs(terms.points).max(initial=0.0)), 1e-90)
        means /= unit
        fit_variational(X, terms.starts, terms.points / unit, terms.weights, self.beliefs.priors, means, factors)
        means *= unit


def of_theta_alone(beliefs: Beliefs, scale: ScaleSums, shares: Array) -> tuple[Beliefs, Array, Array]:
    """One Gaussian per lambda_j with the scale as it is thought to be (in the geometric mean).

    Beliefs, their shares, and 1/scale^2 under each; ``beliefs`` come in units of the scale and are changed.
    """
    table = shares.reshape(len(scale.losses), len(scale.rates))
    total = table.sum(axis=1)
    variances = (scale.rate.reshape(table.shape) / scale.shape) ** (2 / scale.power)
    within = np.where(total[:, None] > 0.0, table, 1.0)
    logs = (within * np.log(variances)).sum(axis=1) / within.sum(axis=1)
    beliefs.priors = beliefs.priors * np.exp(-logs)
    beliefs.factors *= np.exp(-0.5 * logs)[:, None, None]
    return beliefs, total, np.exp(-logs)


def _latest(posterior: Any, phi: Embedded) -> tuple[Array, Array]:
    """Mean and standard deviation of z at phi under every prior, as they were when the forecast was made."""
    if posterior._latest is None or posterior._latest[0] is not phi:
        posterior.predict(phi)
    _, mean, sd = posterior._latest
    posterior._latest = None
    return mean, sd
