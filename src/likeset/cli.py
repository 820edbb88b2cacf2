"""The command line: ``likeset --help``."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import Progress, track
from rich.table import Table

from likeset.comparison.command import compare_command
from likeset.errors import LikesetError
from likeset.extras import require
from likeset.messages import say
from likeset.paper.experiments.command import reproduce
from likeset.paper.theory.command import theory_command
from likeset.study.commands.study import app as study_app
from likeset.study.commands.watch import watch
from likeset.web.command import demo_command, serve_command

app = typer.Typer(
    help="Anytime-valid likelihood-ratio confidence sets: look after every observation, stop when you like.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
console = Console()
app.command()(reproduce)


@app.callback(invoke_without_command=True)
def _version_option(
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.", is_eager=True)] = False,
) -> None:
    if version:
        from likeset import __version__

        console.print(f"likeset {__version__}")
        raise typer.Exit


@app.command()
def tour(
    out: Annotated[Path, typer.Option(help="Folder for the pictures and the saved sequence.")] = Path("out"),
    observations: Annotated[int, typer.Option(min=10, max=100_000, help="How many counts to watch.")] = 400,
    alpha: Annotated[
        float, typer.Option(help="Error level: the set misses the truth, ever, at most this often.")
    ] = 0.05,
    seed: Annotated[int, typer.Option(help="Seed of the simulated data.")] = 0,
) -> None:
    """Watch a Poisson model learn: intervals that may be looked at after every single count.

    Simulates counts with mean exp(x'theta), prints the interval of each coefficient as it shrinks, draws it, and saves
    the sequence so that it can be continued. Two more pictures: sets in the plane, and a band over functions.
    """
    require("matplotlib", "sklearn")
    from likeset.paper.tour import Step, draw, draw_band, draw_sets, walk

    out.mkdir(parents=True, exist_ok=True)
    steps: list[Step] = []
    sequence, theta, walking = walk(observations, alpha, seed)
    for step in track(walking, total=observations, description="Observing counts", console=console):
        steps.append(step)

    table = Table(title=f"Intervals valid at all times at once, with probability {1 - alpha:.0%}")
    table.add_column("counts", justify="right")
    for i, true_value in enumerate(theta):
        table.add_column(f"theta[{i}] = {true_value:g}", justify="center", no_wrap=True)
    table.add_column("log R(truth)", justify="right")
    table.add_column("covered", justify="center")
    shown = sorted({0, *(int(observations * f) - 1 for f in (0.02, 0.05, 0.1, 0.25, 0.5, 1.0))})
    for step in (steps[i] for i in shown if 0 <= i < len(steps)):
        cells = [f"[{low:+.3f}, {high:+.3f}]" for low, high in zip(step.lower, step.upper, strict=True)]
        table.add_row(str(step.n), *map(escape, cells), f"{step.log_ratio:.2f}", "yes" if step.covered else "NO")
    console.print(table)

    picture, saved = out / "tour.png", out / "tour.likeset"
    draw(steps, theta, alpha, picture)
    draw_sets(seed, out / "sets.png")
    draw_band(seed, out / "band.png")
    sequence.save(saved)
    say(console, f"Pictures: {picture}, sets.png, band.png\nSaved:    {saved}   (continue with likeset.load)")


@app.command()
def check() -> None:
    """Run the contract suite on every family, predictor and weighting of this installation.

    Densities integrate to one, derivatives are right, no forecast depends on the y that it is scored on, one-step
    growth of the ratio is at most one, saving and loading continues bit for bit.
    """
    from likeset import checks

    jobs: list[tuple[str, Callable[..., None], tuple[Any, ...]]] = [
        (f"{family!r}", checks.check_family, (family,)) for family in checks.built_in_families()
    ]
    for family in checks.built_in_families():
        for predictor in checks.built_in_predictors():
            if checks.applicable(predictor, family):
                jobs.append((f"{family!r} with {predictor!r}", checks.check_predictor, (predictor, family)))
        for weighting in checks.built_in_weightings():
            jobs.append((f"{family!r} with {weighting!r}", checks.check_weighting, (weighting, family)))
    failures: list[tuple[str, str]] = []
    for name, job, arguments in track(jobs, description="Checking", console=console):
        try:
            job(*arguments)
        except checks.ContractError as error:
            failures.append((name, str(error)))
    for name, problem in failures:
        say(console, f"FAILED {name}: {problem}", style="bold")
    console.print(f"{len(jobs) - len(failures)} passed, {len(failures)} failed")
    raise typer.Exit(code=1 if failures else 0)


@app.command()
def warmup(
    family: Annotated[str | None, typer.Option(help="Only this family, e.g. poisson; default: all of them.")] = None,
) -> None:
    """Compile the kernels now, so that the first use need not wait for it: minutes for all families, once.

    Runs in small what the defaults of each family run: joint sets and windows, linear models and functions. Kernels
    that are in the cache already are only loaded.
    """
    from likeset.compiling import cache_folder, compilations
    from likeset.progress import QUIET
    from likeset.warmup import runs

    began, before = time.perf_counter(), compilations()
    os.environ[QUIET] = "1"  # the progress bar says it
    jobs = list(runs(family))
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task("Compiling", total=len(jobs))
        for name, run in jobs:
            progress.update(task, description=f"Compiling: {name}")
            run()
            progress.advance(task)
    seconds, compiled = time.perf_counter() - began, compilations() - before
    folder = cache_folder()
    kept = f"kept in {folder}" if folder is not None else "lost: no folder for them can be written, see NUMBA_CACHE_DIR"
    say(console, f"{compiled} kernels compiled in {seconds:.0f} s; {kept}.")


app.command()(watch)
app.add_typer(study_app, name="study")
app.command(name="compare")(compare_command)
app.command(name="theory")(theory_command)
app.command(name="serve")(serve_command)
app.command(name="demo")(demo_command)


def main() -> None:
    """Entry point: errors of likeset's own, and files that cannot be written, are one line, not a traceback."""
    try:
        app()
    except LikesetError as error:
        _fail(str(error))
    except OSError as error:
        if error.filename is None and error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS):
            raise  # not about a file: nothing the user could mend by the name of it
        name = "" if error.filename is None else f"{os.fsdecode(error.filename)}: "
        _fail(f"{name}{error.strerror}.")


def _fail(text: str) -> NoReturn:
    say(Console(stderr=True), f"Error: {text}", style="bold")
    raise SystemExit(2) from None
