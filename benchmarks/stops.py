"""Certified stops: observations until ``Elimination`` names the best arm, by the voices of the sets.

The same problems, arms and noise for every kind of set; arms and truth of each problem are drawn anew. Rows come in
batches of five for each arm that is asked for, so that a stop is seen at most five observations late. Two kinds of
arms: eight in three dimensions, and five that have nothing in common.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from rich.progress import Progress

import likeset as ls
from benchmarks.common import ALPHA, Report, ratio_error

SHAPES = {"linear": (8, 3), "apart": (5, 5)}  # arms and dimensions
BATCH, MOST = 5, 6000
FIRST_SEED = 81_000
FAMILIES: dict[str, tuple[Any, float]] = {
    "Gaussian 0.5": (ls.Gaussian(0.5), 1.0),
    "Gaussian 0.2": (ls.Gaussian(0.2), 1.0),
    "Laplace 0.3": (ls.Laplace(0.3), 1.0),
    "Poisson": (ls.Poisson(), 2.0),
    "Bernoulli": (ls.Bernoulli(), 3.0),
    "Weibull 2": (ls.Weibull(2.0), 2.0),
}


def problem(shape: str, bound: float, rng: np.random.Generator) -> tuple[Any, Any]:
    """Arms and truth with a gap that can be seen in time."""
    count, dim = SHAPES[shape]
    while True:
        arms = rng.standard_normal((count, dim)) if shape == "linear" else np.eye(dim)
        arms /= np.linalg.norm(arms, axis=1)[:, None]
        theta = rng.standard_normal(dim)
        theta *= 0.8 * bound / np.linalg.norm(theta)
        best, second = np.sort(arms @ theta)[::-1][:2]
        if best - second > 0.15 * bound:
            return arms, theta


def chosen_voices(kind: str, space: Any, arms: Any) -> Any:
    """The voices that a column is about."""
    if kind == "beside":
        return ls.Patience().beside(ls.Windows.covering(space, arms, correlation=0.4))
    if kind == "contrasts":
        first, second = np.triu_indices(len(arms), 1)
        return ls.Contrasts(arms[first], minus=arms[second], share=0.5)
    return {"joint": None, "patience": ls.Patience(), "duels": ls.Duels(arms)}[kind]


def observations(family: Any, bound: float, shape: str, kind: str, seed: int) -> int:
    """How many observations the certificate took; MOST if there was none until then."""
    rng = np.random.default_rng([FIRST_SEED, seed])
    arms, theta = problem(shape, bound, rng)
    space = ls.Linear(arms.shape[1], bound)
    voices = chosen_voices(kind, space, arms)
    policy = ls.Elimination(ls.ConfidenceSequence(family, space, ALPHA, voices=voices), arms)
    told = 0
    while not policy.stopped and told < MOST:
        arm = policy.ask()
        policy.seq.update(np.tile(arms[arm], (BATCH, 1)), family.sample(np.full(BATCH, arms[arm] @ theta), rng))
        told += BATCH
    return told


def run(progress: Progress, quick: bool) -> Report:
    """Joint sets, patience, windows beside it, duels, and directional voices of all pairs (linear noise only)."""
    names = {
        "joint": "joint", "patience": "patience", "beside": "beside windows", "duels": "duels",
        "contrasts": "all pairs",
    }  # fmt: skip
    report = Report(
        "Observations until a certified best arm",
        [
            ("arms", "arms", ""), ("family", "family", ""), *((kind, title, ".0f") for kind, title in names.items()),
            ("ratio", "patience / joint", ".3f"), ("error", "+-", ".3f"), ("duel", "duels / patience", ".3f"),
            ("duel_error", "+-", ".3f"),
        ],
    )  # fmt: skip
    problems = 6 if quick else 50
    task = progress.add_task("stops", total=len(SHAPES) * len(FAMILIES) * len(names) * problems)
    for shape in SHAPES:
        for name, (family, bound) in FAMILIES.items():
            record: dict[str, Any] = {"arms": shape, "family": name}
            counts: dict[str, Any] = {}
            for kind in names:
                exists = getattr(family, "curve", None) is not None if kind == "duels" else True
                if kind == "contrasts":
                    exists = isinstance(family, ls.Gaussian)
                for seed in range(problems):
                    if exists:
                        counts.setdefault(kind, []).append(float(observations(family, bound, shape, kind, seed)))
                    progress.advance(task)
            record |= {kind: float(np.mean(found)) for kind, found in counts.items()}
            pairs = {"ratio": ("patience", "joint", "error"), "duel": ("duels", "patience", "duel_error")}
            for ratio, (first, second, error) in pairs.items():
                if first in counts:
                    record[ratio] = record[first] / record[second]
                    record[error] = ratio_error(np.array(counts[first]), np.array(counts[second]))
            report.records.append(record)
    report.notes.append(f"{problems} problems each, alpha = {ALPHA:g}, batches of {BATCH}; arms: {SHAPES}.")
    return report
