r"""Running intersection: the best bounds of every arm's score so far, with no more solving than needed.

    ceiling_i(t) = min over rounds s <= t of  max { sign x_i'theta : theta in C_s }
    floor_i(t)   = max over rounds s <= t of  min { sign x_i'theta : theta in C_s }

The true theta is in every C_s at once with probability 1 - alpha, so ceilings and floors bound all arms at all times at
once. A floor above its ceiling means that no parameter was plausible in every round: the model is refuted.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from likeset._typing import Array
from likeset.bandits import witnesses
from likeset.bandits.rewards import Reward
from likeset.bandits.ties import tie_width
from likeset.errors import EmptySetError

Slots = NDArray[np.intp]

_MOST_REMEMBERED = 65_536  # arms of changing sets; beyond it the past is forgotten, which only widens bounds


def score_uppers(current: Any, reward: Reward, rows: Array) -> Array:
    """Upper bounds of the scores over one set."""
    return np.asarray(current.upper(rows) if reward.increasing else -current.lower(rows))


def score_lowers(current: Any, reward: Reward, rows: Array) -> Array:
    """Lower bounds of the scores over one set."""
    return np.asarray(current.lower(rows) if reward.increasing else -current.upper(rows))


def _starts_near(current: Any) -> bool:
    return bool(getattr(current, "starts_near", False))


class RunningBounds:
    """Ceilings and floors of a table of arms that may grow, one slot per distinct arm.

    solves   number of extrema computed so far
    """

    def __init__(self, space: Any, alpha: float, reward: Reward) -> None:
        self.space, self.alpha, self.reward = space, alpha, reward
        self.solves = 0
        self.ceiling, self.floor = np.zeros(0), np.zeros(0)
        self._witness = np.zeros((0, witnesses.parameter_size(space)))
        self._highest, self._lowest = self._witness, self._witness  # where bounds were attained last: to start from
        self._sound = np.zeros(0, dtype=bool)
        self._slot_of: dict[bytes, int] = {}
        self._last: tuple[Array | None, Slots] = None, np.zeros(0, dtype=np.intp)

    def slots(self, rows: Array) -> Slots:
        """Where the rows are kept; new ones get a slot with an infinite ceiling."""
        last, slots = self._last
        if last is rows:
            return slots
        if len(self._slot_of) + len(rows) > _MOST_REMEMBERED:
            self._forget()
        slots = np.array([self._slot_of.setdefault(row.tobytes(), len(self._slot_of)) for row in rows], dtype=np.intp)
        self._grow(len(self._slot_of))
        self._last = rows, slots
        return slots

    def ceilings(self, current: Any, rows: Array, lazy: bool, floor_of: int | None = None) -> Array:
        """Ceilings of the rows after this round.

        ``lazy`` skips arms whose witness is still plausible. ``floor_of``, for a table that stays the same, names an
        arm whose floor is raised as well; then arms with a ceiling below any floor, which can never win again, are
        skipped, too. Where it saves time the solver starts from the maximisers found last, lazy or not.
        """
        slots = self.slots(rows)
        remember = lazy or _starts_near(current)  # maximisers: for witnesses, or to start from
        if not remember or not witnesses.can_witness(self.space, current):
            self.solves += len(rows)
            np.minimum.at(self.ceiling, slots, score_uppers(current, self.reward, rows))
            if floor_of is not None:
                self.floors(current, rows, [floor_of])
            self._refuse_crossing(slots)
            return np.asarray(self.ceiling[slots])
        ceilings = self.ceiling[slots]
        stale = np.ones(len(rows), dtype=bool)
        if lazy and floor_of is not None:
            stale = ~(ceilings < self.floor[slots].max() - 4 * tie_width(ceilings))
        known = stale & self._sound[slots] & lazy
        plausible = self._witness[:0]
        if known.any():
            kept = self._witness[slots[known]]
            alive = witnesses.survivors(current, self.alpha, kept)
            stale[known], plausible = ~alive, kept[alive]
        if stale.any():
            played = np.array([] if floor_of is None else [floor_of], dtype=np.intp)
            maximisers = self._solve(current, rows, np.flatnonzero(stale), played)
            if lazy:
                self._place(rows[stale], slots[stale], plausible, maximisers)
        self._refuse_crossing(slots)
        return np.asarray(self.ceiling[slots])

    def floors(self, current: Any, rows: Array, which: Any = slice(None)) -> Array:
        """Floors of the rows ``which`` after this round."""
        chosen = np.arange(len(rows))[which]
        slots = self.slots(rows)[chosen]
        if self._starts_help(current):
            self._solve(current, rows, chosen[:0], chosen)
        else:
            self.solves += len(slots)
            np.maximum.at(self.floor, slots, score_lowers(current, self.reward, rows[chosen]))
        self._refuse_crossing(slots)
        return np.asarray(self.floor[slots])

    def intervals(self, current: Any, rows: Array, which: Any = slice(None)) -> tuple[Array, Array]:
        """(floors, ceilings) of the rows ``which`` after this round."""
        chosen = np.arange(len(rows))[which]
        slots = self.slots(rows)[chosen]
        if self._starts_help(current):
            self._solve(current, rows, chosen, chosen)
        else:
            self.solves += 2 * len(slots)
            low, high = self.reward.score_bounds(*current.interval(rows[chosen]))
            np.maximum.at(self.floor, slots, low)
            np.minimum.at(self.ceiling, slots, high)
        self._refuse_crossing(slots)
        # What is left of a crossing is less than the rounding of bounds, and belongs to both sides.
        low, high = self.floor[slots], self.ceiling[slots]
        return np.minimum(low, high), np.maximum(low, high)

    def _starts_help(self, current: Any) -> bool:
        return _starts_near(current) and witnesses.can_witness(self.space, current)

    def _refuse_crossing(self, slots: Slots) -> None:
        low, high = self.floor[slots], self.ceiling[slots]
        if not np.count_nonzero(low > high):
            return
        if (low > high + 4 * tie_width(np.concatenate([low, high]))).any():
            raise EmptySetError(self.alpha)

    def _solve(self, current: Any, rows: Array, fall: Slots, rise: Slots) -> Array:
        """Ceilings of the rows ``fall`` and floors of the rows ``rise`` in one call; the maximisers of the former."""
        n, asked = len(fall), np.concatenate([fall, rise])
        slots = self.slots(rows)
        high, low = slots[fall], slots[rise]
        starts = {}
        if _starts_near(current):
            starts["near"] = np.concatenate([self._highest[high], self._lowest[low]])
        signs = np.where(np.arange(len(asked)) < n, self.reward.sign, -self.reward.sign)
        found = current.support(rows[asked], sign=signs, **starts)
        self.solves += len(asked)
        np.minimum.at(self.ceiling, high, found.upper[:n])
        np.maximum.at(self.floor, low, -found.upper[n:])
        self._highest[high], self._lowest[low] = found.maximisers[:n], found.maximisers[n:]
        return np.asarray(found.maximisers[:n])

    def _place(self, rows: Array, slots: Slots, plausible: Array, maximisers: Array) -> None:
        """New witnesses of rows just solved for; ``plausible`` holds the witnesses of others that are still so."""
        finite = np.isfinite(self.ceiling[slots])
        if finite.any():
            solved, inside = slots[finite], np.concatenate([plausible, maximisers[finite]])
            self._sound[solved] = False  # until the witnesses are there
            self._witness[solved], self._sound[solved] = witnesses.place_witnesses(
                self.space, self.reward.sign, rows[finite], inside, self.ceiling[solved]
            )

    def _grow(self, count: int) -> None:
        """Every array as long as there are slots: each by what it lacks, so that one left behind catches up."""
        self.ceiling = _longer(self.ceiling, count, np.inf)
        self.floor = _longer(self.floor, count, -np.inf)
        self._sound = _longer(self._sound, count, False)
        self._witness = _longer(self._witness, count, 0.0)
        self._highest, self._lowest = _longer(self._highest, count, 0.0), _longer(self._lowest, count, 0.0)

    def _forget(self) -> None:
        # Slots go last: as long as they are there, an interrupt leaves blank bounds, never those of another arm.
        self._last = None, np.zeros(0, dtype=np.intp)
        self.ceiling, self.floor, self._sound = self.ceiling[:0], self.floor[:0], self._sound[:0]
        self._witness, self._highest, self._lowest = self._witness[:0], self._highest[:0], self._lowest[:0]
        self._slot_of = {}


def _longer(array: NDArray[Any], count: int, blank: Any) -> NDArray[Any]:
    """The array with ``count`` rows, or more if it has more."""
    missing = count - len(array)
    if missing <= 0:
        return array
    return np.concatenate([array, np.full((missing, *array.shape[1:]), blank, dtype=array.dtype)])
