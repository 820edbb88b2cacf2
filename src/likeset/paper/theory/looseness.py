"""How loose is the theory? Many games, every bound, one table, one picture, one paragraph."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, fields
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from likeset._typing import Array
from likeset.arguments import file_path, positive_integer, seed_number, writing
from likeset.errors import InvalidArgumentError
from likeset.paper.theory import survival_trial
from likeset.paper.theory.track import Track
from likeset.paper.theory.trial import ALPHA, ARMS, DELTA, DIM, MODELS, Trial
from likeset.persistence.atomic_file import write_table

NAMES = (*(model.name for model in MODELS), survival_trial.NAME)
"""The games that are played; the third has fewer bounds."""


@dataclass(frozen=True)
class Row:
    """One bound on one model, over all runs.

    realised, bound, ratio   medians over runs at the last round; the ratio is that of bound to realised, run by run
    promise                  probability with which the result promises to hold at all rounds at once
    held, runs               in how many runs it did
    """

    model: str
    panel: str
    name: str
    result: str
    status: str
    realised: float
    bound: float
    ratio: float
    promise: float
    held: int
    runs: int


@dataclass(frozen=True)
class Line:
    """A realised quantity and its bound over time: medians and quartiles over runs."""

    row: Row
    t: Array
    realised: Array
    realised_low: Array
    realised_high: Array
    bound: Array


@dataclass(frozen=True)
class Looseness:
    """Result of :func:`study`."""

    lines: tuple[Line, ...]
    rounds: int
    repeats: int
    seed: int

    @property
    def rows(self) -> list[Row]:
        """One row per model and bound."""
        return [line.row for line in self.lines]

    def row(self, model: str, result: str) -> Row:
        """The first row of a model whose result starts like this."""
        if isinstance(model, str) and isinstance(result, str):
            for row in self.rows:
                if row.model == model and row.result.startswith(result):
                    return row
        raise InvalidArgumentError("result", (model, result), "is not in the table", "see rows for models and results")

    def figure(self, path: str | PathLike[str]) -> Path:
        """Draw the picture to ``path`` (.png) and beside it as .svg; returns the path of the PNG file."""
        from likeset.paper.theory.drawing import draw

        with writing(file_path("path", path)) as target:
            if not target.name:
                raise InvalidArgumentError("path", path, "names a folder", "pass the path of a file, e.g. theory.png")
            return draw(self, target)

    def paragraph(self) -> str:
        """How loose each bound is, in words, from the numbers of this study."""
        from likeset.paper.theory.words import describe

        return describe(self)

    def write_csv(self, folder: str | PathLike[str]) -> tuple[Path, Path]:
        """theory.csv, one line per row of the table, and theory-curves.csv, one line per bound and time."""
        with writing(file_path("folder", folder)) as place:
            return self._write_csv(place)

    def _write_csv(self, folder: Path) -> tuple[Path, Path]:
        table, curves = folder / "theory.csv", folder / "theory-curves.csv"
        write_table(table, [[f.name for f in fields(Row)], *(asdict(row).values() for row in self.rows)])
        write_table(curves, self._points())
        return table, curves

    def _points(self) -> Iterator[tuple[Any, ...]]:
        numbers = ("t", "realised", "realised_low", "realised_high", "bound")
        yield ("model", "panel", "name", "result", *numbers)
        for line in self.lines:
            who = (line.row.model, line.row.panel, line.row.name, line.row.result)
            for entry in zip(*(getattr(line, name).tolist() for name in numbers), strict=True):
                yield (*who, *entry)


def study(
    rounds: int = 300, repeats: int = 40, seed: int = 0, on_run: Callable[[], object] = lambda: None
) -> Looseness:
    """Play every model ``repeats`` times and evaluate every bound on each run.

    Each run draws arms and a truth afresh and depends on (seed, model, number of the run) only. ``on_run`` is called
    after each of the ``runs_of(repeats)`` runs.

    >>> found = study(rounds=12, repeats=2)
    >>> sorted({row.panel for row in found.rows if row.status == "proved"})[:3]
    ['bandit regret', 'cost of weights', 'deviation']
    >>> found.row("linear Gaussian", "Theorem 4").runs
    2
    """
    rounds, repeats = positive_integer("rounds", rounds), positive_integer("repeats", repeats)
    seed = seed_number("seed", seed)
    if not callable(on_run):
        raise InvalidArgumentError("on_run", on_run, "is not callable", "pass a function without arguments")
    tracks: list[tuple[str, Track]] = []
    for model in NAMES:
        for run in range(repeats):
            tracks.extend((model, track) for track in play(model, rounds, seed, run))
            on_run()
    return summary(tracks, rounds, repeats, seed)


def play(model: str, rounds: int, seed: int, run: int) -> list[Track]:
    """All tracks of one run of the model of that name."""
    number = NAMES.index(model)
    if model == survival_trial.NAME:
        game = survival_trial.SurvivalTrial(max(rounds, 2), [seed, number, run], DIM, ARMS, ALPHA, DELTA)
        return list(game.tracks())
    return list(Trial(MODELS[number], max(rounds, 2), [seed, number, run]).tracks())


def summary(tracks: Iterable[tuple[str, Track]], rounds: int, repeats: int, seed: int) -> Looseness:
    """Many runs put together; ``tracks`` are pairs (name of the model, track)."""
    collected: dict[tuple[str, str, str, str], list[Track]] = {}
    for model, track in tracks:
        collected.setdefault((model, track.panel, track.name, track.result), []).append(track)
    return Looseness(tuple(_line(key[0], group) for key, group in collected.items()), rounds, repeats, seed)


def runs_of(repeats: int) -> int:
    """How many runs a study of so many repeats plays."""
    return repeats * len(NAMES)


def setting() -> str:
    """The games of the study in one sentence."""
    games = "; ".join(f"{m.name}: {m.family!r}, B = {m.bound:g}, lambda = nu = {m.penalty:g}" for m in MODELS)
    games += (
        f"; {survival_trial.NAME}: {survival_trial.FAMILY!r}, B = {survival_trial.BOUND:g}, where fewer results apply"
    )
    return (
        f"UCB with the set of FTRL among {ARMS} random unit arms in R^{DIM}, |theta*| = 0.9 B, alpha = {ALPHA:g}, "
        f"delta = {DELTA:g} ({games})."
    )


def _line(model: str, tracks: list[Track]) -> Line:
    first = tracks[0]
    realised, bound = (np.array([getattr(track, which) for track in tracks]) for which in ("realised", "bound"))
    low, middle, high = np.quantile(realised, [0.25, 0.5, 0.75], axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(realised[:, -1] > 0, bound[:, -1] / realised[:, -1], np.inf)
    row = Row(
        model, first.panel, first.name, first.result, first.status, float(middle[-1]), float(np.median(bound[:, -1])),
        float(np.median(ratios)), first.promise, sum(track.held for track in tracks), len(tracks),
    )  # fmt: skip
    return Line(row, first.t.astype(np.float64), middle, low, high, np.median(bound, axis=0))
