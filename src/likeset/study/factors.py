"""Factors: what a named column may hold, and the columns of the design that it becomes. Fixed before the first row.

["A", "B", "C"]      levels: one column of zeros and ones for each
range(1, 9)          whole numbers from 1 to 8, one column that runs from -1 to 1
(20, 90)             an interval: one column that runs from -1 to 1; nothing outside is accepted
float                a number as it is
{"centre": 40, "scale": 10}   a number in units of its own: (value - centre) / scale
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from likeset._typing import Array
from likeset.arguments import LARGEST, positive, real_number
from likeset.errors import InvalidArgumentError, RowError
from likeset.study.frames import Columns
from likeset.study.spelling import near

MOST_LEVELS = 1000
_DIGITS = 3
_WAYS = 'levels ["A", "B"], an interval (low, high), range(1, 9), float, or {"centre": c, "scale": s}'


class Factor(Protocol):
    """One named column of the user's."""

    @property
    def name(self) -> str:
        """The column."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the design's columns that it becomes."""

    @property
    def origin(self) -> Array:
        """Those columns at the factor's reference: its first level, its centre."""

    def recorded(self, frame: Columns) -> Array:
        """What is kept of the column: numbers, or the number of each level."""

    def encoded(self, recorded: Array) -> Array:
        """The design's columns, one row per row."""

    def shown(self, recorded: Array) -> list[Any]:
        """Values as the user wrote them."""

    def read_back(self, x: float) -> Any:
        """The value whose one coordinate in a smooth model is x."""

    def described(self) -> Any:
        """Plain JSON from which ``factor`` makes it again."""


@dataclass(frozen=True)
class Levels:
    """A factor with finitely many levels."""

    name: str
    values: tuple[Any, ...]
    _index: dict[Any, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not 1 <= len(self.values) <= MOST_LEVELS:
            raise InvalidArgumentError(
                f"factors[{self.name!r}]", list(self.values), f"has {len(self.values)} levels", "name 1 to 1000 levels"
            )
        for value in self.values:
            if isinstance(value, float) and not math.isfinite(value):
                value = None
            if not isinstance(value, (str, int, float, bool)):
                raise InvalidArgumentError(
                    f"factors[{self.name!r}]", value, "is no level", "use texts, numbers or flags as levels"
                )
        index = {value: i for i, value in enumerate(self.values)}
        words = {str(value).strip(): i for i, value in enumerate(self.values)}
        if len(index) < len(self.values) or len(words) < len(self.values):
            raise InvalidArgumentError(
                f"factors[{self.name!r}]", list(self.values), "names a level twice", "name each level once"
            )
        object.__setattr__(self, "_index", words | index)

    @property
    def columns(self) -> tuple[str, ...]:
        """One for each level."""
        return tuple(f"{self.name}[{value}]" for value in self.values)

    @property
    def origin(self) -> Array:
        """The first level."""
        return np.eye(len(self.values))[0]

    def number(self, value: Any) -> int | None:
        """The number of a level, or of the word for it."""
        try:
            return self._index.get(value)
        except TypeError:
            return None

    def recorded(self, frame: Columns) -> Array:
        """Numbers of levels."""
        found = [self._index.get(v) if v.__hash__ is not None else None for v in frame.values(self.name)]
        if None in found:
            known = ", ".join(map(str, self.values[:8])) + (", ..." if len(self.values) > 8 else "")
            at = found.index(None)
            meant = near(frame.values(self.name)[at], self.values)
            raise frame.error(
                self.name, at, f"is no level of {self.name!r}{meant}", f"the levels are {known}; mend the cell"
            )
        return np.array(found, dtype=np.float64)

    def encoded(self, recorded: Array) -> Array:
        """Zeros, and a one in the column of the level."""
        return np.eye(len(self.values))[recorded.astype(np.intp)]

    def shown(self, recorded: Array) -> list[Any]:
        """Levels as they were named."""
        return [self.values[int(number)] for number in recorded]

    def read_back(self, x: float) -> Any:
        """The level of this number."""
        return self.values[int(x)]

    def described(self) -> Any:
        """The list of levels."""
        return list(self.values)


@dataclass(frozen=True)
class Number:
    """A number, in units of its own; ``low`` and ``high`` are limits that values must keep."""

    name: str
    centre: float = 0.0
    scale: float = 1.0
    low: float = -math.inf
    high: float = math.inf
    whole: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        """One."""
        return (self.name,)

    @property
    def origin(self) -> Array:
        """The centre."""
        return np.zeros(1)

    def recorded(self, frame: Columns) -> Array:
        """The numbers."""
        try:
            numbers = frame.numbers(self.name)
        except RowError as error:
            if not isinstance(error.value, str) or error.problem != "is not a number" or "write" in error.remedy:
                raise
            levels = f"if {self.name!r} has levels, declare them: factors={{{self.name!r}: [...]}}, or --by {self.name}"
            raise RowError(error.column, error.row, error.value, error.problem, levels, error.line) from None
        outside = (numbers < self.low) | (numbers > self.high)
        if outside.any():
            raise frame.error(
                self.name, int(np.argmax(outside)), f"lies outside [{self.low:g}, {self.high:g}]",
                "the interval is fixed when the study begins; mend the cell, or begin another study",
            )  # fmt: skip
        broken = numbers != np.round(numbers)
        if self.whole and broken.any():
            raise frame.error(self.name, int(np.argmax(broken)), "is no whole number", "mend the cell")
        return numbers

    def encoded(self, recorded: Array) -> Array:
        """(value - centre) / scale."""
        return ((recorded - self.centre) / self.scale)[:, None]

    def shown(self, recorded: Array) -> list[Any]:
        """The numbers."""
        return [int(value) for value in recorded] if self.whole else recorded.tolist()

    @property
    def digits(self) -> int:
        """Decimals of numbers that can be set: three digits of the interval's width."""
        return _DIGITS - math.floor(math.log10(self.high - self.low)) - 1

    def read_back(self, x: float) -> float | int:
        """The number that is encoded as x, with as few digits as that takes."""
        value = min(max(self.centre + self.scale * float(x), self.low), self.high)
        if self.whole:
            return round(value)
        if math.isfinite(self.low):
            for digits in range(self.digits, self.digits + 14):
                short = min(max(round(value, digits), self.low), self.high)
                if self.encoded(np.array([short]))[0, 0] == x:
                    return short
        return value

    def described(self) -> Any:
        """Limits, or centre and scale."""
        if self.whole:
            return {"whole": [int(self.low), int(self.high)]}
        if math.isfinite(self.low):
            return {"interval": [self.low, self.high]}
        return {"centre": self.centre, "scale": self.scale}


def factor(name: Any, given: Any) -> Factor:
    """A factor as users write it.

    >>> factor("dose", (0, 10)).encoded(np.array([0.0, 7.5]))
    array([[-1. ],
           [ 0.5]])
    """
    if not isinstance(name, str) or not name.strip():
        raise InvalidArgumentError("factors", name, "is no name of a column", "name factors by strings")
    label = f"factors[{name!r}]"
    if given is float or given is int:
        return Number(name)
    if isinstance(given, range):
        if given.step != 1 or len(given) < 2:
            raise InvalidArgumentError(label, given, "is no range of whole numbers", "pass e.g. range(1, 9)")
        return _interval(name, label, given[0], given[-1], whole=True)
    listed = getattr(given, "tolist", None) or getattr(given, "to_list", None)
    if listed is not None and not isinstance(given, type):  # an array or a column, as frame["variant"].unique()
        given = listed()
    if isinstance(given, list):
        return Levels(name, tuple(v.item() if isinstance(v, np.generic) else v for v in given))
    if isinstance(given, tuple) and len(given) == 2 and not any(isinstance(end, str) for end in given):
        return _interval(name, label, *given)
    if isinstance(given, Mapping):
        if set(given) == {"interval"} and isinstance(given["interval"], (list, tuple)) and len(given["interval"]) == 2:
            return _interval(name, label, *given["interval"])
        if set(given) == {"whole"} and isinstance(given["whole"], (list, tuple)) and len(given["whole"]) == 2:
            return _interval(name, label, given["whole"][0], given["whole"][1], whole=True)
        if set(given) <= {"centre", "scale"}:
            centre = real_number(f"{label} centre", given.get("centre", 0.0))
            if not abs(centre) <= LARGEST:
                raise InvalidArgumentError(f"{label} centre", centre, "is too large", "pass a finite number")
            return Number(name, centre, positive(f"{label} scale", given.get("scale", 1.0)))
    raise InvalidArgumentError(label, given, "is no factor", f"pass {_WAYS}")


def _interval(name: str, label: str, low: Any, high: Any, whole: bool = False) -> Number:
    low, high = real_number(label, low), real_number(label, high)
    if not -LARGEST <= low < high <= LARGEST:
        raise InvalidArgumentError(
            label, (low, high), "is no interval", "pass (low, high) with low < high, both finite"
        )
    if whole and (low != round(low) or high != round(high)):
        raise InvalidArgumentError(label, (low, high), "has ends that are no whole numbers", "pass e.g. range(1, 9)")
    return Number(name, 0.5 * (low + high), 0.5 * (high - low), low, high, whole)


def factors_of(given: Any) -> tuple[Factor, ...]:
    """All factors, in the order given."""
    if given is None:
        return ()
    if not isinstance(given, Mapping):
        raise InvalidArgumentError(
            "factors", given, "is not a dict", f"pass {{column: factor}}, where a factor is {_WAYS}"
        )
    return tuple(factor(name, value) for name, value in given.items())
