r"""Support function for Gaussian noise: the eigenbasis and the centre of an ellipsoid cut with a ball.

Terms phi_k(z) = a_k (z - o_k)^2 / 2 - s_k (z - o_k) add up to a quadratic, so that

    C = { theta : F(theta) = theta'H theta / 2 - b'theta + constant <= level,  |theta| <= B },
    H = sum_k a_k x_k x_k',   b = sum_k (s_k + a_k o_k) x_k.

Where means are large beside the noise b and the constant are huge and F is not: they serve to find the centre, and
all that is said about F comes from the z_k - o_k there.

Once per set: eigenvectors of H, in which H = diag(h), and the minimiser of F over the ball, exact by the
secular equation, as the centre. Per direction: :mod:`likeset._solver.quadratic.pencil`.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, sqrt

import numpy as np

from likeset._solver.linalg.eigen import eigen
from likeset._solver.problem import CurveTerms, LevelSet, Solution
from likeset._solver.quadratic.pencil import MAX_STEPS, REORDER, ROUNDING, Cut, maximise, outer_bounds
from likeset._typing import EPS, Array
from likeset.compiling import njit

EIGEN_ERROR = 16 * EPS  # error of an eigenvalue or singular value relative to the largest
WELL_CENTRED = 1e-9  # share of level - F by which a centre may miss the minimum
RESOLUTION = 1e-8  # relative looseness at which the eigenvalues of H are recomputed from X itself


@dataclass(frozen=True)
class Prepared:
    """An ellipsoid cut with a ball, ready for any direction."""

    status: str  # "regular", "point" or "empty"
    minimum_bound: float  # certified lower bound of min F over the ball
    basis: Array  # orthonormal columns, shape (d, r)
    cut: Cut

    @property
    def centre(self) -> Array:
        """theta_c, shape (d,): the minimiser of F over the ball."""
        return self.basis @ self.cut.origin

    def solve(self, A: Array, tolerance: float = 1e-7, outside: Array | None = None) -> Solution:
        """Maximum of a'theta for each row a of A (n, d): attained values, maximisers, certified bounds.

        With lengths ``outside`` (n,), every direction has one more coordinate, of its own and orthogonal to all
        covariates; then so have the maximisers. Where the set is unbounded the value and the bound are +inf and the
        point is NaN; on an empty set they are -inf and NaN.
        """
        A, basis, rest, orthogonal = self._directions(A, outside)
        n, d = A.shape
        if self.status == "empty":
            points = np.full((n, d if outside is None or orthogonal is not None else d + 1), np.nan)
            return Solution(np.full(n, -inf), points, np.full(n, -inf))
        values, upper, steps, along = maximise(A, rest, basis, self.cut, tolerance)
        points = (self.cut.origin + steps) @ basis.T
        if orthogonal is not None:
            points += np.divide(along, rest, out=np.zeros(n), where=rest > 0)[:, None] * orthogonal
        elif outside is not None:
            points = np.column_stack([points, along])
        return Solution(values, points, upper)

    def bounds(self, A: Array, outside: Array, tolerance: float = 1e-7) -> Array:
        """The outer bounds of ``solve`` alone, for a set that is not empty."""
        A, basis, rest, _ = self._directions(A, outside)
        upper: Array = outer_bounds(A, rest, basis, self.cut, tolerance)
        return upper

    def _directions(self, A: Array, outside: Array | None) -> tuple[Array, Array, Array, Array | None]:
        """A, the basis, the lengths of the rows of A beyond it, and their parts there if these belong to A."""
        A, basis = np.ascontiguousarray(A, dtype=np.float64), self.basis
        if basis.shape[0] == basis.shape[1]:
            return A, basis, np.zeros(len(A)) if outside is None else outside, None
        if outside is not None:
            A, basis = np.column_stack([A, outside]), np.pad(basis, ((0, 1), (0, 0)))
        orthogonal = A - (A @ basis) @ basis.T
        return A, basis, np.linalg.norm(orthogonal, axis=1), orthogonal


def prepare(level_set: LevelSet) -> Prepared:
    """Phase I and the eigenbasis: everything that does not depend on the direction.

    The eigenvalues of H = X'diag(a)X have an absolute error of a few eps |H|; they are lowered by it, so that
    the bounds stay outer. If that loosens the weakest curvature that matters by more than RESOLUTION, they
    are recomputed as squared singular values of diag(sqrt a) X, with relative error eps sqrt(|H|/h) only.
    """
    terms = level_set.terms
    if not isinstance(terms, CurveTerms):
        raise TypeError(f"the quadratic kernel needs CurveTerms, got {type(terms).__name__}")
    K, d = level_set.X.shape
    level, radius = float(level_set.level), float(level_set.radius)
    # With few covariates, work in their span; with more than d/2, finding the span would cost more.
    span = np.linalg.qr(level_set.X.T)[0] if d >= 2 * K else None
    X = np.ascontiguousarray(level_set.X if span is None else level_set.X @ span)

    origins = np.zeros(K) if terms.origins is None else terms.origins
    rotation, cut, minimum, bound = seen_by_hessian(X, terms.a, terms.s, origins, level, radius)
    weakest = 0.0 if span is not None or not len(cut.lowered) else cut.lowered[0]
    flattest = cut.slack / (2 * radius * radius) if radius < inf else 0.0
    if len(cut.lowered) and cut.curvature[0] - cut.lowered[0] > RESOLUTION * max(weakest, flattest):
        curvature, lowered, rotation = spectrum_of_factor(X, terms.a)
        cut, minimum, bound = phase_one(X, terms.a, terms.s, origins, rotation, curvature, lowered, level, radius)

    padding = cut.slack - cut.inner_slack if cut.slack < inf else 0.0
    status = "regular"
    if level - minimum <= padding:
        status = "empty" if bound > level + padding else "point"
    basis = rotation if span is None else span @ rotation
    return Prepared(status, bound, basis, cut)


@njit(cache=True, error_model="numpy")
def spectrum_of_hessian(X: Array, a: Array) -> tuple[Array, Array, Array]:
    """Eigenvalues of H = X'diag(a)X (ascending), the same lowered by their error, and eigenvectors."""
    values, vectors = eigen(np.dot(X.T * a, X))
    curvature = np.maximum(values, 0.0)
    error = EIGEN_ERROR * curvature[-1] if len(values) > 0 else 0.0
    return curvature, np.maximum(values - error, 0.0), vectors


def spectrum_of_factor(X: Array, a: Array) -> tuple[Array, Array, Array]:
    """The same from the singular values of diag(sqrt a) X: slower, and accurate for small eigenvalues too."""
    d = X.shape[1]
    _, singular, transposed = np.linalg.svd(np.sqrt(a)[:, None] * X, full_matrices=True)
    root = np.zeros(d)
    root[d - len(singular) :] = singular[::-1]
    lowered = np.maximum(root - EIGEN_ERROR * root[-1], 0.0) ** 2
    return root**2, lowered, np.ascontiguousarray(transposed[::-1].T)


@njit(cache=True, error_model="numpy")
def phase_one(
    X: Array,
    a: Array,
    s: Array,
    origins: Array,
    rotation: Array,
    curvature: Array,
    lowered: Array,
    level: float,
    radius: float,
) -> tuple[Cut, float, float]:
    """The minimum of F over the ball: the set seen from there, F there, and a lower bound of F on the ball.

    By F(theta) >= F(theta) + nu (|theta|^2 - B^2) / 2, minimised over delta coordinate by coordinate, F is at
    least F(theta_c) - nu e2 / 2 - sum_i c_i^2 / (2 (h_i + nu)) with c = g + nu theta_c and nu the multiplier
    of the ball; each summand is also at most 2 B |c_i|, because |delta_i| <= 2 B.

    The centre is solved for twice where that helps: b is rounded like the largest outcome, the gradient like the
    largest residual, and a step from the first centre with the gradient there takes out what b had lost.
    """
    pull = s + a * origins
    noise = ROUNDING * sqrt(np.sum(pull * pull) * np.sum(X * X))  # rounding error of a coordinate of b
    origin, nu = ball_minimiser(curvature, lowered, np.dot(np.dot(pull, X), rotation), noise, radius)
    gradient, minimum, padding, noise = seen_from(X, a, s, origins, rotation, origin, level)
    gap, room = fall_below(lowered, gradient, origin, nu, radius, noise)
    if gap > WELL_CENTRED * (level - minimum):
        step_pull = curvature * origin - gradient
        better, better_nu = ball_minimiser(curvature, lowered, step_pull, noise, radius)
        seen = seen_from(X, a, s, origins, rotation, better, level)
        better_gap, better_room = fall_below(lowered, seen[0], better, better_nu, radius, seen[3])
        if better_gap < gap:
            origin, nu, gap, room = better, better_nu, better_gap, better_room
            gradient, minimum, padding, noise = seen
    gap += padding
    slack = max(level - minimum, 0.0) if gap < inf else inf  # inf: F falls for ever along a line without ball

    outer_slack, outer_room = slack + padding, room + ROUNDING * radius * radius if radius < inf else 0.0
    stiffest = np.max(curvature) if len(curvature) > 0 else 0.0
    start = max(nu + 2 * outer_slack / (radius * radius), EPS * stiffest)
    cut = Cut(curvature, lowered, gradient, origin, radius, outer_slack, outer_room, slack, room, start)
    return cut, minimum, minimum - gap


@njit(cache=True, error_model="numpy", fastmath=REORDER)
def seen_from(
    X: Array, a: Array, s: Array, origins: Array, rotation: Array, origin: Array, level: float
) -> tuple[Array, float, float, float]:
    """At a centre: the gradient of F, F, what F's rounding can be worth on C, and the rounding of the gradient.

    What is computed is a neighbour of F, with every z_k off by some delta_k <= eps |x_k| |theta| or so. On C, where
    sum_k phi_k'^2 / (2 a_k) = F - sum_k min phi_k is at most level - sum_k min phi_k, the two differ by no more than
    sum_k |phi_k'| delta_k + a_k delta_k^2 / 2, and the first sum is at most the square root of 2 (level - sum_k
    min phi_k) sum_k a_k delta_k^2.
    """
    K, d = X.shape
    steps = np.dot(X, np.dot(rotation, origin)) - origins
    slopes = a * steps - s
    gradient = np.dot(np.dot(slopes, X), rotation)
    unit = (8 + d) * EPS * sqrt(np.sum(origin * origin))
    minimum, spread, squared_length = 0.0, 0.0, 0.0
    size = highest = abs(level) if abs(level) < inf else 0.0
    for k in range(K):
        bend, tilt, square = 0.5 * a[k] * steps[k] * steps[k], s[k] * steps[k], 0.0
        for j in range(d):
            square += X[k, j] * X[k, j]
        squared_length += square
        minimum += bend - tilt
        size += bend + abs(tilt)
        spread += a[k] * square
        if a[k] > 0.0:
            highest += 0.5 * s[k] * s[k] / a[k]
    spread *= unit * unit
    padding = ROUNDING * size + sqrt(2 * highest * spread) + 0.5 * spread
    noise = ROUNDING * sqrt((np.sum(slopes * slopes) + np.sum(s * s)) * squared_length)
    return gradient, minimum, padding, noise


@njit(cache=True, error_model="numpy")
def fall_below(
    lowered: Array, gradient: Array, origin: Array, nu: float, radius: float, noise: float
) -> tuple[float, float]:
    """How much lower than at the centre F can be on the ball, and the room B^2 - |theta_c|^2."""
    room = max(radius * radius - np.sum(origin * origin), 0.0)
    gap = 0.5 * nu * room if nu > 0.0 else 0.0
    for i in range(len(origin)):
        c = abs(gradient[i] + nu * origin[i])
        if lowered[i] + nu > 0.0:
            gap += min(0.5 * c * c / (lowered[i] + nu), 2 * radius * c)
        elif c > noise:
            gap += 2 * radius * c
    return gap, room


@njit(cache=True, error_model="numpy")
def ball_minimiser(h: Array, lowered: Array, b: Array, noise: float, radius: float) -> tuple[Array, float]:
    """Minimiser of sum_i h_i t_i^2 / 2 - b_i t_i over |t| <= radius, and the multiplier nu of the ball.

    t_i = b_i / (h_i + nu), with nu = 0 if that lies in the ball and otherwise the root of |t(nu)| = radius
    (Newton's method on 1/radius - 1/|t|). A coordinate that is flat to rounding stays at zero.
    """
    r = len(h)
    b = b.copy()
    for i in range(r):
        if lowered[i] == 0.0 and (abs(b[i]) <= noise or radius == inf):
            b[i] = 0.0
    t = np.zeros(r)
    nu, low, high = 0.0, 0.0, sqrt(np.sum(b * b)) / radius  # the root if all h were zero
    for _ in range(MAX_STEPS):
        square, fall = 0.0, 0.0  # |t|^2 and -(|t|^2)'/2
        for i in range(r):
            if b[i] != 0.0:
                stiffness = h[i] + nu
                t[i] = b[i] / stiffness if stiffness > 0.0 else inf
                square += t[i] * t[i]
                fall += t[i] * t[i] / stiffness if stiffness > 0.0 else inf
        norm = sqrt(square)
        if norm <= radius and (nu == 0.0 or norm >= radius * (1 - 4 * EPS)):
            break
        if norm > radius:
            low = nu
        else:
            high = nu
        guess = nu + square / fall * (norm - radius) / radius if norm < inf else 0.0
        if not low < guess < high:
            guess = sqrt(low * high) if low > 0.0 else 1e-3 * high
        if guess <= low or guess >= high:
            break
        nu = guess
    norm = sqrt(np.sum(t * t))
    if norm > radius * (1 - 4 * EPS):  # keep the centre in the ball after a change of basis, too
        t *= radius / norm * (1 - 4 * EPS)
    return t, nu


@njit(cache=True, error_model="numpy")
def seen_by_hessian(
    X: Array, a: Array, s: Array, origins: Array, level: float, radius: float
) -> tuple[Array, Cut, float, float]:
    """Eigenvectors of H, and ``phase_one`` in their basis."""
    curvature, lowered, rotation = spectrum_of_hessian(X, a)
    cut, minimum, bound = phase_one(X, a, s, origins, rotation, curvature, lowered, level, radius)
    return rotation, cut, minimum, bound
