"""A simulated campaign in a laboratory: 3 continuous parameters, 25 runs, two at a time, one of them failed.

``ls.Study`` with a smooth model (unknown noise, length scale and norm; that a yield lies between 0 and 100 % is known),
opened anew before every batch as after a restart, beside a plain Gaussian process with expected improvement written
with scikit-learn (length scales and noise fitted by maximum likelihood before every batch). Both see the same first six
runs. Reported: the true yield of the best setting that was run, and the certificate at the end: the bound, whether it
is true, and the gap, which before any data is 100.
"""

from __future__ import annotations

import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from rich.progress import Progress
from scipy.stats import norm
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel

import likeset as ls
from benchmarks.common import Report

RUNS, BATCH, FIRST, FAILS, NOISE, ALPHA, FIRST_SEED = 25, 2, 6, 9, 3.0, 0.1, 30_000
NAMES = ("temperature", "hours", "acid")
Function = Callable[[np.ndarray], np.ndarray]


def hartmann(x: np.ndarray) -> np.ndarray:
    """Hartmann's function of three parameters."""
    A = np.array([[3.0, 10, 30], [0.1, 10, 35], [3.0, 10, 30], [0.1, 10, 35]])
    P = 1e-4 * np.array([[3689, 1170, 2673], [4699, 4387, 7470], [1091, 8732, 5547], [381, 5743, 8828]])
    inner = (A * (x[:, None, :] - P) ** 2).sum(axis=2)
    return np.exp(-inner) @ np.array([1.0, 1.2, 3.0, 3.2])


def branin(x: np.ndarray) -> np.ndarray:
    """Branin's function, turned upside down, with a parameter that does nothing."""
    u, v = 15 * x[:, 0] - 5, 15 * x[:, 1]
    return -((v - 5.1 / (4 * np.pi**2) * u**2 + 5 / np.pi * u - 6) ** 2) - 10 * (1 - 1 / (8 * np.pi)) * np.cos(u)


def smooth(seed: int) -> Function:
    """A smooth random function."""
    rng = np.random.default_rng([FIRST_SEED, seed])
    centres, shares = rng.uniform(0, 1, (10, 3)), rng.standard_normal(10)
    return lambda x: RBF(0.4)(x, centres) @ shares


def as_yield(f: Function) -> Function:
    """The function as a yield in per cent, from 5 to 95."""
    values = f(np.random.default_rng(0).uniform(size=(50_000, 3)))
    low, high = values.min(), values.max()
    return lambda x: 5.0 + 90.0 * (f(x) - low) / (high - low)


def problems(quick: bool = False) -> dict[str, tuple[Function, int]]:
    """Twenty functions with seeds of the noise and of the first runs: each of the known ones four times."""
    known = {"Hartmann": as_yield(hartmann), "Branin": as_yield(branin)}
    found = {f"{name} ({s})": (f, s) for name, f in known.items() for s in range(1 if quick else 4)}
    return found | {f"smooth {k}": (as_yield(smooth(k)), k) for k in range(2 if quick else 12)}


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

    def tell(self, x: np.ndarray, y: float | None) -> None:
        """Remember; nothing of a run that failed."""
        if y is not None:
            self.x.append(x)
            self.y.append(y)


class Laboratory:
    """A study in a file, opened anew for every call, with the interface of the rival."""

    def __init__(self, path: Path, seed: int) -> None:
        self.path = path
        definition: dict[str, Any] = {"factors": dict.fromkeys(NAMES, (0.0, 1.0)), "model": "smooth", "units": "%"}
        outcome = {"yield": ls.Gaussian(sigma=ls.Unknown())}
        ls.Study(
            "yield", outcome=outcome, range=(0, 100), alpha=ALPHA, seed=seed, store=path, **definition
        ).store.close()

    def ask(self, n: int) -> list[np.ndarray]:
        """Settings to run next."""
        with ls.Store(self.path) as store:
            return [np.array([row[name] for name in NAMES]) for row in store.study("yield").ask(n=n)]

    def tell(self, x: np.ndarray, y: float | None) -> None:
        """A row."""
        row = dict(zip(NAMES, x.tolist(), strict=True)) | ({} if y is None else {"yield": y})
        with ls.Store(self.path) as store:
            store.study("yield").tell([row], failed=y is None)

    def recommend(self) -> Any:
        """The study's recommendation."""
        with ls.Store(self.path) as store:
            return store.study("yield").recommend()


def campaign(player: Any, f: Function, seed: int) -> tuple[float, float]:
    """The true yield of the best setting run, and seconds of the processor per run."""
    rng, told, best, spent = np.random.default_rng([FIRST_SEED, 1, seed]), 0, -np.inf, 0.0
    first = np.random.default_rng([FIRST_SEED, 2, seed]).uniform(size=(FIRST, 3))
    while told < RUNS:
        start = time.process_time()
        batch = list(first) if told == 0 else player.ask(n=min(BATCH, RUNS - told))
        spent += time.process_time() - start
        for x in batch:
            told += 1
            value = float(f(x[None])[0])
            y = value + NOISE * rng.standard_normal()
            best = best if told == FAILS else max(best, value)
            player.tell(x, None if told == FAILS else y)
    return best, spent / RUNS


def certificate_is_true(choice: Any, f: Function) -> bool:
    """Whether the setting yields what was promised, and nothing on a fine scatter more than was ruled out."""
    x = np.array([[choice.setting[name] for name in NAMES]])
    top = float(f(np.random.default_rng(1).uniform(size=(50_000, 3))).max())
    return bool(f(x)[0] >= choice.bound and top <= choice.bound + choice.gap)


def run(progress: Progress, quick: bool) -> Report:
    """Every problem, both players."""
    report = Report(
        "A laboratory campaign: best yield run, in per cent",
        [
            ("function", "function", ""), ("ours", "Study", ".1f"), ("plain", "GP with EI", ".1f"),
            ("bound", "certified yield", ".1f"), ("gap", "certified gap", ".1f"), ("true", "claim true", ""),
            ("seconds", "CPU s per run", ".2f"), ("rival", "GP", ".2f"),
        ],
    )  # fmt: skip
    todo = problems(quick)
    task = progress.add_task("laboratory", total=len(todo))
    for name, (f, seed) in todo.items():
        with tempfile.TemporaryDirectory() as folder:
            player = Laboratory(Path(folder) / "likeset.db", seed)
            ours, seconds = campaign(player, f, seed)
            choice = player.recommend()
        theirs, rival = campaign(PlainGP(seed), f, seed)
        report.records.append(
            {"function": name, "ours": ours, "plain": theirs, "bound": choice.bound, "gap": choice.gap,
             "true": "yes" if certificate_is_true(choice, f) else "no", "seconds": seconds, "rival": rival}
        )  # fmt: skip
        progress.advance(task)
    mean = [float(np.mean([r[part] for r in report.records])) for part in ("ours", "plain")]
    below = sum(r["gap"] < 100.0 for r in report.records)
    report.notes.append(
        f"{RUNS} runs, {BATCH} at a time, noise {NOISE:g}, alpha = {ALPHA:g}, one run failed. Means {mean[0]:.1f} and "
        f"{mean[1]:.1f}; the gap is below the range of 100 in {below} of {len(report.records)}."
    )
    return report
