"""Noise of unknown scale: exact projections, guarantees, widths, and everything a sequence can do."""

import copy
from dataclasses import replace

import cvxpy as cp
import numpy as np
import pytest
from scipy.special import gammaln, logsumexp
from scipy.stats import binom

import likeset as ls
from likeset import checks
from likeset.families.scale_beliefs import SHAPES, ScalePosterior

ALPHA = 0.1
ARMS = np.array([[np.cos(t), np.sin(t)] for t in np.linspace(0, np.pi, 8, endpoint=False)])


def gaussian(sigma=None, space=None, **more):
    """The joint set by the model's own ratio: tests/test_alarm_unknown.py and test_unknown_voices.py have the rest."""
    more = {"alarm": False, "voices": None} | more
    return ls.ConfidenceSequence(
        ls.Gaussian(sigma=ls.Unknown() if sigma is None else sigma), space or ls.Linear(2, 1.5), ALPHA, **more
    )


def data(n, seed, sigma=0.3, theta=(0.7, -0.5)):
    rng = np.random.default_rng(seed)
    X = ARMS[rng.integers(len(ARMS), size=n)]
    return X, X @ np.array(theta) + sigma * rng.normal(size=n)


def diagonal_first(X, y):
    """With a first row that is the largest in every column, so that units of columns do not change."""
    return np.vstack([[1.0, 1.0], X]), np.concatenate([[0.2], y])


# -- the projection -------------------------------------------------------------------------------------------------


def marginal_log_ratio(X, y, theta, sigma, priors):
    """log R(theta, sigma) by dense algebra: a blend of normal-inverse-gamma marginal likelihoods against the truth."""
    n = len(y)
    residual = y - X @ theta
    assert (np.abs(X) <= np.abs(X[0]) * (1 + 1e-12)).all()  # units of columns never change
    X = X / np.abs(X[0])
    parts = []
    for a in SHAPES:
        b = a * sigma**2
        for prior in priors:
            cov = np.eye(n) + X @ X.T / prior
            quadratic = b + 0.5 * y @ np.linalg.solve(cov, y)
            parts.append(
                gammaln(a + n / 2) - gammaln(a) + a * np.log(b) - (a + n / 2) * np.log(quadratic)
                - 0.5 * np.linalg.slogdet(cov)[1] - n / 2 * np.log(2 * np.pi)
            )  # fmt: skip
    log_p = -0.5 * residual @ residual / sigma**2 - n * np.log(sigma) - n / 2 * np.log(2 * np.pi)
    return logsumexp(parts) - np.log(len(parts)) - log_p


@pytest.mark.parametrize("n", [1, 2, 7, 40])
def test_log_ratio_is_that_of_the_marginal_likelihood(n):
    X, y = diagonal_first(*data(n, 0))
    seq = gaussian()
    seq.update(X, y)
    priors = seq.family.prior_precisions
    for theta in ([0.7, -0.5], [0.0, 1.2]):
        for sigma in (0.05, 0.3, 2.0):
            want = marginal_log_ratio(X, y, np.array(theta), sigma, priors)
            assert seq.set.log_ratio(theta, sigma) == pytest.approx(want, rel=1e-9, abs=1e-9)
        grid = np.exp(np.linspace(np.log(0.01), np.log(30), 400))
        least = min(seq.set.log_ratio(theta, sigma) for sigma in grid)
        assert least - 0.02 <= seq.set.log_ratio(theta) <= least + 1e-12


RANGES = [ls.Unknown(), ls.Unknown(0.25, 0.35), ls.Unknown(hi=0.29), ls.Unknown(lo=0.31)]


@pytest.mark.parametrize("family", [ls.Gaussian, ls.Laplace])
@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
@pytest.mark.parametrize("sigma", RANGES, ids=repr)
def test_bounds_are_those_of_cvxpys_joint_program(family, sigma):
    # A plain numerator: the joint program in (beta, tau) = (theta, 1)/sigma is convex. max x'theta = x'beta/tau is
    # quasi-linear: the least tau * c - x'beta over the set is zero at the right c.
    X, y = data(30, 1)
    seq = ls.ConfidenceSequence(family(sigma), ls.Linear(2, 1.5), ALPHA, ls.Aggregate(ls.Mixture()), voices=None)
    seq.update(X, y)
    log_q = float(seq.ledger.log_q.rows.sum())
    beta, tau = cp.Variable(2), cp.Variable(nonneg=True)
    n = len(y)
    if family is ls.Gaussian:
        loss = 0.5 * cp.sum_squares(tau * y - X @ beta) + n / 2 * np.log(2 * np.pi)
    else:
        loss = cp.sum(cp.abs(tau * y - X @ beta)) + n * np.log(2)
    loss += log_q - n * cp.log(tau)
    limits = [loss <= np.log(1 / ALPHA), cp.norm(beta) <= 1.5 * tau]
    if sigma.hi < np.inf:
        limits.append(tau >= 1 / sigma.hi)
    if sigma.lo > 0:
        limits.append(tau <= 1 / sigma.lo)
    slope = cp.Parameter()
    for x in ([1.0, 0.0], [0.6, -0.8]):
        got = float(seq.set.upper([x])[0])
        problem = cp.Problem(cp.Minimize(slope * tau - np.array(x) @ beta), limits)
        low, high = got - 0.5, got + 0.5
        while high - low > 1e-9:
            slope.value = 0.5 * (low + high)
            problem.solve(solver=cp.CLARABEL)
            low, high = (low, slope.value) if problem.value > 0 else (slope.value, high)
        assert high - 1e-6 <= got <= high + 1e-6
        theta = seq.set.support([x]).maximisers[0]
        assert seq.set.contains(theta * (1 - 1e-9))


def test_upper_is_the_largest_over_fixed_sigmas():
    X, y = diagonal_first(*data(25, 2))
    seq = gaussian()
    seq.update(X, y)
    s = seq.set
    low, high = s.nuisance_interval()
    best = -np.inf
    for sigma in np.linspace(low * 1.0001, high * 0.9999, 400):
        # At fixed sigma the set is an ellipsoid: its extent in closed form.
        level = np.log(1 / ALPHA) - marginal_log_ratio(X, y, np.zeros(2), sigma, seq.family.prior_precisions)
        H = X.T @ X
        centre = np.linalg.solve(H, X.T @ y)
        slack = level * 2 * sigma**2 + y @ y - (y - X @ centre) @ (y - X @ centre)
        if slack > 0:
            best = max(best, centre[0] + np.sqrt(slack * np.linalg.inv(H)[0, 0]))
    got = float(s.upper([[1.0, 0.0]])[0])
    assert best <= got <= best + 1e-5


def test_interval_of_sigma_is_where_some_theta_is_plausible():
    X, y = data(40, 3)
    seq = gaussian()
    seq.update(X, y)
    s = seq.set
    low, high = s.nuisance_interval()
    fit = np.linalg.lstsq(X, y, rcond=None)[0]
    assert s.contains(fit, low * 1.0001) and s.contains(fit, high * 0.9999)
    assert not s.contains(fit, low * 0.999) and not s.contains(fit, high * 1.001)
    assert low < 0.3 < high


def test_a_range_that_excludes_the_data_is_refuted():
    X, y = data(200, 4, sigma=0.3)
    for sigma in (ls.Unknown(hi=0.1), ls.Unknown(1.0, 2.0)):
        seq = gaussian(sigma)
        seq.update(X, y)
        assert seq.set.is_empty
        with pytest.raises(ls.EmptySetError):
            seq.set.nuisance_interval()


# -- guarantees -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sigma", [0.3, 5.0])
def test_one_step_growth(sigma, monkeypatch):
    X, y = data(12, 5)
    seq = gaussian()
    for count in (0, 2, 12):
        before = copy.deepcopy(seq)
        if count:
            before.update(X[:count], y[:count])
        checks.check_growth(before, [0.6, -0.4], [[0.3, 0.2], [-0.9, 0.8]], nuisance=sigma)
    # Early forecasts are so wide that most of their mass is where nobody integrates; later ones are not.
    assert checks.one_step_growth(before, [0.6, -0.4], [0.3, 0.2], sigma) == pytest.approx(1.0, abs=0.02)
    honest = ScalePosterior.gain

    def forgetful(self):  # does not pay for what it did not know of z
        return replace(honest(self), constants=honest(self).constants + 0.5 * np.resize(self.scale.log_growth, 55))

    monkeypatch.setattr(ScalePosterior, "gain", forgetful)
    with pytest.raises(checks.ContractError):
        checks.check_growth(copy.deepcopy(before), [0.6, -0.4], [[0.3, 0.2]], nuisance=sigma)


def test_one_step_growth_of_laplace_noise():
    X, y = data(12, 5)
    for count in (0, 12):
        seq = ls.ConfidenceSequence(ls.Laplace(ls.Unknown()), ls.Linear(2, 1.5), ALPHA)
        if count:
            seq.update(X[:count], y[:count])
        # The quadrature does not know where forecasts have their kinks.
        assert checks.one_step_growth(seq, [0.6, -0.4], [-0.9, 0.8], nuisance=0.8) <= 1.001
    assert checks.one_step_growth(seq, [0.6, -0.4], [0.3, 0.2], 0.8) == pytest.approx(1.0, abs=0.05)


def test_contract_suite():
    checks.check_predictor(ls.Mixture(), ls.Laplace(scale=ls.Unknown()))
    checks.check_predictor(ls.Mixture(), ls.Gaussian(sigma=ls.Unknown()))
    checks.check_predictor(ls.Mixture(), ls.Gaussian(sigma=ls.Unknown(0.5, 4.0)))


def misses(make, sigma, runs, steps, seed, bound=1.5, laplace=False):
    count = 0
    for run in range(runs):
        rng = np.random.default_rng([seed, run])
        theta = rng.normal(size=2)
        theta *= bound * np.sqrt(rng.uniform()) / np.linalg.norm(theta)
        seq = make()
        for _ in range(steps):
            upper = rng.uniform(size=len(ARMS)) if seq.set.is_empty else seq.set.upper(ARMS)
            x = ARMS[int(np.argmax(upper + 1e-6 * rng.uniform(size=len(ARMS))))]
            seq.update(x, x @ theta + sigma * (rng.laplace() if laplace else rng.normal()))
            if not seq.set.contains(theta, sigma):
                count += 1
                break
    return count


@pytest.mark.parametrize("sigma", [0.05, 1.0])
def test_coverage_of_theta_and_sigma_with_adaptive_covariates(sigma):
    runs = 40
    missed = misses(gaussian, sigma, runs, 30, 0)
    assert missed <= int(binom.ppf(1 - 1e-6, runs, ALPHA))


def test_coverage_with_laplace_noise():
    runs = 40

    def make():
        return ls.ConfidenceSequence(ls.Laplace(scale=ls.Unknown()), ls.Linear(2, 1.5), ALPHA)

    assert misses(make, 0.3, runs, 20, 1, laplace=True) <= int(binom.ppf(1 - 1e-6, runs, ALPHA))


def test_an_adversary_who_sees_raw_data_gains_nothing():
    # The design that breaks scale-invariant t-sequences: one huge covariate after a tiny first outcome.
    runs, missed = 200, 0
    for run in range(runs):
        rng = np.random.default_rng([17, run])
        seq = ls.ConfidenceSequence(ls.Gaussian(sigma=ls.Unknown()), ls.Linear(1, 10.0), ALPHA)
        x, ever = 1.0, False
        for _ in range(4):
            y = 0.5 * x + rng.normal()
            seq.update([x], y)
            ever |= not seq.set.contains([0.5], 1.0)
            x = 1e4 if abs(y) < 0.05 else 1.0
        missed += ever
    assert missed <= int(binom.ppf(1 - 1e-6, runs, ALPHA))


def test_a_told_sigma_that_is_wrong_misses_and_an_unknown_one_does_not():
    """The control: the same simulation with sigma told at a third of its value."""
    runs = 25
    wrong = sum(misses_told(0.1, 0.3, run) for run in range(runs))
    right = sum(misses_told(ls.Unknown(), 0.3, run) for run in range(runs))
    allowed = int(binom.ppf(1 - 1e-6, runs, ALPHA))
    assert wrong > allowed >= right


def misses_told(told, sigma, run):
    X, y = data(200, [6, run], sigma)
    seq = gaussian(told)
    for k in range(0, 200, 20):
        seq.update(X[k : k + 20], y[k : k + 20])
        if not seq.set.contains([0.7, -0.5]):
            return True
    return False


# -- widths ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", [ls.Gaussian, ls.Laplace])
def test_widths_beside_those_of_known_sigma(family):
    ratios = {}
    for n, most in ((100, 1.3), (300, 1.25 if family is ls.Gaussian else 1.3)):
        widths = []
        for run in range(20 if family is ls.Gaussian else 6):
            rng = np.random.default_rng([7, run])
            y = 0.5 + (rng.normal(size=n) if family is ls.Gaussian else rng.laplace(size=n))
            pair = []
            for sigma in (ls.Unknown(), 1.0):
                seq = ls.ConfidenceSequence(family(sigma), ls.Linear(1, 3.0), 0.05, voices=None)
                seq.update(np.ones((n, 1)), y)
                low, high = seq.set.interval([[1.0]])
                pair.append(float(high[0] - low[0]))
            widths.append(pair)
        unknown, known = np.mean(widths, axis=0)
        ratios[n] = unknown / known
        assert ratios[n] <= most, ratios


@pytest.mark.parametrize("unit", [1e-6, 1e6])
def test_units_of_y_do_not_matter(unit):
    X, y = data(60, 8)
    widths = []
    for factor in (1.0, unit):
        seq = ls.ConfidenceSequence(ls.Gaussian(sigma=ls.Unknown()), ls.Linear(2, np.inf), ALPHA, voices=None)
        seq.update(X, factor * y)
        low, high = seq.set.interval(np.eye(2))
        widths.append((high - low) / factor)
    assert np.allclose(widths[0], widths[1], rtol=1e-6)


def test_offsets_are_taken_off():
    X, y = data(30, 8)
    offsets = np.linspace(-2.0, 3.0, 30)
    plain, shifted = gaussian(), gaussian()
    plain.update(X, y)
    shifted.update(X, y + offsets, offset=offsets)
    assert np.allclose(plain.set.upper(ARMS), shifted.set.upper(ARMS), rtol=1e-9)
    checks.check_growth(shifted, [0.6, -0.4], [[0.3, 0.2]], nuisance=0.3, offset=1.5)


# -- everything a sequence can do -----------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [ls.Gaussian, ls.Laplace])
def test_save_load_journal_and_undo(make, tmp_path):
    X, y = data(30, 9)
    family, space = make(ls.Unknown(0.01, 10.0)), ls.Linear(2, 1.5)
    seq = ls.ConfidenceSequence(family, space, ALPHA)
    seq.update(X[:20], y[:20])
    seq.save(tmp_path / "seq")
    loaded = ls.load(tmp_path / "seq")
    assert repr(loaded.family) == repr(family) and loaded.family.unknown == family.unknown
    with ls.ConfidenceSequence.open(tmp_path / "journal", family, space, ALPHA) as durable:
        durable.update(X[:20], y[:20])
    with pytest.raises(ls.JournalMismatchError):
        ls.ConfidenceSequence.open(tmp_path / "journal", ls.Gaussian(0.3), space, ALPHA)
    reopened = ls.ConfidenceSequence.open(tmp_path / "journal", family, space, ALPHA)
    before = seq.set.upper(ARMS)
    with pytest.raises(ls.LikesetError):
        seq.update(X[20:], [*y[20:-1], np.nan])
    assert np.array_equal(seq.set.upper(ARMS), before)
    for other in (loaded, reopened):
        other.update(X[20:], y[20:])
    seq.update(X[20:], y[20:])
    for other in (loaded, reopened):
        assert np.array_equal(other.set.upper(ARMS), seq.set.upper(ARMS))
        assert other.set.nuisance_interval() == seq.set.nuisance_interval()
    reopened.close()


@pytest.mark.parametrize("family", [ls.Gaussian, ls.Laplace])
def test_functions(family):
    rng = np.random.default_rng(10)
    grid = np.linspace(0, 1, 25)[:, None]
    space = ls.RKHS(lambda X, Y: np.exp(-((X - Y.T) ** 2) / 0.08), bound=3.0, domain=grid)
    truth = np.sin(5 * grid[:, 0])
    seq = ls.ConfidenceSequence(family(ls.Unknown()), space, ALPHA)
    for i in rng.integers(25, size=120):
        seq.update(grid[i], truth[i] + 0.1 * rng.normal())
    low, high = seq.set.interval(grid)
    assert (low <= truth).all() and (truth <= high).all()
    assert float(np.median(high - low)) < 0.6
    inside, outside = seq.set.nuisance_interval()
    assert inside < 0.1 < outside


def test_policies_and_comparison():
    rng = np.random.default_rng(11)
    theta = np.array([0.9, 0.0])
    for policy in (ls.UCB(gaussian(), ARMS, rng=0), ls.LowerBound(gaussian(), ARMS, rng=0)):
        for _ in range(30):
            arm = policy.ask()
            policy.tell(arm, ARMS[arm] @ theta + 0.05 * rng.normal())
        assert policy.recommend() is not None
    stop = ls.Elimination(gaussian(), ARMS)
    for _ in range(300):
        if stop.stopped:
            break
        arm = stop.ask()
        stop.tell(arm, ARMS[arm] @ theta + 0.05 * rng.normal())
    assert stop.stopped and ARMS[stop.recommend().arm] @ theta >= (ARMS @ theta).max() - 1e-9


# -- other people's sets --------------------------------------------------------------------------------------------


def test_the_f_sequence_is_the_level_set_of_its_bayes_factor():
    X, y = data(25, 20)
    seq = ls.comparison.FSequence(ls.Linear(2), ALPHA, penalty=0.7)
    seq.update(X, y)
    low, high = seq.set.interval(X[:1])
    cov = np.eye(25) + X @ X.T / 0.7

    def log_factor(theta):
        r = y - X @ theta
        return -0.5 * np.linalg.slogdet(cov)[1] - 12.5 * np.log(r @ np.linalg.solve(cov, r) / (r @ r))

    rng = np.random.default_rng(21)
    fit = np.linalg.lstsq(X, y, rcond=None)[0]
    thetas = fit + rng.normal(size=(200, 2)) * 0.2
    inside = np.array([log_factor(theta) <= np.log(1 / ALPHA) for theta in thetas])
    assert np.array_equal(seq.set.contains(thetas), inside) and 10 < inside.sum() < 190
    assert low[0] < X[0] @ fit < high[0]


def f_sequence_misses(runs, rounds, alpha, adversarial, seed):
    """Share of runs in which the t-sequence (d = 1, lambda = 1) ever loses theta = 0, sigma = 1."""
    rng = np.random.default_rng(seed)
    first = rng.normal(size=runs)
    H, moment, energy, missed = np.ones(runs), first.copy(), first**2, np.zeros(runs, dtype=bool)
    for n in range(2, rounds + 1):
        look = adversarial and n == 2
        x = np.where(np.abs(first) < 1.5, np.sqrt(2.0) / np.abs(first), 1.0) if look else np.ones(runs)
        y = rng.normal(size=runs)
        H, moment, energy = H + x * x, moment + x * y, energy + y * y
        missed |= -0.5 * np.log(1 + H) - 0.5 * n * np.log1p(-(moment**2) / (1 + H) / energy) > np.log(1 / alpha)
    return int(missed.sum())


def test_a_design_that_looks_at_raw_outcomes_breaks_the_f_sequence_and_not_ours():
    runs = 60000
    allowed = int(binom.ppf(1 - 1e-6, runs, ALPHA))
    assert f_sequence_misses(runs, 100, ALPHA, False, 22) <= allowed < f_sequence_misses(runs, 1000, ALPHA, True, 22)
    # The formula of the simulation is that of the class; and our set under the same design.
    missed = 0
    for run in range(60):
        rng = np.random.default_rng([23, run])
        ours, theirs = (make(ls.Linear(1)) for make in (
            lambda space: ls.ConfidenceSequence(ls.Gaussian(ls.Unknown()), space, ALPHA),
            lambda space: ls.comparison.FSequence(space, ALPHA),
        ))  # fmt: skip
        first, lost = rng.normal(), False
        for n in range(1, 8):
            x = np.sqrt(2.0) / abs(first) if n == 2 and abs(first) < 1.5 else 1.0
            y = first if n == 1 else rng.normal()
            for seq in (ours, theirs):
                seq.update([x], y)
            lost |= not ours.set.contains([0.0])
            H, m, E = (sums := theirs._sums).gram[0, 0], sums.moment[0], sums.energy
            factor = -0.5 * np.log(1 + H) - 0.5 * n * np.log1p(-(m**2) / (1 + H) / E)
            assert theirs.set.contains([0.0]) == (factor <= np.log(1 / ALPHA))
        missed += lost
    assert missed <= int(binom.ppf(1 - 1e-6, 60, ALPHA))


def test_universal_f_covers_and_widths_of_the_three():
    runs, missed, widths = 25, 0, []
    for run in range(runs):
        rng = np.random.default_rng([24, run])
        sets = [
            ls.comparison.UniversalF(ls.Linear(1), ALPHA), ls.comparison.FSequence(ls.Linear(1), ALPHA),
            ls.ConfidenceSequence(ls.Gaussian(ls.Unknown()), ls.Linear(1), ALPHA),
        ]  # fmt: skip
        lost = False
        for _ in range(5):
            y = 5.0 + rng.normal(size=20)
            for seq in sets:
                seq.update(np.ones((20, 1)), y)
            lost |= not sets[0].set.contains([5.0])
        missed += lost
        widths.append([float(np.diff(np.ravel(seq.set.interval([[1.0]])))[0]) for seq in sets])
    assert missed <= int(binom.ppf(1 - 1e-6, runs, ALPHA))
    universal, invariant, ours = np.mean(widths, axis=0)
    assert invariant < ours < universal  # what the stronger guarantee costs, and what the better numerator gains
    assert ours < 1.7 * invariant


def test_own_forecasters_are_inspected():
    class Wide:
        def __init__(self, mass=1.0):
            self.mass = mass

        def forecast(self, phi):
            return self

        def log_density(self, y):
            return np.log(self.mass) - 0.5 * (np.asarray(y) / 2.0) ** 2 - np.log(2.0 * np.sqrt(2 * np.pi))

        def observe(self, phi, y):
            pass

    X, y = data(40, 12)
    seq = gaussian(predictor=Wide())
    seq.update(X, y)
    assert seq.set.contains([0.7, -0.5])
    with pytest.raises(ls.PieceError):
        gaussian(predictor=Wide(1.5)).update(X, y)


def test_refusals():
    for bad in [(-1.0,), (1.0, 0.5), ("a",), (None, 0.0), (1.0, 1.0), (np.nan,)]:
        with pytest.raises(ls.InvalidArgumentError):
            ls.Unknown(*bad)
    family = ls.Gaussian(sigma=ls.Unknown(0.1, 1.0))
    for ask in (
        lambda: family.known(2.0), lambda: family.sample(np.zeros(1), np.random.default_rng(0)),
        lambda: family.log_density(0.0, 0.0), lambda: gaussian(predictor=ls.FTRL()),
        lambda: gaussian(predictor=ls.VAW()), lambda: gaussian(weighting=ls.BiasWeighting()),
        lambda: ls.ConfidenceSequence(ls.Laplace(ls.Unknown()), ls.Linear(1, 1.0)).update([1.0], 1.0, offset=2.0),
        lambda: gaussian(0.3).set.nuisance_interval(), lambda: gaussian(0.3).set.contains([0.0, 0.0], 0.3),
        lambda: gaussian(ls.Unknown(0.1, 1.0)).set.log_ratio([0.0, 0.0], 2.0),
    ):  # fmt: skip
        with pytest.raises(ls.InvalidArgumentError):
            ask()


def test_little_data_says_little():
    seq = gaussian(space=ls.Linear(2, np.inf))
    assert seq.set.nuisance_interval() == (0.0, np.inf)
    assert seq.set.upper([[1.0, 0.0]])[0] == np.inf and seq.set.contains([5.0, 5.0])
    seq.update([1.0, 0.0], 3.0)
    low, high = seq.set.nuisance_interval()
    assert low == 0.0 and high == np.inf
    seq.update([[1.0, 0.0]] * 30, [3.0] * 30)  # noise that cannot be told from none
    assert seq.set.contains([3.0, 7.0]) and not seq.set.is_empty


def test_log_normal_noise_of_unknown_deviation_is_refused_with_the_way_out():
    with pytest.raises(ls.InvalidArgumentError, match="logarithms of y"):
        ls.LogNormal(ls.Unknown())
