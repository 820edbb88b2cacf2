r"""Phase I: a central point of C = { F <= level, |theta| <= bound }, or a certificate that C is empty.

Newton's method over the ball (:mod:`~likeset._solver.newton`) stops when F(theta) is well below the level, or when
its lower bound of min F is above the level: empty. A centre must keep away from *both* constraints; a minimiser at
or near the sphere moves inwards (:func:`move_inwards`).

*The safe side.* F is known to err = 64 eps (sum_k |phi_k| + |level|), and what the rounding of z adds. The level and
the bound are raised by that much, so an answer may be too large by rounding, but not too small. If level - F(theta_c)
<= err the set is a single point, as far as can be known.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from likeset._solver.evaluate import evaluate_terms, term_sizes
from likeset._solver.newton import Goal, curve_sum, measured_sum, minimise_over_ball
from likeset._solver.problem import CurveTerms, SmoothTerms
from likeset._solver.smooth.sqp import CentredSet, centre_terms
from likeset._typing import EPS, Array

CENTRAL = 0.5  # a minimiser of F with a larger share of the bound is moved inwards


def bounded_set(
    X: Array, terms: SmoothTerms, level: float, bound: float, flat: bool
) -> tuple[str, Array, float, CentredSet]:
    """(status, theta_c, certified lower bound of min F, the set around theta_c).

    ``flat`` gives the set one more coordinate, on which F does not depend.
    """
    status, theta_c, lower, e = find_centre(X, terms, level, bound)
    e2 = max(bound**2 - float(theta_c @ theta_c), 0.0) + 64 * EPS * bound**2
    body = centre_terms(X, terms, theta_c, bound * (1 + 32 * EPS), e, e2)
    return status, theta_c, lower, body.with_flat() if flat else body


class Height(NamedTuple):
    """F at a point: its value, the rounding error to allow for in comparing it with the level, and grad F'theta."""

    value: float
    error: float
    pull: float


def height(X: Array, terms: SmoothTerms, theta: Array, level: float) -> Height:
    """F(theta), of which 64 eps (sum_k |phi_k| + |level|) are rounding, and what that of z = X theta, some
    eps |x_k| |theta|, is worth.
    """
    if isinstance(terms, CurveTerms):
        found = np.empty(4)
        measured_sum(curve_sum(X, terms), theta, found)
        value, size, reach, pull = found.tolist()
    else:
        z = X @ theta
        values, slopes, _ = evaluate_terms(terms, z)
        value, size = float(np.sum(values)), float(np.sum(term_sizes(terms, z, values)))
        reach, pull = float(np.abs(slopes) @ np.sqrt(np.einsum("ij,ij->i", X, X))), float(slopes @ z)
    length = math.sqrt(float(theta @ theta))
    return Height(value, 64 * EPS * (size + abs(level)) + 8 * EPS * reach * length, pull)


def find_centre(X: Array, terms: SmoothTerms, level: float, bound: float) -> tuple[str, Array, float, float]:
    """Phase I: (status, theta_c, certified lower bound of min F, e = level - F(theta_c) on the safe side)."""
    start = np.zeros(X.shape[1])
    theta, _, lower, _ = minimise_over_ball(X, terms, 0.0, bound, start, Goal(0.0, level))
    there = height(X, terms, theta, level)
    if lower > level + there.error:
        return "empty", theta, lower, 0.0
    if float(theta @ theta) > (CENTRAL * bound) ** 2:
        theta, there = move_inwards(X, terms, theta, there, level, bound)
    slack = level - there.value
    return ("regular" if slack > there.error else "point"), theta, lower, max(slack, 0.0) + there.error


def move_inwards(
    X: Array, terms: SmoothTerms, theta: Array, there: Height, level: float, bound: float
) -> tuple[Array, Height]:
    r"""From a minimiser theta of F over the ball to a point away from the sphere, for at most half of room = level - F.

    From a centre at the sphere, rays to the boundary run edge-on. Where F still falls at the sphere, the ball carries a
    multiplier nu = -g'theta/(2 bound^2), g = grad F, and a ridge weaker than nu leaves the minimiser of F + ridge
    |theta|^2 where it is. Let inner be the minimiser for

        ridge = 2 nu + room/(4 bound^2),        so that  F(inner) - F(theta) <= ridge (bound^2 - |inner|^2):

    the ball's slack has its price. If inner costs more than room/2, the point of the segment from theta that
    costs no more (F is convex) has a slack of at least room/(2 ridge). No point in the ball can do better than
    room/(2 nu) for that cost, since F(theta') - F(theta) >= nu (bound^2 - |theta'|^2) for all theta'.

    Returns the new point and F there.
    """
    room = max(level - there.value, there.error)
    nu = max(0.0, -there.pull) / (2.0 * bound**2)
    ridge = 2.0 * nu + 0.25 * room / bound**2
    inner = minimise_over_ball(X, terms, ridge, bound, theta, Goal(0.05 * room, iterations=50)).theta
    found = height(X, terms, inner, level)
    cost = found.value - there.value
    if cost > 0.5 * room:
        inner = theta + 0.5 * room / cost * (inner - theta)
        found = height(X, terms, inner, level)
    if found.value - there.value <= 0.75 * room:  # room/2 but for rounding
        return inner, found
    return theta, there
