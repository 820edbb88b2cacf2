"""Benchmark: ``upper`` over 64 arms against CVXPY + Clarabel on the same set, in the same run.

Ours is timed cold: a snapshot that has not been asked anything yet, as after every new observation. CVXPY's
problem is compiled once, outside the timing, with the direction as a parameter and default tolerances.

Both solve the joint set, one convex constraint beside the ball; mixtures are timed by ``windows`` and ``voices``. The
reference problem is rebuilt from the raw data, not from the library's merged terms. Its level follows from one
value of log R: the set is { F <= level } with F(theta) - level = log R(theta) - log(1/alpha) for every theta.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from rich.progress import Progress
from tests.reference import CvxpySupport, evaluate

import likeset as ls
from benchmarks.common import (
    ALPHA,
    FAMILIES,
    LAPLACE_SCALE,
    SIGMA,
    WEIBULL_SHAPE,
    Array,
    Report,
    covariates,
    fresh,
    median_seconds,
    parameter,
    seconds,
)
from likeset._solver.problem import CurveTerms, LevelSet, PointTerms
from likeset.curves import Curve

TARGETS = {"Gaussian": 1000, "Poisson": 100, "Bernoulli": 100, "Weibull": 100, "Laplace": 50}
REGIMES = ("regular", "ball active", "fewer covariates than dimensions")
BOUND = 3.0
N_ARMS = 64
TRUSTED = 1e-6  # relative infeasibility beyond which the conic solver's answer is not compared

COLUMNS = [
    ("family", "family", ""),
    ("dim", "d", "d"),
    ("regime", "regime", ""),
    ("milliseconds", "upper (ms)", ".3f"),
    ("cvxpy_milliseconds", "CVXPY (ms)", ".0f"),
    ("ratio", "ratio", ".0f"),
    ("target", "target", "d"),
    ("difference", "difference", ".1e"),
    ("inward", "inward", ".1e"),
    ("untrusted", "CVXPY off", "d"),
]


def run(progress: Progress, quick: bool) -> Report:
    """All families, dimensions and regimes."""
    report = Report(
        f"upper over {N_ARMS} arms, against CVXPY + Clarabel compiled once",
        COLUMNS,
        notes=[
            "ratio: CVXPY's time over ours; difference: of the outer bound from CVXPY's value, where that is trusted",
            "inward: how far the outer bound lies below an attained value (relative; negative: it does not)",
            f"CVXPY off: directions in which its point, made feasible, moved by more than {TRUSTED:g}, or it failed",
        ],
    )
    dims = (12,) if quick else (12, 30)
    cases = [(name, dim, regime) for name in FAMILIES for dim in dims for regime in REGIMES]
    for name, dim, regime in progress.track(cases, description="support"):
        report.records.append(measure(name, dim, regime, *((5, 1) if quick else (21, 3))))
    return report


def measure(name: str, dim: int, regime: str, repeats: int, rival_repeats: int) -> dict[str, Any]:
    """One row of the table."""
    rng = np.random.default_rng([dim, REGIMES.index(regime)])
    few = regime == "fewer covariates than dimensions"
    X = covariates(rng, dim // 2 if few else N_ARMS, dim)
    theta = parameter(rng, dim, BOUND * (0.98 if regime == "ball active" else 0.4))
    rows = np.repeat(np.arange(len(X)), 10 if regime == "regular" else 1)
    family = FAMILIES[name]
    y = family.sample((X @ theta)[rows], rng)

    sequence = ls.ConfidenceSequence(family, ls.Linear(dim, BOUND), ALPHA, voices=None)
    sequence.update(X[rows], y)
    arms = covariates(rng, N_ARMS, dim)
    untouched = fresh(sequence)
    upper = fresh(sequence).upper(arms)  # also compiles
    # Fast cases are repeated until clock, caches and branch prediction have settled, as in CVXPY's long runs.
    first = seconds(partial(fresh(sequence).upper, arms))
    snapshots = [fresh(sequence) for _ in range(max(repeats, min(600, int(0.15 / first))))]
    ours = median_seconds([partial(snapshot.upper, arms) for snapshot in snapshots])

    level_set = LevelSet(X, merge(name, y, rows, len(X)), 0.0, BOUND)
    level = float(evaluate(level_set, theta)) - untouched.log_ratio(theta) - np.log(ALPHA)
    level_set = LevelSet(X, level_set.terms, level, BOUND)
    rival = CvxpySupport(level_set, tight=False)
    rival.compile()
    theirs = median_seconds([partial(rival.solve, arms)] * rival_repeats)
    judge = CvxpySupport(level_set)
    values, _ = judge.solve(arms)
    attained = judge.feasible_values(arms)

    with np.errstate(invalid="ignore"):
        trusted = np.abs(values - attained) <= TRUSTED * np.abs(values)
        inward = ((attained - upper) / np.abs(attained))[np.isfinite(attained)]
        if np.any(inward > TRUSTED):
            raise RuntimeError(f"{name}, d = {dim}, {regime}: CVXPY attains more than our bound, by {inward.max():.1e}")
        difference = (np.abs(upper - values) / np.abs(values))[trusted]
    return {
        "family": name,
        "dim": dim,
        "regime": regime,
        "milliseconds": 1e3 * ours,
        "cvxpy_milliseconds": 1e3 * theirs,
        "ratio": theirs / ours,
        "target": TARGETS[name],
        "difference": float(difference.max()) if len(difference) else None,
        "inward": float(inward.max()) if len(inward) else None,
        "untrusted": int(np.sum(~trusted)),
    }


def merge(name: str, y: Array, rows: Array, count: int) -> CurveTerms | PointTerms:
    """The negative log-likelihood of observations y at covariates ``rows``, up to a constant."""
    n = np.bincount(rows, minlength=count).astype(float)
    if name == "Laplace":
        order = np.lexsort((y, rows))
        starts = np.concatenate(([0], np.cumsum(n))).astype(np.int64)
        return PointTerms(starts, y[order], np.full(len(y), 1 / LAPLACE_SCALE))
    if name == "Weibull":
        exposure = np.bincount(rows, y[:, 0] ** WEIBULL_SHAPE, count)
        return CurveTerms(Curve.EXPONENTIAL, exposure, np.bincount(rows, y[:, 1], count))
    total = np.bincount(rows, y, count)
    if name == "Gaussian":
        return CurveTerms(Curve.QUADRATIC, n / SIGMA**2, total / SIGMA**2)
    return CurveTerms(Curve.EXPONENTIAL if name == "Poisson" else Curve.SOFTPLUS, n, total)
