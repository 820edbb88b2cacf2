"""Changes that happen or do not: one lock, one way back, and the journal of a durable sequence between the two.

The order is: change everything in memory, keeping what is overwritten; write the journal; forget the way back. Each of
the two commits is a single step, so an interrupt finds the old state, or the new one, or learns from the journal which
of the two it is.
"""

from __future__ import annotations

import copy
import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self

from likeset.compiling import raised_meanwhile
from likeset.errors import LikesetError
from likeset.undo import Undo

if TYPE_CHECKING:
    from likeset.evidence.running import Running
    from likeset.persistence.durable import DurableRecord
    from likeset.voices.base import Voices

_NOT_COPIED = ("_lock", "_durable")


class Atomic:
    """What makes the changes of sequences and comparison sets atomic, for threads and interrupts."""

    _set: Any  # the snapshot, immutable; None until asked for

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._pending: Undo | None = None  # the way back, while a change is being made

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """An independent copy in the same state; in memory, also of what is durable."""
        with self._lock:
            self._settle()
            other = type(self).__new__(type(self))
            memo[id(self)] = other
            memo[id(self._set)] = self._set  # immutable
            other.__setstate__({k: copy.deepcopy(v, memo) for k, v in self.__dict__.items() if k not in _NOT_COPIED})
        return other

    def __getstate__(self) -> dict[str, Any]:
        with self._lock:
            self._settle()
            # Copied here, since what is pickled after this may be updated by another thread meanwhile.
            return copy.deepcopy({k: v for k, v in self.__dict__.items() if k not in _NOT_COPIED})

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.RLock()

    def _all_or_nothing(self, change: Callable[[Undo], None]) -> None:
        """Make a change that keeps in ``undo`` whatever it overwrites; take it back unless it gets through."""
        undo = Undo(self._extent())
        self._pending = undo
        try:
            change(undo)
            self._pending = None  # from here on the change counts
        except BaseException as error:  # an interrupt, too
            self._roll_back()
            if (interrupt := raised_meanwhile(error)) is not None:
                raise interrupt from None
            raise

    def _roll_back(self) -> None:
        undo = self._pending
        if undo is not None:
            # What has reached the disk has happened: then the change in memory was complete before.
            if self._extent() == undo.extent:
                undo.roll_back()
            self._pending = None

    def _extent(self) -> tuple[int, int] | None:
        """What is on disk, where there is a journal."""
        return None

    def _settle(self) -> None:
        """Finish what an interrupt during a roll-back left undone. Called first by everything public, with the lock."""
        if self._pending is None:
            return
        if self._is_changing():
            raise LikesetError(
                "the sequence was asked in the middle of its own update, by a predictor, a weighting or a signal "
                "handler; ask it before or after the update."
            )
        self._roll_back()

    def _is_changing(self) -> bool:
        """Whether a change is under way further up on the stack of this thread (no other thread holds the lock)."""
        code, frame = Atomic._all_or_nothing.__code__, sys._getframe()
        while (frame := frame.f_back) is not None:  # type: ignore[assignment]
            if frame.f_code is code and frame.f_locals["self"] is self:
                return True
        return False


class AllOrNothing(Atomic):
    """The same for sequences, which may have a journal: for kills, too."""

    _running: Running
    voices: Voices | None

    def __init__(self) -> None:
        super().__init__()
        self._durable: DurableRecord | None = None

    def close(self) -> None:
        """Let go of the journal of a durable sequence, see :meth:`open`. What was seen can still be asked."""
        with self._lock:
            self._settle()
            if self._durable is not None:
                self._durable.close(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._durable = None

    def _all_or_nothing(self, change: Callable[[Undo], None], new_voices: bool = False) -> None:
        durable = self._durable
        if durable is None:
            super()._all_or_nothing(change)
            return

        def written(undo: Undo) -> None:
            change(undo)
            assert undo.extent is not None
            durable.write(undo.extent, self, new_voices)

        super()._all_or_nothing(written)
        durable.keep_state(self)

    def _extent(self) -> tuple[int, int] | None:
        return None if self._durable is None else self._durable.journal.extent()
