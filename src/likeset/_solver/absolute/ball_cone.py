r"""The ball |theta| <= bound as a second-order cone: (bound, theta) in { (v_0, v_1) : v_0 >= |v_1| }.

Vectors of the cone are columns of arrays (1 + d, lanes), v_0 first. The Nesterov-Todd scaling of a primal
vector v and a dual vector y is the symmetric W with W y = W^{-1} v,

    W = eta [ w_0, w_1' ; w_1, I + w_1 w_1' / (1 + w_0) ],      w_0^2 - |w_1|^2 = 1,

where w lies halfway between v and the mirrored y (both divided by their cone norms sqrt(v_0^2 - |v_1|^2)),
and eta^2 is the ratio of those norms. In the Newton system the ball adds (I + 2 w_1 w_1') / eta^2.

What the system keeps of the ball is in ``cones`` (5, d + 1, lanes):

    POINT            w
    SCALED           W y = W^{-1} v
    GOAL             the scaled product (W^{-1} v) o (W y) to be reached
    FIRST, SECOND    scratch

and ``eta`` (6, lanes): eta, 1 / eta, and from SPARE on four rows of scratch.
"""

from __future__ import annotations

import numpy as np

from likeset._solver.linalg.matrix import SUMS
from likeset._typing import Array
from likeset.compiling import inner

SMALLEST = 1e-290  # keeps cone norms positive when rounding puts a vector on the boundary


POINT, SCALED, GOAL, FIRST, SECOND = 0, 1, 2, 3, 4
PLAIN, INVERSE, SPARE = 0, 1, 2


@inner(fastmath=SUMS)
def tail_product(p: Array, q: Array, out: Array) -> None:
    """Write p_1'q_1 of every lane."""
    for m in range(out.size):
        out[m] = 0.0
    for j in range(1, p.shape[0]):
        for m in range(out.size):
            out[m] += p[j, m] * q[j, m]


@inner(fastmath=SUMS)
def cone_square(v: Array, out: Array) -> None:
    """Write the squared cone norm v_0^2 - |v_1|^2, as a product to lose less near the boundary; at least SMALLEST."""
    tail_product(v, v, out)
    for m in range(out.size):
        size = np.sqrt(out[m])
        out[m] = max((v[0, m] - size) * (v[0, m] + size), SMALLEST)


@inner(fastmath=SUMS)
def boundary_rate(v: Array, step: Array, constant: Array, linear: Array, out: Array) -> None:
    """Write 1 / alpha for the largest alpha with v + alpha step in the cone: from the first root of a quadratic.

    ``constant`` and ``linear`` are scratch.
    """
    cone_square(v, constant)
    tail_product(v, step, linear)
    tail_product(step, step, out)
    for m in range(constant.size):
        b = v[0, m] * step[0, m] - linear[m]
        discriminant = b * b - (step[0, m] ** 2 - out[m]) * constant[m]
        out[m] = (np.sqrt(max(discriminant, 0.0)) - b) / constant[m] if discriminant >= 0.0 else 0.0


@inner(fastmath=SUMS)
def scale(w: Array, eta: Array, sign: float, v: Array, shift: Array, out: Array) -> None:
    """Set out = W v for sign = 1; for sign = -1 and 1 / eta in place of eta, out = W^{-1} v. out may be v.

    ``shift`` is scratch.
    """
    tail_product(w, v, shift)
    for m in range(eta.size):
        inner, head = sign * shift[m], v[0, m]
        shift[m] = eta[m] * (sign * head + shift[m] / (1.0 + w[0, m]))
        out[0, m] = eta[m] * (w[0, m] * head + inner)
    for j in range(1, v.shape[0]):
        for m in range(eta.size):
            out[j, m] = eta[m] * v[j, m] + shift[m] * w[j, m]


@inner(fastmath=SUMS)
def scale_ball(cone: Array, cones: Array, etas: Array) -> None:
    """The scaling of primal v and dual y (``cone``): w, eta and W y."""
    v, y, w, eta, v_square, y_square = cone[0], cone[1], cones[POINT], etas[PLAIN], etas[SPARE], etas[SPARE + 1]
    cone_square(v, v_square)
    cone_square(y, y_square)
    for m in range(eta.size):
        eta[m] = (v_square[m] / y_square[m]) ** 0.25
        etas[INVERSE, m] = 1.0 / eta[m]
        v_square[m] = 1.0 / np.sqrt(v_square[m])
        y_square[m] = 1.0 / np.sqrt(y_square[m])
        w[0, m] = v[0, m] * v_square[m] + y[0, m] * y_square[m]
    for j in range(1, v.shape[0]):
        for m in range(eta.size):
            w[j, m] = v[j, m] * v_square[m] - y[j, m] * y_square[m]
    cone_square(w, v_square)
    for m in range(eta.size):
        v_square[m] = 1.0 / np.sqrt(v_square[m])
    for j in range(v.shape[0]):
        for m in range(eta.size):
            w[j, m] *= v_square[m]
    scale(w, eta, 1.0, y, y_square, cones[SCALED])


@inner(fastmath=SUMS)
def ball_products(share: float, step: Array, cones: Array, eta: Array) -> None:
    """Write the product of share W y + W^{-1} dv and share W y + W dy, for steps (dv, dy), to FIRST.

    p o q = (p'q, p_0 q_1 + q_0 p_1).
    """
    p, q, total = cones[FIRST], cones[SECOND], eta[SPARE]
    scale(cones[POINT], eta[INVERSE], -1.0, step[0], total, p)
    scale(cones[POINT], eta[PLAIN], 1.0, step[1], total, q)
    for j in range(p.shape[0]):
        for m in range(p.shape[1]):
            p[j, m] += share * cones[SCALED, j, m]
            q[j, m] += share * cones[SCALED, j, m]
    tail_product(p, q, total)
    for j in range(1, p.shape[0]):
        for m in range(total.size):
            p[j, m] = p[0, m] * q[j, m] + q[0, m] * p[j, m]
    for m in range(total.size):
        p[0, m] = p[0, m] * q[0, m] + total[m]


@inner(fastmath=SUMS)
def push_ball(y: Array, cones: Array, eta: Array, force: Array) -> None:
    """Add what the ball's goal pushes delta by to ``force`` (d, lanes); FIRST is kept for :func:`move_ball`.

    The aim is the x with (W y) o x = goal.
    """
    scaled, x, head, square = cones[SCALED], cones[FIRST], eta[SPARE], eta[SPARE + 1]
    for j in range(x.shape[0]):
        for m in range(x.shape[1]):
            x[j, m] = cones[GOAL, j, m]
    tail_product(scaled, x, head)
    cone_square(scaled, square)
    for m in range(head.size):
        head[m] = (scaled[0, m] * x[0, m] - head[m]) / square[m]
        x[0, m] = head[m]
        square[m] = 1.0 / scaled[0, m]
    for j in range(1, x.shape[0]):
        for m in range(head.size):
            x[j, m] = (x[j, m] - head[m] * scaled[j, m]) * square[m]
    scale(cones[POINT], eta[INVERSE], -1.0, x, square, cones[SECOND])
    for j in range(force.shape[0]):
        for m in range(head.size):
            force[j, m] += cones[SECOND, 1 + j, m] - y[1 + j, m]


@inner(fastmath=SUMS)
def move_ball(y: Array, cones: Array, eta: Array, delta: Array, step: Array) -> None:
    """The ball's part of the Newton step, given that of delta; y is the multiplier now."""
    step_v, step_y = step[0], step[1]
    for m in range(delta.shape[1]):
        step_v[0, m] = 0.0
    for j in range(delta.shape[0]):
        for m in range(delta.shape[1]):
            step_v[1 + j, m] = delta[j, m]
    scale(cones[POINT], eta[INVERSE], -1.0, step_v, eta[SPARE], cones[SECOND])
    for j in range(step_v.shape[0]):
        for m in range(delta.shape[1]):
            cones[FIRST, j, m] -= cones[SECOND, j, m]
    scale(cones[POINT], eta[INVERSE], -1.0, cones[FIRST], eta[SPARE], step_y)
    for j in range(step_v.shape[0]):
        for m in range(delta.shape[1]):
            step_y[j, m] -= y[j, m]
