r"""Running intersection: the smallest upper bound of every arm's score so far, with no more solving than needed.

    ceiling_i(t) = min over rounds s <= t of  max { sign x_i'theta : theta in C_s }

A running intersection of confidence sequences keeps their guarantee, so every ceiling bounds its arm at all
times at once.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from likeset.bandits import witnesses
from likeset.bandits.protocols import Array
from likeset.bandits.rewards import Reward
from likeset.errors import EmptySetError

Slots = NDArray[np.intp]

TIE = 1e-6  # relative: bounds closer than this are ties (bounds are rounded outward by less)
_MOST_REMEMBERED = 65_536  # arms of changing sets; beyond it the past is forgotten, which only widens bounds


def tie_width(scores: Array) -> float:
    """Differences of scores that mean nothing."""
    finite = scores[np.isfinite(scores)]
    return TIE * float(np.abs(finite).max()) if len(finite) else 0.0


def score_uppers(current: Any, reward: Reward, rows: Array) -> Array:
    """Upper bounds of the scores over one set."""
    return np.asarray(current.upper(rows) if reward.increasing else -current.lower(rows))


def score_lowers(current: Any, reward: Reward, rows: Array) -> Array:
    """Lower bounds of the scores over one set."""
    return np.asarray(current.lower(rows) if reward.increasing else -current.upper(rows))


class RunningCeilings:
    """Ceilings of a table of arms that may grow, one slot per distinct arm.

    solves   number of extrema computed so far
    """

    def __init__(self, space: Any, alpha: float, reward: Reward) -> None:
        self.space, self.alpha, self.reward = space, alpha, reward
        self.solves = 0
        self.ceiling, self.floor = np.zeros(0), np.zeros(0)
        self._witness = np.zeros((0, 0))
        self._slot_of: dict[bytes, int] = {}
        self._last_rows: Array | None = None
        self._last_slots: Slots = np.zeros(0, dtype=np.intp)

    def slots(self, rows: Array) -> Slots:
        """Where the rows are kept; new ones get a slot with an infinite ceiling."""
        if self._last_rows is rows:
            return self._last_slots
        if len(self._slot_of) + len(rows) > _MOST_REMEMBERED:
            self._forget()
        slots = np.array([self._slot_of.setdefault(row.tobytes(), len(self._slot_of)) for row in rows], dtype=np.intp)
        new = len(self._slot_of) - len(self.ceiling)
        if new > 0:
            self.ceiling = np.append(self.ceiling, np.full(new, np.inf))
            self.floor = np.append(self.floor, np.full(new, -np.inf))
            self._witness = np.vstack([self._witness, np.zeros((new, self._witness.shape[1]))])
        self._last_rows, self._last_slots = rows, slots
        return slots

    def refresh(self, current: Any, rows: Array, lazy: bool, prune: bool) -> Array:
        """Ceilings of the rows after this round.

        ``lazy`` skips arms whose witness is still plausible. ``prune`` also skips arms whose ceiling lies below
        another's floor: with a fixed table these can never win again.
        """
        slots = self.slots(rows)
        if not lazy or not witnesses.can_witness(self.space, current):
            self.solves += len(rows)
            np.minimum.at(self.ceiling, slots, score_uppers(current, self.reward, rows))
            return np.asarray(self.ceiling[slots])
        ceilings = self.ceiling[slots]
        stale = np.ones(len(rows), dtype=bool)
        if prune:
            best_floor = float(self.floor[slots].max())
            stale = ~(ceilings < best_floor - 4 * tie_width(ceilings))
        known = stale & np.isfinite(ceilings)
        if known.any():
            stale[known] = ~witnesses.survivors(current, self.alpha, self._witness[slots[known]])
        if stale.any():
            self._solve(current, rows[stale], slots[stale])
        return np.asarray(self.ceiling[slots])

    def raise_floor(self, current: Any, rows: Array, index: int) -> None:
        """Remember the lower bound of one arm; above its ceiling, the running intersection is empty."""
        slot = self.slots(rows)[index]
        self.solves += 1
        floor = float(score_lowers(current, self.reward, rows[index : index + 1])[0])
        self.floor[slot] = max(self.floor[slot], floor)
        self.refuse_crossing(np.array([slot]))

    def refuse_crossing(self, slots: Slots) -> None:
        """Raise if a ceiling fell below its floor: no parameter was plausible in every round."""
        low, high = self.floor[slots], self.ceiling[slots]
        if (low > high + 4 * tie_width(np.concatenate([low, high]))).any():
            raise EmptySetError(self.alpha)

    def _solve(self, current: Any, rows: Array, slots: Slots) -> None:
        found = current.support(rows, sign=self.reward.sign)
        self.solves += len(rows)
        np.minimum.at(self.ceiling, slots, found.upper)
        ceilings = self.ceiling[slots]
        finite = np.isfinite(ceilings)
        if finite.any():
            placed = witnesses.place_witnesses(
                current, self.reward.sign, rows[finite], found.maximisers[finite], ceilings[finite]
            )
            if self._witness.shape[1] != placed.shape[1]:
                self._witness = np.zeros((len(self.ceiling), placed.shape[1]))
            self._witness[slots[finite]] = placed

    def _forget(self) -> None:
        self._slot_of = {}
        self.ceiling, self.floor, self._witness = np.zeros(0), np.zeros(0), np.zeros((0, 0))
        self._last_rows = None
