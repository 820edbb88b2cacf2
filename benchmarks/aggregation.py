"""One row of n trials, or n rows of one: what a forecast loses that is frozen until the total is known."""

from __future__ import annotations

from typing import Any

import numpy as np
from rich.progress import Progress

import likeset as ls
from benchmarks.common import Report

ALPHA, TRIALS, RATES = 0.05, 2000, (0.3, 0.36)
ARMS = np.array([[1.0, 0.0], [1.0, 1.0]])
SIZES = (1, 10, 50, 200, 1000, 2000)
FORECASTS: dict[str, dict[str, Any]] = {
    "Mixture(), voices=None": {"voices": None},
    "the default": {},
    "FTRL(), voices=None": {"predictor": ls.FTRL(), "voices": None},
}


def run(progress: Progress, quick: bool) -> Report:
    """Mean width of the interval for a log odds ratio by trials per row."""
    repeats, sizes = (2, SIZES[2:]) if quick else (20, SIZES)
    report = Report(
        "Trials per row: width of the interval for a log odds ratio",
        [("forecast", "forecast, voices", ""), *((str(size), f"{size:,}", ".2f") for size in sizes)],
    )
    task = progress.add_task("aggregation", total=len(FORECASTS) * len(sizes) * repeats)
    for name, settings in FORECASTS.items():
        widths: dict[str, list[float]] = {str(size): [] for size in sizes}
        for size in sizes:
            for seed in range(repeats):
                low, high = counted(np.random.default_rng([11, seed]), size, settings).set.interval([[0.0, 1.0]])
                widths[str(size)].append(float(high[0] - low[0]))
                progress.advance(task)
        report.records.append({"forecast": name} | {size: float(np.mean(found)) for size, found in widths.items()})
    report.notes.append(
        f"Success with probability {RATES[0]:g} and {RATES[1]:g}, {TRIALS:,} trials per arm, the arms in turns, "
        f"alpha = {ALPHA:g}, mean of {repeats} runs."
    )
    return report


def counted(rng: np.random.Generator, size: int, settings: dict[str, Any]) -> ls.ConfidenceSequence:
    """The same trials in rows of ``size``, the two arms in turns."""
    outcomes = rng.random((2, TRIALS)) < np.array(RATES)[:, None]
    totals = outcomes.reshape(2, TRIALS // size, size).sum(axis=2).T
    sequence = ls.ConfidenceSequence(ls.Bernoulli(), ls.Linear(2, 4.0), alpha=ALPHA, **settings)
    sequence.update(np.tile(ARMS, (len(totals), 1)), totals.ravel(), trials=float(size))
    return sequence
