"""Constant powers, and means of bounded outcomes by betting."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

import likeset as ls
from likeset import checks
from likeset.comparison import BettingMean
from likeset.errors import InvalidArgumentError, ObservationError

X = np.array([[np.cos(t), np.sin(t)] for t in np.linspace(0, np.pi, 6, endpoint=False)])
THETA = np.array([0.6, -0.4])


def test_a_power_is_a_power():
    rng = np.random.default_rng(0)
    y = X @ THETA + rng.normal(scale=0.3, size=6)
    plain, half = (
        ls.ConfidenceSequence(ls.Gaussian(0.3), ls.Linear(2, 1.5), weighting=w, voices=None)
        for w in (None, ls.Powered(0.5))
    )
    plain.update(X, y)
    half.update(X, y)
    assert half.set.log_ratio(X) == pytest.approx(0.5 * plain.set.log_ratio(X), abs=1e-10)
    checks.check_growth(half, X[0], [[0.3, 0.2]])
    checks.check_round_trip(half)


def misses(w, wilder, runs=60):
    missed = 0
    for run in range(runs):
        rng = np.random.default_rng([3, run])
        x = X[rng.integers(6, size=120)]
        y = x @ THETA + wilder * 0.3 * rng.normal(size=120)
        sequence = ls.ConfidenceSequence(ls.Gaussian(0.3), ls.Linear(2, 1.5), 0.1, weighting=ls.Powered(w), voices=None)
        covered = True
        for k in range(0, 120, 20):
            sequence.update(x[k : k + 20], y[k : k + 20])
            covered &= sequence.set.contains(THETA)
        missed += not covered
    return missed


def test_a_power_hedges_against_wilder_noise():
    """Noise of twice the deviation, which w = 1/4 allows for; without a power many sets miss (negative control)."""
    assert misses(0.25, 2.0) <= binom.ppf(1 - 1e-6, 60, 0.1)
    assert misses(1.0, 2.0) > binom.ppf(1 - 1e-6, 60, 0.1)


@pytest.mark.parametrize("w", [0.0, 1.5, -1.0, np.nan, "half", None])
def test_powers_that_are_none(w):
    with pytest.raises(InvalidArgumentError):
        ls.Powered(w)


@pytest.mark.parametrize("law", ["bernoulli", "beta", "two values"])
def test_betting_covers_at_all_times(law):
    """Means of three laws; every look counts; false alarm below 1e-6."""
    draw = {
        "bernoulli": lambda rng: (rng.random(150) < 0.2).astype(float),
        "beta": lambda rng: rng.beta(0.4, 1.6, size=150),
        "two values": lambda rng: np.where(rng.random(150) < 0.5, 0.1, 0.3),
    }[law]
    missed = 0
    for run in range(60):
        y, mean = draw(np.random.default_rng([4, run])), BettingMean(0.1)
        for k in range(0, 150, 10):
            mean.update(y[k : k + 10])
            if not mean.contains(0.2):
                missed += 1
                break
    assert missed <= binom.ppf(1 - 1e-6, 60, 0.1)


def test_wealth_is_a_martingale():
    """One step: the expected factor of either wealth is one for every law with mean m."""
    mean = BettingMean(0.05)
    mean.update([0.3, 0.9, 0.1])
    before = np.exp(mean.log_wealth(0.25))
    after = np.zeros(2)
    for y, p in ((0.0, 0.5), (0.5, 0.5)):
        other = BettingMean(0.05)
        other.update([0.3, 0.9, 0.1, y])
        after += p * np.exp(other.log_wealth(0.25))
    assert after == pytest.approx(before)


def test_the_interval_is_the_set():
    mean = BettingMean(0.05)
    assert mean.interval() == (0.0, 1.0)
    mean.update(np.random.default_rng(5).beta(3, 7, size=300))
    low, high = mean.interval()
    inside = [m for m in np.linspace(0, 1, 2001) if mean.contains(m)]
    assert low == pytest.approx(inside[0], abs=6e-4) and high == pytest.approx(inside[-1], abs=6e-4)
    assert low <= inside[0] and high >= inside[-1]
    assert 0.2 < low < 0.3 < high < 0.4


def test_betting_refusals():
    mean = BettingMean()
    for y in (1.5, -0.1, "x", np.nan):
        with pytest.raises(ls.LikesetError):
            mean.update([0.5, y])
    assert mean.n_observations == 0
    with pytest.raises(ObservationError):
        mean.update(2.0)
