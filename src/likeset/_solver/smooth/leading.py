r"""Coordinates in which the curvature of the likelihood counts beside that of the ball.

The Newton matrix M = lam H + mu I of a direction costs O(d^3) to factorise. The features of a smooth kernel give
Hessians whose eigenvalues fall by orders of magnitude from one to the next, and most of them vanish beside mu. In
the eigenbasis of the Hessian at the centre, sorted by falling eigenvalue, the matrix

    M~ = lam [ H_11      0     ] + mu I,          H_11 the leading r x r block,
             [  0    diag H_22 ]

is as good as M for a *step* when lam h_ii <= NEGLIGIBLE mu for all i > r: since H is positive semi-definite, the
off-diagonal entries that are left out are at most sqrt(h_ii h_jj). Bounds do not depend on M: any
point has a valid certificate.
"""

from __future__ import annotations

import numpy as np

from likeset._typing import Array
from likeset.compiling import kernel

NEGLIGIBLE = 1e-2
WORTHWHILE = 0.8  # a leading block of a larger share of the coordinates is not worth the change of basis
SMALL = 16  # nor is any in fewer dimensions


def leading_block(diagonals: Array, lam: Array, mu: Array) -> int:
    """The smallest r that serves all directions; ``diagonals`` (n, d) of their Hessians in the eigenbasis."""
    d = diagonals.shape[1]
    counts = np.flatnonzero(np.any(lam[:, None] * diagonals >= NEGLIGIBLE * mu[:, None], axis=0))
    r = int(counts[-1]) + 1 if len(counts) else 1
    return r if r <= WORTHWHILE * d else d


@kernel(allocates=True)
def packed_products(X: Array, d: int) -> Array:
    """x_ki x_kj for i <= j < d, one row for every pair (row by row of the upper triangle), one column for every k."""
    K = X.shape[0]
    table = np.empty(((d * (d + 1)) // 2, K))
    columns = np.empty((d, K))
    for k in range(K):
        for i in range(d):
            columns[i, k] = X[k, i]
    row = 0
    for i in range(d):
        for j in range(i, d):
            for k in range(K):
                table[row, k] = columns[i, k] * columns[j, k]
            row += 1
    return table
