"""Pinning BLAS to one thread around small matrix work.

The matrices here are small: BLAS threads would cost more than they bring, most of all on a busy machine. After a single
multiplication by two threads the second one keeps a core busy for milliseconds, waiting for more.
"""

from __future__ import annotations

import threading
import weakref
from functools import cache
from types import TracebackType
from typing import Any

from threadpoolctl import ThreadpoolController

from likeset.compiling import raised_meanwhile


class _Outermost(threading.local):
    """The context that pinned BLAS for this thread; weakly, so that one left by an interrupt on entry is forgotten."""

    context: weakref.ref[SingleThreadedBlas] | None = None


_outermost = _Outermost()


class SingleThreadedBlas:
    """Context manager that sets every loaded BLAS to one thread and back; a few microseconds, none inside another.

    The setting is the process's: where another thread of Python puts it back in between, work is slower, not wrong.
    An interrupt during the work leaves as what it is, whatever compiled code made of it.
    """

    def __enter__(self) -> None:
        self._changed: list[tuple[Any, int]] | None = None
        if _outermost.context is not None and _outermost.context() is not None:
            return
        self._changed = []
        _outermost.context = weakref.ref(self)
        for library in _libraries():
            threads = library.get_num_threads()
            if threads != 1:
                library.set_num_threads(1)
                self._changed.append((library, threads))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._changed is not None:
            _outermost.context = None
            for library, threads in self._changed:
                library.set_num_threads(threads)
        if kind is SystemError and (interrupt := raised_meanwhile(error)) is not None:
            raise interrupt from None


@cache
def _libraries() -> tuple[Any, ...]:
    # Looked up once, when the libraries that NumPy and SciPy use have long been loaded.
    return tuple(ThreadpoolController().select(user_api="blas").lib_controllers)
