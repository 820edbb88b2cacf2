"""Benchmark: does a step cost more after many observations? 64 distinct covariates, t up to 100 000.

A step is one ``update`` and ``upper`` over 64 arms. Memory: the peak of what one step allocates, and the size of the
saved sequence (it grows with t by design: the ledger keeps every observation).
"""

from __future__ import annotations

import tempfile
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
from rich.progress import Progress

import likeset as ls
from benchmarks.common import ALPHA, FAMILIES, Report, covariates, parameter, seconds

N_COVARIATES, DIM, BOUND = 64, 5, 3.0
SIZES = (100, 1_000, 10_000, 100_000)
CHUNK = 1_000
TARGET = 2.0

COLUMNS = [
    ("family", "family", ""),
    ("predictor", "predictor", ""),
    ("t", "t", "d"),
    ("repeats", "repeats", "d"),
    ("milliseconds", "step (ms)", ".2f"),
    ("ratio", "against t = 100", ".2f"),
    ("peak_bytes", "peak of a step (bytes)", ".3g"),
    ("saved_bytes", "saved file (bytes)", ".3g"),
    ("rows_per_second", "bulk rows/s", ".0f"),
]


def run(progress: Progress, quick: bool) -> Report:
    """All families with the default predictor and FTRL."""
    sizes = SIZES[:2] if quick else SIZES
    report = Report(
        f"one update + upper({N_COVARIATES} arms), d = {DIM}",
        COLUMNS,
        notes=[f"target: at t = {SIZES[-1]} at most {TARGET:g} times t = {SIZES[0]} (exponential families)"],
    )
    for name in FAMILIES:
        for label, predictor in (("default", None), ("FTRL", ls.FTRL())):
            # Laplace noise keeps its points: its cost grows with t, and the largest size would take an hour.
            reached = sizes[:3] if name == "Laplace" else sizes
            report.records.extend(follow(progress, name, label, predictor, reached))
    return report


def follow(progress: Progress, name: str, label: str, predictor: Any, sizes: tuple[int, ...]) -> list[dict[str, Any]]:
    """One sequence, measured on its way through the sizes."""
    rng = np.random.default_rng(0)
    family = FAMILIES[name]
    X = covariates(rng, N_COVARIATES, DIM)
    z = X @ parameter(rng, DIM, 0.4 * BOUND)
    sequence = ls.ConfidenceSequence(family, ls.Linear(DIM, BOUND), ALPHA, predictor=predictor)
    sequence.update(X, family.sample(z, rng))

    def draw(count: int) -> tuple[Any, Any]:
        chosen = rng.integers(0, N_COVARIATES, count)
        return X[chosen], family.sample(z[chosen], rng)

    def step() -> None:
        sequence.update(*draw(1))
        sequence.set.upper(X)

    task = progress.add_task(f"growth: {name}, {label}", total=sizes[-1])
    records: list[dict[str, Any]] = []
    for size in sizes:
        filled, spent = 0, 0.0
        while sequence.n_observations < size:
            count = min(CHUNK, size - sequence.n_observations)
            x, y = draw(count)
            spent += seconds(lambda x=x, y=y: sequence.update(x, y))
            filled += count
            progress.update(task, completed=sequence.n_observations)
        repeats = 15 if seconds(step) < 1.0 else 3
        elapsed = float(np.median([seconds(step) for _ in range(repeats)]))
        records.append(
            {
                "family": name,
                "predictor": label,
                "t": size,
                "repeats": repeats,
                "milliseconds": 1e3 * elapsed,
                "ratio": 1e3 * elapsed / records[0]["milliseconds"] if records else 1.0,
                "peak_bytes": peak(step),
                "saved_bytes": saved_size(sequence),
                "rows_per_second": filled / spent if spent else None,
            }
        )
    progress.remove_task(task)
    return records


def peak(action: Any) -> int:
    """Most memory that Python and NumPy held during the action beyond what they held before."""
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    action()
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most - before


def saved_size(sequence: ls.ConfidenceSequence) -> int:
    """Bytes of the saved sequence."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "sequence"
        sequence.save(path)
        return sum(file.stat().st_size for file in Path(folder).iterdir())
