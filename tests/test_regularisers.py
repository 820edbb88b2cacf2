"""Quadratic regularisers of FTRL: matrices, centres, functions of time, against solvers of other people."""

import cvxpy as cp
import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.gaussian_process.kernels import RBF

import likeset as ls
from likeset import checks
from likeset.errors import InvalidArgumentError, PieceError, ShapeError

CONVEX = [f for f in checks.built_in_families() if f.convex]
PENALTY = np.array([[0.9, 0.3, 0.0], [0.3, 0.4, -0.1], [0.0, -0.1, 2.0]])
CENTRE = np.array([0.6, -0.8, 0.3])


def fed(family, predictor, space, n=25, seed=0):
    """A sequence with repeated, ordered covariates that do not span the space, and its rows."""
    rng = np.random.default_rng(seed)
    x = np.sort(rng.uniform(-1.0, 1.0, size=(n, 3)), axis=0)
    x[:, 2] = x[:, 0] - 0.5 * x[:, 1]  # in a plane: the penalty alone says where theta is outside
    x[5:9] = x[4]
    y = family.sample(x @ np.array([0.7, -0.4, 0.2]), rng)
    sequence = ls.ConfidenceSequence(family, space, predictor=predictor, voices=None)
    sequence.update(x, y)
    return sequence, x, y


def objective(family, x, y, theta, penalty, centre):
    return float(-np.sum(family.log_density(y, x @ theta)) + (theta - centre) @ penalty @ (theta - centre))


def fitted(sequence, x):
    """theta_hat of the forecaster, from its forecasts at the unit vectors."""
    space = sequence.space
    fit = sequence.forecaster.fit
    coordinates = space.turn
    phi = ls.Embedded(x=np.zeros(3), coordinates=np.zeros(3), index=0)
    return np.asarray(coordinates.T @ fit.estimate(phi))


@pytest.mark.parametrize("bound", [np.inf, 0.2])
@pytest.mark.parametrize("family", CONVEX, ids=repr)
def test_the_fit_is_the_minimum_that_another_solver_finds(family, bound):
    sequence, x, y = fed(family, ls.FTRL(PENALTY, centre=CENTRE), ls.Linear(3, bound))
    theta = fitted(sequence, x)
    found = objective(family, x, y, theta, PENALTY, CENTRE)
    if isinstance(family, ls.Laplace):
        t = cp.Variable(3)
        loss = cp.sum(cp.abs(y - x @ t)) / family.scale + cp.quad_form(t - CENTRE, PENALTY)
        cp.Problem(cp.Minimize(loss), [cp.norm(t) <= min(bound, 1e6)]).solve(solver="CLARABEL")
        best = objective(family, x, y, t.value * min(1.0, bound / np.linalg.norm(t.value)), PENALTY, CENTRE)
    else:
        inside = {"type": "ineq", "fun": lambda t: bound**2 - t @ t}
        answer = minimize(
            lambda t: objective(family, x, y, t, PENALTY, CENTRE), np.full(3, 0.1), method="SLSQP",
            constraints=[] if bound == np.inf else [inside], options={"ftol": 1e-13, "maxiter": 500},
        )  # fmt: skip
        best = answer.fun
    assert np.linalg.norm(theta) <= bound * (1 + 1e-9)
    assert abs(found - best) <= 1e-6 * (1.0 + abs(best))
    if bound < np.inf:
        assert np.linalg.norm(theta) > 0.99 * bound  # the case that was meant: the ball matters


@pytest.mark.parametrize("family", [ls.Poisson(), ls.Laplace(0.4)], ids=repr)
def test_an_ellipsoid_as_theta(family):
    metric = np.array([[1.0, 0.2, 0.0], [0.2, 0.5, 0.1], [0.0, 0.1, 2.0]])
    sequence, x, y = fed(family, ls.FTRL(PENALTY, centre=CENTRE), ls.LinearEllipsoid(metric, 0.6))
    theta = fitted(sequence, x)
    t = cp.Variable(3)
    z = x @ t
    loss = cp.sum(cp.exp(z)) - y @ z if isinstance(family, ls.Poisson) else cp.sum(cp.abs(y - z)) / family.scale
    problem = cp.Problem(cp.Minimize(loss + cp.quad_form(t - CENTRE, PENALTY)), [cp.quad_form(t, metric) <= 0.6**2])
    problem.solve(solver="CLARABEL")
    assert theta @ metric @ theta <= 0.6**2 * (1 + 1e-9)
    ours, theirs = (objective(family, x, y, at, PENALTY, CENTRE) for at in (theta, t.value))
    assert abs(ours - theirs) <= 1e-6 * (1.0 + abs(theirs))


@pytest.mark.parametrize("cls", [ls.FTRL, ls.VAW])
@pytest.mark.parametrize("family", [ls.Gaussian(0.5), ls.Poisson(), ls.Bernoulli(), ls.Laplace(0.4)], ids=repr)
def test_a_multiple_of_the_identity_is_the_plain_penalty(cls, family):
    if cls is ls.VAW and isinstance(family, ls.Laplace):
        pytest.skip("no log-partition function")
    given = {"offset": 0.3} if not isinstance(family, ls.Laplace) else {}
    plain, shaped = (
        ls.ConfidenceSequence(family, ls.Linear(3, 1.0), predictor=cls(p), voices=None) for p in (0.7, 0.7 * np.eye(3))
    )
    rng = np.random.default_rng(3)
    x = rng.normal(size=(20, 3))
    y = family.sample(x @ np.array([0.5, -0.2, 0.1]), rng)
    for sequence in (plain, shaped):
        sequence.update(x, y, **given)
    np.testing.assert_allclose(shaped.ledger.state()["log_q"], plain.ledger.state()["log_q"], atol=2e-4)


@pytest.mark.parametrize("family", [ls.Gaussian(0.5), ls.Bernoulli()], ids=repr)
@pytest.mark.parametrize(
    "predictor",
    [
        ls.FTRL([[1.0, 0.5], [0.5, 0.6]], centre=[0.4, -0.4]),
        ls.FTRL(lambda t: np.sqrt(1.0 + t)),
        ls.FTRL(centre=[5.0, 5.0]),
    ],
    ids=["matrix", "time", "far centre"],
)  # fmt: skip
def test_one_step_of_the_ratio(predictor, family):
    checks.check_predictor(predictor, family)


def test_regularisers_that_change_with_time():
    seen = []

    def penalty(t):
        seen.append(t)
        return (1.0 + t) * PENALTY

    sequence, x, y = fed(ls.Poisson(), ls.FTRL(penalty, centre=CENTRE), ls.Linear(3, 3.0))
    assert seen[:3] == [0, 1, 2] and max(seen) == 24
    theta = fitted(sequence, x)
    answer = minimize(lambda t: objective(sequence.family, x, y, t, 26 * PENALTY, CENTRE), CENTRE, method="BFGS")
    np.testing.assert_allclose(theta, answer.x, atol=1e-4)
    rows = ls.RKHS(RBF(0.3), bound=2.0)
    functions = ls.ConfidenceSequence(ls.Gaussian(0.3), rows, predictor=ls.FTRL(lambda t: 1.0 + t), voices=None)
    functions.update([[0.1], [0.2], [0.1]], [0.5, 0.4, 0.3])
    assert functions.n_observations == 3  # a number for every t is fine in function spaces
    with pytest.raises(PieceError, match="t = 3"):
        again = ls.ConfidenceSequence(ls.Poisson(), ls.Linear(3, 3.0), predictor=ls.FTRL(lambda t: 3.0 - t))
        again.update(x[:5], y[:5])
    assert again.n_observations == 0


@pytest.mark.parametrize("family", [ls.Poisson(), ls.Laplace(0.4)], ids=repr)
def test_files_and_journals_restore_it(family, tmp_path):
    predictor = ls.FTRL(PENALTY, centre=CENTRE)
    sequence, x, y = fed(family, predictor, ls.Linear(3, 2.0))
    sequence.save(tmp_path / "saved")
    loaded = ls.load(tmp_path / "saved")
    assert repr(loaded.predictor) == "FTRL(penalty=3 x 3, centre=[0.6, -0.8, 0.3])"
    with ls.ConfidenceSequence.open(tmp_path / "j", family, ls.Linear(3, 2.0), predictor=predictor, voices=None) as one:
        one.update(x[:10], y[:10])
    with ls.ConfidenceSequence.open(tmp_path / "j", family, ls.Linear(3, 2.0), predictor=predictor, voices=None) as two:
        two.update(x[10:], y[10:])
        np.testing.assert_allclose(two.ledger.state()["log_q"], sequence.ledger.state()["log_q"], atol=1e-9)
    with pytest.raises(ls.LikesetError, match="predictor"):
        other = ls.FTRL(2 * PENALTY, centre=CENTRE)
        ls.ConfidenceSequence.open(tmp_path / "j", family, ls.Linear(3, 2.0), predictor=other, voices=None)
    for each in (sequence, loaded):
        each.update(x[:3] + 0.1, y[:3])
    np.testing.assert_allclose(loaded.ledger.state()["log_q"], sequence.ledger.state()["log_q"], atol=1e-9)


def test_a_function_of_time_is_passed_to_load_again(tmp_path):
    predictor = ls.FTRL(lambda t: np.sqrt(1.0 + t) * PENALTY)
    sequence, x, y = fed(ls.Poisson(), predictor, ls.Linear(3, 2.0))
    sequence.save(tmp_path / "saved")
    with pytest.raises(InvalidArgumentError, match="predictor"):
        ls.load(tmp_path / "saved")
    loaded = ls.load(tmp_path / "saved", predictor=predictor)
    for each in (sequence, loaded):
        each.update(x[:3], y[:3])
    np.testing.assert_allclose(loaded.ledger.state()["log_q"], sequence.ledger.state()["log_q"], atol=1e-9)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"penalty": [[1.0, 0.0]]}, ShapeError, "square"),
        ({"penalty": [[1.0, 0.2], [0.3, 1.0]]}, InvalidArgumentError, "symmetric"),
        ({"penalty": [[1.0, 2.0], [2.0, 1.0]]}, InvalidArgumentError, "positive definite"),
        ({"penalty": -1.0}, InvalidArgumentError, "penalty"),
        ({"penalty": np.eye(2), "centre": [1.0]}, ShapeError, "centre"),
        ({"centre": [[1.0]]}, ShapeError, "centre"),
        ({"centre": ["a"]}, InvalidArgumentError, "centre"),
    ],
)  # fmt: skip
def test_wrong_regularisers(arguments, error, message):
    with pytest.raises(error, match=message):
        ls.FTRL(**arguments)


def test_regularisers_that_do_not_fit_the_space():
    with pytest.raises(ShapeError, match="penalty"):
        ls.ConfidenceSequence(ls.Poisson(), ls.Linear(2, 1.0), predictor=ls.FTRL(np.eye(3)))
    with pytest.raises(InvalidArgumentError, match="centre"):
        ls.ConfidenceSequence(ls.Poisson(), ls.RKHS(RBF(0.3), bound=2.0), predictor=ls.FTRL(centre=[0.0]))
