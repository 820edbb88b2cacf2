r"""The sums behind the log ratio, accumulated so that the evidence does not drown in the size of the outcomes.

For an exponential family  sum_s w_s [-log p(y_s | z)]  is a quantity of the size of y^2/sigma^2 (Gaussian) or y log y
(Poisson), while the evidence, log R, is a few nats: in the difference of the two nothing would be left of the latter
where means are a million times the noise. So each covariate gets a *reference* o, its first outcome as a value of z,
and everything is counted from there:

    a = sum w a(y),     s = sum w [s(y) - a(y) A'(o)],     gain = sum w [log q(y) - log p(y | o)],
    phi(z) = a [A(z) - A(o) - A'(o) (z - o)] - s (z - o),                     log R = sum_k [gain_k + phi_k(x_k'theta)].

All three are sums of small numbers, added with compensation (Neumaier 1974), so that a million rows cost no digits
either. The choice of o changes no value, only its rounding.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from likeset._solver.problem import CurveTerms, LossTerms
from likeset._typing import Array
from likeset.families.shifted_items import ShiftedItems
from likeset.families.sums import add_shifted, softplus_items
from likeset.undo import Undo

if TYPE_CHECKING:
    from likeset.families.curve_family import CurveFamily


class CompensatedSums:
    """Numbered sums with the rounding errors of their additions: to the last digit or so, whatever their length.

    >>> sums = CompensatedSums()
    >>> for x in (1.0, 1e100, 1.0, -1e100):
    ...     sums.add(0, x)
    >>> sums.values(1)
    array([2.])
    """

    def __init__(self) -> None:
        self.total, self.rest = np.zeros(8), np.zeros(8)
        self.rounded = np.zeros(8)

    def add(self, index: int, x: float) -> None:
        """Add x to one sum; -inf stays."""
        while index >= len(self.total):
            self.total, self.rest, self.rounded = map(_doubled, (self.total, self.rest, self.rounded))
        old = float(self.total[index])
        new = old + x
        rest = 0.0
        if new - new == 0.0:  # finite
            rest = float(self.rest[index]) + ((old - new) + x if abs(old) >= abs(x) else (x - new) + old)
        self.total[index], self.rest[index], self.rounded[index] = new, rest, new + rest

    @property
    def parts(self) -> tuple[Array, Array, Array]:
        """Totals, what their rounding left, and the sums of the two."""
        return self.total, self.rest, self.rounded

    def has(self, index: int) -> bool:
        """Whether there is room for this sum already, and growing was not interrupted."""
        return index < len(self.total) == len(self.rounded)

    def remember(self, undo: Undo, index: int) -> None:
        """Before ``add`` to one sum: keep its two parts, and their sum."""
        if self.has(index):
            undo.keep_row(self.parts, index)
        else:
            undo.keep(self)  # arrays are about to be replaced by longer ones

    def values(self, count: int) -> Array:
        """The first ``count`` sums, rounded once; a view, do not write."""
        return self.rounded[:count]

    def state(self, name: str) -> dict[str, Array]:
        """Both parts, under ``name`` and ``name_rest``."""
        return {name: self.total, f"{name}_rest": self.rest}

    def restore(self, state: dict[str, Array], name: str) -> None:
        """The inverse of ``state``."""
        self.total = np.concatenate([state[name], np.zeros(8)])
        rest = state[f"{name}_rest"]
        if rest.shape != state[name].shape:
            raise ValueError(f"{name}_rest has shape {rest.shape}, not {state[name].shape}")
        self.rest = np.concatenate([rest, np.zeros(8)])
        self.rounded = self.total + self.rest


class EvidenceSums:
    """a_k, s_k and the references o_k of numbered covariates, for an exponential family."""

    def __init__(self, family: CurveFamily) -> None:
        self.family = family
        self.a, self.s = CompensatedSums(), CompensatedSums()
        self.origins = np.zeros(8)
        self.shifted = ShiftedItems()

    def remember(self, undo: Undo, index: int) -> None:
        """Before ``add`` to covariate ``index``: keep its sums and its reference."""
        if index < len(self.origins) and self.a.has(index) and self.s.has(index):
            undo.keep_row((self.origins, *self.a.parts, *self.s.parts), index)
        else:
            undo.keep(self)  # arrays are about to be replaced by longer ones
            self.a.remember(undo, index)
            self.s.remember(undo, index)
            if index < len(self.origins):
                undo.keep_entry(self.origins, index)
        self.shifted.remember(undo, index)

    def add(self, index: int, y: Array, weight: float, law: Any = None) -> float:
        """Merge one observation; return the part of its weighted log-density that is free of z: w log p(y | o)."""
        law = self.family if law is None else law
        while index >= len(self.origins):
            self.origins = _doubled(self.origins)
        if getattr(law, "stays_shifted", False):
            self.a.add(index, 0.0)  # make room
            self.s.add(index, 0.0)
            return add_shifted(self.shifted, index, y, weight, law)
        if self.family.referenced:
            if index >= len(self.a.total) or self.a.total[index] == 0.0:  # nothing was counted from another one
                self.origins[index] = law.reference(y)
            a, s, c = law.statistics_from(y, float(self.origins[index]))
        else:
            a, s, c = map(float, law.statistics(y))
        self.a.add(index, weight * a)
        self.s.add(index, weight * s)
        return weight * c

    def terms(self, count: int) -> CurveTerms | LossTerms:
        """phi_1, ..., phi_count as they are now; later observations do not change them."""
        if self.shifted:
            return softplus_items(self.shifted, self.a.values(count), self.s.values(count))
        origins = self.origins[:count].copy() if self.family.referenced else None
        return CurveTerms(self.family.curve, self.a.values(count).copy(), self.s.values(count).copy(), origins)

    snapshot = terms

    def state(self) -> dict[str, Array]:
        """Sums and references."""
        return self.a.state("a") | self.s.state("s") | {"origins": self.origins} | self.shifted.state()

    def restore(self, state: dict[str, Array], count: int) -> None:
        """The inverse of ``state``, for so many covariates."""
        self.a.restore(state, "a")
        self.s.restore(state, "s")
        self.origins = state["origins"].copy()
        self.shifted.restore(state, count)


def _doubled(array: Array) -> Array:
    return np.concatenate([array, np.zeros_like(array)])
