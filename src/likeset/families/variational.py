r"""Variational Gaussian beliefs for Laplace noise.

|y - z| / b has no curvature, but its expectation under z ~ N(m, s^2) has: with u = (m - y)/s,

    E' = (2 Phi(u) - 1) / b,          E'' = 2 phi(u) / (s b).

The belief N(m, S) closest to the posterior in Kullback-Leibler divergence is the fixed point of

    S^-1 = lambda I + sum_k E''_k x_k x_k',        m <- m - S (lambda m + sum_k E'_k x_k),

iterated here with damping on the precision and a line search on the mean: for fixed S the divergence is convex in m, up
to constants  lambda |m|^2 / 2 + sum w E|y - z|  with  E|y - z| = s [ u (2 Phi(u) - 1) + 2 phi(u) ] / b. Any result is
valid: it only shapes a forecast.
"""

from __future__ import annotations

import math

import numpy as np

from likeset._solver.linalg.matrix import cholesky, dot, solve_lower, solve_lower_transposed
from likeset._solver.problem import PointTerms
from likeset._typing import Array, IntArray
from likeset.compiling import inner, kernel
from likeset.families.fitted_posterior import FittedPosterior

SWEEPS = 12
SETTLED = 1e-3  # stop when no z moves by more than this fraction of its standard deviation
MAX_HALVINGS = 40
KEEP = 0.3  # share of the old precision kept in each sweep
FAR = 8.0  # beyond this many standard deviations a point's side is certain


@inner()
def smoothed_slopes(
    points: Array, weights: Array, start: int, stop: int, mean: float, sd: float
) -> tuple[float, float]:
    """sum w E' and sum w E'' over one covariate's sorted points (weights already hold 1/b)."""
    slope, curvature = 0.0, 0.0
    for i in range(start, stop):
        u = (mean - points[i]) / sd
        if u > FAR:
            slope += weights[i]
        elif u < -FAR:
            slope -= weights[i]
        else:
            slope += weights[i] * math.erf(u / math.sqrt(2.0))
            curvature += weights[i] * 2.0 * math.exp(-0.5 * u * u) / (math.sqrt(2.0 * math.pi) * sd)
    return slope, curvature


@inner()
def smoothed_loss(
    X: Array, starts: IntArray, points: Array, weights: Array, prior: float, m: Array, sds: Array
) -> float:
    """lambda |m|^2 / 2 + sum w E|y - z| over all points, for standard deviations ``sds`` of the z of each covariate."""
    total = 0.0
    for i in range(m.shape[0]):
        total += 0.5 * prior * m[i] * m[i]
    for k in range(X.shape[0]):
        mean = 0.0
        for i in range(m.shape[0]):
            mean += X[k, i] * m[i]
        for i in range(starts[k], starts[k + 1]):
            u = (mean - points[i]) / sds[k]
            if abs(u) > FAR:
                total += weights[i] * abs(mean - points[i])
            else:
                kernel = u * math.erf(u / math.sqrt(2.0)) + 2.0 * math.exp(-0.5 * u * u) / math.sqrt(2.0 * math.pi)
                total += weights[i] * sds[k] * kernel
    return total


@kernel(allocates=True)
def fit_variational(
    X: Array, starts: IntArray, points: Array, weights: Array, priors: Array, means: Array, factors: Array
) -> None:
    """Update every (mean, precision factor) in place, warm-started."""
    K, d = X.shape
    work, gradient, sds, trial, direction = np.empty(d), np.empty(d), np.empty(K), np.empty(d), np.empty(d)
    P = np.empty((d, d))
    for j in range(priors.shape[0]):
        L, m = factors[j], means[j]
        for _ in range(SWEEPS):
            for i in range(d):
                gradient[i] = priors[j] * m[i]
                for i2 in range(i + 1):
                    P[i, i2] = 0.0
            for k in range(K):
                mean = 0.0
                for i in range(d):
                    mean += X[k, i] * m[i]
                    work[i] = X[k, i]
                solve_lower(L, work)
                sds[k] = math.sqrt(max(dot(work, work), 1e-300))
                slope, curvature = smoothed_slopes(points, weights, starts[k], starts[k + 1], mean, sds[k])
                for i in range(d):
                    gradient[i] += slope * X[k, i]
                    for i2 in range(i + 1):
                        P[i, i2] += curvature * X[k, i] * X[k, i2]
            for i in range(d):
                for i2 in range(i + 1):
                    old = 0.0
                    for q in range(i2 + 1):
                        old += L[i, q] * L[i2, q]
                    if i == i2:
                        old -= priors[j]
                    P[i, i2] = (1.0 - KEEP) * P[i, i2] + KEEP * old
            if not cholesky(P, priors[j], L):
                break
            for i in range(d):
                direction[i] = gradient[i]
            solve_lower(L, direction)
            solve_lower_transposed(L, direction)
            descent = dot(gradient, direction)
            loss = smoothed_loss(X, starts, points, weights, priors[j], m, sds)
            step = 1.0
            for _ in range(MAX_HALVINGS):
                for i in range(d):
                    trial[i] = m[i] - step * direction[i]
                if smoothed_loss(X, starts, points, weights, priors[j], trial, sds) <= loss - 0.1 * step * descent:
                    break
                step *= 0.5
            else:
                break
            for i in range(d):
                m[i] = trial[i]
            moved = 0.0
            for k in range(K):
                change = 0.0
                for i in range(d):
                    change += X[k, i] * direction[i]
                moved = max(moved, step * abs(change) / sds[k])
            if moved < SETTLED:
                break


class VariationalPosterior(FittedPosterior):
    """Laplace noise."""

    def fit(self) -> None:
        """A few damped sweeps from the last fit."""
        terms = self.data.terms()
        assert isinstance(terms, PointTerms)
        means, factors = self.beliefs.writable()
        fit_variational(
            self.data.coordinates, terms.starts, terms.points, terms.weights, self.beliefs.priors, means, factors
        )  # fmt: skip
