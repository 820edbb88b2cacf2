r"""One small symmetric matrix: Cholesky's factorisation, triangular solves, sums of weighted squares.

Factors are lower triangles L, LL' = M, unless a function says otherwise; what is above the diagonal is not looked at.
"""

from __future__ import annotations

import math

from likeset._typing import Array
from likeset.compiling import REORDER, inner, kernel

SUMS = {"reassoc", "contract", "nsz"}  # as REORDER, and the sign of a zero does not matter
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


@inner(fastmath=SUMS)
def weighted_gram(Xt: Array, h: Array, m: int, scaled: Array, M: Array) -> None:
    """Set column m of M, packed upper triangles, to that of X' diag(h[m]) X; ``scaled`` is scratch of the shape of X'.

    Blocks of 2 x 4 entries are accumulated in registers: each number loaded is used several times.
    """
    d, n_rows = Xt.shape
    for i in range(d):
        for k in range(n_rows):
            scaled[i, k] = h[m, k] * Xt[i, k]
    last = d - 1  # blocks that stick out repeat the last row; the repeated sums land on the same entry
    for i in range(0, d, 2):
        i1 = min(i + 1, last)
        row, row1 = i * d - (i * (i - 1)) // 2 - i, i1 * d - (i1 * (i1 - 1)) // 2 - i1  # where entries (i, 0) would be
        a0, a1 = scaled[i], scaled[i1]
        for j in range(i, d, 4):
            j1, j2, j3 = min(j + 1, last), min(j + 2, last), min(j + 3, last)
            b0, b1, b2, b3 = Xt[j], Xt[j1], Xt[j2], Xt[j3]
            m00, m01, m02, m03, m10, m11, m12, m13 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
            for k in range(n_rows):
                x, y = a0[k], a1[k]
                m00 += x * b0[k]
                m01 += x * b1[k]
                m02 += x * b2[k]
                m03 += x * b3[k]
                m10 += y * b0[k]
                m11 += y * b1[k]
                m12 += y * b2[k]
                m13 += y * b3[k]
            M[row + j, m], M[row + j1, m], M[row + j2, m], M[row + j3, m] = m00, m01, m02, m03
            if j >= i1:
                M[row1 + j, m] = m10
            M[row1 + j1, m], M[row1 + j2, m], M[row1 + j3, m] = m11, m12, m13


@inner(fastmath=SUMS)
def eliminate(U: Array) -> None:
    """Overwrite the left square of U, M, by the upper factor, U'U = M, and the columns B beside it by U'^-1 B.

    Pivots are not looked at: for matrices that are known to be at least the identity.
    """
    width = U.shape[1]
    for k in range(U.shape[0]):
        row, blocks = U[k], k // 4
        for block in range(blocks):  # subtract four earlier rows in one pass
            i = 4 * block
            r0, r1, r2, r3 = U[i], U[i + 1], U[i + 2], U[i + 3]
            f0, f1, f2, f3 = r0[k], r1[k], r2[k], r3[k]
            for j in range(k, width):
                row[j] -= f0 * r0[j] + f1 * r1[j] + f2 * r2[j] + f3 * r3[j]
        for i in range(4 * blocks, k):
            earlier, factor = U[i], U[i, k]
            for j in range(k, width):
                row[j] -= factor * earlier[j]
        inverse = 1.0 / math.sqrt(row[k])
        for j in range(k, width):
            row[j] *= inverse


@inner(fastmath=SUMS)
def solve_upper(U: Array, x: Array) -> None:
    """x <- U^-1 x, U the left square of a matrix with as many rows as x has entries."""
    for k in range(x.size - 1, -1, -1):
        row, total = U[k], x[k]
        for j in range(k + 1, x.size):
            total -= row[j] * x[j]
        x[k] = total / row[k]
