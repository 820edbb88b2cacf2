"""What the benchmarks share: families, simulated problems, timing, tables."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import likeset as ls

Array = np.ndarray

ALPHA = 0.05
SIGMA, LAPLACE_SCALE, WEIBULL_SHAPE = 0.5, 0.5, 2.0

FAMILIES: dict[str, Any] = {
    "Gaussian": ls.Gaussian(SIGMA),
    "Poisson": ls.Poisson(),
    "Bernoulli": ls.Bernoulli(),
    "Weibull": ls.Weibull(WEIBULL_SHAPE),
    "Laplace": ls.Laplace(LAPLACE_SCALE),
}


@dataclass
class Report:
    """Result of one benchmark: records for the JSON file, and how to show them."""

    title: str
    columns: list[tuple[str, str, str]]  # (key of the record, heading, format)
    records: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def table(self) -> Table:
        """The records as a table; a value of None shows as a dash."""
        table = Table(title=self.title)
        for key, heading, _ in self.columns:
            textual = any(isinstance(record[key], str) for record in self.records)
            table.add_column(heading, justify="left" if textual else "right")
        for record in self.records:
            cells = [(record[key], style) for key, _, style in self.columns]
            table.add_row(*("-" if value is None else format(value, style) for value, style in cells))
        return table

    def markdown(self) -> str:
        """The same as a Markdown table."""
        rows = [[heading for _, heading, _ in self.columns], ["---"] * len(self.columns)]
        for record in self.records:
            cells = [(record[key], style) for key, _, style in self.columns]
            rows.append(["-" if value is None else format(value, style) for value, style in cells])
        notes = "".join(f"\n* {note}" for note in self.notes)
        table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
        return f"## {self.title}\n\n{table}\n{notes}\n"

    def show(self, console: Console) -> None:
        """Print the table and the notes."""
        console.print(self.table())
        for note in self.notes:
            console.print(f"  {note}")


def seconds(action: Callable[[], Any]) -> float:
    """Wall time of one call."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def median_seconds(actions: list[Callable[[], Any]]) -> float:
    """Median wall time over calls that do the same work."""
    return float(np.median([seconds(action) for action in actions]))


def fresh(sequence: ls.ConfidenceSequence) -> ls.LikelihoodSet:
    """A snapshot that has not been asked anything, as after every new observation.

    A copy of another snapshot will not do: copies share the evidence, and with it whatever was prepared for them.
    """
    sequence._set = None
    return sequence.set


def covariates(rng: np.random.Generator, count: int, dim: int) -> Array:
    """Random directions of norm about one."""
    return rng.standard_normal((count, dim)) / np.sqrt(dim)


def parameter(rng: np.random.Generator, dim: int, norm: float) -> Array:
    """A random theta of the given norm."""
    theta = rng.standard_normal(dim)
    return theta * (norm / np.linalg.norm(theta))


def ratio_error(above: Array, below: Array) -> float:
    """Standard error of the ratio of two means over paired runs."""
    residual = above - below * (above.mean() / below.mean())
    return float(residual.std(ddof=1) / np.sqrt(len(above)) / below.mean())
