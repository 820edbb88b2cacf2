r"""What voices are: ratios that are averaged, each of which hears a part of the observations.

For every voice k and every observation s a mask m_sk in {0, 1} says whether k hears s. If the mask is known before y_s
is, it is a predictable weight, so

    M_k(theta) = prod_{s: m_sk = 1} q_s(y_s|x_s) / p_theta(y_s|x_s)

is a martingale at the truth like the ratio of all data, and so is any average  R = sum_k pi_k M_k  with shares pi that
add up to one. The set { R <= 1/alpha } is convex, and its guarantee is that of the ratio of all data.

A mask depends on the covariate x_s and, if a voice wants that, on the *class* of the observation: a whole number made
of how well z = x_s'theta was known beforehand (``label``), and of how many windows that open by themselves hold x_s by
then (``depth``), written into the ledger and never made again. Observations of one covariate and one class are a group;
``of`` says which voices hear a group.

Another kind of voices is one file with one class derived from :class:`Voices`, and one entry in ``VOICES``
(``voices/__init__.py``).
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from math import inf, log
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from likeset._solver.problem import VoiceTable
from likeset._typing import Array, Mask
from likeset.errors import InvalidArgumentError
from likeset.parts import worked_out
from likeset.spaces.base import Space

if TYPE_CHECKING:
    from likeset.families.base import Family
    from likeset.voices.directions import Directions


MANY = 4096
CLASSES = 32  # of how well z was known: a label is one of these, plus as many times the depth


class Voices(ABC):
    """Settings of voices: fixed before the first observation."""

    ratio: float | None = None
    """Of one threshold between classes to the next; None where classes do not matter, and ``label`` is never asked."""

    lone: ClassVar[bool] = False
    """Whether these voices cannot be a part of others: they take others beside them."""

    edition: int = 0
    """What the same settings mean: files say it, and go on with the meaning that they were written with."""

    @property
    def gauged(self) -> bool:
        """Whether classes matter: then ``label`` is asked before every observation."""
        return self.ratio is not None

    @abstractmethod
    def start(self, space: Space) -> Membership:
        """Membership before anything was seen; a typed error if these voices do not fit the space."""

    @abstractmethod
    def of(self, space: Space, x: Array, label: int = 0, opened: Opened | None = None) -> Mask:
        """Which voices hear observations at x (one row) of class ``label``; ``opened`` once x was seen."""

    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """Constructor arguments, for saving."""

    def of_edition(self, edition: int) -> Self:
        """The same settings as a file of this edition means them; a typed error if there never was one."""
        if type(edition) is not int or edition != self.edition:
            raise InvalidArgumentError(
                "edition", edition, f"is none of {type(self).__name__}'s", "a newer likeset may know it"
            )
        return self

    def label(self, spread: float) -> int:
        """The class of an observation whose z was known up to the variance ``spread``, in units of the noise."""
        return 0

    @property
    def opening(self) -> bool:
        """Whether windows open by themselves: then ``look`` is asked before every observation."""
        return False

    def _look(self, space: Space, x: Array, opened: Opened) -> tuple[Opened, int]:
        """What has opened once x was seen, ``opened`` before; and how many of these windows hold x."""
        return opened, 0

    def whole(self, space: Space) -> Mask:
        """Which voices hear every observation, now and for ever; False where that is not known beforehand."""
        return np.zeros(len(self.start(space).log_shares), dtype=bool)

    def directions(self, family: Family, space: Space) -> Directions | None:
        """The sums of directional voices before anything was seen, None if there are none; or a typed error."""
        return None


@dataclass(frozen=True)
class Opened:
    """Windows that have opened by themselves, in order; immutable.

    ``centres`` are covariates, one row each. Where columns are measured by their ranges, ``frames`` has the middles and
    units of columns for every window (windows, 2, dim), and ``range`` the least and largest entries so far (2, dim).
    """

    centres: Array
    frames: Array
    range: Array | None = None

    @classmethod
    def none(cls, space: Space) -> Opened:
        """Before anything was seen."""
        shape = space.covariate_shape
        return cls(np.zeros((0, *shape)), np.zeros((0, 2, *shape)))


class SharedMasks:
    """One row of masks per group, append-only, shared by every membership that is a prefix of them."""

    def __init__(self, rows: Mask, capacity: int) -> None:
        self.filled = len(rows)
        self.rows = np.zeros((capacity, rows.shape[1]), dtype=bool)
        self.rows[: self.filled] = rows


class Membership:
    """Which voices hold the groups seen so far: immutable, and grows without copying.

    ``masks``, one row per voice and one column per group, is what it starts from.
    """

    def __init__(self, voices: Voices, space: Space, log_shares: Array, masks: Mask) -> None:
        self.voices, self.space, self.log_shares = voices, space, log_shares
        self.opened = Opened.none(space)
        self._looks: dict[bytes, tuple[Opened, tuple[Opened, int]]] = {}
        self._size = masks.shape[1]
        self._table = SharedMasks(masks.T, max(16, self._size))

    def __deepcopy__(self, memo: dict[int, Any]) -> Membership:
        # A table of its own: two sequences must not append to one.
        other = Membership(self.voices, self.space, self.log_shares, self.masks)
        other.opened = self.opened
        return other

    @property
    def masks(self) -> Mask:
        """Which voices (rows) hold which groups (columns, in order of first appearance); a view, do not write."""
        return self._table.rows[: self._size].T

    def label(self, x: Array, spread: Callable[[], float]) -> int:
        """The class of an observation at x whose z is known up to ``spread()``: before its y is."""
        known = self.voices.label(spread()) if self.voices.gauged else 0
        return known + CLASSES * self._look(x)[1] if self.voices.opening else known

    def _look(self, x: Array) -> tuple[Opened, int]:
        """What voices say of x, remembered as long as nothing changes."""
        key = x.tobytes()
        known = self._looks.get(key)
        if known is not None and known[0] is self.opened:
            return known[1]
        found = self.voices._look(self.space, x, self.opened)
        if len(self._looks) >= MANY:  # covariates that hardly come again are not worth their memory
            self._looks.clear()
        self._looks[key] = self.opened, found
        return found

    def including(self, x: Array, label: int = 0) -> Membership:
        """The same with one more group: observations at x of class ``label``."""
        opened = self._look(x)[0] if self.voices.opening else self.opened
        row = self.voices.of(self.space, x, label, opened)
        table, n = self._table, self._size
        if table.filled != n or n == len(table.rows):
            table = SharedMasks(table.rows[:n], max(16, 2 * n))
        table.rows[n] = row
        table.filled = n + 1
        grown = copy.copy(self)
        for name in ("table", "whole_and_part"):  # cached, of the groups before
            grown.__dict__.pop(name, None)
        grown._table, grown._size, grown.opened = table, n + 1, opened
        return grown

    @worked_out
    def table(self) -> VoiceTable:
        """Voices as the solver wants them: those that hold the same groups are one, with the sum of the shares."""
        return _merged(self.masks, self.log_shares)

    @worked_out
    def whole_and_part(self) -> tuple[VoiceTable, float]:
        """The voices that may miss something one day, and the log of the share of those that never will.

        Where a voice that hears everything has a numerator of its own, it must be the same voice from the first
        observation on: which voices happen to hold the same groups today does not matter.
        """
        whole = self.voices.whole(self.space)
        share = float(np.exp(self.log_shares[whole]).sum())
        return _merged(self.masks[~whole], self.log_shares[~whole]), log(share) if share > 0.0 else -inf

    def state(self) -> dict[str, Array]:
        """The masks of the groups seen, in order of first appearance."""
        return {"masks": self.masks.astype(np.float64)}

    def restored(self, state: dict[str, Array], covariates: Array | None = None) -> Membership:
        """The membership whose ``state`` this is; every group's covariate, in order, tells which windows opened."""
        if self.voices.opening and covariates is None:
            raise ValueError("the covariates are missing, which tell the windows that have opened")
        masks = np.asarray(state["masks"])
        if masks.ndim != 2 or len(masks) != len(self.log_shares) or not np.isin(masks, (0.0, 1.0)).all():
            raise ValueError("the masks do not fit the voices")
        made = Membership(self.voices, self.space, self.log_shares, masks.astype(bool))
        if covariates is not None and self.voices.opening:
            for x in covariates:
                made.opened = made._look(x)[0]
        return made


def _merged(masks: Mask, log_shares: Array) -> VoiceTable:
    """Voices that hold the same groups are one, with the sum of the shares."""
    if not len(masks):
        return VoiceTable(np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0))
    distinct, group = np.unique(masks, axis=0, return_inverse=True)
    shares = np.bincount(group.ravel(), weights=np.exp(log_shares), minlength=len(distinct))
    starts = np.concatenate([[0], np.cumsum(distinct.sum(axis=1))]).astype(np.int64)
    return VoiceTable(starts, np.nonzero(distinct)[1].astype(np.int64), np.log(shares))
