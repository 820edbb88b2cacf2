r"""The geometry of the sets: the regularised log-partition function Z and its Bregman divergence.

Everything in :mod:`likeset.paper.theory` is about canonical exponential families in a finite-dimensional linear model
(the paper's equation 7),

    p_theta(y | x) = h(y) exp( T(y) x'theta - A(x'theta) ),

that is ``Gaussian``, ``Poisson``, ``Bernoulli`` and ``Binomial``. A is the log-partition function, T(y) the statistic.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from likeset._solver.newton import CurveSum, Goal, newton_ball
from likeset._typing import Array
from likeset.arguments import one_row, positive, real_array, rows
from likeset.compiling import kernel
from likeset.curves import Curve, curve_derivatives, curve_heights, curve_remainder
from likeset.errors import InvalidArgumentError, ShapeError
from likeset.families.base import Family
from likeset.families.curve_family import CurveFamily

GOAL = Goal(1e-12, iterations=200)
ROUNDING = 1e-12  # least over largest eigenvalue: below, rounding would show in the fourth digit of what is solved for


class LogPartition:
    r"""The paper's equation 8 for the covariates of a stream,

        Z(theta) = sum_s w_s A(x_s'theta) + (nu/2) |theta|^2.

    Symbols: A ``family``, x_s rows of ``x``, w_s ``weights`` (default 1), nu ``nu``. Equal covariates are merged.

    >>> import numpy as np
    >>> import likeset as ls
    >>> Z = LogPartition(ls.Gaussian(sigma=0.5), [[1.0, 0.0], [0.0, 1.0]], nu=1.0)
    >>> float(Z([1.0, 1.0]))                         # (4/2)(1 + 1) + (1/2)(1 + 1)
    5.0
    >>> float(Z.divergence([1.0, 1.0], [0.0, 1.0]))  # half the squared distance in the norm of 4 x x' + I
    2.5
    """

    def __init__(self, family: Family, x: Any, weights: Any = None, *, nu: float) -> None:
        self.family, self._scale = canonical(family)
        self.nu = positive("nu", nu)
        covariates = covariate_rows(x)
        w = stream_weights(weights, len(covariates))
        self.x, place = np.unique(covariates, axis=0, return_inverse=True)
        self._a: Array = np.asarray(self._scale * np.bincount(place.reshape(-1), w, minlength=len(self.x)), np.float64)

    def __call__(self, theta: Any) -> Array:
        """Z(theta), for one parameter or for every row."""
        theta = self._parameters(theta)
        heights = curve_heights(self.family.curve, theta @ self.x.T)
        return heights @ self._a + 0.5 * self.nu * np.sum(theta * theta, axis=-1)

    def gradient(self, theta: Any) -> Array:
        """sum_s w_s A'(x_s'theta) x_s + nu theta."""
        theta = self._parameters(theta)
        first, _ = curve_derivatives(self.family.curve, theta @ self.x.T)
        return (first * self._a) @ self.x + self.nu * theta

    def hessian(self, theta: Any) -> Array:
        """sum_s w_s A''(x_s'theta) x_s x_s' + nu I, at one parameter."""
        _, second = curve_derivatives(self.family.curve, one_row("theta", theta, self.x.shape[1]) @ self.x.T)
        return (self.x.T * (second * self._a)) @ self.x + self.nu * np.eye(self.x.shape[1])

    def divergence(self, theta: Any, base: Any) -> Array:
        """D_Z(theta, base) = Z(theta) - Z(base) - Z'(base)(theta - base), without cancellation; rows of theta."""
        theta, base = self._parameters(theta), one_row("base", base, self.x.shape[1])
        step = np.atleast_2d(theta - base)
        values = _remainders(self.family.curve, self._a, self.x @ base, np.ascontiguousarray(step @ self.x.T))
        values += 0.5 * self.nu * np.sum(step * step, axis=1)
        return values.reshape(theta.shape[:-1])

    def inverse_gradient(self, target: Any) -> Array:
        """The theta in R^d with Z'(theta) = target."""
        g = one_row("target", target, self.x.shape[1])
        # sum_s w_s A(x_s'theta) - g'theta + (nu/2)|theta|^2: the linear part becomes covariates of their own.
        extra = np.eye(len(g))
        a, s = np.concatenate([self._a, np.zeros(len(g))]), np.concatenate([np.zeros(len(self.x)), g])
        F = CurveSum(np.vstack([self.x, extra]), int(self.family.curve), a, s)
        return newton_ball(F, 0.5 * self.nu, np.inf, np.zeros(len(g)), GOAL).theta

    def _parameters(self, theta: Any) -> Array:
        array = real_array("theta", theta)
        if array.ndim not in (1, 2) or array.shape[-1] != self.x.shape[1]:
            raise ShapeError(
                "theta",
                theta,
                f"has shape {array.shape}",
                f"pass a vector of length {self.x.shape[1]}, or rows of them",
            )
        return array


def penalised_estimate(family: Family, x: Any, y: Any, weights: Any = None, *, nu: float) -> Array:
    r"""theta~_t = (grad Z_t)^-1( sum_s w_s x_s T(y_s) ), the estimate of the paper's appendix B.

    It minimises  sum_s w_s [-log p_theta(y_s|x_s)] + (nu/2)|theta|^2  over all of R^d.

    >>> import likeset as ls
    >>> penalised_estimate(ls.Gaussian(1.0), [[1.0], [1.0]], [0.9, 1.1], nu=2.0)
    array([0.5])
    """
    checked, _ = canonical(family)
    covariates = covariate_rows(x)
    w = stream_weights(weights, len(covariates))
    _, statistic, _ = checked.statistics(stream_observations(checked, y, len(covariates)))
    return LogPartition(family, covariates, w, nu=nu).inverse_gradient((w * statistic) @ covariates)


@dataclass(frozen=True)
class Curvature:
    """mu <= A'' <= L for the z that can occur (Assumption 1), and the range of A' there.

    reach              largest |x'theta|: B times the largest |x| of the stream (the paper takes |x| <= 1)
    smooth_everywhere  whether A'' <= L for all real z, which Theorems 4 and 5 assume; false for Poisson
    """

    mu: float
    L: float
    reach: float
    lowest_mean: float
    highest_mean: float
    smooth_everywhere: bool

    @classmethod
    def of(cls, family: Family, bound: float, x: Any) -> Curvature:
        """Constants of a stream with |theta| <= bound.

        >>> import likeset as ls
        >>> c = Curvature.of(ls.Bernoulli(), bound=1.0, x=[[1.0, 0.0], [0.0, 0.5]])
        >>> round(c.mu, 4), c.L, c.smooth_everywhere
        (0.1966, 0.25, True)
        """
        checked, scale = canonical(family)
        reach = positive("bound", bound) * float(np.linalg.norm(covariate_rows(x), axis=1).max())
        mu, L = checked.curvature_bounds(reach)
        if not mu > 0.0 or not np.isfinite(L):
            raise InvalidArgumentError(
                "bound", bound, f"lets |x'theta| reach {reach:g}, where the curvature of {checked!r} is 0 or infinite",
                "pass a smaller bound, or shorter covariates",
            )  # fmt: skip
        low, high = curve_derivatives(checked.curve, np.array([-reach, reach]))[0] * scale
        return cls(mu, L, reach, float(low), float(high), checked.curve is not Curve.EXPONENTIAL)


def canonical(family: Family) -> tuple[CurveFamily, float]:
    """The family and its scale a in A(z) = a * curve(z); refuses what has no log-partition function in z."""
    if isinstance(family, CurveFamily) and family.canonical_scale is not None:
        return family, family.canonical_scale
    raise InvalidArgumentError(
        "family",
        family,
        "has no log-partition function of z",
        "the theory covers Gaussian, Poisson, Bernoulli and Binomial",
    )


def curve_family(family: Family) -> CurveFamily:
    """The family, if its loss is a A(z) - s z with a and s from y: also where there is no log-partition function.

    >>> import likeset as ls
    >>> curve_family(ls.Weibull(2.0))
    Weibull(shape=2)
    """
    if isinstance(family, CurveFamily):
        return family
    raise InvalidArgumentError(
        "family",
        family,
        "has no loss of the form a A(z) - s z",
        "use Gaussian, Poisson, Bernoulli, Binomial or Weibull",
    )


def log_partition(family: Family, z: Any) -> tuple[Array, Array, Array]:
    """A(z), A'(z) and A''(z).

    >>> import likeset as ls
    >>> [float(v) for v in log_partition(ls.Gaussian(sigma=0.5), 3.0)]
    [18.0, 12.0, 4.0]
    """
    checked, scale = canonical(family)
    z = real_array("z", z)
    first, second = curve_derivatives(checked.curve, z)
    return scale * curve_heights(checked.curve, z), scale * first, scale * second


def covariate_rows(x: Any, name: str = "x") -> Array:
    """Covariates of a stream, shape (t, d) with t >= 1."""
    array = real_array(name, x)
    if array.ndim != 2 or not array.size:
        raise ShapeError(name, x, f"has shape {array.shape}", "pass one row per observation, e.g. seq.ledger.x.rows")
    return rows(name, array, array.shape[1])


def solvable(V: Array, name: str, covariates: Any) -> Array:
    """V = sum a x x' + nu I as it is, or a typed error where rounding of its long covariates has swallowed the rest."""
    if np.isfinite(V).all():
        values = np.linalg.eigvalsh(V)
        if values[0] > ROUNDING * values[-1]:
            return V
    raise InvalidArgumentError(
        name, covariates, "has rows so long that the penalty is lost in rounding beside them",
        "use units in which covariates are of order one, or a larger penalty",
    )  # fmt: skip


def not_negative(name: str, value: Any) -> Array:
    """Finite numbers >= 0: times, gains and radii."""
    array = real_array(name, value)
    if (array < 0).any():
        raise InvalidArgumentError(name, value, "has a negative entry", "pass numbers >= 0")
    return array


def check_fit(first: Array, second: Array, name: str) -> None:
    """Refuse arrays over time, the second of them called ``name``, that do not fit each other."""
    try:
        np.broadcast_shapes(first.shape, second.shape)
    except ValueError:
        raise ShapeError(
            name, second, f"has shape {second.shape}", f"pass one entry for each of {first.shape}"
        ) from None


def stream_weights(weights: Any, count: int) -> Array:
    """Weights in [0, 1], one per observation; None is 1."""
    if weights is None:
        return np.ones(count)
    w = real_array("weights", weights)
    if w.shape != (count,):
        raise ShapeError("weights", weights, f"has shape {w.shape}", f"pass one weight for each of {count} covariates")
    if ((w < 0) | (w > 1)).any():
        raise InvalidArgumentError("weights", weights, "has entries outside [0, 1]", "pass weights in [0, 1]")
    return w


def stream_observations(family: Family, y: Any, count: int) -> Array:
    """Observations of a stream, checked against the family and the number of covariates."""
    checked = family.observations(y)
    if len(checked) != count:
        raise ShapeError("y", y, f"has {len(checked)} entries", f"pass one observation for each of {count} covariates")
    return checked


@kernel(allocates=True)
def _remainders(curve: int, a: Array, z: Array, U: Array) -> Array:
    """sum_k a_k [ A(z_k + U_nk) - A(z_k) - A'(z_k) U_nk ] for every row n."""
    total = np.zeros(U.shape[0])
    for n in range(U.shape[0]):
        for k in range(U.shape[1]):
            if a[k] > 0.0:
                total[n] += a[k] * curve_remainder(curve, z[k], U[n, k])
    return total
