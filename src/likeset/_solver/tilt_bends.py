r"""How much curves bend between a point and another: what quadratic lower bounds are made of.

By Taylor's formula f(z + d) = f(z) + f'(z) d + k(d) d^2 / 2 with the mean bend

    k(d) = 2 integral_0^1 (1 - t) f''(z + t d) dt  =  2 [f(z + d) - f(z) - f'(z) d] / d^2,

which is far nearer to f''(z) than the extremes of f'' between the two are. If f'' rises to a maximum and falls (as for
both curves here), so does its mean over [0, d] as a function of d, and so does k, the mean of these means: on either
side of zero k is least at an end. With a bound T of |f''''|,

    k(d) >= f''(z) + f'''(z) d / 3 - T d^2 / 12,

whatever f is; this is concave in d, and least at an end, too.
"""

from __future__ import annotations

import numpy as np

from likeset._solver.tilt_terms import CurveSum
from likeset._typing import Array
from likeset.curves import Curve, curve_derivatives

FOURTH = 0.125  # the largest fourth derivative of softplus, in size
_SMALL = 0.02  # d below which k is its series
_LARGE = 500.0  # d beyond which 2 D(z, 500) / d^2 will do
_ROUNDING = 1e-9


def second_derivatives(curve: Curve, part: CurveSum, z: Array) -> Array:
    """Second derivatives of a sum of curves, for every covariate at its z."""
    second = part.factors * curve_derivatives(curve, z[part.index] + part.shifts)[1]
    return np.bincount(part.index, second, minlength=len(z)).astype(np.float64)


def softplus_series(part: CurveSum, z: Array) -> tuple[Array, Array, Array]:
    """The second and third derivatives of a sum of softplus curves, and a bound of the size of the fourth ones."""
    first, second = curve_derivatives(Curve.SOFTPLUS, z[part.index] + part.shifts)
    parts = (second, second * (1.0 - 2.0 * first), np.full(len(second), FOURTH))
    found = [np.bincount(part.index, part.factors * one, minlength=len(z)).astype(np.float64) for one in parts]
    return found[0], found[1], found[2]


def least_of_series(second: Array, third: Array, fourth: Array, low: Array, high: Array) -> Array:
    """A lower bound of k over d in [low, high], from derivatives at z."""
    ends = (second + third * (end / 3.0) - fourth * (end * end / 12.0) for end in (low, high))
    return np.minimum(*ends)


def exponential_mean_bend(d: Array) -> Array:
    """2 (e^d - 1 - d) / d^2: of e^z relative to e^z."""
    small = np.abs(d) < _SMALL
    step = np.where(small, 1.0, np.clip(d, -1e300, 700.0))
    series = 1.0 + d / 3.0 * (1.0 + d / 4.0 * (1.0 + d / 5.0 * (1.0 + d / 6.0)))
    return np.where(small, series, 2.0 * (np.expm1(step) - step) / (step * step))


def least_softplus_bend(part: CurveSum, z: Array, low: Array, high: Array) -> Array:
    """A lower bound of k over d in [low, high], low <= 0 <= high, of a sum of softplus curves, c >= 0."""
    at = z[part.index] + part.shifts
    found = curve_derivatives(Curve.SOFTPLUS, at)[1]
    for end in (low, high):
        found = np.minimum(found, _softplus_mean_bend(at, end[part.index]))
    return np.bincount(part.index, part.factors * found * (1.0 - _ROUNDING), minlength=len(z)).astype(np.float64)


def _softplus_mean_bend(z: Array, d: Array) -> Array:
    """2 D(z, d) / d^2, or less; D(z, d) = D(-z, -d) is log(1 + p (e^d - 1)) - p d for z <= 0, p = A'(z)."""
    d, z = np.where(z > 0.0, -d, d), -np.abs(z)
    first, second = curve_derivatives(Curve.SOFTPLUS, z)
    small, near = np.abs(d) < _SMALL, np.clip(d, -_LARGE, _LARGE)
    # |A''''| <= A'' for z <= 0, also at z + d if e^|d| is added
    series = second * (1.0 + (1.0 - 2.0 * first) * d / 3.0 - 1.1 * d * d / 12.0)
    remainder = np.log1p(first * np.expm1(near)) - first * near
    return np.where(small, series, 2.0 * remainder / np.where(small, 1.0, d * d))
