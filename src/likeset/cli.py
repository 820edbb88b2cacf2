"""The command line: ``likeset --help``."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console
from rich.progress import Progress, track

from likeset.comparison.command import compare_command
from likeset.errors import LikesetError
from likeset.messages import say
from likeset.paper.experiments.command import reproduce
from likeset.paper.theory.command import theory_command
from likeset.study.commands.study import app as study_app
from likeset.study.commands.watch import watch
from likeset.web.command import demo_command, serve_command

app = typer.Typer(
    help="Anytime-valid likelihood-ratio confidence sets: look after every observation, stop when you like.\n\n"
    "With a file of your own:\n\n"
    "    likeset watch visits.csv --outcome converted --family bernoulli --by variant --control A\n\n"
    "Without one, to see what there is: likeset demo",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    add_completion=False,
    pretty_exceptions_enable=False,
)
console = Console()
DATA, PAPER, HERE = "Your data", "The method and its paper", "This installation"
app.command(rich_help_panel=DATA)(watch)
app.add_typer(study_app, name="study", rich_help_panel=DATA)
app.command(name="serve", rich_help_panel=DATA)(serve_command)
app.command(name="demo", rich_help_panel=DATA)(demo_command)
app.command(rich_help_panel=PAPER)(reproduce)
app.command(name="compare", rich_help_panel=PAPER)(compare_command)
app.command(name="theory", rich_help_panel=PAPER)(theory_command)


@app.callback(invoke_without_command=True)
def _version_option(
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.", is_eager=True)] = False,
) -> None:
    if version:
        from likeset import __version__

        console.print(f"likeset {__version__}")
        raise typer.Exit


@app.command(rich_help_panel=HERE)
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


@app.command(rich_help_panel=HERE)
def warmup(
    family: Annotated[str | None, typer.Option(help="Only this family, e.g. poisson; default: all of them.")] = None,
) -> None:
    """Compile the kernels now, so that the first use need not wait for it: minutes for all families, once.

    Runs in small what the defaults of each family run: joint sets and windows, linear models and functions. Kernels
    that are in the cache already are only loaded.
    """
    from likeset.warmup import warm_up

    with Progress(console=console, transient=True) as progress:
        task = progress.add_task("Compiling", total=None)

        def running(name: str, number: int, count: int) -> None:
            progress.update(task, description=f"Compiling: {name}", total=count, completed=number)

        said = warm_up(family, running)
    say(console, said)


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
