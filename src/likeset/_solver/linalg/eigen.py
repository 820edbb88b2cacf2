r"""Eigenvalues and eigenvectors of a small symmetric matrix, at about half the cost of a general library call.

Householder reflections bring H to tridiagonal form T, implicit QL steps with Wilkinson's shift bring T to diagonal
form. Eigenvectors are kept as rows, so that every rotation combines two contiguous rows. All steps are orthogonal:
the computed eigenvalues are those of a matrix within a few eps |H| of H, as from any other stable method.
"""

from __future__ import annotations

from math import copysign, sqrt

import numpy as np

from likeset._solver.quadratic.pencil import REORDER
from likeset._typing import EPS, Array
from likeset.compiling import njit

SMALL = 64  # dimension up to which the library call is slower
MAX_STEPS = 40  # QL steps per eigenvalue; about two are needed


@njit(cache=True, error_model="numpy")
def eigen(H: Array) -> tuple[Array, Array]:
    """Eigenvalues of H in ascending order, and orthonormal eigenvectors as columns."""
    n = len(H)
    scale = 0.0
    for i in range(n):
        for j in range(n):
            if not np.isfinite(H[i, j]):
                return np.full(n, np.nan), identity(n)
            scale = max(scale, abs(H[i, j]))
    if scale == 0.0:
        return np.zeros(n), identity(n)
    if n <= SMALL:
        diagonal, beside, rows = tridiagonal(H / scale)
        if diagonalise(diagonal, beside, rows):
            sort_rows(diagonal, rows)
            vectors = np.empty((n, n))
            for i in range(n):
                diagonal[i] *= scale
                for j in range(n):
                    vectors[j, i] = rows[i, j]
            return diagonal, vectors
    values, vectors = np.linalg.eigh(H)
    return values, np.ascontiguousarray(vectors)


# Plain loops where NumPy has a word for it: its sorting and indexing take seconds to compile.


@njit(cache=True, error_model="numpy")
def identity(n: int) -> Array:
    """I."""
    eye = np.zeros((n, n))
    for i in range(n):
        eye[i, i] = 1.0
    return eye


@njit(cache=True, error_model="numpy")
def sort_rows(values: Array, rows: Array) -> None:
    """Sort the values in place, each with its row, by insertion."""
    n = len(values)
    for i in range(1, n):
        for k in range(i, 0, -1):
            if values[k - 1] <= values[k]:
                break
            values[k - 1], values[k] = values[k], values[k - 1]
            for j in range(n):
                rows[k - 1, j], rows[k, j] = rows[k, j], rows[k - 1, j]


@njit(cache=True, error_model="numpy", fastmath=REORDER)
def tridiagonal(H: Array) -> tuple[Array, Array, Array]:
    """T = Q'HQ: its diagonal, its off-diagonal (padded with a zero), and Q'; H is overwritten.

    Column k is cleared by I - 2 v v', |v| = 1, where v is zero up to coordinate k; v goes to row k of H.
    """
    n = len(H)
    beside = np.zeros(n)
    work = np.empty(n)
    for k in range(n - 2):
        v, w = H[k][k + 1 :], work[k + 1 :]
        m = len(v)
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

    Q = identity(n)  # Q', from the last reflection to the first
    for k in range(n - 3, -1, -1):
        v = H[k][k + 1 :]
        for i in range(k + 1, n):
            row = Q[i][k + 1 :]
            total = 0.0
            for j in range(len(v)):
                total += row[j] * v[j]
            total *= 2.0
            for j in range(len(v)):
                row[j] -= total * v[j]
    diagonal = np.empty(n)
    for i in range(n):
        diagonal[i] = H[i, i]
    return diagonal, beside, Q


@njit(cache=True, error_model="numpy", fastmath=REORDER)
def diagonalise(d: Array, e: Array, rows: Array) -> bool:
    """Turn d into the eigenvalues of the tridiagonal matrix and ``rows`` into the eigenvectors; whether it worked."""
    n = len(d)
    highest, steepest = 0.0, 0.0
    for i in range(n):
        highest, steepest = max(highest, abs(d[i])), max(steepest, abs(e[i]))
    negligible = 0.5 * EPS * (highest + steepest)
    for first in range(n):
        for _ in range(MAX_STEPS):
            last = first
            while last < n - 1 and abs(e[last]) > negligible:
                last += 1
            if last == first:
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
        else:
            return False
    return True
