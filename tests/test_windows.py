"""Window mixtures: exact extrema, validity, membership, persistence, bad input."""

from __future__ import annotations

import copy

import cvxpy as cp
import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import binom
from sklearn.gaussian_process.kernels import RBF

import likeset as ls
from likeset import _solver
from likeset._solver import dual as voice_dual
from likeset._solver.problem import MixtureSet, PointTerms
from likeset.curves import Curve
from likeset.voices.automatic import difference
from reference import TIGHT, run, term_values

GRID = np.linspace(0.0, 1.0, 24)
FAMILIES = [ls.Gaussian(0.2), ls.Poisson(), ls.Bernoulli(), ls.Weibull(2.0), ls.Laplace(0.2)]
LINEAR_ARMS = np.random.default_rng(7).normal(size=(12, 3))


def windowed_set(s, extra: bool = False) -> MixtureSet:
    """The optimisation problem behind a set, for other solvers; ``extra`` adds a coordinate outside the span."""
    X = (
        np.column_stack([s._evidence.groups.coordinates, np.zeros(len(s._evidence.groups.coordinates))])
        if extra
        else s._evidence.groups.coordinates
    )
    return MixtureSet(X, s._evidence.terms, s._evidence.gains, s._evidence.audible, -np.log(s.alpha), s.space.bound)


def observed(family, space, points, n=40, seed=0, alpha=0.1, windows=None, spread=1.0):
    """A sequence after n observations at random points, and the true z there."""
    rng = np.random.default_rng(seed)
    if isinstance(space, ls.RKHS):
        gram = space.kernel(points[:, None], points[:, None])
        z = gram @ rng.normal(size=len(points))
        z *= 0.8 * space.bound / float(space.norm(z))
    else:
        theta = rng.normal(size=space.dim)
        z = points @ theta * (0.7 * space.bound / np.linalg.norm(theta))
    index = rng.integers(int(spread * len(points)), size=n)
    sequence = ls.ConfidenceSequence(family, space, alpha, windows=windows)
    sequence.update(points[index], family.sample(z[index], rng))
    return sequence, z


def cvxpy_maximum(target: MixtureSet, a):
    """max a'theta by CVXPY's log_sum_exp, accurate to about 1e-5, or None."""
    theta = cp.Variable(target.X.shape[1])
    z, terms = target.X @ theta, target.terms
    if isinstance(terms, PointTerms):
        owner = np.repeat(np.arange(len(terms.starts) - 1), np.diff(terms.starts))
        losses = [terms.weights[owner == k] @ cp.abs(terms.points[owner == k] - z[k]) for k in range(len(target.X))]
        phi = cp.hstack(losses)
    else:
        atom = {Curve.QUADRATIC: lambda v: cp.square(v) / 2, Curve.EXPONENTIAL: cp.exp, Curve.SOFTPLUS: cp.logistic}
        scale, score, constant = terms.a, terms.s, 0.0
        if terms.origins is not None:
            z = z - terms.origins
            if terms.curve is Curve.EXPONENTIAL:  # a e^o [e^(z - o) - 1 - (z - o)]
                scale = constant = terms.a * np.exp(terms.origins)
                score = terms.s + scale
        phi = cp.multiply(scale, atom[terms.curve](z)) - cp.multiply(score, z) - constant
    masks = np.zeros((len(target.voices.log_shares), len(target.X)))
    masks[target.voices.owners, target.voices.members] = 1.0
    exponents = masks @ (phi + target.gains) + target.voices.log_shares
    constraints = [cp.log_sum_exp(exponents) <= target.level, cp.norm(theta, 2) <= target.bound]
    problem = cp.Problem(cp.Maximize(a @ theta), constraints)
    status = run(problem, TIGHT)
    return problem.value if status.startswith("optimal") else None


def log_ratio_by_hand(target: MixtureSet, theta):
    contributions = target.gains + term_values(target.terms, target.X @ theta)
    windows = target.voices
    sums = [contributions[windows.members[i:j]].sum() for i, j in zip(windows.starts, windows.starts[1:], strict=False)]
    return logsumexp(windows.log_shares + np.array(sums))


def spaces():
    domain = ls.RKHS(RBF(0.12), 2.0, domain=GRID)
    linear = ls.Linear(3, 2.0)
    return {
        "function": (domain, GRID, ls.Windows.covering(domain)),
        "part of the domain": (domain, GRID, ls.Windows.covering(domain)),
        "linear": (linear, LINEAR_ARMS, ls.Windows(LINEAR_ARMS, correlation=0.4, joint_share=0.5)),
    }


@pytest.mark.parametrize("where", ["function", "part of the domain", "linear"])
@pytest.mark.parametrize("family", FAMILIES, ids=repr)
def test_extrema_agree_with_cvxpy(family, where):
    space, points, windows = spaces()[where]
    sequence, _ = observed(family, space, points, windows=windows, spread=0.5 if where.startswith("part") else 1.0)
    s = sequence.set
    asked = points[::5]
    inside, outside = s._basis.coordinates(space.covariates(asked))
    target, A = windowed_set(s, extra=True), np.column_stack([inside, outside])
    found = s.support(asked)
    checked = 0
    for i, a in enumerate(A):
        value = cvxpy_maximum(target, a)
        if value is None:
            continue
        checked += 1
        assert found.upper[i] == pytest.approx(value, abs=1e-5 * max(1.0, abs(value)))
    assert checked >= 2
    assert (found.gap <= 1e-6 * np.maximum(1.0, np.abs(found.upper))).all()
    np.testing.assert_array_equal(found.upper, s.upper(asked))


@pytest.mark.parametrize("where", ["function", "part of the domain", "linear"])
@pytest.mark.parametrize("family", FAMILIES, ids=repr)
def test_bounds_do_not_depend_on_where_the_solver_starts(family, where):
    space, points, windows = spaces()[where]
    sequence, _ = observed(family, space, points, windows=windows, spread=0.5 if where.startswith("part") else 1.0)
    s, asked = sequence.set, points[::5]
    sign = np.where(np.arange(len(asked)) % 2, 1.0, -1.0)
    plain = s.support(asked, sign=sign)
    rng = np.random.default_rng(3)
    starts = {
        "maximisers": plain.maximisers,
        "maximisers of the opposite": s.support(asked, sign=-sign).maximisers,
        "centre": np.tile(s.centre, (len(asked), 1)),
        "zero": np.zeros_like(plain.maximisers),
        "far outside": 1e3 * rng.normal(size=plain.maximisers.shape),
    }
    for near in starts.values():
        found = s.support(asked, sign=sign, near=near)
        np.testing.assert_allclose(found.upper, plain.upper, rtol=2e-6, atol=2e-6)
        assert (found.upper >= plain.values - 1e-12).all() and (plain.upper >= found.values - 1e-12).all()
    for bad in (plain.maximisers[1:], plain.maximisers[:, 1:], np.full_like(plain.maximisers, np.nan), "far"):
        with pytest.raises(ls.LikesetError, match="near"):
            s.support(asked, near=bad)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("family", FAMILIES, ids=repr)
def test_upper_bounds_are_outer_and_attained(family, seed):
    space, points, windows = spaces()["function"]
    sequence, _ = observed(family, space, points, n=5 + 12 * seed, seed=seed, windows=windows)
    s = sequence.set
    found = s.support(GRID)
    assert (s.log_ratio(found.maximisers) <= -np.log(s.alpha) + 1e-9).all()
    assert all(float(space.norm(m)) <= space.bound * (1 + 1e-10) for m in found.maximisers)
    assert (found.gap <= 1e-6 * np.maximum(1.0, np.abs(found.upper))).all()
    # Any point of the set, found without the solver, lies below the bound.
    target, rng = windowed_set(s), np.random.default_rng(seed)
    inside, _ = s._basis.coordinates(GRID[:, None])
    centre = s._kernel.centre
    for ray in rng.normal(size=(30, len(centre))):
        low, high = 0.0, 2 * space.bound / np.linalg.norm(ray)
        for _ in range(60):
            middle = (low + high) / 2
            point = centre + middle * ray
            is_in = log_ratio_by_hand(target, point) <= target.level and np.linalg.norm(point) <= space.bound
            low, high = (middle, high) if is_in else (low, middle)
        assert (inside @ (centre + low * ray) <= found.upper + 1e-9).all()


@pytest.mark.parametrize("family", FAMILIES, ids=repr)
def test_every_choice_of_weights_gives_an_outer_bound(family):
    space, points, windows = spaces()["function"]
    s = observed(family, space, points, windows=windows)[0].set
    target, rng = windowed_set(s, extra=True), np.random.default_rng(1)
    A = np.column_stack(s._basis.coordinates(GRID[::6, None]))
    exact = s.support(GRID[::6]).values
    for _ in range(5):
        voices = rng.dirichlet(np.full(len(target.voices.log_shares), 0.3))
        bound = _solver.prepare_joint(voice_dual.weighted_set(target, voices)).solve(A).upper
        assert (bound >= exact - 1e-9 * np.abs(exact)).all()


def test_the_two_solvers_agree():
    space, points, windows = spaces()["function"]
    s = observed(ls.Poisson(), space, points, windows=windows)[0].set
    A = np.column_stack(s._basis.coordinates(GRID[::4, None]))
    dual = voice_dual.prepare(windowed_set(s, extra=True), _solver.prepare_joint).solve(A)
    newton = s.support(GRID[::4])
    assert (dual.upper >= newton.values - 1e-7).all()
    np.testing.assert_allclose(dual.upper, newton.upper, atol=2e-2)


@pytest.mark.parametrize("family", FAMILIES, ids=repr)
def test_one_window_of_everything_is_the_joint_set(family):
    space = ls.RKHS(RBF(0.12), 2.0, domain=GRID)
    alone = ls.Windows.from_masks(GRID, np.ones((1, len(GRID))), shares=[1.0])
    # The window of everything else has half of the error level and never speaks up: the joint set at alpha/2.
    windowed, _ = observed(family, space, GRID, windows=alone, alpha=0.1)
    joint, _ = observed(family, space, GRID, windows=None, alpha=0.05)
    theta = np.zeros(len(GRID))
    expected = np.logaddexp(joint.set.log_ratio(theta) + np.log(0.5), np.log(0.5))
    assert windowed.set.log_ratio(theta) == pytest.approx(expected, rel=1e-9)
    assert (windowed.set.upper(GRID[::4]) <= joint.set.upper(GRID[::4]) + 1e-6).all()


def test_the_mixture_lies_in_every_single_windows_set():
    space, points, windows = spaces()["function"]
    sequence, _ = observed(ls.Gaussian(0.2), space, points, windows=windows)
    s = sequence.set
    table, count = s._evidence.audible, len(s._evidence.gains)
    for k in range(len(table.log_shares)):
        weights = np.zeros(count)
        weights[table.members[table.starts[k] : table.starts[k + 1]]] = 1.0
        single = s.support(GRID, covariate_weights=weights, level=-np.log(s.alpha) - table.log_shares[k])
        assert (s.upper(GRID) <= single.upper + 1e-9).all()


def window_ratios(sequence, theta):
    """log M_k(theta) of every window."""
    contributions = sequence.set.log_ratio_by_covariate(theta)[0]
    return sequence._running.membership.masks.astype(float) @ contributions


# -- validity -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", FAMILIES, ids=repr)
def test_the_mixture_is_a_supermartingale(family):
    """The one-step check, of the mixture and of every window: the mean of R_t/R_{t-1} under p_theta is at most one."""
    space, points, windows = spaces()["function"]
    sequence, z = observed(family, space, points, n=12, windows=windows)
    place = 13
    for theta in (z, np.zeros(len(GRID))):
        y, v = family.outcomes(theta[place : place + 1])
        before, total = sequence.set.log_ratio(theta), 0.0
        single_before, singles = window_ratios(sequence, theta), 0.0
        for outcome, volume in zip(y, v, strict=True):
            log_density = float(family.log_density(np.asarray(outcome)[None], theta[place : place + 1])[0])
            if volume * np.exp(log_density) < 1e-12:
                continue
            step = copy.deepcopy(sequence)
            step.update(GRID[place], [outcome])
            total += volume * np.exp(log_density + step.set.log_ratio(theta) - before)
            singles = singles + volume * np.exp(log_density + window_ratios(step, theta) - single_before)
        assert total <= 1.0 + 1e-6
        assert (singles <= 1.0 + 1e-6).all()


@pytest.mark.parametrize("family", FAMILIES, ids=repr)
def test_adaptive_anytime_coverage(family):
    """Optimistic queries, every step counts; false-alarm probability below 1e-6."""
    runs, alpha, misses = 40, 0.1, 0
    kernel = RBF(0.15)
    space = ls.RKHS(kernel, 2.0, domain=GRID)
    for number in range(runs):
        rng = np.random.default_rng([11, number])
        z = kernel(GRID[:, None], GRID[:, None]) @ rng.normal(size=len(GRID))
        z *= 1.9 / float(space.norm(z))
        sequence = ls.ConfidenceSequence(family, space, alpha)
        for _ in range(15):
            place = int(np.argmax(sequence.set.upper(GRID)))
            sequence.update(GRID[place], family.sample(z[place : place + 1], rng))
            if not sequence.set.contains(z):
                misses += 1
                break
    assert misses <= binom.ppf(1 - 1e-6, runs, alpha)


def test_windows_chosen_after_seeing_y_do_not_cover():
    """Negative control: keep, in hindsight, the window with the largest ratio at the truth, at full error level."""
    runs, alpha, misses = 60, 0.1, 0
    arms = np.eye(40)
    space = ls.Linear(40, 2.0)
    for number in range(runs):
        rng = np.random.default_rng([12, number])
        sequence = ls.ConfidenceSequence(ls.Gaussian(1.0), space, alpha, ls.Mixture([0.25]), windows=None)
        index = np.tile(np.arange(40), 3)
        sequence.update(arms[index], rng.normal(size=len(index)))
        by_covariate = sequence.set.log_ratio_by_covariate(np.zeros(40))[0]
        misses += np.maximum(by_covariate, 0.0).sum() > np.log(1 / alpha)
    # A valid procedure would exceed this with probability below 1e-6.
    assert misses > binom.ppf(1 - 1e-6, runs, alpha)


# -- membership, defaults, files, bad input ---------------------------------------------------------------------------


def test_log_ratio_and_contains():
    space, points, windows = spaces()["function"]
    sequence, z = observed(ls.Bernoulli(), space, points, windows=windows)
    s = sequence.set
    by_covariate = s.log_ratio_by_covariate(z)[0]
    table = s._evidence.audible
    sums = [by_covariate[table.members[i:j]].sum() for i, j in zip(table.starts, table.starts[1:], strict=False)]
    assert s.log_ratio(z) == pytest.approx(logsumexp(table.log_shares + np.array(sums)))
    assert s.contains(z) == (s.log_ratio(z) <= np.log(10))


def test_shares_add_up_and_equal_windows_merge():
    space, points, windows = spaces()["linear"]
    sequence, _ = observed(ls.Gaussian(0.3), space, points, n=6, windows=windows)
    table = sequence.set._evidence.audible
    assert np.exp(table.log_shares).sum() == pytest.approx(1.0)
    rows = {tuple(table.members[i:j]) for i, j in zip(table.starts, table.starts[1:], strict=False)}
    assert len(rows) == len(table.log_shares)


def test_covariates_outside_every_window_still_count():
    space = ls.RKHS(RBF(0.05), 2.0)
    windows = ls.Windows([0.1, 0.2])
    sequence = ls.ConfidenceSequence(ls.Gaussian(0.1), space, 0.1, windows=windows)
    before = sequence.set.upper([0.9])[0]
    sequence.update([0.9] * 20, [0.5] * 20)
    assert sequence.set.upper([0.9])[0] < 0.8 < before
    masks = sequence._running.membership.masks
    assert masks[:, 0].tolist() == [False, False, True]


def test_automatic_windows():
    domain = ls.RKHS(RBF(0.12), 2.0, domain=GRID)
    optimist = ls.ConfidenceSequence(ls.Poisson(), domain)
    optimist.expect(GRID)
    assert isinstance(optimist.windows, ls.Windows)
    assert ls.ConfidenceSequence(ls.Poisson(), domain, windows=None).windows is None
    assert ls.ConfidenceSequence(ls.Poisson(), ls.RKHS(RBF(0.1), 2.0)).windows is None
    sequence = ls.ConfidenceSequence(ls.Poisson(), ls.Linear(3, 4.0))
    sequence.expect(LINEAR_ARMS)
    assert isinstance(sequence.windows, ls.Windows) and sequence.windows.joint_share == 0.5
    sequence.update(LINEAR_ARMS[0], 1)
    with pytest.raises(ls.InvalidArgumentError, match="before the first"):
        sequence.expect(LINEAR_ARMS)
    continuous = ls.ConfidenceSequence(ls.Poisson(), ls.RKHS(RBF(0.1), 2.0))
    continuous.expect(GRID)
    assert isinstance(continuous.windows, ls.Windows)
    fixed = ls.ConfidenceSequence(ls.Poisson(), ls.Linear(3, 2.0), windows=None)
    fixed.expect(LINEAR_ARMS)
    assert fixed.windows is None


AUTOMATIC = [ls.Gaussian(1.0), ls.Laplace(1.0), ls.Poisson(), ls.Bernoulli(), ls.Weibull(1.5), ls.LogWeibull(2.0)]


@pytest.mark.parametrize("family", AUTOMATIC, ids=repr)
def test_linear_models_get_windows_where_one_observation_can_tell_much(family):
    arms = LINEAR_ARMS / np.linalg.norm(LINEAR_ARMS, axis=1, keepdims=True)
    chosen = []
    for bound in (1e-3, 0.5, 1.0, 40.0, 1e6):  # far below and far above the threshold, and where exp overflows
        sequence = ls.ConfidenceSequence(family, ls.Linear(3, bound))
        sequence.expect(arms)
        chosen.append(sequence.windows is not None)
    assert chosen == [False, False, False, True, True]


def test_differences_of_laws_are_those_of_closed_forms():
    assert difference(ls.Gaussian(0.5), 0.7) == pytest.approx(1.4**2 / (2 * 0.25), rel=1e-9)
    assert difference(ls.Laplace(0.3), 0.7) == pytest.approx(4 * (0.7 / 0.3 - np.log1p(0.7 / 0.3)), rel=1e-6)
    assert difference(ls.Poisson(), 0.7) == pytest.approx(2 * (np.exp(0.35) - np.exp(-0.35)) ** 2, rel=1e-9)
    p = 1 / (1 + np.exp(-0.7))
    assert difference(ls.Bernoulli(), 0.7) == pytest.approx(-4 * np.log(2 * np.sqrt(p * (1 - p))), rel=1e-9)
    for family in (ls.Exponential(), ls.Weibull(2.0), ls.LogWeibull(2.0)):  # T = t^p is exponential with rate e^z
        assert difference(family, 0.7) == pytest.approx(4 * np.log(np.cosh(0.7)), rel=1e-6)


def test_automatic_windows_where_numbers_overflow():
    for family in (*AUTOMATIC, ls.Gaussian(1e-3), ls.Binomial(50)):
        for bound in (1e15, 1e99):
            sequence = ls.ConfidenceSequence(family, ls.Linear(3, bound))
            sequence.expect(np.eye(3))
            assert isinstance(sequence.windows, ls.Windows)


def test_families_of_the_users_own_keep_the_joint_set():
    gaussian = ls.CustomFamily(lambda y, z: 0.5 * (y - z) ** 2 + 0.5 * np.log(2 * np.pi), support="real", convex=True)
    assert ls.ConfidenceSequence(gaussian, ls.RKHS(RBF(0.12), 2.0, domain=GRID)).windows is None


def test_covering_centres_cover():
    space = ls.RKHS(RBF(0.12), 2.0, domain=GRID)
    windows = ls.Windows.covering(space, cover=0.9)
    similar = space.correlation(windows.centres, space.domain)
    assert (similar.max(axis=0) >= 0.9).all()
    assert len(windows.centres) < len(GRID)
    assert len(ls.Windows.covering(space, cover=0.9999, max_windows=5).centres) == 5


@pytest.mark.parametrize("windows", ["centres", "masks"])
def test_saved_windows_continue_bit_for_bit(windows, tmp_path):
    space = ls.RKHS(RBF(0.12), 2.0, domain=GRID)
    chosen = ls.Windows.covering(space) if windows == "centres" else ls.Windows.from_masks(
        GRID, np.arange(24)[None, :] // 8 == np.arange(3)[:, None], shares=[1.0, 2.0, 1.0]
    )  # fmt: skip
    sequence, z = observed(ls.Poisson(), space, GRID, n=20, windows=chosen)
    sequence.save(tmp_path / "w.likeset")
    loaded = ls.load(tmp_path / "w.likeset")
    for s in (sequence, loaded):
        s.update(GRID[[1, 5, 20]], [0, 2, 1])
    np.testing.assert_array_equal(sequence.set.upper(GRID), loaded.set.upper(GRID))
    assert sequence.set.log_ratio(z) == loaded.set.log_ratio(z)


def test_an_impossible_outcome_silences_its_windows_only():
    class Certain:
        """Forecasts zero counts for sure."""

        def forecast(self, phi):
            return self

        def log_density(self, y):
            return np.where(np.asarray(y) == 0, 0.0, -np.inf)

        def observe(self, phi, y):
            pass

    windows = ls.Windows.from_masks([[1.0, 0.0], [0.0, 1.0]], [[1, 0], [0, 1]])
    sequence = ls.ConfidenceSequence(ls.Poisson(), ls.Linear(2, 2.0), 0.1, Certain(), windows=windows)
    sequence.update([1.0, 0.0], 3)
    assert sequence.set.upper([[1.0, 0.0]])[0] == pytest.approx(2.0)
    sequence.update([[0.0, 1.0]] * 20, np.zeros(20))
    assert sequence.set.upper([[0.0, 1.0]])[0] < 0.0


def test_an_empty_mixture_is_reported():
    space = ls.RKHS(RBF(0.12), 0.5, domain=GRID)
    sequence = ls.ConfidenceSequence(ls.Gaussian(0.1), space, 0.1, ls.Fixed(lambda x: 3.0))
    sequence.update(GRID[[3] * 10], np.full(10, 3.0))
    assert sequence.set.is_empty
    with pytest.raises(ls.EmptySetError):
        sequence.set.upper(GRID)


@pytest.mark.parametrize(
    ("make", "argument"),
    [
        (lambda s: ls.Windows([]), "centres"),
        (lambda s: ls.Windows([0.1, np.nan]), "centres"),
        (lambda s: ls.Windows([0.1], correlation=1.5), "correlation"),
        (lambda s: ls.Windows([0.1], joint_share=1.0), "joint_share"),
        (lambda s: ls.Windows([0.1, 0.2], shares=[1.0]), "shares"),
        (lambda s: ls.Windows([0.1, 0.2], shares=[1.0, -1.0]), "shares"),
        (lambda s: ls.Windows.from_masks([0.1, 0.2], [[1, 0, 1]]), "masks"),
        (lambda s: ls.Windows.from_masks([0.1, 0.2], [[1, 2]]), "masks"),
        (lambda s: ls.Windows.covering(ls.RKHS(RBF(0.1), 1.0)), "points"),
        (lambda s: ls.ConfidenceSequence(ls.Poisson(), s, windows="joint"), "windows"),
        (lambda s: ls.ConfidenceSequence(ls.Poisson(), s, windows=3), "windows"),
        (lambda s: ls.ConfidenceSequence(ls.Poisson(), s, windows=ls.Windows([[0.1, 0.2]])), "centres"),
    ],
)
def test_bad_windows(make, argument):
    with pytest.raises(ls.InvalidArgumentError) as caught:
        make(ls.RKHS(RBF(0.1), 1.0, domain=GRID))
    assert caught.value.argument == argument


def test_parameters_that_overflow_in_some_windows_only_are_refuted_quietly():
    arms = np.eye(12)
    masks = np.eye(12, dtype=bool)
    seq = ls.ConfidenceSequence(
        ls.Poisson(), ls.Linear(12, 1e4), windows=ls.Windows.from_masks(arms, masks, np.full(12, 1 / 12))
    )
    seq.update(arms, np.ones(12, dtype=int))
    joint = ls.ConfidenceSequence(ls.Poisson(), ls.Linear(12, 1e4), windows=None)
    joint.update(arms, np.ones(12, dtype=int))
    theta = np.full(12, 7.0)  # e^7 nats: finite, and beyond what exp can take
    theta[0] = 800.0
    for s in (seq.set, joint.set):
        assert s.log_ratio(theta) == np.inf
        assert not s.contains(theta)
        assert np.isfinite(s.log_ratio(np.full(12, 7.0)))
