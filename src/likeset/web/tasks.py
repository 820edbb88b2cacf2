"""What worker processes do: open studies, tell, answer, draw. Everything that comes in or goes out is plain data."""

from __future__ import annotations

import csv
import io
import os
import tempfile
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from likeset.errors import InvalidArgumentError, LikesetError
from likeset.families import FAMILIES, Unknown
from likeset.progress import meter
from likeset.study.asked import PENDING, Run
from likeset.study.definition import column_name
from likeset.study.store import Store
from likeset.study.study import Study, Told
from likeset.web.choosing import advice, offers_choice, tell_run
from likeset.web.history import History, became_certain
from likeset.web.rows import UNKNOWN
from likeset.web.worker import Refused

_MOST_STUDIES = 32  # held open at once
_ROWS_AT_ONCE = 10_000  # that are written between two signs of progress


class Tasks:
    """The store, seen from a worker. What takes long in them says how far it is (``likeset.progress``)."""

    def __init__(self, path: str, read_only: bool) -> None:
        self._store = Store(path, read_only=read_only)
        self._studies: OrderedDict[str, Study] = OrderedDict()
        self._histories: OrderedDict[str, History] = OrderedDict()

    # -- answers ------------------------------------------------------------------------------------------------------

    def answers(self, name: str) -> dict[str, Any]:
        """Everything that a study's page says, and which rows it says it of."""
        return self._answers(self._study(name))

    def history(self, name: str) -> dict[str, Any]:
        """The answers at every look so far, and when verdicts became certain."""
        looks = self._history(name).advance()
        return {"name": name, "looks": looks, "certain": _certain(looks)}

    def pictures(self, name: str) -> dict[str, Any]:
        """The pictures of a study as SVG texts, by kind; when verdicts became certain; which rows that is of."""
        from likeset.web.drawing import pictures

        study = self._study(name)
        looks = self._history(name).advance()
        answers, pending = self._answers(study), study.pending()
        advised = advice(study)
        drawn = pictures(study, answers, looks, advised, pending)
        of = {"fingerprint": answers["fingerprint"], "pending": [run.number for run in _out(study)]}
        return {"svg": drawn, "certain": _certain(looks), "advice": advised, **of}

    def advice(self, name: str) -> dict[str, Any]:
        """What is recommended, what is certain, and what is pending."""
        study = self._study(name)
        found = advice(study) or {"recommended": None, "certificate": None, "problem": ""}
        return {"name": name, **found, "pending": study.pending()}

    # -- writing ------------------------------------------------------------------------------------------------------

    def create(self, given: dict[str, Any]) -> str:
        """A new study, or the same again; its name."""
        family, settings = given.pop("family")
        known = {cls.__name__.lower(): cls for cls in FAMILIES}
        if family not in known:
            raise InvalidArgumentError("family", family, "is no family", f"use one of {', '.join(sorted(known))}")
        try:
            chosen: Any = known[family]
            made = chosen(**{k: Unknown() if v == UNKNOWN else v for k, v in settings.items()})
        except TypeError:
            problem = f"are not the settings of {known[family].__name__}"
            raise InvalidArgumentError("family", settings, problem, "leave them out, or name those it has") from None
        outcome = column_name("outcome", given.pop("outcome"))
        return Study(given.pop("name"), outcome={outcome: made}, store=self._store, **given).name

    def tell(self, name: str, rows: Any) -> dict[str, Any]:
        """Record rows (a list of dicts) or the text of a CSV file; what was done, warnings, and the new answers."""
        study = self._study(name)
        with _file_of(rows) as given:
            try:
                return self._told(study, lambda: study.tell(given))
            except LikesetError as error:  # it names a file that only this process has seen
                raise Refused(type(error).__name__, str(error).replace(str(given), "the file")) from None

    def tell_run(self, name: str, run: int, values: dict[str, Any], failed: bool) -> dict[str, Any]:
        """The result of a run that is pending; the same answer as of ``tell``."""
        study = self._study(name)
        return self._told(study, lambda: tell_run(study, run, values, failed))

    def cancel(self, name: str, run: int) -> None:
        """A run that will not be made."""
        self._study(name).cancel(run)

    def _told(self, study: Study, tell: Callable[[], Told]) -> dict[str, Any]:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            told = tell()
        said = [str(w.message) for w in caught if issubclass(w.category, UserWarning)]
        done = {"recorded": told.recorded, "repeated": told.repeated, "total": told.total, "warnings": said}
        return {"told": done, "answers": self._answers(study)}

    def ask(self, name: str, count: int) -> list[dict[str, Any]]:
        """The next experiments, as rows without outcomes."""
        return [dict(row) for row in self._study(name).ask(n=count)]

    # -- files --------------------------------------------------------------------------------------------------------

    def report(self, name: str, folder: str) -> str:
        """The report, one HTML file in a folder; its path."""
        from likeset.study.report import page

        text = page(self._study(name))
        handle, path = tempfile.mkstemp(".html", dir=folder)
        with os.fdopen(handle, "w", encoding="utf-8", errors="replace") as file:
            file.write(text)
        return path

    def data(self, name: str, folder: str) -> str:
        """The rows as they were told, as a CSV file in a folder; its path."""
        study = self._study(name)
        handle, path = tempfile.mkstemp(".csv", dir=folder)
        with os.fdopen(handle, "w", newline="", encoding="utf-8", errors="replace") as file:
            writer, done = csv.writer(file), 0
            with meter("writing rows", max(study.n, 1)) as at, study._database.reading() as connection:
                for stored in study._database.batches(connection, study._stored, None):
                    columns = study._shown_columns(study._raw(stored))
                    if done == 0:
                        writer.writerow([_harmless(name) for name in columns])
                    for start in range(0, stored.count, _ROWS_AT_ONCE):
                        part = (cells[start : start + _ROWS_AT_ONCE] for cells in columns.values())
                        writer.writerows([_harmless(cell) for cell in row] for row in zip(*part, strict=True))
                        at(done + start)
                    done += stored.count
        return path

    # -- inside -------------------------------------------------------------------------------------------------------

    def _study(self, name: str) -> Study:
        if name not in self._studies:
            self._studies[name] = self._store.study(name)
        self._studies.move_to_end(name)
        while len(self._studies) > _MOST_STUDIES:
            self._studies.popitem(last=False)
        return self._studies[name]

    def _history(self, name: str) -> History:
        if name not in self._histories:
            self._histories[name] = History(self._study(name))
        self._histories.move_to_end(name)
        while len(self._histories) > _MOST_STUDIES:
            self._histories.popitem(last=False)
        return self._histories[name]

    def _answers(self, study: Study) -> dict[str, Any]:
        with study._lock:
            found = study.to_json()
            fingerprint = study._head.hash.hex() if study._head is not None else study.fingerprint
        return found | {"fingerprint": fingerprint, "can_ask": offers_choice(study.definition)}


def _out(study: Study) -> list[Run]:
    return [run for run in study.runs() if run.state == PENDING]


def _certain(looks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {"factor": factor, "level": level, "rows": rows, "verdict": verdict}
        for (factor, level), (rows, verdict) in became_certain(looks).items()
    ]


@contextmanager
def _file_of(rows: Any) -> Iterator[Any]:
    """Rows as they are; a text is put into a file, so that messages name its lines."""
    if not isinstance(rows, str):
        yield rows
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.csv"
        path.write_text(rows, encoding="utf-8")
        yield path


def _harmless(cell: Any) -> Any:
    """A cell that no spreadsheet takes for a formula: texts that begin like one get an apostrophe.

    >>> _harmless("=1+1"), _harmless(-3.5), _harmless("B")
    ("'=1+1", -3.5, 'B')
    """
    if isinstance(cell, str) and cell[:1] in ("=", "+", "-", "@", "\t", "\r"):
        return f"'{cell}"
    if isinstance(cell, float) and cell.is_integer():
        return int(cell)
    return cell.item() if hasattr(cell, "item") else cell


def csv_text(rows: list[dict[str, Any]]) -> str:
    """Rows as the text of a CSV file."""
    text = io.StringIO()
    if rows:
        writer = csv.DictWriter(text, list(rows[0]))
        writer.writeheader()
        writer.writerows({k: _harmless(v) for k, v in row.items()} for row in rows)
    return text.getvalue()
