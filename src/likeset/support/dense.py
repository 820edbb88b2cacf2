"""Small dense linear algebra for compiled loops, where a library call costs more than the arithmetic."""

from __future__ import annotations

import numpy as np
from numba import njit

from likeset.support.terms import Array, IntArray

# Re-association lets the compiler vectorise sums; infinities and NaN keep their meaning. With NumPy's error
# model 1 / 0 is inf, as in the rest of the arithmetic.
compiled = njit(cache=True, error_model="numpy", fastmath={"reassoc", "contract", "nsz"})

LOST_PIVOT = 1e-15  # relative to the diagonal


@compiled
def copy(v: Array, out: Array) -> None:
    """Copy v to out; ``out[:] = v`` would allocate memory in case the two overlap."""
    for i in range(v.size):
        out[i] = v[i]


@compiled
def dot(u: Array, v: Array) -> float:
    """The inner product u'v."""
    total = 0.0
    for i in range(u.size):
        total += u[i] * v[i]
    return total


@compiled
def multiply(Xt: Array, v: Array, out: Array) -> None:
    """Set out = X v, given X' with contiguous rows."""
    out[:] = 0.0
    for j in range(Xt.shape[0]):
        row, factor = Xt[j], v[j]
        for k in range(row.size):
            out[k] += factor * row[k]


@compiled
def add_transposed(Xt: Array, v: Array, out: Array) -> None:
    """Add X'v to out."""
    for j in range(Xt.shape[0]):
        out[j] += dot(Xt[j], v)


@compiled
def gather(owner: IntArray, values: Array, out: Array) -> None:
    """Set out[i] = values[owner[i]]."""
    for i in range(owner.size):
        out[i] = values[owner[i]]


@compiled
def sum_by_owner(owner: IntArray, values: Array, out: Array) -> None:
    """Set out[k] to the sum of the values[i] with owner[i] = k."""
    out[:] = 0.0
    for i in range(owner.size):
        out[owner[i]] += values[i]


@compiled
def weighted_gram(Xt: Array, h: Array, scaled: Array, M: Array) -> None:
    """Set the upper triangle of M to that of X' diag(h) X; ``scaled`` is scratch of the shape of X'.

    Blocks of 2 x 4 entries of M are accumulated in registers: each number loaded is used several times.
    """
    d, n_rows = Xt.shape
    for i in range(d):
        for k in range(n_rows):
            scaled[i, k] = h[k] * Xt[i, k]
    last = d - 1  # blocks that stick out repeat the last row; the repeated sums land on the same entry
    for i in range(0, d, 2):
        i1 = min(i + 1, last)
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
            M[i, j], M[i, j1], M[i, j2], M[i, j3] = m00, m01, m02, m03
            M[i1, j], M[i1, j1], M[i1, j2], M[i1, j3] = m10, m11, m12, m13


@compiled
def add_outer(M: Array, v: Array, scale: float) -> None:
    """Add scale * v v' to the upper triangle of M."""
    for i in range(v.size):
        factor = scale * v[i]
        for j in range(i, v.size):
            M[i, j] += factor * v[j]


@compiled
def cholesky(M: Array, diagonal: Array) -> bool:
    """Overwrite the upper triangle of M by U with U'U = M; False if M has a diagonal that is not positive.

    Four rows of U are finished, then subtracted from all later rows in one pass. A pivot lost in rounding
    errors is replaced by a huge one: solutions then do not move in that direction. ``diagonal`` is scratch.
    """
    d = M.shape[0]
    for i in range(d):
        diagonal[i] = M[i, i]
    for top in range(0, d, 4):
        end = min(top + 4, d)
        for i in range(top, end):
            row = M[i]
            if not (diagonal[i] > 0.0 and diagonal[i] < np.inf):
                return False
            pivot = row[i] if row[i] > LOST_PIVOT * diagonal[i] else diagonal[i] / LOST_PIVOT**2
            inverse = 1.0 / np.sqrt(pivot)
            for j in range(i, d):
                row[j] *= inverse
            for k in range(i + 1, end):
                later, factor = M[k], row[k]
                for j in range(k, d):
                    later[j] -= factor * row[j]
        if end < d:
            r0, r1, r2, r3 = M[top], M[top + 1], M[top + 2], M[top + 3]
            for k in range(end, d):
                later = M[k]
                f0, f1, f2, f3 = r0[k], r1[k], r2[k], r3[k]
                for j in range(k, d):
                    later[j] -= f0 * r0[j] + f1 * r1[j] + f2 * r2[j] + f3 * r3[j]
    return True


@compiled
def cholesky_solve(U: Array, b: Array) -> None:
    """Overwrite b by the solution x of U'U x = b."""
    d = b.size
    for i in range(d):
        b[i] /= U[i, i]
        bi = b[i]
        for j in range(i + 1, d):
            b[j] -= bi * U[i, j]
    for i in range(d - 1, -1, -1):
        total = b[i]
        for j in range(i + 1, d):
            total -= U[i, j] * b[j]
        b[i] = total / U[i, i]
