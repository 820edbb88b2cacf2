"""Every piece in the package, found in its lists, against the public contract; and controls that must fail."""

import copy

import numpy as np
import pytest

import likeset as ls
from likeset import checks
from likeset.families import fitted_posterior
from likeset.predictors.base import PlugIn

FAMILIES = checks.built_in_families()
PREDICTORS = checks.built_in_predictors()
WEIGHTINGS = checks.built_in_weightings()
PAIRS = [(f, p) for f in FAMILIES for p in PREDICTORS if checks.applicable(p, f)]


@pytest.mark.parametrize("family", [*FAMILIES, ls.Weibull(2.0), ls.LogWeibull(0.7), ls.Gaussian(0.2)], ids=repr)
def test_family_contract(family):
    checks.check_family(family)


@pytest.mark.parametrize(("family", "predictor"), PAIRS, ids=lambda p: type(p).__name__)
def test_predictor_contract(family, predictor):
    checks.check_predictor(predictor, family)


@pytest.mark.parametrize("weighting", WEIGHTINGS, ids=repr)
@pytest.mark.parametrize(("family", "predictor"), PAIRS, ids=lambda p: type(p).__name__)
def test_one_step_growth_with_every_weighting(family, predictor, weighting):
    """Family x predictor x weighting: R(theta) is a supermartingale step at a covariate seen before and a new one."""
    sequence = checks._exercised(predictor, family, weighting)
    checks.check_growth(sequence, [0.8, 0.1] if weighting.__class__ is ls.Unweighted else [0.6, -0.4], [[-0.9, 0.8]])


def test_vaw_needs_a_log_partition_function():
    kinds = {type(f).__name__ for f in FAMILIES if not checks.applicable(ls.VAW(), f)}
    assert kinds == {"Laplace", "Weibull", "LogWeibull", "Exponential", "Logistic", "Gamma"} | {
        "NegativeBinomial", "Geometric", "StudentT",
    }  # fmt: skip


def test_unweighted_mixture_growth_is_exactly_one():
    """A martingale: nothing is given away. Enumeration makes this exact for counts."""
    sequence = checks._exercised(ls.Mixture(), ls.Binomial(4), None)
    assert checks.one_step_growth(sequence, [0.6, -0.4], [0.3, 0.2]) == pytest.approx(1.0, abs=1e-12)


def test_beliefs_are_fitted_once_for_all_outcomes(monkeypatch):
    """Many outcomes are tried from one state: to refit it for each took minutes with a family of one's own."""
    own = ls.CustomFamily(lambda y, z: np.log1p(np.exp(-z * (2 * y - 1))), support=[0.0, 1.0], convex=True, name="coin")
    sequence = checks._exercised(None, own, None)
    fits, fit = [], fitted_posterior.GenericPosterior.fit
    monkeypatch.setattr(fitted_posterior.GenericPosterior, "fit", lambda self: (fits.append(self), fit(self))[1])
    assert checks.one_step_growth(sequence, [0.6, -0.4], [0.3, 0.2]) == pytest.approx(1.0, abs=1e-6)
    assert len(fits) == 1


def test_growth_with_censoring():
    """Right-censoring at a fixed time: density up to it plus the survival probability there."""
    family = ls.Weibull(2.0)
    sequence = checks._exercised(ls.Mixture(), family, ls.BiasWeighting())
    x, theta, limit = np.array([0.6, -0.4]), np.array([0.3, 0.2]), 0.8
    z = x @ theta
    t, v = np.polynomial.legendre.leggauss(60)
    times, v = limit * (t + 1) / 2, v * limit / 2
    outcomes = [*np.column_stack([times, np.ones_like(times)]), np.array([limit, 0.0])]
    before, growth = sequence.set.log_ratio(theta), 0.0
    for y, mass in zip(outcomes, [*v, 1.0], strict=True):
        after = copy.deepcopy(sequence)
        after.update(x, y)
        growth += mass * np.exp(family.log_density(y, z) + after.set.log_ratio(theta) - before)
    assert growth <= 1 + 1e-9
    assert growth > 0.5


class OwnPredictor:
    """A user's own forecaster: a running mean on the link scale."""

    def __init__(self, family):
        self.family, self.total, self.n = family, 0.0, 0

    def forecast(self, phi):
        return PlugIn(self.family, np.log((self.total + 1) / (self.n + 1)))

    def observe(self, phi, y):
        self.total += float(y)
        self.n += 1


class OwnWeighting:
    def weight(self, phi):
        return 0.5 if phi.x[0] > 0 else 1.0

    def observe(self, phi, y):
        pass


def test_the_suite_judges_a_users_own_pieces():
    checks.check_predictor(OwnPredictor(ls.Poisson()), ls.Poisson())
    checks.check_weighting(OwnWeighting(), ls.Poisson())
    logistic = ls.CustomFamily(
        lambda y, z: np.abs(y - z) + 2 * np.log1p(np.exp(-np.abs(y - z))), support="real", convex=True
    )
    checks.check_family(logistic)


# -- negative controls: each must be caught ----------------------------------------------------------------------


class Uninspected(ls.ConfidenceSequence):
    """A sequence whose own guards are off, so that the check has to do the catching."""

    def _checked_score(self, forecast, phi, y):
        return float(forecast.log_density(y))

    def _checked_weight(self, weight):
        return float(weight)


class PeekingForecast:
    """Scores y with the estimate that y itself has improved."""

    def __init__(self, family):
        self.family = family

    def log_density(self, y):
        return np.maximum(self.family.log_density(y, 0.4 * np.asarray(y)), self.family.log_density(y, 0.0))


class PeekingPredictor:
    def __init__(self, family):
        self.family = family

    def forecast(self, phi):
        return PeekingForecast(self.family)

    def observe(self, phi, y):
        pass


class Heavy:
    """A weight above one."""

    def weight(self, phi):
        return 1.5

    def observe(self, phi, y):
        pass


class OneSided(ls.ConfidenceSequence):
    """Weights the numerator only, as one public implementation does."""

    def _record(self, undo, x, y, given):
        super()._record(undo, x, y, given)
        ledger = self._running.ledger
        weight, index = ledger.weights.rows[-1], int(ledger.covariate.rows[-1])
        phi = ls.Embedded(x, ledger.merged.coordinates[index], index)
        ledger._gains.add(index, -ledger.merged.add(phi, y, 1.0 - weight))


def exercised(cls, family, predictor, weighting):
    sequence = cls(family, ls.Linear(2, 1.5), 0.1, predictor, weighting)
    rng = np.random.default_rng(3)
    for x in checks._PROBES:
        sequence.update(x, family.sample(np.array([x @ [0.5, -0.4]]), rng))
    return sequence


@pytest.mark.parametrize("family", [ls.Gaussian(1.0), ls.Poisson()], ids=repr)
def test_a_peeking_predictor_is_caught(family):
    sequence = exercised(Uninspected, family, PeekingPredictor(family), None)
    with pytest.raises(checks.ContractError, match="growth"):
        checks.check_growth(sequence, [0.6, -0.4], [[0.0, 0.0]])
    with pytest.raises(ls.PieceError, match="integrates to"):
        exercised(ls.ConfidenceSequence, family, PeekingPredictor(family), None)


@pytest.mark.parametrize("family", [ls.Gaussian(1.0), ls.Bernoulli()], ids=repr)
def test_weights_above_one_are_caught(family):
    sequence = exercised(Uninspected, family, ls.FTRL(), Heavy())
    with pytest.raises(checks.ContractError, match="growth"):
        checks.check_growth(sequence, [0.6, -0.4], [[-1.0, 1.0]])
    with pytest.raises(ls.PieceError, match=r"outside \[0, 1\]"):
        exercised(ls.ConfidenceSequence, family, ls.FTRL(), Heavy())


@pytest.mark.parametrize("family", [ls.Gaussian(0.5), ls.Poisson()], ids=repr)
def test_one_sided_weights_are_caught(family):
    sequence = exercised(OneSided, family, ls.FTRL(), ls.BiasWeighting())
    with pytest.raises(checks.ContractError, match="growth"):
        checks.check_growth(sequence, [0.6, -0.4], [[-1.0, 1.0]])


def test_an_unnormalised_mixture_is_caught():
    family = ls.Gaussian(1.0)

    class TwoDensities(PeekingPredictor):
        def forecast(self, phi):
            class Sum:
                def log_density(self, y):
                    return np.logaddexp(family.log_density(y, 0.0), family.log_density(y, 0.5))

            return Sum()

    with pytest.raises(ls.PieceError, match="integrates to 2"):
        exercised(ls.ConfidenceSequence, family, TwoDensities(family), None)
    sequence = exercised(Uninspected, family, TwoDensities(family), None)
    with pytest.raises(checks.ContractError):
        checks.check_predictability(sequence, [0.6, -0.4])


def test_a_predictor_that_changes_its_mind_is_caught():
    """A forecast that is a fine density each time it is asked, but a different one once y is known."""
    family = ls.Poisson()

    class Fickle:
        calls = 0

        def forecast(self, phi):
            Fickle.calls += 1
            return PlugIn(family, 0.1 * Fickle.calls)

        def observe(self, phi, y):
            pass

    sequence = exercised(ls.ConfidenceSequence, family, Fickle(), None)
    with pytest.raises(checks.ContractError, match="changed"):
        checks.check_predictability(sequence, [0.6, -0.4])


def test_a_wrong_derivative_is_caught():
    class Wrong(ls.Poisson):
        def derivatives(self, y, z):
            first, second = super().derivatives(y, z)
            return first + 0.01, second

    with pytest.raises(checks.ContractError, match="first derivative"):
        checks.check_family(Wrong())


def test_a_family_that_does_not_integrate_to_one_is_caught():
    class Wrong(ls.Gaussian):
        def log_density(self, y, z):
            return super().log_density(y, z) + 0.01

    with pytest.raises(checks.ContractError, match="integrates"):
        checks.check_family(Wrong(1.0))
