"""The unified likelihood-ratio set for generalised linear models of Lee, Yun and Jun."""

from __future__ import annotations

from typing import Self

import numpy as np

from likeset._solver.evaluate import evaluate_terms
from likeset._solver.problem import PointTerms, Terms
from likeset._typing import Array
from likeset.comparison.base import Comparison, check_model, finite_bound, is_one_convex_law, parameter_dimension
from likeset.comparison.likelihood import LevelSnapshot, level_snapshot, likelihood_terms, lowest
from likeset.errors import InvalidArgumentError
from likeset.families.base import Family
from likeset.spaces.base import Space


def lipschitz(X: Array, terms: Terms, bound: float) -> float:
    """A Lipschitz constant of F = sum_k phi_k(x_k'theta) on |theta| <= B:  sum_k |x_k| max |phi_k'(+-B|x_k|)|.

    phi_k is convex, so its slope is largest in size at an end of the interval.
    """
    lengths = np.linalg.norm(X, axis=1)
    ends = bound * lengths
    if isinstance(terms, PointTerms):
        owner = np.repeat(np.arange(len(X)), np.diff(terms.starts))

        def slope(z: Array) -> Array:
            signs = terms.weights * np.sign(z[owner] - terms.points)
            return np.asarray(np.bincount(owner, signs, minlength=len(X)), dtype=np.float64)
    else:

        def slope(z: Array) -> Array:
            return evaluate_terms(terms, z)[1]

    return float(lengths @ np.maximum(np.abs(slope(-ends)), np.abs(slope(ends))))


class UnifiedGLM(Comparison):
    r"""A likelihood set around the maximum-likelihood estimate, its height from a uniform prior on Theta.

        L_t(theta) - L_t(theta_hat) <= log(1/alpha) + inf_{0 < c <= 1} { d log(1/c) + 2 B Lip_t c }

    theta_hat the maximum-likelihood estimate over Theta, Lip_t a Lipschitz constant of L_t on Theta. The infimum is at
    c = min(1, d / (2 B Lip_t)).

    Checked. Mix the likelihood ratio over the uniform law on Theta: M = ∫ exp(L_t(theta*) - L_t(theta)) dtheta / vol is
    a martingale, M <= 1/alpha at all times by Ville. Theta is convex, so it contains (1-c) theta_hat + c Theta, which
    has a share c^d of its volume and on which L_t <= L_t(theta_hat) + 2 B c Lip_t. Hence M >= c^d exp(L_t(theta*) -
    L_t(theta_hat) - 2 B c Lip_t), for every c at once. The prior is fixed; theta_hat, c and Lip_t appear only in a
    deterministic lower bound of M, so all three **may depend on the data**. Here Lip_t is that of the data seen (merged
    by covariate, which only makes it smaller). Holds for any family with L_t convex, not only canonical ones.

    Cut with Theta. Needs a finite B and dimension d (in an RKHS with a domain, its numerical rank).

    Source: Lee, Yun, Jun (2024), A unified confidence sequence for generalized linear models, arXiv 2407.13977.
    """

    name = "unified GLM"
    provable = True
    anytime = True
    assumptions = "the family, theta* in Theta, finite dimension d and bound B"
    source = "Lee, Yun, Jun 2024, arXiv 2407.13977"

    def __init__(self, space: Space, alpha: float, family: Family) -> None:
        super().__init__(space, alpha, family)
        dimension = parameter_dimension(space)
        if dimension is None:
            raise InvalidArgumentError("space", space, "has infinite dimension", "give the RKHS a finite domain")
        self.dimension, self.bound = dimension, finite_bound(space, "the unified GLM set")
        self._estimate = np.zeros(0)

    @classmethod
    def for_model(cls, family: Family, space: Space, alpha: float) -> Self | None:
        """Every convex family, in finite dimension with a finite bound."""
        check_model(family, space, alpha)
        if not is_one_convex_law(family) or not np.isfinite(space.bound) or parameter_dimension(space) is None:
            return None
        return cls(space, alpha, family)

    def _snapshot(self) -> LevelSnapshot:
        X, terms, constant = likelihood_terms(self._stream)
        self._estimate, minimum = lowest(X, terms, self.bound, start=self._estimate)
        steepness = 2 * self.bound * lipschitz(X, terms, self.bound)
        c = min(1.0, self.dimension / max(steepness, 1e-300))
        price = self.dimension * np.log(1 / c) + steepness * c if np.isfinite(steepness) else np.inf
        return level_snapshot(self._stream, self.alpha, float(minimum + constant + price))
