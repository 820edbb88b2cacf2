"""A study's answers in words: text for terminals, HTML for notebooks. Both are made from ``Study.to_json()`` alone."""

from __future__ import annotations

import math
from collections.abc import Iterable
from html import escape
from typing import Any

_HEADINGS = {
    "level": "level", "n": "rows", "observed": "observed", "estimate": "estimate", "interval": "interval",
    "difference": "difference", "ratio": "ratio", "odds": "odds ratio", "e_value": "e-value", "p_value": "p-value",
    "verdict": "verdict",
}  # fmt: skip
_JUST_ABOVE = [math.nextafter(neutral, math.inf) for neutral in (0.0, 1.0)]
_JUST_BELOW = [math.nextafter(neutral, -math.inf) for neutral in (0.0, 1.0)]
_STYLE = (
    "border-collapse:collapse;font-variant-numeric:tabular-nums",
    "text-align:right;padding:.3em .7em;border-bottom:1px solid #ccc",
    "text-align:left;padding:.3em .7em;border-bottom:1px solid #ccc",
)


def number(value: float | None, digits: int = 4) -> str:
    """A number that can be read.

    >>> [number(v) for v in (0.12345, 1234567.0, 3.0, None, 4e-5, 0.0)]
    ['0.1235', '1.235e+06', '3', '', '4e-05', '0']
    """
    if value is None:
        return ""
    if isinstance(value, int):
        return f"{value:,}"
    return "∞" if value == math.inf else "-∞" if value == -math.inf else f"{value:.{digits}g}"


def interval(low: float | None, high: float | None) -> str:
    """[low, high]; an end that is missing is infinite, one that is just excluded has a round bracket.

    >>> interval(0.25, None), interval(math.nextafter(0.0, 1.0), 0.5)
    ('[0.25, ∞]', '(0, 0.5]')
    """
    before = "(" if low in _JUST_ABOVE else "["
    after = ")" if high in _JUST_BELOW else "]"
    low = -math.inf if low is None else low if before == "[" else round(low)
    high = math.inf if high is None else high if after == "]" else round(high)
    return f"{before}{number(float(low))}, {number(float(high))}{after}"


def cells(answers: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    """Headings and cells of the table, without columns that say nothing."""
    rings = answers["alarm"]["rings"]
    columns: dict[str, list[str]] = {heading: [] for heading in _HEADINGS.values()}
    factors = {row["factor"] for row in answers["rows"]}
    for row in answers["rows"]:
        level = f"{row['factor']}: {row['level']}" if len(factors) > 1 and row["kind"] == "level" else row["level"]
        columns["level"].append(level)
        columns["rows"].append(number(row["n"]))
        columns["observed"].append(number(row["observed"]))
        columns["estimate"].append(number(row["estimate"]))
        columns["interval"].append("none" if rings else interval(row["lower"], row["upper"]))
        for of in ("difference", "ratio", "odds"):
            compared = row[of] is not None or row[f"{of}_lower"] is not None or row[f"{of}_upper"] is not None
            columns[_HEADINGS[of]].append(interval(row[f"{of}_lower"], row[f"{of}_upper"]) if compared else "")
        columns["e-value"].append(number(row["e_value"], 3))
        columns["p-value"].append(number(row["p_value"], 2))
        columns["verdict"].append(row["verdict"] or "")
    kept = [heading for heading, column in columns.items() if any(column)]
    return kept, [[columns[heading][i] for heading in kept] for i in range(len(answers["rows"]))]


def sentences(answers: dict[str, Any]) -> list[str]:
    """What there is to say above the table; the alarm first."""
    definition, found = answers["definition"], []
    said = answers["alarm"]
    if said["text"]:
        found.append(f"ALARM. {said['text']}" if said["rings"] else said["text"])
    units = f" ({definition['units']})" if definition["units"] not in (None, "", definition["outcome"]) else ""
    what = definition["formula"] or ", ".join(definition["factors"])
    found.append(
        f"{answers['rows_recorded']:,} rows of {definition['outcome']}{units} by {what}; "
        f"{family_text(definition['family'])}."
    )
    if said["rings"]:
        return found
    found.append(
        f"All intervals hold at all times at once with probability at least {1 - definition['alpha']:.4g}: "
        "look as often as you like, stop when you like."
    )
    return found


def family_text(described: dict[str, Any]) -> str:
    """A family as it would be written.

    >>> family_text({"type": "Gaussian", "settings": {"sigma": 2.0}})
    'Gaussian(sigma=2.0)'
    >>> family_text({"type": "Gaussian", "settings": {"sigma": {"unknown": [0.0, "inf"]}}})
    'Gaussian(sigma unknown)'
    """
    settings = (described.get("settings") or {}).items()
    parts = [f"{key} unknown" if isinstance(value, dict) else f"{key}={value}" for key, value in settings]
    return f"{described.get('type') or described.get('own')}({', '.join(parts)})"


def lines(answers: dict[str, Any], width: int | None = None) -> list[str]:
    """The table as aligned text; where it would be wider than ``width``, without what says the same in other words."""
    headings, rows = cells(answers)
    for dropped in ("p-value", "odds ratio", "observed", "ratio", "estimate"):
        if width is None or _total(headings, rows) <= width:
            break
        if dropped in headings:
            j = headings.index(dropped)
            headings, rows = headings[:j] + headings[j + 1 :], [row[:j] + row[j + 1 :] for row in rows]
    widths = [max(map(len, column)) for column in zip(headings, *rows, strict=True)]
    found = []
    for line in (headings, *rows):
        aligned = [c.ljust(w) if i == 0 else c.rjust(w) for i, (c, w) in enumerate(zip(line, widths, strict=True))]
        found.append("  ".join(aligned).rstrip())
    return found


def _total(headings: list[str], rows: list[list[str]]) -> int:
    return sum(max(map(len, column)) + 2 for column in zip(headings, *rows, strict=True)) - 2


def summary(answers: dict[str, Any]) -> str:
    """The answers as text."""
    return "\n".join([f"Study {answers['name']}", *sentences(answers), "", *lines(answers)])


def html(answers: dict[str, Any]) -> str:
    """The answers as a fragment of HTML, for notebooks and reports; verdicts first, as narrow pages show little."""
    headings, rows = cells(answers)
    if "verdict" in headings:
        headings, *rows = ([line[0], line[-1], *line[1:-1]] for line in (headings, *rows))
    whole, right, left = _STYLE

    def line(tag: str, entries: Iterable[str]) -> str:
        styled = (f'<{tag} style="{right if i else left}">{escape(e)}</{tag}>' for i, e in enumerate(entries))
        return f"<tr>{''.join(styled)}</tr>"

    said = "".join(
        f"<p><strong>{escape(s)}</strong></p>" if s.startswith("ALARM") else f"<p>{escape(s)}</p>"
        for s in sentences(answers)
    )
    table = f"<thead>{line('th', headings)}</thead><tbody>{''.join(line('td', row) for row in rows)}</tbody>"
    return f'<div><h3>{escape(answers["name"])}</h3>{said}<table style="{whole}">{table}</table></div>'
