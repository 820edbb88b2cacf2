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

from likeset._typing import Array


@dataclass(frozen=True)
class Response:
    """r(y) and what is known of its noise; ``sub_gaussian`` and ``sub_exponential`` are None where they fail."""

    of: Callable[[Array], float]
    deviation: float
    sub_gaussian: float | None
    sub_exponential: tuple[float, float] | None
