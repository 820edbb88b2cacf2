"""Benchmark: which windows? Regret of UCB for other window widths, spacings, joint shares and error levels.

All runs differ from those of the benchmark ``windows``: seeds and random functions of their own. ``nearly no level``
(alpha = 0.9) says how much of the regret the error level costs, and ``informed``, a numerator that knows the truth,
what would be left if nothing had to be learnt. ``self-normalised`` is a closed-form set for Gaussian noise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from rich.progress import Progress

import likeset as ls
from benchmarks.common import Report, ratio_error
from benchmarks.windows import ALPHA, environment_of, policy_of

CASES = ("1-D, gaussian", "1-D, poisson", "random function, gaussian", "random function, poisson")
COLUMNS = [
    ("case", "case", ""),
    ("windows", "windows", ""),
    ("regret", "mean regret", ".1f"),
    ("to_oracle", "to the oracle's", ".2f"),
    ("error", "standard error", ".2f"),
    ("to_joint", "to the joint set's", ".2f"),
]


@dataclass(frozen=True)
class Variant:
    """Windows with a label."""

    label: str
    correlation: float = 0.3
    cover: float = 0.9
    joint_share: float = 0.0
    alpha: float = ALPHA


VARIANTS = (
    Variant("the default: correlation 0.3, cover 0.9"),
    Variant("fewer: cover 0.6", cover=0.6),
    Variant("wider: correlation 0.1", correlation=0.1),
    Variant("narrower: correlation 0.6", correlation=0.6),
    Variant("narrow and many: correlation 0.8, cover 0.97", correlation=0.8, cover=0.97),
    Variant("joint share 0.2", joint_share=0.2),
    Variant("correlation 0.6, joint share 0.4", correlation=0.6, joint_share=0.4),
    Variant("correlation 0.8, cover 0.97, joint share 0.3", 0.8, 0.97, 0.3),
    Variant("nearly no level: alpha = 0.9", alpha=0.9),
)


def play(case: str, method: Any, seed: int, rounds: int) -> float:
    """Regret of one run, with a variant of the windows or a method of the benchmark ``windows``."""
    environment, ties = environment_of(case, 2000 + seed), np.random.default_rng([178, seed])
    arms, reward = environment.arms, environment.reward
    if isinstance(method, str):
        policy = policy_of(method, environment, rng=ties)
    else:
        v: Variant = method
        windows = ls.Windows.covering(environment.space, arms, v.correlation, v.joint_share, v.cover)
        policy = ls.UCB(environment.sequence(v.alpha, windows=windows), arms, reward=reward, rng=ties)
    trace = ls.simulate(policy, environment, rounds, np.random.default_rng([78, seed]))
    return float(trace.cumulative_regret[-1])


def run(progress: Progress, quick: bool) -> Report:
    """Every case and variant; two processes."""
    rounds, seeds = (40, 2) if quick else (200, 48)
    report = Report(f"other windows: mean cumulative regret after {rounds} rounds, {seeds} runs each", COLUMNS)
    for case in progress.track(CASES, description="other windows"):
        regrets = {}
        gaussian = ("self-normalised",) if case.endswith("gaussian") else ()
        for method in ("oracle", "informed", "joint", *gaussian, *VARIANTS):
            regrets[method] = np.array(Parallel(n_jobs=2)(delayed(play)(case, method, s, rounds) for s in range(seeds)))
        for method, found in regrets.items():
            report.records.append(
                {
                    "case": case,
                    "windows": method.label if isinstance(method, Variant) else f"none: {method}",
                    "regret": float(found.mean()),
                    "error": ratio_error(found, regrets["oracle"]),
                    "to_oracle": float(found.mean() / regrets["oracle"].mean()),
                    "to_joint": float(found.mean() / regrets["joint"].mean()),
                }
            )
    return report
