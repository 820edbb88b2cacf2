r"""Many small symmetric matrices side by side: Cholesky's factorisation and triangular solves.

Matrix m of a batch sits in *lane* m: an array (..., lanes) holds one entry of every matrix per row, so the innermost
loop does the same arithmetic on all matrices at once and compiles to vector instructions, which loops over one
matrix of size 10 or 30 hardly do, and the cost of calls and loops is shared. Upper triangles are packed row by row,
(d (d+1)/2, lanes). Of a factor U, U'U = M, the diagonal holds 1 / U_ii: divisions are slow.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from likeset._typing import Array, IntArray, Mask
from likeset.compiling import inner

LANES = 64  # at most; a batch of 30 x 30 matrices then still fits the second-level cache
HUGE_INVERSE = 1e-15  # 1 / U_ii of a lost pivot, relative to that of the diagonal it came from
CONTRACT = {"contract"}


@cache
def packed_indices(d: int) -> tuple[IntArray, IntArray]:
    """Rows and columns of a packed upper triangle, row by row."""
    return np.triu_indices(d)  # type: ignore[return-value]


@inner(fastmath=CONTRACT)
def factor_lanes(M: Array, d: int, least: float, failed: Mask, inverse: Array, diagonal: Array) -> bool:
    """Overwrite M = U'U by U. Lanes where a pivot is lost are marked in ``failed``; True if none is.

    A pivot is lost if it is not above ``least`` times the diagonal it came from. It is replaced by a huge one:
    solutions then do not move in that direction. Row k is complete once all rows above have been subtracted from
    it; four at a time, to load and store it less often. The last two arguments are scratch, one number per lane.
    """
    lanes = M.shape[1]
    good = True
    row = 0
    for k in range(d):
        width = d - k
        for m in range(lanes):
            diagonal[m] = M[row, m]
        above = k  # where entry (i, k) is
        for i in range(0, k - 3, 4):
            second = above + d - i - 1
            third = second + d - i - 2
            fourth = third + d - i - 3
            for j in range(width):
                for m in range(lanes):
                    M[row + j, m] -= (
                        M[above, m] * M[above + j, m]
                        + M[second, m] * M[second + j, m]
                        + M[third, m] * M[third + j, m]
                        + M[fourth, m] * M[fourth + j, m]
                    )
            above = fourth + d - i - 4
        for i in range(k - k % 4, k):
            for j in range(width):
                for m in range(lanes):
                    M[row + j, m] -= M[above, m] * M[above + j, m]
            above += d - i - 1
        for m in range(lanes):
            pivot = M[row, m]
            lost = not (pivot > least * diagonal[m] and pivot < math.inf)
            inverse[m] = HUGE_INVERSE / math.sqrt(abs(diagonal[m])) if lost else 1.0 / math.sqrt(pivot)
            if lost:
                failed[m], good = True, False
        for j in range(1, width):
            for m in range(lanes):
                M[row + j, m] *= inverse[m]
        for m in range(lanes):
            M[row, m] = inverse[m]
        row += width
    return good


@inner(fastmath=CONTRACT)
def forward_lanes(U: Array, d: int, x: Array) -> None:
    """x <- U'^-1 x in the first d rows of x (d or more, lanes)."""
    row = 0
    for i in range(d):
        for m in range(x.shape[1]):
            x[i, m] *= U[row, m]
        for j in range(1, d - i):
            for m in range(x.shape[1]):
                x[i + j, m] -= x[i, m] * U[row + j, m]
        row += d - i


@inner(fastmath=CONTRACT)
def backward_lanes(U: Array, d: int, x: Array) -> None:
    """x <- U^-1 x in the first d rows of x (d or more, lanes)."""
    row = (d * (d + 1)) // 2
    for i in range(d - 1, -1, -1):
        row -= d - i
        for j in range(1, d - i):
            for m in range(x.shape[1]):
                x[i, m] -= x[i + j, m] * U[row + j, m]
        for m in range(x.shape[1]):
            x[i, m] *= U[row, m]


@inner(fastmath=CONTRACT)
def dot_lanes(x: Array, y: Array, out: Array) -> None:
    """Set out[m] = x[:, m]'y[:, m] for every lane m."""
    for m in range(x.shape[1]):
        out[m] = 0.0
    for i in range(x.shape[0]):
        for m in range(x.shape[1]):
            out[m] += x[i, m] * y[i, m]
