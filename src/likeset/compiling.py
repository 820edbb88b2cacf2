"""Compiled kernels: ``numba.njit``, with a cache on disk where one can be had, and a word where compiling takes long.

Every kernel of the package is made by :func:`njit` of this file. Machine code is kept beside the sources, in the
user's cache folder, or where ``NUMBA_CACHE_DIR`` says. If none of them can be written (a read-only container, no home
folder, a full disk), kernels work all the same and are compiled again in every process.

Once a process has been compiling for a second in all, one line on standard error says so; loading from the cache is not
compiling. In a terminal or a notebook a second line counts kernels and seconds. ``LIKESET_QUIET=1`` silences both,
``likeset warmup`` makes them unnecessary.
"""

from __future__ import annotations

import gc
import hashlib
import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from threading import Thread, Timer
from typing import Any, TypeVar

import numba
from numba.core import event

from likeset.progress import EVERY, QUIET, duration, overheard, rewritten, somebody_listens, somebody_watches

MINUTE = 60.0  # seconds that all kernels together take at most
PATIENCE = 1.0  # seconds of compiling before it is announced
_AGAIN = "no folder for them can be written, so every process compiles again; NUMBA_CACHE_DIR may name one that can"

# The shortcuts reach into numba, so they are taken with versions that they were made for; others compile longer.
_KNOWN = (0, 59), (0, 68)
_KERNEL: dict[str, Any] = {}
_PART: dict[str, Any] = {"cache": True}
if _KNOWN[0] <= numba.version_info.short <= _KNOWN[1]:
    from likeset.numba_pipeline import KernelCompiler, PartCompiler

    _KERNEL, _PART = {"pipeline_class": KernelCompiler}, {"pipeline_class": PartCompiler}

# Files outside of _solver with functions that are linked into kernels (tests/test_first_use.py knows them, too).
_WITH_PARTS = ("compiling.py", "numba_pipeline.py", "curves.py", "losses.py", "elementwise.py", "special.py",
    "families/variational.py")  # fmt: skip

Function = TypeVar("Function", bound=Callable[..., Any])
_folders: set[str] = set()


def njit(**options: Any) -> Callable[[Function], Function]:
    """``numba.njit(**options)``; without a folder that can be written ``cache=True`` means ``cache=False``.

    >>> @njit(cache=False)
    ... def twice(x):
    ...     return x + x
    >>> twice(1.5)
    3.0
    """

    def compiled(function: Function) -> Function:
        try:
            kernel = numba.njit(**options)(function)
        except RuntimeError as error:
            if "no locator available" not in str(error):
                raise
            _announcer.uncached = True
            return numba.njit(**{**options, "cache": False})(function)
        if options.get("cache") and hasattr(kernel, "stats"):  # not if NUMBA_DISABLE_JIT is set
            _folders.add(kernel.stats.cache_path)
            _keep_if_possible(kernel)
        return kernel

    return compiled


# Sums may be reordered, for vector instructions; infinities and NaN keep their meaning.
REORDER = {"reassoc", "contract"}


def kernel(*, allocates: bool = False, **options: Any) -> Callable[[Function], Function]:
    """A function that Python calls, kept on disk; 1 / 0 is inf, as in NumPy.

    What makes compiling slow is the number of statements, and of numba's own functions that they bring. So: loops
    instead of array expressions (numba compiles a function for each operation, those that only word its error
    messages included), memory from the caller, and no ``np.dot`` where Python can do it.

    References to arrays are not counted, which can take longer than a sum over forty rows: numba refuses to compile a
    function that makes an array nevertheless. One that does, or returns one, or calls one that returns one, says that
    it ``allocates``.
    """
    return njit(cache=True, error_model="numpy", no_cfunc_wrapper=True, _nrt=allocates, **_KERNEL, **options)


def inner(*, allocates: bool = False, **options: Any) -> Callable[[Function], Function]:
    """The same for a function that only kernels call: optimised, turned into machine code and kept as a part of them.

    Called from Python nevertheless, it would crash: ``tests/test_first_use.py`` looks for such calls.
    """
    return njit(
        error_model="numpy",
        no_cfunc_wrapper=True,
        no_cpython_wrapper=True,
        _nrt=allocates,
        **_PART,
        **options,
    )


def raised_meanwhile(error: BaseException | None) -> BaseException | None:
    """The interrupt that arrived as a kernel returned: Python hands it over as the cause of a SystemError, or of two.

    ``except Exception`` would take that for a failure, and Ctrl-C would stop nothing.
    """
    found = None
    while isinstance(error, SystemError) and "exception set" in str(error):
        found = error = error.__cause__
    return found


def cache_folder() -> Path | None:
    """The folder below which the kernels loaded so far are kept; None if they cannot be kept."""
    return None if _announcer.uncached or not _folders else Path(os.path.commonpath(_folders))


def compilations() -> int:
    """How many kernels this process has compiled so far; those loaded from the cache do not count."""
    return _announcer.compiled


def say(text: str) -> None:
    """One line on standard error, unless ``LIKESET_QUIET`` is set or there is no standard error."""
    if not os.environ.get(QUIET) and sys.stderr is not None:
        with suppress(OSError, ValueError):  # closed: nobody to tell
            print(f"likeset: {text}", file=sys.stderr, flush=True)


class _Announcer(event.Listener):
    """Hears of each compilation, not of loads from the cache; numba compiles one function at a time, under a lock."""

    def __init__(self) -> None:
        self.uncached = False
        self.compiled = 0
        self._said = False
        self._shown = 0.0  # seconds of compiling until a line about them went away
        self._ticking = False
        self._depth = 0  # compiling a function compiles those it calls
        self._spent = 0.0
        self._collecting = True
        self._since = 0.0
        self._timer: Timer | None = None

    def on_start(self, event: Any) -> None:
        """Numba begins to compile a function."""
        if not _is_ours(event):
            return
        self.compiled += 1
        self._depth += 1
        if self._depth == 1:
            self._since = time.monotonic()
            self._collecting = gc.isenabled()
            gc.disable()  # numba makes millions of objects that live until it is done: 15 % of its time
        if self._depth == 1 and not self._ticking and (somebody_listens() or not os.environ.get(QUIET)):
            self._timer = Timer(max(PATIENCE - (self._spent - self._shown), 0.0), self._announce)
            self._timer.daemon = True
            self._timer.start()

    def on_end(self, event: Any) -> None:
        """Numba has compiled a function, or failed to."""
        if not _is_ours(event):
            return
        self._depth -= 1
        if self._depth == 0:
            if self._collecting:
                gc.enable()
            self._spent += time.monotonic() - self._since
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

    def _announce(self) -> None:
        if not self._said:
            self._said = True
            if self.uncached:
                say(f"compiling kernels, up to a minute; {_AGAIN}.")
            else:
                say(f"compiling kernels, once, up to a minute; kept in {cache_folder()}.")
        if somebody_watches() or somebody_listens():
            self._ticking = True
            Thread(target=self._tick, daemon=True).start()
        else:
            self._shown = self._spent

    def _tick(self) -> None:
        """Show how far it is, for as long as kernels are compiled one after the other."""
        idle, watched = 0.0, somebody_watches()
        while idle < MINUTE / 20:
            busy = self._depth > 0
            idle = 0.0 if busy else idle + EVERY
            if busy:
                spent = self._spent + time.monotonic() - self._since
                left = duration(max(MINUTE - spent, 0.0))
                overheard(f"compiling kernels, once, at most {left} left", None, spent)
                if watched:
                    rewritten(f"likeset: {self.compiled} kernels compiled in {duration(spent)}, at most {left} left")
            time.sleep(EVERY)
        if watched:
            rewritten("", last=True)
        self._shown, self._ticking = self._spent, False

    def lost(self) -> None:
        """Compiled code could not be kept, although its folder seemed writable."""
        if not self.uncached:
            self.uncached = True
            say(f"compiled kernels could not be kept: {_AGAIN}.")


def _is_ours(event: Any) -> bool:
    return str(event.data["dispatcher"].py_func.__module__).startswith("likeset.")


def _keep_if_possible(kernel: Any) -> None:
    """Make a cache that cannot be used cost a compilation, not the call.

    A full disk: the kernel is compiled when numba goes to save it. What another release left behind may name classes
    that are gone, and what a crash left behind may be torn: numba reads it before it looks whose it is.
    """
    cache = kernel._cache
    if _KERNEL:
        cache._cache_file._source_stamp = cache._cache_file._source_stamp, _stamp_of_parts()
    load, save = cache.load_overload, cache.save_overload

    def load_overload(signature: Any, target: Any) -> Any:
        try:
            return load(signature, target)
        except Exception:
            with suppress(OSError):
                os.unlink(cache._cache_file._index_path)
            return None

    def save_overload(signature: Any, compiled: Any) -> None:
        try:
            save(signature, compiled)
        except OSError:
            _announcer.lost()

    cache.load_overload, cache.save_overload = load_overload, save_overload


@cache
def _stamp_of_parts() -> str:
    """When the files were written that hold parts of kernels, wherever these kernels are.

    Numba compiles a kernel again if its own file has changed, and does not know what was linked into it from others.
    """
    package = Path(__file__).parent
    files = [*package.glob("_solver/**/*.py"), *(package / name for name in _WITH_PARTS)]
    found = [(file.relative_to(package).as_posix(), file.stat()) for file in files if file.exists()]
    written = sorted((name, status.st_mtime_ns, status.st_size) for name, status in found)
    return hashlib.sha256(repr(written).encode()).hexdigest()


_announcer = _Announcer()
event.register("numba:compile", _announcer)  # type: ignore[no-untyped-call]
