"""Announced contrasts: widths of coefficients, and an A/B test beside the methods of today's platforms."""

from __future__ import annotations

from time import process_time
from typing import Any

import numpy as np
from rich.progress import Progress
from scipy.stats import norm

import likeset as ls
from benchmarks.common import Report
from likeset._solver.pairs import PairSet

ALPHA = 0.05
MOST, STEP = 60_000, 1000  # users, and users between two looks
LOOKS = 5
OBRIEN_FLEMING = 2.040  # of five equal looks at 5 % in total: |Z_k| >= 2.040 sqrt(5/k)
ARMS = np.eye(2)


METHODS = {
    "pairs": "pairs (exact)", "joint": "joint set (exact)", "asymptotic": "asymptotic sequence",
    "five looks": "five looks", "fixed": "one look at the end",
}  # fmt: skip


def run(progress: Progress, quick: bool) -> Report:
    """Users until zero is excluded, in the median, and how often it is wrongly."""
    repeats = 4 if quick else 20
    report = Report(
        "A/B tests: users until the rates are told apart, looking every 1,000",
        [("rates", "rates", ""), *((name, title, "") for name, title in METHODS.items())],
    )
    cases = [(p, q) for p, lift in ((0.029, 0.009), (0.003, 0.0015), (0.3, 0.02)) for q in (p + lift, p)]
    task = progress.add_task("contrasts", total=len(cases) * repeats)
    for p, q in cases:
        stops: dict[str, list[float]] = {name: [] for name in METHODS}
        for number in range(repeats):
            data = users(p, q, np.random.default_rng([7, number]))
            for name, time in decided(*data).items():
                stops[name].append(time)
            progress.advance(task)
        report.records.append({"rates": f"{p:g} / {q:g}"} | {n: _told(times, p == q) for n, times in stops.items()})
    report.notes.append(
        f"{repeats} runs each, at most {MOST:,} users, alpha = {ALPHA:g}. Median users (runs decided); equal rates: "
        "wrong decisions. The asymptotic sequence is tuned for 20,000 users; five looks: O'Brien-Fleming."
    )
    return report


def run_coefficients(progress: Progress, quick: bool) -> Report:
    """Mean width of coefficients' intervals relative to fixed-sample OLS."""
    from sklearn.datasets import load_diabetes

    report = Report(
        "Coefficients: mean width of the intervals relative to fixed-sample OLS",
        [
            ("case", "case", ""), ("joint", "joint", ".2f"), ("patience", "patience", ".2f"),
            ("contrasts", "contrasts", ".2f"), ("simultaneous", "simultaneous", ".2f"),
            ("seconds", "interval of all, s", ".2f"),
        ],
    )  # fmt: skip
    X, y = load_diabetes(return_X_y=True)
    X, y = (X - X.mean(axis=0)) / X.std(axis=0), (y - y.mean()) / y.std()
    X = np.column_stack([np.ones(len(X)), X])
    cases: dict[str, tuple[Any, Any, float, Any, float]] = {}
    for told in (0.7, ls.Unknown()):
        of_sigma = "" if told == 0.7 else ", sigma unknown"
        for bound in (2.0, 20.0, np.inf):
            cases[f"diabetes, B = {bound:g}{of_sigma}"] = (X, y, 0.7, told, bound)
    for d, n, sigma in ((5, 1000, 0.3), (15, 1000, 0.3)):
        rng = np.random.default_rng(d)
        x = rng.normal(size=(n, d)) / np.sqrt(d)
        outcome = x @ np.full(d, 0.5 / np.sqrt(d)) + sigma * rng.normal(size=n)
        cases[f"d = {d}, n = {n}"] = (x, outcome, sigma, sigma, 1.0)
        cases[f"d = {d}, n = {n}, sigma unknown"] = (x, outcome, sigma, ls.Unknown(), 1.0)
    for name, (x, outcome, sigma, told, bound) in cases.items():
        eye = np.eye(x.shape[1])
        ols = 2 * 1.96 * sigma * np.sqrt(np.diag(np.linalg.inv(x.T @ x)))
        record: dict[str, Any] = {"case": name}
        kinds = {
            "joint": None, "patience": ls.Patience(), "contrasts": ls.Contrasts(eye, simultaneous=False),
            "simultaneous": ls.Contrasts(eye),
        }  # fmt: skip
        for kind, voices in kinds.items():
            seq = ls.ConfidenceSequence(ls.Gaussian(told), ls.Linear(x.shape[1], bound), ALPHA, voices=voices)
            seq.update(x, outcome)
            start = process_time()
            low, high = seq.set.interval(eye)
            record["seconds"] = process_time() - start  # of the last kind
            record[kind] = float(((high - low) / ols).mean())
        report.records.append(record)
    return report


def _told(times: list[float], equal: bool) -> str:
    found = int(np.isfinite(times).sum())
    if equal:
        return f"wrong in {found}"
    median = float(np.median(times))
    return f"{median:,.0f} ({found})" if np.isfinite(median) else f"> {MOST:,} ({found})"


def users(p: float, q: float, rng: np.random.Generator) -> tuple[Any, Any]:
    """Cumulative numbers of users and of conversions in the two arms, at every look."""
    arm = rng.integers(2, size=MOST)
    y = rng.uniform(size=MOST) < np.where(arm, q, p)
    n = np.cumsum(np.column_stack([1 - arm, arm]), axis=0)[STEP - 1 :: STEP]
    s = np.cumsum(np.column_stack([y * (1 - arm), y * arm]), axis=0)[STEP - 1 :: STEP]
    return n, s


def decided(n: Any, s: Any) -> dict[str, float]:
    """Users at the first look at which each method says that the rates differ; inf if it never does."""
    rate = s / n
    gap = rate[:, 1] - rate[:, 0]
    variance = (rate * (1 - rate) / n).sum(axis=1)
    z = np.abs(gap) / np.sqrt(np.maximum(variance, 1e-300))
    total = np.arange(1, len(n) + 1) * STEP
    # Asymptotic confidence sequence (Waudby-Smith and others, 2021) of the difference, tuned for 20,000 users.
    rho2 = (-2 * np.log(ALPHA) + np.log(-2 * np.log(ALPHA) + 1)) / 20_000
    sd2 = variance * total
    radius = np.sqrt(sd2 * 2 * (total * rho2 + 1) / (total**2 * rho2) * np.log(np.sqrt(total * rho2 + 1) / ALPHA))
    looks = np.arange(1, LOOKS + 1) * (len(n) // LOOKS) - 1
    crossed = z[looks] >= OBRIEN_FLEMING * np.sqrt(LOOKS / np.arange(1, LOOKS + 1))
    return {
        "pairs": _first(total, _pairs(n, s, ls.Contrasts(ARMS[1:], simultaneous=False, minus=ARMS[0]))),
        "joint": _first(total, _joint(n, s)),
        "asymptotic": _first(total, np.abs(gap) > radius),
        "five looks": float(total[looks[np.argmax(crossed)]]) if crossed.any() else np.inf,
        "fixed": float(total[-1]) if z[-1] > norm.ppf(1 - ALPHA / 2) else np.inf,
    }


def _first(total: Any, hits: Any) -> float:
    return float(total[np.argmax(hits)]) if np.any(hits) else np.inf


def _pairs(n: Any, s: Any, voices: Any) -> list[bool]:
    sequence = ls.ConfidenceSequence(ls.Bernoulli(), ls.Linear(2, 8.0), ALPHA, voices=voices)
    hits: list[bool] = []
    for tried, won in zip(np.diff(n, axis=0, prepend=0), np.diff(s, axis=0, prepend=0), strict=True):
        sequence.update(ARMS, won, trials=tried)
        current = sequence.set
        pair = current._questions.pair(current._others, current.space, ARMS[1], ARMS[0], np.ones(2))  # type: ignore[union-attr]
        hits.append(_excludes_zero(pair))  # type: ignore[arg-type]
        if hits[-1]:
            break
    return hits


def _joint(n: Any, s: Any) -> list[bool]:
    sequence = ls.ConfidenceSequence(ls.Bernoulli(), ls.Linear(2, 8.0), ALPHA, voices=None)
    hits: list[bool] = []
    for tried, won in zip(np.diff(n, axis=0, prepend=0), np.diff(s, axis=0, prepend=0), strict=True):
        sequence.update(ARMS, won, trials=tried)
        low, high = sequence.set.interval(ARMS[1:] - ARMS[:1])
        hits.append(bool(low[0] > 0.0 or high[0] < 0.0))
        if hits[-1]:
            break
    return hits


def _excludes_zero(pair: PairSet) -> bool:
    """Whether no (z, z) is in the set: on slabs of the diagonal with the certified floor."""
    edges = np.linspace(float(pair.low.max()), float(pair.high.min()), 65)
    low, high = edges[:-1], edges[1:]
    for _ in range(12):
        alive = pair.floors(np.column_stack([low, low]), np.column_stack([high, high])) <= pair.level
        low, high = low[alive], high[alive]
        if len(low) == 0:
            return True
        middle = 0.5 * (low + high)
        if (pair.values(np.column_stack([middle, middle])) <= pair.level).any():
            return False
        low, high = np.concatenate([low, middle]), np.concatenate([middle, high])
    return False
