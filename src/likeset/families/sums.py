r"""Observations of numbered covariates, merged as far as a family's likelihood allows.

* :class:`CurveSums`     two sums per covariate (exponential families; for the evidence :mod:`.evidence_sums` is used);
* :class:`PointSums`     sorted points (Laplace noise);
* :class:`LossSums`      distinct outcomes with weights, for a compiled loss;
* :class:`MeanSums`      one mean per covariate, for a compiled loss that is affine in y;
* :class:`PairSums`      the same for any family at all, through its functions.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from likeset._solver.problem import CallableTerms, CurveTerms, LossTerms, PointTerms, Terms
from likeset._typing import Array, IntArray
from likeset.errors import NotConvexError
from likeset.families.base import Family
from likeset.families.shifted_items import SOFTPLUS_LOSS, ShiftedItems
from likeset.state_checks import expect_array, expect_counts
from likeset.undo import Undo

if TYPE_CHECKING:
    from likeset.families.curve_family import CurveFamily
    from likeset.families.laplace import Laplace
    from likeset.families.loss_family import LossFamily


class Sums(Protocol):
    """Merged observations of numbered covariates."""

    family: Any

    def remember(self, undo: Undo, index: int) -> None:
        """Before ``add`` to covariate ``index``: keep what it will change."""
        ...

    def add(self, index: int, y: Array, weight: float, law: Any = None) -> float:
        """Merge one observation; return the part of its weighted log-density that is free of z.

        ``law`` is the row's own, where something is given of it (:mod:`likeset.families.shifted`).
        """
        ...

    def terms(self, count: int) -> Terms:
        """phi_1, ..., phi_count as they are now; arrays may be views, do not write."""
        ...

    def snapshot(self, count: int) -> Terms:
        """The same, as later observations will not change them."""
        ...

    def state(self) -> dict[str, Array]:
        """Everything needed to continue bit for bit."""
        ...

    def restore(self, state: dict[str, Array], count: int) -> None:
        """The inverse of ``state``, for so many covariates; ValueError if it is not."""
        ...


class CurveSums:
    """a_k = sum w a(y),  s_k = sum w s(y)  for exponential families."""

    def __init__(self, family: CurveFamily) -> None:
        self.family = family
        self.a = np.zeros(8)
        self.s = np.zeros(8)
        self.shifted = ShiftedItems()

    def remember(self, undo: Undo, index: int) -> None:
        """Keep the two sums of the covariate."""
        self.shifted.remember(undo, index)
        if index < len(self.a) == len(self.s):
            undo.keep_row((self.a, self.s), index)
        else:
            undo.keep(self)  # arrays are about to be replaced by longer ones

    def add(self, index: int, y: Array, weight: float, law: Any = None) -> float:
        """Add w a(y) and w s(y); the rest is w c(y)."""
        law = self.family if law is None else law
        if getattr(law, "stays_shifted", False):
            self.accumulate(index, 0.0, 0.0)  # make room
            return add_shifted(self.shifted, index, y, weight, law)
        a, s, c = law.statistics(y)
        self.accumulate(index, weight * float(a), weight * float(s))
        return weight * float(c)

    def accumulate(self, index: int, a: float, s: float) -> None:
        """Add to the sums of one covariate."""
        if index >= len(self.a):
            self.a = _doubled(self.a)
            self.s = _doubled(self.s)
        self.a[index] += a
        self.s[index] += s

    def terms(self, count: int) -> CurveTerms | LossTerms:
        """Views of the sums; once a row had an offset that they cannot absorb, items."""
        if self.shifted:
            return softplus_items(self.shifted, self.a[:count], self.s[:count])
        return CurveTerms(self.family.curve, self.a[:count], self.s[:count])

    def snapshot(self, count: int) -> CurveTerms | LossTerms:
        """Copies of the sums."""
        if self.shifted:
            return self.terms(count)
        return CurveTerms(self.family.curve, self.a[:count].copy(), self.s[:count].copy())

    def state(self) -> dict[str, Array]:
        """The two arrays of sums, and items with offsets."""
        return {"a": self.a, "s": self.s} | self.shifted.state()

    def restore(self, state: dict[str, Array], count: int) -> None:
        """The inverse of ``state``; room for 8 covariates at least."""
        a = expect_array(state, "a", (None,))
        s = expect_array(state, "s", a.shape)
        if len(a) < max(count, 8) or (a < 0).any():
            raise ValueError(f"a is too short for {count} covariates, or negative")
        self.shifted.restore(state, count)
        self.a, self.s = a, s


def add_shifted(shifted: ShiftedItems, index: int, y: Array, weight: float, law: Any) -> float:
    """Merge an observation of the softplus curve with an offset; the rest is w c(y)."""
    a, s, c = map(float, law.family.statistics(y))
    shifted.insert(index, law.shift, s / a, weight * a, affine=True)
    return weight * c


def softplus_items(shifted: ShiftedItems, a: Array, s: Array) -> LossTerms:
    """a A(z) - s z of every covariate, as an item without an offset, and the items that have one."""
    loud = np.flatnonzero(a > 0)
    return shifted.joined(SOFTPLUS_LOSS, np.empty(0), (loud, s[loud] / a[loud], a[loud]), len(a))


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


Pair = tuple[int, float, float]


class PairTerms:
    """phi_k and its derivatives from rows (k, y, offset, weight), by the functions of the family; can be pickled."""

    def __init__(self, family: Family, rows: Array, count: int) -> None:
        self.family, self.count = family, count
        self.owner = rows[:, 0].astype(np.int64)
        self.y, self.shift, self.weight = rows[:, 1].copy(), rows[:, 2].copy(), rows[:, 3].copy()
        self.present, self.starts = np.unique(self.owner, return_index=True)
        # One row for every covariate, in order: nothing to pick, nothing to add up.
        self.in_order = len(self.owner) == count == len(self.present) and bool((self.owner == self.present).all())

    def __call__(self, Z: Array) -> tuple[Array, Array, Array]:
        """Values, first and second derivatives at Z (..., count)."""
        if not len(self.owner):
            return np.zeros_like(Z), np.zeros_like(Z), np.zeros_like(Z)
        z, family = (Z if self.in_order else Z[..., self.owner]) + self.shift, self.family
        first, second = family.derivatives(self.y, z)
        if family.convex and np.max(second) > 1e-5 * (1.0 + np.abs(second).max()):
            raise NotConvexError(
                f"{family!r} was declared convex in z, but its second derivative is negative at an observed y; "
                "leave the claim out."
            )
        values = -family.log_density(self.y, z)
        return self._merged(values), self._merged(-first), self._merged(np.maximum(-second, 0.0))

    def _merged(self, values: Array) -> Array:
        if self.in_order:
            return self.weight * values
        merged = np.zeros((*values.shape[:-1], self.count))
        merged[..., self.present] = np.add.reduceat(self.weight * values, self.starts, axis=-1)
        return merged


class PairSums:
    """Distinct (covariate, y, offset) with summed weights, for a family known only through its functions."""

    def __init__(self, family: Family) -> None:
        self.family = family
        self.weight_of: dict[Pair, float] = {}
        self._changes: list[tuple[Pair, float | None]] | None = None

    def remember(self, undo: Undo, index: int) -> None:
        """Which pair will change depends on y, not known yet: ``add`` notes it in a list made here."""
        self._changes = []
        undo.when_rolled_back(partial(self._take_back, self._changes))

    def _take_back(self, changes: list[tuple[Pair, float | None]]) -> None:
        for key, weight in reversed(changes):
            if weight is None:
                self.weight_of.pop(key, None)
            else:
                self.weight_of[key] = weight

    def add(self, index: int, y: Array, weight: float, law: Any = None) -> float:
        """Add w to the pair's weight; nothing is free of z."""
        key = (index, float(y), 0.0 if law is None else float(law.shift))
        if self._changes is not None:
            self._changes.append((key, self.weight_of.get(key)))
        self.weight_of[key] = self.weight_of.get(key, 0.0) + weight
        return 0.0

    def terms(self, count: int) -> CallableTerms:
        """phi_k(z) = sum over the pairs of covariate k of w [-log p(y | z)]."""
        pairs = sorted((key, w) for key, w in self.weight_of.items() if w > 0)
        return CallableTerms(PairTerms(self.family, np.array([(*key, w) for key, w in pairs]).reshape(-1, 4), count))

    snapshot = terms

    def state(self) -> dict[str, Array]:
        """One row (index, y, offset, weight) per pair, in order of arrival."""
        pairs = [(*key, w) for key, w in self.weight_of.items()]
        return {"pairs": np.array(pairs, dtype=np.float64).reshape(-1, 4)}

    def restore(self, state: dict[str, Array], count: int) -> None:
        """The inverse of ``state``."""
        pairs = expect_array(state, "pairs", (None, 4))
        expect_counts({"index": pairs[:, 0]}, "index", (len(pairs),), below=count)
        if (pairs[:, 3] < 0).any():
            raise ValueError("pairs have a negative weight")
        self.weight_of = {(int(i), float(y), float(o)): float(w) for i, y, o, w in pairs}


def _doubled(array: Array) -> Array:
    grown = np.zeros((2 * len(array), *array.shape[1:]))
    grown[: len(array)] = array
    return grown


def _joined(arrays: list[Array]) -> Array:
    return np.concatenate([np.empty(0), *arrays])
