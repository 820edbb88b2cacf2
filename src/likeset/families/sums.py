r"""Observations of numbered covariates, merged as far as a family's likelihood allows.

* :class:`CurveSums`   two sums per covariate (exponential families; for the evidence :mod:`.evidence_sums` is used);
* :mod:`.sorted_sums`  sorted points (Laplace noise); distinct outcomes with weights, for a compiled loss; one mean per
  covariate, for a compiled loss that is affine in y;
* :mod:`.pair_sums`    the same for any family at all, through its functions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from likeset._solver.problem import CurveTerms, LossTerms, Terms
from likeset._typing import Array
from likeset.families.shifted_items import SOFTPLUS_LOSS, ShiftedItems
from likeset.state_checks import expect_array
from likeset.undo import Undo

if TYPE_CHECKING:
    from likeset.families.curve_family import CurveFamily


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


def _doubled(array: Array) -> Array:
    grown = np.zeros((2 * len(array), *array.shape[1:]))
    grown[: len(array)] = array
    return grown
