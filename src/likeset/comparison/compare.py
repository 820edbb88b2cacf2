"""All applicable sets on the same streams of data: radius, width, coverage and time, side by side."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from likeset._typing import Array
from likeset.arguments import choice, file_path, positive_integer, real_array, seed_number, writing
from likeset.comparison.base import check_model
from likeset.comparison.likelihood import height
from likeset.errors import InvalidArgumentError
from likeset.families.base import Family
from likeset.persistence.atomic_file import write_table
from likeset.predictors.ftrl import FTRL
from likeset.progress import counted
from likeset.sequence import ConfidenceSequence
from likeset.sets import LikelihoodSet
from likeset.spaces.base import Space
from likeset.weights import BiasWeighting

OURS = "likeset"
PAPER = "LR weighted"
JOINT = "likeset, joint"
DESIGNS = ("optimistic", "random")


@dataclass(frozen=True)
class Row:
    """One set in the table; averages are over runs (and over the queries where there are several).

    radius            nats, after the last observation; None where a set has none
    width             mean width of the band at the queries, after the last observation
    always_covered    share of runs in which the set contained the truth after every single observation
    covered_at_end    share of (run, query) pairs whose interval held x'theta* after the last observation
    milliseconds      median CPU time of one observation and an upper bound at every arm
    """

    name: str
    provable: bool
    anytime: bool
    radius: float | None
    width: float
    always_covered: float
    covered_at_end: float
    milliseconds: float


@dataclass(frozen=True)
class Comparisons:
    """Everything measured; arrays have axes (set, run, checkpoint[, query])."""

    alpha: float
    names: tuple[str, ...]
    provable: tuple[bool, ...]
    anytime: tuple[bool, ...]
    checkpoints: Array
    queries: Array
    radii: Array
    widths: Array
    covered: Array  # (set, run, query): the interval at the end
    always: Array  # (set, run): the set, at every step
    seconds: Array

    def rows(self) -> list[Row]:
        """The table."""
        out = []
        for i, name in enumerate(self.names):
            radius = self.radii[i, :, -1]
            out.append(
                Row(
                    name,
                    self.provable[i],
                    self.anytime[i],
                    None if np.isnan(radius).all() else float(np.nanmean(radius)),
                    float(self.mean_widths()[i, -1]),
                    float(self.always[i].mean()),
                    float(self.covered[i].mean()),
                    1e3 * float(np.median(self.seconds[i])),
                )
            )
        return out

    def mean_widths(self) -> Array:
        """Mean over runs and queries, shape (set, checkpoint); NaN (an empty set) is left out."""
        with np.errstate(invalid="ignore"):
            known = ~np.isnan(self.widths)
            total = np.where(known, self.widths, 0.0).sum(axis=(1, 3))
            return np.asarray(total / known.sum(axis=(1, 3)))

    def write_csv(self, path: str | Path) -> None:
        """One line per set, checkpoint and query, averaged over runs, with the set's summary beside it."""
        with writing(file_path("path", path)) as target:
            write_table(target, self._lines())

    def _lines(self) -> Iterator[list[Any]]:
        yield [
            "set", "provable", "anytime", "observations", "x", "width", "radius_nats", "always_covered",
            "covered_at_end", "ms_per_step",
        ]  # fmt: skip
        for i, row in enumerate(self.rows()):
            for c, n in enumerate(self.checkpoints):
                radius = self.radii[i, :, c]
                shown = "" if np.isnan(radius).all() else f"{np.nanmean(radius):.6g}"
                for q, x in enumerate(self.queries):
                    width = self.widths[i, :, c, q]
                    mean = float(np.mean(width[~np.isnan(width)])) if not np.isnan(width).all() else np.nan
                    yield [
                        row.name, row.provable, row.anytime, int(n), " ".join(f"{v:.6g}" for v in x), f"{mean:.6g}",
                        shown, f"{row.always_covered:.4g}", f"{row.covered_at_end:.4g}", f"{row.milliseconds:.4g}",
                    ]  # fmt: skip


def contenders(family: Family, space: Space, alpha: float) -> dict[str, Any]:
    """The library's default set, the paper's weighted ratio, and every comparison set that applies; all fresh."""
    from likeset.comparison import applicable

    ours = {
        OURS: ConfidenceSequence(family, space, alpha),
        PAPER: ConfidenceSequence(family, space, alpha, FTRL(), BiasWeighting(), windows=None),
    }
    if ours[OURS].windows is not None:
        ours[JOINT] = ConfidenceSequence(family, space, alpha, windows=None)
    return ours | applicable(family, space, alpha)


def compare(
    family: Family,
    space: Space,
    truth: Any,
    arms: Any,
    *,
    queries: Any = None,
    alpha: float = 0.05,
    rounds: int = 200,
    repeats: int = 20,
    seed: int = 0,
    design: str = "optimistic",
    sets: Callable[[], dict[str, Any]] | None = None,
    on_round: Callable[[], None] | None = None,
) -> Comparisons:
    """Feed the same streams to all sets and measure them.

    truth     theta* (Linear) or the values of f* on the domain (RKHS); or a function of a Generator that draws one for
              every run
    arms      rows among which the covariates are chosen: at the highest upper bound of the first set (``design=
              "optimistic"``, adaptive) or at random
    queries   rows x at which the width is measured; default: up to five of the arms, evenly spaced
    sets      makes the contenders afresh for every run, by name; default :func:`contenders`. It sees no data,
              so nothing can be tuned on them
    on_round  called after every round, for progress bars

    >>> import likeset as ls
    >>> family, space = ls.Gaussian(0.5), ls.Linear(dim=2, bound=1.0)
    >>> result = compare(family, space, [0.4, -0.3], np.eye(2), rounds=20, repeats=2)
    >>> widths = {row.name: row.width for row in result.rows()}
    >>> widths["AMM"] < widths["AY 2011"]
    True
    """
    rounds, repeats = positive_integer("rounds", rounds), positive_integer("repeats", repeats)
    check_model(family, space, alpha)
    choice("design", design, DESIGNS)
    seed = seed_number("seed", seed)
    for name, given in {"sets": sets, "on_round": on_round}.items():
        if given is not None and not callable(given):
            raise InvalidArgumentError(name, given, "is not callable", "pass a function, or leave it out")
    arms = space.covariates(arms, "arms")
    if queries is None:
        queries = arms[np.unique(np.linspace(0, len(arms) - 1, 5).astype(int))]
    queries = space.covariates(queries, "queries")
    make = sets if sets is not None else lambda: contenders(family, space, alpha)
    names = tuple(make())
    checkpoints = np.unique(np.geomspace(1, rounds, 24).astype(int))
    shape = (len(names), repeats, len(checkpoints))
    radii, widths, seconds = np.full(shape, np.nan), np.full((*shape, len(queries)), np.nan), np.zeros(shape)
    covered = np.zeros((len(names), repeats, len(queries)), dtype=bool)
    always = np.ones((len(names), repeats), dtype=bool)
    for run in counted(range(repeats), repeats, "comparing") if on_round is None else range(repeats):
        rng = np.random.default_rng([seed, run])
        theta = _truth(truth, space, rng)
        z_arms, z_queries = linear_predictors(space, theta, arms), linear_predictors(space, theta, queries)
        running = list(make().values())
        for n in range(1, rounds + 1):
            arm = _next_arm(running[0].set, arms, design, rng)
            y = family.sample(z_arms[arm : arm + 1], rng)
            place = int(np.searchsorted(checkpoints, n))
            measured = checkpoints[place] == n
            for i, sequence in enumerate(running):
                start = time.process_time()
                sequence.update(arms[arm], y)
                s = sequence.set
                if measured and not s.is_empty:
                    s.upper(arms)
                    seconds[i, run, place] = time.process_time() - start
                    low, high = s.interval(queries)
                    widths[i, run, place] = high - low
                    covered[i, run] = (low <= z_queries) & (z_queries <= high)
                    radius = s.radius if hasattr(s, "radius") else height(s) if type(s) is LikelihoodSet else None
                    radii[i, run, place] = np.nan if radius is None else radius
                elif measured:
                    covered[i, run] = False
                always[i, run] &= bool(s.contains(theta))
            if on_round is not None:
                on_round()
    kinds = [(getattr(s, "provable", True), getattr(s, "anytime", True)) for s in make().values()]
    return Comparisons(
        alpha, names, tuple(p for p, _ in kinds), tuple(a for _, a in kinds), checkpoints.astype(np.float64), queries,
        radii, widths, covered, always, seconds,
    )  # fmt: skip


def _truth(truth: Any, space: Space, rng: np.random.Generator) -> Array:
    """theta*, drawn or given, as one vector that fits the space."""
    theta = real_array("truth", truth(rng) if callable(truth) else truth)
    if len(space.start().norms(theta)) != 1:
        raise InvalidArgumentError(
            "truth", truth, "is not one parameter", "pass one theta*, or a function that draws it"
        )
    return theta.reshape(-1)


def linear_predictors(space: Space, theta: Array, X: Array) -> Array:
    """z = x'theta, or f(x) from the values on the domain."""
    if hasattr(space, "places"):
        return np.asarray(theta[space.places(X)])
    return np.asarray(X @ theta)


def _next_arm(s: Any, arms: Array, design: str, rng: np.random.Generator) -> int:
    ties = rng.uniform(size=len(arms))
    if design == "random" or s.is_empty:
        return int(np.argmax(ties))
    return int(np.argmax(s.upper(arms) + 1e-6 * ties))


def formatted(rows: Sequence[Row]) -> list[tuple[str, ...]]:
    """The table as text, narrowest provable set first, then what is not provable."""
    ordered = sorted(rows, key=lambda row: (not row.provable, row.width))
    return [
        (
            row.name,
            "yes" if row.provable else "no",
            "-" if row.radius is None else f"{row.radius:.2f}",
            f"{row.width:.3f}",
            f"{row.always_covered:.0%}",
            f"{row.covered_at_end:.0%}",
            f"{row.milliseconds:.2f}",
        )
        for row in ordered
    ]
