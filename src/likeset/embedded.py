"""An embedded covariate: what predictors, weightings and sums see of x, and of all else that is known before y."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Any, NamedTuple

from likeset._typing import Array


class Given(NamedTuple):
    """What is known of a row before its y, besides the covariate.

    offset   added to x'theta: z = x'theta + offset
    size     exposure or number of trials, whichever the family knows; 0 where none was given
    entry    time (or its logarithm, as the family has it) from which on a lifetime was watched
    """

    offset: float = 0.0
    size: float = 0.0
    entry: float = -inf


NOTHING = Given()
"""A row of which nothing is given but its covariate."""


@dataclass(frozen=True, slots=True, eq=False)
class Embedded:
    """One covariate as predictors and weightings see it.

    x            the covariate as the user gave it (one row)
    coordinates  in the orthonormal basis of the span, which includes x
    index        number of this distinct covariate, in order of first appearance
    outside      length of the part of x outside that span, at most: small, but not always zero
    given        offset, exposure or trials, and time of entry of the row
    law          the law of y given x'theta, a family, in a row of which something is given; None: the family itself
    """

    x: Array
    coordinates: Array
    index: int
    outside: float = 0.0
    given: Given = NOTHING
    law: Any = None

    def law_or(self, family: Any) -> Any:
        """The law of y given x'theta in this row: the one of its own, or the family's."""
        return family if self.law is None else self.law
