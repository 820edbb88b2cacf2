"""Certified stops: observations until ``Elimination`` names the best arm, by its rule for asking, and the lower bound.

Gaussian noise, linear arms. The lower bound of any rule that errs with probability at most alpha is

    T* log(1 / (2.4 alpha)),
    T* = min over designs w of max over rivals b of  2 sigma^2 |x_a - x_b|^2_{A(w)^-1} / gap_b^2

(Garivier and Kaufmann 2016; linear models: Soare et al. 2014), with A(w) = sum w_i x_i x_i', by Frank-Wolfe steps.
"""

from __future__ import annotations

import numpy as np
from rich.progress import Progress

import likeset as ls
from benchmarks.common import ALPHA, Report, ratio_error

SIGMA, MOST, FIRST_SEED = 0.3, 4000, 91_000
SHAPES = {"8 arms, dim 3": (8, 3), "5 arms, no structure": (5, 5), "20 arms, dim 5": (20, 5)}


def problem(n_arms: int, dim: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Arms and truth with a gap that can be seen in time."""
    rng = np.random.default_rng([FIRST_SEED, seed])
    while True:
        arms = rng.standard_normal((n_arms, dim)) if n_arms != dim else np.eye(dim)
        arms /= np.linalg.norm(arms, axis=1)[:, None]
        theta = rng.standard_normal(dim)
        theta *= 0.8 / np.linalg.norm(theta)
        best, second = np.sort(arms @ theta)[::-1][:2]
        if best - second > 0.15:
            return arms, theta


def least(arms: np.ndarray, theta: np.ndarray) -> float:
    """The lower bound."""
    z = arms @ theta
    a = int(np.argmax(z))
    rivals = np.delete(np.arange(len(arms)), a)
    directions, gaps = arms[a] - arms[rivals], z[a] - z[rivals]
    w, best = np.full(len(arms), 1.0 / len(arms)), np.inf
    for step in range(2000):
        inverse = np.linalg.inv((arms.T * w) @ arms + 1e-12 * np.eye(arms.shape[1]))
        worth = np.einsum("ij,jk,ik->i", directions, inverse, directions) / gaps**2
        b = int(np.argmax(worth))
        best = min(best, float(worth[b]))
        gain = (arms @ inverse @ directions[b]) ** 2
        w *= 1.0 - 1.0 / (step + 2.0)
        w[int(np.argmax(gain))] += 1.0 / (step + 2.0)
    return 2.0 * SIGMA**2 * best * np.log(1.0 / (2.4 * ALPHA))


def observations(arms: np.ndarray, theta: np.ndarray, rule: str, seed: int) -> int:
    """Until the stop."""
    rng = np.random.default_rng([FIRST_SEED, 1, seed])
    policy = ls.Elimination(
        ls.ConfidenceSequence(ls.Gaussian(SIGMA), ls.Linear(arms.shape[1], 1.0), ALPHA), arms, rule=rule
    )
    while not policy.stopped and policy.seq.n_observations < MOST:
        arm = policy.ask()
        policy.tell(arm, arms[arm] @ theta + SIGMA * rng.standard_normal())
    return policy.seq.n_observations


def run(progress: Progress, quick: bool) -> Report:
    """Both rules, and the bound."""
    report = Report(
        "Observations until a certified best arm, by rule",
        [
            ("problem", "problem", ""), ("widest", "widest", ".0f"), ("soonest", "soonest", ".0f"),
            ("bound", "lower bound", ".0f"), ("ratio", "soonest / widest", ".3f"), ("error", "+-", ".3f"),
            ("above", "soonest / bound", ".2f"),
        ],
    )  # fmt: skip
    problems = 6 if quick else 100
    task = progress.add_task("deciding", total=len(SHAPES) * problems)
    for name, (n_arms, dim) in SHAPES.items():
        counts: dict[str, list[float]] = {"widest": [], "soonest": [], "bound": []}
        for seed in range(problems):
            arms, theta = problem(n_arms, dim, seed)
            for rule in ("widest", "soonest"):
                counts[rule].append(observations(arms, theta, rule, seed))
            counts["bound"].append(least(arms, theta))
            progress.advance(task)
        means = {kind: float(np.mean(values)) for kind, values in counts.items()}
        report.records.append(
            {"problem": name, **means, "ratio": means["soonest"] / means["widest"],
             "error": ratio_error(np.array(counts["soonest"]), np.array(counts["widest"])),
             "above": means["soonest"] / means["bound"]}
        )  # fmt: skip
    report.notes.append(f"{problems} problems each, Gaussian noise of {SIGMA:g}, alpha = {ALPHA:g}.")
    return report
