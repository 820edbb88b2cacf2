"""What a study asks of its set: one row of the design for each level or coefficient, and what it is compared with."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from likeset._typing import Array
from likeset.study.definition import CONSTANT, Definition
from likeset.study.factors import Levels


@dataclass(frozen=True)
class Question:
    """One line of the table.

    ``label`` the level or coefficient; ``factor`` it belongs to; ``x`` its row of the design; ``column`` the design's
    column that is one for its rows (levels); ``against`` the control's row of the design, None where there is none.
    """

    label: str
    factor: str
    x: Array
    column: int | None
    against: Array | None
    is_control: bool = False

    @property
    def direction(self) -> Array:
        """What is tested against zero: the difference from the control, or the coefficient."""
        return self.x if self.against is None else self.x - self.against

    @property
    def is_level(self) -> bool:
        """Whether it is a level, with a mean outcome of its own, and not a coefficient."""
        return self.column is not None


def questions(definition: Definition) -> list[Question]:
    """All lines of the table. A level is asked at the reference of other factors: control or first level, centre."""
    columns = definition.columns
    identity = np.eye(len(columns))
    if definition.formula is not None:
        return [Question(column, "", identity[j], None, None) for j, column in enumerate(columns)]
    places, start = {}, 0 if columns[0] != CONSTANT else 1
    for f in definition.factors:
        places[f.name] = start
        start += len(f.columns)
    reference = np.zeros(len(columns))
    for f in definition.factors:
        if isinstance(f, Levels):
            number = f.number(definition.control.get(f.name, f.values[0]))
            assert number is not None
            reference[places[f.name] + number] = 1.0
    found = [] if columns[0] != CONSTANT else [Question(CONSTANT, "", identity[0], None, None)]
    for f in definition.factors:
        place = places[f.name]
        if not isinstance(f, Levels):
            found.append(Question(f.name, f.name, identity[place], None, None))
            continue
        elsewhere = reference.copy()
        elsewhere[place : place + len(f.values)] = 0.0
        control = f.number(definition.control[f.name]) if f.name in definition.control else None
        against = None if control is None else elsewhere + identity[place + control]
        for i, value in enumerate(f.values):
            column = place + i
            found.append(
                Question(str(value), f.name, elsewhere + identity[column], column, against, is_control=i == control)
            )
    return found
