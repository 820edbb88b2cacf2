"""How far a long computation is: a line on standard error, rewritten every half second, after two seconds.

Only where somebody watches, in a terminal or a notebook, and not if ``LIKESET_QUIET`` is set: logs and pipes stay
clean.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import TypeVar

QUIET = "LIKESET_QUIET"
PATIENCE = 2.0  # seconds before anything is shown
EVERY = 0.5  # seconds between two showings

Item = TypeVar("Item")


_inside = 0  # of something that shows its own progress
_meters = 0  # that are running; the outermost one is shown
_listener: Callable[[float], None] | None = None


@contextmanager
def shown_elsewhere() -> Iterator[None]:
    """While a bar, or an outer line, says how far it is: what is inside stays silent."""
    global _inside
    _inside += 1
    try:
        yield
    finally:
        _inside -= 1


@contextmanager
def heard_by(listener: Callable[[float], None]) -> Iterator[None]:
    """Whoever shows it elsewhere is told the share that is done, about every half second."""
    global _listener
    before, _listener = _listener, listener
    try:
        yield
    finally:
        _listener = before


def somebody_watches() -> bool:
    """Whether a line that is rewritten makes sense: a terminal, or a notebook, and nobody asked for silence."""
    if _inside or os.environ.get(QUIET) or sys.stderr is None:
        return False
    with suppress(OSError, ValueError):  # closed
        return bool(sys.stderr.isatty()) or "ipykernel" in sys.modules
    return False


def rewritten(text: str, last: bool = False) -> None:
    """Show a line in the place of the one before; the last one stays away again."""
    with suppress(OSError, ValueError):
        sys.stderr.write(
            "\r" + text.ljust(78)[:110] + ("\r" + " " * min(max(len(text), 78), 110) + "\r" if last else "")
        )
        sys.stderr.flush()


def told(what: str, done: float, total: float, elapsed: float) -> str:
    """What the line says.

    >>> told("updating", 250, 1000, 5.0)
    'likeset: updating 25 %, 15 s left'
    """
    share = done / total if total else 1.0
    left = f", {duration(elapsed * (1 - share) / share)} left" if share > 0 else ""
    return f"likeset: {what} {100 * share:.0f} %{left}"


def duration(seconds: float) -> str:
    """A time as people say it.

    >>> duration(7.2), duration(125), duration(7300)
    ('7 s', '2 min 5 s', '2 h 1 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


@contextmanager
def meter(what: str, total: float) -> Iterator[Callable[[float], None]]:
    """A function that is told how much is done, and shows it once it takes long; inside of another one, nothing.

    >>> with meter("searching", 10) as at:
    ...     at(3)
    """
    global _meters
    began = shown = heard = time.monotonic()
    watched: bool | None = None if _meters == 0 else False
    listener = _listener if _meters == 0 else None
    _meters += 1

    def at(done: float) -> None:
        nonlocal shown, watched, heard
        now = time.monotonic()
        if listener is not None and now - heard > EVERY and total:
            listener(done / total)
            heard = now
        if now - began > PATIENCE and now - shown > EVERY and watched is not False:
            watched = somebody_watches() if watched is None else watched
            if watched:
                rewritten(told(what, done, total, now - began))
                shown = now

    try:
        yield at
    finally:
        _meters -= 1
        if watched and shown != began:
            rewritten("", last=True)


def counted(items: Iterable[Item], total: int, what: str) -> Iterator[Item]:
    """The items, one after the other; how far it is is shown once it takes long. One alone shows what is inside of it.

    >>> list(counted("abc", 3, "reading"))
    ['a', 'b', 'c']
    """
    if total <= 1:
        yield from items
        return
    with meter(what, total) as at:
        for done, item in enumerate(items):
            at(done)
            yield item
