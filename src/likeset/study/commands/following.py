"""Lines as they come: of a file that grows, or of standard input that another program is still writing."""

from __future__ import annotations

import os
import sys
import threading
from collections import deque
from pathlib import Path
from queue import Empty, Queue
from typing import Any, BinaryIO

from likeset.errors import InvalidArgumentError
from likeset.study.csv_files import GZIP, LONGEST_LINE, opened

_AGAIN = "start again: rows must only be added"
_PIECE = 1 << 16


class GrowingFile:
    """Lines of a file that may grow: None where the next one is not complete yet, which is not read again for nothing.

    ``unfinished`` says whether the next one has begun. What was read must stay: a file that has become shorter, was
    replaced, or whose last line that was read is another one now, is refused.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._stream = path, opened(path)
        self._last = (0, b"")  # where the last line that was read began, and the line
        self._checked = False
        self.unfinished = False
        if self._stream.read(len(GZIP)) == GZIP:
            self._stream.close()
            raise InvalidArgumentError("file", str(path), "is compressed, and does not grow by lines", "unpack it")
        self._stream.seek(0)

    def __call__(self) -> bytes | None:
        """The next line, if it is there."""
        if not self._checked:
            self._check()
            self._checked = True
        place = self._stream.tell()
        line = self._stream.readline(LONGEST_LINE + 1)
        if line.endswith(b"\n") or len(line) > LONGEST_LINE:
            self._last, self.unfinished = (place, line), False
            return line
        self.unfinished = bool(line)
        self._stream.seek(place)
        self._checked = False
        return None

    def _check(self) -> None:
        """Whether the file is still the one whose lines were read."""
        name = str(self._path)
        own = os.fstat(self._stream.fileno())
        if own.st_size < self._stream.tell():
            raise InvalidArgumentError("file", name, "has become shorter than what was read of it", _AGAIN)
        try:
            there = os.stat(self._path)
        except FileNotFoundError:
            raise InvalidArgumentError("file", name, "was removed", _AGAIN) from None
        if not os.path.samestat(own, there):
            raise InvalidArgumentError("file", name, "was replaced by another file", _AGAIN)
        place, line = self._last
        with open(self._path, "rb", buffering=0) as fresh:
            fresh.seek(place)
            if fresh.read(len(line)) != line:
                raise InvalidArgumentError("file", name, "was written anew: a line that was read has changed", _AGAIN)

    def close(self) -> None:
        """Close the file."""
        self._stream.close()


class Arriving:
    """Lines of a stream: None where none has arrived yet, b"" at its end. A thread waits for what comes."""

    def __init__(self, stream: BinaryIO) -> None:
        self._pieces: Queue[bytes] = Queue(maxsize=64)
        self._lines: deque[bytes] = deque()
        self._rest, self._ended = b"", False  # of a line whose end has not come yet
        threading.Thread(target=self._listen, args=(stream,), daemon=True).start()

    def _listen(self, stream: Any) -> None:
        try:
            while piece := stream.read1(_PIECE):
                self._pieces.put(piece)
        except (OSError, ValueError) as error:
            print(f"likeset: the input failed, and ends here: {error}", file=sys.stderr, flush=True)
        finally:  # a stream that fails has ended, too: nobody waits for more of it
            self._pieces.put(b"")

    def __call__(self) -> bytes | None:
        """The next line, if it has arrived."""
        while not (self._lines or self._ended):
            try:
                piece = self._pieces.get_nowait()
            except Empty:
                return None
            *whole, self._rest = (self._rest + piece).split(b"\n")
            self._lines.extend(line + b"\n" for line in whole)
            self._ended = not piece
            if self._ended or len(self._rest) > LONGEST_LINE:
                self._lines.append(self._rest)
                self._rest = b""
        return self._lines.popleft() if self._lines else b""

    @property
    def unfinished(self) -> bool:
        """Whether a line has begun whose end has not come."""
        return bool(self._rest)

    def close(self) -> None:
        """There is nothing to close."""
