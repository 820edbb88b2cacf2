"""Survival curves with bounds: the probability to be event-free at each time, of each row asked about.

A row that is censored at t has the density of living longer, S(t | z, k) for the linear predictor z and the shape k;
the larger z, the smaller S. Where the shape is not known, the truth is in the set only if z lies between the bounds of
z and k between those of k. For a fixed z and t, S is monotone in k, so that the corners of that rectangle hold its
least and its largest value: bounds that are certain, and wider than the set itself would give.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from likeset._typing import Array
from likeset.families.base import Family
from likeset.families.nuisance_family import NuisanceFamily
from likeset.sets import LikelihoodSet
from likeset.study.asking import predictor_ends

_FAR = 700.0


def curves(family: Any, s: LikelihoodSet, x: Array, times: Array) -> tuple[Array, Array, Array]:
    """Estimate, lower and upper bound of S: rows of x by times."""
    z_low, z_high = predictor_ends(s, x)
    z = np.clip(x @ s.centre, z_low, z_high) if s.n_observations else np.full(len(x), np.nan)
    if not isinstance(family, NuisanceFamily):
        return tuple(_surviving(family, ends, times) for ends in (z, z_high, z_low))  # type: ignore[return-value]
    ends = s.nuisance_interval()
    laws = [family.known(k) for k in ends]
    lower = np.minimum(*(_surviving(law, z_high, times) for law in laws))
    upper = np.maximum(*(_surviving(law, z_low, times) for law in laws))
    middle = family.known(float(np.sqrt(ends[0] * ends[1])))
    return _surviving(middle, z, times), lower, upper


def _surviving(law: Family, z: Array, times: Array) -> Array:
    """S of each row's z at each time."""
    censored = law.observations(np.column_stack([times, np.zeros(len(times))])) if len(times) else times
    rows = [np.exp(law.log_density(censored, np.full(len(times), np.clip(one, -_FAR, _FAR)))) for one in z]
    return np.array(rows, dtype=np.float64).reshape(len(z), len(times))
