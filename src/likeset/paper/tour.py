"""A short tour of the engine: a Poisson model watched count by count, sets in the plane, a band over functions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from likeset._typing import Array
from likeset.families import Family, Gaussian, Laplace, Poisson
from likeset.persistence.atomic_file import write_picture
from likeset.sequence import ConfidenceSequence
from likeset.spaces import RKHS, Linear

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
    write_picture(path, figure, dpi=150)
    plt.close(figure)


def draw_sets(seed: int, path: Path) -> None:
    """Sets in the plane at two sample sizes, for Gaussian and Laplace noise: they inherit the likelihood's shape."""
    import matplotlib.pyplot as plt

    from likeset.plots import plot_sets

    truth = np.array([0.6, 0.4])
    families: tuple[tuple[str, Family], ...] = (("Gaussian", Gaussian(0.5)), ("Laplace", Laplace(0.5)))
    figure, axes = plt.subplots(1, 2, figsize=(8.6, 4.2), constrained_layout=True)
    for axis, (name, family) in zip(axes, families, strict=True):
        rng = np.random.default_rng(seed)
        sequence = ConfidenceSequence(family, Linear(dim=2, bound=1.5), alpha=0.1)
        snapshots = []
        for n in (6, 24):
            X = rng.normal(size=(n - sequence.n_observations, 2))
            sequence.update(X, family.sample(X @ truth, rng))
            snapshots.append(sequence.set)
        plot_sets(snapshots, truth=truth, axes=axis).set_title(f"{name} noise", fontsize=10)
    write_picture(path, figure, dpi=150)
    plt.close(figure)


def draw_band(seed: int, path: Path, rounds: int = 60) -> None:
    """A band over functions in an optimistic search for the maximum: the next query is where the band is highest."""
    import matplotlib.pyplot as plt
    from sklearn.gaussian_process.kernels import RBF

    from likeset.plots import plot_band

    domain = np.linspace(0, 1.2, 121)
    truth = -(1.4 - 3 * domain) * np.sin(18 * domain)
    family = Gaussian(0.15)
    space = RKHS(RBF(0.06), bound=4.5, domain=domain)
    sequence = ConfidenceSequence(family, space, alpha=0.1)
    joint = ConfidenceSequence(family, space, alpha=0.1, windows=None)
    rng = np.random.default_rng(seed)
    for _ in range(rounds):
        best = int(np.argmax(sequence.set.upper(domain)))
        sequence.update(domain[best], family.sample(truth[best : best + 1], rng))
    figure, axis = plt.subplots(figsize=(8, 3.8), constrained_layout=True)
    snapshot = sequence.set
    query = float(domain[int(np.argmax(snapshot.upper(domain)))])
    data = (sequence.ledger.x.rows, sequence.ledger.y.rows)
    joint.update(*data)
    edges = np.column_stack(joint.set.interval(domain))
    labels = ["joint set, same data", "_nolegend_"]
    axis.plot(domain, edges, color="0.35", linewidth=1.0, linestyle=(0, (4, 2)), label=labels)
    plot_band(snapshot, domain, data=data, truth=truth, next_query=query, label="window mixture", axes=axis)
    axis.set_title(f"Gaussian noise, squared-exponential kernel, {rounds} optimistic queries", fontsize=10)
    write_picture(path, figure, dpi=150)
    plt.close(figure)
