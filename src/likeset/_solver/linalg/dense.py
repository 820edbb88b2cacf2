"""Small dense linear algebra on lanes: many problems of one shape side by side.

An array (..., lanes) holds one entry of every problem in its last axis. The innermost loop then does the same
arithmetic for all of them and compiles to vector instructions, which loops over one matrix of size 10 or 30
hardly do, and the cost of calls and loops is shared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from likeset._typing import Array, IntArray
from likeset.compiling import njit

# Re-association lets the compiler vectorise sums; infinities and NaN keep their meaning. With NumPy's error
# model 1 / 0 is inf, as in the rest of the arithmetic.
compiled = njit(cache=True, error_model="numpy", fastmath={"reassoc", "contract", "nsz"})
# For functions that only compiled functions call: without an interface to Python they take less time to compile.
if TYPE_CHECKING:
    inner = compiled
else:
    inner = njit(
        cache=True,
        error_model="numpy",
        fastmath={"reassoc", "contract", "nsz"},
        no_cpython_wrapper=True,
        no_cfunc_wrapper=True,
    )
# For a large function with one caller: it becomes part of it, and the optimiser sees its code once instead of twice.
merged = njit(inline="always", error_model="numpy", fastmath={"reassoc", "contract", "nsz"})

LOST_PIVOT = 1e-15  # relative to the diagonal


@inner
def dot(u: Array, v: Array) -> float:
    """The inner product u'v of two vectors."""
    total = 0.0
    for i in range(u.size):
        total += u[i] * v[i]
    return total


@inner
def copy(source: Array, out: Array) -> None:
    """Copy a matrix; ``out[:] = source`` would allocate memory in case the two overlap."""
    for i in range(source.shape[0]):
        for m in range(source.shape[1]):
            out[i, m] = source[i, m]


@inner
def gather(owner: IntArray, values: Array, out: Array, m: int) -> None:
    """Set out[m, i] = values[m, owner[i]]."""
    for i in range(owner.size):
        out[m, i] = values[m, owner[i]]


@inner
def sum_segments(starts: IntArray, values: Array, out: Array, m: int) -> None:
    """Set out[m, k] to the sum of values[m, i] over i from starts[k] to starts[k + 1] - 1."""
    for k in range(out.shape[1]):
        first, last = starts[k], starts[k + 1]
        if last == first + 1:
            out[m, k] = values[m, first]
        else:
            total = 0.0
            for i in range(first, last):
                total += values[m, i]
            out[m, k] = total


@inner
def weighted_gram(Xt: Array, h: Array, m: int, scaled: Array, M: Array) -> None:
    """Set the upper triangle of M to that of X' diag(h[m]) X; ``scaled`` is scratch of the shape of X'.

    Blocks of 2 x 4 entries of M are accumulated in registers: each number loaded is used several times.
    """
    d, n_rows = Xt.shape
    for i in range(d):
        for k in range(n_rows):
            scaled[i, k] = h[m, k] * Xt[i, k]
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


@inner
def cholesky(M: Array, inverse: Array) -> None:
    """Overwrite the upper triangles of M (d, d, lanes) by U with U'U = M; ``inverse`` (d, lanes) gets 1 / U_ii.

    A pivot lost in rounding errors is replaced by a huge one: solutions then do not move in that direction.
    """
    d, _, lanes = M.shape
    for i in range(d):
        for m in range(lanes):
            inverse[i, m] = M[i, i, m]  # the diagonal, until the pivot is known
    for k in range(d):
        blocks = k // 4
        for block in range(blocks):  # subtract four earlier rows in one pass
            i = 4 * block
            for j in range(k, d):
                for m in range(lanes):
                    M[k, j, m] -= (
                        M[i, k, m] * M[i, j, m]
                        + M[i + 1, k, m] * M[i + 1, j, m]
                        + M[i + 2, k, m] * M[i + 2, j, m]
                        + M[i + 3, k, m] * M[i + 3, j, m]
                    )
        for i in range(4 * blocks, k):
            for j in range(k, d):
                for m in range(lanes):
                    M[k, j, m] -= M[i, k, m] * M[i, j, m]
        for m in range(lanes):
            diagonal = inverse[k, m]
            pivot = M[k, k, m]
            kept = pivot if pivot > LOST_PIVOT * diagonal else diagonal / LOST_PIVOT**2
            inverse[k, m] = 1.0 / np.sqrt(kept)
        for j in range(k, d):
            for m in range(lanes):
                M[k, j, m] *= inverse[k, m]


@inner
def cholesky_solve(U: Array, inverse: Array, b: Array) -> None:
    """Overwrite b (d, lanes) by the solutions x of U'U x = b."""
    d, lanes = b.shape
    for i in range(d):
        for m in range(lanes):
            b[i, m] *= inverse[i, m]
        for j in range(i + 1, d):
            for m in range(lanes):
                b[j, m] -= b[i, m] * U[i, j, m]
    for i in range(d - 1, -1, -1):
        for j in range(i + 1, d):
            for m in range(lanes):
                b[i, m] -= b[j, m] * U[i, j, m]
        for m in range(lanes):
            b[i, m] *= inverse[i, m]
