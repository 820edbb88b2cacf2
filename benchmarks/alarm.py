"""The alarm: which departures from the model it hears, after how many observations, and how often it is wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from rich.progress import Progress

import likeset as ls
from benchmarks.common import Report

ALPHA, ROWS, LOOK, DIM = 0.05, 500, 25, 3
THETA = np.array([0.8, -0.5, 0.3])


def _lifetimes(shape: float) -> Callable[[Any, np.random.Generator], Any]:
    return lambda z, rng: np.column_stack([(rng.exponential(size=len(z)) / np.exp(z)) ** (1 / shape), np.ones(len(z))])


def _seen(log_times: Any) -> Any:
    return np.column_stack([np.exp(log_times), np.ones(len(log_times))])


def _chained(n: int, correlation: float, rng: np.random.Generator) -> Any:
    """Noise of deviation one in which every row is correlated with the one before."""
    noise = rng.normal(size=n)
    for i in range(1, n):
        noise[i] = correlation * noise[i - 1] + np.sqrt(1 - correlation**2) * noise[i]
    return noise


CASES: dict[str, tuple[Any, Callable[[Any, np.random.Generator], Any]]] = {
    "sigma told at half": (ls.Gaussian(0.5), lambda z, rng: rng.normal(z, 1.0)),
    "sigma told at double": (ls.Gaussian(2.0), lambda z, rng: rng.normal(z, 1.0)),
    "sigma told at 0.8": (ls.Gaussian(0.8), lambda z, rng: rng.normal(z, 1.0)),
    "Student's t with 3 degrees told as Gaussian": (
        ls.Gaussian(3.0**0.5), lambda z, rng: z + rng.standard_t(3, size=len(z)),
    ),
    "an intercept of 0.5 missing": (ls.Gaussian(1.0), lambda z, rng: rng.normal(z + 0.5, 1.0)),
    "theta at three times the bound": (ls.Gaussian(1.0), lambda z, rng: rng.normal(6 * z, 1.0)),
    "a square of z missing": (ls.Gaussian(1.0), lambda z, rng: rng.normal(z + 0.3 * z * z, 1.0)),
    "sigma that varies by half": (
        ls.Gaussian(1.0), lambda z, rng: rng.normal(z, rng.choice([0.5, 1.32], size=len(z))),
    ),
    "variance 2 x mean told as Poisson": (ls.Poisson(), lambda z, rng: rng.negative_binomial(np.exp(z), 0.5)),
    "variance 1.3 x mean told as Poisson": (
        ls.Poisson(), lambda z, rng: rng.negative_binomial(np.exp(z) / 0.3, 1 / 1.3),
    ),
    "variance 0.5 x mean told as Poisson": (
        ls.Poisson(), lambda z, rng: rng.binomial(np.maximum(np.round(2 * np.exp(z)), 1).astype(int), 0.5),
    ),
    "beta-binomial (correlation 0.1) told as Binomial(10)": (
        ls.Binomial(10), lambda z, rng: rng.binomial(10, rng.beta(9 / (1 + np.exp(-z)), 9 / (1 + np.exp(z)))),
    ),
    "shape 0.7 told for 1.4": (ls.Weibull(0.7), _lifetimes(1.4)),
    "shape 3 told for 1.4": (ls.Weibull(3.0), _lifetimes(1.4)),
    "zeros and ones whose log-odds vary by one": (
        ls.Bernoulli(), lambda z, rng: rng.binomial(1, 1 / (1 + np.exp(-z - rng.normal(size=len(z))))),
    ),
    "outcomes that depend on the one before": (ls.Gaussian(1.0), lambda z, rng: z + _chained(len(z), 0.5, rng)),
    "Student's t with 3 degrees told as Gaussian, sigma unknown": (
        ls.Gaussian(ls.Unknown()), lambda z, rng: z + rng.standard_t(3, size=len(z)),
    ),
    "Laplace noise told as Gaussian, sigma unknown": (ls.Gaussian(ls.Unknown()), lambda z, rng: rng.laplace(z, 1.0)),
    "noise with an exponential tail told as Gaussian, sigma unknown": (
        ls.Gaussian(ls.Unknown()), lambda z, rng: z + rng.exponential(size=len(z)) - 1.0,
    ),
    "an intercept of 0.5 missing, sigma unknown": (ls.Gaussian(ls.Unknown()), lambda z, rng: rng.normal(z + 0.5, 1.0)),
    "normal noise told as Laplace, scale unknown": (ls.Laplace(ls.Unknown()), lambda z, rng: rng.normal(z, 1.0)),
    "log-normal lifetimes told as Weibull, shape unknown": (
        ls.Weibull(ls.Unknown()), lambda z, rng: _seen(-z / 1.4 + rng.normal(size=len(z)) / 1.4),
    ),
    "log-logistic lifetimes told as Weibull, shape unknown": (
        ls.Weibull(ls.Unknown()), lambda z, rng: _seen(-z / 1.4 + rng.logistic(size=len(z)) / 2.8),
    ),
    "right: Gaussian": (ls.Gaussian(1.0), lambda z, rng: rng.normal(z, 1.0)),
    "right: Poisson": (ls.Poisson(), lambda z, rng: rng.poisson(np.exp(z))),
    "right: Weibull": (ls.Weibull(1.4), _lifetimes(1.4)),
    "right: Gaussian, sigma unknown": (ls.Gaussian(ls.Unknown()), lambda z, rng: rng.normal(z, 1.0)),
    "right: Laplace, scale unknown": (ls.Laplace(ls.Unknown()), lambda z, rng: rng.laplace(z, 1.0)),
    "right: Weibull, shape unknown": (ls.Weibull(ls.Unknown()), _lifetimes(1.4)),
}  # fmt: skip


def rows_until(family: Any, y_of: Any, alarm: bool, seed: int, bound: float = 2.0) -> float:
    """Rows until the set is empty; inf if it never is."""
    rng = np.random.default_rng([61, seed])
    sequence = ls.ConfidenceSequence(family, ls.Linear(DIM, bound), ALPHA, alarm=alarm)
    for told in range(LOOK, ROWS + 1, LOOK):
        x = rng.normal(size=(LOOK, DIM)) / np.sqrt(DIM)
        sequence.update(x, y_of(x @ THETA, rng))
        if sequence.set.is_empty:
            return told
    return np.inf


OTHERS = 10  # runs of kinds other than the first
KINDS = {"alarm": (True, 2.0), "unbounded": (True, np.inf), "plain": (False, 2.0)}


def run(progress: Progress, quick: bool) -> Report:
    """With the alarm, with it and without a bound, and without it."""
    report = Report(
        f"The alarm: runs in which the set is empty within {ROWS} rows, and rows in the median",
        [
            ("case", "case", ""), ("runs", "runs", ""), ("alarm", "with alarm", ""),
            ("unbounded", "with alarm, no bound", ""), ("plain", "without", ""),
        ],
    )  # fmt: skip
    task = progress.add_task("alarm", total=sum(runs_of(name, quick) for name in CASES))
    for name in CASES:
        runs = range(runs_of(name, quick))
        report.records.append(row(name, [one_run(name, seed, progress, task) for seed in runs]))
    report.notes.append(
        f"d = {DIM}, alpha = {ALPHA:g}, |theta| <= 2 or no bound, looks every {LOOK} rows; without a bound and without "
        f"the alarm {OTHERS} runs each."
    )
    return report


def runs_of(name: str, quick: bool) -> int:
    """Many of models that are right, to count false alarms; sets of unknown scales and shapes take longer."""
    if quick:
        return 4
    return 40 if not name.startswith("right") else 100 if "unknown" in name else 400


def one_run(name: str, seed: int, progress: Progress | None = None, task: Any = None) -> dict[str, float]:
    """Rows until the set is empty, by kind of set."""
    if progress is not None:
        progress.advance(task)
    kinds = {kind: of for kind, of in KINDS.items() if kind == "alarm" or seed < OTHERS}
    return {kind: rows_until(*CASES[name], alarm, seed, bound) for kind, (alarm, bound) in kinds.items()}


def row(name: str, runs: list[dict[str, float]]) -> dict[str, str]:
    """One row of the table."""
    times = {kind: [run[kind] for run in runs if kind in run] for kind in KINDS}
    return {"case": name, "runs": str(len(runs))} | {kind: _said(times[kind]) for kind in KINDS}


def _said(times: list[float]) -> str:
    rang = int(np.isfinite(times).sum())
    return f"{rang} of {len(times)}" + (f" ({np.median(times):.0f})" if rang > len(times) / 2 else "")
