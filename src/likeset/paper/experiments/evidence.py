"""From measured rows to yes, no, not refuted or unclear: ratios of medians with bootstrap intervals, misses by the
binomial law, and the rules by which panels make a verdict."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np

from likeset._typing import Array
from likeset.paper.experiments.names import counted
from likeset.paper.experiments.tables import Table

YES, NO, UNCLEAR, NOT_REFUTED = "yes", "no", "unclear", "not refuted"

FEWEST = 5
"""A comparison of fewer repeats decides nothing: not even a sign test of four pairs can reach 5 % on a side."""

FALSE_ALARM = 1e-5
"""How likely a set that covers is called one that does not, per test."""

NOTICED = 0.20
"""Coverage "holds" only if misses this far above alpha would have been found out with probability ``POWER``."""

POWER = 0.80
_RESAMPLES = 4000
_INTERVAL = 0.90
_MOST_NAMES = 4


@dataclass(frozen=True)
class Answer:
    """Whether a claim holds in one panel, and the numbers that say so."""

    panel: str
    holds: str
    detail: str


# -- comparisons -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Ratio:
    """Ratio of two medians over repeats with its bootstrap interval."""

    first: float
    second: float
    low: float
    high: float
    repeats: int = 10

    @property
    def value(self) -> float:
        """The ratio of the medians."""
        return float(_quotients(np.array(self.first), np.array(self.second)))

    def below(self, limit: float) -> str:
        """Whether the ratio lies below the limit: yes or no if the whole interval says so."""
        return self._decided(self.high < limit, self.low > limit)

    def above(self, limit: float) -> str:
        """Whether the ratio lies above the limit."""
        return self._decided(self.low > limit, self.high < limit)

    def within(self, factor: float) -> str:
        """Whether the two agree up to a factor, in both directions."""
        inside = self.low >= 1 / factor and self.high <= factor
        return self._decided(inside, self.low > factor or self.high < 1 / factor)

    def _decided(self, yes: bool, no: bool) -> str:
        if self.repeats < FEWEST:
            return UNCLEAR
        return YES if yes else NO if no else UNCLEAR

    def __str__(self) -> str:
        if self.repeats == 0:
            return "no repeat in which both were run"
        few = f"; {counted(self.repeats, 'repeat')}, too few to decide" if self.repeats < FEWEST else ""
        ratio, low, high = map(_three, (self.value, self.low, self.high))
        return f"{_short(self.first)} against {_short(self.second)}, ratio {ratio} [{low}, {high}]{few}"


ByRepeat = Mapping[int, float]
"""One number per repeat. A repeat whose cell failed is missing."""


def compare(first: ByRepeat, second: ByRepeat) -> Ratio:
    """Medians of two methods over the repeats in which both were run: resampling keeps the pairs together.

    >>> print(compare({0: 1.0, 1: 1.1, 2: 0.9, 3: 1.0, 4: 1.0}, {0: 2.0, 1: 2.2, 2: 1.8, 3: 2.0, 4: 2.0, 5: 9.0}))
    1.00 against 2.00, ratio 0.500 [0.500, 0.500]
    """
    common = sorted(set(first) & set(second))
    if not common:
        return Ratio(np.nan, np.nan, np.nan, np.nan, 0)
    a, b = (np.array([values[repeat] for repeat in common]) for values in (first, second))
    rng = np.random.default_rng(0)
    chosen = rng.integers(0, len(a), size=(_RESAMPLES, len(a)))
    ratios = _quotients(np.median(a[chosen], axis=1), np.median(b[chosen], axis=1))
    low, high = np.quantile(ratios, [(1 - _INTERVAL) / 2, (1 + _INTERVAL) / 2])
    return Ratio(float(np.median(a)), float(np.median(b)), float(low), float(high), len(a))


def _quotients(first: Array, second: Array) -> Array:
    """first / second; one where they are equal, zeros among them: nothing against nothing is no difference."""
    return np.where(first == second, 1.0, first / np.maximum(second, np.finfo(np.float64).tiny))


def middle(values: ByRepeat) -> float:
    """The median over the repeats."""
    return float(np.median(list(values.values())))


def by_repeat(table: Table, problem: str, method: str, column: str, t: int | None = None) -> dict[int, float]:
    """The value of a column at time t, or the last one, in every repeat."""
    part = table.where(problem=problem, method=method)
    part = part.at(part["t"] == (part["t"].max() if t is None else t)) if len(part) else part
    return {int(repeat): float(value) for repeat, value in zip(part["repeat"], part[column], strict=True)}


def best(
    table: Table, problem: str, methods: Collection[str], column: str = "regret", t: int | None = None
) -> str | None:
    """The method with the smallest median at the last round, or at time t."""
    medians = {m: middle(v) for m in methods if (v := by_repeat(table, problem, m, column, t))}
    return min(medians, key=lambda m: medians[m]) if medians else None


def _short(value: float) -> str:
    """Two or three figures, no exponents.

    >>> _short(14668.0), _short(54.31), _short(0.4999), _short(0.01234)
    ('14,668', '54.3', '0.50', '0.012')
    """
    size = abs(value)
    return f"{value:,.0f}" if size >= 100 else f"{value:.{1 if size >= 10 else 2 if size >= 0.1 else 3}f}"


def _three(value: float) -> str:
    """Three decimals below ten: an end of an interval that decides must not look like the limit.

    >>> _three(0.997), _three(17.23), _three(147.2)
    ('0.997', '17.2', '147')
    """
    return f"{value:.3f}" if abs(value) < 10 else _short(value)


# -- coverage --------------------------------------------------------------------------------------------------------


def misses_fit(misses: int, runs: int, alpha: float) -> str:
    """Whether so many misses are believable when each run misses with probability alpha at most.

    "no" is said of true coverage with probability ``FALSE_ALARM`` at most, "yes" only if the runs are enough to notice
    a set that misses ``NOTICED`` more often than alpha. Otherwise the promise is "not refuted", or "unclear" if no
    number of misses could have refuted it.

    >>> misses_fit(25, 200, 0.1), misses_fit(60, 200, 0.1), misses_fit(2, 12, 0.1), misses_fit(2, 2, 0.1)
    ('yes', 'no', 'not refuted', 'unclear')
    """
    most = most_misses(runs, alpha)
    if misses > most:
        return NO
    if most >= runs:
        return UNCLEAR
    return YES if noticed(runs, alpha) <= alpha + NOTICED else NOT_REFUTED


@cache
def most_misses(runs: int, alpha: float) -> int:
    """The largest number of misses that does not refute coverage."""
    from scipy.stats import binom  # slow to load: only when results are judged

    return int(binom.ppf(1 - FALSE_ALARM, runs, alpha))


@cache
def noticed(runs: int, alpha: float) -> float:
    """The power of the test: the smallest rate of misses that would be found out with probability ``POWER``.

    >>> [round(noticed(runs, 0.1), 2) for runs in (10, 50, 200)]
    [0.76, 0.39, 0.23]
    """
    from scipy.stats import beta

    most = most_misses(runs, alpha)
    return float(beta.ppf(POWER, most + 1, runs - most)) if most < runs else 1.0


def power_in_words(runs: int, alpha: float, name: str = "alpha") -> str:
    """What such a test could have found out; ``name`` is that of the level."""
    level, runs_made = f"{name} = {alpha:g}", counted(runs, "run")
    if most_misses(runs, alpha) >= runs:
        return f"no number of misses in {runs_made} could refute {level}"
    return f"{runs_made} would notice {noticed(runs, alpha):.0%} misses at {level} four times out of five"


def jointly(answers: Collection[str]) -> str:
    """One answer from several tests of coverage: one "no" is enough, "yes" has to be unanimous."""
    if not answers:
        return UNCLEAR
    if NO in answers:
        return NO
    if all(a == YES for a in answers):
        return YES
    return UNCLEAR if all(a == UNCLEAR for a in answers) else NOT_REFUTED


# -- verdicts --------------------------------------------------------------------------------------------------------


def together(answers: list[Answer]) -> tuple[str, str]:
    """(verdict, kind) of a claim from its panels; kind is "yes", "no" or "open".

    Panels that contradict each other make it "depends"; an undecided panel does not.

    >>> together([Answer("a", YES, ""), Answer("b", NO, "")])
    ('depends: holds in a; does not in b', 'open')
    >>> together([Answer("a", NO, ""), Answer("b", UNCLEAR, "")])
    ('does not hold in a; undecided in b', 'no')
    >>> together([Answer("a", YES, ""), Answer("b", NOT_REFUTED, "")])
    ('not refuted', 'open')
    """
    if not answers:
        return "not measured in this run", "open"
    panels = {kind: [a.panel for a in answers if a.holds == kind] for kind in (YES, NO, NOT_REFUTED, UNCLEAR)}
    found = {kind for kind, names in panels.items() if names}
    if found in ({NOT_REFUTED}, {YES, NOT_REFUTED}):
        return "not refuted", "open"
    whole = {YES: ("holds", "yes"), NO: ("does not hold", "no"), UNCLEAR: ("undecided", "open")}
    if len(found) == 1:
        return whole[found.pop()]
    mixed = {YES, NO} <= found
    words = {
        YES: "holds in",
        NO: "does not in" if mixed else "does not hold in",
        NOT_REFUTED: "not refuted in",
        UNCLEAR: "undecided in",
    }
    parts = [f"{words[kind]} {_listed(names, len(answers))}" for kind, names in panels.items() if names]
    return ("depends: " if mixed else "") + "; ".join(parts), "no" if NO in found and not mixed else "open"


def _listed(names: list[str], count: int) -> str:
    return ", ".join(names) if len(names) <= _MOST_NAMES else f"{len(names)} of {count} panels"
