r"""Maximum of a linear function over an ellipsoid cut with a ball: a pencil of ellipsoids.

    C = { theta : F(theta) <= level, |theta| <= B },      F quadratic with Hessian diag(h), h >= 0.

**Outer bounds.** Every rho >= 0 gives an ellipsoid that contains C, because |theta| <= B on C:

    E_rho = { F(theta) + rho (|theta|^2 - B^2) / 2 <= level };

rho = 0 is the ellipsoid alone, rho -> inf the ball alone. Measure from a centre theta_c of C, delta = theta -
theta_c, and write g = grad F(theta_c), e = level - F(theta_c), e2 = B^2 - |theta_c|^2, c = g + rho theta_c,
w_i = 1 / (h_i + rho). The maximum of alpha'delta over E_rho is

    D(rho) = sqrt(2 P S) - T,      attained at  delta_i = w_i (alpha_i u - c_i),  u = sqrt(2 P / S),
    P = e + rho e2 / 2 + sum_i c_i^2 w_i / 2,    S = sum_i alpha_i^2 w_i,    T = sum_i alpha_i c_i w_i.

D is the Lagrangian dual with the multiplier 1/u of F already minimised out. *Every* rho is a certificate,
and the best one is exact (strong duality: two convex constraints).

**The best rho.** D'(rho) has the sign of B^2 - |theta|^2 at the maximiser theta_c + delta, and changes
it once. So: if the ball's own maximiser satisfies F <= level, the answer is B|a|; if the maximiser at rho = 0
lies in the ball, it is D(0); otherwise both constraints bind and rho is the root of |theta(rho)| = B.

**The root.** G(rho) = rho (|theta(rho)|^2 - B^2), which is 2 (level - F(theta(rho))), is nearly linear in rho
when rho is small against the curvatures h, and in 1/rho when it is large. Newton's method in the variable
rho / (rho + max h), which behaves like either accordingly, takes about four steps; a bracket guards it.
In P no term is negative and in |theta|^2 - B^2 only small numbers are subtracted: tiny sets stay accurate.

**Outside the basis.** The part of a direction orthogonal to the basis has length ``outside`` and acts as
one more coordinate with h = g = theta_c = 0.
"""

from __future__ import annotations

from math import inf, sqrt
from typing import NamedTuple

import numpy as np

from likeset._typing import EPS, Array
from likeset.compiling import REORDER, inner, kernel

ROUNDING = 64 * EPS  # relative allowance for rounding in a sum of terms
MAX_STEPS = 100
PATIENCE = 6  # steps after which the gap is checked every time


class Cut(NamedTuple):
    """C in the eigenbasis of the Hessian, measured from its centre.

    Slack and room come twice: enlarged by the rounding errors, for outer bounds, and as they are, for points.
    """

    curvature: Array  # h, ascending
    lowered: Array  # h less its rounding error, for outer bounds
    gradient: Array  # g
    origin: Array  # theta_c
    bound: float  # B
    slack: float  # e, enlarged
    room: float  # e2, enlarged
    inner_slack: float  # e >= 0
    inner_room: float  # e2 >= 0
    start: float  # first guess of rho > 0


@kernel(fastmath=REORDER)
def pencil(
    rho: float, alpha: Array, outside: float, h: Array, g: Array, origin: Array, slack: float, room: float
) -> tuple[float, float, float, float, float]:
    """D(rho), the half-width sqrt(2 P S) of E_rho, u, |theta|^2 - B^2 at its maximiser, d/drho of that.

    At rho = 0, coordinates without curvature are left out.
    """
    S = pp = ppw = 0.0
    if outside > 0.0:
        S = outside * outside / rho
        pp = S / rho
        ppw = pp / rho
    T = cq = mp = qm = mmw = mpw = 0.0
    for i in range(len(h)):
        stiffness = h[i] + rho
        w = 1.0 / stiffness if stiffness > 0.0 else 0.0
        c = g[i] + rho * origin[i]
        p = alpha[i] * w
        q = c * w
        m = origin[i] - q  # the centre of E_rho: delta = u p - q, theta = u p + m
        S += alpha[i] * p
        T += alpha[i] * q
        cq += c * q
        pp += p * p
        mp += m * p
        qm += q * (m + origin[i])
        mmw += m * m * w
        mpw += m * p * w
        ppw += p * p * w
    P = slack + 0.5 * (rho * room + cq)
    u = sqrt(2 * P / S)
    half_width = sqrt(2 * P * S)
    excess = u * (u * pp + 2 * mp) - qm - room
    u_slope = 0.5 * u * (0.5 * (room + qm) / P + pp / S)  # from P' = (e2 + qm) / 2 and S' = -pp
    slope = 2 * u_slope * (mp + u * pp) - 2 * mmw - 4 * u * mpw - 2 * u * u * ppw
    return half_width - T, half_width, u, excess, slope


@inner(fastmath=REORDER)
def maximiser(
    rho: float, u: float, alpha: Array, h: Array, lowered: Array, g: Array, origin: Array, step: Array
) -> tuple[float, float, float, float]:
    """Write the maximiser delta of E_rho to ``step``; return delta'H delta, g'delta, |delta|^2, theta_c'delta."""
    bend = fall = square = radial = 0.0
    for i in range(len(h)):
        stiffness = lowered[i] + rho
        delta = (u * alpha[i] - g[i] - rho * origin[i]) / stiffness if stiffness > 0.0 else 0.0
        step[i] = delta
        bend += h[i] * delta * delta
        fall += g[i] * delta
        square += delta * delta
        radial += origin[i] * delta
    return bend, fall, square, radial


@inner()
def share_inside(bend: float, fall: float, square: float, radial: float, slack: float, room: float) -> float:
    """Largest factor <= 1 that keeps theta_c + factor * delta in the set: two quadratic equations."""
    factor = 1.0
    if 0.5 * bend + fall > slack:
        root = sqrt(fall * fall + 2 * bend * slack)
        factor = 2 * slack / (root + fall) if fall > 0.0 else (root - fall) / bend
    if factor * (factor * square + 2 * radial) > room:
        root = sqrt(radial * radial + square * room)
        factor = room / (root + radial) if radial > 0.0 else (root - radial) / square
    return factor


def maximise(A: Array, alpha: Array, outside: Array, cut: Cut, tolerance: float) -> tuple[Array, Array, Array, Array]:
    """For every direction: value, outer bound, delta in the basis, and delta along the part outside the basis."""
    found, steps = np.empty((3, len(A))), np.empty_like(alpha)
    maximise_into(A, alpha, outside, cut, tolerance, True, found, steps, np.empty((3, alpha.shape[1])))
    return found[0], found[1], steps, found[2]


def outer_bounds(A: Array, alpha: Array, outside: Array, cut: Cut, tolerance: float) -> Array:
    """The outer bounds of ``maximise`` alone: the ellipsoid's own needs no point at which it is attained."""
    found, step = np.empty((3, len(A))), np.empty((1, alpha.shape[1]))
    maximise_into(A, alpha, outside, cut, tolerance, False, found, step, np.empty((3, alpha.shape[1])))
    return found[1]


@kernel(fastmath=REORDER)
def maximise_into(
    A: Array, alpha: Array, outside: Array, cut: Cut, tolerance: float, attained: bool, found: Array, steps: Array,
    alone: Array,
) -> None:  # fmt: skip
    """Write values, outer bounds and lengths along the part outside the basis to ``found``, deltas to ``steps``.

    Unless they are to be ``attained`` bounds are all that is written, and one row of ``steps`` is enough; ``alone``
    (3, r) is scratch. A direction is a row of A, with the coordinates alpha in the basis, together with the length
    ``outside`` of its part orthogonal to the basis. That part is beside A if the basis is square, and contained in A
    otherwise.
    """
    n, r = alpha.shape
    beside = A.shape[1] == r
    # Whoever reads an array out of a tuple counts a reference to it: here, and not for every direction.
    h, lowered, g, origin, bound = cut.curvature, cut.lowered, cut.gradient, cut.origin, cut.bound
    sizes = bound, cut.slack, cut.room, cut.inner_slack, cut.inner_room, cut.start
    bounded = bound < inf
    origin_square = 0.0
    for i in range(r):
        origin_square += origin[i] * origin[i]
    origin_norm = sqrt(origin_square)
    # At rho = 0 flat coordinates are left out: over the ball they change F by at most 2 B |g_flat| and the
    # objective by at most 2 B |alpha_flat|. Without a ball both are zero to rounding.
    flat, flat_square = 0, 0.0  # number of coordinates along which F is flat to rounding
    while flat < r and lowered[flat] == 0.0:
        flat_square += g[flat] * g[flat]
        flat += 1
    spill = 2 * bound if bounded else 0.0
    flat_slack = cut.slack + spill * sqrt(flat_square) if flat > 0 else cut.slack
    sums = prepare_alone(lowered, g, origin, flat_slack, cut.room, alone)

    values, upper, along = found[0], found[1], found[2]
    for k in range(n):
        direction, step = alpha[k], steps[k if attained else 0]
        squared_outside = outside[k] * outside[k]
        squared_norm = squared_outside if beside else 0.0
        for j in range(A.shape[1]):
            squared_norm += A[k, j] * A[k, j]
        base = 0.0
        for i in range(r):
            base += direction[i] * origin[i]  # a'theta_c
        norm = sqrt(squared_norm)
        values[k] = upper[k] = base
        along[k] = 0.0
        if norm == 0.0:
            for i in range(r):
                step[i] = 0.0
            continue

        if bounded:  # the ball alone: its maximiser B a / |a|, if F allows it
            scale = bound / norm
            rise = 0.0
            for i in range(r):
                step[i] = scale * direction[i] - origin[i]
                rise += step[i] * (g[i] + 0.5 * h[i] * step[i])
            if rise <= cut.slack:
                along[k] = scale * outside[k]
                values[k], upper[k] = bound * norm, bound * norm * (1 + ROUNDING)
                continue

        for i in range(flat):
            squared_outside += direction[i] * direction[i]
        flat_part = sqrt(squared_outside)  # length of the part of the direction along which F is flat
        curved = flat_part <= ROUNDING * norm
        if not bounded and not (curved and cut.slack < inf):
            values[k] = upper[k] = inf
            along[k] = np.nan
            for i in range(r):
                step[i] = np.nan
            continue

        best = reach = bound * norm - base
        gain, half_width, u, excess = 0.0, 0.0, 0.0, inf
        if curved:
            gain, half_width, u, excess = ellipsoid_alone(direction, alone, sums)
            best = min(best, gain + spill * flat_part + 8 * EPS * half_width)
            if not attained and (excess <= 0.0 or not bounded):  # no ball, or it is not felt: there is no better rho
                upper[k] = base + best + 8 * EPS * norm * origin_norm
                continue
        gain, ceiling, along[k] = best_ellipsoid(
            direction, outside[k], reach, best, 0.0 if curved else cut.start, (gain, half_width, u, excess),
            h, lowered, g, origin, sizes, tolerance, step,
        )  # fmt: skip
        values[k] = base + gain
        upper[k] = base + ceiling + 8 * EPS * norm * origin_norm


@inner(fastmath=REORDER)
def prepare_alone(
    lowered: Array, g: Array, origin: Array, slack: float, room: float, alone: Array
) -> tuple[float, float]:
    """What all directions share at rho = 0: w_i, q_i = g_i w_i and theta_c - q to ``alone``; returns P and the part of
    |theta|^2 - B^2 that is free of u.
    """
    P, rest = slack, -room
    for i in range(len(lowered)):
        w = 1.0 / lowered[i] if lowered[i] > 0.0 else 0.0
        q = g[i] * w
        m = origin[i] - q
        alone[0, i], alone[1, i], alone[2, i] = w, q, m
        P += 0.5 * g[i] * q
        rest -= q * (m + origin[i])
    return P, rest


@inner(fastmath=REORDER)
def ellipsoid_alone(alpha: Array, alone: Array, sums: tuple[float, float]) -> tuple[float, float, float, float]:
    """D(0), its half-width, u and |theta|^2 - B^2 at the maximiser, as from :func:`pencil` at rho = 0."""
    S = T = pp = mp = 0.0
    for i in range(len(alpha)):
        p = alpha[i] * alone[0, i]
        S += alpha[i] * p
        T += alpha[i] * alone[1, i]
        pp += p * p
        mp += alone[2, i] * p
    u = sqrt(2 * sums[0] / S)
    half_width = sqrt(2 * sums[0] * S)
    return half_width - T, half_width, u, u * (u * pp + 2 * mp) + sums[1]


@inner(fastmath=REORDER)
def best_ellipsoid(
    alpha: Array,
    outside: float,
    reach: float,
    best: float,
    rho: float,
    at_zero: tuple[float, float, float, float],
    h: Array,
    lowered: Array,
    g: Array,
    origin: Array,
    sizes: tuple[float, float, float, float, float, float],
    tolerance: float,
    step: Array,
) -> tuple[float, float, float]:
    """Attained gain alpha'delta, its outer bound, and the length of delta outside the basis.

    ``reach`` is the bound from the ball, ``best`` the best one so far, ``rho`` the first to try; ``at_zero`` what
    :func:`ellipsoid_alone` said, if that is zero. Delta goes to ``step``.
    """
    bound, slack, room, inner_slack, inner_room, start = sizes
    bounded = bound < inf
    stiffest = h[len(h) - 1] if len(h) > 0 else 0.0
    gain, half_width, u, excess = at_zero
    low, high = 0.0, inf
    for count in range(MAX_STEPS):
        if rho == 0.0:
            along, guess = 0.0, start
            last = not bounded
            check = last or excess <= 0.0
        else:
            gain, half_width, u, excess, slope = pencil(rho, alpha, outside, lowered, g, origin, slack, room)
            best = min(best, gain + 8 * EPS * half_width)
            along = outside * u / rho
            low, high = (rho, high) if excess > 0.0 else (low, rho)
            newton = -rho * excess / (excess + rho * slope)  # in rho; next line: in rho / (rho + stiffest)
            guess = rho + newton / max(1 - newton / (rho + stiffest), 0.05)
            if not low < guess < high:
                guess = 8 * rho if high == inf else rho / 8 if low == 0.0 else sqrt(low * high)
            last = guess == rho or count == MAX_STEPS - 1
            check = last or abs(newton) <= 1e-6 * rho or count > PATIENCE
        if check:
            bend, fall, square, radial = maximiser(rho, u, alpha, h, lowered, g, origin, step)
            square += along * along
            share = share_inside(bend, fall, square, radial, slack, room if bounded else inf)
            if last or best - share * gain <= tolerance * min(half_width, reach):
                break
        rho = guess
    share = share_inside(bend, fall, square, radial, inner_slack, inner_room)
    for i in range(len(h)):
        step[i] *= share
    return share * gain, best, share * along
