"""Safe choices: in how many runs an unsafe point was ever asked for, and how far the certified region grew.

A yield that grows to the right over 33 points, and an impurity that is a function of its own (observed with Gaussian
noise, as counts, or as failures that happen or not), unsafe where it is above a threshold: on the right, or, "two
sides", everywhere but around its lowest point. Every run begins with one point that is known to be safe. Expansions are
points certified to be safe at the end, beyond that one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from rich.progress import Progress
from sklearn.gaussian_process.kernels import RBF

import likeset as ls
from benchmarks.common import Report

ALPHA, FIRST_SEED = 0.2, 71_000
GRID = np.linspace(0.0, 1.0, 33)
# name: family of the impurity, its centres and coefficients, the share of points that is safe, rounds, runs
PROBLEMS: dict[str, tuple[Any, tuple[float, float], tuple[float, float], float, int, int]] = {
    "Gaussian": (ls.Gaussian(0.1), (0.35, 0.75), (-1.6, 1.6), 0.75, 20, 200),
    "Gaussian, two sides": (ls.Gaussian(0.1), (0.5, 0.6), (-1.0, -1.0), 0.6, 40, 100),
    "counts": (ls.Poisson(), (0.35, 0.75), (-1.6, 1.6), 0.75, 70, 50),
    "failures": (ls.Bernoulli(), (0.35, 0.75), (-1.6, 1.6), 0.75, 140, 30),
}


def play(name: str, seed: int) -> tuple[int, int]:
    """How often an unsafe point was asked for, and expansions."""
    family, centres, shares, safe_share, rounds, _ = PROBLEMS[name]
    kernel = RBF(0.35)
    z = kernel(GRID[:, None], np.array(centres)[:, None]) @ np.array(shares)
    pays, mean = kernel(GRID[:, None], np.array([[0.8]]))[:, 0], np.asarray(family.mean(z))
    threshold = float(np.quantile(mean, safe_share))
    seq = ls.ConfidenceSequence(ls.Gaussian(0.1), ls.RKHS(kernel, 2.5, domain=GRID), ALPHA)
    safe = {"impurity": ls.Below(threshold, family, bound=3.0)}
    policy = ls.Guarded(seq, safe=safe, seed=GRID[[int(np.argmin(mean))]], rng=seed)
    rng, unsafe = np.random.default_rng([FIRST_SEED, seed]), 0
    for _ in range(rounds):
        arm = policy.ask()
        unsafe += bool(mean[arm] > threshold)
        impurity = family.sample(z[arm : arm + 1], rng)[0]
        policy.tell(arm, pays[arm] + 0.1 * rng.standard_normal(), impurity=impurity)
    return unsafe, len(policy.safe_arms()) - 1


def run(progress: Progress, quick: bool) -> Report:
    """All problems."""
    report = Report(
        f"Safe choices, alpha = {ALPHA:g}",
        [
            ("impurity", "impurity", ""), ("rounds", "rounds", "d"), ("runs", "runs", "d"),
            ("unsafe", "runs with an unsafe point", "d"), ("allowed", "allowed by alpha", ".0f"),
            ("median", "expansions, median", ".0f"), ("least", "least", "d"), ("possible", "possible", "d"),
        ],
    )  # fmt: skip
    counts = {name: (5 if quick else problem[5]) for name, problem in PROBLEMS.items()}
    task = progress.add_task("safety", total=sum(counts.values()))
    for name, (_, _, _, share, rounds, _) in PROBLEMS.items():
        games = []
        for k in range(counts[name]):
            games.append(play(name, k))
            progress.advance(task)
        unsafe, grown = np.array(games).T
        report.records.append(
            {"impurity": name, "rounds": rounds, "runs": len(games), "unsafe": int((unsafe > 0).sum()),
             "allowed": ALPHA * len(games), "median": float(np.median(grown)), "least": int(grown.min()),
             "possible": int(np.floor(share * (len(GRID) - 1)))}
        )  # fmt: skip
    report.notes.append(f"{len(GRID)} points, one of them known to be safe from the start.")
    return report
