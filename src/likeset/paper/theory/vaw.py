r"""Theorem 5: the regret of the Vovk-Azoury-Warmuth forecaster with weights, and its assumption on the stream."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from likeset._typing import Array, Mask
from likeset.arguments import error_level, one_row, positive
from likeset.families.base import Family
from likeset.paper.theory.gain import information_gain
from likeset.paper.theory.geometry import Curvature, canonical, covariate_rows, stream_observations, stream_weights
from likeset.paper.theory.online import ftrl_estimates, noise_bound


@dataclass(frozen=True)
class VAWBound:
    """Theorem 5 along a stream, one entry per t.

    values               the bound, which holds where the theorem's assumption does
    weight_dependent     the same with the weights in the noise's term, too: never larger
    assumption_free      the same with the realised excess in place of what is assumed about it: always holds
    excess               sum_s (1 - w_s)( f_s(theta*) - f_s(theta_bar_{s+1}) ), what the weights may cost
    allowance            (L/mu) gamma_t, what the theorem assumes the excess stays below
    """

    values: Array
    weight_dependent: Array
    assumption_free: Array
    excess: Array
    allowance: Array

    @property
    def assumption_holds(self) -> Mask:
        """Whether the stream satisfied the assumption at each t."""
        return self.excess <= self.allowance


def vaw_excess(
    family: Family, x: Any, y: Any, theta: Any, weights: Any = None, *, penalty: float, bound: float
) -> Array:
    r"""sum_{s<=t} (1 - w_s)( f_s(theta*) - f_s(theta_bar_{s+1}) ) for t = 1, 2, ...

    theta_bar_{s+1} is the FTRL estimate that has seen y_s, so it usually fits y_s better than theta* and the excess
    grows; no supermartingale bounds it, which is why the theorem assumes it away.

    >>> import likeset as ls
    >>> vaw_excess(ls.Gaussian(1.0), [[1.0]], [1.0], [0.5], [0.5], penalty=0.5, bound=1.0)     # estimate 0.5 = truth
    array([0.])
    """
    covariates, _ = covariate_rows(x), canonical(family)
    outcomes = stream_observations(family, y, len(covariates))
    w = stream_weights(weights, len(covariates))
    seen = ftrl_estimates(family, covariates, outcomes, penalty=penalty, bound=bound)[1:]
    log_p_truth = family.log_density(outcomes, covariates @ one_row("theta", theta, covariates.shape[1]))
    log_p_seen = family.log_density(outcomes, np.sum(covariates * seen, axis=1))
    return np.cumsum((1 - w) * (log_p_seen - log_p_truth))


def vaw_regret_bound(
    family: Family,
    x: Any,
    y: Any,
    theta: Any,
    weights: Any = None,
    *,
    penalty: float,
    bound: float,
    delta: float,
) -> VAWBound:
    r"""Theorem 5: with probability 1 - delta, at all times where its assumption holds, VAW(penalty=lambda) has

        R_t <= lambda B^2 + N_t + (L/mu) gamma_t + (C^2/mu) sum_{s<=t} w_s (gamma_s - gamma_{s-1}),

    N_t = :func:`~likeset.theory.noise_bound` and C = max |A'| on |z| <= B (B times the largest |x|). For Gaussian noise
    C = L B, N_t = (L/mu)(gamma_t + 2 log(1/delta)), and with w_s = (1/L)/(1/L + bias_s^2) this is the printed display.
    The paper uses |A'(z)| <= L B, which needs A'(0) = 0: not so for Poisson (1) and Bernoulli (1/2). Any weights do.

    The proof drops the weights of the noise, w_s <= 1. Kept, they turn N_t into ``noise_bound(family, x, weights)``:
    every term that grows carries its weights: ``weight_dependent``. With w_s from an upper bound of the bias
    (``BiasWeighting("bound")``) it is explicit, which the paper leaves open.

    The stream's y and the truth are needed only to check the assumption.

    >>> import likeset as ls
    >>> b = vaw_regret_bound(ls.Gaussian(0.5), [[1.0]] * 3, [0.4, 0.5, 0.6], [0.5], penalty=4.0, bound=1.0, delta=0.1)
    >>> b.values.round(1), bool(b.assumption_holds.all())        # weights 1: nothing to assume
    (array([12.8, 15.2, 16.9]), True)
    """
    covariates = covariate_rows(x)
    c = Curvature.of(family, bound, covariates)
    w = stream_weights(weights, len(covariates))
    gamma = information_gain(covariates, c.mu, penalty)
    steepest = max(abs(c.lowest_mean), abs(c.highest_mean))
    settings: dict[str, Any] = {"penalty": penalty, "bound": bound, "delta": delta}
    bias = positive("penalty", penalty) * positive("bound", bound) ** 2 + steepest**2 / c.mu * np.cumsum(
        w * np.diff(gamma, prepend=0.0)
    )
    weighted = bias + noise_bound(family, covariates, w, **settings)
    known = bias + noise_bound(family, covariates, **settings)
    excess = vaw_excess(family, covariates, y, theta, w, penalty=penalty, bound=bound)
    allowance = c.L / c.mu * gamma
    return VAWBound(known + allowance, weighted + allowance, known + excess, excess, allowance)


def vaw_regret_bound_as_printed(
    family: Family, x: Any, weights: Any = None, *, penalty: float, bound: float, delta: float
) -> Array:
    r"""Theorem 5's display, with 1/L + bias_s^2 = 1/(L w_s) from the weights:

        lambda B^2 + (2L/mu)(gamma_t + log(1/delta)) + (L/mu) sum_s B^2/(1/L + bias_s^2) (gamma_s - gamma_{s-1}).

    The increments are printed one step late; as printed they would need x_{t+1}.

    >>> import likeset as ls
    >>> vaw_regret_bound_as_printed(ls.Gaussian(0.5), [[1.0]] * 3, penalty=4.0, bound=1.0, delta=0.1).round(1)
    array([12.8, 15.2, 16.9])
    """
    covariates = covariate_rows(x)
    c = Curvature.of(family, bound, covariates)
    w = stream_weights(weights, len(covariates))
    gamma = information_gain(covariates, c.mu, penalty)
    bias_term = c.L / c.mu * c.L * c.reach**2 * np.cumsum(w * np.diff(gamma, prepend=0.0))
    noise = 2 * c.L / c.mu * (gamma + np.log(1 / error_level("delta", delta)))
    return positive("penalty", penalty) * positive("bound", bound) ** 2 + noise + bias_term
