r"""Benchmark: windows and the self-normalised set averaged, for Gaussian noise.

    (1 - c) sum_k pi_k e^{M_k(theta)}  +  c M(theta)  <=  1/alpha,

M the self-normalised ratio (:class:`likeset.comparison.SelfNormalised`). Both are martingales at the truth, so their
average is; both logarithms are convex. M is a sum over the eigenvectors of sum x x', so it enters the solver of window
mixtures as one more window, on covariates of its own. That makes every Newton step dearer, and there is nothing like it
for other noise: a study, not a default.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from rich.progress import Progress

import likeset as ls
from benchmarks.common import Report, ratio_error
from benchmarks.windows import ALPHA, environment_of, policy_of
from likeset import _solver
from likeset._solver.problem import CurveTerms, MixtureSet, VoiceTable
from likeset.curves import Curve

CASES = ("1-D, gaussian", "random function, gaussian", "Camelback, gaussian")
SHARES = (0.3, 0.5)
COLUMNS = [
    ("case", "case", ""),
    ("set", "set", ""),
    ("regret", "mean regret", ".1f"),
    ("to_oracle", "to the oracle's", ".2f"),
    ("error", "standard error", ".2f"),
    ("misses", "misses", ""),
]


class Averaged:
    """Two sequences on the same data."""

    def __init__(self, windows: Any, other: Any, share: float) -> None:
        self.windows, self.other, self.share = windows, other, share
        self.space, self.alpha = windows.space, windows.alpha

    def update(self, x: Any, y: Any) -> None:
        self.windows.update(x, y)
        self.other.update(x, y)

    @property
    def set(self) -> Any:
        s = self.windows.set
        return AveragedSet(s, self.other.set, self.share) if s.n_observations else s


class AveragedSet:
    """The average of their ratios."""

    def __init__(self, first: Any, second: Any, share: float) -> None:
        self.first, self.second, self.share = first, second, share

    @cached_property
    def prepared(self) -> Any:
        first, second = self.first, self.second
        X = np.vstack([first._evidence.groups.coordinates, second._evidence.groups.coordinates])
        terms = CurveTerms(
            Curve.QUADRATIC,
            np.concatenate([first._evidence.terms.a, second._evidence.terms.a]),
            np.concatenate([first._evidence.terms.s, second._evidence.terms.s]),
            np.concatenate([first._evidence.terms.origins, second._evidence.terms.origins]),
        )
        table, K = first._evidence.audible, len(first._evidence.gains)
        windows = VoiceTable(
            np.append(table.starts, table.starts[-1] + len(second._evidence.gains)),
            np.concatenate([table.members, np.arange(K, len(X))]),
            np.append(table.log_shares + math.log1p(-self.share), math.log(self.share)),
        )
        gains = np.concatenate([first._evidence.gains, second._evidence.gains])
        padded = np.column_stack([X, np.zeros(len(X))])  # one more coordinate, for what sticks out of the span
        return _solver.prepare(MixtureSet(padded, terms, gains, windows, -math.log(first.alpha), first.space.bound))

    def directions(self, X: Any) -> Any:
        return np.column_stack(self.first._basis.coordinates(self.first.space.covariates(X, "X")))

    def upper(self, X: Any) -> Any:
        return self.prepared.solve(self.directions(X)).upper

    def lower(self, X: Any) -> Any:
        return -self.prepared.solve(-self.directions(X)).upper

    def interval(self, X: Any) -> tuple[Any, Any]:
        return self.lower(X), self.upper(X)

    def contains(self, theta: Any) -> bool:
        logs = (
            math.log1p(-self.share) + self.first.log_ratio(theta),
            math.log(self.share) + self.second.log_ratio(theta),
        )
        return bool(np.logaddexp(*logs) <= -math.log(self.first.alpha))


def play(case: str, method: Any, seed: int, rounds: int) -> tuple[float, bool]:
    """Regret of one run, and whether the set lost the truth."""
    environment, ties = environment_of(case, 4000 + seed), np.random.default_rng([179, seed])
    if isinstance(method, float):
        one = ls.comparison.SelfNormalised(environment.space, ALPHA, environment.family.sigma)
        sequence = Averaged(environment.sequence(ALPHA), one, method)
        policy = ls.UCB(sequence, environment.arms, reward=environment.reward, rng=ties)
    else:
        policy = policy_of(method, environment, rng=ties)
    trace = ls.simulate(policy, environment, rounds, np.random.default_rng([80, seed]))
    return float(trace.cumulative_regret[-1]), not trace.always_covered


def run(progress: Progress, quick: bool) -> Report:
    """Every case and share; two processes."""
    rounds = 30 if quick else 200
    report = Report(f"windows and the self-normalised set averaged: regret after {rounds} rounds", COLUMNS)
    for case in progress.track(CASES, description="companion"):
        seeds = 2 if quick else 12 if case.startswith("Camelback") else 48
        oracle = None
        for method in ("oracle", "windows", "self-normalised", *SHARES):
            played = Parallel(n_jobs=2)(delayed(play)(case, method, s, rounds) for s in range(seeds))
            found = np.array([regret for regret, _ in played])
            oracle = found if oracle is None else oracle
            report.records.append(
                {
                    "case": case,
                    "set": method if isinstance(method, str) else f"windows, self-normalised at {method:g}",
                    "regret": float(found.mean()),
                    "to_oracle": float(found.mean() / oracle.mean()),
                    "error": ratio_error(found, oracle),
                    "misses": f"{sum(missed for _, missed in played)}/{seeds}",
                }
            )
    return report
