"""The self-normalised set: departures from theta itself, not from a prior guess, make up the alternatives."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from likeset._solver.linalg.threads import SingleThreadedBlas
from likeset._solver.problem import CurveTerms, VoiceTable
from likeset._typing import Array
from likeset.arguments import positive
from likeset.comparison.least_squares import LeastSquaresSet
from likeset.comparison.likelihood import LevelSnapshot
from likeset.curves import Curve
from likeset.evidence.evidence import Evidence, Groups
from likeset.spaces.base import Space


class SelfNormalised(LeastSquaresSet):
    r"""Parameters whose residuals are not too long, measured by what the noise alone would do.

        V = sum x x'/sigma^2,     S(theta) = sum x (y - x'theta) / sigma^2
        C = { theta in Theta :  |S(theta)|^2_{(V + lambda I)^-1} / 2  -  log det(I + V/lambda) / 2  <=  log(1/alpha) }

    The left side is the log of the average of L(theta + delta) / L(theta) over delta ~ N(0, I/lambda): a mixture of
    likelihood ratios whose alternatives lie around the parameter under test, wherever that is. A numerator that has to
    find theta* first pays for B/sigma in every direction; this one pays for the length of delta only, which can be a
    few sigma: narrower where B is several sigma. delta has to be of the right size, and for other likelihoods such a
    set is not convex. It is the inequality behind AY 2011, used as it stands: that set follows from this one by the
    triangle inequality, and contains it for the same lambda.

    Assumes y = x'theta + noise, sigma-sub-Gaussian given the past, and theta* in Theta: the ratio is a martingale for
    Gaussian noise, a supermartingale for sub-Gaussian. Cut with Theta. The snapshot's terms belong to eigenvectors of
    V, not to covariates, and its radius counts nats of the averaged ratio.

    sigma    sub-Gaussian constant of the noise
    spread   size of the departures x'delta to look for, in units of y: lambda = |x_1|^2 / spread^2, where x_1 is the
             first covariate, known before any outcome; 2 sigma by default

    Source: Robbins, Siegmund (1970) for a mean; Abbasi-Yadkori, Pal, Szepesvari (2011), Theorem 1.

    >>> import likeset as ls
    >>> space = ls.Linear(dim=2, bound=1.0)
    >>> ours, theirs = SelfNormalised(space, 0.05, sigma=0.5), ls.comparison.AbbasiYadkori(space, 0.05, sigma=0.5)
    >>> for one in (ours, theirs):
    ...     one.update([[1.0, 0.0]] * 50, [0.3] * 50)
    >>> bool(ours.set.upper([1.0, 0.0])[0] < theirs.set.upper([1.0, 0.0])[0])
    True
    """

    name = "self-normalised"
    provable = True
    anytime = True
    needs_bound = False
    assumptions = "linear mean, sigma-sub-Gaussian noise, theta* in Theta"
    source = "Abbasi-Yadkori, Pal, Szepesvari 2011, Theorem 1"

    def __init__(self, space: Space, alpha: float, sigma: float, spread: float | None = None) -> None:
        super().__init__(space, alpha, sigma)
        self.spread = 2.0 * self.sigma if spread is None else positive("spread", spread)

    def _snapshot(self) -> LevelSnapshot:
        """One term per eigenvector u of V, with eigenvalue v and moment m = u'sum x y/sigma^2.

        (m - v z)^2 / (v + lambda) / 2  -  log(1 + v/lambda) / 2     at z = u'theta
        """
        first = self._stream.ledger.merged.coordinates[:1]
        penalty = float(np.sum(first**2)) / self.spread**2 if len(first) else 1.0  # without data it plays no part
        with SingleThreadedBlas():
            values, vectors = np.linalg.eigh(self._sums.gram / self.sigma**2)
        v = np.maximum(values, 0.0)
        m, shrunk = vectors.T @ self._sums.moment / self.sigma**2, v + penalty
        share = v / shrunk
        terms = CurveTerms(Curve.QUADRATIC, v * share, m * share)
        price = np.log1p(v / penalty)
        gains = 0.5 * (m * (m / shrunk) - price)
        if len(gains):  # half a square of a length, to which the misfit is added
            length = np.sqrt(float(price.sum()) - 2.0 * np.log(self.alpha))
            gains[0] -= self.misfit * (length + 0.5 * self.misfit)
        groups = Groups(vectors.T, vectors.T, np.zeros(len(gains)), np.arange(len(gains)))
        joint = VoiceTable.joint(len(gains))
        evidence = Evidence(groups, terms, gains, joint, -math.log(self.alpha), self.space.bound)
        return _InCoordinates(self.space, self._stream.basis, evidence, self.alpha, True, self.n_observations)


class _InCoordinates(LevelSnapshot):
    """A level set whose terms stand for directions of the basis, not for covariates."""

    def _values(self, theta: Any) -> Array:
        return np.asarray(self._basis.project(theta) @ self._evidence.groups.coordinates.T)
