r"""A kernel over numbers and categories at once.

    k(x, y) = s^2 m(r) prod_{j in C} c_j,      r^2 = sum_{j not in C} ((x_j - y_j) / l_j)^2,
    m(r) = (1 + a + a^2/3) e^{-a},  a = sqrt(5) r,        c_j = 1 where x_j = y_j, and ``alike`` elsewhere.

Symbols: s = ``scale``, l_j = ``lengths[j]``, C = coordinates whose length is zero (categories: any two values are as
different as any two others). m is Matern's of smoothness 5/2; c is positive definite for 0 <= alike < 1; products of
kernels are kernels. For fixed categories k falls with the distance in every coordinate, as certified maxima need.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from likeset._typing import Array
from likeset.arguments import positive, real_array, real_number
from likeset.errors import InvalidArgumentError

DEFAULT_ALIKE = 0.5


class MixedKernel:
    """Matern 5/2 over coordinates with a length scale, exchangeable over those whose length is 0 (categories).

    >>> k = MixedKernel([0.5, 0.0])
    >>> k([[0.0, 1.0]], [[0.0, 1.0], [0.0, 2.0]])
    array([[1. , 0.5]])
    """

    falls_with_distance = True
    """In every number, for fixed categories: what :mod:`likeset.bandits.certified_maximum` asks for."""

    def __init__(self, lengths: Any, scale: float = 1.0, alike: float = DEFAULT_ALIKE) -> None:
        self.lengths = real_array("lengths", lengths).reshape(-1)
        if (self.lengths < 0).any():
            raise InvalidArgumentError("lengths", lengths, "are below zero", "pass lengths, or 0 for categories")
        self.scale, self.alike = positive("scale", scale), real_number("alike", alike)
        if not 0.0 <= self.alike < 1.0:
            raise InvalidArgumentError("alike", alike, "is no correlation of two categories", "pass one in [0, 1)")
        self._numbers = self.lengths > 0

    def __repr__(self) -> str:
        return f"MixedKernel({self.lengths.tolist()}, scale={self.scale:g}, alike={self.alike:g})"

    def __call__(self, X: Any, Y: Any) -> Array:
        """k of all pairs of rows."""
        X, Y = np.asarray(X, dtype=np.float64), np.asarray(Y, dtype=np.float64)
        squares, shared = np.zeros((len(X), len(Y))), np.ones((len(X), len(Y)))
        for j, length in enumerate(self.lengths):
            apart = X[:, j, None] - Y[None, :, j]
            if length > 0:
                squares += (apart / length) ** 2
            else:
                shared[apart != 0] *= self.alike
        a = np.sqrt(5.0 * squares)
        return np.asarray(self.scale**2 * (1.0 + a + a * a / 3.0) * np.exp(-a) * shared)

    def diag(self, X: Any) -> Array:
        """k(x, x) of every row."""
        return np.full(len(X), self.scale**2)
