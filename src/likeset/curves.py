r"""The three curves A, their derivatives and what is built from them: every formula of theirs is in this file.

    curve              A(z)             A'(z)              A''(z)
    QUADRATIC    (0)   z^2 / 2          z                  1
    EXPONENTIAL  (1)   e^z              e^z                e^z
    SOFTPLUS     (2)   log(1 + e^z)     sigma(z)           sigma(z) sigma(-z)      sigma(z) = 1/(1 + e^-z)

and the Bregman remainder, the exact error of the tangent at z,

    D(z, u) = A(z + u) - A(z) - A'(z) u  >= 0.

D is what a likelihood gains between two nearby parameters. Subtracting the three terms would leave nothing but
rounding when u is small, so it is built from  e^u - 1 - u  and  log(1 + y) - y, which have series of their own.

Four forms of the same, because each is needed for speed or for its digits: compiled functions of one number; NumPy
functions of arrays; whole terms phi(z) = a A(z) - s z, in both; and :func:`centred_curve`, a loop over terms around a
centre that the compiler turns into vector instructions. A curve of a family's own is a :mod:`likeset.losses` loss.
"""

from __future__ import annotations

import math
from enum import IntEnum

import numpy as np

from likeset._typing import Array
from likeset.compiling import inner
from likeset.elementwise import exp_parts, log_parts
from likeset.special import sigmoid as sigmoids


class Curve(IntEnum):
    """The convex curve A(z) shared by all terms of an exponential family."""

    QUADRATIC = 0  # A(z) = z^2 / 2
    EXPONENTIAL = 1  # A(z) = e^z
    SOFTPLUS = 2  # A(z) = log(1 + e^z)


QUADRATIC = int(Curve.QUADRATIC)
EXPONENTIAL = int(Curve.EXPONENTIAL)
SOFTPLUS = int(Curve.SOFTPLUS)
LARGE = 600.0  # exponents beyond which log(1 + b e^u) is a straight line


@inner()
def sigmoid(z: float) -> float:
    """sigma(z) = 1 / (1 + e^-z), accurate in both tails."""
    if z >= 0.0:
        return 1.0 / (1.0 + math.exp(-z))
    e = math.exp(z)
    return e / (1.0 + e)


@inner()
def curve_value(curve: int, z: float) -> float:
    """A(z)."""
    if curve == QUADRATIC:
        return 0.5 * z * z
    if curve == EXPONENTIAL:
        return math.exp(z)
    return max(z, 0.0) + math.log1p(math.exp(-abs(z)))


@inner()
def curve_first(curve: int, z: float) -> float:
    """A'(z)."""
    if curve == QUADRATIC:
        return z
    if curve == EXPONENTIAL:
        return math.exp(z)
    return sigmoid(z)


@inner()
def curve_second(curve: int, z: float) -> float:
    """A''(z)."""
    if curve == QUADRATIC:
        return 1.0
    if curve == EXPONENTIAL:
        return math.exp(z)
    e = math.exp(-abs(z))
    return e / ((1.0 + e) * (1.0 + e))


@inner()
def curve_slopes(curve: int, z: float) -> tuple[float, float]:
    """(A'(z), A''(z)) for the price of one exponential."""
    if curve == QUADRATIC:
        return z, 1.0
    if curve == EXPONENTIAL:
        e = math.exp(z)
        return e, e
    e = math.exp(-abs(z))
    large = 1.0 / (1.0 + e)  # sigma(|z|)
    small = e * large  # sigma(-|z|)
    return large if z >= 0.0 else small, small * large


@inner()
def exp_remainder(u: float) -> float:
    """e^u - 1 - u without cancellation: Taylor series for |u| < 1/2, u^2 (1/2! + u/3! + u^2/4! + ...)."""
    if abs(u) >= 0.5:
        return math.expm1(u) - u
    total = 0.0
    for k in range(15, 2, -1):
        total = (total + 1.0) * u / k
    return 0.5 * u * u * (1.0 + total)


@inner()
def log_remainder(y: float) -> float:
    """log(1 + y) - y for |y| < 1/2, without cancellation.

    With w = y / (2 + y):  log(1 + y) = 2 artanh(w) = 2w + 2 (w^3/3 + w^5/5 + ...)  and  2w - y = -y w.
    """
    w = y / (2.0 + y)
    square = w * w
    total = 0.0
    for k in range(25, 1, -2):
        total = (total + 1.0 / k) * square
    return 2.0 * w * total - y * w


@inner()
def curve_remainder(curve: int, z: float, u: float) -> float:
    """D(z, u) = A(z + u) - A(z) - A'(z) u to nearly full relative precision.

    EXPONENTIAL:  D = e^z (e^u - 1 - u).
    SOFTPLUS:     A(z + u) - A(z) = log(1 + sigma(z) (e^u - 1)), and D(z, u) = D(-z, -u) lets us take z <= 0, so
                  that sigma <= 1/2 and, with y = sigma (e^u - 1),
                  D = [log(1 + y) - y] + sigma [e^u - 1 - u]
                  has a first bracket at most half as large as the second.
    """
    if curve == QUADRATIC:
        return 0.5 * u * u
    if curve == EXPONENTIAL:
        if u > 1.0:  # e^z e^u could be 0 * inf
            return math.exp(z + u) - math.exp(z) * (1.0 + u)
        return math.exp(z) * exp_remainder(u)
    if z > 0.0:
        z, u = -z, -u
    s = sigmoid(z)
    if abs(u) < 0.5:
        return log_remainder(s * math.expm1(u)) + s * exp_remainder(u)
    if u < 500.0:
        return math.log1p(s * math.expm1(u)) - s * u
    return curve_value(SOFTPLUS, z + u) - curve_value(SOFTPLUS, z) - s * u


@inner()
def term_all(curve: int, a: float, s: float, z: float) -> tuple[float, float, float, float]:
    """phi(z) = a A(z) - s z: value, size of its parts, first and second derivative."""
    first, second = curve_slopes(curve, z)
    if curve == SOFTPLUS and z > 0.0:  # A(z) = z + log(1 + e^-z): the two lines leave (a - s) z
        small, line, rest = math.exp(-z), a - s, a * math.log1p(math.exp(-z))
        return rest + line * z, rest + abs(line * z), line - a * (small / (1.0 + small)), a * second
    height = a * curve_value(curve, z)
    return height - s * z, height + abs(s * z), a * first - s, a * second


@inner()
def term_all_from(curve: int, a: float, s: float, origin: float, z: float) -> tuple[float, float, float, float]:
    """The same for phi(z) = a [A(z) - A(o) - A'(o) (z - o)] - s (z - o), QUADRATIC or EXPONENTIAL."""
    step = z - origin
    height = a * curve_remainder(curve, origin, step)
    if curve == QUADRATIC:
        return height - s * step, height + abs(s * step), a * step - s, a
    return height - s * step, height + abs(s * step), a * (math.exp(origin) * math.expm1(step)) - s, a * math.exp(z)


@inner(fastmath={"contract"})
def centred_curve(
    curve: int, a: Array, z: Array, base: Array, u: Array, t: float, D: Array, slope: Array, weight: Array
) -> None:
    """Write a D(z, tu), a [A'(z + tu) - A'(z)] and a A''(z + tu), given base = A'(z) (SOFTPLUS: A'(-|z|)).

    EXPONENTIAL: D = e^z (e^u - 1 - u). SOFTPLUS is symmetric, D(z, u) = D(-z, -u), so we may take z <= 0 and
    b = sigma(z) <= 1/2; with y = b (e^u - 1),  A(z + u) - A(z) = log(1 + y)  and  sigma(z + u) = b e^u/(1 + y).
    For small u, D is the sum of two remainders:  [log(1 + y) - y] + b [e^u - 1 - u].
    """
    if curve == QUADRATIC:
        for k in range(u.shape[0]):
            v = t * u[k]
            D[k], slope[k], weight[k] = 0.5 * a[k] * v * v, a[k] * v, a[k]
    elif curve == EXPONENTIAL:
        for k in range(u.shape[0]):
            v = t * u[k]
            growth, remainder = exp_parts(v)
            scale = a[k] * base[k]
            D[k], slope[k], weight[k] = scale * remainder, scale * (remainder + v), scale * growth
    else:
        for k in range(u.shape[0]):
            b = base[k]
            sign = -1.0 if z[k] > 0.0 else 1.0
            v = sign * t * u[k]
            c = min(v, LARGE)
            growth, remainder = exp_parts(c)
            is_small = abs(v) < 0.25
            gain = remainder + c if is_small else growth - 1.0
            y = b * gain
            logarithm, log_remainder = log_parts(y)
            D[k] = a[k] * (log_remainder + b * remainder if is_small else logarithm + (v - c) - b * v)
            scale = a[k] * b * (1.0 - b) / (1.0 + y)
            slope[k] = sign * scale * gain
            weight[k] = scale * growth / (1.0 + y)


@inner()
def centred_extreme(curve: int, a: float, z: float, u: float) -> tuple[float, float, float]:
    """The same for one term whose base has underflowed, where base * e^u would be 0 * inf."""
    slope = curve_first(curve, z + u) - curve_first(curve, z)
    return a * curve_remainder(curve, z, u), a * slope, a * curve_second(curve, z + u)


def curve_heights(curve: Curve, Z: Array) -> Array:
    """A(Z), elementwise; infinite where e^z overflows."""
    if curve == Curve.QUADRATIC:
        return 0.5 * Z * Z
    if curve == Curve.EXPONENTIAL:
        with np.errstate(over="ignore"):
            return np.exp(Z)
    return np.logaddexp(0.0, Z)


def curve_derivatives(curve: Curve, Z: Array) -> tuple[Array, Array]:
    """A'(Z) and A''(Z), elementwise."""
    if curve == Curve.QUADRATIC:
        return Z, np.ones_like(Z)
    if curve == Curve.EXPONENTIAL:
        with np.errstate(over="ignore"):
            e = np.exp(Z)
        return e, e
    return sigmoids(Z), sigmoids(Z) * sigmoids(-Z)


def curve_base(curve: Curve, Z: Array) -> Array:
    """What :func:`centred_curve` wants to know of the centre: A'(Z), or A'(-|Z|) where the curve is symmetric."""
    with np.errstate(over="ignore"):
        return curve_derivatives(curve, -np.abs(Z) if curve == Curve.SOFTPLUS else Z)[0]


def term_heights(curve: Curve, a: Array, s: Array, origins: Array | None, Z: Array) -> Array:
    """phi(Z) = a A(Z) - s Z, or the same from ``origins``: nothing large cancels, and a = 0 with e^z = inf is 0."""
    if curve == Curve.SOFTPLUS:
        # log(1 + e^z) = max(z, 0) + log(1 + e^-|z|): for z > 0 the line and s z leave (a - s) z.
        return a * np.log1p(np.exp(-np.abs(Z))) + np.where(Z > 0, a - s, -s) * Z
    if origins is None:
        heights, steps = curve_heights(curve, Z), Z
    else:
        steps = Z - origins
        with np.errstate(over="ignore"):
            heights = 0.5 * steps * steps if curve == Curve.QUADRATIC else (
                np.exp(origins) * (np.expm1(steps) - steps)
            )  # fmt: skip
    return np.where(a > 0, a * np.where(a > 0, heights, 0.0), 0.0) - s * steps


def term_derivatives(curve: Curve, a: Array, s: Array, origins: Array | None, Z: Array) -> tuple[Array, Array, Array]:
    """(phi, phi', phi'') of the same terms; inf where e^z overflows."""
    if curve == Curve.SOFTPLUS:  # for z > 0 in terms of a - s, which is exact where all trials succeeded
        e, up = np.exp(-np.abs(Z)), Z > 0.0
        line, small = np.where(up, a - s, -s), e / (1.0 + e)
        return a * np.log1p(e) + line * Z, line + np.where(up, -a, a) * small, a * small / (1.0 + e)
    steps = Z if origins is None else Z - origins
    if curve == Curve.QUADRATIC:
        return a * (0.5 * steps * steps) - s * steps, a * steps - s, a * np.ones_like(Z)
    second = np.exp(Z)
    if origins is None:
        return a * second - s * Z, a * second - s, a * second
    base, growth = np.exp(origins), np.expm1(steps)
    return a * (base * (growth - steps)) - s * steps, a * (base * growth) - s, a * second


def term_lines(curve: Curve, a: Array, s: Array, origins: Array | None, Z: Array) -> Array:
    """The linear part of the same terms, as it enters their sums: what rounding is proportional to, besides phi."""
    if curve == Curve.SOFTPLUS:
        return np.where(Z > 0.0, a - s, s) * Z
    return s * (Z if origins is None else Z - origins)


def term_minima(curve: Curve, a: Array, s: Array, origins: Array | None) -> Array:
    """inf over z of the same terms; -inf where a slope is out of the curve's reach.

    quadratic      -s^2 / 2a
    exponential    s - s log(s/a);   from o, with b = a e^o:  s - (s + b) log(1 + s/b)
    softplus       a log a - s log s - (a - s) log(a - s)
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        if curve == Curve.QUADRATIC:
            lowest = -0.5 * s * s / a
            return np.where(a > 0.0, lowest, np.where(s == 0.0, 0.0, -np.inf))
        if curve == Curve.EXPONENTIAL and origins is not None:
            base = a * np.exp(origins)
            total = s + base  # minus the slope at -infinity
            lowest = np.where(total > 0.0, s - total * np.log1p(s / base), -base)
            return np.where((base > 0.0) & (total >= 0.0), lowest, np.where(s == 0.0, 0.0, -np.inf))
        if curve == Curve.EXPONENTIAL:
            lowest = s - s * np.log(s / a)
            return np.where((s > 0.0) & (a > 0.0), lowest, np.where((s == 0.0) & (a >= 0.0), 0.0, -np.inf))
        p = s / a
        lowest = -a * (np.where(p > 0.0, p * np.log(p), 0.0) + np.where(p < 1.0, (1.0 - p) * np.log1p(-p), 0.0))
        return np.where(s == 0.0, 0.0, np.where((s > 0.0) & (s <= a), lowest, -np.inf))
