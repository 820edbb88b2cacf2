"""What a study has found, in words."""

from __future__ import annotations

from typing import Any

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
