"""Estimators for scikit-learn: linear models whose coefficients and predictions come with intervals valid at all times.

>>> import numpy as np
>>> rng = np.random.default_rng(0)
>>> X = rng.normal(size=(200, 2))
>>> model = ConfidenceRegressor().fit(X, X @ [1.0, -0.5] + rng.normal(size=200))
>>> mean, low, high = model.predict(X[:1], return_interval=True)
>>> bool(low[0] < mean[0] < high[0]), model.coef_.shape
(True, (2,))

Rows are taken in the order given, which must not depend on y; ``partial_fit`` continues. Cross-validation and grid
search work as with any estimator; intervals hold for a model that saw each row once.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from likeset._typing import Array
from likeset.errors import InvalidArgumentError
from likeset.extras import optional_packages
from likeset.families import Bernoulli, Gaussian
from likeset.families.answers import nuisance
from likeset.families.unknown import Unknown
from likeset.sequence import ConfidenceSequence
from likeset.sets import LikelihoodSet
from likeset.spaces import Linear

with optional_packages():
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
    from sklearn.utils.multiclass import check_classification_targets, type_of_target
    from sklearn.utils.validation import check_is_fitted, validate_data

__all__ = ["ConfidenceClassifier", "ConfidenceRegressor"]


class _Linear(BaseEstimator):  # type: ignore[misc]
    """What both share: a design with or without a constant, and the sequence behind it."""

    alpha: float
    bound: float | None
    fit_intercept: bool
    sequence_: ConfidenceSequence

    def _family(self) -> Any:
        raise NotImplementedError

    def _begin(self, dim: int) -> None:
        bound = np.inf if self.bound is None else self.bound
        family = self._family()
        # Where sigma is unknown the alarm judges the form of the noise, and an estimator must fit whatever it is given.
        alarm: Any = False if nuisance(family) else "auto"
        self.sequence_ = ConfidenceSequence(family, Linear(dim, bound), self.alpha, alarm=alarm)

    def _design(self, X: Array) -> Array:
        return np.column_stack([np.ones(len(X)), X]) if self.fit_intercept else X

    def _take(self, X: Array, y: Array) -> None:
        self.sequence_.update(self._design(X), y)
        centre = self.sequence_.set.centre
        self._theta = centre
        self.intercept_ = float(centre[0]) if self.fit_intercept else 0.0
        self.coef_ = centre[1:].copy() if self.fit_intercept else centre.copy()

    def _z(self, X: Any) -> tuple[Array, Array]:
        check_is_fitted(self, "sequence_")
        design = self._design(validate_data(self, X, dtype=np.float64, reset=False))
        return design, design @ self._theta

    @property
    def set_(self) -> LikelihoodSet:
        """The confidence set of the parameters: constant first, if there is one."""
        check_is_fitted(self, "sequence_")
        return self.sequence_.set

    def coef_interval(self) -> tuple[Array, Array]:
        """Lower and upper ends for every coefficient, valid at all times at once."""
        check_is_fitted(self, "sequence_")
        rows = np.eye(self.sequence_.space.covariate_shape[0])[1 if self.fit_intercept else 0 :]
        return self.sequence_.set.interval(rows)


class ConfidenceRegressor(RegressorMixin, _Linear):  # type: ignore[misc]
    """Linear regression with Gaussian noise; intervals for coefficients and means may be looked at after every row.

    Parameters
    ----------
    alpha          error level of all intervals at all times
    sigma          standard deviation of the noise; None: not known
    bound          on the length of the coefficients, the constant included; None: not known
    fit_intercept  whether there is a constant

    >>> ConfidenceRegressor(sigma=2.0).get_params()
    {'alpha': 0.05, 'bound': None, 'fit_intercept': True, 'sigma': 2.0}
    """

    def __init__(
        self, alpha: float = 0.05, sigma: float | None = None, bound: float | None = None, fit_intercept: bool = True
    ) -> None:
        self.alpha = alpha
        self.sigma = sigma
        self.bound = bound
        self.fit_intercept = fit_intercept

    def _family(self) -> Any:
        return Gaussian(Unknown() if self.sigma is None else self.sigma)  # type: ignore[arg-type]

    def fit(self, X: Any, y: Any) -> Self:
        """Begin anew with these rows, in order."""
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
        self._begin(X.shape[1] + self.fit_intercept)
        self._take(X, np.asarray(y, dtype=np.float64))
        return self

    def partial_fit(self, X: Any, y: Any) -> Self:
        """Go on with more rows."""
        fresh = not hasattr(self, "sequence_")
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True, reset=fresh)
        if fresh:
            self._begin(X.shape[1] + self.fit_intercept)
        self._take(X, np.asarray(y, dtype=np.float64))
        return self

    def predict(self, X: Any, return_interval: bool = False) -> Any:
        """Mean outcome; with ``return_interval`` also lower and upper ends of an interval for it."""
        design, z = self._z(X)
        return (z, *self.sequence_.set.interval(design)) if return_interval else z


class ConfidenceClassifier(ClassifierMixin, _Linear):  # type: ignore[misc]
    """Logistic regression of two classes; intervals for coefficients and probabilities hold after every row.

    Parameters as in :class:`ConfidenceRegressor`. ``partial_fit`` needs ``classes`` the first time.

    >>> X = np.linspace(-2, 2, 40)[:, None]
    >>> model = ConfidenceClassifier().fit(X, ["no", "yes"] * 5 + ["yes"] * 30)
    >>> p, low, high = model.predict_proba([[2.0]], return_interval=True)
    >>> bool(low[0] < p[0, 1] < high[0])
    True
    """

    def __init__(self, alpha: float = 0.05, bound: float | None = None, fit_intercept: bool = True) -> None:
        self.alpha = alpha
        self.bound = bound
        self.fit_intercept = fit_intercept

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def _family(self) -> Any:
        return Bernoulli()

    def fit(self, X: Any, y: Any) -> Self:
        """Begin anew with these rows, in order."""
        X, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        if type_of_target(y, input_name="y", raise_unknown=True) != "binary":
            raise ValueError(
                "Only binary classification is supported. The type of the target is "
                f"{type_of_target(y)}: pass labels of two classes."
            )
        self.classes_ = np.unique(y)
        if len(self.classes_) < 2:
            raise ValueError("Classifier can't train when only one class is present; use partial_fit with classes=.")
        self._begin(X.shape[1] + self.fit_intercept)
        self._take(X, (y == self.classes_[1]).astype(np.float64))
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Self:
        """Go on with more rows; ``classes``, both labels, the first time."""
        fresh = not hasattr(self, "sequence_")
        X, y = validate_data(self, X, y, dtype=np.float64, reset=fresh)
        if fresh:
            if classes is None or len(np.unique(classes)) != 2:
                raise InvalidArgumentError("classes", classes, "are not two labels", "pass both the first time")
            self.classes_ = np.unique(classes)
        if not np.isin(y, self.classes_).all():
            raise InvalidArgumentError("y", y, "has other labels than classes", f"use {self.classes_.tolist()}")
        if fresh:
            self._begin(X.shape[1] + self.fit_intercept)
        self._take(X, (y == self.classes_[1]).astype(np.float64))
        return self

    def decision_function(self, X: Any) -> Array:
        """Log odds of the second class."""
        return self._z(X)[1]

    def predict(self, X: Any) -> Any:
        """The likelier class."""
        second = self.decision_function(X) > 0
        return self.classes_[second.astype(int)]

    def predict_proba(self, X: Any, return_interval: bool = False) -> Any:
        """Probabilities of both classes; with ``return_interval`` also ends for the second one's."""
        design, z = self._z(X)
        second = _sigmoid(z)
        both = np.column_stack([1.0 - second, second])
        if not return_interval:
            return both
        low, high = self.sequence_.set.interval(design)
        return both, _sigmoid(low), _sigmoid(high)


def _sigmoid(z: Array) -> Array:
    with np.errstate(over="ignore"):
        return 1.0 / (1.0 + np.exp(-z))
