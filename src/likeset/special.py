"""The few special functions the families need, compiled on first use, so that importing likeset stays quick."""

from __future__ import annotations

import math

import numpy as np

from likeset._typing import Array
from likeset.compiling import njit


def log_gamma(x: Array | float) -> Array:
    """log |Gamma(x)|, elementwise."""
    x = np.asarray(x, dtype=np.float64)
    if x.ndim == 0:
        return np.asarray(math.lgamma(x))
    return _log_gamma(x.ravel()).reshape(x.shape)  # type: ignore[no-any-return]


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


@njit(cache=True)
def _log_gamma(x: Array) -> Array:
    out = np.empty_like(x)
    for i in range(x.size):
        out[i] = math.lgamma(x[i])
    return out


@njit(cache=True)
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


@njit(cache=True)
def _log_scaled_normal_tail(t: Array) -> Array:
    out = np.empty_like(t)
    for i in range(t.size):
        out[i] = _scaled_tail(t[i])
    return out


@njit(cache=True)
def _scaled_tail(t: float) -> float:
    """By erfc or, far out, by the asymptotic series of Mills' ratio."""
    if t < 20.0:
        return math.log(0.5 * math.erfc(t / math.sqrt(2.0))) + 0.5 * t * t
    r = 1.0 / (t * t)
    series = -r * (1.0 - 3.0 * r * (1.0 - 5.0 * r * (1.0 - 7.0 * r * (1.0 - 9.0 * r))))
    return -math.log(t * math.sqrt(2.0 * math.pi)) + math.log1p(series)
