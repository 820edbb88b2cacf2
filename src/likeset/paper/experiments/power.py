r"""Type II error: how often a wrong parameter is still in the set, and what Theorem 3's delta promises about it.

The set is a test of every parameter at once. alpha is the type I error: the truth is thrown out with probability alpha
at most, ever. The paper's delta is the other one: with probability 1 - delta no parameter farther from the truth than
Theorem 3's radius is left, so a parameter at the divergence D is kept with a probability of at most the delta at which
the radius is D (:func:`likeset.theory.type_two_error_bound`). Here wrong parameters lie on the line from the truth
through zero to the other side of the ball, and covariates are drawn at random.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from likeset.families import Gaussian, Poisson
from likeset.families.curve_family import CurveFamily
from likeset.paper.experiments.cells import Cell, Rows
from likeset.paper.experiments.drawing import canvas, line_style, save, shared_legend
from likeset.paper.experiments.figures import Figure, Scale
from likeset.paper.experiments.methods import LIKELIHOOD_RATIO
from likeset.paper.experiments.tables import Table
from likeset.paper.theory import (
    Curvature,
    LogPartition,
    bregman_information_gain,
    online_regret,
    penalised_estimate,
    type_two_error_bound,
)
from likeset.sequence import ConfidenceSequence
from likeset.spaces import Linear

ALPHA, BOUND, DIM, LENGTH = 0.1, 1.0, 2, 0.9
DISTANCES = (0.1, 0.2, 0.3, 0.4, 0.6, 0.8, 1.0, 1.3, 1.6, 1.9)
MARKS = (30, 100, 300, 1000)
REPEATS = (100, 20)
METHODS = ("default", "lr-plug-in")
MODELS: dict[str, tuple[CurveFamily, str]] = {
    "power-gaussian": (Gaussian(0.5), "a) Gaussian noise, sigma = 0.5"),
    "power-poisson": (Poisson(), "b) Poisson counts"),
}


def plan(scale: Scale) -> list[Cell]:
    """Both families, the paper's unweighted set and ours, every repeat."""
    last = scale.choose(MARKS[-1], MARKS[-2])
    settings = {"alpha": ALPHA, "last": last, "seed": scale.seed}
    return [
        Cell("power", problem, method, repeat, settings, cost=0.0005 * last)
        for problem in MODELS
        for method in METHODS
        for repeat in range(scale.repeated(*REPEATS))
    ]


def run(cell: Cell) -> Rows:
    """One stream, looked at at the marks: which wrong parameters are left, and what Theorem 3 says."""
    family, rng, last = MODELS[cell.problem][0], cell.rng(), cell.count("last")
    direction = _unit(rng.normal(size=(1, DIM)))[0]
    truth = LENGTH * direction
    x = _unit(rng.normal(size=(last, DIM)))
    y = family.sample(x @ truth, rng)
    wrong = truth - np.outer(DISTANCES, direction)
    sequence = LIKELIHOOD_RATIO[cell.method].build(family, Linear(DIM, BOUND), cell.number("alpha"))
    rows: Rows = {name: [] for name in ("provable", "t", "distance", "kept", "delta")}
    seen = 0
    for t in (mark for mark in MARKS if mark <= last):
        sequence.update(x[seen:t], y[seen:t])
        seen = t
        kept = sequence.set.contains(wrong)
        # Theorem 3 is about the joint set; for other voices its delta is shown for comparison only.
        promised = _promised(family, x[:t], y[:t], truth, wrong, sequence)
        for row in zip([True] * len(wrong), [t] * len(wrong), DISTANCES, kept.tolist(), promised.tolist(), strict=True):
            for column, value in zip(rows.values(), row, strict=True):
                column.append(value)
    return rows


def _promised(
    family: CurveFamily,
    x: np.ndarray,
    y: np.ndarray,
    truth: np.ndarray,
    wrong: np.ndarray,
    sequence: ConfidenceSequence,
) -> np.ndarray:
    """delta of Theorem 3 at every wrong parameter, with nu the least curvature."""
    curvature = Curvature.of(family, BOUND, x)
    nu = curvature.mu
    centre = penalised_estimate(family, x, y, nu=nu)
    gain = bregman_information_gain(family, x, centre, nu=nu, samples=512)
    regret = online_regret(family, sequence.ledger, truth)[-1]
    far = LogPartition(family, x, nu=nu).divergence(wrong, truth)
    safe = gain.value + 3 * gain.standard_error
    return type_two_error_bound(far, safe, regret, curvature=curvature, nu=nu, bound=BOUND, alpha=ALPHA)


def _unit(rows: np.ndarray) -> np.ndarray:
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


# -- the picture -----------------------------------------------------------------------------------------------------


def shares(table: Table, t: int, column: str) -> tuple[list[float], list[float]]:
    """Distances, and the mean of a column over the repeats at each."""
    part = table.where(t=t)
    distances = sorted(part.distinct("distance"))
    return distances, [float(np.mean(part.where(distance=d)[column].astype(float))) for d in distances]


def draw(table: Table, folder: Path) -> list[Path]:
    """How often a wrong parameter is kept against its distance, at two sizes; dotted: what Theorem 3 allows."""
    times = sorted(table.distinct("t"))
    figure, axes = canvas(len(MODELS), len(times), 3.1 * len(times), 5.6)
    for row, (problem, (_, title)) in zip(axes, MODELS.items(), strict=True):
        for axis, t in zip(row, times, strict=True):
            for name in METHODS:
                own = table.where(problem=problem, method=name)
                if len(own):
                    axis.plot(*shares(own, t, "kept"), **line_style(LIKELIHOOD_RATIO[name]))
            own = table.where(problem=problem, method="lr-plug-in")
            if len(own):
                axis.plot(*shares(own, t, "delta"), color="0.4", linestyle=":", label="delta of Theorem 3 (w = 1)")
            axis.set_ylim(-0.03, 1.05)
            axis.set_title(f"{title}\n{t} observations" if t == times[0] else f"\n{t} observations", fontsize=9.5)
            axis.set_xlabel("distance from the truth")
        row[0].set_ylabel("kept in the set: type II error")
    shared_legend(figure, axes, 3)
    return [save(figure, folder / "power")]


FIGURE = Figure(
    name="power",
    title="Type II error (Theorem 3's delta)",
    settings=(
        "Two dimensions, |theta*| = 0.9, B = 1, covariates at random on the circle, alpha = 0.1. Wrong parameters lie "
        "on the line from the truth through zero. Shown is in which share of the runs each is still in the set, and, "
        "dotted, the largest share that Theorem 3 allows for the set with w = 1 (mean over runs)."
    ),
    plan=plan,
    run=run,
    draw=draw,
)
