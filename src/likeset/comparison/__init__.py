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
from likeset.comparison.base import Comparison, Snapshot
from likeset.comparison.classical_ratio import ClassicalRatio
from likeset.comparison.ellipsoid import Ellipsoid
from likeset.comparison.heuristic import Heuristic
from likeset.comparison.laplace_approximation import LaplaceApproximation
from likeset.comparison.mutny_krause import MutnyKrause
from likeset.comparison.neiswanger_ramdas import NeiswangerRamdas
from likeset.comparison.sub_exponential import SubExponential
from likeset.families.base import Family
from likeset.spaces.base import Space

COMPARISONS: tuple[type[Comparison], ...] = (
    AbbasiYadkori,
    Heuristic,
    NeiswangerRamdas,
    SubExponential,
    LaplaceApproximation,
    MutnyKrause,
    ClassicalRatio,
)
"""Every comparison set; ``applicable``, ``likeset compare`` and the tests find them here."""


def applicable(family: Family, space: Space, alpha: float) -> dict[str, Comparison]:
    """A fresh instance of every set that applies to the model, by name, with constants chosen beforehand."""
    made = (cls.for_model(family, space, alpha) for cls in COMPARISONS)
    return {one.name: one for one in made if one is not None}


__all__ = [
    "COMPARISONS",
    "AbbasiYadkori",
    "ClassicalRatio",
    "Comparison",
    "Ellipsoid",
    "Heuristic",
    "LaplaceApproximation",
    "MutnyKrause",
    "NeiswangerRamdas",
    "Snapshot",
    "SubExponential",
    "applicable",
]
