"""Choice by belief: cumulative regret of ``Guarded`` beside certified optimism and the best heuristic of the paper.

Every policy meets the same environments and seeds; the median over runs of the regret after 200 rounds. ``covered``
counts the runs in which the truth was in the set of the policy after every round.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from rich.progress import Progress

import likeset as ls
from benchmarks.common import Report
from likeset.paper.experiments.methods import HEURISTICS, methods_for

ALPHA, ROUNDS, FIRST_SEED = 0.1, 200, 20_000
PROBLEMS: dict[str, Callable[[int], Any]] = {
    "1-D gaussian": lambda seed: ls.environments.paper_1d("gaussian"),
    "1-D laplace": lambda seed: ls.environments.paper_1d("laplace"),
    "1-D poisson": lambda seed: ls.environments.paper_1d("poisson"),
    "1-D survival": lambda seed: ls.environments.paper_1d("survival"),
    "1-D bernoulli": lambda seed: ls.environments.paper_1d("bernoulli"),
    "camelback": lambda seed: ls.environments.camelback(),
    "random functions": lambda seed: ls.environments.random_function(seed),
    "linear 2": lambda seed: ls.environments.linear(2, seed=seed),
    "linear 5": lambda seed: ls.environments.linear(5, seed=seed),
    "linear 10": lambda seed: ls.environments.linear(10, seed=seed),
}


def policies(environment: Any) -> dict[str, Callable[..., Any]]:
    """Makers of the policies compared, by name."""
    env, made = environment, {}
    made["optimism"] = lambda rng: ls.UCB(env.sequence(ALPHA), env.arms, reward=env.reward, rng=rng)
    for label, insurance in (("uninsured", 0.0), ("guarded", 0.05)):
        made[label] = lambda rng, eps=insurance: ls.Guarded(
            env.sequence(ALPHA), env.arms, reward=env.reward, insurance=eps, rng=rng
        )
    methods = methods_for(env.family, env.space)
    for name in HEURISTICS if isinstance(env.space, ls.RKHS) else ():
        if name in methods:
            build = methods[name].build
            made[name] = lambda rng, build=build: ls.UCB(
                build(env.family, env.space, ALPHA), env.arms, reward=env.reward, running_intersection=False, rng=rng
            )
    return made


def run(progress: Progress, quick: bool) -> Report:
    """Median regret of every policy on every problem."""
    report = Report(
        "Regret of choice by belief",
        [
            ("problem", "problem", ""), ("optimism", "certified optimism", ".1f"), ("uninsured", "uninsured", ".1f"),
            ("guarded", "insurance 0.05", ".1f"), ("heuristic", "best heuristic", ".1f"),
            ("against", "uninsured / heuristic", ".2f"), ("saving", "insured / optimism", ".2f"),
            ("worst", "worst run / optimism", ".2f"), ("covered", "covered", ""),
        ],
    )  # fmt: skip
    runs = 8 if quick else 48
    task = progress.add_task("choosing", total=len(PROBLEMS) * runs)
    for name, make in PROBLEMS.items():
        regrets: dict[str, list[float]] = {}
        covered = 0
        for k in range(runs):
            environment = make(FIRST_SEED + k)
            for label, build in policies(environment).items():
                policy, certified = build(np.random.default_rng([1, k])), label == "guarded"
                trace = ls.simulate(
                    policy, environment, ROUNDS, np.random.default_rng([FIRST_SEED, k]), coverage=certified,
                    on_empty="explore",
                )  # fmt: skip
                regrets.setdefault(label, []).append(float(trace.regret.sum()))
                covered += certified and trace.always_covered
            progress.advance(task)
        medians = {label: float(np.median(values)) for label, values in regrets.items()}
        heuristic = min((medians[label] for label in HEURISTICS if label in medians), default=np.nan)
        report.records.append(
            {"problem": name, **{label: medians[label] for label in ("optimism", "uninsured", "guarded")},
             "heuristic": heuristic, "against": medians["uninsured"] / heuristic,
             "saving": medians["guarded"] / medians["optimism"],
             "worst": max(regrets["guarded"]) / medians["optimism"], "covered": f"{covered}/{runs}"}
        )  # fmt: skip
    report.notes.append(f"{runs} runs of {ROUNDS} rounds each, alpha = {ALPHA:g}; medians.")
    return report
