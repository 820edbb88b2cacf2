r"""Information gain: how much the covariates can teach, the complexity term of every bound.

* ``information_gain``            gamma_t, the paper's, one value per t
* ``bregman_information_gain``    Gamma_t exactly where there is a closed form, otherwise approximately

The paper calls them equal for Gaussian noise; its gamma_t is a log determinant, Gamma_t half of it (w = 1).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from likeset._typing import Array
from likeset.arguments import choice, generator, one_row, positive, positive_integer
from likeset.errors import InvalidArgumentError
from likeset.families import Gaussian
from likeset.families.base import Family
from likeset.paper.theory.geometry import ROUNDING, LogPartition, covariate_rows, not_negative, solvable, stream_weights

DEGREES_OF_FREEDOM = (
    5.0  # of the Student proposal: tails heavier than any exp(-D_Z), whose tails are Gaussian or lighter
)


def squared_lengths(x: Any, mu: float, nu: float, weights: Any = None) -> tuple[Array, Array]:
    r"""(x_s'V_{s-1}^-1 x_s, x_s'V_s^-1 x_s) for every s, with V_s = mu sum_{j<=s} w_j x_j x_j' + nu I; default w = 1.

    >>> squared_lengths([[1.0], [1.0]], mu=1.0, nu=1.0)
    (array([1. , 0.5]), array([0.5       , 0.33333333]))
    >>> squared_lengths([[1.0], [1.0]], mu=1.0, nu=1.0, weights=[0.0, 1.0])[0]       # the first taught nothing
    array([1., 1.])
    """
    covariates = covariate_rows(x)
    mu, nu = positive("mu", mu), positive("nu", nu)
    gains = mu * stream_weights(weights, len(covariates))
    V = nu * np.eye(covariates.shape[1])
    before = np.empty(len(covariates))
    sound = nu > ROUNDING * (nu + mu * np.sum(covariates * covariates))  # whatever their directions
    for s, row in enumerate(covariates):
        before[s] = row @ np.linalg.solve(V if sound else solvable(V, "x", x), row)
        V += gains[s] * np.outer(row, row)
    return before, before / (1.0 + gains * before)


def information_gain(x: Any, mu: float, nu: float) -> Array:
    r"""gamma_t = log det( I + (mu/nu) sum_{s<=t} x_s x_s' ) for t = 1, 2, ...

    Symbols: x_s rows of ``x``; mu the least curvature of A (1/sigma^2 for Gaussian noise); nu the regularisation.
    Paper: section 3.2 and Corollary 1.

    >>> information_gain([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]], mu=1.0, nu=1.0).round(4)
    array([0.6931, 1.0986, 1.7918])
    """
    mu = positive("mu", mu)
    before, _ = squared_lengths(x, mu, nu)
    return np.cumsum(np.log1p(mu * before))


def worst_information_gain(t: Any, dim: int, mu: float, nu: float) -> Array:
    """Corollary 1: gamma_t <= d log(1 + mu t / nu) for |x| <= 1, whatever the covariates.

    >>> float(worst_information_gain(3, dim=2, mu=1.0, nu=1.0).round(4))
    2.7726
    """
    return positive_integer("dim", dim) * np.log1p(positive("mu", mu) * not_negative("t", t) / positive("nu", nu))


@dataclass(frozen=True)
class Estimate:
    """A number, its standard error (0 for closed forms, NaN where unknown) and how it was found."""

    value: float
    standard_error: float
    method: str

    def __float__(self) -> float:
        return self.value


def bregman_information_gain(
    family: Family,
    x: Any,
    centre: Any = None,
    weights: Any = None,
    *,
    nu: float,
    method: Literal["auto", "exact", "laplace", "importance"] = "auto",
    samples: int = 4096,
    rng: Any = 0,
) -> Estimate:
    r"""Gamma_t = log ∫ exp(-(nu/2)|theta|^2) dtheta - log ∫ exp(-D_Z(theta, centre)) dtheta, over R^d.

    Symbols: Z :class:`~likeset.theory.LogPartition` of ``x``, ``weights`` and ``nu``; ``centre`` the estimate theta~_t
    (:func:`~likeset.theory.penalised_estimate`); it plays no role for Gaussian noise. Paper: section 3.2; the numerator
    in appendices B and D lacks its nu.

    method  "exact"       (1/2) log det( I + sum_s w_s x_s x_s' / (sigma^2 nu) ): Gaussian noise only
            "laplace"     (1/2) log det( Z''(centre) / nu ): error unknown, on either side
            "importance"  Monte Carlo with a Student proposal around ``centre`` shaped by Z''(centre); ``samples`` draws
                          from ``rng`` (seed or generator); the standard error is that of log(mean of the ratios)
            "auto"        exact for Gaussian noise, otherwise importance

    >>> import likeset as ls
    >>> bregman_information_gain(ls.Gaussian(1.0), [[1.0], [1.0], [1.0]], nu=1.0)    # log(4) / 2
    Estimate(value=0.6931471805599453, standard_error=0.0, method='exact')
    >>> about = bregman_information_gain(ls.Poisson(), [[1.0]] * 3, [0.2], nu=1.0)
    >>> about.method, about.standard_error < 0.02
    ('importance', True)
    """
    Z = LogPartition(family, x, weights, nu=nu)
    choice("method", method, ("auto", "exact", "laplace", "importance"))
    if method == "exact" and not isinstance(family, Gaussian):
        raise InvalidArgumentError(
            "method", method, f"does not exist for {family!r}", 'use "importance", or "laplace" without an error'
        )
    dim = Z.x.shape[1]
    if isinstance(family, Gaussian) and method in ("auto", "exact"):
        return Estimate(_half_log_det(solvable(Z.hessian(np.zeros(dim)), "x", x), Z.nu), 0.0, "exact")
    if centre is None:
        raise InvalidArgumentError("centre", centre, "is needed for this family", "pass penalised_estimate(...)")
    middle = one_row("centre", centre, dim)
    H = solvable(Z.hessian(middle), "x", x)
    if method == "laplace":
        return Estimate(_half_log_det(H, Z.nu), float("nan"), "laplace")
    return _importance(Z, middle, H, positive_integer("samples", samples), generator(rng))


def bregman_information_gain_as_printed(x: Any, sigma: float, nu: float, weights: Any = None) -> float:
    """The paper's appendix D for Gaussian noise: log det(...), twice the true Gamma_t (safe, but loose).

    >>> round(bregman_information_gain_as_printed([[1.0]] * 3, sigma=1.0, nu=1.0), 4)
    1.3863
    """
    covariates = covariate_rows(x)
    scaled = np.sqrt(stream_weights(weights, len(covariates)))[:, None] * covariates
    return float(information_gain(scaled, 1.0 / positive("sigma", sigma) ** 2, nu)[-1])


def _half_log_det(H: Array, nu: float) -> float:
    return 0.5 * float(np.linalg.slogdet(H / nu)[1])


def _importance(Z: LogPartition, centre: Array, H: Array, samples: int, rng: np.random.Generator) -> Estimate:
    """theta = centre + C (normal / sqrt(chi2/df)) with C C' = H^-1; mean of exp(-D) / proposal density."""
    dim, df = len(centre), DEGREES_OF_FREEDOM
    normals = rng.standard_normal((samples, dim))
    stretched = normals / np.sqrt(rng.chisquare(df, (samples, 1)) / df)
    root = np.linalg.cholesky(H)
    theta = centre + np.linalg.solve(root.T, stretched.T).T
    # log of (2 pi)^(d/2) det(H)^(-1/2) / proposal density, so that a Gaussian integrand would give ratios near one
    tail = 0.5 * (df + dim) * np.log1p(np.sum(stretched**2, axis=1) / df)
    log_ratio = -Z.divergence(theta, centre) + tail + _student_constant(df, dim)
    ratio = np.exp(log_ratio)
    mean = float(ratio.mean())
    error = float(ratio.std(ddof=1) / (np.sqrt(samples) * mean)) if samples > 1 else float("nan")
    return Estimate(_half_log_det(H, Z.nu) - float(np.log(mean)), error, "importance")


def _student_constant(df: float, dim: int) -> float:
    """log of the Student density's normalising constant relative to the Gaussian one."""
    from scipy.special import gammaln

    return float(gammaln(df / 2) - gammaln((df + dim) / 2) + 0.5 * dim * np.log(df / 2))
