r"""Weights in low noise: the promise of section 2.2 of the paper, measured where it was made.

Without weights, the paper says, the estimates' early bias enters R_t divided by sigma^2 and blows up the set; with
w = (1/L) / (1/L + bias^2) R_t does not depend on sigma, and the weights go to one. Here for inference (covariates drawn
at random), in the function space of Fig. 2 and in linear models:

    radius   R_t = sum_s w_s [ log p_theta*(y_s|x_s) - log q_s(y_s|x_s) ], in nats: minus the log ratio of the truth
    width    mean width of the intervals: over the 64 points of the grid, or over ten random directions
    weight   mean of w_s over the last tenth of the observations
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from likeset._typing import Array
from likeset.bandits.environments import linear, paper_1d
from likeset.families import Gaussian, Laplace, Poisson
from likeset.families.base import Family
from likeset.paper.experiments.cells import Cell, Rows
from likeset.paper.experiments.drawing import canvas, line_style, save, shared_legend
from likeset.paper.experiments.evidence import by_repeat
from likeset.paper.experiments.fig2 import BOUND
from likeset.paper.experiments.figures import Figure, Scale
from likeset.paper.experiments.methods import LIKELIHOOD_RATIO, PAPER
from likeset.paper.experiments.tables import Table
from likeset.spaces.base import Space

ALPHA = 0.1
SIGMAS = (0.3, 0.15, 0.1, 0.05, 0.015)
MARKS = (10, 30, 100, 300, 1000)
REPEATS = (10, 5)
METHODS = ("default", "lr-mixture", "lr-plug-in", *PAPER)
_ARMS, _DIRECTIONS = 40, 10
_COST = {"default": 1.5, "lr-mixture": 0.2}


@dataclass(frozen=True)
class Model:
    """A family in a space: the function of Fig. 2 or a linear model."""

    family: Family
    function: bool = False
    dimension: int = 5
    bound: float = 1.0


MODELS = {
    **{f"function-{sigma:g}": Model(Gaussian(sigma), function=True, bound=BOUND) for sigma in SIGMAS},
    **{f"linear-{sigma:g}": Model(Gaussian(sigma)) for sigma in SIGMAS},
    "linear-laplace": Model(Laplace(0.1)),
    "linear-poisson": Model(Poisson(), dimension=3, bound=2.0),
}


@dataclass(frozen=True)
class Sample:
    """Data of one repeat, and what is asked: z at ``queries``."""

    space: Space
    truth: Array
    x: Array
    y: Array
    queries: Array


def plan(scale: Scale) -> list[Cell]:
    """Every model, method and repeat."""
    last = scale.choose(MARKS[-1], MARKS[-2])
    settings = {"alpha": ALPHA, "last": last, "seed": scale.seed}
    return [
        Cell("weights", model, method, repeat, settings, cost=_COST.get(method, 0.1) * last / 1000)
        for model in MODELS
        for method in METHODS
        for repeat in range(scale.repeated(*REPEATS))
    ]


def run(cell: Cell) -> Rows:
    """One sequence of observations, looked at at the marks."""
    model, sample = MODELS[cell.problem], _sample(cell)
    sequence = LIKELIHOOD_RATIO[cell.method].build(model.family, sample.space, cell.number("alpha"))
    rows: Rows = {name: [] for name in ("provable", "t", "radius", "width", "weight", "covered")}
    seen = 0
    for t in (mark for mark in MARKS if mark <= cell.count("last")):
        sequence.update(sample.x[seen:t], sample.y[seen:t])
        seen, current = t, sequence.set
        low, high = current.interval(sample.queries)
        weight = float(np.mean(sequence.ledger.weights.rows[-max(1, t // 10) :]))
        radius = -float(current.log_ratio(sample.truth))
        values = (True, t, radius, float(np.mean(high - low)), weight, bool(current.contains(sample.truth)))
        for column, value in zip(rows.values(), values, strict=True):
            column.append(value)
    return rows


def _sample(cell: Cell) -> Sample:
    model, rng, n = MODELS[cell.problem], cell.rng(), cell.count("last")
    if model.function:
        world = paper_1d("gaussian", model.bound)
        queries = world.arms
    else:
        world = linear(model.dimension, model.family, _ARMS, int(rng.integers(2**32)), model.bound)
        queries = rng.normal(size=(_DIRECTIONS, model.dimension))
        queries /= np.linalg.norm(queries, axis=1, keepdims=True)
    chosen = rng.integers(0, len(world.arms), size=n)
    return Sample(world.space, world.theta, world.arms[chosen], model.family.sample(world.z[chosen], rng), queries)


# -- the picture -----------------------------------------------------------------------------------------------------


def draw(table: Table, folder: Path) -> list[Path]:
    """For functions and for linear models: R_t and widths against the noise, and weights against time."""
    last = int(table["t"].max())
    figure, axes = canvas(2, 3, 11.0, 7.0)
    for row, (kind, title) in zip(axes, (("function", "1-D function"), ("linear", "linear, d = 5")), strict=True):
        _against_noise(row[0], table, kind, "radius", f"{title}: R_t at t = {last}", "nats")
        row[0].set_yscale("log")
        _against_noise(row[1], table, kind, "width", f"{title}: width at t = {last}", "mean width over that of w = 1")
        _against_time(row[2], table.where(problem=f"{kind}-0.05"), f"{title}: weights, sigma = 0.05")
    shared_legend(figure, axes, 3)
    return [save(figure, folder / "weights")]


def _against_noise(axis: Any, table: Table, kind: str, column: str, title: str, label: str) -> None:
    """Medians at the last mark; widths relative to those of w = 1 in the same repeats."""
    for name in METHODS:
        points = []
        for sigma in SIGMAS:
            values, base = (by_repeat(table, f"{kind}-{sigma:g}", m, column) for m in (name, "lr-plug-in"))
            both = [repeat for repeat in values if repeat in base]
            if both:
                relative = [values[r] / base[r] if column == "width" else max(values[r], 1e-2) for r in both]
                points.append((sigma, float(np.median(relative))))
        if points:
            axis.plot(*zip(*points, strict=True), **line_style(LIKELIHOOD_RATIO[name]))
    axis.set_xscale("log")
    axis.set_xticks(SIGMAS, [f"{sigma:g}" for sigma in SIGMAS])
    axis.minorticks_off()
    axis.set_xlabel("standard deviation of the noise")
    axis.set_ylabel(label)
    axis.set_title(title, fontsize=10.5)


def _against_time(axis: Any, table: Table, title: str) -> None:
    times = sorted(table.distinct("t"))
    for name in (n for n in PAPER if n in table.distinct("method")):
        own = table.where(method=name)
        medians = [float(np.median(own.where(t=t)["weight"].astype(float))) for t in times]
        axis.plot(times, medians, **line_style(LIKELIHOOD_RATIO[name]))
    axis.set_xscale("log")
    axis.set_xticks(times, [f"{t}" for t in times])
    axis.minorticks_off()
    axis.set_ylim(0, 1.02)
    axis.set_xlabel("observations")
    axis.set_ylabel("mean weight, last tenth")
    axis.set_title(title, fontsize=10.5)


FIGURE = Figure(
    name="weights",
    title="Weights in low noise (section 2.2)",
    settings=(
        "Inference, not a game: covariates are drawn at random, from the grid of Fig. 2 (B = 4.2) or from 40 unit "
        "vectors (linear models with B = 1 in five dimensions; Laplace noise 0.1; counts with B = 2 in three "
        "dimensions). The noise falls from 0.3 to 0.015; alpha = 0.1; lambda = 1/B. Weights are on both sides of the "
        "ratio. R_t is what the numerator has lost to the truth, in nats: the set allows R_t + log(1/alpha). Weighted "
        "nats count for less each, so widths decide: means over the grid or over ten random directions. Shown are "
        "medians over repeats, of widths relative to w = 1 with the same numerator (FTRL). An R_t below 0.01 is drawn "
        "at 0.01."
    ),
    plan=plan,
    run=run,
    draw=draw,
)
