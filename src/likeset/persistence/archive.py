"""A zip file of a JSON header and float64 arrays, read without trusting it: bounded memory, strict types.

Before anything is read, the zip's directory must stay within what our writer produces: the contents may take
``FREE_BYTES``, or ``MAX_RATIO`` times the file. The writer stores arrays uncompressed once ``FREE_BYTES / 2`` have been
compressed, so every file it writes can be read, however well its data compress. An array's declared shape and dtype are
compared with the size of its member, and with what is expected, before memory is taken.
"""

from __future__ import annotations

import json
import math
import os
import stat
import zipfile
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

import numpy as np

from likeset._typing import Array
from likeset.errors import FileFormatError, InvalidArgumentError

HEADER = "header.json"
MAX_HEADER_BYTES = 8 << 20
MAX_DEPTH = 64  # of lists and objects in the header
MAX_MEMBERS = 20_000
FREE_BYTES = 256 << 20
MAX_RATIO = 50
_SLACK = 4096  # bytes: the longest .npy preamble


def write_archive(stream: BinaryIO, header: Mapping[str, Any], arrays: Mapping[str, Array], plain: str) -> None:
    """Write the header, checked before with ``header_bytes``, and every array; ``plain`` is not compressed."""
    compressed = 0
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(HEADER, header_bytes(header))
        for name, array in arrays.items():
            compressed += array.nbytes
            small = compressed <= FREE_BYTES // 2 and not name.endswith(plain)
            method = zipfile.ZIP_DEFLATED if small else zipfile.ZIP_STORED
            member = zipfile.ZipInfo(f"{name}.npy", (1980, 1, 1, 0, 0, 0))
            member.compress_type, member.file_size = method, array.nbytes + _SLACK  # the size decides about zip64
            with archive.open(member, "w") as out:
                np.lib.format.write_array(out, array, version=(1, 0), allow_pickle=False)


def header_bytes(header: Mapping[str, Any]) -> bytes:
    """The header as JSON, refused if it could not be read again."""
    problem = _problem_of_json(header)
    text = b"" if problem else json.dumps(header, allow_nan=False).encode()
    if len(text) > MAX_HEADER_BYTES:
        problem = f"are {len(text)} bytes, more than {MAX_HEADER_BYTES}"
    if problem:
        raise InvalidArgumentError(
            "settings", "of the sequence", problem, "use fewer points, windows or members, or pass an own piece"
        )
    return text


class Archive:
    """An open file: ``size``, ``limit`` (bytes its contents may take), ``header`` (JSON), ``arrays`` (names), ``read``.

    Raises FileFormatError, or OSError while opening.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise OSError("it is no regular file")  # a pipe would be waited for
        self._stream = open(path, "rb")  # noqa: SIM115 (closed by __exit__)
        try:
            self.size = os.fstat(self._stream.fileno()).st_size
            self.limit = max(FREE_BYTES, MAX_RATIO * self.size)
            self._zip = zipfile.ZipFile(self._stream)
            self._members = self._checked_members()
            self.header = self._checked_header()
        except BaseException as error:
            self._stream.close()
            if isinstance(error, Exception) and not isinstance(error, (FileFormatError, OSError)):
                raise self.damaged(error) from error
            raise
        self.arrays = {name.removesuffix(".npy") for name in self._members if name.endswith(".npy")}

    def __enter__(self) -> Archive:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stream.close()

    def damaged(self, problem: object) -> FileFormatError:
        """The error for contents that cannot be right."""
        if isinstance(problem, BaseException):
            problem = f"{type(problem).__name__}: {problem}"
        text = str(problem)
        text = text if len(text) <= 300 else text[:297] + "..."
        return FileFormatError(
            f"{self.path} is damaged or not a saved likeset sequence ({text}); restore it from a backup."
        )

    def read(self, name: str, shape: tuple[int, ...] | None = None) -> Array:
        """One array; ``shape`` is compared before memory is taken."""
        try:
            return self._array(f"{name}.npy", shape)
        except FileFormatError:
            raise
        except Exception as error:
            raise self.damaged(f"array {name}: {type(error).__name__}: {error}") from error

    def _array(self, name: str, shape: tuple[int, ...] | None) -> Array:
        member = self._members[name]
        with self._zip.open(member) as stream:
            if np.lib.format.read_magic(stream) != (1, 0):
                raise ValueError("unknown version of .npy")
            declared, columns_first, dtype = np.lib.format.read_array_header_1_0(stream, max_header_size=_SLACK)
            if dtype != np.dtype("<f8") or columns_first:
                raise ValueError(f"dtype {dtype} or order of columns is not what likeset writes")
            if shape is not None and declared != shape:
                raise ValueError(f"shape {declared} is not {shape}")
            size = math.prod(declared) * 8
            if any(length < 0 for length in declared) or stream.tell() + size != member.file_size:
                raise ValueError(f"shape {declared} does not fit the member's {member.file_size} bytes")
            content = stream.read(size)
            if len(content) != size or stream.read(1):  # reading to the end compares the checksum
                raise ValueError("the member is truncated")
        return np.frombuffer(content, dtype=np.float64).reshape(declared).copy()

    def _checked_members(self) -> dict[str, zipfile.ZipInfo]:
        members = self._zip.infolist()
        if len(members) > MAX_MEMBERS:
            raise self.damaged(f"{len(members)} members")
        if len({m.filename for m in members}) < len(members):
            raise self.damaged("a member comes twice")
        if any(m.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) for m in members):
            raise self.damaged("a method of compression that likeset does not use")
        size = sum(m.file_size for m in members)
        if size > self.limit or sum(m.compress_size for m in members) > self.limit:
            raise self.damaged(f"it would take {size} bytes of memory; {self.limit} are allowed for a file of its size")
        return {m.filename: m for m in members}

    def _checked_header(self) -> dict[str, Any]:
        if self._members[HEADER].file_size > MAX_HEADER_BYTES:
            raise self.damaged(f"a header of {self._members[HEADER].file_size} bytes")
        header = json.loads(self._zip.read(HEADER), parse_constant=_constant)
        problem = _problem_of_json(header)
        if problem:
            raise self.damaged(f"the header's settings {problem}")
        return header if isinstance(header, dict) else {}


def _constant(name: str) -> float:
    if name == "NaN":
        raise ValueError("NaN is no setting")
    return float(name)  # an infinite parameter of a kernel, as version 2 wrote it


def _problem_of_json(value: Any) -> str:
    """What the header may not contain, in words: deep nesting, booleans; "" if all is well."""
    todo = [(value, 1)]
    while todo:
        item, depth = todo.pop()
        if depth > MAX_DEPTH:
            return f"are nested more than {MAX_DEPTH} levels deep"
        if isinstance(item, bool):
            return f"have {item!r} where a number, a string, a list or an object belongs"
        if isinstance(item, (dict, list, tuple)):
            todo += [(inner, depth + 1) for inner in (item.values() if isinstance(item, dict) else item)]
    return ""
