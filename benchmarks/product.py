r"""Benchmark: a product form beside the window mixture, by a prototype without certificates.

With the covariates split into blocks A_1, ..., A_m beforehand and 0 < w < 1,

    prod_j ( 1 - w + w exp M_j(theta) ),      M_j = sum over b in A_j of D_b,

is a martingale at the truth, as every step changes one factor only: the mixture over all unions of blocks at once. Its
logarithm is convex in theta. Here it gets a share of the error level beside the windows,

    log [ (1 - c) sum_k pi_k e^{M_k} + c prod_j (1 - w + w e^{M_j}) ]  <=  log(1/alpha),

and maxima over that set are found by SLSQP: good enough to see whether it pays, not to be trusted as a bound.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from rich.progress import Progress
from scipy.optimize import minimize

from benchmarks.common import Report
from benchmarks.windows import ALPHA, environment_of
from likeset._solver.evaluate import evaluate_terms

CASES = ("1-D, gaussian", "random function, gaussian", "random function, poisson")
SETTINGS = ((0.0, 0.1, 1), (0.5, 0.2, 10), (0.5, 0.1, 1000), (1.0, 0.3, 1000))
COLUMNS = [
    ("case", "case", ""),
    ("share", "share of the product", ".1f"),
    ("weight", "w", ".1f"),
    ("blocks", "blocks", ""),
    ("regret", "mean regret", ".1f"),
    ("error", "standard error", ".1f"),
    ("to_windows", "to the windows'", ".2f"),
]


class Evidence:
    """log of the averaged ratios, and its gradient, in coordinates with one more for directions outside the span."""

    def __init__(self, s: Any, blocks: Any, share: float, weight: float) -> None:
        self.X = np.column_stack([s._coordinates, np.zeros(len(s._coordinates))])
        self.terms, self.gains = s._terms, s._gains
        table, count = s._windows, len(s._gains)
        self.windows = np.zeros((len(table.log_shares), count))
        self.windows[table.owners, table.members] = 1.0
        self.log_shares = table.log_shares
        self.blocks, self.share, self.weight = blocks, share, weight

    def __call__(self, theta: Any) -> tuple[float, Any]:
        heights, first, _ = evaluate_terms(self.terms, self.X @ theta)
        D = self.gains + heights
        exponents, pulls = [], []
        if self.share < 1.0:
            exponents.append(math.log1p(-self.share) + self.log_shares + self.windows @ D)
            pulls.append(self.windows)
        if self.share > 0.0:
            inside = math.log(self.weight) + self.blocks @ D
            factors = np.logaddexp(math.log1p(-self.weight), inside)
            exponents.append(np.array([math.log(self.share) + factors.sum()]))
            pulls.append((np.exp(inside - factors) @ self.blocks)[None])
        together = np.concatenate(exponents)
        value = float(np.logaddexp.reduce(together))
        weights = np.exp(together - value) @ np.vstack(pulls)
        return value, self.X.T @ (weights * first)


def highest(evidence: Evidence, a: Any, bound: float, level: float, start: Any) -> tuple[float, Any]:
    """max a'theta subject to evidence <= level and |theta| <= bound, and where; inf if SLSQP fails."""
    limits = [
        {"type": "ineq", "fun": lambda t: level - evidence(t)[0], "jac": lambda t: -evidence(t)[1]},
        {"type": "ineq", "fun": lambda t: bound**2 - t @ t, "jac": lambda t: -2 * t},
    ]
    options = {"maxiter": 100, "ftol": 1e-7}
    found = minimize(
        lambda t: -a @ t, start, jac=lambda t: -a, method="SLSQP", constraints=limits, options=options
    )  # fmt: skip
    ok = evidence(found.x)[0] <= level + 1e-3
    return (float(-found.fun) + 1e-6, found.x) if ok else (math.inf, start)


def play(case: str, setting: tuple[float, float, int], seed: int, rounds: int) -> float:
    """Regret of one run; only arms that could win are solved for, and bounds never rise."""
    share, weight, count = setting
    environment = environment_of(case, 3000 + seed)
    rng, arms = np.random.default_rng([79, seed]), environment.arms
    sequence = environment.sequence(ALPHA)
    level, bound, n = -math.log(ALPHA), environment.space.bound, len(arms)
    block_of = np.arange(n) * min(count, n) // n
    ceilings, regret, nearby = np.full(n, np.inf), 0.0, {}
    played: list[int] = []  # in order of first appearance, like the covariates of the set
    for _ in range(rounds):
        s = sequence.set
        A = np.column_stack(s._basis.coordinates(s.space.covariates(arms, "arms")))
        if played:
            blocks = np.zeros((block_of[-1] + 1, len(played)))
            blocks[block_of[played], np.arange(len(played))] = 1.0
            evidence = Evidence(s, blocks[blocks.any(axis=1)], share, weight)
            centre = np.append(s._prepared.centre, 0.0)
        fresh = np.zeros(n, dtype=bool)
        while not fresh[i := int(np.argmax(ceilings))]:
            fresh[i] = True
            if not played:
                found = float(s.upper(arms[[i]])[0])
            else:
                start = centre + 1e-3 * A[i]
                if i in nearby:
                    old = np.zeros(A.shape[1])
                    old[: len(nearby[i]) - 1], old[-1] = nearby[i][:-1], nearby[i][-1]
                    start = centre + 0.9 * (old - centre)
                found, nearby[i] = highest(evidence, A[i], bound, level, start)
            ceilings[i] = min(ceilings[i], found)
            if not math.isfinite(ceilings[i]):
                break
        if i not in played:
            played.append(i)
        sequence.update(arms[i], environment.sample(i, rng))
        regret += float(environment.rewards.max() - environment.rewards[i])
    return regret


def run(progress: Progress, quick: bool) -> Report:
    """Every case and setting; two processes."""
    rounds, seeds = (20, 2) if quick else (200, 16)
    report = Report(f"a product form: mean cumulative regret after {rounds} rounds, {seeds} runs each", COLUMNS)
    for case in progress.track(CASES, description="product form"):
        alone = None
        for setting in SETTINGS:
            found = np.array(Parallel(n_jobs=2)(delayed(play)(case, setting, s, rounds) for s in range(seeds)))
            alone = found.mean() if alone is None else alone
            share, weight, count = setting
            blocks = "one per arm" if count > 100 else str(count)
            report.records.append(
                {
                    "case": case,
                    "share": share,
                    "weight": weight,
                    "blocks": "-" if share == 0.0 else blocks,
                    "regret": float(found.mean()),
                    "error": float(found.std(ddof=1) / np.sqrt(seeds)),
                    "to_windows": float(found.mean() / alone),
                }
            )
    return report
