r"""Bandit regret: Theorem 6 for linear bandits, its argument for other families, and AY 2011 beside it.

realised:  sum_{s<=t} [ reward(x_star) - reward(x_s) ],   e.g. ``Trace.cumulative_regret`` of ``likeset.simulate``
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from likeset._typing import Array
from likeset.arguments import choice, error_level, positive, positive_integer
from likeset.errors import InvalidArgumentError, ShapeError
from likeset.paper.theory.gain import information_gain, squared_lengths
from likeset.paper.theory.geometry import check_fit, covariate_rows, not_negative, stream_weights


def linear_bandit_regret_bound(x: Any, *, sigma: float, penalty: float, bound: float, delta: float) -> Array:
    r"""Theorem 6: UCB with the sets of FTRL(penalty=lambda), alpha = delta, Gaussian noise and w = 1 has, with
    probability 1 - 3 delta and for all t, regret at most sqrt(2 t sigma^2 gamma_t beta_t),

        beta_t = 20 log(1/delta) + 8 lambda B^2 + 8 gamma_t + 16 (B^2/sigma^2) gamma_t.

    Symbols: gamma_t of the covariates played (rows of ``x``, |x| <= 1) with mu = 1/sigma^2, nu = lambda ``penalty`` >=
    1/sigma^2. beta_t collects Theorems 3 and 4 as corrected here: nu B^2/2, Gamma = gamma/2, 2 log(1/delta) and
    4 L^2 B^2 in the FTRL bound.

    >>> linear_bandit_regret_bound([[1.0], [1.0]], sigma=0.5, penalty=4.0, bound=1.0, delta=0.1).round(2)
    array([ 6.66, 13.14])
    """
    sigma, lam, B = positive("sigma", sigma), positive("penalty", penalty), positive("bound", bound)
    gamma = _linear_gain(x, sigma, lam)
    beta = 20 * np.log(1 / error_level("delta", delta)) + 8 * lam * B**2 + 8 * gamma + 16 * (B / sigma) ** 2 * gamma
    return np.sqrt(2 * np.arange(1, len(gamma) + 1) * sigma**2 * gamma * beta)


def linear_bandit_regret_bound_as_printed(x: Any, *, sigma: float, penalty: float, bound: float, delta: float) -> Array:
    r"""Theorem 6's display,

        6 sqrt(t gamma_t) ( sigma sqrt(log(1/delta) + gamma_t) + sigma sqrt(lambda) B + B sqrt(gamma_t) ).

    Its constants come from Theorem 4 as printed, but its last steps are generous enough: it is at least
    :func:`linear_bandit_regret_bound`, hence true, whenever lambda B^2 >= 0.003 log(1/delta).

    >>> linear_bandit_regret_bound_as_printed([[1.0], [1.0]], sigma=0.5, penalty=4.0, bound=1.0, delta=0.1).round(2)
    array([13.48, 26.42])
    """
    sigma, lam, B = positive("sigma", sigma), positive("penalty", penalty), positive("bound", bound)
    gamma = _linear_gain(x, sigma, lam)
    inner = sigma * np.sqrt(np.log(1 / error_level("delta", delta)) + gamma) + sigma * np.sqrt(lam) * B
    return 6 * np.sqrt(np.arange(1, len(gamma) + 1) * gamma) * (inner + B * np.sqrt(gamma))


def bandit_regret_bound(gain: Any, radius: Any, *, mu: float, lipschitz: float = 1.0, t: Any = None) -> Array:
    r"""The argument of Theorem 6 for any family:

        regret <= l sqrt( 2 t gamma_t beta_t / mu ),     beta_t = 2 max_{s<=t} radius_s.

    Because D_Z(theta, theta*) >= |theta - theta*|_V^2 / 2 with V = mu sum x x' + nu I, the radius of Theorem 3 bounds
    |theta - theta*|_V^2 by 2 radius, and optimism costs at most l |x_s|_{V^-1} times that distance in round s.

    gain       gamma_t for t = 1, 2, ... (:func:`~likeset.theory.information_gain` with this mu and nu >= mu)
    radius     Theorem 3's, for t = 1, 2, ...; the bound adapts to the data with max(0, R_1, ..., R_t) for R_t in it
               (the first choice is made at R_0 = 0)
    lipschitz  l: 1 if regret is counted in z, L if in the mean count A'(z)
    t          the times of the entries; default 1, 2, ... (with gaps, the radius should not fall in between)

    Holds where the sets cover theta* and Theorem 3 holds: with probability 1 - alpha - delta.

    >>> bandit_regret_bound([0.7, 1.1], [10.0, 11.0], mu=1.0).round(2)
    array([5.29, 9.84])
    """
    gamma, radius = np.atleast_1d(not_negative("gain", gain)), np.atleast_1d(not_negative("radius", radius))
    if gamma.ndim != 1 or radius.shape != gamma.shape:
        raise ShapeError("radius", radius, f"has shape {radius.shape}", f"pass one for each of the {gamma.size} gains")
    beta = 2 * np.maximum.accumulate(radius)
    times = np.arange(1.0, len(gamma) + 1) if t is None else not_negative("t", t)
    check_fit(gamma, times, "t")
    return positive("lipschitz", lipschitz) * np.sqrt(2 * times * gamma * beta / positive("mu", mu))


def weighted_bandit_regret_bound(
    x: Any,
    weights: Any,
    radius: Any,
    *,
    mu: float,
    nu: float,
    lipschitz: float = 1.0,
    form: Literal["worst weight", "lengths"] = "worst weight",
) -> Array:
    r"""The argument of Theorem 6 for weighted sets, which the paper states in words: a factor of sup 1/w.

        "worst weight"   l sqrt( 2 t gamma_t beta_t / (mu min_{s<=t} w_s) ),     gamma_t that of sqrt(w_s) x_s
        "lengths"        l sqrt( t beta_t sum_{s<=t} x_s'W_{s-1}^-1 x_s ),       W_s = mu sum_{j<=s} w_j x_j x_j' + nu I

    with beta_t = 2 max_{s<=t} radius_s. Theorem 3 bounds |theta - theta*|_W^2 by 2 radius for the weighted Z, and the
    round s costs at most l |x_s|_{W_{s-1}^-1} sqrt(beta). Where nu >= mu |x|^2, u = mu w_s x_s'W_{s-1}^-1 x_s is at
    most 1, so at most 2 log(1 + u): the first form, which needs such a nu; the second stays finite where a weight is 0.

    x, weights  covariates and weights of the stream that UCB with the weighted set has played
    radius      Theorem 3's for t = 1, 2, ..., with the weighted R_t and Gamma_t

    >>> x, w = [[1.0], [1.0]], [0.5, 1.0]
    >>> weighted_bandit_regret_bound(x, w, [10.0, 11.0], mu=1.0, nu=1.0).round(2)
    array([ 5.7, 12.7])
    >>> weighted_bandit_regret_bound(x, w, [10.0, 11.0], mu=1.0, nu=1.0, form="lengths").round(2)
    array([4.47, 8.56])
    """
    covariates = covariate_rows(x)
    w = stream_weights(weights, len(covariates))
    mu, nu, speed = positive("mu", mu), positive("nu", nu), positive("lipschitz", lipschitz)
    choice("form", form, ("worst weight", "lengths"))
    radii = np.atleast_1d(not_negative("radius", radius))
    if radii.shape != w.shape:
        raise ShapeError("radius", radius, f"has shape {radii.shape}", f"pass one for each of the {len(w)} rows of x")
    beta = 2 * np.maximum.accumulate(radii)
    before, _ = squared_lengths(covariates, mu, nu, w)
    t = np.arange(1.0, len(w) + 1)
    if form == "lengths":
        return speed * np.sqrt(t * beta * np.cumsum(before))
    if (mu * np.sum(covariates**2, axis=1) > nu * (1 + 1e-9)).any():
        raise InvalidArgumentError("nu", nu, "is below mu |x|^2", 'pass a larger one, or form="lengths"')
    gamma = np.cumsum(np.log1p(mu * w * before))
    with np.errstate(divide="ignore"):  # a weight of zero: the bound says nothing from there on
        return speed * np.sqrt(2 * t * gamma * beta / mu / np.minimum.accumulate(w))


def abbasi_yadkori_regret_bound(
    t: Any, dim: int, *, sigma: float, bound: float, delta: float, penalty: float = 1.0
) -> Array:
    r"""AY 2011, Theorem 3: UCB with their ellipsoids has, with probability 1 - delta and for all t, regret at most

        4 sqrt( t d log(lambda + t/d) ) ( sqrt(lambda) B + sigma sqrt( 2 log(1/delta) + d log(1 + t/(lambda d)) ) ).

    ``penalty`` is lambda >= 1 in V = lambda I + sum x x', that is sigma^2 times the penalty of
    :class:`~likeset.comparison.AbbasiYadkori`; |x| <= 1. Paper: appendix D.1, where a bracket is missing.

    >>> abbasi_yadkori_regret_bound([1, 100], dim=2, sigma=0.5, bound=1.0, delta=0.1).round(1)
    array([  7.8, 310.2])
    """
    lam, d = positive("penalty", penalty), positive_integer("dim", dim)
    if lam < 1:
        raise InvalidArgumentError("penalty", penalty, "is below 1", "AY 2011 assume lambda >= 1")
    t = not_negative("t", t)
    inner = 2 * np.log(1 / error_level("delta", delta)) + d * np.log1p(t / (lam * d))
    width = np.sqrt(lam) * positive("bound", bound) + positive("sigma", sigma) * np.sqrt(inner)
    return 4 * np.sqrt(t * d * np.log(lam + t / d)) * width


def _linear_gain(x: Any, sigma: float, penalty: float) -> Array:
    covariates = covariate_rows(x)
    mu = 1 / sigma**2
    if (np.linalg.norm(covariates, axis=1) > 1 + 1e-9).any():
        raise InvalidArgumentError("x", x, "has rows longer than 1", "Theorem 6 assumes |x| <= 1; rescale")
    if penalty < mu * (1 - 1e-9):
        raise InvalidArgumentError("penalty", penalty, f"is below 1/sigma^2 = {mu:g}", "Theorem 6 assumes lambda >= it")
    return information_gain(covariates, mu, penalty)
