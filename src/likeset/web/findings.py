"""What a study has found, in words."""

from __future__ import annotations

from typing import Any

from likeset.study.wording import number

_WORDS = {
    "better": "is better than {}",
    "worse": "is worse than {}",
    "equivalent": "is as good as {}, within the margin",
    "positive": "has a positive effect",
    "negative": "has a negative effect",
}


def findings(answers: dict[str, Any], certain: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One entry per level or coefficient that is judged: level, verdict, the sentence, and since how many rows.

    >>> rows = [{"factor": "v", "level": "A", "verdict": "control"}, {"factor": "v", "level": "B", "verdict": "better"}]
    >>> [(f["level"], f["said"], f["since"]) for f in findings({"rows": rows}, [])]
    [('B', 'is better than A', None)]
    """
    since = {(c["factor"], c["level"]): c["rows"] for c in certain}
    controls = {row["factor"]: row["level"] for row in answers["rows"] if row["verdict"] == "control"}
    found = []
    for row in answers["rows"]:
        if row["verdict"] in (None, "control"):
            continue
        control = controls.get(row["factor"], "")
        said = _WORDS.get(row["verdict"], "against {}" if control else "").format(control)
        place = (row["factor"], row["level"])
        found.append({"level": row["level"], "verdict": row["verdict"], "said": said, "since": since.get(place)})
    return found


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
