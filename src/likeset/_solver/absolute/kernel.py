r"""Support function of  C = { theta : F(theta) <= level, |theta| <= bound }  for absolute-value terms.

    F(theta) = sum_i w_i |y_i - x_i'theta|                               (Laplace noise)

**Certificate.** For any lam >= 0 and |u_i| <= lam w_i, every theta in C satisfies

    a'theta <= lam level - sum_i u_i y_i + m'theta <= lam level - u'y + bound |m|,    m = a + sum_i u_i x_i.

The ball absorbs whatever mismatch m the interior point leaves, so its multipliers give an outer bound at
any iterate, converged or not. Written relative to a centre theta_c, with p_i = y_i - x_i'theta_c,

    a'(theta - theta_c) <= lam (level - F(theta_c)) + sum_i (lam w_i |p_i| - u_i p_i)
                           + bound |m| - m'theta_c,

every part is non-negative: nothing cancels when C is small. The level is raised by the rounding error of F.

**Folding.** On the values z that x_k'theta takes over C, a point y_i outside that range contributes a
straight line. Such points are folded into one linear function, so that the cost per direction is governed
by the points near the set, not by the number of observations. A line lies below w_i |y_i - z| everywhere:
folding can only enlarge the set.

**No ball.** In the span of the covariates C is bounded: |theta| <= (level + F(0)) / sigma_min(diag(W) X) with
W_k the total weight of covariate k. That ball replaces a missing or very large one without being felt.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from likeset._solver.absolute.interior_point import maximise, minimise
from likeset._solver.absolute.primal_dual import Problem
from likeset._solver.absolute.starts import QuadraticModel, interior_centre, quadratic_model
from likeset._solver.linalg.matrix import SUMS, dot
from likeset._solver.problem import CurveTerms, Kernel, LevelSet, PointTerms, Solution, with_column, with_zero
from likeset._solver.quadratic import kernel as quadratic_kernel
from likeset._solver.span import Span, reduce_to_span
from likeset._typing import EPS, Array, IntArray
from likeset.compiling import kernel
from likeset.curves import Curve
from likeset.parts import worked_out

NOTHING = 1e-200  # a level at which squares of residuals are lost
LEAST_SLACK = 1e-13  # relative to the scale of F's summands; thinner sets are solved at this thickness


@kernel(allocates=True, fastmath=SUMS)
def fold(
    X: Array,
    starts: IntArray,
    points: Array,
    weights: Array,
    u: Array,
    slack: float,
    bound: float,
) -> IntArray:
    """Indices of the points that lie in the range of x_k'theta over C; the others contribute straight lines.

    |z_k| <= bound |x_k|, and with lower <= min F proved by multipliers u, slack = level - lower,

        sum_{i of k} (w_i |y_i - z| - u_i (y_i - z)) <= slack        for z = x_k'theta, theta in C.

    The left side is convex in z: a point where it exceeds the slack is outside the range.
    """
    kept = np.empty(points.size, dtype=np.int64)
    n_kept = 0
    for k in range(X.shape[0]):
        reach = bound * np.sqrt(dot(X[k], X[k])) * (1.0 + 1e-12)
        # Left side at the sorted points z = y_j:  sum_i w_i |y_i - z| - u_i (y_i - z), by its slopes.
        first, last = starts[k], starts[k + 1]
        value, slope = 0.0, 0.0
        for i in range(first, last):
            value += (weights[i] - u[i]) * (points[i] - points[first])
            slope += u[i] - weights[i]
        for j in range(first, last):
            if j > first:
                value += slope * (points[j] - points[j - 1])
            slope += 2.0 * weights[j]
            if abs(points[j]) <= reach and value <= slack:
                kept[n_kept] = j
                n_kept += 1
    return kept[:n_kept]


@dataclass(frozen=True)
class Prepared(Kernel):
    """A level set made ready for many directions.

    status          "regular", "point" (a single point within rounding) or "empty" (certified)
    centre          a point of the set; if empty, the best point found
    minimum_bound   certified lower bound of min F over the ball
    """

    status: str
    centre: Array
    minimum_bound: float
    level_set: LevelSet = field(repr=False)
    owner: IntArray = field(repr=False)
    span: Span = field(repr=False)
    problem: Problem | None = field(repr=False)
    whole_slack: float = field(repr=False)  # level - min F, at most
    slack: float = field(repr=False)
    reach: float = field(repr=False)

    @worked_out
    def model(self) -> QuadraticModel | None:
        """What directions start from; None if F is constant."""
        return None if self.problem is None else quadratic_model(self.problem, self.whole_slack)

    @worked_out
    def padded(self) -> Prepared:
        """The same with a flat coordinate, also where the span has none yet."""
        d, bound = len(self.centre), self.level_set.bound
        level_set = replace(self.level_set, X=with_column(self.level_set.X))
        span, problem = self.span, self.problem
        if span.basis is not None:
            span = replace(span, basis=with_zero(span.basis), dimension=d + 1)
        elif problem is None:
            span = replace(span, dimension=d + 1)
        if problem is not None and not span.outside and bound < np.inf:
            if span.basis is None:
                span = replace(span, basis=np.eye(d + 1, d), dimension=d + 1)
            span = replace(span, outside=True)
            X = with_column(problem.X)
            problem = problem._replace(
                X=X, Xt=np.ascontiguousarray(X.T), slope=with_zero(problem.slope),
                centre=with_zero(problem.centre), bound=bound,
            )  # fmt: skip
        centre = with_zero(self.centre)
        return replace(self, centre=centre, level_set=level_set, span=span, problem=problem)

    def _solve(self, A: Array, near: Array | None, tolerance: float) -> Solution:
        """Outer bounds hold whether or not the tolerance is met."""
        n, bound = len(A), self.level_set.bound
        size = np.linalg.norm(A, axis=1)
        points = np.tile(self.centre, (n, 1))
        nonzero = size > 0.0
        upper = np.zeros(n)
        upper[nonzero] = (1.0 + 4.0 * EPS) * bound * size[nonzero]
        if np.isfinite(bound):  # the far end of the ball is the answer wherever it is in C
            ends = A * np.divide(bound, size, out=np.zeros(n), where=nonzero)[:, None]
            inside = nonzero & (self.objective(ends) <= self.level_set.level)
            points[inside] = ends[inside]
            todo = np.flatnonzero(nonzero & np.logical_not(inside))
        else:
            todo = np.flatnonzero(nonzero & self.span.contains(A, size))
        if self.problem is not None and self.model is not None and len(todo):
            centre = self.problem.centre
            inner = self.span.reduce(A[todo])
            starts = self.model.starts(inner)
            steps, bounds, _ = maximise(self.problem, inner, starts, self.slack, self.reach, tolerance)
            bounds += inner @ centre + 4.0 * EPS * size[todo] * np.linalg.norm(centre)
            upper[todo] = np.fmin(upper[todo], bounds)  # a failed solve gives NaN: the ball's bound remains
            if self.status == "regular":
                found = self.span.expand(centre + steps, A[todo])
                good = np.isfinite(found).all(axis=1)
                points[todo[good]] = self._pull_inside(found[good])
        values = np.sum(A * points, axis=1)
        return Solution(values, points, np.maximum(upper, values))

    def objective(self, thetas: Array) -> Array:
        """F at the rows of an array."""
        terms = self.level_set.terms
        assert isinstance(terms, PointTerms)
        return np.asarray(sums_of_distances(thetas @ self.level_set.X.T, self.owner, terms.points, terms.weights))

    def _pull_inside(self, thetas: Array) -> Array:
        """Move points that rounding put outside C towards the centre; F is convex along the way."""
        level, bound = self.level_set.level, self.level_set.bound
        excess = np.maximum(self.objective(thetas) - level, 0.0)
        room = level - float(self.objective(self.centre[None, :])[0])
        inside = self.centre + (room / (room + excess))[:, None] * (thetas - self.centre)
        size = np.maximum(np.linalg.norm(inside, axis=1), 1e-300)
        return np.asarray(inside * np.minimum(1.0, bound / size)[:, None])


@kernel(allocates=True, fastmath=SUMS)
def sums_of_distances(Z: Array, owner: IntArray, points: Array, weights: Array) -> Array:
    """sum_i w_i |y_i - z_i| for every row of Z, which holds one z per covariate."""
    out = np.zeros(Z.shape[0])
    for row in range(Z.shape[0]):
        z = Z[row]
        total = 0.0
        for i in range(points.size):
            total += weights[i] * abs(points[i] - z[owner[i]])
        out[row] = total
    return out


def prepare(level_set: LevelSet) -> Kernel:
    """Decide whether the set is empty, find its centre and fold away the points that are out of reach."""
    terms = level_set.terms
    assert isinstance(terms, PointTerms)
    X = np.ascontiguousarray(level_set.X, dtype=np.float64)
    d, level = X.shape[1], float(level_set.level)
    points, weights, starts = terms.points, terms.weights, terms.starts
    owner = np.repeat(np.arange(X.shape[0]), np.diff(starts))
    size_of_F = float(weights @ np.abs(points))
    if level == np.inf or not (len(points) and X.any()):  # F is constant on C
        status = "regular" if size_of_F <= level * (1.0 + 16.0 * EPS) else "empty"
        nothing = Span(np.zeros((d, 0)), False, d)
        return Prepared(status, np.zeros(d), 0.0, level_set, owner, nothing, None, 0.0, np.inf, 0.0)

    if size_of_F == 0.0 <= level < NOTHING:
        # Outcomes that are all zero and have to be met: F <= level <= 1 is inside of sum_k (W_k x_k'theta)^2 <= level.
        total = np.bincount(owner, weights, minlength=len(X)).astype(np.float64)
        squares = CurveTerms(Curve.QUADRATIC, total**2, np.zeros(len(X)))
        return quadratic_kernel.prepare(LevelSet(X, squares, level, float(level_set.bound)))

    span, X, bound = reduce_to_span(X, points, weights, owner, level, float(level_set.bound))
    zero = np.zeros(X.shape[1])
    reach = float(weights @ np.linalg.norm(X, axis=1)[owner])
    whole = Problem(X, np.ascontiguousarray(X.T), owner, starts, points, weights, zero, zero, 0.0, bound, 0.0, False)
    theta, lowest, u, lower = minimise(whole, zero, level, 0.1 * EPS * size_of_F, 0.0)
    scale = size_of_F + reach * float(np.linalg.norm(theta))
    rounding = 16.0 * EPS * scale
    best = span.expand(theta[None, :], np.zeros((1, d)))[0]
    if lower > level + rounding:
        return Prepared("empty", best, lower, level_set, owner, span, None, 0.0, 0.0, 0.0)

    outer_level = max(level + rounding, lower + LEAST_SLACK * scale)
    kept = fold(X, starts, points, weights, u, outer_level - lower + rounding, bound)
    far = np.ones(len(points), dtype=bool)
    far[kept] = False
    rows, first, kept_owner = np.unique(owner[kept], return_index=True, return_inverse=True)
    kept_X = X[rows]
    rise = max(size_of_F - lowest, LEAST_SLACK * scale, 1e-300)  # of F from its minimum to 0
    at = interior_centre(theta, bound, (outer_level - lower) / rise)
    offsets = points - (X @ at)[owner]
    distances = weights * np.abs(offsets)
    value = float(distances.sum())
    problem = Problem(
        kept_X,
        np.ascontiguousarray(kept_X.T),
        kept_owner,
        np.append(first, len(kept)),
        offsets[kept],
        weights[kept],
        # Far points are a slope, and a constant that is taken off the allowance.
        slope=-(np.sign(offsets[far]) * weights[far]) @ X[owner[far]],
        centre=at,
        allowance=outer_level - float(distances[far].sum()),
        bound=bound,
        ridge=0.0,
        level_is_free=True,
    )
    status = "regular" if lowest < level - rounding else "point"
    if status == "regular" and value < level:
        best = span.expand(at[None, :], np.zeros((1, d)))[0]
    return Prepared(
        status, best, lower, level_set, owner, span, problem, outer_level - lower, outer_level - value, reach
    )


def minimise_penalised(X: Array, terms: PointTerms, ridge: float, bound: float, start: Array | None = None) -> Array:
    """The minimiser of  F(theta) + ridge |theta|^2  over |theta| <= bound;  ridge > 0.

    ``start`` is a guess of the minimiser.
    """
    X = np.ascontiguousarray(X)
    zero = np.zeros(X.shape[1])
    guess = zero if start is None else np.asarray(start, dtype=np.float64)
    if not terms.points.any():
        return zero
    owner = np.repeat(np.arange(len(X)), np.diff(terms.starts))
    problem = Problem(
        X,
        X.T.copy(),
        owner,
        terms.starts,
        terms.points,
        terms.weights,
        zero,
        zero,
        0.0,
        float(bound),
        float(ridge),
        False,
    )
    theta, *_ = minimise(problem, guess, -np.inf, 0.0, 1e-9)
    size = float(np.linalg.norm(theta))
    return np.asarray(theta if size <= bound else theta * (bound / size))
