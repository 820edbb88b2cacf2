r"""Fig. 3: calibration. For each alpha, how often is theta* in the set after 15 rounds, and how often at every round?

Sets are nested in alpha, so one number says it for all: the critical level a_t = sup { alpha : theta* in C_t(alpha) }.
theta* is in C_t(alpha) if alpha <= a_t, and always was if alpha <= min_s a_s. For a likelihood ratio
a_t = min(1, 1/R_t(theta*)). The other sets are made at every alpha of a grid from the same data.
"""

from __future__ import annotations

from bisect import bisect_left
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import RBF

from likeset._typing import Array
from likeset.bandits.environments import Environment
from likeset.comparison.base import Comparison
from likeset.families import Gaussian
from likeset.paper.experiments.cells import Cell, Rows
from likeset.paper.experiments.drawing import canvas, line_style, save, shared_legend
from likeset.paper.experiments.figures import Figure, Scale
from likeset.paper.experiments.methods import (
    LIKELIHOOD_RATIO,
    ONE_SIDED,
    Method,
    methods_for,
    of_the_paper,
    sorted_methods,
)
from likeset.paper.experiments.play import play
from likeset.paper.experiments.tables import Table
from likeset.spaces import RKHS

ROUNDS = 15
BOUND = 4.0
ALPHA = 0.1
LEVELS = np.array([0.001, 0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 0.9, 0.99])
_RUNS_PER_CELL = 20

PANELS = {
    f"{design}-{truth}-{sigma:g}": (design, truth, sigma)
    for design in ("bandit", "iid")
    for truth in ("random", "zero")
    for sigma in (0.1, 0.01)
}


def plan(scale: Scale) -> list[Cell]:
    """Every panel and method, in blocks of runs."""
    runs = scale.repeated(200, 12)
    settings = {"rounds": ROUNDS, "bound": BOUND, "alpha": ALPHA, "seed": scale.seed}
    return [
        Cell(
            "fig3", panel, method, block, {**settings, "runs": size}, cost=size * (0.05 if "bandit" in panel else 0.03)
        )
        for panel in PANELS
        for method in _methods(panel)
        for block, size in enumerate(_blocks(runs))
    ]


def run(cell: Cell) -> Rows:
    """A block of runs: the critical level of theta* at the end, and the smallest over all rounds."""
    rows: Rows = {name: [] for name in ("provable", "run", "alpha_final", "alpha_anytime")}
    method = _methods(cell.problem)[cell.method]
    for i in range(cell.count("runs")):
        rng, ties = cell.rng(f"run {i}"), cell.rng(f"ties {i}")
        problem = _problem(cell.problem, rng)
        if PANELS[cell.problem][0] == "iid":
            arms = rng.integers(0, len(problem.arms), size=ROUNDS)
            y = problem.family.sample(problem.z[arms], rng)
        else:
            sequence = method.build(problem.family, problem.space, ALPHA)
            played = play(problem, sequence, ROUNDS, rng, ties)
            arms, y = played.arm, played.y
        levels = critical_levels(method, problem, arms, y)
        values = (method.provable, cell.repeat * _RUNS_PER_CELL + i, levels[-1], min(levels))
        for name, value in zip(rows, values, strict=True):
            rows[name].append(value)
    return rows


def critical_levels(method: Method, problem: Environment, arms: Any, y: Array) -> list[float]:
    """a_t for t = 1, ..., T; for sets other than likelihood ratios the largest level of the grid that covers."""
    sequence = method.build(problem.family, problem.space, ALPHA)
    ratio = method.name in LIKELIHOOD_RATIO or method is ONE_SIDED
    levels = []
    for arm, outcome in zip(arms, y, strict=True):
        sequence.update(problem.arms[arm], outcome)
        if ratio:
            levels.append(float(np.exp(-max(0.0, sequence.set.log_ratio(problem.theta)))))
        else:
            levels.append(_largest_covering(sequence, problem.theta))
    return levels


def _largest_covering(sequence: Comparison, theta: Array) -> float:
    """The largest level whose set contains theta, 0 if none does: bisection, because the sets are nested."""
    covering = bisect_left(LEVELS, True, key=lambda level: not sequence.at_level(level).contains(theta))
    return float(LEVELS[covering - 1]) if covering else 0.0


@cache
def _space() -> RKHS:
    return RKHS(RBF(0.06), BOUND, domain=np.linspace(0.0, 1.2, 64))


@cache
def _features() -> Array:
    """Features of the grid as rows: their inner products are the kernel, so norm-one vectors are norm-one functions."""
    domain = _space().domain
    assert domain is not None
    eigenvalues, vectors = np.linalg.eigh(_space().gram(domain, domain))
    return np.asarray(vectors * np.sqrt(np.maximum(eigenvalues, 0.0)))


def _problem(panel: str, rng: np.random.Generator) -> Environment:
    """The model of Fig. 2a with a truth of norm one (uniform on the sphere of the grid's features) or zero."""
    _, kind, sigma = PANELS[panel]
    direction = rng.normal(size=64)
    truth = _features() @ direction / np.linalg.norm(direction) if kind == "random" else np.zeros(64)
    domain = _space().domain
    assert domain is not None
    return Environment(panel, Gaussian(sigma), _space(), domain, truth, truth)


def _methods(panel: str) -> dict[str, Method]:
    found = methods_for(Gaussian(PANELS[panel][2]), _space())
    return {name: method for name, method in found.items() if of_the_paper(name)}


def _blocks(runs: int) -> list[int]:
    whole, rest = divmod(runs, _RUNS_PER_CELL)
    return [_RUNS_PER_CELL] * whole + ([rest] if rest else [])


def draw(table: Table, folder: Path) -> list[Path]:
    """Two pictures of eight panels: coverage at the last round as in the paper, and at all rounds at once."""
    return [
        _draw(table, "alpha_final", "coverage at round 15", folder / "fig3"),
        _draw(table, "alpha_anytime", "coverage at all rounds at once", folder / "fig3-anytime"),
    ]


def _draw(table: Table, column: str, label: str, stem: Path) -> Path:
    figure, axes = canvas(4, 2, 10.5, 13.0)
    for axis, letter, (panel, (design, truth, sigma)) in zip(axes.flat, "abcdefgh", PANELS.items(), strict=True):
        part = table.where(problem=panel)
        methods = _methods(panel)
        axis.plot([0, 1], [0, 1], color="0.8", linewidth=4, zorder=1)
        for number, name in enumerate(sorted_methods(part.distinct("method"))):
            critical = part.where(method=name)[column].astype(float)
            coverage = [float(np.mean(critical >= level)) for level in LEVELS]
            marks = {"markevery": (number % 3, 3)}
            axis.plot(1 - LEVELS, coverage, **line_style(methods[name]), **marks)
        what = "theta* random, norm 1" if truth == "random" else "theta* = 0"
        data = "bandit data" if design == "bandit" else "i.i.d. data"
        axis.set_title(f"{letter}) {data}, {what}, sigma = {sigma:g}", fontsize=10.5)
        axis.set_xlim(0, 1)
        axis.set_ylim(-0.02, 1.02)
        axis.set_xlabel("nominal coverage 1 - alpha")
        axis.set_ylabel(label)
    shared_legend(figure, axes, 3)
    return save(figure, stem)


FIGURE = Figure(
    name="fig3",
    title="Fig. 3: calibration",
    settings=(
        "The model of Fig. 2a (B = 4) with a truth of norm 1, drawn uniformly, or zero; T = 15 rounds. Bandit "
        "data: each method's own UCB at alpha = 0.1; its sets at the other alpha are built from the same data, "
        "which is legitimate because coverage holds for any adaptive design, and costs one run instead of one for "
        "each alpha. The grey line is exact coverage; above it is conservative, below it is a broken promise. "
        "Coverage at all rounds at once, which is what a confidence sequence promises, is not in the paper."
    ),
    plan=plan,
    run=run,
    draw=draw,
)
