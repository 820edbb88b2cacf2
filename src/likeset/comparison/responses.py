r"""Unbiased responses for z: families in which some function r(y) is z plus centred noise of a known law.

    r(y) = z + noise,   E[noise] = 0

    family             r(y)              deviation       sub-Gaussian      sub-exponential (nu, gamma)
    Gaussian(sigma)    y                 sigma           sigma             (sigma, 0+)
    Laplace(b)         y                 sqrt(2) b       no                (2 b, sqrt(2) b)
    Weibull(p), its logarithm and Exponential:
                       -(p log t + g)    pi / sqrt(6)    no                (1.507, 2)          g = 0.5772... (Euler)

Sub-exponential with (nu, gamma):  log E e^{u noise} <= nu^2 u^2 / 2  for |u| <= 1/gamma.

Laplace: -log(1 - b^2 u^2) <= 2 b^2 u^2 for b^2 u^2 <= 1/2. Survival: t^p e^z is standard exponential, so
p log t = -z + log E with E[log E] = -g: the mean of log t is -(z + g)/p, and a band for it maps to one for z through
z = -p E[log t] - g, which is what r does. The noise -(log E + g) has log-mgf  log Gamma(1 - u) - g u <= 1.507^2 u^2 / 2
on |u| <= 1/2, with equality nearly reached at u = 1/2. (In units of log t: nu = 1.507/p, gamma = 2/p.)
Censored times have no such response.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from likeset._typing import Array
from likeset.errors import ObservationError
from likeset.families.base import Family
from likeset.families.gaussian import Gaussian
from likeset.families.laplace import Laplace
from likeset.families.weibull import EULER, LogWeibull, Weibull


@dataclass(frozen=True)
class Response:
    """r(y) and what is known of its noise; ``sub_gaussian`` and ``sub_exponential`` are None where they fail."""

    of: Callable[[Array], float]
    deviation: float
    sub_gaussian: float | None
    sub_exponential: tuple[float, float] | None


def response(family: Family) -> Response | None:
    """The unbiased response of a family; None where there is none (counts: their mean is not linear in z)."""
    if isinstance(family, Gaussian):
        return Response(float, family.sigma, family.sigma, None)
    if isinstance(family, Laplace):
        b = family.scale
        return Response(float, np.sqrt(2.0) * b, None, (2.0 * b, np.sqrt(2.0) * b))
    if isinstance(family, (Weibull, LogWeibull)):
        shape, logarithm = family.shape, (lambda t: t) if isinstance(family, LogWeibull) else np.log
        return Response(
            lambda y: -(shape * float(logarithm(y[0])) + EULER), float(np.pi / np.sqrt(6.0)), None, (1.507, 2.0)
        )
    return None


def refuse_censored(Y: Array) -> None:
    """Raise if a (time, event) pair is censored: its time says nothing unbiased about z."""
    if Y.ndim == 2 and (Y[:, 1] == 0).any():
        index = int(np.argmax(Y[:, 1] == 0))
        raise ObservationError(
            f"y[{index}]", tuple(Y[index]), "is censored, and least squares cannot use censored times",
            "use a likelihood-based set, e.g. ConfidenceSequence",
        )  # fmt: skip
