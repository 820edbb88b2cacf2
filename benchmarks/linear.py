"""Benchmark: windows in linear models, where one observation can tell much or little.

Every run has arms and a truth of its own; joint set and windows (correlation 0.4, half of the error level for the joint
window) meet the same. ``difference`` is what ``windows="auto"`` decides by: see :mod:`likeset.voices.automatic`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from joblib import Parallel, delayed
from rich.progress import Progress

import likeset as ls
from benchmarks.common import Report, ratio_error
from benchmarks.windows import ALPHA
from likeset.voices.automatic import difference

CASES: tuple[tuple[int, Any, float], ...] = (
    (5, ls.Bernoulli(), 1.0),
    (5, ls.Gaussian(1.0), 1.0),
    (5, ls.Poisson(), 1.0),
    (5, ls.Laplace(0.5), 1.0),
    (5, ls.Bernoulli(), 4.0),
    (2, ls.Gaussian(0.5), 1.0),
    (5, ls.Gaussian(0.5), 1.0),
    (10, ls.Gaussian(0.5), 1.0),
    (5, ls.Poisson(), 2.0),
    (5, ls.Weibull(2.0), 4.0),
    (5, ls.Gaussian(0.5), 1.5),
    (5, ls.Laplace(0.15), 1.0),
    (5, ls.Poisson(), 3.0),
    (2, ls.Gaussian(0.2), 1.0),
    (5, ls.Gaussian(0.2), 1.0),
    (10, ls.Gaussian(0.2), 1.0),
    (20, ls.Gaussian(0.2), 1.0),
    (5, ls.Gaussian(0.5), 5.0),
)
ARMS = 30
COLUMNS = [
    ("d", "d", "d"),
    ("family", "family", ""),
    ("bound", "B", ".1f"),
    ("difference", "difference", ".1f"),
    ("auto", "auto", ""),
    ("joint", "joint", ".1f"),
    ("windows", "windows", ".1f"),
    ("ratio", "windows / joint", ".2f"),
    ("error", "standard error", ".2f"),
]


def play(case: tuple[int, Any, float], windowed: bool, seed: int, rounds: int) -> float:
    """Regret of one run."""
    dim, family, bound = case
    environment = ls.environments.linear(dim, family, ARMS, seed=6000 + seed, bound=bound)
    windows = ls.Windows.covering(environment.space, environment.arms, 0.4, joint_share=0.5) if windowed else None
    policy = ls.UCB(environment.sequence(ALPHA, windows=windows), environment.arms, reward=environment.reward)
    trace = ls.simulate(policy, environment, rounds, np.random.default_rng([84, seed]))
    return float(trace.cumulative_regret[-1])


def run(progress: Progress, quick: bool) -> Report:
    """Every case; two processes."""
    rounds, seeds = (30, 2) if quick else (200, 48)
    title = f"linear models, {ARMS} arms: mean cumulative regret after {rounds} rounds, {seeds} problems each"
    report = Report(title, COLUMNS, notes=["standard error of the ratio, from pairs of runs on the same problem"])
    for case in progress.track(CASES, description="linear models"):
        jobs = [(windowed, seed) for windowed in (False, True) for seed in range(seeds)]
        found = np.array(Parallel(n_jobs=2)(delayed(play)(case, *job, rounds) for job in jobs)).reshape(2, seeds)
        joint, windows = found
        expecting = ls.ConfidenceSequence(case[1], ls.Linear(case[0], case[2]))
        expecting.expect(np.eye(case[0]))
        report.records.append(
            {
                "d": case[0],
                "family": repr(case[1]),
                "bound": case[2],
                "difference": difference(case[1], 0.5 * case[2]),
                "auto": "joint" if expecting.windows is None else "windows",
                "joint": float(joint.mean()),
                "windows": float(windows.mean()),
                "ratio": float(windows.mean() / joint.mean()),
                "error": ratio_error(windows, joint),
            }
        )
    return report
