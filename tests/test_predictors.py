"""Predictors against independent routes: general-purpose optimisers, closed forms, quadrature."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.optimize import minimize
from scipy.stats import multivariate_normal

import likeset as ls
from likeset.families.answers import predictive
from likeset.families.penalised import CurveFit
from likeset.predictors.base import updated_shares
from likeset.spaces import Embedded

SMOOTH = [ls.Gaussian(0.7), ls.Poisson(), ls.Bernoulli(), ls.Binomial(4), ls.Weibull(2.0), ls.LogWeibull(1.3)]
THETA = np.array([0.7, -0.5, 0.3])


def stream(family, n, seed=0, dim=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, dim)) / np.sqrt(dim)
    y = family.observations(family.sample(X @ THETA[:dim], rng))
    return X, y


def reference_estimate(family, X, y, penalty, bound, extra=None):
    """argmin over the ball by SLSQP on the raw definition."""

    def objective(theta):
        value = -family.log_density(y, X @ theta).sum() + penalty * theta @ theta
        if extra is not None:
            value += family.canonical_scale * curve(family, extra @ theta)
        return value

    constraint = {"type": "ineq", "fun": lambda t: bound**2 - t @ t}
    best = minimize(objective, np.zeros(X.shape[1]), method="SLSQP", constraints=[constraint],
                    options={"ftol": 1e-14, "maxiter": 500})  # fmt: skip
    # SLSQP leaves the ball by its own tolerance; put the point back.
    return best.x * min(1.0, bound / np.linalg.norm(best.x)), objective


def curve(family, z):
    return {0: 0.5 * z * z, 1: np.exp(z), 2: np.logaddexp(0, z)}[int(family.curve)]


@pytest.mark.parametrize("bound", [0.4, 3.0, np.inf])
@pytest.mark.parametrize("family", [*SMOOTH, ls.Laplace(0.5)], ids=repr)
def test_ftrl_is_the_penalised_maximum_likelihood_estimate(family, bound):
    X, y = stream(family, 40)
    sequence = ls.ConfidenceSequence(family, ls.Linear(3, bound), predictor=ls.FTRL(penalty=0.3))
    sequence.update(X, y)
    # Asked again, the fit may polish its last digits; the second round of answers is from one estimate.
    z = [sequence.forecaster.forecast(_phi(sequence, e)).z for e in (*np.eye(3), *np.eye(3))][3:]
    reference, objective = reference_estimate(family, X, y, 0.3, bound if np.isfinite(bound) else 1e3)
    ours = np.array(z)
    assert np.linalg.norm(ours) <= bound * (1 + 1e-9)
    assert objective(ours) <= objective(reference) + 1e-6
    if not isinstance(family, ls.Laplace):
        np.testing.assert_allclose(ours, reference, atol=3e-4)


@pytest.mark.parametrize("bound", [0.4, 3.0])
@pytest.mark.parametrize("family", [ls.Gaussian(0.7), ls.Poisson(), ls.Bernoulli(), ls.Binomial(4)], ids=repr)
def test_vaw_adds_the_log_partition_of_the_next_covariate(family, bound):
    X, y = stream(family, 30)
    sequence = ls.ConfidenceSequence(family, ls.Linear(3, bound), predictor=ls.VAW(penalty=0.3))
    sequence.update(X, y)
    x = np.array([0.4, -0.8, 0.5])
    reference, _ = reference_estimate(family, X, y, 0.3, bound, extra=x)
    assert sequence.forecaster.forecast(_phi(sequence, x)).z == pytest.approx(x @ reference, abs=3e-4)


@pytest.mark.parametrize("predictor", [ls.FTRL(), ls.VAW(), ls.Mixture()], ids=repr)
def test_first_forecast_is_made_from_no_data(predictor):
    """theta = 0 for the plug-ins; the prior predictive for the mixture. Either way y = 1 has a log-density."""
    sequence = ls.ConfidenceSequence(ls.Gaussian(1.0), ls.Linear(1, 2.0), predictor=predictor)
    sequence.update(1.0, 1.0)
    log_q = sequence.ledger.log_q.rows[0]
    if isinstance(predictor, ls.Mixture):
        sds = np.sqrt(1 + 4.0 / np.array([1, 4, 16, 64, 256]))
        expected = np.log(np.mean(np.exp(-0.5 / sds**2) / (sds * np.sqrt(2 * np.pi))))
    else:
        expected = -0.5 - 0.5 * np.log(2 * np.pi)
    assert log_q == pytest.approx(expected, abs=1e-12)


def test_anchored_fit_stays_on_the_exact_path():
    """Many observations: the quadratic shortcut must be taken, and keep its promised accuracy."""
    family, penalty = ls.Bernoulli(), 0.5
    pool, _ = stream(family, 40, seed=4)
    rng = np.random.default_rng(5)
    fit = CurveFit(family, penalty, bound=5.0)
    moves, worst = 0, 0.0
    for t in range(20_000):
        k = t if t < 40 else int(rng.integers(40))
        phi = Embedded(pool[k], pool[k], k)
        before = fit.anchor
        theta = fit.estimate(phi)
        moves += t > 10_000 and fit.anchor is not before
        if t in (50, 500, 5000, 10_001, 19_999):
            X, terms = fit.data.coordinates, fit.data.terms()
            a, s = terms.a.copy(), terms.s.copy()

            def objective(v, X=X, a=a, s=s):
                return a @ np.logaddexp(0, X @ v) - s @ (X @ v) + penalty * v @ v

            best = minimize(objective, theta, method="BFGS", options={"gtol": 1e-9})
            worst = max(worst, objective(theta) - best.fun)
        fit.observe(phi, family.sample(pool[k] @ THETA, rng))
    assert worst < 1e-8
    assert 0 < moves < 9_000


def test_gaussian_mixture_telescopes_to_the_marginal_likelihood():
    """NR 2021: with one prior precision the product of forecasts is the evidence N(y; 0, sigma^2 I + X X'/lambda)."""
    family = ls.Gaussian(0.6)
    X, y = stream(family, 50, seed=2)
    sequence = ls.ConfidenceSequence(family, ls.Linear(3, 2.0), predictor=ls.Mixture(precisions=[0.8]))
    sequence.update(X, y)
    evidence = multivariate_normal.logpdf(y, np.zeros(50), 0.36 * np.eye(50) + X @ X.T / 0.8)
    assert sequence.ledger.log_q.rows.sum() == pytest.approx(evidence, abs=1e-9)


def test_hyper_mixture_is_the_average_of_evidences():
    family = ls.Gaussian(0.6)
    X, y = stream(family, 30, seed=3)
    precisions = [0.2, 1.0, 5.0]
    sequence = ls.ConfidenceSequence(family, ls.Linear(3, 2.0), predictor=ls.Mixture(precisions=precisions))
    sequence.update(X, y)
    logs = [multivariate_normal.logpdf(y, np.zeros(30), 0.36 * np.eye(30) + X @ X.T / lam) for lam in precisions]
    assert sequence.ledger.log_q.rows.sum() == pytest.approx(np.log(np.mean(np.exp(logs))), abs=1e-9)


@given(m=st.floats(-3, 3), s=st.floats(1e-3, 4), b=st.floats(0.05, 3), y=st.floats(-8, 8))
@settings(max_examples=60, deadline=None)
def test_laplace_predictive_is_the_convolution(m, s, b, y):
    family = ls.Laplace(b)
    ours = np.exp(predictive(family, np.array([m]), np.array([s]), np.inf).log_densities(np.array(y))[0])

    def integrand(t):
        return np.exp(family.log_density(y, m + s * t) - 0.5 * t * t) / np.sqrt(2 * np.pi)

    kink = np.clip((y - m) / s, -8.9, 8.9)
    reference = sum(
        quad(integrand, lo, hi, limit=200)[0] for lo, hi in zip((-9, kink, ), (kink, 9), strict=True)
    )  # fmt: skip
    assert ours == pytest.approx(reference, rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("spread", [1e-3, 1.0, 1e4, 1e7, 1e10])
def test_laplace_predictive_stays_a_density_for_any_spread(spread):
    """Exponents of order (s/b)^2 must cancel before they are computed."""
    density = predictive(ls.Laplace(0.01), np.array([0.3]), np.array([spread]), np.inf)
    width = 12 * max(spread, 0.05)
    y = 0.3 + width * np.linspace(-1, 1, 400_001)
    assert np.exp(density.log_densities(y)).sum() * (y[1] - y[0]) == pytest.approx(1.0, abs=1e-4)


@pytest.mark.parametrize("scale", [1.0, 0.1, 0.03, 0.01, 0.001])
def test_mixture_copes_with_any_signal_to_noise_ratio(scale):
    family = ls.Laplace(scale)
    X, y = stream(family, 40, seed=1)
    scores = {}
    for predictor in (ls.Mixture(), ls.FTRL()):
        sequence = ls.ConfidenceSequence(family, ls.Linear(3, 3.0), predictor=predictor)
        sequence.update(X, y)
        scores[type(predictor)] = sequence.ledger.log_q.rows.sum()
    assert scores[ls.Mixture] > scores[ls.FTRL] - 3.0


@pytest.mark.parametrize("family", [ls.Poisson(), ls.Bernoulli(), ls.Weibull(2.0)], ids=repr)
def test_quadrature_predictive_matches_the_integral(family):
    y = family.observations([1.0])[0]
    ours = np.exp(predictive(family, np.array([0.3]), np.array([0.5]), np.inf).log_densities(y)[0])
    reference = quad(
        lambda z: np.exp(family.log_density(y, z) - 0.5 * ((z - 0.3) / 0.5) ** 2) / (0.5 * np.sqrt(2 * np.pi)), -6, 6
    )[0]
    assert ours == pytest.approx(reference, rel=1e-8)


@pytest.mark.parametrize("family", [*SMOOTH, ls.Laplace(0.5)], ids=repr)
def test_mixture_beats_the_plug_in_on_its_own_data(family):
    """The reason it is the default: a larger numerator, by nats, in a well-specified stream."""
    X, y = stream(family, 60, seed=5)
    scores = {}
    for predictor in (ls.Mixture(), ls.FTRL(penalty=0.05)):
        sequence = ls.ConfidenceSequence(family, ls.Linear(3, 3.0), predictor=predictor)
        sequence.update(X, y)
        scores[type(predictor)] = sequence.ledger.log_q.rows.sum()
    assert scores[ls.Mixture] > scores[ls.FTRL] - 1.5


def test_aggregate_costs_at_most_log_of_its_size():
    family = ls.Poisson()
    X, y = stream(family, 80, seed=6)
    members = [ls.FTRL(penalty=0.1), ls.FTRL(penalty=10.0), ls.Mixture()]
    totals = []
    for predictor in (*members, ls.Aggregate(*members)):
        sequence = ls.ConfidenceSequence(family, ls.Linear(3, 3.0), predictor=predictor)
        sequence.update(X, y)
        totals.append(sequence.ledger.log_q.rows.sum())
    assert totals[-1] >= max(totals[:-1]) - np.log(3) - 1e-9


def test_fixed_takes_a_vector_or_a_function():
    family = ls.Poisson()
    X, y = stream(family, 20)
    a = ls.ConfidenceSequence(family, ls.Linear(3, 3.0), predictor=ls.Fixed(THETA))
    b = ls.ConfidenceSequence(family, ls.Linear(3, 3.0), predictor=ls.Fixed(lambda x: x @ THETA))
    a.update(X, y)
    b.update(X, y)
    assert a.set.log_ratio(THETA) == pytest.approx(0.0, abs=1e-9)
    np.testing.assert_allclose(a.ledger.log_q.rows, b.ledger.log_q.rows)


def test_many_distinct_covariates_do_not_change_the_mixture_much():
    """Beyond 512 distinct covariates refits are spaced: the score must stay within a fraction of a nat of refitting."""
    from likeset.families import fitted_posterior as posterior

    family = ls.Bernoulli()
    X, y = stream(family, 900, seed=8)
    scores = []
    for limit in (512, 10_000):
        original, posterior.REFIT_ALWAYS_BELOW = posterior.REFIT_ALWAYS_BELOW, limit
        try:
            sequence = ls.ConfidenceSequence(family, ls.Linear(3, 3.0))
            sequence.update(X, y)
        finally:
            posterior.REFIT_ALWAYS_BELOW = original
        scores.append(sequence.ledger.log_q.rows.sum())
    assert scores[0] != scores[1]
    assert scores[0] == pytest.approx(scores[1], abs=0.05)


def _phi(sequence, x):
    coordinates, outside = sequence._running.basis.coordinates(np.asarray(x)[None, :])
    assert not outside.any()
    number = sequence.ledger.number(np.asarray(x))
    return Embedded(np.asarray(x), coordinates[0], sequence.ledger.merged.count if number is None else number)


@pytest.mark.parametrize("family, outcomes", [(ls.Poisson(), [2.0, 3.0]), (ls.Weibull(2.0), [[0.5, 1.0], [0.7, 0.0]])])
def test_shares_after_the_outcome_scored_last_are_those_of_that_outcome_only(family, outcomes):
    seq = ls.ConfidenceSequence(family, ls.Linear(dim=1, bound=2.0))
    seq.update([[1.0]], [outcomes[0]])
    made = seq.forecaster.forecast(Embedded(np.ones(1), np.ones(1), 0))
    first, second = family.observations(np.array(outcomes))
    y = first.copy()
    made.log_density(y)

    def expected(outcome):
        return updated_shares(made.log_shares, made.components.log_densities(outcome))

    np.testing.assert_array_equal(made.updated_shares(first), expected(first))
    np.testing.assert_array_equal(made.updated_shares(second), expected(second))
    if y.ndim:
        made.log_density(y)
        y[:] = second  # the same object, another outcome
        np.testing.assert_array_equal(made.updated_shares(y), expected(second))
