"""Voices with an unknown scale or shape: widths relative to the joint set with the same unknown number."""

from __future__ import annotations

from time import process_time
from typing import Any

import numpy as np
from rich.progress import Progress

import likeset as ls
from benchmarks.common import Report

SIZES = (30, 100, 300)
CASES: list[tuple[str, Any, float, int, float]] = [
    ("Gaussian 0.1, d = 5", ls.Gaussian, 0.1, 5, np.inf), ("Gaussian 0.3, d = 2", ls.Gaussian, 0.3, 2, np.inf),
    ("Gaussian 1, d = 5", ls.Gaussian, 1.0, 5, np.inf), ("Laplace 0.1, d = 3", ls.Laplace, 0.1, 3, np.inf),
    ("Weibull 1.5, d = 2, B = 2", ls.Weibull, 1.5, 2, 2.0),
]  # fmt: skip


def run(progress: Progress, quick: bool) -> Report:
    """Mean width of two coefficients with patience by that of the joint set, and seconds for one interval."""
    report = Report(
        "Unknown scale or shape: width with patience by that of the joint set",
        [("case", "case", ""), *((str(n), f"n = {n}", ".2f") for n in SIZES), ("seconds", "one interval, s", ".3f")],
    )
    runs = 1 if quick else 3
    task = progress.add_task("unknown", total=len(CASES) * runs)
    for name, constructor, value, d, bound in CASES:
        family = constructor(ls.Unknown())
        widths, seconds = np.zeros((2, len(SIZES))), 0.0
        for number in range(runs):
            rng = np.random.default_rng([d, number])
            theta = rng.normal(size=d)
            theta /= 1.2 * np.linalg.norm(theta)
            arms = rng.normal(size=(40, d))
            X = (arms / np.linalg.norm(arms, axis=1)[:, None])[rng.integers(40, size=SIZES[-1])]
            y = family.known(value).sample(X @ theta, rng)
            for row, voices in enumerate((None, ls.Patience())):
                seq, seen = ls.ConfidenceSequence(family, ls.Linear(d, bound), 0.05, voices=voices), 0
                for column, n in enumerate(SIZES):
                    seq.update(X[seen:n], y[seen:n])
                    seen, start = n, process_time()
                    low, high = seq.set.interval(np.eye(d)[:2])
                    seconds = process_time() - start
                    widths[row, column] += float(np.mean(high - low)) / runs
            progress.advance(task)
        ratios = dict(zip(map(str, SIZES), widths[1] / widths[0], strict=True))
        report.records.append({"case": name, "seconds": seconds} | ratios)
    report.notes.append(f"{runs} runs, 40 arms at random, alpha = 0.05; seconds with patience at n = {SIZES[-1]}.")
    return report
