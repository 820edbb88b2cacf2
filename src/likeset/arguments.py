"""Validation of arguments shared by all public calls: one place decides what a number, an array, a count, a seed is."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likeset._typing import Array
from likeset.errors import InvalidArgumentError, ShapeError

LARGEST = 1e100  # beyond this, squares and products overflow
SMALLEST_LEVEL = 1e-300
LARGEST_COUNT = 10**7
LARGEST_SIZE = 2**27  # entries of an array: one gibibyte of numbers
LARGEST_OBJECTS = 10**6  # entries of a list or an array of Python objects, which are looked at one by one
_NEVER_NUMBERS = (
    bool,
    np.bool_,
    str,
    bytes,
    complex,
    np.complexfloating,
    np.timedelta64,
    np.ma.MaskedArray,
    type(None),
)


def real_number(name: str, value: Any) -> float:
    """A finite or infinite real number as float; NaN, strings, booleans, complex numbers and arrays are refused."""
    number = math.nan
    if isinstance(value, (float, int)) and not isinstance(value, bool):
        try:
            number = float(value)
        except OverflowError:
            raise InvalidArgumentError(name, value, "is too large for a floating-point number", _UNITS) from None
    elif not isinstance(value, _NEVER_NUMBERS) and not _is_array_of_others(value):
        number = _converted(name, value)
    else:
        raise InvalidArgumentError(name, value, "is not a number", "pass a real number")
    if math.isnan(number):
        raise InvalidArgumentError(name, value, "is not a number (NaN)", "pass a real number")
    return number


_UNITS = "use units in which it is of order one"


def _is_array_of_others(value: Any) -> bool:
    return isinstance(value, np.ndarray) and (value.ndim > 0 or value.dtype.kind not in "iuf")


def _converted(name: str, value: Any) -> float:
    """float(value) of what may be anybody's class; a conversion with a warning is none.

    ``float`` also reads digits in bytes: a memoryview or bytearray is text to it, not a number.
    """
    try:
        if not hasattr(type(value), "__float__") and not hasattr(type(value), "__index__"):
            raise TypeError
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            return float(value)
    except Exception:
        raise InvalidArgumentError(name, value, "is not a number", "pass a real number") from None


def positive(name: str, value: Any, *, infinite: bool = False) -> float:
    """A number > 0, finite unless ``infinite`` is allowed."""
    number = real_number(name, value)
    if number <= 0:
        raise InvalidArgumentError(name, value, "is not positive", "pass a number > 0")
    if math.isinf(number) and infinite:
        return number
    if not 1 / LARGEST <= number <= LARGEST:
        raise InvalidArgumentError(name, value, f"is not between {1 / LARGEST:g} and {LARGEST:g}", _UNITS)
    return number


def error_level(name: str, value: Any) -> float:
    """An error level strictly between 0 and 1."""
    number = real_number(name, value)
    if not 0.0 < number < 1.0:
        raise InvalidArgumentError(
            name, value, "is not strictly between 0 and 1", "use an error level such as 0.05 (1 - confidence)"
        )
    if number < SMALLEST_LEVEL:
        raise InvalidArgumentError(
            name, value, f"is below {SMALLEST_LEVEL:g}, where 1/{name} overflows", "use an error level such as 0.05"
        )
    return number


def positive_integer(
    name: str, value: Any, most: int = LARGEST_COUNT, why: str = "more than can be computed or held in memory"
) -> int:
    """An integer from 1 to ``most``; integral floats such as 3.0 are accepted. ``why`` explains the limit."""
    number = real_number(name, value)
    if math.isinf(number) or number != math.floor(number) or number < 1:
        raise InvalidArgumentError(name, value, "is not a positive integer", "pass an integer >= 1")
    if number > most:
        raise InvalidArgumentError(name, value, f"is above {most:,}: {why}", f"pass at most {most}")
    return int(number)


def flag(name: str, value: Any) -> bool:
    """True or False, and nothing that only counts as one of them."""
    if not isinstance(value, (bool, np.bool_)):
        raise InvalidArgumentError(name, value, "is neither True nor False", "pass True or False")
    return bool(value)


def choice(name: str, value: Any, options: Iterable[str]) -> str:
    """One of a few words."""
    if not isinstance(value, str) or value not in options:
        raise InvalidArgumentError(name, value, "is unknown", "use " + " or ".join(f'"{option}"' for option in options))
    return value


def seed_number(name: str, value: Any) -> int:
    """A whole number that random generators can start from."""
    if _is_seed(value):
        return int(value)
    raise InvalidArgumentError(name, value, "is not a seed", "pass a whole number from 0 to 2^128 - 1")


def _is_seed(value: Any) -> bool:
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.timedelta64))
    return whole and 0 <= value < 2**128


def generator(rng: Any, name: str = "rng") -> np.random.Generator:
    """An explicit random generator; whole numbers are seeds."""
    if isinstance(rng, np.random.Generator):
        return rng
    if _is_seed(rng):
        return np.random.default_rng(int(rng))
    raise InvalidArgumentError(
        name, rng, "is not a random generator", "pass np.random.default_rng(seed), or a seed >= 0"
    )


def file_path(name: str, value: Any) -> Path:
    """A path that can name a file: no numbers, which ``open`` takes for descriptors, no empty string, no NUL."""
    if not isinstance(value, (str, os.PathLike)) or isinstance(value, type):
        raise InvalidArgumentError(name, value, "is not a path", "pass a string or pathlib.Path")
    try:
        text = os.fspath(value)
    except Exception:
        text = b""
    if not isinstance(text, str) or not text or "\0" in text:
        raise InvalidArgumentError(name, value, "cannot name a file", "pass a string or pathlib.Path with a file name")
    return Path(text)


def database_path(name: str, value: Any) -> Path:
    """The full path of a file, there or not, that can be opened and is no folder."""
    target = file_path(name, value)
    try:
        folder, full = target.is_dir(), Path(os.path.realpath(target))
    except (OSError, ValueError) as error:  # too long a name, a loop of links, a folder that may not be searched
        said = getattr(error, "strerror", None) or error
        raise InvalidArgumentError(name, str(value), f"cannot be used ({said})", "pass another path") from error
    if folder:
        raise InvalidArgumentError(name, str(value), "is a folder", "pass the path of a file")
    return full


@contextmanager
def writing(path: Path) -> Iterator[Path]:
    """What the system says against writing to a path, as a typed error."""
    try:
        yield path
    except OSError as error:
        raise InvalidArgumentError(
            "path", str(path), f"cannot be written ({error.strerror or error})", "pass a path that can be written to"
        ) from error


def real_array(name: str, value: Any) -> Array:
    """Any array-like of finite real numbers as a fresh float64 array (−0.0 becomes 0.0)."""
    if type(value) in (float, np.float64) and abs(value) <= LARGEST:  # the usual case, cheaply
        return np.asarray(value + 0.0)
    raw = value if type(value) is np.ndarray else _plain_array(name, _dense(name, value))
    if raw.size > LARGEST_SIZE:
        raise ShapeError(name, value, f"has {raw.size:,} entries, above {LARGEST_SIZE:,}", "pass it in smaller parts")
    if raw.dtype.kind not in "biuf":
        raw = _numbers_of_objects(name, value, raw)
    array = _as_float64(raw) + 0.0
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


def floats(name: str, value: Any) -> Array:
    """What the helpers of families take: float64 as it is, not looked into (NaN gives NaN); all else is checked.

    The engine calls these helpers all the time with arrays of its own, for which this is a comparison of types.
    """
    if type(value) is np.ndarray and value.dtype == np.float64 and value.size <= LARGEST_SIZE:
        return value
    if type(value) is float or type(value) is np.float64:
        return np.asarray(value, dtype=np.float64)
    return real_array(name, value)


def _plain_array(name: str, value: Any) -> NDArray[Any]:
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise InvalidArgumentError(name, value, "has masked entries", "fill or drop them first")
    try:
        if not isinstance(value, np.ndarray) and _length(value) > LARGEST_SIZE:
            raise ShapeError(name, value, f"has more than {LARGEST_SIZE:,} entries", "pass it in smaller parts")
        return np.asarray(value)
    except ShapeError:
        raise
    except ValueError:
        raise ShapeError(name, value, "is ragged", "pass rows of equal length") from None
    except Exception as error:
        raise InvalidArgumentError(
            name, value, f"cannot be made an array ({type(error).__name__})", "pass numbers, or rows of numbers"
        ) from None


def _dense(name: str, value: Any) -> Any:
    """A sparse matrix of SciPy with all its zeros; anything else as it is."""
    if not type(value).__module__.startswith("scipy.sparse") or not hasattr(value, "toarray"):
        return value
    if math.prod(value.shape) > LARGEST_SIZE:
        raise ShapeError(name, value, f"has more than {LARGEST_SIZE:,} entries", "pass it in smaller parts")
    return np.asarray(value.toarray())


def _length(value: Any) -> int:
    try:
        return len(value)
    except TypeError:  # a number
        return 0


def _numbers_of_objects(name: str, value: Any, raw: NDArray[Any]) -> Array:
    if raw.dtype.kind == "O" and raw.size > LARGEST_OBJECTS:
        raise InvalidArgumentError(
            name, value, f"has {raw.size:,} entries that are Python objects", "convert it to float first"
        )
    try:
        if raw.dtype.kind != "O" or any(isinstance(entry, _NEVER_NUMBERS) for entry in raw.flat):
            raise TypeError
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            return raw.astype(np.float64)
    except Exception:
        raise InvalidArgumentError(name, value, *_what_is_wrong(value, raw)) from None


def _what_is_wrong(value: Any, raw: NDArray[Any]) -> tuple[str, str]:
    """Problem and remedy of what is no array of numbers, in words."""
    if isinstance(value, dict):
        return "is a dict, whose order means nothing", "pass its values as a list, or a list of rows"
    if isinstance(value, (set, frozenset)):
        return "is a set, whose order means nothing", "pass a list"
    if isinstance(value, Iterator):
        return f"is a {type(value).__name__}, which can be read only once", "pass list(...) of it"
    if raw.dtype.kind in "US":
        return "is text, not numbers" if raw.ndim == 0 else f"holds text ({str(_some(raw))!r})", "pass numbers"
    if raw.dtype.kind in "mMc":
        kind = {"m": "durations", "M": "dates", "c": "complex numbers"}[raw.dtype.kind]
        return f"holds {kind}, not real numbers", "convert it to float first"
    if raw.dtype.kind == "O":
        odd = [entry for entry in raw.flat[: 10**4] if isinstance(entry, _NEVER_NUMBERS) or not _counts(entry)]
        entry = odd[0] if odd else None
        if isinstance(entry, str):
            return f"holds text ({entry[:40]!r})", "pass numbers"
        if entry is None:
            return "holds None", "drop rows with missing values, or fill them in"
        return f"holds a {type(entry).__name__}, not a real number", "convert it to float first"
    return f"has dtype {raw.dtype}, not real numbers", "convert it to float first"


def _some(raw: NDArray[Any]) -> Any:
    return raw.flat[0] if raw.size else ""


def _counts(entry: Any) -> bool:
    return isinstance(entry, (int, float, np.number)) or hasattr(type(entry), "__float__")


def _as_float64(raw: NDArray[Any]) -> Array:
    if raw.dtype == np.float64:
        return raw
    with np.errstate(over="ignore"):  # wider floats: beyond the range is infinite, and refused
        return raw.astype(np.float64)


def has_shape(value: Any, shape: tuple[int, ...]) -> bool:
    """Whether an array-like has this shape; what cannot be made an array has none."""
    try:
        return np.shape(value) == shape
    except Exception:  # ragged, or nested too deeply
        return False


def rows(name: str, value: Any, dim: int) -> Array:
    """Row vectors of length ``dim``: shape (dim,) is one row; for dim = 1, shape (n,) is n rows."""
    given = array = real_array(name, value)
    if array.ndim == 0 and dim == 1:
        array = array.reshape(1, 1)
    elif array.ndim == 1:
        array = array.reshape(-1, 1) if dim == 1 else array.reshape(1, -1)
    if array.ndim != 2 or array.shape[1] != dim:
        raise ShapeError(
            name,
            value,
            f"has shape {given.shape}",
            f"pass one vector of length {dim} or an array of shape (n, {dim})",
        )
    return np.ascontiguousarray(array)


def one_row(name: str, value: Any, dim: int) -> Array:
    """One vector of length ``dim``."""
    found = rows(name, value, dim)
    if len(found) != 1:
        raise ShapeError(name, value, f"has {len(found)} rows", f"pass one vector of length {dim}")
    return found[0]


def signs(name: str, value: Any, count: int) -> Array:
    """+1 or -1, one for all or one for each of ``count`` rows."""
    array = real_array(name, value)
    if array.shape not in ((), (1,), (count,)):
        raise ShapeError(name, value, f"has shape {array.shape}", f"pass one sign, or one for each of the {count} rows")
    if not (np.abs(array) == 1.0).all():
        raise InvalidArgumentError(name, value, "is not +1 or -1", "pass 1 for maxima and -1 for minima")
    return array if array.shape == (count,) else np.full(count, array)
