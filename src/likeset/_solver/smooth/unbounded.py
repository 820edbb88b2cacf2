r"""Smooth sets without a ball: bound = inf.

The set is solved inside an auxiliary ball. If the maximiser is well inside, the ball did not matter, and an outer
bound that does not know the ball comes from the separable dual: for any lam > 0 and any v with  lam X'v = a,

    a'theta = lam sum_k v_k x_k'theta <= lam [ F(theta) + sum_k phi_k^*(v_k) ] <= lam [ level + sum_k phi_k^*(v_k) ]

for every theta in C, where phi^*(v) = v z - phi(z) at the z with phi'(z) = v. At the maximiser a = lam g = lam
X'phi'(z), so v = phi'(z) is right up to the error of the solution; the correction

    v = phi'(z) + phi''(z) X p,      (X' diag(phi'') X) p = a/lam - g

makes lam X'v = a exactly (lam is chosen to keep it small). With lam = 1 and a = 0 the same inequality bounds min F
from below.

If the maximiser stays at the sphere of ever larger balls (separable logistic data, no counts yet, a direction that
the covariates do not reach) there is no finite bound.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from likeset._solver.evaluate import evaluate_terms
from likeset._solver.problem import CurveTerms, SmoothTerms
from likeset._solver.smooth.phase_one import bounded_set, height
from likeset._solver.smooth.sqp import CentredSet
from likeset._typing import Array
from likeset.curves import term_minima

LADDER = (3e1, 3e3, 3e5, 3e7)  # radii of the auxiliary balls, in units of 1/(smallest singular value of X)
WELL_INSIDE = 0.9  # share of the bound up to which the auxiliary ball counts as inactive
MAX_NEWTON = 60
EXACT = 1e-12  # relative error up to which lam X'v = a counts as an equality


@dataclass(frozen=True)
class UnboundedSet:
    """C = { F <= level } for covariates that span the space."""

    X: Array
    terms: SmoothTerms
    level: float
    unit: float
    theta_c: Array
    first_rung: int
    rungs: dict[int, tuple[Array, CentredSet]] = field(default_factory=dict)

    def maximise(self, A: Array, tolerance: float) -> tuple[Array, Array]:
        """(delta, upper): feasible points and outer bounds of a'delta, relative to theta_c, for unit rows of A."""
        n = len(A)
        delta, upper = np.zeros_like(A), np.full(n, np.inf)
        todo = np.arange(n)
        for rung in range(self.first_rung, len(LADDER)):
            if not len(todo):
                break
            centre, inside = self._rung(rung)
            found, _ = inside.maximise(A[todo], tolerance)
            points = centre + found
            delta[todo] = points - self.theta_c
            free = np.sqrt(np.sum(points**2, axis=1)) < WELL_INSIDE * LADDER[rung] * self.unit
            certified = todo[free]
            upper[certified] = dual_bounds(inside, A[certified], found[free]) + A[certified] @ (centre - self.theta_c)
            todo = todo[np.isinf(upper[todo])]
        return delta, upper

    def _rung(self, rung: int) -> tuple[Array, CentredSet]:
        if rung not in self.rungs:
            bound = LADDER[rung] * self.unit
            _, centre, _, inside = bounded_set(self.X, self.terms, self.level, bound, flat=False)
            self.rungs[rung] = centre, inside
        return self.rungs[rung]


def unbounded_set(X: Array, terms: SmoothTerms, level: float) -> tuple[str, Array, float, UnboundedSet | None]:
    """(status, theta_c, certified lower bound of min F, the set) for X of full column rank."""
    unit = 1.0 / float(np.linalg.svd(X, compute_uv=False)[-1])
    lower, theta = -np.inf, np.zeros(X.shape[1])
    for rung, size in enumerate(LADDER):
        status, theta, _, inside = bounded_set(X, terms, level, size * unit, flat=False)
        lower = max(lower, dual_minimum(X, terms, theta))
        if lower > level + height(X, terms, theta, level).error:
            return "empty", theta, lower, None
        if status != "empty":
            return status, theta, lower, UnboundedSet(X, terms, level, unit, theta, rung, {rung: (theta, inside)})
    # No point found, no certificate of emptiness either: nothing is known beyond that.
    return "point", theta, lower, UnboundedSet(X, terms, level, unit, theta, len(LADDER))


def dual_bounds(inside: CentredSet, A: Array, delta: Array) -> Array:
    """Outer bounds of a'delta over { F <= level }, no ball, from near-maximisers delta (n, d).

    In centred coordinates the dual bound reads  lam (e + sum_k [S_k u_k - D_k(u_k)])  with  S_k = phi_k'(z_k + u_k) -
    phi_k'(z_k)  at the u with  phi_k'(z_k + u_k) = v_k.
    """
    X, terms, z = inside.X, inside.terms, inside.z
    value_c, _, _ = evaluate_terms(terms, z)
    _, first, second = evaluate_terms(terms, z + delta @ X.T)
    # The lam whose correction is smallest in its own metric: minimise |a/lam - g| in the norm of H^-1.
    metric = NewtonMetric(X, second)
    solved = metric.solve(A)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        lam = np.sum(A * solved, axis=1) / np.sum(solved * (first @ X), axis=1)
    lam = np.where((lam > 0.0) & np.isfinite(lam), lam, 1.0)  # where not, no bound will be found
    targets, starts = corrected(metric, A / lam[:, None], first, z + delta @ X.T)
    Z, reached = invert_slopes(terms, targets, starts)
    u = Z - z
    value, slope, _ = evaluate_terms(terms, Z)
    with np.errstate(over="ignore", invalid="ignore"):
        conjugate = np.sum(value_c - value + slope * u, axis=1)  # S u - D
        residual = np.linalg.norm(A - lam[:, None] * (slope @ X), axis=1)
        exact = residual <= EXACT * (1.0 + lam * (np.abs(slope) @ np.linalg.norm(X, axis=1)))
        bounds = lam * (inside.e + conjugate) + residual * inside.bound
    return np.where(reached & exact & np.isfinite(bounds), bounds, np.inf)


def dual_minimum(X: Array, terms: SmoothTerms, theta: Array) -> float:
    """A lower bound of min F over all of R^d, from a point near the minimiser: -sum_k phi_k^*(v_k), X'v = 0."""
    z = X @ theta
    value, first, second = evaluate_terms(terms, z[None])
    targets, starts = corrected(NewtonMetric(X, second), np.zeros((1, X.shape[1])), first, z[None])
    Z, reached = invert_slopes(terms, targets, starts)
    value, slope, _ = evaluate_terms(terms, Z)
    with np.errstate(over="ignore", invalid="ignore"):
        # Tangents around theta: the residual of X'v = 0, all rounding, then does no harm nearby.
        residual = float(np.linalg.norm(slope @ X))
        exact = residual <= EXACT * float(np.sum(np.abs(slope) @ np.linalg.norm(X, axis=1)))
        lower = float(np.sum(value - slope * (Z - z))) - residual * float(np.linalg.norm(theta))
    if not (reached[0] and exact and np.isfinite(lower)):
        lower = -np.inf
    return max(lower, termwise_minimum(terms))


def termwise_minimum(terms: SmoothTerms) -> float:
    """sum_k inf phi_k, the dual bound at v = 0 (-inf if some phi_k is unbounded below or unknown)."""
    if not isinstance(terms, CurveTerms):
        return -np.inf
    return float(np.sum(term_minima(terms.curve, terms.a, terms.s, terms.origins)))


class NewtonMetric:
    """Solves with H = X' diag(phi'') X for every row of phi'' (n, K)."""

    def __init__(self, X: Array, second: Array) -> None:
        self.X, self.second = X, second
        H = np.einsum("nk,ki,kj->nij", second, X, X, optimize=True)
        self.scale = np.sqrt(np.maximum(np.einsum("nii->ni", H), 1e-300))  # badly scaled columns do not matter
        self.H = H / (self.scale[:, :, None] * self.scale[:, None, :]) + 1e-14 * np.eye(X.shape[1])

    def solve(self, B: Array) -> Array:
        """H^-1 b for the rows b of B; inf or nan where H vanishes."""
        with np.errstate(over="ignore", invalid="ignore"):
            solved: Array = np.linalg.solve(self.H, (B / self.scale)[:, :, None])[:, :, 0] / self.scale
        return solved


def corrected(metric: NewtonMetric, goals: Array, first: Array, Z: Array) -> tuple[Array, Array]:
    """Slopes v = phi' + phi'' X p with X'v = goal (rows), and the points Z + X p where such slopes may be found."""
    targets, shift = first, np.zeros_like(Z)
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(3):  # iterative refinement
            move = metric.solve(goals - targets @ metric.X) @ metric.X.T
            targets, shift = targets + metric.second * move, shift + move
    return targets, Z + np.where(np.isfinite(shift), shift, 0.0)


def invert_slopes(terms: SmoothTerms, targets: Array, Z: Array) -> tuple[Array, Array]:
    """Z with phi_k'(Z) = targets, by Newton's method with bisection, and which rows were solved.

    Any Z gives a valid tangent; a row that is not solved to rounding only gives a poor bound.
    """
    low, high = np.full_like(Z, -np.inf), np.full_like(Z, np.inf)
    for _ in range(MAX_NEWTON):
        _, first, second = evaluate_terms(terms, Z)
        with np.errstate(invalid="ignore"):
            error = first - targets
        high, low = np.where(error > 0.0, np.minimum(high, Z), high), np.where(error <= 0.0, np.maximum(low, Z), low)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            step = np.clip(np.where(error == 0.0, 0.0, -error / second), -50.0, 50.0)
        step = np.where(np.isnan(step), 0.0, step)
        trial = Z + step
        with np.errstate(invalid="ignore"):
            middle = 0.5 * (low + high)
        outside = (trial <= low) | (trial >= high)
        trial = np.where(outside & np.isfinite(middle) & (error != 0.0), middle, trial)
        if np.all(np.abs(trial - Z) <= 1e-15 * (1.0 + np.abs(Z))):
            break
        Z = trial
    _, first, _ = evaluate_terms(terms, Z)
    with np.errstate(over="ignore", invalid="ignore"):
        size = np.sum(np.abs(first), axis=1) + np.sum(np.abs(targets), axis=1)
        return Z, np.sum(np.abs(first - targets), axis=1) <= 1e-9 * size
