"""A study's confidence sequence: begun from a definition, continued with rows as they were scored, kept as a state.

Everything that touches the engine's inside is here.
"""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any

import numpy as np

from likeset._typing import Array
from likeset.errors import FileFormatError
from likeset.persistence.descriptions import describe, piece_from
from likeset.persistence.durable import STATE_BYTES_PER_ROW, STATE_EVERY, _begin, _contents, _continue, _restore
from likeset.persistence.rebuild import Rows
from likeset.sequence import ConfidenceSequence
from likeset.sets import LikelihoodSet
from likeset.spaces import Linear
from likeset.study.answers import Counts
from likeset.study.definition import Batch, Definition
from likeset.study.questions import questions

PARTS = tuple(part.name for part in fields(Rows))


class Engine:
    """The running sequence of a study."""

    def __init__(self, definition: Definition, settings: dict[str, Any] | None = None) -> None:
        self.definition = definition
        space = Linear(len(definition.columns), definition.bound)
        if settings is None:  # what "auto" means today is what it will mean for this study
            self.sequence = ConfidenceSequence(definition.family, space, definition.alpha)
            self.sequence.expect(np.array([q.x for q in questions(definition)]), purpose="inference")
        else:
            described = settings["voices"]
            voices = None if described is None else piece_from("windows", described, None)
            self.sequence = ConfidenceSequence(definition.family, space, definition.alpha, voices=voices)

    def settings(self) -> dict[str, Any]:
        """What a store keeps beside the definition."""
        voices = self.sequence.voices
        return {"voices": None if voices is None else json.loads(json.dumps(describe(voices)))}

    def __len__(self) -> int:
        return self.sequence.n_observations

    @property
    def set(self) -> LikelihoodSet:
        """The confidence set of all rows."""
        return self.sequence.set

    def counts(self) -> Counts:
        """Rows and mean outcomes by column of the design."""
        ledger = self.sequence.ledger
        distinct, numbers, y = ledger.distinct.rows, ledger.covariate.rows, ledger.y.rows
        return Counts(distinct, numbers, y, ledger.given.rows[:, 1], "trials" in self.definition.roles)

    def update(self, batch: Batch) -> None:
        """Score rows."""
        self.sequence.update(batch.x, batch.y, **batch.options)

    def scored(self, start: int) -> dict[str, Array]:
        """The rows from number ``start`` on, as they were scored."""
        ledger = self.sequence.ledger
        return {part: getattr(ledger, part).rows[start:].copy() for part in PARTS}

    def replay(self, scored: dict[str, Array]) -> None:
        """Take rows as they were scored; nothing is forecast again."""
        with self.sequence._lock:
            _continue(self.sequence, self._rows(scored), 0)
            self.sequence._set = None

    def restore(self, scored: dict[str, Array], state: tuple[int, bytes] | None) -> int:
        """Begin anew with all rows, helped by a kept state if it fits; of how many rows that was."""
        rows, kept = self._rows(scored), 0
        with self.sequence._lock:
            _begin(self.sequence)
            if state is not None and state[0] <= len(rows.x):
                try:
                    _restore(self.sequence, rows, *state)
                    kept = state[0]
                except Exception:  # damaged or of another release: the rows are enough
                    _begin(self.sequence)
            _continue(self.sequence, rows, kept)
            self.sequence._set = None
        return kept

    def state(self) -> bytes:
        """What follows from the rows."""
        return _contents(self.sequence)

    @staticmethod
    def state_is_due(rows: int, kept: int, size: int) -> bool:
        """Whether so many rows since a kept state of that size are worth keeping another."""
        return rows - kept >= max(STATE_EVERY, size // STATE_BYTES_PER_ROW)

    def _rows(self, scored: dict[str, Array]) -> Rows:
        try:
            return Rows(*(scored[part] for part in PARTS)).checked(self.definition.family, self.sequence.space)
        except (KeyError, ValueError) as error:
            raise FileFormatError(f"the store is damaged: {error}; restore it from a backup.") from error
