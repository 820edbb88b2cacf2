"""Covariates of a box instead of arms: the most optimistic one, and the safest one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from likeset._typing import Array
from likeset.arguments import real_array
from likeset.bandits.rewards import Reward
from likeset.bandits.running import score_lowers, score_uppers
from likeset.errors import InvalidArgumentError, ShapeError
from likeset.sequence import ConfidenceSequence

_SCATTERED, _KEPT, _HALVINGS, _CHILDREN = 128, 6, 14, 8
_MOST_OBSERVED = 512  # covariates seen that a search starts from


class Box:
    """A box of covariates on offer; takes the place of :class:`~likeset.bandits.arms.Arms`."""

    fixed: Array | None = None
    current: Array | None = None

    def __init__(self, space: Any, bounds: Any) -> None:
        self.space = space
        self.box = checked_box(bounds, space.covariate_shape[0])

    def __repr__(self) -> str:
        return "a box of " + " x ".join(f"[{low:g}, {high:g}]" for low, high in self.box)

    def rows(self, arms: Any) -> Array:
        """Checked covariates to look at."""
        if arms is None:
            raise InvalidArgumentError("arms", None, "is needed with a box", "pass the covariates to look at")
        return np.asarray(self.space.covariates(arms, "arms"))

    def offer(self, rows: Array) -> None:
        """The box stays what it is: nothing else can be offered."""
        raise self.refused(rows)

    def covariate(self, x: Any) -> Array:
        """One checked covariate."""
        rows = self.space.covariates(x, "x")
        if len(rows) != 1:
            raise InvalidArgumentError("x", x, f"has {len(rows)} covariates", "tell one observation at a time")
        return np.asarray(rows[0])

    def refused(self, arms: Any) -> InvalidArgumentError:
        """What to say when arms are offered."""
        return InvalidArgumentError("arms", arms, "cannot be offered beside a box", "leave arms or bounds out")

    def observed(self, seq: Any) -> Array:
        """The covariates of the box that the sequence has seen (the last ones of many); none if it does not tell."""
        if not isinstance(seq, ConfidenceSequence):
            return np.zeros((0, len(self.box)))
        rows = seq.ledger.distinct.rows
        inside = ((rows >= self.box[:, 0]) & (rows <= self.box[:, 1])).all(axis=1)
        return np.asarray(rows[inside][-_MOST_OBSERVED:])


def checked_box(bounds: Any, dim: int) -> Array:
    """(low, high) pairs, one per coordinate; one pair will do for one coordinate."""
    box = real_array("bounds", bounds)
    if box.shape == (2,) and dim == 1:
        box = box[None, :]
    if box.shape != (dim, 2) or not (box[:, 0] < box[:, 1]).all():
        raise ShapeError("bounds", bounds, "is not a box", f"pass {dim} pairs (low, high), low < high")
    return box


def most_optimistic(current: Any, reward: Reward, box: Array, rng: np.random.Generator) -> Array:
    """The covariate with the highest upper bound of the reward, as far as the search finds.

    Gradient climbs where the set offers ``maximize_upper`` (increasing rewards); otherwise a search that needs bounds
    only.
    """
    if reward.increasing and hasattr(current, "maximize_upper"):
        peak = current.maximize_upper(box, seed=int(rng.integers(2**31)))
        return np.asarray(peak.x)
    return _search(lambda points: score_uppers(current, reward, points), box, rng, np.zeros((0, len(box))))


def safest(current: Any, reward: Reward, box: Array, rng: np.random.Generator, starts: Array) -> Array:
    """The covariate with the highest lower bound of the reward, as far as the search finds.

    Lower bounds are high near observations and low elsewhere, so ``starts``, the covariates seen, are looked at, too.
    """
    return _search(lambda points: score_lowers(current, reward, points), box, rng, starts)


def _search(score: Callable[[Array], Array], box: Array, rng: np.random.Generator, starts: Array) -> Array:
    """Scatter points, keep the best of them and of ``starts``, and look around them at half the distance each time."""
    width = box[:, 1] - box[:, 0]
    scattered = rng.uniform(box[:, 0], box[:, 1], size=(_SCATTERED * len(box), len(box)))
    points = np.concatenate([starts, scattered])
    scores = score(points)
    for halving in range(_HALVINGS):
        best = np.argsort(-scores, kind="stable")[:_KEPT]
        points, scores = points[best], scores[best]
        spread = width * 0.5 ** (halving + 2)
        steps = rng.uniform(-1.0, 1.0, size=(len(points) * _CHILDREN * len(box), len(box))) * spread
        children = np.clip(np.repeat(points, _CHILDREN * len(box), axis=0) + steps, box[:, 0], box[:, 1])
        points = np.concatenate([points, children])
        scores = np.concatenate([scores, score(children)])
    return np.asarray(points[int(np.argmax(scores))])
