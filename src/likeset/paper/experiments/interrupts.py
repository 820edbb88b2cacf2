"""Ctrl-C that cannot get lost.

An interrupt raises KeyboardInterrupt wherever the program happens to be. Inside a callback from compiled code, or while
an object is being deleted, Python can only print it and go on; compilers turn it into errors of their own. So it is
remembered as well, and whoever runs a long job asks between its steps.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Self


class Interrupts:
    """While this context is open, SIGINT raises KeyboardInterrupt and is remembered.

    >>> from contextlib import suppress
    >>> with Interrupts() as interrupts:
    ...     with suppress(KeyboardInterrupt):           # somebody swallows it
    ...         signal.raise_signal(signal.SIGINT)
    ...     try:
    ...         interrupts.check()
    ...     except KeyboardInterrupt:
    ...         print("stopping")
    stopping

    Python hands signals to the main thread only; in another one this does nothing. It does nothing either where
    SIGINT is ignored, as in jobs that a shell runs in the background.
    """

    def __init__(self) -> None:
        self._seen = False
        self._previous: object = None
        self._installed = False

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            previous = signal.getsignal(signal.SIGINT)
            if previous is not None and previous is not signal.SIG_IGN:
                self._previous, self._installed = previous, True
                signal.signal(signal.SIGINT, self._remember)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._installed:
            signal.signal(signal.SIGINT, self._previous)  # type: ignore[arg-type]
            self._installed = False

    def check(self) -> None:
        """Raise KeyboardInterrupt if there was one, even if somebody swallowed it."""
        if self._seen:
            raise KeyboardInterrupt

    @contextmanager
    def not_errors(self) -> Iterator[None]:
        """Whatever became of an interrupt within this block, an error or nothing, it leaves as an interrupt."""
        try:
            yield
        except Exception:
            self.check()
            raise
        self.check()

    def no_more(self) -> None:
        """The run is stopping anyway: let impatient presses not disturb the last message."""
        if self._installed:
            signal.signal(signal.SIGINT, signal.SIG_IGN)

    def _remember(self, number: int, frame: FrameType | None) -> None:
        self._seen = True
        raise KeyboardInterrupt
