"""The confidence set through the public API: membership, extrema, shapes of every kind, edge cases."""

import gc

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import likeset as ls
from likeset import checks
from likeset._solver.linalg import threads

FAMILIES = [
    ls.Gaussian(0.5),
    ls.Laplace(0.5),
    ls.Poisson(),
    ls.Bernoulli(),
    ls.Binomial(4),
    ls.Weibull(2.0),
    ls.LogWeibull(2.0),
    ls.Exponential(),
]


def logistic_noise(y, z):
    u = np.abs(y - z)
    return u + 2 * np.log1p(np.exp(-u))


CUSTOM = ls.CustomFamily(logistic_noise, support="real", convex=True, name="Logistic")


def filled(family, n=25, dim=3, bound=2.0, seed=0, alpha=0.05, distinct=None, scale=1.0, **pieces):
    rng = np.random.default_rng(seed)
    theta = rng.normal(size=dim)
    theta *= 0.6 * min(bound, 2.0) / np.linalg.norm(theta)
    pool = rng.normal(size=(distinct or n, dim)) / np.sqrt(dim) * scale
    X = pool[rng.integers(len(pool), size=n)] if distinct else pool
    sequence = ls.ConfidenceSequence(family, ls.Linear(dim, bound), alpha, voices=None, **pieces)
    sequence.update(X, family.sample(X @ theta, rng))
    return sequence, theta, X


def raw_log_ratio(sequence, theta):
    """log R from the ledger's rows: no merging, no basis."""
    ledger = sequence.ledger
    log_p = sequence.family.log_density(ledger.y.rows, ledger.x.rows @ theta)
    return float(np.sum(ledger.weights.rows * (ledger.log_q.rows - log_p)))


def cvxpy_upper(sequence, x):
    """max x'theta over the set, from the raw rows, by CVXPY."""
    ledger, family, bound = sequence.ledger, sequence.family, sequence.space.bound
    theta = cp.Variable(ledger.x.rows.shape[1])
    z = ledger.x.rows @ theta
    w, y = ledger.weights.rows, ledger.y.rows
    if isinstance(family, ls.Laplace):
        loss = cp.abs(y - z) / family.scale + np.log(2 * family.scale)
    elif isinstance(family, ls.Gaussian):
        loss = cp.square(y - z) / (2 * family.sigma**2) + np.log(family.sigma * np.sqrt(2 * np.pi))
    else:
        a, s, c = family.statistics(y)
        curve = cp.exp(z) if int(family.curve) == 1 else cp.logistic(z)
        loss = cp.multiply(a, curve) - cp.multiply(s, z) - c
    level = np.log(1 / sequence.alpha) - w @ ledger.log_q.rows
    constraints = [cp.sum(cp.multiply(w, loss)) <= level]
    if np.isfinite(bound):
        constraints.append(cp.norm(theta) <= bound)
    problem = cp.Problem(cp.Maximize(x @ theta), constraints)
    problem.solve(solver=cp.CLARABEL)
    assert problem.status in ("optimal", "optimal_inaccurate")
    return problem.value


@pytest.mark.parametrize("weighting", [None, ls.BiasWeighting("exact")], ids=repr)
@pytest.mark.parametrize("family", [*FAMILIES, CUSTOM], ids=repr)
def test_log_ratio_is_the_sum_over_raw_rows(family, weighting):
    sequence, theta, _ = filled(family, distinct=6, weighting=weighting)
    for point in (theta, np.zeros(3), -theta):
        assert sequence.set.log_ratio(point) == pytest.approx(raw_log_ratio(sequence, point), abs=1e-8)
    parts = sequence.set.log_ratio_by_covariate(theta)
    assert parts.shape == (1, len(sequence.ledger.gains))
    assert parts.sum() == pytest.approx(sequence.set.log_ratio(theta))


@pytest.mark.parametrize(
    ("bound", "weighting"),
    [(0.5, None), (2.0, None), (np.inf, None), (0.5, ls.BiasWeighting("exact")), (2.0, ls.BiasWeighting("exact"))],
)
@pytest.mark.parametrize("family", FAMILIES, ids=repr)
@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")  # said by CVXPY of its own value
def test_upper_agrees_with_cvxpy(family, weighting, bound):
    sequence, _, _ = filled(family, n=40, bound=bound, weighting=weighting, seed=1)
    if sequence.set.is_empty:
        pytest.fail("this stream is well specified")
    for x in np.random.default_rng(5).normal(size=(3, 3)):
        reference = cvxpy_upper(sequence, x)
        ours = sequence.set.upper(x)[0]
        assert ours == pytest.approx(reference, rel=2e-5, abs=2e-5)
        assert ours >= reference - 1e-5 * (1 + abs(reference))


@pytest.mark.parametrize("family", [*FAMILIES, CUSTOM], ids=repr)
def test_maximisers_are_members_and_bounds_are_outward(family):
    sequence, _, _ = filled(family, n=30, dim=4, distinct=12, seed=2)
    s = sequence.set
    directions = np.random.default_rng(0).normal(size=(20, 4))
    answer = s.support(directions)
    assert s.contains(answer.maximisers).all()
    np.testing.assert_allclose(np.einsum("ij,ij->i", directions, answer.maximisers), answer.values, atol=1e-9)
    width = s.upper(directions) - s.lower(directions)
    assert (answer.gap >= -1e-12).all()
    assert (answer.gap <= 1e-6 * width).all()
    low, high = s.interval(directions)
    np.testing.assert_allclose(low, s.lower(directions), rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(high, answer.upper, rtol=1e-6, atol=1e-9)
    # Brute force: no member of the set found by random search lies beyond a bound.
    rng = np.random.default_rng(1)
    members = s.centre + rng.normal(size=(4000, 4)) * rng.choice([0.02, 0.1, 0.4, 1.0], size=(4000, 1))
    members = members[s.contains(members)]
    assert len(members) > 50
    assert (members @ directions.T <= high + 1e-12).all()
    assert (members @ directions.T >= low - 1e-12).all()


@given(
    family=st.sampled_from(FAMILIES), n=st.integers(1, 12), dim=st.integers(1, 6), seed=st.integers(0, 10**6),
    bound=st.sampled_from([0.3, 1.0, 4.0]), scale=st.sampled_from([0.01, 1.0, 5.0]),
    alpha=st.sampled_from([0.5, 0.05, 1e-6]),
)  # fmt: skip
@settings(max_examples=120, deadline=None)
def test_any_stream_gives_consistent_certified_bounds(family, n, dim, seed, bound, scale, alpha):
    """Fewer observations than dimensions, active ball, tiny and large covariates: members never stick out."""
    sequence, _, X = filled(family, n=n, dim=dim, bound=bound, seed=seed, alpha=alpha, scale=scale)
    s = sequence.set
    if s.is_empty:
        return
    directions = np.concatenate([X[:3], np.random.default_rng(seed).normal(size=(4, dim))])
    answer = s.support(directions)
    assert s.contains(answer.maximisers).all()
    lengths = np.linalg.norm(directions, axis=1)
    assert (answer.upper <= bound * lengths * (1 + 1e-9)).all()
    assert (answer.gap >= -1e-9 * lengths * bound).all()
    # Feasible points of one direction are feasible for all the others.
    assert (answer.maximisers @ directions.T <= answer.upper + 1e-8 * bound * lengths).all()
    assert (answer.gap <= 2e-6 * bound * lengths).all()


@pytest.mark.parametrize("voices", [None, ls.Patience()], ids=["joint", "patience"])
@pytest.mark.parametrize(
    "family", [ls.Gaussian(), ls.Poisson(), ls.Laplace(), ls.Gaussian(sigma=ls.Unknown())], ids=repr
)
def test_directions_without_a_bound_have_a_parameter_of_the_set(family, voices):
    """It may be passed back as a starting point, as policies do."""
    seq = ls.ConfidenceSequence(family, ls.Linear(3, np.inf), voices=voices)
    seq.update([[1.0, 0, 0], [0, 1.0, 0], [1.0, 1.0, 0]] * 3, [1, 0, 1, 2, 0, 1, 3, 1, 2])
    X = np.array([[1.0, 0, 0], [0, 0, 1.0], [1.0, 0, -1.0]])
    for sign in (1.0, -1.0):
        answer = seq.set.support(X, sign=sign)
        np.testing.assert_array_equal(np.isinf(answer.upper), [False, True, True])
        assert seq.set.contains(answer.maximisers).all()
        np.testing.assert_allclose(answer.values, sign * np.einsum("ij,ij->i", X, answer.maximisers), atol=1e-9)
        again = seq.set.support(X, sign=sign, near=answer.maximisers)
        np.testing.assert_allclose(again.upper, answer.upper, rtol=1e-6)


def test_no_observation_the_set_is_theta():
    s = ls.ConfidenceSequence(ls.Poisson(), ls.Linear(2, 1.5)).set
    np.testing.assert_allclose(s.upper([[3.0, 4.0], [1.0, 0.0]]), [7.5, 1.5])
    assert s.contains([1.0, 1.0])
    assert not s.contains([1.5, 0.1])
    assert not s.is_empty
    assert s.log_ratio([0.3, 0.3]) == 0.0
    unbounded = ls.ConfidenceSequence(ls.Poisson(), ls.Linear(2, np.inf)).set
    assert unbounded.upper([1.0, 0.0])[0] == np.inf


@pytest.mark.parametrize("family", FAMILIES, ids=repr)
def test_one_observation_leaves_other_directions_free(family):
    sequence = ls.ConfidenceSequence(family, ls.Linear(3, 2.0), voices=None)
    sequence.update([1.0, 0.0, 0.0], family.sample(np.array([0.2]), np.random.default_rng(0)))
    s = sequence.set
    upper = s.upper([[0.0, 1.0, 0.0], [0.0, 0.0, -3.0], [1.0, 0.0, 0.0]])
    np.testing.assert_allclose(upper[:2], [2.0, 6.0], rtol=1e-6)
    assert upper[2] <= 2.0 * (1 + 1e-9)


@pytest.mark.parametrize("family", FAMILIES, ids=repr)
def test_an_empty_set_is_reported_as_refuted_model(family):
    """Data from far outside the ball, and a numerator that says so."""
    z = 4.0
    sequence = ls.ConfidenceSequence(family, ls.Linear(1, 0.1), alpha=0.05, predictor=ls.Fixed([z]), voices=None)
    rng = np.random.default_rng(0)
    for _ in range(40):
        sequence.update(1.0, family.sample(np.array([z]), rng))
    assert sequence.set.is_empty
    with pytest.raises(ls.EmptySetError, match="refute"):
        sequence.set.upper(1.0)
    assert not sequence.set.contains(0.05)
    sequence.update(1.0, family.sample(np.array([z]), rng))  # and it goes on recording
    assert sequence.n_observations == 41


def test_separable_logistic_data_without_a_bound():
    sequence = ls.ConfidenceSequence(ls.Bernoulli(), ls.Linear(2, np.inf), predictor=ls.FTRL())
    sequence.update([[1.0, 0.0]] * 30, [1] * 30)
    s = sequence.set
    assert s.upper([1.0, 0.0])[0] == np.inf
    assert np.isfinite(s.lower([1.0, 0.0])[0])
    assert s.upper([0.0, 1.0])[0] == np.inf


def test_all_zero_counts_without_a_bound():
    sequence = ls.ConfidenceSequence(ls.Poisson(), ls.Linear(1, np.inf), predictor=ls.FTRL(), voices=None)
    sequence.update([[1.0]] * 30, [0] * 30)
    low, high = sequence.set.interval([[1.0]])
    assert low[0] == -np.inf
    assert np.exp(high[0]) * 30 == pytest.approx(
        np.log(20) - sequence.ledger.log_q.rows.sum(), rel=1e-6
    )  # 30 e^z <= log(1/alpha) - sum log q


def test_one_dimensional_gaussian_interval_in_closed_form():
    pieces = {"predictor": ls.Mixture([1.0]), "voices": None}
    sequence = ls.ConfidenceSequence(ls.Gaussian(1.0), ls.Linear(1, np.inf), 0.05, **pieces)
    y = np.random.default_rng(0).normal(0.3, 1.0, size=50)
    sequence.update(np.ones(50), y)
    # { z : sum (y - z)^2/2 <= log 20 - log evidence + const }, a quadratic in z
    from scipy.stats import multivariate_normal

    evidence = multivariate_normal.logpdf(y, np.zeros(50), np.eye(50) + 1.0)
    slack = np.log(20) - evidence - 25 * np.log(2 * np.pi) - 0.5 * np.sum((y - y.mean()) ** 2)
    half = np.sqrt(2 * slack / 50)
    low, high = sequence.set.interval([1.0])
    np.testing.assert_allclose([low[0], high[0]], [y.mean() - half, y.mean() + half], rtol=1e-9)


@pytest.mark.parametrize("family", [ls.Gaussian(0.5), ls.Poisson(), ls.Laplace(0.5)], ids=repr)
def test_a_hundred_dimensions(family):
    sequence, _, X = filled(family, n=60, dim=100, bound=1.0, seed=3)
    low, high = sequence.set.interval(X[:8])
    assert (low < high).all()
    assert (high <= np.linalg.norm(X[:8], axis=1) * (1 + 1e-9)).all()


@pytest.mark.parametrize("family", FAMILIES, ids=repr)
def test_boundary_curve_and_bounding_box(family):
    sequence, _, _ = filled(family, n=20, dim=2, seed=4)
    s = sequence.set
    curve = s.boundary(400)
    assert curve.shape == (400, 2)
    assert s.contains(curve).all()
    assert not s.contains(s.centre + (curve - s.centre) * (1 + 1e-6)).any()
    low, high = s.bounding_box()
    np.testing.assert_allclose(curve.max(axis=0), high, atol=2e-2 * (high - low).max())
    np.testing.assert_allclose(curve.min(axis=0), low, atol=2e-2 * (high - low).max())
    assert (curve <= high + 1e-9).all()


@pytest.mark.parametrize("family", [*FAMILIES, CUSTOM], ids=repr)
def test_reweighted_sets(family):
    """The building block of mixtures: all ones is the set itself, zeros are Theta, masks drop covariates."""
    sequence, _, X = filled(family, n=30, distinct=8, seed=5)
    s, k = sequence.set, len(sequence.ledger.gains)
    np.testing.assert_allclose(s.support(X[:4], covariate_weights=np.ones(k)).upper, s.upper(X[:4]), rtol=1e-9)
    np.testing.assert_allclose(
        s.support(X[:4], covariate_weights=np.zeros(k)).upper, 2.0 * np.linalg.norm(X[:4], axis=1), rtol=1e-9
    )
    mask = (np.arange(k) % 2).astype(float)
    looser = s.support(X[:4], covariate_weights=mask, level=np.log(40.0))
    theta = looser.maximisers
    ratio = s.log_ratio_by_covariate(theta) @ mask
    assert (ratio <= np.log(40.0) + 1e-6).all()
    soft = s.support(X[:4], covariate_weights=0.5 * np.ones(k), level=0.5 * np.log(20.0))
    np.testing.assert_allclose(soft.upper, s.upper(X[:4]), rtol=1e-5)


def test_a_set_is_a_snapshot():
    sequence, theta, X = filled(ls.Poisson())
    before = sequence.set
    upper, ratio = before.upper(X[:3]), before.log_ratio(theta)
    sequence.update(X[:10], ls.Poisson().sample(X[:10] @ theta, np.random.default_rng(9)))
    assert sequence.set is not before
    assert sequence.set is sequence.set
    np.testing.assert_array_equal(before.upper(X[:3]), upper)
    assert before.log_ratio(theta) == ratio


def test_zero_density_forecast_leaves_theta():
    """q(y) = 0 is allowed and makes the ratio zero for good: the set is all of Theta."""

    class Certain:
        def forecast(self, phi):
            class AlwaysZero:
                def log_density(self, y):
                    with np.errstate(divide="ignore"):
                        return np.log(np.asarray(y) == 0)

            return AlwaysZero()

        def observe(self, phi, y):
            pass

    sequence = ls.ConfidenceSequence(ls.Bernoulli(), ls.Linear(1, 2.0), predictor=Certain(), voices=None)
    sequence.update(1.0, 1)
    assert sequence.set.upper(1.0)[0] == pytest.approx(2.0)
    assert sequence.set.contains(1.9)


def test_non_convex_family_has_membership_but_no_extrema():
    def cauchy(y, z):
        return np.log(np.pi) + np.log1p((y - z) ** 2)

    family = ls.CustomFamily(cauchy, support="real", name="Cauchy")
    assert not family.convex
    sequence = ls.ConfidenceSequence(family, ls.Linear(1, 2.0), predictor=ls.Mixture(), voices=None)
    sequence.update(np.ones(5), [0.1, -0.3, 0.2, 4.0, 0.0])
    assert sequence.set.contains(0.1)
    for ask in (lambda s: s.upper(1.0), lambda s: s.is_empty, lambda s: s.centre):
        with pytest.raises(ls.NotConvexError):
            ask(sequence.set)


def test_a_false_claim_of_convexity_is_noticed_at_the_data():
    """A wide Student t looks convex where it is probed, and is not at an outlier."""
    from scipy.special import gammaln

    def student(y, z, nu=3.0, scale=5.0):
        constant = gammaln(nu / 2) - gammaln((nu + 1) / 2) + 0.5 * np.log(nu * np.pi) + np.log(scale)
        return constant + 0.5 * (nu + 1) * np.log1p(((y - z) / scale) ** 2 / nu)

    family = ls.CustomFamily(student, support="real", convex=True, name="Student")
    sequence = ls.ConfidenceSequence(family, ls.Linear(1, 3.0), predictor=ls.Fixed([0.0]), voices=None)
    sequence.update(np.ones(3), [0.1, 60.0, -0.4])
    with pytest.raises(ls.NotConvexError, match="declared convex"):
        sequence.set.upper(1.0)


def test_custom_family_equals_the_built_in_one():
    """Exponential life times, written out by a user, give the sets of the built-in family."""

    def nll(t, z):
        return t * np.exp(z) - z

    custom = ls.CustomFamily(nll, support="positive", convex=True, name="MyExponential", z_range=(-2, 2))
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 2))
    times = rng.exponential(np.exp(-X @ [0.4, -0.3]))
    sets = []
    for family in (custom, ls.Exponential()):
        sequence = ls.ConfidenceSequence(family, ls.Linear(2, 2.0), predictor=ls.FTRL(), voices=None)
        sequence.update(X, times)
        sets.append(sequence.set)
    np.testing.assert_allclose(sets[0].upper(X[:6]), sets[1].upper(X[:6]), rtol=1e-5)
    checks.check_family(custom)


# -- what a round costs ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", [ls.Gaussian(0.5), ls.Poisson()], ids=repr)
@pytest.mark.parametrize("voices", [None, "windows"])
def test_a_closed_form_is_known_before_a_kernel_is_prepared(family, voices):
    space, X = ls.Linear(dim=2, bound=2.0), np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    seq = ls.ConfidenceSequence(family, space, voices=voices and ls.Windows.covering(space, X))
    for count in (0, 1, 3):
        seq.update(X[:count], np.ones(count))
        found = seq.set.closed_form
        assert "kernel" not in vars(seq.set._evidence)
        assert found == seq.set._kernel.closed_form, count


def test_blas_has_its_threads_back_after_nested_contexts_and_an_interrupt_on_entry(monkeypatch):
    class Library:
        threads = 4

        def get_num_threads(self):
            return self.threads

        def set_num_threads(self, threads):
            self.threads = threads

    library = Library()
    monkeypatch.setattr(threads, "_libraries", lambda: (library,))
    with threads.SingleThreadedBlas():
        with threads.SingleThreadedBlas():
            assert library.threads == 1
        assert library.threads == 1
    assert library.threads == 4

    def interrupted():
        raise KeyboardInterrupt

    monkeypatch.setattr(threads, "_libraries", interrupted)
    with pytest.raises(KeyboardInterrupt), threads.SingleThreadedBlas():
        pass
    gc.collect()
    monkeypatch.setattr(threads, "_libraries", lambda: (library,))
    with threads.SingleThreadedBlas():
        assert library.threads == 1
    assert library.threads == 4
