"""What a running piece's saved state must look like before it is taken: compiled kernels do not look at bounds.

``restore`` of every built-in piece reads its arrays through these functions. They raise ValueError; whoever loads the
file then lets the piece observe the recorded data again instead.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from likeset._typing import Array
from likeset.arguments import LARGEST

NORMALISED = 1e-9  # nats by which shares may miss one: rounding of one step


def expect_array(state: Mapping[str, Array], name: str, shape: tuple[int | None, ...]) -> Array:
    """A copy of ``state[name]``, finite (squares, too) and of this shape (None: any length), contiguous, of float64.

    >>> expect_array({"H": np.eye(2)}, "H", (2, None)).shape
    (2, 2)
    """
    array = expect_shape(state, name, shape)
    if not (np.abs(array) <= LARGEST).all():  # NaN, too
        raise ValueError(f"{name} has an entry that is not a number within {LARGEST:g}")
    return array


def expect_shape(state: Mapping[str, Array], name: str, shape: tuple[int | None, ...]) -> Array:
    """The same for an array that may hold infinities."""
    if name not in state:
        raise ValueError(f"{name} is missing")
    array = np.array(state[name], order="C")
    fits = array.ndim == len(shape) and all(want in (None, got) for want, got in zip(shape, array.shape, strict=True))
    if not fits or array.dtype != np.float64:
        raise ValueError(f"{name} has shape {array.shape} and dtype {array.dtype}, not {shape} of float64")
    return array


def expect_number(state: Mapping[str, Array], name: str) -> float:
    """A finite number >= 0, saved as an array of length one."""
    number = float(expect_array(state, name, (1,))[0])
    if number < 0:
        raise ValueError(f"{name} = {number} is negative")
    return number


def expect_counts(state: Mapping[str, Array], name: str, shape: tuple[int | None, ...], below: float) -> Array:
    """Whole numbers in [0, below)."""
    array = expect_array(state, name, shape)
    if not ((array >= 0) & (array < below) & (array == np.floor(array))).all():
        raise ValueError(f"{name} is not a list of whole numbers below {below}")
    return array


def expect_log_shares(state: Mapping[str, Array], name: str, count: int) -> Array:
    """Logarithms of ``count`` shares that add up to one: a sum above one would be no density."""
    shares = expect_shape(state, name, (count,))
    with np.errstate(over="ignore"):
        total = float(np.exp(shares).sum())  # NaN and +inf fail, -inf is a share of zero
    if not abs(total - 1.0) <= NORMALISED:
        raise ValueError(f"{name} add up to {total}, not to one")
    return shares


def expect_factors(state: Mapping[str, Array], name: str, shape: tuple[int | None, ...]) -> Array:
    """Triangular factors along the last two axes: positive diagonals."""
    factors = expect_array(state, name, shape)
    if not (np.diagonal(factors, axis1=-2, axis2=-1) > 0).all():
        raise ValueError(f"{name} has a diagonal entry that is not positive")
    return factors


def expect_inverse(state: Mapping[str, Array], name: str) -> Array:
    """A symmetric positive definite matrix."""
    matrix = expect_array(state, name, (None, None))
    if matrix.shape[0] != matrix.shape[1] or not np.allclose(matrix, matrix.T, rtol=1e-8, atol=0.0):
        raise ValueError(f"{name} is not symmetric")
    if len(matrix) and not np.linalg.eigvalsh(matrix)[0] > 0:
        raise ValueError(f"{name} is not positive definite")
    return matrix
