"""Functions in an RKHS: the kernel-native engine against explicit features, CVXPY and closed forms."""

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    ExpSineSquared,
    Matern,
    RationalQuadratic,
    WhiteKernel,
)

import likeset as ls
from reference import run as solved

GRID = np.linspace(0, 1, 24)
FAMILIES = [ls.Gaussian(0.2), ls.Laplace(0.2), ls.Poisson(), ls.Bernoulli(), ls.Weibull(2.0)]
KERNELS = [
    RBF(0.2),
    RBF(0.01),
    RBF(30.0),
    Matern(0.3, nu=0.5),
    Matern(0.2, nu=2.5),
    ConstantKernel(2.0) * RBF(0.3) + Matern(0.5, nu=1.5),
    RationalQuadratic(0.2, 1.0),
    ExpSineSquared(0.5, 0.7),
]


def random_function(kernel, points, bound, rng):
    """A function drawn from the ball: random coefficients on the points, scaled to a norm below the bound."""
    gram = kernel(points, points)
    alpha = rng.normal(size=len(points))
    norm = np.sqrt(max(alpha @ gram @ alpha, 1e-300))
    return gram @ alpha * (bound * rng.uniform(0.2, 0.95) / norm)


def filled(family, kernel, bound=2.0, n=30, seed=0, domain=GRID, alpha=0.1, **pieces):
    space = ls.RKHS(kernel, bound, domain=domain)
    rng = np.random.default_rng(seed)
    values = random_function(kernel, space.domain, bound, rng)
    index = rng.integers(len(space.domain), size=n)
    sequence = ls.ConfidenceSequence(family, space, alpha, **{"windows": None, **pieces})
    sequence.update(space.domain[index], family.sample(values[index], rng))
    return sequence, values


def features(kernel, points):
    """Explicit features phi with phi phi' = K on the points: the finite-dimensional model of the same set."""
    eigenvalues, vectors = np.linalg.eigh(kernel(points, points))
    return vectors * np.sqrt(np.maximum(eigenvalues, 0.0))


def as_linear(sequence, **pieces):
    """The same data as a linear model on explicit features, with the forecasts of the original."""
    space, ledger = sequence.space, sequence.ledger
    phi = features(space.kernel, space.domain)
    places = space.places(ledger.x.rows)
    scores = iter(ledger.log_q.rows)

    class Replay:
        def forecast(self, embedded):
            class Score:
                def log_density(self, y, value=next(scores)):  # noqa: B008
                    return np.full(np.shape(y)[: np.ndim(y) - len(sequence.family.observation_shape)], value)

            return Score()

        def observe(self, embedded, y):
            pass

    class Unguarded(ls.ConfidenceSequence):
        def _checked_score(self, forecast, phi, y):
            return float(forecast.log_density(y))

    linear = Unguarded(sequence.family, ls.Linear(phi.shape[1], space.bound), sequence.alpha, Replay(), voices=None)
    for place, y in zip(places, ledger.y.rows, strict=True):
        linear.update(phi[place], y[None])
    return linear, phi


@pytest.mark.parametrize("family", FAMILIES, ids=repr)
def test_kernel_native_bands_equal_explicit_features_and_cvxpy(family):
    kernel = Matern(0.2, nu=1.5)
    sequence, _ = filled(family, kernel)
    linear, phi = as_linear(sequence)
    low, high = sequence.set.interval(GRID)
    low_features, high_features = linear.set.interval(phi)
    np.testing.assert_allclose(high, high_features, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(low, low_features, rtol=1e-5, atol=1e-6)

    theta = cp.Variable(phi.shape[1])
    places = sequence.space.places(sequence.ledger.x.rows)
    z, y = phi[places] @ theta, sequence.ledger.y.rows
    if isinstance(family, ls.Gaussian):
        loss = cp.sum_squares(y - z) / (2 * family.sigma**2) + len(y) * np.log(family.sigma * np.sqrt(2 * np.pi))
    elif isinstance(family, ls.Laplace):
        loss = cp.norm1(y - z) / family.scale + len(y) * np.log(2 * family.scale)
    else:
        a, s, c = family.statistics(y)
        curve = cp.exp(z) if int(family.curve) == 1 else cp.logistic(z)
        loss = a @ curve - s @ z - c.sum()
    level = np.log(1 / sequence.alpha) - sequence.ledger.log_q.rows.sum()
    for j in (0, 11):
        problem = cp.Problem(cp.Maximize(phi[j] @ theta), [loss <= level, cp.norm(theta) <= 2.0])
        assert solved(problem, {}) in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE)
        assert high[j] == pytest.approx(problem.value, abs=2e-4)
        assert high[j] >= problem.value - 1e-4


@pytest.mark.parametrize("family", FAMILIES, ids=repr)
def test_linear_kernel_equals_the_linear_model(family):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(25, 3))
    y = family.sample(X @ [0.4, -0.3, 0.2], rng)
    priors = ls.Mixture(np.array([1.0, 4.0, 16.0, 64.0, 256.0]) / 1.5**2)  # by default linear models may have more
    kernel_sequence, linear_sequence = (
        ls.ConfidenceSequence(family, space, 0.1, predictor=priors, voices=None)
        for space in (ls.RKHS(DotProduct(sigma_0=0.0), 1.5, dim=3), ls.Linear(3, 1.5))
    )
    for sequence in (kernel_sequence, linear_sequence):
        sequence.update(X, y)
    assert kernel_sequence._running.basis.dimension == 3
    np.testing.assert_allclose(kernel_sequence.ledger.log_q.rows, linear_sequence.ledger.log_q.rows, atol=1e-6)
    queries = rng.normal(size=(10, 3))
    low, high = kernel_sequence.set.interval(queries)
    low_linear, high_linear = linear_sequence.set.interval(queries)
    # The kernel's inner products are known to rounding only, and the band is outer: never narrower, hardly wider.
    for wider in (low_linear - low, high - high_linear):
        assert wider.min() > -1e-6 and wider.max() < 5e-5
    gradient = kernel_sequence.set.upper_gradient(queries)[1]
    np.testing.assert_allclose(gradient, linear_sequence.set.support(queries).maximisers, atol=1e-3)


@given(kernel=st.sampled_from(KERNELS), family=st.sampled_from(FAMILIES), seed=st.integers(0, 10**6),
       n=st.integers(1, 40), bound=st.sampled_from([0.5, 3.0]))  # fmt: skip
@settings(max_examples=60, deadline=None)
def test_any_kernel_gives_a_consistent_band(kernel, family, seed, n, bound):
    """Length scales far above and below the spacing, rough and periodic kernels, repeated points."""
    sequence, values = filled(family, kernel, bound=bound, n=n, seed=seed)
    s, space = sequence.set, sequence.space
    if s.is_empty:
        return
    low, high = s.interval(GRID)
    widest = bound * np.sqrt(space.diagonal(space.domain))
    assert (low <= high + 1e-12).all()
    assert (high <= widest * (1 + 4e-6)).all()
    if s.contains(values):
        assert (values <= high + 1e-7 * widest).all()
        assert (values >= low - 1e-7 * widest).all()
    answer = s.support(GRID[::5])
    # The maximisers are functions on the domain; each respects every bound.
    assert (answer.maximisers <= high + 1e-5 * widest).all()
    np.testing.assert_allclose(answer.maximisers[:, ::5].diagonal(), answer.values, atol=1e-6 * widest.max())


@pytest.mark.parametrize("family", FAMILIES, ids=repr)
def test_bands_with_and_without_a_domain_agree(family):
    kernel, rng = RBF(0.15), np.random.default_rng(3)
    x = rng.choice(GRID, size=20)
    y = family.sample(np.sin(5 * x), rng)
    bands = []
    for domain in (GRID, None):
        sequence = ls.ConfidenceSequence(family, ls.RKHS(kernel, 2.0, domain=domain), 0.1, windows=None)
        sequence.update(x, y)
        bands.append(sequence.set.interval(GRID))
    np.testing.assert_allclose(bands[0], bands[1], rtol=1e-5, atol=1e-6)


def test_gaussian_posterior_matches_gp_formulas():
    """With one prior precision the forecasts are GP predictive densities: their product is the GP evidence."""
    from scipy.stats import multivariate_normal

    rng = np.random.default_rng(0)
    x, y = rng.uniform(size=25), rng.normal(size=25)
    kernel = RBF(0.2)
    sequence = ls.ConfidenceSequence(ls.Gaussian(0.3), ls.RKHS(kernel, 2.0), predictor=ls.Mixture([0.5]))
    sequence.update(x, y)
    gram = kernel(x[:, None], x[:, None])
    evidence = multivariate_normal.logpdf(y, np.zeros(25), gram / 0.5 + 0.09 * np.eye(25))
    assert sequence.ledger.log_q.rows.sum() == pytest.approx(evidence, abs=1e-6)


# -- numerical rank -----------------------------------------------------------------------------------------------


def test_duplicates_and_near_duplicates_add_no_rank():
    sequence = ls.ConfidenceSequence(ls.Gaussian(0.1), ls.RKHS(RBF(0.3), 2.0), alarm=False)  # outcomes without noise
    x = np.repeat([0.1, 0.5, 0.9], 10)
    sequence.update(x, np.zeros(30))
    assert sequence._running.basis.dimension == 3
    sequence.update(x + 1e-9, np.zeros(30))
    assert sequence.ledger.merged.count == 6
    assert sequence._running.basis.dimension == 3
    low, high = sequence.set.interval(np.linspace(0, 1, 50))
    assert np.isfinite([low, high]).all() and (low < high).all()


def test_two_thousand_distinct_points():
    """A smooth kernel keeps the basis small; a very rough one needs every point. Both give sane bands."""
    rng = np.random.default_rng(0)
    x = rng.uniform(size=2000)
    y = np.sin(6 * x) + 0.1 * rng.normal(size=2000)
    smooth = ls.ConfidenceSequence(ls.Gaussian(0.1), ls.RKHS(RBF(0.1), 6.0), predictor=ls.Mixture([0.1]))
    smooth.update(x, y)
    assert smooth._running.basis.dimension < 60
    grid = np.linspace(0, 1, 500)
    low, high = smooth.set.interval(grid)
    assert ((low < np.sin(6 * grid)) & (np.sin(6 * grid) < high)).mean() > 0.99
    assert np.max(high - low) < 1.0
    rough = ls.ConfidenceSequence(
        ls.Gaussian(0.1), ls.RKHS(Matern(1e-4, nu=0.5), 40.0), predictor=ls.Fixed(lambda p: np.sin(6 * p[0]))
    )
    rough.update(x[:500], y[:500])
    assert rough._running.basis.dimension == 500
    low, high = rough.set.interval(grid[:50])
    assert np.isfinite([low, high]).all()


def test_two_dimensional_grid_in_one_call():
    axis = np.linspace(0, 1, 50)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    space = ls.RKHS(RBF([0.3, 0.6]), 2.0, dim=2)
    sequence = ls.ConfidenceSequence(ls.Gaussian(0.2), space, 0.1)
    rng = np.random.default_rng(0)
    x = rng.uniform(size=(40, 2))
    sequence.update(x, np.cos(3 * x[:, 0]) * x[:, 1] + 0.2 * rng.normal(size=40))
    low, high = sequence.set.interval(grid)
    assert low.shape == (2500,) and (low < high).all()


# -- the bound ----------------------------------------------------------------------------------------------------


def test_norm_of_kernel_combinations_is_exact():
    space = ls.RKHS(RBF(0.15), 5.0, domain=GRID)
    alpha = np.array([1.0, -2.0, 0.7])
    points = space.domain[[3, 10, 17]]
    values = RBF(0.15)(space.domain, points) @ alpha
    report = space.norm(values)
    assert float(report) == pytest.approx(np.sqrt(alpha @ RBF(0.15)(points, points) @ alpha), rel=1e-5)
    assert report.unexplained < 1e-8
    assert (np.diff(report.norms) <= 1e-12).all()


def test_norm_of_what_no_function_can_be():
    space = ls.RKHS(RBF(10.0), 5.0, domain=GRID)
    report = space.norm(np.where(np.arange(24) % 2, 1.0, -1.0))
    assert report.norm == np.inf and report.unexplained > 0.5


def test_contains_uses_the_norm_of_the_function():
    sequence, values = filled(ls.Gaussian(0.2), RBF(0.2), bound=2.0)
    assert sequence.set.contains(values)
    norm = float(sequence.space.norm(values))
    wiggle = RBF(0.2)(GRID[:, None], GRID[:1, None])[:, 0]
    assert not sequence.set.contains(values + 3.0 * wiggle * (2.0 + norm))
    assert sequence.set.log_ratio(np.stack([values, 0 * values])).shape == (2,)


def test_an_empty_set_speaks_about_the_bound():
    space = ls.RKHS(RBF(0.2), 0.3, domain=GRID)
    sequence = ls.ConfidenceSequence(ls.Gaussian(0.1), space, 0.05)
    sequence.update(np.repeat(GRID, 3), np.repeat(3 * np.sin(9 * GRID), 3))
    assert sequence.set.is_empty
    with pytest.raises(ls.EmptySetError, match="bound"):
        sequence.set.upper(GRID)


# -- continuous domains -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", [ls.Gaussian(0.2), ls.Poisson(), ls.Laplace(0.2)], ids=repr)
def test_gradient_of_the_upper_bound(family):
    rng = np.random.default_rng(2)
    sequence = ls.ConfidenceSequence(family, ls.RKHS(RBF([0.4, 0.7]), 2.0, dim=2), 0.1)
    x = rng.uniform(size=(12, 2))
    sequence.update(x, family.sample(np.sin(3 * x[:, 0]), rng))
    queries = rng.uniform(size=(5, 2))
    _, gradient = sequence.set.upper_gradient(queries)
    h = 1e-4
    for j in range(2):
        step = h * np.eye(2)[j]
        numeric = (sequence.set.upper(queries + step) - sequence.set.upper(queries - step)) / (2 * h)
        np.testing.assert_allclose(gradient[:, j], numeric, atol=5e-3)


def test_maximize_upper_beats_a_fine_grid():
    rng = np.random.default_rng(4)
    sequence = ls.ConfidenceSequence(ls.Gaussian(0.2), ls.RKHS(RBF(0.15), 2.0), 0.1)
    x = rng.uniform(size=15)
    sequence.update(x, np.sin(6 * x))
    peak = sequence.set.maximize_upper((0.0, 1.0))
    grid = np.linspace(0, 1, 2001)
    assert peak.upper >= sequence.set.upper(grid).max() - 1e-4
    assert peak.upper == pytest.approx(sequence.set.upper(peak.x)[0])
    assert 0 <= peak.x[0] <= 1
    again = sequence.set.maximize_upper([(0.0, 1.0)], seed=1)
    assert again.upper == pytest.approx(peak.upper, abs=1e-4)


# -- saving, coverage, bad input ----------------------------------------------------------------------------------


@pytest.mark.parametrize("domain", [GRID, None], ids=["domain", "continuous"])
@pytest.mark.parametrize("kernel", [RBF(0.123456789), ConstantKernel(2.0) * Matern([0.3], nu=1.5) + RBF(1.0)], ids=str)
def test_rkhs_sequences_continue_bit_for_bit(kernel, domain, tmp_path):
    rng = np.random.default_rng(0)
    x = rng.choice(GRID, size=30)
    y = rng.poisson(1.0, size=30)
    sequence = ls.ConfidenceSequence(ls.Poisson(), ls.RKHS(kernel, 2.0, domain=domain))
    sequence.update(x[:15], y[:15])
    sequence.save(tmp_path / "a")
    loaded = ls.load(tmp_path / "a")
    for s in (sequence, loaded):
        s.update(x[15:], y[15:])
    np.testing.assert_array_equal(sequence.ledger.log_q.rows, loaded.ledger.log_q.rows)
    np.testing.assert_array_equal(sequence.set.upper(GRID), loaded.set.upper(GRID))


def test_a_users_own_kernel_is_passed_again(tmp_path):
    def kernel(x, y):
        return np.exp(-np.abs(x - y.T) / 0.3)

    space = ls.RKHS(kernel, 2.0)
    sequence = ls.ConfidenceSequence(ls.Gaussian(0.2), space)
    sequence.update([0.1, 0.2, 0.8], [0.0, 0.1, 0.4])
    sequence.save(tmp_path / "a")
    with pytest.raises(ls.InvalidArgumentError, match="space"):
        ls.load(tmp_path / "a")
    loaded = ls.load(tmp_path / "a", space=space)
    np.testing.assert_array_equal(loaded.set.upper(GRID), sequence.set.upper(GRID))


def test_one_basis_table_serves_diverging_copies():
    """Copies share the growing table; what one appends must not be seen by the other."""
    import copy

    a = ls.ConfidenceSequence(ls.Gaussian(0.2), ls.RKHS(RBF(0.1), 2.0))
    a.update([0.1, 0.5], [0.0, 0.1])
    b = copy.deepcopy(a)
    a.update([0.9], [1.0])
    b.update([0.3], [-1.0])
    reference = ls.ConfidenceSequence(ls.Gaussian(0.2), ls.RKHS(RBF(0.1), 2.0))
    reference.update([0.1, 0.5, 0.3], [0.0, 0.1, -1.0])
    np.testing.assert_array_equal(b.set.upper(GRID), reference.set.upper(GRID))


@pytest.mark.parametrize("family", FAMILIES, ids=repr)
def test_bands_cover_functions_from_the_ball(family):
    """Optimistic queries, every step counts; false-alarm probability below 1e-6 (see test_coverage)."""
    runs, alpha, kernel, misses = 60, 0.1, RBF(0.15), 0
    space = ls.RKHS(kernel, 2.0, domain=GRID)
    for run in range(runs):
        rng = np.random.default_rng([9, run])
        values = random_function(kernel, space.domain, 2.0, rng)
        sequence = ls.ConfidenceSequence(family, space, alpha, windows=None)
        for _ in range(15):
            place = int(np.argmax(sequence.set.upper(GRID)))
            sequence.update(GRID[place], family.sample(values[place : place + 1], rng))
            if not sequence.set.contains(values):
                misses += 1
                break
    assert misses <= binom.ppf(1 - 1e-6, runs, alpha)


@pytest.mark.parametrize(
    ("make", "argument"),
    [
        (lambda: ls.RKHS(3, 1.0), "kernel"),
        (lambda: ls.RKHS(lambda x, y: np.ones(3), 1.0), "kernel"),
        (lambda: ls.RKHS(lambda x, y: -np.exp(-((x - y.T) ** 2)), 1.0), "kernel"),
        (lambda: ls.RKHS(RBF(0.1) + WhiteKernel(0.1), 1.0), "kernel"),
        (lambda: ls.RKHS(RBF(0.1), 0.0), "bound"),
        (lambda: ls.RKHS(RBF(0.1), np.inf), "bound"),
        (lambda: ls.RKHS(RBF(0.1), 1.0, domain=[]), "domain"),
        (lambda: ls.RKHS(RBF(0.1), 1.0, domain=[0.0, np.nan]), "domain"),
        (lambda: ls.RKHS(RBF(0.1), 1.0, domain=[0.0, 0.0]), "domain"),
        (lambda: ls.RKHS(RBF(0.1), 1.0, domain=np.zeros((2, 2, 2))), "domain"),
        (lambda: ls.RKHS(RBF(0.1), 1.0, domain=[0.0, 1.0], dim=2), "dim"),
    ],
)
def test_bad_spaces(make, argument):
    with pytest.raises(ls.InvalidArgumentError) as caught:
        make()
    assert caught.value.argument == argument


def test_bad_queries():
    sequence = ls.ConfidenceSequence(ls.Gaussian(0.2), ls.RKHS(RBF(0.1), 1.0, domain=GRID))
    sequence.update(GRID[:3], [0.0, 0.1, 0.2])
    with pytest.raises(ls.InvalidArgumentError, match="nearest"):
        sequence.update(0.5001, 0.0)
    with pytest.raises(ls.InvalidArgumentError, match="domain"):
        sequence.set.upper(0.123)
    with pytest.raises(ls.InvalidArgumentError, match="theta"):
        sequence.set.contains(np.zeros(3))
    with pytest.raises(ls.InvalidArgumentError, match="finite domain"):
        sequence.set.upper_gradient(GRID[:2])
    with pytest.raises(ls.InvalidArgumentError, match="bounding_box"):
        sequence.set.bounding_box()
    free = ls.ConfidenceSequence(ls.Gaussian(0.2), ls.RKHS(DotProduct(sigma_0=0.0), 1.0))
    with pytest.raises(ls.InvalidArgumentError, match=r"k\(x, x\) = 0"):
        free.update(0.0, 1.0)
    with pytest.raises(ls.InvalidArgumentError, match="domain"):
        free.set.contains(np.zeros(3))
    with pytest.raises(ls.InvalidArgumentError, match="bounds"):
        free.set.maximize_upper([(1.0, 0.0)])
    assert sequence.n_observations == 3


def test_plots_draw_what_they_are_given(tmp_path):
    import matplotlib.pyplot as plt

    from likeset.plots import plot_band, plot_sets

    sequence, values = filled(ls.Gaussian(0.2), RBF(0.2))
    figure, axes = plt.subplots(1, 2)
    band = plot_band(sequence.set, GRID, data=([0.1], [0.2]), truth=values, next_query=0.4, axes=axes[0])
    labels = [t.get_text() for t in band.get_legend().get_texts()]
    assert labels == ["plausible at 90%", "truth", "observations", "next query"]
    plane = ls.ConfidenceSequence(ls.Laplace(0.5), ls.Linear(2, 1.0))
    plane.update([[1.0, 0.0], [0.0, 1.0]], [0.2, 0.1])
    drawn = plot_sets([plane.set], truth=[0.1, 0.2], axes=axes[1])
    assert [t.get_text() for t in drawn.get_legend().get_texts()] == ["Theta", "2 observations", "truth"]
    figure.savefig(tmp_path / "both.png")
    plt.close(figure)
