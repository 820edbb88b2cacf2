r"""The support function of a window mixture with smooth terms, by Newton steps on the log-sum-exp itself.

    C = { theta : Phi(theta) <= level, |theta| <= bound },      Phi of :mod:`~likeset._solver.smooth.mixture_sums`.

Phi is a smooth convex function like any other, so the machinery of a single likelihood serves unchanged: points move
along the boundary (:mod:`~likeset._solver.smooth.mixture_newton`), every tangent gives an outer bound
(:mod:`~likeset._solver.certificate`). What differs is the centre. Where all data agree every M_k is far below zero and
only windows without data speak: Phi is flat there and its own second-order model says nothing. The minimiser of the sum
of *all* terms is central for every window at once, and its Hessian gives the first guess of the maximisers' directions.
If that point is not well inside C, Phi itself is minimised, with the usual certificate of emptiness.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from likeset._solver.evaluate import evaluate_terms, log_sum_exp, term_sizes
from likeset._solver.linalg.eigen import eigen
from likeset._solver.newton import Evaluation, Goal, minimise_convex, minimise_over_ball
from likeset._solver.problem import (
    CompiledTerms,
    CurveTerms,
    Kernel,
    MixtureSet,
    Solution,
    is_quadratic,
    with_column,
    with_zero,
)
from likeset._solver.smooth.centred import CentredTerms, centred_at, extremes
from likeset._solver.smooth.mixture_newton import maximise_directions
from likeset._solver.smooth.mixture_sums import Centred
from likeset._solver.voice_sums import group_pulls, voice_exponents
from likeset._typing import EPS, Array, IntArray
from likeset.parts import worked_out

ROOMY = 1.0  # nats below the level that make the minimiser of all terms a good centre
DISTANT = 1e-3  # share of the bound up to which a set is small: the ball is replaced by one around the set
MOSTLY = 0.15  # share of the pairs of a voice and a row that are heard from which on all have an entry
CENTRAL = 0.5  # share of the bound beyond which a centre is drawn towards zero


@dataclass(frozen=True)
class Prepared(Kernel):
    """A window mixture ready for directions.

    ``body`` is in the eigenbasis of the Hessian of all terms (columns of ``axes``, largest eigenvalue first), where few
    leading coordinates hold nearly all curvature; ``curvatures`` are those eigenvalues by the room of all terms, and
    ``spring`` is the same of the ball: what first guesses are made of.
    """

    status: str
    centre: Array
    bound: float
    minimum_bound: float
    body: Centred
    axes: Array
    curvatures: Array
    spring: float
    ball: _Ball  # the ball as it is, where the body has a smaller one around the set
    starts_near = True

    @worked_out
    def padded(self) -> Prepared:
        """The same with a flat coordinate."""
        d, body = len(self.centre), self.body
        axes = np.zeros((d + 1, d + 1))
        axes[:d, :d], axes[d, d] = self.axes, 1.0
        flat = body._replace(
            X=with_column(body.X), Xt=with_zero(body.Xt),
            theta_c=with_zero(self.ball.centre @ self.axes), bound=self.ball.bound, e2=self.ball.room,
        )  # fmt: skip
        return replace(
            self, centre=with_zero(self.centre), body=flat, axes=axes, curvatures=with_zero(self.curvatures),
            spring=2.0 / self.ball.room,
        )  # fmt: skip

    def _left_outside(self, near: Array) -> Array:
        left = np.maximum(self.bound**2 - np.einsum("ij,ij->i", near, near), 0.0)
        return np.where(near.any(axis=1), np.sqrt(left), 0.0)

    def _solve(self, A: Array, near: Array | None, tolerance: float) -> Solution:
        near = np.zeros((0, A.shape[1])) if near is None else near
        length = np.sqrt(np.einsum("ij,ij->i", A, A))
        points, upper = np.empty(A.shape), np.zeros(len(A))
        points[:] = self.centre
        count = np.count_nonzero(length)
        moving = slice(None) if count == len(A) else length > 0.0  # nearly always all of them: no copies
        if count:
            unit = A[moving] / length[moving, None]
            turned = unit @ self.axes
            starts = near
            if len(near):
                known = near[moving].any(axis=1, keepdims=True)
                starts = np.where(known, (near[moving] - self.centre) @ self.axes, 0.0)
            delta, bounds = maximise_directions(self.body, turned, self.curvatures, self.spring, starts, tolerance)
            points[moving] += delta @ self.axes.T
            reached = unit @ self.centre + bounds + 8 * EPS * float(np.linalg.norm(self.centre))
            upper[moving] = length[moving] * np.minimum(reached, self.bound)
        values = np.einsum("ij,ij->i", A, points)
        return Solution(values, points, np.maximum(upper, values))


def prepare(target: MixtureSet) -> Prepared:
    """Centre and derivatives there, or a certificate of emptiness. The bound must be finite, the terms curves."""
    terms, bound, level = target.terms, target.bound, target.level
    assert isinstance(terms, CompiledTerms) and bound < math.inf
    X = np.ascontiguousarray(target.X)
    theta, joint_room = _joint_centre(target)
    seen = look_at(target, theta)
    lower = -math.inf
    if level - seen.value < ROOMY:
        theta, _, lower, _ = minimise_convex(
            lambda point: evaluate(target, point), 0.0, bound, theta, Goal(0.0, level, 100)
        )
        seen = look_at(target, theta)
        if not lower > level + seen.err and float(theta @ theta) > (CENTRAL * bound) ** 2:
            theta = _drawn_inwards(target, theta, seen.value)
            seen = look_at(target, theta)
    slack, err = level - seen.value, seen.err
    status = "empty" if lower > level + err else "regular" if slack > err else "point"
    e = max(slack, 0.0) + err
    e2 = max(bound**2 - float(theta @ theta), 0.0) + 64 * EPS * bound**2
    log_voices = seen.exponents - seen.value
    ball = whole_ball = _Ball(theta, bound * (1 + 32 * EPS), e2)
    if is_quadratic(terms):
        reach = _reach(target, seen)
        if reach < DISTANT * bound and float(np.linalg.norm(theta)) + reach < bound:
            ball = _Ball(np.zeros_like(theta), reach, reach**2)
    curvatures, axes = eigen((X.T * seen.second) @ X)
    curvatures, axes = np.maximum(curvatures[::-1], 0.0), np.ascontiguousarray(axes[:, ::-1])
    rows = _rows(target)
    entries = _entries(target, rows, seen.first)
    centred = _centred(target, seen.z[rows.first])
    turned = X[rows.first] @ axes
    body = Centred(
        turned, np.ascontiguousarray(turned.T), centred, extremes(centred), *entries, log_voices, ball.centre @ axes,
        ball.bound, e, ball.room,
    )  # fmt: skip
    outer = bound * (1 + 32 * EPS)
    return Prepared(
        status, theta, outer, lower, body, axes, curvatures / max(joint_room, e), 2.0 / ball.room, whole_ball
    )


class Look(NamedTuple):
    """What is to be seen at a point: z and the derivatives of its terms, log pi_k + M_k, Phi.

    ``err`` is the rounding error to allow for in comparing Phi with the level.
    """

    z: Array
    first: Array
    second: Array
    exponents: Array
    value: float
    err: float


class _Ball(NamedTuple):
    """|centre + delta| <= bound, and the room bound^2 - |centre|^2."""

    centre: Array
    bound: float
    room: float


class _Rows(NamedTuple):
    """The distinct rows of X: the first term of each, and the row of every term."""

    first: IntArray
    of: IntArray


def _rows(target: MixtureSet) -> _Rows:
    """Terms of one row share a curve, but not a loss of a family's own, whose points are theirs."""
    if target.owners is None or not isinstance(target.terms, CurveTerms):
        every = np.arange(len(target.X))
        return _Rows(every, every)
    _, first, of = np.unique(target.owners, return_index=True, return_inverse=True)
    return _Rows(first, of.ravel())


def _centred(target: MixtureSet, z: Array) -> CentredTerms:
    """Terms of the rows around their z; of a curve, with a = 1."""
    terms = target.terms
    if isinstance(terms, CurveTerms):
        terms = CurveTerms(terms.curve, np.ones(len(z)), np.zeros(len(z)))
    assert isinstance(terms, CompiledTerms)
    return centred_at(terms, z)


def _entries(target: MixtureSet, rows: _Rows, tilts: Array) -> tuple[IntArray, IntArray, Array, Array]:
    """starts, rows, amounts and tilts: what every voice hears of each row; no rows: an entry for every one."""
    voices, count = target.voices, len(rows.first)
    amounts = target.terms.a if isinstance(target.terms, CurveTerms) else np.ones(len(tilts))
    starts, shape = voices.starts, (len(voices.log_shares), count)
    places, fewest = voices.owners * count + rows.of[voices.members], MOSTLY * shape[0] * count
    if len(places) >= fewest and np.count_nonzero(np.bincount(places)) >= fewest:
        return starts, np.empty(0, dtype=np.int64), *_added(places, shape, voices.members, amounts, tilts)
    if count == len(rows.of):  # every term has a row of its own
        return starts, voices.members, amounts[None, voices.members], tilts[None, voices.members]
    places, entry = np.unique(places, return_inverse=True)
    starts = np.searchsorted(places, np.arange(shape[0] + 1) * count).astype(np.int64)
    return starts, places % count, *_added(entry.ravel(), (1, len(places)), voices.members, amounts, tilts)


def _added(
    places: IntArray, shape: tuple[int, int], members: IntArray, amounts: Array, tilts: Array
) -> tuple[Array, Array]:
    """The amounts and the tilts of the members, added up where they belong."""
    size = shape[0] * shape[1]
    first, second = np.bincount(places, amounts[members], size), np.bincount(places, tilts[members], size)
    return first.astype(np.float64).reshape(shape), second.astype(np.float64).reshape(shape)


def _reach(target: MixtureSet, seen: Look) -> float:
    """A bound of |theta - theta_c| over C, for quadratic terms, from their curvature; inf if a direction is left open.

    The certificates know the curvature through one tangent and otherwise the ball: in a ball that is larger by many
    orders of magnitude the last digits of the tangent would decide. By Jensen's inequality the average of the M_k with
    weights r = pi / sum pi is at most level - log sum pi, and it is a quadratic of delta: E with gradient g at
    theta_c and smallest curvature lam gives |delta| <= (|g| + sqrt(|g|^2 + 2 lam E)) / lam.
    """
    log_shares = target.voices.log_shares
    total = float(log_sum_exp(log_shares))
    voices = np.exp(log_shares - total)
    pulls = group_pulls(target.voices, voices, len(seen.first))
    g = float(np.linalg.norm(target.X.T @ (pulls * seen.first)))
    room = max(target.level - total - float(voices @ (seen.exponents - log_shares)), 0.0) + seen.err
    curved = pulls * seen.second
    mean = float(curved @ np.einsum("ij,ij->i", target.X, target.X)) / target.X.shape[1]
    # The smallest curvature is no larger than their mean: mostly that tells that the set is not small.
    if g + math.sqrt(g * g + 2.0 * mean * room) >= DISTANT * target.bound * mean:
        return math.inf
    values = np.linalg.eigvalsh((target.X.T * curved) @ target.X)
    lam = float(values[0]) - 64 * EPS * len(values) * float(values[-1])
    if not lam > 0.0:
        return math.inf
    return 1.01 * (g + math.sqrt(g * g + 2.0 * lam * room)) / lam


def look_at(target: MixtureSet, theta: Array) -> Look:
    """Phi(theta) and what it is made of."""
    terms, gains, windows = target.terms, target.gains, target.voices
    assert isinstance(terms, CompiledTerms)
    z = target.X @ theta
    heights, first, second = evaluate_terms(terms, z)
    # Every z_b may be off by this much.
    off = (8 + len(theta)) * EPS * math.sqrt(float(theta @ theta)) * np.sqrt(np.einsum("ij,ij->i", target.X, target.X))
    sums = np.empty((4, len(z)))  # of every voice: M_k, what its rounding is proportional to, and two about ``off``
    sums[0], sums[1] = gains + heights, term_sizes(terms, z, heights) + np.abs(gains)
    sums[2], sums[3] = _parts_of_positions(target, terms, first, off)
    exponents, sizes, floor, spread = voice_exponents(windows, sums)
    err = 64 * EPS * (float(sizes.max(initial=0.0)) + abs(target.level) + 1.0)
    err += _error_of_positions(target, floor, spread - windows.log_shares)
    return Look(z, first, second, exponents, float(log_sum_exp(exponents)), err)


def _parts_of_positions(target: MixtureSet, terms: CompiledTerms, slopes: Array, off: Array) -> tuple[Array, Array]:
    """Of every term its minimum and its curvature times the square of ``off``, if they are quadratic; otherwise nothing
    and its slope times ``off``.
    """
    if not (isinstance(terms, CurveTerms) and is_quadratic(terms)):
        return np.zeros(len(off)), np.abs(slopes) * off
    lowest = target.gains - 0.5 * np.divide(terms.s**2, terms.a, out=np.zeros_like(terms.s), where=terms.a > 0)
    return lowest, terms.a * off**2


def _error_of_positions(target: MixtureSet, floor: Array, spread: Array) -> float:
    """What errors of the z_b, ``off``, are worth in M_k on C, for the worst k, from the sums of their parts.

    Of quadratic terms we know the slopes on all of C, as in ``seen_from``: the sum of
    phi_b'^2 / (2 a_b) is the height of M_k above the minima of its terms, and M_k <= level - log pi_k.
    """
    if is_quadratic(target.terms):
        spread = np.sqrt(2.0 * np.maximum(target.level - floor, 0.0) * spread) + 0.5 * spread
    return float(spread.max(initial=0.0))


def evaluate(target: MixtureSet, theta: Array) -> Evaluation:
    """Phi, the size of its summands, gradient and Hessian."""
    heights, first, second = evaluate_terms(target.terms, target.X @ theta)  # type: ignore[arg-type]
    exponents = voice_exponents(target.voices, target.gains + heights)
    value = float(log_sum_exp(exponents))
    if not value < math.inf:
        return value, value, np.zeros_like(theta), lambda: np.zeros((len(theta), len(theta)))
    voices = np.exp(exponents - value)
    pulls = group_pulls(target.voices, voices, len(first))
    g = target.X.T @ (pulls * first)

    def hessian() -> Array:
        starts, members = target.voices.starts, target.voices.members
        slopes = np.vstack([first[members, None] * target.X[members], np.zeros_like(g)])  # a voice may hold nothing
        gradients = np.add.reduceat(slopes, starts[:-1], axis=0) * (np.diff(starts) > 0)[:, None]
        apart = np.sqrt(voices)[:, None] * (gradients - g)
        return np.asarray((target.X.T * (pulls * second)) @ target.X + apart.T @ apart)

    return value, float(np.abs(target.gains).sum() + np.abs(heights).sum()), g, hessian


def _joint_centre(target: MixtureSet) -> tuple[Array, float]:
    """A minimiser of the sum of all terms, away from the sphere, and how far the joint set's level lies above it."""
    terms, bound = target.terms, target.bound
    assert isinstance(terms, CompiledTerms)
    level = target.level - float(target.gains.sum())
    start = np.zeros(target.X.shape[1])
    theta, value, _, _ = minimise_over_ball(target.X, terms, 0.0, bound, start, Goal(0.05, level))
    if float(theta @ theta) > (CENTRAL * bound) ** 2:
        theta, value, _, _ = minimise_over_ball(
            target.X, terms, 1.0 / bound**2, bound, theta, Goal(0.05, iterations=50)
        )
        if float(theta @ theta) > (0.98 * bound) ** 2:
            theta = 0.98 * theta
    return theta, level - value


def _drawn_inwards(target: MixtureSet, theta: Array, value: float) -> Array:
    """A point nearer to zero that costs at most half of level - Phi(theta)."""
    share = 0.5
    while share > 1e-9:
        inner = (1.0 - share) * theta
        cost = look_at(target, inner).value - value
        if cost <= 0.5 * (target.level - value):
            return inner
        share *= 0.5
    return theta
