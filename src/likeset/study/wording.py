"""A study's answers in words: text for terminals, HTML for notebooks. Both are made from ``Study.to_json()`` alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from typing import Any

from likeset.study.findings import findings
from likeset.study.numerals import beside, evidence, interval, number, p_value

_HEADINGS = {
    "level": "level", "n": "rows", "observed": "observed", "estimate": "estimate", "interval": "interval",
    "difference": "difference", "ratio": "ratio", "odds": "odds ratio", "e_value": "e-value", "p_value": "p-value",
    "margin_e_value": "e-value of the margin", "verdict": "verdict",
}  # fmt: skip
_STYLE = (
    "border-collapse:collapse;font-variant-numeric:tabular-nums",
    "text-align:right;white-space:nowrap;padding:.3em .7em;border-bottom:1px solid #8886",
    "text-align:left;min-width:5em;padding:.3em .7em;border-bottom:1px solid #8886",
)


def cells(answers: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    """Headings and cells of the table, without columns that say nothing."""
    rings, alpha = answers["alarm"]["rings"], answers["definition"]["alpha"]
    columns: dict[str, list[str]] = {heading: [] for heading in _HEADINGS.values()}
    factors = {row["factor"] for row in answers["rows"]}
    for row in answers["rows"]:
        level = f"{row['factor']}: {row['level']}" if len(factors) > 1 and row["kind"] == "level" else row["level"]
        columns["level"].append(level)
        columns["rows"].append(number(row["n"]))
        columns["observed"].append(beside(row["observed"], row["lower"], row["upper"]))
        columns["estimate"].append(beside(row["estimate"], row["lower"], row["upper"]))
        columns["interval"].append("none" if rings else interval(row["lower"], row["upper"]))
        for of in ("difference", "ratio", "odds"):
            compared = row[of] is not None or row[f"{of}_lower"] is not None or row[f"{of}_upper"] is not None
            columns[_HEADINGS[of]].append(interval(row[f"{of}_lower"], row[f"{of}_upper"]) if compared else "")
        columns["e-value"].append(evidence(row["e_value"], 1 / alpha))
        columns["p-value"].append(p_value(row["p_value"], alpha))
        columns["e-value of the margin"].append(evidence(row.get("margin_e_value"), 1 / alpha))
        columns["verdict"].append(row["verdict"] or "")
    if columns["observed"] == columns["estimate"]:
        columns["observed"] = []
    if all(row["kind"] == "setting" for row in answers["rows"]):
        columns = {"setting" if heading == "level" else heading: column for heading, column in columns.items()}
    if has_no_mean(answers["definition"]["family"]):
        named = {"estimate": "estimate of z", "interval": "interval of z"}
        columns = {named.get(heading, heading): column for heading, column in columns.items()}
    kept = [heading for heading, column in columns.items() if any(column)]
    return kept, [[columns[heading][i] for heading in kept] for i in range(len(answers["rows"]))]


def sentences(answers: dict[str, Any]) -> list[str]:
    """What there is to say above the table; the alarm first."""
    definition, found = answers["definition"], []
    said = answers["alarm"]
    if said["text"]:
        found.append(f"ALARM. {said['text']}" if said["rings"] else said["text"])
    what = definition["formula"] or ", ".join(definition["factors"])
    found.append(
        f"{counted(answers['rows_recorded'], 'row')} of {with_units(definition)} by {what}; "
        f"{family_text(definition['family'])}."
    )
    if said["rings"]:
        return found
    if has_no_mean(definition["family"]):
        found.append(
            "The shape is not known: intervals are of z, the logarithm of the rate (larger z, shorter life); survival "
            "curves are on the scale of the outcome."
        )
    found.append(
        f"All intervals hold at all times at once with probability at least {1 - definition['alpha']:.4g}: "
        "look as often as you like, stop when you like."
    )
    return found


def has_no_mean(described: Mapping[str, Any]) -> bool:
    """Whether the mean of an outcome depends on a number that is not known, so that answers are of z."""
    return isinstance((described.get("settings") or {}).get("shape"), dict)


def verdicts(answers: dict[str, Any], most: int = 6) -> list[str]:
    """What was found, one sentence per level or coefficient that is judged; of many, those that are decided first.

    >>> made = {"outcome": "y", "units": "", "goal": "maximise", "margin": None, "control": {"v": "A"}}
    >>> line = {"factor": "v", "level": "B", "kind": "level", "n": 9, "verdict": "better"}
    >>> ends = {"difference_lower": 0.1, "difference_upper": 0.5}
    >>> control = {"factor": "v", "level": "A", "kind": "level", "n": 9, "verdict": "control"}
    >>> verdicts({"rows": [control, line | ends], "definition": made, "alarm": {"rings": False}})
    ['B is better than A: y is higher by 0.100 to 0.500 on average.']
    """
    if answers["alarm"]["rings"]:
        return []
    found = findings(answers)
    said = [f"{entry['level']} {entry['said']}." for entry in found[:most]]
    more = len(found) - len(said)
    return [*said, f"{more} more in the table."] if more else said


def counted(count: int, noun: str) -> str:
    """A number of things.

    >>> counted(1, "row"), counted(1800, "row")
    ('1 row', '1,800 rows')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def with_units(definition: Mapping[str, Any]) -> str:
    """The outcome with its units, unless its name says them.

    >>> with_units({"outcome": "yield", "units": "%"}), with_units({"outcome": "days", "units": "days"})
    ('yield (%)', 'days')
    """
    outcome, units = str(definition["outcome"]), definition["units"]
    return f"{outcome} ({units})" if units and units != outcome else outcome


def factor_text(described: Any) -> str:
    """What a factor may be, in words.

    >>> factor_text(["A", "B"]), factor_text({"interval": [20.0, 90.0]}), factor_text({"centre": 0.0, "scale": 1.0})
    ('A, B', '20 to 90', 'a number')
    >>> factor_text({"whole": [1, 8]})
    '1 to 8, whole'
    """
    if isinstance(described, list):
        return ", ".join(map(str, described))
    ends = described.get("interval") or described.get("whole")
    if ends is None:
        return "a number"
    return f"{number(float(ends[0]))} to {number(float(ends[1]))}{', whole' if 'whole' in described else ''}"


def family_text(described: Mapping[str, Any]) -> str:
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
    said = verdicts(answers)
    above = [f"Study {answers['name']}", *sentences(answers), *([""] if said else []), *said, ""]
    return "\n".join([*above, *lines(answers)])


def html(answers: dict[str, Any], titled: bool = True) -> str:
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
    found = "".join(f"<li>{escape(s)}</li>" for s in verdicts(answers))
    listed = f"<ul>{found}</ul>" if found else ""
    title = f"<h3>{escape(answers['name'])}</h3>" if titled else ""
    table = f"<thead>{line('th', headings)}</thead><tbody>{''.join(line('td', row) for row in rows)}</tbody>"
    return f'<div>{title}{said}{listed}<div style="overflow-x:auto"><table style="{whole}">{table}</table></div></div>'
