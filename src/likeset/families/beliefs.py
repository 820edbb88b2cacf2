r"""Gaussian beliefs N(m_j, S_j) about theta, one for each prior N(0, I / lambda_j).

They are kept as precision Cholesky factors, S_j^-1 = L_j L_j', on the span of the covariates; off the span a belief is
its prior, so a new direction only adds sqrt(lambda_j) to the diagonal.

* :class:`ExactPosterior`       Gaussian noise: rank-one updates of L_j, exact.
* :class:`LaplacePosterior`     exponential families: the mode and the curvature there.
* :class:`GenericPosterior`     any other family with derivatives: the same, through the terms of its sums.

Laplace noise has no curvature; :mod:`likeset.families.variational` serves it.
"""

from __future__ import annotations

import copy
import math
from typing import TYPE_CHECKING, Protocol, Self

import numpy as np

from likeset._solver.evaluate import evaluate_terms
from likeset._solver.linalg.matrix import dot, rank_one_update, solve_lower, solve_lower_transposed
from likeset._solver.linalg.threads import SingleThreadedBlas
from likeset._solver.newton import Goal, curve_sum, minimise_over_ball, newton_balls
from likeset._solver.problem import CurveTerms, PointTerms, Terms
from likeset._typing import EPS, Array
from likeset.arguments import real_array
from likeset.compiling import kernel
from likeset.curves import curve_slopes
from likeset.embedded import Embedded
from likeset.errors import InvalidArgumentError
from likeset.families.merged import MergedData
from likeset.families.sums import CurveSums, Sums
from likeset.state_checks import expect_array, expect_factors, expect_number
from likeset.undo import Undo

if TYPE_CHECKING:
    from likeset.families.curve_family import CurveFamily

MODE_GAP = 1e-6  # nats; a belief need not be exact to be valid
REFIT_ALWAYS_BELOW = 512  # distinct covariates; above, a refit waits until the data have grown by 1/REFIT_GROWTH
REFIT_GROWTH = 128
TELLING = 1e-3  # nats: evidence that rounding may have changed by more tells nothing


@kernel()
def predict_all(factors: Array, means: Array, x: Array, mean: Array, sd: Array, work: Array) -> None:
    """Write x'm_j and sqrt(x'S_j x) for every j; ``work`` is scratch of the length of x."""
    J, d = means.shape
    for j in range(J):
        for i in range(d):
            work[i] = x[i]
        mean[j] = dot(x, means[j])
        solve_lower(factors[j], work)
        sd[j] = math.sqrt(dot(work, work))


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


@kernel()
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


class Posterior(Protocol):
    """J Gaussian beliefs about theta that learn."""

    def predict(self, phi: Embedded) -> tuple[Array, Array]:
        """Mean and standard deviation of z under every belief."""
        ...

    def observe(self, phi: Embedded, y: Array) -> None:
        """Learn from one observation."""
        ...

    def remember(self, undo: Undo, phi: Embedded) -> None:
        """Before ``observe``, or a forecast, at phi: keep what they will change."""
        ...

    def state(self) -> dict[str, Array]:
        """Everything needed to continue bit for bit."""
        ...

    def restore(self, state: dict[str, Array]) -> None:
        """The inverse of ``state``."""
        ...

    def fits(self, count: int, dimension: int) -> bool:
        """Whether these are beliefs after so many distinct covariates and dimensions."""
        ...

    def resume(self, data: MergedData) -> None:
        """After ``restore``: take a copy of the ledger's data."""
        ...

    def settled(self) -> Beliefs:
        """The beliefs given all that was observed, for reading; nothing here changes."""
        ...

    def rescaled(self, ratios: Array) -> Self:
        """A copy whose coordinates are ``ratios`` <= 1 times these; priors stay those of the new coordinates."""
        ...

    def evidence(self) -> Array | None:
        """log of the marginal likelihood of all data under every prior, but for a constant they share, if it is known.

        Shares of the beliefs are made from it where units have changed, and nothing else is.
        """
        ...


class Beliefs:
    """Means (J, d) and precision factors (J, d, d) on a growing span; what all posteriors share."""

    def __init__(self, priors: Array) -> None:
        priors = real_array("priors", priors)
        if priors.ndim != 1 or not (priors > 0).all():
            raise InvalidArgumentError("priors", priors, "is no list of precisions", "pass positive numbers")
        self.priors = priors
        self.means = np.zeros((len(priors), 0))
        self.factors = np.zeros((len(priors), 0, 0))
        # Two of everything: an update writes to the pair that is not kept for a roll-back.
        self._spare, self._kept = (self.means, self.factors), False

    def grow(self, dimension: int) -> None:
        """Enter new directions with their prior."""
        old = self.means.shape[1]
        if dimension > old:
            factors = np.zeros((len(self.priors), dimension, dimension))
            factors[:, :old, :old] = self.factors
            new = np.arange(old, dimension)
            factors[:, new, new] = np.sqrt(self.priors)[:, None]
            self.means, self.factors = np.pad(self.means, ((0, 0), (0, dimension - old))), factors
            self._kept = False  # these are new

    def predict(self, x: Array) -> tuple[Array, Array]:
        """Mean and standard deviation of z = x'theta under every belief."""
        self.grow(len(x))
        mean, sd = np.empty((2, len(self.priors)))
        predict_all(self.factors, self.means, x, mean, sd, np.empty(len(x)))
        return mean, sd

    def remember(self, undo: Undo) -> None:
        """Keep means and factors; the next change is made in the spare ones."""
        if undo.keep(self):
            self._kept = True

    def writable(self) -> tuple[Array, Array]:
        """Means and factors to write to: no kept ones."""
        if self._kept:
            means, factors = self._spare
            if factors.shape != self.factors.shape:
                means, factors = np.empty_like(self.means), np.empty_like(self.factors)
            means[:], factors[:] = self.means, self.factors
            self._spare = (self.means, self.factors)
            self.means, self.factors, self._kept = means, factors, False
        return self.means, self.factors

    def copied(self) -> Beliefs:
        """The same beliefs in arrays of their own."""
        other = Beliefs(self.priors)
        other.means, other.factors = self.means.copy(), self.factors.copy()
        return other

    def log_volumes(self) -> Array:
        """(d/2) log lambda - log det L: log of the volume that every belief has kept of its prior's."""
        roots = np.log(np.diagonal(self.factors, axis1=1, axis2=2)).sum(axis=1)
        return np.asarray(0.5 * self.means.shape[1] * np.log(self.priors) - roots)

    def rescale(self, ratios: Array, refitted: bool) -> None:
        """Coordinates of covariates become ``ratios`` times what they were, so theta's grow by 1/ratios.

        If beliefs are not ``refitted`` anyway, precisions rise from lambda ratios^2 to lambda in the prior's part.
        """
        means, factors = self.writable()
        means /= ratios
        factors *= ratios[:, None]
        if not refitted:
            added = self.priors[:, None] * (1.0 - ratios**2)
            with SingleThreadedBlas():
                precisions = factors @ factors.transpose(0, 2, 1)
                precisions[:, np.arange(len(ratios)), np.arange(len(ratios))] += added
                factors[:] = np.linalg.cholesky(precisions)

    def state(self) -> dict[str, Array]:
        """Means and factors."""
        return {"means": self.means, "factors": self.factors}

    def restore(self, state: dict[str, Array]) -> None:
        """The inverse of ``state``."""
        means = expect_array(state, "means", (len(self.priors), None))
        J, d = means.shape
        self.means, self.factors = means, expect_factors(state, "factors", (J, d, d))


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
