"""Successes out of a known number of trials, with logit link."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from likeset._typing import Array
from likeset.arguments import floats, positive_integer, real_array
from likeset.curves import Curve
from likeset.families.alternatives import Proportions
from likeset.families.base import largest_predictor, observation_vector, refuse, source_of_noise
from likeset.families.curve_family import CurveFamily
from likeset.special import log_gamma, sigmoid

TABULATED = 1 << 16  # numbers of trials below this have a table of log C(n, y): faster, and small


class Binomial(CurveFamily):
    """y successes in ``trials`` with success probability s(z) = 1/(1+e^-z).

    -log p(y | z) = n log(1 + e^z) - y z - log C(n, y).

    >>> float(Binomial(trials=2).log_density(1.0, 0.0).round(6)) == round(float(np.log(0.5)), 6)
    True
    """

    mean_link = "logit"

    curve = Curve.SOFTPLUS
    discrete = True
    size_name = "trials"

    def __init__(self, trials: int) -> None:
        self.trials = positive_integer("trials", trials, 10**6, "checks of forecasts enumerate the outcomes")
        self.canonical_scale = float(self.trials)
        self._table = self._log_choose(np.arange(self.trials + 1.0)) if self.trials < TABULATED else None

    @classmethod
    def example(cls) -> Binomial:
        """An instance for the contract suite."""
        return Binomial(trials=3)

    def settings(self) -> dict[str, float]:
        """Constructor arguments."""
        return {"trials": self.trials}

    def observations(self, y: Any) -> Array:
        """Whole numbers from 0 to the number of trials."""
        return self._observations_of(y, None)

    def _observations_of(self, y: Any, trials: Array | None) -> Array:
        """The same, where rows have trials of their own (0: those of the family)."""
        counts = observation_vector(y)
        most = np.full(len(counts), float(self.trials))
        if trials is not None:  # of another length: refused where rows are counted
            most = np.where(trials > 0, trials, most) if len(trials) == len(counts) else np.full(len(counts), np.inf)
        bad = (counts < 0) | (counts > most) | (counts != np.floor(counts))
        if bad.any():
            refuse(
                counts, bad, "is not a number of successes",
                f"observations are the integers from 0 to {most[np.argmax(bad)]:g}, the number of trials",
            )  # fmt: skip
        return counts

    def _with_trials(self, trials: int) -> Binomial:
        """The law of a row with so many trials."""
        return self if trials == self.trials else _of_trials(trials)

    def _allows(self, *y: float) -> bool:
        return 0.0 <= y[0] <= self.trials and y[0].is_integer()

    def statistics(self, y: Array) -> tuple[Array, Array, Array]:
        """a = n, s = y, c = log C(n, y)."""
        c = self._log_choose(y) if self._table is None else self._table[np.asarray(y, dtype=np.int64)]
        return self.trials + 0.0 * y, y, c

    def _log_choose(self, y: Array) -> Array:
        return log_gamma(self.trials + 1.0) - log_gamma(y + 1.0) - log_gamma(self.trials - y + 1.0)

    def sample(self, z: Array, rng: np.random.Generator) -> Array:
        """Numbers of successes."""
        return np.asarray(source_of_noise(rng).binomial(self.trials, sigmoid(real_array("z", z))), dtype=np.float64)

    def mean(self, z: Array) -> Array:
        """E[y] = n s(z)."""
        return np.asarray(self.trials * sigmoid(floats("z", z)))

    def outside(self) -> Proportions:
        """Counts with more or less variance, and proportions that vary."""
        return Proportions(self.trials)

    def curvature_bounds(self, bound: float) -> tuple[float, float]:
        """mu = n s(B)(1 - s(B)), L = n/4."""
        bound = largest_predictor(bound)
        return float(self.trials * sigmoid(bound) * sigmoid(-bound)), self.trials / 4.0

    def outcomes(self, z: Array) -> tuple[Array, Array]:
        """Every outcome."""
        real_array("z", z)
        counts = np.arange(self.trials + 1.0)
        return counts, np.ones_like(counts)


@lru_cache(maxsize=256)
def _of_trials(trials: int) -> Binomial:
    return Binomial(trials)


class Bernoulli(Binomial):
    """A success (1) or failure (0) with logit link: Binomial with one trial."""

    def __init__(self) -> None:
        super().__init__(trials=1)

    @classmethod
    def example(cls) -> Bernoulli:
        """An instance for the contract suite."""
        return Bernoulli()

    def settings(self) -> dict[str, float]:
        """Constructor arguments."""
        return {}
