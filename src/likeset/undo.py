"""All or nothing: what an update is about to overwrite is kept first, and put back if the update does not get through.

Every kept value is absolute ("this entry was 3.5", never "subtract 2"), so rolling back twice is the same as rolling
back once, and an interrupt in the middle of it does no harm: it is simply done again. Keeping costs what an update
touches, never what the sequence holds.

A built-in piece that learns has one method more than a user's own,

    remember(undo, phi)      called before forecast(phi) and observe(phi, y): keep what these two will change
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from operator import setitem
from typing import Any


class Undo:
    """Steps that lead back to the state before an update.

    >>> numbers, undo = [1, 2], Undo()
    >>> undo.keep_entry(numbers, 0)
    >>> numbers[0] = 5
    >>> undo.roll_back(), numbers
    (None, [1, 2])
    """

    __slots__ = ("_kept", "_steps", "extent")

    def __init__(self, extent: tuple[int, int] | None = None) -> None:
        self.extent = extent  # of the journal before the update, if there is one
        self._steps: list[Callable[[], object]] = []
        self._kept: set[int | tuple[int, int]] = set()

    def keep(self, owner: Any, written: tuple[str, ...] = ()) -> bool:
        """Keep every attribute of ``owner``, and copies of arrays that are ``written`` to; only when first asked to.

        Other arrays may be replaced, and entries appended beyond their visible length, but no visible entry may be
        changed: :meth:`keep_entry` is for that. Whether this was the first time is returned.
        """
        if id(owner) in self._kept:
            return False
        old = owner.__dict__.copy()
        for name in written:
            old[name] = old[name].copy()
        # The step first: an interrupt between the two lines must not leave an owner marked and not kept.
        self._steps.append(partial(owner.__dict__.update, old))
        self._kept.add(id(owner))
        return True

    def done(self, owner: object, index: int) -> bool:
        """Whether ``mark`` was called for this entry: what is kept once need not be kept again."""
        return (id(owner), index) in self._kept

    def mark(self, owner: object, index: int) -> None:
        """Everything about this entry has been kept."""
        self._kept.add((id(owner), index))

    def keep_entry(self, container: Any, key: Any) -> None:
        """Keep one entry of an array, a list or a dict."""
        self._steps.append(partial(setitem, container, key, container[key]))

    def keep_row(self, arrays: tuple[Any, ...], index: int) -> None:
        """Keep the entry ``index`` of several arrays."""
        self._steps.append(partial(_put_back, arrays, index, [array[index] for array in arrays]))

    def when_rolled_back(self, step: Callable[[], object]) -> None:
        """Any step that may be repeated; steps run in reverse order."""
        self._steps.append(step)

    def roll_back(self) -> None:
        """Put everything back; may be called again if it was interrupted."""
        for step in reversed(self._steps):
            step()


def _put_back(arrays: tuple[Any, ...], index: int, values: list[Any]) -> None:
    for array, value in zip(arrays, values, strict=True):
        array[index] = value
