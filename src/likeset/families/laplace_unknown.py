"""Laplace noise whose scale nobody knows."""

from __future__ import annotations

import numpy as np

from likeset._typing import Array
from likeset.arguments import floats
from likeset.families.laplace import Laplace
from likeset.families.nuisance_family import NuisanceFamily, grid_of_scales
from likeset.families.outside_unknown import NoiseOfUnknownScale
from likeset.families.scale_beliefs import LaplaceScalePosterior
from likeset.families.scale_sums import UnitPointSums
from likeset.families.unknown import Unknown


class LaplaceOfUnknownScale(NuisanceFamily):
    """y = z + Laplace noise of a scale in [lo, hi]; made by ``Laplace(scale=Unknown(lo, hi))``.

    The scale can be projected out in closed form: sets for theta are level sets of the sum of absolute residuals
    (:mod:`likeset._solver.nuisance`).

    >>> family = Laplace(scale=Unknown(hi=3.0))
    >>> family, family.known(0.5)
    (Laplace(scale=Unknown(hi=3)), Laplace(scale=0.5))
    """

    mean_link = "identity"
    nuisance = "scale"
    constructor = Laplace
    prior_precisions = 100.0 ** np.arange(-3.0, 2.0)  # in units of the scale; every one of them is fitted

    def __init__(self, scale: Unknown) -> None:
        super().__init__(scale)
        self.scale = scale

    def mean(self, z: Array) -> Array:
        """E[y] = z, whatever the scale is."""
        return floats("z", z)

    def information(self, z: Array) -> Array:
        """1 in units of the noise, in which beliefs are kept."""
        return np.ones_like(floats("z", z))

    def merged_sums(self) -> UnitPointSums:
        """Sorted points."""
        return UnitPointSums(self, self.scale)

    def outside(self) -> NoiseOfUnknownScale:
        """Other forms of noise."""
        return NoiseOfUnknownScale(sharp=True)

    def posterior(self, priors: Array) -> LaplaceScalePosterior:
        """Variational beliefs about theta in units of the scale; ``priors`` are precisions in these units."""
        return LaplaceScalePosterior(self.merged_sums(), priors, grid_of_scales(self.scale))
