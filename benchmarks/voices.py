"""What patient voices cost: a fresh snapshot and ``upper`` over all arms, against the joint set on the same data."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from rich.progress import Progress

import likeset as ls
from benchmarks.common import Array, Report

ARMS, DIM, REPEATS = 40, 5, 15
CASES: dict[str, tuple[Any, float]] = {
    "Gaussian 0.1": (ls.Gaussian(0.1), 1.0),
    "Poisson": (ls.Poisson(), 2.0),
    "Bernoulli": (ls.Bernoulli(), 3.0),
    "Weibull 2": (ls.Weibull(2.0), 1.5),
    "Laplace 0.1": (ls.Laplace(0.1), 1.0),
}


def processor_seconds(action: Callable[[], Any]) -> float:
    """Time of the processor for one call: what else the machine is doing counts less than on the clock."""
    start = time.process_time()
    action()
    return time.process_time() - start


def run(progress: Progress, quick: bool) -> Report:
    """Best of several, in milliseconds; the ratio to the joint set of the same run."""
    report = Report(
        "Patience: a snapshot and 40 upper bounds, time of the processor, best of several",
        [
            ("case", "case", ""), ("n", "n", "d"), ("joint", "joint, ms", ".2f"), ("five", "five voices, ms", ".2f"),
            ("patience", "patience, ms", ".2f"), ("default", "default, ms", ".2f"),
            ("five_ratio", "five / joint", ".1f"), ("patience_ratio", "patience / joint", ".1f"),
            ("default_ratio", "default / joint", ".1f"),
        ],
    )  # fmt: skip
    sizes = (300,) if quick else (300, 1000, 10_000)
    kinds = {"joint": None, "five": ls.Patience(5, 4.0, 0.0), "patience": ls.Patience(), "default": "auto"}
    task = progress.add_task("voices", total=len(CASES) * len(sizes) * len(kinds))
    for name, (family, bound) in CASES.items():
        for n in sizes:
            if n > 1000 and name.startswith("Laplace"):
                progress.advance(task, len(kinds))
                continue
            rng = np.random.default_rng(0)
            arms = rng.standard_normal((ARMS, DIM))
            arms /= np.linalg.norm(arms, axis=1)[:, None]
            theta = rng.standard_normal(DIM)
            theta *= 0.8 * bound / np.linalg.norm(theta)
            index = rng.integers(ARMS, size=n)
            y = family.sample(arms[index] @ theta, rng)
            times = {}
            for kind, voices in kinds.items():
                seq = ls.ConfidenceSequence(family, ls.Linear(DIM, bound), voices=voices)
                seq.update(arms[index], y)

                def ask(seq: ls.ConfidenceSequence = seq, arms: Array = arms) -> None:
                    seq._set = None  # as after an observation
                    seq.set.upper(arms)

                ask()
                times[kind] = 1e3 * min(processor_seconds(ask) for _ in range(3 if quick else REPEATS))
                progress.advance(task)
            ratios = {f"{kind}_ratio": times[kind] / times["joint"] for kind in kinds if kind != "joint"}
            report.records.append({"case": name, "n": n, **times, **ratios})
    report.notes.append("The joint set of Gaussian noise has a closed form.")
    return report
