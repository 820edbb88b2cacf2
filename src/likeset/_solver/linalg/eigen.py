r"""Eigenvalues and eigenvectors of a small symmetric matrix, at about half the cost of a general library call.

In a few dimensions LAPACK itself, without the checks around it, is as fast, and nothing has to be compiled first. In
more, Householder reflections bring H to tridiagonal form T, implicit QL steps with Wilkinson's shift bring T to
diagonal form. Eigenvectors are kept as rows, so that every rotation combines two contiguous rows. All steps are
orthogonal: the computed eigenvalues are those of a matrix within a few eps |H| of H, as from any other stable method.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import copysign, sqrt

import numpy as np

from likeset._typing import EPS, Array
from likeset.compiling import REORDER, kernel

TINY = 8  # dimension up to which LAPACK costs no more than a microsecond more
SMALL = 64  # dimension up to which the library call is slower
SMALLEST = 1e-300  # what a matrix of zeros is divided by
MAX_STEPS = 40  # QL steps per eigenvalue; about two are needed


def eigen(H: Array) -> tuple[Array, Array]:
    """Eigenvalues of H in ascending order, and orthonormal eigenvectors as columns; NaN if H is not finite."""
    n = len(H)
    if 0 < n <= TINY:
        values, vectors, failed = _dsyevd()(H)
        if not failed and values[-1] - values[0] < np.inf:
            return values, np.ascontiguousarray(vectors)
    elif n <= SMALL:
        work, rows, vectors = np.empty((3, n)), np.empty((n, n)), H.copy()
        scale = tridiagonal(vectors, work, rows)
        if scale < np.inf and diagonalise(work, scale, rows, vectors):
            return work[0], vectors
    if not np.isfinite(H).all():
        return np.full(n, np.nan), np.eye(n)
    values, vectors = np.linalg.eigh(H)
    return values, np.ascontiguousarray(vectors)


@cache
def _dsyevd() -> Callable[[Array], tuple[Array, Array, int]]:
    """What eigh calls, for a third of its overhead; loaded when needed: importing likeset stays quick."""
    from scipy.linalg.lapack import dsyevd

    return dsyevd


@kernel(fastmath=REORDER)
def tridiagonal(H: Array, work: Array, Q: Array) -> float:
    """T = Q'HQ / scale: its diagonal to work[0], its off-diagonal (padded with a zero) to work[1], Q' to Q.

    Returns scale, the largest entry of H; inf if some are not finite. H is overwritten. Column k is cleared by
    I - 2 v v', |v| = 1, where v is zero up to coordinate k; v goes to row k of H.
    """
    n = H.shape[0]
    diagonal, beside = work[0], work[1]
    scale = 0.0
    for i in range(n):
        for j in range(n):
            if not abs(H[i, j]) < np.inf:
                return np.inf
            scale = max(scale, abs(H[i, j]))
    for i in range(n):
        beside[i] = 0.0
        for j in range(n):
            H[i, j] /= max(scale, SMALLEST)
    # Slices, because indices known to start at 0 are what the compiler vectorises.
    for k in range(n - 2):
        v, w = H[k][k + 1 :], work[2][k + 1 :]
        m = v.shape[0]
        square = 0.0
        for i in range(1, m):
            square += v[i] * v[i]
        if square == 0.0:
            beside[k] = v[0]
            v[0] = 0.0
            continue
        beside[k] = -copysign(sqrt(square + v[0] * v[0]), v[0])
        v[0] -= beside[k]
        shrink = 1.0 / sqrt(square + v[0] * v[0])
        for i in range(m):
            v[i] *= shrink
        # (I - 2vv') H (I - 2vv') = H - 2 (v w' + w v'),  w = Hv - v v'Hv
        inner = 0.0
        for i in range(m):
            row = H[k + 1 + i][k + 1 :]
            total = 0.0
            for j in range(m):
                total += row[j] * v[j]
            w[i] = total
            inner += total * v[i]
        for i in range(m):
            w[i] = 2 * (w[i] - inner * v[i])
        for i in range(m):
            row, by_v, by_w = H[k + 1 + i][k + 1 :], v[i], w[i]
            for j in range(m):
                row[j] -= by_v * w[j] + by_w * v[j]
    if n > 1:
        beside[n - 2] = H[n - 2, n - 1]

    for i in range(n):
        for j in range(n):
            Q[i, j] = 0.0
        Q[i, i] = 1.0
        diagonal[i] = H[i, i]
    for k in range(n - 3, -1, -1):  # from the last reflection to the first
        v = H[k][k + 1 :]
        for i in range(k + 1, n):
            row = Q[i][k + 1 :]
            total = 0.0
            for j in range(v.shape[0]):
                total += row[j] * v[j]
            total *= 2.0
            for j in range(v.shape[0]):
                row[j] -= total * v[j]
    return scale


@kernel(fastmath=REORDER)
def diagonalise(work: Array, scale: float, rows: Array, vectors: Array) -> bool:
    """From T to the eigenvalues, ascending, in work[0], and the eigenvectors in columns; whether it worked."""
    d, e = work[0], work[1]
    n = d.shape[0]
    highest, steepest = 0.0, 0.0
    for i in range(n):
        highest, steepest = max(highest, abs(d[i])), max(steepest, abs(e[i]))
    negligible = 0.5 * EPS * (highest + steepest)
    for first in range(n):
        found = False
        for _ in range(MAX_STEPS):
            last = first
            while last < n - 1 and abs(e[last]) > negligible:
                last += 1
            if last == first:
                found = True
                break
            # Wilkinson's shift, and the bulge chased from the bottom of the block to its top
            half = (d[first + 1] - d[first]) / (2 * e[first])
            g = d[last] - d[first] + e[first] / (half + copysign(sqrt(half * half + 1.0), half))
            sine, cosine, shift = 1.0, 1.0, 0.0
            finished = True
            for i in range(last - 1, first - 1, -1):
                f, b = sine * e[i], cosine * e[i]
                length = sqrt(f * f + g * g)
                e[i + 1] = length
                if length == 0.0:  # the block falls apart
                    d[i + 1] -= shift
                    e[last] = 0.0
                    finished = False
                    break
                sine, cosine = f / length, g / length
                g = d[i + 1] - shift
                turn = (d[i] - g) * sine + 2 * cosine * b
                shift = sine * turn
                d[i + 1] = g + shift
                g = cosine * turn - b
                upper, lower = rows[i], rows[i + 1]
                for j in range(n):
                    old = lower[j]
                    lower[j] = sine * upper[j] + cosine * old
                    upper[j] = cosine * upper[j] - sine * old
            if finished:
                d[first] -= shift
                e[first] = g
                e[last] = 0.0
        if not found:
            return False
    for i in range(1, n):  # sort by insertion, each value with its row
        for k in range(i, 0, -1):
            if d[k - 1] <= d[k]:
                break
            d[k - 1], d[k] = d[k], d[k - 1]
            for j in range(n):
                rows[k - 1, j], rows[k, j] = rows[k, j], rows[k - 1, j]
    for i in range(n):
        d[i] *= scale
        for j in range(n):
            vectors[j, i] = rows[i, j]
    return True
