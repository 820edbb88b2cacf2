"""The most optimistic covariate of a box, for rewards on a continuous domain."""

from __future__ import annotations

from typing import Any

import numpy as np

from likeset.arguments import real_array
from likeset.bandits.protocols import Array
from likeset.bandits.rewards import Reward
from likeset.bandits.running import score_uppers
from likeset.errors import ShapeError

_SCATTERED, _KEPT, _HALVINGS, _CHILDREN = 128, 6, 14, 8


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
    only: scatter points, keep the best, and look around them at half the distance each time.
    """
    if reward.increasing and hasattr(current, "maximize_upper"):
        peak = current.maximize_upper(box, seed=int(rng.integers(2**31)))
        return np.asarray(peak.x)
    width = box[:, 1] - box[:, 0]
    points = rng.uniform(box[:, 0], box[:, 1], size=(_SCATTERED * len(box), len(box)))
    scores = score_uppers(current, reward, points)
    for halving in range(_HALVINGS):
        best = np.argsort(-scores, kind="stable")[:_KEPT]
        points, scores = points[best], scores[best]
        spread = width * 0.5 ** (halving + 2)
        steps = rng.uniform(-1.0, 1.0, size=(len(points) * _CHILDREN * len(box), len(box))) * spread
        children = np.clip(np.repeat(points, _CHILDREN * len(box), axis=0) + steps, box[:, 0], box[:, 1])
        points = np.concatenate([points, children])
        scores = np.concatenate([scores, score_uppers(current, reward, children)])
    return np.asarray(points[int(np.argmax(scores))])
