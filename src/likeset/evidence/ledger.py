"""The ledger: an append-only record of every observation, its weight and its forecast. The single truth."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from likeset._solver.problem import Terms
from likeset._typing import Array
from likeset.embedded import NOTHING, Embedded, Given
from likeset.evidence.evidence import Groups
from likeset.families.answers import evidence_sums
from likeset.families.base import Family
from likeset.families.evidence_sums import CompensatedSums
from likeset.families.merged import MergedData, with_columns
from likeset.families.shifted import law_of
from likeset.spaces.base import Basis
from likeset.undo import Undo


class GrowingRows:
    """Rows appended to a buffer that doubles."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self._buffer = np.zeros((16, *shape))
        self._length = 0

    def append(self, row: Array | float) -> None:
        """Add one row."""
        if self._length == len(self._buffer):
            self._buffer = np.concatenate([self._buffer, np.zeros_like(self._buffer)])
        self._buffer[self._length] = row
        self._length += 1

    def truncate(self, length: int) -> None:
        """Drop the rows from ``length`` on."""
        self._length = length

    @property
    def rows(self) -> Array:
        """All rows; a view, do not write."""
        return self._buffer[: self._length]

    def restore(self, rows: Array) -> None:
        """Replace the contents."""
        self._buffer = np.concatenate([rows, np.zeros((16, *rows.shape[1:]))])
        self._length = len(rows)


class Ledger:
    """Raw rows (x, y, w, log q, class, covariate number) and what the set needs, merged by covariate and class.

    ``given``: offset, size and entry of every row, where it has any (:class:`~likeset.embedded.Given`).

    ``distinct`` and ``outside``: the distinct covariates in order of first appearance, and how far each stuck out of
    the basis once it was included. ``merged`` holds their coordinates, and sums by *group*: the observations of one
    covariate and one class, in order of first appearance; ``owners`` has the covariate of every group. Classes are
    given by voices (:mod:`likeset.voices`) before y is known; all zero if these do not ask for any.

    gain_g = sum_{s in group g} [ w_s log q_s(y_s) - (the part of w_s log p(y_s | z) that is free of z) ],
    so that  sum_g [ gain_g + phi_g(x_g'theta) ]  is the log ratio of all data. The part free of z is log p at a
    reference near y, so that both are of the size of the evidence: :mod:`likeset.families.evidence_sums`.
    """

    def __init__(self, family: Family, covariate_shape: tuple[int, ...]) -> None:
        self.family = family
        self.x = GrowingRows(covariate_shape)
        self.y = GrowingRows(family.observation_shape)
        self.weights = GrowingRows(())
        self.log_q = GrowingRows(())
        self.classes = GrowingRows(())
        self.given = GrowingRows((len(NOTHING),))
        self.covariate = GrowingRows(())
        self.owners = GrowingRows(())
        self.distinct = GrowingRows(covariate_shape)
        self.outside = GrowingRows(())
        self.merged = MergedData(evidence_sums(family))
        self._gains = CompensatedSums()
        self._number_of: dict[bytes, int] = {}
        self._group_of: dict[tuple[int, int], int] = {}

    def __len__(self) -> int:
        return len(self.x.rows)

    @property
    def gains(self) -> Array:
        """gain_g of every group; a view, do not write."""
        return self._gains.values(len(self.owners.rows))

    def group(self, covariate: int, label: int) -> int | None:
        """The number of the group of a covariate and a class, if it has been seen."""
        return self._group_of.get((covariate, label))

    def number(self, x: Array) -> int | None:
        """The number of a covariate seen before, by exact equality."""
        return self._number_of.get(x.tobytes())

    def remember(self, undo: Undo, phi: Embedded, label: int = 0) -> None:
        """Before ``append`` of an observation at phi: keep what it will change."""
        known = self.group(phi.index, label)
        group = len(self.owners.rows) if known is None else known
        if undo.done(self, group):
            return
        if undo.keep(self):
            undo.when_rolled_back(partial(self._truncate, len(self), self.merged.count, len(self.owners.rows)))
        self._gains.remember(undo, group)
        if phi.index == self.merged.count:
            undo.when_rolled_back(partial(self._number_of.pop, phi.x.tobytes(), None))
        if known is None:
            undo.when_rolled_back(partial(self._group_of.pop, (phi.index, label), None))
        self.merged.remember(undo, phi)
        if group != phi.index:
            self.merged.sums.remember(undo, group)
        undo.mark(self, group)

    def _truncate(self, length: int, distinct: int, groups: int) -> None:
        for rows in (self.x, self.y, self.weights, self.log_q, self.classes, self.given, self.covariate):
            rows.truncate(length)
        for rows in (self.distinct, self.outside):
            rows.truncate(distinct)
        self.owners.truncate(groups)

    def embed(self, basis: Basis, x: Array, given: Given = NOTHING) -> tuple[Basis, Embedded]:
        """The basis including x, and x in it, with what else is given of the row; nothing is recorded."""
        index, law = self.number(x), law_of(self.family, given)
        if index is None:
            basis = basis.including(x)
            inside, outside = basis.coordinates(x[None, :])
            return basis, Embedded(x, inside[0], self.merged.count, float(outside[0]), given, law)
        coordinates = self.merged.coordinates[index]
        missing = basis.dimension - len(coordinates)
        padded = np.pad(coordinates, (0, missing)) if missing else coordinates
        return basis, Embedded(x, padded, index, float(self.outside.rows[index]), given, law)

    def groups(self, dimension: int) -> Groups:
        """Covariates and groups so far, in so many dimensions, as later observations will not change them."""
        coordinates = with_columns(self.merged.coordinates, dimension).copy()
        owners = self.owners.rows.astype(np.int64)
        return Groups(self.distinct.rows, coordinates, self.outside.rows, owners)

    def terms(self) -> Terms:
        """phi_g of every group, as later observations will not change them."""
        return self.merged.sums.snapshot(len(self.owners.rows))

    def append(self, phi: Embedded, y: Array, weight: float, log_q: float, label: int = 0) -> None:
        """Record one observation of class ``label``."""
        self.x.append(phi.x)
        self.y.append(y)
        self.weights.append(weight)
        self.log_q.append(log_q)
        self.classes.append(label)
        self.given.append(phi.given)  # type: ignore[arg-type]
        self.covariate.append(phi.index)
        if phi.index == self.merged.count:
            self._number_of[phi.x.tobytes()] = phi.index
            self.distinct.append(phi.x)
            self.outside.append(phi.outside)
        group = self._group_of.setdefault((phi.index, label), len(self.owners.rows))
        if group == len(self.owners.rows):
            self.owners.append(phi.index)
        self.merged.place(phi)
        base = self.merged.sums.add(group, y, weight, phi.law)
        # A weight of zero removes the observation, even where q is zero.
        self._gains.add(group, weight * log_q - base if weight > 0 else 0.0)

    def replay(self, start: int = 0) -> Iterator[tuple[Embedded, Array]]:
        """The observations from number ``start`` on, as forecasters saw them: coordinates in the basis of that time."""
        coordinates = self.merged.coordinates
        # A covariate that made the basis grow is the first with a coordinate along the new vector.
        places = np.where(coordinates != 0.0, np.arange(1, self.merged.dimension + 1), 0).max(axis=1, initial=0)
        dimensions = np.maximum.accumulate(places)
        newest = np.maximum.accumulate(self.covariate.rows.astype(np.int64))
        for s in range(start, len(self)):
            k = int(self.covariate.rows[s])
            outside = float(self.outside.rows[k])
            given = Given(*self.given.rows[s].tolist())
            law, inside = law_of(self.family, given), coordinates[k, : dimensions[newest[s]]]
            yield Embedded(self.x.rows[s], inside, k, outside, given, law), self.y.rows[s]

    def state(self) -> dict[str, Array]:
        """Everything needed to continue bit for bit."""
        raw = {
            "x": self.x.rows, "y": self.y.rows, "weights": self.weights.rows, "log_q": self.log_q.rows,
            "classes": self.classes.rows, "given": self.given.rows, "covariate": self.covariate.rows,
            "outside": self.outside.rows,
        }  # fmt: skip
        raw |= {name: part[: len(self.owners.rows)] for name, part in self._gains.state("gains").items()}
        return raw | {f"merged.{key}": value for key, value in self.merged.state().items()}

    def restore(self, state: dict[str, Array]) -> None:
        """The inverse of ``state``."""
        for name in ("x", "y", "weights", "log_q", "classes", "given", "covariate"):
            getattr(self, name).restore(state[name])
        self._group_of = {}
        self.owners.restore(np.zeros(0))
        for k, label in zip(self.covariate.rows, self.classes.rows, strict=True):
            if self._group_of.setdefault((int(k), int(label)), len(self.owners.rows)) == len(self.owners.rows):
                self.owners.append(k)
        merged = {k.removeprefix("merged."): v for k, v in state.items() if k.startswith("merged.")}
        self.merged.restore(merged, len(self.owners.rows))
        self._gains.restore(state, "gains")
        self._number_of = {}
        self.distinct.restore(np.zeros((0, *self.x.rows.shape[1:])))
        for x, k in zip(self.x.rows, self.covariate.rows, strict=True):
            if self._number_of.setdefault(x.tobytes(), int(k)) == len(self.distinct.rows):
                self.distinct.append(x)
        self.outside.restore(state["outside"])
