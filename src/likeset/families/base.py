r"""What a family is: the conditional law of y given the linear predictor z = x'theta.

Every family offers the same small interface (:class:`Family`). What more it can say for itself (how observations merge,
what is believed of z, ...) is optional: :mod:`likeset.families.answers`. Two base classes say it for
exponential families and for smooth losses:

* :class:`~likeset.families.curve_family.CurveFamily`   -log p(y | z) = a(y) A(z) - s(y) z - c(y)
* :class:`~likeset.families.loss_family.LossFamily`     -log p(y | z) = L(y, z) - c(y)

To add a family, write one file with one class; listed in ``families/__init__.py`` it is found by the contract suite
(:mod:`likeset.checks`).
"""

from __future__ import annotations

from functools import cache
from typing import Any, Protocol, runtime_checkable

import numpy as np

from likeset._typing import Array, Mask
from likeset.arguments import floats, generator, real_array, real_number
from likeset.errors import InvalidArgumentError, ObservationError, ShapeError

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
        raise InvalidArgumentError(
            "family", family, "is not a family", "pass an object, e.g. Poisson() or CustomFamily(...)"
        )
    return family


def misfit(y: Any, z: Any) -> ShapeError:
    """The error where y and z do not broadcast."""
    return ShapeError(
        "z", z, f"has shape {np.shape(z)}, which does not fit y of shape {np.shape(y)}", "pass shapes that broadcast"
    )


def moments(mean: Any, sd: Any) -> tuple[Array, Array]:
    """Means and standard deviations of beliefs about z, one of each."""
    mean, sd = floats("mean", mean), floats("sd", sd)
    if mean.ndim != 1 or mean.shape != sd.shape:
        raise ShapeError("sd", sd, f"has shape {sd.shape} and mean {mean.shape}", "pass two lists of one length")
    return mean, sd


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


def refuse(y: Array, bad: Mask, problem: str, remedy: str) -> None:
    """Raise an ObservationError naming the first bad observation, if there is one."""
    if bad.any():
        index = int(np.argmax(bad))
        value = y[index].item() if y.ndim == 1 else tuple(y[index].tolist())
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
