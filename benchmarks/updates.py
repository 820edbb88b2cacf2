"""Benchmark: what recording costs. One row, a batch of two into a long record, and a row that is on disk afterwards."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from rich.progress import Progress
from sklearn.gaussian_process.kernels import RBF

import likeset as ls
from benchmarks.common import ALPHA, Report
from likeset.persistence import journal

COLUMNS = [
    ("case", "case", ""),
    ("rows_before", "rows before", "d"),
    ("distinct", "distinct covariates", "d"),
    ("median_ms", "median (ms)", ".3f"),
    ("worst_ms", "worst (ms)", ".2f"),
    ("target_ms", "target (ms)", ".1f"),
]
DIM = 3


def run(progress: Progress, quick: bool) -> Report:
    """Single rows of several models, batches, and durable sequences with and without the disk's synchronisation."""
    report = Report(
        "recording: one row; two rows into a long record; a durable row",
        COLUMNS,
        notes=[
            "a batch of two rows: at most 2 ms, whatever was recorded before",
            "durable, sync off: at most 1 ms beside the disk's own synchronisation",
        ],
    )
    jobs: list[Callable[[], dict[str, Any]]] = [lambda case=case: single(case) for case in SINGLE]
    long = 20_000 if quick else 1_000_000
    jobs += [lambda distinct=distinct: batch(long, distinct) for distinct in (64, min(100_000, long // 4))]
    jobs += [lambda sync=sync: durable(5_000 if quick else 100_000, sync) for sync in ("OFF", "FULL")]
    for job in progress.track(jobs, description="updates"):
        report.records.append(job())
    return report


def _line() -> ls.RKHS:
    return ls.RKHS(RBF(0.06), 4.2, domain=np.linspace(0, 1.2, 64))


SINGLE: dict[str, Callable[[], ls.ConfidenceSequence]] = {
    "Gaussian, linear": lambda: ls.ConfidenceSequence(ls.Gaussian(0.3), ls.Linear(DIM, 2.0), ALPHA),
    "Gaussian, FTRL": lambda: ls.ConfidenceSequence(ls.Gaussian(0.3), ls.Linear(DIM, 2.0), ALPHA, ls.FTRL()),
    "Poisson, linear": lambda: ls.ConfidenceSequence(ls.Poisson(), ls.Linear(DIM, 2.0), ALPHA),
    "Gaussian, functions": lambda: ls.ConfidenceSequence(ls.Gaussian(0.15), _line(), ALPHA),
}


def single(case: str) -> dict[str, Any]:
    """One row at a time, after a hundred."""
    sequence, rng = SINGLE[case](), np.random.default_rng(0)
    functions = isinstance(sequence.space, ls.RKHS)
    X = sequence.space.domain if functions else rng.normal(size=(64, DIM))  # type: ignore[attr-defined]
    sequence.update(X[np.arange(100) % 64], np.ones(100))
    return _record(f"one row: {case}", sequence, X, 400, None, one=True)


def batch(rows: int, distinct: int) -> dict[str, Any]:
    """Two rows into many; a fixed forecast, so that nothing else is measured."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(distinct, DIM))
    sequence = ls.ConfidenceSequence(ls.Poisson(), ls.Linear(DIM, 2.0), ALPHA, ls.Fixed([0.1, 0.2, 0.3]))
    for start in range(0, rows, 50_000):
        sequence.update(X[np.arange(start, min(start + 50_000, rows)) % distinct], np.ones(min(50_000, rows - start)))
    return _record("two rows", sequence, X, 100, 2.0, one=False)


def durable(rows: int, sync: str) -> dict[str, Any]:
    """One row at a time into a journal."""
    before, journal.SYNCHRONOUS = journal.SYNCHRONOUS, sync
    try:
        with tempfile.TemporaryDirectory() as folder:
            X = np.random.default_rng(0).normal(size=(64, DIM))
            with ls.ConfidenceSequence.open(
                Path(folder) / "journal", ls.Poisson(), ls.Linear(DIM, 2.0), ALPHA, ls.Fixed([0.1, 0.2, 0.3])
            ) as sequence:
                for _ in range(rows // 5_000):
                    sequence.update(X[np.arange(5_000) % 64], np.ones(5_000))
                return _record(f"durable row, sync {sync}", sequence, X, 300, 1.0 if sync == "OFF" else None, one=True)
    finally:
        journal.SYNCHRONOUS = before


def _record(
    case: str, sequence: ls.ConfidenceSequence, X: Any, times: int, target: float | None, one: bool
) -> dict[str, Any]:
    before, took = sequence.n_observations, []
    for k in range(times):
        x, y = (X[k % len(X)], 1) if one else (X[[k % len(X), (k + 1) % len(X)]], [1, 0])
        start = perf_counter()
        sequence.update(x, y)
        took.append(1e3 * (perf_counter() - start))
    return {
        "case": case,
        "rows_before": before,
        "distinct": sequence.ledger.merged.count,
        "median_ms": float(np.median(took)),
        "worst_ms": float(np.max(took)),
        "target_ms": np.nan if target is None else target,
    }
