"""Ties: bounds that differ by less than their rounding are equal, and a documented rule decides."""

from __future__ import annotations

import numpy as np

from likeset._typing import Array

TIE = 1e-6  # relative: bounds closer than this are ties (they are rounded outward by less)


def tie_width(scores: Array) -> float:
    """Differences of scores that mean nothing."""
    largest = float(np.maximum.reduce(np.abs(scores), initial=0.0))
    if not largest < np.inf:
        largest = float(np.abs(scores[np.isfinite(scores)]).max(initial=0.0))
    return TIE * largest


def highest(scores: Array, rng: np.random.Generator | None) -> int:
    """The index of the highest score; among ties the lowest index, or a random one if there is a generator."""
    tied = np.flatnonzero(scores >= scores.max() - tie_width(scores))
    return int(tied[0] if rng is None else rng.choice(tied))


def ranked(scores: Array, n: int, rng: np.random.Generator | None) -> list[int]:
    """``n`` different indices: each the ``highest`` of those that are left."""
    chosen = [highest(scores, rng)]
    while len(chosen) < n:
        left = np.delete(np.arange(len(scores)), chosen)
        chosen.append(int(left[highest(scores[left], rng)]))
    return chosen
