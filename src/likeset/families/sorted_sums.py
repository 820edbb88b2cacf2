"""Families with one term per distinct outcome: outcomes in order, with their weights, for every covariate."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from likeset._solver.problem import LossTerms, PointTerms
from likeset._typing import Array, IntArray
from likeset.families.shifted_items import ShiftedItems
from likeset.state_checks import expect_array, expect_counts
from likeset.undo import Undo

if TYPE_CHECKING:
    from likeset.families.laplace import Laplace
    from likeset.families.loss_family import LossFamily


class SortedOutcomes:
    """Outcomes in order and their weights, per covariate: what families with one term per outcome share."""

    def __init__(self) -> None:
        self.points: list[Array] = []
        self.weights: list[Array] = []

    def remember(self, undo: Undo, index: int) -> None:
        """Keep the covariate's two arrays, which are replaced and not written to."""
        for arrays in (self.points, self.weights):
            if index < len(arrays):
                undo.keep_entry(arrays, index)
            else:
                undo.when_rolled_back(partial(arrays.__delitem__, slice(len(arrays), None)))

    def insert(self, index: int, y: float, weight: float, merge: bool) -> None:
        """Add a weighted outcome; to the weight of an equal one, if they are to ``merge``."""
        while index >= len(self.points):
            self.points.append(np.empty(0))
            self.weights.append(np.empty(0))
        if weight > 0:
            points, weights = self.points[index], self.weights[index]
            place = int(np.searchsorted(points, y))
            if merge and place < len(points) and points[place] == y:
                self.weights[index] = weights.copy()
                self.weights[index][place] += weight
            else:
                self.points[index], self.weights[index] = (
                    np.insert(points, place, y), np.insert(weights, place, weight)
                )  # fmt: skip

    def joined(self, count: int) -> tuple[IntArray, Array, Array]:
        """Starts, outcomes and weights in one array each, covariate after covariate."""
        starts: IntArray = np.cumsum([0, *map(len, self.points[:count])], dtype=np.int64)
        return starts, _joined(self.points[:count]), _joined(self.weights[:count])

    def state(self) -> dict[str, Array]:
        """Lengths, points and weights."""
        lengths = np.array([len(p) for p in self.points], dtype=np.float64)
        return {"lengths": lengths, "points": _joined(self.points), "weights": _joined(self.weights)}

    def restore(self, state: dict[str, Array], count: int) -> None:
        """The inverse of ``state``."""
        points = expect_array(state, "points", (None,))
        weights = expect_array(state, "weights", points.shape)
        lengths = expect_counts(state, "lengths", (count,), below=len(points) + 1).astype(np.int64)
        if lengths.sum() != len(points) or (weights <= 0).any():
            raise ValueError("points do not fit their number per covariate, or a weight is not positive")
        cuts = np.cumsum(lengths)[:-1]
        self.points = [p.copy() for p in np.split(points, cuts)] if count else []
        self.weights = [w.copy() for w in np.split(weights, cuts)] if count else []
        if any((np.diff(p) < 0).any() for p in self.points):
            raise ValueError("points are not sorted")


class PointSums(SortedOutcomes):
    """Sorted observations and their weights w/scale, for Laplace noise."""

    def __init__(self, family: Laplace) -> None:
        super().__init__()
        self.family = family

    def add(self, index: int, y: Array, weight: float, law: Any = None) -> float:
        """Insert y, less its offset, in order; the rest is -w log(2 scale)."""
        self.insert(index, float(y) - (0.0 if law is None else law.shift), weight / self.family.scale, merge=False)
        return -weight * float(np.log(2 * self.family.scale))

    def terms(self, count: int) -> PointTerms:
        """All points in one array, covariate after covariate."""
        return PointTerms(*self.joined(count))

    snapshot = terms


class LossSums(SortedOutcomes):
    """Distinct outcomes and their weights, for a compiled loss."""

    affine = False

    def __init__(self, family: LossFamily) -> None:
        super().__init__()
        self.family = family
        self.shifted = ShiftedItems()

    def remember(self, undo: Undo, index: int) -> None:
        """Keep the covariate's outcomes."""
        super().remember(undo, index)
        self.shifted.remember(undo, index)

    def add(self, index: int, y: Array, weight: float, law: Any = None) -> float:
        """Insert y in order, or add w to its weight; the rest is w c(y)."""
        number, rest = float(y), 0.0
        if law is not None:
            moved = self.family._absorbed(number, law.shift)
            if moved is None:
                self.insert(index, number, 0.0, merge=True)  # make room
                self.shifted.insert(index, law.shift, number, weight, self.affine)
                return weight * self.family.constant(number)
            number, rest = moved
        self.insert(index, number, weight, merge=True)
        return weight * (self.family.constant(float(y)) - rest)

    def terms(self, count: int) -> LossTerms:
        """All outcomes in one array, covariate after covariate."""
        parameters = np.array(self.family.parameters, dtype=np.float64)
        starts, points, weights = self.joined(count)
        if self.shifted:
            plain = (np.repeat(np.arange(len(starts) - 1), np.diff(starts)), points, weights)
            return self.shifted.joined(self.family.loss, parameters, plain, count)
        return LossTerms(self.family.loss, parameters, starts, points, weights)

    snapshot = terms

    def state(self) -> dict[str, Array]:
        """Lengths, points and weights, and items with offsets."""
        return super().state() | self.shifted.state()

    def restore(self, state: dict[str, Array], count: int) -> None:
        """The inverse of ``state``."""
        super().restore(state, count)
        self.shifted.restore(state, count)


class MeanSums(LossSums):
    """For a compiled loss that is affine in y:  sum_i w_i L(y_i, z) = W L(m, z)  with W = sum w_i and the mean m.

    One term per covariate, at the weighted mean of its outcomes, however many there are.
    """

    affine = True

    def insert(self, index: int, y: float, weight: float, merge: bool) -> None:
        """Move the mean of the covariate; an outcome of weight zero is not one."""
        super().insert(index, y, weight, merge)
        points, weights = self.points[index], self.weights[index]
        if len(points) > 1:
            total = weights.sum()
            self.points[index], self.weights[index] = np.array([weights @ points / total]), np.array([total])


def _joined(arrays: list[Array]) -> Array:
    return np.concatenate([np.empty(0), *arrays])
