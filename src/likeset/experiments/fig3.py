r"""Fig. 3: calibration. For each alpha, how often is theta* in the set after 15 rounds, and how often at every round?

Sets are nested in alpha, so one number says it for all: the critical level a_t = sup { alpha : theta* in C_t(alpha) }.
theta* is in C_t(alpha) if alpha <= a_t, and always was if alpha <= min_s a_s. For a likelihood ratio
a_t = min(1, 1/R_t(theta*)). The other sets are built at every alpha of a grid from the same data.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import RBF

from likeset.bandits.environments import Environment
from likeset.experiments.cells import Cell, Rows
from likeset.experiments.drawing import canvas, line_style, save, shared_legend
from likeset.experiments.figures import Figure, Scale
from likeset.experiments.methods import LIKELIHOOD_RATIO, Method, methods_for, sorted_methods
from likeset.experiments.play import play
from likeset.experiments.tables import Table
from likeset.families import Gaussian
from likeset.families.base import Array
from likeset.spaces import RKHS

ROUNDS = 15
BOUND = 4.0
ALPHA = 0.1
LEVELS = np.array([0.001, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.99])
_RUNS_PER_CELL = 20

PANELS = {
    f"{design}-{truth}-{sigma:g}": (design, truth, sigma)
    for design in ("bandit", "iid")
    for truth in ("random", "zero")
    for sigma in (0.1, 0.01)
}


def plan(scale: Scale) -> list[Cell]:
    """Every panel and method, in blocks of runs."""
    runs = scale.repeated(200, 20)
    settings = {"rounds": ROUNDS, "bound": BOUND, "alpha": ALPHA, "seed": scale.seed}
    return [
        Cell(
            "fig3", panel, method, block, {**settings, "runs": size}, cost=size * (0.05 if "bandit" in panel else 0.03)
        )
        for panel in PANELS
        for problem in [_problem(panel, np.random.default_rng(0))]
        for method in methods_for(problem.family, problem.space)
        for block, size in enumerate(_blocks(runs))
    ]


def run(cell: Cell) -> Rows:
    """A block of runs: the critical level of theta* at the end, and the smallest over all rounds."""
    rows: Rows = {name: [] for name in ("provable", "run", "alpha_final", "alpha_anytime")}
    for i in range(cell.count("runs")):
        rng = cell.rng(f"run {i}")
        problem = _problem(cell.problem, rng)
        method = methods_for(problem.family, problem.space)[cell.method]
        if PANELS[cell.problem][0] == "iid":
            arms = rng.integers(0, len(problem.arms), size=ROUNDS)
            y = problem.family.sample(problem.z[arms], rng)
        else:
            sequence = method.build(problem.family, problem.space, ALPHA)
            played = play(problem, sequence, ROUNDS, rng)
            arms, y = played.arm, played.y
        levels = critical_levels(method, problem, arms, y)
        values = (method.provable, cell.repeat * _RUNS_PER_CELL + i, levels[-1], min(levels))
        for name, value in zip(rows, values, strict=True):
            rows[name].append(value)
    return rows


def critical_levels(method: Method, problem: Environment, arms: Any, y: Array) -> list[float]:
    """a_t for t = 1, ..., T; for sets other than likelihood ratios the largest level of the grid that covers."""
    if method.name in LIKELIHOOD_RATIO:
        sequence = method.build(problem.family, problem.space, ALPHA)
        return [float(np.exp(-max(0.0, s.log_ratio(problem.theta)))) for s in _sets(sequence, problem, arms, y)]
    covered = np.array(
        [
            [bool(s.contains(problem.theta)) for s in _sets(sequence, problem, arms, y)]
            for sequence in (method.build(problem.family, problem.space, float(level)) for level in LEVELS)
        ]
    )
    return [float(np.max(np.where(column, LEVELS, 0.0))) for column in covered.T]


def _sets(sequence: Any, problem: Environment, arms: Any, y: Array) -> Any:
    for arm, outcome in zip(arms, y, strict=True):
        sequence.update(problem.arms[arm], outcome)
        yield sequence.set


def _problem(panel: str, rng: np.random.Generator) -> Environment:
    """The model of Fig. 2a with a truth of norm one (uniform on the sphere of the grid's features) or zero."""
    _, kind, sigma = PANELS[panel]
    space = RKHS(RBF(0.06), BOUND, domain=np.linspace(0.0, 1.2, 64))
    truth = np.zeros(64)
    if kind == "random":
        eigenvalues, vectors = np.linalg.eigh(space.gram(space.domain, space.domain))  # type: ignore[arg-type]
        direction = rng.normal(size=64)
        direction /= np.linalg.norm(direction)
        truth = vectors @ (np.sqrt(np.maximum(eigenvalues, 0.0)) * direction)
    return Environment(panel, Gaussian(sigma), space, space.domain, truth, truth)  # type: ignore[arg-type]


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
    figure, axes = canvas(4, 2, 8.0, 11.5)
    for axis, (panel, (design, truth, sigma)) in zip(axes.flat, PANELS.items(), strict=True):
        part = table.where(problem=panel)
        problem = _problem(panel, np.random.default_rng(0))
        methods = methods_for(problem.family, problem.space)
        axis.plot([0, 1], [0, 1], color="0.8", linewidth=4, zorder=1)
        for number, name in enumerate(sorted_methods(part.distinct("method"))):
            critical = part.where(method=name)[column].astype(float)
            coverage = [float(np.mean(critical >= level)) for level in LEVELS]
            marks = {"markevery": (number % 3, 3)}
            axis.plot(1 - LEVELS, coverage, **line_style(methods[name]), **marks)
        what = "theta* random, norm 1" if truth == "random" else "theta* = 0"
        axis.set_title(
            f"{'bandit data' if design == 'bandit' else 'i.i.d. data'}, {what}, sigma = {sigma:g}", fontsize=9
        )
        axis.set_xlim(0, 1)
        axis.set_ylim(-0.02, 1.02)
        axis.set_xlabel("nominal coverage 1 - alpha")
        axis.set_ylabel(label)
    shared_legend(figure, axes, 4)
    return save(figure, stem)


FIGURE = Figure(
    name="fig3",
    title="Fig. 3: calibration",
    settings=(
        "The model of Fig. 2a (B = 4) with a truth of norm 1, drawn uniformly, or zero; T = 15 rounds. Bandit "
        "data: each method's own UCB at alpha = 0.1; its sets at the other alpha are built from the same data, "
        "which is legitimate because coverage holds for any adaptive design, and costs one run instead of one for "
        "each alpha. The grey line is exact coverage; above it is conservative, below it is a broken promise. The "
        "second picture is not in the paper: coverage at all rounds at once, which is what a confidence sequence "
        "promises."
    ),
    plan=plan,
    run=run,
    draw=draw,
)
