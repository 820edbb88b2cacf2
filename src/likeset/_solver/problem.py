r"""The convex function whose sublevel set is a confidence set.

After merging repeated covariates, the negative log-likelihood is a sum with one term per distinct
covariate,

    F(theta) = sum_k phi_k(x_k' theta),        phi_k : R -> R convex.

Four shapes of phi_k cover every family:

* :class:`CurveTerms`      phi_k(z) = a_k A(z) - s_k z,  A one of z^2/2, e^z, log(1 + e^z), or the same from a reference
  (all exponential families: cost does not grow with the number of observations);
* :class:`PointTerms`      phi_k(z) = sum_i u_ki |y_ki - z|   (Laplace noise);
* :class:`LossTerms`       phi_k(z) = sum_i w_ki L(y_ki, z + o_ki),  L a compiled loss (a family with its own curve);
* :class:`CallableTerms`   phi_k given by a user's vectorised function.

The set itself is a :class:`LevelSet`:  C = { theta : F(theta) <= level, |theta| <= bound }.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from likeset._typing import Array, IntArray, Mask
from likeset.curves import Curve
from likeset.losses import Loss, summed_losses
from likeset.parts import worked_out


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
class LossTerms:
    """phi_k(z) = sum of weights[i] L(points[i], z + shifts[i]) over i in starts[k] : starts[k+1]; weights are positive.

    L(y, z) is smooth and convex in z, with the numbers ``parameters`` as its last arguments; no shifts are zeros.
    """

    loss: Loss
    parameters: Array
    starts: IntArray
    points: Array
    weights: Array
    shifts: Array | None = None

    @worked_out
    def shifts_or_zero(self) -> Array:
        """The shift of every point."""
        return np.zeros(len(self.points)) if self.shifts is None else self.shifts

    @worked_out
    def owners(self) -> IntArray:
        """The k of every point."""
        return np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))

    def evaluate(self, Z: Array) -> tuple[Array, Array, Array]:
        """(phi_k, phi_k', phi_k'') at Z[..., k], each of the shape of Z."""
        value, first, second, _ = self._summed(Z)
        return value, first, second

    def sizes(self, Z: Array) -> Array:
        """sum_i w_i |L(y_i, Z[..., k])|: what the rounding error of phi_k is proportional to."""
        return self._summed(Z)[3]

    def _summed(self, Z: Array) -> Array:
        rows = np.ascontiguousarray(Z, dtype=np.float64).reshape(math.prod(Z.shape[:-1]), Z.shape[-1])
        out = np.empty((4, *rows.shape))
        items = (self.owners, self.points, self.weights, self.shifts_or_zero)
        summed_losses(self.loss.address, self.parameters, *items, rows, out)
        return out.reshape(4, *Z.shape)


@dataclass(frozen=True)
class CallableTerms:
    """phi_k(z) given by a vectorised function.

    ``evaluate(Z)`` takes Z of shape (..., K) and returns (value, first, second derivative), each of the
    shape of Z: entry [..., k] is phi_k and its derivatives at Z[..., k]. Second derivatives are >= 0.
    """

    evaluate: Callable[[Array], tuple[Array, Array, Array]]


CompiledTerms = CurveTerms | LossTerms
"""Smooth terms that compiled kernels evaluate by themselves."""

SmoothTerms = CurveTerms | LossTerms | CallableTerms
Terms = SmoothTerms | PointTerms


def is_quadratic(terms: Terms) -> bool:
    """Whether F is quadratic, so that its level sets are ellipsoids."""
    return isinstance(terms, CurveTerms) and terms.curve is Curve.QUADRATIC


@dataclass(frozen=True)
class LevelSet:
    """C = { theta in R^d : sum_k phi_k(x_k' theta) <= level, |theta| <= bound }; bound may be inf.

    ``X`` has shape (K, d), one row per distinct covariate. Rows may be linearly dependent and may fail to
    span R^d.
    """

    X: Array
    terms: Terms
    level: float
    bound: float


@dataclass(frozen=True)
class Solution:
    """Answers of the support function for n directions.

    values   a'theta at ``points``: attained, hence a lower bound of the maximum, shape (n,)
    points   feasible maximisers, shape (n, d)
    upper    certified outer bound of the maximum (inf where the set is unbounded), shape (n,)

    A kernel that is certain of an unbounded direction may say so by a value of inf and a point of NaN.
    """

    values: Array
    points: Array
    upper: Array


def directionless(A: Array, outside: Array | None) -> Mask:
    """Rows that are zero, inside and outside the span: a'theta is zero whatever theta is."""
    if np.count_nonzero(A) == A.size and A.shape[1]:  # the usual case, cheaply
        return np.zeros(len(A), dtype=bool)
    flat: Mask = np.logical_not(np.logical_or.reduce(A, axis=1))
    return flat if outside is None else flat & (outside == 0.0)


# np.append, np.pad and np.column_stack do the same in ten times the time.


def with_column(X: Array, last: Array | float = 0.0) -> Array:
    """Rows with one more coordinate; if it is zero for all covariates terms are flat along it."""
    wider = np.empty((X.shape[0], X.shape[1] + 1))
    wider[:, :-1], wider[:, -1] = X, last
    return wider


def with_zero(x: Array) -> Array:
    """A vector with one more coordinate, zero; a matrix with one more row of zeros."""
    longer = np.zeros((x.shape[0] + 1, *x.shape[1:]))
    longer[:-1] = x
    return longer


class Kernel(ABC):
    """A set ready to answer directions; what all kernels share.

    status        "regular", "point" (one point within rounding) or "empty" (certified)
    centre        a point of the set, shape (d,); for an empty one, the point that comes closest
    closed_form   whether a direction costs next to nothing, so that bookkeeping to save some does not pay
    starts_near   whether ``solve`` gains from points near the maximisers, such as those over a similar set
    share         so many directions that asking for as many once more costs about nothing

    A kernel implements ``_solve``, for a set that is not empty, and either ``padded``, the same set with one more
    coordinate on which the terms do not depend, made from what is known already, or ``_solve_outside``.
    """

    status: str
    centre: Array
    closed_form: ClassVar[bool] = False
    starts_near: ClassVar[bool] = False
    share: ClassVar[int] = 16

    @property
    def padded(self) -> Kernel:
        """The set in R^(d + 1), flat along the last coordinate."""
        raise NotImplementedError  # by those that answer for themselves

    @abstractmethod
    def _solve(self, A: Array, near: Array | None, tolerance: float) -> Solution:
        """``solve`` without ``outside``."""

    def solve(
        self, A: Array, tolerance: float = 1e-7, outside: Array | None = None, near: Array | None = None
    ) -> Solution:
        """Maxima of a'theta for the rows a of A (n, d): attained values, maximisers, certified bounds.

        With lengths ``outside`` (n,), every direction has one more coordinate, of its own and orthogonal to all
        covariates; then so have the maximisers. ``near`` (n, d): where to start; rows of zeros: nothing is known. Where
        the set is unbounded the bound is +inf; over an empty set values and bounds are -inf and points NaN.
        """
        A = np.ascontiguousarray(A, dtype=np.float64)
        n, d = A.shape
        if self.status == "empty":
            return Solution(np.full(n, -inf), np.full((n, d + (outside is not None)), np.nan), np.full(n, -inf))
        flat = directionless(A, outside)
        if np.count_nonzero(flat):
            points = np.tile(with_zero(self.centre)[: d + (outside is not None)], (n, 1))
            values, upper = np.zeros(n), np.zeros(n)
            if np.count_nonzero(flat) < n:
                some = [None if part is None else part[~flat] for part in (outside, near)]
                found = self.solve(A[~flat], tolerance, *some)
                values[~flat], points[~flat], upper[~flat] = found.values, found.points, found.upper
            return Solution(values, points, upper)
        if outside is None:
            return self._solve(A, near, tolerance)
        return self._solve_outside(A, outside, near, tolerance)

    def _solve_outside(self, A: Array, outside: Array, near: Array | None, tolerance: float) -> Solution:
        if not np.count_nonzero(outside):
            found = self._solve(A, near, tolerance)
            return Solution(found.values, with_column(found.points), found.upper)
        if near is not None:
            near = with_column(near, self._left_outside(near))
        return self.padded._solve(with_column(A, outside), near, tolerance)

    def bounds(self, A: Array, outside: Array) -> Array:
        """The outer bounds of ``solve`` alone."""
        return self.solve(A, outside=outside).upper

    def _left_outside(self, near: Array) -> Array:
        """How far points can go along a flat coordinate: what norm is left is best spent there."""
        return np.zeros(len(near))


@dataclass(frozen=True)
class VoiceTable:
    """Windows of covariates: window k holds the covariates members[starts[k] : starts[k + 1]] and the share
    exp(log_shares[k]) of the error level. Different windows hold different covariates.
    """

    starts: IntArray
    members: IntArray
    log_shares: Array

    @classmethod
    def joint(cls, count: int) -> VoiceTable:
        """One voice that holds everything."""
        return cls(np.array([0, count]), np.arange(count), np.zeros(1))

    @worked_out
    def owners(self) -> IntArray:
        """The window of every entry of ``members``."""
        return np.repeat(np.arange(len(self.log_shares)), np.diff(self.starts))

    @worked_out
    def heard(self) -> int:
        """How many covariates some window holds."""
        return len(self.members) if len(self.log_shares) == 1 else len(np.unique(self.members))

    @worked_out
    def speaking(self) -> tuple[VoiceTable, float]:
        """The windows that hold something, and log of the sum of the other ones' shares."""
        if len(self.log_shares) == 1 and len(self.members):
            return self, -inf
        holds = self.starts[1:] > self.starts[:-1]
        if holds.all():
            return self, -inf
        starts = np.append(self.starts[:-1][holds], self.starts[-1])
        table = VoiceTable(starts, self.members, self.log_shares[holds])
        return table, float(np.logaddexp.reduce(self.log_shares[~holds]))


@dataclass(frozen=True)
class MixtureSet:
    """C = { theta : log sum_k pi_k exp sum_{b in W_k} [gain_b + phi_b(x_b'theta)] <= level, |theta| <= bound }.

    ``owners``, if given, says which terms have the same row of X: equal numbers, equal rows.
    """

    X: Array
    terms: Terms
    gains: Array
    voices: VoiceTable
    level: float
    bound: float
    owners: IntArray | None = None
