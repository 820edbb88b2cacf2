"""``likeset theory``: every bound of the paper against what happened, as a table, CSV files and a picture."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich import box
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from likeset.errors import InvalidArgumentError
from likeset.extras import require
from likeset.messages import say

if TYPE_CHECKING:
    from likeset.paper.theory.looseness import Row

QUICK_ROUNDS, QUICK_REPEATS = 80, 4
console = Console()


def theory_command(
    out: Annotated[Path, typer.Option(help="Folder for theory.csv, theory-curves.csv, theory.png and .svg.")] = Path(
        "out"
    ),
    rounds: Annotated[int, typer.Option(min=10, max=100_000, help="Rounds of each bandit game.")] = 300,
    repeats: Annotated[int, typer.Option(min=1, max=10_000, help="Games per model.")] = 40,
    seed: Annotated[int, typer.Option(min=0, help="Seed of arms, truths and observations.")] = 0,
    quick: Annotated[
        bool, typer.Option(help=f"{QUICK_REPEATS} games of {QUICK_ROUNDS} rounds, whatever the numbers above.")
    ] = False,
) -> None:
    """How loose is the theory? Evaluate every bound of the paper on bandit games and compare with what happened.

    A linear Gaussian and a Poisson bandit are played with UCB over the paper's set (FTRL numerator). On each stream the
    table shows the realised value and the bound at the last round, their ratio, how often the bound promises to hold at
    all rounds, and how often it did. A star marks the paper's display where no proof covers it, a plus sign a bound
    under an assumption which the stream may break; docs/paper-to-code.md says why.

    Example: likeset theory --repeats 200 --out out/theory
    """
    require("matplotlib")
    from likeset.paper.theory.looseness import runs_of, study

    if quick:
        rounds, repeats = QUICK_ROUNDS, QUICK_REPEATS
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidArgumentError(
            "out", str(out), f"cannot be made a folder ({error.strerror})", "name another"
        ) from None
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task("Playing", total=runs_of(repeats))
        found = study(rounds, repeats, seed, on_run=lambda: progress.advance(task))

    for model in dict.fromkeys(row.model for row in found.rows):
        console.print(_table(model, [row for row in found.rows if row.model == model]))
    console.print(found.paragraph(), highlight=False, markup=False)
    numbers, curves = found.write_csv(out)
    picture = found.figure(out / "theory.png")
    say(console, f"Numbers: {numbers}, {curves}\nPicture: {picture} and .svg")


def _table(model: str, rows: list[Row]) -> Table:
    table = Table(
        title=f"{model}: medians over runs at the last round",
        caption="* as printed, no proof; + under an assumption",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
    )
    table.add_column("quantity")
    table.add_column("bound")
    for heading in ("realised", "bound", "ratio", "promised", "held"):
        table.add_column(heading, justify="right", no_wrap=True)
    marks = {"proved": "", "printed": " *", "assumed": " +"}
    for row in rows:
        ratio = f"{row.ratio:,.3g}" if row.ratio < 1e6 else "-"
        table.add_row(
            f"{row.panel}, {row.name}", row.result + marks[row.status], f"{row.realised:.3g}", f"{row.bound:,.3g}",
            ratio, f"{row.promise:.0%}", f"{row.held}/{row.runs}",
        )  # fmt: skip
    return table
