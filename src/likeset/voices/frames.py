r"""Columns of a linear model measured by what was seen of them, where nothing tells their units.

    range    (2, dim)    least and largest entry of every column so far
    frame    (2, dim)    what is subtracted from a column, and what it is divided by

A column whose entries are all on one side of zero, and are not all the same, is measured from the middle of its range
in halves of its length: an age in years says who is old, and not that everybody has one. Other columns (contrasts,
levels, the intercept) are measured from zero, in units of their largest entry. In these units two covariates have the
correlation of vectors; it does not depend on the units that columns come in.
"""

from __future__ import annotations

import numpy as np

from likeset._typing import Array
from likeset.spaces.base import Space
from likeset.spaces.linear import Linear

_FAR = 1e150  # units, beyond which entries are no farther: their quotients remain numbers


def in_frames(space: Space) -> bool:
    """Whether columns have no common unit: linear models without a bound."""
    return isinstance(space, Linear) and not np.isfinite(space.bound)


def widens(x: Array, known: Array | None) -> bool:
    """Whether x lies outside the range."""
    return known is None or bool((x < known[0]).any() or (x > known[1]).any())


def range_with(x: Array, known: Array | None) -> Array:
    """The range once x was seen."""
    return np.stack([x, x]) if known is None else np.stack([np.minimum(known[0], x), np.maximum(known[1], x)])


def frame_of(known: Array) -> Array:
    """Middles and units of the columns.

    >>> frame_of(np.array([[1.0, 20.0, -3.0, 0.0], [1.0, 60.0, 1.0, 0.0]]))
    array([[ 0., 40.,  0.,  0.],
           [ 1., 20.,  3.,  1.]])
    """
    low, high = known
    one_sided = ((low > 0.0) | (high < 0.0)) & (low < high)
    largest = np.maximum(np.abs(low), np.abs(high))
    middles = np.where(one_sided, 0.5 * low + 0.5 * high, 0.0)
    units = np.where(one_sided, 0.5 * high - 0.5 * low, largest)
    return np.stack([middles, np.where(units > 0.0, units, 1.0)])


def correlations(centres: Array, frames: Array, x: Array) -> Array:
    """|correlation| of x with every centre, in the frame of each or in one for all; zero if either is nothing there."""
    products = (_unit(_framed(centres, frames)) * _unit(_framed(x, frames))).sum(axis=1)
    return np.asarray(np.abs(products))


def says_something(x: Array, frame: Array) -> bool:
    """Whether x is not in the middle of everything."""
    return bool(_framed(x, frame[None]).any())


def _framed(x: Array, frames: Array) -> Array:
    with np.errstate(over="ignore"):
        return np.clip((x - frames[:, 0]) / frames[:, 1], -_FAR, _FAR)


def _unit(rows: Array) -> Array:
    """Rows of length one, or zero."""
    largest = np.abs(rows).max(axis=1, keepdims=True, initial=0.0)
    rows = rows / np.where(largest > 0.0, largest, 1.0)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(lengths > 0.0, lengths, 1.0)
