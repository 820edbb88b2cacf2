"""What the page knows without computing: the newest answers of every study, and what is being worked on.

Answers are kept by study and shown until newer ones are there. One worker tells and answers, another one draws, a
third one, which starts when it is needed, makes files: a picture keeps neither a reader of the table nor a download
waiting. What was answered last is also kept in a file beside the store, so
that the first page after a restart does not wait.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
import threading
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from likeset.errors import LikesetError
from likeset.extras import optional_packages
from likeset.persistence.atomic_file import write_file
from likeset.study import asked
from likeset.study.store import Store
from likeset.web.tasks import Tasks
from likeset.web.worker import Call, Refused, Worker, WorkerDied

with optional_packages():
    import anyio

PATIENCE = 0.12  # seconds that a page waits for newer answers before it shows those at hand
_MOST = 256  # studies of which answers are kept
_SAVE_EVERY = 5.0  # seconds between writes of the file beside the store


@dataclass
class Known:
    """What is at hand of one study, and what is on its way."""

    answers: dict[str, Any] | None = None
    pictures: dict[str, str] = field(default_factory=dict)
    certain: list[dict[str, Any]] = field(default_factory=list)
    drawn_of: str = ""  # the rows and the pending runs that the pictures show
    advice: dict[str, Any] | None = None  # what is recommended, of the same rows
    pending: list[dict[str, Any]] = field(default_factory=list)  # runs that were asked for and not told yet
    answering: Call | None = None
    drawing: Call | None = None
    problem: str = ""
    stale: bool = False  # from the file beside the store: of this store, as far as one knows

    def is_of(self, head: dict[str, Any]) -> bool:
        """Whether the answers at hand are those of all rows."""
        return self.answers is not None and self.answers["fingerprint"] == head["fingerprint"]


class Desk:
    """The store as the page sees it."""

    def __init__(self, path: str | os.PathLike[str], read_only: bool = False) -> None:
        self.path, self.read_only = Path(path), read_only
        self._store = Store(path, read_only=True)  # for what is cheap: names and heads
        self._clerk = Worker(Tasks, str(path), read_only)
        self._draughtsman, self._printer = Worker(Tasks, str(path), True), Worker(Tasks, str(path), True)
        self._folder = tempfile.TemporaryDirectory(prefix="likeset-")  # of files that wait to be fetched
        self._known: OrderedDict[str, Known] = OrderedDict()
        self._saved = 0.0
        self._load()

    def close(self) -> None:
        """End the workers."""
        self._save(force=True)
        self._clerk.close()
        self._draughtsman.close()
        self._printer.close()
        self._store.close()
        self._folder.cleanup()

    # -- cheap: read in a thread --------------------------------------------------------------------------------------

    def heads(self) -> dict[str, dict[str, Any]]:
        """Name, rows, fingerprint and date of every study, by name: one query."""
        database = self._store._database
        if not database.exists:
            return {}
        with database.reading() as connection:
            found = connection.execute("SELECT name, rows, head, created FROM studies ORDER BY id").fetchall()
        return {
            name: {"name": name, "rows": rows, "fingerprint": head.hex(), "created": created}
            for name, rows, head, created in found
        }

    def definition(self, name: str) -> dict[str, Any] | None:
        """The definition of a study, as it is stored; None if there is no such study."""
        found = self._store._database.find(name)
        return None if found is None else found.definition

    def pending(self, name: str) -> list[dict[str, Any]]:
        """Runs of a study that were asked for and have no result yet."""
        database = self._store._database
        found = database.find(name)
        if found is None:
            return []
        with database.reading() as connection:
            return [run.to_json() for run in asked.runs(connection, found) if run.state == asked.PENDING]

    # -- answers ------------------------------------------------------------------------------------------------------

    async def listed(self) -> list[dict[str, Any]]:
        """Every study with what is known of it; whatever is missing is asked for, and not waited for."""
        heads = await anyio.to_thread.run_sync(self.heads)
        found = []
        for name, head in heads.items():
            known = self._at_hand(name)
            if not known.is_of(head):
                self._answer(name)
            if known.answers is not None and known.answers.get("can_ask"):
                known.pending = await anyio.to_thread.run_sync(self.pending, name)
            found.append(head | {"answers": known.answers, "problem": known.problem, "pending": len(known.pending)})
        return found

    async def study(self, name: str, patience: float = PATIENCE) -> tuple[dict[str, Any], Known] | None:
        """The head and what is known of a study; None if there is no such study. Waits a moment for newer answers."""
        heads = await anyio.to_thread.run_sync(self.heads)
        if name not in heads:
            return None
        head, known = heads[name], self._at_hand(name)
        if not known.is_of(head):
            busy = known.answering is not None and not known.answering.future.done()
            call = self._answer(name)
            if known.answers is None or not busy or patience > PATIENCE:  # who comes later reads what is at hand
                await self._wait(call, patience)
        known.pending = await anyio.to_thread.run_sync(self.pending, name)
        self._draw(name)
        return head, known

    async def pictures(self, name: str, patience: float = 20.0) -> dict[str, str]:
        """The pictures; waits for the first ones."""
        known = self._at_hand(name)
        call = self._draw(name)
        if call is not None and not known.drawn_of:
            await self._wait(call, patience)
        return known.pictures

    async def history(self, name: str) -> Any:
        """Answers at all looks."""
        return await self._draughtsman.submit("history", name).answer()

    async def advice(self, name: str) -> Any:
        """What is recommended, what is certain, and what is pending."""
        return await self._draughtsman.submit("advice", name).answer()

    def report(self, name: str) -> Call:
        """Have the report made: the path of an HTML file, to be removed by whoever asked."""
        return self._printer.submit("report", name, self._folder.name)

    def data(self, name: str) -> Call:
        """Have all rows written: the path of a CSV file, to be removed by whoever asked."""
        return self._printer.submit("data", name, self._folder.name)

    # -- writing ------------------------------------------------------------------------------------------------------

    def create(self, given: dict[str, Any]) -> Call:
        """Have a study begun; its name."""
        return self._clerk.submit("create", given)

    def tell(self, name: str, rows: Any) -> Call:
        """Have rows recorded; when the call is finished they are on disk. What was done is under "told"."""
        return self._telling(name, self._clerk.submit("tell", name, rows))

    def ask(self, name: str, count: int) -> Call:
        """Have the next experiments chosen, pending from then on."""
        return self._clerk.submit("ask", name, count)

    def tell_run(self, name: str, run: int, values: dict[str, Any], failed: bool) -> Call:
        """Have the result of a pending run recorded; as ``tell``."""
        return self._telling(name, self._clerk.submit("tell_run", name, run, values, failed))

    def cancel(self, name: str, run: int) -> Call:
        """Have a run withdrawn that will not be made."""
        return self._clerk.submit("cancel", name, run)

    def _telling(self, name: str, call: Call) -> Call:
        def take(future: Any) -> None:
            if future.exception() is None:
                self._take(name, future.result()["answers"])

        call.future.add_done_callback(take)
        return call

    # -- inside -------------------------------------------------------------------------------------------------------

    def _at_hand(self, name: str) -> Known:
        if name not in self._known:
            self._known[name] = Known()
        self._known.move_to_end(name)
        while len(self._known) > _MOST:
            self._known.popitem(last=False)
        return self._known[name]

    def _take(self, name: str, answers: dict[str, Any]) -> None:
        known = self._at_hand(name)
        known.problem = ""
        if known.answers is None or answers["rows_recorded"] >= known.answers["rows_recorded"] or known.stale:
            known.answers, known.stale = answers, False
            self._save()

    def _answer(self, name: str) -> Call | None:
        """Have a study answered, unless that is on its way."""
        known = self._at_hand(name)
        if known.answering is not None and not known.answering.future.done():
            return known.answering

        def take(future: Any) -> None:
            try:
                self._take(name, future.result())
            except (Refused, WorkerDied, RuntimeError) as error:
                known.problem = str(error)

        try:
            known.answering = self._clerk.submit("answers", name)
        except WorkerDied as error:
            known.problem = str(error)
            return None
        known.answering.future.add_done_callback(take)
        return known.answering

    def _draw(self, name: str) -> Call | None:
        """Have a study drawn, unless its pictures are new or on their way."""
        known = self._at_hand(name)
        if known.drawing is not None and not known.drawing.future.done():
            return known.drawing
        numbers = [run["run"] for run in known.pending]
        wanted = "" if known.answers is None else _picture_of(known.answers["fingerprint"], numbers)
        if known.drawn_of and known.drawn_of == wanted:
            return None

        def take(future: Any) -> None:
            try:
                done = future.result()
                known.pictures, known.certain, known.advice = done["svg"], done["certain"], done["advice"]
                known.drawn_of = _picture_of(done["fingerprint"], done["pending"])
            except (Refused, WorkerDied, RuntimeError) as error:
                known.problem = str(error)

        try:
            known.drawing = self._draughtsman.submit("pictures", name)
        except WorkerDied:
            return None
        known.drawing.future.add_done_callback(take)
        return known.drawing

    @staticmethod
    async def _wait(call: Call | None, patience: float) -> None:
        if call is not None:
            with anyio.move_on_after(patience):
                await call.finished()

    # -- the file beside the store ------------------------------------------------------------------------------------

    @property
    def _file(self) -> Path:
        return self.path.with_name(self.path.name + "-page")

    def _save(self, force: bool = False) -> None:
        if self.read_only or (not force and time.monotonic() - self._saved < _SAVE_EVERY):
            return
        self._saved = time.monotonic()
        kept = {name: known.answers for name, known in list(self._known.items()) if known.answers is not None}
        contents = json.dumps({"format": 1, "answers": kept}).encode()

        def put(file: BinaryIO) -> None:
            file.write(contents)

        def write() -> None:
            with contextlib.suppress(OSError, LikesetError):  # a cache
                write_file(self._file, put)

        writing = threading.Thread(target=write, daemon=True)
        writing.start()
        if force:
            writing.join()

    def _load(self) -> None:
        try:
            kept = json.loads(self._file.read_text(encoding="utf-8"))
            for name, answers in kept["answers"].items() if kept["format"] == 1 else ():
                if isinstance(answers["fingerprint"], str) and answers["rows"] and answers["definition"]:
                    self._known[name] = Known(answers=answers, stale=True)
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            self._known.clear()


def _picture_of(fingerprint: str, pending: list[int]) -> str:
    """What a picture is of: rows, and runs that are pending."""
    return "-".join([fingerprint[:16], *map(str, pending)])
