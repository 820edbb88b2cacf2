"""A simulated campaign in a laboratory: 3 continuous parameters, 25 runs, two at a time, one of them failed.

``Guarded`` over a sequence with unknown noise, a length scale and a bound that are guesses, beside a plain Gaussian
process with expected improvement written with scikit-learn (length scale and noise fitted by maximum likelihood before
every batch; BoTorch and scikit-optimize are too heavy to install here). Both see the same first batch. Reported: the
true value of the best point that was run, and the certificate at the end.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from rich.progress import Progress
from scipy.stats import norm
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel

import likeset as ls
from benchmarks.common import Report

RUNS, BATCH, NOISE, ALPHA, FIRST_SEED = 25, 2, 0.03, 0.1, 30_000
LENGTH, BOUND = 0.4, 6.0
Function = Callable[[np.ndarray], np.ndarray]


def hartmann(x: np.ndarray) -> np.ndarray:
    """Hartmann's function of three parameters, scaled to a maximum of about one."""
    A = np.array([[3.0, 10, 30], [0.1, 10, 35], [3.0, 10, 30], [0.1, 10, 35]])
    P = 1e-4 * np.array([[3689, 1170, 2673], [4699, 4387, 7470], [1091, 8732, 5547], [381, 5743, 8828]])
    inner = (A * (x[:, None, :] - P) ** 2).sum(axis=2)
    return np.exp(-inner) @ np.array([1.0, 1.2, 3.0, 3.2]) / 3.86278


def branin(x: np.ndarray) -> np.ndarray:
    """Branin's function, turned upside down and scaled to about [-1, 1], with a parameter that does nothing."""
    u, v = 15 * x[:, 0] - 5, 15 * x[:, 1]
    height = (v - 5.1 / (4 * np.pi**2) * u**2 + 5 / np.pi * u - 6) ** 2 + 10 * (1 - 1 / (8 * np.pi)) * np.cos(u) + 10
    return 1.0 - height / 55.0


def smooth(seed: int) -> Function:
    """A smooth random function with values of order one."""
    rng = np.random.default_rng([FIRST_SEED, seed])
    centres, shares = rng.uniform(0, 1, (10, 3)), rng.standard_normal(10)
    return lambda x: RBF(0.4)(x, centres) @ shares * 0.5


class PlainGP:
    """Expected improvement of a Gaussian process, with the constant liar at pending points."""

    def __init__(self, seed: int) -> None:
        self.rng, self.x, self.y = np.random.default_rng(seed), [], []

    def ask(self, n: int) -> list[np.ndarray]:
        """Points with the highest expected improvement."""
        x, y = np.array(self.x), np.array(self.y)
        kernel = ConstantKernel(1.0) * Matern([0.4] * 3, (0.05, 5.0), nu=2.5) + WhiteKernel(1e-2, (1e-5, 1.0))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = GaussianProcessRegressor(kernel, normalize_y=True, n_restarts_optimizer=1, random_state=0).fit(x, y)
            chosen: list[np.ndarray] = []
            for _ in range(n):
                points = np.concatenate([self.rng.uniform(size=(1500, 3)), np.clip(
                    x[np.argmax(y)] + 0.05 * self.rng.standard_normal((300, 3)), 0, 1)])  # fmt: skip
                mean, sd = model.predict(points, return_std=True)
                u = (mean - y.max()) / np.maximum(sd, 1e-9)
                chosen.append(points[int(np.argmax(sd * (u * norm.cdf(u) + norm.pdf(u))))])
                x, y = np.vstack([x, chosen[-1]]), np.append(y, model.predict(chosen[-1][None])[0])
                model = GaussianProcessRegressor(model.kernel_, optimizer=None, normalize_y=True).fit(x, y)
        return chosen

    def tell(self, x: np.ndarray, y: float) -> None:
        """Remember."""
        self.x.append(x)
        self.y.append(y)


def campaign(policy: Any, f: Function, seed: int) -> tuple[float, float]:
    """The true value of the best point run, and seconds per point."""
    rng, told, best, spent = np.random.default_rng([FIRST_SEED, 1, seed]), 0, -np.inf, 0.0
    first = np.random.default_rng([FIRST_SEED, 2, seed]).uniform(size=(6, 3))
    while told < RUNS:
        start = time.perf_counter()
        batch = list(first) if told == 0 else policy.ask(n=min(BATCH, RUNS - told))
        spent += time.perf_counter() - start
        for x in batch:
            told += 1
            if told == 9 and isinstance(policy, ls.Guarded):
                policy.tell(x, failed=True)
                continue
            if told == 9:
                continue
            value = float(f(np.asarray(x)[None])[0])
            best = max(best, value)
            policy.tell(x, value + NOISE * rng.standard_normal())
    return best, spent / RUNS


def run(progress: Progress, quick: bool) -> Report:
    """Every function, both policies."""
    report = Report(
        "A laboratory campaign: best value run",
        [
            ("function", "function", ""), ("guarded", "Guarded", ".3f"), ("plain", "GP with EI", ".3f"),
            ("top", "maximum", ".3f"), ("gap", "certified gap", ".2f"), ("true", "claim true", ""),
            ("seconds", "s per point", ".2f"), ("rival", "GP", ".2f"),
        ],
    )  # fmt: skip
    functions: dict[str, Function] = {"Hartmann 3": hartmann, "Branin": branin}
    functions |= {f"smooth {k}": smooth(k) for k in range(2 if quick else 6)}
    repeats = 1 if quick else 3
    task = progress.add_task("laboratory", total=len(functions) * repeats)
    grid = np.random.default_rng(0).uniform(size=(200_000, 3))
    for name, f in functions.items():
        top = float(f(grid).max())
        for seed in range(repeats):
            space = ls.RKHS(Matern([LENGTH] * 3, nu=2.5), BOUND, dim=3)
            seq = ls.ConfidenceSequence(ls.Gaussian(ls.Unknown(0.005, 1.0)), space, ALPHA)
            policy = ls.Guarded(seq, bounds=[(0.0, 1.0)] * 3, rng=seed)
            ours, seconds = campaign(policy, f, seed)
            theirs, rival = campaign(PlainGP(seed), f, seed)
            choice = policy.recommend()
            right = f(choice.x[None])[0] >= choice.lower and top <= choice.lower + choice.gap
            report.records.append(
                {"function": f"{name} ({seed})", "guarded": ours, "plain": theirs, "top": top, "gap": choice.gap,
                 "true": "yes" if right else "no", "seconds": seconds, "rival": rival}
            )  # fmt: skip
            progress.advance(task)
    report.notes.append(f"{RUNS} runs, {BATCH} at a time, noise {NOISE:g}, alpha = {ALPHA:g}, one run failed.")
    return report
