r"""A set cut with what is known to hold: coefficients that are positive, effects in order, a box, other norms.

    C cut with { g_j'theta >= b_j, j = 1..k }  and with  { | A theta |_1 <= r }

Bounds are certified from outside and attained from inside, within 1e-7 of the width of C: see
:mod:`~likeset.answers.cut_bounds`.
"""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from math import inf
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from likeset._typing import Array
from likeset.answers.cut_bounds import Ball1, CutBounds
from likeset.answers.support import Support
from likeset.arguments import positive, real_array, signs
from likeset.errors import EmptySetError, InvalidArgumentError, ShapeError
from likeset.evidence.unknown_shape import ShapeEvidence
from likeset.parts import worked_out

if TYPE_CHECKING:
    from likeset.sets import LikelihoodSet


def cut(whole: LikelihoodSet, G: Any, at_least: Any, at_most: Any, norm: Any) -> CutSet:
    """What ``LikelihoodSet.given`` answers."""
    if not hasattr(whole.space, "turn"):
        raise InvalidArgumentError("space", whole.space, "has no half-spaces", "use a finite-dimensional linear space")
    rows = whole.space.covariates(G, "G")
    if norm is not None:
        return _within(whole, rows, at_least, at_most, norm)
    if at_least is None and at_most is None:
        raise InvalidArgumentError("at_least", None, "is missing", "give at_least=, at_most= or both")
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


def _within(whole: LikelihoodSet, rows: Array, at_least: Any, at_most: Any, norm: Any) -> CutSet:
    """The set cut with | G theta | <= at_most in the l1 or the largest-entry norm."""
    if at_least is not None:
        raise InvalidArgumentError("at_least", at_least, "stands beside a norm", "norms are bounded by at_most= only")
    if isinstance(norm, bool) or not isinstance(norm, Real) or norm not in (1, inf):
        raise InvalidArgumentError(
            "norm", norm, "is not 1 or inf", "pass 1, np.inf, or a space with another bound for the Euclidean norm"
        )
    r = positive("at_most", at_most)
    if norm == 1:
        return CutSet(whole, np.zeros((0, rows.shape[1])), np.zeros(0), (Ball1(rows, r),))
    return CutSet(whole, np.concatenate([rows, -rows]), np.full(2 * len(rows), -r))


class CutSet:
    """A confidence set cut with half-spaces and l1 balls; made by ``LikelihoodSet.given``.

    Valid if these hold for the true theta, without any cost in alpha: the set covers it, and so does the cut.
    ``given`` cuts once more.
    """

    def __init__(self, whole: LikelihoodSet, G: Array, least: Array, balls: tuple[Ball1, ...] = ()) -> None:
        self.whole, self._G, self._least, self._balls = whole, G, least, balls
        self.alpha, self.n_observations = whole.alpha, whole.n_observations

    def __repr__(self) -> str:
        count = len(self._G) + len(self._balls)
        return f"<CutSet: {self.whole!r} with {count} half-spaces{' or l1 balls' if self._balls else ''}>"

    def given(self, G: Any, *, at_least: Any = None, at_most: Any = None, norm: Any = None) -> CutSet:
        """Cut once more, see :meth:`LikelihoodSet.given`."""
        more = cut(self.whole, G, at_least, at_most, norm)
        return CutSet(
            self.whole, np.vstack([self._G, more._G]), np.append(self._least, more._least), self._balls + more._balls
        )

    def contains(self, theta: Any) -> Any:
        """Whether theta is in the set and in all it was cut with."""
        inside = self.whole.contains(theta)
        values = self.whole._basis.values(theta, self._G)
        allowed = np.atleast_1d((values >= self._least).all(axis=1))
        for ball in self._balls:
            allowed &= np.abs(self.whole._basis.values(theta, ball.A)).sum(axis=1) <= ball.r * (1.0 + 1e-14)
        return inside & allowed if np.ndim(inside) else bool(inside and allowed[0])

    def upper(self, X: Any) -> Array:
        """Largest x'theta over the cut for every row x of X, rounded outward; never above that of the whole set."""
        return self.support(X).upper

    def lower(self, X: Any) -> Array:
        """Smallest x'theta over the cut for every row x of X, rounded outward."""
        return -self.support(X, sign=-1.0).upper

    def interval(self, X: Any) -> tuple[Array, Array]:
        """(lower, upper) for every row of X."""
        return self.lower(X), self.upper(X)

    def support(self, X: Any, *, sign: Any = 1.0) -> Support:
        """Maxima of x'theta (of -x'theta where ``sign`` is -1) over the cut, with maximisers and certified gap.

        Where an unknown shape makes the set not convex, and where the cut has no inner point, the gap may be infinite;
        bounds are as certified as elsewhere.
        """
        x = self.whole.space.covariates(X, "X")
        directions = signs("sign", sign, len(x))[:, None] * x
        whole = self.whole._bounds(*self.whole._basis.coordinates(directions))
        bounds = copy(self._bounds)  # which learns from every question, in one thread at a time
        values, points, upper = np.empty(len(x)), np.empty(directions.shape), np.empty(len(x))
        for i, direction in enumerate(directions):
            values[i], points[i], upper[i] = bounds.maximum(direction)
        self.__dict__["_bounds"] = bounds
        return Support(values, points, np.minimum(upper, whole))

    @property
    def is_empty(self) -> bool:
        """Whether no plausible parameter is in all it was cut with, certified: the model or they are wrong."""
        if self.whole.is_empty:
            return True
        try:
            _ = self._bounds
        except EmptySetError:
            return True
        return False

    @worked_out
    def _bounds(self) -> CutBounds:
        whole, bound = self.whole, self.whole.space.bound
        if bound == inf:
            # Where half-spaces bound theta by themselves, a ball around all they allow changes nothing.
            bound = _reach_of(self._G, self._least, self._balls)
            if bound < inf:
                whole = whole._of(replace(whole._evidence, bound=bound), whole.alpha)
        mixes = not isinstance(whole._evidence, ShapeEvidence)
        kernel = whole._answering()
        return CutBounds(
            kernel, whole._basis, bound, self.alpha, self._G, self._least, self._balls, mixes, self.whole.contains
        )


def _reach_of(G: Array, least: Array, balls: tuple[Ball1, ...]) -> float:
    """A length that no theta of the half-spaces exceeds, with a margin for the solver's tolerance; inf: any length."""
    from scipy.optimize import linprog

    # | a_i'theta | <= r for every row a_i of an l1 ball
    rows = np.vstack([-G, *(part for ball in balls for part in (ball.A, -ball.A))])
    limits = np.concatenate([-least, *(np.full(2 * len(ball.A), ball.r) for ball in balls)])
    square = 0.0
    for axis in np.eye(G.shape[1]):
        ends = []
        for direction in (axis, -axis):
            found = linprog(-direction, rows, limits, bounds=[(None, None)] * len(axis), method="highs")
            if found.status == 2:
                return 1.0  # nothing is left: any length will do
            if found.status != 0:
                return inf
            ends.append(abs(float(found.fun)))
        square += max(ends) ** 2
    return 1.01 * float(np.sqrt(square)) + 1e-6
