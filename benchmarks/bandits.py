"""Benchmark: optimism. Lazy running intersection against the full computation, same rounds, same choices."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from rich.progress import Progress

import likeset as ls
from benchmarks.common import Report

ALPHA = 0.1

COLUMNS = [
    ("case", "case", ""),
    ("arms", "arms", "d"),
    ("rounds", "rounds", "d"),
    ("full_solves", "solves per round, full", ".1f"),
    ("lazy_solves", "lazy", ".1f"),
    ("full_ms", "ask (ms), full", ".2f"),
    ("lazy_ms", "lazy", ".2f"),
    ("ratio", "speed-up of ask", ".1f"),
    ("tell_ms", "tell (ms)", ".2f"),
    ("default", "default", ""),
    ("same", "same choices", ""),
]


def run(progress: Progress, quick: bool) -> Report:
    """The paper's problems and linear models under every noise."""
    report = Report(
        "bandits: choosing an arm, lazily and with every arm solved for in every round",
        COLUMNS,
        notes=[
            "both keep the running intersection; process time; a solve is one extremum of one arm",
            "the default of UCB(lazy=None) is the full computation for Gaussian sets, lazy for all others",
        ],
    )
    environments = ls.environments
    cases = [environments.paper_1d(noise) for noise in environments.NOISES]
    if not quick:
        cases += [environments.camelback(noise) for noise in ("gaussian", "poisson", "survival")]
        cases += [
            environments.linear(5, ls.Gaussian(0.3), 100),
            environments.linear(5, ls.Poisson(), 100),
            environments.linear(5, ls.Laplace(0.3), 100),
        ]
    cases.append(environments.logistic(5, 100))
    for environment in progress.track(cases, description="bandits"):
        report.records.append(one_case(environment, 40 if quick else 200))
    return report


def one_case(environment: Any, rounds: int) -> dict[str, Any]:
    """Both computations side by side, so that the machine's moods hit both alike."""
    lazy, full = (
        ls.UCB(environment.sequence(ALPHA), environment.arms, reward=environment.reward, lazy=flag)
        for flag in (True, False)
    )
    default = ls.UCB(environment.sequence(ALPHA), environment.arms, reward=environment.reward)
    rng = np.random.default_rng(0)
    times = np.zeros((rounds, 3))
    same = True
    for t in range(rounds):
        start = time.process_time()
        i = lazy.ask()
        middle = time.process_time()
        same = same and full.ask() == i
        end = time.process_time()
        y = environment.sample(i, rng)
        lazy.tell(i, y)
        times[t] = middle - start, end - middle, time.process_time() - end
        full.tell(i, y)
    lazy_ms, full_ms, tell_ms = 1e3 * times[2:].mean(axis=0)  # the first rounds compile
    return {
        "case": environment.name
        if repr(environment.space).startswith("RKHS")
        else f"{environment.name}, {type(environment.family).__name__}",
        "arms": len(environment.arms),
        "rounds": rounds,
        "full_solves": full.solves / rounds,
        "lazy_solves": lazy.solves / rounds,
        "full_ms": full_ms,
        "lazy_ms": lazy_ms,
        "ratio": full_ms / lazy_ms,
        "tell_ms": tell_ms,
        "default": "lazy" if default.lazy else "full",
        "same": "yes" if same else "NO",
    }
