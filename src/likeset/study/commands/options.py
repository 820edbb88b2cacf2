"""Definitions as they are written on a command line, and how answers are printed."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from likeset.errors import InvalidArgumentError
from likeset.messages import say
from likeset.study import wording
from likeset.study.frames import Columns
from likeset.study.store import DEFAULT, Store
from likeset.study.study import Study

Name = Annotated[str, typer.Argument(help="Name of the study.")]
Place = Annotated[Path, typer.Option("--store", help="File that holds the studies.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
STORE = Path(DEFAULT)
MOST_LEVELS = 100  # that are taken from a file without being named
ALARM = 3
"""Exit code where the data refute the model; 0 is success, 2 an error."""

console = Console()
errors = Console(stderr=True)


def factors_from(
    by: list[str], numbers: list[str], formula: str | None, frame: Columns | None, whole: Iterable[str] = ()
) -> dict[str, Any]:
    """Factors from ``variant=A,B`` or, where a frame is at hand, ``variant``; from ``dose=0:10`` or ``age``.

    ``whole`` are numbers without decimals, ``hours=1:8``.
    """
    factors: dict[str, Any] = {}
    if not [*by, *numbers, *whole] and formula is None:
        raise InvalidArgumentError(
            "by", None, "is missing: nothing is named that outcomes may depend on",
            'pass --by variant, --number age or --formula "~ age"',
        )  # fmt: skip
    for text in by:
        name, given, levels = text.partition("=")
        if given:
            factors[name] = [level.strip() for level in levels.split(",")]
        elif frame is None:
            raise InvalidArgumentError("by", text, "comes without its levels", f"write --by {quoted(name)}=A,B,C")
        else:
            factors[name] = levels_of(frame, name)
    for text in numbers:
        name, given, ends = text.partition("=")
        low, colon, high = ends.partition(":")
        try:
            factors[name] = (float(low), float(high)) if given else float
        except ValueError:
            raise InvalidArgumentError("number", text, "is no interval", f"write --number {name}=0:10") from None
        if given and not colon:
            raise InvalidArgumentError("number", text, "is no interval", f"write --number {name}=0:10")
    for text in whole:
        name, _, ends = text.partition("=")
        low, _, high = ends.partition(":")
        try:
            factors[name] = {"whole": [int(low), int(high)]}
        except ValueError:
            raise InvalidArgumentError("whole", text, "has no ends", f"write --whole {name}=1:8") from None
    return factors


def levels_of(frame: Columns, name: str) -> list[str]:
    """The levels of a column as a file has them; a column of names or numbers is no group, and says so."""
    found = sorted({str(value).strip() for value in frame.values(name)})
    if not found:
        raise InvalidArgumentError("by", name, "has no levels yet: there are no rows", f"write --by {name}=A,B,C")
    if len(found) > MOST_LEVELS:
        raise InvalidArgumentError(
            "by", name, f"has {len(found)} different cells, too many for groups",
            f"name another column, write --number {name} if it is a number, or name the levels: --by {name}=A,B,C",
        )  # fmt: skip
    alike: dict[str, list[str]] = {}
    for level in found:
        alike.setdefault(level.casefold(), []).append(level)
    for same in alike.values():
        if len(same) > 1:
            words = " and ".join(map(repr, same))
            say(errors, f"Warning: {words} of {name!r} differ in capitals only, and are different levels.", "bold")
    return found


def reader(name: str, store: Path) -> Study:
    """A study to look at."""
    return Store(store, read_only=True).study(name) if store.exists() else Study.open(name, store)


def quoted(text: str) -> str:
    """As a shell would have to read it."""
    return shlex.quote(text)


def show(study: Study, as_json: bool) -> None:
    """Print the answers; leave with the code of the alarm if it rings."""
    answers = study.to_json()
    if as_json:
        print_json(answers)
    else:
        print_answers(answers)
    if answers["alarm"]["rings"]:
        raise typer.Exit(ALARM)


def print_json(data: Any) -> None:
    """One line of JSON, as it is."""
    typer.echo(json.dumps(data, ensure_ascii=False, allow_nan=False))


def print_answers(answers: dict[str, Any]) -> None:
    """Sentences and the table."""
    say(console, answers["name"], style="bold")
    for sentence in wording.sentences(answers):
        say(console, sentence, style="bold red" if sentence.startswith("ALARM") else "")
    if not answers["rows_recorded"]:
        say(console, f"There are no rows yet. Next: likeset study tell {quoted(answers['name'])} rows.csv")
        return
    said = wording.verdicts(answers)
    for line in (*([""] if said else []), *said, "", *wording.lines(answers, console.width)):
        say(console, line)
