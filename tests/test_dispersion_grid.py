"""An unknown dispersion by a grid of models: what lies between is off by little, and the union covers."""

import numpy as np
import pytest
from scipy.stats import binom, nbinom

import likeset as ls


def log_mass(mean, dispersion, y):
    r = 1.0 / dispersion
    return nbinom.logpmf(y, r, r / (r + mean))


@pytest.mark.parametrize(("ratio", "most"), [(1.1, 0.0008), (1.2, 0.0028), (1.5, 0.014)])
def test_divergence_from_the_nearest_model_of_a_grid(ratio, most):
    worst = 0.0
    for dispersion in (0.02, 0.1, 0.5, 2.0, 10.0):
        for mean in (0.1, 1.0, 10.0, 100.0):
            y = np.arange(60000 if dispersion * mean > 50 else 8000)
            truth = log_mass(mean, dispersion, y)
            for nearest in (dispersion * ratio**0.5, dispersion / ratio**0.5):
                worst = max(worst, float(np.sum(np.exp(truth) * (truth - log_mass(mean, nearest, y)))))
    assert worst <= most


@pytest.mark.slow
def test_coverage_between_the_values_of_a_grid():
    runs, missed, told = 20, 0, 0
    line, alpha, truth = ls.Linear(dim=1, bound=3.0), 0.1, ls.NegativeBinomial(0.55)
    for run in range(runs):
        rng = np.random.default_rng([0, run])
        seq = ls.AnyOf(*((ls.NegativeBinomial(0.3 * 1.5**k), line) for k in range(5)), alpha=alpha)
        poisson = ls.ConfidenceSequence(ls.Poisson(), line, alpha)
        lost, control = False, False
        for _ in range(8):
            y = truth.sample(np.full(25, 2.0), rng)
            for one in (seq, poisson):
                one.update(np.ones((25, 1)), y)
            low, high = seq.set.interval([[1.0]])
            lost |= not low[0] <= 2.0 <= high[0]
            control |= not poisson.set.contains([2.0])
        missed, told = missed + lost, told + control
    assert missed <= int(binom.ppf(1 - 1e-6, runs, alpha)) < told  # counts told to be Poisson miss
