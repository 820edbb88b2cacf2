"""RKHS(kernel=None): a menu of function spaces for those who know neither length scale nor bound."""

import numpy as np
import pytest
from scipy.stats import binom

import likeset as ls
from likeset.spaces.menu import LENGTH_SCALES

GRID = np.linspace(2.0, 6.0, 17)


def menu(**options):
    return ls.RKHS(kernel=None, domain=GRID, **options)


def truth(space, rng):
    """A function of the space with nine tenths of the norm that is allowed."""
    weights = np.linalg.solve(space.gram(space.domain, space.domain) + 1e-9 * np.eye(len(GRID)), rng.normal(size=17))
    values = space.gram(space.domain, space.domain) @ weights
    return values * (0.9 * space.bound / float(space.norms(values[None])[0]))


def test_what_is_on_the_menu():
    spaces = menu(height=2.0).spaces(ls.Gaussian(0.1))
    assert len(spaces) == len(LENGTH_SCALES) and all(s.covariate_shape == (1,) for s in spaces)
    assert [round(s.bound, 6) for s in spaces] == [round(2.0 * np.sqrt(2.0 + 0.5 / r), 6) for r in LENGTH_SCALES]
    # units of the domain and of the noise
    large = ls.RKHS(kernel=None, domain=1e3 * GRID).spaces(ls.Gaussian(5.0))
    small = ls.RKHS(kernel=None, domain=GRID).spaces(ls.Gaussian(0.005))
    for a, b in zip(large, small, strict=True):
        np.testing.assert_allclose(a.domain_gram, b.domain_gram, rtol=1e-9)
        assert a.bound == pytest.approx(1e3 * b.bound)
    boxes = ls.RKHS(kernel=None, box=[(0, 1), (-5, 5)]).spaces(ls.Poisson())
    assert all(s.domain is None and s.dim == 2 for s in boxes)


@pytest.mark.parametrize("smooth", [0.5, 1.0, 2.0])
def test_a_shorter_length_scale_holds_what_a_longer_one_holds(smooth):
    """|f|_l <= (l'/l)^(1/2) |f|_l' in one dimension, for the Matérn parts alone."""
    from sklearn.gaussian_process.kernels import Matern

    rng = np.random.default_rng(0)
    longer, shorter = (ls.RKHS(Matern(r, nu=2.5), 1.0, domain=GRID) for r in (smooth, smooth / 2))
    for _ in range(20):
        values = longer.domain_gram @ rng.normal(size=17)
        assert shorter.norms(values[None])[0] <= np.sqrt(2.0) * longer.norms(values[None])[0] * (1 + 1e-6)


@pytest.mark.parametrize("family", [ls.Gaussian(0.3), ls.Gaussian(sigma=ls.Unknown())], ids=repr)
def test_coverage_with_truths_of_every_length_scale(family):
    """5 adaptive runs for each of four truths, three looks; false-alarm probability 1e-6 at alpha = 10 %."""
    rng, misses, runs = np.random.default_rng(1), 0, 0
    for k in range(len(LENGTH_SCALES)):
        for _ in range(5):
            seq = ls.AnyOf((family, menu(height=2.0)), alpha=0.1, voices=None)
            f, missed = truth(seq._sequences[k].space, rng), False
            for _ in range(3):
                at = rng.choice(17, size=10)
                if seq.n_observations and not seq.set.is_empty:
                    at[:5] = np.argmax(seq.set.upper(GRID))
                seq.update(GRID[at], f[at] + 0.3 * rng.normal(size=10))
                missed |= not seq.set.contains(f)
            misses, runs = misses + missed, runs + 1
    assert misses <= binom.ppf(1 - 1e-6, runs, 0.1)


def test_models_too_smooth_for_the_data_are_refuted_and_named():
    rng = np.random.default_rng(2)
    seq = ls.AnyOf((ls.Gaussian(0.1), menu(height=2.0)), voices=None)
    at = np.tile(np.arange(17), 5)
    f = 2.0 * (-1.0) ** np.arange(17)  # every point another sign: too wild for every model but the wildest
    seq.update(GRID[at], 0.5 * f[at] + 0.1 * rng.normal(size=len(at)))
    assert any("length_scale=3.2" in name for name in seq.set.refuted)
    assert len(seq.set.left) < len(seq.models)
    smooth = ls.AnyOf((ls.Gaussian(0.1), menu(height=2.0)), voices=None)
    smooth.update(GRID[at], np.sin(GRID[at]) + 0.1 * rng.normal(size=len(at)))
    assert smooth.set.refuted == ()
    low, high = smooth.set.interval(GRID)
    assert (low < np.sin(GRID)).all() and (np.sin(GRID) < high).all() and (high - low).max() < 1.0
    assert smooth.shares[-1] > smooth.shares[0]  # what is believed is smooth, though the rest is not excluded


@pytest.mark.parametrize(
    "make",
    [
        lambda: ls.RKHS(kernel=None, bound=2.0, domain=GRID),
        lambda: ls.RKHS(None, 2.0, GRID),
        lambda: ls.RKHS(None, 2.0),
        lambda: ls.RKHS(kernel=None, height=2.0),
        lambda: ls.RKHS(kernel=None, domain=GRID, box=[(0, 1)]),
        lambda: ls.RKHS(kernel=None, domain=[1.0]),
        lambda: ls.RKHS(kernel=None, box=[(1, 0)]),
        lambda: menu(height=-1.0),
        lambda: menu(length_scales=[]),
        lambda: menu(length_scales=[0.0]),
        lambda: ls.ConfidenceSequence(ls.Gaussian(), menu()),
        lambda: ls.AnyOf((ls.Gaussian(sigma=ls.Unknown()), menu())),
        lambda: ls.AnyOf((ls.Gaussian, menu())),
    ],
)
def test_bad_input(make):
    with pytest.raises(ls.LikesetError):
        make()
