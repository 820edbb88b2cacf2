"""Theta as an ellipsoid: a linear model in other coordinates, answer for answer; saved, loaded, updated alike."""

import numpy as np
import pytest

import likeset as ls

METRIC = np.array([[4.0, 1.0, 0.0], [1.0, 1.0, 0.2], [0.0, 0.2, 0.25]])
FACTOR = np.linalg.cholesky(METRIC)
THETA = np.array([0.2, -0.3, 0.8])


def both(family, voices=None, predictor=None, n=60):
    """The ellipsoid, and the ball for rows turned by hand."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    y = family.sample(X @ THETA, rng)
    ours = ls.ConfidenceSequence(family, ls.LinearEllipsoid(METRIC, 1.5), voices=voices, predictor=predictor)
    ball = ls.ConfidenceSequence(family, ls.Linear(3, 1.5), voices=voices, predictor=predictor)
    ours.update(X, y)
    ball.update(np.linalg.solve(FACTOR, X.T).T, y)
    return ours, ball


@pytest.mark.parametrize("predictor", [ls.FTRL(2.0), ls.Mixture([0.5])], ids=repr)
@pytest.mark.parametrize("family", [ls.Gaussian(0.5), ls.Poisson(), ls.Laplace(0.5)], ids=repr)
def test_every_answer_is_that_of_the_ball_in_other_coordinates(family, predictor):
    ours, ball = both(family, predictor=predictor)
    Q = np.random.default_rng(1).normal(size=(6, 3))
    turned = np.linalg.solve(FACTOR, Q.T).T
    assert ours.set.upper(Q) == pytest.approx(ball.set.upper(turned), abs=1e-6)
    assert ours.set.lower(Q) == pytest.approx(ball.set.lower(turned), abs=1e-6)
    points = np.random.default_rng(2).normal(size=(200, 3))
    assert np.array_equal(ours.set.contains(points), ball.set.contains(points @ FACTOR))
    assert ours.set.log_ratio(THETA) == pytest.approx(ball.set.log_ratio(THETA @ FACTOR), abs=1e-8)
    found = ours.set.support(Q)
    assert np.einsum("ij,ij->i", Q, found.maximisers) == pytest.approx(found.values)
    assert ours.set.contains(found.maximisers + 1e-6 * (ours.set.centre - found.maximisers)).all()
    evidence = ours.set.evidence(Q, below=Q @ THETA - 0.3).log_e_value
    assert evidence == pytest.approx(ball.set.evidence(turned, below=Q @ THETA - 0.3).log_e_value, abs=1e-5)


def test_without_data_the_set_is_the_ellipsoid():
    s = ls.ConfidenceSequence(ls.Poisson(), ls.LinearEllipsoid(METRIC, 2.0)).set
    assert s.upper(np.eye(3)) == pytest.approx(2.0 * np.sqrt(np.diag(np.linalg.inv(METRIC))))
    edge = 2.0 * THETA / np.sqrt(THETA @ METRIC @ THETA)
    assert s.contains(edge * (1 - 1e-9)) and not s.contains(edge * (1 + 1e-9))


def test_files(tmp_path):
    ours, _ = both(ls.Poisson(), voices="auto")
    ours.save(tmp_path / "file")
    again = ls.load(tmp_path / "file")
    assert np.array_equal(again.set.upper(np.eye(3)), ours.set.upper(np.eye(3)))
    assert np.array_equal(again.space.metric, METRIC)


def test_another_centre_by_an_offset():
    rng, centre = np.random.default_rng(3), np.array([3.0, -2.0, 1.0])
    X = rng.normal(size=(80, 3))
    y = X @ (centre + THETA) + 0.5 * rng.normal(size=80)
    sequence = ls.ConfidenceSequence(ls.Gaussian(0.5), ls.LinearEllipsoid(METRIC, 1.5))
    sequence.update(X, y, offset=X @ centre)
    assert sequence.set.contains(THETA) and not sequence.set.contains(-THETA)


@pytest.mark.parametrize(
    "metric", [[[1.0, 0.0]], [[1.0, 2.0], [2.0, 1.0]], [[1.0, 0.5], [0.0, 1.0]], [1.0], [], [[0.0]], "M"], ids=str
)
def test_what_is_no_metric_is_refused(metric):
    with pytest.raises(ls.LikesetError):
        ls.LinearEllipsoid(metric, 1.0)
