"""Sums behind the evidence where the scale of the noise is unknown: everything is counted in the unit of y."""

from __future__ import annotations

from typing import Any

import numpy as np

from likeset._solver.nuisance import ScaleTerms
from likeset._solver.problem import CurveTerms, PointTerms
from likeset._typing import Array
from likeset.curves import Curve
from likeset.families.evidence_sums import CompensatedSums, EvidenceSums
from likeset.families.sorted_sums import PointSums
from likeset.families.unknown import Unknown
from likeset.undo import Undo

_LOG_ROOT_TWO_PI = 0.5 * float(np.log(2 * np.pi))


class SquareSums(EvidenceSums):
    """Gaussian noise: sums for sigma = 1 from references o, and  sum of w (y - o)^2 / 2  per covariate."""

    def __init__(self, family: Any, sigma: Unknown) -> None:
        super().__init__(family)
        self.sigma = sigma
        self.squares = CompensatedSums()

    def remember(self, undo: Undo, index: int) -> None:
        """Before ``add`` to covariate ``index``: keep its sums and its reference."""
        super().remember(undo, index)
        self.squares.remember(undo, index)

    def add(self, index: int, y: Array, weight: float, law: Any = None) -> float:
        """Merge one observation. Nothing of its log-density is free of z *and* of sigma, and 0 is returned."""
        noisy = float(y) if law is None else float(y) - law.shift  # of x'theta alone
        while index >= len(self.origins):
            self.origins = np.concatenate([self.origins, np.zeros_like(self.origins)])
        if index >= len(self.a.total) or self.a.total[index] == 0.0:
            self.origins[index] = noisy
        u = noisy - float(self.origins[index])
        self.a.add(index, weight)
        self.s.add(index, weight * u)
        self.squares.add(index, 0.5 * weight * u * u)
        return 0.0

    def terms(self, count: int) -> ScaleTerms:  # type: ignore[override]
        """-log p of every group, in s = 1/sigma^2."""
        a, s = self.a.values(count).copy(), self.s.values(count).copy()
        unit = CurveTerms(Curve.QUADRATIC, a, s, self.origins[:count].copy())
        return ScaleTerms(
            unit=unit,
            rest=self.squares.values(count).copy(),
            counts=0.5 * a,
            constants=_LOG_ROOT_TWO_PI * a,
            power=2,
            lo=self.sigma.lo,
            hi=self.sigma.hi,
        )

    snapshot = terms  # type: ignore[assignment]

    def state(self) -> dict[str, Array]:
        """Sums, references and squares."""
        return super().state() | self.squares.state("squares")

    def restore(self, state: dict[str, Array], count: int) -> None:
        """The inverse of ``state``, for so many covariates."""
        super().restore(state, count)
        self.squares.restore(state, "squares")


class UnitPointSums(PointSums):
    """Laplace noise: sorted observations and their weights, for scale one."""

    def __init__(self, family: Any, scale: Unknown) -> None:
        super().__init__(family)
        self.scale = scale

    def add(self, index: int, y: Array, weight: float, law: Any = None) -> float:
        """Insert y in order; nothing of its log-density is free of z *and* of the scale."""
        self.insert(index, float(y), weight, merge=False)
        return 0.0

    def terms(self, count: int) -> PointTerms:
        """All points in one array, covariate after covariate, for scale one."""
        return PointTerms(*self.joined(count))

    def snapshot(self, count: int) -> ScaleTerms:  # type: ignore[override]
        """-log p of every group, in s = 1/scale."""
        counts = np.array([weights.sum() for weights in self.weights[:count]], dtype=np.float64)
        return ScaleTerms(
            unit=self.terms(count),
            rest=np.zeros(count),
            counts=counts,
            constants=float(np.log(2.0)) * counts,
            power=1,
            lo=self.scale.lo,
            hi=self.scale.hi,
        )
