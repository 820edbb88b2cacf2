r"""Caution: play the arm whose reward is guaranteed to be highest."""

from __future__ import annotations

from typing import Any

import numpy as np

from likeset._typing import Array
from likeset.bandits.policy import Policy
from likeset.bandits.running import score_lowers
from likeset.bandits.ties import ranked


class LowerBound(Policy):
    r"""Play the arm with the highest *lower* confidence bound of its reward: risk-averse.

        ask:   i_t = argmax_i  min { g(x_i'theta) : theta in C_t }

    With probability 1 - alpha the arm played pays, in the mean, at least ``guarantee``, which with running intersection
    and fixed arms never falls. The rule does not explore, so it may stay with a mediocre arm for ever: use it where bad
    outcomes are costly, or to choose what to deploy after exploring by other means.

    Arguments are those of :class:`~likeset.UCB`; there are no boxes, and every arm is solved for in every round,
    because a floor of an earlier round does not say how far it can have risen.

    >>> import likeset as ls
    >>> seq = ls.ConfidenceSequence(ls.Gaussian(0.5), ls.Linear(dim=2, bound=2.0), alpha=0.1)
    >>> seq.update([[1.0, 0.0]] * 20, [0.0, 1.0] * 10)                 # what is known: the first arm pays about 0.5
    >>> arms = [[1.0, 0.0], [0.0, 1.0]]
    >>> ls.LowerBound(seq, arms).ask(), ls.UCB(seq, arms).ask()
    (0, 1)
    """

    purpose = "inference"

    def __init__(
        self,
        seq: Any,
        arms: Any = None,
        *,
        reward: Any = "increasing",
        running_intersection: bool = True,
        until: Any = None,
        rng: Any = None,
    ) -> None:
        super().__init__(seq, arms, reward=reward, running_intersection=running_intersection, until=until, rng=rng)
        self.guarantee = -np.inf
        """Lower bound of the reward of the arm asked for last; of each of them, if it was several."""

    def _choose(self, rows: Array, n: int) -> list[int]:
        floors = self._floors(rows)
        chosen = ranked(floors, n, self._rng)
        self.guarantee = float(self.reward.of_scores(floors[chosen]).min())
        return chosen

    def _floors(self, rows: Array) -> Array:
        if self.running_intersection:
            return self._running.floors(self.seq.set, rows)
        self._running.solves += len(rows)
        return score_lowers(self.seq.set, self.reward, rows)
