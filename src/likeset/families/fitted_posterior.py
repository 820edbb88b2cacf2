r"""Gaussian beliefs that are refitted to merged data: the mode, and the curvature there.

* :class:`LaplacePosterior`     exponential families, with the kernel of their curves;
* :class:`GenericPosterior`     any other family with derivatives, through the terms of its sums.
"""

from __future__ import annotations

import copy
import math
from typing import TYPE_CHECKING, Self

import numpy as np

from likeset._solver.evaluate import evaluate_terms
from likeset._solver.linalg.matrix import dot, rank_one_update, solve_lower, solve_lower_transposed
from likeset._solver.newton import Goal, curve_sum, minimise_over_ball, newton_balls
from likeset._solver.problem import CurveTerms, PointTerms, Terms
from likeset._typing import EPS, Array
from likeset.compiling import kernel
from likeset.curves import curve_slopes
from likeset.embedded import Embedded
from likeset.families.beliefs import TELLING, Beliefs
from likeset.families.merged import MergedData
from likeset.families.sums import CurveSums, Sums
from likeset.state_checks import expect_number
from likeset.undo import Undo

if TYPE_CHECKING:
    from likeset.families.curve_family import CurveFamily

MODE_GAP = 1e-6  # nats; a belief need not be exact to be valid
REFIT_ALWAYS_BELOW = 512  # distinct covariates; above, a refit waits until the data have grown by 1/REFIT_GROWTH
REFIT_GROWTH = 128


@kernel(allocates=True)
def observe_online(factors: Array, means: Array, x: Array, curve: int, a: float, s: float) -> None:
    """One Newton step on the new observation alone: precision += phi'' x x', mean -= S phi' x."""
    J, d = means.shape
    work, step = np.empty(d), np.empty(d)
    for j in range(J):
        first, second = curve_slopes(curve, dot(x, means[j]))
        root, slope = math.sqrt(a * second), a * first - s
        for i in range(d):
            work[i], step[i] = x[i] * root, x[i] * slope
        rank_one_update(factors[j], work)
        solve_lower(factors[j], step)
        solve_lower_transposed(factors[j], step)
        for i in range(d):
            means[j, i] -= step[i]


class FittedPosterior:
    """Beliefs refitted to merged data when next asked; subclasses say how."""

    def __init__(self, sums: Sums, priors: Array) -> None:
        self.beliefs = Beliefs(priors)
        self.data = MergedData(sums)
        self.unfitted = 0

    def predict(self, phi: Embedded) -> tuple[Array, Array]:
        """Refit if needed; then mean and standard deviation of z under every belief."""
        if self.unfitted:
            self.beliefs.grow(self.data.dimension)
            self.fit()
            self.unfitted = 0
        return self.beliefs.predict(phi.coordinates)

    def observe(self, phi: Embedded, y: Array) -> None:
        """Merge the observation."""
        self.data.add(phi, y)
        self.unfitted += 1

    def remember(self, undo: Undo, phi: Embedded) -> None:
        """Keep data and beliefs: also a refit for a forecast may be torn."""
        undo.keep(self)
        self.beliefs.remember(undo)
        self.data.remember(undo, phi)

    def fit(self) -> None:
        """Fit every belief to the data."""
        raise NotImplementedError

    def state(self) -> dict[str, Array]:
        """Data, beliefs, and how many observations they have not been fitted to."""
        return self.data.state() | self.beliefs.state() | {"unfitted": np.array([float(self.unfitted)])}

    def restore(self, state: dict[str, Array]) -> None:
        """The inverse of ``state``."""
        self.data.restore(state)
        self.beliefs.restore(state)
        self.unfitted = int(expect_number(state, "unfitted"))

    def fits(self, count: int, dimension: int) -> bool:
        """Whether data and beliefs are those of so many distinct covariates and dimensions."""
        return self.data.fits(count, dimension) and self.beliefs.means.shape[1] == dimension

    def resume(self, data: MergedData) -> None:
        """After ``restore``: take a copy of the ledger's data."""
        self.data = data.copy()

    def settled(self) -> Beliefs:
        """The beliefs, copied, and refitted where the next forecast would do so."""
        other = copy.copy(self)  # same data, which a fit only reads
        other.beliefs = self.beliefs.copied()
        if self._refit_due():
            other.beliefs.grow(self.data.dimension)
            other.fit()
        return other.beliefs

    def rescaled(self, ratios: Array) -> Self:
        """A copy in other units; the data as well, to which beliefs are fitted again."""
        other = copy.copy(self)
        other.data, other.beliefs, other.unfitted = self.data.copy(), self.beliefs.copied(), self.unfitted + 1
        other.data.measure(self.data.coordinates * ratios)
        other.beliefs.grow(len(ratios))
        other.beliefs.rescale(ratios, refitted=True)
        return other

    def evidence(self) -> Array | None:
        """By Laplace's method; None where the terms are not smooth."""
        terms = self.data.terms()
        if isinstance(terms, PointTerms):
            return None
        beliefs = self.settled()
        heights, _, _ = evaluate_terms(terms, beliefs.means @ self.data.coordinates.T)
        misfit = heights.sum(axis=1) + 0.5 * beliefs.priors * np.sum(beliefs.means**2, axis=1)
        return np.asarray(beliefs.log_volumes() - misfit) if np.abs(heights).sum() < TELLING / EPS else None

    def _refit_due(self) -> bool:
        return self.unfitted > 0


class LaplacePosterior(FittedPosterior):
    """Exponential families. With very many distinct covariates, refits are spaced and bridged by online steps."""

    def __init__(self, family: CurveFamily, priors: Array) -> None:
        super().__init__(CurveSums(family), priors)
        self.family = family

    def predict(self, phi: Embedded) -> tuple[Array, Array]:
        """As in the base, but a refit may wait."""
        if self._refit_due():
            return super().predict(phi)
        return self.beliefs.predict(phi.coordinates)

    def observe(self, phi: Embedded, y: Array) -> None:
        """Merge the observation; where a refit is not due, take the online step."""
        super().observe(phi, y)
        if not self._refit_due() and not getattr(phi.law, "stays_shifted", False):
            a, s, _ = phi.law_or(self.family).statistics(y)
            self.beliefs.grow(len(phi.coordinates))
            means, factors = self.beliefs.writable()
            observe_online(factors, means, phi.coordinates, int(self.family.curve), float(a), float(s))

    def fit(self) -> None:
        """Modes and curvatures."""
        terms = self.data.terms()
        if not isinstance(terms, CurveTerms):  # offsets that the sums cannot absorb
            fit_modes(self.beliefs, self.data.coordinates, terms)
            return
        means, factors = self.beliefs.writable()
        F, ridges, goal = (
            curve_sum(self.data.coordinates, terms),
            0.5 * self.beliefs.priors,
            Goal(MODE_GAP, iterations=50),
        )
        newton_balls(F, ridges, math.inf, means, goal, np.empty((len(means), 3)), factors)  # from the modes before

    def _refit_due(self) -> bool:
        often = self.data.count <= REFIT_ALWAYS_BELOW or self.unfitted * REFIT_GROWTH >= self.data.count
        return often and super()._refit_due()


class GenericPosterior(FittedPosterior):
    """Any family, through the derivatives of its terms."""

    def fit(self) -> None:
        """Modes and curvatures."""
        fit_modes(self.beliefs, self.data.coordinates, self.data.terms())


def fit_modes(beliefs: Beliefs, X: Array, terms: Terms) -> None:
    """Modes, from the modes before, and curvatures there, through the derivatives of smooth terms."""
    means, factors = beliefs.writable()
    assert not isinstance(terms, PointTerms)
    for j, prior in enumerate(beliefs.priors):
        mode = minimise_over_ball(X, terms, 0.5 * prior, math.inf, means[j], Goal(MODE_GAP)).theta
        _, _, curvature = evaluate_terms(terms, X @ mode)
        means[j] = mode
        factors[j] = np.linalg.cholesky((X.T * curvature) @ X + prior * np.eye(X.shape[1]))
