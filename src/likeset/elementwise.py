r"""Exponential and logarithm in straight-line code, so that the compiler computes four or eight terms at once.

A call of the C library's ``exp`` or ``log1p`` inside a loop over terms forbids that, and these calls are where the
time of a smooth support function goes. Both functions below are the textbook ones: reduce the argument by a power of
two (found and applied by integer arithmetic on the bits of a double), then a short series. They also return what is
left after the first-order term, which is the quantity that cancels (see :mod:`~likeset.curves`):

    exp_parts(u) = (e^u, e^u - 1 - u),        log_parts(y) = (log(1 + y), log(1 + y) - y),

accurate to a few units in the last place, the remainders in the relative sense for small arguments too.
"""

from __future__ import annotations

import math

import numpy as np

from likeset.compiling import kernel

LOG2_E = 1.4426950408889634
LN2_HIGH, LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10  # log 2, its first half exact times 2^10
SHIFTER = 6755399441055744.0  # 1.5 * 2^52: adding it rounds a double to an integer, found in its lowest bits
SHIFTER_BITS = 0x4338000000000000
SQRT_HALF_BITS = 0x3FE6A09E667F3BCD
FAR = 600.0  # exponents beyond which log(1 + b e^r) is a straight line in r
F2, F3, F4, F5, F6, F7, F8, F9, F10, F11, F12, F13 = (1.0 / math.factorial(k) for k in range(2, 14))


@kernel(fastmath={"contract"}, forceinline=True)
def exp_parts(u: float) -> tuple[float, float]:
    """(e^u, e^u - 1 - u); e^u is inf above 710 and 3e-308 below -708.

    u = n log 2 + r with |r| <= log(2)/2, and with p = e^r - 1 - r and s = 2^n
    e^u - 1 - u = s p + (s - 1)(1 + r) - n log 2,   which is p itself for n = 0.
    """
    c = min(max(u, -708.0), 710.0)
    shifted = c * LOG2_E + SHIFTER
    n = shifted - SHIFTER
    r = (c - n * LN2_HIGH) - n * LN2_LOW
    s = np.int64((np.float64(shifted).view(np.int64) + 1023) << 52).view(np.float64)
    p = F10 + r * (F11 + r * (F12 + r * F13))
    p = F6 + r * (F7 + r * (F8 + r * (F9 + r * p)))
    p = r * r * (F2 + r * (F3 + r * (F4 + r * (F5 + r * p))))
    return s + s * (r + p), s * p + (((s - 1.0) * (1.0 + r) - n * LN2_HIGH) - n * LN2_LOW) + (c - u)


@kernel(fastmath={"contract"}, forceinline=True)
def log_parts(y: float) -> tuple[float, float]:
    """(log(1 + y), log(1 + y) - y) for -1 < y < 1e300; the second only for |y| < 1/4 (without cancellation).

    1 + y = 2^m f with f between sqrt(1/2) and sqrt(2). With w = (f - 1)/(f + 1):
    log f = 2 artanh(w) = 2w + 2w (w^2/3 + w^4/5 + ...),   and   2w - (f - 1) = -w (f - 1).
    """
    bits = np.float64(1.0 + y).view(np.int64)
    m = (bits - SQRT_HALF_BITS) >> 52
    exponent = np.int64(m + SHIFTER_BITS).view(np.float64) - SHIFTER
    fraction = np.int64(bits - (m << 52)).view(np.float64)
    excess = y if m == 0 else fraction - 1.0  # for m = 0 as it was: 1 + y has lost the last bits of y
    w = excess / (2.0 + excess)
    q = w * w
    tail = 1 / 15 + q * (1 / 17 + q * (1 / 19 + q * (1 / 21)))
    tail = q * (1 / 3 + q * (1 / 5 + q * (1 / 7 + q * (1 / 9 + q * (1 / 11 + q * (1 / 13 + q * tail))))))
    return exponent * LN2_HIGH + (2.0 * w + 2.0 * w * tail + exponent * LN2_LOW), w * (2.0 * tail - excess)


@kernel(fastmath={"contract"}, forceinline=True)
def softplus_sides(v: float) -> tuple[float, float, float, float]:
    """(A(v), A(-v), s(v), s(-v)) of A(v) = log(1 + e^v), s = A' = 1/(1 + e^-v): none by subtraction from one."""
    e, _ = exp_parts(-abs(v))
    low, _ = log_parts(e)
    high, large, small = abs(v) + low, 1.0 / (1.0 + e), e / (1.0 + e)
    up = v > 0.0
    return high if up else low, low if up else high, large if up else small, small if up else large


@kernel(fastmath={"contract"}, forceinline=True)
def softplus_remainder(v: float, r: float) -> tuple[float, float, float]:
    """(D, s(v + r) - s(v), s'(v + r)) with D = A(v + r) - A(v) - A'(v) r for A(v) = log(1 + e^v), without cancellation.

    D(v, r) = D(-v, -r): with v <= 0, b = s(v) and q = b (e^r - 1),
    D = log(1 + q) - b r,   for small r   [log(1 + q) - q] + b [e^r - 1 - r].
    """
    sign = -1.0 if v > 0.0 else 1.0
    r = sign * r
    e, _ = exp_parts(-abs(v))
    b = e / (1.0 + e)
    c = min(r, FAR)  # beyond, log(1 + q) is a straight line
    growth, remainder = exp_parts(c)
    is_small = abs(r) < 0.25
    gain = remainder + c if is_small else growth - 1.0
    q = b * gain
    logarithm, log_remainder = log_parts(q)
    D = log_remainder + b * remainder if is_small else logarithm + (r - c) - b * r
    bend = b * (1.0 - b) / (1.0 + q)
    return D, sign * bend * gain, bend * growth / (1.0 + q)
