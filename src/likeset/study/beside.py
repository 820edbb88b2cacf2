"""What a study that chooses knows beside its outcome: rows that failed, and constraints with sequences of their own.

Rows are kept aligned: every row told has an entry in every array, zeros where it was not scored, so that batches,
exports and replays count the same rows everywhere.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from likeset._typing import Array
from likeset.bandits.safety import Safety
from likeset.errors import FileFormatError
from likeset.persistence.durable import _begin, _continue
from likeset.persistence.rebuild import Rows
from likeset.sequence import ConfidenceSequence
from likeset.study.batch import Batch, Flags
from likeset.study.definition import Definition
from likeset.study.surface import constraint_sequence

WORKED = "worked"


class Beside:
    """Which rows worked, and the sequences of the constraints."""

    def __init__(self, definition: Definition, parts: tuple[str, ...]) -> None:
        self._definition, self._part_names = definition, parts
        constraints = definition.campaign.safe
        share = definition.alpha / max(len(constraints), 1)
        self.sequences = {name: constraint_sequence(definition, name, share) for name in constraints}
        self._kept: list[dict[str, Array]] = []

    def clear(self) -> None:
        """As before any row."""
        self._kept = []
        for sequence in self.sequences.values():
            with sequence._lock:
                _begin(sequence)
                sequence._set = None

    def scored(self) -> dict[str, Array]:
        """Everything recorded, as it was scored; empty before the first row."""
        if len(self._kept) > 1:
            self._kept = [{name: np.concatenate([part[name] for part in self._kept]) for name in self._kept[0]}]
        return self._kept[0] if self._kept else {}

    def worked(self) -> Flags:
        """Whether each row told had an outcome."""
        scored = self.scored()
        return scored[WORKED] == 1.0 if scored else np.zeros(0, bool)

    def covariates(self) -> Array:
        """Covariates of all rows told, failed ones too."""
        scored = self.scored()
        return scored["at"] if scored else np.zeros((0, len(self._definition.columns)))

    def update(self, batch: Batch, main: dict[str, Array]) -> dict[str, Array]:
        """Score what constraints say; ``main`` is what was scored of the outcome, one entry per row that worked."""
        worked = np.ones(len(batch), bool) if batch.worked is None else batch.worked
        found = {name: _spread(array, worked) for name, array in main.items()}
        found |= {WORKED: worked.astype(np.float64), "at": batch.x.copy()}
        for name, sequence in self.sequences.items():
            seen = np.isfinite(batch.constraints[name])
            before = sequence.n_observations
            if seen.any():
                sequence.update(batch.x[seen], batch.constraints[name][seen])
            found[f"{name}/seen"] = seen.astype(np.float64)
            for part in self._part_names:
                found[f"{name}/{part}"] = _spread(getattr(sequence.ledger, part).rows[before:].copy(), seen)
        self._kept.append(found)
        return found

    def replay(self, scored: dict[str, Array]) -> None:
        """Take rows as they were scored."""
        for name, sequence in self.sequences.items():
            seen = scored[f"{name}/seen"] == 1.0
            try:
                rows = Rows(*(scored[f"{name}/{part}"][seen] for part in self._part_names))
                rows = rows.checked(sequence.family, sequence.space)
            except (KeyError, ValueError) as error:
                raise FileFormatError(f"the store is damaged: {error}; restore it from a backup.") from error
            with sequence._lock:
                _continue(sequence, rows, 0)
                sequence._set = None
        self._kept.append({name: array.copy() for name, array in scored.items()})

    def safety(self, outcome: ConfidenceSequence) -> Safety | None:
        """The constraints as a policy takes them; None without any."""
        if not self.sequences:
            return None
        campaign = self._definition.campaign
        return Safety(outcome, campaign.safe, self._known_safe(), self.sequences)

    def _known_safe(self) -> Any:
        rows = self._definition.campaign.known_safe
        if not rows:
            return None
        from likeset.study.frames import columns_of

        return self._definition.asked(columns_of([dict(row) for row in rows], "known_safe"))


def _spread(array: Array, chosen: Flags) -> Array:
    """The rows of ``array`` at the chosen places, zeros elsewhere."""
    whole = np.zeros((len(chosen), *array.shape[1:]))
    whole[chosen] = array
    return whole
