"""The few special functions the families need, compiled on first use, so that importing likeset stays quick."""

from __future__ import annotations

import math

import numpy as np

from likeset._typing import Array
from likeset.compiling import inner, kernel

_STIRLING_FROM = 16.0


def log_gamma(x: Array | float) -> Array:
    """log |Gamma(x)|, elementwise."""
    x = np.asarray(x, dtype=np.float64)
    if x.ndim == 0:
        return np.asarray(math.lgamma(x))
    return _log_gamma(x.ravel()).reshape(x.shape)  # type: ignore[no-any-return]


def log_rising(x: float, a: float) -> float:
    """log [Gamma(x + a) / Gamma(x)] for x > 0, a > -1, x + a > 0: by Stirling's series where both are large and cancel.

    With S(x) = log Gamma(x) - [(x - 1/2) log x - x + log(2 pi)/2],
    log Gamma(x + a) - log Gamma(x) = (x + a - 1/2) log(1 + a/x) + a log x - a + S(x + a) - S(x).

    >>> round(log_rising(1e12, 1.0) - math.log(1e12), 12)
    0.0
    """
    if x < _STIRLING_FROM:
        return math.lgamma(x + a) - math.lgamma(x)
    return (x + a - 0.5) * math.log1p(a / x) - a + a * math.log(x) + _stirling(x + a) - _stirling(x)


def _stirling(x: float) -> float:
    """S(x), for x of at least 15: the next term of the series is below 1e-16."""
    r = 1.0 / (x * x)
    return (1.0 / 12 - r * (1.0 / 360 - r * (1.0 / 1260 - r * (1.0 / 1680 - r * (1.0 / 1188 - r * 691 / 360360))))) / x


def log_normal_cdf(x: Array | float) -> Array:
    """log Phi(x), elementwise."""
    x = np.asarray(x, dtype=np.float64)
    return _log_normal_cdf(x.ravel()).reshape(x.shape)  # type: ignore[no-any-return]


def log_scaled_normal_tail(t: Array | float) -> Array:
    """log [ e^{t^2/2} Phi(-t) ] for t >= 0, elementwise: slowly varying, where Phi(-t) itself underflows."""
    t = np.asarray(t, dtype=np.float64)
    return _log_scaled_normal_tail(t.ravel()).reshape(t.shape)  # type: ignore[no-any-return]


def sigmoid(z: Array | float) -> Array:
    """1 / (1 + e^-z), elementwise and without overflow."""
    small = np.exp(-np.abs(z))
    return np.where(np.asarray(z) >= 0, 1.0 / (1.0 + small), small / (1.0 + small))


@kernel(allocates=True)
def _log_gamma(x: Array) -> Array:
    out = np.empty_like(x)
    for i in range(x.size):
        out[i] = math.lgamma(x[i])
    return out


@kernel(allocates=True)
def _log_normal_cdf(x: Array) -> Array:
    out = np.empty_like(x)
    for i in range(x.size):
        if x[i] > 6.0:
            out[i] = math.log1p(-0.5 * math.erfc(x[i] / math.sqrt(2.0)))
        elif x[i] >= 0.0:
            out[i] = math.log(0.5 * math.erfc(-x[i] / math.sqrt(2.0)))
        else:
            out[i] = _scaled_tail(-x[i]) - 0.5 * x[i] * x[i]
    return out


@kernel(allocates=True)
def _log_scaled_normal_tail(t: Array) -> Array:
    out = np.empty_like(t)
    for i in range(t.size):
        out[i] = _scaled_tail(t[i])
    return out


@inner()
def _scaled_tail(t: float) -> float:
    """By erfc or, far out, by the asymptotic series of Mills' ratio."""
    if t < 20.0:
        return math.log(0.5 * math.erfc(t / math.sqrt(2.0))) + 0.5 * t * t
    r = 1.0 / (t * t)
    series = -r * (1.0 - 3.0 * r * (1.0 - 5.0 * r * (1.0 - 7.0 * r * (1.0 - 9.0 * r))))
    return -math.log(t * math.sqrt(2.0 * math.pi)) + math.log1p(series)
