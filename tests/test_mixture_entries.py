"""Two ways to write down what voices hear, and three to make it less: the same bounds."""

from __future__ import annotations

import numpy as np
import pytest

import likeset as ls
from likeset._solver.quadratic import mixture as quadratic
from likeset._solver.smooth import mixture
from likeset._solver.smooth import mixture_newton as newton

FAMILIES = [ls.Gaussian(0.2), ls.Poisson(), ls.Bernoulli(), ls.Weibull(2.0)]


def observed(family, dim, voices, n=150):
    rng = np.random.default_rng(0)
    arms = rng.normal(size=(12, dim))
    arms /= np.linalg.norm(arms, axis=1)[:, None]
    rows, theta = arms[rng.integers(12, size=n)], rng.normal(size=dim) / np.sqrt(dim)
    sequence = ls.ConfidenceSequence(family, ls.Linear(dim, 2.0), voices=voices)
    sequence.update(rows, family.sample(rows @ theta, rng))
    return sequence, np.vstack([arms, -arms])


def bounds(sequence, asked):
    """Outer bounds, and how far each is from the centre of the set: what exactness is a share of."""
    sequence._set = None
    found = sequence.set.support(asked)
    assert (found.gap >= 0.0).all()
    return found.upper, found.upper - asked @ sequence.set.centre


@pytest.mark.parametrize("dim", [3, 18])  # few dimensions and many have loops of their own
@pytest.mark.parametrize("family", FAMILIES, ids=repr)
def test_entries_for_every_row_and_lists_of_rows_are_the_same(family, dim, monkeypatch):
    sequence, asked = observed(family, dim, ls.Patience().beside(ls.OpeningWindows()))
    every, width = bounds(sequence, asked)
    assert sequence.set._kernel.body.rows.size == 0
    monkeypatch.setattr(mixture, "MOSTLY", 2.0)
    some, _ = bounds(sequence, asked)
    assert sequence.set._kernel.body.rows.size > 0
    np.testing.assert_array_less(np.abs(every - some), 1.5e-7 * width)


def test_few_arms_of_gaussian_noise_with_and_without_fewer_rows(monkeypatch):
    sequence, asked = observed(ls.Gaussian(0.2), 3, ls.Patience())
    plain, width = bounds(sequence, asked)
    monkeypatch.setattr(quadratic, "PLAIN", 0)
    fewer, _ = bounds(sequence, asked)
    np.testing.assert_array_less(np.abs(plain - fewer), 1.5e-7 * width)


@pytest.mark.parametrize("family", FAMILIES, ids=repr)
def test_the_start_does_not_matter(family):
    sequence, asked = observed(family, 4, ls.Patience())
    one_by_one = np.concatenate([bounds(sequence, asked[i : i + 1])[0] for i in range(len(asked))])
    together, width = bounds(sequence, asked)
    np.testing.assert_array_less(np.abs(together - one_by_one), 1.5e-7 * width)
    assert newton.ROUGH > 1e-6  # else the points that directions start from are exact anyway


@pytest.mark.parametrize("family", [ls.Poisson(), ls.Gamma(2.0), ls.Exponential()], ids=repr)
def test_gaps_are_closed_where_a_first_step_leads_far_out(family):
    """A correction in proportion to e^50, taken back, left nothing of the step: directions ended where they began,
    with bounds that were valid and up to ten times as wide as the set."""
    worst = 0.0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=(10, 3)) * (np.geomspace(0.003, 5.0, 10)[:, None] if seed % 2 else 1.0)
        seq = ls.ConfidenceSequence(family, ls.Linear(3, bound=(10.0, 30.0)[seed % 4 // 2]), voices=ls.Patience())
        seq.update(x, family.sample(x @ (0.4 * rng.normal(size=3)), rng))
        asked = np.vstack([np.eye(3), -np.eye(3), x, -x])
        found = seq.set.support(asked)
        half = found.upper - asked @ seq.set.centre
        worst = max(worst, float(np.max((found.upper - found.values) / half)))
    assert worst < 1e-6
