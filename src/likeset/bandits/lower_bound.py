r"""Caution: play the arm whose reward is guaranteed to be highest."""

from __future__ import annotations

from typing import Any

import numpy as np

from likeset.arguments import flag, generator
from likeset.bandits.arms import Arms
from likeset.bandits.protocols import Array, checked_sequence
from likeset.bandits.rewards import as_reward, reach_of
from likeset.bandits.running import RunningBounds, score_lowers
from likeset.bandits.ties import highest


class LowerBound:
    r"""Play the arm with the highest *lower* confidence bound of its reward: risk-averse.

        ask:   i_t = argmax_i  min { g(x_i'theta) : theta in C_t }

    With probability 1 - alpha the arm played pays, in the mean, at least ``guarantee``, which with running intersection
    and fixed arms never falls. The rule does not explore, so it may stay with a mediocre arm for ever: use it where bad
    outcomes are costly, or to choose what to deploy after exploring by other means.

    Arguments are those of :class:`~likeset.UCB`; there are no boxes, and every arm is solved for in every round,
    because a floor of an earlier round does not say how far it can have risen.

    >>> import likeset as ls
    >>> seq = ls.ConfidenceSequence(ls.Gaussian(0.5), ls.Linear(dim=2, bound=2.0), alpha=0.1)
    >>> seq.update([[1.0, 0.0]] * 20, [0.5] * 20)                   # what is known: the first arm pays about 0.5
    >>> arms = [[1.0, 0.0], [0.0, 1.0]]
    >>> ls.LowerBound(seq, arms).ask(), ls.UCB(seq, arms).ask()
    (0, 1)
    """

    continuous = False

    def __init__(
        self,
        seq: Any,
        arms: Any = None,
        *,
        reward: Any = "increasing",
        running_intersection: bool = True,
        rng: Any = None,
    ) -> None:
        self.seq = checked_sequence(seq)
        self.running_intersection = flag("running_intersection", running_intersection)
        self.arms = Arms(seq.space, arms)
        self.reward = as_reward(reward, getattr(seq, "family", None), reach_of(seq.space, self.arms.fixed))
        self.guarantee = -np.inf
        """Lower bound of the reward of the arm asked for last."""
        self._rng = None if rng is None else generator(rng)
        self._running = RunningBounds(seq.space, seq.alpha, self.reward)

    def ask(self, arms: Any = None) -> int:
        """The index of the arm to play (of ``arms``, if given: contexts)."""
        rows = self.arms.offer(arms)
        scores = self._scores(rows)
        choice = highest(scores, self._rng)
        self.guarantee = float(self.reward.of_scores(scores[choice]))
        return choice

    def tell(self, arm: Any, y: Any) -> None:
        """What was observed at an arm: an index of the arms offered last."""
        self.seq.update(self.arms.covariate(arm), y)

    def _scores(self, rows: Array) -> Array:
        if self.running_intersection:
            return self._running.floors(self.seq.set, rows)
        return score_lowers(self.seq.set, self.reward, rows)
