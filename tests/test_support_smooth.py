"""The support function of smooth likelihood sets against a conic solver, closed forms and extended precision."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import brentq

import likeset as ls
from likeset._solver.certificate import certificate, certify
from likeset._solver.evaluate import evaluate_terms
from likeset._solver.newton import Goal, minimise_over_ball
from likeset._solver.problem import CallableTerms, CurveTerms, LevelSet, PointTerms, Solution
from likeset._solver.smooth import kernel as smooth
from likeset._solver.smooth.ellipsoids import model_maximisers
from likeset._solver.smooth.leading import leading_block
from likeset._solver.smooth.sqp import CentredSet
from likeset._typing import Array
from likeset.curves import Curve
from reference import REGIMES, CvxpySupport, cvxpy_minimum, emptied, evaluate, instance, simulate_terms, violation

SMOOTH = ("poisson", "bernoulli", "weibull")


def directions(rng: np.random.Generator, level_set: LevelSet, n: int) -> Array:
    A = rng.standard_normal((n, level_set.X.shape[1]))
    A[0] = level_set.X[0]
    return A


def half_widths(prepared: smooth.Prepared, A: Array, solution: Solution) -> Array:
    return 0.5 * (solution.upper + prepared.solve(-A).upper)


def check_consistent(level_set: LevelSet, A: Array, gap: float = 1e-6, outside: float = 1e-12) -> Solution:
    """What must hold for any set, without a second solver; returns the solution."""
    prepared = smooth.prepare(level_set)
    assert prepared.status in ("regular", "point")
    solution = prepared.solve(A)
    assert np.all(violation(level_set, solution.points) <= outside)
    assert solution.values == pytest.approx(np.einsum("ij,ij->i", A, solution.points), rel=1e-12, abs=1e-12)
    width = half_widths(prepared, A, solution)
    assert np.all(solution.upper >= solution.values)
    assert np.all(solution.upper - solution.values <= gap * width)
    return solution


@pytest.mark.parametrize("kind", ["gaussian", *SMOOTH])
@pytest.mark.parametrize("regime", REGIMES)
def test_certified_gap_and_feasibility(kind: str, regime: str) -> None:
    for seed in range(3):
        rng = np.random.default_rng(seed)
        level_set = instance(rng, kind, int(rng.integers(6, 40)), int(rng.integers(2, 6)), regime)
        check_consistent(level_set, directions(rng, level_set, 12), gap=1e-6)


@pytest.mark.parametrize("kind", SMOOTH)
@pytest.mark.parametrize("regime", REGIMES)
def test_against_conic_solver(kind: str, regime: str) -> None:
    rng = np.random.default_rng(11)
    level_set = instance(rng, kind, 12, 4, regime)
    A = directions(rng, level_set, 3)
    prepared = smooth.prepare(level_set)
    solution = prepared.solve(A)
    attained = CvxpySupport(level_set).feasible_values(A, inside=None)
    width = half_widths(prepared, A, solution)
    assert outer(solution.upper, attained, width)
    if regime in ("regular", "ball active", "fewer covariates than dimensions", "zero column", "dim 1"):
        assert attained == pytest.approx(solution.upper, rel=1e-6, abs=1e-6)
        assert not outer(solution.upper - 1e-6 * width, attained, width)  # a millionth too small is noticed


def outer(upper: Array, attained: Array, width: Array) -> bool:
    """Whether no point that another solver found lies above a bound, but for its own rounding."""
    return bool(np.all(attained <= upper + 1e-9 * np.maximum(width, np.abs(upper))))


def test_vertex_of_a_steep_likelihood_and_the_ball() -> None:
    """The likelihood still rises at the sphere; the maximum sits where its boundary meets the ball."""
    rng = np.random.default_rng(12)
    truth = rng.normal(size=2)
    truth *= 0.18 / np.linalg.norm(truth)
    X = rng.normal(size=(11, 2)) / np.sqrt(2)
    sequence = ls.ConfidenceSequence(ls.Weibull(2.0), ls.Linear(2, 0.3), 0.5)
    sequence.update(X, sequence.family.sample(X @ truth, rng))
    D = np.concatenate([X[:3], np.random.default_rng(12).normal(size=(4, 2))])
    answer = sequence.set.support(D)
    width = 0.5 * (answer.upper + sequence.set.support(-D).upper)
    assert np.all(answer.upper - answer.values <= 1e-6 * width)
    # The part of the sphere that belongs to the set ends in the vertices.
    angle = np.linspace(0.0, 2 * np.pi, 200_001)
    circle = 0.3 * np.column_stack([np.cos(angle), np.sin(angle)])
    arc = circle[sequence.set.contains(circle * (1 - 1e-9))]
    attained = np.max(arc @ D.T, axis=0)
    assert np.all(attained <= answer.upper + 1e-9)
    assert answer.upper[[1, 5]] == pytest.approx(attained[[1, 5]], abs=2e-5)  # the two vertices, to the grid


def cut_by_the_ball(rng: np.random.Generator) -> LevelSet:
    """Data from a theta in, at or beyond the sphere, on covariates of any scale."""
    dim, n_covariates = int(rng.integers(1, 9)), int(rng.integers(1, 20))
    X = rng.standard_normal((n_covariates, dim)) / np.sqrt(dim) * 10 ** rng.uniform(-1, 1)
    bound = 10 ** rng.uniform(-1, 0.7)
    theta = rng.standard_normal(dim)
    z = np.clip(X @ theta * bound / np.linalg.norm(theta) * rng.choice([0.5, 1.0, 2.0]), -5.0, 5.0)
    kind = SMOOTH[int(rng.integers(len(SMOOTH)))]
    terms = simulate_terms(rng, kind, z, rng.integers(1, 10, n_covariates), "regular")
    nearest, *_ = minimise_over_ball(X, terms, 0.0, bound, np.zeros(dim), Goal(0.0))
    level_set = LevelSet(X, terms, 0.0, bound)
    return replace(level_set, level=float(evaluate(level_set, nearest)) + 10 ** rng.uniform(-4, 1.5))


def test_edges_of_the_ball_converge() -> None:
    for seed in (*range(300), 900, 1314):  # 124 and the last two: edges that a plain linearised step never reaches
        rng = np.random.default_rng([21, seed])
        level_set = cut_by_the_ball(rng)
        A = directions(rng, level_set, 6)
        # Where a A(z) and s z cancel, the level is raised by more than 1e-12 of what is left of them.
        solution = check_consistent(level_set, A, gap=1e-6, outside=1e-11)
        # Every maximiser is a point of the set, so no bound of another direction may cut it off.
        length = level_set.bound * np.linalg.norm(A, axis=1)
        assert np.all(solution.points @ A.T <= solution.upper + 1e-12 * length)


def test_centre_keeps_away_from_both_constraints() -> None:
    """F = e^z - 6 z falls up to z = log 6, far outside the ball: half the room in F is spent on the ball's slack."""
    terms = CurveTerms(Curve.EXPONENTIAL, np.ones(1), np.full(1, 6.0))
    bound = 0.5
    minimum, slope = math.exp(bound) - 6 * bound, math.exp(bound) - 6
    for room in (1e-6, 1e-2, 1.0):
        prepared = smooth.prepare(LevelSet(np.array([[1.0, 0.0]]), terms, minimum + room, bound))
        centre = prepared.centre
        assert math.exp(centre[0]) - 6 * centre[0] - minimum <= 0.51 * room
        best = 0.5 * room / -slope  # to first order, the farthest from the sphere that half the room can buy
        assert bound - np.linalg.norm(centre) >= 0.25 * best


def as_callable(terms: CurveTerms) -> CallableTerms:
    return CallableTerms(lambda Z: evaluate_terms(terms, Z))


@pytest.mark.parametrize("kind", SMOOTH)
@pytest.mark.parametrize("bound", [3.0, math.inf])
def test_user_function_gives_the_same_answer(kind: str, bound: float) -> None:
    rng = np.random.default_rng(12)
    level_set = replace(instance(rng, kind, 20, 3), bound=bound)
    A = directions(rng, level_set, 6)
    ours = smooth.prepare(level_set).solve(A)
    users = smooth.prepare(replace(level_set, terms=as_callable(level_set.terms))).solve(A)
    assert users.upper == pytest.approx(ours.upper, rel=1e-7)
    assert users.values == pytest.approx(ours.values, rel=1e-7)


def test_one_dimension_in_closed_form() -> None:
    """a e^z - s z <= level: the two roots of a scalar equation."""
    a, s, level = 4.0, 7.0, 9.0
    terms = CurveTerms(Curve.EXPONENTIAL, np.array([a]), np.array([s]))
    lowest = math.log(s / a)

    def excess(z: float) -> float:
        return a * math.exp(z) - s * z - level

    expected = [brentq(excess, lowest, 10.0, xtol=1e-15), -brentq(excess, -50.0, lowest, xtol=1e-15)]
    for bound in (20.0, math.inf):
        solution = smooth.prepare(LevelSet(np.ones((1, 1)), terms, level, bound)).solve(np.array([[1.0], [-1.0]]))
        assert solution.upper == pytest.approx(expected, rel=1e-9)
        assert np.all(solution.upper >= np.array(expected) * (1 - 1e-12))


def test_ball_when_nothing_is_known() -> None:
    A = np.array([[3.0, 4.0], [0.0, 0.0]])
    none = CurveTerms(Curve.EXPONENTIAL, np.empty(0), np.empty(0))
    some = CurveTerms(Curve.EXPONENTIAL, np.ones(1), np.ones(1))
    for level_set in (
        LevelSet(np.empty((0, 2)), none, 1.0, 2.0),
        LevelSet(np.ones((1, 2)), some, math.inf, 2.0),
        LevelSet(np.ones((1, 2)), CurveTerms(Curve.SOFTPLUS, np.zeros(1), np.zeros(1)), 0.0, 2.0),
        LevelSet(np.zeros((1, 2)), some, 1.0, 2.0),
    ):
        solution = smooth.prepare(level_set).solve(A)
        assert solution.upper == pytest.approx([10.0, 0.0])
        assert solution.points[0] == pytest.approx([1.2, 1.6])
        unbounded = smooth.prepare(replace(level_set, bound=math.inf)).solve(A)
        assert unbounded.upper[0] == math.inf and unbounded.upper[1] == 0.0
    assert smooth.prepare(LevelSet(np.empty((0, 2)), none, -1.0, 2.0)).status == "empty"


def test_zero_radius() -> None:
    terms = CurveTerms(Curve.EXPONENTIAL, np.ones(1), np.ones(1))
    assert smooth.prepare(LevelSet(np.ones((1, 2)), terms, 0.5, 0.0)).status == "empty"
    prepared = smooth.prepare(LevelSet(np.ones((1, 2)), terms, 1.5, 0.0))
    assert prepared.status == "point"
    assert prepared.solve(np.ones((1, 2))).upper[0] == 0.0


@pytest.mark.parametrize("kind", SMOOTH)
@pytest.mark.parametrize("regime", ["regular", "ball active", "separable", "fewer covariates than dimensions"])
def test_empty_sets_are_certified(kind: str, regime: str) -> None:
    level_set = emptied(instance(np.random.default_rng(13), kind, 12, 3, regime))
    prepared = smooth.prepare(level_set)
    assert prepared.status == "empty"
    assert level_set.level < prepared.minimum_bound <= cvxpy_minimum(level_set)[0] + 1e-9
    assert np.all(np.isneginf(prepared.solve(np.ones((2, level_set.X.shape[1]))).upper))


def test_empty_without_a_ball() -> None:
    terms = CurveTerms(Curve.EXPONENTIAL, np.ones(2), np.array([3.0, 1.0]))
    X = np.eye(2)
    minimum = 3 - 3 * math.log(3) + 1
    prepared = smooth.prepare(LevelSet(X, terms, minimum - 1e-6, math.inf))
    assert prepared.status == "empty"
    assert prepared.minimum_bound == pytest.approx(minimum, abs=1e-9)
    separable = CurveTerms(Curve.SOFTPLUS, np.ones(2), np.array([0.0, 1.0]))
    assert smooth.prepare(LevelSet(X, separable, -1e-6, math.inf)).status == "empty"


def test_single_point() -> None:
    terms = CurveTerms(Curve.EXPONENTIAL, np.ones(2), np.array([3.0, 1.0]))
    minimum = 3 - 3 * math.log(3) + 1
    for level in (minimum, minimum - 1e-16, minimum + 1e-15):
        prepared = smooth.prepare(LevelSet(np.eye(2), terms, level, 5.0))
        assert prepared.status == "point"
        solution = prepared.solve(np.eye(2))
        assert solution.upper == pytest.approx([math.log(3), 0.0], abs=1e-6)
        assert np.all(solution.upper >= np.array([math.log(3), 0.0]))


def test_unbounded_directions() -> None:
    """Successes only: the data say how low theta can be, not how high."""
    terms = CurveTerms(Curve.SOFTPLUS, np.array([4.0]), np.array([4.0]))
    prepared = smooth.prepare(LevelSet(np.array([[1.0, 0.0]]), terms, 2.0, math.inf))
    solution = prepared.solve(np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [-1.0, 1e-3]]))
    lowest = math.log(math.expm1(0.5))  # 4 log(1 + e^-z) = 2
    assert solution.upper[0] == solution.upper[2] == solution.upper[3] == math.inf
    assert solution.upper[1] == pytest.approx(lowest, rel=1e-9)
    none = CurveTerms(Curve.EXPONENTIAL, np.array([2.0]), np.zeros(1))
    zero_counts = smooth.prepare(LevelSet(np.ones((1, 1)), none, 3.0, math.inf)).solve(np.array([[1.0], [-1.0]]))
    assert zero_counts.upper[0] == pytest.approx(math.log(1.5), rel=1e-9)
    assert zero_counts.upper[1] == math.inf


@pytest.mark.parametrize("kind", ["gaussian", *SMOOTH])
def test_without_a_ball_against_conic_solver(kind: str) -> None:
    rng = np.random.default_rng(14)
    level_set = replace(instance(rng, kind, 20, 3), bound=math.inf)
    A = directions(rng, level_set, 3)
    solution = smooth.prepare(level_set).solve(A)
    expected, _ = CvxpySupport(level_set).solve(A)
    assert solution.upper == pytest.approx(expected, rel=1e-6)
    assert solution.values == pytest.approx(solution.upper, rel=1e-7)


@pytest.mark.parametrize("kind", SMOOTH)
@pytest.mark.parametrize("slack", [1e-8, 1e-4, 1e2, 1e6])
def test_slack_of_any_size(kind: str, slack: float) -> None:
    rng = np.random.default_rng(15)
    level_set = instance(rng, kind, 30, 4)
    centre = smooth.prepare(level_set)
    minimum = evaluate(level_set, centre.centre)
    many = replace(level_set.terms, a=level_set.terms.a * 1e3, s=level_set.terms.s * 1e3)
    for terms, scale in ((level_set.terms, 1.0), (many, 1e3)):
        near = replace(level_set, terms=terms, level=float(scale * minimum + slack))
        check_consistent(near, directions(rng, near, 6), gap=1e-6)


def test_widely_different_directions() -> None:
    rng = np.random.default_rng(16)
    level_set = instance(rng, "poisson", 20, 3)
    A = directions(rng, level_set, 5)
    prepared = smooth.prepare(level_set)
    plain = prepared.solve(A)
    for scale in (1e-200, 1e-8, 1e8, 1e200):
        assert prepared.solve(A * scale).upper == pytest.approx(plain.upper * scale, rel=1e-12)


def test_many_directions_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    level_set = instance(np.random.default_rng(17), "bernoulli", 25, 4)
    A = np.random.default_rng(18).standard_normal((40, 4))
    whole = smooth.prepare(level_set).solve(A)
    monkeypatch.setattr("likeset._solver.smooth.sqp.BLOCK_LIMIT", 100)
    monkeypatch.setattr("likeset._solver.smooth.sqp.PACKED_LIMIT", 0)
    pieces = smooth.prepare(level_set).solve(A)
    assert pieces.upper == pytest.approx(whole.upper, rel=1e-7)


def kernel_features(rng: np.random.Generator, kind: str, n_points: int) -> tuple[LevelSet, Array]:
    """A set of functions with a smooth kernel, in coordinates of the domain, and all points as directions.

    Half of the points were observed; the eigenvalues of the kernel matrix fall by fifteen orders of magnitude.
    """
    x = np.linspace(0.0, 1.0, n_points)
    values, vectors = np.linalg.eigh(np.exp(-0.5 * ((x[:, None] - x) / 0.08) ** 2))
    features = vectors * np.sqrt(np.maximum(values, 0.0))
    seen = rng.choice(n_points, n_points // 2, replace=False)
    terms = simulate_terms(rng, kind, np.sin(9 * x[seen]), rng.integers(1, 6, len(seen)), "regular")
    level_set = LevelSet(features[seen], terms, 0.0, 3.0)
    nearest, *_ = minimise_over_ball(level_set.X, terms, 0.0, 3.0, np.zeros(n_points), Goal(0.0))
    return replace(level_set, level=float(evaluate(level_set, nearest)) + 5.0), features


@pytest.mark.parametrize("kind", SMOOTH)
def test_leading_coordinates_change_nothing(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Newton matrices that leave out what is negligible beside the ball lead to the same bounds."""
    level_set, A = kernel_features(np.random.default_rng(21), kind, 40)
    blocks: list[int] = []

    def spy(diagonals: Array, lam: Array, mu: Array) -> int:
        blocks.append(leading_block(diagonals, lam, mu))
        return blocks[-1]

    monkeypatch.setattr("likeset._solver.smooth.sqp.leading_block", spy)
    solution = check_consistent(level_set, A, gap=3e-7)
    assert blocks and max(blocks) < 20  # of 21 coordinates (one is flat)
    monkeypatch.setattr("likeset._solver.smooth.sqp.SMALL", 100)
    full = smooth.prepare(level_set).solve(A)
    assert solution.upper == pytest.approx(full.upper, rel=2e-7)
    attained = CvxpySupport(level_set).feasible_values(A[:2], inside=None)
    assert np.all(attained <= solution.upper[:2] * (1 + 1e-9))
    assert attained == pytest.approx(solution.upper[:2], rel=1e-6)


def test_leading_block_keeps_whatever_the_ball_does_not_cover() -> None:
    diagonals = np.array([[5.0, 1.0, 1e-4, 1e-9, 0.0], [5.0, 1e-5, 1e-6, 1e-9, 0.0]])
    ones = np.ones(2)
    assert leading_block(diagonals, ones, ones) == 2
    assert leading_block(diagonals, np.array([1.0, 1e3]), ones) == 2
    assert leading_block(diagonals, np.array([1.0, 1e4]), ones) == 3
    assert leading_block(diagonals, ones, np.array([1.0, 0.0])) == 5  # no ball: every coordinate
    assert leading_block(diagonals, np.zeros(2), ones) == 1


def test_steps_end_on_both_boundaries(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step to the edge where likelihood and ball meet ends closer to both than the linearised one."""
    rng = np.random.default_rng(22)
    level_set = instance(rng, "weibull", 12, 4, "ball active")
    body = smooth.prepare(level_set).body
    assert isinstance(body, CentredSet)
    A = rng.standard_normal((200, 4))
    A /= np.linalg.norm(A, axis=1)[:, None]
    Y = body._start(A)
    U, shape = Y @ body.X.T, (len(A), len(body.X))
    slopes, weights, rise = np.empty(shape), np.empty(shape), np.empty(len(A))
    body.project(Y, U, slopes, weights, rise)
    G = body.g_c + slopes @ body.X
    _, lam, mu, slack_g, slack_b = certify(A, Y, G, rise, body.theta_c, body.e, body.e2, body.bound)

    def excess() -> Array:
        ends = Y + body._steps(A, Y, U, G, weights, lam, mu, slack_g, slack_b)
        theta = body.theta_c + ends
        likelihood = (evaluate(level_set, theta) - level_set.level) / body.e
        return np.maximum(likelihood, (np.sum(theta**2, axis=1) - level_set.bound**2) / body.e2).astype(float)

    followed = excess()
    monkeypatch.setattr("likeset._solver.smooth.sqp.follow_boundaries", lambda *_: None)
    straight = excess()
    changed = followed != straight
    assert np.sum(changed) >= 50
    assert np.median(np.abs(followed[changed])) < 0.1 * np.median(straight[changed])


def test_certificate_by_brute_force() -> None:
    """The half-space cut with a disc, on a fine grid of its boundary."""
    rng = np.random.default_rng(19)
    angle = np.linspace(0, 2 * np.pi, 200_001)
    for _ in range(50):
        bound = 2.0
        theta_c = rng.standard_normal(2)
        theta_c *= rng.uniform(0, 1.9) / np.linalg.norm(theta_c)
        a, g, h = rng.standard_normal(2), rng.standard_normal(2), rng.uniform(0.01, 2)
        ceiling, lam, mu = certificate(a, g, h, theta_c, bound**2 - theta_c @ theta_c, bound)
        circle = bound * np.column_stack([np.cos(angle), np.sin(angle)]) - theta_c
        along = np.array([-g[1], g[0]]) / np.linalg.norm(g)
        line = g * h / (g @ g) + np.linspace(-4, 4, 200_001)[:, None] * along
        candidates = np.vstack([circle[circle @ g <= h], line[np.sum((line + theta_c) ** 2, axis=1) <= bound**2]])
        assert ceiling == pytest.approx(np.max(candidates @ a), abs=2e-4)
        assert ceiling >= np.max(candidates @ a) - 1e-12
        assert lam >= 0 and mu >= 0


def test_model_maximisers_satisfy_both_constraints() -> None:
    rng = np.random.default_rng(20)
    for _ in range(50):
        h, g, theta = rng.uniform(0, 10, 3), rng.standard_normal(3) * 0.1, rng.standard_normal(3) * 0.3
        e, e2 = 10 ** rng.uniform(-3, 2), 10 ** rng.uniform(-3, 2)
        a = rng.standard_normal((1, 3))
        delta = np.empty((1, 3))
        model_maximisers(a, h, g, theta, e, e2, 1.0, 1.0, 0.01, delta)
        likelihood = (delta @ g + 0.5 * delta**2 @ h)[0] / e
        ball = (2 * delta @ theta + np.sum(delta**2, axis=1))[0] / e2
        assert max(likelihood, ball) == pytest.approx(1.0, abs=0.02)


def test_wrong_terms_are_refused() -> None:
    points = PointTerms(np.array([0, 1]), np.zeros(1), np.ones(1))
    with pytest.raises(TypeError, match="smooth terms expected"):
        smooth.prepare(LevelSet(np.ones((1, 1)), points, 1.0, 1.0))


def test_counts_far_from_one_do_not_empty_an_unbounded_set():
    """The lowest value of every term counted from a reference: a bound that forgot the reference called this empty."""
    angles = np.linspace(0.0, 0.3, 60)
    X = np.column_stack([np.cos(angles), np.sin(angles)])
    seq = ls.ConfidenceSequence(ls.Poisson(), ls.Linear(2, np.inf))
    seq.update(np.vstack([X, X]), [100] * 60 + [101] * 60)
    assert seq.set.contains([np.log(100.5), 0.6])
    assert not seq.set.is_empty
