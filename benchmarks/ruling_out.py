"""Optimism that rules arms out: regret of ``UCB``, by windows alone, and with arms ruled out by patience beside them.

Two sequences see the same rows. One has the voices of optimism and its upper bounds choose; the other has patience
beside windows, and ``Elimination`` over it says which arms are certainly not best: these are not played.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from rich.progress import Progress

import likeset as ls
from benchmarks.common import Report, ratio_error

ALPHA, FIRST_SEED = 0.1, 30_000
PROBLEMS: dict[str, tuple[int, Callable[[int], Any]]] = {
    "linear 2": (400, lambda seed: ls.environments.linear(2, seed=seed)),
    "linear 5": (400, lambda seed: ls.environments.linear(5, seed=seed)),
    "linear 10": (400, lambda seed: ls.environments.linear(10, seed=seed)),
    "5 arms apart": (400, lambda seed: apart(seed)),
}


def apart(seed: int) -> Any:
    """Five arms that have nothing in common, Gaussian noise of 0.3."""
    rng = np.random.default_rng([FIRST_SEED, seed])
    theta = rng.standard_normal(5)
    theta *= 0.9 / np.linalg.norm(theta)
    env = ls.environments.linear(5, ls.Gaussian(0.3), n_arms=5, seed=seed)
    return type(env)("apart", env.family, env.space, np.eye(5), theta, theta, env.reward, lambda x: x @ theta)


class RulingOut:
    """The highest upper bound of one sequence among the arms that another one has not ruled out."""

    def __init__(self, env: Any, rng: np.random.Generator) -> None:
        self.arms = env.arms
        self.optimist = ls.UCB(env.sequence(ALPHA), env.arms, reward=env.reward, rng=rng)
        windows = ls.Windows.covering(env.space, env.arms, correlation=0.4)
        both = ls.ConfidenceSequence(env.family, env.space, ALPHA, voices=ls.Patience().beside(windows))
        self.judge = ls.Elimination(both, env.arms, reward=env.reward)
        self.seq = both

    def ask(self) -> int:
        """An index."""
        ranking = self.optimist.ask(n=len(self.arms))
        left = set(self.judge.active.tolist())
        return int(next(i for i in ranking if i in left))

    def tell(self, arm: int, y: Any) -> None:
        """The same row to both."""
        self.optimist.tell(arm, y)
        self.judge.seq.update(self.arms[arm], y)


def regret(policy: Any, env: Any, rounds: int, seed: int) -> float:
    """Cumulative regret in z, with noise that does not depend on what is played."""
    rng, total, z = np.random.default_rng([2, seed]), 0.0, env.z
    for _ in range(rounds):
        arm = policy.ask()
        policy.tell(arm, env.family.sample(z[arm : arm + 1], rng)[0])
        total += float(z.max() - z[arm])
    return total


def run(progress: Progress, quick: bool) -> Report:
    """Mean regret of both, and the arms left at the end."""
    report = Report(
        "Regret of optimism, with and without arms ruled out by patience beside windows",
        [
            ("problem", "problem", ""), ("rounds", "rounds", "d"), ("optimism", "windows", ".2f"),
            ("ruling", "ruled out by both", ".2f"), ("ratio", "ratio", ".3f"), ("error", "+-", ".3f"),
            ("left", "arms left", ".1f"), ("of", "of", "d"),
        ],
    )  # fmt: skip
    runs = 4 if quick else 20
    task = progress.add_task("ruling out", total=len(PROBLEMS) * runs)
    for name, (rounds, make) in PROBLEMS.items():
        plain, ruled, left = [], [], []
        for k in range(runs):
            env = make(FIRST_SEED + k)
            optimist = ls.UCB(env.sequence(ALPHA), env.arms, reward=env.reward, rng=np.random.default_rng([1, k]))
            plain.append(regret(optimist, env, rounds, k))
            both = RulingOut(env, np.random.default_rng([1, k]))
            ruled.append(regret(both, env, rounds, k))
            left.append(len(both.judge.active))
            progress.advance(task)
        report.records.append(
            {"problem": name, "rounds": rounds, "optimism": float(np.mean(plain)), "ruling": float(np.mean(ruled)),
             "ratio": float(np.mean(ruled) / np.mean(plain)), "error": ratio_error(np.array(ruled), np.array(plain)),
             "left": float(np.mean(left)), "of": len(env.arms)}
        )  # fmt: skip
    report.notes.append(f"{runs} problems each, alpha = {ALPHA:g}; regret in z.")
    return report
