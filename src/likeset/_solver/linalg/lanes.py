r"""Cholesky factorisations of many small matrices side by side.

Matrix m of a batch sits in lane m: an array (..., lanes) holds one entry of every matrix per row, so the innermost
loop does the same arithmetic on all matrices at once and compiles to vector instructions, which loops over one
matrix of size 10 or 30 do not. Upper triangles are packed row by row, (d (d+1)/2, lanes).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from likeset._typing import Array
from likeset.compiling import njit

BoolArray = NDArray[np.bool_]

LANES = 64  # at most; a batch of 30 x 30 matrices then still fits the second-level cache


@njit(cache=True, error_model="numpy", fastmath={"contract"})
def factor_lanes(M: Array, d: int, failed: BoolArray) -> bool:
    """Overwrite M = U'U by U. Lanes that are not positive definite are marked in ``failed``; True if none is.

    Row k is complete once all rows above have been subtracted from it; four at a time, to load and store it less often.
    """
    lanes = M.shape[1]
    inverse = np.empty(lanes)
    good = True
    row = 0
    for k in range(d):
        width = d - k
        above = k  # where entry (i, k) is
        i = 0
        while i + 4 <= k:
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
            i += 4
        while i < k:
            for j in range(width):
                for m in range(lanes):
                    M[row + j, m] -= M[above, m] * M[above + j, m]
            above += d - i - 1
            i += 1
        for m in range(lanes):
            pivot = M[row, m]
            if pivot > 0.0 and pivot < math.inf:
                inverse[m] = 1.0 / math.sqrt(pivot)
            else:
                inverse[m], failed[m], good = 1.0, True, False
        for j in range(width):
            for m in range(lanes):
                M[row + j, m] *= inverse[m]
        row += width
    return good


@njit(cache=True, error_model="numpy", fastmath={"contract"})
def forward_lanes(U: Array, x: Array) -> None:
    """x <- U'^-1 x, x of shape (d, lanes)."""
    d, lanes = x.shape
    row = 0
    for i in range(d):
        for m in range(lanes):
            x[i, m] /= U[row, m]
        for j in range(1, d - i):
            for m in range(lanes):
                x[i + j, m] -= x[i, m] * U[row + j, m]
        row += d - i


@njit(cache=True, error_model="numpy", fastmath={"contract"})
def backward_lanes(U: Array, x: Array) -> None:
    """x <- U^-1 x, x of shape (d, lanes)."""
    d, lanes = x.shape
    row = (d * (d + 1)) // 2
    for i in range(d - 1, -1, -1):
        row -= d - i
        for j in range(1, d - i):
            for m in range(lanes):
                x[i, m] -= x[i + j, m] * U[row + j, m]
        for m in range(lanes):
            x[i, m] /= U[row, m]


@njit(cache=True, error_model="numpy", fastmath={"contract"})
def dot_lanes(x: Array, y: Array) -> Array:
    """x[:, m]'y[:, m] for every lane m."""
    out = np.zeros(x.shape[1])
    for i in range(x.shape[0]):
        for m in range(x.shape[1]):
            out[m] += x[i, m] * y[i, m]
    return out
