"""Answers to claims about weights in low noise (section 2.2): R_t and the weights themselves, over noise and time."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from likeset.paper.experiments.evidence import (
    FEWEST,
    NO,
    UNCLEAR,
    YES,
    Answer,
    Ratio,
    by_repeat,
    compare,
    middle,
)
from likeset.paper.experiments.methods import PAPER, label_of
from likeset.paper.experiments.names import counted, panel
from likeset.paper.experiments.tables import Table
from likeset.paper.experiments.weights_study import SIGMAS

KINDS = {"function": "function", "linear": "linear, d = 5"}
FUNCTIONS, LINEAR = (tuple(f"{kind}-{sigma:g}" for sigma in SIGMAS) for kind in KINDS)
OTHERS = ("linear-laplace", "linear-poisson")

GROUPS = {"functions": FUNCTIONS, "linear models": LINEAR, **{panel(problem): (problem,) for problem in OTHERS}}

BLOWN_UP = 10.0
STEADY = 2.0
_NEAR_ONE = 0.9
_RISING = 1.02


def grows_as_noise_falls(method: str, factor: float) -> Callable[[Table], Iterable[Answer]]:
    """Whether R_t at the smallest noise is more than ``factor`` times that at the largest."""
    return _over_noise(method, lambda ratio: ratio.above(factor))


def independent_of_noise(method: str, factor: float) -> Callable[[Table], Iterable[Answer]]:
    """Whether R_t at the smallest and the largest noise agree up to a factor."""
    return _over_noise(method, lambda ratio: ratio.within(factor))


def _over_noise(method: str, decide: Callable[[Ratio], str]) -> Callable[[Table], Iterable[Answer]]:
    def answer(table: Table) -> Iterable[Answer]:
        for kind, name in KINDS.items():
            radii = [by_repeat(table, f"{kind}-{sigma:g}", method, "radius") for sigma in SIGMAS]
            if not all(radii):
                continue
            medians = [middle(values) for values in radii]
            steps = ", ".join(f"{m:,.1f}" for m in medians)
            detail = f"{label_of(method)}: {steps} nats at sigma {', '.join(f'{s:g}' for s in SIGMAS)}"
            if min(medians[0], medians[-1]) <= 0:  # a ratio of numbers around zero says nothing
                yield Answer(name, UNCLEAR, detail)
            else:
                ratio = compare(radii[-1], radii[0])
                yield Answer(name, decide(ratio), f"{detail}; last against first: {ratio}")

    return answer


def weights_approach_one(table: Table) -> Iterable[Answer]:
    """Whether the weights of the last tenth are near one; those that still rise may yet get there."""
    for name, problems in GROUPS.items():
        for method in PAPER:
            before, last, fewest = np.inf, np.inf, np.inf
            times: list[int] = []
            for problem in problems:
                own = table.where(problem=problem, method=method)
                times = sorted(own.distinct("t"))[-2:] or times
                weights = [by_repeat(table, problem, method, "weight", t) for t in times if len(own)]
                if len(weights) == 2:
                    before, last = min(before, middle(weights[0])), min(last, middle(weights[1]))
                    fewest = min(fewest, len(weights[1]))
            if not np.isfinite(last):
                continue
            holds = YES if last >= _NEAR_ONE else UNCLEAR if last > _RISING * before else NO
            few = f"; {counted(int(fewest), 'repeat')}, too few to decide" if fewest < FEWEST else ""
            detail = (
                f"mean weight {before:.2f} at t = {times[0]}, {last:.2f} at t = {times[1]}, the least over problems"
            )
            yield Answer(f"{name} ({method.removeprefix('lr-')})", UNCLEAR if few else holds, detail + few)
