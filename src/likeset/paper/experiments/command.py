"""``likeset reproduce``: run what is missing, draw, judge the claims, write the report."""

from __future__ import annotations

import os
import shlex
import time
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table as Listing

from likeset.errors import InvalidArgumentError
from likeset.extras import require
from likeset.messages import say
from likeset.paper.experiments import claims, report
from likeset.paper.experiments.cells import Cell
from likeset.paper.experiments.figures import Figure, Scale, chosen
from likeset.paper.experiments.interrupts import Interrupts
from likeset.paper.experiments.judging import Finding
from likeset.paper.experiments.processes import on_processes
from likeset.paper.experiments.running import Executor, Outcome, on_dask, run
from likeset.paper.experiments.store import OutputError, Store, writable_folder, write_atomically
from likeset.paper.experiments.tables import Table, gather

console = Console()


def reproduce(
    figure: Annotated[str, typer.Argument(help="fig1, fig2, fig3, fig4, weights, power, theory or all.")] = "all",
    quick: Annotated[
        bool, typer.Option("--quick", help="Fewer repeats and rounds: minutes, not half an hour.")
    ] = False,
    repeats: Annotated[
        int | None, typer.Option(min=1, max=10_000, help="Repeats of every bandit run (calibration: runs per panel).")
    ] = None,
    jobs: Annotated[int | None, typer.Option(min=1, help="Worker processes; default: one per core.")] = None,
    dask: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Run on this dask cluster, e.g. tcp://host:8786.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for results, figures and report.")] = Path("out"),
    seed: Annotated[int, typer.Option(min=0, help="Seed of all randomness; same seed, same numbers.")] = 0,
) -> None:
    """Run the experiments of the paper again and judge its claims.

    Writes to the output folder: one tidy CSV per figure, the figures as PNG and SVG, and report.html, one file that
    holds everything, with a table of the paper's claims and what was measured.

    Stop it whenever you like (ctrl-C): finished cells are kept, and the same command goes on where it stopped. Changed
    settings are run anew. Results do not depend on --jobs or --dask.

    Examples: `likeset reproduce --quick`, `likeset reproduce fig2 --repeats 20 --out results`
    """
    if dask is not None and jobs is not None:
        raise InvalidArgumentError("jobs", jobs, "cannot go together with --dask", "give one of the two")
    scale = Scale(quick, repeats, seed)
    again = _resume_command(figure, scale, jobs, dask, out)
    with Interrupts() as interrupts:
        try:
            with interrupts.not_errors():
                require("matplotlib", "sklearn")
                wanted = chosen(figure)
                store = Store(writable_folder(out) / "cells")
                execute = on_dask(dask) if dask is not None else on_processes(jobs or os.cpu_count() or 1)
                failures = _reproduce(wanted, scale, store, execute, out, again, interrupts)
        except KeyboardInterrupt:
            interrupts.no_more()
            say(console, f"Stopped: {_kept(figure, scale, out)}. Resume with: {again}")
            raise typer.Exit(130) from None
        except OutputError as error:
            remedy = f"{_kept(figure, scale, out)}; make room and resume with: {again}"
            raise OutputError(error.path, error.reason, remedy) from error
    if failures:
        raise typer.Exit(1)


def _reproduce(
    wanted: list[Figure],
    scale: Scale,
    store: Store,
    execute: Executor,
    folder: Path,
    again: str,
    interrupts: Interrupts,
) -> bool:
    """Run, draw, judge, report; whether cells failed."""
    started = time.perf_counter()
    cells = [cell for figure in wanted for cell in figure.plan(scale)]
    outcomes = _run_with_progress(cells, store, execute, interrupts)
    tables = _tables(wanted, cells, outcomes)
    pictures: dict[str, list[Path]] = {}
    for figure in wanted:
        if len(tables[figure.name]):
            pictures[figure.name] = _draw(figure, tables[figure.name], folder)
            interrupts.check()
    findings = claims.judge(tables, scale)
    interrupts.check()
    seconds = time.perf_counter() - started
    results = report.Results(wanted, tables, pictures, findings, scale, again, seconds)
    report.write(folder / "report.html", results)
    _tell(findings, folder)
    failures = [outcome for outcome in outcomes if outcome.error is not None]
    if failures:
        _tell_failures(failures, folder, again)
    else:
        (folder / "failures.txt").unlink(missing_ok=True)  # of an earlier run
    return bool(failures)


def _kept(figure: str, scale: Scale, folder: Path) -> str:
    """How much is finished, in words."""
    store = Store(folder / "cells")
    cells = [cell for f in chosen(figure) for cell in f.plan(scale)]
    return f"{sum(store.path(cell).exists() for cell in cells)} of {len(cells)} cells are finished and kept"


def _run_with_progress(cells: list[Cell], store: Store, execute: Executor, interrupts: Interrupts) -> list[Outcome]:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[done]} of {task.fields[cells]} cells"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, speed_estimate_period=120) as bars:
        by_figure: dict[str, TaskID] = {}
        for name in dict.fromkeys(cell.figure for cell in cells):
            own = [cell for cell in cells if cell.figure == name]
            total = sum(cell.cost for cell in own)
            by_figure[name] = bars.add_task(name, total=total, done=0, cells=len(own))
        overall = bars.add_task("all", total=sum(cell.cost for cell in cells), done=0, cells=len(cells))

        def advance(outcome: Outcome) -> None:
            interrupts.check()
            for number in (by_figure[outcome.cell.figure], overall):
                task = bars.tasks[bars.task_ids.index(number)]
                done = task.fields["done"] + 1
                last = done == task.fields["cells"]  # sums of costs are rounded: end at the total exactly
                bars.update(number, completed=task.total if last else task.completed + outcome.cell.cost, done=done)

        def warn(text: str) -> None:
            say(bars.console, f"Warning: {text}", style="bold")

        return run(cells, store, execute, progress=advance, warn=warn)


def _tables(wanted: list[Figure], cells: list[Cell], outcomes: list[Outcome]) -> dict[str, Table]:
    """The rows of every figure in the order of its plan, which is that of its panels."""
    rows_of = {o.cell.key: o.rows for o in outcomes}
    finished = [(cell, rows) for cell in cells if (rows := rows_of.get(cell.key)) is not None]
    return {f.name: gather((cell, rows) for cell, rows in finished if cell.figure == f.name) for f in wanted}


def _draw(figure: Figure, table: Table, folder: Path) -> list[Path]:
    table.write_csv(folder / f"{figure.name}.csv")
    try:
        return figure.draw(table, folder)
    except OSError as error:
        raise OutputError(folder / figure.name, error.strerror or str(error)) from error


def _tell(findings: list[Finding], folder: Path) -> None:
    listing = Listing(title="Claims, measured", show_lines=True)
    for heading in ("figure", "whose", "claim", "verdict"):
        listing.add_column(heading)
    for finding in findings:
        listing.add_row(*map(escape, (finding.figure, finding.group, finding.statement, finding.verdict)))
    console.print(listing)
    say(console, f"Report: {folder / 'report.html'}")


def _tell_failures(failures: list[Outcome], folder: Path, again: str) -> None:
    log = folder / "failures.txt"
    text = "\n".join(f"{o.cell.key}\n{o.error}" for o in failures)
    write_atomically(log, text.encode(errors="backslashreplace"))
    say(
        console,
        f"{len(failures)} cells failed, the first being {failures[0].cell.key}; see {log}. They are missing from the "
        f"report; all others are kept. Try them again with: {again}",
        style="bold",
    )


def _resume_command(figure: str, scale: Scale, jobs: int | None, dask: str | None, out: Path) -> str:
    """What to type, quoted for a shell: folders may have any name."""
    parts = ["likeset", "reproduce", figure]
    parts += ["--quick"] if scale.quick else []
    parts += ["--repeats", str(scale.repeats)] if scale.repeats is not None else []
    parts += ["--jobs", str(jobs)] if jobs is not None else []
    parts += ["--dask", dask] if dask is not None else []
    parts += ["--seed", str(scale.seed)] if scale.seed else []
    return shlex.join([*parts, "--out", str(out)])
