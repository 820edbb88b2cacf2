"""What takes longer than a page waits: kept under a number that cannot be guessed, until its answer was fetched.

A request that begins a call waits a moment for it (:data:`PATIENCE`). If that is not enough, a browser is led to a page
that shows how far the call is (``/waiting``), and from there to the answer; loading that page again begins nothing.
Programs wait until the answer is there. Jobs that are finished are kept for ten minutes, and not more than so many.
"""

from __future__ import annotations

import os
import secrets
import threading
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from likeset.extras import optional_packages
from likeset.web.worker import Call, Refused

with optional_packages():
    import anyio
    from starlette.requests import Request
    from starlette.responses import Response

PATIENCE = 1.5  # seconds that a browser waits for the answer itself
MOST_UNFINISHED = 100
MOST_KEPT = 40  # that are finished
SECONDS_KEPT = 600.0


@dataclass(frozen=True)
class File:
    """What a job leaves to be fetched: its name and media type, the address that makes it anew, of which rows it is."""

    name: str
    kind: str
    again: str
    fingerprint: str


@dataclass(eq=False)
class Job:
    """A call on the page's behalf.

    ``title`` says what is being done, ``study`` for which study; ``answer`` makes the response once the call is
    finished. What leaves a ``file`` does not change the store; what the call returned is then its path.
    """

    title: str
    study: str
    call: Call
    answer: Callable[[Request, Job], Awaitable[Response]]
    file: File | None = None
    number: str = ""
    owner: str = ""
    finished_at: float | None = None
    fetching: int = 0
    fetched: bool = False

    @property
    def failed(self) -> bool:
        """Whether its call ended with an error."""
        future = self.call.future
        return future.done() and future.exception() is not None

    @property
    def path(self) -> Path:
        """Where its file is."""
        return Path(self.call.future.result())

    def discard(self) -> None:
        """Remove its file, if it left one."""
        if self.file is not None and self.call.future.done() and not self.failed:
            with suppress(OSError):
                os.unlink(self.path)

    def state(self) -> dict[str, Any]:
        """How far it is, as plain data."""
        call = self.call
        if call.future.done():
            return {"finished": True, "share": 1.0, "text": "finished"}
        return {"finished": False, "share": call.share, "text": call.text}


class Jobs:
    """All jobs of the server that somebody waits for, or may come back for."""

    def __init__(self) -> None:
        self._jobs: dict[str, Job] = {}
        self._lock = threading.Lock()
        self._clock: threading.Timer | None = None
        self._closed = False

    def begun(self, start: Callable[[], Call]) -> Call:
        """A new call, if not too many are waited for already; nothing has been done then."""
        with self._lock:
            unfinished = sum(job.finished_at is None for job in self._jobs.values())
        if unfinished >= MOST_UNFINISHED:
            raise Refused("Busy", f"{unfinished} others wait for their answers. Nothing was done; try again later.")
        return start()

    def underway(self, file: File, owner: str) -> Job | None:
        """The job of this owner that makes the same file, or has made it; one that failed is begun again."""
        with self._lock:
            own = (job for job in self._jobs.values() if job.file == file and job.owner == owner)
            return next((job for job in own if not job.fetched and not job.failed), None)

    async def is_quick(self, job: Job, owner: str, patience: float) -> bool:
        """Wait for a job, so many seconds; one that takes longer is kept for its owner, to come back for."""
        with anyio.move_on_after(patience):
            await job.call.finished()
            return True
        job.number, job.owner = secrets.token_urlsafe(18), owner
        with self._lock:
            self._jobs[job.number] = job
        job.call.future.add_done_callback(lambda _: self._finished(job))
        return False

    def find(self, number: str, owner: str) -> Job:
        """The job of this number, if it is of this owner."""
        with self._lock:
            job = self._jobs.get(number)
        if job is None or job.owner != owner:
            raise Refused(
                "NotFound",
                "Nothing of this number is being waited for: it was finished more than ten minutes ago, was begun by "
                "somebody else, or by a server that has been restarted since. What was recorded is in the study.",
            )
        return job

    def sent(self, job: Job) -> None:
        """Its file has been sent; it goes, unless somebody else is just being sent it."""
        job.fetching -= 1
        if job.fetching <= 0:
            job.fetched = True
            job.discard()

    def close(self) -> None:
        """Forget everything."""
        with self._lock:
            self._closed = True
            jobs, self._jobs = list(self._jobs.values()), {}
            if self._clock is not None:
                self._clock.cancel()
        for job in jobs:
            job.discard()

    def _finished(self, job: Job) -> None:
        job.finished_at = time.monotonic()
        self._sweep()

    def _sweep(self) -> None:
        """Forget what is too old, and the oldest of too many; look again when the next one is due."""
        now = time.monotonic()
        with self._lock:
            done = [job for job in self._jobs.values() if job.finished_at is not None]
            done.sort(key=lambda job: job.finished_at or 0.0)
            old = [job for job in done if now - (job.finished_at or 0.0) >= SECONDS_KEPT]
            gone = done[: max(len(old), len(done) - MOST_KEPT)]
            for job in gone:
                del self._jobs[job.number]
            if self._clock is not None:
                self._clock.cancel()
                self._clock = None
            if len(done) > len(gone) and not self._closed:
                due = (done[len(gone)].finished_at or 0.0) + SECONDS_KEPT - now
                self._clock = threading.Timer(max(due, 0.0) + 0.1, self._sweep)
                self._clock.daemon = True
                self._clock.start()
        for job in gone:
            job.discard()


def wants_pages(request: Request) -> bool:
    """Whether who asks reads pages, as browsers do; programs get the answer itself, however long it takes.

    >>> from types import SimpleNamespace
    >>> wants_pages(SimpleNamespace(headers={"accept": "text/html,*/*"})), wants_pages(SimpleNamespace(headers={}))
    (True, False)
    """
    return "text/html" in request.headers.get("accept", "")
