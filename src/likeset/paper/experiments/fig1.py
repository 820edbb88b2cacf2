"""Fig. 1: sets in the plane for two likelihoods at two sizes, and bands over a function in a search for its maximum."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from likeset.bandits.environments import paper_1d
from likeset.families import Gaussian, Laplace
from likeset.paper.experiments.cells import Cell, Rows
from likeset.paper.experiments.drawing import canvas, save
from likeset.paper.experiments.fig2 import BOUND
from likeset.paper.experiments.figures import Figure, Scale
from likeset.paper.experiments.methods import label_of, methods_for
from likeset.paper.experiments.play import play
from likeset.paper.experiments.tables import Table
from likeset.spaces import Linear

ALPHA = 0.1
SIZES = (8, 32)
PLANE_TRUTH = np.array([0.6, 0.4])
PLANE_BOUND = 3.0
PLANES = {"plane-gaussian": Gaussian(0.5), "plane-laplace": Laplace(0.5)}
BAND_ROUNDS = 20
BAND_COLLECTOR = "lr-bound"
# Colours of lines as in the other figures: the paper's method black, its heuristic orange, AY's ellipsoid blue, and
# darker where cut, our default red.
_DRAWN = (
    ("AY 2011", "0.94", ":", "#0072b2"),
    ("AY 2011, cut", "0.88", (0, (5, 1)), "#003c66"),
    ("lr-bound", "0.8", "-", "black"),
    ("heuristic", "none", (0, (4, 2)), "#e69f00"),
)


def plan(scale: Scale) -> list[Cell]:
    """Two sets in the plane and the bands of every method; only the first repeat is drawn, all are compared."""
    settings = {"alpha": ALPHA, "seed": scale.seed}
    planes = [Cell("fig1", name, "lr-plug-in", 0, settings, cost=1.0) for name in PLANES]
    problem = paper_1d("gaussian", BOUND)
    band_settings = {**settings, "rounds": BAND_ROUNDS, "bound": BOUND}
    return planes + [
        Cell("fig1", "band", method, repeat, band_settings, cost=0.15)
        for method in methods_for(problem.family, problem.space)
        for repeat in range(scale.repeated(10, 3))
    ]


def run(cell: Cell) -> Rows:
    """Boundary points of a set in the plane, or a band on the grid."""
    return _run_band(cell) if cell.problem == "band" else _run_plane(cell)


def _run_plane(cell: Cell) -> Rows:
    family, space = PLANES[cell.problem], Linear(dim=2, bound=PLANE_BOUND)
    rng = cell.rng()
    sequence = methods_for(family, space)[cell.method].build(family, space, cell.number("alpha"))
    rows: Rows = {name: [] for name in ("n", "x", "y")}
    for n in SIZES:
        X = rng.normal(size=(n - sequence.n_observations, 2))
        sequence.update(X, family.sample(X @ PLANE_TRUTH, rng))
        for point in sequence.set.boundary(360):
            for name, value in zip(rows, (n, *point.tolist()), strict=True):
                rows[name].append(value)
    return rows


def _run_band(cell: Cell) -> Rows:
    """The band of one method, from data that one and the same bandit collected for all methods."""
    problem = paper_1d("gaussian", cell.number("bound"))
    methods = methods_for(problem.family, problem.space)
    alpha = cell.number("alpha")
    collector = methods[BAND_COLLECTOR].build(problem.family, problem.space, alpha)
    data = play(problem, collector, cell.count("rounds"), cell.rng(), cell.rng("ties"))
    sequence = methods[cell.method].build(problem.family, problem.space, alpha)
    counts = np.zeros(len(problem.arms))
    sums = np.zeros(len(problem.arms))
    for arm, y in zip(data.arm, data.y, strict=True):
        sequence.update(problem.arms[arm], y)
        counts[arm] += 1
        sums[arm] += y
    low, high = sequence.set.interval(problem.arms)
    means = np.full(len(counts), np.nan)
    np.divide(sums, counts, out=means, where=counts > 0)
    columns = {"x": problem.arms[:, 0], "lower": low, "upper": high, "truth": problem.theta, "n": counts, "y": means}
    provable = methods[cell.method].provable
    return {"provable": [provable] * len(low), **{name: values.tolist() for name, values in columns.items()}}


def draw(table: Table, folder: Path) -> list[Path]:
    """Three panels in a row, the band twice as wide."""
    figure, axes = canvas(1, 3, 12.0, 4.2)
    axes[0, 0].get_subplotspec().get_gridspec().set_width_ratios([1, 1, 2.2])
    for axis, letter, name in zip(axes.flat, "ab", PLANES, strict=False):
        kind = name.removeprefix("plane-").capitalize()
        _draw_plane(axis, table.where(problem=name), f"{letter}) {kind} likelihood")
    _draw_band(axes[0, 2], table.where(problem="band", repeat=0))
    return [save(figure, folder / "fig1")]


def _draw_plane(axis: Any, table: Table, title: str) -> None:
    for n, fill, line in zip(SIZES, ("0.88", "0.66"), ("--", "-"), strict=True):
        part = table.where(n=n)
        x, y = (np.append(part[c], part[c][:1]).astype(float) for c in ("x", "y"))
        axis.fill(x, y, facecolor=fill)
        axis.plot(x, y, color="black", linestyle=line, linewidth=1.1, label=f"{n} observations")
    axis.plot(*PLANE_TRUTH, "x", color="black", label="truth")
    axis.set_aspect("equal")
    axis.set_xlim(-0.9, 2.1)
    axis.set_ylim(-1.1, 1.9)
    axis.set_title(title, fontsize=10.5)
    axis.set_xlabel("first coordinate of theta")
    axis.set_ylabel("second coordinate")
    axis.legend(fontsize=8.5, loc="upper center", bbox_to_anchor=(0.5, -0.16), frameon=False)


def _draw_band(axis: Any, table: Table) -> None:
    for name, fill, line, colour in _DRAWN:
        part = table.where(method=name)
        if len(part) == 0:
            continue
        x, low, high = (part[c].astype(float) for c in ("x", "lower", "upper"))
        if fill != "none":
            axis.fill_between(x, low, high, color=fill, linewidth=0)
        for curve in (low, high):
            axis.plot(x, curve, color=colour, linestyle=line, linewidth=1.3, label=label_of(name))
    ours = table.where(method="default")
    x = ours["x"].astype(float)
    for bound in ("lower", "upper"):
        axis.plot(x, ours[bound].astype(float), color="#d55e00", linewidth=1.6, label=label_of("default"))
    axis.plot(x, ours["truth"].astype(float), color="#117733", linewidth=1.6, linestyle="-.", label="truth")
    seen = ours["n"].astype(float) > 0
    axis.plot(x[seen], ours["y"].astype(float)[seen], "o", color="black", markersize=3.5, label="observations (mean)")
    found = dict(zip(*reversed(axis.get_legend_handles_labels()), strict=True))
    axis.legend(
        found.values(),
        found.keys(),
        fontsize=8.5,
        ncols=3,
        loc="upper center",
        bbox_to_anchor=(0.5, -0.16),
        frameon=False,
    )
    axis.set_ylim(-2 * BOUND, 2 * BOUND)
    axis.set_xlabel("x")
    axis.set_ylabel("f(x)")
    axis.set_title(f"c) Gaussian likelihood in an RKHS, {BAND_ROUNDS} optimistic queries", fontsize=10.5)


FIGURE = Figure(
    name="fig1",
    title="Fig. 1: sets and bands",
    settings=(
        "Left and middle: unweighted likelihood-ratio sets with the FTRL numerator for a parameter in the plane, "
        f"|theta| <= 3, noise 0.5, after {SIZES[0]} and {SIZES[1]} observations. Right: bands over the function of "
        f"Fig. 2a after {BAND_ROUNDS} rounds of UCB (with the paper's weighted set), all methods on the same data, "
        "alpha = 0.1, B = 4.2."
    ),
    plan=plan,
    run=run,
    draw=draw,
)
