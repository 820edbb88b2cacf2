"""Fig. 4: the Camelback function, with the paper's bound B = 2 and with one that contains the function, B = 8."""

from __future__ import annotations

from pathlib import Path

from likeset.bandits.environments import camelback
from likeset.paper.experiments.cells import Cell, Rows
from likeset.paper.experiments.drawing import draw_certificates, draw_regret_figures
from likeset.paper.experiments.fig2 import ALPHA, CERTIFICATE_REPEATS, REPEATS, ROUNDS
from likeset.paper.experiments.figures import Figure, Scale
from likeset.paper.experiments.methods import Method, certifying_for, played_for
from likeset.paper.experiments.play import bandit_rows
from likeset.paper.experiments.tables import Table

CONTAINED = "camelback-contained"
BOUNDS = {"camelback-stated": 2.0, CONTAINED: 8.0}
TITLES = {"camelback-stated": "a) B = 2, as stated: the truth is outside", CONTAINED: "b) B = 8: the truth is inside"}
CERTIFICATE_ROUNDS = (150, 25)


def plan(scale: Scale) -> list[Cell]:
    """Both bounds, every method and repeat; and the game that a model describes, played for a certificate."""
    return [
        Cell("fig4", problem, method, repeat, settings, cost=rounds * seconds)
        for problems, names, rounds, repeats, seconds in (
            (BOUNDS, _methods, scale.choose(*ROUNDS), scale.repeated(*REPEATS), 0.004),
            ([CONTAINED], _certifying, scale.choose(*CERTIFICATE_ROUNDS), scale.at_most(*CERTIFICATE_REPEATS), 0.1),
        )
        for problem in problems
        for settings in [{"rounds": rounds, "alpha": ALPHA, "seed": scale.seed, "bound": BOUNDS[problem]}]
        for method in names(problem)
        for repeat in range(repeats)
    ]


def run(cell: Cell) -> Rows:
    """One bandit run."""
    return bandit_rows(cell, camelback("gaussian", cell.number("bound")))


def _methods(problem: str) -> dict[str, Method]:
    environment = camelback("gaussian", BOUNDS[problem])
    return played_for(environment.family, environment.space)


def _certifying(problem: str) -> dict[str, Method]:
    environment = camelback("gaussian", BOUNDS[problem])
    return certifying_for(environment.family, environment.space)


def draw(table: Table, folder: Path) -> list[Path]:
    """Two panels; the same for newer sets; and certificates over time."""
    contained, stem = {CONTAINED: "B = 8, played for a certificate"}, folder / "fig4-certificates"
    return [
        *draw_regret_figures(folder / "fig4", table, TITLES, _methods, (1, 2, 10.5, 5.4), quartiles=True),
        *draw_certificates(stem, table, contained, _certifying, (1, 1, 10.5, 5.4)),
    ]


FIGURE = Figure(
    name="fig4",
    title="Fig. 4: Camelback",
    settings=(
        "UCB on the six-hump camelback function, 10 x 10 grid, squared-exponential kernel of length 0.2, Gaussian "
        "noise 0.10, alpha = 0.1, inputs scaled by 4 and 2, output -f/5. Its norm is 7.7: with the paper's B = 2 "
        "the model is wrong, no method has a guarantee, and an empty set is the right answer (arms are then played "
        "at random); with B = 8 the truth is inside. Quartiles over the repeats are shaded for every method. The last "
        "picture is the game with B = 8 played for a certificate (ls.Elimination): how many arms may still be best. "
        "Two arms of the grid tie for best, so two is the least that can be certified."
    ),
    plan=plan,
    run=run,
    draw=draw,
)
