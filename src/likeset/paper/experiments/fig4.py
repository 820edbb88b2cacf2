"""Fig. 4: the Camelback function, with the paper's bound B = 2 and with one that contains the function, B = 8."""

from __future__ import annotations

from pathlib import Path

from likeset.bandits.environments import camelback
from likeset.paper.experiments.cells import Cell, Rows
from likeset.paper.experiments.drawing import draw_regret_figures
from likeset.paper.experiments.fig2 import ALPHA, REPEATS, ROUNDS
from likeset.paper.experiments.figures import Figure, Scale
from likeset.paper.experiments.methods import Method, played_for
from likeset.paper.experiments.play import bandit_rows
from likeset.paper.experiments.tables import Table

BOUNDS = {"camelback-stated": 2.0, "camelback-contained": 8.0}
TITLES = {
    "camelback-stated": "B = 2, as stated: the truth is outside",
    "camelback-contained": "B = 8: the truth is inside",
}


def plan(scale: Scale) -> list[Cell]:
    """Both bounds, every method and repeat."""
    settings = {"rounds": scale.choose(*ROUNDS), "alpha": ALPHA, "seed": scale.seed}
    return [
        Cell("fig4", problem, method, repeat, {**settings, "bound": bound}, cost=0.004 * settings["rounds"])
        for problem, bound in BOUNDS.items()
        for method in _methods(problem)
        for repeat in range(scale.repeated(*REPEATS))
    ]


def run(cell: Cell) -> Rows:
    """One bandit run."""
    return bandit_rows(cell, camelback("gaussian", cell.number("bound")))


def _methods(problem: str) -> dict[str, Method]:
    environment = camelback("gaussian", BOUNDS[problem])
    return played_for(environment.family, environment.space)


def draw(table: Table, folder: Path) -> list[Path]:
    """Two panels; and the same for newer sets."""
    return draw_regret_figures(folder / "fig4", table, TITLES, _methods, (1, 2, 10.5, 5.4), quartiles=True)


FIGURE = Figure(
    name="fig4",
    title="Fig. 4: Camelback",
    settings=(
        "UCB on the six-hump camelback function, 10 x 10 grid, squared-exponential kernel of length 0.2, Gaussian "
        "noise 0.10, alpha = 0.1, inputs scaled by 4 and 2, output -f/5. Its norm is 7.7: with the paper's B = 2 "
        "the model is wrong, no method has a guarantee, and an empty set is the right answer (arms are then played "
        "at random); with B = 8 the truth is inside. Quartiles over the repeats are shaded for every method."
    ),
    plan=plan,
    run=run,
    draw=draw,
)
