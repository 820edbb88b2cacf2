"""An embedded covariate: what predictors, weightings and sums see of x."""

from __future__ import annotations

from dataclasses import dataclass

from likeset._typing import Array


@dataclass(frozen=True, slots=True, eq=False)
class Embedded:
    """One covariate as predictors and weightings see it.

    x            the covariate as the user gave it (one row)
    coordinates  in the orthonormal basis of the span, which includes x
    index        number of this distinct covariate, in order of first appearance
    outside      length of the part of x outside that span, at most: small, but not always zero
    """

    x: Array
    coordinates: Array
    index: int
    outside: float = 0.0
