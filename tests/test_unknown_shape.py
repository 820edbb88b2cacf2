"""Weibull lifetimes of unknown shape: exact projections, guarantees, widths, and everything a sequence can do."""

import cvxpy as cp
import numpy as np
import pytest
from scipy.stats import binom

import likeset as ls
from likeset import checks
from likeset._solver.concave import ConcaveSearch

ALPHA = 0.1
ARMS = np.array([[1.0, 0.0], [0.6, 0.8], [0.0, 1.0], [-0.6, 0.8]])
THETA = np.array([0.5, -0.4])


def lifetimes(n, seed, shape=1.5, censor=2.0):
    rng = np.random.default_rng(seed)
    X = ARMS[rng.integers(len(ARMS), size=n)]
    times = (rng.exponential(size=n) * np.exp(-X @ THETA)) ** (1 / shape)
    return X, np.column_stack([np.minimum(times, censor), times <= censor]).astype(float)


def sequence(shape=None, family=ls.Weibull, bound=2.0, **more):
    """The joint set by the model's own ratio: tests/test_alarm_unknown.py and test_unknown_voices.py have the rest."""
    unknown, more = ls.Unknown() if shape is None else shape, {"alarm": False, "voices": None} | more
    return ls.ConfidenceSequence(family(shape=unknown), ls.Linear(2, bound), ALPHA, **more)


@pytest.mark.parametrize("shape", [ls.Unknown(), ls.Unknown(1.6, 4.0), ls.Unknown(hi=1.3)], ids=repr)
def test_bounds_are_those_of_cvxpys_joint_program(shape):
    X, y = lifetimes(60, 0)
    seq = sequence(shape)
    seq.update(X, y)
    log_t, event = np.log(y[:, 0]), y[:, 1]
    theta, p = cp.Variable(2), cp.Variable()
    loss = cp.sum(cp.exp(p * log_t + X @ theta)) - event @ (X @ theta) - event.sum() * cp.log(p)
    loss += float(seq.ledger.log_q.rows.sum()) - float(event @ log_t) * (p - 1)
    limits = [loss <= np.log(1 / ALPHA), cp.norm(theta) <= 2.0, p >= seq.family.lo, p <= seq.family.hi]
    for x in ([1.0, 0.0], [0.3, -1.0]):
        problem = cp.Problem(cp.Maximize(np.array(x) @ theta), limits)
        problem.solve(solver=cp.CLARABEL)
        answer = seq.set.support([x])
        assert problem.value - 1e-7 <= answer.upper[0] <= problem.value + 1e-6
        assert seq.set.contains(answer.maximisers[0] * (1 - 1e-9))
        assert answer.gap[0] <= 1e-6
    for sign, end in ((1, 1), (-1, 0)):
        problem = cp.Problem(cp.Maximize(sign * p), limits)
        problem.solve(solver=cp.CLARABEL)
        assert seq.set.nuisance_interval()[end] == pytest.approx(sign * problem.value, rel=1e-5)


def test_log_ratio_is_the_least_over_shapes():
    X, y = lifetimes(40, 1)
    seq = sequence()
    seq.update(X, y)
    for theta in (THETA, [1.0, 0.5]):
        found = seq.set.log_ratio(theta)
        grid = [seq.set.log_ratio(theta, p) for p in np.geomspace(0.3, 5.0, 400)]
        assert min(grid) - 1e-3 <= found <= min(grid) + 1e-9
    log_p = ls.Weibull(1.3).log_density(y, X @ THETA).sum()
    assert seq.set.log_ratio(THETA, 1.3) == pytest.approx(seq.ledger.log_q.rows.sum() - log_p, rel=1e-10)


def test_logarithms_of_times_have_the_same_sets():
    X, y = lifetimes(40, 2)
    times, logs = sequence(), sequence(family=ls.LogWeibull)
    times.update(X, y)
    logs.update(X, np.column_stack([np.log(y[:, 0]), y[:, 1]]))
    assert np.allclose(times.set.upper(ARMS), logs.set.upper(ARMS), rtol=1e-6)


@pytest.mark.parametrize("shape", [0.7, 2.5])
def test_one_step_growth(shape):
    X, y = lifetimes(10, 3)
    seq = sequence(ls.Unknown(0.4, 4.0))
    for rows in (slice(0, 0), slice(0, 10)):
        if rows.stop:
            seq.update(X[rows], y[rows])
        growth = checks.one_step_growth(seq, [0.6, -0.4], [0.3, 0.2], nuisance=shape)
        assert growth <= 1.0 + 1e-4
    assert growth == pytest.approx(1.0, abs=0.02)


def test_contract_suite():
    checks.check_predictor(ls.Mixture(), ls.LogWeibull(shape=ls.Unknown(0.5, 4.0)))


def misses(family, shape, runs, steps, seed):
    count = 0
    for run in range(runs):
        rng = np.random.default_rng([seed, run])
        seq = ls.ConfidenceSequence(family, ls.Linear(2, 2.0), ALPHA, voices=None)
        for k in range(steps):
            # Adaptive: what is least known of two arms by the forecaster's own beliefs; censored at two.
            x = ARMS[int(rng.integers(4)) if k < 4 else int(np.argmax(seq.belief.moments(ARMS)[1]))]
            t = (rng.exponential() * np.exp(-x @ THETA)) ** (1 / shape)
            seq.update(x, [[min(t, 2.0), float(t <= 2.0)]])
            if not seq.set.contains(THETA, *([shape] if hasattr(family, "known") else [])):
                count += 1
                break
    return count


def test_coverage_of_theta_and_shape_with_adaptive_covariates_and_censoring():
    runs = 40
    assert misses(ls.Weibull(shape=ls.Unknown()), 1.4, runs, 30, 0) <= int(binom.ppf(1 - 1e-6, runs, ALPHA))


def test_a_told_shape_that_is_wrong_misses():
    assert misses(ls.Weibull(3.0), 1.4, 20, 60, 1) > int(binom.ppf(1 - 1e-6, 20, ALPHA))


def test_widths_beside_those_of_a_known_shape():
    ratios = []
    for run in range(4):
        X, y = lifetimes(150, [4, run])
        pair = []
        for shape in (ls.Unknown(), 1.5):
            seq = sequence(shape)
            seq.update(X, y)
            low, high = seq.set.interval([[1.0, 0.0]])
            pair.append(float(high[0] - low[0]))
        ratios.append(pair[0] / pair[1])
    assert np.mean(ratios) <= 1.35


def test_a_range_that_excludes_the_data_is_refuted():
    X, y = lifetimes(150, 5, shape=3.0)
    seq = sequence(ls.Unknown(hi=1.0))
    seq.update(X, y)
    assert seq.set.is_empty
    with pytest.raises(ls.EmptySetError):
        seq.set.nuisance_interval()
    with pytest.raises(ls.EmptySetError):
        seq.set.upper(ARMS)


def test_save_load_journal_and_undo(tmp_path):
    X, y = lifetimes(20, 6)
    family, space = ls.Weibull(shape=ls.Unknown(0.2, 9.0)), ls.Linear(2, 2.0)
    seq = ls.ConfidenceSequence(family, space, ALPHA)
    seq.update(X[:12], y[:12])
    seq.save(tmp_path / "seq")
    with ls.ConfidenceSequence.open(tmp_path / "journal", family, space, ALPHA) as durable:
        durable.update(X[:12], y[:12])
    reopened = ls.ConfidenceSequence.open(tmp_path / "journal", family, space, ALPHA)
    before = seq.set.log_ratio(THETA)
    with pytest.raises(ls.LikesetError):
        seq.update(X[12:], np.where(np.arange(8)[:, None] < 7, y[12:], -1.0))
    assert seq.set.log_ratio(THETA) == before
    loaded = ls.load(tmp_path / "seq")
    for other in (seq, loaded, reopened):
        other.update(X[12:], y[12:])
    for other in (loaded, reopened):
        assert np.array_equal(other.ledger.log_q.rows, seq.ledger.log_q.rows)
        assert np.array_equal(other.set.upper(ARMS[:1]), seq.set.upper(ARMS[:1]))
    reopened.close()


def test_a_plausible_shape_is_found_where_bounds_of_the_depth_are_far_off():
    """A thousand times: the shape to begin with and all around it are out of the question, and the bound is tight."""
    rng = np.random.default_rng([5000, 2, 0])
    arms, _, theta = (rng.normal(size=(k, 2)) for k in (40, 10, 1))
    arms, theta = (v / np.linalg.norm(v, axis=1)[:, None] for v in (arms, theta))
    X = arms[rng.integers(40, size=1000)]
    seq = sequence()
    seq.update(X, ls.Weibull(2.0).sample(X @ (1.6 * theta[0]), rng))
    low, high = seq.set.interval(np.eye(2))
    assert (high - low).max() < 1.0
    assert seq.set.contains(1.6 * theta[0]) and not seq.set.is_empty


def test_no_bound_and_functions():
    X, y = lifetimes(80, 7)
    free = ls.ConfidenceSequence(ls.Weibull(shape=ls.Unknown()), ls.Linear(2), ALPHA)
    assert free.set.upper([[1.0, 0.0]])[0] == np.inf
    free.update(X, y)
    low, high = free.set.interval([[1.0, 0.0]])
    assert low[0] < THETA[0] < high[0] < 3.0
    grid = np.linspace(0, 1, 9)[:, None]
    space = ls.RKHS(lambda A, B: np.exp(-((A - B.T) ** 2) / 0.2), bound=2.0, domain=grid)
    seq = ls.ConfidenceSequence(ls.Weibull(shape=ls.Unknown()), space, ALPHA)
    rng = np.random.default_rng(8)
    for i in rng.integers(9, size=60):
        seq.update(grid[i], [[float(rng.exponential() ** 0.5), 1.0]])
    low, high = seq.set.interval(grid[:2])
    assert (low < 0.0).all() and (high > 0.0).all() and (high - low < 3.0).all()


def test_refusals():
    family = ls.Weibull(shape=ls.Unknown())
    for ask in (
        lambda: family.mean(0.0), lambda: family.known(-1.0), lambda: sequence(predictor=ls.FTRL()),
        lambda: sequence().update([1.0, 0.0], [[1e300, 1.0]]),
        lambda: sequence().update([1.0, 0.0], [[1.0, 1.0]], offset=1.0),
    ):  # fmt: skip
        with pytest.raises(ls.InvalidArgumentError):
            ask()
    seq = sequence()
    seq.update(*lifetimes(20, 9))
    found = seq.set.evidence([1.0, 0.0], above=1.0).log_e_value
    grid = np.array([[a, b] for a in np.linspace(1.0, 1.9, 10) for b in np.linspace(-0.6, 0.6, 13)])
    assert found <= seq.set.log_ratio(grid).min() + 1e-9
    with pytest.raises(ls.InvalidArgumentError, match="not convex in an unknown shape"):
        seq.update([1.0, 0.0], [[0.5, 2.0, 1.0]])  # (entry, exit, event): not convex in the shape


@pytest.mark.parametrize("peak", [0.3, 1.234, 4.9])
def test_search_of_a_concave_function(peak):
    def bowl(p):
        value = np.sqrt(1.0 - ((p - peak) / 1.5) ** 2) if abs(p - peak) <= 1.5 else -np.inf
        return (value - 1e-9, value + 1e-9) if value > -np.inf else (-np.inf, -np.inf)

    search = ConcaveSearch(0.05, 20.0)
    for p in (peak + 0.3, peak + 0.5):
        search.learn(p, *bowl(p))
    value, bound = search.run(bowl, 1e-7)
    assert value <= 1.0 <= bound <= value + 3e-7


def test_search_of_a_smooth_function_takes_few_values():
    search = ConcaveSearch(0.1, 4.0)
    for p in (1.0, 2.0, 3.0):
        search.learn(p, *[np.log(p) - p / 1.7] * 2)
    top = np.log(1.7) - 1.0
    value, bound = search.run(lambda p: (np.log(p) - p / 1.7,) * 2, 1e-8)
    assert value <= top <= bound <= value + 3e-8
    assert len(search.points) <= 12  # 19 by the lines of the outer bound alone


def test_a_place_where_the_function_is_lost_is_not_looked_at_again():
    search = ConcaveSearch(0.0, 1.0)
    for p, value in ((0.18, -0.7526), (0.29, -0.493), (0.58, 0.0), (0.98, -0.01)):
        search.learn(p, value, value)
    search.learn(1.0, -np.inf, -np.inf)
    where = search.next(1e-8, handy=[0.18, 0.29, 0.58, 0.98, 1.0], near=0.1)
    assert 0.58 < where < 0.98
