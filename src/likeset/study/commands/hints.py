"""What to type next, where nothing was kept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from likeset.messages import say
from likeset.study.commands.options import console, quoted
from likeset.study.factors import Levels
from likeset.study.study import Study


def how_to_keep(study: Study, given: Mapping[str, Any], file: str) -> None:
    """The commands that begin a study like this one and tell it the same rows; ``given`` are options of the command
    line that were not left out, ``file`` is where the rows came from.

    What levels a column has is part of it, since a study fixes them before its first row.
    """
    definition = study.definition
    if study.alarm()["rings"]:
        say(console, "\nNothing was stored.")
        return
    grouped = [f for f in definition.factors if isinstance(f, Levels)]
    if grouped and not definition.control and definition.formula is None:
        level = quoted(str(grouped[0].values[0]))
        say(console, f"\nFor verdicts say which level the others are compared with, e.g. --control {level}")
    if any("," in str(level) for f in grouped for level in f.values):  # commas separate levels on a command line
        say(console, "\nNothing was stored. In Python ls.Study keeps rows, also of levels with commas in their names.")
        return
    say(console, "\nNothing was stored. To keep these rows, and those that will come:")
    command = ["likeset study new", quoted(study.name)]
    for name, value in given.items():
        option = "--" + name.replace("_", "-")
        for one in value if isinstance(value, list) else [value]:
            if one is True:
                command.append(option)
            elif one not in (None, False):
                command += [option, quoted(_with_levels(definition, str(one)) if name == "by" else str(one))]
    say(console, "  " + " ".join(command))
    say(console, f"  likeset study tell {quoted(study.name)} {quoted(file) if file != '-' else 'rows.csv'}")


def _with_levels(definition: Any, text: str) -> str:
    if "=" in text:
        return text
    levels = next((f.values for f in definition.factors if f.name == text and isinstance(f, Levels)), ())
    return f"{text}={','.join(map(str, levels))}"
