"""What was asked for and is not told yet, and what has come back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from likeset._typing import Array
from likeset.errors import InvalidArgumentError
from likeset.sequence import ConfidenceSequence


@dataclass(frozen=True, eq=False)
class Choice:
    """A covariate asked for, its certified width then, whether its round was due, and whether optimism chose it."""

    x: Array
    width: float = 0.0
    due: bool = False
    optimistic: bool = False


class UnderWay:
    """Choices that are out, and counts of those that came back, however they were told.

    rounds, due, widths   number of choices that came back, of those in due rounds, and the sum of their widths
    plays                 how often each covariate (its bytes) was told since the policy was made
    """

    def __init__(self, seq: Any) -> None:
        self.seq = seq
        self.choices: list[Choice] = []
        self.rounds = self.due = self.insured = 0
        self.widths = 0.0
        self.plays: dict[bytes, int] = {}
        self._seen = seq.n_observations if isinstance(seq, ConfidenceSequence) else 0

    def look(self) -> None:
        """Take note of rows that the sequence has been told, by whomever."""
        if isinstance(self.seq, ConfidenceSequence):
            rows = self.seq.ledger.x.rows
            for x in rows[self._seen :]:
                self.arrived(x)
            self._seen = len(rows)

    def arrived(self, x: Array) -> None:
        """An answer at x."""
        key = x.tobytes()
        self.plays[key] = self.plays.get(key, 0) + 1
        choice = self.drop(x)
        if choice is not None:
            self.rounds, self.due = self.rounds + 1, self.due + choice.due
            self.insured += choice.optimistic
            self.widths += choice.width

    def drop(self, x: Array) -> Choice | None:
        """The oldest choice at x, which is out no longer; None if there is none."""
        for place, choice in enumerate(self.choices):
            if choice.x.tobytes() == x.tobytes():
                return self.choices.pop(place)
        return None

    def cancel(self, x: Array) -> None:
        """Drop a choice, or refuse."""
        if self.drop(x) is None:
            raise InvalidArgumentError("x", x, "was not asked for, or has been told", "see pending for what is out")

    def covariates(self, more: list[Choice] | None = None) -> Array:
        """Covariates that are out, oldest first, and those of ``more``."""
        out = [choice.x for choice in self.choices + (more or [])]
        return np.array(out, dtype=np.float64).reshape(-1, self.seq.space.covariate_shape[0])

    def is_due(self, share: float, taken: list[Choice]) -> bool:
        """Whether fewer than share * t of the first t rounds were due, the next one included."""
        out = self.choices + taken
        return self.due + sum(choice.due for choice in out) < share * (self.rounds + len(out) + 1)

    def mean_width(self, taken: list[Choice]) -> float:
        """Of all choices so far; infinite before there is one."""
        out = self.choices + taken
        count = self.rounds + len(out)
        return (self.widths + sum(choice.width for choice in out)) / count if count else np.inf
