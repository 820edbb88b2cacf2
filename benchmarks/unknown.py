"""Where a scale or a shape is unknown: widths with patience and with windows beside it, relative to the joint set."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from time import process_time
from typing import Any

import numpy as np
from rich.progress import Progress

import likeset as ls
from benchmarks.common import ALPHA, Array, Report
from likeset.voices import Voices
from likeset.voices.automatic import automatic_voices

SIZES = (30, 100, 300, 1000)
LEVELS, TOLD = 4, 3000  # of a table as studies show it
ARMS, DIRECTIONS, FIRST_SEED = 40, 10, 95_000
KINDS: list[tuple[str, Callable[[Any], Any], float, float]] = [
    ("Gaussian noise", ls.Gaussian, 0.3, 1.0), ("Laplace noise", ls.Laplace, 0.3, 1.0),
    ("Weibull shape", ls.Weibull, 2.0, 2.0),
]  # fmt: skip


def run(progress: Progress, quick: bool) -> Report:
    """Mean width over random directions, by that of the joint set; milliseconds for the coefficients at the end."""
    sizes, problems = (SIZES[:3], 1) if quick else (SIZES, 2)
    report = Report(
        "Unknown scale or shape: ratios to the joint set's width, and milliseconds for all coefficients",
        [
            ("case", "unknown", ""), ("default", "default", ""), ("n", "n", "d"), ("joint", "joint", ".3f"),
            ("patience", "patience", ".3f"), ("beside", "beside opening windows", ".3f"),
            ("joint_ms", "joint, ms", ".0f"), ("patience_ms", "patience, ms", ".0f"),
        ],
    )  # fmt: skip
    cases = [
        (f"{name}, {f'B = {bound:g}' if bound < np.inf else 'no bound'}, d = {d}", make, value, told, bound, d)
        for name, make, value, told in KINDS
        for d in ((5,) if quick else (2, 5))
        for bound in (told, np.inf)
    ]
    task = progress.add_task("unknown", total=len(cases) * problems)
    for name, make, value, told, bound, d in cases:
        family, space = make(ls.Unknown()), ls.Linear(d, bound)
        chosen, patience = automatic_voices(family, space), ls.Patience()
        kinds: dict[str, Voices | None] = {
            "joint": None, "patience": patience, "beside": patience.beside(ls.OpeningWindows())
        }  # fmt: skip
        default = next((kind for kind, voices in kinds.items() if repr(voices) == repr(chosen)), repr(chosen))
        widths, seconds = {kind: np.zeros(len(sizes)) for kind in kinds}, {kind: np.zeros(len(sizes)) for kind in kinds}
        for number in range(problems):
            rng = np.random.default_rng([FIRST_SEED, d, number])
            arms, asked = (_unit(rng.standard_normal((count, d))) for count in (ARMS, DIRECTIONS))
            theta = 0.8 * told * _unit(rng.standard_normal((1, d)))[0]
            X = arms[rng.integers(ARMS, size=sizes[-1])]
            y = family.known(value).sample(X @ theta, rng)
            for kind, voices in kinds.items():
                seq, seen = ls.ConfidenceSequence(family, space, ALPHA, voices=voices), 0
                for column, n in enumerate(sizes):
                    seq.update(X[seen:n], y[seen:n])
                    seen, start = n, process_time()
                    seq.set.interval(np.eye(d))
                    seconds[kind][column] += (process_time() - start) / problems
                    low, high = seq.set.interval(asked)
                    widths[kind][column] += float((high - low).mean()) / problems
            progress.advance(task)
        for column, n in enumerate(sizes):
            joint = float(widths["joint"][column])
            report.records.append(
                {
                    "case": name, "default": default, "n": n, "joint": joint,
                    "patience": widths["patience"][column] / joint, "beside": widths["beside"][column] / joint,
                    "joint_ms": 1e3 * seconds["joint"][column], "patience_ms": 1e3 * seconds["patience"][column],
                }
            )  # fmt: skip
    report.notes.append(f"{problems} problems a case, seeds from {FIRST_SEED}; rows at random from {ARMS} arms.")
    for name, make, value, _ in KINDS:
        took = [_table_of_levels(make(ls.Unknown()), value, voices) for voices in (None, ls.Patience())]
        report.notes.append(
            f"{name}: intervals of {LEVELS} levels and their differences, and e-values of these, {TOLD} rows: "
            f"{took[0]:.2f} seconds with the joint set, {took[1]:.2f} with patience."
        )
    return report


def _table_of_levels(family: Any, value: float, voices: Voices | None) -> float:
    """CPU seconds for a table of levels by one factor, when kernels have been compiled."""
    rng = np.random.default_rng([FIRST_SEED, LEVELS])
    x = np.eye(LEVELS)[rng.integers(LEVELS, size=TOLD)]
    y = family.known(value).sample(x @ np.linspace(-0.3, 0.3, LEVELS), rng)
    differences = np.array([a - b for a, b in combinations(np.eye(LEVELS), 2)])
    took = 0.0
    for _ in range(2):
        seq = ls.ConfidenceSequence(family, ls.Linear(LEVELS), ALPHA, voices=voices)
        seq.update(x, y)
        start, s = process_time(), seq.set
        s.interval(np.vstack([np.eye(LEVELS), differences]))
        s.evidence(differences, equal=0.0)
        took = process_time() - start
    return took


def _unit(rows: Array) -> Array:
    return rows / np.linalg.norm(rows, axis=1)[:, None]
