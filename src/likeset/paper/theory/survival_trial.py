r"""Survival times in the theory's table: what holds for them, on bandit games as adaptive as the others.

The loss e^z t^p - z of a Weibull time has the curvature e^z t^p, which can be as small as it likes, and z is not its
canonical parameter: Theorems 3, 4 and 5 and the bound of Theorem 6 do not apply. What remains, each with a proof:

    online regret     FTRL's, from the curvature of the times seen (``ftrl_regret_bound_from_data``), for certain
    cost of weights   Lemma 11, for any density
    squared bias      Theorem 2: the *expected* loss e^(z - z*) - z has a curvature of at least mu = e^(-2B)
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from likeset._solver.newton import CurveSum, newton_ball
from likeset._typing import Array
from likeset.bandits import UCB, environments, simulate
from likeset.families import Weibull
from likeset.paper.theory import online, reduction
from likeset.paper.theory.geometry import GOAL
from likeset.paper.theory.track import Track
from likeset.predictors import FTRL
from likeset.sequence import ConfidenceSequence
from likeset.weights import BiasWeighting

NAME, FAMILY, BOUND, PENALTY = "Weibull survival", Weibull(2.0), 1.0, 1.0


class SurvivalTrial:
    """One game: UCB that looks for the longest lives, with the set of FTRL."""

    def __init__(self, rounds: int, seed: list[int], dim: int, arms: int, alpha: float, delta: float) -> None:
        rng = np.random.default_rng(seed)
        self.delta = delta
        problem = environments.linear(dim, FAMILY, arms, int(rng.integers(2**31)), BOUND, "decreasing")
        self._space, self._alpha, self.theta = problem.space, alpha, problem.theta
        sequence = self._sequence(None)
        policy = UCB(sequence, problem.arms, reward=problem.reward, rng=rng)
        trace = simulate(policy, problem, rounds, rng, coverage=False, on_empty="explore")
        self.x, self.y = trace.x, trace.y
        self.t = np.arange(1, len(trace) + 1)
        self.regret = online.online_regret(FAMILY, sequence.ledger, self.theta)

    def tracks(self) -> Iterator[Track]:
        """Every bound that holds for this family."""
        bound = online.ftrl_regret_bound_from_data(FAMILY, self.x, self.y, penalty=PENALTY, bound=BOUND)
        yield Track(
            "online regret", "FTRL", "curvature of the data (ours)", "proved", 1.0, self.t, self.regret, bound
        )  # fmt: skip
        weighted = self._sequence(BiasWeighting("bound", PENALTY))
        weighted.update(self.x, self.y)
        excess = reduction.weighting_excess(FAMILY, weighted.ledger, self.theta)
        level = np.full(len(self.t), np.log(1 / self.delta))
        yield Track("cost of weights", "FTRL", "Lemma 11", "proved", 1 - self.delta, self.t, excess, level)
        marks = np.unique(np.geomspace(2, len(self.t), 24).astype(int))
        realised = np.array([self._squared_bias(t) for t in marks])
        allowed = np.array([self._bias_bound(t) for t in marks])
        yield Track("squared bias", "FTRL", "Theorem 2", "proved", 1.0, marks, realised, allowed)

    def _sequence(self, weighting: BiasWeighting | None) -> ConfidenceSequence:
        return ConfidenceSequence(FAMILY, self._space, self._alpha, FTRL(PENALTY), weighting, windows=None)

    def _squared_bias(self, t: int) -> float:
        """(x_t'(theta_x - theta*))^2, theta_x = argmin sum_{s<t} [e^(z_s - z_s*) - z_s] + lambda |theta|^2."""
        past = self.x[: t - 1]
        scale = np.exp(-past @ self.theta)
        F = CurveSum(past, int(FAMILY.curve), scale, np.ones(len(past)))
        found = newton_ball(F, PENALTY, np.inf, np.zeros(past.shape[1]), GOAL).theta
        return float((self.x[t - 1] @ (found - self.theta)) ** 2)

    def _bias_bound(self, t: int) -> float:
        past, x = self.x[: t - 1], self.x[t - 1]
        V = PENALTY * np.eye(past.shape[1]) + _least_expected_curvature(past) * past.T @ past
        return float(2 * PENALTY * BOUND**2 * (x @ np.linalg.solve(V, x)))


def _least_expected_curvature(x: Array) -> float:
    """e^(z - z*) is at least this for |z|, |z*| <= B |x|."""
    return float(np.exp(-2 * BOUND * np.linalg.norm(x, axis=1).max()))
