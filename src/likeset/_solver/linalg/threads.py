"""Pinning BLAS to one thread around small matrix work.

The matrices here are small: BLAS threads would cost more than they bring, most of all on a busy machine. After a single
multiplication by two threads the second one keeps a core busy for milliseconds, waiting for more.
"""

from __future__ import annotations

from functools import cache
from types import TracebackType
from typing import Any

from threadpoolctl import ThreadpoolController


class SingleThreadedBlas:
    """Context manager that sets every loaded BLAS to one thread and back; a few microseconds."""

    def __enter__(self) -> None:
        self._changed: list[tuple[Any, int]] = []
        for library in _libraries():
            threads = library.get_num_threads()
            if threads != 1:
                library.set_num_threads(1)
                self._changed.append((library, threads))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for library, threads in self._changed:
            library.set_num_threads(threads)


@cache
def _libraries() -> tuple[Any, ...]:
    # Looked up once, when the libraries that NumPy and SciPy use have long been loaded.
    return tuple(ThreadpoolController().select(user_api="blas").lib_controllers)
