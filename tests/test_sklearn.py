"""Estimators for scikit-learn: its own checks, and the same answers as the engine."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import estimator_checks

import likeset as ls
from likeset.sklearn import ConfidenceClassifier, ConfidenceRegressor


@pytest.mark.slow
@pytest.mark.parametrize("estimator", [ConfidenceRegressor(), ConfidenceClassifier()], ids=repr)
@pytest.mark.filterwarnings("ignore")
def test_all_checks_of_scikit_learn(estimator):
    """Nothing fails and nothing is excepted; checks that need packages which are not there are skipped."""
    found = estimator_checks.check_estimator(estimator, on_fail=None)
    assert [r["check_name"] for r in found if r["status"] not in ("passed", "skipped")] == []
    assert sum(r["status"] == "passed" for r in found) > 40


QUICK = ["check_estimators_unfitted", "check_fit2d_1sample", "check_estimators_nan_inf", "check_n_features_in"]


@pytest.mark.parametrize("name", QUICK)
@pytest.mark.parametrize("estimator", [ConfidenceRegressor(), ConfidenceClassifier()], ids=repr)
@pytest.mark.filterwarnings("ignore")
def test_some_checks_of_scikit_learn(name, estimator):
    check = getattr(estimator_checks, name, None)
    if check is None:
        pytest.skip("not in this version")
    check(type(estimator).__name__, clone(estimator))


def data(n=150, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, 1.0 + X @ [1.0, 0.0, -0.5] + rng.normal(size=n)


def test_estimates_are_those_of_least_squares_with_intervals_around_them():
    X, y = data(240)
    model, plain = ConfidenceRegressor(sigma=1.0).fit(X, y), LinearRegression().fit(X, y)
    np.testing.assert_allclose(model.coef_, plain.coef_, atol=0.02)
    assert model.intercept_ == pytest.approx(plain.intercept_, abs=0.02)
    mean, low, high = model.predict(X[:5], return_interval=True)
    truth = 1.0 + X[:5] @ [1.0, 0.0, -0.5]
    assert (low < truth).all() and (truth < high).all() and (low < mean).all() and (mean < high).all()
    low, high = model.coef_interval()
    assert low[0] > 0 and high[2] < 0 and low[1] < 0 < high[1]


def test_partial_fit_continues():
    X, y = data(60)
    whole, parts = ConfidenceRegressor().fit(X, y), ConfidenceRegressor()
    for start in range(0, 60, 20):
        parts.partial_fit(X[start : start + 20], y[start : start + 20])
    np.testing.assert_array_equal(np.array(parts.coef_interval()), np.array(whole.coef_interval()))
    assert whole.fit(X[:20], y[:20]).sequence_.n_observations == 20


def test_classifier_and_its_probabilities():
    X, y = data(300)
    labels = np.where(y + np.random.default_rng(1).logistic(size=300) > 1.0, "yes", "no")
    model, plain = ConfidenceClassifier().fit(X, labels), LogisticRegression(C=np.inf).fit(X, labels)
    assert model.classes_.tolist() == ["no", "yes"]
    np.testing.assert_allclose(model.predict_proba(X), plain.predict_proba(X), atol=0.05)
    both, low, high = model.predict_proba(X[:20], return_interval=True)
    assert (low < both[:, 1]).all() and (both[:, 1] < high).all() and (low >= 0).all() and (high <= 1).all()
    begun = ConfidenceClassifier()
    with pytest.raises(ls.InvalidArgumentError, match="both the first time"):
        begun.partial_fit(X, labels)
    begun.partial_fit(X[:1], labels[:1], classes=["yes", "no"]).partial_fit(X[1:], labels[1:])
    np.testing.assert_array_equal(begun.predict(X), model.predict(X))
    with pytest.raises(ls.InvalidArgumentError, match="other labels"):
        begun.partial_fit(X[:1], ["maybe"])


def test_in_a_pipeline_and_in_cross_validation():
    X, y = data(80)
    scores = cross_val_score(make_pipeline(StandardScaler(), ConfidenceRegressor()), X, y, cv=2)
    assert (scores > 0.3).all()
