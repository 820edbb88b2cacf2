"""Nothing depends on units of measurement where no bound is given: priors are learnt in units of noise and columns."""

import numpy as np
import pytest

import likeset as ls
from likeset import checks
from likeset.embedded import NOTHING
from likeset.families.answers import NOISE_GRID
from likeset.predictors.mixture import DEFAULT_GRID, UNBOUNDED_SCALE

LENGTHS = (1.0, 1e3, 1e-3)  # metres, millimetres, kilometres


def rows(n=60, seed=0):
    """d = 5 with an intercept; the other columns far from zero, as raw columns are."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([np.ones(n), rng.normal(3.0, 1.0, size=(n, 4))])
    return X, X @ [5.0, 1.0, -1.0, 0.5, 0.0], rng


def widths(family, X, y, at):
    seq = ls.ConfidenceSequence(family, ls.Linear(X.shape[1]), 0.05)
    seq.update(X, y)
    low, high = seq.set.interval(at)
    return high - low


@pytest.mark.parametrize(
    "family",
    [lambda u: ls.Gaussian(u), lambda u: ls.Gaussian(ls.Unknown()), lambda u: ls.Laplace(ls.Unknown())],
    ids=["known", "unknown", "Laplace"],
)
def test_lengths_in_metres_millimetres_and_kilometres(family):
    X, mean, rng = rows()
    y = mean + rng.normal(size=len(mean))
    found = []
    for of_y in LENGTHS:
        for of_x in LENGTHS:
            units = np.array([1.0, of_x, of_x, of_x, of_x])
            found.append(widths(family(of_y), X * units, of_y * y, X[:4] * units) / of_y)
    assert np.allclose(found, found[0], rtol=0.05)
    assert np.allclose(found, found[0], rtol=1e-4)


def test_counts_with_columns_in_any_unit():
    X, mean, rng = rows(40)
    y = rng.poisson(np.exp(0.2 * mean))
    found = []
    for of_x in LENGTHS:
        units = np.array([1.0, of_x, of_x, of_x, of_x])
        found.append(widths(ls.Poisson(), X * units, y, X[:4] * units))
    assert np.isfinite(found).all() and np.allclose(found, found[0], rtol=0.05)


def test_the_scale_that_was_guessed_cost_a_factor():
    """With the priors of before, made for |theta| of about 10, the same data in micrometres have wider intervals."""
    X, mean, rng = rows()
    y = 1e6 * (mean + rng.normal(size=len(mean)))
    guessed = ls.ConfidenceSequence(
        ls.Gaussian(1e6), ls.Linear(5), 0.05, ls.Mixture(np.array(DEFAULT_GRID) / UNBOUNDED_SCALE**2)
    )
    guessed.update(X, y)
    low, high = guessed.set.interval(X[:4])
    assert (high - low > 2.0 * widths(ls.Gaussian(1e6), X, y, X[:4])).all()


def test_no_worse_than_a_bound_that_is_known():
    X, mean, rng = rows(200, 1)
    y = mean + rng.normal(size=len(mean))
    bounded = ls.ConfidenceSequence(ls.Gaussian(1.0), ls.Linear(5, 6.0), 0.05, voices=None)
    bounded.update(X, y)
    low, high = bounded.set.interval(np.eye(5)[1:])  # the intercept itself is cut by the bound
    assert (widths(ls.Gaussian(1.0), X, y, np.eye(5)[1:]) <= 1.1 * (high - low)).all()


@pytest.mark.parametrize("family", [ls.Gaussian(0.5), ls.Gaussian(ls.Unknown()), ls.Poisson()], ids=repr)
def test_one_step_growth_and_files(family, tmp_path):
    rng = np.random.default_rng(2)
    X = np.column_stack([np.ones(12), rng.normal(size=12)])
    X[:4, 1] = 0.0  # a column that nobody has seen yet
    seq = ls.ConfidenceSequence(family, ls.Linear(2), 0.1)
    for count in (3, 5, 4):
        seq.update(X[:count], rng.poisson(1.0, size=count))
        checks.check_growth(seq, [1.0, 40.0], [[0.3, 0.01], [0.1, -0.02]])
        X = X[count:]
    checks.check_round_trip(seq)
    with pytest.raises(ls.LikesetError):
        seq.update([[1.0, 2.0], [1.0, 3.0]], [1.0, np.nan])
    seq.save(tmp_path / "seq")
    again = ls.load(tmp_path / "seq")
    for other in (seq, again):
        other.update([1.0, 2.0], 1)
    assert np.array_equal(seq.set.upper(np.eye(2)), again.set.upper(np.eye(2)))
    assert np.array_equal(seq.belief.moments(np.eye(2)), again.belief.moments(np.eye(2)))


def test_beliefs_are_those_of_least_squares():
    X, mean, rng = rows(300, 3)
    seq = ls.ConfidenceSequence(ls.Gaussian(1.0), ls.Linear(5))
    y = mean + rng.normal(size=len(mean))
    seq.update(X, y)
    expected, deviation = seq.belief.moments(X[:3])
    fit = np.linalg.lstsq(X, y, rcond=None)[0]
    assert np.allclose(expected, X[:3] @ fit, atol=0.1)  # priors pull a little
    assert np.allclose(deviation, np.sqrt(np.einsum("ij,jk,ik->i", X[:3], np.linalg.inv(X.T @ X), X[:3])), rtol=0.1)


# -- beliefs in units that rows bring -------------------------------------------------------------------------------


def by_hand(X, y, x, sigma, grid):
    """log-density weights, means and variances at x: Bayes' rule with units of all rows so far, x included."""
    m = np.maximum(np.abs(X).max(axis=0, initial=0.0), np.abs(x))
    Z, z = X / m, x / m
    logs, means, variances = [], [], []
    for lam in grid:
        P = lam * np.eye(len(x)) + Z.T @ Z / sigma**2
        mean = np.linalg.solve(P, Z.T @ y / sigma**2)
        covariance = sigma**2 * np.eye(len(y)) + Z @ Z.T / lam  # of all y
        logs.append(-0.5 * np.linalg.slogdet(covariance)[1] - 0.5 * y @ np.linalg.solve(covariance, y))
        means.append(z @ mean)
        variances.append(z @ np.linalg.solve(P, z) + sigma**2)
    return np.array(logs) - np.logaddexp.reduce(logs), np.array(means), np.array(variances)


def test_forecasts_are_bayes_rule_with_units_of_all_rows_the_next_one_included():
    rng = np.random.default_rng(8)
    sigma, grid = 0.5, NOISE_GRID / 0.5**2
    X = rng.standard_t(2, size=(40, 3))  # rows bring larger units again and again
    y = X @ [1.0, -0.5, 0.2] + sigma * rng.normal(size=40)
    seq = ls.ConfidenceSequence(ls.Gaussian(sigma), ls.Linear(3), 0.1)
    grown = 0
    for s in range(40):
        if s >= 3:
            logs, means, variances = by_hand(X[:s], y[:s], X[s], sigma, grid)
            parts = logs - 0.5 * (y[s] - means) ** 2 / variances - 0.5 * np.log(2 * np.pi * variances)
            wanted = np.logaddexp.reduce(parts)
            grown += (np.abs(X[s]) > np.abs(X[:s]).max(axis=0)).any()
        seq.update(X[s], y[s])
        # Between rows that bring units the shares learn as they are: the rule holds where the last row brought some.
        if s >= 3 and (np.abs(X[s]) > np.abs(X[:s]).max(axis=0)).any():
            assert seq.ledger.log_q.rows[s] == pytest.approx(wanted, abs=1e-7)
    assert grown >= 5


@pytest.mark.parametrize(
    "family", [ls.Gaussian(0.5), ls.Gaussian(ls.Unknown()), ls.Poisson(), ls.Laplace(0.5)], ids=repr
)
def test_a_forecast_that_is_only_looked_at_changes_nothing(family):
    rng = np.random.default_rng(9)
    X = rng.normal(size=(20, 2))
    y = rng.poisson(1.0, size=20).astype(float)
    plain, asked = (ls.ConfidenceSequence(family, ls.Linear(2), 0.1) for _ in range(2))
    for s in range(20):
        plain.update(X[s], y[s])
        far = asked._running.ledger.embed(asked._running.basis, np.array([1e3, -1e3]) * rng.normal())[1]
        asked.forecaster.forecast(far)
        asked.update(X[s], y[s])
    np.testing.assert_array_equal(asked.ledger.log_q.rows, plain.ledger.log_q.rows)


def test_a_failed_batch_that_brought_units_leaves_them_as_they_were():
    seq = ls.ConfidenceSequence(ls.Poisson(), ls.Linear(2), 0.1)
    seq.update([[1.0, 0.5], [0.2, 1.0]], [1, 2])
    before = {k: v.copy() for k, v in seq.forecaster.state().items()}
    with pytest.raises(ls.LikesetError):
        seq.update([[50.0, 0.5], [0.2, 90.0], [1.0, 1.0]], [1, 2, -1])
    with pytest.raises(OverflowError):  # at the last row, when the others are recorded
        seq._all_or_nothing(lambda undo: _three_rows_and_an_error(seq, undo))
    for name, value in seq.forecaster.state().items():
        np.testing.assert_array_equal(value, before[name])


def _three_rows_and_an_error(seq, undo):
    seq._record_all(undo, np.array([[50.0, 0.5], [0.2, 90.0]]), np.array([1.0, 2.0]), np.tile(NOTHING, (2, 1)))
    assert seq._running.forecaster.columns.units.max() == 90.0
    raise OverflowError


def test_a_loose_bound_costs_little():
    """Priors go on until they are narrow in units of the noise; a state that knew five goes on with these."""
    rng = np.random.default_rng(12)
    X = rng.normal(size=(120, 6)) / np.sqrt(6)
    y = X[:, 0] * 0.3 + 0.3 * rng.normal(size=120)
    width = {}
    for bound in (1.0, 100.0):
        sequence = ls.ConfidenceSequence(ls.Gaussian(0.3), ls.Linear(6, bound), 0.05)
        sequence.update(X, y)
        low, high = sequence.set.interval(np.eye(6))
        width[bound] = float((high - low).mean())
    forecaster = sequence._running.forecaster
    assert len(forecaster.log_shares) == 5 + 7
    assert np.exp(forecaster.log_shares).sum() == pytest.approx(1.0)
    five = ls.Mixture(np.array(DEFAULT_GRID) / 100.0**2)
    old = ls.ConfidenceSequence(ls.Gaussian(0.3), ls.Linear(6, 100.0), 0.05, five)
    old.update(X, y)
    low, high = old.set.interval(np.eye(6))
    assert width[100.0] < 0.95 * float((high - low).mean())
    forecaster.restore(old._running.forecaster.state())
    np.testing.assert_array_equal(forecaster.log_shares, old._running.forecaster.log_shares)
    np.testing.assert_array_equal(forecaster.posterior.beliefs.priors, np.array(DEFAULT_GRID) / 100.0**2)
