"""What all evidence has in common: which parameters it leaves in the set."""

from __future__ import annotations

from collections.abc import Callable
from math import inf

import numpy as np

from likeset._typing import Array, Mask
from likeset.parts import MadeFromParts


class Judging(MadeFromParts):
    """log R and a threshold; ``log_ratio_with_rounding`` may take the value of an unknown number, too."""

    threshold: float
    log_ratio_with_rounding: Callable[..., tuple[Array, Array]]

    @property
    def says_nothing(self) -> bool:
        """Whether log R is the same for every theta, and below the threshold."""
        raise NotImplementedError  # by all evidence

    @property
    def fits_without_noise(self) -> bool:
        """Whether some theta explains all outcomes, where the scale of the noise may be anything."""
        return False

    def allows(self, values: Array, norms: Array, *nuisance: float) -> Mask:
        """Whether log R <= threshold up to rounding, for parameters with these z and norms."""
        if self.says_nothing:
            return np.ones(len(values), dtype=bool)
        found, rounding = self.log_ratio_with_rounding(values, norms, *nuisance)
        return (found < inf) & (found - self.threshold <= rounding)
