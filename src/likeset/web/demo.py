"""A store with three studies, from data that ship with the package: an A/B test, a survival study, half a campaign.

The data are simulated (``python -m likeset.web.demo`` makes the files again, with the same numbers).
"""

from __future__ import annotations

import csv
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from likeset.families import Bernoulli, Gaussian, Weibull
from likeset.study.store import Store
from likeset.study.study import Study

EXAMPLES = Path(__file__).parent / "examples"


def build_demo(path: str | os.PathLike[str], report: Callable[[float], None] = lambda fraction: None) -> list[str]:
    """Fill a store with the three studies, unless they are there; their names."""
    done, total = 0, sum(len(_rows(name)) for name in ("signup", "stay", "yield"))
    with Store(path) as store:
        for name, looks in (("signup", 12), ("stay", 5), ("yield", 6)):
            study, rows = _study(name, store), _rows(name)
            for part in np.array_split(np.arange(len(rows)), looks):
                if study.n < part[-1] + 1:
                    study.tell([rows[i] for i in part])
                done += len(part)
                report(done / total)
        if not study.runs():  # the campaign is half way: two runs are out
            study.ask(n=2)
        return [study["name"] for study in store.studies()]


def _study(name: str, store: Store) -> Study:
    definitions: dict[str, dict[str, Any]] = {
        "signup": {
            "name": "Sign-up page", "factors": {"variant": ["A", "B", "C"]}, "outcome": {"converted": Bernoulli()},
            "control": "A", "key": "visitor",
        },
        "stay": {
            "name": "Length of stay", "factors": {"ward": ["usual care", "new protocol"]}, "control": "usual care",
            "outcome": {"days": Weibull(shape=1.5)}, "goal": "minimise", "event": "discharged", "units": "days",
        },
        "yield": {
            "name": "Yield of the coupling", "outcome": {"yield": Gaussian(sigma=3.0)}, "units": "%",
            "factors": {"temperature": (20, 90), "hours": (1, 24), "catalyst": ["X", "Y"]},
            "model": "smooth", "range": (0, 100),
        },
    }  # fmt: skip
    return Study(**definitions[name], store=store)


def _rows(name: str) -> list[dict[str, Any]]:
    with (EXAMPLES / f"{name}.csv").open(newline="", encoding="utf-8") as file:
        return [{column: _cell(text) for column, text in row.items()} for row in csv.DictReader(file)]


def _cell(text: str) -> Any:
    try:
        return float(text)
    except ValueError:
        return text


def _simulated() -> dict[str, list[dict[str, Any]]]:
    """Sign-ups at 9, 10 and 16 %; stays watched for at most 14 days; yields of the first half of a plan."""
    rng = np.random.default_rng(2023)
    variant = rng.integers(3, size=1800)
    converted = rng.uniform(size=1800) < np.array([0.09, 0.10, 0.16])[variant]
    pairs = zip(variant, converted, strict=True)
    signup = [{"visitor": i, "variant": "ABC"[v], "converted": int(c)} for i, (v, c) in enumerate(pairs, start=1)]
    ward = rng.integers(2, size=160)
    days = np.array([7.5, 5.0])[ward] * rng.weibull(1.5, size=160)
    wards = ("usual care", "new protocol")
    stay = [
        {
            "ward": wards[w],
            "days": max(round(min(d, 14.0), 2), 0.01),
            "discharged": int(d < 14),
        }
        for w, d in zip(ward, days, strict=True)
    ]
    temperature, hours = rng.uniform(20, 90, size=12).round(), rng.uniform(1, 24, size=12).round(1)
    catalyst = rng.integers(2, size=12)
    mean = 55 + 0.25 * (temperature - 55) + 0.4 * (hours - 12.5) + 6.0 * catalyst
    measured = (mean + 3.0 * rng.normal(size=12)).round(1)
    campaign = [
        {"catalyst": "XY"[c], "temperature": t, "hours": h, "yield": y}
        for c, t, h, y in zip(catalyst, temperature, hours, measured, strict=True)
    ]
    return {"signup": signup, "stay": stay, "yield": campaign}


if __name__ == "__main__":
    for name, rows in _simulated().items():
        with (EXAMPLES / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
