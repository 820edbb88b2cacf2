"""Widths of intervals for inference: our defaults against every provable set of ours and the rivals that come near.

One record is fed to one sequence, with a class for every observation; sets that differ in their voices alone are made
from that record, so that they are compared on the same data and forecasts. Weighted sets and competing sets are fed the
same rows. Width: mean of upper - lower over random directions (linear models) or over the domain (functions), and over
problems drawn with seeds on which no choice was made.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.progress import Progress

import likeset as ls
from benchmarks.common import ALPHA, Array, Report
from likeset._solver.problem import VoiceTable
from likeset.evidence.evidence import Evidence
from likeset.voices import Voices
from likeset.voices.automatic import automatic_voices
from likeset.voices.net import alike, net_of_directions

ARMS, DIRECTIONS = 40, 10
FIRST_SEED = 90_000


@dataclass(frozen=True)
class Case:
    """A model: family, bound, and linear dimension or the dimension of a function's domain."""

    name: str
    family: Any
    bound: float
    dim: int
    functions: bool = False
    told: bool = True  # the bound; it limits the truth in any case

    @property
    def patience(self) -> ls.Patience:
        """With the ratio of the sets that will be made."""
        return ls.Patience(ratio=4.0 if self.functions else 2.0)

    @property
    def classes(self) -> Voices:
        """What gives every observation its class, for all the sets that will be made."""
        return self.patience if self.functions else self.patience.beside(self.opening)

    @property
    def opening(self) -> ls.OpeningWindows:
        """As the default has them: classes count the open windows that hold a covariate."""
        return ls.OpeningWindows(correlation=alike(self.dim)) if self.told else ls.OpeningWindows()

    def problem(self, rng: np.random.Generator) -> tuple[Any, Array, Array, Array]:
        """Space, arms, z of the truth at the arms, and what is asked."""
        if not self.functions:
            arms, asked = (_unit(rng.standard_normal((count, self.dim))) for count in (ARMS, DIRECTIONS))
            theta = _unit(rng.standard_normal((1, self.dim)))[0] * 0.8 * self.bound
            space = ls.Linear(self.dim, self.bound) if self.told else ls.Linear(self.dim)
            return space, arms, arms @ theta, asked
        from sklearn.gaussian_process.kernels import RBF

        side = np.linspace(0.0, 1.0, 40 if self.dim == 1 else 8)
        domain = side[:, None] if self.dim == 1 else np.stack(np.meshgrid(side, side), -1).reshape(-1, 2)
        space = ls.RKHS(RBF(0.15 if self.dim == 1 else 0.3), self.bound, domain=domain)
        gram = space.gram(domain, domain)
        weights = rng.standard_normal(len(domain))
        values = gram @ weights
        values *= 0.8 * self.bound / math.sqrt(float(weights @ gram @ weights))
        return space, domain, values, domain


def cases(quick: bool) -> Iterator[Case]:
    """The matrix."""
    linear = [
        *((f"Gaussian {s:g}", ls.Gaussian(s), 1.0) for s in (0.1, 0.3, 1.0)),
        *((f"Laplace {s:g}", ls.Laplace(s), 1.0) for s in (0.1, 0.3, 1.0)),
        *((f"Poisson, B = {b:g}", ls.Poisson(), b) for b in (1.0, 2.0, 3.0)),
        *((f"Bernoulli, B = {b:g}", ls.Bernoulli(), b) for b in (1.0, 3.0)),
        *((f"Weibull 2, B = {b:g}", ls.Weibull(2.0), b) for b in (1.0, 2.0)),
    ]
    for name, family, bound in linear[:: 4 if quick else 1]:
        for dim in (5,) if quick else (2, 5, 15):
            yield Case(f"{name}, d = {dim}", family, bound, dim)
    for name, family, bound in (("Gaussian 0.15", ls.Gaussian(0.15), 2.0), ("Poisson", ls.Poisson(), 2.0)):
        for dim in (1,) if quick else (1, 2):
            yield Case(f"{name}, functions in {dim}-D", family, bound, dim, functions=True)


def unbounded(quick: bool) -> Iterator[Case]:
    """The same where nobody says how large theta may be."""
    linear = [
        ("Gaussian 0.1", ls.Gaussian(0.1), 1.0), ("Gaussian 0.3", ls.Gaussian(0.3), 1.0),
        ("Laplace 0.1", ls.Laplace(0.1), 1.0), ("Poisson", ls.Poisson(), 2.0), ("Bernoulli", ls.Bernoulli(), 2.0),
        ("Weibull 2", ls.Weibull(2.0), 2.0),
    ]  # fmt: skip
    for name, family, size in linear[:: 3 if quick else 1]:
        for dim in (5,) if quick else (2, 5):
            yield Case(f"{name}, no bound, d = {dim}", family, size, dim, told=False)


def with_voices(seq: ls.ConfidenceSequence, voices: Voices | None) -> ls.LikelihoodSet:
    """The set that the recorded rows, forecasts and classes give with other voices."""
    running = seq._running
    ledger, basis = running.ledger, running.basis
    groups, gains = ledger.groups(basis.dimension), ledger.gains.copy()
    table = VoiceTable.joint(len(gains))
    if voices is not None:
        membership = voices.start(seq.space)
        labels = {group: label for (_, label), group in ledger._group_of.items()}
        for group, owner in enumerate(groups.owners):
            membership = membership.including(groups.covariates[owner], labels[group])
        table = membership.table
    evidence = Evidence(groups, ledger.terms(), gains, table, -math.log(seq.alpha), seq.space.bound)
    return ls.LikelihoodSet(seq.space, basis, evidence, seq.alpha, seq.family.convex, len(ledger))


def candidates(case: Case, space: Any, arms: Array) -> dict[str, Voices | None]:
    """Voices of ours, announced arms or not."""
    patience = case.patience
    found: dict[str, Voices | None] = {
        "joint": None,
        "patience": patience,
        "default": automatic_voices(case.family, space),
        "default, arms": automatic_voices(case.family, space, arms, "inference"),
        "optimism": automatic_voices(case.family, space, arms, "optimism"),
    }
    if not case.told:
        return found
    if case.functions:
        windows = ls.Windows.covering(space)
        found["windows"] = windows
        found["within"] = ls.Patience(3, 4.0, 0.0).within(windows)
        found["within + joint"] = ls.Patience(1, 4.0, 0.0).beside(ls.Patience(3, 4.0, 0.0).within(windows), 0.2)
    else:
        windows = ls.Windows.covering(space, arms, correlation=0.4)
        found["windows"] = ls.Windows.covering(space, arms, correlation=0.4, joint_share=0.5)
        found["beside"] = patience.beside(windows)
        found["opening"] = patience.beside(case.opening)
        found["net"] = patience.beside(ls.Windows(net_of_directions(case.dim), alike(case.dim)))
    return found


def rivals(case: Case, space: Any) -> dict[str, Callable[[], Any]]:
    """Weighted sets of ours and competing ones."""
    kinds = ("bound", "exact", "projection")
    found: dict[str, Callable[[], Any]] = {
        f"weights, {kind}": lambda kind=kind: ls.ConfidenceSequence(  # type: ignore[misc]
            case.family, space, ALPHA, weighting=ls.BiasWeighting(kind), voices=None
        )
        for kind in kinds
    }
    if isinstance(case.family, ls.Gaussian):
        found["self-normalised"] = lambda: ls.comparison.SelfNormalised(space, ALPHA, case.family.sigma)
    return found


def rows_of(case: Case, space: Any, arms: Array, z: Array, n: int, design: str, rng: np.random.Generator) -> Any:
    """n covariates and outcomes: at random, or chosen by certified optimism."""
    if design == "i.i.d.":
        chosen = rng.integers(len(arms), size=n)
        return arms[chosen], case.family.sample(z[chosen], rng)
    policy = ls.UCB(ls.ConfidenceSequence(case.family, space, ALPHA), arms, rng=rng)
    X, Y = [], []
    for _ in range(n):
        i = policy.ask()
        y = case.family.sample(z[i : i + 1], rng)[0]
        policy.tell(i, y)
        X.append(arms[i])
        Y.append(y)
    return np.array(X), np.array(Y)


def measured(case: Case, sizes: tuple[int, ...], design: str, seed: int, with_rivals: bool) -> dict[str, list[float]]:
    """Mean widths of every set at every size, for one problem."""
    rng = np.random.default_rng([FIRST_SEED, seed])
    space, arms, z, asked = case.problem(rng)
    X, Y = rows_of(case, space, arms, z, sizes[-1], design, rng)
    seq = ls.ConfidenceSequence(case.family, space, ALPHA, voices=case.classes)
    others = rivals(case, space) if with_rivals else {}
    running = {name: make() for name, make in others.items()}
    voices = candidates(case, space, arms)
    widths: dict[str, list[float]] = {name: [] for name in (*voices, *running)}
    done = 0
    for n in sizes:
        for fed in (seq, *running.values()):
            fed.update(X[done:n], Y[done:n])
        done = n
        for name in widths:
            s = running[name].set if name in running else with_voices(seq, voices[name])
            low, high = s.interval(asked)
            widths[name].append(float((high - low).mean()))
    return widths


@dataclass(frozen=True)
class Cells:
    """One case at several sizes, fed by one design."""

    case: Case
    sizes: tuple[int, ...]
    design: str
    problems: int
    with_rivals: bool

    @property
    def name(self) -> str:
        """As cells are chosen by."""
        return f"{self.case.name}, {self.design}, n = {self.sizes[-1]}"


def matrix(quick: bool) -> Iterator[Cells]:
    """Every case with rows at random; some with rows chosen by UCB; some that go on to 10,000 rows."""
    sizes, problems = ((30, 100, 300), 3) if quick else ((30, 100, 300, 1000), 10)
    for case in cases(quick):
        yield Cells(case, sizes, "i.i.d.", problems, not case.functions)
    few = [
        Case("Gaussian 0.3, d = 5", ls.Gaussian(0.3), 1.0, 5),
        Case("Poisson, B = 2, d = 5", ls.Poisson(), 2.0, 5),
        Case("Bernoulli, B = 3, d = 5", ls.Bernoulli(), 3.0, 5),
    ]
    low_noise = [
        Case("Gaussian 0.1, d = 5", ls.Gaussian(0.1), 1.0, 5),
        Case("Gaussian 0.1, d = 15", ls.Gaussian(0.1), 1.0, 15),
        Case("Laplace 0.1, d = 5", ls.Laplace(0.1), 1.0, 5),
    ]
    for case in few[:1] if quick else [*low_noise, *few]:
        yield Cells(case, sizes, "UCB", problems, with_rivals=True)
    for case in few[: 0 if quick else None]:
        yield Cells(case, (10_000,), "i.i.d.", problems, with_rivals=False)
    for case in unbounded(quick):
        yield Cells(case, sizes, "i.i.d.", problems, with_rivals=False)


def run(progress: Progress, quick: bool, words: Sequence[str] = ()) -> Report:
    """The matrix of widths, or its cells whose names contain one of the words."""
    chosen = [cells for cells in matrix(quick) if not words or any(word in cells.name for word in words)]
    if not chosen:
        raise ValueError(f"no cell's name has one of {list(words)}: they are like {next(matrix(quick)).name!r}")
    report = Report(
        "Widths for inference: ratios to the joint set, and of the default to the best",
        [
            ("case", "case", ""), ("design", "design", ""), ("n", "n", "d"), ("joint", "joint", ".3f"),
            ("default", "default", ".3f"), ("arms", "arms announced", ".3f"), ("best", "best of ours", ".3f"),
            ("which", "which", ""), ("rival", "best rival", ".3f"), ("rival_name", "which", ""),
        ],
    )  # fmt: skip
    task = progress.add_task("widths", total=sum(cells.problems for cells in chosen))
    for cells in chosen:
        found: list[dict[str, list[float]]] = []
        for seed in range(cells.problems):
            found.append(measured(cells.case, cells.sizes, cells.design, seed, cells.with_rivals))
            progress.advance(task)
        means = {name: np.mean([f[name] for f in found], axis=0) for name in found[0]}
        ours = {k: v for k, v in means.items() if not k.startswith(("weights", "self"))}
        theirs = {k: v for k, v in means.items() if k not in ours}
        for i, n in enumerate(cells.sizes):
            joint = means["joint"][i]
            best = min(ours, key=lambda name: ours[name][i])
            rival = min(theirs, key=lambda name: theirs[name][i]) if theirs else None
            report.records.append(
                {
                    "case": cells.case.name, "design": cells.design, "n": n, "joint": joint,
                    "default": means["default"][i] / joint, "arms": means["default, arms"][i] / joint,
                    "best": ours[best][i] / joint, "which": best,
                    "rival": theirs[rival][i] / joint if rival else None, "rival_name": rival or "",
                    "all": {name: float(v[i]) for name, v in means.items()},
                }
            )  # fmt: skip
    count = sorted({cells.problems for cells in chosen})
    report.notes.append(f"{count} problems a cell, seeds from {FIRST_SEED}; alpha = {ALPHA:g}.")
    return report


def _unit(rows: Array) -> Array:
    return rows / np.linalg.norm(rows, axis=1)[:, None]
