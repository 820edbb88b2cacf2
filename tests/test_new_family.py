"""A family with a curve of its own, written outside the package: it gets everything that a built-in one has.

``secant_family.py`` is all there is: no line of the package knows it.
"""

import copy
import warnings
from pathlib import Path

import cvxpy as cp
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import binom, hypsecant
from sklearn.gaussian_process.kernels import RBF

import likeset as ls
from likeset import _solver, checks
from likeset._solver import dual
from likeset._solver.problem import CompiledTerms, LossTerms, MixtureSet
from likeset._solver.smooth.mixture import Prepared as NewtonWindows
from likeset._solver.smooth.mixture_newton import maximise_directions
from likeset._solver.smooth.rays import project_rays
from likeset.losses import Loss
from secant_family import Secant, Subtracting, log_cosh, log_cosh_remainder

ALPHA = 0.1
SRC = Path(ls.__file__).parent


def observed(family, count=60, dim=3, seed=0, bound=2.0, windows=None, repeated=1, space=None):
    rng = np.random.default_rng(seed)
    X = np.tile(rng.normal(size=(count // repeated, dim)), (repeated, 1))
    theta = rng.normal(size=dim)
    theta *= 0.6 * min(bound, 2.0) / np.linalg.norm(theta)
    seq = ls.ConfidenceSequence(family, space or ls.Linear(dim, bound), ALPHA, windows=windows)
    seq.update(X, Secant(family.scale).sample(X @ theta, rng))
    return seq, X, theta


def windows(arms, bound=2.0):
    return ls.Windows.covering(ls.Linear(arms.shape[1], bound), arms, correlation=0.4, joint_share=0.5)


# -- the loss ---------------------------------------------------------------------------------------------------


def test_the_package_does_not_know_the_family():
    text = "\n".join(path.read_text() for path in SRC.rglob("*.py"))
    assert "class Secant" not in text
    assert "secant_family" not in text


def test_kernels_are_not_compiled_again():
    if not hasattr(project_rays, "signatures"):
        pytest.skip("nothing is compiled")
    A = np.eye(3)
    for family in (ls.Poisson(), Secant(0.5), Subtracting(0.7)):
        seq = ls.ConfidenceSequence(family, ls.Linear(3, 2.0), windows=windows(A))
        seq.update(A, [1.0, 0.0, 1.0])
        seq.set.upper(A)
        ls.ConfidenceSequence(family, ls.Linear(3, 2.0), windows=None).set.upper(A)
    assert len(maximise_directions.signatures) == 1
    for family in (ls.Poisson(), Secant(0.5)):
        seq = ls.ConfidenceSequence(family, ls.Linear(3, 2.0), windows=None)
        seq.update(A, [1.0, 0.0, 1.0])
        seq.set.upper(A)
    assert len(project_rays.signatures) == 1


@pytest.mark.parametrize("scale", [0.3, 2.0])
def test_density_and_derivatives(scale):
    family = Secant(scale)
    y, z = np.linspace(-40, 40, 31), np.linspace(3, -2, 31)
    np.testing.assert_allclose(family.log_density(y, z), hypsecant.logpdf(y, z, scale), rtol=1e-13)
    checks.check_family(family)


@pytest.mark.parametrize("u", [1e-9, -1e-5, 0.01, -0.2, 0.3, 7.0, -40.0])
@pytest.mark.parametrize("z", [-30.0, -1.0, 0.0, 0.4, 25.0])
def test_remainders_keep_their_digits(z, u):
    """D(z, u) = u^2 ∫ (1 - t) L''(z + tu) dt over [0, 1]: by quadrature nothing cancels."""
    loss = Secant.loss
    second = lambda t: float(loss.at(0.2, z + t * u, (0.7,))[2])  # noqa: E731
    peaks = [t for t in ((0.2 - z) / u,) if 0.0 < t < 1.0]
    expected = u * u * quad(lambda t: (1 - t) * second(t), 0, 1, epsabs=0, epsrel=1e-12, points=peaks or None)[0]
    change = u * quad(second, 0, 1, epsabs=0, epsrel=1e-12, points=peaks or None)[0]
    D, slope, bend = log_cosh_remainder(0.2, z, u, 0.7)
    assert pytest.approx(expected, rel=1e-10) == D
    assert slope == pytest.approx(change, rel=1e-10)
    assert bend == pytest.approx(second(1.0), rel=1e-10)


def test_a_loss_without_parameters_and_many_outcomes():
    loss = Loss(lambda y, z: (0.5 * (z - y) ** 2, z - y, 1.0))
    y, z = np.arange(1000.0).reshape(2, 500), 3.0
    for got, expected in zip(loss.at(y, z, ()), (0.5 * (z - y) ** 2, z - y, np.ones_like(y)), strict=True):
        np.testing.assert_array_equal(got, expected)
    assert copy.deepcopy(loss) is loss


# -- the contract -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("predictor", checks.built_in_predictors(), ids=lambda p: type(p).__name__)
def test_predictor_contract(predictor):
    """Predictable, normalised, one-step growth at most one, saved and loaded bit for bit."""
    family = Secant(0.6)
    if not checks.applicable(predictor, family):
        assert isinstance(predictor, ls.VAW)
        return
    checks.check_predictor(predictor, family)


def test_one_step_growth_with_windows_and_weights():
    family = Secant(0.5)
    seq = ls.ConfidenceSequence(
        family, ls.Linear(2, 1.5), ALPHA, weighting=ls.BiasWeighting(), windows=windows(np.eye(2))
    )
    rng = np.random.default_rng(5)
    for x in checks._PROBES[:4]:
        seq.update(x, family.sample(np.array([x @ [0.5, -0.4]]), rng))
    checks.check_growth(seq, [0.8, 0.1], [[0.3, 0.2], [-0.9, 0.8]])


def test_equal_outcomes_of_a_covariate_are_one_term():
    seq = ls.ConfidenceSequence(Secant(), ls.Linear(2, 2.0), voices=None)
    seq.update([[1.0, 0.0]] * 3 + [[0.0, 1.0]], [0.5, -1.0, 0.5, 0.5])
    terms = seq.ledger.merged.terms()
    assert isinstance(terms, LossTerms)
    np.testing.assert_array_equal(terms.points, [-1.0, 0.5, 0.5])
    np.testing.assert_array_equal(terms.weights, [1.0, 2.0, 1.0])
    np.testing.assert_array_equal(terms.owners, [0, 0, 1])


def test_log_ratio_is_that_of_the_densities():
    seq, X, theta = observed(Secant(0.5), 40)
    rows = seq.ledger
    expected = rows.log_q.rows.sum() - hypsecant.logpdf(rows.y.rows, X @ theta, 0.5).sum()
    assert seq.set.log_ratio(theta) == pytest.approx(expected, abs=1e-9)


# -- bands ------------------------------------------------------------------------------------------------------


def cvxpy_upper(s, X, y, scale, a, bound):
    """max a'theta by a conic solver; the level is taken from the log ratio at zero."""
    theta = cp.Variable(len(a))
    v = (X @ theta - y) / scale
    loss = cp.sum(cp.logistic(2 * v) - v)
    at_zero = float(np.sum(np.logaddexp(0, -2 * y / scale) + y / scale))
    level = -np.log(s.alpha) - s.log_ratio(np.zeros(len(a))) + at_zero
    problem = cp.Problem(cp.Maximize(a @ theta), [loss <= level, cp.norm(theta) <= bound])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "may be inaccurate": compared to 1e-6 all the same
        problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    return float(problem.value)


@pytest.mark.parametrize("family", [Secant(0.5), Subtracting(0.5), Secant(0.05)], ids=repr)
@pytest.mark.parametrize(("count", "dim", "bound", "repeated"), [(60, 3, 2.0, 1), (8, 3, 2.0, 2), (2, 4, 1.0, 1)])
def test_bands_against_cvxpy(family, count, dim, bound, repeated):
    seq, X, _ = observed(family, count, dim, bound=bound, repeated=repeated)
    A = np.random.default_rng(3).normal(size=(4, dim))
    answer = seq.set.support(A)
    reference = np.array([cvxpy_upper(seq.set, X, seq.ledger.y.rows, family.scale, a, bound) for a in A])
    np.testing.assert_allclose(answer.upper, reference, rtol=1e-6, atol=1e-6)
    assert (answer.upper >= reference - 1e-7 * (1 + np.abs(reference))).all()
    assert seq.set.contains(answer.maximisers).all()
    np.testing.assert_allclose(answer.values, answer.upper, rtol=1e-6)


def test_rounding_is_charged_outward():
    """Without an accurate remainder bounds may grow by rounding, but not shrink below what is attained."""
    for scale in (1.0, 1e-3, 1e-5):
        exact, X, _ = observed(Secant(scale), 40)
        rough, *_ = observed(Subtracting(scale), 40)
        A = np.random.default_rng(1).normal(size=(16, X.shape[1]))
        attained = exact.set.support(A).values
        upper = rough.set.upper(A)
        assert (upper >= attained - 1e-12 * (1 + np.abs(attained))).all()
        np.testing.assert_allclose(upper, exact.set.upper(A), rtol=1e-6)


def test_without_a_bound():
    seq, X, _ = observed(Secant(0.5), 40, 2, bound=np.inf)
    A = np.eye(2)
    reference = np.array([cvxpy_upper(seq.set, X, seq.ledger.y.rows, 0.5, a, 30.0) for a in A])
    np.testing.assert_allclose(seq.set.upper(A), reference, rtol=1e-6)
    assert not seq.set.is_empty


def test_an_impossible_model_is_found_empty():
    """The forecaster sees z = 3, Theta reaches 1."""
    seq = ls.ConfidenceSequence(Secant(0.05), ls.Linear(1, 1.0), ALPHA, predictor=ls.Fixed(lambda x: 3.0 * x[0]))
    seq.update(np.ones((20, 1)), np.full(20, 3.0))
    assert seq.set.is_empty
    assert not seq.set.contains([1.0])


def test_functions():
    """A function space with a finite domain: automatic windows, charge, bands that hold their own maximisers."""
    grid = np.linspace(0, 1, 30)
    space = ls.RKHS(RBF(0.2), 2.0, domain=grid)
    rng = np.random.default_rng(0)
    truth = np.sin(6 * grid)
    for chosen in ("auto", None):
        seq = ls.ConfidenceSequence(Secant(0.3), space, ALPHA, windows=chosen)
        rows = rng.integers(30, size=40)
        seq.update(grid[rows, None], Secant(0.3).sample(truth[rows], rng))
        assert (seq.windows is not None) == (chosen == "auto")
        low, high = seq.set.interval(grid[:, None])
        assert (low <= truth).all() and (truth <= high).all()
        assert seq.set.charge < 1e-3


# -- windows ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", [Secant(0.5), Subtracting(0.5)], ids=repr)
def test_windows_against_the_dual(family):
    _, X, _ = observed(family)
    seq, X, _ = observed(family, windows=windows(X[:6]))
    s = seq.set
    e = s._evidence
    assert isinstance(e.terms, CompiledTerms)
    target = MixtureSet(e.groups.coordinates, e.terms, e.gains, e.audible, -np.log(s.alpha), 2.0)
    newton = _solver.prepare(target)
    assert isinstance(newton, NewtonWindows)
    A = np.random.default_rng(1).normal(size=(5, 3))
    fast, slow = newton.solve(A), dual.prepare(target, _solver.prepare_joint).solve(A)
    assert (slow.upper >= fast.values - 1e-7).all()
    assert (fast.upper >= slow.values - 1e-7).all()
    np.testing.assert_allclose(fast.upper, fast.values, rtol=1e-6)
    np.testing.assert_allclose(fast.upper, slow.upper, atol=2e-2)
    assert s.contains(s.support(A).maximisers).all()


def test_arms_bring_windows_where_observations_tell_much():
    seq = ls.ConfidenceSequence(Secant(0.05), ls.Linear(2, 2.0))
    seq.expect(np.array([[1.0, 0.0], [0.0, 1.0], [0.7, 0.7]]))
    assert seq.windows is not None


# -- validity ---------------------------------------------------------------------------------------------------


def coverage_misses(runs, numerator, windowed):
    """Runs in which theta* is refuted at some time; the next covariate is the one that looked best so far."""
    arms = np.array([[1.0, 0.0], [0.0, 1.0], [0.7, 0.7], [-0.5, 0.8]])
    misses = 0
    for seed in range(runs):
        rng = np.random.default_rng([seed, 99])
        theta = rng.normal(size=2)
        theta *= rng.uniform() / np.linalg.norm(theta)
        family = Secant(0.4)
        chosen = windows(arms, 1.0) if windowed else None
        seq = ls.ConfidenceSequence(family, ls.Linear(2, 1.0), ALPHA, predictor=numerator(theta), windows=chosen)
        total, best = np.zeros(4), 0
        for _ in range(15):
            y = family.sample(arms[[best]] @ theta, rng)
            seq.update(arms[[best]], y)
            total[best] += y[0] - 0.2
            best = int(np.argmax(total))
            if not seq.set.contains(theta):
                misses += 1
                break
    return misses


@pytest.mark.parametrize("windowed", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_adaptive_coverage(windowed):
    """More misses than this happen with probability below 1e-6 for a valid sequence; the seeds are fixed."""
    runs = 400
    assert coverage_misses(runs, lambda theta: None, windowed) <= binom.ppf(1 - 1e-6, runs, ALPHA)


def test_coverage_test_can_fail():
    """A numerator with a narrower law than the noise's is refused: nothing wrong gets that far."""

    class Sharp:
        def forecast(self, phi):
            return self

        def log_density(self, y):
            return hypsecant.logpdf(y, 0.0, 0.4) + 0.5

        def observe(self, phi, y):
            pass

    with pytest.raises(ls.PieceError, match=r"integrates to 1\.6"):
        coverage_misses(2, lambda theta: Sharp(), False)


# -- files ------------------------------------------------------------------------------------------------------


def test_save_and_load(tmp_path):
    for chosen in (None, windows(np.eye(3))):
        seq, X, _ = observed(Secant(0.5), 30, windows=chosen)
        seq.save(tmp_path / "seq.likeset")
        with pytest.raises(ls.InvalidArgumentError, match=r"family=\.\.\."):
            ls.load(tmp_path / "seq.likeset")
        loaded = ls.load(tmp_path / "seq.likeset", family=Secant(0.5))
        seq.update(X[:2], [0.3, 0.1])
        loaded.update(X[:2], [0.3, 0.1])
        np.testing.assert_array_equal(seq.set.upper(X), loaded.set.upper(X))


def test_a_failed_update_leaves_no_trace():
    """The second of two observations meets a forecast that fails; the first is taken back, equal outcomes included."""

    class Tired:
        left = 20

        def forecast(self, phi):
            self.left -= 1
            if not self.left:
                raise RuntimeError("tired")
            return ls.PlugIn(Secant(0.5), 0.0)

        def observe(self, phi, y):
            pass

    X = np.random.default_rng(0).normal(size=(18, 2))
    seq = ls.ConfidenceSequence(Secant(0.5), ls.Linear(2, 2.0), predictor=Tired())
    seq.update(X, np.arange(18.0) / 9)
    before, bands = seq.set.log_ratio([0.1, 0.2]), seq.set.upper(X)
    with pytest.raises(RuntimeError, match="tired"):
        seq.update(X[:2], [0.0, 0.7])
    assert seq.set.log_ratio([0.1, 0.2]) == before
    np.testing.assert_array_equal(seq.set.upper(X), bands)


# -- families that say nothing for themselves -------------------------------------------------------------------


class Bare:
    """The interface of a family and nothing else."""

    convex, discrete, observation_shape = True, False, ()

    def __init__(self, scale):
        self._whole = Secant(scale)
        self.scale = scale
        for name in ("observations", "log_density", "derivatives", "sample", "mean", "curvature_bounds", "outcomes"):
            setattr(self, name, getattr(self._whole, name))

    def settings(self):
        return {}


def test_generic_answers_give_the_same_sets():
    whole, X, _ = observed(Secant(0.5), 30)
    bare, *_ = observed(Bare(0.5), 30)
    np.testing.assert_allclose(bare.ledger.log_q.rows, whole.ledger.log_q.rows, atol=1e-6)
    np.testing.assert_allclose(bare.set.upper(X), whole.set.upper(X), rtol=1e-5)
    checks.check_family(Bare(0.5))


def test_the_two_functions_agree():
    """The loss and its remainder are the same function."""
    for y, z, u in ((0.0, 1.0, 0.5), (2.0, -1.0, 4.0), (0.3, 0.3, -1.0)):
        value, first, _ = log_cosh(y, z, 0.7)
        there, slope, second = log_cosh(y, z + u, 0.7)
        D, change, bend = log_cosh_remainder(y, z, u, 0.7)
        np.testing.assert_allclose([D, change, bend], [there - value - first * u, slope - first, second], rtol=1e-9)
