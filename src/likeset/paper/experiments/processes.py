"""Cells on worker processes of this machine, each with single-threaded BLAS.

One thread per worker hands it a cell and waits for the outcome. A worker that vanishes (killed by the system for want
of memory, or by hand) costs a second try of its cell: the thread starts another worker and puts the cell at the end of
the queue. The second time the cell counts as failed; all others go on.
"""

from __future__ import annotations

import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress

from likeset.paper.experiments.cells import Cell
from likeset.paper.experiments.running import Executor, Outcome, compute

_TRIES = 2
_PROGRAM = "import sys; sys.path[:] = {path!r}; from likeset.paper.experiments.worker import serve; serve()"
_ONE_THREAD = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL", "BLIS", "NUMEXPR", "NUMBA")}
_ONE_THREAD["VECLIB_MAXIMUM_THREADS"] = "1"


def on_processes(jobs: int, work: Callable[[Cell], Outcome] = compute) -> Executor:
    """On ``jobs`` worker processes; ``work`` is what they do with a cell, a function that can be imported."""

    def execute(cells: Sequence[Cell]) -> Generator[Outcome]:
        crew = _Crew(cells, work)
        try:
            yield from crew.outcomes(min(jobs, len(cells)))
        finally:
            crew.dismiss()

    return execute


class _Worker:
    """A process that computes one cell at a time."""

    def __init__(self) -> None:
        path = [os.path.abspath(entry) for entry in sys.path]
        self._process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM.format(path=path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **_ONE_THREAD},
            start_new_session=True,  # the terminal sends ctrl-C to its foreground group: to the parent only
            creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
        )

    def run(self, work: Callable[[Cell], Outcome], cell: Cell) -> Outcome:
        """The outcome of a cell; ``_LostError`` if the process ended before it had one."""
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            pickle.dump((work, cell), self._process.stdin)
            self._process.stdin.flush()
            outcome: Outcome = pickle.load(self._process.stdout)
        except (OSError, EOFError, pickle.UnpicklingError) as error:
            self.kill()
            raise _LostError(_manner_of_death(self._process.wait())) from error
        return outcome

    def kill(self) -> None:
        """End the process now; harmless if it ended already."""
        self._process.kill()

    def bury(self) -> None:
        """Kill, wait for the end, close the pipes."""
        self.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            with suppress(OSError):  # unsent bytes for a process that is gone
                stream.close()


class _LostError(Exception):
    """A worker ended without an answer."""


class _Crew:
    """Workers with the cells that wait for them and the outcomes that wait for us."""

    def __init__(self, cells: Sequence[Cell], work: Callable[[Cell], Outcome]) -> None:
        self._work = work
        self._waiting = deque((cell, 1) for cell in cells)
        self._outcomes: queue.SimpleQueue[Outcome | BaseException] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._workers: set[_Worker] = set()
        self._threads: list[threading.Thread] = []
        self._dismissed = False

    def outcomes(self, jobs: int) -> Generator[Outcome]:
        """Outcomes as they come in, one per cell."""
        count = len(self._waiting)
        self._threads = [threading.Thread(target=self._attend, daemon=True) for _ in range(jobs)]
        for thread in self._threads:
            thread.start()
        for _ in range(count):
            yield self._next_outcome()

    def dismiss(self) -> None:
        """Stop all workers, busy or not."""
        with self._lock:
            self._dismissed = True
            for worker in self._workers:
                worker.kill()
        for thread in self._threads:
            if thread.ident is not None:
                thread.join()

    def _next_outcome(self) -> Outcome:
        while True:
            try:
                outcome = self._outcomes.get(timeout=0.5)  # endless waits cannot be interrupted on Windows
            except queue.Empty:
                continue
            if isinstance(outcome, BaseException):
                raise outcome
            return outcome

    def _attend(self) -> None:
        """Keep one worker busy until no cells wait; in a thread of its own."""
        worker: _Worker | None = None
        try:
            while (task := self._next_task()) is not None:
                cell, attempt = task
                try:
                    worker = worker or self._hire()
                    outcome = worker.run(self._work, cell)
                except _LostError as loss:
                    self._lay_off(worker)
                    worker = None
                    if attempt < _TRIES:
                        self._waiting.append((cell, attempt + 1))  # taken by this thread at the latest
                        continue
                    outcome = Outcome(cell, None, f"its worker was killed, {attempt} times in a row: {loss}\n")
                self._outcomes.put(outcome)
        except BaseException as error:
            self._outcomes.put(error)
        finally:
            self._lay_off(worker)

    def _next_task(self) -> tuple[Cell, int] | None:
        try:
            return None if self._dismissed else self._waiting.popleft()
        except IndexError:
            return None

    def _hire(self) -> _Worker:
        with self._lock:  # one at a time: no worker inherits the pipes of another
            if self._dismissed:
                raise _LostError("dismissed")
            try:
                worker = _Worker()
            except OSError as error:
                raise _LostError(f"it could not be started ({error})") from error
            self._workers.add(worker)
        return worker

    def _lay_off(self, worker: _Worker | None) -> None:
        if worker is not None:
            with self._lock:
                self._workers.discard(worker)
            worker.bury()


def _manner_of_death(code: int) -> str:
    if code >= 0:
        return f"it ended with exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    return f"it got {name}; the system sends SIGKILL where memory runs out"
