r"""Observations with an offset that no sum can absorb: one item for each distinct offset (and outcome) of a covariate.

Counted beside the sums of rows without offsets, and joined with them into one list of items,

    phi_k(z) = sum_i w_i L(y_i, z + o_i)                                 (:class:`~likeset._solver.problem.LossTerms`)

Where L is affine in y (counts with a logit link, negative binomial counts), the items of one offset are one, at the
mean of their outcomes. For the softplus curve,  a A(z) - s z = a L(s/a, z)  with  L(y, z) = (1 - y) A(z) + y A(-z).
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from likeset._solver.problem import LossTerms
from likeset._typing import Array
from likeset.elementwise import softplus_remainder, softplus_sides
from likeset.losses import Loss, Triple
from likeset.state_checks import expect_array, expect_counts
from likeset.undo import Undo

_NAMES = ("shift_offsets", "shift_points", "shift_weights")


def mean_softplus(y: float, z: float) -> Triple:
    """L = (1 - y) A(z) + y A(-z), L' = (1 - y) s(z) - y s(-z), L'' = s(z) s(-z); A = log(1 + e^z), 0 <= y <= 1."""
    above, below, s, t = softplus_sides(z)
    return (1.0 - y) * above + y * below, (1.0 - y) * s - y * t, s * t


def mean_softplus_remainder(y: float, z: float, u: float) -> Triple:
    """L is A(z) and a line."""
    return softplus_remainder(z, u)


SOFTPLUS_LOSS = Loss(mean_softplus, mean_softplus_remainder)


class ShiftedItems:
    """Offsets, outcomes and weights of the items of numbered covariates; arrays are replaced, not written to."""

    def __init__(self) -> None:
        self.items: list[Array] = []  # (3, n): offsets, points, weights

    def __bool__(self) -> bool:
        return any(part.size for part in self.items)

    def copy(self) -> ShiftedItems:
        """The same items, to be added to independently."""
        other = ShiftedItems()
        other.items = list(self.items)
        return other

    def remember(self, undo: Undo, index: int) -> None:
        """Keep the covariate's items."""
        if index < len(self.items):
            undo.keep_entry(self.items, index)
        else:
            undo.when_rolled_back(partial(self.items.__delitem__, slice(len(self.items), None)))

    def insert(self, index: int, offset: float, point: float, weight: float, affine: bool) -> None:
        """Add a weighted outcome; to the mean of those with the same offset where the loss is ``affine``."""
        while index >= len(self.items):
            self.items.append(np.empty((3, 0)))
        if weight <= 0:
            return
        old = self.items[index]
        found = np.flatnonzero((old[0] == offset) & (affine | (old[1] == point)))
        if not len(found):
            self.items[index] = np.column_stack([old, [offset, point, weight]])
            return
        new, place = old.copy(), found[0]
        total = new[2, place] + weight
        new[1:, place] = (new[1, place] * new[2, place] + point * weight) / total if affine else point, total
        self.items[index] = new

    def joined(self, loss: Loss, parameters: Array, plain: tuple[Any, Array, Array], count: int) -> LossTerms:
        """Terms of these items and of ``plain`` ones without offsets: owners, points and weights."""
        own = self.items[:count]
        sizes = [part.shape[1] for part in own]
        owners = np.concatenate([plain[0], np.repeat(np.arange(len(own)), sizes)]).astype(np.int64)
        offsets, points, weights = np.concatenate([np.empty((3, 0)), *own], axis=1)
        order = np.argsort(owners, kind="stable")
        starts = np.concatenate([[0], np.cumsum(np.bincount(owners, minlength=count))]).astype(np.int64)
        joined = (np.concatenate([plain[1], points])[order], np.concatenate([plain[2], weights])[order])
        shifts = np.concatenate([np.zeros(len(plain[0])), offsets])[order]
        return LossTerms(loss, parameters, starts, *joined, shifts)

    def state(self) -> dict[str, Array]:
        """Nothing where there is nothing; else the number of items per covariate, and all of them."""
        if not self:
            return {}
        sizes = np.array([part.shape[1] for part in self.items], dtype=np.float64)
        return {"shift_sizes": sizes} | dict(zip(_NAMES, np.concatenate(self.items, axis=1), strict=True))

    def restore(self, state: dict[str, Array], count: int) -> None:
        """The inverse of ``state``, for so many covariates at most."""
        self.items = []
        if "shift_sizes" not in state:
            return
        sizes = expect_array(state, "shift_sizes", (None,))
        total = len(expect_array(state, _NAMES[0], (None,)))
        sizes = expect_counts(state, "shift_sizes", sizes.shape, below=total + 1).astype(np.int64)
        rows = np.stack([expect_array(state, name, (total,)) for name in _NAMES])
        if sizes.sum() != total or len(sizes) > count or (rows[2] <= 0).any():
            raise ValueError("shifted items do not fit their number per covariate, or a weight is not positive")
        self.items = [part.copy() for part in np.split(rows, np.cumsum(sizes)[:-1], axis=1)]
