"""Regret-based sets for generalised linear models: a computable regret bound in place of a forecaster's losses."""

from __future__ import annotations

from typing import Self

import numpy as np

from likeset._solver.evaluate import curve_heights, term_values
from likeset._solver.problem import CurveTerms
from likeset._typing import Array
from likeset.arguments import positive
from likeset.comparison.base import Comparison, check_model, default_penalty
from likeset.comparison.likelihood import LevelSnapshot, level_snapshot, likelihood_terms, lowest
from likeset.curves import Curve
from likeset.errors import InvalidArgumentError
from likeset.families.base import CurveFamily, Family
from likeset.spaces.base import Space

_ROUNDS = 12  # damped fixed-point steps at most; every one gives a valid bound, the best is kept


class RegretGLM(Comparison):
    r"""An analytical online-to-confidence-set conversion with the Gaussian-mixture forecaster.

        L_t(theta) - L_t(theta_bar) <= log(1/alpha) + Regret_t(theta_bar)      for any comparator theta_bar

    Checked. Any forecaster's losses give { L_t(theta) <= log(1/alpha) + sum -log q_s }, by Ville; writing the losses as
    L_t(theta_bar) + Regret_t(theta_bar) changes nothing, and an upper *bound* of the regret only enlarges the set. So
    the set is valid if the bound holds for every sequence of data. Ours: the forecaster mixes over N(0, I/lambda), its
    losses add up to -log ∫ exp(-L_t) dN, and by Donsker and Varadhan, for every law Q = N(theta_bar, S),

        -log ∫ exp(-L_t) dN <= E_Q[L_t] + KL(Q, N),
        KL = [ lambda tr S + lambda |theta_bar|^2 - d - log det(lambda S) ] / 2.

    E_Q[L_t] is a sum over the distinct x with v = x'Sx:  E[A(z + sqrt(v) g)] = z^2/2 + v/2  for Gaussian noise,
    e^{z + v/2} for counts and survival times, at most min(log(1+e^z) + v/8, log(1+e^{z + v/2})) for successes. Q may
    depend on the data. theta_bar is the penalised estimate, S^-1 = lambda I + sum w x x' with w the curvature averaged
    over Q. Off the span Q is the prior: nothing to pay, so this holds in an RKHS and with B = inf. For a curvature
    A'' <= M it is at most  lambda |theta_bar|^2 / 2 + log det(I + M sum x x' / lambda) / 2.

    Assumes the family and theta* in Theta. Cut with Theta.

    penalty   lambda, by default 1 / B^2; chosen before the data

    Source: Clerico, Flynn, Kotlowski, Neu (2025), Confidence sequences for generalized linear models via regret
    analysis, arXiv 2504.16555 (the conversion); the regret bound as in Kakade, Ng (2005).
    """

    name = "regret GLM"
    provable = True
    anytime = True
    assumptions = "exponential family, theta* in Theta"
    source = "Clerico, Flynn, Kotlowski, Neu 2025, arXiv 2504.16555"

    def __init__(self, space: Space, alpha: float, family: CurveFamily, penalty: float | None = None) -> None:
        super().__init__(space, alpha, family)
        if not isinstance(family, CurveFamily):
            raise InvalidArgumentError(
                "family", family, "has no closed-form regret bound", "use an exponential family, or SequentialMixing"
            )
        self.penalty = default_penalty(space) if penalty is None else positive("penalty", penalty)
        self._estimate = np.zeros(0)

    @classmethod
    def for_model(cls, family: Family, space: Space, alpha: float) -> Self | None:
        """Every exponential family."""
        check_model(family, space, alpha)
        return cls(space, alpha, family) if isinstance(family, CurveFamily) else None

    def _snapshot(self) -> LevelSnapshot:
        X, terms, constant = likelihood_terms(self._stream)
        assert isinstance(terms, CurveTerms)
        self._estimate = lowest(X, terms, np.inf, self.penalty, self._estimate)[0]
        return level_snapshot(self._stream, self.alpha, self._loss_bound(X, terms) + constant)

    def _loss_bound(self, X: Array, terms: CurveTerms) -> float:
        """min over the Q tried of E_Q[F] + KL(Q, prior): bounds the mixture forecaster's losses."""
        d, z = X.shape[1], X @ self._estimate
        log_weight = np.log(np.maximum(terms.a, 1e-300)) + _log_mean_curvature(terms.curve, z, np.zeros_like(z))
        best = np.inf
        for _ in range(_ROUNDS):
            precision = (X.T * np.exp(log_weight)) @ X + self.penalty * np.eye(d)
            covariance = np.linalg.inv(precision)
            v = np.einsum("ij,jk,ik->i", X, covariance, X)
            divergence = 0.5 * (
                self.penalty * (np.trace(covariance) + self._estimate @ self._estimate)
                - d
                + np.linalg.slogdet(precision / self.penalty)[1]
            )
            expected = _mean_loss(terms, z, v)
            previous, best = best, min(best, expected + float(divergence))
            if previous - best < 1e-4:
                break
            target = np.log(np.maximum(terms.a, 1e-300)) + _log_mean_curvature(terms.curve, z, v)
            log_weight = 0.5 * (log_weight + target)
        return best


def _mean_loss(terms: CurveTerms, z: Array, v: Array) -> float:
    """sum_k E[phi_k(z_k + sqrt(v_k) g)], or an upper bound of it; g standard normal."""
    return float(np.sum(term_values(terms, z)) + terms.a @ _mean_excess(terms.curve, z, v))


def _mean_excess(curve: Curve, z: Array, v: Array) -> Array:
    """E[A(z + sqrt(v) g)] - A(z), or an upper bound of it."""
    if curve is Curve.QUADRATIC:
        return 0.5 * v
    with np.errstate(over="ignore"):
        if curve is Curve.EXPONENTIAL:
            return np.exp(z) * np.expm1(0.5 * v)
    return np.minimum(v / 8, curve_heights(curve, z + 0.5 * v) - curve_heights(curve, z))


def _log_mean_curvature(curve: Curve, z: Array, v: Array) -> Array:
    """log E[A''], or a stand-in: only the choice of Q depends on it."""
    if curve is Curve.QUADRATIC:
        return np.zeros_like(z)
    return z + 0.5 * v if curve is Curve.EXPONENTIAL else -np.logaddexp(0.0, z) - np.logaddexp(0.0, -z)
