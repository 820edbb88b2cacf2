"""Fig. 2: cumulative regret of UCB with each confidence set, for four families."""

from __future__ import annotations

from pathlib import Path

from likeset.bandits.environments import paper_1d
from likeset.paper.experiments.cells import Cell, Rows
from likeset.paper.experiments.drawing import draw_regret_figures
from likeset.paper.experiments.figures import Figure, Scale
from likeset.paper.experiments.methods import Method, played_for
from likeset.paper.experiments.play import bandit_rows
from likeset.paper.experiments.tables import Table

ALPHA = 0.1
BOUND = 4.2
"""The smallest bound with one decimal that contains the function (norm 4.1702); the paper states 4."""

ROUNDS = (200, 50)
REPEATS = (10, 4)
PANELS = {
    "gaussian": "a) Gaussian noise",
    "laplace": "b) Laplace noise",
    "survival": "c) survival, log-Weibull, p = 2",
    "poisson": "d) Poisson counts",
}
_SECONDS_PER_ROUND = {"gaussian": 0.003, "laplace": 0.010, "survival": 0.008, "poisson": 0.008}


def plan(scale: Scale) -> list[Cell]:
    """Every problem, method and repeat."""
    rounds = scale.choose(*ROUNDS)
    settings = {"rounds": rounds, "bound": BOUND, "alpha": ALPHA, "seed": scale.seed}
    return [
        Cell("fig2", problem, method, repeat, settings, cost=rounds * _SECONDS_PER_ROUND[problem])
        for problem in PANELS
        for method in _methods(problem)
        for repeat in range(scale.repeated(*REPEATS))
    ]


def run(cell: Cell) -> Rows:
    """One bandit run."""
    return bandit_rows(cell, paper_1d(cell.problem, cell.number("bound")))


def _methods(problem: str) -> dict[str, Method]:
    environment = paper_1d(problem, BOUND)
    return played_for(environment.family, environment.space)


def draw(table: Table, folder: Path) -> list[Path]:
    """Four panels; and the same for newer sets."""
    return draw_regret_figures(folder / "fig2", table, PANELS, _methods, (2, 2, 10.5, 8.0))


FIGURE = Figure(
    name="fig2",
    title="Fig. 2: cumulative regret",
    settings=(
        "UCB on r(x) = -(1.4 - 3x) sin(18x), 64 arms in [0, 1.2], squared-exponential kernel of length 0.06, alpha "
        "= 0.1, sigma = b = 0.15. The norm of r on the grid is 4.17, so the paper's B = 4 leaves the truth outside "
        "Theta; here B = 4.2. lambda is 1/B for the ratio sets (the paper's text) and 1 for the sets compared (its "
        "table): whichever of the two serves each best. Survival: z = -r(x), so that the best arm lives longest, "
        "regret in r = 2 E[log T] + 0.5772...; Poisson: z = r(x), regret in the mean exp(r). Every method meets "
        "the same random numbers in the same repeat; ties are broken at random. Bold lines have their quartiles "
        "shaded. Choice by belief: the default's certified sets, arms by ls.Guarded."
    ),
    plan=plan,
    run=run,
    draw=draw,
)
