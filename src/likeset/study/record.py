"""What a study has recorded: rows taken in, kept on disk, and an engine that is up to date with them."""

from __future__ import annotations

import hashlib
import json
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from likeset._typing import Array
from likeset.errors import (
    FileFormatError,
    InvalidArgumentError,
    LikesetError,
    RepeatedRowsWarning,
    RestatedRowError,
    StoreError,
    StudyMismatchError,
)
from likeset.progress import counted
from likeset.study import asked
from likeset.study.batch import refuse_other_columns
from likeset.study.database import Head, StoredBatch, StoredStudy
from likeset.study.definition import Batch, Definition, differences
from likeset.study.engine import TOLD, Engine
from likeset.study.factors import Levels
from likeset.study.frames import Columns
from likeset.study.looks import looks
from likeset.study.matching import answered_runs, run_numbers
from likeset.study.order import warn_if_sorted
from likeset.study.packing import packed, unpacked
from likeset.study.spelling import near
from likeset.study.store import Store

BATCH_BYTES = 64 << 20  # of covariates in one stored batch
_AT_ONCE = 20_000  # rows that are looked at between two signs of progress
_SUSPICIOUS = 20  # rows that come again as a whole


@dataclass(frozen=True)
class Told:
    """What ``tell`` did: rows recorded now, rows recognised by their key and skipped, rows of the study in all."""

    recorded: int
    repeated: int
    total: int


class Record:
    """The rows of one study, on disk and in memory; :class:`~likeset.study.study.Study` asks questions of them."""

    definition: Definition

    def _take(self, store: Store, name: str, definition: Definition | None, read_only: bool) -> None:
        self.store, self.read_only = store, read_only or store.read_only
        database = self._database = store._database
        self._lock = threading.RLock()
        self._engine: Engine | None = None
        self._head: Head | None = None  # what the engine has taken
        self._seen: tuple[Any, list[Any]] | None = None  # looks at earlier times
        self._kept = (0, 0)  # rows and size of the last state
        found = database.find(name)
        if definition is None:
            if found is None:
                names = [s["name"] for s in store.studies()]
                known = ", ".join(map(repr, names[:8])) or "none yet"
                raise InvalidArgumentError(
                    "name", name, f"is no study in {database.label}, which holds {known}{near(name, names)}",
                    "define it: pass factors and outcome, or write likeset study new",
                )  # fmt: skip
            definition = _defined(found)
        given = definition.to_json()
        if found is None:
            engine = Engine(definition)
            found = database.create(given, engine.settings())
        elif differences(found.definition, given):
            raise StudyMismatchError(name, database.label, differences(found.definition, given))
        # As it is stored: the same factors in another order would be other columns of x.
        own = definition.family if "own" in found.definition["family"] else None
        self.definition, self._stored = _defined(found, own), found

    def __getstate__(self) -> dict[str, Any]:
        """What another process, or a copy, needs: the store and the name in it."""
        definition = self._stored.definition
        own = self.definition.family if "own" in definition["family"] else None
        return {"store": self.store, "name": self.name, "family": own, "read_only": self.read_only}

    def __setstate__(self, state: dict[str, Any]) -> None:
        found = state["store"]._database.find(state["name"])
        definition = None if found is None else _defined(found, state["family"])
        self._take(state["store"], state["name"], definition, state["read_only"])

    @property
    def name(self) -> str:
        """The study's name."""
        return self.definition.name

    @property
    def n(self) -> int:
        """Number of rows recorded, by whomever."""
        with self._lock, self._database.reading() as connection:
            return self._database.head(connection, self._stored).rows

    # -- telling ------------------------------------------------------------------------------------------------------

    def _tell(self, frame: Columns, failed: bool) -> Told:
        if len(frame) == 0:
            refuse_other_columns(self.definition, frame, failed)
            return Told(0, 0, self.n)
        batch = self.definition.batch(frame, failed)
        seen = batch if batch.worked is None else batch.taken(batch.worked)
        warn_if_sorted(self.definition.outcome, seen.x, seen.y)
        numbers = run_numbers(self.definition, frame)
        with self._lock:
            if self.read_only:
                raise StoreError(f"the study {self.name!r} was opened for reading only; open it again to tell.")
            ahead = False  # memory of the disk
            try:
                with self._database.writing() as connection:
                    engine = self._caught_up(connection)
                    new, digests, keep = self._new_rows(connection, batch)
                    if len(new):
                        answered = answered_runs(
                            asked.runs(connection, self._stored), self.definition, new, numbers, keep, frame
                        )
                        ahead = True
                        self._record(connection, engine, new, digests)
                        asked.change(connection, self._stored, answered)
                    total = len(engine)
            except (
                BaseException
            ):  # an interrupt, a disk that is full when it comes to the commit: the disk is the truth
                if ahead:
                    self._engine = self._head = None
                raise
            self._keep_state(engine)
        return Told(len(new), len(batch) - len(new), total)

    def _record(self, connection: Any, engine: Engine, new: Batch, digests: list[bytes]) -> None:
        first = len(engine)
        scored = engine.update(new)
        count, step = len(scored[TOLD]), max(1, BATCH_BYTES // (8 * new.x.shape[1]))
        for start in range(0, len(new), step):
            part = slice(start, start + step)
            raw = packed({name: cells[part] for name, cells in new.recorded.items()})
            # Pooled rows are few, and go with the first part.
            scored_part = part if count == len(new) else slice(0, count) if start == 0 else slice(count, count)
            done = packed({name: array[scored_part] for name, array in scored.items()})
            batch = self._database.append(connection, self._stored, raw, done, len(new.x[part]))
            self._head = Head(batch.number + 1, batch.first + batch.count, batch.hash)
        if new.keys is not None:
            self._database.add_keys(connection, self._stored, first, new.keys, digests)

    @contextmanager
    def _forgetting(self) -> Iterator[None]:
        """While memory takes what is on disk: if anything gets in the way, all of it is read again."""
        engine, head = self._engine, self._head
        self._engine = self._head = None
        yield
        self._engine = engine
        if self._head is None:
            self._head = head

    def _new_rows(self, connection: Any, batch: Batch) -> tuple[Batch, list[bytes], Array]:
        """Rows that have not been told before, their digests and places; a row told otherwise before is refused."""
        keep = np.ones(len(batch), bool)
        if batch.keys is None:
            self._warn_of_repetition(connection, batch)
            return batch, [], keep
        self._mend_keys(connection)
        digests = _digests(batch.recorded)
        known = self._told_keys(connection, batch.keys)
        here: dict[str, int] = {}
        for i, (key, digest) in enumerate(zip(batch.keys, digests, strict=True)):
            if key in known or key in here:
                keep[i] = False
                before = known[key][1] if key in known else digests[here[key]]
                if before != digest:
                    recorded = (
                        self._recorded(connection, known[key][0]) if key in known else _row(batch.recorded, here[key])
                    )
                    shown = [self._shown(row) for row in (recorded, _row(batch.recorded, i))]
                    raise RestatedRowError(str(self.definition.key), i + 1, key, *shown)
            else:
                here[key] = i
        if keep.all():
            return batch, digests, keep
        return batch.taken(keep), [digest for digest, kept in zip(digests, keep, strict=True) if kept], keep

    def _told_keys(self, connection: Any, keys: list[str]) -> dict[str, tuple[int, bytes]]:
        """Row and digest of those keys that have been told."""
        known = self._database.told_keys(connection, self._stored, keys)
        # Studies of earlier releases have whole numbers as floats wrote them.
        as_floats = [f"{key}.0" for key in keys if key.removeprefix("-").isdecimal()]
        for key, (row, _) in self._database.told_keys(connection, self._stored, as_floats).items():
            recorded = self._recorded(connection, row) | {str(self.definition.key): key[:-2]}
            (digest,) = _digests({name: [cell] for name, cell in recorded.items()})
            known.setdefault(key[:-2], (row, digest))
        return known

    def _warn_of_repetition(self, connection: Any, batch: Batch) -> None:
        if len(batch) < _SUSPICIOUS:
            return
        raw = packed(batch.recorded)
        if self._database.has_batch(connection, self._stored, raw, len(batch)):
            warnings.warn(
                f"the same {len(batch)} rows were told before, and now count twice; name a key column when a study "
                f"begins to "
                "have rows that come again recognised.",
                RepeatedRowsWarning,
                stacklevel=4,
            )

    def _mend_keys(self, connection: Any) -> None:
        """The keys are an index of the rows: if it is not complete it is made again."""
        if self._database.count_of_keys(connection, self._stored) == self._database.head(connection, self._stored).rows:
            return
        self._database.forget_keys(connection, self._stored)
        for stored in self._database.batches(connection, self._stored, None):
            recorded = self._raw(stored)
            self._database.add_keys(
                connection, self._stored, stored.first, recorded[str(self.definition.key)], _digests(recorded)
            )

    # -- reading ------------------------------------------------------------------------------------------------------

    def _caught_up(self, connection: Any) -> Engine:
        """The engine with every row in the store; what others have told is taken as it was scored."""
        head = self._database.head(connection, self._stored)
        if self._engine is not None and self._head == head and len(self._engine) == head.rows:
            return self._engine
        if self._engine is not None and self._head is not None and len(self._engine) == self._head.rows <= head.rows:
            engine, held = self._engine, self._head
            with self._forgetting():
                for stored in self._database.batches(connection, self._stored, held):
                    engine.replay(self._scored(stored))
                self._head = head
            return engine
        return self._rebuilt(connection, head)

    def _rebuilt(self, connection: Any, head: Head) -> Engine:
        engine = Engine(self.definition, self._stored.engine)
        parts = [self._scored(stored) for stored in self._database.batches(connection, self._stored, None)]
        if parts:
            whole = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
            state = self._database.state(connection, self._stored)
            kept = engine.restore(whole, state)
            self._kept = (kept, len(state[1]) if state is not None and kept else 0)
        self._engine, self._head = engine, head
        return engine

    def _keep_state(self, engine: Engine) -> None:
        rows, size = self._kept
        number = engine.sequence.n_observations
        if self.store.path is None or not engine.state_is_due(number, rows, size):
            return
        try:
            contents = engine.state()
        except LikesetError:  # pieces that cannot be kept are shown the rows again
            self._kept = (number, size)
            return
        self._database.keep_state(self._stored, number, contents)
        self._kept = (number, len(contents))

    def _fresh(self) -> Engine:
        with self._lock, self._database.reading() as connection:
            return self._caught_up(connection)

    def _looks(self, count: int = 40) -> list[Any]:
        """(rows, table) at some times from the first row to the last."""
        with self._lock:
            engine = self._fresh()
            assert self._head is not None
            if self._seen is None or self._seen[0] != (self._head.hash, count):
                found = looks(self.definition, self._stored.engine, engine.scored(0), count)
                self._seen = ((self._head.hash, count), found)
            return self._seen[1]

    def _scored(self, stored: StoredBatch) -> dict[str, Array]:
        return _unpacked(stored.scored)

    def _raw(self, stored: StoredBatch) -> dict[str, Any]:
        return _unpacked(stored.raw)

    def _recorded(self, connection: Any, row: int) -> dict[str, Any]:
        stored = self._database.batch_of(connection, self._stored, row)
        return _row(self._raw(stored), row - stored.first)

    def _shown(self, recorded: dict[str, Any]) -> dict[str, Any]:
        """A recorded row with levels as the user wrote them."""
        levels = {f.name: f for f in self.definition.factors if isinstance(f, Levels)}
        return {n: levels[n].shown(np.array([v]))[0] if n in levels else v for n, v in recorded.items()}

    def _shown_columns(self, recorded: dict[str, Any]) -> dict[str, list[Any]]:
        """Recorded columns as the user wrote them."""
        levels = {f.name: f for f in self.definition.factors if isinstance(f, Levels)}
        return {
            name: levels[name].shown(cells)
            if name in levels
            else list(cells)
            if isinstance(cells, list)
            else cells.tolist()
            for name, cells in recorded.items()
        }


def _defined(found: StoredStudy, family: Any = None) -> Definition:
    try:
        return Definition.from_json(found.definition, family)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        if isinstance(error, InvalidArgumentError) and error.argument == "family":
            raise InvalidArgumentError(
                "outcome", None, error.problem, "pass the definition again, with the family"
            ) from None
        raise FileFormatError(
            f"the definition of the study {found.name!r} cannot be read ({error}); it may need a newer likeset."
        ) from error


def _unpacked(data: bytes) -> dict[str, Any]:
    try:
        return unpacked(data)
    except (ValueError, KeyError, TypeError) as error:
        raise FileFormatError(f"the store is damaged: {error}; restore it from a backup.") from error


def _digests(recorded: dict[str, Any]) -> list[bytes]:
    """A digest of every row as it was told."""
    columns = [cells.tolist() if isinstance(cells, np.ndarray) else cells for _, cells in sorted(recorded.items())]
    count = len(columns[0])
    starts, found = range(0, count, _AT_ONCE), []
    for start in counted(starts, len(starts), "looking for rows told before"):
        part = (cells[start : start + _AT_ONCE] for cells in columns)
        rows = zip(*part, strict=True)
        found += [hashlib.blake2b(json.dumps(row).encode(), digest_size=16).digest() for row in rows]
    return found


def _row(recorded: dict[str, Any], index: int) -> dict[str, Any]:
    return {
        name: cells[index].item() if isinstance(cells, np.ndarray) else cells[index] for name, cells in recorded.items()
    }
