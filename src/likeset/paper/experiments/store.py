"""One file per finished cell: ``cells/<figure>/<problem>--<method>--<repeat>--<digest>.json``.

Files appear whole or not at all (written beside, then renamed), so a run may be stopped at any moment. The digest in
the name makes changed settings a different file: a quick and a full run live in the same folder without mixing.
A file that is damaged is reported and its cell run again; nothing else is lost.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import tempfile
from pathlib import Path

from likeset.errors import FileFormatError, InvalidArgumentError, LikesetError
from likeset.paper.experiments.cells import Cell, Rows

_FORMAT = 1


class OutputError(LikesetError):
    """A file cannot be written: the disk is full, the folder read-only or gone. Files written before are whole.

    Attributes: ``path`` and ``reason``.
    """

    def __init__(self, path: Path, reason: str, remedy: str = "make room, or choose another --out") -> None:
        self.path = path
        self.reason = reason
        super().__init__(f"{path} cannot be written ({reason}); {remedy}")


class Store:
    """Finished cells in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, cell: Cell) -> Path:
        """Where the rows of a cell are kept."""
        method = re.sub(r"[^A-Za-z0-9.]+", "-", cell.method).strip("-")
        return self.folder / cell.figure / f"{cell.problem}--{method}--{cell.repeat:03d}--{cell.digest[:16]}.json"

    def load(self, cell: Cell) -> Rows | None:
        """The rows of a finished cell, None for one that was not run; FileFormatError if its file is damaged."""
        path = self.path(cell)
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise FileFormatError(f"the results file {path} cannot be read ({error}).") from error
        try:
            rows: Rows = content["rows"]
            whole = content["format"] == _FORMAT and content["digest"] == cell.digest
            whole = whole and content["checksum"] == _checksum(rows)
        except (KeyError, TypeError) as error:
            raise FileFormatError(f"the results file {path} lacks {error}.") from error
        if not whole:
            raise FileFormatError(f"the results file {path} was changed after it was written.")
        return rows

    def save(self, cell: Cell, rows: Rows, seconds: float = 0.0) -> None:
        """Write the rows of a finished cell, atomically; ``seconds`` of processor time are kept for the curious."""
        path = self.path(cell)
        content = {
            "format": _FORMAT,
            "digest": cell.digest,
            "cell": cell.key,
            "settings": dict(cell.settings),
            "seconds": round(seconds, 3),
            "checksum": _checksum(rows),
            "rows": rows,
        }
        write_atomically(path, json.dumps(content).encode())


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file, in a new folder if need be, so that nobody ever sees half of it; ``OutputError`` if that fails."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".part")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
            os.chmod(temporary, 0o644)
            os.replace(temporary, path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise OutputError(path, error.strerror or str(error)) from error


def writable_folder(folder: Path) -> Path:
    """Make the folder and prove that files can be written there, before hours of work are spent."""
    probe = folder / ".likeset-probe"
    try:
        write_atomically(probe, b"can be written")
        probe.unlink(missing_ok=True)  # another run may have looked at the same time
    except OutputError as error:
        raise InvalidArgumentError(
            "out", str(folder), f"is not a folder that can be written to ({error.reason})", "choose another --out"
        ) from error
    return folder


def _checksum(rows: Rows) -> str:
    return hashlib.sha256(json.dumps(rows, sort_keys=True).encode()).hexdigest()
