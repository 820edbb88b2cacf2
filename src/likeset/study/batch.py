"""Rows that are told, checked cell by cell and made covariates and outcomes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from likeset._typing import Array
from likeset.errors import InvalidArgumentError, LikesetError
from likeset.evidence.intake import given_rows, observations
from likeset.study.frames import Columns

if TYPE_CHECKING:
    from likeset.study.definition import Definition

OPTIONS = ("trials", "exposure", "offset")  # of a row, as ``update`` takes them
Flags = NDArray[np.bool_]
_APART = {2: 2.0**11, 4: 2.0**24, 8: 2.0**53, 16: 2.0**53}  # floats of so many bytes hold whole numbers up to here


@dataclass(frozen=True)
class Batch:
    """Rows that passed every check: what is scored, and what is kept of the user's columns."""

    x: Array
    y: Array
    recorded: dict[str, Any]  # by column: numbers (of levels, for factors with levels), or texts for the key
    keys: list[str] | None
    options: dict[str, Array]  # offset, exposure and trials of each row, as ``update`` takes them
    worked: Flags | None = None  # whether each row has an outcome; None: all have
    constraints: dict[str, Array] = field(default_factory=dict)  # outcomes of constraints, NaN where there is none

    def __len__(self) -> int:
        return len(self.x)

    def part(self, start: int, stop: int) -> Batch:
        """Rows from ``start`` up to ``stop``; a view."""
        part = slice(start, stop)
        return Batch(
            self.x[part], self.y[part], {n: cells[part] for n, cells in self.recorded.items()},
            None if self.keys is None else self.keys[part], {n: cells[part] for n, cells in self.options.items()},
            None if self.worked is None else self.worked[part], {n: c[part] for n, c in self.constraints.items()},
        )  # fmt: skip

    def taken(self, keep: Flags) -> Batch:
        """The rows for which ``keep`` is true."""
        kept = np.flatnonzero(keep)
        recorded = {
            name: cells[kept] if isinstance(cells, np.ndarray) else [cells[i] for i in kept]
            for name, cells in self.recorded.items()
        }
        keys = None if self.keys is None else [self.keys[i] for i in kept]
        worked = None if self.worked is None else self.worked[kept]
        options, constraints = ({k: v[kept] for k, v in part.items()} for part in (self.options, self.constraints))
        return Batch(self.x[kept], self.y[kept], recorded, keys, options, worked, constraints)


def read_batch(definition: Definition, frame: Columns, failed: bool = False) -> Batch:
    """Rows of a frame; RowError names the first cell that cannot be used. Failed rows need no outcome."""
    recorded: dict[str, Any] = {f.name: f.recorded(frame) for f in definition.factors}
    x = definition.covariates(recorded, frame)
    worked = _worked(definition, frame, failed)
    constraints = {name: _constrained(definition, frame, name, worked) for name in definition.campaign.safe}
    chosen = frame if worked is None or worked.all() else frame.taken(worked)
    known, options, y = _heard(definition, chosen)
    if chosen is not frame:
        assert worked is not None
        known = {name: _spread(cells, worked, np.nan) for name, cells in known.items()}
        options = {name: _spread(cells, worked, 0.0) for name, cells in options.items()}
        y = _spread(y, worked, 0.0)
    recorded |= known | constraints
    if worked is not None:
        recorded[definition.campaign.failed] = np.where(worked, 0.0, 1.0)
    keys = None
    if definition.key is not None:
        keys = _keys(definition.key, frame)
        recorded[definition.key] = keys
    return Batch(x, y, recorded, keys, options, worked, constraints)


def refuse_other_columns(definition: Definition, frame: Columns, failed: bool) -> None:
    """For a frame that has names and no rows yet: the error that its first row would bring, if a column is missing."""
    if not frame.cells:
        return
    heard = () if failed else (definition.outcome, *definition.roles.values())
    key = () if definition.key is None else (definition.key,)
    for name in (*(f.name for f in definition.factors), *definition.campaign.safe, *heard, *key):
        frame[name]


def _keys(name: str, frame: Columns) -> list[str]:
    """The keys of rows, or the first that may be another one: beyond 2^53 floats skip whole numbers."""
    values, cells = frame.values(name), frame[name]
    limit = _APART[cells.dtype.itemsize] if isinstance(cells, np.ndarray) and cells.dtype.kind == "f" else _APART[8]
    for i, value in enumerate(values):
        if isinstance(value, float) and not abs(value) < limit:
            raise frame.error(
                name, i, "is a float, and too large to be told from the next whole number",
                "hold keys as whole numbers or as text, from where they are read on",
            )  # fmt: skip
    return [key_text(value) for value in values]


def key_text(value: Any) -> str:
    """A key as it is kept. A whole number is one key, however a frame or a file holds it.

    >>> key_text(7), key_text(7.0), key_text("7.0"), key_text("07"), key_text(7.5)
    ('7', '7', '7', '07', '7.5')
    """
    text = "0" if value == 0 and isinstance(value, float) else str(value)
    return text[:-2] if text.endswith(".0") and text[:-2].removeprefix("-").isdecimal() else text


def _heard(definition: Definition, frame: Columns) -> tuple[dict[str, Array], dict[str, Array], Array]:
    """Recorded columns of the outcome, options as ``update`` takes them, and checked outcomes of rows that have one."""
    names = (definition.outcome, *definition.roles.values())
    if len(frame) == 0:
        nothing = {name: np.zeros(0) for name in names}
        return nothing, {role: np.zeros(0) for role in OPTIONS if role in definition.roles}, np.zeros(0)
    recorded = {name: frame.numbers(name) for name in names}
    options = {role: recorded[definition.roles[role]] for role in OPTIONS if role in definition.roles}
    return recorded, options, _outcomes(definition, frame, recorded, options)


def _outcomes(
    definition: Definition, frame: Columns, recorded: Mapping[str, Array], options: Mapping[str, Array]
) -> Array:
    y = recorded[definition.outcome]
    if definition.family.observation_shape:
        event = recorded[definition.roles["event"]] if "event" in definition.roles else np.ones(len(y))
        y = np.column_stack([y, event])

    entry = recorded[definition.roles["entry"]] if "entry" in definition.roles else None

    def checked(count: int) -> Array:
        known = {role: cells[:count] for role, cells in options.items()}
        given = given_rows(definition.family, count, **known, entry=None if entry is None else entry[:count])
        found = observations(definition.family, y[:count], given)
        return found if entry is None else np.column_stack([entry[:count], found])

    try:
        return checked(len(y))
    except InvalidArgumentError as error:
        column = definition.roles.get(error.argument.partition("[")[0], definition.outcome)
        raise frame.error(column, _first_refused(checked, len(y)), error.problem, error.remedy) from None


def _worked(definition: Definition, frame: Columns, failed: bool) -> Flags | None:
    """Which rows have an outcome; None in a study in which all have."""
    if not definition.campaign.given:
        if failed:
            raise InvalidArgumentError(
                "failed", True, "means nothing in a study that does not choose",
                'begin the study with model="smooth", safe=, until= or failed="column"',
            )  # fmt: skip
        return None
    if failed or definition.campaign.failed not in frame.cells:
        return np.full(len(frame), not failed)
    return ~frame.flags(definition.campaign.failed)


def _constrained(definition: Definition, frame: Columns, name: str, worked: Flags | None) -> Array:
    """Outcomes of a constraint, NaN where there is none: rows that failed may do without."""
    needed = np.ones(len(frame), bool)
    if worked is not None and not worked.all():
        needed = worked | (frame.present(name) if name in frame.cells else np.zeros(len(frame), bool))
    chosen = frame.taken(needed)
    values = np.full(len(frame), np.nan)
    if len(chosen):
        numbers, family = chosen.numbers(name), definition.campaign.safe[name].family

        def checked(count: int) -> Array:
            return np.asarray(family.observations(numbers[:count]))

        try:
            checked(len(numbers))
        except InvalidArgumentError as error:
            raise chosen.error(name, _first_refused(checked, len(numbers)), error.problem, error.remedy) from None
        values[needed] = numbers
    return values


def _spread(cells: Array, worked: Flags, missing: float) -> Array:
    """Cells at the rows that worked, something that stands for nothing elsewhere."""
    whole = np.full((len(worked), *cells.shape[1:]), missing)
    whole[worked] = cells
    return whole


def _first_refused(check: Callable[[int], Array], count: int) -> int:
    """The first row that makes ``check(number of rows)`` fail."""
    fine, bad = 0, count
    while bad - fine > 1:
        middle = (fine + bad) // 2
        try:
            check(middle)
            fine = middle
        except LikesetError:
            bad = middle
    return bad - 1
