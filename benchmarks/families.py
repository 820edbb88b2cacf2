"""Benchmark: what a family of one's own costs: ``upper`` over 64 directions and one update, beside Poisson's.

Logistic noise in four ways: a compiled loss with an accurate remainder (``ls.Logistic``), one without, and
``CustomFamily`` with and without derivatives. Every covariate is observed once, so that all have the same number of
terms; ``repeated`` observes each ten times, where Poisson merges and families with one term per outcome cannot. The set
is prepared anew for each measurement.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from rich.progress import Progress

import likeset as ls
from benchmarks.common import ALPHA, Report, covariates, fresh, parameter, seconds
from likeset.families.logistic import logistic
from likeset.losses import Loss

COUNT, DIM, BOUND, DIRECTIONS, SCALE = 200, 5, 2.0, 64, 0.5
TARGET = 3.0

COLUMNS = [
    ("data", "data", ""),
    ("set", "set", ""),
    ("family", "family", ""),
    ("upper_ms", "upper (ms)", ".2f"),
    ("upper_ratio", "to Poisson's", ".2f"),
    ("update_ms", "update (ms)", ".2f"),
    ("update_ratio", "to Poisson's", ".2f"),
]


class Subtracting(ls.Logistic):
    """The same without an accurate remainder."""

    loss = Loss(logistic)


def logistic_families() -> dict[str, Any]:
    """Logistic noise in four ways."""

    def density(y: Any, z: Any) -> Any:
        v = np.abs(y - z) / SCALE
        return v + 2 * np.log1p(np.exp(-v)) + np.log(SCALE)

    def first(y: Any, z: Any) -> Any:
        return np.tanh((z - y) / (2 * SCALE)) / SCALE

    def second(y: Any, z: Any) -> Any:
        return (1 - np.tanh((z - y) / (2 * SCALE)) ** 2) / (2 * SCALE**2)

    return {
        "compiled loss": ls.Logistic(SCALE),
        "without remainder": Subtracting(SCALE),
        "CustomFamily, derivatives": ls.CustomFamily(density, support="real", convex=True, first=first, second=second),
        "CustomFamily": ls.CustomFamily(density, support="real", convex=True),
    }


def run(progress: Progress, quick: bool) -> Report:
    """All families on comparable data, as joint sets and with windows."""
    report = Report(
        f"families of one's own: upper({DIRECTIONS} directions), {COUNT} observations, d = {DIM}",
        COLUMNS,
        notes=[f"target: a compiled loss at most {TARGET:g} times Poisson on distinct covariates"],
    )
    candidates = {"Poisson": ls.Poisson(), "Laplace": ls.Laplace(SCALE), **logistic_families()}
    for data, repeated in (("distinct", 1), ("repeated", 10)):
        for kind in ("joint", "windows"):
            poisson: dict[str, float] = {}
            for name, family in candidates.items():
                if kind == "windows" and name.startswith("CustomFamily"):
                    continue  # by the dual, seconds per direction
                measured = measure(family, repeated, kind == "windows", 5 if quick else 25)
                poisson = poisson or measured
                ratios = {f"{key}_ratio": measured[f"{key}_ms"] / poisson[f"{key}_ms"] for key in ("upper", "update")}
                report.records.append({"data": data, "set": kind, "family": name, **measured, **ratios})
    return report


def measure(family: Any, repeated: int, windowed: bool, repeats: int) -> dict[str, float]:
    """Best milliseconds of ``upper`` on a fresh set, as other work only adds to them, and mean ones of an update."""
    rng = np.random.default_rng(1)
    X = np.tile(covariates(rng, COUNT // repeated, DIM), (repeated, 1))
    z = X @ parameter(rng, DIM, 0.5 * BOUND)
    y = rng.logistic(z, SCALE) if not family.discrete else family.sample(z, rng)
    space = ls.Linear(DIM, BOUND)
    chosen = ls.Windows.covering(space, X[:15], correlation=0.4, joint_share=0.5) if windowed else None
    A = covariates(rng, DIRECTIONS, DIM)
    for _ in range(2):  # the first one compiles
        seq = ls.ConfidenceSequence(family, space, ALPHA, windows=chosen)
        spent = seconds(lambda seq=seq: seq.update(X, y))
        seq.set.upper(A)

    snapshots = (fresh(seq) for _ in range(repeats))
    best = min(seconds(partial(snapshot.upper, A)) for snapshot in snapshots)
    return {"upper_ms": 1e3 * best, "update_ms": 1e3 * spent / COUNT}
