"""CSV as it is found: with or without a byte-order mark, commas or semicolons, decimal commas, empty lines.

The header decides what separates cells: the one of comma, semicolon, tab and bar that is found there most often. Where
that is not the comma, a comma inside a number is a decimal one. Lines are read with a limit, so a file without line
ends is refused before it fills the memory.
"""

from __future__ import annotations

import csv
import gzip
import io
import math
import os
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, BinaryIO

from likeset.errors import InvalidArgumentError, RowError
from likeset.progress import meter
from likeset.study.frames import LONGEST_HEADING, Columns

LONGEST_LINE = 1 << 20  # bytes
_CHUNK = 20_000  # rows that are read between two signs of progress
SEPARATORS = ",;\t|"
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
GZIP, _ZIP = b"\x1f\x8b", b"PK\x03\x04"


class CsvReader:
    """Rows of a CSV stream, a few at a time.

    ``next_line()`` returns one line with its end, b"" at the end of the input, or None if there is none at the moment
    (a file that is still growing); see ``lines_of``.
    """

    def __init__(self, next_line: Callable[[], bytes | None], name: str) -> None:
        self._next_line, self.name = next_line, name
        self.header: list[str] | None = None
        self.rows_read = 0
        self._line = 0
        self._ended = False
        self._separator = ","
        self._open = b""  # a record whose quotes are still open

    def chunk(self, most: int) -> Columns | None:
        """Up to ``most`` rows; fewer if no more are there at the moment, and None at the end of the input."""
        records: list[list[str]] = []
        lines: list[int] = []
        while len(records) < most and not self._ended:
            found = self._record()
            if found is None:
                break
            cells, line = found
            if self.header is None:
                self._take_header(cells)
            else:
                records.append(self._checked(cells, line))
                lines.append(line)
                self.rows_read += 1
        if self._ended and self.header is None:
            raise InvalidArgumentError("rows", self.name, "is empty", "pass a CSV file with a header of column names")
        if not records and self._ended:
            return None
        header = self.header or []
        first = self.rows_read - len(records) + 1
        columns = dict(zip(header, map(list, zip(*records, strict=True)), strict=True)) if records else {}
        decimal = "." if self._separator == "," else ","
        return Columns({h: columns.get(h, []) for h in header}, len(records), lines, True, decimal, first)

    def _record(self) -> tuple[list[str], int] | None:
        """The next record that is not an empty line, and the line where it began."""
        while True:
            line = self._next_line()
            if line is None:
                return None
            if line == b"":
                self._ended = True
                if self._open.strip():
                    raise self._broken("has a quote that is never closed", 'close it; "" is a quote in a cell')
                return None
            self._line += 1
            if len(line) > LONGEST_LINE or len(self._open) > LONGEST_LINE:
                raise self._broken(f"is longer than {LONGEST_LINE} bytes", "pass a CSV file with one row per line")
            whole = self._open + line
            if whole.count(b'"') % 2:
                self._open = whole
                continue
            began = self._line - self._open.count(b"\n")
            self._open = b""
            text = self._decoded(whole)
            if self.header is None and self._line == 1 and text.lower().startswith("sep=") and len(text.strip()) == 5:
                continue  # what spreadsheets write to say what separates cells; the header says it, too
            if text.strip():
                if self.header is None:
                    self._separator = max(SEPARATORS, key=text.count)
                try:
                    return next(csv.reader([text], delimiter=self._separator)), began
                except csv.Error as error:
                    if "\r" in text.strip():
                        problem = "ends its lines with carriage returns alone, as very old programs do"
                        raise self._broken(problem, "save it again, with ordinary ends of lines") from None
                    raise self._broken(f"is no line of CSV ({error})", "mend the line") from None

    def _decoded(self, line: bytes) -> str:
        try:
            return line.decode("utf-8-sig" if self._line == 1 else "utf-8").rstrip("\r\n").replace("\0", "\ufffd")
        except UnicodeDecodeError:
            remedy = 'save the file as UTF-8 (spreadsheets call it "CSV UTF-8"; iconv -f latin1 -t utf8 converts one)'
            raise self._broken("is not UTF-8 text", remedy) from None

    def _take_header(self, cells: list[str]) -> None:
        names = [cell.strip() or f"column {i + 1}" for i, cell in enumerate(cells)]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise self._broken(f"names the column {twice!r} twice", "give each column a name of its own")
        self.header = names

    def _checked(self, cells: list[str], line: int) -> list[str]:
        assert self.header is not None
        if len(cells) != len(self.header):
            remedy = "mend the line: a cell that holds the separator needs quotes"
            if not self.rows_read:
                remedy += f"; the first line must hold the names, and begins with {self.header[0][:LONGEST_HEADING]!r}"
            names = f"{len(self.header)} column name{'s' if len(self.header) > 1 else ''}"
            raise RowError(self.name, self.rows_read + 1, None, f"has {len(cells)} cells under {names}", remedy, line)
        return [cell.strip() for cell in cells]

    def _broken(self, problem: str, remedy: str) -> InvalidArgumentError:
        return InvalidArgumentError("rows", f"{self.name}, line {self._line}", problem, remedy)


def lines_of(stream: BinaryIO) -> Callable[[], bytes]:
    """A source of lines that never takes more memory than the longest one allowed."""
    head = stream.peek(2)[:2] if isinstance(stream, (io.BufferedReader, gzip.GzipFile)) else b""
    if head in _UTF16:  # as spreadsheets save "Unicode text"
        text = io.TextIOWrapper(stream, encoding="utf-16", newline="")
        return lambda: text.readline(LONGEST_LINE + 1).encode()
    return lambda: stream.readline(LONGEST_LINE + 1)


def read_csv(path: Path) -> Columns:
    """A whole CSV file, which may be compressed with gzip."""
    with ExitStack() as files:
        stream: Any = files.enter_context(opened(path))
        file = stream
        head = stream.peek(4)[:4]
        if head == _ZIP:
            remedy = "save the table as CSV (spreadsheets: CSV UTF-8), or pass a data frame"
            raise InvalidArgumentError("rows", str(path), "is a spreadsheet or an archive, and no CSV file", remedy)
        if head[:2] == GZIP:
            stream = files.enter_context(gzip.GzipFile(fileobj=stream))
        reader = CsvReader(lines_of(stream), str(path))
        try:
            with meter("reading rows", os.fstat(file.fileno()).st_size) as at:
                parts = list(_chunks(reader, lambda: at(file.tell())))
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise InvalidArgumentError(
                "rows", str(path), f"is compressed, and cannot be unpacked ({error})", "write the file again"
            ) from None
    return joined(parts, reader)


def read_stream(stream: BinaryIO, name: str) -> Columns:
    """All rows of a stream, of which nobody knows how long it is."""
    reader = CsvReader(lines_of(stream), name)
    with meter("reading rows", math.inf) as at:
        parts = list(_chunks(reader, lambda: at(reader.rows_read)))
    return joined(parts, reader)


def _chunks(reader: CsvReader, after_each: Callable[[], None]) -> Iterator[Columns]:
    while (part := reader.chunk(_CHUNK)) is not None:
        after_each()
        yield part


def joined(parts: list[Columns], reader: CsvReader) -> Columns:
    """Chunks of one reader as one frame."""
    header = reader.header or []
    cells: dict[str, Any] = {h: [cell for part in parts for cell in part[h]] for h in header}
    lines = [line for part in parts for line in part.lines or ()]
    return Columns(cells, len(lines), lines, True, parts[0].decimal if parts else ".")


def opened(path: Path) -> BinaryIO:
    """A file opened for reading, or a typed error."""
    try:
        return open(path, "rb")
    except OSError as error:
        raise InvalidArgumentError(
            "rows", str(path), f"cannot be read ({error.strerror or error})", "pass the path of a CSV or Parquet file"
        ) from error
