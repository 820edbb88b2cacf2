r"""An independent route to the support function, and instances to try it on.

``cvxpy_support`` and ``cvxpy_minimum`` solve the same problems as ``likeset._solver`` by a general conic
solver (CVXPY + Clarabel). They share no code with the library beyond the data types. A conic solver is a
witness, not a judge: on badly conditioned sets it can be off by more than 1e-6, or fail. Hence

* ``evaluate`` computes F in extended precision, to check any claimed point;
* ``CvxpySupport.feasible_values`` pulls the solver's points into the set until they are feasible in extended
  precision. What it returns is *attained*, so a true outer bound must not lie below it.

``instance`` makes random sets of every kind in every regime that has broken a solver before.
"""

from __future__ import annotations

import warnings
from dataclasses import replace

import cvxpy as cp
import numpy as np

from likeset._solver.problem import CurveTerms, LevelSet, PointTerms, Terms
from likeset._typing import Array
from likeset.curves import Curve

KINDS = ("gaussian", "poisson", "bernoulli", "weibull", "laplace")

REGIMES = (
    "regular",
    "ball active",
    "fewer covariates than dimensions",
    "near-empty",
    "tiny slack",
    "huge slack",
    "duplicates",
    "badly scaled",
    "separable",
    "one observation",
    "zero column",
    "dim 1",
)

TIGHT = dict(tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11, max_iter=200)


# ---------------------------------------------------------------------------------------------------------
# F itself, in extended precision
# ---------------------------------------------------------------------------------------------------------


def term_values(terms: Terms, Z: Array) -> Array:
    """phi_k(z_k) for Z of shape (..., K), in the precision of Z."""
    if isinstance(terms, CurveTerms):
        curve = {
            Curve.QUADRATIC: lambda z: z * z / 2,
            Curve.EXPONENTIAL: np.exp,
            Curve.SOFTPLUS: lambda z: np.logaddexp(np.zeros_like(z), z),
        }[terms.curve]
        with np.errstate(over="ignore"):
            if terms.origins is None:
                return terms.a * curve(Z) - terms.s * Z
            o = terms.origins.astype(Z.dtype)
            slope = o if terms.curve == Curve.QUADRATIC else np.exp(o)
            return terms.a * (curve(Z) - curve(o) - slope * (Z - o)) - terms.s * (Z - o)
    if isinstance(terms, PointTerms):
        owner = np.repeat(np.arange(len(terms.starts) - 1), np.diff(terms.starts))
        out = np.zeros_like(Z)
        np.add.at(out, (..., owner), terms.weights * np.abs(terms.points - Z[..., owner]))
        return out
    return terms.evaluate(np.asarray(Z, dtype=float))[0]


def evaluate(level_set: LevelSet, theta: Array) -> Array:
    """F(theta) for theta of shape (..., d), in extended precision."""
    Z = np.asarray(theta, dtype=np.longdouble) @ level_set.X.T.astype(np.longdouble)
    return term_values(level_set.terms, Z).sum(axis=-1)


def violation(level_set: LevelSet, theta: Array) -> Array:
    """How far theta (..., d) is outside: F - level over 1 + sum |phi_k|, or |theta|/bound - 1 if larger."""
    theta = np.asarray(theta, dtype=np.longdouble)
    values = term_values(level_set.terms, theta @ level_set.X.T.astype(np.longdouble))
    beyond = (values.sum(axis=-1) - level_set.level) / (1 + np.abs(values).sum(axis=-1))
    return np.maximum(beyond, np.sqrt((theta * theta).sum(axis=-1)) / level_set.bound - 1)


def is_inside(level_set: LevelSet, theta: Array) -> bool:
    """Membership in extended precision, without any allowance for rounding."""
    theta = np.asarray(theta, dtype=np.longdouble)
    return bool(evaluate(level_set, theta) <= level_set.level and theta @ theta <= level_set.bound**2)


# ---------------------------------------------------------------------------------------------------------
# CVXPY
# ---------------------------------------------------------------------------------------------------------


def cvxpy_objective(level_set: LevelSet, theta: cp.Variable) -> cp.Expression:
    """F as a CVXPY expression."""
    terms = level_set.terms
    z = level_set.X @ theta
    if isinstance(terms, PointTerms):
        owner = np.repeat(np.arange(len(terms.starts) - 1), np.diff(terms.starts))
        return terms.weights @ cp.abs(terms.points - z[owner])
    if not isinstance(terms, CurveTerms):
        raise TypeError("CVXPY cannot express a user's callable")
    if terms.origins is not None:
        z = z - terms.origins
    if terms.curve == Curve.QUADRATIC:
        return cp.sum_squares(cp.multiply(np.sqrt(terms.a), z)) / 2 - terms.s @ z
    if terms.origins is not None:
        a = terms.a * np.exp(terms.origins)
        return a @ (cp.exp(z) - 1 - z) - terms.s @ z
    atom = cp.exp if terms.curve == Curve.EXPONENTIAL else cp.logistic
    return terms.a @ atom(z) - terms.s @ z


def level_constraint(level_set: LevelSet, theta: cp.Variable) -> list[cp.Constraint]:
    """F(theta) <= level; a quadratic F with all a_k > 0 as a norm, which Clarabel solves reliably."""
    terms = level_set.terms
    if not len(level_set.X) or not np.isfinite(level_set.level):
        return []
    if isinstance(terms, CurveTerms) and terms.curve == Curve.QUADRATIC and np.all(terms.a > 0):
        root = np.sqrt(terms.a)
        squared_radius = 2 * level_set.level + np.sum(terms.s**2 / terms.a)
        if squared_radius > 0:
            residual = (root[:, None] * level_set.X) @ theta - terms.s / root
            residual = residual if terms.origins is None else residual - root * terms.origins
            return [cp.norm(residual, 2) <= np.sqrt(squared_radius)]
    return [cvxpy_objective(level_set, theta) <= level_set.level]


def ball(level_set: LevelSet, theta: cp.Variable) -> list[cp.Constraint]:
    """|theta| <= bound, or nothing when the bound is infinite."""
    return [cp.norm(theta, 2) <= level_set.bound] if np.isfinite(level_set.bound) else []


def run(problem: cp.Problem, settings: dict[str, float]) -> str:
    """Solve with Clarabel; the status, or "failed". Where tight tolerances fail, the default ones may not."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for attempt in (settings, {}) if settings else ({},):
            try:
                problem.solve(solver=cp.CLARABEL, **attempt)
            except cp.error.SolverError:
                continue
            return problem.status
    return "failed"


class CvxpySupport:
    """max a'theta over one level set: compiled once, the direction a parameter.

    ``tight=False`` leaves Clarabel at its default tolerances (1e-8), the fair setting for timing.
    """

    def __init__(self, level_set: LevelSet, tight: bool = True) -> None:
        d = level_set.X.shape[1]
        self.level_set = level_set
        self.settings = TIGHT if tight else {}
        self.theta = cp.Variable(d)
        self.direction = cp.Parameter(d)
        constraints = ball(level_set, self.theta) + level_constraint(level_set, self.theta)
        self.problem = cp.Problem(cp.Maximize(self.direction @ self.theta), constraints)

    def compile(self) -> None:
        """Do the once-per-set work now, so that timings see only solves."""
        self.direction.value = np.zeros(self.theta.size)
        self.problem.get_problem_data(cp.CLARABEL)

    def solve(self, A: Array) -> tuple[Array, Array]:
        """Values (n,) and points (n, d); +inf unbounded, -inf infeasible, nan where the solver failed."""
        A = np.atleast_2d(A)
        values = np.full(len(A), np.nan)
        points = np.full(A.shape, np.nan)
        for i, a in enumerate(A):
            self.direction.value = a
            status = run(self.problem, self.settings)
            if status in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE):
                values[i], points[i] = self.problem.value, self.theta.value
            elif status in (cp.UNBOUNDED, cp.UNBOUNDED_INACCURATE):
                values[i] = np.inf
            elif status in (cp.INFEASIBLE, cp.INFEASIBLE_INACCURATE):
                values[i] = -np.inf
        return values, points

    def feasible_values(self, A: Array, inside: Array | None = None) -> Array:
        """Values attained by points that are feasible in extended precision (-inf where none was found).

        The solver's point is pulled towards ``inside`` (default: the minimiser of F over the ball) just as
        far as needed. No valid outer bound lies below these numbers.
        """
        A = np.atleast_2d(A)
        inside = cvxpy_minimum(self.level_set)[1] if inside is None else inside
        points = self.solve(A)[1]
        out = np.full(len(A), -np.inf)
        if not is_inside(self.level_set, inside):
            return out
        for i, (a, point) in enumerate(zip(A, points, strict=True)):
            if np.isfinite(point).all():
                out[i] = float(a.astype(np.longdouble) @ pull_inside(self.level_set, point, inside))
        return out


def pull_inside(level_set: LevelSet, point: Array, inside: Array) -> Array:
    """The point nearest to ``point`` on its segment to ``inside`` (a member) found to be in the set."""
    inside = np.asarray(inside, dtype=np.longdouble)
    step = np.asarray(point, dtype=np.longdouble) - inside
    good, bad = np.longdouble(0), np.longdouble(1)
    if is_inside(level_set, inside + step):
        return inside + step
    for _ in range(70):
        middle = (good + bad) / 2
        good, bad = (middle, bad) if is_inside(level_set, inside + middle * step) else (good, middle)
    return inside + good * step


def cvxpy_support(level_set: LevelSet, A: Array) -> Array:
    """max a'theta over the set for each row a of A: +inf unbounded, -inf infeasible, nan solver failure."""
    return CvxpySupport(level_set).solve(A)[0]


def cvxpy_minimum(level_set: LevelSet) -> tuple[float, Array]:
    """min F over the ball and a minimiser *inside the ball*; (-inf, nan) if unbounded, nan on failure.

    The value is F at the returned point in extended precision, so it is attained.
    """
    d = level_set.X.shape[1]
    if not len(level_set.X):
        return 0.0, np.zeros(d)
    theta = cp.Variable(d)
    problem = cp.Problem(cp.Minimize(cvxpy_objective(level_set, theta)), ball(level_set, theta))
    status = run(problem, TIGHT)
    if status in (cp.UNBOUNDED, cp.UNBOUNDED_INACCURATE):
        return -np.inf, np.full(d, np.nan)
    if status not in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE):
        return np.nan, np.full(d, np.nan)
    point = theta.value
    norm = np.linalg.norm(point)
    if norm > level_set.bound:
        point = point * (level_set.bound / norm * (1 - 2e-16))
    return float(evaluate(level_set, point)), point


# ---------------------------------------------------------------------------------------------------------
# Instances
# ---------------------------------------------------------------------------------------------------------


def instance(
    rng: np.random.Generator, family_kind: str, n_covariates: int, dim: int, regime: str = "regular"
) -> LevelSet:
    """A random level set around data simulated at a theta* with |theta*| <= bound.

    ``n_covariates`` and ``dim`` are what the regime starts from ("dim 1", "one observation" and "fewer
    covariates than dimensions" override them). All sets are non-empty: the level is F at some point of the
    ball plus a non-negative slack. For an empty set lower the level (see ``emptied``).
    """
    if regime not in REGIMES:
        raise ValueError(f"unknown regime {regime!r}; expected one of {REGIMES}")
    if regime == "dim 1":
        dim = 1
    if regime == "fewer covariates than dimensions":
        n_covariates = max(1, dim // 2)
    if regime == "one observation":
        n_covariates = 1

    X = rng.standard_normal((n_covariates, dim)) / np.sqrt(dim)
    if regime == "duplicates":
        X = X[rng.integers(0, max(1, n_covariates // 4), n_covariates)]
    if regime == "badly scaled":
        X = X * 10.0 ** rng.uniform(-3, 1, dim)
    if regime == "zero column":
        X[:, 0] = 0.0

    bound = 3.0
    theta = rng.standard_normal(dim)
    theta *= bound / np.linalg.norm(theta) * (0.98 if regime == "ball active" else 0.4)
    z = np.clip(X @ theta, -3.0, 3.0)
    repeats = np.ones(n_covariates, dtype=int)
    if regime not in ("one observation", "ball active", "fewer covariates than dimensions"):
        repeats = rng.integers(1, 20, n_covariates)

    exact = regime == "tiny slack"  # noiseless statistics: theta* (clipping aside) minimises F
    terms = simulate_terms(rng, family_kind, X @ theta if exact else z, repeats, regime)
    level_set = LevelSet(X=X, terms=terms, level=0.0, bound=bound)
    start = float(evaluate(level_set, theta))

    if regime == "tiny slack":
        return replace(level_set, level=start + 1e-9 * (1 + abs(start)))
    if regime == "huge slack":
        return replace(level_set, level=start + 1e6)
    if regime == "near-empty":
        level_set = replace(level_set, bound=float(0.9 * np.linalg.norm(theta)))
        minimum, _ = cvxpy_minimum(level_set)
        return replace(level_set, level=minimum + 1e-6 * (1 + abs(minimum)))
    if regime == "ball active":
        return replace(level_set, level=start + 3.0)
    return replace(level_set, level=start + np.log(20.0) + 0.5 * min(dim, n_covariates))


def simulate_terms(
    rng: np.random.Generator, family_kind: str, z: Array, repeats: np.ndarray, regime: str
) -> CurveTerms | PointTerms:
    """Merged negative log-likelihood terms of ``repeats[k]`` observations at linear predictor z[k].

    "tiny slack" replaces the data by their means, so that F is minimal at z; "separable" gives counts that
    are all zero (Poisson), successes on one side only (Bernoulli), all censored (Weibull), far outliers else.
    """
    exact, extreme = regime == "tiny slack", regime == "separable"
    n = repeats.astype(float)
    if family_kind == "gaussian":
        sigma = 0.5
        noise = 0.0 if exact else rng.standard_normal(len(z)) * sigma * np.sqrt(n)
        total = n * z + noise + (10 * sigma * n * np.sign(z) if extreme else 0.0)
        return CurveTerms(Curve.QUADRATIC, n / sigma**2, total / sigma**2)
    if family_kind == "poisson":
        total = n * np.exp(z) if exact else rng.poisson(n * np.exp(z)).astype(float)
        return CurveTerms(Curve.EXPONENTIAL, n, np.zeros_like(n) if extreme else total)
    if family_kind == "bernoulli":
        p = 1 / (1 + np.exp(-z))
        total = n * p if exact else rng.binomial(repeats, p).astype(float)
        return CurveTerms(Curve.SOFTPLUS, n, n * (z > 0) if extreme else total)
    if family_kind == "weibull":
        events = np.zeros_like(n) if extreme else n
        exposure = n * np.exp(-z) if exact else rng.gamma(n) * np.exp(-z)
        return CurveTerms(Curve.EXPONENTIAL, exposure, events)
    if family_kind == "laplace":
        scale = 0.5
        owner = np.repeat(np.arange(len(z)), repeats)
        noise = np.zeros(len(owner)) if exact else rng.laplace(0.0, scale, len(owner))
        points = z[owner] + noise + (20 * scale * np.sign(z[owner]) if extreme else 0.0)
        order = np.lexsort((points, owner))
        starts = np.concatenate(([0], np.cumsum(repeats))).astype(np.int64)
        return PointTerms(starts, points[order], np.full(len(owner), 1 / scale))
    raise ValueError(f"unknown kind {family_kind!r}; expected one of {KINDS}")


def emptied(level_set: LevelSet, margin: float = 1e-3) -> LevelSet:
    """The same set with its level below the minimum of F over the ball: an empty set."""
    minimum, _ = cvxpy_minimum(level_set)
    return replace(level_set, level=minimum - margin * (1 + abs(minimum)))
