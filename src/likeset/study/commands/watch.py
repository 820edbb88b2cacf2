"""``likeset watch``: one look at a file, or a look at every change of a file that grows."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from likeset.errors import InvalidArgumentError, OrderWarning
from likeset.messages import say
from likeset.progress import working
from likeset.study.commands.following import Arriving, GrowingFile
from likeset.study.commands.hints import how_to_keep
from likeset.study.commands.options import console, errors, factors_from, print_answers, print_json, show
from likeset.study.csv_files import CsvReader, read_stream
from likeset.study.frames import Columns, is_parquet, read_file
from likeset.study.study import Study

CHUNK = 20_000


def watch(
    file: Annotated[str, typer.Argument(help="CSV or Parquet file with a header, rows in order; - is standard input.")],
    outcome: Annotated[str, typer.Option(help="Column of the outcome.")],
    family: Annotated[
        str,
        typer.Option(
            help="Law of the outcome: bernoulli (0 or 1), poisson (counts), gaussian, weibull (lifetimes), ..."
        ),
    ],
    by: Annotated[list[str], typer.Option(help="Column with groups; variant=A,B names them.")] = [],  # noqa: B006
    number: Annotated[list[str], typer.Option(help="Numeric column; dose=0:10 says its range.")] = [],  # noqa: B006
    formula: Annotated[str | None, typer.Option(help='Instead: a formula such as "~ age + C(ward)".')] = None,
    control: Annotated[str | None, typer.Option(help="The level that the others are compared with.")] = None,
    goal: Annotated[str, typer.Option(help="Which is better: maximise or minimise the outcome.")] = "maximise",
    alpha: Annotated[float, typer.Option(help="Probability of any error, ever: 0.05, not 0.95.")] = 0.05,
    margin: Annotated[float | None, typer.Option(help="Differences no larger than this count as none.")] = None,
    event: Annotated[str | None, typer.Option(help="For lifetimes: column that is 1 where the event was seen.")] = None,
    trials: Annotated[str | None, typer.Option(help="Column with the number of trials of each row.")] = None,
    exposure: Annotated[
        str | None, typer.Option(help="Column with the exposure (hours, visitors) of each count.")
    ] = None,
    entry: Annotated[str | None, typer.Option(help="For lifetimes: column of the time of entry.")] = None,
    offset: Annotated[str | None, typer.Option(help="Column with a known part of the linear predictor.")] = None,
    bound: Annotated[
        float | None, typer.Option(help="Promise: the coefficients, as a vector, are no longer than this.")
    ] = None,
    units: Annotated[str | None, typer.Option(help="Units of the outcome, for labels.")] = None,
    no_alarm: Annotated[bool, typer.Option("--no-alarm", help="No alarm: a roughly right model will do.")] = False,
    follow: Annotated[bool, typer.Option("--follow", help="Wait for more rows; ctrl-C ends it.")] = False,
    every: Annotated[float, typer.Option(min=0.05, help="With --follow: seconds between looks.")] = 2.0,
    json: Annotated[bool, typer.Option("--json", help="Print JSON, one object per look.")] = False,
) -> None:
    """Look at a file: intervals and verdicts that stay valid however often you look.

    Nothing is stored; likeset study keeps rows and continues. With --follow the groups are those of the first rows,
    unless they are named (--by variant=A,B); from standard input they must be named. Exit code 0: an answer; 2: an
    error; 3: the data contradict the model (the alarm).

        likeset watch visits.csv --outcome converted --family bernoulli --by variant --control A

        likeset watch orders.csv --outcome orders --family poisson --by page=old,new --control old --follow

        likeset watch trial.csv --outcome days --family weibull --event died --by arm --control placebo
    """
    options: dict[str, Any] = {
        "formula": formula, "outcome": {outcome: family}, "control": control, "goal": goal, "alpha": alpha,
        "margin": margin, "event": event, "trials": trials, "exposure": exposure, "entry": entry, "offset": offset,
        "bound": bound, "units": units, "alarm": not no_alarm, "store": None,
    }  # fmt: skip

    given: dict[str, Any] = {
        "outcome": outcome, "family": family, "by": by, "number": number, "formula": formula, "control": control,
        "goal": None if goal == "maximise" else goal, "alpha": None if alpha == 0.05 else alpha, "margin": margin,
        "event": event, "trials": trials, "exposure": exposure, "entry": entry, "offset": offset, "bound": bound,
        "units": units, "no_alarm": no_alarm,
    }  # fmt: skip

    def begun(frame: Columns | None) -> Study:
        return Study(_name(file), factors=factors_from(by, number, formula, frame) or None, **options)

    if follow:
        study = _follow(file, begun, every, json)
        if study is None:
            return
    else:
        frame = read_rows(file)
        study = begun(frame)
        tell_with_warnings(study, frame)
    try:
        show(study, json)
    finally:
        if not json:
            how_to_keep(study, given, file)


@working("recording rows")
def tell_with_warnings(study: Study, frame: Columns, failed: bool = False) -> Any:
    """Tell rows; warnings are lines on standard error."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        told = study.tell(frame, failed)
    for warning in caught:
        if issubclass(warning.category, UserWarning):
            say(errors, f"Warning: {warning.message}", style="bold")
    return told


@working("reading rows")
def read_rows(file: str) -> Columns:
    """All rows of a file, or of standard input."""
    if file != "-":
        return read_file(Path(file))
    return read_stream(sys.stdin.buffer, "standard input")  # type: ignore[arg-type]


def _follow(file: str, begun: Callable[[Columns | None], Study], every: float, json: bool) -> Study | None:
    """A look whenever rows have come, until ctrl-C or the end of standard input; None if none came."""
    source: GrowingFile | Arriving
    if file == "-":
        study, source = begun(None), Arriving(sys.stdin.buffer)
    else:
        if is_parquet(Path(file)):
            raise InvalidArgumentError("file", file, "is a Parquet file, which does not grow", "leave --follow out")
        study, source = None, GrowingFile(Path(file))
    reader = CsvReader(source, "standard input" if file == "-" else file)
    try:
        while (frame := reader.chunk(CHUNK)) is not None:
            if not len(frame):
                time.sleep(every)
                continue
            if study is None:  # levels of the first rows; others that come later are refused by name
                study = begun(frame)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", OrderWarning)  # a few rows say nothing about their order
                study.tell(frame)
            _look(study, json)
    except KeyboardInterrupt:
        if source.unfinished:
            say(errors, "Warning: the last line has no end yet, and was not read.", style="bold")
    finally:
        source.close()
    return study if study is not None and study.n else None


def _look(study: Study, json: bool) -> None:
    answers = study.to_json()
    if json:
        print_json(answers)
        sys.stdout.flush()
    else:
        console.rule(f"{answers['rows_recorded']:,} rows")
        print_answers(answers)


def _name(file: str) -> str:
    return "standard input" if file == "-" else Path(file).stem or "rows"
