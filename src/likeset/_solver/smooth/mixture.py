r"""The support function of a window mixture with smooth terms, by Newton steps on the log-sum-exp itself.

    C = { theta : Phi(theta) <= level, |theta| <= radius },      Phi of :mod:`~likeset._solver.smooth.mixture_sums`.

Phi is a smooth convex function like any other, so the machinery of a single likelihood serves unchanged: points move
along the boundary (:mod:`~likeset._solver.smooth.mixture_newton`), every tangent gives an outer bound
(:mod:`~likeset._solver.certificate`). What differs is the centre. Where all data agree every M_k is far below zero and
only windows without data speak: Phi is flat there and its own second-order model says nothing. The minimiser of the sum
of *all* terms is central for every window at once, and its Hessian gives the first guess of the maximisers' directions.
If that point is not well inside C, Phi itself is minimised, with the usual certificate of emptiness.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from likeset._solver.evaluate import evaluate_terms, log_sum_exp, term_sizes
from likeset._solver.newton import Evaluation, minimise_convex, minimise_over_ball
from likeset._solver.problem import CurveTerms, Solution, WindowedSet
from likeset._solver.smooth.mixture_newton import maximise_directions
from likeset._solver.smooth.mixture_sums import Centred, hessian_factor, workspace
from likeset._solver.voice_sums import covariate_pulls, window_exponents
from likeset._typing import EPS, Array
from likeset.curves import Curve

ROOMY = 1.0  # nats below the level that make the minimiser of all terms a good centre
DISTANT = 1e-3  # share of the radius up to which a set is small: the ball is replaced by one around the set
CENTRAL = 0.5  # share of the radius beyond which a centre is drawn towards zero


@dataclass(frozen=True)
class Prepared:
    """A window mixture ready for directions.

    ``body`` is in the eigenbasis of the Hessian of all terms (columns of ``axes``, largest eigenvalue first), where few
    leading coordinates hold nearly all curvature; ``curvatures`` are those eigenvalues by the room of all terms, and
    ``spring`` is the same of the ball: what first guesses are made of.
    """

    status: str
    centre: Array
    radius: float
    minimum_bound: float
    body: Centred
    axes: Array
    curvatures: Array
    spring: float

    def solve(self, A: Array, tolerance: float = 1e-7) -> Solution:
        """max a'theta over C for every row a of A (n, d); nan if C is empty."""
        return self.solve_near(A, np.zeros((0, np.shape(A)[1])), tolerance)

    def solve_near(self, A: Array, near: Array, tolerance: float = 1e-7) -> Solution:
        """The same, from starting points, one for every row of A (or none); rows of zeros are no starting points."""
        A = np.ascontiguousarray(A, dtype=np.float64)
        if self.status == "empty":
            return Solution(np.full(len(A), np.nan), np.full(A.shape, np.nan), np.full(len(A), np.nan))
        length = np.linalg.norm(A, axis=1)
        moving = length > 0.0
        points, upper = np.tile(self.centre, (len(A), 1)), np.zeros(len(A))
        if moving.any():
            unit = A[moving] / length[moving, None]
            turned = unit @ self.axes
            starts = near
            if len(near):
                known = near[moving].any(axis=1, keepdims=True)
                starts = np.where(known, (near[moving] - self.centre) @ self.axes, 0.0)
            delta, bounds = maximise_directions(self.body, turned, self.curvatures, self.spring, starts, tolerance)
            points[moving] += delta @ self.axes.T
            reached = unit @ self.centre + bounds + 8 * EPS * float(np.linalg.norm(self.centre))
            upper[moving] = length[moving] * np.minimum(reached, self.radius)
        values = np.einsum("ij,ij->i", A, points)
        return Solution(values, points, np.maximum(upper, values))


def prepare(target: WindowedSet) -> Prepared:
    """Centre and derivatives there, or a certificate of emptiness. The radius must be finite, the terms curves."""
    terms, radius, level = target.terms, target.radius, target.level
    assert isinstance(terms, CurveTerms) and radius < math.inf
    X = np.ascontiguousarray(target.X)
    theta, joint_room = _joint_centre(target)
    value, err = phi_and_error(target, theta)
    bound = -math.inf
    if level - value < ROOMY:
        theta, _, bound, _ = minimise_convex(lambda point: evaluate(target, point), theta, 0.0, radius, 0.0, 100, level)
        value, err = phi_and_error(target, theta)
        if not bound > level + err and float(theta @ theta) > (CENTRAL * radius) ** 2:
            theta = _drawn_inwards(target, theta, value)
            value, err = phi_and_error(target, theta)
    slack = level - value
    status = "empty" if bound > level + err else "regular" if slack > err else "point"
    e = max(slack, 0.0) + err
    e2 = max(radius**2 - float(theta @ theta), 0.0) + 64 * EPS * radius**2
    z = X @ theta
    heights, first, second = evaluate_terms(terms, z)
    unit = CurveTerms(terms.curve, np.ones(len(z)), np.zeros(len(z)))
    base = evaluate_terms(unit, -np.abs(z) if terms.curve == Curve.SOFTPLUS else z)[1]
    exponents = window_exponents(target.windows, target.gains + heights)
    log_voices = exponents - log_sum_exp(exponents)
    ball = _Ball(theta, radius * (1 + 32 * EPS), e2)
    if terms.curve == Curve.QUADRATIC:
        reach = _reach(target, exponents, first, second, err)
        if reach < DISTANT * radius and float(np.linalg.norm(theta)) + reach < radius:
            ball = _Ball(np.zeros_like(theta), reach, reach**2)
    curvatures, axes = np.linalg.eigh((X.T * second) @ X)
    curvatures, axes = np.maximum(curvatures[::-1], 0.0), np.ascontiguousarray(axes[:, ::-1])
    body = Centred(
        X=X @ axes, curve=int(terms.curve), a=terms.a, z=z, base=base, tilt=first, starts=target.windows.starts,
        members=target.windows.members, log_voices=log_voices, theta_c=ball.centre @ axes, radius=ball.radius,
        e=e, e2=ball.room,
    )  # fmt: skip
    outer = radius * (1 + 32 * EPS)
    return Prepared(status, theta, outer, bound, body, axes, curvatures / max(joint_room, e), 2.0 / ball.room)


class _Ball(NamedTuple):
    """|centre + delta| <= radius, and the room radius^2 - |centre|^2."""

    centre: Array
    radius: float
    room: float


def _reach(target: WindowedSet, exponents: Array, tilt: Array, second: Array, err: float) -> float:
    """A bound of |theta - theta_c| over C, for quadratic terms, from their curvature; inf if a direction is left open.

    The certificates know the curvature through one tangent and otherwise the ball: in a ball that is larger by many
    orders of magnitude the last digits of the tangent would decide. By Jensen's inequality the average of the M_k with
    weights r = pi / sum pi is at most level - log sum pi, and it is a quadratic of delta: E with gradient g at
    theta_c and smallest curvature lam gives |delta| <= (|g| + sqrt(|g|^2 + 2 lam E)) / lam.
    """
    log_shares = target.windows.log_shares
    total = float(log_sum_exp(log_shares))
    voices = np.exp(log_shares - total)
    pulls = covariate_pulls(target.windows, voices, len(tilt))
    values = np.linalg.eigvalsh((target.X.T * (pulls * second)) @ target.X)
    lam = float(values[0]) - 64 * EPS * len(values) * float(values[-1])
    if not lam > 0.0:
        return math.inf
    g = float(np.linalg.norm(target.X.T @ (pulls * tilt)))
    room = max(target.level - total - float(voices @ (exponents - log_shares)), 0.0) + err
    return 1.01 * (g + math.sqrt(g * g + 2.0 * lam * room)) / lam


def phi_and_error(target: WindowedSet, theta: Array) -> tuple[float, float]:
    """Phi(theta), and the rounding error to allow for in comparing it with the level."""
    terms, gains, windows = target.terms, target.gains, target.windows
    assert isinstance(terms, CurveTerms)
    z = target.X @ theta
    heights, slopes, _ = evaluate_terms(terms, z)
    # Every z_b may be off by this much.
    off = (8 + len(theta)) * EPS * np.sqrt(np.einsum("ij,ij->i", target.X, target.X)) * float(np.linalg.norm(theta))
    size = term_sizes(terms, z) + np.abs(gains)
    exponents, sizes = window_exponents(windows, np.stack([gains + heights, size]))
    err = 64 * EPS * (float(sizes.max(initial=0.0)) + abs(target.level) + 1.0)
    return float(log_sum_exp(exponents)), err + _error_of_positions(target, terms, slopes, off)


def _error_of_positions(target: WindowedSet, terms: CurveTerms, slopes: Array, off: Array) -> float:
    """What errors of the z_b, ``off``, are worth in M_k on C, for the worst k.

    Of quadratic terms we know the slopes on all of C, as in ``seen_from``: the sum of
    phi_b'^2 / (2 a_b) is the height of M_k above the minima of its terms, and M_k <= level - log pi_k.
    """
    lone = target.windows.log_shares
    if terms.curve != Curve.QUADRATIC:
        return float(np.max(window_exponents(target.windows, np.abs(slopes) * off) - lone, initial=0.0))
    lowest = target.gains - 0.5 * np.divide(terms.s**2, terms.a, out=np.zeros_like(terms.s), where=terms.a > 0)
    floor, spread = window_exponents(target.windows, np.stack([lowest, terms.a * off**2]))
    spread -= lone
    return float(np.max(np.sqrt(2.0 * np.maximum(target.level - floor, 0.0) * spread) + 0.5 * spread, initial=0.0))


def evaluate(target: WindowedSet, theta: Array) -> Evaluation:
    """Phi, the size of its summands, gradient and Hessian."""
    heights, first, second = evaluate_terms(target.terms, target.X @ theta)  # type: ignore[arg-type]
    exponents = window_exponents(target.windows, target.gains + heights)
    value = float(log_sum_exp(exponents))
    if not value < math.inf:
        return value, value, np.zeros_like(theta), lambda: np.zeros((len(theta), len(theta)))
    voices = np.exp(exponents - value)
    pulls = covariate_pulls(target.windows, voices, len(first))
    g = target.X.T @ (pulls * first)

    def hessian() -> Array:
        at = workspace(len(first), len(voices))
        at.bend[:], at.incline[:], at.pulls[:], at.voices[:] = second, first, pulls, voices
        S = hessian_factor(np.ascontiguousarray(target.X), target.windows.starts, target.windows.members, at, g)
        return np.asarray(S.T @ S)

    return value, float(np.abs(target.gains).sum() + np.abs(heights).sum()), g, hessian


def _joint_centre(target: WindowedSet) -> tuple[Array, float]:
    """A minimiser of the sum of all terms, away from the sphere, and how far the joint set's level lies above it."""
    terms, radius = target.terms, target.radius
    assert isinstance(terms, CurveTerms)
    level = target.level - float(target.gains.sum())
    start = np.zeros(target.X.shape[1])
    theta, value, _, _ = minimise_over_ball(target.X, terms, 0.0, radius, start, 0.05, 200, level)
    if float(theta @ theta) > (CENTRAL * radius) ** 2:
        theta, value, _, _ = minimise_over_ball(target.X, terms, 1.0 / radius**2, radius, theta, 0.05, 50)
        if float(theta @ theta) > (0.98 * radius) ** 2:
            theta = 0.98 * theta
    return theta, level - value


def _drawn_inwards(target: WindowedSet, theta: Array, value: float) -> Array:
    """A point nearer to zero that costs at most half of level - Phi(theta)."""
    share = 0.5
    while share > 1e-9:
        inner = (1.0 - share) * theta
        cost = phi_and_error(target, inner)[0] - value
        if cost <= 0.5 * (target.level - value):
            return inner
        share *= 0.5
    return theta
