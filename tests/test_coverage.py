"""Anytime coverage, simulated: adaptive covariates, every step counts, stated false-alarm probability.

A run is a miss if theta* leaves the set at *any* of its steps. Under the guarantee the number of misses in N runs is
at most Binomial(N, alpha), so  misses > binom.ppf(1 - 1e-6, N, alpha)  happens with probability below 1e-6 for a
correct library. The seeds are fixed. The controls show that the same test catches sets that do not cover.
"""

import numpy as np
import pytest
from scipy.stats import binom

import likeset as ls
from likeset import checks
from test_contract import OneSided

ALPHA = 0.1
ARMS = np.array([[np.cos(t), np.sin(t)] for t in np.linspace(0, np.pi, 8, endpoint=False)])
FAMILIES = [
    ls.Gaussian(0.3),
    ls.Laplace(0.3),
    ls.Poisson(),
    ls.Bernoulli(),
    ls.Binomial(3),
    ls.Weibull(2.0),
    ls.LogWeibull(2.0),
    ls.Exponential(),
]


# Found in the package's list; few runs, as most of them have a loss of their own, which is slower.
OTHERS = [f for f in checks.built_in_families() if f.convex and type(f) not in map(type, FAMILIES)]


def misses(make, family, runs, steps, seed, bound=1.5, censor=None):
    """Runs in which theta* ever leaves the set; covariates by the upper bound (optimism), ties at random."""
    count = 0
    for run in range(runs):
        rng = np.random.default_rng([seed, run])
        theta = rng.normal(size=2)
        theta *= bound * np.sqrt(rng.uniform()) / np.linalg.norm(theta)
        sequence = make()
        for _ in range(steps):
            s = sequence.set
            upper = rng.uniform(size=len(ARMS)) if s.is_empty else s.upper(ARMS)
            x = ARMS[int(np.argmax(upper + 1e-6 * rng.uniform(size=len(ARMS))))]
            y = family.sample(np.array([x @ theta]), rng)
            if censor is not None and y[0, 0] > censor:
                y = np.array([[censor, 0.0]])
            sequence.update(x, y)
            if not sequence.set.contains(theta):
                count += 1
                break
    return count


def allowed(runs, alpha=ALPHA):
    return int(binom.ppf(1 - 1e-6, runs, alpha))


@pytest.mark.parametrize("family", FAMILIES, ids=repr)
def test_default_sets_cover(family):
    runs = 150
    make = lambda: ls.ConfidenceSequence(family, ls.Linear(2, 1.5), ALPHA)  # noqa: E731
    assert misses(make, family, runs, steps=25, seed=1) <= allowed(runs)


@pytest.mark.parametrize("family", OTHERS, ids=repr)
def test_default_sets_of_other_families_cover(family):
    runs = 30
    make = lambda: ls.ConfidenceSequence(family, ls.Linear(2, 1.5), ALPHA)  # noqa: E731
    assert misses(make, family, runs, steps=15, seed=7) <= allowed(runs)


@pytest.mark.parametrize("predictor", [ls.FTRL(), ls.VAW(), ls.Aggregate(ls.FTRL(), ls.Mixture())], ids=repr)
@pytest.mark.parametrize("weighting", [None, ls.BiasWeighting("exact")], ids=repr)
def test_other_predictors_and_weights_cover(predictor, weighting):
    runs, family = 50, ls.Poisson()
    make = lambda: ls.ConfidenceSequence(family, ls.Linear(2, 1.5), ALPHA, predictor, weighting)  # noqa: E731
    assert misses(make, family, runs, steps=20, seed=2) <= allowed(runs)


def test_sets_cover_under_censoring():
    runs, family = 60, ls.Weibull(2.0)
    make = lambda: ls.ConfidenceSequence(family, ls.Linear(2, 1.5), ALPHA)  # noqa: E731
    assert misses(make, family, runs, steps=25, seed=3, censor=0.8) <= allowed(runs)


def test_one_sided_weights_fail_this_test():
    runs, family = 150, ls.Gaussian(0.3)
    make = lambda: OneSided(family, ls.Linear(2, 1.5), ALPHA, ls.FTRL(), ls.BiasWeighting(), None)  # noqa: E731
    assert misses(make, family, runs, steps=20, seed=4) > allowed(runs)


class Peeking:
    """Scores y with an estimate fitted to y: a forecast of y alone, given through the back door."""

    def __init__(self, family):
        self.family, self.x, self.y = family, np.zeros((0, 2)), np.zeros(0)

    def forecast(self, phi):
        outer = self

        class Fitted:
            def log_density(self, y):
                X = np.vstack([outer.x, phi.x])
                values = np.append(outer.y, float(np.ravel(y)[0]))
                theta = np.linalg.solve(X.T @ X + 0.01 * np.eye(2), X.T @ values)
                return outer.family.log_density(y, phi.x @ theta)

        return Fitted()

    def observe(self, phi, y):
        self.x, self.y = np.vstack([self.x, phi.x]), np.append(self.y, float(y))


def test_a_peeking_predictor_fails_this_test():
    class Unguarded(ls.ConfidenceSequence):
        def _checked_score(self, forecast, phi, y):
            return float(forecast.log_density(y))

    runs, family = 40, ls.Gaussian(0.3)
    make = lambda: Unguarded(family, ls.Linear(2, 1.5), ALPHA, Peeking(family), voices=None)  # noqa: E731
    assert misses(make, family, runs, steps=15, seed=5) > allowed(runs)


@pytest.mark.slow
@pytest.mark.parametrize("weighting", [None, ls.BiasWeighting("bound"), ls.BiasWeighting("projection")], ids=repr)
@pytest.mark.parametrize("predictor", [ls.Mixture(), ls.FTRL()], ids=repr)
@pytest.mark.parametrize("family", [*FAMILIES, *OTHERS], ids=repr)
def test_every_construction_covers_in_a_long_simulation(family, predictor, weighting):
    runs = 400
    make = lambda: ls.ConfidenceSequence(family, ls.Linear(2, 1.5), ALPHA, predictor, weighting)  # noqa: E731
    assert misses(make, family, runs, steps=40, seed=6) <= allowed(runs)
