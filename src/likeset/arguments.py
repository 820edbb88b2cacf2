"""Validation of arguments shared by all public calls: one place decides what a number or an array is."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likeset.errors import InvalidArgumentError, ShapeError

Array = NDArray[np.float64]


LARGEST = 1e100  # beyond this, squares and products overflow


def real_number(name: str, value: Any) -> float:
    """A finite or infinite real number as float; NaN, strings, booleans and arrays are refused."""
    if isinstance(value, (bool, np.bool_, str, bytes)) or value is None:
        raise InvalidArgumentError(name, value, "is not a number", "pass a real number")
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise InvalidArgumentError(name, value, "is not a number", "pass a real number") from None
    if math.isnan(number):
        raise InvalidArgumentError(name, value, "is not a number (NaN)", "pass a real number")
    return number


def positive(name: str, value: Any, *, infinite: bool = False) -> float:
    """A number > 0, finite unless ``infinite`` is allowed."""
    number = real_number(name, value)
    if number <= 0:
        raise InvalidArgumentError(name, value, "is not positive", "pass a number > 0")
    if math.isinf(number) and infinite:
        return number
    if not 1 / LARGEST <= number <= LARGEST:
        raise InvalidArgumentError(
            name, value, f"is not between {1 / LARGEST:g} and {LARGEST:g}", "use units in which it is of order one"
        )
    return number


def error_level(name: str, value: Any) -> float:
    """An error level strictly between 0 and 1."""
    number = real_number(name, value)
    if not 0.0 < number < 1.0:
        raise InvalidArgumentError(
            name, value, "is not strictly between 0 and 1", "use an error level such as 0.05 (1 - confidence)"
        )
    return number


def positive_integer(name: str, value: Any) -> int:
    """An integer >= 1; integral floats such as 3.0 are accepted."""
    number = real_number(name, value)
    if math.isinf(number) or number != math.floor(number) or number < 1:
        raise InvalidArgumentError(name, value, "is not a positive integer", "pass an integer >= 1")
    return int(number)


def real_array(name: str, value: Any) -> Array:
    """Any array-like of finite real numbers as a fresh float64 array (−0.0 becomes 0.0)."""
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise InvalidArgumentError(name, value, "has masked entries", "fill or drop them first")
    try:
        raw = np.asarray(value)
    except ValueError:
        raise ShapeError(name, value, "is ragged", "pass rows of equal length") from None
    if raw.dtype.kind not in "biuf":
        try:
            if raw.dtype.kind != "O" or any(isinstance(entry, (str, bytes)) for entry in raw.flat):
                raise TypeError
            raw = raw.astype(np.float64)
        except (TypeError, ValueError, OverflowError):
            raise InvalidArgumentError(
                name, value, f"has dtype {raw.dtype}, not real numbers", "convert it to float first"
            ) from None
    array = raw.astype(np.float64, copy=False) + 0.0
    if array.size and np.abs(array).max() <= LARGEST:  # false for NaN, too
        return array
    if not np.isfinite(array).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise InvalidArgumentError(
            name, value, f"contains {array[where]} at index {where}", "remove or impute non-finite entries"
        )
    if array.size and np.abs(array).max() > LARGEST:
        raise InvalidArgumentError(
            name, value, f"has an entry beyond {LARGEST:g}", "use units in which typical entries are of order one"
        )
    return array


def rows(name: str, value: Any, dim: int) -> Array:
    """Row vectors of length ``dim``: shape (dim,) is one row; for dim = 1, shape (n,) is n rows."""
    array = real_array(name, value)
    if array.ndim == 0 and dim == 1:
        array = array.reshape(1, 1)
    elif array.ndim == 1:
        array = array.reshape(-1, 1) if dim == 1 else array.reshape(1, -1)
    if array.ndim != 2 or array.shape[1] != dim:
        raise ShapeError(
            name,
            value,
            f"has shape {np.shape(value)}",
            f"pass one vector of length {dim} or an array of shape (n, {dim})",
        )
    return np.ascontiguousarray(array)
