"""The ball alone: the set while nothing has been learnt."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np

from likeset._solver.problem import Kernel, Solution
from likeset._typing import EPS, Array


@dataclass(frozen=True)
class Ball(Kernel):
    """{ theta in R^dimension : |theta| <= bound }; h(a) = bound |a|. Or nothing, where no theta is any better."""

    dimension: int
    bound: float
    empty: bool = False
    closed_form = True
    share = 1 << 16

    @property
    def status(self) -> str:  # type: ignore[override]
        """What there is."""
        return "empty" if self.empty else "regular"

    @property
    def centre(self) -> Array:  # type: ignore[override]
        """Zero."""
        return np.zeros(self.dimension)

    @property
    def padded(self) -> Ball:
        """A ball of one dimension more."""
        return Ball(self.dimension + 1, self.bound)

    def _solve(self, A: Array, near: Array | None, tolerance: float) -> Solution:
        lengths = np.linalg.norm(A, axis=1)
        step = np.divide(self.bound if self.bound < inf else 0.0, lengths, out=np.zeros(len(A)), where=lengths > 0)
        upper = np.zeros(len(A))
        np.multiply(self.bound, lengths * (1 + 64 * EPS), out=upper, where=lengths > 0)
        return Solution(step * lengths**2, step[:, None] * A, upper)
