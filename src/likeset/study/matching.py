"""Which run a row answers: the one whose number it brings, else the oldest pending one with its setting."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from likeset._typing import Array
from likeset.study.asked import FAILED, PENDING, TOLD, Run
from likeset.study.campaign import RUN
from likeset.study.definition import Batch, Definition
from likeset.study.frames import Columns, columns_of


def has_run_column(definition: Definition) -> bool:
    """Whether the column of that name is free to hold the numbers of runs."""
    taken = {f.name for f in definition.factors} | {definition.outcome, definition.key, *definition.roles.values()}
    return RUN not in taken | set(definition.campaign.safe) | {definition.campaign.failed}


def run_numbers(definition: Definition, frame: Columns) -> list[int | None]:
    """The number of the run that each row says it answers; None where it says nothing."""
    found: list[int | None] = [None] * len(frame)
    if RUN not in frame.cells or not has_run_column(definition):
        return found
    there = frame.present(RUN)
    given = frame.taken(there)
    numbers = given.numbers(RUN)
    broken = (numbers != np.round(numbers)) | (numbers < 1)
    if broken.any():
        raise given.error(RUN, int(np.argmax(broken)), "is no number of a run", "use the number that ask gave")
    for place, number in zip(np.flatnonzero(there), numbers, strict=True):
        found[int(place)] = int(number)
    return found


def answered_runs(
    runs: list[Run], definition: Definition, new: Batch, numbers: list[int | None], keep: Array, frame: Columns
) -> dict[int, str]:
    """What becomes of which run when these rows are recorded; a number that is not out is refused."""
    by_number = {run.number: run for run in runs}
    pending = {run.number: _setting(definition, run.setting) for run in runs if run.state == PENDING}
    answered: dict[int, str] = {}
    for i, place in enumerate(np.flatnonzero(keep)):
        number = numbers[int(place)]
        if number is not None:
            if number not in pending:
                known = number in by_number
                problem = f"is not pending: it was {by_number[number].state}" if known else "was never asked for"
                raise frame.error(
                    RUN, int(place), problem,
                    "leave the cell empty if the row is another observation; see pending for what is out",
                )  # fmt: skip
        else:
            row = tuple(float(new.recorded[f.name][i]) for f in definition.factors)
            number = next((n for n, setting in pending.items() if setting == row), None)
        if number is not None:
            del pending[number]
            failed = new.worked is not None and not new.worked[i]
            answered[number] = FAILED if failed else TOLD
    return answered


def _setting(definition: Definition, setting: Mapping[str, Any]) -> tuple[float, ...]:
    frame = columns_of([dict(setting)], "setting")
    return tuple(float(f.recorded(frame)[0]) for f in definition.factors)
