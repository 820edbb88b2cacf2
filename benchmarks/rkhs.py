"""Benchmark: functions. One optimistic round on the 1-D problem of the paper, against CVXPY; bands; growth.

The problem: r(x) = -(1.4 - 3x) sin(18x) on 64 points of [0, 1.2], squared-exponential kernel of length scale 0.06. Its
norm on the grid is 4.17 (``environments.NORM_1D``), so the bound here is 4.2 and the truth lies in Theta.
"""

from __future__ import annotations

import copy
from functools import partial
from typing import Any

import numpy as np
from rich.progress import Progress
from sklearn.gaussian_process.kernels import RBF, Matern
from tests.reference import CvxpySupport

import likeset as ls
from benchmarks.common import Report, median_seconds, seconds
from likeset._solver.problem import LevelSet

BOUND, ALPHA, ROUNDS = 4.2, 0.1, 100
DOMAIN = np.linspace(0.0, 1.2, 64)
REWARD = -(1.4 - 3 * DOMAIN) * np.sin(18 * DOMAIN)
FAMILIES: dict[str, tuple[Any, Any, int]] = {  # family, z on the domain, target ratio
    "Gaussian": (ls.Gaussian(0.15), REWARD, 1000),
    "Poisson": (ls.Poisson(), REWARD, 100),
    "Bernoulli": (ls.Bernoulli(), REWARD, 100),
    "Weibull": (ls.Weibull(2.0), -REWARD, 100),
    "Laplace": (ls.Laplace(0.15), REWARD, 30),
}

ROUND_COLUMNS = [
    ("case", "case", ""),
    ("points", "points", "d"),
    ("rank", "rank", "d"),
    ("update_ms", "update (ms)", ".2f"),
    ("upper_ms", "upper (ms)", ".2f"),
    ("cvxpy_ms", "CVXPY upper (ms)", ".0f"),
    ("ratio", "ratio of upper", ".0f"),
    ("target", "target", "d"),
    ("gap", "worst gap", ".1e"),
]


def run(progress: Progress, quick: bool) -> Report:
    """Rounds against CVXPY, then bands and growth on a continuous domain."""
    report = Report(
        f"functions: one round (update + upper over 64 arms) at t = {ROUNDS}; bands of 500 points; growth",
        ROUND_COLUMNS,
        notes=["ratio: CVXPY's time for the 64 arms over ours, on explicit features of the same set, compiled once"],
    )
    for name in progress.track(list(FAMILIES), description="rounds"):
        report.records.append(one_round(name, 5 if quick else 60))
    for name in ("Gaussian",) if quick else ("Gaussian", "Poisson"):
        report.records.append(band(name, 1000, 500))
    for points in progress.track((50, 200) if quick else (50, 100, 200, 400, 800), description="growth"):
        report.records.append(band("Gaussian", points, 64, kernel=Matern(0.05, nu=0.5)))
    return report


def played(name: str) -> tuple[ls.ConfidenceSequence, np.random.Generator]:
    """The state after ROUNDS optimistic queries."""
    family, z, _ = FAMILIES[name]
    rng = np.random.default_rng(0)
    sequence = ls.ConfidenceSequence(family, ls.RKHS(RBF(0.06), BOUND, domain=DOMAIN), ALPHA, windows=None)
    for _ in range(ROUNDS):
        best = int(np.argmax(sequence.set.upper(DOMAIN)))
        sequence.update(DOMAIN[best], family.sample(z[best : best + 1], rng))
    return sequence, rng


def one_round(name: str, repeats: int) -> dict[str, Any]:
    """Time of one more update and one more band over the arms, and CVXPY's time for the same arms."""
    family, z, target = FAMILIES[name]
    sequence, rng = played(name)
    best = int(np.argmax(sequence.set.upper(DOMAIN)))
    y = family.sample(z[best : best + 1], rng)
    copies = [copy.deepcopy(sequence) for _ in range(repeats)]
    update = median_seconds([partial(c.update, DOMAIN[best], y) for c in copies])
    upper = median_seconds([lambda c=c: c.set.upper(DOMAIN) for c in copies])

    s, space = copies[0].set, sequence.space
    values, vectors = np.linalg.eigh(space.gram(space.domain, space.domain))
    features = vectors * np.sqrt(np.maximum(values, 0.0))
    ledger = copies[0].ledger
    first = np.unique(ledger.covariate.rows, return_index=True)[1]
    seen = features[space.places(ledger.x.rows[first])]
    rival = CvxpySupport(
        LevelSet(seen, s._evidence.terms, (s._evidence.threshold - s._evidence.gains.sum()), BOUND), tight=False
    )
    rival.compile()
    theirs = seconds(lambda: rival.solve(features))
    return {
        "case": f"{name}, round",
        "points": len(first),
        "rank": copies[0]._running.basis.dimension,
        "update_ms": 1e3 * update,
        "upper_ms": 1e3 * upper,
        "cvxpy_ms": 1e3 * theirs,
        "ratio": theirs / upper,
        "target": target,
        "gap": float(s.support(DOMAIN).gap.max()),
    }


def band(name: str, points: int, queries: int, kernel: Any = None) -> dict[str, Any]:
    """Time of a band over a continuous domain after ``points`` distinct observations."""
    family = FAMILIES[name][0]
    rng = np.random.default_rng(1)
    x = rng.uniform(0, 1.2, size=points + 1)
    y = family.sample(np.sin(6 * x), rng)
    sequence = ls.ConfidenceSequence(family, ls.RKHS(kernel or RBF(0.06), 8.0), ALPHA, ls.Mixture([1.0]))
    sequence.update(x[:-1], y[:-1])
    grid = np.linspace(0, 1.2, queries)
    sequence.set.interval(grid[:2])  # compiles
    update = seconds(lambda: sequence.update(x[-1], y[-1:]))
    timed = seconds(lambda: sequence.set.interval(grid))
    return {
        "case": f"{name}, band of {queries}" + ("" if kernel is None else ", rough kernel"),
        "points": points,
        "rank": sequence._running.basis.dimension,
        "update_ms": 1e3 * update,
        "upper_ms": 1e3 * timed,
        "cvxpy_ms": None,
        "ratio": None,
        "target": None,
        "gap": None,
    }
