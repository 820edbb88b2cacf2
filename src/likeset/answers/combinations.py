r"""Combinations c x'theta + e y'theta of two linear predictors, row by row.

In a linear space c x + e y is a covariate as any other. In a function space it is none: the parts of x and y outside
the span of the covariates seen are taken at their worst, each for itself.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np

from likeset._solver.linalg.threads import SingleThreadedBlas
from likeset._typing import Array, Mask
from likeset.answers.directions import split
from likeset.answers.shares import bounds_in_shares, solved_in_shares
from likeset.arguments import LARGEST
from likeset.errors import ShapeError
from likeset.evidence.evidence import ROUNDING
from likeset.spaces.base import Basis, Space
from likeset.spaces.linear import Linear

if TYPE_CHECKING:
    from likeset.sets import LikelihoodSet


def pairs_of_rows(space: Space, X: Any, Y: Any) -> tuple[Array, Array]:
    """Rows of X and of Y, as many of each."""
    first, second = space.covariates(X, "X"), space.covariates(Y, "Y")
    if len(first) != len(second) and 1 not in (len(first), len(second)):
        raise ShapeError("Y", Y, f"has {len(second)} rows", f"pass one for each of the {len(first)} rows of X, or one")
    n = max(len(first), len(second)) if len(first) and len(second) else 0
    shape = (n, *first.shape[1:])
    return np.broadcast_to(first, shape).copy(), np.broadcast_to(second, shape).copy()


def upper_difference(s: LikelihoodSet, X: Any, Y: Any) -> Array:
    """Outer bounds of x'theta - y'theta, each by the set that answers this question."""
    first, second = pairs_of_rows(s.space, X, Y)
    ones = np.ones(len(first))
    inside, leaving, answer, apart, _ = combined(s.space, s._basis, first, second, ones, -ones)
    if apart.any():
        asked = s._asked(X, Y)
        with SingleThreadedBlas():
            answer += bounds_in_shares(s._kernels(apart, asked), inside, leaving)
    return answer


def pair_support(s: LikelihoodSet, X: Array, Y: Array, c: Array, e: Array) -> tuple[Array, Array]:
    """Outer bounds of c x'theta + e y'theta, row by row, and (x'theta, y'theta) where attained; NaN if not known."""
    kernel = s._answering()
    inside, leaving, heights, apart, first_and_second = combined(s.space, s._basis, X, Y, c, e)
    points = np.full((len(X), 2), np.nan)
    if apart.any():
        with SingleThreadedBlas():
            found = solved_in_shares(kernel, inside[apart], leaving[apart])
        heights[apart] += found.upper
        within, rows = found.points[:, :-1], first_and_second
        if isinstance(s.space, Linear):
            whole = c[:, None] * X + e[:, None] * Y
            within, rows = s._basis.lift(within, found.points[:, -1], whole[apart]), (X, Y)
        at = np.column_stack([np.einsum("ij,ij->i", each[apart], within) for each in rows])
        if not isinstance(s.space, Linear):
            at[leaving[apart] > 0.0] = np.nan
        points[apart] = at
    return heights, points


def combined(
    space: Space, basis: Basis, X: Array, Y: Array, c: Array, e: Array
) -> tuple[Array, Array, Array, Mask, tuple[Array, Array]]:
    """Directions c x + e y, and what is not solved for.

    Coordinates, lengths outside the span, what parts left out and rounding can add at most, whether anything is
    left to solve for, and the coordinates of x and y.
    """
    first, first_outside = basis.coordinates(X)
    second, second_outside = basis.coordinates(Y)
    rounding = np.zeros(len(X))
    if isinstance(space, Linear):
        whole = c[:, None] * X + e[:, None] * Y  # for differences correctly rounded, entry by entry
        inside, outside = basis.coordinates(whole)
        leaving, spill = split(space.bound, inside, outside)
        apart = np.linalg.norm(whole, axis=1) > 1 / LARGEST
        if space.bound < inf and not (np.abs(c) == np.abs(e)).all():
            rounding = np.abs(c) * np.linalg.norm(X, axis=1) + np.abs(e) * np.linalg.norm(Y, axis=1)
    else:
        inside = c[:, None] * first + e[:, None] * second
        leaving_1, spill_1 = split(space.bound, first, first_outside)
        leaving_2, spill_2 = split(space.bound, second, second_outside)
        # What is tiny is judged for each covariate on its own: it stays apart from what is solved for.
        leaving, spill = np.abs(c) * leaving_1 + np.abs(e) * leaving_2, np.abs(c) * spill_1 + np.abs(e) * spill_2
        # Cancellation in the combination is worth at most this much of theta's length.
        rounding = np.abs(c) * np.linalg.norm(first, axis=1) + np.abs(e) * np.linalg.norm(second, axis=1)
        apart = np.hypot(np.linalg.norm(inside, axis=1), leaving) > ROUNDING * rounding
    np.multiply(space.bound, ROUNDING * rounding, out=rounding, where=rounding > 0)
    return inside, leaving, spill + rounding, apart, (first, second)
