"""Coefficients: widths of their intervals relative to a fixed sample's, for noise, counts and chances.

Nothing announced, whatever the bound and the order of the rows: ``run``. Announced: ``run_announced``, ``run_counts``.
"""

from __future__ import annotations

from time import process_time
from typing import Any

import numpy as np
from rich.progress import Progress
from sklearn.datasets import load_diabetes

import likeset as ls
from benchmarks.common import Report
from likeset.families.answers import information

ALPHA = 0.05
BOUNDS, ORDERS, FIRST_SEED = (2.0, 5.0, 20.0, 100.0, np.inf), 10, 300
COLUMNS = [
    ("case", "case", ""), ("joint", "joint", ".2f"), ("patience", "patience", ".2f"),
    ("contrasts", "contrasts", ".2f"), ("simultaneous", "simultaneous", ".2f"),
    ("gain", "contrasts to patience", ".2f"), ("seconds", "interval of all, s", ".2f"),
    ("evidence", "e-values of all, s", ".2f"),
]  # fmt: skip


def run(progress: Progress, quick: bool) -> Report:
    """The diabetes data, nothing announced: the default, patience alone and the joint set, for every bound."""
    kinds: dict[str, Any] = {"default": "auto", "patience": ls.Patience(), "joint": None}
    columns = [("bound", "bound", "")]
    for kind in kinds:
        columns += [(f"{kind}, own", f"{kind}, own order", ".2f"), (f"{kind}, orders", "other orders", "")]
    report = Report("Coefficients of the diabetes data: mean width relative to fixed-sample OLS", columns)
    x, y = diabetes()
    unit = ols(x, 0.7)
    own = np.arange(len(x))
    count = 2 if quick else ORDERS
    orders = [own, *(np.random.default_rng([FIRST_SEED, number]).permutation(own) for number in range(count))]
    bounds = BOUNDS[:: 4 if quick else 1]
    task = progress.add_task("coefficients", total=len(bounds) * len(kinds) * len(orders))
    for bound in bounds:
        record: dict[str, Any] = {"bound": f"{bound:g}" if np.isfinite(bound) else "none"}
        for kind, voices in kinds.items():
            found = []
            for order in orders:
                seq = ls.ConfidenceSequence(ls.Gaussian(0.7), ls.Linear(x.shape[1], bound), ALPHA, voices=voices)
                seq.update(x[order], y[order])
                low, high = seq.set.interval(np.eye(x.shape[1]))
                found.append(float(((high - low) / unit).mean()))
                progress.advance(task)
            first, *others = found
            record[f"{kind}, own"] = first
            record[f"{kind}, orders"] = f"{np.mean(others):.2f} ({min(others):.2f} to {max(others):.2f})"
            record[f"{kind}, all"] = found
        report.records.append(record)
    report.notes.append(
        f"{len(x)} rows, {x.shape[1]} coefficients, standardised, sigma = 0.7 told. Means and ranges over "
        f"{count} orders of the rows, seeds from {FIRST_SEED}; alpha = {ALPHA:g}."
    )
    return report


def diabetes() -> tuple[Any, Any]:
    """Scikit-learn's diabetes data, standardised, with an intercept."""
    x, y = load_diabetes(return_X_y=True)
    x, y = (x - x.mean(axis=0)) / x.std(axis=0), (y - y.mean()) / y.std()
    return np.column_stack([np.ones(len(x)), x]), y


def ols(x: Any, sigma: float) -> Any:
    """Widths of fixed-sample intervals at 95 %, of least squares with known noise."""
    return 2 * 1.96 * sigma * np.sqrt(np.diag(np.linalg.inv(x.T @ x)))


def run_announced(progress: Progress, quick: bool) -> Report:
    """Announced, Gaussian noise: mean width of coefficients' intervals relative to fixed-sample OLS."""
    report = Report("Announced coefficients: mean width of the intervals relative to fixed-sample OLS", COLUMNS)
    X, y = diabetes()
    cases: dict[str, tuple[Any, Any, float, Any, float]] = {}
    for told in (0.7, ls.Unknown()):
        of_sigma = "" if told == 0.7 else ", sigma unknown"
        for bound in (2.0, 20.0, np.inf):
            cases[f"diabetes, B = {bound:g}{of_sigma}"] = (X, y, 0.7, told, bound)
    sizes = (
        (2, 100, 0.3),
        (5, 100, 0.1),
        (5, 1000, 0.1),
        (5, 1000, 0.3),
        (5, 1000, 1.0),
        (15, 1000, 0.3),
        (15, 1000, 1.0),
    )
    for d, n, sigma in (*sizes, (3, 20000, 0.5)):
        rng = np.random.default_rng(d)
        x = rng.normal(size=(n, d)) / np.sqrt(d)
        outcome = x @ np.full(d, 0.5 / np.sqrt(d)) + sigma * rng.normal(size=n)
        cases[f"d = {d}, n = {n}, sigma = {sigma:g}"] = (x, outcome, sigma, sigma, 1.0)
        if sigma == 0.3 and n == 1000:
            cases[f"d = {d}, n = {n}, sigma unknown"] = (x, outcome, sigma, ls.Unknown(), 1.0)
    if quick:
        cases = dict(list(cases.items())[:1])
    task = progress.add_task("coefficients", total=len(cases))
    for name, (x, outcome, sigma, told, bound) in cases.items():
        report.records.append({"case": name} | _widths(ls.Gaussian(told), bound, x, outcome, ols(x, sigma)))
        progress.advance(task)
    return report


def run_counts(progress: Progress, quick: bool) -> Report:
    """Poisson and logistic regression: the same relative to the intervals of the largest likelihood (Wald)."""
    report = Report("Coefficients of counts and chances: mean width relative to fixed-sample Wald intervals", COLUMNS)
    problems = 2 if quick else 6
    cases = [
        (family, bound, d, n)
        for family, bound in ((ls.Poisson(), 2.0), (ls.Bernoulli(), 3.0))
        for d, n in ((3, 300), (3, 1000), (3, 3000), (8, 1000))
        if not (quick and n > 300)
    ]
    task = progress.add_task("counts", total=len(cases) * problems)
    for family, bound, d, n in cases:
        found: list[dict[str, float]] = []
        for number in range(problems):
            x, outcome, wald = regression(family, bound, d, n, np.random.default_rng([9, d, n, number]))
            found.append(_widths(family, bound, x, outcome, wald))
            progress.advance(task)
        mean = {key: float(np.mean([one[key] for one in found])) for key in found[0]}
        report.records.append({"case": f"{type(family).__name__}, B = {bound:g}, d = {d}, n = {n}"} | mean)
    report.notes.append(
        f"Means over {problems} problems: an intercept and normal covariates, |theta| = 0.6 B in a random direction."
    )
    return report


def regression(family: Any, bound: float, d: int, n: int, rng: np.random.Generator) -> tuple[Any, Any, Any]:
    """Covariates with an intercept, outcomes, and the widths of Wald intervals."""
    x = np.column_stack([np.ones(n), rng.normal(size=(n, d - 1)) / np.sqrt(d - 1)])
    theta = rng.normal(size=d)
    theta *= 0.6 * bound / np.linalg.norm(theta)
    y = family.sample(x @ theta, rng)
    fit = np.zeros(d)
    for _ in range(40):
        z = x @ fit
        score = family.derivatives(y, z)[0]
        step = np.linalg.solve((x * information(family, z)[:, None]).T @ x, x.T @ score)
        fit = fit + step * min(1.0, 2.0 / max(float(np.linalg.norm(step)), 1e-300))
    told = (x * information(family, x @ fit)[:, None]).T @ x
    return x, y, 2 * 1.96 * np.sqrt(np.diag(np.linalg.inv(told)))


def _widths(family: Any, bound: float, x: Any, y: Any, unit: Any) -> dict[str, float]:
    """Mean widths of the intervals of all coefficients in ``unit``, by each kind of voices."""
    eye = np.eye(x.shape[1])
    kinds = {
        "joint": None, "patience": ls.Patience(), "simultaneous": ls.Contrasts(eye),
        "contrasts": ls.Contrasts(eye, simultaneous=False),
    }  # fmt: skip
    found: dict[str, float] = {}
    for kind, voices in kinds.items():
        seq = ls.ConfidenceSequence(family, ls.Linear(x.shape[1], bound), ALPHA, voices=voices)
        seq.update(x, y)
        start = process_time()
        low, high = seq.set.interval(eye)
        found["seconds"] = process_time() - start  # of the last kind
        if kind == "contrasts":
            start = process_time()
            seq.set.evidence(eye, equal=0.0)
            found["evidence"] = process_time() - start
        found[kind] = float(((high - low) / unit).mean())
    return found | {"gain": found["contrasts"] / found["patience"]}
