r"""One Newton step in a ball, and what a tangent proves there.

    minimise  g'p + p'Hp/2  over  |theta + p| <= bound:   (H + mu I) p = -(g + mu theta),   mu (|theta + p| - bound) = 0

with mu = 0, which is the plain Newton step and nearly always ends inside the ball; otherwise mu >= 0 is the root of
1/|theta + p(mu)| = 1/bound, found by Newton's method on that (concave) equation with one small Cholesky factorisation
per trial (:func:`ball_step`). A function G with gradient g at theta that is convex with modulus 2 ridge is, everywhere,

    G(theta') >= G(theta) + g'(theta' - theta) + ridge |theta' - theta|^2,

and the minimum of the right-hand side over the ball has a closed form (:func:`tangent_minimum`).
"""

from __future__ import annotations

import math

from likeset._solver.linalg.matrix import cholesky, dot, solve_lower, solve_lower_transposed
from likeset._typing import Array
from likeset.compiling import kernel


@kernel()
def tangent_minimum(g: Array, theta: Array, ridge: float, bound: float) -> float:
    """min over |theta'| <= bound of  g'(theta' - theta) + ridge |theta' - theta|^2  (never positive).

    The free minimiser is c = theta - g / (2 ridge), with value -|g|^2 / (4 ridge). If it lies outside the ball the
    minimiser is bound c/|c|. Multiplying out by ridge avoids the division, so that ridge = 0 gives the
    linear -(g'theta + bound |g|) from the same line.
    """
    inner, g_square, theta_square, c_square = 0.0, 0.0, 0.0, 0.0
    for i in range(g.shape[0]):
        inner += g[i] * theta[i]
        g_square += g[i] * g[i]
        theta_square += theta[i] * theta[i]
        c_square += (2.0 * ridge * theta[i] - g[i]) ** 2  # |2 ridge c|^2
    if g_square == 0.0:
        return 0.0
    if ridge > 0.0 and (math.isinf(bound) or c_square <= (2.0 * ridge * bound) ** 2):
        return -g_square / (4.0 * ridge)
    if math.isinf(bound):
        return -math.inf
    both = math.sqrt(c_square) + math.sqrt(g_square)
    return min(0.0, (2.0 * (ridge * theta_square - inner) / both - bound) * (0.5 * both - ridge * bound))


@kernel()
def ball_step(g: Array, H: Array, theta: Array, bound: float, L: Array, p: Array, x: Array) -> None:
    """Write to p the step to the minimiser of g'p + p'Hp/2 over |theta + p| <= bound; L and x are workspace."""
    d = theta.shape[0]
    largest = 0.0
    inner = 0.0
    for i in range(d):
        largest = max(largest, H[i, i])
        inner += g[i] * theta[i]
    # Where H is singular a tiny shift picks, among the equally good steps, nearly the shortest.
    tiny = 1e-13 * largest
    if tiny == 0.0:
        tiny = math.sqrt(dot(g, g)) / bound if bound < math.inf else math.sqrt(dot(g, g))
        if tiny == 0.0:
            for i in range(d):
                p[i] = 0.0
            return
    mu = 0.0
    # At the sphere the multiplier hardly moves between calls.
    if math.sqrt(dot(theta, theta)) >= 0.999 * bound and inner < 0.0:
        mu = -inner / (bound * bound)
    shift = 0.0
    for _ in range(100):
        while not cholesky(H, mu + shift, L):
            shift = max(tiny, 10.0 * shift)
            if not shift < math.inf:  # H holds inf or nan: no step
                for i in range(d):
                    p[i] = 0.0
                return
        for i in range(d):
            p[i] = -(g[i] + mu * theta[i])
        solve_lower(L, p)
        solve_lower_transposed(L, p)
        for i in range(d):
            x[i] = theta[i] + p[i]
        length = math.sqrt(dot(x, x))
        if mu == 0.0 and length <= bound:
            return
        if abs(length - bound) <= 1e-9 * bound:
            break
        solve_lower(L, x)
        ratio = length / math.sqrt(dot(x, x))
        mu = max(0.0, mu + ratio * ratio * (length - bound) / bound)
    for i in range(d):
        p[i] = (theta[i] + p[i]) * (bound / length) - theta[i]
