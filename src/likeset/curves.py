r"""The three curves A of :class:`~likeset._solver.problem.Curve` as compiled scalar functions.

    curve              A(z)             A'(z)              A''(z)
    QUADRATIC    (0)   z^2 / 2          z                  1
    EXPONENTIAL  (1)   e^z              e^z                e^z
    SOFTPLUS     (2)   log(1 + e^z)     sigma(z)           sigma(z) sigma(-z)      sigma(z) = 1/(1 + e^-z)

and the Bregman remainder, the exact error of the tangent at z,

    D(z, u) = A(z + u) - A(z) - A'(z) u  >= 0.

D is what a likelihood gains between two nearby parameters. Subtracting the three terms would leave nothing but
rounding when u is small, so it is built from  e^u - 1 - u  and  log(1 + y) - y, which have series of their own.
"""

from __future__ import annotations

import math
from enum import IntEnum

from likeset.compiling import njit


class Curve(IntEnum):
    """The convex curve A(z) shared by all terms of an exponential family."""

    QUADRATIC = 0  # A(z) = z^2 / 2
    EXPONENTIAL = 1  # A(z) = e^z
    SOFTPLUS = 2  # A(z) = log(1 + e^z)


QUADRATIC = int(Curve.QUADRATIC)
EXPONENTIAL = int(Curve.EXPONENTIAL)
SOFTPLUS = int(Curve.SOFTPLUS)


@njit(cache=True, error_model="numpy")
def sigmoid(z: float) -> float:
    """sigma(z) = 1 / (1 + e^-z), accurate in both tails."""
    if z >= 0.0:
        return 1.0 / (1.0 + math.exp(-z))
    e = math.exp(z)
    return e / (1.0 + e)


@njit(cache=True, error_model="numpy")
def curve_value(curve: int, z: float) -> float:
    """A(z)."""
    if curve == QUADRATIC:
        return 0.5 * z * z
    if curve == EXPONENTIAL:
        return math.exp(z)
    return max(z, 0.0) + math.log1p(math.exp(-abs(z)))


@njit(cache=True, error_model="numpy")
def curve_first(curve: int, z: float) -> float:
    """A'(z)."""
    if curve == QUADRATIC:
        return z
    if curve == EXPONENTIAL:
        return math.exp(z)
    return sigmoid(z)


@njit(cache=True, error_model="numpy")
def curve_second(curve: int, z: float) -> float:
    """A''(z)."""
    if curve == QUADRATIC:
        return 1.0
    if curve == EXPONENTIAL:
        return math.exp(z)
    e = math.exp(-abs(z))
    return e / ((1.0 + e) * (1.0 + e))


@njit(cache=True, error_model="numpy")
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


@njit(cache=True, error_model="numpy")
def exp_remainder(u: float) -> float:
    """e^u - 1 - u without cancellation: Taylor series for |u| < 1/2, u^2 (1/2! + u/3! + u^2/4! + ...)."""
    if abs(u) >= 0.5:
        return math.expm1(u) - u
    total = 0.0
    for k in range(15, 2, -1):
        total = (total + 1.0) * u / k
    return 0.5 * u * u * (1.0 + total)


@njit(cache=True, error_model="numpy")
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


@njit(cache=True, error_model="numpy")
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


@njit(cache=True, error_model="numpy")
def term_all(curve: int, a: float, s: float, z: float) -> tuple[float, float, float, float]:
    """phi(z) = a A(z) - s z: value, size of its parts, first and second derivative."""
    first, second = curve_slopes(curve, z)
    if curve == SOFTPLUS and z > 0.0:  # A(z) = z + log(1 + e^-z): the two lines leave (a - s) z
        small, line, rest = math.exp(-z), a - s, a * math.log1p(math.exp(-z))
        return rest + line * z, rest + abs(line * z), line - a * (small / (1.0 + small)), a * second
    height = a * curve_value(curve, z)
    return height - s * z, height + abs(s * z), a * first - s, a * second


@njit(cache=True, error_model="numpy")
def term_all_from(curve: int, a: float, s: float, origin: float, z: float) -> tuple[float, float, float, float]:
    """The same for phi(z) = a [A(z) - A(o) - A'(o) (z - o)] - s (z - o), QUADRATIC or EXPONENTIAL."""
    step = z - origin
    height = a * curve_remainder(curve, origin, step)
    if curve == QUADRATIC:
        return height - s * step, height + abs(s * step), a * step - s, a
    return height - s * step, height + abs(s * step), a * (math.exp(origin) * math.expm1(step)) - s, a * math.exp(z)
