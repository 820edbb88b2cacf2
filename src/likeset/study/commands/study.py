"""``likeset study``: begin a study, tell it rows, look at it; it lives in a store."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from likeset.arguments import writing
from likeset.errors import InvalidArgumentError
from likeset.extras import require
from likeset.messages import say
from likeset.study.commands.choosing import ask, cancel, choosing_options, pending, recommend
from likeset.study.commands.options import (
    STORE,
    Json,
    Name,
    Place,
    console,
    factors_from,
    print_json,
    quoted,
    reader,
    show,
)
from likeset.study.commands.watch import read_rows, tell_with_warnings
from likeset.study.store import Store
from likeset.study.study import Study

app = typer.Typer(
    help="Studies in a store: begin one, tell it rows as they come, look whenever you like.\n\n"
    "Exit code 0: done; 2: an error, nothing was recorded; 3: the data refute the model.\n\n"
    "    likeset study new signup --outcome converted --family bernoulli --by variant=A,B --control A --key id\n\n"
    "    likeset study tell signup monday.csv\n\n"
    "    likeset study show signup\n\n"
    "    likeset serve",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)


@app.command()
def new(
    name: Name,
    outcome: Annotated[str, typer.Option(help="Column of the outcome.")],
    family: Annotated[
        str,
        typer.Option(
            help="Law of the outcome: bernoulli (0 or 1), poisson (counts), gaussian, weibull (lifetimes), ..."
        ),
    ],
    by: Annotated[list[str], typer.Option(help="Column and its groups: variant=A,B,C.")] = [],  # noqa: B006
    number: Annotated[list[str], typer.Option(help="Numeric column: age, or dose=0:10.")] = [],  # noqa: B006
    formula: Annotated[str | None, typer.Option(help='A formula such as "~ age + C(ward)".')] = None,
    control: Annotated[str | None, typer.Option(help="The level that the others are compared with.")] = None,
    goal: Annotated[str, typer.Option(help="Which is better: maximise or minimise the outcome.")] = "maximise",
    alpha: Annotated[float, typer.Option(help="Probability of any error, ever: 0.05, not 0.95.")] = 0.05,
    margin: Annotated[float | None, typer.Option(help="Differences no larger than this count as none.")] = None,
    key: Annotated[
        str | None, typer.Option(help="Column that identifies a row, so that it never counts twice.")
    ] = None,
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
    no_alarm: Annotated[bool, typer.Option("--no-alarm", help="No alarm: a roughly right model will do.")] = False,
    units: Annotated[str | None, typer.Option(help="Units of the outcome, for labels.")] = None,
    whole: Annotated[list[str], typer.Option(help="Column of whole numbers: hours=1:8.")] = [],  # noqa: B006
    model: Annotated[str, typer.Option(help="linear, or smooth: a function of all factors, for ask.")] = "linear",
    range: Annotated[str | None, typer.Option(help="With smooth: what the mean can be at all, 0:100.")] = None,
    until: Annotated[str | None, typer.Option(help="When to stop asking: gain=1, best, best=1, above=50.")] = None,
    safe: Annotated[
        list[str],
        typer.Option(help="What must hold: impurity<0.05:bernoulli, or with a bound heat<70:gaussian(sigma=2):800."),
    ] = [],  # noqa: B006
    known_safe: Annotated[list[str], typer.Option(help="A safe setting: temperature=40,hours=2.")] = [],  # noqa: B006
    failed: Annotated[str | None, typer.Option(help="Column that is 1 where a run gave no outcome.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the choices that are drawn at random.")] = 0,
    store: Place = STORE,
    json: Json = False,
) -> None:
    """Begin a study. The same name with the same definition continues it."""
    factors = factors_from(by, number, formula, None, whole) or None
    study = Study(
        name, factors=factors, formula=formula, outcome={outcome: family},
        control=control, goal=goal, alpha=alpha, margin=margin, key=key, event=event, trials=trials, exposure=exposure,
        entry=entry, offset=offset, bound=bound, alarm=not no_alarm, units=units, failed=failed, store=store,
        **choosing_options(model, range, until, safe, known_safe, seed),
    )  # fmt: skip
    if json:
        print_json({"name": study.name, "store": str(study.store.path), "definition": study.definition.to_json()})
        return
    columns = [f.name for f in study.definition.factors] + [study.definition.outcome, *study.definition.roles.values()]
    columns += [*study.definition.campaign.safe, *([] if key is None else [key])]
    at = "" if store == STORE else f" --store {store}"
    say(console, f"The study {name!r} is in {study.store.path}. It needs the columns {', '.join(columns)}.")
    following = f"ask {quoted(name)}" if study.definition.smooth else f"tell {quoted(name)} rows.csv"
    say(console, f"Next: likeset study {following}{at}")


@app.command()
def tell(
    name: Name,
    file: Annotated[str, typer.Argument(help="CSV or Parquet file with a header, rows in order; - is standard input.")],
    failed: Annotated[bool, typer.Option("--failed", help="All of these runs gave no outcome.")] = False,
    store: Place = STORE,
    json: Json = False,
) -> None:
    """Record the rows of a file; when this returns they are on disk. All of them count, or none."""
    study = Study.open(name, store)
    told = tell_with_warnings(study, read_rows(file), failed)
    rings = study.alarm()["rings"]
    if json:
        counts = {"recorded": told.recorded, "repeated": told.repeated, "total": told.total}
        print_json({"name": name, **counts, "alarm": study.alarm()})
    else:
        again = f", {told.repeated:,} were known already" if told.repeated else ""
        say(console, f"{told.recorded:,} rows recorded{again}; {told.total:,} in all, in {study.store.path}.")
        at = "" if store == STORE else f" --store {store}"
        say(console, f"Next: likeset study show {quoted(name)}{at}")
    if rings:
        show(study, json)


@app.command(name="show")
def show_command(name: Name, store: Place = STORE, json: Json = False) -> None:
    """The table: intervals, contrasts with the control, evidence, verdicts."""
    show(reader(name, store), json)


@app.command(name="list")
def list_command(store: Place = STORE, json: Json = False) -> None:
    """The studies in a store."""
    found = Store(store, read_only=True).studies() if store.exists() else []
    if json:
        print_json(found)
        return
    if not found:
        say(
            console,
            f"There are no studies in {store}. Begin one: likeset study new NAME --outcome ... --family ... --by ...",
        )
        return
    table = Table(title=str(store))
    for heading in ("name", "outcome", "rows", "begun"):
        table.add_column(heading, justify="right" if heading == "rows" else "left")
    for entry in found:
        table.add_row(*map(Text, (entry["name"], entry["outcome"], f"{entry['rows']:,}", entry["created"][:16])))
    console.print(table)


@app.command()
def plot(
    name: Name,
    picture: Annotated[Path, typer.Argument(help="Picture to write; its ending says the format.")] = Path("study.png"),
    store: Place = STORE,
    now: Annotated[bool, typer.Option("--now", help="Intervals as they are, not over time.")] = False,
    json: Json = False,
) -> None:
    """Draw the intervals over time."""
    require("matplotlib")
    from matplotlib.figure import Figure

    from likeset.persistence.atomic_file import write_picture
    from likeset.study.pictures import height_of_bars

    formats, ending = Figure().canvas.get_supported_filetypes(), picture.suffix[1:]
    if ending and ending.lower() not in formats:
        known = ", ".join(sorted(formats))
        raise InvalidArgumentError("picture", str(picture), "has no ending of a picture", f"the formats are {known}")
    study = reader(name, store)
    figure = Figure(figsize=(8.0, height_of_bars(len(study.rows())) if now else 4.5), layout="constrained")
    study.plot(over_time=not now, axes=figure.add_subplot())
    with writing(picture):
        write_picture(picture, figure, dpi=150)
    _written({"name": name, "picture": str(picture)}, f"Picture: {picture}", json)


@app.command()
def report(
    name: Name,
    page: Annotated[Path, typer.Argument(help="HTML file to write.")] = Path("study.html"),
    store: Place = STORE,
    json: Json = False,
) -> None:
    """Write one HTML file with answers, pictures and the definition."""
    require("matplotlib")
    reader(name, store).report(page)
    _written({"name": name, "report": str(page)}, f"Report: {page}", json)


@app.command()
def export(
    name: Name,
    folder: Annotated[Path, typer.Argument(help="Folder for study.json, rows.csv and scored.csv.")],
    store: Place = STORE,
    json: Json = False,
) -> None:
    """Write a study to plain files, without loss."""
    reader(name, store).export(folder)
    text = f"The study {name!r} is in {folder}; read it with: likeset study import {quoted(str(folder))}"
    _written({"name": name, "folder": str(folder)}, text, json)


@app.command(name="import")
def import_command(
    folder: Annotated[Path, typer.Argument(help="Folder that export wrote.")], store: Place = STORE, json: Json = False
) -> None:
    """Read the folder written by `export` into a store, which must have no study of that name."""
    study = Study.import_from(folder, store)
    if json:
        print_json({"name": study.name, "total": study.n, "store": str(study.store.path)})
    else:
        say(console, f"The study {study.name!r} with {study.n:,} rows is in {study.store.path}.")


def _written(data: dict[str, str], text: str, as_json: bool) -> None:
    """Say where something is now."""
    if as_json:
        print_json(data)
    else:
        say(console, text)


for command in (ask, recommend, pending, cancel):
    app.command()(command)
