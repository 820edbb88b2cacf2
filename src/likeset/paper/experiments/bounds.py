"""The theory's figure: every bound of the paper beside what happened, over time."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from likeset.paper.experiments.cells import Cell, Rows
from likeset.paper.experiments.figures import Figure, Scale
from likeset.paper.experiments.tables import Table
from likeset.paper.theory.looseness import NAMES, Looseness, play, setting, summary
from likeset.paper.theory.track import Track

ROUNDS, REPEATS = (300, 80), (40, 4)


def plan(scale: Scale) -> list[Cell]:
    """Every model and repeat."""
    settings = {"rounds": scale.choose(*ROUNDS), "seed": scale.seed}
    return [
        Cell("theory", model, "bounds", repeat, settings, cost=0.002 * settings["rounds"])
        for model in NAMES
        for repeat in range(scale.repeated(*REPEATS))
    ]


def run(cell: Cell) -> Rows:
    """One run: one row per bound and time."""
    rows: Rows = {name: [] for name in ("panel", "name", "result", "status", "promise", "t", "realised", "bound")}
    for track in play(cell.problem, cell.count("rounds"), cell.count("seed"), cell.repeat):
        for t, realised, bound in zip(track.t.tolist(), track.realised.tolist(), track.bound.tolist(), strict=True):
            values = (track.panel, track.name, track.result, track.status, track.promise, t, realised, bound)
            for column, value in zip(rows.values(), values, strict=True):
                column.append(value)
    return rows


def looseness(table: Table) -> Looseness:
    """The study whose runs are the rows of the table."""
    tracks = []
    for (model, _, panel, name, result), part in table.groups("problem", "repeat", "panel", "name", "result"):
        status, promise = str(part["status"][0]), float(part["promise"][0])
        times = part["t"].astype(np.int64)
        tracks.append((model, Track(panel, name, result, status, promise, times, part["realised"], part["bound"])))
    repeats = len(table.distinct("repeat"))
    return summary(tracks, int(table["t"].max()), repeats, 0)


def draw(table: Table, folder: Path) -> list[Path]:
    """Realised online regret, set size and bandit regret against their bounds."""
    return [looseness(table).figure(folder / "theory.png").with_suffix("")]


FIGURE = Figure(
    name="theory",
    title="Theory: bounds and what happened",
    settings=setting(),
    plan=plan,
    run=run,
    draw=draw,
)
