"""What a study has found, in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from likeset.study.numerals import interval, number

_JUDGED = {
    "better": "is better than {control}",
    "worse": "is worse than {control}",
    "equivalent": "is as good as {control}, within the margin",
    "positive": "has a positive effect",
    "negative": "has a negative effect",
}
CONSTANTS = ("(constant)", "Intercept")  # no effects of anything: nobody asks for a verdict on them


def findings(answers: dict[str, Any], certain: Sequence[dict[str, Any]] = ()) -> list[dict[str, Any]]:
    """One entry per level or coefficient that is judged: level, verdict, what is said, and since how many rows.

    What is decided comes first. ``short`` is the beginning of what is said.

    >>> made = {"outcome": "y", "units": "", "goal": "maximise", "margin": None, "control": {"v": "A"}}
    >>> rows = [{"factor": "v", "level": "A", "kind": "level", "n": 5, "verdict": "control"}]
    >>> rows += [rows[0] | {"level": "B", "verdict": "not yet", "difference_lower": -0.1, "difference_upper": 0.5}]
    >>> [(f["level"], f["said"], f["since"]) for f in findings({"rows": rows, "definition": made})]
    [('B', 'against A is not decided yet: the difference of y lies in [-0.100, 0.500]', None)]
    """
    since = {(c["factor"], c["level"]): c["rows"] for c in certain}
    found = []
    for row in answers["rows"]:
        if row["verdict"] in (None, "control") or row["level"] in CONSTANTS:
            continue
        place = (row["factor"], row["level"])
        short = _briefly(row, answers["definition"]["control"].get(row["factor"], ""))
        more = _of_level(row, answers["definition"]) if row["kind"] == "level" else _of_coefficient(row)
        entry = {"level": row["level"], "verdict": row["verdict"], "short": short, "said": short + more}
        found.append(entry | {"since": since.get(place)})
    return sorted(found, key=lambda entry: entry["verdict"] == "not yet")


def _briefly(row: dict[str, Any], control: str) -> str:
    if row["verdict"] in _JUDGED:
        return _JUDGED[row["verdict"]].format(control=control)
    return f"against {control} is not decided yet" if row["kind"] == "level" else "is not decided yet"


def _of_level(row: dict[str, Any], definition: dict[str, Any]) -> str:
    """What is to be said beside the verdict, if anything."""
    outcome = definition["outcome"]
    if row.get("hazard_lower") is not None or row.get("hazard_upper") is not None:
        return f": the ratio of hazards lies in {interval(row['hazard_lower'], row['hazard_upper'])}"
    low, high = row["difference_lower"], row["difference_upper"]
    units = f" {definition['units']}" if definition["units"] not in (None, "", outcome) else ""
    if row["verdict"] == "equivalent" or row["verdict"] not in _JUDGED:
        if row["n"] == 0:
            return ": it has no rows"
        known = low is not None or high is not None
        return f": the difference of {outcome} lies in {interval(low, high)}{units}" if known else ""
    amount = _amount(low, high)
    return f": {outcome} is {amount}{units} on average" if amount else ""


def _amount(low: float | None, high: float | None) -> str:
    """By how much, where an interval excludes zero."""
    if low is not None and low > 0.0:
        side, ends = "higher", interval(low, high)
    elif high is not None and high < 0.0:
        side, ends = "lower", interval(-high, None if low is None else -low)
    else:
        return ""
    least, most = ends[1:-1].split(", ")
    if most == "∞":
        return f"{side} by at least {least}" if least != "0" else side
    return f"{side} by {least} to {most}" if least != "0" else f"{side} by at most {most}"


def _of_coefficient(row: dict[str, Any]) -> str:
    return f": its coefficient lies in {interval(row['lower'], row['upper'])}"


def best_setting(answers: dict[str, Any]) -> dict[str, str] | None:
    """Of a campaign: the setting with the best certified bound, and that bound in words; None of other studies.

    >>> definition = {"goal": "maximise", "outcome": "yield", "units": "%"}
    >>> line = {"kind": "setting", "level": "heat = 60", "lower": 41.25, "upper": 80.0}
    >>> best_setting({"rows": [line], "definition": definition})
    {'level': 'heat = 60', 'said': 'yield at least 41.25 %'}
    """
    definition = answers["definition"]
    end, side = ("lower", "at least") if definition["goal"] == "maximise" else ("upper", "at most")
    if not answers["rows"] or answers["rows"][0]["kind"] != "setting" or answers["rows"][0][end] is None:
        return None
    best, units = answers["rows"][0], f" {definition['units']}" if definition["units"] else ""
    return {"level": best["level"], "said": f"{definition['outcome']} {side} {number(best[end])}{units}"}
