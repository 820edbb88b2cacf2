r"""A belief about a smooth function whose length scales, height and noise are learnt: a Gaussian process, to choose by.

    y = m + f(x) + noise,     f ~ GP(0, v k_l),  noise ~ N(0, v r),      k_l: Matern 5/2, one length l_j per coordinate,
                                                                         exchangeable over categories
    maximised over l and r:

        - (n/2) log v  - (1/2) log det(K_l + r I)  - sum_j (log l_j - M)^2 / (2 S^2)  - (log r - log R)^2 / (2 T^2),

    m = 1'(K + rI)^-1 y / 1'(K + rI)^-1 1,         v = (y - m)'(K + rI)^-1 (y - m) / n     (their maximisers).

Symbols: l = ``lengths``, r = ``ratio`` of the variance of the noise to that of f, M, S, R, T the constants of the
priors, which keep few observations from deciding too much. A choice goes by the logarithm of the expected improvement
over the highest mean of a point seen (noise makes the highest y a poor guide),

    EI(x) = s(x) [ u Phi(u) + phi(u) ],     u = (mean(x) - best) / s(x).

Nothing that is certified rests on any of it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.optimize import minimize
from scipy.special import log_ndtr

from likeset._solver.linalg.threads import SingleThreadedBlas
from likeset._typing import Array
from likeset.spaces.mixed_kernel import MixedKernel

_MIDDLE, _SPREAD = np.log(0.8), 0.8  # of log lengths; coordinates run over an interval of length two, or are scaled so
_RATIO, _RATIO_SPREAD = np.log(1e-3), 2.0  # of the noise's share of the variance
_LIMITS = (np.log(0.05), np.log(20.0)), (np.log(1e-6), np.log(10.0))
_JITTER = 1e-8
_STARTS = ((0.8, 1e-3), (0.3, 1e-2), (2.0, 1e-2))
_ENOUGH = 3  # observations from which on there is anything to learn


class LearntScales:
    """Learns beside a sequence: ``update(x, y)``, and ``belief`` as it is now.

    sides        length of every coordinate's interval; 0 for a category

    >>> model = LearntScales([2.0])
    >>> x = np.linspace(-1.0, 1.0, 9)[:, None]
    >>> model.update(x, np.sin(3 * x[:, 0]))
    >>> mean, sd = model.belief.moments([[0.5]])
    >>> bool(abs(mean[0] - np.sin(1.5)) < 0.05)
    True
    """

    def __init__(self, sides: Any) -> None:
        self.sides = np.asarray(sides, dtype=np.float64)
        self._x, self._y = np.zeros((0, len(self.sides))), np.zeros(0)
        self._belief: ScalesBelief | None = None

    def update(self, x: Any, y: Any, offset: Any = 0.0) -> None:
        """Observations at the rows of x; an offset that is known is taken off."""
        rows = np.asarray(x, dtype=np.float64).reshape(-1, len(self.sides))
        self._x = np.vstack([self._x, rows])
        self._y = np.append(self._y, np.asarray(y, dtype=np.float64).reshape(-1) - offset)
        self._belief = None

    @property
    def belief(self) -> ScalesBelief:
        """What is believed now; learnt when it is first asked for."""
        if self._belief is None:
            with SingleThreadedBlas():  # small matrices, many of them
                self._belief = _fitted(self._x, self._y, self.sides)
        return self._belief


class ScalesBelief:
    """A Gaussian process given what was seen; frozen."""

    def __init__(self, kernel: MixedKernel, ratio: float, x: Array, y: Array, values: tuple[float, float]) -> None:
        self.kernel, self.ratio = kernel, ratio
        self._x, self._y, (self.mean, self.variance) = x, y, values
        if len(x):
            self._factor = np.linalg.cholesky(kernel(x, x) + (ratio + _JITTER) * np.eye(len(x)))
            self._shares = cho_solve((self._factor, True), y - self.mean)

    def __repr__(self) -> str:
        return (
            f"<ScalesBelief: {self.kernel!r}, noise {np.sqrt(self.ratio * self.variance):.3g}, {len(self._x)} points>"
        )

    def moments(self, X: Any) -> tuple[Array, Array]:
        """Mean and standard deviation of z for every row of X."""
        rows = np.asarray(X, dtype=np.float64).reshape(-1, len(self.kernel.lengths))
        if not len(self._x):
            return np.full(len(rows), self.mean), np.full(len(rows), np.sqrt(self.variance))
        cross = self.kernel(rows, self._x)
        inside = solve_triangular(self._factor, cross.T, lower=True)
        left = np.maximum(1.0 - (inside**2).sum(axis=0), 1e-12)
        return self.mean + cross @ self._shares, np.sqrt(self.variance * left)

    def supposing(self, X: Any) -> ScalesBelief:
        """The belief after observing at the rows of X just what it expects."""
        rows = np.asarray(X, dtype=np.float64).reshape(-1, len(self.kernel.lengths))
        x, y = np.vstack([self._x, rows]), np.append(self._y, self.moments(rows)[0])
        return ScalesBelief(self.kernel, self.ratio, x, y, (self.mean, self.variance))

    def log_improvement(self, X: Any, sign: float) -> Array:
        """log E max(sign z - best, 0) for every row of X, best the highest mean of sign z at a point seen."""
        mean, sd = self.moments(X)
        best = float(np.max(sign * self.moments(self._x)[0])) if len(self._x) else sign * self.mean
        return _log_improvement(sign * mean, sd, best)


def _log_improvement(mean: Array, sd: Array, best: float) -> Array:
    """log( sd (u Phi(u) + phi(u)) ), u = (mean - best) / sd, without cancellation far below."""
    u = (mean - best) / sd
    log_phi = -0.5 * u * u - 0.5 * np.log(2.0 * np.pi)
    # u Phi(u) + phi(u) = phi(u) [1 + u Phi(u) / phi(u)]; far below it is phi(u) / u^2 (1 - 3/u^2 + ...).
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        near = np.log(np.maximum(u * np.exp(log_ndtr(u)) + np.exp(log_phi), 1e-300))
        far = log_phi - 2.0 * np.log(np.abs(u))
    return np.asarray(np.log(sd) + np.where(u > -8.0, near, far))


def _fitted(x: Array, y: Array, sides: Array) -> ScalesBelief:
    """The process with the scales that the observations and the priors favour."""
    halves = np.where(sides > 0, 0.5 * sides, 0.0)
    spread = float(np.var(y)) if len(y) > 1 else 1.0
    spread = spread if spread > 0 else 1.0
    usual = (float(np.mean(y)) if len(y) else 0.0, spread)
    if len(y) < _ENOUGH or not np.ptp(y):
        return ScalesBelief(MixedKernel(halves * np.exp(_MIDDLE)), np.exp(_RATIO), x, y, usual)
    model = _Likelihood(x, y, halves)
    found = [
        minimize(model, np.append(np.full(model.numbers, np.log(length)), np.log(ratio)), jac=True, method="L-BFGS-B",
                 bounds=[_LIMITS[0]] * model.numbers + [_LIMITS[1]], options={"maxiter": 60})
        for length, ratio in _STARTS
    ]  # fmt: skip
    best = min(found, key=lambda result: float(result.fun))
    lengths = halves.copy()
    lengths[halves > 0] *= np.exp(best.x[:-1])
    mean, variance = model.profile(best.x)
    return ScalesBelief(MixedKernel(lengths), float(np.exp(best.x[-1])), x, y, (mean, variance))


class _Likelihood:
    """Minus the penalised log-likelihood of (log l, log r), and its gradient."""

    def __init__(self, x: Array, y: Array, halves: Array) -> None:
        self._y, self._ones = y, np.ones(len(y))
        numbers = np.flatnonzero(halves > 0)
        self.numbers = len(numbers)
        scaled = x[:, numbers] / halves[numbers]
        self._squares = (scaled[:, None, :] - scaled[None, :, :]) ** 2
        categories = x[:, halves == 0]
        same = MixedKernel(np.zeros(categories.shape[1]))(categories, categories) if categories.shape[1] else 1.0
        self._same = same * np.ones((len(y), len(y)))

    def _matrices(self, parameters: Array) -> tuple[Array, Any]:
        """-dK / d(r^2/2) with r the scaled distance, and the factor of V = K + ratio I."""
        weights = np.exp(-2.0 * parameters[:-1])
        a = np.sqrt(5.0 * self._squares @ weights)
        decay = np.exp(-a) * self._same
        K = (1.0 + a + a * a / 3.0) * decay
        V = K + (np.exp(parameters[-1]) + _JITTER) * np.eye(len(a))
        return (5.0 / 3.0) * (1.0 + a) * decay, cho_factor(V, lower=True)

    def profile(self, parameters: Array) -> tuple[float, float]:
        """m and v at these scales."""
        factor = self._matrices(parameters)[1]
        ones = cho_solve(factor, self._ones)
        mean = float(ones @ self._y / ones.sum())
        left = self._y - mean
        return mean, max(float(left @ cho_solve(factor, left)) / len(left), 1e-300)

    def __call__(self, parameters: Array) -> tuple[float, Array]:
        slope, factor = self._matrices(parameters)
        n = len(self._y)
        ones = cho_solve(factor, self._ones)
        left = self._y - float(ones @ self._y / ones.sum())
        shares = cho_solve(factor, left)
        v = max(float(left @ shares) / n, 1e-300)
        off = np.append((parameters[:-1] - _MIDDLE) / _SPREAD, (parameters[-1] - _RATIO) / _RATIO_SPREAD)
        value = 0.5 * n * np.log(v) + np.log(np.diag(factor[0])).sum() + 0.5 * float(off @ off)
        inverse = cho_solve(factor, np.eye(n))
        pull = inverse - np.outer(shares, shares) / v  # twice the gradient in V
        # dK/dlog l_j = -slope * d(r^2/2)/dlog l_j = slope * squares_j / l_j^2
        weights = np.exp(-2.0 * parameters[:-1])
        lengths = 0.5 * np.einsum("ab,ab,abj->j", pull, slope, self._squares) * weights
        noise = 0.5 * np.exp(parameters[-1]) * np.trace(pull)
        gradient = np.append(lengths, noise) + off / np.append(np.full(self.numbers, _SPREAD), _RATIO_SPREAD)
        return float(value), gradient
