r"""Gaussian beliefs N(m_j, S_j) about theta, one for each prior N(0, I / lambda_j).

They are kept as precision Cholesky factors, S_j^-1 = L_j L_j', on the span of the covariates; off the span a belief is
its prior, so a new direction only adds sqrt(lambda_j) to the diagonal.

Here is what all have in common. How they learn: :mod:`likeset.families.exact_posterior` for Gaussian noise,
:mod:`likeset.families.fitted_posterior` for other families with derivatives. Laplace noise has no curvature;
:mod:`likeset.families.variational` serves it.
"""

from __future__ import annotations

import math
from typing import Protocol, Self

import numpy as np

from likeset._solver.linalg.matrix import dot, solve_lower
from likeset._solver.linalg.threads import SingleThreadedBlas
from likeset._typing import Array
from likeset.arguments import real_array
from likeset.compiling import kernel
from likeset.embedded import Embedded
from likeset.errors import InvalidArgumentError
from likeset.families.merged import MergedData
from likeset.state_checks import expect_array, expect_factors
from likeset.undo import Undo

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
