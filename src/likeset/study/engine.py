"""A study's confidence sequence: begun from a definition, continued with rows as they were scored, kept as a state.

Everything that touches the engine's inside is here.
"""

from __future__ import annotations

import json
from contextlib import AbstractContextManager, nullcontext
from dataclasses import fields
from itertools import pairwise
from typing import Any

import numpy as np

from likeset._typing import Array
from likeset.curves import Curve
from likeset.errors import FileFormatError
from likeset.families.binomial import Bernoulli
from likeset.families.canonical import canonical_form
from likeset.families.poisson import Poisson
from likeset.persistence.descriptions import describe, piece_from
from likeset.persistence.durable import STATE_BYTES_PER_ROW, STATE_EVERY, _begin, _contents, _continue, _restore
from likeset.persistence.rebuild import Rows
from likeset.progress import counted
from likeset.sequence import ConfidenceSequence
from likeset.sets import LikelihoodSet
from likeset.study.answers import Counts
from likeset.study.beside import WORKED, Beside
from likeset.study.definition import Batch, Definition
from likeset.study.factors import Levels
from likeset.study.pooling import ALONE, can_pool, poolable, pooled
from likeset.study.questions import questions
from likeset.study.surface import space_of, surface_of
from likeset.voices.automatic import automatic_voices
from likeset.voices.contrasts import Contrasts, has_tilts

SHARE = 0.9  # of the error level for differences from the control; the rest is for the levels themselves
# Of coefficients where the noise is not normal: at most about 1 % wider with 50 rows, and narrower from 100 on.
SHARE_OF_COEFFICIENTS = 0.2
MOST_COEFFICIENTS = 20  # that are announced there: a table of as many takes some seconds
MOST_PAIRS = 100  # that are announced: each takes some 40 ms to answer
ROWS_AT_ONCE = 5000  # that are scored between two signs of progress
TOLD = "told"  # how many rows a scored one stands for
PARTS = tuple(part.name for part in fields(Rows))


class Engine:
    """The running sequence of a study. ``len`` is the number of rows told; pooled ones are scored together."""

    def __init__(self, definition: Definition, settings: dict[str, Any] | None = None) -> None:
        self.definition = definition
        space = space_of(definition)
        self.beside = Beside(definition, PARTS) if definition.campaign.given else None
        if settings is None:  # what "auto" means today is what it will mean for this study
            alarm: Any = False if _nothing_to_hear(definition) or not definition.alarm else "auto"
            self.sequence = ConfidenceSequence(definition.family, space, definition.alpha, alarm=alarm)
            self._announce()
        else:
            described = settings["voices"]
            voices = None if described is None else piece_from("windows", described, None)
            alarm = settings.get("alarm", False)  # studies of earlier releases have none
            self.sequence = ConfidenceSequence(definition.family, space, definition.alpha, voices=voices, alarm=alarm)
        self._pools = self.beside is None and can_pool(definition, self.sequence)
        if self._pools:  # a law outside the model is no mixture of its own rows: it may not score them together
            self.sequence._rows_heard = ALONE
            self.sequence._running.alarm = self.sequence._fresh_alarm()
        self._centre = surface_of(definition).centre  # of z in a smooth model: an offset of every row
        self._told: list[Array] = []  # how many rows each scored one stands for
        self._count = 0  # their sum

    def _announce(self) -> None:
        """Say what will be asked, so that it gets voices of its own where there are any."""
        if self.definition.smooth:
            self.sequence.expect(None, purpose="inference")
            return
        asked = questions(self.definition)
        arms = np.array([q.x for q in asked])
        tested = [q.direction for q in asked if not q.is_level or (q.against is not None and not q.is_control)]
        form = canonical_form(self.definition.family)
        if tested and form is not None and form.curve is Curve.QUADRATIC:
            self.sequence.expect(arms, purpose="inference", contrasts=np.array(tested))
            return
        space, family = self.sequence.space, self.definition.family
        if self.definition.formula is not None and 0 < len(tested) <= MOST_COEFFICIENTS and has_tilts(family, space):
            others = automatic_voices(family, space, arms, "inference")
            announced = Contrasts(np.array(tested), share=SHARE_OF_COEFFICIENTS, others=others)
            self.sequence.expect(arms, purpose="inference", contrasts=announced)
            return
        # One ratio, so that a million rows can be pooled; with a bound patience is worth more.
        pooling = poolable(self.definition) and space.bound == np.inf
        pairs = [(q.x, q.against) for q in asked if q.against is not None and not q.is_control]
        alone = _levels_alone(self.definition) and not self.definition.campaign.given
        if pairs and alone and form is not None and len(pairs) <= MOST_PAIRS:
            variants, controls = (np.array(rows) for rows in zip(*pairs, strict=True))
            others = None if pooling else automatic_voices(family, space, arms, "inference")
            announced = Contrasts(variants, minus=controls, share=SHARE, others=others)
            self.sequence.expect(arms, purpose="inference", contrasts=announced)
        elif pooling:
            self.sequence._all_or_nothing(lambda undo: self.sequence._take_voices(undo, None), new_voices=True)
        else:
            self.sequence.expect(arms, purpose="inference")

    def settings(self) -> dict[str, Any]:
        """What a store keeps beside the definition."""
        voices = self.sequence.voices
        described = None if voices is None else json.loads(json.dumps(describe(voices)))
        return {"voices": described, "alarm": self.sequence.alarm}

    def __len__(self) -> int:
        return self._count

    def told(self) -> Array:
        """How many rows each scored one stands for."""
        if len(self._told) > 1:
            self._told = [np.concatenate(self._told)]
        return self._told[0] if self._told else np.zeros(0)

    @property
    def set(self) -> LikelihoodSet:
        """The confidence set of all rows."""
        return self.sequence.set

    def counts(self) -> Counts:
        """Rows and mean outcomes by column of the design."""
        ledger = self.sequence.ledger
        distinct, numbers, y = ledger.distinct.rows, ledger.covariate.rows, ledger.y.rows
        told = self.told() if self.beside is None else np.ones(len(ledger))
        sizes = ledger.given.rows[:, 1]
        return Counts(distinct, numbers, y, sizes, told, "trials" in self.definition.roles)

    def update(self, batch: Batch) -> dict[str, Array]:
        """Score rows; what was recorded about them."""
        if self.beside is not None:
            return self._update_beside(batch)
        before = self.sequence.n_observations
        scored, told = batch, np.ones(len(batch))
        blocks: list[int] = []
        if self._pools:
            scored, told, blocks = pooled(self.definition, batch, len(self))
        alone = blocks[0] if blocks else len(scored)
        starts = [*range(0, alone, ROWS_AT_ONCE), *blocks]
        for start, stop in counted(pairwise([*starts, len(scored)]), len(starts), "scoring rows"):
            part = scored.part(start, stop)
            with self._together() if start >= alone else nullcontext():
                self.sequence.update(part.x, part.y, **part.options)
        self._take(told)
        return self._parts(before) | {TOLD: told}

    def _together(self) -> AbstractContextManager[None]:
        """Rows meanwhile are one block: forecasts know of no other level's outcomes in it (``pooling``)."""
        return self.sequence._running.forecaster.as_of_now()  # type: ignore[attr-defined, no-any-return]

    def _update_beside(self, batch: Batch) -> dict[str, Array]:
        """The same where rows may have failed, and constraints have outcomes of their own."""
        assert self.beside is not None
        before = self.sequence.n_observations
        scored = batch if batch.worked is None else batch.taken(batch.worked)
        if len(scored):
            options = dict(scored.options)
            if self._centre:
                options["offset"] = options.get("offset", 0.0) + np.full(len(scored), self._centre)
            self.sequence.update(scored.x, scored.y, **options)
        told = np.ones(len(batch))
        found = self.beside.update(batch, self._parts(before)) | {TOLD: told}
        self._take(told)
        return found

    def scored(self, start: int) -> dict[str, Array]:
        """What was scored from number ``start`` on, as it was scored."""
        if self.beside is not None:
            return {name: array[start:] for name, array in self.beside.scored().items()} | {TOLD: self.told()[start:]}
        return self._parts(start) | {TOLD: self.told()[start:]}

    def _parts(self, start: int) -> dict[str, Array]:
        ledger = self.sequence.ledger
        return {part: getattr(ledger, part).rows[start:].copy() for part in PARTS}

    def _take(self, told: Array) -> None:
        self._told.append(told)
        self._count += int(told.sum())

    def replay(self, scored: dict[str, Array]) -> None:
        """Take rows as they were scored; nothing is forecast again."""
        with self.sequence._lock:
            _continue(self.sequence, self._rows(scored), 0)
            if self.beside is not None:
                self.beside.replay({name: array for name, array in scored.items() if name != TOLD})
            self._take(scored[TOLD])
            self.sequence._set = None

    def restore(self, scored: dict[str, Array], state: tuple[int, bytes] | None) -> int:
        """Begin anew with all rows, helped by a kept state if it fits; of how many scored rows that was."""
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
            if self.beside is not None:
                self.beside.clear()
                self.beside.replay({name: array for name, array in scored.items() if name != TOLD})
            self._told, self._count = [], 0
            self._take(scored[TOLD])
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
            if self.beside is not None:
                worked = scored[WORKED] == 1.0
                scored = {part: scored[part][worked] for part in PARTS}
            return Rows(*(scored[part] for part in PARTS)).checked(self.definition.family, self.sequence.space)
        except (KeyError, ValueError) as error:
            raise FileFormatError(f"the store is damaged: {error}; restore it from a backup.") from error


def _levels_alone(definition: Definition) -> bool:
    """Whether outcomes depend on the level of one factor and on nothing else: then arms are compared by counts."""
    one_factor = definition.formula is None and len(definition.factors) == 1
    return one_factor and isinstance(definition.factors[0], Levels) and not _shifted(definition)


def _shifted(definition: Definition) -> bool:
    """Whether rows have offsets that do not go into sums; exposure is one where counts are not of a Poisson law."""
    exposed = "exposure" in definition.roles and type(definition.family) is not Poisson
    return "offset" in definition.roles or exposed


def _nothing_to_hear(definition: Definition) -> bool:
    """Zeros and ones with a probability of their own for every level: no law of single outcomes can contradict that."""
    return _levels_alone(definition) and type(definition.family) is Bernoulli and "trials" not in definition.roles
