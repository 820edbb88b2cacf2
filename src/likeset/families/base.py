r"""What a family is: the conditional law of y given the linear predictor z = x'theta.

Every family offers the same small interface (:class:`Family`). Two optional shapes let the engine merge
repeated covariates, so that cost does not grow with the number of observations:

* :class:`CurveFamily`   -log p(y | z) = a(y) A(z) - s(y) z - c(y)    (exponential families)
* a ``scale`` attribute with ``log_density = -|y - z| / scale - log(2 scale)``   (Laplace noise)

To add a family, write one file with one class and list it in ``families/__init__.py``; the contract
suite (:mod:`likeset.checks`) finds it there.
"""

from __future__ import annotations

from functools import cache
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from likeset._solver.evaluate import curve_heights
from likeset._typing import Array
from likeset.arguments import floats, generator, real_array, real_number
from likeset.curves import Curve
from likeset.errors import InvalidArgumentError, ObservationError, ShapeError
from likeset.special import sigmoid

MOST_NODES = 10**6


@runtime_checkable
class Family(Protocol):
    """The law of y given z = x'theta. ``y`` below is in canonical form, as returned by ``observations``."""

    convex: bool
    """Whether -log p(y | z) is convex in z for every y (then exact extrema over the set exist)."""

    discrete: bool
    """Whether y is a count (probabilities) rather than a real number (densities)."""

    observation_shape: tuple[int, ...]
    """Shape of one observation in canonical form: () for a number, (2,) for a (time, event) pair."""

    def observations(self, y: Any) -> Array:
        """Check user-supplied y against the support; canonical array, one leading entry per observation."""
        ...

    def log_density(self, y: Array, z: Array) -> Array:
        """log p(y | z), normalised; leading dimensions of y broadcast against z."""
        ...

    def derivatives(self, y: Array, z: Array) -> tuple[Array, Array]:
        """First and second derivative of log p(y | z) in z."""
        ...

    def sample(self, z: Array, rng: np.random.Generator) -> Array:
        """One y per entry of z."""
        ...

    def mean(self, z: Array) -> Array:
        """E[y | z]."""
        ...

    def curvature_bounds(self, bound: float) -> tuple[float, float]:
        """(mu, L): lower and upper bound of the curvature of -log p over |z| <= bound."""
        ...

    def outcomes(self, z: Array) -> tuple[Array, Array]:
        """Nodes y_i and weights v_i with  sum_i v_i f(y_i) = ∫ f(y) dy  for densities f like p(. | z).

        ``z`` is a 1-D array of linear predictors whose laws the nodes must cover. Counts are enumerated.
        """
        ...

    def settings(self) -> dict[str, float]:
        """Constructor arguments, for saving."""
        ...


def checked_family(family: Any) -> Family:
    """The family, or a typed error."""
    if isinstance(family, type) or not isinstance(family, Family):
        raise InvalidArgumentError("family", family, "is not a family", "pass e.g. Poisson() or CustomFamily(...)")
    return family


def curve_derivatives(curve: Curve, z: Array) -> tuple[Array, Array]:
    """A'(z) and A''(z)."""
    if curve is Curve.QUADRATIC:
        return z, np.ones_like(z)
    if curve is Curve.EXPONENTIAL:
        with np.errstate(over="ignore"):
            e = np.exp(z)
        return e, e
    return sigmoid(z), sigmoid(z) * sigmoid(-z)


class CurveFamily(Family):
    """Exponential families:  -log p(y | z) = a(y) A(z) - s(y) z - c(y),  one convex curve A, a(y) >= 0.

    A subclass names its ``curve`` and implements ``statistics``; densities, derivatives and merging of
    repeated covariates follow.
    """

    curve: ClassVar[Curve]
    convex: bool = True
    discrete: bool = False
    observation_shape: tuple[int, ...] = ()

    canonical_scale: float | None = None
    """a(y) when it is the same for every y, so that a A(z) is the log-partition function; else None."""

    referenced: ClassVar[bool] = False
    """Whether evidence is counted from a reference near y (``reference``, ``statistics_from``): families whose
    log-densities are large beside the evidence where outcomes are."""

    def statistics(self, y: Array) -> tuple[Array, Array, Array]:
        """(a, s, c) of each observation."""
        raise NotImplementedError  # every subclass has its own

    def reference(self, y: Array) -> float:
        """A value o of z at which the observation y is likely."""
        raise NotImplementedError  # if ``referenced``

    def statistics_from(self, y: Array, origin: float) -> tuple[float, float, float]:
        """(a, s, c) of one observation, -log p(y | z) = a [A(z) - A(o) - A'(o) (z - o)] - s (z - o) - c.

        c is log p(y | o), and like s to be computed from y and o without cancellation.
        """
        raise NotImplementedError  # if ``referenced``

    def log_density(self, y: Array, z: Array) -> Array:
        """log p(y | z) = s z - a A(z) + c."""
        a, s, c = self.statistics(self._in_support(y))
        z = floats("z", z)
        try:
            with np.errstate(over="ignore", invalid="ignore"):
                return s * z - a * curve_heights(self.curve, z) + c
        except ValueError:
            raise misfit(s, z) from None

    def derivatives(self, y: Array, z: Array) -> tuple[Array, Array]:
        """First and second derivative of log p in z: s - a A'(z) and -a A''(z)."""
        a, s, _ = self.statistics(self._in_support(y))
        z = floats("z", z)
        try:
            with np.errstate(over="ignore", invalid="ignore"):
                first, second = curve_derivatives(self.curve, z)
                return s - a * first, -a * second
        except ValueError:
            raise misfit(s, z) from None

    def _allows(self, *y: float) -> bool:
        """Whether one observation, the numbers that describe it, is certain to lie in the support."""
        return False

    def _in_support(self, y: Any) -> Array:
        """Observations of any shape, checked. For the one that the engine asks about this is plain arithmetic."""
        array = floats("y", y)
        numbers = 2 if self.observation_shape else 1
        if self.observation_shape and (array.ndim == 0 or array.shape[-1] != numbers):
            raise ShapeError("y", y, f"has shape {array.shape}", "pass (time, event) pairs along the last axis")
        if array.size != numbers or not self._allows(*array.ravel().tolist()):
            self.observations(array.reshape(-1, *self.observation_shape))
        return array

    def __repr__(self) -> str:
        inside = ", ".join(f"{k}={v:g}" for k, v in self.settings().items())
        return f"{type(self).__name__}({inside})"

    def settings(self) -> dict[str, float]:
        """Constructor arguments, for saving."""
        return {}


def misfit(y: Any, z: Any) -> ShapeError:
    """The error where y and z do not broadcast."""
    return ShapeError(
        "z", z, f"has shape {np.shape(z)}, which does not fit y of shape {np.shape(y)}", "pass shapes that broadcast"
    )


def predictor_vector(z: Any) -> Array:
    """Linear predictors whose laws the nodes of ``outcomes`` must cover, at least one."""
    array = np.ravel(real_array("z", z))
    if not array.size:
        raise ShapeError("z", z, "is empty", "pass at least one linear predictor")
    return array


def node_count(z: Array, count: float) -> int:
    """How many panels or outcomes a rule needs, if it is possible at all."""
    if not count <= MOST_NODES:
        raise InvalidArgumentError(
            "z", z, f"spans laws that need more than {MOST_NODES:,} nodes", "pass values of z that are closer to zero"
        )
    return int(count)


def largest_predictor(bound: Any) -> float:
    """The bound of |z| in ``curvature_bounds``; it may be infinite."""
    number = real_number("bound", bound)
    if number < 0:
        raise InvalidArgumentError("bound", bound, "is negative", "pass the largest |z|, a number >= 0")
    return number


def source_of_noise(rng: Any) -> np.random.Generator:
    """The generator of ``sample``, or a seed."""
    return rng if type(rng) is np.random.Generator else generator(rng)


def observation_vector(y: Any) -> Array:
    """y as a 1-D float array with one entry per observation; a scalar is one observation."""
    array = real_array("y", y)
    if array.ndim == 0:
        array = array.reshape(1)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise ShapeError("y", y, f"has shape {array.shape}", "pass a number or a 1-D array of observations")
    return array


def refuse(y: Array, bad: NDArray[np.bool_], problem: str, remedy: str) -> None:
    """Raise an ObservationError naming the first bad observation, if there is one."""
    if bad.any():
        index = int(np.argmax(bad))
        value = y[index] if y.ndim == 1 else tuple(y[index])
        raise ObservationError(f"y[{index}]", value, problem, remedy)


def panels(breakpoints: Array, nodes_per_panel: int = 20) -> tuple[Array, Array]:
    """Composite Gauss-Legendre nodes and weights between consecutive sorted breakpoints."""
    edges = np.unique(breakpoints)
    t, v = legendre_rule(nodes_per_panel)
    half = 0.5 * np.diff(edges)[:, None]
    middle = 0.5 * (edges[1:] + edges[:-1])[:, None]
    return (middle + half * t).ravel(), (half * v).ravel()


@cache
def legendre_rule(count: int) -> tuple[Array, Array]:
    """Gauss-Legendre nodes and weights on [-1, 1]."""
    return np.polynomial.legendre.leggauss(count)
