"""Benchmark: what studies add to the engine: many columns, many rows of counts, a file from the command line."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from rich.progress import Progress

import likeset as ls
from benchmarks.common import Report

DIM, LEVELS = 20, 10
NOTHING = {"engine": float("nan"), "ratio": float("nan")}  # to compare with
COLUMNS = [
    ("what", "what", ""),
    ("rows", "rows", "d"),
    ("seconds", "seconds", ".2f"),
    ("engine", "engine alone", ".2f"),
    ("ratio", "ratio", ".2f"),
    ("target", "target", ""),
]


def run(progress: Progress, quick: bool) -> Report:
    """1e6 rows x 20 columns through tell, in memory and on disk; a table of 10 levels; ``likeset watch``."""
    report = Report("studies beside the engine", COLUMNS)
    n = 20_000 if quick else 1_000_000
    task = progress.add_task("study", total=4)
    with tempfile.TemporaryDirectory() as folder:
        for make in (_columns, _counts, _watch):
            for record in make(n, Path(folder)):
                report.records.append(record)
                progress.advance(task)
    return report


def _columns(n: int, folder: Path) -> list[dict[str, Any]]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, DIM))
    y = X @ np.linspace(-1, 1, DIM) + rng.normal(size=n)
    frame = {f"x{j}": X[:, j] for j in range(DIM)} | {"y": y}

    def study(store: Any) -> ls.Study:
        factors = dict.fromkeys((f"x{j}" for j in range(DIM)), float)
        return ls.Study("columns", factors=factors, outcome={"y": ls.Gaussian(1.0)}, store=store)

    voices = study(None)._fresh().sequence.voices
    engine = ls.ConfidenceSequence(ls.Gaussian(1.0), ls.Linear(DIM + 1, np.inf), voices=voices, alarm=True)
    warm = study(None)
    warm.tell({name: cells[:50] for name, cells in frame.items()})
    warm.rows()
    alone = _seconds(lambda: engine.update(np.column_stack([np.ones(n), X]), y))
    found = []
    for what, store in (("in memory", None), ("on disk", folder / "store.db")):
        told = study(store)
        seconds = _seconds(lambda told=told: told.tell(frame))  # type: ignore[misc]
        what = f"{DIM} columns, {what}"
        found.append({"what": what, "rows": n, "seconds": seconds, "engine": alone, "ratio": seconds / alone})
        found[-1]["target"] = "ratio at most 2"
    return found


def _counts(n: int, folder: Path) -> list[dict[str, Any]]:
    rng = np.random.default_rng(1)
    level = rng.integers(0, LEVELS, n)
    names = [f"level {k}" for k in range(LEVELS)]
    study = ls.Study("counts", factors={"level": names}, outcome={"y": ls.Poisson()}, control="level 0", store=None)
    study.tell({"level": np.array(names)[level].tolist(), "y": rng.poisson(2.0 + level / 20)})
    study.set.interval(np.eye(LEVELS))
    study.tell([{"level": "level 0", "y": 2}])
    seconds = _seconds(study.rows)
    return [{"what": f"table of {LEVELS} levels", "rows": n, "seconds": seconds, **NOTHING, "target": "below 1 s"}]


def _watch(n: int, folder: Path) -> list[dict[str, Any]]:
    rng, count = np.random.default_rng(2), max(n // 10, 2000)
    level, path = rng.integers(0, 3, count), folder / "visits.csv"
    converted = rng.random(count) < np.array([0.1, 0.11, 0.12])[level]
    lines = (f"{'ABC'[k]},{int(c)}" for k, c in zip(level, converted, strict=True))
    path.write_text("variant,converted\n" + "\n".join(lines) + "\n")
    command = [sys.executable, "-m", "likeset", "watch", str(path), "--outcome", "converted", "--family", "bernoulli"]
    command += ["--by", "variant", "--control", "A"]

    def call() -> None:
        subprocess.run(command, check=True, capture_output=True, env=os.environ)

    call()  # warm
    return [{"what": "likeset watch", "rows": count, "seconds": _seconds(call), **NOTHING, "target": "below 10 s"}]


def _seconds(call: Callable[[], Any]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began
