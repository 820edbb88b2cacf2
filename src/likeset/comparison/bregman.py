"""Bregman deviations of exponential families, with the information gain by Laplace's method."""

from __future__ import annotations

from typing import Self

import numpy as np

from likeset._solver.evaluate import evaluate_terms
from likeset._solver.problem import CurveTerms
from likeset.arguments import positive
from likeset.comparison.base import Comparison, check_model, default_penalty
from likeset.comparison.likelihood import LevelSnapshot, level_snapshot, likelihood_terms, lowest
from likeset.errors import InvalidArgumentError
from likeset.families.base import CurveFamily, Family
from likeset.families.gaussian import Gaussian
from likeset.spaces.base import Space


class BregmanDeviation(Comparison):
    r"""A Bregman ball around the penalised estimate, in the geometry of the log-partition function.

        D_Z(theta, theta_t) <= log(1/alpha) + lambda |theta|^2 / 2 + Gamma_t
        Z(theta) = sum A(x'theta) + lambda |theta|^2 / 2
        theta_t = argmin L_t(theta) + lambda |theta|^2 / 2
        Gamma_t = log ∫ exp(-lambda |theta|^2/2) dtheta - log ∫ exp(-D_Z(theta, theta_t)) dtheta

    Checked: D_Z(theta, theta_t) is L_t + lambda |.|^2/2 minus its minimum, so the inequality says exactly
    L_t(theta) <= log(1/alpha) - log ∫ exp(-L_t) dN(0, I/lambda), the set of the method of mixtures, which is provable;
    the term lambda |theta|^2 / 2 cancels. But Gamma_t is a d-dimensional integral. Laplace's method,

        Gamma_t ~ log det(I + sum A''(x'theta_t) x x' / lambda) / 2,

    is exact for Gaussian noise only (there the set is NR 2021, and this class does not apply). Elsewhere it may be off
    on either side, hence **not provable**; ``RegretGLM`` bounds the same integral from the safe side. Cut with Theta.

    penalty   lambda, by default 1 / B^2; chosen before the data

    Source: Chowdhury, Saux, Maillard, Gopalan (2022), Bregman deviations of generic exponential families.
    """

    name = "Bregman (Laplace)"
    provable = False
    anytime = True
    assumptions = "canonical exponential family, theta* in Theta, and a Gamma_t that is only approximate here"
    source = "Chowdhury, Saux, Maillard, Gopalan 2022"

    def __init__(self, space: Space, alpha: float, family: CurveFamily, penalty: float | None = None) -> None:
        super().__init__(space, alpha, family)
        if not isinstance(family, CurveFamily) or family.canonical_scale is None:
            raise InvalidArgumentError(
                "family", family, "is not a canonical exponential family", "use Poisson, Bernoulli or Binomial"
            )
        self.penalty = default_penalty(space) if penalty is None else positive("penalty", penalty)
        self._estimate = np.zeros(0)

    @classmethod
    def for_model(cls, family: Family, space: Space, alpha: float) -> Self | None:
        """Canonical exponential families but the Gaussian, where it is NR 2021."""
        check_model(family, space, alpha)
        applies = isinstance(family, CurveFamily) and family.canonical_scale is not None
        return cls(space, alpha, family) if applies and not isinstance(family, Gaussian) else None  # type: ignore[arg-type]

    def _snapshot(self) -> LevelSnapshot:
        X, terms, constant = likelihood_terms(self._stream)
        assert isinstance(terms, CurveTerms)
        self._estimate, minimum = lowest(X, terms, np.inf, self.penalty, self._estimate)
        curvature = evaluate_terms(terms, X @ self._estimate)[2]
        gain = 0.5 * np.linalg.slogdet(np.eye(X.shape[1]) + (X.T * curvature) @ X / self.penalty)[1]
        return level_snapshot(self._stream, self.alpha, float(minimum + constant + gain))
