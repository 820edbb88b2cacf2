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
_MOST_VALUES = 1000
_MOST_OBSERVED = 512  # covariates seen that a search starts from


class Box:
    """A box of covariates on offer; takes the place of :class:`~likeset.bandits.arms.Arms`."""

    fixed: Array | None = None
    current: Array | None = None

    def __init__(self, space: Any, bounds: Any) -> None:
        self.space = space
        self.box, self.values = checked_box(bounds, space.covariate_shape[0])

    def __repr__(self) -> str:
        sides = zip(self.box, self.values, strict=True)
        return "a box of " + " x ".join(
            f"[{low:g}, {high:g}]" if values is None else f"{len(values)} values" for (low, high), values in sides
        )

    def snapped(self, points: Array) -> Array:
        """Points of the box nearest to these: within the sides, at values that integers and categories take."""
        nearest = np.clip(points, self.box[:, 0], self.box[:, 1])
        for j, values in enumerate(self.values):
            if values is not None:
                nearest[:, j] = values[np.abs(nearest[:, j, None] - values).argmin(axis=1)]
        return np.asarray(nearest)

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
        if not np.array_equal(self.snapped(rows), rows):
            raise InvalidArgumentError("x", x, f"is outside {self!r}", "tell points of the box")
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


def checked_box(bounds: Any, dim: int) -> tuple[Array, list[Array | None]]:
    """(low, high) pairs, one per coordinate (one pair will do for one coordinate), and the values of discrete ones.

    A coordinate may also be a ``range`` (integers) or a set of numbers (categories).
    """
    sides = list(bounds) if isinstance(bounds, list | tuple) else [bounds]
    discrete = any(isinstance(side, range | set | frozenset) for side in sides)
    if discrete and len(sides) == dim:
        values = [_values(side) for side in sides]
        pairs = [side if own is None else (own[0], own[-1]) for side, own in zip(sides, values, strict=True)]
        box = real_array("bounds", pairs)
        fine = [own is not None or low < high for own, (low, high) in zip(values, box, strict=True)]
        if box.shape == (dim, 2) and all(fine):
            return box, values
    elif not discrete:
        box = real_array("bounds", bounds)
        if box.shape == (2,) and dim == 1:
            box = box[None, :]
        if box.shape == (dim, 2) and (box[:, 0] < box[:, 1]).all():
            return box, [None] * dim
    raise ShapeError(
        "bounds", bounds, f"is no box in {dim} dimension{'s' * (dim != 1)}, which the points of the space have",
        f"pass {dim} pairs (low, high), low < high; range(a, b) for integers, {{0, 1, 2}} for categories",
    )  # fmt: skip


def _values(side: Any) -> Array | None:
    """The values of a discrete coordinate in rising order; None for an interval."""
    if not isinstance(side, range | set | frozenset):
        return None
    if not 0 < len(side) <= _MOST_VALUES:
        raise InvalidArgumentError(
            "bounds", side, f"has {len(side)} values", f"pass 1 to {_MOST_VALUES}, or a pair (low, high)"
        )
    return np.unique(real_array("bounds", list(side)))


def most_optimistic(current: Any, reward: Reward, box: Box, rng: np.random.Generator) -> Array:
    """The covariate with the highest upper bound of the reward, as far as the search finds.

    Gradient climbs where the set offers ``maximize_upper`` (increasing rewards); otherwise a search that needs bounds
    only.
    """
    continuous = all(values is None for values in box.values)
    if continuous and reward.increasing and hasattr(current, "maximize_upper"):
        peak = current.maximize_upper(box.box, seed=int(rng.integers(2**31)))
        return np.asarray(peak.x)
    return search(lambda points: score_uppers(current, reward, points), box, rng, np.zeros((0, len(box.box))))[0]


def safest(current: Any, reward: Reward, box: Box, rng: np.random.Generator, starts: Array) -> Array:
    """The covariate with the highest lower bound of the reward, as far as the search finds.

    Lower bounds are high near observations and low elsewhere, so ``starts``, the covariates seen, are looked at, too.
    """
    return search(lambda points: score_lowers(current, reward, points), box, rng, starts)[0]


def search(score: Callable[[Array], Array], space: Box, rng: np.random.Generator, starts: Array) -> Array:
    """Scatter points, keep the best of them and of ``starts``, and look around them at half the distance each time.

    All that were looked at last, the best first.
    """
    box = space.box
    width = box[:, 1] - box[:, 0]
    scattered = rng.uniform(box[:, 0], box[:, 1], size=(_SCATTERED * len(box), len(box)))
    points = np.concatenate([starts, space.snapped(scattered)])
    scores = score(points)
    for halving in range(_HALVINGS):
        best = np.argsort(-scores, kind="stable")[:_KEPT]
        points, scores = points[best], scores[best]
        spread = width * 0.5 ** (halving + 2)
        steps = rng.uniform(-1.0, 1.0, size=(len(points) * _CHILDREN * len(box), len(box))) * spread
        near = np.repeat(points, _CHILDREN * len(box), axis=0)
        for j, values in enumerate(space.values):  # a category has no neighbours: any other value, now and then
            if values is not None:
                steps[:, j] = np.where(
                    rng.uniform(size=len(steps)) < 0.3, rng.choice(values, len(steps)) - near[:, j], 0.0
                )
        children = space.snapped(near + steps)
        points = np.concatenate([points, children])
        scores = np.concatenate([scores, score(children)])
    return np.asarray(points[np.argsort(-scores, kind="stable")])
