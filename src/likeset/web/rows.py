"""Forms become rows and definitions; what a form asks for follows from the definition of a study."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from likeset.errors import InvalidArgumentError
from likeset.study.wording import family_text, with_units

# Families that the form for a new study offers: name, what for, the settings it asks for.
OFFERED: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("bernoulli", "yes or no (conversion, success)", ()),
    ("poisson", "counts (orders, defects)", ()),
    ("gaussian", "numbers with normal noise", ("sigma",)),
    ("laplace", "numbers with heavier tails", ("scale",)),
    ("exponential", "times until an event", ()),
    ("weibull", "times until an event, with wear", ("shape",)),
)


def kind_of_outcome(described: Mapping[str, Any]) -> str:
    """A family in the words of the form for a new study, or as it is written.

    >>> kind_of_outcome({"type": "Bernoulli"}), kind_of_outcome({"type": "Geometric", "settings": {}})
    ('yes or no', 'Geometric()')
    """
    words = {name: text for name, text, _ in OFFERED}
    known = words.get(str(described.get("type")).lower())
    return known.partition(" (")[0] if known else family_text(described)


UNKNOWN = "unknown"  # a setting of a family that nobody knows; ``ls.Unknown()`` in programs


@dataclass(frozen=True)
class Field:
    """One input of a form. ``kind``: "choice", "number", "yes or no", "text"."""

    name: str
    label: str
    kind: str
    choices: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None
    hint: str = ""


def takes_failures(definition: Mapping[str, Any]) -> bool:
    """Whether rows of a study may be failures: campaigns that say how they choose."""
    campaign = definition.get("campaign") or {}
    return any(part in campaign for part in ("model", "until", "safe", "failed"))


def fields_of(definition: Mapping[str, Any]) -> list[Field]:
    """What a row of a study needs, as inputs.

    >>> made = {"factors": {"variant": ["A", "B"]}, "outcome": "converted", "family": {"type": "Bernoulli"}}
    >>> [(f.name, f.kind) for f in fields_of(made | {"roles": {}, "key": None, "units": "", "like": {}})]
    [('variant', 'choice'), ('converted', 'yes or no')]
    """
    found = []
    for name, given in definition["factors"].items():
        if isinstance(given, list):
            found.append(Field(name, name, "choice", tuple(map(str, given))))
        else:
            ends = (given.get("interval") or given.get("whole")) if isinstance(given, dict) else None
            low, high = ends or (None, None)
            hint = "" if low is None else f"{low:g} to {high:g}"
            found.append(Field(name, name, "number", low=low, high=high, hint=hint))
    declared = {f.name for f in found}
    found += [Field(name, name, "number") for name in definition.get("like") or {} if name not in declared]
    return found + outcome_fields(definition)


def outcome_fields(definition: Mapping[str, Any]) -> list[Field]:
    """What is not known before a run is made."""
    found = []
    family = definition["family"].get("type")
    outcome = definition["outcome"]
    label = with_units(definition)
    found.append(
        Field(
            outcome, label, "yes or no" if family == "Bernoulli" and "trials" not in definition["roles"] else "number"
        )
    )
    for role, column in definition["roles"].items():
        found.append(Field(column, column, "yes or no" if role == "event" else "number", hint=role))
    for column, constraint in (definition.get("campaign") or {}).get("safe", {}).items():
        kind = "yes or no" if constraint["family"].get("type") == "Bernoulli" else "number"
        side = "at most" if constraint["kind"] == "below" else "at least"
        found.append(Field(column, column, kind, hint=f"{side} {constraint['threshold']:g} on average"))
    if definition["key"]:
        found.append(Field(definition["key"], definition["key"], "text", hint="tells rows apart"))
    return found


def row_from(form: Mapping[str, Any], fields: list[Field], may_be_empty: bool = False) -> dict[str, Any]:
    """One row, from inputs named ``field-0``, ``field-1``, ...; numbers are checked by the study itself."""
    row = {}
    for i, f in enumerate(fields):
        text = str(form.get(f"field-{i}", "")).strip()
        if text == "" and may_be_empty:
            continue
        if text == "":
            raise InvalidArgumentError(f.name, text, "is empty", "fill it in")
        row[f.name] = _number(f.name, text) if f.kind in ("number", "yes or no") else text
    return row


def definition_from(form: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of ``Study`` from the form for a new one. Factors are lines "variant: A, B, C" or "dose: 0 to 10"."""
    factors: dict[str, Any] = {}
    for line in str(form.get("factors", "")).splitlines():
        if not line.strip():
            continue
        name, colon, rest = (part.strip() for part in line.partition(":"))
        if not colon or not name or not rest:
            raise InvalidArgumentError("factors", line, "is no factor", "write e.g. 'variant: A, B' or 'dose: 0 to 10'")
        if name in factors:
            raise InvalidArgumentError("factors", name, "is named twice", "name each factor once")
        factors[name] = _factor(rest)
    family = str(form.get("family", ""))
    offered = {name: settings for name, _, settings in OFFERED}
    if family not in offered:
        raise InvalidArgumentError("family", family, "is not offered", f"choose one of {', '.join(offered)}")
    settings: dict[str, Any] = {}
    for setting in offered[family]:
        given = str(form.get("setting", "")).strip()
        settings[setting] = _number(setting, given) if given else UNKNOWN
    optional = {name: str(form.get(name, "")).strip() or None for name in ("control", "key", "units", "event")}
    if family not in ("exponential", "weibull"):
        optional["event"] = None
    margin = str(form.get("margin", "")).strip()
    smooth = {"model": "smooth", "range": _range(form)} if form.get("model") == "smooth" else {}
    return {
        "name": str(form.get("name", "")).strip(),
        "factors": factors,
        "outcome": str(form.get("outcome", "")).strip() or "outcome",
        "family": (family, settings),
        "goal": str(form.get("goal", "maximise")),
        "alpha": _number("alpha", str(form.get("alpha", "")).strip() or "0.05"),
        "margin": _number("margin", margin) if margin else None,
        **optional,
        **smooth,
    }


def _range(form: Mapping[str, Any]) -> tuple[float, float] | None:
    text = str(form.get("range", "")).strip()
    low, to, high = (part.strip() for part in text.partition(" to "))
    if not text:
        return None
    if not to:
        raise InvalidArgumentError("range", text, "is no range", "write e.g. '0 to 100'")
    return _number("range", low), _number("range", high)


def _factor(text: str) -> Any:
    low, to, high = (part.strip() for part in text.partition(" to "))
    if to:
        return (_number("factors", low), _number("factors", high))
    if text == "number":
        return {"centre": 0.0, "scale": 1.0}
    return [level.strip() for level in text.split(",") if level.strip()]


def _number(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InvalidArgumentError(name, text, "is not a number", "write a number such as 0.5") from None


def count_from(text: str) -> int:
    """How many experiments are asked for."""
    if not _is_whole(text) or not 1 <= int(text) <= 100:
        raise InvalidArgumentError("count", text, "is not a number from 1 to 100", "ask for fewer")
    return int(text)


def number_of_run(text: str) -> int:
    """Which run a form is about."""
    if not _is_whole(text):
        raise InvalidArgumentError("run", text, "is not the number of a run", "load the page again")
    return int(text)


def _is_whole(text: str) -> bool:
    """Whether a text is a whole number; other alphabets have digits that ``int`` does not read.

    >>> _is_whole("12"), _is_whole("²"), _is_whole("9" * 5000)
    (True, False, False)
    """
    return text.isascii() and text.isdigit() and len(text) <= 15
