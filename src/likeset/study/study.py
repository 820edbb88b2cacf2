"""Study: named factors, an outcome with its family, a question and a store. Names over the engine; no mathematics."""

from __future__ import annotations

from os import PathLike
from typing import Any, BinaryIO, Self

import numpy as np

from likeset.arguments import file_path, flag, real_array, writing
from likeset.errors import InvalidArgumentError, StoreError
from likeset.evidence.alarm import Diagnosis
from likeset.extras import optional_packages
from likeset.persistence.atomic_file import write_file
from likeset.progress import working
from likeset.sets import LikelihoodSet
from likeset.study import answers, asked, transfer, wording
from likeset.study.advice import Claim, Recommended
from likeset.study.asking import predictor_ends
from likeset.study.campaign import RUN
from likeset.study.choosing import Chooser
from likeset.study.definition import Definition, study_name
from likeset.study.frames import Columns, columns_of
from likeset.study.matching import has_run_column
from likeset.study.record import Record, Told
from likeset.study.store import DEFAULT, Store
from likeset.study.surface import surface_of
from likeset.study.survival import curves


class Study(Record):
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
    key       a column that identifies rows: a row that comes again with the same key is not counted again
    event     for lifetimes: the column that is 1 where the event was seen, 0 where the row is censored
    trials, exposure, offset   columns for totals: trials of a binomial count, exposure of a count, a known part of z
    bound     a promise: the vector of coefficients is no longer than this; not needed
    units     of the outcome, for labels
    like      for formulas: a frame of typical covariates from which levels, centres, scales and knots are taken, once
    alarm     False: nothing tests the model itself, for models that are only roughly right (docs/alarm.md)
    model     "linear", or "smooth": z is a smooth function of all factors together; what ``ask`` is for
    range     of a smooth model: (low, high), between which the mean outcome lies at every setting
    until     when to stop asking: {"gain": 1.0}, or "best", {"best": 1.0}, {"above": 50} of finitely many settings
    safe      constraints by column, {"impurity": ls.Below(0.05, ls.Bernoulli())}: only settings at which they are
              certified, and those of ``known_safe`` (rows of factors), are ever asked for
    failed    the column that is 1 where a run gave no outcome; "failed" in a study that chooses
    seed      of random choices of settings
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
        alarm: bool = True,
        model: str = "linear",
        range: tuple[float, float] | None = None,
        until: Any = None,
        safe: Any = None,
        known_safe: Any = None,
        failed: str | None = None,
        seed: int = 0,
        store: str | PathLike[str] | Store | None = DEFAULT,
    ) -> None:
        options = {
            "factors": factors, "formula": formula, "control": control, "goal": goal, "alpha": alpha, "margin": margin,
            "key": key, "event": event, "entry": entry, "trials": trials, "exposure": exposure, "offset": offset,
            "bound": bound, "units": units, "like": like, "alarm": alarm, "model": model, "range": range,
            "until": until, "safe": safe, "known_safe": known_safe, "failed": failed, "seed": seed,
        }  # fmt: skip
        if outcome is None and factors is None and formula is None:
            self._take(_store(store), study_name(name), None, read_only=False)
            return
        if outcome is None:
            raise InvalidArgumentError("outcome", None, "is missing", 'pass e.g. {"converted": Bernoulli()}')
        definition = Definition(name, outcome=outcome, **options)
        if definition.alpha > 0.5:
            level = 1.0 - definition.alpha
            raise InvalidArgumentError(
                "alpha",
                alpha,
                "is an error level above one half",
                f"for {definition.alpha:.3g} confidence pass {level:.3g}",
            )
        self._take(_store(store), definition.name, definition, read_only=False)

    @classmethod
    def open(cls, name: str, store: str | PathLike[str] | Store = DEFAULT, read_only: bool = False) -> Self:
        """A study that is in the store."""
        study = cls.__new__(cls)
        study._take(_store(store), study_name(name), None, flag("read_only", read_only))
        return study

    # -- telling ------------------------------------------------------------------------------------------------------

    @working("recording rows")
    def tell(self, rows: Any, failed: bool = False) -> Told:
        """Record rows, in the order in which they were observed; when it returns they are on disk.

        ``rows``: a frame of pandas, polars or Arrow, a list of dicts, a dict of columns, the path of a CSV or Parquet
        file. Columns that the study does not use are ignored. All or nothing: after an error no row of these counts.

        In a study that chooses, ``failed``, or a cell of the column of that name, says that a run gave no outcome. A
        row answers the run whose number stands in its column "run", or else the oldest one that is out with its
        setting.
        """
        return self._tell(columns_of(rows), flag("failed", failed))

    # -- choosing -----------------------------------------------------------------------------------------------------

    @working("choosing what to run next")
    def ask(self, n: int | None = None) -> Any:
        """The setting to run next: its factors by name, and the number of the run. With ``n`` a list of different ones.

        What is asked for is pending, in the store, until a row answers it (:meth:`tell`) or it is cancelled
        (:meth:`cancel`); later choices know of it, in this and in other processes. When an answer is told must not
        depend on what it is (docs/bandits.md, late answers).
        """
        with self._lock:
            if self.read_only:
                raise StoreError(f"the study {self.name!r} was opened for reading only; open it again to ask.")
            with self._database.writing() as connection:
                runs = asked.runs(connection, self._stored)
                new = Chooser(self.definition, self._caught_up(connection), runs).ask(1 if n is None else n)
                asked.add(connection, self._stored, new)
        found = [self._run(run) for run in new]
        return found[0] if n is None else found

    def pending(self) -> list[dict[str, Any]]:
        """Settings asked for and not told yet, oldest first, with the numbers of their runs."""
        return [self._run(run) for run in self.runs() if run.state == asked.PENDING]

    def runs(self) -> list[asked.Run]:
        """All runs that were asked for, by whomever, and what became of them."""
        with self._lock, self._database.reading() as connection:
            return asked.runs(connection, self._stored)

    def cancel(self, run: int) -> None:
        """A run that will not be made; it is out no longer. ``run`` is its number."""
        with self._lock, self._database.writing() as connection:
            out = [r.number for r in asked.runs(connection, self._stored) if r.state == asked.PENDING]
            if run not in out:
                known = ", ".join(map(str, out)) or "none"
                raise InvalidArgumentError("run", run, "is not pending", f"pending are {known}")
            asked.change(connection, self._stored, {run: asked.CANCELLED})

    @working("looking for the best setting")
    def recommend(self) -> Recommended:
        """The setting with the best guarantee, and how much better any other can be at most."""
        return self._chooser().recommend()

    @working("looking for the best setting")
    def certificate(self) -> Claim | None:
        """What ``until`` asks for, as soon as the rows make it certain; None before, or without ``until``."""
        return self._chooser().claim()

    def _chooser(self) -> Chooser:
        with self._lock, self._database.reading() as connection:
            return Chooser(self.definition, self._caught_up(connection), asked.runs(connection, self._stored))

    def _run(self, run: asked.Run) -> dict[str, Any]:
        number = {RUN: run.number} if has_run_column(self.definition) else {}
        return number | run.setting

    # -- answers ------------------------------------------------------------------------------------------------------

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

    @working("answering")
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
        """Whether the data refute the model ("rings"), what that means ("text"), and what was heard ("nats")."""
        return answers.alarm(self.set)

    def diagnose(self) -> Diagnosis:
        """What beat the model, in words (``str``) and nats; see docs/alarm.md for what the alarm can hear."""
        return self.set.diagnose()

    def verdict(self) -> dict[str, str]:
        """The verdict on each level against the control, or on each coefficient."""
        return {row["level"]: row["verdict"] for row in self.rows() if row["verdict"] not in (None, "control")}

    @working("answering")
    def predict(self, rows: Any) -> Any:
        """Mean outcome with bounds for each row of a frame of factors, as a frame of pandas."""
        with optional_packages():
            import pandas
        frame = columns_of(rows)
        with self._lock:
            x, engine = self.definition.asked(frame), self._fresh()
            s, belief = engine.set, engine.sequence.belief
        z_low, z_high = predictor_ends(s, x) if len(x) else (np.zeros(0), np.zeros(0))
        z, surface = np.full(len(x), np.nan), surface_of(self.definition)
        if s.n_observations and not self.definition.smooth:
            z = np.clip(x @ s.centre, z_low, z_high)
        elif s.n_observations and belief is not None and len(x):
            z = np.asarray(belief.moments(x)[0])
        low, high = surface.mean_ends((z_low, z_high))
        mean = surface.mean_ends((z, z))[0]
        z, z_low, z_high = (part + surface.centre for part in (z, z_low, z_high))
        return pandas.DataFrame(
            {"estimate": mean, "lower": low, "upper": high, "z": z, "z_lower": z_low, "z_upper": z_high}
        )

    @working("answering")
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
        x = self.definition.asked(columns_of(rows))
        estimate, lower, upper = curves(self.definition.family, self.set, x, at)
        return pandas.DataFrame(
            {
                "row": np.repeat(np.arange(1, len(x) + 1), len(at)),
                "time": np.tile(at, len(x)),
                "estimate": estimate.ravel(),
                "lower": lower.ravel(),
                "upper": upper.ravel(),
            }
        )

    @working("drawing")
    def plot(self, over_time: bool = True, axes: Any = None) -> Any:
        """Intervals against the number of rows, or as they are now: differences from the control, else levels.

        What was seen earlier is made again from the rows as they were scored. Returns the axes of Matplotlib.
        """
        from likeset.study.pictures import draw

        return draw(self, flag("over_time", over_time), axes)

    def plot_survival(self, rows: Any, times: Any, axes: Any = None) -> Any:
        """The curves of :meth:`survival` with their bands."""
        from likeset.study.pictures import draw_survival

        frame = columns_of(rows)
        cells = {f.name: frame.values(f.name) for f in self.definition.factors}
        settings = [{name: column[i] for name, column in cells.items()} for i in range(len(frame))]
        return draw_survival(self, self.survival(frame, times), settings, axes)

    @working("making the report")
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

    @working("writing the study")
    def export(self, folder: str | PathLike[str]) -> None:
        """Write the study to a folder: study.json, rows.csv (as told) and scored.csv. ``import_from`` reads it."""
        transfer.export(self, folder)

    @classmethod
    @working("reading the study")
    def import_from(cls, folder: str | PathLike[str], store: str | PathLike[str] | Store | None = DEFAULT) -> Self:
        """A study that ``export`` wrote, in a store that has none of its name; its fingerprint is the same."""
        target = _store(store)
        return transfer.read_export(folder, target._database, lambda name: cls.open(name, target))  # type: ignore

    def __repr__(self) -> str:
        place = "memory" if self.store.path is None else str(self.store.path)
        return f"<Study {self.name!r}: {self.definition.family!r}, {self.n} rows in {place}>"


def _store(store: Any) -> Store:
    return store if isinstance(store, Store) else Store(store)


def _write(stream: BinaryIO, contents: bytes) -> None:
    stream.write(contents)


__all__ = ["Columns", "Study", "Told"]
