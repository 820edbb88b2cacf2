r"""Laws outside a family, for the alarm: other scales and shapes, heavier tails, counts with more variance.

Each is a normalised density of y, given where the family itself would expect it: z with mean m and deviation s under
what is believed before y. How good they are decides how loud an alarm can get, never whether it is valid.
"""

from __future__ import annotations

from collections.abc import Callable
from math import exp, hypot, inf, lgamma, log, log1p
from typing import Any, NamedTuple

import numpy as np

from likeset._typing import Array
from likeset.families.base import Family
from likeset.families.binomial import Binomial
from likeset.families.gaussian import Gaussian
from likeset.families.laplace import Laplace
from likeset.families.log_normal import LogNormal
from likeset.families.poisson import Poisson
from likeset.families.student_t import StudentT
from likeset.families.weibull import LogWeibull, Weibull

SCALES = (0.25, 0.35, 0.5, 0.7, 1.4, 2.0, 2.8, 4.0, 8.0)
SHAPES = (0.4, 0.5, 0.6, 0.75, 1.33, 1.65, 2.1, 3.0)


class Alternative(NamedTuple):
    """A law in words, and log q(y) where z is believed to be m, up to a deviation s."""

    name: str
    log_density: Callable[[Array, float, float], float]


def alternatives(family: Family) -> list[Alternative]:
    """Laws outside the family; none where nothing is known of it."""
    if isinstance(family, Gaussian):
        return _around(Gaussian, float(family.sigma), lambda y: (float(y), 0.0))
    if isinstance(family, LogNormal):
        return _around(Gaussian, float(family.sigma), lambda y: (log(float(y)), log(float(y))))
    if isinstance(family, Laplace):
        return _around(Laplace, float(family.scale), lambda y: (float(y), 0.0))
    if isinstance(family, Poisson):
        factors = [(f"counts with {k:g} times the variance", _times_variance(k)) for k in (1.4, 2.0, 3.0, 5.0)]
        shares = [(f"counts whose mean varies by {100 * c:g} %", _varying_mean(c * c)) for c in (0.3, 0.6, 1.0)]
        return [Alternative(name, density) for name, density in factors + shares]
    if isinstance(family, Binomial):
        return [
            Alternative(f"proportions that vary from row to row (correlation {r:g})", _beta_binomial(family.trials, r))
            for r in (0.003, 0.02, 0.1, 0.4)
        ]
    if isinstance(family, Weibull | LogWeibull):
        made = type(family)
        p = float(family.shape)
        return [
            Alternative(f"lifetimes of shape {p * c:.2g}", _density_of(_with_shape(made, p * c), c)) for c in SHAPES
        ]
    return []


def _with_shape(made: Any, shape: float) -> Any:
    return Weibull(shape) if issubclass(made, Weibull) else LogWeibull(shape)


def _density_of(law: Any, stretch: float) -> Callable[[Array, float, float], float]:
    """The law with the same mean of log time: z stretched like the shape."""
    return lambda y, m, s: float(np.ravel(law.log_density(np.asarray(y), np.asarray(stretch * m)))[0])


def _around(made: Any, scale: float, read: Callable[[Array], tuple[float, float]]) -> list[Alternative]:
    """Noise of other scales and with heavier tails; ``read`` has y on the scale of z, and the log of dy/dz."""

    def of_scale(c: float) -> Callable[[Array, float, float], float]:
        def density(y: Array, m: float, s: float) -> float:
            at, jacobian = read(y)
            return float(made(hypot(c * scale, s)).log_density(np.asarray(at), np.asarray(m))) - jacobian

        return density

    def heavy(c: float) -> Callable[[Array, float, float], float]:
        def density(y: Array, m: float, s: float) -> float:
            at, jacobian = read(y)
            return float(StudentT(3.0, hypot(c * scale, s)).log_density(np.asarray(at), np.asarray(m))) - jacobian

        return density

    found = [Alternative(f"noise of {c:g} times the scale", of_scale(c)) for c in SCALES]
    return found + [
        Alternative(f"heavy tails (Student's t) at {c:g} times the scale", heavy(c)) for c in (0.5, 1.0, 2.0)
    ]


def _negative_binomial(y: float, mean: float, size: float) -> float:
    """log P(y) of the negative binomial law with variance mean + mean^2 / size."""
    if not 0.0 < mean < inf:
        return 0.0 if y == 0 and mean == 0.0 else -inf
    return (
        lgamma(y + size) - lgamma(size) - lgamma(y + 1.0) - size * log1p(mean / size)
        + y * (log(mean) - log(size + mean))
    )  # fmt: skip


def _times_variance(factor: float) -> Callable[[Array, float, float], float]:
    def density(y: Array, m: float, s: float) -> float:
        mean = exp(min(m, 600.0))
        return _negative_binomial(float(y), mean, max(mean / (factor - 1.0), 1e-12))

    return density


def _varying_mean(dispersion: float) -> Callable[[Array, float, float], float]:
    return lambda y, m, s: _negative_binomial(float(y), exp(min(m, 600.0)), 1.0 / dispersion)


def _beta_binomial(trials: int, correlation: float) -> Callable[[Array, float, float], float]:
    total = (1.0 - correlation) / correlation

    def density(y: Array, m: float, s: float) -> float:
        p = 1.0 / (1.0 + exp(-max(min(m, 30.0), -30.0)))
        a, b, k = total * p, total * (1.0 - p), float(y)
        return (
            lgamma(trials + 1.0) - lgamma(k + 1.0) - lgamma(trials - k + 1.0)
            + lgamma(k + a) + lgamma(trials - k + b) - lgamma(trials + a + b)
            + lgamma(a + b) - lgamma(a) - lgamma(b)
        )  # fmt: skip

    return density
