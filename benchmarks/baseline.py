"""The kept numbers of ``python -m benchmarks --quick``, and the comparison with them.

Machines are noisy and differ, so it is ratios to CVXPY, measured side by side in one run, that are compared: a ratio
below 0.9 of the one kept means that the engine, and not the machine, has become slower, or that it deserves a second
run. Times are kept beside them, to be read.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks.common import Report

BASELINE = Path(__file__).with_name("baseline.json")
COMPARED = ("support",)  # benchmarks with a ratio in every row
LEAST = 0.9  # share of the kept ratio

COLUMNS = [
    ("row", "row", ""),
    ("milliseconds", "ours (ms)", ".3f"),
    ("kept_milliseconds", "kept (ms)", ".3f"),
    ("ratio", "ratio to CVXPY", ".0f"),
    ("kept_ratio", "kept ratio", ".0f"),
    ("share", "ratio / kept", ".2f"),
    ("verdict", "", ""),
]

Records = list[dict[str, Any]]


def key(record: dict[str, Any]) -> str:
    """The name of a row: its words and sizes, not its numbers."""
    return ", ".join(str(record[name]) for name in ("family", "dim", "regime") if name in record)


def keep(document: dict[str, Any], path: Path = BASELINE) -> None:
    """Write a run's document as the baseline; rows it does not have stay as they were."""
    old = json.loads(path.read_text())["results"] if path.exists() else {}
    path.write_text(json.dumps(document | {"results": old | document["results"]}, indent=1) + "\n")


def compare(results: dict[str, Records], path: Path = BASELINE) -> Report:
    """One row for each row of this run that the baseline has, too."""
    kept = json.loads(path.read_text())
    report = Report(f"this run against the baseline of {kept['made'][:10]}", COLUMNS)
    for name in COMPARED:
        before = {key(record): record for record in kept["results"].get(name, [])}
        for record in results.get(name, []):
            old = before.get(key(record))
            if old is None:
                continue
            share = record["ratio"] / old["ratio"]
            report.records.append(
                {
                    "row": key(record),
                    "milliseconds": record["milliseconds"],
                    "kept_milliseconds": old["milliseconds"],
                    "ratio": record["ratio"],
                    "kept_ratio": old["ratio"],
                    "share": share,
                    "verdict": "slower" if share < LEAST else "",
                }
            )
    slower = sum(record["verdict"] != "" for record in report.records)
    report.notes.append(f"{slower} of {len(report.records)} rows fell below {LEAST:g} of the ratio kept")
    report.notes.append("noise of single rows is 10 % and more on a busy machine: run twice before believing one")
    return report
