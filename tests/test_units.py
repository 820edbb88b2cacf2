"""Nothing depends on units of measurement where no bound is given: priors are learnt in units of noise and columns."""

import numpy as np
import pytest

import likeset as ls
from likeset import checks
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
