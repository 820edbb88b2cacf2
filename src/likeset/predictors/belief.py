r"""What a predictor believes, as a frozen mixture of Gaussians about theta.

    theta ~ sum_j pi_j N(m_j, S_j),      S_j^-1 = L_j L_j' on the span of the covariates seen, lambda_j I off it.

A belief is no certificate: it may be wrong, and nothing that is reported rests on it. Choices may.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from likeset._solver.linalg.threads import SingleThreadedBlas
from likeset._typing import Array
from likeset.arguments import generator, real_number
from likeset.errors import InvalidArgumentError
from likeset.families.answers import information
from likeset.families.base import Family
from likeset.spaces.base import Basis, Space


class Belief:
    r"""sum_j pi_j N(m_j, S_j) about theta, asked for z = x'theta. Made by ``ConfidenceSequence.belief``; never changes.

    shares    pi_j, which sum to one
    priors    lambda_j: the precision of theta in directions nobody has looked into

    >>> import likeset as ls
    >>> seq = ls.ConfidenceSequence(ls.Gaussian(0.1), ls.Linear(dim=2, bound=2.0))
    >>> seq.update([1.0, 0.0], 0.5)
    >>> mean, sd = seq.belief.moments([[1.0, 0.0], [0.0, 1.0]])
    >>> bool(abs(mean[0] - 0.5) < 0.05), bool(mean[1] == 0.0), bool(sd[0] < 0.11 < sd[1])
    (True, True, True)
    >>> bool(seq.belief.supposing([0.0, 1.0]).moments([0.0, 1.0])[1][0] < sd[1])    # once that is observed, too
    True
    """

    def __init__(
        self,
        family: Family,
        space: Space,
        basis: Basis,
        priors: Array,
        shares: Array,
        means: Array,
        factors: Array,
        precision: Array | None = None,
    ) -> None:
        self.shares, self.priors = shares, priors
        self._precision = precision  # of one observation, where the family alone does not tell it
        self._family, self._space, self._basis = family, space, basis
        self._means, self._factors = _grown(means, factors, priors, basis.dimension)

    def __repr__(self) -> str:
        count = len(self.shares)
        return f"<Belief: {count} Gaussian{'s' * (count != 1)} in {self._basis.dimension} dimensions>"

    def moments(self, X: Any) -> tuple[Array, Array]:
        """Mean and standard deviation of z for every row of X."""
        mean, sd = self.components(X)
        overall = self.shares @ mean
        variance = self.shares @ (sd**2 + (mean - overall) ** 2)
        return overall, np.sqrt(variance)

    def optimistic(self, X: Any, sign: float, deviations: float) -> Array:
        """sum_j pi_j [ sign m_j + deviations s_j ] for every row of X: what each Gaussian hopes for, by its share.

        Deviations of the mixture as a whole would count what separates the Gaussians as well, and were measured to
        explore more than pays.
        """
        mean, sd = self.components(X)
        sign, deviations = real_number("sign", sign), real_number("deviations", deviations)
        return np.asarray(self.shares @ (sign * mean + deviations * sd))

    def components(self, X: Any) -> tuple[Array, Array]:
        """Means and standard deviations of z under every Gaussian, both of shape (number of Gaussians, rows of X)."""
        inside, outside = self._basis.coordinates(self._space.covariates(X, "X"))
        with SingleThreadedBlas():
            # L is triangular, which a general solver makes nothing of; for so many right sides it matters little.
            standard = np.linalg.solve(self._factors, np.broadcast_to(inside.T, (len(self.priors), *inside.T.shape)))
            variance = outside**2 / self.priors[:, None] + (standard**2).sum(axis=1)
            return self._means @ inside.T, np.sqrt(variance)

    def covariance(self, X: Any) -> Array:
        """Covariances of z at the rows of X under every Gaussian, shape (number of Gaussians, rows, rows)."""
        rows = self._space.covariates(X, "X")
        basis = self._basis
        for x in rows:
            basis = basis.including(x)
        factors = _grown(self._means, self._factors, self.priors, basis.dimension)[1]
        inside = basis.coordinates(rows)[0].T
        with SingleThreadedBlas():
            standard = np.linalg.solve(factors, np.broadcast_to(inside, (len(factors), *inside.shape)))
            return np.asarray(standard.transpose(0, 2, 1) @ standard)

    def noise_precision(self, X: Any) -> Array:
        """How much one y at the rows of X tells about z, in the mean, under every Gaussian; the precision of noise."""
        rows = self._space.covariates(X, "X")
        if self._precision is not None:
            return np.repeat(self._precision[:, None], len(rows), axis=1)
        mean = self.components(rows)[0]
        with np.errstate(over="ignore", invalid="ignore"):
            found = information(self._family, mean.ravel()).reshape(mean.shape)
        return np.nan_to_num(found, nan=0.0, posinf=1e12)

    def supposing(self, X: Any) -> Belief:
        """The belief after observing at the rows of X just what it expects: means stay, what is learnt is counted."""
        rows = self._space.covariates(X, "X")
        belief = self
        for x in rows:
            belief = belief._having_seen(x)
        return belief

    def draw(self, X: Any, rng: np.random.Generator) -> Array:
        """z at the rows of X for one theta drawn from the belief (Thompson sampling)."""
        rows, rng = self._space.covariates(X, "X"), generator(rng)
        inside, outside = self._basis.coordinates(rows)
        j = int(rng.choice(len(self.shares), p=self.shares / self.shares.sum()))
        normal = rng.standard_normal(inside.shape[1])
        theta = self._means[j] + np.linalg.solve(self._factors[j].T, normal)
        return np.asarray(inside @ theta + outside / np.sqrt(self.priors[j]) * rng.standard_normal(len(rows)))

    def _having_seen(self, x: Array) -> Belief:
        basis = self._basis.including(x)
        means, factors = _grown(self._means, self._factors, self.priors, basis.dimension)
        c = basis.coordinates(x[None, :])[0][0]
        gained = self._precision
        if gained is None:
            with np.errstate(over="ignore", invalid="ignore"):
                gained = np.nan_to_num(information(self._family, means @ c), nan=0.0, posinf=1e12)
        with SingleThreadedBlas():
            precision = factors @ factors.transpose(0, 2, 1) + gained[:, None, None] * np.outer(c, c)
            try:
                factors = np.asarray(np.linalg.cholesky(precision), dtype=np.float64)
            except np.linalg.LinAlgError:
                raise InvalidArgumentError(
                    "X", x, "is so long that what was known before is lost in rounding beside it", "use other units"
                ) from None
        return Belief(self._family, self._space, basis, self.priors, self.shares, means, factors, self._precision)


def _grown(means: Array, factors: Array, priors: Array, dimension: int) -> tuple[Array, Array]:
    """Means and factors in so many dimensions: the prior in new ones."""
    old = means.shape[1]
    if dimension <= old:
        return means, factors
    larger = np.zeros((len(priors), dimension, dimension))
    larger[:, :old, :old] = factors
    new = np.arange(old, dimension)
    larger[:, new, new] = np.sqrt(priors)[:, None]
    return np.pad(means, ((0, 0), (0, dimension - old))), larger
