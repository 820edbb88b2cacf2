r"""The convex function whose sublevel set is a confidence set.

After merging repeated covariates, the negative log-likelihood is a sum with one term per distinct
covariate,

    F(theta) = sum_k phi_k(x_k' theta),        phi_k : R -> R convex.

Three shapes of phi_k cover every family:

* :class:`CurveTerms`      phi_k(z) = a_k A(z) - s_k z,  A one of z^2/2, e^z, log(1 + e^z), or the same from a reference
  (all exponential families: cost does not grow with the number of observations);
* :class:`PointTerms`      phi_k(z) = sum_i u_ki |y_ki - z|   (Laplace noise);
* :class:`CallableTerms`   phi_k given by a user's vectorised function.

The set itself is a :class:`LevelSet`:  C = { theta : F(theta) <= level, |theta| <= radius }.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from likeset._typing import Array, IntArray
from likeset.curves import Curve


@dataclass(frozen=True)
class CurveTerms:
    """phi_k(z) = a_k A(z) - s_k z with one curve A for all k; a_k >= 0.

    With ``origins`` o_k, a reference for every term (not for SOFTPLUS), the same counted from there:

        phi_k(z) = a_k [A(z) - A(o_k) - A'(o_k) (z - o_k)] - s_k (z - o_k),

    s_k being minus the slope at o_k. Near o_k no large numbers cancel.
    """

    curve: Curve
    a: Array
    s: Array
    origins: Array | None = None

    def __post_init__(self) -> None:
        if self.origins is not None and (self.curve == Curve.SOFTPLUS or self.origins.shape != self.a.shape):
            raise ValueError(f"origins {self.origins!r} do not fit {len(self.a)} terms of {self.curve!r}")

    def scaled(self, weights: Array) -> CurveTerms:
        """The terms weights_k phi_k."""
        return CurveTerms(self.curve, weights * self.a, weights * self.s, self.origins)

    def at(self, chosen: NDArray[Any]) -> CurveTerms:
        """Some of the terms, by number or by mask."""
        origins = None if self.origins is None else self.origins[chosen]
        return CurveTerms(self.curve, self.a[chosen], self.s[chosen], origins)


@dataclass(frozen=True)
class PointTerms:
    """phi_k(z) = sum of weights[i] |points[i] - z| over i in starts[k] : starts[k+1].

    Points are sorted within each k; weights are positive.
    """

    starts: IntArray
    points: Array
    weights: Array


@dataclass(frozen=True)
class CallableTerms:
    """phi_k(z) given by a vectorised function.

    ``evaluate(Z)`` takes Z of shape (..., K) and returns (value, first, second derivative), each of the
    shape of Z: entry [..., k] is phi_k and its derivatives at Z[..., k]. Second derivatives are >= 0.
    """

    evaluate: Callable[[Array], tuple[Array, Array, Array]]


Terms = CurveTerms | PointTerms | CallableTerms


@dataclass(frozen=True)
class LevelSet:
    """C = { theta in R^d : sum_k phi_k(x_k' theta) <= level, |theta| <= radius }; radius may be inf.

    ``X`` has shape (K, d), one row per distinct covariate. Rows may be linearly dependent and may fail to
    span R^d.
    """

    X: Array
    terms: Terms
    level: float
    radius: float


@dataclass(frozen=True)
class Solution:
    """Answers of the support function for n directions.

    values   a'theta at ``points``: attained, hence a lower bound of the maximum, shape (n,)
    points   feasible maximisers, shape (n, d)
    upper    certified outer bound of the maximum (inf where the set is unbounded), shape (n,)
    """

    values: Array
    points: Array
    upper: Array


class PreparedSet(Protocol):
    """A level set ready to answer directions."""

    @property
    def status(self) -> str:
        """ "regular", "point" (one point within rounding) or "empty" (certified)."""
        ...

    @property
    def centre(self) -> Array:
        """A point of the set; for an empty one, the point that comes closest."""
        ...

    def solve(self, A: Array, tolerance: float = 1e-7) -> Solution:
        """Maxima of a'theta for the rows a of A."""
        ...


@runtime_checkable
class StartsNear(Protocol):
    """A prepared set whose solver gains from points near the maximisers, such as those of a similar set."""

    def solve_near(self, A: Array, near: Array, tolerance: float = 1e-7) -> Solution:
        """Maxima as by ``solve``, started from the rows of ``near``."""
        ...


@dataclass(frozen=True)
class WindowTable:
    """Windows of covariates: window k holds the covariates members[starts[k] : starts[k + 1]] and the share
    exp(log_shares[k]) of the error level. Different windows hold different covariates.
    """

    starts: IntArray
    members: IntArray
    log_shares: Array

    @property
    def owners(self) -> IntArray:
        """The window of every entry of ``members``."""
        return np.repeat(np.arange(len(self.log_shares)), np.diff(self.starts))


@dataclass(frozen=True)
class WindowedSet:
    """C = { theta : log sum_k pi_k exp sum_{b in W_k} [gain_b + phi_b(x_b'theta)] <= level, |theta| <= radius }."""

    X: Array
    terms: Terms
    gains: Array
    windows: WindowTable
    level: float
    radius: float
