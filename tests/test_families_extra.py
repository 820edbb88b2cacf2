"""Families beyond the classical ones: densities in the tails, remainders, sampling, bands, files, bad input."""

import copy
import warnings

import cvxpy as cp
import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad

import likeset as ls

ALPHA = 0.1


def observed(family, count=40, dim=2, seed=0, bound=2.0, windows=None, repeated=1):
    rng = np.random.default_rng(seed)
    X = np.tile(rng.normal(size=(count // repeated, dim)), (repeated, 1))
    theta = rng.normal(size=dim)
    theta *= 0.5 * bound / np.linalg.norm(theta)
    seq = ls.ConfidenceSequence(family, ls.Linear(dim, bound), ALPHA, windows=windows)
    seq.update(X, family.sample(X @ theta, rng))
    return seq, X, theta


# -- densities --------------------------------------------------------------------------------------------------

LAWS = {
    "Logistic": (ls.Logistic(0.3), lambda z: stats.logistic(z, 0.3)),
    "NegativeBinomial": (ls.NegativeBinomial(0.4), lambda z: stats.nbinom(2.5, 1 / (1 + 0.4 * np.exp(z)))),
    "Gamma": (ls.Gamma(2.5), lambda z: stats.gamma(2.5, scale=np.exp(z) / 2.5)),
    "LogNormal": (ls.LogNormal(0.4), lambda z: stats.lognorm(0.4, scale=np.exp(z))),
    "Geometric": (ls.Geometric(), lambda z: stats.geom(1 / (1 + np.exp(z)), loc=-1)),
    "StudentT": (ls.StudentT(3.0, 0.5), lambda z: stats.t(3.0, z, 0.5)),
}
Z = np.array([-6.0, -1.0, 0.0, 0.7, 5.0])


@pytest.mark.parametrize("name", LAWS)
def test_log_densities_are_scipys_in_the_tails_too(name):
    family, law = LAWS[name]
    for z in Z:
        y = law(z).isf([0.5, 0.1, 0.9, 1e-3, 1 - 1e-3, 1e-9, 1e-14])
        expected = (law(z).logpmf if family.discrete else law(z).logpdf)(y)
        np.testing.assert_allclose(family.log_density(y, np.full(len(y), z)), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", LAWS)
def test_samples_follow_the_law(name):
    """Kolmogorov's distance; for a right sampler it is larger with probability below 1e-6. The seeds are fixed."""
    family, law = LAWS[name]
    rng = np.random.default_rng(3)
    for z in (-1.0, 1.5):
        draws = family.sample(np.full(3000, z), rng)
        points = np.unique(draws)
        seen = np.searchsorted(np.sort(draws), points, side="right") / len(draws)
        assert np.abs(seen - law(z).cdf(points)).max() < np.sqrt(np.log(2e6) / (2 * len(draws)))


@pytest.mark.parametrize("name", LAWS)
def test_information_is_the_mean_squared_score(name):
    family, _ = LAWS[name]
    for z in (-1.0, 0.5):
        y, v = family.outcomes(np.array([z]))
        at = np.full(len(y), z)
        expected = np.sum(v * np.exp(family.log_density(y, at)) * family.derivatives(y, at)[0] ** 2)
        assert family.information(np.array([z]))[0] == pytest.approx(expected, rel=1e-4)


# -- losses -----------------------------------------------------------------------------------------------------

LOSSES = {
    "Logistic": (ls.Logistic(0.7), 0.2),
    "NegativeBinomial": (ls.NegativeBinomial(0.7), 3.0),
    "Gamma": (ls.Gamma(1.7), 0.8),
}


@pytest.mark.parametrize("u", [1e-9, -1e-5, 0.3, 7.0, -40.0])
@pytest.mark.parametrize("z", [-30.0, -1.0, 0.0, 0.4, 25.0])
@pytest.mark.parametrize("name", LOSSES)
def test_remainders_keep_their_digits(name, z, u):
    """D(z, u) = u^2 ∫ (1 - t) L''(z + tu) dt over [0, 1]: by quadrature nothing cancels."""
    family, y = LOSSES[name]
    loss, numbers = family.loss, family.parameters
    second = lambda t: float(loss.at(y, z + t * u, numbers)[2])  # noqa: E731
    inner = np.linspace(0, 1, 12)[1:-1]
    options = {"epsabs": 0, "epsrel": 1e-12, "points": inner, "limit": 200}
    D, slope, bend = loss.remainder(y, z, u, *numbers)
    assert pytest.approx(u * u * quad(lambda t: (1 - t) * second(t), 0, 1, **options)[0], rel=1e-9) == D
    assert slope == pytest.approx(u * quad(second, 0, 1, **options)[0], rel=1e-9)
    assert bend == pytest.approx(second(1.0), rel=1e-9)


# -- bands ------------------------------------------------------------------------------------------------------


def logistic_loss(z, y, family):
    v = (z - y) / family.scale
    return 2 * cp.logistic(v) - v


def negative_binomial_loss(z, y, family):
    m, r = z + np.log(family.dispersion), 1 / family.dispersion
    return cp.multiply(y + r, cp.logistic(m)) - cp.multiply(y, m)


def gamma_loss(z, y, family):
    return family.shape * (z + cp.multiply(y, cp.exp(-z)))


def log_normal_loss(z, y, family):
    return cp.square(np.log(y) - z) / (2 * family.sigma**2)


def geometric_loss(z, y, family):
    return cp.multiply(y + 1, cp.logistic(z)) - cp.multiply(y, z)


CONES = {
    "Logistic": (ls.Logistic(0.5), logistic_loss),
    "NegativeBinomial": (ls.NegativeBinomial(0.4), negative_binomial_loss),
    "Gamma": (ls.Gamma(2.5), gamma_loss),
    "LogNormal": (ls.LogNormal(0.4), log_normal_loss),
    "Geometric": (ls.Geometric(), geometric_loss),
}


def cvxpy_upper(seq, X, a, loss):
    """max a'theta by a conic solver; the level is taken from the log ratio at zero."""
    s, y = seq.set, seq.ledger.y.rows
    theta, zero = cp.Variable(len(a)), np.zeros(len(a))
    at_zero = float(cp.sum(loss(cp.Constant(X @ zero), y, seq.family)).value)
    level = -np.log(s.alpha) - s.log_ratio(zero) + at_zero
    total = cp.sum(loss(X @ theta, y, seq.family))
    problem = cp.Problem(cp.Maximize(a @ theta), [total <= level, cp.norm(theta) <= seq.space.bound])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "may be inaccurate": compared to 1e-6 all the same
        problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    return float(problem.value)


@pytest.mark.parametrize("repeated", [1, 4])
@pytest.mark.parametrize("name", CONES)
def test_bands_against_cvxpy(name, repeated):
    family, loss = CONES[name]
    seq, X, _ = observed(family, repeated=repeated)
    A = np.random.default_rng(3).normal(size=(3, 2))
    answer = seq.set.support(A)
    reference = np.array([cvxpy_upper(seq, X, a, loss) for a in A])
    np.testing.assert_allclose(answer.upper, reference, rtol=1e-6, atol=1e-6)
    assert (answer.upper >= reference - 1e-7 * (1 + np.abs(reference))).all()
    assert seq.set.contains(answer.maximisers).all()


@pytest.mark.parametrize("name", CONES)
def test_windows_and_patience_are_solved_by_the_kernels(name):
    """Bounds are attained inside the set, and no point of a fine grid inside lies above them."""
    family, _ = CONES[name]
    axis = np.linspace(-2, 2, 161)
    grid = np.array([(a, b) for a in axis for b in axis if a * a + b * b <= 4])
    for voices in (ls.Windows([[1.0, 0.0], [0.0, 1.0]], joint_share=0.5), ls.Patience()):
        seq, _, _ = observed(family, windows=voices)
        A = np.array([[1.0, 0.0], [0.6, -0.8]])
        answer = seq.set.support(A)
        np.testing.assert_allclose(answer.values, answer.upper, rtol=1e-6, atol=1e-6)
        assert seq.set.contains(answer.maximisers).all()
        inside = grid[seq.set.contains(grid)]
        assert len(inside)
        assert ((inside @ A.T).max(axis=0) <= answer.upper + 1e-9).all()


# -- files, copies, bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", LAWS)
def test_files_and_copies_continue_bit_for_bit(name, tmp_path):
    family, _ = LAWS[name]
    seq, X, _ = observed(family, 10)
    seq.save(tmp_path / "seq.likeset")
    later = family.sample(np.zeros(2), np.random.default_rng(1))
    others = [ls.load(tmp_path / "seq.likeset"), copy.deepcopy(seq)]
    assert repr(others[0].family) == repr(family)
    for one in (seq, *others):
        one.update(X[:2], later)
    for other in others:
        np.testing.assert_array_equal(other.ledger.log_q.rows, seq.ledger.log_q.rows)
        assert other.set.log_ratio([0.1, 0.2]) == seq.set.log_ratio([0.1, 0.2])


BAD = {
    "Logistic": [ls.Logistic, {"scale": 0.0}, {"scale": -1.0}, {"scale": np.nan}, {"scale": "wide"}, []],
    "NegativeBinomial": [
        ls.NegativeBinomial, {"dispersion": 0.0}, {"dispersion": 1e-20}, {"dispersion": None}, [-1.0, 0.5, 1e17]
    ],
    "Gamma": [ls.Gamma, {"shape": 0.0}, {"shape": 1e-3}, {"shape": [1.0, 2.0]}, [0.0, -1.0]],
    "LogNormal": [ls.LogNormal, {"sigma": 0.0}, {"sigma": np.inf}, [0.0, -1.0]],
    "Geometric": [ls.Geometric, [-1.0, 0.5, 1e17]],
    "StudentT": [ls.StudentT, {"df": 0.0}, {"df": 0.01}, {"df": 3.0, "scale": -1.0}, []],
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused(name):
    family, _ = LAWS[name]
    cls, *arguments, outcomes = BAD[name]
    for wrong in arguments:
        with pytest.raises(ls.LikesetError, match=list(wrong)[-1]):
            cls(**wrong)
    for y in (*outcomes, np.nan, np.inf, "a", None, [[1.0, 2.0]]):
        with pytest.raises(ls.LikesetError):
            family.observations(y)
    for y in outcomes:
        with pytest.raises(ls.ObservationError, match=r"y\[0\]"):
            family.log_density(np.array([y]), np.zeros(1))
        with pytest.raises(ls.ObservationError):
            family.derivatives(np.array([y]), np.zeros(1))
    with pytest.raises(ls.ShapeError, match="broadcast"):
        family.log_density(np.ones(3), np.zeros(2))
    with pytest.raises(ls.InvalidArgumentError, match="negative"):
        family.curvature_bounds(-1.0)
    with pytest.raises(ls.InvalidArgumentError, match="nodes"):
        family.outcomes(np.array([-1e9, 1e9]))


# -- what is particular to one of them --------------------------------------------------------------------------


def test_counts_and_amounts_of_a_covariate_are_one_term():
    """Losses that are affine in y keep the mean; weights included, and taken back with a failed update."""
    for family in (ls.NegativeBinomial(0.4), ls.Gamma(2.0)):
        seq, X, theta = observed(family, 60, repeated=20, windows=None)
        terms = seq.ledger.merged.terms()
        assert len(terms.points) == 3
        expected = seq.ledger.log_q.rows.sum() - family.log_density(seq.ledger.y.rows, X @ theta).sum()
        assert seq.set.log_ratio(theta) == pytest.approx(expected, abs=1e-9)
        before = seq.set.log_ratio(theta)
        with pytest.raises(ls.ObservationError):
            seq.update(X[:2], [1.0, -1.0])
        assert seq.set.log_ratio(theta) == before


NEGATIVE_BINOMIALS = [
    (0.5, 1000000000.0, 20.7, -21.33751699845142),
    (1e-06, 1000000.0, 13.8, -68.31701673739252),
    (1e-12, 3.0, 1.0, -1.5100412976885607),
    (20.0, 7.0, -2.0, -7.087344599530809),
]


def test_large_counts_keep_their_digits():
    """Expected values by Stirling's series in the decimal module, 60 digits: large counts, and nearly no dispersion."""
    for dispersion, y, z, expected in NEGATIVE_BINOMIALS:
        assert float(ls.NegativeBinomial(dispersion).log_density(y, z)) == pytest.approx(expected, abs=1e-8)
    assert float(ls.Geometric().log_density(1e9, 20.7)) == pytest.approx(-21.72353859825914, abs=1e-8)


def test_little_dispersion_is_poissons_and_dispersion_one_the_geometric_law():
    y, z = np.arange(20.0), np.linspace(-2, 3, 20)
    np.testing.assert_allclose(ls.NegativeBinomial(1e-11).log_density(y, z), ls.Poisson().log_density(y, z), atol=1e-8)
    np.testing.assert_allclose(ls.NegativeBinomial(1.0).log_density(y, z), ls.Geometric().log_density(y, z), atol=1e-12)
    general, X, _ = observed(ls.NegativeBinomial(1.0), windows=None)
    special = ls.ConfidenceSequence(ls.Geometric(), ls.Linear(2, 2.0), ALPHA, ls.Fixed([0.1, 0.2]), windows=None)
    same = ls.ConfidenceSequence(general.family, ls.Linear(2, 2.0), ALPHA, ls.Fixed([0.1, 0.2]), windows=None)
    for seq in (special, same):
        seq.update(X, general.ledger.y.rows)
    np.testing.assert_allclose(special.set.upper(X), same.set.upper(X), rtol=1e-6)


def test_log_normal_sets_are_gaussian_sets_of_logarithms():
    seq, X, _ = observed(ls.LogNormal(0.4))
    gaussian = ls.ConfidenceSequence(ls.Gaussian(0.4), ls.Linear(2, 2.0), ALPHA, windows=None)
    gaussian.update(X, np.log(seq.ledger.y.rows))
    np.testing.assert_allclose(seq.set.upper(X), gaussian.set.upper(X), rtol=1e-9)
    np.testing.assert_allclose(seq.set.log_ratio(np.eye(2)), gaussian.set.log_ratio(np.eye(2)), atol=1e-9)


def test_gamma_of_shape_one_is_the_exponential_law_with_the_sign_turned():
    seq, X, _ = observed(ls.Gamma(1.0), windows=None)
    times = ls.ConfidenceSequence(ls.Exponential(), ls.Linear(2, 2.0), ALPHA, windows=None)
    times.update(X, seq.ledger.y.rows)
    np.testing.assert_allclose(seq.set.upper(X), -times.set.lower(X), atol=1e-3)  # beliefs are fitted by other loops


def test_student_t_answers_membership_and_refuses_extrema():
    seq, X, theta = observed(ls.StudentT(3.0, 0.5))
    expected = seq.ledger.log_q.rows.sum() - stats.t.logpdf(seq.ledger.y.rows, 3.0, X @ theta, 0.5).sum()
    assert seq.set.log_ratio(theta) == pytest.approx(expected, abs=1e-9)
    assert seq.set.contains(theta)
    for question in (lambda: seq.set.upper(X), lambda: seq.set.is_empty):
        with pytest.raises(ls.NotConvexError, match=r"contains\(\) and log_ratio\(\)"):
            question()
    assert np.isnan(ls.StudentT(1.0).mean(0.0))
    assert float(ls.StudentT(2.0, 1e-90).log_density(1e100, 0.0)) == pytest.approx(
        -1.5 * (2 * 190 * np.log(10) - np.log(2)) - np.log(2 * np.sqrt(2)) + 90 * np.log(10)
    )


def test_a_far_outlier_tells_a_student_t_next_to_nothing():
    slopes = ls.StudentT(3.0, 0.5).derivatives(np.array([2.0, 20.0, 2e6, 1e90]), np.zeros(4))[0]
    assert (np.diff(np.abs(slopes)) < 0).all()
    assert slopes[-1] < 1e-60


@pytest.mark.parametrize("predictor", [None, ls.Fixed([0.3, -0.2])], ids=repr)
def test_student_t_covers_under_optional_stopping(predictor):
    """Misses above the bound have probability below 1e-6 for a valid sequence; the seeds are fixed."""
    runs, misses, family = 60, 0, ls.StudentT(2.5, 0.4)
    arms = np.array([[1.0, 0.0], [0.0, 1.0], [0.7, 0.7]])
    for seed in range(runs):
        rng = np.random.default_rng([seed, 17])
        theta = rng.normal(size=2)
        theta *= rng.uniform() / np.linalg.norm(theta)
        seq = ls.ConfidenceSequence(family, ls.Linear(2, 1.0), ALPHA, predictor)
        best, total = 0, np.zeros(3)
        for _ in range(10):
            y = family.sample(arms[[best]] @ theta, rng)
            seq.update(arms[[best]], y)
            total[best] += y[0] - 0.2
            best = int(np.argmax(total))
            if not seq.set.contains(theta):
                misses += 1
                break
    assert misses <= stats.binom.ppf(1 - 1e-6, runs, ALPHA)


def test_beta_binomial_counts_are_not_convex():
    """Why there is no such family: two successes of two, alpha = M s(z), beta = M s(-z), M = 3, at z = -4."""
    log_p = lambda z: stats.betabinom.logpmf(2, 2, 3 / (1 + np.exp(-z)), 3 / (1 + np.exp(z)))  # noqa: E731
    assert log_p(-4.1) + log_p(-3.9) > 2 * log_p(-4.0) + 1e-5
