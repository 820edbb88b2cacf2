"""Study: named factors, an outcome with its family, a question and a store. Names over the engine; no mathematics."""

from __future__ import annotations

import hashlib
import json
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from typing import Any, BinaryIO, Self

import numpy as np

from likeset._typing import Array
from likeset.arguments import file_path, flag, real_array, writing
from likeset.errors import (
    FileFormatError,
    InvalidArgumentError,
    LikesetError,
    RepeatedRowsWarning,
    RestatedRowError,
    StoreError,
    StudyMismatchError,
)
from likeset.extras import optional_packages
from likeset.persistence.atomic_file import write_file
from likeset.sets import LikelihoodSet
from likeset.study import answers, asking, transfer, wording
from likeset.study.database import Head, StoredBatch, StoredStudy
from likeset.study.definition import Batch, Definition, differences, study_name
from likeset.study.engine import TOLD, Engine
from likeset.study.factors import Levels
from likeset.study.frames import Columns, columns_of
from likeset.study.looks import looks
from likeset.study.order import warn_if_sorted
from likeset.study.packing import packed, unpacked
from likeset.study.store import DEFAULT, Store

BATCH_BYTES = 64 << 20  # of covariates in one stored batch
_SUSPICIOUS = 20  # rows that come again as a whole


@dataclass(frozen=True)
class Told:
    """What ``tell`` did: rows recorded now, rows recognised by their key and skipped, rows of the study in all."""

    recorded: int
    repeated: int
    total: int


class Study:
    """A question asked of rows as they come; answers may be looked at after every row, and acted on.

    Parameters
    ----------
    name      of the study in its store; the same name with the same definition continues it
    factors   columns that outcomes may depend on: {"variant": ["A", "B"]} has levels, {"dose": (0, 10)} is an interval,
              {"age": float} a number as it is, {"age": {"centre": 40, "scale": 10}} one in units of its own
    formula   instead, or beside, e.g. "~ age + C(ward)"; levels are declared in ``factors``, or taken from ``like``
    outcome   a family, for the column "outcome", or {column: family}; the name of a family will do
    control   the level that others are compared with
    goal      "maximise" or "minimise" the mean outcome: what better means
    alpha     error level: all intervals hold at all times at once with probability at least 1 - alpha
    margin    differences of means within it count as equivalent
    key       a column that tells rows apart: rows that come again under their key are not counted again
    event     for lifetimes: the column that is 1 where the event was seen, 0 where the row is censored
    trials, exposure, offset   columns for totals: trials of a binomial count, exposure of a count, an offset of z
    bound     on the length of the parameter, if one is known
    units     of the outcome, for labels
    like      for formulas: a frame of typical covariates from which levels, centres, scales and knots are taken, once
    store     a path ("likeset.db" in the current folder), a :class:`Store`, or None to keep the study in memory

    Leave the definition out to open a study that is in the store.

    >>> factors = {"variant": ["A", "B"]}
    >>> study = Study("signup", factors=factors, outcome={"converted": "bernoulli"}, control="A", store=None)
    >>> study.tell([{"variant": "A", "converted": 0}, {"variant": "B", "converted": 1}])
    Told(recorded=2, repeated=0, total=2)
    >>> [(row["level"], row["n"], row["verdict"]) for row in study.rows()]
    [('A', 1, 'control'), ('B', 1, 'not yet')]
    """

    def __init__(
        self,
        name: str,
        *,
        factors: Any = None,
        formula: str | None = None,
        outcome: Any = None,
        control: Any = None,
        goal: str = "maximise",
        alpha: float = 0.05,
        margin: float | None = None,
        key: str | None = None,
        event: str | None = None,
        entry: str | None = None,
        trials: str | None = None,
        exposure: str | None = None,
        offset: str | None = None,
        bound: float | None = None,
        units: str | None = None,
        like: Any = None,
        store: str | PathLike[str] | Store | None = DEFAULT,
    ) -> None:
        options = {
            "factors": factors, "formula": formula, "control": control, "goal": goal, "alpha": alpha, "margin": margin,
            "key": key, "event": event, "entry": entry, "trials": trials, "exposure": exposure, "offset": offset,
            "bound": bound, "units": units, "like": like,
        }  # fmt: skip
        if outcome is None and factors is None and formula is None:
            self._take(_store(store), study_name(name), None, read_only=False)
            return
        if outcome is None:
            raise InvalidArgumentError("outcome", None, "is missing", 'pass e.g. {"converted": Bernoulli()}')
        definition = Definition(name, outcome=outcome, **options)
        self._take(_store(store), definition.name, definition, read_only=False)

    @classmethod
    def open(cls, name: str, store: str | PathLike[str] | Store = DEFAULT, read_only: bool = False) -> Self:
        """A study that is in the store."""
        study = cls.__new__(cls)
        study._take(_store(store), study_name(name), None, flag("read_only", read_only))
        return study

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
                known = ", ".join(repr(s["name"]) for s in store.studies()[:8]) or "none"
                raise InvalidArgumentError(
                    "name",
                    name,
                    f"is no study in {store!r}, which holds {known}",
                    "define it: pass factors and outcome",
                )
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

    # -- telling ------------------------------------------------------------------------------------------------------

    def tell(self, rows: Any) -> Told:
        """Record rows, in the order in which they were observed; when it returns they are on disk.

        ``rows``: a frame of pandas, polars or Arrow, a list of dicts, a dict of columns, the path of a CSV or Parquet
        file. Columns that the study does not use are ignored. All or nothing: after an error no row of these counts.
        """
        return self._tell(columns_of(rows), lambda done: None)

    def _tell(self, frame: Columns, on_rows: Callable[[int], None]) -> Told:
        """``tell``; says now and then how many rows have been scored."""
        if len(frame) == 0:
            return Told(0, 0, self.n)
        batch = self.definition.batch(frame)
        warn_if_sorted(self.definition.outcome, batch.x, batch.y)
        with self._lock:
            if self.read_only:
                raise StoreError(f"the study {self.name!r} was opened for reading only; open it again to tell.")
            ahead = False  # memory of the disk
            try:
                with self._database.writing() as connection:
                    engine = self._caught_up(connection)
                    new, digests = self._new_rows(connection, batch)
                    if len(new):
                        ahead = True
                        self._record(connection, engine, new, digests, on_rows)
                    total = len(engine)
            except (
                BaseException
            ):  # an interrupt, a disk that is full when it comes to the commit: the disk is the truth
                if ahead:
                    self._engine = self._head = None
                raise
            self._keep_state(engine)
        return Told(len(new), len(batch) - len(new), total)

    def _record(
        self, connection: Any, engine: Engine, new: Batch, digests: list[bytes], on_rows: Callable[[int], None]
    ) -> None:
        first = len(engine)
        scored = engine.update(new, on_rows)
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

    def _new_rows(self, connection: Any, batch: Batch) -> tuple[Batch, list[bytes]]:
        """Rows that have not been told before, and their digests; a row told otherwise before is refused."""
        if batch.keys is None:
            self._warn_of_repetition(connection, batch)
            return batch, []
        self._mend_keys(connection)
        digests = _digests(batch.recorded)
        known = self._database.told_keys(connection, self._stored, batch.keys)
        keep = np.ones(len(batch), bool)
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
            return batch, digests
        return batch.taken(keep), [digest for digest, kept in zip(digests, keep, strict=True) if kept]

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

    # -- answers ------------------------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """The study's name."""
        return self.definition.name

    @property
    def n(self) -> int:
        """Number of rows recorded, by whomever."""
        with self._lock, self._database.reading() as connection:
            return self._database.head(connection, self._stored).rows

    @property
    def fingerprint(self) -> str:
        """The hash of definition and rows so far: publish it, and nobody can change them unnoticed."""
        with self._database.reading() as connection:
            return self._database.head(connection, self._stored).hash.hex()

    @property
    def set(self) -> LikelihoodSet:
        """The confidence set of all rows: an immutable snapshot, for questions that the table does not answer."""
        with self._lock:
            return self._fresh().set

    def rows(self) -> list[dict[str, Any]]:
        """The table as plain dicts, one per level or coefficient."""
        with self._lock:
            engine = self._fresh()
            counts = engine.counts()
            s = engine.set
        return answers.rows(self.definition, s, counts)

    def table(self) -> Any:
        """The table as a frame of pandas: level, n, estimate, interval, contrasts with control, e-value, verdict."""
        with optional_packages():
            import pandas
        return pandas.DataFrame(self.rows()).dropna(axis="columns", how="all")

    def alarm(self) -> dict[str, Any]:
        """Whether the data refute the model ("rings"), and what that means ("text")."""
        return answers.alarm(self.set)

    def verdict(self) -> dict[str, str]:
        """The verdict on each level against the control, or on each coefficient."""
        return {row["level"]: row["verdict"] for row in self.rows() if row["verdict"] not in (None, "control")}

    def predict(self, rows: Any) -> Any:
        """Mean outcome with bounds for each row of a frame of factors, as a frame of pandas."""
        with optional_packages():
            import pandas
        frame = columns_of(rows)
        x, s = self.definition.asked(frame), self.set
        z_low, z_high = s.interval(x) if len(x) else (np.zeros(0), np.zeros(0))
        z = x @ s.centre if s.n_observations else np.full(len(x), np.nan)
        scale = asking.Scale(self.definition.family)
        low, high = scale.mean_ends((z_low, z_high))
        mean = scale.mean_ends((z, z))[0]
        return pandas.DataFrame(
            {"estimate": mean, "lower": low, "upper": high, "z": z, "z_lower": z_low, "z_upper": z_high}
        )

    def to_json(self) -> dict[str, Any]:
        """All answers as plain data that JSON can hold; a bound that is not finite is None."""
        with self._lock:
            rows = self.rows()
            engine = self._fresh()
            s, told = engine.set, len(engine)
        return answers.finite(  # type: ignore[no-any-return]
            {
                "name": self.name,
                "rows_recorded": told,
                "alarm": answers.alarm(s),
                "rows": rows,
                "definition": self.definition.to_json(),
                "created": self._stored.created,
            }
        )

    def survival(self, rows: Any, times: Any) -> Any:
        """For lifetimes: the probability to be event-free at each time, with bounds, for each row of factors.

        A frame of pandas with the columns row, time, estimate, lower and upper. All bounds of all curves hold together.
        """
        with optional_packages():
            import pandas
        if not self.definition.family.observation_shape:
            raise InvalidArgumentError("rows", rows, f"have no lifetimes: {self.definition.family!r}", "use predict")
        at = real_array("times", times).reshape(-1)
        x, s = self.definition.asked(columns_of(rows)), self.set
        ends = (x @ s.centre if s.n_observations else np.full(len(x), np.nan), *s.interval(x))
        # A row that is censored at t has the density of living longer; the larger z, the shorter the life.
        censored = self.definition.family.observations(np.column_stack([at, np.zeros(len(at))])) if len(at) else at
        log_density = self.definition.family.log_density
        curves = [
            [np.exp(log_density(censored, np.full(len(at), np.clip(z, -700, 700)))) for z in part] for part in ends
        ]
        count = len(x)
        return pandas.DataFrame(
            {
                "row": np.repeat(np.arange(1, count + 1), len(at)),
                "time": np.tile(at, count),
                "estimate": np.concatenate([*curves[0], []]),
                "lower": np.concatenate([*curves[2], []]),
                "upper": np.concatenate([*curves[1], []]),
            }
        )

    def plot(self, over_time: bool = True, axes: Any = None) -> Any:
        """Intervals against the number of rows, or as they are now: differences from the control, else levels.

        What was seen earlier is made again from the rows as they were scored. Returns the axes of Matplotlib.
        """
        from likeset.study.pictures import draw

        return draw(self, flag("over_time", over_time), axes)

    def plot_survival(self, rows: Any, times: Any, axes: Any = None) -> Any:
        """The curves of :meth:`survival` with their bands."""
        from likeset.study.pictures import draw_survival

        return draw_survival(self, self.survival(rows, times), axes)

    def report(self, path: str | PathLike[str]) -> None:
        """Write one HTML file with the answers, pictures and the definition in it."""
        from likeset.study.report import page

        target = file_path("path", path)
        with optional_packages():
            contents = page(self).encode()
        with writing(target):
            write_file(target, lambda stream: _write(stream, contents))

    def summary(self) -> str:
        """The answers as text."""
        return wording.summary(self.to_json())

    def _repr_html_(self) -> str:
        return wording.html(self.to_json())

    def export(self, folder: str | PathLike[str]) -> None:
        """Write the study to a folder: study.json, rows.csv (as told) and scored.csv. ``import_from`` reads it."""
        transfer.export(self, folder)

    @classmethod
    def import_from(cls, folder: str | PathLike[str], store: str | PathLike[str] | Store | None = DEFAULT) -> Self:
        """A study that ``export`` wrote, in a store that has none of its name; its fingerprint is the same."""
        target = _store(store)
        return transfer.read_export(folder, target._database, lambda name: cls.open(name, target))  # type: ignore

    def __repr__(self) -> str:
        place = "memory" if self.store.path is None else str(self.store.path)
        return f"<Study {self.name!r}: {self.definition.family!r}, {self.n} rows in {place}>"


def _store(store: Any) -> Store:
    return store if isinstance(store, Store) else Store(store)


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


def _write(stream: BinaryIO, contents: bytes) -> None:
    stream.write(contents)


def _unpacked(data: bytes) -> dict[str, Any]:
    try:
        return unpacked(data)
    except (ValueError, KeyError, TypeError) as error:
        raise FileFormatError(f"the store is damaged: {error}; restore it from a backup.") from error


def _digests(recorded: dict[str, Any]) -> list[bytes]:
    """A digest of every row as it was told."""
    columns = [cells.tolist() if isinstance(cells, np.ndarray) else cells for _, cells in sorted(recorded.items())]
    return [hashlib.blake2b(json.dumps(row).encode(), digest_size=16).digest() for row in zip(*columns, strict=True)]


def _row(recorded: dict[str, Any], index: int) -> dict[str, Any]:
    return {
        name: cells[index].item() if isinstance(cells, np.ndarray) else cells[index] for name, cells in recorded.items()
    }


__all__ = ["Columns", "Study", "Told"]
