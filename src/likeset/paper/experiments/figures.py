"""The figures of the paper: what each is made of. A new figure is one new file and one entry in ``FIGURES``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from likeset.errors import InvalidArgumentError
from likeset.paper.experiments.cells import Cell, Rows
from likeset.paper.experiments.tables import Table


@dataclass(frozen=True)
class Scale:
    """How much to run: ``quick`` has fewer repeats and rounds; ``repeats`` overrides the number of either."""

    quick: bool = False
    repeats: int | None = None
    seed: int = 0

    def choose(self, full: int, quick: int) -> int:
        """A number that is smaller in a quick run."""
        return quick if self.quick else full

    def repeated(self, full: int, quick: int) -> int:
        """Number of repeats."""
        return self.repeats if self.repeats is not None else self.choose(full, quick)

    def at_most(self, full: int, quick: int) -> int:
        """Number of repeats of something slow, which no wish for more exceeds."""
        return min(self.choose(full, quick), self.repeated(full, quick))


@dataclass(frozen=True)
class Figure:
    """A figure: its cells, how one is run, how the table of all rows is drawn (files without their ending)."""

    name: str
    title: str
    settings: str
    plan: Callable[[Scale], list[Cell]]
    run: Callable[[Cell], Rows]
    draw: Callable[[Table, Path], list[Path]]


@cache
def figures() -> dict[str, Figure]:
    """All figures by name, in the order of the paper."""
    from likeset.paper.experiments import bounds, fig1, fig2, fig3, fig4, power, weights_study

    return {
        figure.name: figure for figure in (m.FIGURE for m in (fig1, fig2, fig3, fig4, weights_study, power, bounds))
    }


def chosen(name: str) -> list[Figure]:
    """The figure of that name, or all."""
    if name == "all":
        return list(figures().values())
    if name not in figures():
        raise InvalidArgumentError("figure", name, "is unknown", f"use {', '.join(figures())} or all")
    return [figures()[name]]


def run_cell(cell: Cell) -> Rows:
    """The rows of a cell: a pure function of the cell."""
    return figures()[cell.figure].run(cell)
