"""Competing confidence sets behind the interface of ``ConfidenceSequence``: swap the set and keep the rest.

>>> import likeset as ls
>>> sets = ls.comparison.applicable(ls.Gaussian(0.5), ls.Linear(dim=2, bound=1.0), alpha=0.05)
>>> ay = sets["AY 2011"]
>>> ay.update([1.0, 0.0], 0.4)
>>> ay.provable, bool(ay.set.upper([[1.0, 0.0]])[0] > 0.4)
(True, True)
"""

from __future__ import annotations

from likeset.comparison.abbasi_yadkori import AbbasiYadkori
from likeset.comparison.analytic_martingale_mixture import AnalyticMartingaleMixture
from likeset.comparison.base import Comparison, Snapshot
from likeset.comparison.betting import BettingMean
from likeset.comparison.bregman import BregmanDeviation
from likeset.comparison.classical_ratio import ClassicalRatio
from likeset.comparison.compare import Comparisons, compare, contenders
from likeset.comparison.convex_martingale_mixture import ConvexMartingaleMixture
from likeset.comparison.dual_martingale_mixture import DualMartingaleMixture
from likeset.comparison.ellipsoid import Ellipsoid
from likeset.comparison.growing_penalty import GrowingPenalty
from likeset.comparison.heuristic import Heuristic
from likeset.comparison.laplace_approximation import LaplaceApproximation
from likeset.comparison.mutny_krause import MutnyKrause
from likeset.comparison.neiswanger_ramdas import NeiswangerRamdas
from likeset.comparison.pseudo_maximisation import SubExponentialConstants, choose_constants
from likeset.comparison.regret_glm import RegretGLM
from likeset.comparison.self_normalised import SelfNormalised
from likeset.comparison.sequential_mixing import SequentialMixing
from likeset.comparison.sub_exponential import SubExponential
from likeset.comparison.t_sequences import FSequence, UniversalF
from likeset.comparison.unified_glm import UnifiedGLM
from likeset.comparison.wald import Wald
from likeset.comparison.wilks import Wilks
from likeset.families.base import Family
from likeset.spaces.base import Space

COMPARISONS: tuple[type[Comparison], ...] = (
    AbbasiYadkori,
    Heuristic,
    NeiswangerRamdas,
    SelfNormalised,
    SubExponential,
    LaplaceApproximation,
    MutnyKrause,
    ClassicalRatio,
    SequentialMixing,
    ConvexMartingaleMixture,
    AnalyticMartingaleMixture,
    DualMartingaleMixture,
    UnifiedGLM,
    RegretGLM,
    BregmanDeviation,
    GrowingPenalty,
    Wald,
    Wilks,
    FSequence,
    UniversalF,
)
"""Every comparison set; ``applicable``, ``likeset compare`` and the tests find them here."""


def applicable(family: Family, space: Space, alpha: float) -> dict[str, Comparison]:
    """A fresh instance of every set that applies to the model, by name, with constants chosen beforehand."""
    made = (cls.for_model(family, space, alpha) for cls in COMPARISONS)
    return {one.name: one for one in made if one is not None}


__all__ = [
    "COMPARISONS",
    "AbbasiYadkori",
    "AnalyticMartingaleMixture",
    "BettingMean",
    "BregmanDeviation",
    "ClassicalRatio",
    "Comparison",
    "Comparisons",
    "ConvexMartingaleMixture",
    "DualMartingaleMixture",
    "Ellipsoid",
    "FSequence",
    "GrowingPenalty",
    "Heuristic",
    "LaplaceApproximation",
    "MutnyKrause",
    "NeiswangerRamdas",
    "RegretGLM",
    "SelfNormalised",
    "SequentialMixing",
    "Snapshot",
    "SubExponential",
    "SubExponentialConstants",
    "UnifiedGLM",
    "UniversalF",
    "Wald",
    "Wilks",
    "applicable",
    "choose_constants",
    "compare",
    "contenders",
]
