"""Studies with a formula: intervals of their coefficients beside those of the same study with nothing announced.

No bound, as in a study by default; an intercept and normal covariates, effects of 0.6 together, lifetimes censored.
"""

from __future__ import annotations

from time import process_time
from typing import Any

import numpy as np
from rich.progress import Progress

import likeset as ls
from benchmarks.common import Report

ALPHA, FIRST_SEED = 0.05, 16
FAMILIES: dict[str, Any] = {"Poisson": ls.Poisson(), "logistic": ls.Bernoulli(), "Weibull, censored": ls.Weibull(1.5)}
COLUMNS = [
    ("case", "case", ""), ("ratio", "width, announced to not", ".3f"), ("worst", "the same, worst problem", ".3f"),
    ("table", "table, s", ".2f"), ("table, plain", "not announced, s", ".2f"), ("tell", "tell a row, ms", ".2f"),
    ("tell, plain", "not announced, ms", ".2f"),
]  # fmt: skip


def run(progress: Progress, quick: bool) -> Report:
    """Every family, number of coefficients and of rows."""
    report = Report("Studies with a formula: mean width of the coefficients' intervals, and time", COLUMNS)
    sizes = (50, 300) if quick else (50, 100, 300, 1000, 3000)
    problems = 1 if quick else 3
    cases = [(name, d, n) for name in FAMILIES for d in ((3,) if quick else (3, 5, 10)) for n in sizes]
    task = progress.add_task("formulas", total=len(cases) * problems)
    for name, d, n in cases:
        found = []
        for number in range(problems):
            found.append(_problem(FAMILIES[name], d, n, number))
            progress.advance(task)
        record: dict[str, Any] = {key: float(np.mean([one[key] for one in found])) for key in found[0]}
        record["worst"] = max(one["ratio"] for one in found)
        report.records.append({"case": f"{name}, d = {d}, n = {n}"} | record)
    report.notes.append(
        f"Means over {problems} problems, seeds [{FIRST_SEED}, d, n, number]; alpha = {ALPHA:g}, all coefficients in "
        "one set. A table has intervals, e-values and verdicts."
    )
    return report


def _problem(family: Any, d: int, n: int, number: int) -> dict[str, float]:
    rng = np.random.default_rng([FIRST_SEED, d, n, number])
    x = rng.normal(size=(n, d - 1))
    theta = np.concatenate([[0.2], rng.normal(size=d - 1) * 0.6 / np.sqrt(d - 1)])
    design = np.column_stack([np.ones(n), x])
    y = family.sample(design @ theta, rng)
    names = [f"x{j}" for j in range(1, d)]
    columns: dict[str, Any] = dict(zip(names, x.T, strict=True))
    options = {}
    if family.observation_shape:
        until = rng.exponential(2.0, n)
        y = np.column_stack([np.minimum(y[:, 0], until), y[:, 0] <= until])
        columns |= {"y": y[:, 0], "event": y[:, 1]}
        options["event"] = "event"
    else:
        columns["y"] = y
    study = ls.Study(
        "formula", formula="~ " + " + ".join(names), factors=dict.fromkeys(names, float), outcome={"y": family},
        alpha=ALPHA, store=None, **options,
    )  # fmt: skip
    plain = ls.ConfidenceSequence(family, ls.Linear(d), ALPHA)
    plain.expect(np.eye(d), purpose="inference")
    start = process_time()
    study.tell(columns)
    told = process_time()
    rows = study.rows()
    shown = process_time()
    plain.update(design, y)
    recorded = process_time()
    low, high = plain.set.interval(np.eye(d))
    plain.set.evidence(np.eye(d), equal=0.0)
    answered = process_time()
    widths = np.array([row["z_upper"] - row["z_lower"] for row in rows])
    with np.errstate(invalid="ignore"):  # with few rows some ends are infinite in both
        ratio = float(np.nanmean(widths / (high - low)))
    return {
        "ratio": ratio, "table": shown - told, "table, plain": answered - recorded,
        "tell": 1e3 * (told - start) / n, "tell, plain": 1e3 * (recorded - shown) / n,
    }  # fmt: skip
