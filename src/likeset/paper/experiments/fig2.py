"""Fig. 2: cumulative regret of UCB with each confidence set, for four families."""

from __future__ import annotations

from pathlib import Path

from likeset.bandits.environments import paper_1d
from likeset.paper.experiments.cells import Cell, Rows
from likeset.paper.experiments.drawing import draw_certificates, draw_regret_figures
from likeset.paper.experiments.figures import Figure, Scale
from likeset.paper.experiments.methods import Method, certifying_for, played_for
from likeset.paper.experiments.play import bandit_rows
from likeset.paper.experiments.tables import Table

ALPHA = 0.1
BOUND = 4.2
"""The smallest bound with one decimal that contains the function (norm 4.1702); the paper states 4."""

ROUNDS = (200, 50)
REPEATS = (10, 4)
CERTIFICATE_ROUNDS = (300, 50)
CERTIFICATE_REPEATS = (5, 2)
"""The games for a certificate: bounds of all arms that are left in every round cost more than an optimist's."""

PANELS = {
    "gaussian": "a) Gaussian noise",
    "laplace": "b) Laplace noise",
    "survival": "c) survival, log-Weibull, p = 2",
    "poisson": "d) Poisson counts",
}
_SECONDS_PER_ROUND = {"gaussian": 0.003, "laplace": 0.010, "survival": 0.008, "poisson": 0.008}


def plan(scale: Scale) -> list[Cell]:
    """Every problem, method and repeat; and the same games played for a certificate."""
    return [
        Cell("fig2", problem, method, repeat, settings, cost=rounds * _SECONDS_PER_ROUND[problem])
        for names, rounds, repeats in (
            (_methods, scale.choose(*ROUNDS), scale.repeated(*REPEATS)),
            (_certifying, scale.choose(*CERTIFICATE_ROUNDS), scale.at_most(*CERTIFICATE_REPEATS)),
        )
        for settings in [{"rounds": rounds, "bound": BOUND, "alpha": ALPHA, "seed": scale.seed}]
        for problem in PANELS
        for method in names(problem)
        for repeat in range(repeats)
    ]


def run(cell: Cell) -> Rows:
    """One bandit run."""
    return bandit_rows(cell, paper_1d(cell.problem, cell.number("bound")))


def _methods(problem: str) -> dict[str, Method]:
    environment = paper_1d(problem, BOUND)
    return played_for(environment.family, environment.space)


def _certifying(problem: str) -> dict[str, Method]:
    environment = paper_1d(problem, BOUND)
    return certifying_for(environment.family, environment.space)


def draw(table: Table, folder: Path) -> list[Path]:
    """Four panels; the same for newer sets; and certificates over time."""
    shape = (2, 2, 10.5, 8.0)
    return [
        *draw_regret_figures(folder / "fig2", table, PANELS, _methods, shape),
        *draw_certificates(folder / "fig2-certificates", table, PANELS, _certifying, shape),
    ]


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
        "shaded. Choice by belief: the default's certified sets, arms by ls.Guarded. The last picture is the same game "
        "played for a certificate instead of for what arms pay (ls.Elimination): how many arms may still be best. At "
        "one, the best arm is certified. Observed is the arm with the widest interval of those that are left; by the "
        "rule soonest, which needs beliefs, the one that tells most about the leader and its strongest rival."
    ),
    plan=plan,
    run=run,
    draw=draw,
)
