"""From measured rows to yes, no or unclear: ratios of medians with bootstrap intervals, misses by the binomial law."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likeset.paper.experiments.tables import Table

YES, NO, UNCLEAR = "yes", "no", "unclear"
_RESAMPLES = 4000
_INTERVAL = 0.90


@dataclass(frozen=True)
class Answer:
    """Whether a claim holds in one panel, and the numbers that say so."""

    panel: str
    holds: str
    detail: str


@dataclass(frozen=True)
class Ratio:
    """Ratio of two medians over repeats with its bootstrap interval."""

    first: float
    second: float
    low: float
    high: float

    @property
    def value(self) -> float:
        """The ratio of the medians."""
        return self.first / self.second

    def below(self, limit: float) -> str:
        """Whether the ratio lies below the limit: yes or no if the whole interval says so."""
        return YES if self.high < limit else NO if self.low > limit else UNCLEAR

    def __str__(self) -> str:
        return f"{self.first:.3g} against {self.second:.3g}, ratio {self.value:.2f} [{self.low:.2f}, {self.high:.2f}]"


def compare(first: NDArray[Any], second: NDArray[Any]) -> Ratio:
    """Medians of two methods over the same repeats: resampling keeps the pairs together.

    >>> print(compare(np.array([1.0, 1.1, 0.9]), np.array([2.0, 2.2, 1.8])))
    1 against 2, ratio 0.50 [0.50, 0.50]
    """
    rng = np.random.default_rng(0)
    chosen = rng.integers(0, len(first), size=(_RESAMPLES, len(first)))
    tiny = np.finfo(np.float64).tiny
    ratios = np.median(first[chosen], axis=1) / np.maximum(np.median(second[chosen], axis=1), tiny)
    low, high = np.quantile(ratios, [(1 - _INTERVAL) / 2, (1 + _INTERVAL) / 2])
    return Ratio(float(np.median(first)), float(max(np.median(second), tiny)), float(low), float(high))


def by_repeat(table: Table, problem: str, method: str, column: str) -> NDArray[np.float64]:
    """The last value of a column in every repeat, in order of the repeats."""
    part = table.where(problem=problem, method=method)
    part = part.at(part["t"] == part["t"].max()) if len(part) else part
    order = np.argsort(part["repeat"], kind="stable")
    return part[column][order].astype(np.float64)


def best(table: Table, problem: str, methods: list[str], column: str = "regret") -> str | None:
    """The method with the smallest median at the last round."""
    medians = {m: float(np.median(v)) for m in methods if len(v := by_repeat(table, problem, m, column))}
    return min(medians, key=lambda m: medians[m]) if medians else None


def misses_fit(misses: int, runs: int, alpha: float, false_alarm: float = 1e-5) -> str:
    """Whether so many misses are believable when each run misses with probability alpha at most.

    "no" is said of true coverage with probability ``false_alarm`` at most; "unclear" when no number of misses could
    have led to a "no", because there are too few runs.

    >>> misses_fit(25, 200, 0.1), misses_fit(60, 200, 0.1), misses_fit(2, 2, 0.1)
    ('yes', 'no', 'unclear')
    """
    from scipy.stats import binom  # slow to load: only when results are judged

    most = int(binom.ppf(1 - false_alarm, runs, alpha))
    return NO if misses > most else YES if most < runs else UNCLEAR


def together(answers: list[Answer]) -> tuple[str, str]:
    """(verdict, kind) of a claim from its panels.

    >>> together([Answer("a", YES, ""), Answer("b", NO, "")])
    ('depends: holds in a; does not in b', 'open')
    >>> together([Answer("a", NO, "")])
    ('does not hold', 'no')
    """
    if not answers:
        return "not measured in this run", "open"
    panels = {kind: [a.panel for a in answers if a.holds == kind] for kind in (YES, NO, UNCLEAR)}
    if len(panels[YES]) == len(answers):
        return "holds", "yes"
    if len(panels[NO]) == len(answers):
        return "does not hold", "no"
    if len(panels[UNCLEAR]) == len(answers):
        return "undecided: too few repeats to tell", "open"
    words = {YES: "holds in", NO: "does not in", UNCLEAR: "undecided in"}
    parts = [f"{words[kind]} {', '.join(names)}" for kind, names in panels.items() if names]
    return "depends: " + "; ".join(parts), "open"
