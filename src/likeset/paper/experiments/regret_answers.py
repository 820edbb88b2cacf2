"""Answers to claims that compare methods: regret (Figs. 2 and 4) or width, medians paired by repeat; and misses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from likeset.bandits.environments import camelback, paper_1d
from likeset.paper.experiments.evidence import (
    NO,
    YES,
    Answer,
    best,
    by_repeat,
    compare,
    jointly,
    misses_fit,
    power_in_words,
)
from likeset.paper.experiments.methods import PAPER, RIVALS, is_certifying, label_of
from likeset.paper.experiments.names import counted, panel
from likeset.paper.experiments.tables import Table

Rivals = Callable[[Table, str], list[str]]


def provable(table: Table, problem: str) -> list[str]:
    """The methods with a proof in a problem, played for what arms pay."""
    part = table.where(problem=problem)
    names = [m for m in part.distinct("method") if not is_certifying(m)]
    return [m for m in names if bool(part.where(method=m)["provable"][0])]


def certifiers(table: Table, problem: str) -> list[str]:
    """Elimination with each of its sets."""
    return [m for m in table.where(problem=problem).distinct("method") if is_certifying(m)]


def paper_rivals(table: Table, problem: str) -> list[str]:
    """The provable sets that the paper compares with, the unweighted ratio among them."""
    return [m for m in provable(table, problem) if m in RIVALS or m == "lr-plug-in"]


def among(*names: str) -> Rivals:
    """Those of the named methods that were run."""
    return lambda table, problem: [m for m in names if m in table.where(problem=problem).distinct("method")]


def paper_beats(
    rivals: Rivals, limit: float = 1.0, problems: Sequence[str] = ()
) -> Callable[[Table], Iterable[Answer]]:
    """The paper's method against the best of some rivals: regret below ``limit`` times theirs?"""
    return beats(among(*PAPER), rivals, limit, problems)


def beats(
    first: Rivals,
    second: Rivals,
    limit: float = 1.0,
    problems: Sequence[str] = (),
    column: str = "regret",
    t: int | None = None,
) -> Callable[[Table], Iterable[Answer]]:
    """The best of one group of methods against the best of another, at the last round or at time t."""

    def answer(table: Table) -> Iterable[Answer]:
        for problem in problems or table.distinct("problem"):
            ours, rival = (best(table, problem, group(table, problem), column, t) for group in (first, second))
            if ours is not None and rival is not None:
                yield _comparison(table, problem, ours, rival, limit, column, t)

    return answer


def paper_beats_each(problem: str, rivals: Sequence[str]) -> Callable[[Table], Iterable[Answer]]:
    """The paper's method against every one of some rivals."""

    def answer(table: Table) -> Iterable[Answer]:
        ours = best(table, problem, list(PAPER))
        for rival in among(*rivals)(table, problem):
            if ours is not None:
                found = _comparison(table, problem, ours, rival, 1.0)
                yield Answer(f"{found.panel} ({rival})", found.holds, found.detail)

    return answer


def on_par(problem: str, rival: str, factor: float) -> Callable[[Table], Iterable[Answer]]:
    """The paper's method and a rival within a factor of each other, in both directions."""

    def answer(table: Table) -> Iterable[Answer]:
        ours = best(table, problem, list(PAPER))
        if ours is None or best(table, problem, [rival]) is None:
            return
        ratio = compare(by_repeat(table, problem, ours, "regret"), by_repeat(table, problem, rival, "regret"))
        yield Answer(panel(problem), ratio.within(factor), f"{label_of(ours)} against {rival}: {ratio}")

    return answer


def truth_stays(alpha: float, *methods: str) -> Callable[[Table], Iterable[Answer]]:
    """Whether the truth ever left a set in more runs than alpha allows: the methods named, or all provable ones."""
    return _stays(alpha, among(*methods) if methods else provable, "covered")


def best_arm_stays(alpha: float) -> Callable[[Table], Iterable[Answer]]:
    """Whether Elimination ever ruled out the best arm in more runs than alpha allows."""
    return _stays(alpha, certifiers, "best_left")


def _stays(alpha: float, methods: Rivals, column: str) -> Callable[[Table], Iterable[Answer]]:
    def answer(table: Table) -> Iterable[Answer]:
        for problem in table.distinct("problem"):
            misses = {}
            for method in methods(table, problem):
                own = table.where(problem=problem, method=method)
                kept = [bool(run[column].all()) for _, run in own.groups("repeat")]
                misses[method] = (len(kept) - sum(kept), len(kept))
            if misses:
                worst = max(misses, key=lambda m: misses[m][0])
                most, runs = misses[worst]
                said = f"at most {most} of {counted(runs, 'run')} miss ({label_of(worst)})" if most else "no misses"
                said = said if most else f"{said} in {counted(runs, 'run')}"
                holds = jointly([misses_fit(*counts, alpha) for counts in misses.values()])
                yield Answer(panel(problem), holds, f"{said}; {power_in_words(runs, alpha)}")

    return answer


def stated_bound_contains(table: Table) -> Iterable[Answer]:
    """Whether the norm of the test function is at most the bound that the paper states."""
    for problem in table.distinct("problem"):
        if problem in ("gaussian", "camelback-stated"):
            stated = 4.0 if problem == "gaussian" else 2.0
            environment = paper_1d("gaussian", stated) if problem == "gaussian" else camelback("gaussian", stated)
            detail = f"norm {environment.norm:.2f} on the grid, B = {stated:g} stated"
            name = "1-D function" if problem == "gaussian" else "Camelback"
            yield Answer(name, YES if environment.well_specified else NO, detail)


def _comparison(
    table: Table,
    problem: str,
    first: str,
    second: str,
    limit: float,
    column: str = "regret",
    t: int | None = None,
) -> Answer:
    ratio = compare(*(by_repeat(table, problem, method, column, t) for method in (first, second)))
    return Answer(panel(problem), ratio.below(limit), f"{label_of(first)} against {label_of(second)}: {ratio}")
