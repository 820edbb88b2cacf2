"""Replacing a file at once and for good: readers see the old contents or the new, also after a crash or power failure.

The new contents go to a temporary file in the same folder, with a name nobody can guess, which is synchronised to disk,
renamed over the target, and the folder synchronised, too. A killed process leaves its temporary file behind; the next
save to the same target removes it once it is an hour old and no living process holds its lock.
"""

from __future__ import annotations

import contextlib
import csv
import errno
import hashlib
import io
import os
import secrets
import stat
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, BinaryIO

try:
    import fcntl
except ImportError:  # Windows: orphans are told by their age alone
    fcntl = None  # type: ignore[assignment]

ORPHAN_AGE = 3600.0  # seconds after which a temporary file without a living writer is removed
_EXCLUSIVE = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
_NO_FOLDER_SYNC = {errno.EINVAL, errno.ENOTSUP, errno.EACCES, errno.EBADF, errno.EISDIR, errno.EPERM}


def replace_file(path: Path, write: Callable[[BinaryIO], None]) -> None:
    """Replace what ``path`` names by what ``write(stream)`` writes, or leave it as it is; raises OSError.

    Where ``path`` is a link, the file it points to is replaced and the link stays. An existing file keeps its mode and,
    where the process may do that, its owner.
    """
    target = _followed(path)
    existing = _existing(target)
    _remove_orphans(target)
    temporary = target.with_name(f"{_prefix(target)}{secrets.token_hex(16)}.part")
    # A private file until it has the mode of the old one; a new file gets what the umask allows.
    descriptor = os.open(temporary, _EXCLUSIVE, 0o666 if existing is None else 0o600)
    try:
        with open(descriptor, "w+b") as stream:  # closes the descriptor
            _lock(stream)
            write(stream)
            stream.flush()
            if existing is not None:
                _keep_mode_and_owner(descriptor, existing)
            os.fsync(descriptor)
        os.replace(temporary, target)
    except BaseException:  # also an interrupt leaves nothing behind
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    _synchronise_folder(target.parent)


def write_file(path: Path, write: Callable[[BinaryIO], None]) -> None:
    """The same, except that what is no file, such as a pipe or a terminal, is simply written to; raises OSError."""
    if path.exists() and not path.is_file():
        with open(path, "wb") as stream:
            write(stream)
    else:
        replace_file(path, write)


def write_table(path: Path, lines: Iterable[Iterable[Any]]) -> None:
    """Write lines as CSV."""

    def write(stream: BinaryIO) -> None:
        text = io.TextIOWrapper(stream, encoding="utf-8", newline="")
        csv.writer(text).writerows(lines)
        text.detach()

    write_file(path, write)


def write_picture(path: Path, figure: Any, **options: Any) -> None:
    """Write a figure of matplotlib in the format that the ending of the path says, PNG if there is none."""
    ending = path.suffix[1:] or "png"
    write_file(path, lambda stream: figure.savefig(stream, format=ending, **options))


def _followed(path: Path) -> Path:
    target = Path(os.path.realpath(path)) if path.is_symlink() else path
    if target.is_symlink():
        raise OSError(errno.ELOOP, "too many links", str(path))
    return target


def _existing(target: Path) -> os.stat_result | None:
    try:
        found = os.lstat(target)
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, "is a folder", str(target))
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, "is no regular file", str(target))
    return found


def _keep_mode_and_owner(descriptor: int, existing: os.stat_result) -> None:
    if hasattr(os, "fchown"):
        with contextlib.suppress(OSError):  # only the administrator may give files away
            os.fchown(descriptor, existing.st_uid, existing.st_gid)
    if hasattr(os, "fchmod"):
        os.fchmod(descriptor, stat.S_IMODE(existing.st_mode) & 0o777)


def _prefix(target: Path) -> str:
    """How the names of temporary files for a target begin: of fixed length, since the target's may be the longest."""
    return f".likeset-{hashlib.sha256(os.fsencode(target.name)).hexdigest()[:16]}-"


def _remove_orphans(target: Path) -> None:
    prefix, before = _prefix(target), time.time() - ORPHAN_AGE
    with contextlib.suppress(OSError):  # nothing here may keep a save from happening
        for entry in os.scandir(target.parent):
            if entry.name.startswith(prefix) and entry.name.endswith(".part"):
                with contextlib.suppress(OSError):
                    if entry.stat(follow_symlinks=False).st_mtime < before and not _is_locked(entry.path):
                        os.unlink(entry.path)


def _lock(stream: BinaryIO) -> None:
    if fcntl is not None:
        with contextlib.suppress(OSError):  # some network file systems know no locks
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _is_locked(path: str) -> bool:
    if fcntl is None:
        return False
    descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def _synchronise_folder(folder: Path) -> None:
    if not hasattr(os, "O_DIRECTORY"):
        return  # Windows keeps renames in its journal
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        if error.errno not in _NO_FOLDER_SYNC:  # file systems that cannot synchronise folders say so in these ways
            raise
