"""The quadratic kernel against CVXPY, closed forms and brute force.

The outer bound is held to three standards: it is never below an attained value (extended precision), it
agrees with the conic solver where that is trustworthy, and it equals closed forms where these exist.
"""

from __future__ import annotations

from dataclasses import replace
from math import inf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from likeset._solver.linalg.eigen import SMALL, TINY, eigen
from likeset._solver.problem import CurveTerms, LevelSet
from likeset._solver.quadratic import kernel as quadratic
from likeset._solver.quadratic.pencil import pencil
from likeset._typing import EPS, Array
from likeset.curves import Curve
from reference import (
    REGIMES,
    CvxpySupport,
    cvxpy_minimum,
    cvxpy_support,
    emptied,
    evaluate,
    instance,
    violation,
)

SHAPES = ((24, 6), (64, 12), (40, 30))


def quadratic_set(X: Array, a: Array, s: Array, level: float, bound: float) -> LevelSet:
    X, a, s = (np.asarray(v, dtype=float) for v in (X, a, s))
    return LevelSet(X=X, terms=CurveTerms(Curve.QUADRATIC, a, s), level=level, bound=bound)


def half_widths(prepared: quadratic.Prepared, A: Array) -> Array:
    return (prepared.solve(A).upper + prepared.solve(-A).upper) / 2


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("regime", REGIMES)
def test_agrees_with_a_conic_solver(regime: str, shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(11)
    level_set = instance(rng, "gaussian", *shape, regime)
    A = rng.standard_normal((4, level_set.X.shape[1]))
    prepared = quadratic.prepare(level_set)
    solution = prepared.solve(A)
    witness = CvxpySupport(level_set)
    values, _ = witness.solve(A)
    attained = witness.feasible_values(A)

    assert prepared.status == "regular"
    assert np.all(solution.upper >= attained - 1e-9 * np.abs(attained))
    trusted = np.abs(values - attained) <= 1e-6 * np.abs(values)
    np.testing.assert_allclose(solution.upper[trusted], values[trusted], rtol=1e-6)
    assert trusted.sum() >= 2 or regime == "badly scaled"


@pytest.mark.parametrize("regime", REGIMES)
def test_values_are_attained_and_the_gap_is_closed(regime: str) -> None:
    rng = np.random.default_rng(12)
    for shape in SHAPES:
        level_set = instance(rng, "gaussian", *shape, regime)
        A = rng.standard_normal((50, level_set.X.shape[1]))
        prepared = quadratic.prepare(level_set)
        solution = prepared.solve(A)
        assert violation(level_set, solution.points).max() < 1e-13
        np.testing.assert_allclose(np.sum(A * solution.points, axis=1), solution.values, rtol=1e-12, atol=1e-13)
        # a tiny set is enlarged by the rounding error of its level, 1e-14 of F: a visible share of its width
        allowed = 1e-4 if regime == "tiny slack" else 2e-7
        gap = solution.upper - solution.values
        assert np.all(gap >= 0)
        assert np.all(gap <= allowed * half_widths(prepared, A))


def test_the_bound_dominates_random_points_of_the_set() -> None:
    rng = np.random.default_rng(13)
    for regime in ("regular", "ball active", "zero column"):
        level_set = instance(rng, "gaussian", 20, 4, regime)
        prepared = quadratic.prepare(level_set)
        scatter = prepared.centre + rng.standard_normal((200_000, 4)) * rng.uniform(0, 2, (200_000, 1))
        inside = scatter[violation(level_set, scatter) <= 0]
        A = rng.standard_normal((30, 4))
        assert len(inside) > 100
        assert np.all(prepared.solve(A).upper >= (inside @ A.T).max(axis=0))


@pytest.mark.parametrize("regime", REGIMES)
def test_every_ellipsoid_of_the_pencil_is_an_outer_bound(regime: str) -> None:
    rng = np.random.default_rng(14)
    level_set = instance(rng, "gaussian", 24, 6, regime)
    prepared = quadratic.prepare(level_set)
    cut = prepared.cut
    A = rng.standard_normal((20, level_set.X.shape[1]))
    solution = prepared.solve(A)
    for a, value in zip(A, solution.values, strict=True):
        alpha = prepared.basis.T @ a
        outside = float(np.linalg.norm(a - prepared.basis @ alpha))
        for rho in 10.0 ** rng.uniform(-6, 6, 10):
            ceiling = pencil(rho, alpha, outside, cut.lowered, cut.gradient, cut.origin, cut.slack, cut.room)[0]
            assert a @ prepared.centre + ceiling >= value - 1e-12 * abs(value)


def test_slope_of_the_root_function() -> None:
    rng = np.random.default_rng(15)
    h, g, origin, alpha = rng.uniform(0, 3, 5), *rng.standard_normal((3, 5))
    for outside in (0.0, 0.7):
        for rho in (0.3, 2.0):
            arguments = (alpha, outside, h, g, origin, 1.5, 2.0)
            step = 1e-6 * rho
            numeric = (pencil(rho + step, *arguments)[3] - pencil(rho - step, *arguments)[3]) / (2 * step)
            assert pencil(rho, *arguments)[4] == pytest.approx(numeric, rel=1e-7)


def test_closed_form_of_an_ellipsoid() -> None:
    rng = np.random.default_rng(16)
    X, a, s = rng.standard_normal((30, 7)), rng.uniform(1, 5, 30), rng.standard_normal(30)
    H, b = (X.T * a) @ X, X.T @ s
    centre = np.linalg.solve(H, b)
    level = -0.5 * b @ centre + 2.0
    A = rng.standard_normal((40, 7))
    exact = A @ centre + np.sqrt(2 * 2.0 * np.sum(A * np.linalg.solve(H, A.T).T, axis=1))
    for bound in (inf, 100.0):
        solution = quadratic.prepare(quadratic_set(X, a, s, level, bound)).solve(A)
        np.testing.assert_allclose(solution.upper, exact, rtol=1e-12)
        assert np.all(solution.upper >= exact * (1 - 1e-14 * np.sign(exact)))


def test_the_ball_alone() -> None:
    A = np.random.default_rng(17).standard_normal((9, 3))
    expected = 2.0 * np.linalg.norm(A, axis=1)
    empty_data = quadratic_set(np.empty((0, 3)), [], [], 0.0, 2.0)
    no_level = quadratic_set(np.eye(3), np.ones(3), np.ones(3), inf, 2.0)
    no_weight = quadratic_set(np.eye(3), np.zeros(3), np.zeros(3), 0.0, 2.0)
    for level_set in (empty_data, no_level, no_weight):
        prepared = quadratic.prepare(level_set)
        solution = prepared.solve(A)
        assert prepared.status in ("regular", "point")
        np.testing.assert_allclose(solution.upper, expected, rtol=1e-13)
        np.testing.assert_allclose(solution.points, A * (2.0 / np.linalg.norm(A, axis=1))[:, None], rtol=1e-12)


def test_unbounded_sets() -> None:
    # F sees the first two coordinates only
    X = np.array([[1.0, 0, 0], [0, 1, 0], [1, 1, 0]])
    level_set = quadratic_set(X, np.ones(3), np.ones(3), 1.0, inf)
    solution = quadratic.prepare(level_set).solve(np.array([[1.0, 2, 0], [0, 0, 1], [1, 0, -1e-3], [0, 0, 0]]))
    bounded = quadratic.prepare(replace(level_set, X=X[:, :2])).solve(np.array([[1.0, 2]]))
    assert solution.upper[0] == pytest.approx(bounded.upper[0], rel=1e-12)
    assert np.all(solution.upper[1:3] == inf)
    assert solution.upper[3] == solution.values[3] == 0.0
    nothing = quadratic.prepare(quadratic_set(np.empty((0, 2)), [], [], 1.0, inf))
    assert np.array_equal(nothing.solve(np.array([[1.0, 0], [0, 0]])).upper, [inf, 0.0])
    no_level = quadratic.prepare(replace(level_set, level=inf))
    assert np.array_equal(no_level.solve(np.array([[1.0, 0, 0], [0, 0, 0]])).upper, [inf, 0.0])


def test_directions_in_the_span_are_bounded_without_a_ball() -> None:
    rng = np.random.default_rng(18)
    for K, d in ((3, 10), (8, 10)):
        X = rng.standard_normal((K, d))
        level_set = quadratic_set(X, rng.uniform(1, 9, K), rng.standard_normal(K), 2.0, inf)
        solution = quadratic.prepare(level_set).solve(X)
        # in the span the ball is all that is missing: a huge one changes nothing
        huge = quadratic.prepare(replace(level_set, bound=1e4)).solve(X)
        assert np.all(np.isfinite(solution.upper))
        np.testing.assert_allclose(solution.upper, huge.upper, rtol=1e-6)
        assert np.all(quadratic.prepare(level_set).solve(rng.standard_normal((5, d))).upper == inf)


def test_linear_terms_without_curvature() -> None:
    # F(theta) = theta_1^2 / 2 - theta_2 <= 0: a parabola, bounded by the ball only
    X, a, s = np.eye(2), np.array([1.0, 0.0]), np.array([0.0, 1.0])
    level_set = quadratic_set(X, a, s, 0.0, 1.5)
    A = np.array([[1.0, 0], [0, 1], [0, -1], [1, -1], [-2, -0.1]])
    np.testing.assert_allclose(quadratic.prepare(level_set).solve(A).upper, cvxpy_support(level_set, A), atol=1e-6)
    assert np.all(quadratic.prepare(replace(level_set, bound=inf)).solve(A).upper == inf)


@pytest.mark.parametrize("regime", REGIMES)
def test_empty_sets_are_certified(regime: str) -> None:
    level_set = instance(np.random.default_rng(19), "gaussian", 24, 6, regime)
    minimum, _ = cvxpy_minimum(level_set)
    prepared = quadratic.prepare(level_set)
    assert prepared.minimum_bound <= minimum + 1e-12 * abs(minimum)
    assert prepared.minimum_bound == pytest.approx(minimum, rel=1e-6, abs=1e-6)
    for margin in (1e-3, 1e-6):
        hollow = quadratic.prepare(emptied(level_set, margin))
        assert hollow.status == "empty"
        assert np.all(hollow.solve(np.ones((2, level_set.X.shape[1]))).upper == -inf)


def test_empty_without_data_and_without_a_ball() -> None:
    assert quadratic.prepare(quadratic_set(np.empty((0, 2)), [], [], -1.0, 1.0)).status == "empty"
    assert quadratic.prepare(quadratic_set(np.eye(2), [1, 1], [1, 1], -2.0, inf)).status == "empty"
    assert quadratic.prepare(quadratic_set(np.eye(2), [1, 1], [1, 1], -inf, 1.0)).status == "empty"


def test_single_points() -> None:
    rng = np.random.default_rng(20)
    X, a = rng.standard_normal((12, 4)), rng.uniform(1, 3, 12)
    theta = np.array([0.5, -0.2, 0.1, 0.3])
    s = a * (X @ theta)  # F is minimal at theta
    for bound in (inf, 3.0, float(np.linalg.norm(theta))):
        level_set = quadratic_set(X, a, s, 0.0, bound)
        level_set = replace(level_set, level=float(evaluate(level_set, theta)))
        prepared = quadratic.prepare(level_set)
        A = rng.standard_normal((10, 4))
        solution = prepared.solve(A)
        assert prepared.status == "point"
        assert np.all(solution.upper >= A @ theta - 1e-14)
        np.testing.assert_allclose(solution.upper, A @ theta, atol=1e-6)


def test_zero_slack_on_a_line() -> None:
    # theta_1 = 0 exactly, theta_2 free in the ball: the best ellipsoid is the limit rho -> 0
    prepared = quadratic.prepare(quadratic_set([[1.0, 0.0]], [4.0], [0.0], 0.0, 2.0))
    upper = prepared.solve(np.array([[0.0, 1.0], [3.0, 4.0], [1.0, 0.0]])).upper
    np.testing.assert_allclose(upper, [2.0, 8.0, 0.0], atol=2e-6)
    assert np.all(upper >= [2.0, 8.0, 0.0])


def test_weak_curvature_beside_strong_is_resolved() -> None:
    # eigenvalues 1e14 and 1: from X'X alone the weak one would carry an error of 1 per cent
    rng = np.random.default_rng(21)
    Q = np.linalg.qr(rng.standard_normal((2, 2)))[0]
    X = np.diag([1e7, 1.0]) @ Q.T
    for bound in (inf, 50.0):
        solution = quadratic.prepare(quadratic_set(X, np.ones(2), np.zeros(2), 0.5, bound)).solve(Q.T)
        np.testing.assert_allclose(solution.upper, [1e-7, 1.0], rtol=1e-6)
        assert np.all(solution.upper >= np.array([1e-7, 1.0]) * (1 - 1e-9))


@settings(max_examples=60, deadline=None)
@given(
    exponent=st.integers(-8, 8),
    direction_exponent=st.integers(-8, 8),
    seed=st.integers(0, 2**32 - 1),
    regime=st.sampled_from(REGIMES),
)
def test_scale_equivariance(exponent: int, direction_exponent: int, seed: int, regime: str) -> None:
    """Theta measured in other units: X / c and c B give the set c C; and h(t a) = t h(a)."""
    rng = np.random.default_rng(seed)
    level_set = instance(rng, "gaussian", 12, 5, regime)
    A = rng.standard_normal((3, level_set.X.shape[1]))
    c, t = 10.0**exponent, 10.0**direction_exponent
    scaled = replace(level_set, X=level_set.X / c, bound=level_set.bound * c)
    expected = quadratic.prepare(level_set).solve(A).upper * c * t
    widths = half_widths(quadratic.prepare(level_set), A) * c * t
    np.testing.assert_array_less(np.abs(quadratic.prepare(scaled).solve(t * A).upper - expected), 1e-6 * widths)


def test_rejects_other_terms() -> None:
    level_set = instance(np.random.default_rng(22), "laplace", 5, 2)
    with pytest.raises(TypeError, match="CurveTerms"):
        quadratic.prepare(level_set)


@pytest.mark.parametrize("shape", ((24, 6), (3, 8)))  # in the second the kernel works in the span of X
@pytest.mark.parametrize("bound", (inf, 1.5))
def test_lengths_outside_are_one_more_coordinate(shape: tuple[int, int], bound: float) -> None:
    rng = np.random.default_rng(23)
    level_set = replace(instance(rng, "gaussian", *shape), bound=bound)
    prepared = quadratic.prepare(level_set)
    A, outside = rng.standard_normal((40, shape[1])), np.abs(rng.standard_normal(40))
    outside[:10] = 0.0
    padded = replace(level_set, X=np.column_stack([level_set.X, np.zeros(shape[0])]))
    expected = quadratic.prepare(padded).solve(np.column_stack([A, outside]))
    solution = prepared.solve(A, outside=outside)
    np.testing.assert_allclose(solution.upper, expected.upper, rtol=1e-7)
    assert np.array_equal(prepared.bounds(A, outside), solution.upper)
    finite = np.isfinite(solution.upper)
    assert finite.any() or (bound == inf and shape[0] < shape[1])
    assert violation(padded, solution.points[finite]).max(initial=0.0) < 1e-13
    attained = np.sum(np.column_stack([A, outside]) * solution.points, axis=1)
    np.testing.assert_allclose(attained[finite], solution.values[finite], rtol=1e-12)


@pytest.mark.parametrize("n", (0, 1, 2, 3, TINY, TINY + 1, 12, 30, SMALL, SMALL + 1))
def test_eigenvectors_of_small_matrices(n: int) -> None:
    """Against LAPACK, in units of eps |H|; with repeated, zero and widely spread eigenvalues."""
    rng = np.random.default_rng(24)
    Q = np.linalg.qr(rng.standard_normal((n, n)))[0]
    spectra = (
        rng.uniform(0, 1, n),
        10.0 ** rng.uniform(-16, 0, n),
        np.repeat(rng.uniform(0, 1, n), 3)[:n],
        np.zeros(n),
    )
    matrices = [(Q * spectrum) @ Q.T for spectrum in spectra] + [np.ones((n, n)), np.diag(rng.uniform(-1, 1, n))]
    for H in matrices:
        for scale in (1.0, 1e-90, 1e90):
            values, vectors = eigen(scale * (H + H.T))
            allowed = 40 * EPS * max(n, 1) * np.abs(values).max(initial=0.0)
            assert np.all(np.diff(values) >= 0)
            np.testing.assert_allclose(values, np.linalg.eigvalsh(scale * (H + H.T)), rtol=0, atol=allowed)
            np.testing.assert_allclose((vectors * values) @ vectors.T, scale * (H + H.T), rtol=0, atol=allowed)
            np.testing.assert_allclose(vectors.T @ vectors, np.eye(n), rtol=0, atol=40 * EPS * max(n, 1))
