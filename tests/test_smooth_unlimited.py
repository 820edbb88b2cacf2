"""Mixtures of counts, zeros and ones or lifetimes without a bound: a ball around them that is not felt."""

from __future__ import annotations

import numpy as np
import pytest

import likeset as ls
from likeset._solver import dual, prepare, prepare_joint
from likeset._solver.problem import MixtureSet
from likeset._solver.quadratic.mixture import Enclosed
from likeset._solver.smooth.mixture_unlimited import _bound_of, _farthest

FAMILIES = [ls.Poisson(), ls.Bernoulli(), ls.Binomial(4), ls.Weibull(2.0), ls.Geometric()]


def observed(family, n=80, units=(1.0, 1.0, 1.0), voices="auto", bound=np.inf, seed=0, z=0.5):
    rng = np.random.default_rng(seed)
    X = np.column_stack([np.ones(n), rng.normal(size=(n, 2))])
    sequence = ls.ConfidenceSequence(family, ls.Linear(3, bound), 0.05, voices=voices, alarm=False)
    sequence.update(X * units, family.sample(X @ [0.4, z, -z], rng))
    return sequence


def problem(s) -> MixtureSet:
    e = s._evidence
    return MixtureSet(e.groups.coordinates[e.groups.owners], e.terms, e.gains, e.audible, e.threshold, e.bound)


@pytest.mark.parametrize("family", FAMILIES, ids=repr)
def test_the_same_bounds_as_by_the_dual_and_as_with_a_bound_that_does_not_matter(family):
    sequence = observed(family)
    assert isinstance(sequence.voices, ls.Patience)
    s = sequence.set
    assert isinstance(s._evidence.kernel, Enclosed)
    A = s._basis.coordinates(np.vstack([np.eye(3), -np.eye(3)]))[0]
    found = s._evidence.kernel.solve(A)
    slow = dual.prepare(problem(s), prepare_joint).solve(A)
    scale = np.abs(slow.upper).max()
    assert (found.upper >= slow.values - 1e-9 * scale).all() and (slow.upper >= found.values - 1e-9 * scale).all()
    np.testing.assert_allclose(found.upper, slow.upper, atol=1e-5 * scale)
    assert (found.upper - found.values <= 1e-6 * scale).all()
    ball = MixtureSet(**{**vars(problem(s)), "bound": 100.0})
    np.testing.assert_allclose(found.upper, prepare(ball).solve(A).upper, atol=1e-5 * scale)


@pytest.mark.parametrize("family", FAMILIES, ids=repr)
def test_the_ball_contains_the_set(family):
    """Rays from a point inside leave the set before they leave the ball."""
    s = observed(family, 30, seed=4).set
    target = problem(s)
    bound = _bound_of(target)
    centre = s._evidence.kernel.centre
    rng = np.random.default_rng(0)
    for direction in rng.standard_normal((50, 3)):
        direction /= np.linalg.norm(direction)
        at = centre + 2.0 * bound * direction  # outside of the ball
        assert np.linalg.norm(at) > bound
        assert dual.log_average(target, at) > target.level


def test_the_farthest_point_is_where_the_bound_says():
    for room, g, ell in ((1.0, 0.0, 1e-3), (5.0, 0.1, 0.5), (20.0, 0.01, 3.0)):
        t = _farthest(room, g, ell)
        S = ell * t
        assert (np.exp(-S) + S - 1) / ell**2 - g * t > room
        S /= 1.02
        assert (np.exp(-S) + S - 1) / ell**2 - g * S / ell <= room * (1 + 1e-6)
    assert _farthest(1.0, 2.0, 0.6) == np.inf


def test_units_of_columns_do_not_matter():
    widths = []
    for of_x in (1.0, 1e4, 1e-4):
        units = np.array([1.0, of_x, 1.0])
        low, high = observed(ls.Poisson(), units=units).set.interval(np.diag(units))
        widths.append(high - low)
    np.testing.assert_allclose(widths, np.broadcast_to(widths[0], (3, 3)), rtol=1e-3)


@pytest.mark.parametrize(("family", "z"), [(ls.Bernoulli(), 40.0), (ls.Poisson(), 0.0)], ids=repr)
def test_sets_that_are_unbounded(family, z):
    """Zeros and ones that a plane separates; no counts at all."""
    rng = np.random.default_rng(1)
    X = np.column_stack([np.ones(25), rng.normal(size=(25, 2))])
    y = (X[:, 1] > 0).astype(float) if z else np.zeros(25)
    sequence = ls.ConfidenceSequence(family, ls.Linear(3), 0.05, alarm=False)
    sequence.update(X, y)
    s = sequence.set
    low, high = s.interval(np.eye(3))
    assert np.isinf([low, high]).any() and not s.is_empty
    assert s.contains(sequence.belief.moments(np.eye(3))[0])
    far = np.array([0.0, 1e4, 0.0]) if z else np.array([-1e4, 0.0, 0.0])
    assert s.contains(far)
    assert (low <= far).all() and (far <= high).all()


def test_directions_that_nobody_looked_into():
    sequence = ls.ConfidenceSequence(ls.Poisson(), ls.Linear(3), 0.05)
    sequence.update([[1.0, 0.0, 0.0], [0.5, 1.0, 0.0]] * 20, np.random.default_rng(2).poisson(2.0, size=40))
    low, high = sequence.set.interval(np.eye(3))
    assert np.isfinite([low[:2], high[:2]]).all() and np.isinf([low[2], high[2]]).all()


@pytest.mark.parametrize("family", FAMILIES, ids=repr)
def test_voices_far_out_are_shares_and_not_nan(family):
    """Where e^z overflows several M_k are infinite: their r_k are finite, add up to one, and give a weighted set."""
    target = problem(observed(family, 30, seed=4).set)
    overflowed = 0
    for size in (1e3, 1e6, 1e307):
        for direction in np.vstack([np.eye(3), -np.eye(3)]):
            with np.errstate(invalid="raise"):
                exponents, r = dual.exponents_at(target, size * direction), dual.voices_at(target, size * direction)
                weighted = dual.weighted_set(target, dual._between(dual._shares(target), r, 0.5))
            assert (r >= 0.0).all() and r.sum() == pytest.approx(1.0) and np.isfinite(weighted.level)
            endless = exponents == np.inf
            overflowed += endless.any()
            if endless.any():
                shares = np.exp(target.voices.log_shares[endless])
                np.testing.assert_allclose(r[endless], shares / shares.sum())
                assert not r[~endless].any()
    assert overflowed
