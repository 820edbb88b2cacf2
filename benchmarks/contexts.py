"""Contextual arms: how many different covariates per second a policy looks through when all of them are new each time.

``Guarded`` scores all by matrix products and solves for the best of them only, which is ruled out, or played;
``UCB`` bounds every one. Seconds of the processor, ten dimensions, 300 observations.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from rich.progress import Progress

import likeset as ls
from benchmarks.common import Report

DIMENSION, TOLD = 10, 300


def per_second(policy: Any, arms: int, rng: np.random.Generator) -> float:
    """Arms per second of one question, the better of two."""
    rates = []
    for _ in range(2):
        rows = rng.normal(size=(arms, DIMENSION)) / np.sqrt(DIMENSION)
        start = time.process_time()
        policy.ask(rows)
        rates.append(arms / (time.process_time() - start))
    return max(rates)


def run(progress: Progress, quick: bool) -> Report:
    """Three families, both policies."""
    report = Report(
        "Contextual arms per second",
        [("family", "family", ""), ("guarded", "Guarded, 100,000 arms", ",.0f"), ("ucb", "UCB, 1,000 arms", ",.0f")],
    )
    families = [ls.Gaussian(0.5), ls.Bernoulli(), ls.Poisson()]
    task = progress.add_task("contexts", total=len(families))
    for family in families:
        rng = np.random.default_rng(0)
        theta = rng.normal(size=DIMENSION)
        seq = ls.ConfidenceSequence(family, ls.Linear(DIMENSION, 2.0), 0.05)
        x = rng.normal(size=(TOLD, DIMENSION)) / np.sqrt(DIMENSION)
        seq.update(x, family.sample(x @ theta / np.linalg.norm(theta), rng))
        many = 10_000 if quick else 100_000
        report.records.append(
            {"family": repr(family), "guarded": per_second(ls.Guarded(seq), many, rng),
             "ucb": per_second(ls.UCB(seq), 100 if quick else 1000, rng)}
        )  # fmt: skip
        progress.advance(task)
    report.notes.append(f"{DIMENSION} dimensions, {TOLD} observations.")
    return report
