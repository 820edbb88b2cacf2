"""Announced pairs of arms: A/B tests beside the methods of today's platforms, and tests of several variants."""

from __future__ import annotations

from time import process_time
from typing import Any

import numpy as np
from rich.progress import Progress
from scipy.stats import norm

import likeset as ls
from benchmarks.common import Report
from likeset._solver.borders import division
from likeset._solver.pairs import PairSet
from likeset.study.engine import SHARE

ALPHA = 0.05
MOST, STEP = 60_000, 1000  # users, and users between two looks
LOOKS = 5
OBRIEN_FLEMING = 2.040  # of five equal looks at 5 % in total: |Z_k| >= 2.040 sqrt(5/k)
ARMS = np.eye(2)


METHODS = {
    "pairs": "pairs (exact)", "study": "a study (exact)", "joint": "joint set (exact)",
    "asymptotic": "asymptotic sequence", "five looks": "five looks", "fixed": "one look at the end",
    "peeked": "the same test at every look",
}  # fmt: skip
EFFECTS = {0.003: (0.0045, 0.006), 0.029: (0.0335, 0.038), 0.3: (0.31, 0.32)}  # base rate: rates of the variant
NULLS = 200  # runs with equal rates


def run(progress: Progress, quick: bool) -> Report:
    """Users until zero is excluded, in the median, and how often it is wrongly."""
    repeats, nulls = (4, 8) if quick else (20, NULLS)
    report = Report(
        "A/B tests: users until the rates are told apart, looking every 1,000",
        [("rates", "rates", ""), *((name, title, "") for name, title in METHODS.items())],
    )
    cases = [(p, q) for p, others in EFFECTS.items() for q in (*others, p)]
    task = progress.add_task("contrasts", total=sum(nulls if p == q else repeats for p, q in cases))
    for p, q in cases:
        stops: dict[str, list[float]] = {name: [] for name in METHODS}
        for number in range(nulls if p == q else repeats):
            data = users(p, q, np.random.default_rng([7, number]))
            for name, time in decided(*data).items():
                stops[name].append(time)
            progress.advance(task)
        report.records.append({"rates": f"{p:g} / {q:g}"} | {n: _told(times, p == q) for n, times in stops.items()})
    report.notes.append(
        f"{repeats} runs each, at most {MOST:,} users, alpha = {ALPHA:g}. Median users (runs decided); equal rates: "
        f"wrong decisions in {nulls} runs. The asymptotic sequence is tuned for 20,000 users; five looks: "
        "O'Brien-Fleming."
    )
    return report


def run_several(progress: Progress, quick: bool) -> Report:
    """Several variants against control, the last of which is better: users until it is told apart; false ones."""
    repeats, nulls = (2, 2) if quick else (10, 100)
    report = Report(
        "A/B/n tests: users until the better variant is told apart from control, looking every 5,000",
        [
            ("arms", "arms", "d"), ("pairs", "pairs (exact)", ""), ("joint", "joint set (exact)", ""),
            ("bonferroni", "asymptotic, Bonferroni", ""), ("seconds", "a look at all pairs, s", ".2f"),
        ],
    )  # fmt: skip
    for arms in (3, 5, 10, 20):
        record: dict[str, Any] = {"arms": arms}
        for lift, runs in ((0.03, repeats), (0.0, nulls)):
            stops: dict[str, list[float]] = {"pairs": [], "joint": [], "bonferroni": []}
            task = progress.add_task(f"{arms} arms", total=runs)
            for number in range(runs):
                found, seconds = _several(arms, lift, np.random.default_rng([8, arms, number]))
                record.setdefault("seconds", seconds)
                for name, time in found.items():
                    stops[name].append(time)
                progress.advance(task)
            for name, times in stops.items():
                told = _told(times, not lift, runs)
                record[name] = f"{record[name]}; {told}" if name in record else told
        report.records.append(record)
    report.notes.append(
        f"Rates 0.1, one variant 0.13, equal allocation, at most {MOST:,} users in all, alpha = {ALPHA:g} for all "
        f"pairs with control at once; {repeats} runs, then {nulls} runs with equal rates, in which any "
        "wrong decision counts."
    )
    return report


def _several(arms: int, lift: float, rng: np.random.Generator) -> tuple[dict[str, float], float]:
    step = 5 * STEP
    rates = np.full(arms, 0.1)
    rates[-1] += lift
    each = step // arms
    eye = np.eye(arms)
    voices = ls.Contrasts(eye[1:], minus=eye[0])
    made = {
        name: ls.ConfidenceSequence(ls.Bernoulli(), ls.Linear(arms, 4.0 * np.sqrt(arms)), ALPHA, voices=kind)
        for name, kind in (("pairs", voices), ("joint", None))
    }
    stops = {"pairs": np.inf, "joint": np.inf, "bonferroni": np.inf}
    total, won, seconds = 0, np.zeros(arms), 0.0
    watched = range(1, arms) if not lift else [arms - 1]
    while total < MOST and not np.isfinite(list(stops.values())).all():
        new = rng.binomial(each, rates)
        won, total = won + new, total + each * arms
        for name, sequence in made.items():
            if np.isfinite(stops[name]):
                continue
            sequence.update(eye, new, trials=[each] * arms)
            start = process_time()
            current = sequence.set
            if name == "joint":
                low, high = current.interval(eye[1:] - eye[:1])
                hits = (low > 0.0) | (high < 0.0)
            else:
                hits = np.array([_excludes_zero(_pair_of(current, eye[i], eye[0])) for i in range(1, arms)])
                seconds = max(seconds, process_time() - start)
            if hits[np.array(watched) - 1].any():
                stops[name] = float(total)
        n = np.full((1, 2), total // arms)
        crossed = [_asymptotic(n, won[None, [0, i]], ALPHA / (arms - 1))[0] for i in watched]
        if not np.isfinite(stops["bonferroni"]) and any(crossed):
            stops["bonferroni"] = float(total)
    return stops, seconds


def _told(times: list[float], equal: bool, runs: int | None = None) -> str:
    found = int(np.isfinite(times).sum())
    if equal:
        return f"wrong in {found}" if runs is None else f"wrong in {found} of {runs}"
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
    looks = np.arange(1, LOOKS + 1) * (len(n) // LOOKS) - 1
    crossed = z[looks] >= OBRIEN_FLEMING * np.sqrt(LOOKS / np.arange(1, LOOKS + 1))
    return {
        "pairs": _first(total, decided_by_pairs(n, s, ls.Contrasts(ARMS[1:], simultaneous=False, minus=ARMS[0]))),
        "study": _first(total, decided_by_pairs(n, s, ls.Contrasts(ARMS[1:], minus=ARMS[0], share=SHARE, others=None))),
        "joint": _first(total, decided_by_joint(n, s)),
        "asymptotic": _first(total, _asymptotic(n, s, ALPHA)),
        "five looks": float(total[looks[np.argmax(crossed)]]) if crossed.any() else np.inf,
        "fixed": float(total[-1]) if z[-1] > norm.ppf(1 - ALPHA / 2) else np.inf,
        "peeked": _first(total, z > norm.ppf(1 - ALPHA / 2)),
    }


def _asymptotic(n: Any, s: Any, alpha: float) -> Any:
    """Whether zero is outside the asymptotic sequence (Waudby-Smith and others, 2021), tuned for 20,000 users."""
    rate, total = s / n, n.sum(axis=1)
    rho2 = (-2 * np.log(alpha) + np.log(-2 * np.log(alpha) + 1)) / 20_000
    sd2 = (rate * (1 - rate) / n).sum(axis=1) * total
    radius = np.sqrt(sd2 * 2 * (total * rho2 + 1) / (total**2 * rho2) * np.log(np.sqrt(total * rho2 + 1) / alpha))
    return np.abs(rate[:, 1] - rate[:, 0]) > radius


def _first(total: Any, hits: Any) -> float:
    return float(total[np.argmax(hits)]) if np.any(hits) else np.inf


def decided_by_pairs(n: Any, s: Any, voices: Any) -> list[bool]:
    sequence = ls.ConfidenceSequence(ls.Bernoulli(), ls.Linear(2, 8.0), ALPHA, voices=voices)
    hits: list[bool] = []
    for tried, won in zip(np.diff(n, axis=0, prepend=0), np.diff(s, axis=0, prepend=0), strict=True):
        sequence.update(ARMS, won, trials=tried)
        hits.append(_excludes_zero(_pair_of(sequence.set, ARMS[1], ARMS[0])))
        if hits[-1]:
            break
    return hits


def _pair_of(current: Any, x: Any, y: Any) -> PairSet:
    return current._questions.pair(current._others, current.space, x, y, np.ones(2))  # type: ignore[no-any-return]


def decided_by_joint(n: Any, s: Any) -> list[bool]:
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
    """Whether no (z, z) is in the set."""
    return division(pair).apart != 0
