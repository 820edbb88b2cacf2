"""Answers to claims about type II errors: Theorem 3's delta against how often wrong parameters were kept."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from likeset.paper.experiments.evidence import Answer, compare, jointly, misses_fit, power_in_words
from likeset.paper.experiments.names import panel
from likeset.paper.experiments.power import shares
from likeset.paper.experiments.tables import Table

SMALL = 0.1
"""delta at which the promise is tested: parameters so far away that Theorem 3 allows them in a tenth of the runs."""


def keeps_theorem_3(table: Table) -> Iterable[Answer]:
    """Whether parameters that Theorem 3 rules out with probability 1 - delta are kept more often than that."""
    for problem in table.distinct("problem"):
        own = table.where(problem=problem, method="lr-plug-in")
        answers, said, fewest = [], [], 0
        for t in sorted(own.distinct("t")):
            part = own.where(t=t)
            ruled_out = part.at(part["delta"].astype(float) <= SMALL)
            runs = len({int(r) for r in ruled_out["repeat"]}) if len(ruled_out) else 0
            if runs:
                kept = len({int(r) for r in ruled_out.at(ruled_out["kept"].astype(bool))["repeat"]})
                answers.append(misses_fit(kept, runs, SMALL))
                fewest = min(fewest or runs, runs)
                said.append(f"{kept} of {runs} runs at t = {t}")
        if answers:
            kept_in = f"parameters beyond delta = {SMALL:g} kept: {', '.join(said)}"
            yield Answer(panel(problem), jointly(answers), f"{kept_in}; {power_in_words(fewest, SMALL, 'delta')}")


def more_powerful(table: Table) -> Iterable[Answer]:
    """Whether the default keeps wrong parameters less often than w = 1, on average over looks and distances."""
    for problem in table.distinct("problem"):
        means = []
        for method in ("default", "lr-plug-in"):
            own = table.where(problem=problem, method=method)
            means.append({int(r): float(np.mean(run["kept"].astype(float))) for (r,), run in own.groups("repeat")})
        if all(means):
            ratio = compare(*means)
            yield Answer(panel(problem), ratio.below(1.0), f"share of wrong parameters kept, over all looks: {ratio}")


def rows_of(table: Table) -> Iterable[tuple[object, ...]]:
    """(problem, method, t, shares kept at every distance) for the report."""
    for (problem, method), own in table.groups("problem", "method"):
        for t in sorted(own.distinct("t")):
            _, kept = shares(own, t, "kept")
            yield (panel(problem), method, t, *(f"{share:.2f}" for share in kept))
