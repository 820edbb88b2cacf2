r"""The journal: an append-only record on disk of what was observed and how it was scored. One SQLite file.

    rows       number, x, y, weight, log_q, class, given (float64, little-endian, bit for bit), crc    one per row
    windows    revision, description                                                      the last one counts
    states     number, contents, crc       what follows from so many rows, to be quicker; not needed
    journal    definition                  what the sequence is made of, as JSON

One transaction per update, synchronised before it returns (write-ahead log, ``synchronous = FULL``): what SQLite has
committed survives a kill and a power failure, and a torn tail is dropped when the file is opened again. A journal has
one writer: an operating-system lock on the file next to it, which dies with its process, and SQLite's own.

Nothing here knows about likelihoods: :mod:`~likeset.persistence.durable` makes a sequence of a journal.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import math
import os
import sqlite3
import sys
import weakref
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from likeset._typing import Array
from likeset.embedded import NOTHING
from likeset.errors import FileFormatError, JournalError, JournalInUseError, JournalMismatchError
from likeset.evidence.ledger import Ledger

try:
    import fcntl
except ImportError:  # Windows: SQLite's own lock is mandatory there
    fcntl = None  # type: ignore[assignment]

APPLICATION = 0x6C6B7374  # "lkst": SQLite's application_id
VERSION = 3  # 1, never released, had no classes
READABLE_VERSIONS = (2, 3)  # 2 had nothing given besides covariates; a journal of that version gets the column
SYNCHRONOUS = "FULL"
_TABLES = (
    "CREATE TABLE journal (definition TEXT NOT NULL) STRICT",
    "CREATE TABLE rows (number INTEGER PRIMARY KEY, x BLOB NOT NULL, y BLOB NOT NULL, weight BLOB NOT NULL, "
    "log_q BLOB NOT NULL, class BLOB NOT NULL, crc INTEGER NOT NULL, given BLOB NOT NULL DEFAULT x'') STRICT",
    "CREATE TABLE windows (revision INTEGER PRIMARY KEY, description TEXT NOT NULL) STRICT",
    "CREATE TABLE states (number INTEGER PRIMARY KEY, contents BLOB NOT NULL, crc INTEGER NOT NULL) STRICT",
)
_NOTHING = np.array(NOTHING, dtype="<f8").tobytes()  # written as no bytes at all
_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_OPEN: weakref.WeakSet[Journal] = weakref.WeakSet()

Extent = tuple[int, int]
"""How many rows and how many choices of windows are on disk."""


class Journal:
    """A journal opened for writing; made if there is none. Not safe for threads: the sequence has the lock."""

    def __init__(self, path: Path, definition: dict[str, Any], left_open: tuple[str, ...] = ()) -> None:
        """``path`` in full; ``left_open``: parts of the definition that the journal decides, if there is one."""
        self.path = path
        self._process = os.getpid()
        self._lock = _locked(self.path)
        self._connection: sqlite3.Connection | None = None
        try:
            with self._reported("opened"):
                self._connect(definition)
            self.definition = stored = self._definition()
            asked = {name: part for name, part in definition.items() if name not in left_open or name in stored}
            asked |= {name: stored[name] for name in left_open if name in stored}
            if stored != asked:
                raise JournalMismatchError(str(self.path), _differences(stored, asked))
        except BaseException:
            self.close()
            raise
        _OPEN.add(self)

    # -- writing ------------------------------------------------------------------------------------------------

    def extent(self) -> Extent:
        """What is committed; a transaction that an interrupt left open is taken back first."""
        with self._reported("read"):
            connection = self._abandon()
            query = "SELECT (SELECT max(number) FROM rows), (SELECT max(revision) FROM windows)"
            number, revision = connection.execute(query).fetchone()
        return (-1 if number is None else number) + 1, revision or 0

    def write(self, before: Extent, ledger: Ledger, windows: Any = ...) -> None:
        """Commit the rows of the ledger beyond ``before``, and a description of windows, if there is a new one."""
        parts = (ledger.x, ledger.y, ledger.weights, ledger.log_q, ledger.classes, ledger.given)
        added = [[row.tobytes() for row in part.rows[before[0] :].astype("<f8")] for part in parts]
        added[-1] = [b"" if given == _NOTHING else given for given in added[-1]]
        rows = [
            (n, *row[:-1], _checksum(n, *row), row[-1]) for n, row in enumerate(zip(*added, strict=True), before[0])
        ]
        with self._transaction() as connection:
            connection.executemany("INSERT INTO rows VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)
            if windows is not ...:
                connection.execute("INSERT INTO windows VALUES (?, ?)", (before[1] + 1, json.dumps(windows)))

    def write_state(self, number: int, contents: bytes) -> None:
        """Commit what follows from the first ``number`` rows, instead of earlier states."""
        with self._transaction() as connection:
            connection.execute("DELETE FROM states")
            connection.execute("INSERT INTO states VALUES (?, ?, ?)", (number, contents, _checksum(number, contents)))

    def close(self) -> None:
        """Let go of the file; may be repeated."""
        if self._process != os.getpid():
            return
        if self._connection is not None:
            with contextlib.suppress(sqlite3.Error):
                self._abandon()
            self._connection.close()
            self._connection = None
        if self._lock is not None:
            os.close(self._lock)  # after SQLite: its locks are the process's, not the descriptor's
            self._lock = None

    @property
    def closed(self) -> bool:
        """Whether nothing can be written any more, here or in this process."""
        return self._connection is None or self._process != os.getpid()

    # -- reading ------------------------------------------------------------------------------------------------

    def rows(self, shapes: tuple[tuple[int, ...], ...]) -> list[Array]:
        """x, y, weights, log q, classes and what else was given of all rows, each with entries of the given shape."""
        sizes = [8 * math.prod(shape) for shape in shapes]
        with self._reported("read"):
            query = "SELECT number, x, y, weight, log_q, class, given, crc FROM rows ORDER BY number"
            found = self._abandon().execute(query)
            columns: list[list[bytes]] = [[] for _ in shapes]
            for n, (number, *entries, crc) in enumerate(found):
                checksum = _checksum(number, *entries)
                entries[-1] = entries[-1] or _NOTHING
                if number != n or crc != checksum or [len(e) for e in entries] != sizes:
                    raise self._damaged(f"row {n} is missing or not what was written")
                for column, entry in zip(columns, entries, strict=True):
                    column.append(entry)
        return [
            np.frombuffer(b"".join(column), dtype="<f8").astype(np.float64).reshape(len(column), *shape)
            for column, shape in zip(columns, shapes, strict=True)
        ]

    def windows(self) -> Any:
        """The description of the windows chosen last."""
        with self._reported("read"):
            query = "SELECT description FROM windows ORDER BY revision DESC LIMIT 1"
            found = self._abandon().execute(query).fetchone()
        return None if found is None else json.loads(found[0])

    def state(self) -> tuple[int, bytes] | None:
        """Number of rows and contents of the last state, unless it is damaged."""
        with self._reported("read"):
            found = self._abandon().execute("SELECT number, contents, crc FROM states").fetchall()
        return next(((n, c) for n, c, crc in sorted(found, reverse=True) if crc == _checksum(n, c)), None)

    # -- inside -------------------------------------------------------------------------------------------------

    def _connect(self, definition: dict[str, Any]) -> None:
        self._connection = sqlite3.connect(self.path, timeout=0.0, isolation_level=None, check_same_thread=False)
        execute = self._connection.execute
        execute("PRAGMA locking_mode = EXCLUSIVE")
        fresh = execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0
        if fresh and execute("PRAGMA user_version").fetchone()[0] == 0:
            execute("PRAGMA journal_mode = WAL")
            execute(f"PRAGMA synchronous = {SYNCHRONOUS}")
            with self._transaction():
                for table in _TABLES:
                    execute(table)
                execute(f"PRAGMA application_id = {APPLICATION}")
                execute(f"PRAGMA user_version = {VERSION}")
                execute("INSERT INTO journal VALUES (?)", (json.dumps(definition),))
        if execute("PRAGMA application_id").fetchone()[0] != APPLICATION:
            raise FileFormatError(f"{self.path} is a database, but not a likeset journal; pass another path.")
        version = execute("PRAGMA user_version").fetchone()[0]
        if version not in READABLE_VERSIONS:
            raise FileFormatError(
                f"{self.path} has journal version {version}, and this likeset reads versions {READABLE_VERSIONS}; "
                "install the release that wrote it, or a newer one."
            )
        execute("PRAGMA journal_mode = WAL")
        execute(f"PRAGMA synchronous = {SYNCHRONOUS}")
        with self._transaction():
            if version < VERSION:
                execute("ALTER TABLE rows ADD COLUMN given BLOB NOT NULL DEFAULT x''")
                execute(f"PRAGMA user_version = {VERSION}")
            # In any case this takes the exclusive lock now rather than with the first row

    def _definition(self) -> Any:
        with self._reported("read"):
            found = self._abandon().execute("SELECT definition FROM journal").fetchall()
        if len(found) != 1:
            raise self._damaged("its definition is missing")
        return json.loads(found[0][0])

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._reported("written"):
            connection = self._abandon()
            connection.execute("BEGIN IMMEDIATE")
            yield connection
            connection.execute("COMMIT")

    def _abandon(self) -> sqlite3.Connection:
        """The connection, without a transaction that an error or an interrupt left open."""
        if self._process != os.getpid():
            raise JournalError(
                f"{self.path} was opened by process {self._process}, of which this one is a fork; "
                "open the journal in the process that writes."
            )
        if self._connection is None:
            raise JournalError(f"{self.path} is closed; open it again with ConfidenceSequence.open.")
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")
        return self._connection

    @contextmanager
    def _reported(self, what: str) -> Iterator[None]:
        """SQLite's errors as ours."""
        try:
            yield
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF
            if code in _BUSY:
                raise JournalInUseError(str(self.path)) from error
            if code in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
                raise self._damaged(str(error)) from error
            raise JournalError(
                f"{self.path} could not be {what} ({error}); nothing was recorded. Make room or see to the "
                "permissions of the file and its folder, and repeat the call."
            ) from error

    def _damaged(self, how: str) -> FileFormatError:
        return FileFormatError(f"{self.path} is damaged or not a likeset journal ({how}); restore it from a backup.")


def _locked(path: Path) -> int | None:
    """A descriptor that holds the lock beside the journal for as long as the process lives."""
    if fcntl is None:
        return None
    try:
        descriptor = os.open(f"{path}-lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise JournalError(f"{path} cannot be written ({error}); pass a path in a writable folder.") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(descriptor)
        raise JournalInUseError(str(path)) from error
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _checksum(number: int, *parts: bytes) -> int:
    crc = zlib.crc32(number.to_bytes(8, "little"))
    for part in parts:
        crc = zlib.crc32(part, crc)
    return crc


def _differences(stored: dict[str, Any], given: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    return {name: (stored.get(name), given.get(name)) for name in given if stored.get(name) != given.get(name)}


def _let_go_in_child() -> None:
    """After a fork: the parent's connection must not even be closed here, for closing tidies up the parent's log."""
    for journal in list(_OPEN):
        if journal._connection is not None:
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(journal._connection))  # never finalised
            journal._connection = None
        if journal._lock is not None:
            os.close(journal._lock)  # the lock stays with the parent
            journal._lock = None


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_let_go_in_child)
