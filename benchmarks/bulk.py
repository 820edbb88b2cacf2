"""Benchmark: rows per second of one ``update`` call with many rows (Bernoulli, FTRL, d = 5)."""

from __future__ import annotations

from functools import partial

import numpy as np
from rich.progress import Progress

import likeset as ls
from benchmarks.common import ALPHA, Report, covariates, median_seconds, parameter

DIM, BOUND = 5, 3.0
TARGET = 20_000.0
DISTINCT = 64

COLUMNS = [
    ("covariates", "covariates", ""),
    ("rows", "rows", "d"),
    ("repeats", "repeats", "d"),
    ("seconds", "seconds", ".2f"),
    ("rows_per_second", "rows/s", ".0f"),
    ("target", "target", ".0f"),
]


def run(progress: Progress, quick: bool) -> Report:
    """With 64 distinct covariates, and with every covariate new."""
    n, repeats = (5_000, 1) if quick else (100_000, 3)
    report = Report("one update call with many rows: Bernoulli, FTRL", COLUMNS)
    rng = np.random.default_rng(0)
    theta = parameter(rng, DIM, 0.4 * BOUND)
    family = ls.Bernoulli()
    # With all covariates distinct nothing merges; the smaller size shows how the cost grows.
    cases = (
        (f"{DISTINCT} distinct", DISTINCT, n, repeats),
        ("all distinct", None, n // 10, repeats),
        ("all distinct", None, n, 1),
    )
    for label, distinct, n_rows, times in progress.track(cases, description="bulk"):
        pool = covariates(rng, distinct or n_rows, DIM)
        X = pool[rng.integers(0, distinct, n_rows)] if distinct else pool
        y = family.sample(X @ theta, rng)
        sequences = [
            ls.ConfidenceSequence(family, ls.Linear(DIM, BOUND), ALPHA, predictor=ls.FTRL()) for _ in range(times + 1)
        ]
        sequences[0].update(X[:20], y[:20])  # compiles
        elapsed = median_seconds([partial(sequence.update, X, y) for sequence in sequences[1:]])
        report.records.append(
            {
                "covariates": label,
                "rows": n_rows,
                "repeats": times,
                "seconds": elapsed,
                "rows_per_second": n_rows / elapsed,
                "target": TARGET,
            }
        )
    return report
