"""Window mixtures of absolute values: one dimension against root finding, CVXPY, emptiness, thin sets."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import brentq, minimize_scalar
from scipy.special import logsumexp
from sklearn.gaussian_process.kernels import RBF

import likeset as ls
from likeset import _solver
from likeset._solver import dual as voice_dual
from likeset._solver.problem import MixtureSet, PointTerms, VoiceTable
from likeset._typing import Array
from test_windows import cvxpy_maximum, log_ratio_by_hand

ORDINARY = dict(covariates=8, dim=3, per=3, windows=5, slack=2.0, bound=3.0)
REGIMES = {
    "ordinary": {},
    "ball inactive": dict(bound=200.0, inside=0.01),
    "on the sphere": dict(inside=1.0, slack=0.5),
    "few covariates": dict(covariates=2, dim=5),
    "one observation": dict(covariates=1, per=1, dim=2, windows=2),
    "one covariate": dict(covariates=1, per=12, windows=2),
    "many points": dict(covariates=4, per=150),
    "ties": dict(ties=True, per=6),
    "duplicate covariates": dict(duplicates=True),
    "thin": dict(slack=1e-6),
    "thick": dict(slack=60.0),
    "badly scaled": dict(scale=0.01, noise=3.0, bound=100.0),
    "precise": dict(noise=0.01),
    "many windows": dict(windows=40, covariates=12),
    "dim 1": dict(dim=1),
}


def mixture(
    rng, covariates, dim, per, windows, slack, bound, noise=0.3, scale=1.0, inside=0.6, ties=False, duplicates=False
) -> tuple[MixtureSet, Array]:
    """A random mixture and a parameter that lies in it, ``slack`` nats below the level."""
    X = scale * rng.normal(size=(covariates, dim))
    if duplicates:
        X[1::2] = X[: len(X[1::2])]
    truth = rng.normal(size=dim)
    truth *= inside * bound / np.linalg.norm(truth)
    data = [np.sort(x @ truth + noise * rng.laplace(size=rng.integers(1, per + 1))) for x in X]
    if ties:
        data = [np.round(points, 1) for points in data]
    starts = np.concatenate([[0], np.cumsum([len(points) for points in data])]).astype(np.int64)
    terms = PointTerms(starts, np.concatenate(data), np.full(starts[-1], 1.0 / noise))
    masks = np.vstack([rng.random((windows, covariates)) < 0.5, np.zeros(covariates, bool), np.ones(covariates, bool)])
    masks = np.unique(masks, axis=0)
    sizes = np.concatenate([[0], np.cumsum(masks.sum(axis=1))]).astype(np.int64)
    shares = rng.dirichlet(np.ones(len(masks)))
    table = VoiceTable(sizes, np.nonzero(masks)[1].astype(np.int64), np.log(shares))
    losses = [w @ np.abs(p - x @ truth) for p, x, w in zip(data, X, np.split(terms.weights, starts[1:-1]), strict=True)]
    target = MixtureSet(X, terms, 0.5 * rng.normal(size=covariates) - losses, table, 0.0, bound)
    return replace(target, level=float(log_ratio_by_hand(target, truth)) + slack), truth


def check(target: MixtureSet, A: Array, relative_gap: float = 1e-6) -> _solver.Kernel:
    """Points of the set, bounds that no point of the set exceeds, and a small gap."""
    prepared = _solver.prepare(target)
    assert prepared.status == "regular"
    found = prepared.solve(A)
    for theta in [*found.points, prepared.centre]:
        assert log_ratio_by_hand(target, theta) <= target.level + 1e-10 * (1.0 + abs(target.level))
        assert np.linalg.norm(theta) <= target.bound * (1 + 1e-12)
    np.testing.assert_allclose(found.values, np.sum(A * found.points, axis=1), rtol=1e-12, atol=1e-12)
    width = found.upper + prepared.solve(-A).upper
    assert (found.upper - found.values <= relative_gap * width + 1e-9 * np.abs(found.upper)).all()
    return prepared


@pytest.mark.parametrize("regime", REGIMES)
def test_points_are_inside_and_bounds_are_outer(regime):
    for seed in range(4):
        rng = np.random.default_rng([seed, 1])
        target, truth = mixture(rng, **{**ORDINARY, **REGIMES[regime]})
        A = np.vstack([target.X[:2], rng.normal(size=(4, target.X.shape[1]))])
        prepared = check(target, A)
        found = prepared.solve(A)
        assert (A @ truth <= found.upper + 1e-9 * np.abs(found.upper)).all()
        for ray in rng.normal(size=(10, len(truth))):  # other points of the set, found by bisection from the truth
            low, high = 0.0, 2.0 * target.bound / np.linalg.norm(ray)
            for _ in range(45):
                point = truth + 0.5 * (low + high) * ray
                is_in = log_ratio_by_hand(target, point) <= target.level and np.linalg.norm(point) <= target.bound
                low, high = (0.5 * (low + high), high) if is_in else (low, 0.5 * (low + high))
            assert (A @ (truth + low * ray) <= found.upper + 1e-9 * (1.0 + np.abs(found.upper))).all()


@pytest.mark.parametrize("regime", ["ordinary", "on the sphere", "few covariates", "ties", "duplicate covariates"])
def test_agrees_with_cvxpy(regime):
    checked = 0
    for seed in range(2):
        rng = np.random.default_rng([seed, 2])
        target, _ = mixture(rng, **{**ORDINARY, **REGIMES[regime]})
        A = rng.normal(size=(2, target.X.shape[1]))
        upper = _solver.prepare(target).solve(A).upper
        for a, ceiling in zip(A, upper, strict=True):
            value = cvxpy_maximum(target, a)
            if value is not None:
                checked += 1
                assert ceiling == pytest.approx(value, abs=1e-5 * max(1.0, abs(value)))
    assert checked >= 2


@pytest.mark.parametrize("seed", range(12))
def test_one_dimension_by_root_finding(seed):
    rng = np.random.default_rng([seed, 3])
    settings = dict(dim=1, ties=seed % 2 == 0, duplicates=seed % 3 == 0, slack=float(10.0 ** rng.uniform(-6, 2)))
    target, truth = mixture(rng, **{**ORDINARY, **settings, "covariates": 1 + seed})
    found = _solver.prepare(target).solve(np.array([[1.0], [-1.0]]))
    for direction, upper, value in zip((1.0, -1.0), found.upper, found.values, strict=True):

        def excess(t, direction=direction):
            return log_ratio_by_hand(target, np.array([direction * t])) - target.level

        start = direction * float(truth[0])
        exact = target.bound if excess(target.bound) <= 0.0 else brentq(excess, start, target.bound, xtol=1e-14)
        assert upper == pytest.approx(exact, abs=1e-6 * abs(exact - start) + 1e-9)
        assert upper >= exact - 1e-12 and value <= exact + 1e-12


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("margin", [1e-9, 1e-5, 1e-2, 1.0])
def test_near_empty_and_empty(seed, margin):
    rng = np.random.default_rng([seed, 4])
    target, _ = mixture(rng, **{**ORDINARY, "dim": 1, "inside": 1.0 if seed % 2 else 0.4})
    lowest = minimize_scalar(
        lambda t: log_ratio_by_hand(target, np.array([t])), bounds=(-target.bound, target.bound), method="bounded",
        options={"xatol": 1e-13},
    ).fun  # fmt: skip
    points = target.terms.points  # the minimum may be at a kink, which the search approaches only
    kinks = points / target.X[np.repeat(np.arange(len(target.X)), np.diff(target.terms.starts)), 0]
    candidates = [*np.clip(kinks, -target.bound, target.bound), target.bound, -target.bound]
    lowest = min([lowest, *(log_ratio_by_hand(target, np.array([t])) for t in candidates)])
    just = _solver.prepare(replace(target, level=lowest + margin))
    assert just.status == "regular"
    found = just.solve(np.array([[1.0], [-1.0]]))
    assert found.upper.sum() >= 0.0
    assert log_ratio_by_hand(target, just.centre) <= lowest + margin + 1e-12
    empty = _solver.prepare(replace(target, level=lowest - margin))
    assert empty.status == "empty"
    assert np.isneginf(empty.solve(np.ones((1, 1))).upper).all()


def test_at_the_minimum_the_set_is_a_point():
    # Two windows hold one covariate each; the minimum is where both losses vanish.
    terms = PointTerms(np.array([0, 1, 2]), np.array([0.5, -0.25]), np.full(2, 4.0))
    table = VoiceTable(np.array([0, 1, 2]), np.array([0, 1]), np.log([0.4, 0.6]))
    target = MixtureSet(np.eye(2), terms, np.zeros(2), table, 0.0, 2.0)
    prepared = _solver.prepare(target)
    assert prepared.status == "point"
    found = prepared.solve(np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]))
    np.testing.assert_allclose(found.upper, [0.5, -0.25, 0.25], atol=1e-8)
    assert (found.upper >= np.array([0.5, -0.25, 0.25]) - 1e-15).all()


def test_two_windows_closed_form():
    # log(e^{4|1 - t|}/2 + 1/2) <= level
    terms = PointTerms(np.array([0, 1]), np.array([1.0]), np.array([4.0]))
    table = VoiceTable(np.array([0, 0, 1]), np.array([0]), np.log([0.5, 0.5]))
    for level in (1e-6, 0.1, 2.0, 9.0):
        target = MixtureSet(np.array([[1.0]]), terms, np.zeros(1), table, level, 50.0)
        reach = np.log(2.0 * np.exp(level) - 1.0) / 4.0
        found = _solver.prepare(target).solve(np.array([[1.0], [-1.0], [0.0]]))
        np.testing.assert_allclose(found.upper, [1.0 + reach, reach - 1.0, 0.0], rtol=0, atol=2e-7 * reach + 1e-11)


def test_covariates_that_are_zero_or_many_leave_the_ball():
    terms = PointTerms(np.array([0, 1]), np.array([1.0]), np.array([4.0]))
    table = VoiceTable(np.array([0, 0, 1]), np.array([0]), np.log([0.5, 0.5]))
    flat = MixtureSet(np.zeros((1, 2)), terms, np.zeros(1), table, 9.0, 3.0)
    np.testing.assert_allclose(_solver.prepare(flat).solve(np.array([[3.0, 4.0]])).upper, 15.0, rtol=1e-12)
    assert _solver.prepare(replace(flat, level=1.0)).status == "empty"


def test_the_dual_agrees():
    rng = np.random.default_rng(5)
    target, _ = mixture(rng, **ORDINARY)
    A = rng.normal(size=(3, 3))
    fast = _solver.prepare(target).solve(A)
    slow = voice_dual.prepare(target, _solver.prepare_joint).solve(A)
    assert (slow.upper >= fast.values - 1e-9).all() and (slow.values <= fast.upper + 1e-9).all()
    np.testing.assert_allclose(slow.upper, fast.upper, atol=2e-2)
    for _ in range(5):  # whatever the voices, an outer bound
        voices = rng.dirichlet(np.full(len(target.voices.log_shares), 0.3))
        ceiling = _solver.prepare_joint(voice_dual.weighted_set(target, voices)).solve(A).upper
        assert (ceiling >= fast.values - 1e-9).all()


def test_a_sequence_with_laplace_noise_covers_and_is_tighter_than_its_windows():
    grid = np.linspace(0, 1, 20)
    space = ls.RKHS(RBF(0.12), 2.0, domain=grid)
    rng = np.random.default_rng(6)
    z = np.asarray(RBF(0.12)(grid[:, None], grid[:, None]) @ rng.normal(size=20))
    z *= 1.8 / float(space.norm(z))
    sequence = ls.ConfidenceSequence(ls.Laplace(0.2), space, 0.1, voices=ls.Windows.covering(space))
    for _ in range(40):
        place = int(np.argmax(sequence.set.upper(grid)))
        sequence.update(grid[place], ls.Laplace(0.2).sample(z[place : place + 1], rng))
    s = sequence.set
    found = s.support(grid)
    assert s.contains(z) and (found.upper >= z).all()
    assert (s.log_ratio(found.maximisers) <= np.log(10) + 1e-9).all()
    assert (found.gap <= 1e-6 * np.maximum(1.0, np.abs(found.upper))).all()
    table = s._evidence.audible
    for k in range(len(table.log_shares)):
        weights = np.zeros(len(s._evidence.gains))
        weights[table.members[table.starts[k] : table.starts[k + 1]]] = 1.0
        single = s.support(grid, covariate_weights=weights, level=np.log(10) - table.log_shares[k])
        assert (found.values <= single.upper + 1e-9).all()
    assert logsumexp(table.log_shares) == pytest.approx(0.0, abs=1e-12)


def test_without_a_ball():
    for seed in range(4):
        rng = np.random.default_rng([seed, 7])
        target, _ = mixture(rng, **{**ORDINARY, "covariates": 2 + 2 * seed, "dim": 4})
        A = np.vstack([target.X[:2], rng.normal(size=(2, 4)), np.zeros((1, 4))])
        free, wide = replace(target, bound=np.inf), replace(target, bound=1e4)
        found, bounded = _solver.prepare(free).solve(A), _solver.prepare(wide).solve(A)
        spanned = np.linalg.matrix_rank(target.X) == 4
        np.testing.assert_array_equal(np.isinf(found.upper), [False, False, not spanned, not spanned, False])
        finite = np.isfinite(found.upper)
        np.testing.assert_allclose(found.upper[finite], bounded.upper[finite], rtol=1e-6, atol=1e-6)
        assert all(log_ratio_by_hand(target, theta) <= target.level + 1e-9 for theta in found.points)
        assert (found.upper[finite] - found.values[finite] <= 1e-6 * (1.0 + np.abs(found.upper[finite]))).all()
    one = PointTerms(np.array([0, 1]), np.array([1.0]), np.array([4.0]))
    table = VoiceTable(np.array([0, 0, 1]), np.array([0]), np.log([0.5, 0.5]))
    silent = MixtureSet(np.zeros((1, 2)), one, np.zeros(1), table, 9.0, np.inf)
    found = _solver.prepare(silent).solve(np.array([[1.0, 0.0], [0.0, 0.0]]))
    np.testing.assert_array_equal(found.upper, [np.inf, 0.0])
    assert _solver.prepare(replace(silent, level=1.0)).status == "empty"
