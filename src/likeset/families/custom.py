r"""A family from the user's own negative log-density.

    -log p(y | z) = negative_log_density(y, z)      vectorised in both arguments

Derivatives in z may be given; otherwise they are computed by central differences. Whatever was given is
checked when the family is built, at points of the support and of ``z_range``, and again as far as Theta reaches when a
sequence records an observation (:mod:`~likeset.families.custom_checks`): derivatives against differences, the density
against 1 (rule 3 of validity: densities, not scores), convexity against the second derivative.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from likeset._typing import Array
from likeset.arguments import flag, floats, real_array
from likeset.errors import InvalidArgumentError, NotConvexError, PieceError
from likeset.families.base import (
    largest_predictor,
    legendre_rule,
    misfit,
    observation_vector,
    panels,
    predictor_vector,
    refuse,
    source_of_noise,
)
from likeset.families.custom_checks import check_outcome, check_range
from likeset.families.differences import differences
from likeset.families.mass import around

_SUPPORTS = ("real", "positive", "unit", "counts")
_DOUBLING = np.concatenate([[0.0], 2.0 ** np.arange(-30, 24, 0.5)])  # edges of panels to the right of zero
_LINE = np.concatenate([-_DOUBLING[::-1], _DOUBLING])
_PER_PANEL = 10  # nodes, on the line
_AT_ONCE = 16  # integrals over y for one call of the user's function

NegativeLogDensity = Callable[[Array, Array], Array]


class CustomFamily:
    """A family given by ``negative_log_density(y, z)``, a vectorised function.

    Parameters
    ----------
    negative_log_density : normalised: exp(-f(y, z)) integrates (sums) to 1 over y for every z.
    support : "real", "positive", "unit" (the interval (0, 1)), "counts" (0, 1, 2, ...), or the list of
        possible outcomes.
    first, second : derivatives of ``negative_log_density`` in z; computed if omitted.
    sample, mean : ``sample(z, rng)`` and ``mean(z)``; computed from the density if omitted.
    z_range : interval of linear predictors on which the pieces are checked and the curvature measured. A sequence
        extends the checks to every |z| <= bound |x| that Theta reaches; if the bound is infinite, ``z_range`` is all
        that is checked, and what lies beyond is your promise.
    convex : your claim that the function is convex in z for every y. Exact extrema need it, and probing cannot prove
        it; a claim that is seen to be false, here or later at the data, is refused.

    Example: logistic noise (heavier tails than Gaussian, smoother than Laplace).

    >>> def logistic(y, z):
    ...     u = np.abs(y - z)
    ...     return u + 2 * np.log1p(np.exp(-u))
    >>> CustomFamily(logistic, support="real", convex=True, name="Logistic")
    Logistic()
    """

    observation_shape: tuple[int, ...] = ()

    def __init__(
        self,
        negative_log_density: NegativeLogDensity,
        *,
        support: str | Sequence[float],
        first: NegativeLogDensity | None = None,
        second: NegativeLogDensity | None = None,
        sample: Callable[[Array, np.random.Generator], Array] | None = None,
        mean: Callable[[Array], Array] | None = None,
        z_range: tuple[float, float] = (-3.0, 3.0),
        convex: bool = False,
        name: str = "CustomFamily",
    ) -> None:
        if not callable(negative_log_density):
            raise InvalidArgumentError(
                "negative_log_density", negative_log_density, "is not callable", "pass a function f(y, z)"
            )
        if isinstance(support, str) and support not in _SUPPORTS:
            raise InvalidArgumentError(
                "support", support, "is unknown", f"use one of {', '.join(_SUPPORTS)} or a list of outcomes"
            )
        for piece, given in {"first": first, "second": second, "sample": sample, "mean": mean}.items():
            if given is not None and not callable(given):
                raise InvalidArgumentError(piece, given, "is not callable", "pass a function, or leave it out")
        if not isinstance(name, str):
            raise InvalidArgumentError("name", name, "is not a name", "pass a string")
        interval = real_array("z_range", z_range)
        if interval.shape != (2,) or not interval[0] < interval[1]:
            raise InvalidArgumentError("z_range", z_range, "is not an interval", "pass (low, high), low < high")
        low, high = map(float, interval)
        convex = flag("convex", convex)
        self.name = name
        self.support = support if isinstance(support, str) else np.unique(real_array("support", support))
        if not isinstance(self.support, str) and not self.support.size:
            raise InvalidArgumentError("support", support, "has no outcomes", "list the possible outcomes")
        self.discrete = not isinstance(self.support, str) or self.support == "counts"
        self.z_range = (low, high)
        self._function, self._first, self._second = negative_log_density, first, second
        self._sample, self._mean = sample, mean
        self.convex = bool(convex)
        self._checked = self.z_range
        self._mass_at = np.linspace(low, high, 5)
        self._peaks = check_range(self, np.linspace(low, high, 25), self._mass_at)

    def __repr__(self) -> str:
        return f"{self.name}()"

    def settings(self) -> dict[str, float]:
        """None: functions are not saved; pass the family again to ``load``."""
        return {}

    def observations(self, y: Any) -> Array:
        """y in the declared support."""
        array = observation_vector(y)
        if isinstance(self.support, np.ndarray):
            bad = ~np.isin(array, self.support)
        else:
            bad = {
                "real": np.zeros(array.shape, dtype=bool),
                "positive": array <= 0,
                "unit": (array <= 0) | (array >= 1),
                "counts": (array < 0) | (array != np.floor(array)),
            }[self.support]
        refuse(array, bad, f"is outside the support of {self.name}", f"the support is {self.support}")
        return array

    def log_density(self, y: Array, z: Array) -> Array:
        """Minus the user's function."""
        return -self._call(self._function, y, z)

    def derivatives(self, y: Array, z: Array) -> tuple[Array, Array]:
        """First and second derivative of log p in z: the user's, or central differences of order six."""
        if not self._first:
            return self.density_and_derivatives(y, z)[1:]
        with np.errstate(over="ignore", invalid="ignore"):
            return self._from_first(*_broadcast(y, z))

    def density_and_derivatives(self, y: Array, z: Array) -> tuple[Array, Array, Array]:
        """log p and its derivatives in z: differences ask for values on the way."""
        y, z = _broadcast(y, z)
        with np.errstate(over="ignore", invalid="ignore"):
            if self._first:
                return self.log_density(y, z), *self._from_first(y, z)
            value, first, second = differences(self._plain, y, z)
            if self._second:
                second = self._call(self._second, y, z)
            return -value, -first, -second

    def _from_first(self, y: Array, z: Array) -> tuple[Array, Array]:
        if self._second:
            first, second = self._call(self._first, y, z), self._call(self._second, y, z)
        else:
            first, second, _ = differences(lambda u, v: self._call(self._first, u, v), y, z)
        return -first, -second

    def sample(self, z: Array, rng: np.random.Generator) -> Array:
        """The user's sampler, or inversion of the distribution function tabulated on ``outcomes``."""
        z, rng = real_array("z", z), source_of_noise(rng)
        if self._sample is not None:
            return self._own("sample", lambda: self._sample(z, rng))  # type: ignore[misc]
        flat = np.ravel(z)
        draws = np.empty(flat.shape)
        last, cumulative = np.nan, np.zeros(0)
        for i, zi in enumerate(flat):
            if zi != last:  # the same z over and over is the usual case
                y, v = self.outcomes(np.array([zi]))
                last, cumulative = zi, np.cumsum(v * np.exp(self.log_density(y, np.full(len(y), zi))))
            u = rng.uniform() * cumulative[-1]
            draws[i] = y[np.searchsorted(cumulative, u)] if self.discrete else np.interp(u, cumulative, y)
        return draws.reshape(z.shape)

    def mean(self, z: Array) -> Array:
        """The user's mean, or the integral of y p(y | z)."""
        z = floats("z", z)
        if self._mean is not None:
            return self._own("mean", lambda: self._mean(z))  # type: ignore[misc]
        z = real_array("z", z)
        distinct, place = np.unique(z, return_inverse=True)
        means = np.empty(len(distinct))
        for first in range(0, len(distinct), _AT_ONCE):
            some = distinct[first : first + _AT_ONCE]
            y, v = self._outcomes_of_each(some)
            log_p = self.log_density(y.ravel(), np.repeat(some, y.shape[1])).reshape(y.shape)
            means[first : first + len(some)] = (v * y * np.exp(log_p)).sum(axis=1)
        return means[place].reshape(z.shape)

    def _outcomes_of_each(self, z: Array) -> tuple[Array, Array]:
        """``outcomes`` of every z by itself, one row each; panels of no width count nothing."""
        if not (isinstance(self.support, str) and self.support == "real"):
            y, v = self.outcomes(z)
            return np.broadcast_to(y, (len(z), len(y))), np.broadcast_to(v, (len(z), len(v)))
        around_zero = np.broadcast_to(_LINE, (len(z), len(_LINE)))
        edges = np.sort(np.concatenate([around_zero, np.add.outer(z, _LINE)], axis=1).round(12), axis=1)
        t, v = legendre_rule(_PER_PANEL)
        half, middle = 0.5 * np.diff(edges), 0.5 * (edges[:, 1:] + edges[:, :-1])
        y = middle[:, :, None] + half[:, :, None] * t
        return y.reshape(len(z), -1), (half[:, :, None] * v).reshape(len(z), -1)

    def curvature_bounds(self, bound: float) -> tuple[float, float]:
        """Smallest and largest second derivative seen at probe points with |z| <= bound (a measurement)."""
        reach = min(largest_predictor(bound), max(abs(self.z_range[0]), abs(self.z_range[1])))
        z = np.linspace(-reach, reach, 33)
        second = np.concatenate([-self.derivatives(y, z)[1] for y in self.probes()])
        return float(max(second.min(), 0.0)), float(max(second.max(), 1e-12))

    def outcomes(self, z: Array) -> tuple[Array, Array]:
        """Nodes over the support: enumeration, or panels that double in width away from 0 and from each z."""
        z = predictor_vector(z)
        if isinstance(self.support, np.ndarray):
            return self.support, np.ones_like(self.support)
        if self.support == "counts":
            counts = np.arange(0.0, 4000.0)
            return counts, np.ones_like(counts)
        if self.support == "unit":
            left = _DOUBLING[_DOUBLING <= 0.5]
            return panels(np.concatenate([left, 1.0 - left]))
        if self.support == "positive":
            return panels(_DOUBLING)
        low, high = z.min(), z.max()
        centres = np.array([0.0, low]) if low == high else np.concatenate([[0.0], np.linspace(low, high, 5)])
        return panels(np.add.outer(centres, _LINE).round(12), nodes_per_panel=_PER_PANEL)

    def breakpoints(self, z: float) -> Array:
        """Edges of panels over y for densities like p(. | z): every scale from e^-|z| to e^|z|, and more."""
        if self.support == "unit":
            left = np.concatenate([np.arange(-1000.0, -60.0, 4.0), np.arange(-60.0, 0.0)])
            return np.concatenate([2.0**left, 1.0 - 2.0 ** -np.arange(2.0, 53.0)])
        octaves = min(2.0 * abs(z) / np.log(2.0), 250.0)
        if self.support == "positive":
            near = np.arange(-60.0 - octaves, 40.0 + octaves)
            return 2.0 ** np.concatenate([np.arange(-1000.0, near[0] - 2.0, 4.0), near])
        scales = 2.0 ** (-20.0 - 0.5 * octaves), 2.0 ** (30.0 + 0.5 * octaves)
        return np.unique(np.concatenate([around(0.0, *scales), around(z, *scales)]))

    def check_reach(self, reach: float) -> None:
        """Extend the checks to |z| <= ``reach``; nothing is done twice."""
        low, high = self._checked
        if low <= -reach and reach <= high:
            return
        with suppress(PieceError, NotConvexError):
            self._extend(1.25 * reach)  # so that slowly growing covariates cost a few extensions, not one each
            return
        try:
            self._extend(reach)
        except (PieceError, NotConvexError) as error:
            raise type(error)(
                f"{error} This lies outside z_range = {self.z_range}, but Theta reaches |z| = {reach:g} at this "
                "covariate (bound times its length): mend the function there, or lower the bound of the space."
            ) from error

    def _extend(self, reach: float) -> None:
        low, high = self._checked
        new = min(low, -reach), max(high, reach)
        sides = [(a, b) for a, b in ((new[0], low), (high, new[1])) if a < b]
        mass_at = np.concatenate([np.linspace(*side, 5) for side in sides])
        peaks = check_range(self, np.concatenate([np.linspace(*side, 25) for side in sides]), mass_at)
        self._mass_at, order = np.unique(np.concatenate([self._mass_at, mass_at]), return_index=True)
        self._peaks = np.concatenate([self._peaks, peaks])[order]
        self._checked = new

    def check_outcome(self, y: float, reach: float) -> None:
        """Refuse an atom, or a spike that the checks could not see, at an outcome that came."""
        reach = reach if np.isfinite(reach) else max(map(abs, self.z_range))
        z = np.array([-reach, 0.0, reach])
        check_outcome(self, y, z, np.exp(np.interp(z, self._mass_at, np.log(self._peaks))))

    def probes(self) -> Array:
        """A few outcomes at which functions are compared with their differences."""
        if isinstance(self.support, np.ndarray):
            return self.support[:: max(1, len(self.support) // 7)]
        return {
            "real": np.array([-2.6, -0.7, 0.4, 1.3, 3.1]),
            "positive": np.array([0.05, 0.3, 0.9, 2.2, 5.0]),
            "unit": np.array([0.03, 0.2, 0.55, 0.8, 0.98]),
            "counts": np.array([0.0, 1.0, 2.0, 5.0, 12.0]),
        }[self.support]

    def _plain(self, y: Array, z: Array) -> Array:
        return self._call(self._function, y, z)

    def _call(self, function: NegativeLogDensity | None, y: Array, z: Array) -> Array:
        assert function is not None
        y, z = _broadcast(y, z)
        try:
            values = np.asarray(function(y, z), dtype=np.float64)
        except Exception as error:
            raise PieceError(
                f"{self.name}: a function of yours failed on arrays ({type(error).__name__}: {error}); it must be "
                "vectorised (NumPy operations on whole arrays)."
            ) from error
        if values.shape != y.shape:
            raise PieceError(
                f"{self.name}: the function returned shape {values.shape} for inputs of shape {y.shape}; "
                "it must be vectorised (NumPy operations on whole arrays)."
            )
        return values

    def _own(self, which: str, call: Callable[[], Any]) -> Array:
        """What a function of the user's own returns, as an array of numbers."""
        try:
            return real_array(f"{which}(z)", call())
        except Exception as error:
            raise PieceError(
                f"{self.name}: the function {which} failed ({type(error).__name__}: {error}); it must return numbers "
                "for an array of z."
            ) from error

    def __deepcopy__(self, memo: dict[int, Any]) -> CustomFamily:
        return self  # immutable; identity tells densities of this family from others


def _broadcast(y: Any, z: Any) -> tuple[Array, Array]:
    """y and z as arrays of one shape."""
    y, z = floats("y", y), floats("z", z)
    if y.shape == z.shape:
        return y, z
    try:
        return np.broadcast_arrays(y, z)  # type: ignore[return-value]
    except ValueError:
        raise misfit(y, z) from None
