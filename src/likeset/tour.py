"""A short tour of the engine: a Poisson model watched count by count."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from likeset.families import Poisson
from likeset.sequence import ConfidenceSequence
from likeset.spaces import Linear
from likeset.support.terms import Array

THETA = np.array([1.0, -0.6])
BOUND = 2.0


@dataclass(frozen=True)
class Step:
    """What is known after n counts: interval of each coefficient, and how the truth fares."""

    n: int
    lower: Array
    upper: Array
    log_ratio: float
    covered: bool


def walk(observations: int, alpha: float, seed: int) -> tuple[ConfidenceSequence, Array, Iterator[Step]]:
    """A sequence, the true theta, and a generator that observes one count per step.

    The covariates are chosen adaptively, which ordinary confidence intervals do not survive: each step looks where the
    interval of x'theta is widest.
    """
    sequence = ConfidenceSequence(Poisson(), Linear(dim=2, bound=BOUND), alpha)
    rng = np.random.default_rng(seed)
    angles = np.linspace(0, np.pi, 16, endpoint=False)
    choices = np.column_stack([np.cos(angles), np.sin(angles)])

    def steps() -> Iterator[Step]:
        for n in range(1, observations + 1):
            low, high = sequence.set.interval(choices)
            x = choices[int(np.argmax(high - low))]
            sequence.update(x, Poisson().sample(np.array([x @ THETA]), rng))
            lower, upper = sequence.set.bounding_box()
            yield Step(n, lower, upper, float(sequence.set.log_ratio(THETA)), bool(sequence.set.contains(THETA)))

    return sequence, THETA, steps()


def draw(steps: list[Step], theta: Array, alpha: float, path: Path) -> None:
    """Intervals of each coefficient against the number of counts, with the truth."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    n = [step.n for step in steps]
    figure, axes = plt.subplots(1, len(theta), figsize=(9, 3.4), sharex=True, constrained_layout=True)
    for i, axis in enumerate(axes):
        low, high = [step.lower[i] for step in steps], [step.upper[i] for step in steps]
        axis.fill_between(n, low, high, color="0.82", label=f"plausible at {1 - alpha:.0%}, at all times at once")
        axis.plot(n, low, color="0.25", linewidth=1)
        axis.plot(n, high, color="0.25", linewidth=1)
        axis.axhline(theta[i], color="black", linestyle="--", linewidth=1.2, label="truth")
        axis.set_xscale("log")
        axis.set_xlabel("counts observed")
        axis.set_ylabel(f"theta[{i}]")
    axes[0].legend(frameon=False, fontsize=8, loc="lower right")
    figure.suptitle("Poisson counts, covariates chosen adaptively", fontsize=11)
    figure.savefig(path, dpi=150)
    plt.close(figure)
