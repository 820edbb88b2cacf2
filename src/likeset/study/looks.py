"""A study as it looked earlier: its rows are taken again as they were scored, and the table is asked on the way."""

from __future__ import annotations

from typing import Any

import numpy as np

from likeset._typing import Array
from likeset.progress import counted
from likeset.study import answers
from likeset.study.definition import Definition
from likeset.study.engine import TOLD, Engine


def look_times(rows: int, count: int) -> list[int]:
    """About ``count`` numbers of rows from 1 to ``rows``, denser at first.

    >>> look_times(100, 5), look_times(3, 10)
    ([1, 3, 10, 32, 100], [1, 2, 3])
    """
    if rows == 0:
        return []
    return sorted({round(rows ** (i / max(count - 1, 1))) for i in range(count)} | {rows})


def looks(definition: Definition, settings: dict[str, Any], scored: dict[str, Array], count: int) -> list[Any]:
    """(number of rows, table) at about ``count`` times; the table is None once the set is empty."""
    engine, found, before, told = Engine(definition, settings), [], 0, np.cumsum(scored[TOLD])
    times = np.searchsorted(told, look_times(int(told[-1]) if len(told) else 0, count)) + 1
    looked = sorted(set(times.tolist()))
    for rows in counted(looked, len(looked), "looking at earlier times"):
        engine.replay({name: part[before:rows] for name, part in scored.items()})
        before = rows
        empty = engine.set.is_empty
        found.append((int(told[rows - 1]), None if empty else answers.rows(definition, engine.set, engine.counts())))
    return found


def columns_over_time(found: list[Any], names: tuple[str, ...], lines: list[int]) -> list[Array]:
    """Entries of the tables as arrays of shape (looks, lines); NaN where there is none.

    ``lines`` are those of the last table; settings of a smooth model have other places in earlier ones, or none.
    """
    last = next(t for _, t in reversed(found) if t is not None)
    wanted = [(last[i]["factor"], last[i]["level"]) for i in lines]
    tables = [{(line["factor"], line["level"]): line for line in t or ()} for _, t in found]
    arrays = []
    for name in names:
        values = [[table[w][name] if w in table else None for w in wanted] for table in tables]
        arrays.append(np.array([[np.nan if v is None else v for v in row] for row in values], dtype=np.float64))
    return arrays
