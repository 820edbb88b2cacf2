r"""The ball |theta| <= radius as a second-order cone: (radius, theta) in { (v_0, v_1) : v_0 >= |v_1| }.

Vectors of the cone are stored as one array [v_0, v_1...]. The Nesterov-Todd scaling of a primal vector v
and a dual vector y is the symmetric W with W y = W^{-1} v,

    W = eta [ w_0, w_1' ; w_1, I + w_1 w_1' / (1 + w_0) ],      w_0^2 - |w_1|^2 = 1,

where w lies halfway between v and the mirrored y (both divided by their cone norms sqrt(v_0^2 - |v_1|^2)),
and eta^2 is the ratio of those norms.
"""

from __future__ import annotations

import numpy as np

from likeset.support.dense import compiled
from likeset.support.terms import Array

SMALLEST = 1e-290  # keeps cone norms positive when rounding puts a vector on the boundary


@compiled
def cone_square(v: Array) -> float:
    """The squared cone norm v_0^2 - |v_1|^2, as a product to lose less near the boundary."""
    total = 0.0
    for j in range(1, v.size):
        total += v[j] * v[j]
    size = np.sqrt(total)
    return float((v[0] - size) * (v[0] + size))


@compiled
def boundary_step(v: Array, step: Array) -> float:
    """Largest alpha >= 0 with v + alpha step in the cone: the first root of a quadratic (inf if none)."""
    constant = max(cone_square(v), 0.0)
    linear = v[0] * step[0]
    quadratic = step[0] * step[0]
    for j in range(1, v.size):
        linear -= v[j] * step[j]
        quadratic -= step[j] * step[j]
    discriminant = linear * linear - quadratic * constant
    if discriminant < 0.0:
        return np.inf
    denominator = np.sqrt(discriminant) - linear
    return constant / denominator if denominator > 0.0 else np.inf


@compiled
def scaling_point(v: Array, y: Array, w: Array) -> float:
    """Fill w with the unit scaling point of primal v and dual y; returns eta."""
    v_norm = np.sqrt(max(cone_square(v), SMALLEST))
    y_norm = np.sqrt(max(cone_square(y), SMALLEST))
    w[0] = v[0] / v_norm + y[0] / y_norm
    for j in range(1, v.size):
        w[j] = v[j] / v_norm - y[j] / y_norm
    w_norm = np.sqrt(max(cone_square(w), SMALLEST))
    for j in range(w.size):
        w[j] /= w_norm
    return float(np.sqrt(v_norm / y_norm))


@compiled
def scale(w: Array, eta: float, v: Array, out: Array) -> None:
    """Set out = W v; out may be v itself."""
    inner = 0.0
    for j in range(1, v.size):
        inner += w[j] * v[j]
    head = v[0]
    shift = head + inner / (1.0 + w[0])
    out[0] = eta * (w[0] * head + inner)
    for j in range(1, v.size):
        out[j] = eta * (v[j] + shift * w[j])


@compiled
def unscale(w: Array, eta: float, v: Array, out: Array) -> None:
    """Set out = W^{-1} v; out may be v itself."""
    inner = 0.0
    for j in range(1, v.size):
        inner += w[j] * v[j]
    head = v[0]
    shift = inner / (1.0 + w[0]) - head
    out[0] = (w[0] * head - inner) / eta
    for j in range(1, v.size):
        out[j] = (v[j] + shift * w[j]) / eta


@compiled
def cone_divide(scaled: Array, v: Array) -> None:
    """Overwrite v by the x with  scaled o x = v."""
    inner = 0.0
    for j in range(1, v.size):
        inner += scaled[j] * v[j]
    head = (scaled[0] * v[0] - inner) / max(cone_square(scaled), SMALLEST)
    v[0] = head
    for j in range(1, v.size):
        v[j] = (v[j] - head * scaled[j]) / scaled[0]


@compiled
def jordan_product(p: Array, q: Array) -> None:
    """Overwrite p by  p o q = (p'q, p_0 q_1 + q_0 p_1)."""
    total = 0.0
    for j in range(p.size):
        total += p[j] * q[j]
    for j in range(1, p.size):
        p[j] = p[0] * q[j] + q[0] * p[j]
    p[0] = total
