"""Observations of a family that is known only through its functions: distinct outcomes, and what they add up to."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from likeset._solver.problem import CallableTerms
from likeset._typing import Array
from likeset.errors import NotConvexError
from likeset.families.base import Family
from likeset.state_checks import expect_array, expect_counts
from likeset.undo import Undo


def density_and_derivatives(family: Family, y: Array, z: Array) -> tuple[Array, Array, Array]:
    """log p(y | z) and its first and second derivative in z, at once from a family that has them at once."""
    own = getattr(family, "density_and_derivatives", None)
    return (family.log_density(y, z), *family.derivatives(y, z)) if own is None else own(y, z)


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
        values, first, second = density_and_derivatives(family, self.y, z)
        most = float(np.max(second))
        if family.convex and most > 1e-5 and most > 1e-5 * (1.0 + float(np.abs(second).max())):
            raise NotConvexError(
                f"{family!r} was declared convex in z, but its second derivative is negative at an observed y; "
                "leave the claim out."
            )
        return self._merged(-values), self._merged(-first), self._merged(np.maximum(-second, 0.0))

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
