r"""A net of directions: windows of a linear model for rows that nobody has announced.

Windows that open by themselves (:mod:`~likeset.voices.opening`) are around covariates that were seen. Where an optimist
chooses the rows, these are few and alike, and what is known least is far from all of them: what tells about it are rows
that correlate with it a little, and no window holds just these. So a few directions are fixed beforehand that are
spread evenly: half of what is seen correlates with each of them by ``alike(dim)`` or more, where rows point anywhere.

The directions are the axes, as far as they are few, and then always the one that is farthest from those so far, among
some hundreds that were drawn once and for all. They depend on the dimension alone, so that windows around them are
windows fixed before the first row. Entries are whole numbers, the same on every machine.
"""

from __future__ import annotations

from functools import cache
from math import sqrt

import numpy as np

from likeset._typing import Array
from likeset.spaces.linear import Linear
from likeset.voices.windows import Windows

FEWEST, MOST = 20, 48  # directions; in between two for every dimension
_CANDIDATES = 512
_APART = 0.99  # directions that correlate by more are one


def alike(dim: int) -> float:
    """The correlation from which on a window of a linear model holds a covariate: 0.8 / sqrt(dim), rounded.

    Directions at random correlate by less, or by more, with about equal chances.

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
    # How many of 64 bits are set is about normal: directions without a preference.
    candidates = np.array([int(word).bit_count() - 32 for word in bits], dtype=np.float64).reshape(-1, dim)
    if dim <= count:
        candidates = np.vstack([np.eye(dim), candidates])
    centres = Windows.covering(Linear(dim, 1.0), candidates, cover=_APART, max_windows=count).centres
    centres.setflags(write=False)
    return centres
