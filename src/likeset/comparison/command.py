"""``likeset compare``: all applicable sets on one problem, as a table, a CSV file and a picture."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import Progress
from rich.table import Table

from likeset._typing import Array
from likeset.comparison.compare import compare, formatted
from likeset.extras import require
from likeset.families import Bernoulli, Gaussian, Laplace, Poisson, Weibull
from likeset.families.base import Family
from likeset.messages import say
from likeset.persistence.atomic_file import write_picture
from likeset.spaces import RKHS, Linear
from likeset.spaces.base import Space

console = Console()


class FamilyName(StrEnum):
    """Families on offer."""

    gaussian = "gaussian"
    laplace = "laplace"
    poisson = "poisson"
    bernoulli = "bernoulli"
    weibull = "weibull"


class SpaceName(StrEnum):
    """Problems on offer."""

    linear = "linear"
    rkhs = "rkhs"


class Design(StrEnum):
    """How covariates are chosen."""

    optimistic = "optimistic"
    random = "random"


@dataclass(frozen=True)
class Problem:
    """A model, its truth (drawn afresh for every run) and the arms."""

    space: Space
    truth: Callable[[np.random.Generator], Array]
    arms: Array


def linear_problem(dim: int, bound: float, count: int, seed: int) -> Problem:
    """``count`` random unit vectors; theta* uniform in the ball."""
    arms = np.random.default_rng([seed, 10**6]).normal(size=(count, dim))
    arms /= np.linalg.norm(arms, axis=1, keepdims=True)

    def truth(rng: np.random.Generator) -> Array:
        theta = rng.normal(size=dim)
        return np.asarray(theta * bound * rng.uniform() ** (1 / dim) / np.linalg.norm(theta))

    return Problem(Linear(dim, bound), truth, arms)


def function_problem(family: Family, bound: float) -> Problem:
    """The paper's one-dimensional function on 64 points of [0, 1.2], squared-exponential kernel of length 0.06."""
    from sklearn.gaussian_process.kernels import RBF

    grid = np.linspace(0, 1.2, 64)
    payoff = -(1.4 - 3 * grid) * np.sin(18 * grid)
    falls = float(family.mean(np.array(1.0))) < float(family.mean(np.array(-1.0)))
    values = -payoff if falls else payoff  # a large payoff is a large outcome: a long life, a low hazard
    return Problem(RKHS(RBF(0.06), bound, domain=grid), lambda rng: values, grid[:, None])


def chosen_family(name: FamilyName, noise: float) -> Family:
    """The family with its scale (Gaussian, Laplace) or shape (Weibull)."""
    made: dict[FamilyName, Callable[[], Family]] = {
        FamilyName.gaussian: lambda: Gaussian(noise),
        FamilyName.laplace: lambda: Laplace(noise),
        FamilyName.poisson: Poisson,
        FamilyName.bernoulli: Bernoulli,
        FamilyName.weibull: lambda: Weibull(noise),
    }
    return made[name]()


def compare_command(
    family: Annotated[FamilyName, typer.Option(help="Law of y given z.")] = FamilyName.poisson,
    space: Annotated[
        SpaceName,
        typer.Option(help="linear: theta in R^dim, random unit arms. rkhs: the paper's function on [0, 1.2]."),
    ] = SpaceName.linear,
    dim: Annotated[int, typer.Option(min=1, max=200, help="Dimension of theta (linear).")] = 3,
    bound: Annotated[
        float | None, typer.Option(help="B with |theta*| <= B; default 2 (linear) or 4.5 (rkhs, norm 4.17).")
    ] = None,
    noise: Annotated[
        float | None, typer.Option(help="sigma, Laplace scale or Weibull shape; default 0.5, 0.5, 2.")
    ] = None,
    alpha: Annotated[float, typer.Option(help="Error level.")] = 0.1,
    rounds: Annotated[int, typer.Option(min=2, max=100_000, help="Observations in each run.")] = 200,
    repeats: Annotated[int, typer.Option(min=1, max=10_000, help="Runs; coverage is counted over them.")] = 20,
    arms: Annotated[int, typer.Option(min=1, max=10_000, help="Number of arms (linear).")] = 32,
    design: Annotated[
        Design, typer.Option(help="optimistic: the arm with the highest upper bound, adaptive; random: any.")
    ] = Design.optimistic,
    seed: Annotated[int, typer.Option(min=0, help="Seed of arms, truths and data.")] = 0,
    out: Annotated[Path, typer.Option(help="Folder for compare.csv and compare.png.")] = Path("out"),
) -> None:
    """Compare confidence sets: the library's, the paper's competitors and newer ones, on the same data.

    Every set that applies to the family sees the same observations; constants are chosen beforehand from the model
    alone. The table shows the size in nats and the width of the band after the last round, how often the set held the
    truth at all rounds at once, how often the interval at a query held it after the last round, and CPU time per round.
    Sets with no proof promise nothing: see how they do.

    Example: likeset compare --family gaussian --space rkhs --rounds 100 --repeats 5
    """
    require("matplotlib", *(("sklearn",) if space is SpaceName.rkhs else ()))
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    from likeset.comparison.picture import plot_widths

    law = chosen_family(family, noise if noise is not None else 2.0 if family is FamilyName.weibull else 0.5)
    problem = (
        linear_problem(dim, 2.0 if bound is None else bound, arms, seed)
        if space is SpaceName.linear
        else function_problem(law, 4.5 if bound is None else bound)
    )
    out.mkdir(parents=True, exist_ok=True)
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task("Comparing", total=rounds * repeats)
        result = compare(
            law, problem.space, problem.truth, problem.arms, alpha=alpha, rounds=rounds, repeats=repeats, seed=seed,
            design=str(design), on_round=lambda: progress.advance(task),
        )  # fmt: skip

    table = Table(title=escape(f"{law!r}, {problem.space!r}: {repeats} runs of {rounds} rounds at level {alpha:g}"))
    headings: list[tuple[str, Any]] = [
        ("set", "left"), ("proof", "center"), ("radius\n(nats)", "right"), ("width", "right"),
        ("covered\nat all\nrounds", "right"), ("interval\ncovers at\nthe end", "right"), ("ms per\nround", "right"),
    ]  # fmt: skip
    for heading, side in headings:
        table.add_column(heading, justify=side, no_wrap=True)
    for row in formatted(result.rows()):
        table.add_row(*map(escape, row))
    console.print(table)

    result.write_csv(out / "compare.csv")
    figure, axes = plt.subplots(figsize=(8.4, 5.0))
    figure.subplots_adjust(left=0.09, right=0.73, top=0.93, bottom=0.11)
    plot_widths(result, axes, title=f"{law!r}, {problem.space!r}, {repeats} runs")
    write_picture(out / "compare.png", figure, dpi=150)
    plt.close(figure)
    say(console, f"Numbers: {out / 'compare.csv'}\nPicture: {out / 'compare.png'}")
