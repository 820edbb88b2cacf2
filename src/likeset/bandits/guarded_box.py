"""Points of a box for :class:`~likeset.Guarded`, where there are no arms: both kinds of rounds by search."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from likeset._typing import Array
from likeset.bandits.continuous import Box, most_optimistic, search
from likeset.bandits.rewards import Reward
from likeset.bandits.safety import Safety
from likeset.bandits.under_way import Choice, UnderWay
from likeset.progress import counted

SMALL = 2.0  # mean widths of what was played: a due round with no more than this to gain goes by belief
_LOOKED_AT = 8


class PointsOfBox:
    """Chooses points one after the other, each as if the answers of those before were what the belief expects.

    ``scores`` of points under a belief; ``out``: what is under way, and which rounds are due.
    """

    def __init__(
        self, box: Box, reward: Reward, safety: Safety, out: UnderWay, scores: Callable[[Any, Array], Array],
        rng: np.random.Generator,
    ) -> None:  # fmt: skip
        self.box, self._reward, self._safety, self._out, self._scores = box, reward, safety, out, scores
        self._rng = rng
        self._best_floor = -np.inf  # the highest lower bound of a score at any point so far

    def chosen(self, seq: Any, belief: Any, insurance: float, n: int) -> list[Choice]:
        """n different points, fewer where no more are certified to be safe."""
        current = seq.set
        taken: list[Choice] = []
        observed = np.concatenate([self.box.observed(seq), self._safety.seed])
        for _ in counted(range(n), n, "choosing"):
            due = self._out.is_due(insurance, taken) and not self._safety.constraints
            x = self._optimistic(current, taken) if due else None
            optimistic = x is not None
            if x is None:
                x = self._believed_best(current, belief, observed, taken)
            if x is None:  # nothing else is certified to be safe
                break
            low, high = self._reward.score_bounds(*current.interval(x[None, :]))
            taken.append(Choice(x, max(float(high[0] - low[0]), 0.0), due, optimistic))
            belief = belief.supposing(x[None, :]) if len(taken) < n else belief
        return taken

    def _optimistic(self, current: Any, taken: list[Choice]) -> Array | None:
        """The point of a due round, as far as a search finds; None where little is left to gain."""
        x = most_optimistic(current, self._reward, self.box, self._rng)
        low, high = self._reward.score_bounds(*current.interval(x[None, :]))
        self._best_floor = max(self._best_floor, float(low[0]))
        gain = float(high[0]) - self._best_floor
        again = any(np.array_equal(x, choice.x) for choice in taken)
        return None if again or gain <= SMALL * self._out.mean_width(taken) < np.inf else x

    def _believed_best(self, current: Any, belief: Any, observed: Array, taken: list[Choice]) -> Array | None:
        """The point with the highest score under the beliefs, of those that are certified and not ruled out.

        None where all that are certified have been taken.
        """
        out = {choice.x.tobytes() for choice in taken}
        box = self.box

        def worth(points: Array) -> Array:
            scores = self._scores(belief, points)
            if self._safety.constraints:
                scores = np.where(self._safety.certified(points), scores, -np.inf)
            return np.where([x.tobytes() in out for x in points], -np.inf, scores) if out else scores

        if not len(observed) and self._safety.constraints:
            raise self._safety.nothing(box.snapped(box.box.mean(axis=1)[None, :]))
        points = search(worth, box, self._rng, observed)
        if not len(observed) and np.ptp(self._scores(belief, points[:8])) == 0.0:
            points = box.snapped(self._rng.uniform(box.box[:, 0], box.box[:, 1], size=points.shape))
        fresh = [x for x in points if x.tobytes() not in out][:_LOOKED_AT]
        if self._safety.constraints:
            fresh = [x for x, sure in zip(fresh, self._safety.certified(np.array(fresh)), strict=True) if sure]
            if not fresh and not taken:
                raise self._safety.nothing(points[:_LOOKED_AT])
            if not fresh:
                return None
        low, high = self._reward.score_bounds(*current.interval(np.array(fresh)))
        self._best_floor = max(self._best_floor, float(low.max()))
        alive = np.flatnonzero(high >= self._best_floor)
        return fresh[int(alive[0])] if len(alive) else most_optimistic(current, self._reward, box, self._rng)
