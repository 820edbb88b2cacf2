r"""A set cut with half-spaces that are known to hold: coefficients that are positive, effects in order, a box.

    C cut with { g_j'theta >= b_j, j = 1..k }

For every lambda >= 0 and every theta of the cut, x'theta <= x'theta + sum_j lambda_j (g_j'theta - b_j), so that

    h(x + sum_j lambda_j g_j) - sum_j lambda_j b_j,        h the support function of C,

is an outer bound, whatever lambda is; the least of them is the maximum over the cut (strong duality, if the cut has an
inner point). It is convex in lambda, with the slope g_j'theta - b_j at the maximiser theta, and is minimised by halving
intervals, one lambda_j after the other: exact up to rounding for one half-space, an outer bound for several.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np

from likeset._typing import Array
from likeset.answers.combinations import pair_support
from likeset.arguments import real_array
from likeset.errors import EmptySetError, InvalidArgumentError, ShapeError

if TYPE_CHECKING:
    from likeset.sets import LikelihoodSet

_DOUBLINGS = 60
_HALVINGS = 40
_ROUNDS = 6  # through all half-spaces, where there are several


def cut(whole: LikelihoodSet, G: Any, at_least: Any, at_most: Any) -> CutSet:
    """What ``LikelihoodSet.given`` answers."""
    whole._plain_dimension("half-spaces")
    if at_least is None and at_most is None:
        raise InvalidArgumentError("at_least", None, "is missing", "give at_least=, at_most= or both")
    rows = whole.space.covariates(G, "G")
    signed, limits = [], []
    for name, value, sign in (("at_least", at_least, 1.0), ("at_most", at_most, -1.0)):
        if value is not None:
            numbers = real_array(name, value)
            if numbers.shape not in ((), (1,), (len(rows),)):
                raise ShapeError(
                    name,
                    value,
                    f"has shape {numbers.shape}",
                    f"pass one number, or one for each of {len(rows)} rows",
                )
            signed.append(sign * rows)
            limits.append(np.broadcast_to(sign * numbers, (len(rows),)))
    return CutSet(whole, np.concatenate(signed), np.concatenate(limits))


class CutSet:
    """A confidence set cut with half-spaces; made by ``LikelihoodSet.given``.

    Valid if the half-spaces hold for the true theta, without any cost in alpha: the set covers it, and so does the cut.
    """

    def __init__(self, whole: LikelihoodSet, G: Array, least: Array) -> None:
        self.whole, self._G, self._least = whole, G, least
        self.alpha, self.n_observations = whole.alpha, whole.n_observations

    def __repr__(self) -> str:
        return f"<CutSet: {self.whole!r} with {len(self._G)} half-spaces>"

    def contains(self, theta: Any) -> Any:
        """Whether theta is in the set and in all half-spaces."""
        inside = self.whole.contains(theta)
        values = self.whole._basis.values(theta, self._G)
        allowed = np.atleast_1d((values >= self._least).all(axis=1))
        return inside & allowed if np.ndim(inside) else bool(inside and allowed[0])

    def upper(self, X: Any) -> Array:
        """An outer bound of x'theta over the cut for every row x of X; never above that of the whole set."""
        return self._upper(self.whole.space.covariates(X, "X"), 1.0)

    def lower(self, X: Any) -> Array:
        """The same from below."""
        return -self._upper(self.whole.space.covariates(X, "X"), -1.0)

    def interval(self, X: Any) -> tuple[Array, Array]:
        """(lower, upper) for every row of X; EmptySetError where they show that the cut is empty."""
        low, high = self.lower(X), self.upper(X)
        if (low > high).any():
            raise EmptySetError(self.alpha)
        return low, high

    @property
    def is_empty(self) -> bool:
        """Whether the bounds show that no plausible parameter is in all half-spaces: the model or they are wrong."""
        if self.whole.is_empty:
            return True
        high = self._upper(self._G, 1.0)
        low = -self._upper(self._G, -1.0)
        return bool((high < self._least).any() or (low > high).any())

    def _upper(self, X: Array, sign: float) -> Array:
        n, k = len(X), len(self._G)
        best = self.whole.upper(X) if sign > 0 else -self.whole.lower(X)
        multipliers = np.zeros((n, k))
        lengths = np.linalg.norm(self.whole._basis.coordinates(X)[0], axis=1)
        sizes = np.linalg.norm(self.whole._basis.coordinates(self._G)[0], axis=1)
        units = np.where(lengths > 0, lengths, 1.0)[:, None] / np.where(sizes > 0, sizes, 1.0)
        for _ in range(_ROUNDS if k > 1 else 1):
            before = best.copy()
            for j in range(k):
                best = self._improve(X, sign, j, multipliers, units[:, j], best)
            if (before - best <= 1e-9 * (1.0 + np.abs(best))).all():
                break
        return best

    def _improve(self, X: Array, sign: float, j: int, multipliers: Array, unit: Array, best: Array) -> Array:
        """Minimise over one multiplier of every row, between brackets; the best bound found, and where it was."""
        others = multipliers.copy()
        others[:, j] = 0.0
        rest, paid = sign * X + others @ self._G, others @ self._least
        chosen, low = multipliers[:, j].copy(), np.zeros(len(X))
        high, trial = np.full(len(X), inf), np.zeros(len(X))
        for step in range(_DOUBLINGS + _HALVINGS):
            bound, slope = self._at(rest, paid, j, trial)
            better = bound < best
            best, chosen = np.where(better, bound, best), np.where(better, trial, chosen)
            rising = ~(slope < 0.0)
            low, high = np.where(rising, low, trial), np.where(rising, trial, high)
            open_ones = np.where(high < inf, high - low > 1e-9 * unit + 1e-9 * low, low < 1e12 * unit)
            if not open_ones.any() or step > _DOUBLINGS + _HALVINGS:
                break
            trial = np.where(high < inf, 0.5 * (low + high), np.maximum(2.0 * low, unit))
        multipliers[:, j] = chosen
        return best

    def _at(self, rest: Array, paid: Array, j: int, trial: Array) -> tuple[Array, Array]:
        """The bound for one multiplier of half-space j in every row, and its slope."""
        row = np.broadcast_to(self._G[j], rest.shape).copy()
        heights, points = pair_support(self.whole, rest, row, np.ones(len(rest)), trial)
        return heights - paid - trial * self._least[j], points[:, 1] - self._least[j]
