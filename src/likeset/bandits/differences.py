"""Bounds of the difference of two arms, tighter than the difference of their bounds."""

from __future__ import annotations

from typing import Any

import numpy as np

from likeset._typing import EPS, Array
from likeset.spaces import Linear
from likeset.voices import Duels


def difference_uppers(current: Any, sign: float, rows: Array, other: Array) -> Array | None:
    """Upper bounds of sign * (row - other)'theta, one per row; None where the set cannot tell.

    A set may offer ``upper_difference(X, Y)``. Over a Linear space the difference of two covariates is a covariate, so
    any set can tell.
    """
    others = np.broadcast_to(other, rows.shape)
    first, second = (rows, others) if sign > 0 else (others, rows)
    if hasattr(current, "upper_difference"):
        return np.asarray(current.upper_difference(first, second))
    if isinstance(getattr(current, "space", None), Linear):
        lengths = np.linalg.norm(first, axis=1) + np.linalg.norm(second, axis=1)
        bound = current.space.bound
        slack = 4 * EPS * lengths * (bound if np.isfinite(bound) else 1.0)  # of the subtraction
        return np.asarray(current.upper(first - second)) + slack
    return None


def announced_order(seq: Any) -> str | None:
    """Whether duels were announced for the arm with the largest or the smallest z; None if there are none."""
    voices = getattr(seq, "voices", None)
    if not isinstance(voices, Duels):
        return None
    return "largest" if voices.largest else "smallest"
