"""What a study's table said as its rows came: answers at looks fixed in advance, and when verdicts became certain.

Rows are taken as they were scored, so the answers at a look are those that the table gave then. Looks are at 1, 2, ...,
10 rows, from there on 12 for every factor of ten, and at the present end; a study that grows only adds to them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from likeset._typing import Array
from likeset.errors import LikesetError
from likeset.predictors import Fixed
from likeset.progress import counted
from likeset.sequence import ConfidenceSequence
from likeset.study import answers
from likeset.study.database import Head
from likeset.study.engine import TOLD, Engine
from likeset.study.study import Study

PER_DECADE = 12
_KEPT = ("factor", "level", "kind", "n", "estimate", "lower", "upper", "verdict")
_COMPARED = (
    "difference", "difference_lower", "difference_upper", "hazard", "hazard_lower", "hazard_upper", "e_value",
)  # fmt: skip
OPEN = (None, "control", "not yet")


def looks_between(start: int, end: int) -> list[int]:
    """The looks after ``start`` rows, up to and with ``end``.

    >>> looks_between(0, 14)
    [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14]
    >>> looks_between(100, 130)
    [121, 130]
    """
    if end <= start:
        return []
    decades = np.arange(PER_DECADE, PER_DECADE * 16)
    later = np.round(10.0 ** (decades / PER_DECADE)).astype(np.int64)
    sizes = sorted({*range(1, 11), *later.tolist()})
    return [n for n in sizes if start < n < end] + [end]


class History:
    """The history of one study; :meth:`advance` catches up with the store."""

    def __init__(self, study: Study) -> None:
        self._study = study
        self._engine = _replaying(study)
        self._head: Head | None = None
        self.looks: list[dict[str, Any]] = []
        self._due: list[int] = []  # the number of rows at which each of them was due

    def advance(self) -> list[dict[str, Any]]:
        """All looks so far: plain dicts with ``rows`` and ``lines``."""
        study, engine = self._study, self._engine
        with study._database.reading() as connection:
            head = study._database.head(connection, study._stored)
            parts = [study._scored(b) for b in study._database.batches(connection, study._stored, self._head)]
        if not parts:
            return self.looks
        new = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        before = len(engine)
        fixed = set(looks_between(0, before + 1)) - {before + 1}
        kept = [number in fixed for number in self._due]  # the end is a look only while it is the end
        self.looks = [look for look, keep in zip(self.looks, kept, strict=True) if keep]
        self._due = [number for number in self._due if number in fixed]
        ends = before + np.cumsum(new[TOLD])  # rows told up to each that was scored: pooled rows are scored together
        done = 0
        due = looks_between(before, head.rows)
        for n in counted(due, len(due), "looking at earlier times"):
            stop = int(np.searchsorted(ends, n, side="right"))
            if stop > done:
                engine.replay({name: cells[done:stop] for name, cells in new.items()})
                done = stop
                self._due.append(n)
                self.looks.append({"rows": int(ends[stop - 1]), "lines": self._lines()})
        self._head = head
        return self.looks

    def _lines(self) -> list[dict[str, Any]]:
        lines = answers.rows(self._study.definition, self._engine.set, self._engine.counts())
        return [answers.finite({name: line[name] for name in (*_KEPT, *_COMPARED)}) for line in lines]


def became_certain(looks: list[dict[str, Any]]) -> dict[tuple[str, str], tuple[int, str]]:
    """By (factor, level): rows at the first look with a verdict, and the verdict; what is open is not in it.

    >>> look = lambda n, verdict: {"rows": n, "lines": [{"factor": "v", "level": "B", "verdict": verdict}]}
    >>> became_certain([look(10, "not yet"), look(20, "better"), look(40, "better")])
    {('v', 'B'): (20, 'better')}
    """
    found: dict[tuple[str, str], tuple[int, str]] = {}
    for look in looks:
        for line in look["lines"]:
            place = (line["factor"], line["level"])
            if line["verdict"] not in OPEN and place not in found:
                found[place] = (look["rows"], line["verdict"])
    return found


def _replaying(study: Study) -> Engine:
    """An engine for rows as they were scored. It forecasts nothing, so its predictor may be the cheapest.

    Unless there is an alarm, which listens to what the predictor believes.
    """
    engine = Engine(study.definition, study._stored.engine)
    own = engine.sequence
    if own.alarm:
        return engine
    nothing: Array = np.zeros(len(study.definition.columns))
    try:
        engine.sequence = ConfidenceSequence(
            own.family, own.space, own.alpha, predictor=Fixed(nothing), voices=own.voices
        )
    except LikesetError:
        engine.sequence = own  # slower, the same answers
    return engine
