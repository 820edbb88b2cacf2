r"""The support function of a window mixture of absolute values (Laplace noise).

    C = { theta : Phi(theta) <= level, |theta| <= bound },      Phi(theta) = log sum_k pi_k exp M_k(theta),
    M_k(theta) = sum_{b in W_k} [ gain_b + sum_i u_bi |y_bi - x_b'theta| ]

**Certificate.** For any voices r (a probability vector over the windows) and any psi_bi in [-1, 1],

    Phi(theta) >= sum_k r_k M_k(theta) - KL(r | pi),      |y - z| >= psi (y - z),

so C lies in a half-space, cut with the ball: its maximum is known in closed form
(:func:`~likeset._solver.certificate.certificate`). Every iterate of the interior point method
(:mod:`~likeset._solver.absolute.mixture_path`) holds such numbers, converged or not.

**Folding.** For b in W_k, every theta in C has  phi_b(z) - min phi_b <= level - log pi_k - sum_{c in W_k} (gain_c +
min phi_c),  and |z| <= bound |x_b|. A point y outside the interval of such z contributes a straight line: all of them
are folded into one linear function for each covariate, which leaves C as it is.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from likeset._solver.absolute.iterate import PRIMAL, Iterate
from likeset._solver.absolute.mixture_bounds import log_average_at
from likeset._solver.absolute.mixture_data import Problem
from likeset._solver.absolute.mixture_path import find_centre, maximise
from likeset._solver.linalg.matrix import SUMS, dot
from likeset._solver.problem import Kernel, MixtureSet, PointTerms, Solution, with_column, with_zero
from likeset._typing import EPS, Array, IntArray
from likeset.compiling import kernel
from likeset.parts import worked_out

LEAST_SLACK = 1e-13  # relative to the scale of Phi's summands; thinner sets are solved at this thickness


@dataclass(frozen=True)
class Prepared(Kernel):
    """A window mixture of absolute values, ready for directions.

    status          "regular", "point" (a single point within rounding) or "empty" (certified)
    centre          a point of the set; if empty, the best point found
    minimum_bound   certified lower bound of min Phi over the ball
    """

    status: str
    centre: Array
    minimum_bound: float
    bound: float
    level: float = field(repr=False)
    outer_level: float = field(repr=False)
    problem: Problem | None = field(repr=False)
    start: Iterate | None = field(repr=False)

    @worked_out
    def padded(self) -> Prepared:
        """The same with a flat coordinate: by symmetry the centre has a zero there."""
        problem, start = self.problem, self.start
        if problem is not None:
            X = with_column(problem.X)
            Xt = np.ascontiguousarray(X.T)
            problem = problem._replace(X=X, Xt=Xt, centre=with_zero(problem.centre))
        if start is not None:
            delta, cone = with_zero(start.delta), np.pad(start.cone, ((0, 0), (0, 1), (0, 0)))
            start = start._replace(delta=delta, cone=cone)
        return replace(self, centre=with_zero(self.centre), problem=problem, start=start)

    def _solve(self, A: Array, near: Array | None, tolerance: float) -> Solution:
        size = np.linalg.norm(A, axis=1)
        points, upper = np.tile(self.centre, (len(A), 1)), (1.0 + 4.0 * EPS) * self.bound * size
        todo = np.flatnonzero(size > 0.0)
        if self.problem is None:  # every parameter of the ball has the same likelihood
            points[todo] = A[todo] * (self.bound / size[todo])[:, None]
        elif self.start is not None and len(todo):
            unit = A[todo] / size[todo, None]
            outer_bound = self.bound * (1.0 + 32.0 * EPS)
            room = self.level - log_average_at(self.problem, np.zeros(A.shape[1]))
            steps, bounds, _ = maximise(
                self.problem, unit, self.start, self.level, self.outer_level, room, outer_bound, tolerance
            )
            bounds = size[todo] * (unit @ self.problem.centre + bounds + 4.0 * EPS * self.bound)
            upper[todo] = np.fmin(upper[todo], bounds)  # a failed solve gives NaN: the ball's bound remains
            if self.status == "regular":
                points[todo] = self.problem.centre + steps
        values = np.einsum("ij,ij->i", A, points)
        return Solution(values, points, np.maximum(upper, values))


@kernel(allocates=True, fastmath=SUMS)
def lowest_points(starts: IntArray, points: Array, weights: Array) -> tuple[Array, Array]:
    """A minimiser of phi_b, a weighted median, and the minimum, for every covariate."""
    medians, lowest = np.zeros(starts.size - 1), np.zeros(starts.size - 1)
    for b in range(lowest.size):
        first, last = starts[b], starts[b + 1]
        slope, value = 0.0, 0.0
        for i in range(first, last):
            slope -= weights[i]
            value += weights[i] * (points[i] - points[first])
        for i in range(first, last):
            if i > first:
                value += slope * (points[i] - points[i - 1])
            slope += 2.0 * weights[i]
            medians[b], lowest[b] = points[i], value
            if slope >= 0.0:
                break
    return medians, lowest


@kernel(allocates=True, fastmath=SUMS)
def fold(X: Array, starts: IntArray, points: Array, weights: Array, ceiling: Array, bound: float) -> IntArray:
    """Indices of the points y_i with phi_b(y_i) <= ceiling_b and |y_i| <= bound |x_b|."""
    kept = np.empty(points.size, dtype=np.int64)
    count = 0
    for b in range(X.shape[0]):
        reach = bound * np.sqrt(dot(X[b], X[b])) * (1.0 + 1e-12)
        first, last = starts[b], starts[b + 1]
        value, slope = 0.0, 0.0
        for i in range(first, last):
            value += weights[i] * (points[i] - points[first])
            slope -= weights[i]
        for j in range(first, last):
            if j > first:
                value += slope * (points[j] - points[j - 1])
            slope += 2.0 * weights[j]
            if abs(points[j]) <= reach and value <= ceiling[b]:
                kept[count] = j
                count += 1
    return kept[:count]


def memberships(target: MixtureSet) -> Array:
    """masks[k, b]: one where covariate b belongs to window k."""
    masks = np.zeros((len(target.voices.log_shares), len(target.X)))
    masks[target.voices.owners, target.voices.members] = 1.0
    return masks


def ceilings(target: MixtureSet, masks: Array) -> tuple[Array, Array]:
    """(the largest phi_b that a parameter of C can have, a minimiser of phi_b), for every covariate."""
    terms = target.terms
    assert isinstance(terms, PointTerms)
    medians, lowest = lowest_points(terms.starts, terms.points, terms.weights)
    spare = target.level - target.voices.log_shares - masks @ (target.gains + lowest)
    spare += 64.0 * EPS * (abs(target.level) + masks @ (np.abs(target.gains) + lowest))
    return lowest + np.where(masks > 0.0, spare[:, None], np.inf).min(axis=0, initial=np.inf), medians


def prepare(target: MixtureSet) -> Prepared:
    """Decide whether the set is empty and find its analytic centre. The bound must be finite."""
    terms, windows, bound, level = target.terms, target.voices, float(target.bound), float(target.level)
    assert isinstance(terms, PointTerms) and bound < np.inf
    X = np.array(target.X, dtype=np.float64, order="C")  # a copy: never read-only, which would be compiled anew
    K, d = X.shape
    points, weights, starts = terms.points, terms.weights, terms.starts
    owner = np.repeat(np.arange(K), np.diff(starts))
    masks = memberships(target)
    first_holder = np.concatenate([[0], np.cumsum(masks.sum(axis=0))]).astype(np.int64)
    holders = np.ascontiguousarray(np.nonzero(masks.T)[1])

    # The rounding error of Phi, anywhere in the ball.
    length = np.linalg.norm(X, axis=1)
    totals = np.bincount(owner, weights, minlength=K)
    size = np.bincount(owner, weights * np.abs(points), minlength=K) + totals * length * bound + np.abs(target.gains)
    scale = float((masks @ size).max(initial=0.0)) + abs(level) + 1.0
    rounding = 16.0 * EPS * scale

    ceiling, medians = ceilings(target, masks)
    kept = fold(X, starts, points, weights, ceiling, bound)
    far = np.ones(len(points), dtype=bool)
    far[kept] = False
    kept_owner, kept_weights = owner[kept], np.ascontiguousarray(weights[kept])
    kept_starts = np.searchsorted(kept_owner, np.arange(K + 1))
    Xt, masks_t = np.ascontiguousarray(X.T), np.ascontiguousarray(masks.T)
    # A far point lies above or below the whole range of z, and this is a point of the range.
    middle = np.clip(medians, -bound * length, bound * length)
    side = np.sign(points[far] - middle[owner[far]])

    def around(at: Array, minimising: bool) -> Problem:
        """The problem centred at a point; far points become a constant and a slope for each covariate."""
        offsets = points - (X @ at)[owner]
        slopes = np.bincount(owner[far], -side * weights[far], minlength=K).astype(np.float64)
        constants = target.gains + np.bincount(owner[far], side * weights[far] * offsets[far], minlength=K)
        heights = windows.log_shares + masks @ constants
        return Problem(
            X, Xt, kept_owner, kept_starts, offsets[kept], kept_weights, slopes, masks, masks_t, first_holder, holders,
            heights, at, bound, minimising,
        )  # fmt: skip

    zero = np.zeros(d)
    whole = around(zero, True)
    if not (len(points) and X.any()):
        status = "regular" if log_average_at(whole, zero) <= level + rounding else "empty"
        return Prepared(status, zero, -np.inf, bound, level, level, None, None)
    start, best, value, lower = find_centre(whole, level, 0.1 * rounding)
    if lower > level + rounding:
        return Prepared("empty", best, lower, bound, level, level, None, None)
    outer_level = max(level + rounding, lower + LEAST_SLACK * scale)
    status = "regular" if value < level - rounding else "point"
    centre = start.delta[:, 0].copy()
    if not log_average_at(whole, centre) < level:
        centre = best
    problem = around(centre, False)
    start.delta[:] = 0.0
    start.cone[PRIMAL, 1:, 0] = centre
    start.height[0] = outer_level
    return Prepared(status, centre, lower, bound, level, outer_level, problem, start)
