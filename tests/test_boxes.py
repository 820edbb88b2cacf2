"""Continuous domains: choice by belief, certified gaps."""

import numpy as np
import pytest
from scipy.stats import binom
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, Matern

import likeset as ls
from likeset.bandits.certified_maximum import can_certify, certified_maximum, falls_with_distance
from likeset.bandits.continuous import Box
from likeset.bandits.rewards import DECREASING, INCREASING
from likeset.errors import InvalidArgumentError, ShapeError

FALSE_ALARM = 1e-6


def fed(space, count, seed=0):
    rng = np.random.default_rng(seed)
    seq = ls.ConfidenceSequence(ls.Gaussian(0.1), space, 0.1)
    x = rng.uniform(0.0, 1.0, size=(count, space.dim))
    seq.update(x, np.sin(4 * x[:, 0]) * 0.5 + 0.1 * rng.standard_normal(count))
    return seq


@pytest.mark.parametrize("kernel", [RBF(0.3), Matern(0.4, nu=2.5), 0.5 * Matern(0.5, nu=1.5)], ids=str)
@pytest.mark.parametrize("reward", [INCREASING, DECREASING], ids=["increasing", "decreasing"])
def test_the_certified_maximum_bounds_a_fine_grid_closely(kernel, reward):
    space = ls.RKHS(kernel, 2.0)
    current, box = fed(space, 15).set, Box(space, (0.0, 1.0))
    grid = np.linspace(0.0, 1.0, 2001)
    highest = (current.upper(grid) if reward.increasing else -current.lower(grid)).max()
    found = certified_maximum(current, space, reward, box, 0.02, 4000)
    assert highest <= found <= highest + 0.021
    rough = certified_maximum(current, space, reward, box, 0.02, 10)  # a small budget: valid, and not as close
    assert rough >= highest


def test_the_certified_maximum_of_mixed_and_linear_boxes():
    space = ls.RKHS(RBF([0.4, 1.0, 1.0]), 2.0, dim=3)
    box = Box(space, [(0.0, 1.0), range(3), {0.0, 1.0}])
    rng = np.random.default_rng(1)
    seq = ls.ConfidenceSequence(ls.Gaussian(0.1), space, 0.1)
    x = box.snapped(rng.uniform([0, 0, 0], [1, 2, 1], size=(30, 3)))
    seq.update(x, 0.3 * x[:, 1] - x[:, 2] + 0.1 * rng.standard_normal(30))
    grid = np.stack(np.meshgrid(np.linspace(0, 1, 101), range(3), [0.0, 1.0], indexing="ij"), -1).reshape(-1, 3)
    highest = seq.set.upper(grid).max()
    assert highest <= certified_maximum(seq.set, space, INCREASING, box, 0.05, 4000) <= highest + 0.06

    linear = ls.Linear(3, 1.0)
    seq = ls.ConfidenceSequence(ls.Poisson(), linear, 0.1)
    seq.update(x + 0.1, rng.poisson(1.0, 30))
    box = Box(linear, [(-1.0, 1.0), (0.1, 0.5), (0.1, 2.0)])
    inside = rng.uniform(box.box[:, 0], box.box[:, 1], size=(500, 3))
    assert seq.set.upper(inside).max() <= certified_maximum(seq.set, linear, INCREASING, box, 0.0, 0) + 1e-9


def test_what_cannot_be_certified_is_said():
    assert falls_with_distance(ConstantKernel(2.0) * RBF(0.1) + Matern(1.0))
    assert not falls_with_distance(DotProduct() + RBF()) and not falls_with_distance(lambda x, y: x @ y.T)
    space = ls.RKHS(RBF(0.5), 2.0, dim=4)
    assert not can_certify(space, Box(space, [(0.0, 1.0)] * 4))
    policy = ls.Guarded(ls.ConfidenceSequence(ls.Gaussian(0.1), space), bounds=[(0.0, 1.0)] * 4)
    policy.tell(policy.ask(), 0.3)
    assert "as far as a search" in str(policy.recommend())
    with pytest.raises(InvalidArgumentError, match="three"):
        _ = policy.certified_regret
    with pytest.raises(InvalidArgumentError, match="until"):
        ls.Guarded(ls.ConfidenceSequence(ls.Gaussian(0.1), space), bounds=[(0.0, 1.0)] * 4, until={"gain": 1})


def test_gap_and_regret_in_a_box_are_true():
    runs, alpha, wrong = 8, 0.2, 0
    kernel, centres = RBF(0.25), np.array([[0.2], [0.7]])
    for k in range(runs):
        rng = np.random.default_rng([9, k])
        shares = rng.standard_normal(2)
        shares *= 1.5 / np.sqrt(shares @ kernel(centres) @ shares)
        f = lambda x, shares=shares: float(kernel(np.reshape(x, (1, 1)), centres)[0] @ shares)  # noqa: E731
        policy = ls.Guarded(ls.ConfidenceSequence(ls.Gaussian(0.1), ls.RKHS(kernel, 1.6), alpha), bounds=(0, 1), rng=k)
        best, regret = max(f(x) for x in np.linspace(0, 1, 201)), 0.0
        for _ in range(4):
            for x in policy.ask(n=2):
                regret += best - f(x)
                policy.tell(x, f(x) + 0.1 * rng.standard_normal())
        choice = policy.recommend()
        assert not choice.searched
        wrong += f(choice.x) < choice.lower or best > choice.lower + choice.gap or regret > policy.certified_regret
    assert wrong <= binom.ppf(1 - FALSE_ALARM, runs, alpha)
    assert choice.gap < 2 * 1.6 - choice.lower  # less than what the bound says without data


def test_mixed_boxes_batches_and_points_outside():
    space = ls.RKHS(RBF([0.5, 1.0, 1.0]), 2.0, dim=3)
    policy = ls.Guarded(ls.ConfidenceSequence(ls.Gaussian(0.1), space), bounds=[(0.0, 1.0), range(1, 5), {0, 2}], rng=0)
    rng = np.random.default_rng(0)
    for _ in range(8):
        batch = policy.ask(n=2)
        assert not np.array_equal(*batch)
        for x in batch:
            assert 0.0 <= x[0] <= 1.0 and x[1] in range(1, 5) and x[2] in (0, 2)
            policy.tell(x, np.exp(-8 * (x[0] - 0.4) ** 2) - 0.2 * abs(x[1] - 3) + 0.1 * rng.standard_normal())
    assert len(policy.pending) == 0 and policy.recommend().x[1] == 3
    for outside in ([1.2, 2, 0], [0.5, 2.5, 0], [0.5, 2, 1]):
        with pytest.raises(InvalidArgumentError, match="outside"):
            policy.tell(outside, 0.1)
    for bounds in ([(0, 1), range(0), {1}], [(1, 0), range(3), {1}], [(0, 1), range(3)], [{"a"}, (0, 1), (0, 1)]):
        with pytest.raises((ShapeError, InvalidArgumentError)):
            ls.Guarded(ls.ConfidenceSequence(ls.Gaussian(0.1), space), bounds=bounds)


def test_a_box_from_a_safe_seed():
    kernel = RBF(0.4)
    seq = ls.ConfidenceSequence(ls.Gaussian(0.1), ls.RKHS(kernel, 2.0), 0.1)
    policy = ls.Guarded(seq, bounds=(0, 1), safe={"heat": ls.Below(0.5, ls.Gaussian(0.05))}, seed=[0.1], rng=0)
    rng = np.random.default_rng(0)
    for _ in range(8):
        x = policy.ask()
        assert x[0] ** 2 <= 0.5
        policy.tell(x, x[0], heat=x[0] ** 2 + 0.05 * rng.standard_normal())
    assert policy.pending.shape == (0, 1) and seq.ledger.x.rows.max() > 0.2
    nothing = ls.Guarded(ls.ConfidenceSequence(ls.Gaussian(0.1), ls.RKHS(kernel, 2.0)), bounds=(0, 1),
                         safe={"heat": ls.Below(0.5, ls.Gaussian(0.05))})  # fmt: skip
    with pytest.raises(InvalidArgumentError, match="seed"):
        nothing.ask()
