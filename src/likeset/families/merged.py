r"""Observations merged by covariate: what the likelihood needs to know, and nothing that grows with t.

For every distinct covariate k the weighted negative log-likelihood of its observations is a function of
z = x_k'theta alone,

    sum_{s: x_s = x_k} w_s [-log p(y_s | z)]  =  phi_k(z) - base_k,

and phi_k has one of the shapes of :mod:`likeset._solver.problem`, built by the sums of the family
(:mod:`likeset.families.sums`). Each predictor keeps one such table without weights, and the ledger one with the
weights of the ratio.
"""

from __future__ import annotations

import copy

import numpy as np

from likeset._solver.problem import Terms
from likeset._typing import Array
from likeset.embedded import Embedded
from likeset.families.sums import Sums
from likeset.state_checks import expect_array
from likeset.undo import Undo


class MergedData:
    """Distinct covariates (coordinates in the growing basis, shape (count, dimension)) and their sums."""

    def __init__(self, sums: Sums) -> None:
        self.sums = sums
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
        return self.sums.add(phi.index, y, weight, phi.law)

    def place(self, phi: Embedded) -> None:
        """Make room for a covariate; new ones arrive in order of their index."""
        if len(phi.coordinates) > self.dimension:
            self._rows = with_columns(self._rows, len(phi.coordinates))
        if phi.index >= self.count:
            if phi.index >= len(self._rows):
                self._rows = _doubled(self._rows)
            self._rows[phi.index] = phi.coordinates
            self.count = phi.index + 1

    def measure(self, rows: Array) -> None:
        """Take other coordinates of the same covariates: in units of their columns, say."""
        assert len(rows) == self.count
        self._rows = rows.copy() if len(rows) else np.zeros((8, rows.shape[1]))

    def terms(self) -> Terms:
        """phi_1, ..., phi_count as they are now; arrays may be views, do not write."""
        return self.sums.terms(self.count)

    def copy(self) -> MergedData:
        """The same data, to be added to independently."""
        family = self.sums.family
        return copy.deepcopy(self, {id(family): family})

    def state(self) -> dict[str, Array]:
        """Everything needed to continue bit for bit."""
        return {"coordinates": self.coordinates, **self.sums.state()}

    def restore(self, state: dict[str, Array], groups: int | None = None) -> None:
        """The inverse of ``state``; with sums for so many groups where these are not the covariates."""
        rows = expect_array(state, "coordinates", (None, None))
        self.sums.restore(state, len(rows) if groups is None else groups)
        self._rows, self.count = rows if len(rows) else np.zeros((8, 0)), len(rows)

    def fits(self, count: int, dimension: int) -> bool:
        """Whether there are so many distinct covariates of this dimension."""
        return self.count == count and self.dimension == dimension


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
