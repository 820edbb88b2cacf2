"""Curves, and regularised maximum likelihood over a ball."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext

import numba
import numpy as np
import pytest

from likeset import curves
from likeset._solver.ball_step import ball_step, tangent_minimum
from likeset._solver.evaluate import evaluate_terms
from likeset._solver.newton import CurveSum, Goal, minimise_convex, minimise_over_ball, newton_ball
from likeset._solver.problem import CallableTerms, CurveTerms
from likeset.curves import Curve
from likeset.elementwise import exp_parts, log_parts
from reference import cvxpy_minimum, evaluate, instance

CURVES = list(Curve)


# The compiled curves are parts of kernels, without an interface to Python: kernels for this test.
@numba.njit
def scalars(curve, z, u, a, s):
    """D(z, u); A, A', A'' at z; value, size, slope and bend of a A(z) - s z."""
    each = curves.curve_value(curve, z), curves.curve_first(curve, z), curves.curve_second(curve, z)
    return curves.curve_remainder(curve, z, u), each, curves.term_all(curve, a, s, z)


@numba.njit
def around(curve, a, z, base, u, D, slope, weight):
    curves.centred_curve(curve, a, z, base, u, 1.0, D, slope, weight)


def exact_curve(curve: Curve, z: Decimal) -> tuple[Decimal, Decimal, Decimal]:
    """A, A', A'' in sixty digits."""
    if curve == Curve.QUADRATIC:
        return z * z / 2, z, Decimal(1)
    if curve == Curve.EXPONENTIAL:
        return z.exp(), z.exp(), z.exp()
    s = 1 / (1 + (-z).exp())
    return (1 + z.exp()).ln(), s, s / (1 + z.exp())


def wide_arguments(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    z = rng.standard_normal(n) * 10.0 ** rng.uniform(-2, 1.5, n)
    u = rng.standard_normal(n) * 10.0 ** rng.uniform(-8, 1.5, n)
    return z, u


@pytest.mark.parametrize("curve", CURVES)
def test_curves_against_sixty_digits(curve: Curve) -> None:
    z, u = wide_arguments(300, 1)
    base = curves.curve_base(curve, z)
    D, slope, weight = np.empty_like(z), np.empty_like(z), np.empty_like(z)
    around(int(curve), np.ones_like(z), z, base, u, D, slope, weight)
    with localcontext() as context:
        context.prec = 60
        for i, (point, step) in enumerate(zip(z, u, strict=True)):
            here = exact_curve(curve, Decimal(float(point)))
            there = exact_curve(curve, Decimal(float(point)) + Decimal(float(step)))
            remainder = float(there[0] - here[0] - here[1] * Decimal(float(step)))
            scalar, plain, (value, _, first, second) = scalars(int(curve), point, step, 1.0, 0.0)
            assert math.isclose(scalar, remainder, rel_tol=1e-13)
            assert math.isclose(D[i], remainder, rel_tol=2e-14)
            assert math.isclose(slope[i], float(there[1] - here[1]), rel_tol=2e-14)
            assert math.isclose(weight[i], float(there[2]), rel_tol=2e-14)
            for got, together, expected in zip(plain, (value, first, second), here, strict=True):
                assert math.isclose(got, float(expected), rel_tol=1e-14)
                assert math.isclose(together, float(expected), rel_tol=1e-14)


def test_exp_and_log_parts() -> None:
    for u in np.linspace(-700, 700, 4001):
        growth, remainder = exp_parts(u)
        assert math.isclose(growth, math.exp(u), rel_tol=1e-15)
        if abs(u) > 1:
            assert math.isclose(remainder, math.expm1(u) - u, rel_tol=1e-14)
    assert exp_parts(800.0) == (math.inf, math.inf)
    assert exp_parts(-1e5)[1] == pytest.approx(1e5 - 1, rel=1e-15)
    for y in np.concatenate([np.linspace(-0.99, 5, 1001), 10.0 ** np.arange(-12, 300, 7.0)]):
        assert math.isclose(log_parts(y)[0], math.log1p(y), rel_tol=2e-15, abs_tol=1e-300)


def test_evaluate_terms_matches_scalars() -> None:
    z, _ = wide_arguments(50, 2)
    a, s = np.linspace(0, 3, 50), np.linspace(-1, 2, 50)
    for curve in CURVES:
        value, first, second = evaluate_terms(CurveTerms(curve, a, s), z)
        for k in range(50):
            height, _, slope, bend = scalars(int(curve), z[k], 0.0, a[k], s[k])[2]
            assert value[k] == pytest.approx(height, rel=1e-14)
            assert first[k] == pytest.approx(slope, rel=1e-13, abs=1e-15)
            assert second[k] == pytest.approx(bend, rel=1e-14)


def as_callable(terms: CurveTerms) -> CallableTerms:
    return CallableTerms(lambda Z: evaluate_terms(terms, Z))


@pytest.mark.parametrize("kind", ["gaussian", "poisson", "bernoulli", "weibull"])
@pytest.mark.parametrize("regime", ["regular", "ball active", "fewer covariates than dimensions", "separable"])
def test_minimum_against_conic_solver(kind: str, regime: str) -> None:
    level_set = instance(np.random.default_rng(3), kind, 15, 4, regime)
    expected, _ = cvxpy_minimum(level_set)
    scale = 1 + abs(expected)
    for terms in (level_set.terms, as_callable(level_set.terms)):
        theta, value, lower, _ = minimise_over_ball(level_set.X, terms, 0.0, level_set.bound, np.zeros(4), Goal(1e-9))
        assert np.linalg.norm(theta) <= level_set.bound * (1 + 1e-12)
        assert value == pytest.approx(float(evaluate(level_set, theta)), rel=1e-12)
        assert value - lower <= 1e-9 + 1e-12 * scale
        assert lower <= expected + 1e-12 * scale
        assert value <= expected + 1e-6 * scale


@pytest.mark.parametrize("bound", [0.3, math.inf])
@pytest.mark.parametrize("ridge", [0.0, 0.3])
def test_gaussian_ridge_in_closed_form(bound: float, ridge: float) -> None:
    rng = np.random.default_rng(4)
    X, a, s = rng.standard_normal((9, 3)), rng.uniform(1, 2, 9), rng.standard_normal(9)
    H, b = (X.T * a) @ X + 2 * ridge * np.eye(3), X.T @ s
    theta, _, lower, iterations = newton_ball(
        CurveSum(X, 0, a, s), ridge, bound, np.ones(3), Goal(1e-13, iterations=50)
    )
    if bound == math.inf:
        assert theta == pytest.approx(np.linalg.solve(H, b), rel=1e-10)
    else:  # stationary on the sphere: minus the gradient points outwards along theta
        residual = b - H @ theta
        assert residual @ theta > 0
        assert np.linalg.norm(theta) == pytest.approx(bound, rel=1e-12)
        assert residual == pytest.approx(theta * (residual @ theta) / bound**2, abs=1e-6)
    assert iterations <= 4
    assert (lower == -math.inf) == (ridge == 0 and bound == math.inf)


def test_tangent_minimum_is_the_minimum() -> None:
    rng = np.random.default_rng(5)
    for _ in range(200):
        theta, g = rng.standard_normal(3), rng.standard_normal(3) * 10 ** rng.uniform(-2, 2)
        bound, ridge = np.linalg.norm(theta) * rng.uniform(1, 3), 10 ** rng.uniform(-6, 2)
        lower = tangent_minimum(g, theta, ridge, bound)
        best = theta - g / (2 * ridge)
        best *= min(1, bound / np.linalg.norm(best))
        move = best - theta
        assert lower == pytest.approx(g @ move + ridge * move @ move, rel=1e-7, abs=1e-9)
        assert tangent_minimum(g, theta, 0.0, bound) == pytest.approx(-(g @ theta) - bound * np.linalg.norm(g))
        assert tangent_minimum(g, theta, ridge, math.inf) == pytest.approx(-(g @ g) / (4 * ridge))


def test_no_data_and_bad_starts() -> None:
    none, goal = CurveSum(np.empty((0, 3)), 1, np.empty(0), np.empty(0)), Goal(1e-9, iterations=9)
    theta, value, lower, _ = newton_ball(none, 0.5, math.inf, np.ones(3), goal)
    assert np.all(theta == 0) and value == lower == 0
    theta, value, lower, _ = newton_ball(none, 0.0, 1.0, np.full(3, 9.0), goal)
    assert np.linalg.norm(theta) <= 1 + 1e-15 and value == lower == 0
    X = np.array([[1000.0, 0.0]])  # e^1000 overflows at the start
    theta, value, lower, _ = newton_ball(CurveSum(X, 1, np.ones(1), np.ones(1)), 0.0, 5.0, np.ones(2), Goal(1e-9))
    assert value == pytest.approx(1.0) and value - lower <= 1e-9


def test_singular_hessian_with_infinite_entries_gives_no_step() -> None:
    H, p = np.full((2, 2), np.nan), np.ones(2)
    ball_step(np.ones(2), H, np.zeros(2), 1.0, np.empty((2, 2)), p, np.empty(2))
    assert np.all(p == 0)


def test_warm_start_is_cheap() -> None:
    level_set = instance(np.random.default_rng(6), "poisson", 40, 6)
    F = CurveSum(level_set.X, 1, level_set.terms.a, level_set.terms.s)
    cold = newton_ball(F, 0.1, 3.0, np.zeros(6), Goal(1e-9))
    s = F.s.copy()
    s[3] += 1
    warm = newton_ball(F._replace(s=s), 0.1, 3.0, cold.theta, Goal(1e-6))
    assert warm.iterations <= 2 and warm.value - warm.lower <= 1e-6


def test_a_point_between_two_numbers_is_not_looked_for_again_and_again():
    """The minimum lies between two neighbouring numbers: no step between them can be written."""
    between, looks = np.array([1.0]), []

    def steep(theta):
        looks.append(theta)
        above = float(theta[0] - 1.0) - 1e-16  # at one it is below, at the next number above
        return 1e30 * above**2, 1e-2, np.array([2e30 * above]), lambda: np.array([[2e30]])

    theta, value, lower, iterations = minimise_convex(steep, 0.0, 10.0, between, Goal(0.0, iterations=100))
    assert theta == between and value == 1e30 * 1e-32 and lower <= 0.0
    assert iterations <= 2 and len(looks) <= 3
