"""How far a long computation is: a line on standard error, rewritten every half second, after two seconds.

Only where somebody watches, in a terminal or a notebook, and not if ``LIKESET_QUIET`` is set: logs and pipes stay
clean.
"""

from __future__ import annotations

import math
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import TypeVar

QUIET = "LIKESET_QUIET"
PATIENCE = 2.0  # seconds before anything is shown
EVERY = 0.5  # seconds between two showings

Item = TypeVar("Item")


class _Meter:
    """A meter that is running."""


Listener = Callable[[str, float | None, float], None]
"""Told what is being done, the share that is done (None: not known), and for how many seconds that is going on."""

_inside = 0  # of something that shows its own progress
_outermost: weakref.ref[_Meter] | None = None  # the meter that is shown; weakly, should an interrupt lose it
_around: Callable[[float], None] | None = None  # the item that is being worked on, told its share by a meter inside
_listener: Listener | None = None
_ended = -math.inf  # when the last outermost meter ended
_quiet_since = 0.0  # when the first of those began that followed each other at once
_working = False  # inside of ``working``
_running: tuple[str, float, float, float] | None = None  # what the outermost meter was told last, and when it began
_line_at = -math.inf  # when a line was shown last


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
def heard_by(listener: Listener) -> Iterator[None]:
    """Whoever shows it elsewhere is told what is being done and how far it is, about every half second."""
    global _listener
    before, _listener = _listener, listener
    try:
        yield
    finally:
        _listener = before


def overheard(what: str, share: float | None, elapsed: float) -> None:
    """Tell whoever shows it elsewhere, if anybody does; for what keeps no meter, as compiling does."""
    if _listener is not None:
        _listener(what, share, elapsed)


def somebody_listens() -> bool:
    """Whether it is shown elsewhere."""
    return _listener is not None


def somebody_watches() -> bool:
    """Whether a line that is rewritten makes sense: a terminal, or a notebook, and nobody asked for silence."""
    return not _inside and _can_be_watched()


def _can_be_watched() -> bool:
    if os.environ.get(QUIET) or sys.stderr is None:
        return False
    with suppress(OSError, ValueError):  # closed
        return bool(sys.stderr.isatty()) or "ipykernel" in sys.modules
    return False


def rewritten(text: str, last: bool = False) -> None:
    """Show a line in the place of the one before; the last one stays away again."""
    global _line_at
    _line_at = -math.inf if last else time.monotonic()
    with suppress(OSError, ValueError):
        sys.stderr.write(
            "\r" + text.ljust(78)[:110] + ("\r" + " " * min(max(len(text), 78), 110) + "\r" if last else "")
        )
        sys.stderr.flush()


def told(what: str, done: float, total: float, elapsed: float) -> str:
    """What the line says.

    >>> told("updating", 250, 1000, 5.0), told("reading rows", 12000, math.inf, 5.0)
    ('likeset: updating 25 %, 15 s left', 'likeset: reading rows, 12,000 so far')
    """
    if math.isinf(total):
        return f"likeset: {so_far(what, done)}"
    share = done / total if total else 1.0
    return f"likeset: {shared(what, share, elapsed * (1 - share) / share if share > 0 else None)}"


def shared(what: str, share: float, left: float | None) -> str:
    """What is being done, the share that is done, and the seconds left, if they can be told.

    >>> shared("updating", 0.25, 15.0), shared("updating", 0.0, None)
    ('updating 25 %, 15 s left', 'updating 0 %')
    """
    return f"{what} {100 * share:.0f} %{'' if left is None else f', {duration(left)} left'}"


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


def so_far(what: str, done: float) -> str:
    """What is being done, and how much of it, where nobody knows how much there is."""
    return f"{what}, {done:,.0f} so far"


def metering() -> bool:
    """Whether a meter is running."""
    return _outermost is not None and _outermost() is not None


@contextmanager
def meter(what: str, total: float) -> Iterator[Callable[[float], None]]:
    """A function that is told how much is done, and shows it once it takes long.

    ``total`` may be infinite: not known. Inside of another one nothing is shown; one that goes through items
    (:func:`counted`) hears the share of its item. Of several that follow each other at once the two seconds are counted
    from the beginning of the first.

    >>> with meter("searching", 10) as at:
    ...     at(3)
    """
    global _outermost, _around, _quiet_since, _ended, _running
    this, outermost = _Meter(), not metering()
    began = shown = heard = time.monotonic()
    if outermost and not _working and began - _ended > EVERY:
        _quiet_since = began
    since = _quiet_since
    watched: bool | None = None if outermost and not _inside else False
    listener = _listener if outermost else None
    around, _around = _around, None
    if outermost:
        _outermost = weakref.ref(this)

    def at(done: float) -> None:
        nonlocal shown, watched, heard
        global _running
        now = time.monotonic()
        if outermost:
            _running = what, done, total, began
        if around is not None and total:
            around(min(done / total, 1.0))
        if listener is not None and now - heard > EVERY and total:
            if math.isinf(total):
                listener(so_far(what, done), None, now - began)
            else:
                listener(what, done / total, now - began)
            heard = now
        if now - since > PATIENCE and now - shown > EVERY and watched is not False:
            watched = _can_be_watched() if watched is None else watched
            if watched:
                rewritten(told(what, done, total, now - began))
                shown = now

    try:
        yield at
    finally:
        _around = around
        if outermost:
            _outermost, _running, _ended = None, None, time.monotonic()
        if listener is not None and heard != began:
            listener("", None, 0.0)  # what comes now keeps no meter
        if watched and shown != began:
            rewritten("", last=True)


@contextmanager
def working(what: str) -> Iterator[None]:
    """While something goes on that consists of several parts, some without a meter: what it is, and for how long.

    Meters inside show how far they are as soon as all of it has taken two seconds; while nothing else is shown, and a
    step of a meter takes long, a thread keeps the line up to date. For whole tasks, not for what is done in a loop.
    """
    global _working, _quiet_since
    if _working or metering() or not somebody_watches():
        yield
        return
    began = _quiet_since = time.monotonic()
    _working, ended = True, threading.Event()
    showing = threading.Thread(target=_keep_shown, args=(what, began, ended), daemon=True)
    showing.start()
    try:
        yield
    finally:
        _working = False
        ended.set()
        showing.join()


def _keep_shown(what: str, began: float, ended: threading.Event) -> None:
    own = -math.inf  # when this thread wrote its line last
    pause = max(PATIENCE, 0.0)
    while not ended.wait(pause):
        pause = max(EVERY, 0.01)
        if _line_at > own and time.monotonic() - _line_at < PATIENCE:  # somebody else says how far it is
            continue
        now, running = time.monotonic(), _running
        if running is None:
            rewritten(f"likeset: {what}, for {duration(now - began)} so far")
        else:
            rewritten(told(*running[:3], now - running[3]))
        own = _line_at
    if own == _line_at > -math.inf:
        rewritten("", last=True)


@contextmanager
def part(at: Callable[[float], None], begin: float, end: float) -> Iterator[None]:
    """While something is done that takes what a meter measures from ``begin`` to ``end``: meters inside tell it more.

    They may come one after the other, and what they tell never falls.
    """
    global _around
    most = 0.0

    def around(share: float) -> None:
        nonlocal most
        most = max(most, share)
        at(begin + most * (end - begin))

    before, _around = _around, around
    at(begin)
    try:
        yield
    finally:
        _around = before


def counted(items: Iterable[Item], total: int, what: str) -> Iterator[Item]:
    """The items, one after the other; how far it is is shown once it takes long. One alone shows what is inside of it.

    >>> list(counted("abc", 3, "reading"))
    ['a', 'b', 'c']
    """
    if total <= 1:
        yield from items
        return
    global _around
    done, most = 0, 0.0

    def around(share: float) -> None:
        """What is inside of an item, perhaps one thing after the other, says how much of it is done."""
        nonlocal most
        if share > most:
            most = share
            at(done + share)

    with meter(what, total) as at:
        _around = around
        for done, item in enumerate(items):
            most = 0.0
            at(done)
            yield item
