"""Frames of every kind as plain columns: pandas, polars, Arrow, dicts, CSV and Parquet files. Nothing is interpreted
here.

A :class:`Columns` keeps cells as they came, with the numbers of their rows, so that whoever reads a cell can say
where it is. Numbers and flags without gaps are arrays; everything else is a list, in which a missing value is None.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likeset._typing import Array
from likeset.arguments import LARGEST, file_path
from likeset.errors import InvalidArgumentError, RowError, ShapeError
from likeset.extras import optional_packages
from likeset.study.spelling import near

Cells = NDArray[Any] | list[Any]
MOST_COLUMNS = 10_000
LONGEST_HEADING = 40  # characters of a column's name in a message
_KINDS = (
    "a data frame (pandas, polars, Arrow), a list of dicts, a dict of columns, or the path of a CSV or Parquet file"
)


@dataclass(frozen=True)
class Columns:
    """Cells by column name. ``lines``: on which line of a file each row began; ``text``: cells are words of a file."""

    cells: Mapping[str, Cells]
    count: int
    lines: Sequence[int] | None = None
    text: bool = False
    decimal: str = "."
    first: int = field(default=1)  # number of the first row, for messages
    places: Sequence[int] | None = None  # which row of the frame each row was, where some were left out

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, name: str) -> Cells:
        """The cells of a column that must be there."""
        if name not in self.cells:
            known = ", ".join(map(_shortened, list(self.cells)[:12])) or "none"
            meant = near(name, self.cells)
            raise RowError(
                name, None, None, f"is missing: the columns are {known}{meant}", "add the column, or rename one"
            )
        return self.cells[name]

    def error(self, column: str, index: int, problem: str, remedy: str) -> RowError:
        """What is wrong with one cell, and where it is."""
        value = self.cells[column][index] if column in self.cells else None
        line = None if self.lines is None else self.lines[index]
        place = index if self.places is None else self.places[index]
        return RowError(column, self.first + place, _plain(value), problem, remedy, line)

    def taken(self, keep: NDArray[np.bool_]) -> Columns:
        """The rows for which ``keep`` is true."""
        kept = np.flatnonzero(keep)
        chosen: dict[str, Cells] = {
            name: cells[kept] if isinstance(cells, np.ndarray) else [cells[i] for i in kept]
            for name, cells in self.cells.items()
        }
        lines = None if self.lines is None else [self.lines[int(i)] for i in kept]
        places = [int(i) if self.places is None else self.places[int(i)] for i in kept]
        return Columns(chosen, len(kept), lines, self.text, self.decimal, self.first, places)

    # -- reading cells ------------------------------------------------------------------------------------------------

    def numbers(self, name: str) -> Array:
        """A column of finite numbers; anything else is refused with its row."""
        cells = self[name]
        array = self._quickly(cells)
        if array is None or not np.isfinite(array).all() or (np.abs(array) > LARGEST).any():
            array = np.array([self._number(name, i, cell) for i, cell in enumerate(cells)], dtype=np.float64)
        return array + 0.0  # no sign of zero

    def values(self, name: str) -> list[Any]:
        """A column of cells that are there, as Python's own objects."""
        cells = self[name]
        listed = cells.tolist() if isinstance(cells, np.ndarray) else cells
        for i, cell in enumerate(listed):
            if _is_missing(cell) or (self.text and cell == ""):
                raise self.error(name, i, "is missing", "fill it in, or leave the row out")
        return listed

    def present(self, name: str) -> NDArray[np.bool_]:
        """Which cells of a column are there."""
        cells = self[name]
        listed = cells.tolist() if isinstance(cells, np.ndarray) else cells
        return np.array([not (_is_missing(c) or (self.text and c.strip() == "")) for c in listed], dtype=bool)

    def flags(self, name: str) -> NDArray[np.bool_]:
        """A column of 0 and 1, or of no and yes; a cell that is empty is no."""
        there = self.present(name)
        found = np.zeros(len(self), bool)
        if there.any():
            given = self.taken(there)
            numbers = given.numbers(name)
            wrong = (numbers != 0) & (numbers != 1)
            if wrong.any():
                raise given.error(name, int(np.argmax(wrong)), "is neither 0 nor 1", "mend the cell")
            found[there] = numbers == 1
        return found

    def _quickly(self, cells: Cells) -> Array | None:
        if isinstance(cells, np.ndarray):
            return cells.astype(np.float64)
        try:
            if self.text:
                return np.array([self._point(cell) for cell in cells], dtype=np.float64)
            kinds = set(map(type, cells))
            return np.array(cells, dtype=np.float64) if kinds <= {int, float, bool} else None
        except (ValueError, TypeError, OverflowError):
            return None

    def _point(self, word: str) -> str:
        """A number with a decimal point."""
        return word.replace(",", ".") if self.decimal == "," else word

    def _number(self, name: str, index: int, cell: Any) -> float:
        cell = _plain(cell)
        if _is_missing(cell) or (self.text and cell.strip() == ""):
            raise self.error(name, index, "is missing", "fill it in, or leave the row out")
        number = math.nan
        if self.text:
            word = cell.strip().lower()
            flags = {"true": 1.0, "false": 0.0, "yes": 1.0, "no": 0.0}
            with suppress(ValueError):
                number = flags[word] if word in flags else float(self._point(word))
        elif isinstance(cell, (int, float)) or _is_decimal(cell):
            with suppress(ValueError):
                number = _as_float(cell)
        if math.isnan(number):
            if isinstance(cell, str) and not self.text and _is_number(cell):
                raise self.error(
                    name, index, "is not a number, but text", "make the column one of numbers, as with astype(float)"
                )
            raise self.error(name, index, "is not a number", _how_to_write(str(cell), self.decimal))
        if abs(number) > LARGEST:
            raise self.error(name, index, "is too large", "use units in which it is of order one")
        return number


def _as_float(cell: Any) -> float:
    try:
        return float(cell)
    except OverflowError:
        return math.inf


def _is_number(text: str) -> bool:
    with suppress(ValueError):
        return not math.isnan(float(text))
    return False


def _shortened(heading: str) -> str:
    return repr(heading if len(heading) <= LONGEST_HEADING else heading[:LONGEST_HEADING] + "...")


def _how_to_write(cell: str, decimal: str) -> str:
    """How a cell that is no number may be made one.

    >>> _how_to_write("1,409.96", "."), _how_to_write("53.2%", "."), _how_to_write("NA", ".")[:17]
    ('write 1409.96, without separators of thousands', 'write 53.2, without units', 'leave the row out')
    """
    if cell.strip().casefold() in ("na", "n/a", "nan", "null", "none", "-", "?"):
        return "leave the row out: a value that is missing cannot be counted (if it is missing by chance)"
    bare = cell.strip().strip("%$€£¥ ").strip()
    joined = re.sub(rf"(?<=\d)[{'.' if decimal == ',' else ','} '\u00a0\u202f](?=\d{{3}}(\D|$))", "", bare)
    with suppress(ValueError):
        float(joined.replace(decimal, "."))
        return f"write {joined}, without {'separators of thousands' if joined != bare else 'units'}"
    return "mend the cell, or leave the row out"


def columns_of(data: Any, name: str = "rows") -> Columns:
    """Anything frame-like as columns; a path is read.

    >>> columns_of([{"variant": "A", "clicks": 3}, {"variant": "B"}]).cells
    {'variant': ['A', 'B'], 'clicks': [3, None]}
    """
    if isinstance(data, Columns):
        return data
    if isinstance(data, (str, PathLike)):
        return read_file(file_path(name, data))
    if isinstance(data, Mapping):
        return _of_mapping(name, data)
    if isinstance(data, Iterator) and not hasattr(data, "__arrow_c_stream__"):  # a generator of dicts
        data = list(data)
    if isinstance(data, (list, tuple)):
        return _of_records(name, data)
    return _of_frame(name, data)


def is_parquet(path: Path) -> bool:
    """Whether the name says so."""
    return path.suffix.lower() in (".parquet", ".pq")


def read_file(path: Path) -> Columns:
    """A Parquet file, or otherwise CSV."""
    if is_parquet(path):
        with optional_packages():
            import pyarrow
            import pyarrow.parquet as parquet
        try:
            return _of_frame("rows", parquet.read_table(path))
        except (OSError, pyarrow.ArrowException) as error:
            raise InvalidArgumentError(
                "rows", str(path), f"cannot be read as Parquet ({error})", "pass the path of a Parquet file"
            ) from error
    from likeset.study.csv_files import read_csv

    return read_csv(path)


def _of_mapping(name: str, data: Mapping[Any, Any]) -> Columns:
    if not data:
        return Columns({}, 0)
    lengths = {_length(cells) for cells in data.values()}
    if lengths == {None}:
        return _of_records(name, [data])
    if len(lengths) != 1:
        raise ShapeError(name, data, "has columns of different lengths", "pass as many cells in each column")
    count = lengths.pop()
    assert count is not None
    return Columns({_heading(name, key): _cells(name, cells) for key, cells in data.items()}, count)


def _of_records(name: str, data: Sequence[Any]) -> Columns:
    headings: dict[str, None] = {}
    for i, record in enumerate(data):
        if not isinstance(record, Mapping):
            raise InvalidArgumentError(f"{name}[{i}]", record, "is not a row", f"pass {_KINDS}")
        headings |= dict.fromkeys(_heading(name, key) for key in record)
        if len(headings) > MOST_COLUMNS:
            raise ShapeError(name, data, f"has more than {MOST_COLUMNS} columns", "pass the columns that are used")
    return Columns({h: [_plain(record.get(h)) for record in data] for h in headings}, len(data))


def _of_frame(name: str, data: Any) -> Columns:
    with optional_packages():
        import narwhals.stable.v1 as nw
    try:
        frame = nw.from_native(_arrow_table(data))
        frame = frame.collect() if isinstance(frame, nw.LazyFrame) else frame
        if not isinstance(frame, nw.DataFrame):
            raise TypeError(f"a {type(frame).__name__}")
        cells = {_heading(name, column): _of_series(frame[column]) for column in frame.columns}
    except InvalidArgumentError:
        raise
    except nw.exceptions.DuplicateError:
        raise InvalidArgumentError(
            name, data, "has two columns of one name", "give each column a name of its own"
        ) from None
    except Exception as error:  # what others' frames raise is theirs
        raise InvalidArgumentError(
            name, data, f"is not a frame that can be read ({type(error).__name__})", f"pass {_KINDS}"
        ) from None
    return Columns(cells, len(frame))


def _arrow_table(data: Any) -> Any:
    """Tables of Arrow, batches and readers of them as one table; whatever else as it is."""
    if type(data).__module__.partition(".")[0] != "pyarrow":
        return data
    import pyarrow

    return pyarrow.table(data)


def _of_series(series: Any) -> Cells:
    if series.null_count() == 0 and (series.dtype.is_numeric() or str(series.dtype) == "Boolean"):
        array = np.asarray(series.to_numpy())
        if array.dtype.kind in "biuf":
            return array
    return [_plain(cell) for cell in series.to_list()]


def _cells(name: str, cells: Any) -> Cells:
    if isinstance(cells, np.ndarray):
        if cells.ndim != 1:
            raise ShapeError(name, cells, f"has a column of shape {cells.shape}", "pass columns of one dimension")
        return cells if cells.dtype.kind in "biuf" else [_plain(cell) for cell in cells.tolist()]
    if hasattr(cells, "to_numpy") and not isinstance(cells, (list, tuple)):
        return _cells(name, np.asarray(cells))
    return [_plain(cell) for cell in cells]


def _length(cells: Any) -> int | None:
    """How many cells a column has; None for one cell."""
    if isinstance(cells, (list, tuple)):
        return len(cells)
    if isinstance(cells, np.ndarray) and cells.ndim:
        return len(cells)
    return len(cells) if hasattr(cells, "to_numpy") and hasattr(cells, "__len__") else None


def _heading(name: str, key: Any) -> str:
    if not isinstance(key, str):
        raise InvalidArgumentError(name, key, "is a column name that is no text", "name columns by strings")
    return key


def _plain(cell: Any) -> Any:
    """A cell as Python's own object."""
    if isinstance(cell, np.generic):
        return None if isinstance(cell, (np.datetime64, np.timedelta64)) and np.isnat(cell) else cell.item()
    return cell


def _is_missing(cell: Any) -> bool:
    if cell is None or (isinstance(cell, float) and math.isnan(cell)):
        return True
    return type(cell).__name__ in ("NAType", "NaTType")


def _is_decimal(cell: Any) -> bool:
    import decimal
    import fractions

    return isinstance(cell, (decimal.Decimal, fractions.Fraction))
