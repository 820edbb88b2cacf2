"""Certified stops: observations until ``Elimination`` names the best arm, by the voices of the sets.

The same problems, arms and noise for every kind of set; arms and truth of each problem are drawn anew. Rows come in
batches of five for each arm that is asked for, so that a stop is seen at most five observations late.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from rich.progress import Progress

import likeset as ls
from benchmarks.common import ALPHA, Report, ratio_error

ARMS, DIM, BATCH, MOST = 8, 3, 5, 6000
FIRST_SEED = 81_000
FAMILIES: dict[str, tuple[Any, float]] = {
    "Gaussian 0.5": (ls.Gaussian(0.5), 1.0),
    "Gaussian 0.2": (ls.Gaussian(0.2), 1.0),
    "Laplace 0.3": (ls.Laplace(0.3), 1.0),
    "Poisson": (ls.Poisson(), 2.0),
    "Bernoulli": (ls.Bernoulli(), 3.0),
    "Weibull 2": (ls.Weibull(2.0), 2.0),
}


def observations(family: Any, bound: float, voices: Any, seed: int) -> int:
    """How many observations the certificate took; MOST if there was none until then."""
    rng = np.random.default_rng([FIRST_SEED, seed])
    while True:  # a problem with a gap that can be seen in time
        arms = rng.standard_normal((ARMS, DIM))
        arms /= np.linalg.norm(arms, axis=1)[:, None]
        theta = rng.standard_normal(DIM)
        theta *= 0.8 * bound / np.linalg.norm(theta)
        best, second = np.sort(arms @ theta)[::-1][:2]
        if best - second > 0.15 * bound:
            break
    space = ls.Linear(DIM, bound)
    if voices == "windows":
        voices = ls.Patience().beside(ls.Windows.covering(space, arms, correlation=0.4))
    policy = ls.Elimination(ls.ConfidenceSequence(family, space, ALPHA, voices=voices), arms)
    told = 0
    while not policy.stopped and told < MOST:
        arm = policy.ask()
        policy.seq.update(np.tile(arms[arm], (BATCH, 1)), family.sample(np.full(BATCH, arms[arm] @ theta), rng))
        told += BATCH
    return told


def run(progress: Progress, quick: bool) -> Report:
    """Joint sets, patience (the default in three dimensions), and windows beside it."""
    report = Report(
        "Observations until a certified best arm",
        [
            ("family", "family", ""), ("joint", "joint", ".0f"), ("patience", "patience", ".0f"),
            ("beside", "beside windows", ".0f"), ("ratio", "patience / joint", ".3f"), ("error", "+-", ".3f"),
        ],
    )  # fmt: skip
    problems = 6 if quick else 50
    kinds = {"joint": None, "patience": ls.Patience(), "beside": "windows"}
    task = progress.add_task("stops", total=len(FAMILIES) * len(kinds) * problems)
    for name, (family, bound) in FAMILIES.items():
        counts = {}
        for kind, voices in kinds.items():
            found = []
            for seed in range(problems):
                found.append(observations(family, bound, voices, seed))
                progress.advance(task)
            counts[kind] = np.array(found, dtype=float)
        means = {kind: float(count.mean()) for kind, count in counts.items()}
        report.records.append(
            {"family": name, **means, "ratio": means["patience"] / means["joint"],
             "error": ratio_error(counts["patience"], counts["joint"])}
        )  # fmt: skip
    report.notes.append(
        f"{ARMS} arms in {DIM} dimensions, {problems} problems each, alpha = {ALPHA:g}, batches of {BATCH}."
    )
    return report
