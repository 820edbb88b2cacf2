r"""Observations merged by covariate: what the likelihood needs to know, and nothing that grows with t.

For every distinct covariate k the weighted negative log-likelihood of its observations is a function of
z = x_k'theta alone,

    sum_{s: x_s = x_k} w_s [-log p(y_s | z)]  =  phi_k(z) - base_k,

and phi_k has one of the three shapes of :mod:`likeset._solver.problem`: two sums for exponential families,
sorted points for Laplace noise, a list of distinct (y, weight) pairs for a user's own family. Each predictor keeps
one such table without weights, and the ledger one with the weights of the ratio, where exponential families have
more careful sums (:mod:`likeset.evidence.sums`).
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np

from likeset._solver.problem import CallableTerms, CurveTerms, PointTerms, Terms
from likeset._typing import Array, IntArray
from likeset.embedded import Embedded
from likeset.errors import NotConvexError
from likeset.families.base import CurveFamily, Family
from likeset.families.laplace import Laplace
from likeset.state_checks import expect_array, expect_counts
from likeset.undo import Undo


class Sums(Protocol):
    """Merged observations of numbered covariates."""

    family: Any

    def remember(self, undo: Undo, index: int) -> None:
        """Before ``add`` to covariate ``index``: keep what it will change."""
        ...

    def add(self, index: int, y: Array, weight: float) -> float:
        """Merge one observation; return the part of its weighted log-density that is free of z."""
        ...

    def terms(self, count: int) -> Terms:
        """phi_1, ..., phi_count as they are now; arrays may be views, do not write."""
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

    def remember(self, undo: Undo, index: int) -> None:
        """Keep the two sums of the covariate."""
        if index < len(self.a) == len(self.s):
            undo.keep_row((self.a, self.s), index)
        else:
            undo.keep(self)  # arrays are about to be replaced by longer ones

    def add(self, index: int, y: Array, weight: float) -> float:
        """Add w a(y) and w s(y); the rest is w c(y)."""
        a, s, c = self.family.statistics(y)
        self.accumulate(index, weight * float(a), weight * float(s))
        return weight * float(c)

    def accumulate(self, index: int, a: float, s: float) -> None:
        """Add to the sums of one covariate."""
        if index >= len(self.a):
            self.a = _doubled(self.a)
            self.s = _doubled(self.s)
        self.a[index] += a
        self.s[index] += s

    def terms(self, count: int) -> CurveTerms:
        """Views of the sums."""
        return CurveTerms(self.family.curve, self.a[:count], self.s[:count])

    def state(self) -> dict[str, Array]:
        """The two arrays of sums."""
        return {"a": self.a, "s": self.s}

    def restore(self, state: dict[str, Array], count: int) -> None:
        """The inverse of ``state``; room for 8 covariates at least."""
        a = expect_array(state, "a", (None,))
        s = expect_array(state, "s", a.shape)
        if len(a) < max(count, 8) or (a < 0).any():
            raise ValueError(f"a is too short for {count} covariates, or negative")
        self.a, self.s = a, s


class PointSums:
    """Sorted observations and their weights w/scale, per covariate, for Laplace noise."""

    def __init__(self, family: Laplace) -> None:
        self.family = family
        self.points: list[Array] = []
        self.weights: list[Array] = []

    def remember(self, undo: Undo, index: int) -> None:
        """Keep the covariate's two arrays, which are replaced and not written to."""
        for arrays in (self.points, self.weights):
            if index < len(arrays):
                undo.keep_entry(arrays, index)
            else:
                undo.when_rolled_back(partial(arrays.__delitem__, slice(len(arrays), None)))

    def add(self, index: int, y: Array, weight: float) -> float:
        """Insert y in order; the rest is -w log(2 scale)."""
        while index >= len(self.points):
            self.points.append(np.empty(0))
            self.weights.append(np.empty(0))
        if weight > 0:
            place = int(np.searchsorted(self.points[index], y))
            self.points[index] = np.insert(self.points[index], place, y)
            self.weights[index] = np.insert(self.weights[index], place, weight / self.family.scale)
        return -weight * float(np.log(2 * self.family.scale))

    def terms(self, count: int) -> PointTerms:
        """All points in one array, covariate after covariate."""
        starts: IntArray = np.cumsum([0, *map(len, self.points[:count])], dtype=np.int64)
        return PointTerms(starts, _joined(self.points[:count]), _joined(self.weights[:count]))

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


class PairSums:
    """Distinct (covariate, y) pairs with summed weights, for a family known only through its functions."""

    def __init__(self, family: Family) -> None:
        self.family = family
        self.weight_of: dict[tuple[int, float], float] = {}
        self._changes: list[tuple[tuple[int, float], float | None]] | None = None

    def remember(self, undo: Undo, index: int) -> None:
        """Which pair will change depends on y, not known yet: ``add`` notes it in a list made here."""
        self._changes = []
        undo.when_rolled_back(partial(self._take_back, self._changes))

    def _take_back(self, changes: list[tuple[tuple[int, float], float | None]]) -> None:
        for key, weight in reversed(changes):
            if weight is None:
                self.weight_of.pop(key, None)
            else:
                self.weight_of[key] = weight

    def add(self, index: int, y: Array, weight: float) -> float:
        """Add w to the pair's weight; nothing is free of z."""
        key = (index, float(y))
        if self._changes is not None:
            self._changes.append((key, self.weight_of.get(key)))
        self.weight_of[key] = self.weight_of.get(key, 0.0) + weight
        return 0.0

    def terms(self, count: int) -> CallableTerms:
        """phi_k(z) = sum over the pairs of covariate k of w [-log p(y | z)]."""
        pairs = sorted((key, w) for key, w in self.weight_of.items() if w > 0)
        if not pairs:
            return CallableTerms(lambda Z: (np.zeros_like(Z), np.zeros_like(Z), np.zeros_like(Z)))
        owner = np.array([key[0] for key, _ in pairs], dtype=np.int64)
        y = np.array([key[1] for key, _ in pairs])
        weight = np.array([w for _, w in pairs])
        present, starts = np.unique(owner, return_index=True)
        family = self.family

        def merge(values: Array) -> Array:
            merged = np.zeros((*values.shape[:-1], count))
            merged[..., present] = np.add.reduceat(weight * values, starts, axis=-1)
            return merged

        def evaluate(Z: Array) -> tuple[Array, Array, Array]:
            z = Z[..., owner]
            first, second = family.derivatives(y, z)
            if family.convex and np.max(second) > 1e-5 * (1.0 + np.abs(second).max()):
                raise NotConvexError(
                    f"{family!r} was declared convex in z, but its second derivative is negative at an observed y; "
                    "leave the claim out."
                )
            return merge(-family.log_density(y, z)), merge(-first), merge(np.maximum(-second, 0.0))

        return CallableTerms(evaluate)

    def state(self) -> dict[str, Array]:
        """One row (index, y, weight) per pair, in order of arrival."""
        pairs = [(*key, w) for key, w in self.weight_of.items()]
        return {"pairs": np.array(pairs, dtype=np.float64).reshape(-1, 3)}

    def restore(self, state: dict[str, Array], count: int) -> None:
        """The inverse of ``state``."""
        pairs = expect_array(state, "pairs", (None, 3))
        expect_counts({"index": pairs[:, 0]}, "index", (len(pairs),), below=count)
        if (pairs[:, 2] < 0).any():
            raise ValueError("pairs have a negative weight")
        self.weight_of = {(int(i), float(y)): float(w) for i, y, w in pairs}


def sums_for(family: Family) -> Sums:
    """The merging that fits a family."""
    if isinstance(family, CurveFamily):
        return CurveSums(family)
    if isinstance(family, Laplace):
        return PointSums(family)
    return PairSums(family)


class MergedData:
    """Distinct covariates (coordinates in the growing basis, shape (count, dimension)) and their sums."""

    def __init__(self, family: Family, sums: Sums | None = None) -> None:
        self.sums = sums_for(family) if sums is None else sums
        self.count = 0
        self._rows = np.zeros((8, 0))

    @property
    def coordinates(self) -> Array:
        """One row per distinct covariate; a view, do not write."""
        return self._rows[: self.count]

    @property
    def dimension(self) -> int:
        """Dimension of the span so far."""
        return self._rows.shape[1]

    def remember(self, undo: Undo, phi: Embedded) -> None:
        """Before ``add`` of an observation at phi: keep what it will change."""
        if not undo.done(self, phi.index):
            if phi.index >= self.count or len(phi.coordinates) > self.dimension:
                undo.keep(self)
            self.sums.remember(undo, phi.index)
            undo.mark(self, phi.index)

    def add(self, phi: Embedded, y: Array, weight: float = 1.0) -> float:
        """Merge one observation; return the part of its weighted log-density that is free of z."""
        self.place(phi)
        return self.sums.add(phi.index, y, weight)

    def place(self, phi: Embedded) -> None:
        """Make room for a covariate; new ones arrive in order of their index."""
        if len(phi.coordinates) > self.dimension:
            self._rows = with_columns(self._rows, len(phi.coordinates))
        if phi.index >= self.count:
            if phi.index >= len(self._rows):
                self._rows = _doubled(self._rows)
            self._rows[phi.index] = phi.coordinates
            self.count = phi.index + 1

    def terms(self) -> Terms:
        """phi_1, ..., phi_count as they are now; arrays may be views, do not write."""
        return self.sums.terms(self.count)

    def snapshot(self) -> Terms:
        """Terms that later observations do not change."""
        terms = self.terms()
        if isinstance(self.sums, CurveSums) and isinstance(terms, CurveTerms):  # those are views
            terms = CurveTerms(terms.curve, terms.a.copy(), terms.s.copy())
        return terms

    def copy(self) -> MergedData:
        """The same data, to be added to independently."""
        family = self.sums.family
        return copy.deepcopy(self, {id(family): family})

    def state(self) -> dict[str, Array]:
        """Everything needed to continue bit for bit."""
        return {"coordinates": self.coordinates, **self.sums.state()}

    def restore(self, state: dict[str, Array]) -> None:
        """The inverse of ``state``."""
        rows = expect_array(state, "coordinates", (None, None))
        self.sums.restore(state, len(rows))
        self._rows, self.count = rows if len(rows) else np.zeros((8, 0)), len(rows)

    def fits(self, count: int, dimension: int) -> bool:
        """Whether there are so many distinct covariates of this dimension."""
        return self.count == count and self.dimension == dimension


@dataclass(frozen=True)
class Seen:
    """The distinct covariates of a snapshot: as given, in coordinates, and the length of each outside the span."""

    covariates: Array
    coordinates: Array
    outside: Array


def with_columns(rows: Array, columns: int) -> Array:
    """Rows padded with zeros to a number of columns: old coordinates in a basis that has grown."""
    if rows.shape[1] == columns:
        return rows
    grown = np.zeros((len(rows), columns))
    grown[:, : rows.shape[1]] = rows
    return grown


def _doubled(array: Array) -> Array:
    grown = np.zeros((2 * len(array), *array.shape[1:]))
    grown[: len(array)] = array
    return grown


def _joined(arrays: list[Array]) -> Array:
    return np.concatenate([np.empty(0), *arrays])
