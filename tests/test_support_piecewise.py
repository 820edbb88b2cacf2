"""The Laplace kernel against conic and linear programming, closed forms, and its own certificates."""

from __future__ import annotations

from dataclasses import replace

import cvxpy as cp
import numpy as np
import pytest
from scipy.optimize import linprog

from likeset._solver.absolute.kernel import minimise_penalised, prepare
from likeset._solver.problem import LevelSet, PointTerms
from likeset._typing import Array
from reference import REGIMES, CvxpySupport, cvxpy_minimum, emptied, evaluate, instance, violation


def make(X: Array, data: list[list[float]], level: float, bound: float, weight: float = 1.0) -> LevelSet:
    """A level set with the points data[k] at row k of X, all with the same weight."""
    starts = np.concatenate(([0], np.cumsum([len(points) for points in data]))).astype(np.int64)
    points = np.concatenate([np.sort(np.asarray(p, dtype=float)) for p in data]) if data else np.zeros(0)
    return LevelSet(np.asarray(X, dtype=float), PointTerms(starts, points, np.full(len(points), weight)), level, bound)


def linear_program(level_set: LevelSet, a: Array) -> float:
    """max a'theta without the ball, by a simplex or HiGHS interior point of scipy."""
    terms = level_set.terms
    assert isinstance(terms, PointTerms)
    X = level_set.X[np.repeat(np.arange(len(level_set.X)), np.diff(terms.starts))]
    n, d = X.shape
    constraints = np.block([[X, -np.eye(n)], [-X, -np.eye(n)], [np.zeros((1, d)), terms.weights[None, :]]])
    limits = np.concatenate([terms.points, -terms.points, [level_set.level]])
    result = linprog(
        -np.concatenate([a, np.zeros(n)]), constraints, limits, bounds=[(None, None)] * d + [(0, None)] * n
    )
    return np.inf if result.status == 3 else float(-result.fun)


@pytest.mark.parametrize("regime", REGIMES)
def test_agrees_with_conic_solver(regime: str) -> None:
    rng = np.random.default_rng([1, REGIMES.index(regime)])
    for _ in range(3):
        level_set = instance(rng, "laplace", int(rng.integers(2, 20)), int(rng.integers(2, 10)), regime)
        A = rng.standard_normal((4, level_set.X.shape[1]))
        A[0] = level_set.X[0]
        prepared = prepare(level_set)
        assert prepared.status == "regular"
        assert prepared.minimum_bound <= float(evaluate(level_set, prepared.centre))
        solution, mirrored = prepared.solve(A), prepared.solve(-A)
        half_width = (solution.upper + mirrored.upper) / 2
        # Attained by somebody: never above the outer bound. 1e-9 of the values is allowed for rounding.
        attained = CvxpySupport(level_set).feasible_values(A, prepared.centre)
        assert np.all(attained <= solution.upper + 1e-9 * np.abs(attained))
        assert all(float(violation(level_set, point)) < 1e-12 for point in solution.points)
        np.testing.assert_allclose(np.sum(A * solution.points, axis=1), solution.values, rtol=1e-12, atol=1e-12)
        # The gap is the tolerance, or the rounding error of F where the set is thin.
        scale = float(np.abs(level_set.terms.weights @ np.abs(level_set.terms.points))) + 1.0
        thickness = level_set.level - prepared.minimum_bound
        assert np.all(solution.upper - solution.values <= (1e-6 + 1e-12 * scale / thickness) * half_width)


@pytest.mark.parametrize("dimension", [1, 2, 5])
def test_no_ball_is_a_linear_program(dimension: int) -> None:
    rng = np.random.default_rng(dimension)
    X = rng.standard_normal((dimension + 3, dimension))
    data = [list(rng.laplace(size=rng.integers(1, 4))) for _ in X]
    level_set = make(X, data, 0.0, np.inf)
    level_set = replace(level_set, level=cvxpy_minimum(level_set)[0] + 2.0)
    A = rng.standard_normal((5, dimension))
    expected = [linear_program(level_set, a) for a in A]
    for bound in (np.inf, 1e9):
        solution = prepare(replace(level_set, bound=bound)).solve(A)
        np.testing.assert_allclose(solution.upper, expected, rtol=1e-6, atol=1e-7)
        np.testing.assert_allclose(solution.values, expected, rtol=1e-6, atol=1e-7)


def test_no_ball_and_not_spanning_is_unbounded_outside_the_span() -> None:
    X = np.array([[1.0, 2.0, 0.0], [2.0, 4.0, 0.0]])
    solution = prepare(make(X, [[1.0], [3.0]], 4.0, np.inf)).solve(np.array([X[0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]))
    # |1 - z| + |3 - 2 z| <= 4 for z in [0, 8/3]
    np.testing.assert_allclose(solution.upper[0], 8 / 3, rtol=1e-7)
    assert np.all(np.isinf(solution.upper[1:]))
    assert np.all(np.isfinite(solution.points))


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_one_point_closed_form(scale: float) -> None:
    # w |y - x theta| <= level, |theta| <= bound in one dimension
    for y, level, bound in [(2.0, 1.0, 10.0), (2.0, 1.0, 2.5), (-3.0, 0.5, np.inf), (2.0, 9.0, 1.0)]:
        level_set = make(np.array([[scale]]), [[y * scale]], 2.0 * level * scale, bound, weight=2.0)
        solution = prepare(level_set).solve(np.array([[1.0], [-1.0]]))
        expected = [min(y + level, bound), -max(y - level, -bound)]
        np.testing.assert_allclose(solution.upper, expected, rtol=2e-7)
        np.testing.assert_allclose(solution.values, expected, rtol=2e-7)


def test_identity_covariates_closed_form() -> None:
    # sum_k |y_k - theta_k| <= c: an l1 ball around y, support a'y + c max|a|; repeated points double the weight
    rng = np.random.default_rng(0)
    y, A = rng.standard_normal(6), rng.standard_normal((20, 6))
    for slack in (1e-6, 1.0, 1e3):
        level_set = make(np.eye(6), [[v, v] for v in y], 2 * slack, np.inf)
        expected = A @ y + slack * np.abs(A).max(axis=1)
        solution = prepare(level_set).solve(A)
        np.testing.assert_allclose(solution.upper, expected, rtol=0, atol=1e-6 * slack)
        assert np.all(solution.upper >= expected - 1e-12)
        assert np.all(solution.values <= expected + 1e-12)


def test_trivial_sets() -> None:
    A = np.array([[3.0, 4.0], [0.0, 0.0]])
    no_data = make(np.zeros((0, 2)), [], 1.0, 2.0)
    no_level = make(np.eye(2), [[1.0], [5.0]], np.inf, 2.0)
    flat = make(np.zeros((1, 2)), [[1.0]], 1.5, 2.0)
    for level_set in (no_data, no_level, flat):
        prepared = prepare(level_set)
        assert prepared.status == "regular"
        solution = prepared.solve(A)
        np.testing.assert_allclose(solution.upper, [10.0, 0.0], rtol=1e-14)
        np.testing.assert_allclose(solution.values, [10.0, 0.0], rtol=1e-14)
        unbounded = prepare(replace(level_set, bound=np.inf))
        assert unbounded.solve(A).upper[1] == 0.0
    assert np.isinf(prepare(replace(no_data, bound=np.inf)).solve(A).upper[0])
    assert prepare(replace(flat, level=0.5)).status == "empty"
    assert prepare(replace(no_data, level=-0.5)).status == "empty"


def test_observations_that_are_all_zero() -> None:
    # |theta_1| + |theta_2| <= 1: the largest |a_i| in direction a, unless the ball is smaller
    diamond = make(np.eye(2), [[0.0], [0.0]], 1.0, 2.0)
    A = np.array([[3.0, 1.0], [0.0, -2.0]])
    for bound in (2.0, np.inf):
        solution = prepare(replace(diamond, bound=bound)).solve(A)
        np.testing.assert_allclose(solution.upper, [3.0, 2.0], rtol=1e-6)
        np.testing.assert_allclose(solution.values, [3.0, 2.0], rtol=1e-6)
    np.testing.assert_allclose(prepare(replace(diamond, bound=0.5)).solve(A).upper, [np.sqrt(2.5), 1.0], rtol=1e-6)
    assert prepare(replace(diamond, level=-0.5)).status == "empty"


def test_a_point_far_outside_the_ball_is_a_half_space() -> None:
    # |100 - theta_1| <= 99 means theta_1 >= 1: the only point is folded into a straight line
    level_set = make(np.array([[1.0, 0.0]]), [[100.0]], 99.0, 2.0)
    solution = prepare(level_set).solve(np.array([[-1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]))
    np.testing.assert_allclose(solution.upper, [-1.0, np.sqrt(3.0), 2.0], rtol=1e-7)
    np.testing.assert_allclose(solution.values, [-1.0, np.sqrt(3.0), 2.0], rtol=1e-6)


@pytest.mark.parametrize("regime", ["regular", "ball active", "fewer covariates than dimensions"])
def test_empty_sets_are_certified(regime: str) -> None:
    rng = np.random.default_rng(5)
    level_set = instance(rng, "laplace", 12, 4, regime)
    if regime == "fewer covariates than dimensions":  # otherwise F reaches 0
        level_set = replace(level_set, bound=0.1)
    empty = prepare(emptied(level_set, 1e-7))
    assert empty.status == "empty"
    assert empty.minimum_bound > empty.level_set.level
    assert empty.minimum_bound <= cvxpy_minimum(level_set)[0] * (1 + 1e-12)
    assert np.all(empty.solve(np.eye(4)).upper == -np.inf)


def test_single_points() -> None:
    y = np.array([0.3, -0.2, 0.7])
    prepared = prepare(make(np.eye(3), [[v] for v in y], 0.0, 2.0))
    assert prepared.status == "point"
    A = np.random.default_rng(0).standard_normal((5, 3))
    solution = prepared.solve(A)
    np.testing.assert_allclose(solution.upper, A @ y, atol=1e-11)
    np.testing.assert_allclose(solution.values, A @ y, atol=1e-11)
    assert np.all(solution.upper >= A @ y)


def test_thin_in_some_directions_and_wide_in_others() -> None:
    # X theta = y up to 1e-9: an affine subspace cut with the ball, max a'theta_0 + |P a| sqrt(bound^2 - |theta_0|^2)
    rng = np.random.default_rng(9)
    for n_covariates, dimension in [(1, 2), (5, 7), (9, 10)]:
        X = rng.standard_normal((n_covariates, dimension))
        middle = np.linalg.pinv(X) @ X @ (0.3 * rng.standard_normal(dimension))
        level_set = make(X, [[v] * 10 for v in X @ middle], 1e-9, 3.0)
        A = rng.standard_normal((40, dimension))  # more than are solved side by side
        outside = A - A @ np.linalg.pinv(X) @ X
        expected = A @ middle + np.linalg.norm(outside, axis=1) * np.sqrt(9.0 - middle @ middle)
        solution = prepare(level_set).solve(A)
        np.testing.assert_allclose(solution.upper, expected, rtol=0, atol=1e-6)
        assert np.all(solution.upper >= expected - 1e-12)
        np.testing.assert_allclose(solution.values, expected, rtol=0, atol=1e-6)


def test_outer_bounds_hold_before_convergence() -> None:
    rng = np.random.default_rng(3)
    for regime in ("regular", "ball active", "duplicates"):
        level_set = instance(rng, "laplace", 15, 6, regime)
        A = rng.standard_normal((6, 6))
        prepared = prepare(level_set)
        exact, rough = prepared.solve(A), prepared.solve(A, tolerance=0.5)
        assert np.all(rough.upper >= exact.values)
        assert np.all(rough.values <= exact.upper)
        assert np.max((rough.upper - exact.upper) / np.abs(exact.upper)) > 1e-4  # indeed not converged


def test_many_observations_are_folded() -> None:
    rng = np.random.default_rng(8)
    X = rng.standard_normal((10, 3))
    data = [list(x @ [0.5, 0.2, -0.3] + rng.laplace(size=400)) for x in X]
    level_set = make(X, data, 0.0, 3.0)
    level_set = replace(level_set, level=float(evaluate(level_set, np.array([0.5, 0.2, -0.3]))) + 5.0)
    prepared = prepare(level_set)
    assert prepared.problem is not None
    assert len(prepared.problem.weights) < 0.5 * 4000
    A = rng.standard_normal((4, 3))
    solution = prepared.solve(A)
    np.testing.assert_allclose(solution.upper, CvxpySupport(level_set).solve(A)[0], rtol=1e-6)
    assert all(float(violation(level_set, point)) < 1e-12 for point in solution.points)


def test_units_do_not_matter() -> None:
    rng = np.random.default_rng(4)
    level_set = instance(rng, "laplace", 14, 5, "regular")
    terms = level_set.terms
    assert isinstance(terms, PointTerms)
    A = rng.standard_normal((4, 5))
    expected = prepare(level_set).solve(A).upper
    for x_unit, w_unit, y_unit in [(1e8, 1.0, 1.0), (1.0, 1e-9, 1.0), (1e-5, 1e7, 1e4)]:
        scaled = LevelSet(
            level_set.X * x_unit,
            PointTerms(terms.starts, terms.points * y_unit, terms.weights * w_unit),
            level_set.level * w_unit * y_unit,
            level_set.bound * y_unit / x_unit,
        )
        upper = prepare(scaled).solve(A * 1e3).upper * x_unit / y_unit / 1e3
        np.testing.assert_allclose(upper, expected, rtol=1e-6)


@pytest.mark.parametrize(("ridge", "bound"), [(0.5, 3.0), (2.0, 0.4), (1e-3, np.inf), (50.0, 3.0)])
def test_penalised_minimiser(ridge: float, bound: float) -> None:
    rng = np.random.default_rng(6)
    for n_covariates, dimension in [(1, 3), (12, 4), (30, 10)]:
        X = rng.standard_normal((n_covariates, dimension))
        data = [list(rng.laplace(size=rng.integers(1, 4)) + X[k, 0]) for k in range(n_covariates)]
        level_set = make(X, data, 0.0, bound, weight=2.0)

        def penalised(theta: Array, level_set: LevelSet = level_set) -> float:
            return float(evaluate(level_set, theta)) + ridge * float(theta @ theta)

        theta = cp.Variable(dimension)
        rows = X[np.repeat(np.arange(n_covariates), np.diff(level_set.terms.starts))]
        cost = 2.0 * cp.norm1(level_set.terms.points - rows @ theta) + ridge * cp.sum_squares(theta)
        ball = [cp.norm(theta) <= bound] if np.isfinite(bound) else []
        cp.Problem(cp.Minimize(cost), ball).solve(solver=cp.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11)
        for start in (None, rng.standard_normal(dimension)):
            found = minimise_penalised(X, level_set.terms, ridge, bound, start)
            assert np.linalg.norm(found) <= bound * (1 + 1e-12)
            assert penalised(found) <= penalised(theta.value) * (1 + 1e-8)


def test_penalised_minimiser_of_zero_data_is_zero() -> None:
    X = np.random.default_rng(0).standard_normal((3, 2))
    terms = PointTerms(np.arange(4), np.zeros(3), np.ones(3))
    np.testing.assert_array_equal(minimise_penalised(X, terms, 1.0, 1.0), np.zeros(2))
