"""Answers to claims about coverage (Fig. 3), from the critical level of the truth in every run."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from likeset.paper.experiments.evidence import NO, UNCLEAR, YES, Answer, jointly, misses_fit, power_in_words
from likeset.paper.experiments.methods import HEURISTICS, PAPER, RIVALS, label_of
from likeset.paper.experiments.names import panel as name_of
from likeset.paper.experiments.regret_answers import provable
from likeset.paper.experiments.tables import Column, Table

_LEVELS = (0.05, 0.1, 0.2, 0.3, 0.5)
_SUBSTANTIAL = 0.05
_ENOUGH_RUNS = 20
_FEW = f"; fewer than {_ENOUGH_RUNS} runs, too few to decide"


def covers(column: str, *, rivals_too: bool) -> Callable[[Table], Iterable[Answer]]:
    """Whether provable sets miss the truth no more often than alpha, at every alpha."""

    def answer(table: Table) -> Iterable[Answer]:
        for panel in table.distinct("problem"):
            methods = [m for m in provable(table, panel) if rivals_too or m not in RIVALS]
            answers, detail = _misses(table, panel, methods, column)
            yield Answer(name_of(panel), jointly(answers), detail)

    return answer


def heuristics_fail(table: Table) -> Iterable[Answer]:
    """Whether some heuristic set misses the truth more often than its alpha, at some alpha."""
    for panel in table.distinct("problem"):
        methods = [m for m in HEURISTICS if m in table.where(problem=panel).distinct("method")]
        if methods:
            answers, detail = _misses(table, panel, methods, "alpha_final")
            yield Answer(name_of(panel), {NO: YES, YES: NO}.get(jointly(answers), UNCLEAR), detail)


def better_calibrated(table: Table) -> Iterable[Answer]:
    """Excess coverage at the last round, averaged over alpha: the best ratio of the paper against the best rival."""
    for panel in table.distinct("problem"):
        excess = {}
        for method in provable(table, panel):
            critical = _critical(table, panel, method, "alpha_final")
            excess[method] = np.mean([(critical >= level) - (1 - level) for level in _LEVELS], axis=0)
        ours = min((m for m in (*PAPER, "lr-plug-in") if m in excess), key=lambda m: excess[m].mean(), default=None)
        rival = min((m for m in excess if m in RIVALS), key=lambda m: excess[m].mean(), default=None)
        if ours is None or rival is None:
            continue
        difference = excess[rival] - excess[ours]
        error = 2 * float(np.std(difference)) / np.sqrt(len(difference))
        gain = float(difference.mean())
        holds = YES if gain - error > _SUBSTANTIAL else NO if gain + error < _SUBSTANTIAL else UNCLEAR
        detail = (
            f"excess coverage {excess[ours].mean():.3f} ({label_of(ours)}) against {excess[rival].mean():.3f} "
            f"({rival}), difference {gain:.3f} ± {error:.3f}"
        )
        few = len(difference) < _ENOUGH_RUNS
        yield Answer(name_of(panel), UNCLEAR if few else holds, detail + (_FEW if few else ""))


def panels_differ(first: str, second: str, *, first_misses_more: bool) -> Callable[[Table], Iterable[Answer]]:
    """Whether misses of the paper's ratios at alpha = 0.5 differ between two kinds of panels, by more than chance."""

    def answer(table: Table) -> Iterable[Answer]:
        for panel in (p for p in table.distinct("problem") if first in p):
            for method in ("lr-plug-in", "lr-bound"):
                a, b = (_critical(table, p, method, "alpha_final") < 0.5 for p in (panel, panel.replace(first, second)))
                if len(a) == 0 or len(b) == 0:
                    continue
                p, q = float(a.mean()), float(b.mean())
                # Agresti and Caffo: one success and one failure added to each sample.
                shrunk = [((values.sum() + 1) / (len(values) + 2), len(values) + 2) for values in (a, b)]
                error = 2 * float(np.sqrt(sum(share * (1 - share) / n for share, n in shrunk)))
                gap = p - q if first_misses_more else abs(p - q)
                holds = YES if gap > error else NO if gap < -error or error < 0.05 else UNCLEAR
                few = min(len(a), len(b)) < _ENOUGH_RUNS
                name = name_of(panel.replace(f"{first}-", "").replace(f"-{first}", ""))
                detail = f"misses at alpha = 0.5: {name_of(first)} {p:.1%}, {name_of(second)} {q:.1%}"
                yield Answer(f"{name}, {label_of(method)}", UNCLEAR if few else holds, detail + (_FEW if few else ""))

    return answer


def _critical(table: Table, panel: str, method: str, column: str) -> Column:
    return table.where(problem=panel, method=method)[column].astype(np.float64)


def _misses(table: Table, panel: str, methods: list[str], column: str) -> tuple[list[str], str]:
    """Whether the misses of some methods fit their alpha, and the worst of them in words."""
    answers, worst, runs = [], ("", 0.0, 0.0), 0
    for method in methods:
        critical = _critical(table, panel, method, column)
        runs = len(critical)
        for level in _LEVELS:
            misses = int(np.sum(critical < level))
            answers.append(misses_fit(misses, runs, level))
            if misses:
                candidate = (label_of(method), misses / runs, level)
                worst = max(worst, candidate, key=lambda w: w[1] - w[2] if w[0] else -1.0)
    said = f"worst is {worst[0]}, {worst[1]:.1%} misses at alpha = {worst[2]:g}" if worst[0] else "no misses"
    return answers, f"{said}; {power_in_words(runs, _LEVELS[1])}"
