r"""The online prediction game: the regret R_t that decides the size of the sets, and what bounds it.

R_t = sum_{s<=t} w_s ( log p_theta*(y_s|x_s) - log q_s(y_s) )       (the paper's equation 3)

predictor              bound
FTRL                   Theorem 4: ``ftrl_regret_bound``
VAW                    Theorem 5: :mod:`likeset.paper.theory.vaw`
Mixture, one prior     nu B^2/2 + Gamma_t, beyond the paper: ``mixture_regret_bound``
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from likeset._solver.newton import CurveSum, newton_ball
from likeset._typing import Array
from likeset.arguments import choice, error_level, flag, one_row, positive, positive_integer, real_number
from likeset.curves import curve_derivatives
from likeset.errors import InvalidArgumentError
from likeset.evidence.ledger import Ledger
from likeset.families.base import Family, checked_family, largest_predictor
from likeset.paper.theory.gain import information_gain, squared_lengths
from likeset.paper.theory.geometry import (
    GOAL,
    Curvature,
    canonical,
    covariate_rows,
    curve_family,
    log_partition,
    not_negative,
    solvable,
    stream_observations,
    stream_weights,
)

_RATES = np.geomspace(1e-4, 10.0, 26)  # eta in the noise bound of families without global smoothness
_TILTS = np.geomspace(1e-3, 30.0, 400)  # u in the tail bound; any choice is valid, a fine grid is nearly optimal


def online_regret(family: Family, ledger: Ledger, theta: Any) -> Array:
    """R_t of a sequence's predictor and weights for t = 1, 2, ..., under the truth ``theta`` (equation 3).

    >>> import likeset as ls
    >>> seq = ls.ConfidenceSequence(ls.Gaussian(1.0), ls.Linear(1, 1.0), predictor=ls.FTRL(), windows=None)
    >>> seq.update([[1.0], [1.0]], [0.4, 0.8])
    >>> online_regret(seq.family, seq.ledger, [0.5]).round(4)           # first forecast: z = 0; (0.4^2 - 0.1^2)/2
    array([0.075 , 0.2522])
    """
    x = recorded_rows(ledger)
    checked_family(family)
    log_p = family.log_density(ledger.y.rows, x @ one_row("theta", theta, x.shape[1]))
    return np.cumsum(ledger.weights.rows * (log_p - ledger.log_q.rows))


def recorded_rows(ledger: Any) -> Array:
    """The covariates of a sequence's record."""
    if not isinstance(ledger, Ledger):
        raise InvalidArgumentError("ledger", ledger, "is not the record of a sequence", "pass seq.ledger")
    return covariate_rows(ledger.x.rows)


def ftrl_estimates(family: Family, x: Any, y: Any, *, penalty: float, bound: float) -> Array:
    """Row s: argmin over |theta| <= B of sum_{j<=s} -log p_theta(y_j|x_j) + lambda |theta|^2; row 0 is zero.

    >>> import likeset as ls
    >>> ftrl_estimates(ls.Gaussian(1.0), [[1.0], [1.0]], [0.9, 1.1], penalty=0.5, bound=1.0).round(4)
    array([[0.    ],
           [0.45  ],
           [0.6667]])
    """
    checked = curve_family(family)
    covariates = covariate_rows(x)
    a, s, _ = checked.statistics(stream_observations(checked, y, len(covariates)))
    estimates = np.zeros((len(covariates) + 1, covariates.shape[1]))
    for t in range(1, len(covariates) + 1):
        F = CurveSum(covariates[:t], int(checked.curve), a[:t], s[:t])
        ridge, ball = positive("penalty", penalty), positive("bound", bound)
        estimates[t] = newton_ball(F, ridge, ball, estimates[t - 1], GOAL).theta
    return estimates


# -- noise -----------------------------------------------------------------------------------------------------------


def noise_potential(family: Family, x: Any, y: Any, theta: Any, *, penalty: float, bound: float) -> Array:
    r"""sum_{s<=t} |grad f_s(theta*)|^2 in the norm of V_s^-1, that is sum (T(y_s) - A'(x_s'theta*))^2 x_s'V_s^-1 x_s.

    V_s = mu sum_{j<=s} x_j x_j' + lambda I. Lemma 10's left side, for t = 1, 2, ...

    >>> import likeset as ls
    >>> noise_potential(ls.Gaussian(1.0), [[1.0], [1.0]], [0.9, 1.1], [0.4], penalty=1.0, bound=1.0).round(4)
    array([0.125 , 0.2883])
    """
    checked, _ = canonical(family)
    covariates = covariate_rows(x)
    _, statistic, _ = checked.statistics(stream_observations(checked, y, len(covariates)))
    z = covariates @ one_row("theta", theta, covariates.shape[1])
    _, after = squared_lengths(covariates, Curvature.of(family, bound, covariates).mu, penalty)
    return np.cumsum((statistic - log_partition(family, z)[1]) ** 2 * after)


def noise_bound(
    family: Family,
    x: Any,
    weights: Any = None,
    *,
    penalty: float,
    bound: float,
    delta: float,
    smoothness: Literal["auto", "local"] = "auto",
) -> Array:
    r"""What :func:`noise_potential`, its terms times w_s, stays below at all times with probability 1 - delta.

    If A is smooth everywhere (Gaussian, Bernoulli, Binomial), with v_s = x_s'V_s^-1 x_s:

        (L/mu)( - sum_s log(1 - w_s mu v_s) + 2 log(1/delta) ),

    for w = 1 Lemma 10's (L/mu)(gamma_t + 2 log(1/delta)), and never above it with gamma_t's increments times w_s. As
    printed, the lemma loses the factor 1/2 in Lemma 9's exponent, hence the 2, and has its event the wrong way round.

    Otherwise (Poisson, whose squared noise has no exponential moment), or for any family with ``smoothness="local"``:
    with the tail bounds |T(y_s) - A'(z_s)| <= a_s of :func:`tail_bounds` at level delta/2, and b_s = w_s a_s^2 v_s,

        min over eta of  ( log(2k/delta) + sum_s (L/a_s^2)(e^(eta b_s) - 1) ) / eta,     k values eta in a fixed grid:

    below a_s the summand lies in [0, b_s] with mean at most L w_s v_s, so e^(eta summand) has mean at most
    exp((L/a_s^2)(e^(eta b_s) - 1)), and Ville's inequality does the rest. This is Theorem 7 with constants, sharpened;
    L is then the largest curvature on |z| <= B only.

    >>> import likeset as ls
    >>> noise_bound(ls.Gaussian(1.0), [[1.0], [1.0]], penalty=1.0, bound=1.0, delta=0.1).round(4)
    array([5.2983, 5.7038])
    >>> noise_bound(ls.Gaussian(1.0), [[1.0], [1.0]], [0.5, 0.5], penalty=1.0, bound=1.0, delta=0.1).round(4)
    array([4.8929, 5.0752])
    """
    c, delta = Curvature.of(family, bound, x), error_level("delta", delta)
    choice("smoothness", smoothness, ("auto", "local"))
    before, after = squared_lengths(x, c.mu, penalty)
    w = stream_weights(weights, len(after))
    if c.smooth_everywhere and smoothness == "auto":
        # 1 - w mu v_s = (1 + (1 - w) mu u) / (1 + mu u) for u = x_s'V_{s-1}^-1 x_s: nothing cancels.
        grown = np.cumsum(np.log1p(c.mu * before) - np.log1p((1.0 - w) * c.mu * before))
        return c.L / c.mu * (grown + 2 * np.log(1 / delta))
    squares = tail_bounds(family, len(after), reach=c.reach, delta=delta / 2) ** 2
    with np.errstate(over="ignore"):  # a tilt that is too large gives an infinite, harmless bound
        grown = np.cumsum(c.L / squares[:, None] * np.expm1(_RATES * (w * squares * after)[:, None]), axis=0)
    return np.min((np.log(2 * len(_RATES) / delta) + grown) / _RATES, axis=1)


def noise_bound_as_printed(family: Family, x: Any, *, penalty: float, bound: float, delta: float) -> Array:
    """Lemma 10's right side as printed: (L/mu)(gamma_t + log(1/delta)); not proved.

    >>> import likeset as ls
    >>> noise_bound_as_printed(ls.Gaussian(1.0), [[1.0], [1.0]], penalty=1.0, bound=1.0, delta=0.1).round(4)
    array([2.9957, 3.4012])
    """
    c = Curvature.of(family, bound, x)
    return c.L / c.mu * (information_gain(x, c.mu, penalty) + np.log(1 / error_level("delta", delta)))


def tail_bounds(family: Family, rounds: int, *, reach: float, delta: float) -> Array:
    r"""a_s with  P( |T(y_s) - A'(z_s)| > a_s for some s ) <= delta,  for any z_s with |z_s| <= reach.

    Chernoff's bound with the moment generating function of Lemma 6: for every u > 0

        a_s = ( log(2/delta_s) + (u^2/2) sup_{|z| <= reach + u} A''(z) ) / u,     delta_s = 6 delta / (pi s)^2.

    >>> import likeset as ls
    >>> tail_bounds(ls.Gaussian(1.0), 2, reach=1.0, delta=0.1).round(2)          # sqrt(2 log(2/delta_s))
    array([2.64, 3.12])
    """
    checked, _ = canonical(family)
    s, reach = np.arange(1, positive_integer("rounds", rounds) + 1), largest_predictor(reach)
    level = np.log(2 * (np.pi * s) ** 2 / (6 * error_level("delta", delta)))
    curvature = np.array([checked.curvature_bounds(reach + u)[1] for u in _TILTS])
    return np.min((level[:, None] + 0.5 * _TILTS**2 * curvature) / _TILTS, axis=1)


# -- regret bounds ---------------------------------------------------------------------------------------------------


def ftrl_regret_bound(
    family: Family,
    x: Any,
    *,
    penalty: float,
    bound: float,
    delta: float,
    weighted: bool = False,
    smoothness: Literal["auto", "local"] = "auto",
) -> Array:
    r"""Theorem 4: with probability 1 - delta, at all times, FTRL(penalty=lambda) on |theta| <= B has

        R_t <= lambda B^2 + N_t + (U^2/mu) gamma_t,

    N_t = :func:`noise_bound`, U = A'(B) - A'(-B) <= 2 L B (B times the largest |x|). For families smooth everywhere it
    is the paper's  lambda B^2 + (L/mu)(gamma_t + 2 log(1/delta)) + (4 L^2 B^2/mu) gamma_t  with 4 where 2 is printed:
    two points of the ball are up to 2B apart. For Poisson it is Theorem 7 with constants.

    weighted    for weights other than 1 the probability is split between the noise and Lemma 11, which adds
                log(2/delta); the paper charges delta twice
    smoothness  "local": Theorem 7, which asks for curvature between mu and L on |z| <= B only, for any family

    >>> import likeset as ls
    >>> ftrl_regret_bound(ls.Gaussian(0.5), [[1.0]] * 3, penalty=4.0, bound=1.0, delta=0.1).round(1)
    array([20.4, 27.3, 32.2])
    """
    c = Curvature.of(family, bound, x)
    level = error_level("delta", delta) / (2 if flag("weighted", weighted) else 1)
    noise = noise_bound(family, x, penalty=penalty, bound=bound, delta=level, smoothness=smoothness)
    spread = (c.highest_mean - c.lowest_mean) ** 2 / c.mu * information_gain(x, c.mu, penalty)
    return (
        positive("penalty", penalty) * positive("bound", bound) ** 2
        + noise
        + spread
        + (np.log(1 / level) if weighted else 0.0)
    )


def ftrl_regret_bound_from_data(family: Family, x: Any, y: Any, *, penalty: float, bound: float) -> Array:
    r"""The first half of Theorem 4's proof, which needs no probability: for certain, with w = 1,

        R_t <= lambda B^2 + (1/2) sum_{s<=t} g_s^2 x_s'V_s^-1 x_s,     V_s = sum_{j<=s} m_j x_j x_j' + 2 lambda I,

    where m_s <= f_s'' and |f_s'| <= g_s on |z| <= B |x_s|, for f_s(z) = -log p(y_s|z) of the y_s seen. It holds for
    every family whose loss is a A(z) - s z with a, s from y: also for survival times, where a = t^p has no positive
    lower bound, so that there is no mu, and no Theorem 3 or 4.

    >>> import likeset as ls
    >>> ftrl_regret_bound_from_data(ls.Weibull(2.0), [[1.0], [1.0]], [0.8, 1.1], penalty=1.0, bound=1.0).round(3)
    array([1.131, 2.108])
    """
    checked, covariates = curve_family(family), covariate_rows(x)
    a, s, _ = checked.statistics(stream_observations(checked, y, len(covariates)))
    B, lam = positive("bound", bound), positive("penalty", penalty)
    reach = B * np.linalg.norm(covariates, axis=1)
    ends = np.stack([-reach, reach])
    first, second = curve_derivatives(checked.curve, ends)  # A'' is least, and |f'| largest, at an end
    steepest = np.max(np.abs(a * first - s), axis=0)
    flattest = a * np.min(second, axis=0)
    V = 2 * lam * np.eye(covariates.shape[1])
    lengths = np.empty(len(covariates))
    for i, row in enumerate(covariates):
        V += flattest[i] * np.outer(row, row)
        lengths[i] = row @ np.linalg.solve(solvable(V, "x", x), row)
    return lam * B**2 + 0.5 * np.cumsum(steepest**2 * lengths)


def ftrl_regret_bound_as_printed(family: Family, x: Any, *, penalty: float, bound: float, delta: float) -> Array:
    r"""Theorem 4's display: lambda B^2 + (L/mu)(gamma_t + 2 log(1/delta)) + (2 L^2 B^2/mu) gamma_t, any weights.

    Assumes that A is smooth everywhere (not so for Poisson) and takes a factor 2 for 4: no proof.

    >>> import likeset as ls
    >>> ftrl_regret_bound_as_printed(ls.Gaussian(0.5), [[1.0]] * 3, penalty=4.0, bound=1.0, delta=0.1).round(1)
    array([14.8, 18.5, 21.1])
    """
    c = Curvature.of(family, bound, x)
    gamma = information_gain(x, c.mu, penalty)
    noise = c.L / c.mu * (gamma + 2 * np.log(1 / error_level("delta", delta)))
    return (
        positive("penalty", penalty) * positive("bound", bound) ** 2 + noise + 2 * (c.L * c.reach) ** 2 / c.mu * gamma
    )


def mixture_regret_bound(gain: Any, *, nu: float, bound: float, share: float = 1.0) -> Array:
    r"""Regret of the Bayes mixture with prior N(0, I/nu) and w = 1, for certain:

        R_t <= nu B^2/2 + Gamma_t + log(1/share).

    Beyond the paper: R_t is exactly nu |theta*|^2/2 + Gamma_t - D_Z(theta*, theta~_t), with no ratio L/mu and no
    B^2 gamma_t. ``share`` is the weight of this prior in a mixture of several. For exact posteriors only, that is
    ``Mixture(precisions=[nu])`` with Gaussian noise; the Laplace approximation of other families is not covered.

    >>> float(mixture_regret_bound(0.7, nu=1.0, bound=1.0).round(2))
    1.2
    """
    share = real_number("share", share)
    if not 0 < share <= 1:
        raise InvalidArgumentError("share", share, "is not in (0, 1]", "pass the prior's share, 1/k for k equal priors")
    return positive("nu", nu) * positive("bound", bound) ** 2 / 2 + not_negative("gain", gain) - np.log(share)
