"""Tidy tables: the rows of many cells put together, one column per name, and written as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likeset.paper.experiments.cells import Cell, Rows
from likeset.paper.experiments.store import write_atomically

Column = NDArray[Any]


class Table:
    """Columns of equal length. Made to be filtered and grouped, no more.

    >>> table = Table({"method": ["a", "a", "b"], "regret": [1.0, 3.0, 2.0]})
    >>> table.where(method="a")["regret"].mean()
    np.float64(2.0)
    >>> [(name, len(part)) for (name,), part in table.groups("method")]
    [('a', 2), ('b', 1)]
    """

    def __init__(self, columns: Mapping[str, Any]) -> None:
        self.columns: dict[str, Column] = {name: np.asarray(values) for name, values in columns.items()}

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()))) if self.columns else 0

    def __getitem__(self, name: str) -> Column:
        return self.columns[name]

    def where(self, **equal: Any) -> Table:
        """The rows in which every named column has the given value."""
        keep = np.ones(len(self), dtype=bool)
        for name, value in equal.items():
            keep &= self.columns[name] == value if name in self.columns else False
        return self.at(keep)

    def at(self, keep: Column) -> Table:
        """The rows of a mask or of a list of numbers."""
        return Table({name: values[keep] for name, values in self.columns.items()})

    def distinct(self, name: str) -> list[Any]:
        """The values of a column in order of first appearance."""
        return list(dict.fromkeys(self.columns[name].tolist())) if name in self.columns else []

    def groups(self, *names: str) -> Iterator[tuple[tuple[Any, ...], Table]]:
        """The rows that agree in the named columns, group by group, in order of first appearance."""
        members: dict[tuple[Any, ...], list[int]] = {}
        for i, key in enumerate(zip(*(self.columns[name].tolist() for name in names), strict=True)):
            members.setdefault(key, []).append(i)
        for key, numbers in members.items():
            yield key, self.at(np.array(numbers))

    def write_csv(self, path: Path) -> None:
        """Comma-separated, one line per row, numbers as Python writes them: exact and the same on every run."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows(zip(*(values.tolist() for values in self.columns.values()), strict=True))
        write_atomically(path, text.getvalue().encode())


def gather(finished: Iterable[tuple[Cell, Rows]]) -> Table:
    """The rows of cells in their order, the cell's names as first columns; NaN where a cell lacks a column."""
    ordered = list(finished)
    names = list(dict.fromkeys(name for _, rows in ordered for name in rows))
    columns: dict[str, list[Any]] = {name: [] for name in ("problem", "method", "repeat", *names)}
    for cell, rows in ordered:
        length = len(next(iter(rows.values()), []))
        for name, value in (("problem", cell.problem), ("method", cell.method), ("repeat", cell.repeat)):
            columns[name].extend([value] * length)
        for name in names:
            columns[name].extend(rows.get(name, [float("nan")] * length))
    return Table(columns)
