"""``likeset study ask | recommend | pending | cancel``: which setting to run next, and which to keep."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from likeset.bandits.safety import Above, Below
from likeset.errors import InvalidArgumentError
from likeset.messages import say
from likeset.study.commands.options import STORE, Json, Name, Place, console, print_json, quoted, reader
from likeset.study.definition import family_named
from likeset.study.study import Study

_SAFE = re.compile(r"(.+?)\s*(<=|<|>=|>)\s*([^:]+):(.+)")


def ask(
    name: Name,
    n: Annotated[int, typer.Option("-n", "--number", min=1, help="How many different settings to run at once.")] = 1,
    store: Place = STORE,
    json: Json = False,
) -> None:
    """Which settings to run next. They are pending in the store until their outcomes are told.

    Run the settings, add a column with the outcomes, keep the column "run", and record the file: likeset study tell. If
    a run gave no outcome, write 1 in the column "failed"; if it will not be made, withdraw it: likeset study cancel.
    When an outcome is told must not depend on what it is.
    """
    study = Study.open(name, store)
    runs = study.ask(n=n)
    claim = study.certificate()
    if json:
        certificate = None if claim is None else claim.to_json()
        print_json({"name": name, "runs": runs, "pending": study.pending(), "certificate": certificate})
        return
    if claim is not None:
        say(console, f"You may stop: {claim}.", style="bold")
    _print_runs(runs, f"Run next, {len(study.pending())} pending in all")
    if len(runs) < n:
        why = "is certified to be safe yet" if study.definition.campaign.safe else "is different, and not ruled out"
        say(console, f"These are {len(runs)} of the {n} asked for: no other setting {why}.")
    at = "" if store == STORE else f" --store {store}"
    say(console, f"Next: run them, then likeset study tell {quoted(name)} rows.csv{at}")


def recommend(name: Name, store: Place = STORE, json: Json = False) -> None:
    """The setting with the best guarantee, and how much better any other can be at most."""
    study = reader(name, store)
    advice, claim = study.recommend(), study.certificate()
    if json:
        print_json({"name": name, **advice.to_json(), "certificate": None if claim is None else claim.to_json()})
        return
    say(console, f"{advice}.")
    if claim is not None:
        say(console, f"You may stop: {claim}.", style="bold")


def pending(name: Name, store: Place = STORE, json: Json = False) -> None:
    """Settings that were asked for and not told yet."""
    runs = reader(name, store).pending()
    if json:
        print_json(runs)
    elif runs:
        _print_runs(runs, "Pending")
    else:
        say(console, "Nothing is pending.")


def cancel(
    name: Name,
    run: Annotated[int, typer.Argument(help="Number of the run, as ask and pending show it.")],
    store: Place = STORE,
    json: Json = False,
) -> None:
    """Withdraw a run that will not be made."""
    study = Study.open(name, store)
    study.cancel(run)
    if json:
        print_json({"name": name, "cancelled": run, "pending": study.pending()})
    else:
        say(console, f"Run {run} is cancelled.")


def choosing_options(
    model: str, range: str | None, until: str | None, safe: Iterable[str], known_safe: Iterable[str], seed: int
) -> dict[str, Any]:
    """Arguments of ``Study`` from what stands on a command line."""
    return {
        "model": model,
        "range": None if range is None else _pair("range", range),
        "until": None if until is None else _until(until),
        "safe": dict(map(_constraint, safe)) or None,
        "known_safe": [_setting(text) for text in known_safe] or None,
        "seed": seed,
    }


def _pair(option: str, text: str) -> tuple[float, float]:
    low, _, high = text.partition(":")
    try:
        return float(low), float(high)
    except ValueError:
        raise InvalidArgumentError(option, text, "is no interval", f"write --{option} 0:100") from None


def _until(text: str) -> Any:
    """best, best=0.1, gain=0.1, above=50, or above=50,within=1."""
    parts = [part.partition("=") for part in text.split(",")]
    try:
        return text if text == "best" else {kind.strip(): float(amount) for kind, _, amount in parts}
    except ValueError:
        raise InvalidArgumentError("until", text, "is no aim", "write gain=1, best, best=1 or above=50") from None


def _constraint(text: str) -> tuple[str, Below]:
    """impurity<0.05:bernoulli."""
    found = _SAFE.fullmatch(text.strip())
    try:
        if found is None:
            raise ValueError
        kind = Below if found[2].startswith("<") else Above
        law, _, bound = found[4].partition(":")
        return found[1], kind(float(found[3]), family_named(law), bound=float(bound) if bound else None)
    except ValueError as error:
        if isinstance(error, InvalidArgumentError):
            raise
        raise InvalidArgumentError(
            "safe",
            text,
            "is no constraint",
            'write e.g. "impurity<0.05:bernoulli", "purity>0.9:gaussian:6" with a bound',
        ) from None


def _setting(text: str) -> dict[str, Any]:
    """temperature=40,catalyst=X."""
    setting: dict[str, Any] = {}
    for part in text.split(","):
        name, equals, value = part.partition("=")
        if not equals:
            raise InvalidArgumentError("known-safe", text, "is no setting", "write temperature=40,catalyst=X")
        try:
            setting[name.strip()] = float(value)
        except ValueError:
            setting[name.strip()] = value.strip()
    return setting


def _print_runs(runs: list[dict[str, Any]], title: str) -> None:
    table = Table(title=title, title_justify="left")
    for heading in runs[0]:
        table.add_column(heading, justify="right")
    for run in runs:
        table.add_row(*(Text(str(value)) for value in run.values()))
    console.print(table)
