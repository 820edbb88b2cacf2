"""The methods compared: how each is built and drawn. A new method is one line in ``LIKELIHOOD_RATIO``.

The likelihood-ratio sets are built here; the competing ones come from :func:`likeset.comparison.applicable`, which
knows where each applies. Dashed = heuristic, solid = provable, as in the paper; markers keep the lines apart in grey.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from likeset.comparison import (
    COMPARISONS,
    AbbasiYadkori,
    Heuristic,
    LaplaceApproximation,
    MutnyKrause,
    NeiswangerRamdas,
    applicable,
)
from likeset.families import Gaussian, Laplace
from likeset.families.base import Family
from likeset.paper.experiments.one_sided import OneSidedWeights
from likeset.predictors import FTRL, Mixture
from likeset.sequence import ConfidenceSequence
from likeset.spaces import RKHS
from likeset.spaces.base import Space
from likeset.weights import BiasWeighting

Builder = Callable[[Family, Space, float], Any]

OPTIMISM, BELIEF, WIDEST, SOONEST = "optimism", "belief", "widest", "soonest"
"""Choice of arms: the highest bound; what the predictor believes best; and two rules of ``Elimination``."""


@dataclass(frozen=True)
class Method:
    """A confidence sequence in the comparison; ``heavy`` lines are drawn bold, with quartiles."""

    name: str
    label: str
    colour: str
    marker: str
    build: Builder
    provable: bool = True
    heavy: bool = False
    policy: str = OPTIMISM
    """How arms are chosen with it."""


RIVAL_PENALTY = 1.0
"""lambda of the sets that the paper compares with: its table says 1, which serves them best."""


def penalty(space: Space) -> float:
    """lambda of the paper's own sets: 1/B, as its text says (its table says 1), which serves them best."""
    return 1.0 / space.bound


def _plug_in(family: Family, space: Space, alpha: float) -> ConfidenceSequence:
    return ConfidenceSequence(family, space, alpha, predictor=FTRL(penalty(space)), windows=None)


def _weighted(estimate: str) -> Builder:
    def build(family: Family, space: Space, alpha: float) -> ConfidenceSequence:
        weighting = BiasWeighting(estimate, penalty(space))
        return ConfidenceSequence(
            family, space, alpha, predictor=FTRL(penalty(space)), weighting=weighting, windows=None
        )

    return build


def _mixture(family: Family, space: Space, alpha: float) -> ConfidenceSequence:
    return ConfidenceSequence(family, space, alpha, predictor=Mixture(), windows=None, alarm=False)


def _default(family: Family, space: Space, alpha: float) -> ConfidenceSequence:
    """Without the alarm: the paper's sets have none, and its models are right by construction."""
    return ConfidenceSequence(family, space, alpha, alarm=False)


# As in the paper's figures: its method is black, the same with w = 1 grey, the heuristic orange.
LIKELIHOOD_RATIO: dict[str, Method] = {
    method.name: method
    for method in (
        Method("default", "likeset default", "#d55e00", "", _default, heavy=True),
        Method("lr-mixture", "LR hyper-mixture", "#56777f", "D", _mixture),
        Method("lr-plug-in", "LR (FTRL), w = 1", "#999999", "p", _plug_in, heavy=True),
        Method("lr-bound", "LR weighted: bound (paper)", "#000000", "o", _weighted("bound"), heavy=True),
        Method("lr-exact", "LR weighted: exact (paper)", "#56b4e9", "s", _weighted("exact")),
        Method("lr-projection", "LR weighted: projection (paper)", "#b07aa1", "^", _weighted("projection")),
    )
}

ONE_SIDED = Method(
    "lr-one-sided",
    "LR, weights on one side (invalid)",
    "#a50026",
    "x",
    lambda family, space, alpha: OneSidedWeights(family, space, alpha, penalty(space)),  # type: ignore[arg-type]
    provable=False,
)
"""The negative control, Gaussian noise only."""

AS_IF_GAUSSIAN = Method(
    "AY 2011 on Laplace",
    "AY 2011 as if Gaussian (no proof)",
    "#3333ff",
    "1",
    lambda family, space, alpha: AbbasiYadkori(space, alpha, float(np.sqrt(2.0) * family.scale), RIVAL_PENALTY),  # type: ignore[attr-defined]
    provable=False,
)
"""A second control: the ellipsoid of sub-Gaussian noise, with the standard deviation of Laplace noise for its scale."""

CUT = Method(
    "AY 2011, cut",
    "AY 2011, cut with Theta",
    "#003c66",
    "2",
    lambda family, space, alpha: AbbasiYadkori(space, alpha, family.sigma, RIVAL_PENALTY, within_theta=True),  # type: ignore[attr-defined]
)
"""The paper's first rival without the parameters that the bound rules out: as valid, and never larger."""

GUARDED = Method(
    "guarded",
    "likeset default, choice by belief",
    "#d6006c",
    "*",
    _default,
    heavy=True,
    policy=BELIEF,
)
"""The certified set of the default; what is played is what the predictor believes best (``likeset.Guarded``)."""

_CONTROLS = {method.name: method for method in (ONE_SIDED, AS_IF_GAUSSIAN)}

PAPER = ("lr-bound", "lr-exact", "lr-projection")
"""The paper's method, in the three readings of its bias."""

RIVALS = ("AY 2011", "AY 2011, cut", "NR 2021", "sub-exponential")
"""Provable sets that the paper compares with."""

CERTIFIED = ("default", "lr-mixture", "lr-plug-in", "lr-bound", "AY 2011, cut", "NR 2021", "sub-exponential")
"""Sets that ``Elimination`` is run with."""

_CERTIFYING = "elimination: "

SOONEST_RULE = Method(
    f"{_CERTIFYING}soonest", "Elimination, likeset default, rule soonest", "#a6761d", "*", _default, policy=SOONEST
)
"""The default rule of ``Elimination``, which asks the predictor's beliefs what to observe; other sets have none."""

HEURISTICS = ("heuristic", "Laplace approx.", "MK 2021")
"""Sets without coverage that the paper compares with."""

_SAME_AS_OURS = ("LR unweighted",)  # already among the likelihood ratios above
_STYLES = {
    "AY 2011": ("#0072b2", "v"),
    "NR 2021": ("#009e73", "P"),
    "sub-exponential": ("#6a3d9a", "X"),
    "heuristic": ("#e69f00", "h"),
    "Laplace approx.": ("#00441b", "<"),
    "MK 2021": ("#8c564b", ">"),
    "AMM": ("#8c564b", "h"),
    "CMM": ("#4b0082", "d"),
    "DMM": ("#b8860b", "*"),
    "SLM 2025": ("#e7298a", ">"),
    "WWR 2023": ("#008b8b", "v"),
    "self-normalised": ("#1f3b73", "8"),
    "unified GLM": ("#7f7f00", "s"),
    "regret GLM": ("#ff7f50", "^"),
    "Bregman (Laplace)": ("#708238", "H"),
}
"""Colour and marker of every set of others: no two alike."""

_UNKNOWN = ("#444444", "x")


def competing(family: Family, space: Space) -> list[Method]:
    """The sets of others that apply to this family and space."""
    found = []
    for name, instance in applicable(family, space, 0.1).items():
        if name in _SAME_AS_OURS:
            continue
        colour, marker = _style(name)
        found.append(Method(name, name, colour, marker, _competing(name), provable=instance.provable))
    return found


def methods_for(family: Family, space: Space) -> dict[str, Method]:
    """Every method that applies, by name."""
    found = LIKELIHOOD_RATIO | {method.name: method for method in competing(family, space)}
    if isinstance(family, Gaussian) and isinstance(space, RKHS):
        found[ONE_SIDED.name] = ONE_SIDED
    if "AY 2011" in found:
        found[CUT.name] = CUT
    if isinstance(family, Laplace):
        found[AS_IF_GAUSSIAN.name] = AS_IF_GAUSSIAN
    return found


def played_for(family: Family, space: Space) -> dict[str, Method]:
    """Every method of the bandit games: those above, and the default with another choice of arms."""
    return methods_for(family, space) | {GUARDED.name: GUARDED}


def certifying_for(family: Family, space: Space) -> dict[str, Method]:
    """``Elimination`` with the sets of the paper's figures that have a proof and with ours, all by one rule; and with
    ours by the rule that needs beliefs, too."""
    known = methods_for(family, space)
    widest = [replace(known[name], name=certifying(name), policy=WIDEST) for name in CERTIFIED if name in known]
    return {method.name: replace(method, label=label_of(method.name)) for method in [*widest, SOONEST_RULE]}


def certifying(name: str) -> str:
    """The name of Elimination with the sets of a method."""
    return f"{_CERTIFYING}{name}"


def is_certifying(name: str) -> bool:
    """Whether arms are chosen for the certificate, not for what they pay."""
    return name.startswith(_CERTIFYING)


def of_the_paper(name: str) -> bool:
    """Whether a method is in the paper's figures, or is one of ours; the others have a picture of their own."""
    return name in LIKELIHOOD_RATIO or name in RIVALS or name in HEURISTICS or name in _CONTROLS or name == GUARDED.name


def newer(name: str) -> bool:
    """Whether a method belongs to the second picture: the sets that the paper does not compare with, beside ours."""
    return not of_the_paper(name) or name in ("default", "lr-mixture", "lr-plug-in")


def label_of(name: str) -> str:
    """The name for people."""
    if name == SOONEST_RULE.name:
        return SOONEST_RULE.label
    if is_certifying(name):
        return f"Elimination, {label_of(name.removeprefix(_CERTIFYING))}"
    return (
        (LIKELIHOOD_RATIO | _CONTROLS | {CUT.name: CUT, GUARDED.name: GUARDED})
        .get(name, Method(name, name, "", "", _mixture))
        .label
    )


def sorted_methods(names: Iterable[str]) -> list[str]:
    """Likelihood-ratio sets first, in the order above."""
    order = [*LIKELIHOOD_RATIO, *map(certifying, CERTIFIED), SOONEST_RULE.name]
    last = len(LIKELIHOOD_RATIO)  # before Elimination
    return sorted(names, key=lambda name: (order.index(name) if name in order else last - 0.5, name))


_AT_PAPER_PENALTY: dict[str, Callable[[Any, Space, float], Any]] = {
    "AY 2011": lambda family, space, alpha: AbbasiYadkori(space, alpha, family.sigma, RIVAL_PENALTY),
    "NR 2021": lambda family, space, alpha: NeiswangerRamdas(space, alpha, family.sigma, RIVAL_PENALTY),
    "heuristic": lambda family, space, alpha: Heuristic(space, alpha, family, RIVAL_PENALTY),
    "Laplace approx.": lambda family, space, alpha: LaplaceApproximation(space, alpha, family, RIVAL_PENALTY),
    "MK 2021": lambda family, space, alpha: MutnyKrause(space, alpha, family, RIVAL_PENALTY),
}


def _competing(name: str) -> Builder:
    if name in _AT_PAPER_PENALTY:
        return _AT_PAPER_PENALTY[name]
    return next(cls.for_model for cls in COMPARISONS if cls.name == name)


def _style(name: str) -> tuple[str, str]:
    """Colour and marker by name, not by position: a method looks the same in every panel."""
    return _STYLES.get(name, _UNKNOWN)
