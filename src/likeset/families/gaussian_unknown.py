"""Gaussian noise whose standard deviation nobody knows."""

from __future__ import annotations

import numpy as np

from likeset._typing import Array
from likeset.arguments import LARGEST, floats
from likeset.curves import Curve
from likeset.families.gaussian import Gaussian
from likeset.families.nuisance_family import NuisanceFamily, grid_of_scales
from likeset.families.outside_unknown import NoiseOfUnknownScale
from likeset.families.scale_beliefs import ScalePosterior
from likeset.families.scale_sums import SquareSums
from likeset.families.unknown import Unknown


class GaussianOfUnknownScale(NuisanceFamily):
    """y = z + sigma * standard normal noise, sigma in [lo, hi]; made by ``Gaussian(sigma=Unknown(lo, hi))``.

    In (theta/sigma, 1/sigma) the negative log-likelihood is convex, and sigma can be projected out in closed form: sets
    for theta are level sets of the residual sum of squares (:mod:`likeset._solver.nuisance`).

    >>> family = Gaussian(sigma=Unknown(0.1, 3.0))
    >>> family, family.known(0.5)
    (Gaussian(sigma=Unknown(lo=0.1, hi=3)), Gaussian(sigma=0.5))
    """

    mean_link = "identity"

    nuisance = "sigma"
    patience_pays = True
    curve = Curve.QUADRATIC  # rows may have offsets
    largest_offset = LARGEST
    constructor = Gaussian
    prior_precisions = 10.0 ** np.arange(-8.0, 3.0)

    def __init__(self, sigma: Unknown) -> None:
        super().__init__(sigma)
        self.sigma = sigma

    def mean(self, z: Array) -> Array:
        """E[y] = z, whatever sigma is."""
        return floats("z", z)

    def information(self, z: Array) -> Array:
        """1 in units of the noise, in which beliefs are kept."""
        return np.ones_like(floats("z", z))

    def statistics(self, y: Array) -> tuple[Array, Array, Array]:
        """(a, s, c) for sigma = 1: a = 1, s = y."""
        return np.ones_like(y), y, -0.5 * y * y

    def merged_sums(self) -> SquareSums:
        """Sums for sigma = 1, and squares."""
        return SquareSums(self, self.sigma)

    evidence_sums = merged_sums

    def outside(self) -> NoiseOfUnknownScale:
        """Other forms of noise."""
        return NoiseOfUnknownScale(sharp=False)

    def posterior(self, priors: Array) -> ScalePosterior:
        """Exact beliefs about theta in units of sigma, and about sigma; ``priors`` are precisions in these units."""
        return ScalePosterior(priors, grid_of_scales(self.sigma))
