"""Files of every kind, as a release wrote them, with the answers it gave: ``python tests/make_files.py FOLDER``.

``tests/data/0.1.0`` was written by this script at release 0.1.0 (format version 2) and is never written again: later
releases must load those files and go on with the same numbers. A release that changes the format adds a folder of its
own. Covariates come in random order, some of them again and again.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import RBF, Matern

import likeset as ls
from likeset import checks

ROWS, LATER = 14, 4


class Remembering:
    """A user's own forecaster: the mean so far, not told how to save itself."""

    def __init__(self, family: Any) -> None:
        self.family, self.total, self.n = family, 0.0, 0

    def forecast(self, phi: Any) -> Any:
        return ls.PlugIn(self.family, np.log((self.total + 1) / (self.n + 1)))

    def observe(self, phi: Any, y: Any) -> None:
        self.total += float(y)
        self.n += 1


class Stated(Remembering):
    """The same with ``state`` and ``restore``."""

    def state(self) -> dict[str, Any]:
        return {"sums": np.array([self.total, self.n])}

    def restore(self, state: dict[str, Any]) -> None:
        self.total, self.n = float(state["sums"][0]), int(state["sums"][1])


def logistic() -> Any:
    """A user's own family."""
    return ls.CustomFamily(
        lambda y, z: np.abs(y - z) + 2 * np.log1p(np.exp(-np.abs(y - z))), support="real", convex=True, name="Logistic"
    )


def own_pieces(name: str) -> dict[str, Any]:
    """What ``load`` must be given again."""
    if name == "linear-own-family":
        return {"family": logistic()}
    if name == "linear-own-forecaster":
        return {"predictor": Remembering(ls.Poisson())}
    if name == "linear-own-state":
        return {"predictor": Stated(ls.Poisson())}
    if name == "rkhs-own-kernel":
        return {"space": own_kernel_space()}
    return {}


def own_kernel_space() -> Any:
    """An RKHS whose kernel is a plain function."""
    return ls.RKHS(lambda X, Y: np.exp(-3.0 * np.abs(X - Y.T)), bound=2.0)


def linear(family: Any, predictor: Any = None, weighting: Any = None, bound: float = 2.0, windows: Any = None) -> Any:
    """A sequence in three dimensions, and a place to draw covariates from."""
    seq = ls.ConfidenceSequence(family, ls.Linear(3, bound), 0.1, predictor, weighting, windows)
    arms = np.random.default_rng(3).normal(size=(9, 3)).round(3)
    return seq, arms, arms @ [0.2, -0.1, 0.15]


def rkhs(family: Any, kernel: Any = None, predictor: Any = None, domain: bool = True, **options: Any) -> Any:
    """A sequence of functions on the line."""
    points = np.linspace(0.0, 1.0, 11)[:, None].round(3)
    space = ls.RKHS(kernel or RBF(0.15), bound=2.0, domain=points if domain else None)
    seq = ls.ConfidenceSequence(family, space, 0.1, predictor, **options)
    return seq, points, 0.6 * np.sin(5 * points[:, 0])


def cases() -> dict[str, Callable[[], Any]]:
    """One sequence per file."""
    made: dict[str, Callable[[], Any]] = {}
    for family in checks.built_in_families():
        for predictor in checks.built_in_predictors():
            if checks.applicable(predictor, family):
                predictor = ls.Fixed([0.1, 0.2, 0.3]) if isinstance(predictor, ls.Fixed) else predictor
                name = f"linear-{type(family).__name__}-{type(predictor).__name__}"
                made[name] = lambda f=family, p=predictor: linear(f, p)
    for weighting in checks.built_in_weightings():
        if isinstance(weighting, ls.BiasWeighting):
            made[f"linear-weights-{weighting.estimate}"] = lambda w=weighting: linear(ls.Poisson(), None, w)
    arms = linear(ls.Poisson())[1]
    masks = [[i % 2 == 0 for i in range(9)], [i < 4 for i in range(9)]]
    points = rkhs(ls.Gaussian(0.3))[1]
    made |= {
        "linear-unbounded": lambda: linear(ls.Gaussian(0.7), bound=np.inf),
        "linear-windows": lambda: linear(ls.Gaussian(0.7), windows=ls.Windows(arms[:3], joint_share=0.3)),
        "linear-masks": lambda: linear(ls.Bernoulli(), windows=ls.Windows.from_masks(arms, masks, [0.3, 0.7])),
        "linear-precisions": lambda: linear(ls.Poisson(), ls.Mixture([0.5, 2.0])),
        "linear-nested": lambda: linear(
            ls.Laplace(0.8), ls.Aggregate(ls.Aggregate(ls.FTRL(), ls.Mixture()), ls.FTRL(4.0))
        ),
        "linear-empty": lambda: linear(ls.Laplace(0.8)),
        "linear-own-family": lambda: linear(logistic()),
        "linear-own-forecaster": lambda: linear(ls.Poisson(), Remembering(ls.Poisson())),
        "linear-own-state": lambda: linear(ls.Poisson(), Stated(ls.Poisson())),
        "rkhs-domain": lambda: rkhs(ls.Gaussian(0.3), windows=None),
        "rkhs-windows": lambda: rkhs(ls.Gaussian(0.3)),
        "rkhs-windows-joint": lambda: rkhs(ls.Bernoulli(), windows=ls.Windows(points[::3], joint_share=0.5)),
        "rkhs-poisson-ftrl": lambda: rkhs(ls.Poisson(), predictor=ls.FTRL(0.5), windows=None),
        "rkhs-laplace": lambda: rkhs(ls.Laplace(0.4), Matern(0.3, nu=1.5), windows=None),
        "rkhs-aggregate-weights": lambda: rkhs(
            ls.Bernoulli(),
            Matern(0.3, nu=2.5),
            ls.Aggregate(ls.FTRL(), ls.Mixture()),
            weighting=ls.BiasWeighting(),
            windows=None,
        ),
        "rkhs-binomial-vaw": lambda: rkhs(ls.Binomial(4), RBF(0.3) + 0.5 * Matern(0.2), ls.VAW(), windows=None),
        "rkhs-no-domain": lambda: rkhs(ls.Gaussian(0.3), Matern(0.3, nu=2.5), domain=False),
        "rkhs-no-domain-poisson": lambda: rkhs(ls.Poisson(), Matern(0.3, nu=2.5), domain=False),
        "rkhs-own-kernel": lambda: _with_own_kernel(),
        "rkhs-empty": lambda: rkhs(ls.Poisson()),
    }
    return made


def _with_own_kernel() -> Any:
    _, points, z = rkhs(ls.Gaussian(0.3), domain=False)
    return ls.ConfidenceSequence(ls.Gaussian(0.3), own_kernel_space(), 0.1), points, z


def observed(name: str, arms: Any, z: Any, family: Any) -> tuple[Any, Any, Any, Any]:
    """Covariates and observations before and after saving."""
    rng = np.random.default_rng(sum(map(ord, name)))
    rows = rng.integers(len(arms), size=ROWS + LATER)
    rows[:7] = rng.permutation(len(arms))[:7]  # many distinct ones first, in random order; later ones repeat, or not
    y = family.sample(z[rows], rng)
    if family.observation_shape:
        y[::3, 1] = 0.0  # censored
    n = 0 if name.endswith("-empty") else ROWS
    return arms[rows[:n]], y[:n], arms[rows[n:]][:LATER], y[n:][:LATER]


def answers(seq: Any, arms: Any) -> dict[str, Any]:
    """What a set says about some covariates and parameters."""
    s = seq.set
    said = {"log_q": seq.ledger.log_q.rows.tolist(), "weights": seq.ledger.weights.rows.tolist()}
    if isinstance(seq.space, ls.Linear):
        said["log_ratio"] = [float(s.log_ratio(t)) for t in ([0.0, 0.0, 0.0], [0.2, -0.1, 0.15], [-0.5, 0.4, 0.3])]
    elif seq.space.domain is not None:
        x = seq.space.domain[:, 0]
        gram = seq.space.gram(seq.space.domain, seq.space.domain)
        said["log_ratio"] = [float(s.log_ratio(v)) for v in (0 * x, 0.4 * gram[3], 0.3 * gram[5] - 0.2 * gram[9])]
    said["upper"] = s.upper(arms[:3]).tolist()
    said["lower"] = s.lower(arms[:3]).tolist()
    return said


def main(folder: Path) -> None:
    """Write every file and the answers."""
    folder.mkdir(parents=True, exist_ok=True)
    said: dict[str, Any] = {}
    for name, make in cases().items():
        seq, arms, z = make()
        x, y, later_x, later_y = observed(name, arms, z, seq.family)
        if len(x):
            seq.update(x, y)
        seq.save(folder / f"{name}.likeset")
        before = answers(seq, arms)
        seq.update(later_x, later_y)
        later = {"x": later_x.tolist(), "y": later_y.tolist(), **answers(seq, arms)}
        later |= {key: later[key][len(x) :] for key in ("log_q", "weights")}
        said[name] = {"arms": arms[:3].tolist(), "saved": before, "continued": later}
    lines = [f"{json.dumps(name)}: {json.dumps(answer)}" for name, answer in said.items()]
    (folder / "answers.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
