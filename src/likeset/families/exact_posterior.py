r"""Gaussian beliefs under Gaussian noise: rank-one updates of their precisions, exact.

S_j^-1 += x x' / sigma^2,      m_j = S_j b,      b = sum of x y / sigma^2
"""

from __future__ import annotations

import copy
import math
from typing import Self

import numpy as np

from likeset._solver.linalg.matrix import rank_one_update, solve_lower, solve_lower_transposed
from likeset._solver.linalg.threads import SingleThreadedBlas
from likeset._typing import EPS, Array
from likeset.compiling import kernel
from likeset.embedded import Embedded
from likeset.families.beliefs import TELLING, Beliefs
from likeset.families.merged import MergedData
from likeset.state_checks import expect_array
from likeset.undo import Undo


@kernel()
def observe_gaussian(
    factors: Array, means: Array, moment: Array, x: Array, precision: float, y: float, work: Array
) -> None:
    """Exact update: precision += x x' / sigma^2, then m_j = S_j (sum of x y / sigma^2); ``work`` is scratch."""
    J, d = means.shape
    root = math.sqrt(precision)
    for i in range(d):
        moment[i] += x[i] * y * precision
    for j in range(J):
        for i in range(d):
            work[i], means[j, i] = x[i] * root, moment[i]
        rank_one_update(factors[j], work)
        solve_lower(factors[j], means[j])
        solve_lower_transposed(factors[j], means[j])


class ExactPosterior:
    """Gaussian noise."""

    def __init__(self, precision: float, priors: Array) -> None:
        self.precision = precision
        self.beliefs = Beliefs(priors)
        self.moment = np.zeros(0)

    def predict(self, phi: Embedded) -> tuple[Array, Array]:
        """Mean and standard deviation of z under every belief."""
        return self.beliefs.predict(phi.coordinates)

    def observe(self, phi: Embedded, y: Array) -> None:
        """Rank-one updates."""
        x = phi.coordinates
        self.beliefs.grow(len(x))
        if len(x) > len(self.moment):
            self.moment = np.pad(self.moment, (0, len(x) - len(self.moment)))
        means, factors = self.beliefs.writable()
        noisy = float(y) if phi.law is None else float(y) - phi.law.shift  # of x'theta alone
        observe_gaussian(factors, means, self.moment, x, self.precision, noisy, np.empty(len(x)))

    def remember(self, undo: Undo, phi: Embedded) -> None:
        """Keep beliefs and moment."""
        undo.keep(self, written=("moment",))
        self.beliefs.remember(undo)

    def state(self) -> dict[str, Array]:
        """Beliefs and the moment vector."""
        return self.beliefs.state() | {"moment": self.moment}

    def restore(self, state: dict[str, Array]) -> None:
        """The inverse of ``state``."""
        self.beliefs.restore(state)
        self.moment = expect_array(state, "moment", (None,))

    def fits(self, count: int, dimension: int) -> bool:
        """Whether beliefs and moment are those of a span of this dimension."""
        return self.beliefs.means.shape[1] == dimension == len(self.moment)

    def resume(self, data: MergedData) -> None:
        """Exact beliefs need no data."""

    def settled(self) -> Beliefs:
        """The beliefs, copied."""
        return self.beliefs.copied()

    def rescaled(self, ratios: Array) -> Self:
        """A copy in other units; the moment as well, and means from it."""
        other = copy.copy(self)
        other.beliefs, other.moment = self.beliefs.copied(), self.moment * ratios
        other.beliefs.rescale(ratios, refitted=False)
        means, factors = other.beliefs.writable()
        with SingleThreadedBlas():
            right = np.broadcast_to(other.moment[:, None], (len(means), len(ratios), 1))
            means[:] = np.linalg.solve(factors.transpose(0, 2, 1), np.linalg.solve(factors, right))[..., 0]
        return other

    def evidence(self) -> Array | None:
        """(d/2) log lambda - log det L + b'm / 2, with P = L L' the precision, b the moment and m = P^-1 b."""
        fits = 0.5 * self.beliefs.means @ self.moment
        # They are large where y is beside the noise, and differences are what counts: not if rounding made them.
        return self.beliefs.log_volumes() + fits if fits.max(initial=0.0) < TELLING / EPS else None
