r"""From weighted to unweighted regret (Lemma 11): weights can cost at most log(1/delta).

    Delta_t = R_t(weights w) - R_t(weights 1) = sum_s (1 - w_s) ( log q_s(y_s) - log p_theta*(y_s|x_s) )

exp(Delta_t) is the likelihood-ratio process of the paper's equation 1 with the complementary weights 1 - w_s, hence a
supermartingale under theta*, and by Ville's inequality Delta_t <= log(1/delta) at all times with probability 1 - delta.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from likeset._typing import Array
from likeset.arguments import one_row, real_number
from likeset.errors import InvalidArgumentError
from likeset.evidence.ledger import Ledger
from likeset.families.base import Family, checked_family
from likeset.paper.theory.online import recorded_rows
from likeset.weights import Weigher


def weighting_excess(family: Family, ledger: Ledger, theta: Any) -> Array:
    """Delta_t of a stream for t = 1, 2, ... under the truth ``theta``; zero without weights.

    >>> import likeset as ls
    >>> seq = ls.ConfidenceSequence(ls.Gaussian(1.0), ls.Linear(1, 1.0), predictor=ls.FTRL(), windows=None)
    >>> seq.update([[1.0], [1.0]], [0.3, -0.2])
    >>> weighting_excess(seq.family, seq.ledger, [0.5])
    array([0., 0.])
    """
    x = recorded_rows(ledger)
    z = x @ one_row("theta", theta, x.shape[1])
    checked_family(family)
    log_p = family.log_density(ledger.y.rows, z)
    return np.cumsum((1.0 - ledger.weights.rows) * (ledger.log_q.rows - log_p)) + 0.0


def reduction_growth(family: Family, z_true: float, z_forecast: float, weight: float) -> float:
    r"""E[exp(Delta_t - Delta_{t-1})] = ∫ p(y|z_true)^w p(y|z_forecast)^{1-w} dy, which is at most 1 (Hölder).

    >>> import likeset as ls
    >>> round(reduction_growth(ls.Gaussian(1.0), 0.0, 1.0, 0.5), 4)       # exp(-1/8)
    0.8825
    """
    w = real_number("weight", weight)
    if not 0 <= w <= 1:
        raise InvalidArgumentError("weight", weight, "is outside [0, 1]", "pass a weight in [0, 1]")
    z_true, z_forecast = real_number("z_true", z_true), real_number("z_forecast", z_forecast)
    y, v = checked_family(family).outcomes(np.array([min(z_true, z_forecast), max(z_true, z_forecast)]))
    log_true = family.log_density(y, np.full(len(v), float(z_true)))
    log_forecast = family.log_density(y, np.full(len(v), float(z_forecast)))
    return float(np.sum(v * np.exp(w * log_true + (1 - w) * log_forecast)))


class Complement:
    """The weighting 1 - w of another one: a sequence with it has R_t(theta*) = exp(Delta_t).

    >>> import likeset as ls
    >>> space = ls.Linear(dim=1, bound=1.0)
    >>> other = ls.BiasWeighting().start(ls.Poisson(), space)
    >>> seq = ls.ConfidenceSequence(ls.Poisson(), space, weighting=Complement(other), windows=None)
    >>> seq.update([1.0], 2)
    >>> round(float(seq.ledger.weights.rows[0]), 4)         # 1 - 1/(1 + 2e)
    0.8446
    """

    def __init__(self, other: Weigher) -> None:
        if isinstance(other, type) or not isinstance(other, Weigher):
            raise InvalidArgumentError(
                "other", other, "is not a running weighting", "pass e.g. BiasWeighting().start(family, space)"
            )
        self.other = other

    def weight(self, phi: Any) -> float:
        """1 - w."""
        return 1.0 - self.other.weight(phi)

    def observe(self, phi: Any, y: Array) -> None:
        """Pass the observation on."""
        self.other.observe(phi, y)
