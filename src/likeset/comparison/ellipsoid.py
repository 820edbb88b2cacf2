r"""The ellipsoid: the snapshot of every method that bounds the error of a point estimate.

    C = { theta : (theta - centre)' V (theta - centre) <= r^2 },     V = precision on the span,  outside * I off it

so that  max x'theta = x'centre + r |x|_{V^-1}  in closed form. This is the set as published: it is *not* cut with
Theta, unless ``within_theta`` asks for that (valid because theta* is in Theta, and tighter; the maximum of x'theta then
comes from the solver for ellipsoids cut with a ball).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from likeset import _solver
from likeset._solver import Kernel
from likeset._solver.linalg.threads import SingleThreadedBlas
from likeset._solver.problem import CurveTerms, LevelSet
from likeset._typing import Array
from likeset.curves import Curve
from likeset.errors import EmptySetError
from likeset.parts import worked_out
from likeset.spaces.base import Basis, Space

_OUTWARD = 1e-10  # relative; far above the rounding of the solves below


class Ellipsoid:
    """An immutable ellipsoid in the span of the covariates, round outside of it."""

    def __init__(
        self,
        space: Space,
        basis: Basis,
        alpha: float,
        n_observations: int,
        *,
        centre: Array,
        precision: Array,
        outside: float,
        squared_radius: float,
        within_theta: bool = False,
    ) -> None:
        self.space, self.alpha, self.n_observations, self._basis = space, alpha, n_observations, basis
        self.within_theta = within_theta
        self._centre, self._precision, self._outside, self._squared_radius = centre, precision, outside, squared_radius

    def __repr__(self) -> str:
        return f"<Ellipsoid: alpha={self.alpha:g}, {self.n_observations} observations, {self.space!r}>"

    @property
    def radius(self) -> float:
        """r^2 / 2: what a Gaussian log-likelihood with precision V may fall from its maximum, in nats."""
        return 0.5 * self._squared_radius

    @property
    def is_empty(self) -> bool:
        """Never, unless cut with Theta."""
        return self.within_theta and self._cut.status == "empty"

    def upper(self, X: Any) -> Array:
        """Largest x'theta for every row of X, rounded outward."""
        return self.interval(X)[1]

    def lower(self, X: Any) -> Array:
        """Smallest x'theta for every row of X, rounded outward."""
        return self.interval(X)[0]

    def interval(self, X: Any) -> tuple[Array, Array]:
        """(lower, upper) for every row of X."""
        inside, outside = self._basis.coordinates(self.space.covariates(X, "X"))
        if self.within_theta:
            if self.is_empty:
                raise EmptySetError(self.alpha)
            directions = np.column_stack([inside, outside])
            both = self._cut.solve(np.concatenate([directions, -directions])).upper
            return -both[len(inside) :], both[: len(inside)]
        middle = inside @ self._centre
        reach = np.sqrt(self._squared_radius) * self._dual_norms(inside, outside)
        reach = reach + _OUTWARD * (reach + np.abs(middle))
        return middle - reach, middle + reach

    def contains(self, theta: Any) -> Any:
        """Whether |theta - centre|_V <= r (and |theta| <= B if cut with Theta), up to rounding."""
        inside, norms = self._basis.project(theta), self._basis.norms(theta)
        with np.errstate(invalid="ignore"):
            rest = np.maximum(norms**2 - np.einsum("ij,ij->i", inside, inside), 0.0)
        offset = inside - self._centre
        squared = np.einsum("ij,jk,ik->i", offset, self._precision, offset)
        if self._outside > 0:
            squared = squared + self._outside * rest
        answers = squared <= self._squared_radius * (1 + _OUTWARD)
        if self.within_theta:
            answers &= norms <= self.space.bound * (1 + _OUTWARD)
        return answers[0].item() if len(answers) == 1 and np.ndim(theta) < 2 else answers

    def _dual_norms(self, inside: Array, outside: Array) -> Array:
        """|x|_{V^-1} of directions with coordinates ``inside`` and length ``outside`` off the span."""
        from scipy.linalg import solve_triangular

        squared = np.zeros(len(inside))
        if inside.shape[1]:
            with SingleThreadedBlas():
                whitened = solve_triangular(self._factor, inside.T, lower=True, check_finite=False)
            squared = np.einsum("ij,ij->j", whitened, whitened)
        with np.errstate(divide="ignore", invalid="ignore"):
            off = outside**2 / self._outside
        return np.sqrt(squared + np.where(outside > 0, off, 0.0))

    @worked_out
    def _factor(self) -> Array:
        with SingleThreadedBlas():
            try:
                return np.asarray(np.linalg.cholesky(self._precision), dtype=np.float64)
            except np.linalg.LinAlgError:  # information that vanished: the band is as wide as rounding can tell
                size = float(np.abs(self._precision).max())
                padded = self._precision + 1e-13 * (size or 1e-300) * np.eye(len(self._precision))
                return np.asarray(np.linalg.cholesky(padded), dtype=np.float64)

    @worked_out
    def _cut(self) -> Kernel:
        """The ellipsoid and the ball, with one more coordinate for the part of a direction outside the span."""
        d = len(self._centre)
        root = np.zeros((d + 1, d + 1))
        root[:d, :d] = self._factor.T if d else 0.0
        root[d, d] = np.sqrt(self._outside)
        tilt = root @ np.append(self._centre, 0.0)
        level = 0.5 * (self._squared_radius - float(tilt @ tilt))
        return _solver.prepare_joint(
            LevelSet(root, CurveTerms(Curve.QUADRATIC, np.ones(d + 1), tilt), level, self.space.bound)
        )
