"""Any model: against ConfidenceSequence where both apply, one-step growth, coverage, models that are no vectors."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom, norm

import likeset as ls
from likeset import checks
from likeset.errors import EmptySetError, LikesetError, PieceError

GRID = np.array([[a, b] for a in np.linspace(-2, 2, 7) for b in np.linspace(-2, 2, 7)])


def gaussian(y, x, theta):
    return norm.logpdf(y, theta @ np.asarray(x), 0.5)


def multinomial(y, x, theta):
    """Three outcomes, two z per observation."""
    z = np.column_stack([np.zeros(len(theta)), theta[:, 0] * x, theta[:, 1]])
    return z[:, y] - np.logaddexp.reduce(z, axis=1)


def test_one_candidate_is_a_fixed_alternative():
    """The ratio of ConfidenceSequence with Fixed(theta), exactly."""
    rng = np.random.default_rng(0)
    model = ls.ModelSequence(gaussian, np.array([[0.3, -0.2]]))
    sequence = ls.ConfidenceSequence(ls.Gaussian(0.5), ls.Linear(2, 3.0), predictor=ls.Fixed([0.3, -0.2]), voices=None)
    x, y = rng.normal(size=(20, 2)), rng.normal(size=20)
    for row, outcome in zip(x, y, strict=True):
        model.update(row, outcome)
    sequence.update(x, y)
    thetas = rng.normal(size=(5, 2))
    assert model.log_ratio(thetas) == pytest.approx(sequence.set.log_ratio(thetas), abs=1e-9)
    assert model.contains(thetas).tolist() == sequence.set.contains(thetas).tolist()
    assert model.evidence(thetas) == pytest.approx(model.log_ratio(thetas).min())


def test_the_mixture_telescopes():
    model = ls.ModelSequence(multinomial, GRID, outcomes=[0, 1, 2], weights=np.arange(1.0, 50.0))
    rows = [(0.5, 2), (1.0, 0), (-1.0, 1), (0.2, 2)]
    for x, y in rows:
        model.update(x, y)
    likelihood = sum(multinomial(y, x, GRID) for x, y in rows)
    assert model.log_numerator == pytest.approx(np.log(np.exp(likelihood) @ np.arange(1.0, 50.0) / 1225.0))
    assert np.array_equal(model.plausible, model.contains(GRID))


class Laplaces:
    """A forecaster of one's own: Laplace's rule of succession for three outcomes."""

    def __init__(self):
        self.counts = np.ones(3)

    def forecast(self, x):
        probabilities = self.counts / self.counts.sum()
        return type("Forecast", (), {"log_density": staticmethod(lambda y: np.log(probabilities[y]))})

    def observe(self, x, y):
        self.counts[y] += 1


class Peeking(Laplaces):
    """Negative control: no density at all, but as if it had known."""

    def forecast(self, x):
        return type("Forecast", (), {"log_density": staticmethod(lambda y: -0.1)})


@pytest.mark.parametrize("forecaster", [None, Laplaces()])
def test_one_step_growth(forecaster):
    model = ls.ModelSequence(multinomial, GRID, forecaster=forecaster)
    for x, y in [(0.5, 2), (1.0, 0), (-1.0, 1)]:
        for theta in ([0.3, -0.7], [5.0, 0.0]):
            assert checks.model_growth(model, x, theta, [0, 1, 2]) == pytest.approx(1.0, abs=1e-9)
        model.update(x, y)
    assert forecaster is None or forecaster.counts.tolist() == [1, 1, 1]  # the user's stays the user's


def test_what_is_no_density_is_seen():
    assert (
        checks.model_growth(ls.ModelSequence(multinomial, GRID, forecaster=Peeking()), 1.0, [0.3, 0.2], [0, 1, 2]) > 2
    )
    with pytest.raises(PieceError, match="add up to"):
        ls.ModelSequence(multinomial, GRID, forecaster=Peeking(), outcomes=[0, 1, 2]).update(1.0, 0)
    with pytest.raises(PieceError, match="add up to"):
        ls.ModelSequence(lambda y, x, t: multinomial(y, x, t) + 0.1, GRID, outcomes=[0, 1, 2]).update(1.0, 0)


def test_coverage_of_adaptive_covariates():
    """The truth is not among the candidates; false alarm below 1e-6 (at most Binomial(150, 0.1) misses)."""
    missed = 0
    for run in range(150):
        rng = np.random.default_rng([5, run])
        theta = rng.uniform(-2, 2, size=2)
        model = ls.ModelSequence(multinomial, GRID, alpha=0.1)
        x = 1.0
        for _ in range(25):
            p = np.exp([multinomial(k, x, theta[None])[0] for k in range(3)])
            y = int(rng.choice(3, p=p / p.sum()))
            model.update(x, y)
            x = float(np.where(y == 0, -1.0, 0.5 * (1 + y)))
            if not model.contains(theta):
                missed += 1
                break
    assert missed <= binom.ppf(1 - 1e-6, 150, 0.1)


def test_models_that_are_no_vectors():
    """Candidates may be functions: here, mean curves."""
    curves = [np.sin, np.cos, lambda x: x]
    model = ls.ModelSequence(lambda y, x, f: float(norm.logpdf(y, f(x), 0.1)), curves, alpha=0.05)
    for x in np.linspace(0.3, 2.0, 12):
        model.update(float(x), float(np.sin(x)))
    assert model.plausible.tolist() == [True, False, False]
    assert model.contains(np.sin) and not model.contains(np.cos)
    assert model.evidence([np.cos, lambda x: x]) > np.log(20)
    assert model.interval(lambda f: float(f(1.0))) == (np.sin(1.0), np.sin(1.0))
    for _ in range(3):
        model.update(1.0, 7.0)
    assert np.isfinite(model.log_ratio(np.sin))


def test_an_empty_union_is_an_alarm():
    other = ls.ModelSequence(gaussian, np.array([[0.0]]), forecaster=ExactlyFive())
    for _ in range(3):
        other.update([1.0], 5.0)
    with pytest.raises(EmptySetError):
        other.interval(lambda theta: theta[:, 0])


class ExactlyFive:
    def forecast(self, x):
        return _Normal()

    def observe(self, x, y):
        pass


class _Normal:
    def log_density(self, y):
        return norm.logpdf(y, 5.0, 0.1)


@pytest.mark.parametrize(
    "call",
    [
        lambda: ls.ModelSequence("x", GRID),
        lambda: ls.ModelSequence(gaussian, []),
        lambda: ls.ModelSequence(gaussian, np.zeros(3)),
        lambda: ls.ModelSequence(gaussian, "abc"),
        lambda: ls.ModelSequence(gaussian, GRID, alpha=2.0),
        lambda: ls.ModelSequence(gaussian, GRID, weights=[1.0]),
        lambda: ls.ModelSequence(gaussian, GRID, forecaster=3),
        lambda: ls.ModelSequence(gaussian, GRID).update([1.0], 0.0),
        lambda: ls.ModelSequence(gaussian, GRID).contains([1.0]),
        lambda: ls.ModelSequence(gaussian, GRID).evidence(np.zeros((0, 2))),
        lambda: ls.ModelSequence(gaussian, GRID).interval(3),
        lambda: ls.ModelSequence(lambda y, x, t: np.nan * t[:, 0], GRID).update(1.0, 0.0),
        lambda: ls.ModelSequence(lambda y, x, t: 0.0, GRID).update(1.0, 0.0),
    ],
)
def test_refusals(call):
    with pytest.raises(LikesetError):
        call()


def test_a_failed_update_leaves_nothing():
    def fragile(y, x, theta):
        if y == 1:
            raise RuntimeError("no")
        return multinomial(y, x, theta)

    model = ls.ModelSequence(fragile, GRID)
    model.update(1.0, 0)
    before = model.log_numerator
    with pytest.raises(PieceError):
        model.update(1.0, 1)
    assert (model.n_observations, model.log_numerator) == (1, before)


def test_an_interrupt_leaves_the_old_state():
    class Torn(list):
        def append(self, row):
            super().append(row)
            raise KeyboardInterrupt

    coin = ls.ModelSequence(lambda y, x, p: np.log(p[:, 0] if y else 1 - p[:, 0]), np.array([[0.3], [0.6]]))
    coin.update(None, 1)
    before = coin.log_ratio([0.4]), coin.log_numerator, coin.n_observations
    coin._rows = Torn(coin._rows)
    with pytest.raises(KeyboardInterrupt):
        coin.update(None, 0)
    assert (coin.log_ratio([0.4]), coin.log_numerator, coin.n_observations) == before
    coin._rows = list(coin._rows)
    coin.update(None, 1)
    assert coin.n_observations == 2
    assert coin.log_ratio([0.4]) == pytest.approx(coin.log_numerator - 2 * np.log(0.4))
