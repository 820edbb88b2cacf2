r"""A linear function over an ellipsoid cut with a ball: the start, and the careful step, for smooth sets.

With the likelihood replaced by its second-order model at a point theta of the set, the set of
:mod:`~likeset._solver.smooth.rays` becomes  { q_1 <= r_1 e, q_2 <= r_2 e2/2 },

    q_1(delta) = g'delta + delta'H delta/2,        q_2(delta) = theta'delta + |delta|^2/2,

where r_1, r_2 >= 0 is the room left at theta, as shares of the slacks e and e2 at the centre (there r_1 = r_2 = 1).

For two convex quadratics, the maximum of a'delta over both is the minimum over the mixture w in [0, 1] of its maximum
over the single ellipsoid  w q_1/e + (1 - w) 2 q_2/e2 <= r = w r_1 + (1 - w) r_2,  which has a closed form in the
eigenbasis of H (there everything is a sum over coordinates i). With m_i = w h_i/e + 2(1 - w)/e2 and b_i = w g_i/e +
2(1 - w) theta_i/e2:

    nu = sqrt( sum a_i^2/m_i / (2 r + sum b_i^2/m_i) ),     delta_i = (a_i/nu - b_i)/m_i.

At the best w both constraints hold; left of it the likelihood is violated, right of it the ball. So w is a root
in one variable, taken on the scale log(w/(1 - w)).
"""

from __future__ import annotations

import math

from likeset._typing import Array
from likeset.compiling import njit

LOGIT_LIMIT = 36.0  # beyond, one of the two constraints is weightless in double precision
MAX_BISECTIONS = 60


@njit(cache=True, error_model="numpy", fastmath={"reassoc", "contract"})
def mixture_maximiser(
    a: Array, h: Array, g: Array, theta: Array, e: float, e2: float, r1: float, r2: float, logit: float, delta: Array
) -> tuple[float, float]:
    """Write the maximiser over the mixed ellipsoid to delta; return q_1/e - r_1 and 2 q_2/e2 - r_2, violated if > 0."""
    w = 1.0 / (1.0 + math.exp(-logit))
    v = 1.0 / (1.0 + math.exp(logit))
    c1, c2 = w / e, 2.0 * v / e2
    aa, bb = 0.0, 0.0
    for i in range(a.shape[0]):
        m = c1 * h[i] + c2
        b = c1 * g[i] + c2 * theta[i]
        aa += a[i] * a[i] / m
        bb += b * b / m
    inverse_nu = math.sqrt((2.0 * (w * r1 + v * r2) + bb) / aa)
    q1, q2 = 0.0, 0.0
    for i in range(a.shape[0]):
        m = c1 * h[i] + c2
        delta[i] = (a[i] * inverse_nu - c1 * g[i] - c2 * theta[i]) / m
        q1 += delta[i] * (g[i] + 0.5 * h[i] * delta[i])
        q2 += delta[i] * (theta[i] + 0.5 * delta[i])
    return q1 / e - r1, 2.0 * q2 / e2 - r2


@njit(cache=True, error_model="numpy")
def model_maximisers(
    A: Array, h: Array, g: Array, theta: Array, e: float, e2: float, r1: float, r2: float, close: float, delta: Array
) -> None:
    """Rows of delta: near-maximisers of a'delta for rows a of A, all in the eigenbasis (eigenvalues h >= 0).

    They may violate one of the constraints by a share ``close`` of its slack at the centre.
    """
    for row in range(A.shape[0]):
        low, high = -LOGIT_LIMIT, LOGIT_LIMIT
        if mixture_maximiser(A[row], h, g, theta, e, e2, r1, r2, low, delta[row])[0] <= 0.0:
            continue  # the ball alone decides
        if mixture_maximiser(A[row], h, g, theta, e, e2, r1, r2, high, delta[row])[1] <= 0.0:
            continue  # the likelihood alone decides
        for _ in range(MAX_BISECTIONS):
            middle = 0.5 * (low + high)
            likelihood, ball = mixture_maximiser(A[row], h, g, theta, e, e2, r1, r2, middle, delta[row])
            if likelihood > 0.0:
                low = middle
            else:
                high = middle
            if max(likelihood, ball) < close:
                break
