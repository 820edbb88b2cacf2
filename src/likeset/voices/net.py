r"""A net of directions: windows of a linear model for rows that nobody has announced.

Windows that open by themselves (:mod:`~likeset.voices.opening`) are around covariates that were seen. Where an optimist
chooses the rows these are few and alike, and what is known least lies far from all of them: rows that correlate with
it a little are all that tell about it, and no window holds just those. So some directions are fixed beforehand, spread
evenly, whether rows will be observed there or not. Each has a window with what correlates with it by ``alike(dim)`` or
more: about half of all directions.

The net has the axes, as long as there is room for them, and then always that direction which is farthest from those so
far, of some hundreds that were drawn once and for all. It depends on the dimension alone: windows around it are windows
that were fixed before the first row, as :mod:`~likeset.voices.windows` asks.
"""

from __future__ import annotations

from functools import cache
from math import sqrt

import numpy as np

from likeset._typing import Array
from likeset.spaces.linear import Linear
from likeset.voices.windows import Windows

FEWEST, MOST = 20, 48  # directions; in between there are two for every dimension
_CANDIDATES = 512
_APART = 0.99  # no two directions correlate by more


def alike(dim: int) -> float:
    """How much a covariate must correlate with the centre of a window that holds it: 0.8 / sqrt(dim), rounded.

    Directions at random correlate by less or by more with about equal chances.

    >>> [alike(dim) for dim in (4, 5, 15)]
    [0.4, 0.36, 0.21]
    """
    return round(0.8 / sqrt(dim), 2)


@cache
def net_of_directions(dim: int) -> Array:
    """Directions that are spread evenly, one per row; read only.

    >>> net_of_directions(5).shape, net_of_directions(15).shape, net_of_directions(100).shape
    ((20, 5), (30, 15), (48, 100))
    """
    count = min(max(FEWEST, 2 * dim), MOST)
    bits = np.random.PCG64(0).random_raw(_CANDIDATES * dim)
    # How many of 64 bits are set is about normal, so no direction is preferred; and these bits never change.
    candidates = np.array([int(word).bit_count() - 32 for word in bits], dtype=np.float64).reshape(-1, dim)
    if dim <= count:
        candidates = np.vstack([np.eye(dim), candidates])
    centres = Windows.covering(Linear(dim, 1.0), candidates, cover=_APART, max_windows=count).centres
    centres.setflags(write=False)
    return centres
