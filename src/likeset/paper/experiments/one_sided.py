r"""A negative control: weights on the numerator only. Not valid.

    { theta in Theta :  sum_s loss(y_s, x_s'theta) <= log(1/alpha) + sum_s w_s loss(y_s, x_s'theta_s) }

with loss(y, z) = (y - z)^2 / (2 sigma^2). The two sides no longer form a supermartingale, and the set loses the truth.
It is here to show what a gain in regret is worth that was bought this way. Gaussian noise only; w from the projection
residual, theta_s from FTRL.

Public code does this: in stpy (github.com/Mojusko/stpy, stpy/probability/likelihood.py, as of commit 1da3f36)
``confidence_parameter_likelihood_ratio`` multiplies each term of the numerator by its weight, and
``lr_confidence_set_cvxpy`` turns the weights into true and false (``.bool()``) before they mask the terms of the set.
The paper does not say which code made its figures.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from likeset._typing import Array
from likeset.errors import EmptySetError
from likeset.families import Gaussian
from likeset.predictors import FTRL
from likeset.sequence import ConfidenceSequence
from likeset.sets import LikelihoodSet
from likeset.spaces import RKHS
from likeset.weights import BiasWeighting


class OneSidedSet:
    """The unweighted likelihood-ratio set at a level that the weights have lowered."""

    def __init__(self, joint: LikelihoodSet, level: float) -> None:
        self._joint, self.level = joint, level
        self.space, self.alpha, self.n_observations = joint.space, joint.alpha, joint.n_observations

    def upper(self, X: Any) -> Array:
        """Largest x'theta, one per row of X."""
        return self._joint.support(X, level=self.level).upper

    def lower(self, X: Any) -> Array:
        """Smallest x'theta, one per row of X."""
        return -self._joint.support(X, sign=-1.0, level=self.level).upper

    def interval(self, X: Any) -> tuple[Array, Array]:
        """(lower, upper)."""
        return self.lower(X), self.upper(X)

    def contains(self, theta: Any) -> bool:
        """Membership of one function, given by its values on the domain."""
        values = np.asarray(theta, dtype=np.float64)
        assert isinstance(self.space, RKHS)
        small = self.space.norms(values[None, :])[0] <= self.space.bound * (1 + 1e-9)
        return bool(self._joint.log_ratio(values) <= self.level and small)

    def log_ratio(self, theta: Any) -> float:
        """What is compared with log(1/alpha)."""
        return float(self._joint.log_ratio(theta) - np.log(self.alpha) - self.level)

    @property
    def is_empty(self) -> bool:
        """Whether no parameter is left."""
        try:
            self.upper(self.space.domain[:1])  # type: ignore[attr-defined]
        except EmptySetError:
            return True
        return False


class OneSidedWeights:
    """Looks like a confidence sequence; is none."""

    provable = False

    def __init__(self, family: Gaussian, space: RKHS, alpha: float, penalty: float) -> None:
        self.family, self.space, self.alpha = family, space, alpha
        self._joint = ConfidenceSequence(family, space, alpha, predictor=FTRL(penalty), windows=None)
        weighting = BiasWeighting("projection", penalty)
        self._weighted = ConfidenceSequence(family, space, alpha, FTRL(penalty), weighting, windows=None)

    @property
    def n_observations(self) -> int:
        """Number of observations recorded."""
        return self._joint.n_observations

    def update(self, x: Any, y: Any) -> None:
        """Record observations."""
        self._joint.update(x, y)
        self._weighted.update(x, y)

    @property
    def set(self) -> OneSidedSet:
        """The set of what has been seen."""
        ledger = self._weighted.ledger
        losses = -ledger.log_q.rows - 0.5 * np.log(2 * np.pi * self.family.sigma**2)
        return OneSidedSet(self._joint.set, float(-np.log(self.alpha) - np.sum((1 - ledger.weights.rows) * losses)))
