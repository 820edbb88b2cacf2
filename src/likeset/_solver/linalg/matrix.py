r"""One small symmetric matrix: Cholesky's factorisation, triangular solves, sums of weighted squares.

Factors are lower triangles L, LL' = M, unless a function says otherwise; what is above the diagonal is not looked at.
"""

from __future__ import annotations

import math

from likeset._typing import Array
from likeset.compiling import REORDER, inner, kernel

LOST_PIVOT = 1e-15  # relative to the diagonal it came from: a smaller pivot is all rounding


@inner(fastmath=REORDER)
def dot(u: Array, v: Array) -> float:
    """The inner product u'v of two vectors."""
    total = 0.0
    for i in range(u.shape[0]):
        total += u[i] * v[i]
    return total


@kernel(fastmath=REORDER)
def cholesky(H: Array, shift: float, L: Array) -> bool:
    """Write the Cholesky factor of H + shift I to the lower triangle of L (it may be H); False if a pivot is lost."""
    for i in range(H.shape[0]):
        diagonal = H[i, i] + shift
        for j in range(i):
            total = H[i, j]
            for m in range(j):
                total -= L[i, m] * L[j, m]
            L[i, j] = total / L[j, j]
        pivot = diagonal
        for m in range(i):
            pivot -= L[i, m] * L[i, m]
        if not pivot > LOST_PIVOT * diagonal:
            return False
        L[i, i] = math.sqrt(pivot)
    return True


@inner(fastmath=REORDER)
def solve_lower(L: Array, x: Array) -> None:
    """x <- L^-1 x, for as many entries of x as L has rows."""
    for i in range(L.shape[0]):
        total = x[i]
        for j in range(i):
            total -= L[i, j] * x[j]
        x[i] = total / L[i, i]


@inner(fastmath={"contract"})
def solve_lower_transposed(L: Array, x: Array) -> None:
    """x <- L'^-1 x, by rows of L."""
    for i in range(L.shape[0] - 1, -1, -1):
        x[i] /= L[i, i]
        for j in range(i):
            x[j] -= L[i, j] * x[i]


@inner()
def rank_one_update(L: Array, x: Array) -> None:
    """L <- the Cholesky factor of LL' + xx'; x is overwritten."""
    d = x.shape[0]
    for k in range(d):
        r = math.hypot(L[k, k], x[k])
        c, s = r / L[k, k], x[k] / L[k, k]
        L[k, k] = r
        for i in range(k + 1, d):
            L[i, k] = (L[i, k] + s * x[i]) / c
            x[i] = c * x[i] - s * L[i, k]
