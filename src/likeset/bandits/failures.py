r"""Runs that fail: a model of success beside that of the outcome.

Success is a Bernoulli outcome of its own with its own sequence, so P(success at x) has certified bounds, too
(``successes.set.interval``). Choices weigh what could be gained by the probability that the run works at all:

    argmax_i  P_i [ m_i + c s_i - max_j m_j ],          P_i = E[ 1 / (1 + e^{-z_i}) ]  under beliefs about success.
"""

from __future__ import annotations

from math import pi
from typing import Any

import numpy as np

from likeset._typing import Array
from likeset.errors import InvalidArgumentError
from likeset.families import Bernoulli
from likeset.families.answers import mean_link
from likeset.predictors import Believer
from likeset.sequence import ConfidenceSequence
from likeset.spaces import RKHS, Linear

LOG_ODDS = 4.0
"""Bound of |theta| of the success model that is made where none is given: chances from 2 to 98 % at |x| = 1."""


class Failures:
    """Successes and failures, and what they say about where runs work; silent until something has failed."""

    def __init__(self, seq: Any, success: Any = None) -> None:
        self._seq = seq
        self.sequence: ConfidenceSequence | None = _checked(seq, success)
        self._early: list[Array] = []  # successes before there was a model

    def worked(self, x: Array) -> None:
        """A run at x gave an answer."""
        if self.sequence is None:
            self._early.append(x.copy())
        else:
            self.sequence.update(x, 1)

    def failed(self, x: Array) -> None:
        """A run at x gave none."""
        if self.sequence is None:
            made = _made_for(self._seq)
            if self._early:
                made.update(np.array(self._early), np.ones(len(self._early)))
            made.update(x, 0)
            self.sequence, self._early = made, []
        else:
            self.sequence.update(x, 0)

    def chances(self, rows: Array) -> Array | None:
        """Believed probabilities of success; None as long as nothing is known of failures."""
        if self.sequence is None or not self.sequence.n_observations:
            return None
        belief = self.sequence.belief
        assert belief is not None
        mean, sd = belief.moments(rows)
        return np.asarray(1.0 / (1.0 + np.exp(-mean / np.sqrt(1.0 + pi / 8.0 * sd**2))))  # MacKay's approximation


def _checked(seq: Any, success: Any) -> ConfidenceSequence | None:
    if success is None:
        return None
    known = isinstance(success, ConfidenceSequence) and mean_link(success.family) == "logit"
    if not known or not isinstance(success.forecaster, Believer):
        raise InvalidArgumentError(
            "success", success, "is no model of success", "pass ConfidenceSequence(Bernoulli(), space)"
        )
    if success.space.covariate_shape != seq.space.covariate_shape:
        raise InvalidArgumentError(
            "success", success, "takes other covariates than the sequence", "pass one with as many coordinates"
        )
    return success  # type: ignore[no-any-return]


def _made_for(seq: Any) -> ConfidenceSequence:
    space = seq.space
    if isinstance(space, RKHS):
        return ConfidenceSequence(Bernoulli(), RKHS(space.kernel, LOG_ODDS, space.domain, space.dim), seq.alpha)
    if isinstance(space, Linear):
        return ConfidenceSequence(Bernoulli(), Linear(space.dim, LOG_ODDS), seq.alpha)
    raise InvalidArgumentError(
        "failed",
        True,
        f"cannot be modelled in {space!r}",
        "give the policy success=ConfidenceSequence(Bernoulli(), ...)",
    )
