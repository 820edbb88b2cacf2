"""Outer bounds of many directions, a share of them at a time where they take long: so it can be said how far it is.

The first share is timed, and those that follow are as large as a fraction of a second allows. Every bound has its own
certificate, whichever directions are asked for beside it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

import numpy as np

from likeset._solver import Kernel
from likeset._solver.problem import Solution
from likeset._typing import Array, IntArray, Mask
from likeset.progress import EVERY, meter

WORTH_WHILE = 8  # shares of a kernel: as many directions go at once
SECONDS = 0.5 * EVERY  # that a share may take


def bounds_in_shares(answering: Sequence[tuple[Mask, Kernel]], inside: Array, outside: Array) -> Array:
    """The outer bounds of all directions, by the kernel that answers for each; zero where none does."""
    found = np.zeros(len(inside))
    with meter("finding bounds", len(inside)) as at:
        done = 0
        for rows, kernel in answering:
            for share in _shares(np.flatnonzero(rows), kernel):
                at(done)
                found[share] = kernel.bounds(inside[share], outside[share])
                done += len(share)
    return found


def solved_in_shares(kernel: Kernel, inside: Array, outside: Array) -> Solution:
    """The same with what is attained."""
    everyone = np.arange(len(inside))
    if at_once(kernel, len(everyone)):
        return kernel.solve(inside, outside=outside)
    found: list[Solution] = []
    with meter("finding bounds", len(everyone)) as at:
        for share in _shares(everyone, kernel):
            at(float(share[0]))
            found.append(kernel.solve(inside[share], outside=outside[share]))
    values, points, upper = zip(*((one.values, one.points, one.upper) for one in found), strict=True)
    return Solution(np.concatenate(values), np.concatenate(points), np.concatenate(upper))


def at_once(kernel: Kernel, count: int) -> bool:
    """Whether so many directions are too few to be asked for in shares."""
    return count <= WORTH_WHILE * kernel.share


def _shares(rows: IntArray, kernel: Kernel) -> Iterator[IntArray]:
    """All of few rows; of many, larger and larger parts."""
    if at_once(kernel, len(rows)):
        yield rows
        return
    began, done, share = time.perf_counter(), 0, kernel.share
    while done < len(rows):
        yield rows[done : done + share]
        done += share
        share = max(share, int(SECONDS * done / max(time.perf_counter() - began, 1e-9)))
