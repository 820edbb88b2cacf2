"""Benchmark: window mixtures against the joint set, between an oracle and a heuristic.

Six sets play the same bandit (UCB with ties broken at random, all but the last two with running intersection):

    plug-in     joint set, FTRL numerator: the paper's unweighted set
    joint       joint set, hyper-mixture numerator
    windows     window mixture, hyper-mixture numerator: the default where a domain or arms are known
    informed    joint set whose numerator is the density of the truth: what remains when nothing has to be learnt.
                Nobody has this numerator; no other one has a larger expected log ratio against any parameter
    oracle      joint set shrunk, in every round, until it just covers the truth: no valid radius is smaller
    heuristic   joint set log(1/alpha) above the best parameter: what is often used, and does not cover

The windows' settings were chosen on the 1-D problem; runs and random problems here are drawn from seeds of
their own, and the random functions were never used for any choice.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from rich.progress import Progress

import likeset as ls
from benchmarks.common import Report, ratio_error

ALPHA = 0.1
COST_RUNS = 4
METHODS = ("plug-in", "joint", "windows", "informed", "oracle", "heuristic")

COLUMNS = [
    ("case", "case", ""),
    ("plug-in", "plug-in", ".1f"),
    ("joint", "joint", ".1f"),
    ("windows", "windows", ".1f"),
    ("informed", "informed", ".1f"),
    ("oracle", "oracle", ".1f"),
    ("heuristic", "heuristic", ".1f"),
    ("to_oracle", "windows / oracle", ".2f"),
    ("error", "standard error", ".2f"),
    ("informed_to_oracle", "informed / oracle", ".2f"),
    ("to_joint", "windows / joint", ".2f"),
    ("radius_joint", "radius, joint (nats)", ".1f"),
    ("radius_windows", "windows", ".1f"),
    ("width_joint", "half-width, joint", ".2f"),
    ("width_windows", "windows", ".2f"),
    ("misses", "misses of windows", ""),
    ("lazy_cost", "ms per round, windows / joint", ""),
    ("full_cost", "every arm refreshed", ""),
]


@dataclass
class Shifted:
    """A joint sequence whose sets have another level: ``room`` above that of the truth, or of the best parameter."""

    sequence: Any
    truth: Any
    room: float

    @property
    def space(self) -> Any:
        return self.sequence.space

    @property
    def alpha(self) -> float:
        return float(self.sequence.alpha)

    def update(self, x: Any, y: Any) -> None:
        self.sequence.update(x, y)

    @property
    def set(self) -> Any:
        return ShiftedSet(self.sequence.set, self.truth, self.room)


class ShiftedSet:
    """{ log R <= level } for a level of our choice."""

    def __init__(self, s: Any, truth: Any, room: float) -> None:
        self.s = s
        self.level = float(s.log_ratio(s.centre if truth is None else truth)) + room

    def upper(self, X: Any) -> Any:
        return self.s.support(X, level=self.level).upper

    def lower(self, X: Any) -> Any:
        return -self.s.support(X, level=self.level, sign=-np.ones(len(X))).upper

    def interval(self, X: Any) -> Any:
        return self.lower(X), self.upper(X)

    def contains(self, theta: Any) -> bool:
        return bool(self.s.log_ratio(theta) <= self.level)


def environment_of(name: str, seed: int) -> Any:
    """The problem ``name``; those that are drawn at random differ with the seed."""
    kind, noise = name.split(", ")
    made = ls.environments
    if kind == "1-D":
        return made.paper_1d(noise)
    if kind == "Camelback":
        return made.camelback(noise, bound=8.0)
    if kind == "random function":
        return made.random_function(1000 + seed, noise=noise)
    family, bound = {"gaussian": (ls.Gaussian(0.2), 1.0), "poisson": (ls.Poisson(), 3.0)}[noise]
    return made.linear(int(kind.removeprefix("linear d=")), family, 30, seed=1000 + seed, bound=bound)


def policy_of(method: str, environment: Any, lazy: bool | None = None, rng: Any = None) -> Any:
    """UCB over one of the six sets, or over the self-normalised one."""
    options: dict[str, Any] = {} if method == "windows" else {"windows": None}
    if method == "plug-in":
        options["predictor"] = ls.FTRL(penalty=1.0)
    sequence: Any = environment.sequence(ALPHA, **options)
    if method == "self-normalised":
        sequence = ls.comparison.SelfNormalised(environment.space, ALPHA, environment.family.sigma)
    running = method not in ("oracle", "heuristic")  # their sets of different rounds need not meet
    if method in ("informed", "oracle", "heuristic"):
        room = 1e-9 if method == "oracle" else float(-np.log(ALPHA))
        sequence = Shifted(sequence, None if method == "heuristic" else environment.theta, room)
        lazy = False if running else None
    return ls.UCB(
        sequence, environment.arms, reward=environment.reward, running_intersection=running, lazy=lazy, rng=rng
    )


def play(name: str, method: str, seed: int, rounds: int) -> dict[str, Any]:
    """Regret, time per round and misses of one run; for the joint set also radius and width, with the windows' own."""
    environment = environment_of(name, seed)
    policy = policy_of(method, environment, rng=np.random.default_rng([177, seed]))
    rng = np.random.default_rng([77, seed])
    start = time.process_time()
    trace = ls.simulate(policy, environment, rounds, rng)
    result = {
        "method": method,
        "regret": float(trace.cumulative_regret[-1]),
        "ms": 1e3 * (time.process_time() - start) / rounds,
        "missed": not trace.always_covered,
    }
    if method == "joint":
        ledger = policy.seq.ledger
        n = min(150, rounds)
        for kind in ("joint", "windows"):
            sequence = policy_of(kind, environment).seq
            sequence.update(ledger.x.rows[:n], ledger.y.rows[:n])
            low, high = sequence.set.interval(environment.arms)
            result[f"width_{kind}"] = float(np.mean(high - low)) / 2
            result[f"radius_{kind}"] = float(np.log(1 / ALPHA) - sequence.set.log_ratio(environment.theta))
    return result


def cost_of_all_arms(name: str, method: str, seed: int, rounds: int) -> dict[str, Any]:
    """Time per round when the bounds of every arm are computed in every round."""
    environment = environment_of(name, seed)
    policy = policy_of(method, environment, lazy=False, rng=np.random.default_rng([177, seed]))
    start = time.process_time()
    ls.simulate(policy, environment, rounds, np.random.default_rng([77, seed]))
    return {"method": method, "ms": 1e3 * (time.process_time() - start) / rounds}


def run(progress: Progress, quick: bool) -> Report:
    """All problems; two processes."""
    rounds, seeds = (60, 2) if quick else (200, 48)
    noises = ls.environments.NOISES
    cases = [f"1-D, {noise}" for noise in noises]
    if not quick:
        cases += ["Camelback, gaussian", "random function, gaussian", "random function, poisson"]
        cases += ["linear d=2, gaussian", "linear d=5, gaussian", "linear d=10, gaussian", "linear d=5, poisson"]
    report = Report(
        f"window mixtures: mean cumulative regret after {rounds} rounds, {seeds} runs each",
        COLUMNS,
        notes=[
            "standard error: of windows / oracle, from paired runs",
            "radius = log(1/alpha) - log R(truth), and mean half-width over the arms: same data, t = 150",
            "ms per round, windows / joint: with running intersection and lazy choice, then with every arm refreshed",
        ],
    )
    for case in progress.track(cases, description="window mixtures"):
        jobs = [(case, method, seed, rounds) for method in METHODS for seed in range(seeds)]
        results = Parallel(n_jobs=2)(delayed(play)(*job) for job in jobs)
        jobs = [(case, method, seed, rounds) for method in ("windows", "joint") for seed in range(COST_RUNS)]
        costs = Parallel(n_jobs=2)(delayed(cost_of_all_arms)(*job) for job in jobs)
        report.records.append(summary(case, results, costs))
    return report


def summary(case: str, results: list[dict[str, Any]], costs: list[dict[str, Any]]) -> dict[str, Any]:
    """One row of the table."""
    of = {m: [r for r in results if r["method"] == m] for m in METHODS}
    row: dict[str, Any] = {"case": case}
    regret = {method: np.array([r["regret"] for r in of[method]]) for method in METHODS}
    for method in METHODS:
        row[method] = float(regret[method].mean())
    row["to_oracle"], row["to_joint"] = row["windows"] / row["oracle"], row["windows"] / row["joint"]
    row["error"] = ratio_error(regret["windows"], regret["oracle"])
    row["informed_to_oracle"] = row["informed"] / row["oracle"]
    for key in ("radius_joint", "radius_windows", "width_joint", "width_windows"):
        row[key] = float(np.median([r[key] for r in of["joint"]]))
    row["misses"] = f"{sum(r['missed'] for r in of['windows'])}/{len(of['windows'])}"
    lazy = [float(np.median([r["ms"] for r in of[m]])) for m in ("windows", "joint")]
    full = [float(np.median([r["ms"] for r in costs if r["method"] == m])) for m in ("windows", "joint")]
    row["lazy_cost"] = f"{lazy[0]:.1f} / {lazy[1]:.1f}"
    row["full_cost"] = f"{full[0]:.1f} / {full[1]:.1f}"
    return row
