"""e-BH and e-LOND: by hand, false discoveries under dependence, and the trap of running maxima."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

import likeset as ls
from likeset.errors import InvalidArgumentError, ShapeError

K, LEVEL, RUNS = 20, 0.1, 3000


def by_definition(logs, level):
    """The largest k such that the k largest e-values are all at least K/(k level), tried one by one."""
    order, best = np.argsort(-logs), 0
    for k in range(1, len(logs) + 1):
        if np.exp(logs[order[k - 1]]) >= len(logs) / (k * level):
            best = k
    return set(order[:best])


def test_e_bh_by_definition():
    rng = np.random.default_rng(0)
    for _ in range(300):
        logs = rng.normal(2.0, 3.0, size=int(rng.integers(1, 30)))
        assert set(np.flatnonzero(ls.e_bh(logs, 0.1))) == by_definition(logs, 0.1)
    assert ls.e_bh([], 0.1).shape == (0,)
    assert ls.e_bh([np.inf, -np.inf], 0.05).tolist() == [True, False]
    assert ls.e_bh(np.log([40.0, 40.0, 40.0]), 0.05).all()


def doomed_processes(rng):
    """K e-processes of true hypotheses that climb together and fall: paths (K, K + 1), time along the second axis.

    Each alone is a martingale from 1: to K/(j level) for j = K, K - 1, ..., 1, with probability (j - 1)/j to go on from
    there, else to zero. Together: j of them climb to K/(j level), with probability level/j, and then fall.
    """
    paths = np.zeros((K, K + 1))
    paths[:, 0] = 1.0
    j = int(np.searchsorted(np.cumsum(LEVEL / np.arange(1, K + 1)), rng.uniform())) + 1
    if j <= K:
        chosen = rng.permutation(K)[:j]
        for step, level in enumerate(range(K, j - 1, -1), start=1):
            paths[chosen, step] = K / (level * LEVEL)
    return paths


def test_running_maxima_are_no_e_values():
    """False discovery rates with all hypotheses true: e-values at a fixed time keep the level, the largest ever do not.

    The standard error of each share is below 0.009: five of them are allowed.
    """
    rng = np.random.default_rng(1)
    now, ever, means = 0, 0, np.zeros(K + 1)
    with np.errstate(divide="ignore"):
        for _ in range(RUNS):
            paths = doomed_processes(rng)
            means += paths.mean(axis=0) / RUNS
            time = int(rng.integers(1, K + 1))  # chosen before
            now += ls.e_bh(np.log(paths[:, time]), LEVEL).any()
            ever += ls.e_bh(np.log(paths.max(axis=1)), LEVEL).any()
    assert means[:K] == pytest.approx(np.ones(K), abs=0.4)  # they are martingales, the last step apart: few are left
    assert now <= binom.ppf(1 - 1e-6, RUNS, LEVEL)
    assert ever / RUNS > 3.0 * LEVEL  # level (1 + 1/2 + ... + 1/K) = 0.36


def test_online_tests_keep_the_level():
    """Half of the hypotheses true, dependent e-values; the false discovery rate is below the level."""
    rng = np.random.default_rng(2)
    shares, found = [], 0
    for _ in range(300):
        tests, true = ls.OnlineTests(LEVEL), rng.uniform(size=30) < 0.5
        shared = rng.normal()
        rejected = np.zeros(30, dtype=bool)
        for t in range(30):
            z = 0.7 * shared + np.sqrt(0.51) * rng.normal() + (0.0 if true[t] else 5.0)
            rejected[t] = tests.test(2.0 * z - 2.0)  # exp(2 z - 2): expectation one under N(0, 1)
        shares.append((rejected & true).sum() / max(rejected.sum(), 1))
        found += (rejected & ~true).sum()
    assert np.mean(shares) <= LEVEL + 5 * np.std(shares) / np.sqrt(300)
    assert found > 300
    assert tests.count == 30 and tests.rejections == rejected.sum()


def test_a_level_per_test_would_not_do():
    """Negative control: every hypothesis at the full level."""
    rng = np.random.default_rng(3)
    false = np.mean([any(2.0 * rng.normal() - 2.0 >= np.log(1 / LEVEL) for _ in range(60)) for _ in range(300)])
    assert false > 2 * LEVEL


def test_evidence_of_sets_goes_straight_in():
    sequence = ls.ConfidenceSequence(ls.Gaussian(0.2), ls.Linear(3, 2.0))
    rng = np.random.default_rng(4)
    x = rng.normal(size=(120, 3))
    sequence.update(x, x @ [1.0, 0.0, -0.5] + rng.normal(scale=0.2, size=120))
    evidence = sequence.set.evidence(np.eye(3), equal=0.0)
    assert ls.e_bh(evidence.log_e_value, 0.05).tolist() == [True, False, True]


@pytest.mark.parametrize("bad", ["x", [np.nan], [None], None, {}, [1j]])
def test_what_is_no_evidence(bad):
    with pytest.raises(InvalidArgumentError):
        ls.e_bh(bad)
    tests = ls.OnlineTests()
    with pytest.raises(InvalidArgumentError):
        tests.test(bad)
    assert tests.count == 0


def test_shapes_and_levels():
    with pytest.raises(ShapeError):
        ls.e_bh([[1.0]])
    with pytest.raises(ShapeError):
        ls.OnlineTests().test([1.0, 2.0])
    with pytest.raises(InvalidArgumentError):
        ls.e_bh([1.0], 2.0)
