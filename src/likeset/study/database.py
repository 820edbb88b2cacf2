r"""The file of a store: studies in one SQLite database.

    studies    name, definition and engine (JSON), created; batches, rows and head: how far it got, the last hash
    batches    number, first, count, told, raw, scored, hash: rows as they were told, and x, y, w, log q, class
    keys       key, row, digest: which rows have been told, for studies with a key column
    states     rows, contents, crc: what follows from so many rows; a cache
    asked      runs that were asked for (:mod:`~likeset.study.asked`); made when somebody asks

One transaction per ``tell``, synchronised before it returns (write-ahead log, ``synchronous = FULL``). Each hash covers
the one before it, the first the definition: a row that was altered, added or removed behind the library's back does
not fit, and is refused. A writer holds SQLite's lock from the moment it reads what others have told until its own rows
are on disk, so there may be any number of writers and readers, in threads and processes.

Nothing here knows about likelihoods or frames: :mod:`~likeset.study.study` puts a study together.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import sqlite3
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from likeset.errors import FileFormatError, StoreError, StudyMismatchError
from likeset.progress import counted
from likeset.study.connections import VERSION, Connections
from likeset.study.definition import differences, study_name

_BATCH = "SELECT number, first, count, told, raw, scored, hash FROM batches WHERE study = ? AND "


@dataclass(frozen=True)
class Head:
    """How far a study has got: batches, rows, and the hash of the last batch."""

    batches: int
    rows: int
    hash: bytes


@dataclass(frozen=True)
class StoredStudy:
    """What the store says about one study."""

    id: int
    name: str
    definition: dict[str, Any]
    engine: dict[str, Any]
    created: str
    head: Head


@dataclass(frozen=True)
class StoredBatch:
    """Rows told together: ``raw`` as the user told them, ``scored`` as the engine took them (packed)."""

    number: int
    first: int
    count: int
    told: str
    raw: bytes
    scored: bytes
    hash: bytes


class Database(Connections):
    """Studies, batches, keys and states in the file of a store."""

    # -- studies ------------------------------------------------------------------------------------------------------

    def listed(self) -> list[tuple[str, dict[str, Any], str, int]]:
        """Name, definition, date and number of rows of every study."""
        if not self.exists:
            return []
        query = "SELECT name, definition, created, rows FROM studies ORDER BY id"
        with self.reading() as connection:
            found = connection.execute(query).fetchall()
        try:
            return [(name, json.loads(definition), created, rows) for name, definition, created, rows in found]
        except ValueError as error:
            raise self._damaged("a definition cannot be read") from error

    def find(self, name: str) -> StoredStudy | None:
        """The study of this name, if there is one."""
        if not self.exists:
            return None
        with self.reading() as connection:
            return self._found(connection, study_name(name))

    def create(self, definition: dict[str, Any], engine: dict[str, Any]) -> StoredStudy:
        """A new study, or the one of this name if its definition is the same."""
        with self.writing() as connection:
            found = self._found(connection, definition["name"]) or self.insert(connection, definition, engine)
        different = differences(found.definition, definition)
        if different:
            raise StudyMismatchError(definition["name"], self.label, different)
        return found

    def insert(self, connection: sqlite3.Connection, definition: dict[str, Any], engine: dict[str, Any]) -> StoredStudy:
        """A new study; inside ``writing``."""
        text = json.dumps(definition)  # in the order given: that of the factors is that of the columns of x
        connection.execute(
            "INSERT INTO studies (name, definition, engine, created, batches, rows, head) VALUES (?, ?, ?, ?, 0, 0, ?)",
            (definition["name"], text, json.dumps(engine), now(), hashlib.sha256(text.encode()).digest()),
        )
        if "campaign" in definition:
            connection.execute(f"PRAGMA user_version = {VERSION}")
        found = self._found(connection, definition["name"])
        assert found is not None
        return found

    # -- rows of a study, inside ``reading`` or ``writing`` -----------------------------------------------------------

    def head(self, connection: sqlite3.Connection, study: StoredStudy) -> Head:
        """How far a study has got."""
        row = connection.execute("SELECT batches, rows, head FROM studies WHERE id = ?", (study.id,)).fetchone()
        if row is None:
            raise StoreError(f"{self.label} no longer holds the study {study.name!r}; open it again.")
        return Head(*row)

    def batches(self, connection: sqlite3.Connection, study: StoredStudy, after: Head | None) -> Iterator[StoredBatch]:
        """The batches beyond ``after``, in order, each checked against the chain of hashes."""
        goal = self.head(connection, study)
        at = after if after is not None else Head(0, 0, self._start(connection, study))
        for row in connection.execute(f"{_BATCH} number >= ? ORDER BY number", (study.id, at.batches)):
            batch = StoredBatch(*row)
            if batch.number != at.batches or batch.first != at.rows or batch.hash != _hash(at.hash, batch):
                raise self._altered(study.name, at.rows)
            at = Head(at.batches + 1, at.rows + batch.count, batch.hash)
            yield batch
        if at != goal:
            raise self._altered(study.name, at.rows)

    def batch_of(self, connection: sqlite3.Connection, study: StoredStudy, row: int) -> StoredBatch:
        """The batch that holds a row."""
        query = f"{_BATCH} first <= ? ORDER BY number DESC LIMIT 1"
        return StoredBatch(*connection.execute(query, (study.id, row)).fetchone())

    def has_batch(self, connection: sqlite3.Connection, study: StoredStudy, raw: bytes, count: int) -> bool:
        """Whether a batch with the same contents has been told."""
        query = "SELECT 1 FROM batches WHERE study = ? AND count = ? AND raw = ? LIMIT 1"
        return connection.execute(query, (study.id, count, raw)).fetchone() is not None

    def append(
        self,
        connection: sqlite3.Connection,
        study: StoredStudy,
        raw: bytes,
        scored: bytes,
        count: int,
        told: str | None = None,
    ) -> StoredBatch:
        """Add a batch, told now unless it was told before elsewhere."""
        head = self.head(connection, study)
        unsigned = StoredBatch(head.batches, head.rows, count, told or now(), raw, scored, b"")
        batch = StoredBatch(*_fields(unsigned), _hash(head.hash, unsigned))
        entry = (study.id, *_fields(batch), batch.hash)
        connection.execute("INSERT INTO batches VALUES (?, ?, ?, ?, ?, ?, ?, ?)", entry)
        connection.execute(
            "UPDATE studies SET batches = ?, rows = ?, head = ? WHERE id = ?",
            (batch.number + 1, batch.first + count, batch.hash, study.id),
        )
        return batch

    def told_keys(self, connection: sqlite3.Connection, study: StoredStudy, keys: list[str]) -> dict[str, Any]:
        """Row and digest of those keys that have been told."""
        found: dict[str, tuple[int, bytes]] = {}
        starts = range(0, len(keys), 500)
        for start in counted(starts, len(starts), "looking for rows told before"):
            part = keys[start : start + 500]
            marks = ",".join("?" * len(part))
            query = f"SELECT key, row, digest FROM keys WHERE study = ? AND key IN ({marks})"
            found |= {key: (row, digest) for key, row, digest in connection.execute(query, (study.id, *part))}
        return found

    def add_keys(
        self, connection: sqlite3.Connection, study: StoredStudy, first: int, keys: list[str], digests: list[bytes]
    ) -> None:
        """Remember the keys of rows from number ``first`` on."""
        pairs = enumerate(zip(keys, digests, strict=True), start=first)
        entries = ((study.id, key, row, digest) for row, (key, digest) in counted(pairs, len(keys), "writing keys"))
        connection.executemany("INSERT INTO keys VALUES (?, ?, ?, ?)", entries)

    def count_of_keys(self, connection: sqlite3.Connection, study: StoredStudy) -> int:
        """How many keys are remembered."""
        return int(connection.execute("SELECT count(*) FROM keys WHERE study = ?", (study.id,)).fetchone()[0])

    def forget_keys(self, connection: sqlite3.Connection, study: StoredStudy) -> None:
        """Drop the index of keys, to make it again."""
        connection.execute("DELETE FROM keys WHERE study = ?", (study.id,))

    def state(self, connection: sqlite3.Connection, study: StoredStudy) -> tuple[int, bytes] | None:
        """What follows from so many rows, unless it is damaged."""
        found = connection.execute("SELECT rows, contents, crc FROM states WHERE study = ?", (study.id,)).fetchone()
        return None if found is None or found[2] != _checksum(*found[:2]) else found[:2]

    def keep_state(self, study: StoredStudy, rows: int, contents: bytes) -> None:
        """Keep what follows from so many rows. Failing in this is no failure."""
        with contextlib.suppress(StoreError), self.writing() as connection:
            entry = (study.id, rows, contents, _checksum(rows, contents))
            connection.execute("INSERT OR REPLACE INTO states VALUES (?, ?, ?, ?)", entry)

    # -- inside -------------------------------------------------------------------------------------------------------

    def _found(self, connection: sqlite3.Connection, name: str) -> StoredStudy | None:
        query = "SELECT id, name, definition, engine, created, batches, rows, head FROM studies WHERE name = ?"
        row = connection.execute(query, (name,)).fetchone()
        if row is None:
            return None
        try:
            return StoredStudy(row[0], row[1], json.loads(row[2]), json.loads(row[3]), row[4], Head(*row[5:]))
        except ValueError as error:
            raise self._damaged(f"the definition of {name!r} cannot be read") from error

    def _start(self, connection: sqlite3.Connection, study: StoredStudy) -> bytes:
        """Where the chain of hashes begins: the definition."""
        (text,) = connection.execute("SELECT definition FROM studies WHERE id = ?", (study.id,)).fetchone()
        return hashlib.sha256(text.encode()).digest()

    def _altered(self, name: str, row: int) -> FileFormatError:
        return FileFormatError(
            f"{self.label} holds rows of the study {name!r} that are not what was recorded, from row {row + 1} on: "
            "they were altered, added or removed by something else than likeset; restore the file from a backup."
        )


def _fields(batch: StoredBatch) -> tuple[int, int, int, str, bytes, bytes]:
    return batch.number, batch.first, batch.count, batch.told, batch.raw, batch.scored


def _hash(before: bytes, batch: StoredBatch) -> bytes:
    """SHA-256 over the hash before and everything in the batch, lengths included."""
    number, first, count, told, raw, scored = _fields(batch)
    found = hashlib.sha256(before + f"{number}/{first}/{count}/{told}/{len(raw)}/{len(scored)}/".encode())
    found.update(raw)
    found.update(scored)
    return found.digest()


def _checksum(rows: int, contents: bytes) -> int:
    return zlib.crc32(contents, rows & 0xFFFFFFFF)


def now() -> str:
    """The time, as stores keep it."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")
