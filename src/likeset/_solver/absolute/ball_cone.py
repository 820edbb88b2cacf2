r"""The ball |theta| <= radius as a second-order cone: (radius, theta) in { (v_0, v_1) : v_0 >= |v_1| }.

Vectors of the cone are columns of arrays (1 + d, lanes), v_0 first. The Nesterov-Todd scaling of a primal
vector v and a dual vector y is the symmetric W with W y = W^{-1} v,

    W = eta [ w_0, w_1' ; w_1, I + w_1 w_1' / (1 + w_0) ],      w_0^2 - |w_1|^2 = 1,

where w lies halfway between v and the mirrored y (both divided by their cone norms sqrt(v_0^2 - |v_1|^2)),
and eta^2 is the ratio of those norms.
"""

from __future__ import annotations

import numpy as np

from likeset._solver.linalg.dense import inner
from likeset._typing import Array

SMALLEST = 1e-290  # keeps cone norms positive when rounding puts a vector on the boundary


@inner
def tail_product(p: Array, q: Array) -> Array:
    """p_1'q_1 in every lane."""
    out = np.zeros(p.shape[1])
    for j in range(1, p.shape[0]):
        for m in range(out.size):
            out[m] += p[j, m] * q[j, m]
    return out


@inner
def cone_square(v: Array) -> Array:
    """The squared cone norm v_0^2 - |v_1|^2, as a product to lose less near the boundary; at least SMALLEST."""
    out = tail_product(v, v)
    for m in range(out.size):
        size = np.sqrt(out[m])
        out[m] = max((v[0, m] - size) * (v[0, m] + size), SMALLEST)
    return out


@inner
def boundary_rate(v: Array, step: Array) -> Array:
    """1 / alpha for the largest alpha with v + alpha step in the cone: from the first root of a quadratic."""
    constant, linear, quadratic = cone_square(v), tail_product(v, step), tail_product(step, step)
    for m in range(constant.size):
        b = v[0, m] * step[0, m] - linear[m]
        discriminant = b * b - (step[0, m] ** 2 - quadratic[m]) * constant[m]
        constant[m] = (np.sqrt(max(discriminant, 0.0)) - b) / constant[m] if discriminant >= 0.0 else 0.0
    return constant


@inner
def scaling_point(v: Array, y: Array, w: Array, eta: Array) -> None:
    """Fill w with the unit scaling point of primal v and dual y, and eta."""
    v_square, y_square = cone_square(v), cone_square(y)
    for m in range(eta.size):
        eta[m] = (v_square[m] / y_square[m]) ** 0.25
        v_square[m] = 1.0 / np.sqrt(v_square[m])
        y_square[m] = 1.0 / np.sqrt(y_square[m])
    for m in range(eta.size):
        w[0, m] = v[0, m] * v_square[m] + y[0, m] * y_square[m]
    for j in range(1, v.shape[0]):
        for m in range(eta.size):
            w[j, m] = v[j, m] * v_square[m] - y[j, m] * y_square[m]
    w_square = cone_square(w)
    for m in range(eta.size):
        w_square[m] = 1.0 / np.sqrt(w_square[m])
    for j in range(v.shape[0]):
        for m in range(eta.size):
            w[j, m] *= w_square[m]


@inner
def scale(w: Array, eta: Array, sign: float, v: Array, out: Array) -> None:
    """Set out = W v for sign = 1; for sign = -1 and 1 / eta in place of eta, out = W^{-1} v. out may be v."""
    shift = tail_product(w, v)
    for m in range(eta.size):
        inner, head = sign * shift[m], v[0, m]
        shift[m] = eta[m] * (sign * head + shift[m] / (1.0 + w[0, m]))
        out[0, m] = eta[m] * (w[0, m] * head + inner)
    for j in range(1, v.shape[0]):
        for m in range(eta.size):
            out[j, m] = eta[m] * v[j, m] + shift[m] * w[j, m]


@inner
def cone_divide(scaled: Array, v: Array) -> None:
    """Overwrite v by the x with  scaled o x = v."""
    head, square = tail_product(scaled, v), cone_square(scaled)
    for m in range(head.size):
        head[m] = (scaled[0, m] * v[0, m] - head[m]) / square[m]
        v[0, m] = head[m]
        square[m] = 1.0 / scaled[0, m]
    for j in range(1, v.shape[0]):
        for m in range(head.size):
            v[j, m] = (v[j, m] - head[m] * scaled[j, m]) * square[m]


@inner
def jordan_product(p: Array, q: Array) -> None:
    """Overwrite p by  p o q = (p'q, p_0 q_1 + q_0 p_1)."""
    total = tail_product(p, q)
    for j in range(1, p.shape[0]):
        for m in range(total.size):
            p[j, m] = p[0, m] * q[j, m] + q[0, m] * p[j, m]
    for m in range(total.size):
        p[0, m] = p[0, m] * q[0, m] + total[m]
