r"""Connections to the SQLite file of a store: opened once per thread, prepared, checked, and errors told as ours.

One transaction per write, synchronised before it returns (write-ahead log, ``synchronous = FULL``).
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from likeset.arguments import database_path, flag
from likeset.errors import FileFormatError, StoreError
from likeset.persistence.atomic_file import _synchronise_folder

APPLICATION = 0x6C6B7364  # "lksd": SQLite's application_id
FIRST, VERSION = 1, 2  # a store is of version 2 once it holds a study that chooses, which older releases would misread
PATIENCE = 60.0  # seconds that a writer waits for others
_TABLES = (
    "CREATE TABLE studies (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, definition TEXT NOT NULL, "
    "engine TEXT NOT NULL, created TEXT NOT NULL, batches INTEGER NOT NULL, rows INTEGER NOT NULL, "
    "head BLOB NOT NULL) STRICT",
    "CREATE TABLE batches (study INTEGER NOT NULL, number INTEGER NOT NULL, first INTEGER NOT NULL, "
    "count INTEGER NOT NULL, told TEXT NOT NULL, raw BLOB NOT NULL, scored BLOB NOT NULL, hash BLOB NOT NULL, "
    "PRIMARY KEY (study, number)) STRICT",
    "CREATE TABLE keys (study INTEGER NOT NULL, key TEXT NOT NULL, row INTEGER NOT NULL, digest BLOB NOT NULL, "
    "PRIMARY KEY (study, key)) STRICT, WITHOUT ROWID",
    "CREATE TABLE states (study INTEGER PRIMARY KEY, rows INTEGER NOT NULL, contents BLOB NOT NULL, "
    "crc INTEGER NOT NULL) STRICT",
)


class Connections:
    """A file, or the same in memory; connections of this process and thread to it."""

    def __init__(self, path: str | os.PathLike[str] | None, read_only: bool = False) -> None:
        self.path: Path | None = None
        if path is not None:
            self.path = database_path("store", path)
        self.read_only = flag("read_only", read_only)
        self._here = threading.local()
        self._process = os.getpid()
        self._open: list[sqlite3.Connection] = []
        self._memory: sqlite3.Connection | None = None
        self._one_at_a_time = threading.RLock()  # of the connection in memory, which threads share
        self._closed = False

    def __getstate__(self) -> dict[str, Any]:
        """What another process, or a copy, needs: the path, or the contents of a store in memory."""
        contents = None
        if self.path is None:
            with self.reading() as connection:
                contents = connection.serialize()
        return {"path": self.path, "read_only": self.read_only, "contents": contents}

    def __setstate__(self, state: dict[str, Any]) -> None:
        Connections.__init__(self, state["path"], state["read_only"])
        if state["contents"] is not None:
            self._connection().deserialize(state["contents"])

    @property
    def label(self) -> str:
        """What messages call it."""
        return "the store in memory" if self.path is None else str(self.path)

    @property
    def exists(self) -> bool:
        """Whether there is a file yet; it is made with the first study."""
        return self.path is None or self.path.exists()

    def close(self) -> None:
        """Let go of the file. A store in memory is lost."""
        if self._process == os.getpid():
            self._closed = True
            for connection in [*self._open, *([] if self._memory is None else [self._memory])]:
                with contextlib.suppress(sqlite3.Error):
                    connection.close()
            self._open, self._memory, self._here = [], None, threading.local()

    def __del__(self) -> None:
        """Studies are rarely closed by hand: Python 3.13 and later warn of connections that are left to themselves."""
        if hasattr(self, "_closed"):  # as after a refused path it has not
            self.close()

    # -- transactions -------------------------------------------------------------------------------------------------

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction that no other writer can come between; on disk when it ends, undone by an exception."""
        if self.read_only:
            raise StoreError(f"{self.label} was opened for reading only; open it again to write.")
        with self._reported("written"), self._exclusively():
            connection = self._connection()
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A transaction that sees one state of the store."""
        with self._reported("read"), self._exclusively():
            connection = self._connection()
            if connection.in_transaction:  # inside ``writing``, in the same thread
                yield connection
                return
            connection.execute("BEGIN")
            try:
                yield connection
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")

    # -- inside -------------------------------------------------------------------------------------------------------

    @contextmanager
    def _exclusively(self) -> Iterator[None]:
        if self.path is None:
            with self._one_at_a_time:
                yield
        else:
            yield

    def _connection(self) -> sqlite3.Connection:
        """This thread's connection; a fork gets new ones, since SQLite's cannot be carried across."""
        if self._process != os.getpid():
            for inherited in self._open:
                # Never finalised here: closing it would tidy up the parent's log.
                ctypes.pythonapi.Py_IncRef(ctypes.py_object(inherited))
            self._process, self._open, self._here = os.getpid(), [], threading.local()
        if self._closed:
            raise StoreError(f"{self.label} is closed; open it again.")
        if self.path is None:
            if self._memory is None:
                self._memory = self._connect(":memory:", uri=False)
            return self._memory
        connection: sqlite3.Connection | None = getattr(self._here, "connection", None)
        if connection is None:
            connection = self._open_file()
            self._here.connection = connection
            self._open.append(connection)
        return connection

    def _open_file(self) -> sqlite3.Connection:
        assert self.path is not None
        address = f"file:{quote(str(self.path))}"
        if not self.read_only:
            return self._connect(address, uri=True)
        if not self.path.exists():
            raise StoreError(f"{self.path} does not exist; begin a study to make it.")
        try:
            return self._connect(f"{address}?mode=ro", uri=True)
        except sqlite3.OperationalError:
            if Path(f"{self.path}-wal").exists():  # rows may be in there that cannot be seen
                raise
            return self._connect(f"{address}?mode=ro&immutable=1", uri=True)  # in a folder that cannot be written

    def _connect(self, address: str, uri: bool) -> sqlite3.Connection:
        connection = sqlite3.connect(address, timeout=PATIENCE, isolation_level=None, check_same_thread=False, uri=uri)
        try:
            self._prepare(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        execute = connection.execute
        fresh = execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0
        if fresh and execute("PRAGMA user_version").fetchone()[0] == 0 and not self.read_only:
            if self.path is not None:
                execute("PRAGMA journal_mode = WAL")
                execute("PRAGMA synchronous = FULL")
            execute("BEGIN IMMEDIATE")  # of two that find an empty file, one makes the tables
            if execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0:
                for table in _TABLES:
                    execute(table)
                execute(f"PRAGMA application_id = {APPLICATION}")
                execute(f"PRAGMA user_version = {FIRST}")
            execute("COMMIT")
            if self.path is not None:
                _synchronise_folder(self.path.parent)
        if execute("PRAGMA application_id").fetchone()[0] != APPLICATION:
            raise FileFormatError(f"{self.label} is a database, but not a store of studies; pass another path.")
        version = execute("PRAGMA user_version").fetchone()[0]
        if not FIRST <= version <= VERSION:
            raise FileFormatError(
                f"{self.label} has store version {version}, and this likeset reads versions {FIRST} to {VERSION}; "
                "install the release that wrote it, or a newer one."
            )
        if self.path is not None and not self.read_only:
            execute("PRAGMA synchronous = FULL")

    @contextmanager
    def _reported(self, what: str) -> Iterator[None]:
        """SQLite's errors as ours."""
        try:
            yield
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF
            if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise StoreError(
                    f"{self.label} has been in use by another writer for {PATIENCE:g} seconds; nothing was recorded. "
                    "Repeat the call when it is done."
                ) from error
            if code in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
                raise self._damaged(str(error)) from error
            raise StoreError(
                f"{self.label} could not be {what} ({error}); nothing was recorded. Make room or see to the "
                "permissions of the file and its folder, and repeat the call."
            ) from error

    def _damaged(self, how: str) -> FileFormatError:
        return FileFormatError(f"{self.label} is damaged or not a store of studies ({how}); restore it from a backup.")
