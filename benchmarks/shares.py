"""How much of the error level announced pairs should have: users until a test is decided, widths of levels."""

from __future__ import annotations

from typing import Any

import numpy as np
from rich.progress import Progress

import likeset as ls
from benchmarks.common import ALPHA, Report
from benchmarks.contrasts import ARMS, MOST, decided_by_joint, decided_by_pairs, users
from likeset.study.asking import predictor_ends

SHARES = (0.5, 0.7, 0.8, 0.9, 0.95)
LEVELS = ((2, 20_000), (10, 1_000_000))  # and rows


def run(progress: Progress, quick: bool) -> Report:
    """Differences from a control that share one set with the levels' own intervals, as in a study."""
    repeats = 2 if quick else 20
    report = Report(
        "Shares of announced pairs: users until 2.9 % and 3.8 % are told apart, and widths of a level's interval",
        [
            ("share", "share", ""), ("users", "users, mean", ",.0f"),
            *((f"{levels} levels", f"{levels} levels, {rows:,} rows", ".2f") for levels, rows in LEVELS),
        ],
    )  # fmt: skip
    task = progress.add_task("shares", total=(1 + len(SHARES)) * repeats)
    data = [users(0.029, 0.038, np.random.default_rng([7, number])) for number in range(repeats)]
    widths: dict[str, float] = {}
    for share in (None, *SHARES):
        times = []
        for n, s in data:
            hits = decided_by_joint(n, s) if share is None else decided_by_pairs(n, s, _voices(ARMS, share))
            times.append(min(float(n[len(hits) - 1].sum()), MOST) if hits[-1] else MOST)
            progress.advance(task)
        record: dict[str, Any] = {"share": "joint" if share is None else f"{share:g}", "users": float(np.mean(times))}
        for levels, rows in LEVELS:
            width = _width(levels, rows, share)
            joint = widths.setdefault(f"{levels} levels", width)
            record[f"{levels} levels"] = width / joint
        report.records.append(record)
    report.notes.append(
        f"{repeats} tests, at most {MOST:,} users, a look every 1,000; widths of a level's z, relative to one joint "
        "ratio, one data set each, rates 0.1."
    )
    return report


def _voices(arms: Any, share: float) -> ls.Contrasts:
    return ls.Contrasts(arms[1:], minus=arms[0], share=share, others=None)


def _width(levels: int, rows: int, share: float | None) -> float:
    """Of the interval of z of the first level that is not the control, where all have as many rows."""
    arms, rng = np.eye(levels), np.random.default_rng(levels)
    voices = None if share is None else _voices(arms, share)
    sequence = ls.ConfidenceSequence(ls.Bernoulli(), ls.Linear(levels), ALPHA, voices=voices)
    each = rows // levels // 100
    for _ in range(100):
        sequence.update(arms, rng.binomial(each, np.full(levels, 0.1)), trials=[each] * levels)
    low, high = predictor_ends(sequence.set, arms[[1]])
    return float(high[0] - low[0])
