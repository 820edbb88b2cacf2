r"""How far the log-mgf of centred noise stays below a parabola: the pairs (nu, gamma) of sub-exponential noise.

    log E e^{u noise} <= nu^2 u^2 / 2    for |u| <= 1/gamma

A larger nu allows a smaller gamma. 2 log E e^{u noise} / u^2 starts at the variance and grows with u > 0 for the noises
below, whose right tail is the heavier one, so that the smallest gamma for a nu is where the two sides meet:

    Laplace(b)                         -log(1 - b^2 u^2),             u < 1/b
    -(log E + g), E exponential        log Gamma(1 - u) - g u,        u < 1     (survival times; g = 0.5772..., Euler)

``reach(nu)`` is 1/gamma, rounded down.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

from likeset._typing import Array
from likeset.families import Exponential, Laplace, LogWeibull, Weibull
from likeset.families.base import Family

_HALVINGS = 60
_SHORT_OF = 1 - 1e-9  # of the pole of the log-mgf


@dataclass(frozen=True)
class Tails:
    """The noise of a response: its log-mgf on (0, limit), or a pair (nu, gamma) where no more is known.

    >>> laplace = tails_of(Laplace(1.0), None)
    >>> nu, gamma = 2.0, 1 / laplace.reach(np.array([2.0]))[0]
    >>> bool(nu**2 / 2 / gamma**2 >= -np.log1p(-1 / gamma**2)), round(float(gamma), 3)
    (True, 1.12)
    """

    deviation: float
    limit: float
    log_mgf: Callable[[Array], Array] | None = None

    def reach(self, nu: Array) -> Array:
        """The largest u up to which nu^2 u^2 / 2 is above the log-mgf; zero if nu is too small for any."""
        nu = np.asarray(nu, dtype=np.float64)
        if self.log_mgf is None:
            return np.where(nu >= self.deviation, self.limit, 0.0)
        low, high = np.zeros_like(nu), np.full_like(nu, self.limit)
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            fits = 2 * self.log_mgf(middle) <= nu**2 * middle**2
            low, high = np.where(fits, middle, low), np.where(fits, high, middle)
        # Next to the standard deviation both sides are alike up to rounding: nothing is promised there.
        return np.where(nu >= 1.001 * self.deviation, low, 0.0)


def tails_of(family: Family, pair: tuple[float, float] | None) -> Tails | None:
    """What is known of the noise of a family's response; ``pair`` is the family's own (nu, gamma)."""
    if isinstance(family, Laplace):
        return _laplace(family.scale)
    if isinstance(family, (Weibull, LogWeibull, Exponential)):
        return _survival()
    return None if pair is None else Tails(pair[0], 1 / pair[1])


@cache
def _laplace(b: float) -> Tails:
    return Tails(float(np.sqrt(2) * b), _SHORT_OF / b, lambda u: -np.log1p(-((b * u) ** 2)))


@cache
def _survival() -> Tails:
    from scipy.special import gammaln

    return Tails(float(np.pi / np.sqrt(6)), _SHORT_OF, lambda u: np.asarray(gammaln(1 - u) - np.euler_gamma * u))
