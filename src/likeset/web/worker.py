"""A process that works through calls one after the other, so that the page never waits for a computation.

Calls go through a pipe, answers and progress come back through it. A thread writes to the pipe: one that is full,
since the process is busy, must not keep the server waiting. The process ends when its parent does (the pipe closes),
even by ``kill -9``; if it dies by itself, what it was busy with fails with :class:`WorkerDied`, and the next call
starts another one.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import queue
import signal
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.reduction import ForkingPickler
from typing import Any

from likeset.errors import LikesetError
from likeset.extras import optional_packages
from likeset.progress import duration, heard_by, shared

with optional_packages():
    import anyio


_TOO_DEEP = "what was sent is nested too deeply; rows are lists of {column: value}."


class WorkerDied(Exception):
    """The process that was computing is gone: killed, or out of memory."""


class Refused(Exception):
    """An error of likeset's own, as the worker raised it: ``kind`` its class, ``text`` what it says."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind, self.text = kind, text


@dataclass
class Call:
    """One call: what it will return, since when it is worked on, how far it has got (``share`` None: not known)."""

    future: Future[Any]
    queue: Mapping[int, Call] = field(default_factory=dict, repr=False)  # of the worker, the one it is busy with first
    made: float = field(default_factory=time.monotonic)
    began: float | None = None  # None: the worker is busy with another one
    what: str = ""
    share: float | None = None
    _elapsed: float = 0.0  # of what is being done, when the worker said how far it was
    _heard: float = 0.0

    async def finished(self) -> None:
        """Wait until it is."""
        done = anyio.Event()
        token = anyio.lowlevel.current_token()
        self.future.add_done_callback(lambda _: _wake(token, done))
        if not self.future.done():
            await done.wait()

    async def answer(self) -> Any:
        """What it returns, awaited; an abandoned request does not stop it."""
        await self.finished()
        return self.future.result()

    def hear(self, what: str, share: float | None, elapsed: float) -> None:
        """How far it is, as the worker says; the first time, that it begins."""
        self._heard = time.monotonic()
        self.began = self.began or self._heard
        self.what, self.share, self._elapsed = what, share, elapsed

    @property
    def seconds_left(self) -> float | None:
        """An estimate of what is being done now, from what has been done of it so far."""
        if self.share is None or not 0.02 <= self.share < 1.0:
            return None
        left = self._elapsed * (1.0 - self.share) / self.share
        return max(left - (time.monotonic() - self._heard), 0.0)

    @property
    def text(self) -> str:
        """What is being done and how far it is, for people; while it waits, of what comes before it."""
        if self.began is None:
            before = next((call for call in list(self.queue.values()) if not call.future.done()), None)
            if before is None or before is self or before.began is None:
                return "a process that computes is being started"
            return f"waiting for its turn; before it: {before.text}"
        if self.share is not None:
            return shared(self.what, self.share, self.seconds_left)
        seconds = time.monotonic() - self.began
        taken = f"for {duration(seconds)} so far" if seconds >= 1.0 else "just begun"
        return f"{self.what}, {taken}" if self.what else taken


class Worker:
    """A process that holds ``make(*arguments)`` and calls its methods, one after the other."""

    def __init__(self, make: Callable[..., Any], *arguments: Any) -> None:
        self._make, self._arguments = make, arguments
        self._lock = threading.Lock()
        self._calls: dict[int, Call] = {}
        self._number = 0
        self._process: Any = None
        self._pipe: Connection | None = None
        self._to_send: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._closed = False

    @property
    def process_id(self) -> int | None:
        """Of the process, if it runs."""
        return None if self._process is None else self._process.pid

    def submit(self, method: str, *arguments: Any) -> Call:
        """Have a method called; the call knows how far it is."""
        with self._lock:
            if self._closed:
                raise WorkerDied("the server is shutting down")
            if self._process is None or not self._process.is_alive() or self._pipe is None:
                self._start()
            self._number += 1
            try:
                said = bytes(ForkingPickler.dumps((self._number, method, arguments)))
            except RecursionError:
                raise Refused("InvalidArgumentError", _TOO_DEEP) from None
            call = self._calls[self._number] = Call(Future(), self._calls)
            self._to_send.put(said)
        return call

    def close(self) -> None:
        """End the process, when it has finished what it is busy with, or after a second."""
        with self._lock:
            self._closed = True
            pipe, process, self._pipe, self._process = self._pipe, self._process, None, None
            self._to_send.put(None)
        if pipe is not None:
            pipe.close()
        if process is not None:
            process.join(1.0)
            if process.is_alive():
                process.terminate()
                process.join(5.0)

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(target=_work, args=(theirs, self._make, self._arguments), daemon=True)
        process.start()
        theirs.close()
        self._process, self._pipe = process, ours
        self._to_send.put(None)  # for the thread of a process that died
        self._to_send = queue.SimpleQueue()
        threading.Thread(target=self._speak, args=(ours, self._to_send), daemon=True).start()
        threading.Thread(target=self._listen, args=(ours,), daemon=True).start()

    @staticmethod
    def _speak(pipe: Connection, to_send: queue.SimpleQueue[bytes | None]) -> None:
        """Write calls to the pipe; one that is gone is noticed by the thread that listens."""
        with contextlib.suppress(OSError):
            while (said := to_send.get()) is not None:
                pipe.send_bytes(said)

    def _listen(self, pipe: Connection) -> None:
        """Hand out answers, until the pipe is closed from either side."""
        while True:
            try:
                number, kind, value = pipe.recv()
            except (EOFError, OSError, TypeError):  # TypeError: closed while it was being read
                break
            with self._lock:
                call = self._calls.get(number) if kind == "progress" else self._calls.pop(number, None)
            if call is None:
                continue
            if kind == "progress":
                call.hear(*value)
            elif kind == "refused":
                call.future.set_exception(Refused(*value))
            elif kind == "failed":
                call.future.set_exception(RuntimeError(value))
            else:
                call.future.set_result(value)
        with self._lock:
            if self._pipe is pipe:
                self._pipe = None
            lost, self._calls = list(self._calls.values()), {}
        for call in lost:
            call.future.set_exception(WorkerDied("the process that computes is gone; try again"))


def _wake(token: Any, event: Any) -> None:
    with contextlib.suppress(RuntimeError):  # the loop is gone
        anyio.from_thread.run_sync(event.set, token=token)


def _work(pipe: Connection, make: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # ctrl-C is the parent's to handle; the pipe then closes
    with contextlib.suppress(OSError, AttributeError):
        os.nice(5)  # who reads pages comes first
    target = make(*arguments)
    speaking = threading.Lock()  # how far compiling is comes from a thread of its own

    def send(number: int, kind: str, value: Any) -> None:
        with speaking:
            pipe.send((number, kind, value))

    while True:
        try:
            number, method, given = pipe.recv()
            send(number, "progress", ("", None, 0.0))
        except (EOFError, OSError):
            return

        def said(what: str, share: float | None, elapsed: float, number: int = number) -> None:
            with contextlib.suppress(OSError):  # nobody listens any more: the work is finished all the same
                send(number, "progress", (what, share, elapsed))

        try:
            with heard_by(said):
                answer = (number, "done", getattr(target, method)(*given))
        except LikesetError as error:
            answer = (number, "refused", (type(error).__name__, str(error)))
        except Refused as error:
            answer = (number, "refused", (error.kind, error.text))
        except RecursionError:
            answer = (number, "refused", ("InvalidArgumentError", _TOO_DEEP))
        except Exception as error:
            answer = (number, "failed", f"{type(error).__name__}: {error}")
        try:
            send(*answer)
        except OSError:
            return
