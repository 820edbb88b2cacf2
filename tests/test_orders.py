"""Covariates in order, in clusters, repeated, nearly equal: neither the truth nor a feasible function may be lost.

Everything is compared with evidence recomputed by hand from the recorded forecasts and the function's own values.
"""

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import RBF, DotProduct, ExpSineSquared, Matern, RationalQuadratic

import likeset as ls
from likeset._solver.charge import charge_of, minima
from likeset._solver.evaluate import term_values
from likeset._solver.problem import CallableTerms, CurveTerms, PointTerms
from likeset.comparison.base import parameter_dimension
from likeset.curves import Curve

GRID = np.linspace(0, 1.2, 64)
KERNELS = {
    "rbf": RBF(0.06),
    "smooth": RBF(0.3),
    "rational": RationalQuadratic(0.2, 1.0),
    "periodic": ExpSineSquared(0.5, 0.7),
    "matern": Matern(0.2, nu=2.5),
}


def order(name, n=64, seed=0):
    rng, centre = np.random.default_rng(seed), n // 2
    if name == "walk":
        steps = [centre]
        for _ in range(2 * n):
            steps.append(int(np.clip(steps[-1] + rng.integers(-2, 3), 0, n - 1)))
        return np.array(steps)
    if name == "clusters":
        return np.concatenate([np.arange(k, k + n // 8) for k in rng.permutation(np.arange(0, n, n // 8))])
    return {
        "left to right": np.arange(n),
        "centre out": np.array(sorted(range(n), key=lambda i: (abs(i - centre), i))),
        "two ends": np.array([i // 2 if i % 2 == 0 else n - 1 - i // 2 for i in range(n)]),
        "mixed": rng.permutation(n),
    }[name]


ORDERS = ["left to right", "centre out", "two ends", "walk", "clusters", "mixed"]


def from_the_ball(kernel, points, bound, rng, share=0.98):
    """A function of norm share * bound: a combination of sections, with its values anywhere."""
    centres = points[rng.choice(len(points), size=min(6, len(points)), replace=False)]
    alpha = rng.normal(size=len(centres))
    alpha *= share * bound / np.sqrt(alpha @ kernel(centres, centres) @ alpha)
    return lambda x: kernel(x, centres) @ alpha


def exact_log_ratio(sequence, f):
    """sum of w (log q - log p) from the ledger, without any basis; joint sets only."""
    ledger = sequence.ledger
    log_p = sequence.family.log_density(ledger.y.rows, f(ledger.x.rows))
    return float(np.sum(ledger.weights.rows * (ledger.log_q.rows - log_p)))


@pytest.mark.parametrize("domain", [GRID, None], ids=["domain", "no domain"])
@pytest.mark.parametrize("name", ORDERS)
@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS.keys())
def test_functions_of_the_ball_have_coordinates_in_the_ball(kernel, name, domain):
    """f(p) = l_p't with |t| <= |f|, and f(x) = c_x't up to |f| outside(x): a one-sided Gram identity."""
    space = ls.RKHS(kernel, 4.0, domain=domain)
    points, rng = GRID[:, None], np.random.default_rng(3)
    basis, kept = space.start(), []
    for i in dict.fromkeys(order(name)):
        basis = basis.including(points[i])
        inside, outside = basis.coordinates(points[i : i + 1])
        kept.append((i, inside[0], outside[0]))
    everywhere, sticks_out = basis.coordinates(points)
    for _ in range(20):
        f = from_the_ball(kernel, points, 1.0, rng, share=1.0)
        t = np.linalg.solve(basis.joined, f(basis.points))
        assert np.linalg.norm(t) <= 1.0 + 1e-6
        slack = np.abs(f(points) - everywhere @ t) - sticks_out
        assert slack.max() <= 1e-8
        # Coordinates handed out earlier stay valid, padded with zeros.
        for i, c, length in kept:
            assert abs(float(f(points[i : i + 1])[0]) - c @ t[: len(c)]) <= length + 1e-8


def test_a_basis_without_a_nugget_fails_this_test():
    """Plain Cholesky rows, dependent points left out: used at first, and no basis of anything for points in order."""
    kernel, points, rng = RBF(0.06), GRID[:, None], np.random.default_rng(3)
    chosen, factor = [], np.zeros((0, 0))
    for i in range(len(points)):
        inside = np.linalg.solve(factor, kernel(points[chosen], points[i : i + 1])[:, 0])
        rest = 1.0 - inside @ inside
        if rest > 1e-13:
            factor = np.block([[factor, np.zeros((len(chosen), 1))], [inside[None, :], np.sqrt(rest)]])
            chosen.append(i)
    lengths = []
    for _ in range(20):
        f = from_the_ball(kernel, points, 1.0, rng, share=1.0)
        lengths.append(np.linalg.norm(np.linalg.solve(factor, f(points[chosen]))))
    assert np.median(lengths) > 1.5  # of functions whose norm is one


@pytest.mark.parametrize("windows", [None, "auto"], ids=["joint", "windows"])
def test_the_grid_of_the_docs_scanned_left_to_right(windows):
    """The truth stays in the set whenever its evidence, recomputed by hand, allows it; bands cover it then, too."""
    space = ls.RKHS(RBF(0.06), bound=4.5, domain=GRID)
    for seed in range(12):
        rng = np.random.default_rng(seed)
        f = from_the_ball(space.kernel, space.domain, 4.5, rng)
        values = f(space.domain)
        sequence = ls.ConfidenceSequence(ls.Gaussian(0.3), space, 0.05, windows=windows)
        sequence.update(space.domain, rng.normal(values, 0.3))
        s = sequence.set
        if windows is None:
            exact = exact_log_ratio(sequence, f)
            assert s.log_ratio(values) == pytest.approx(exact, abs=1e-8 * (1 + abs(exact)))
            assert s.contains(values) == (exact <= np.log(20))
        if s.contains(values):
            low, high = s.interval(space.domain)
            assert (low <= values).all() and (values <= high).all()
            assert not s.is_empty


@pytest.mark.parametrize("domain", [GRID, None], ids=["domain", "no domain"])
@pytest.mark.parametrize("name", ORDERS)
@pytest.mark.parametrize(
    "family", [ls.Gaussian(0.15), ls.Poisson(), ls.Bernoulli(), ls.Weibull(2.0), ls.Laplace(0.15)], ids=repr
)
def test_plausible_functions_lie_in_the_band(family, name, domain):
    """Joint sets; every kernel; the function is the truth, with evidence, by hand, below the limit."""
    checked = 0
    for seed, kernel in enumerate(KERNELS.values()):
        rng = np.random.default_rng(seed)
        space = ls.RKHS(kernel, 2.0, domain=domain)
        f = from_the_ball(kernel, GRID[:, None], 2.0, rng)
        x = GRID[order(name, seed=seed), None][:40]
        sequence = ls.ConfidenceSequence(family, space, 0.05, ls.Mixture([0.5]), windows=None)
        sequence.update(x, family.sample(f(x), rng))
        if exact_log_ratio(sequence, f) <= np.log(20):
            checked += 1
            low, high = sequence.set.interval(GRID[::3])
            assert (low <= f(GRID[::3, None])).all() and (f(GRID[::3, None]) <= high).all()
    assert checked >= 3  # each fails by chance with probability at most 1/20: below 2e-3 for three of five


@pytest.mark.parametrize("family", [ls.Gaussian(1e-4), ls.Laplace(1e-4)], ids=repr)
def test_points_a_billionth_apart(family):
    """Sections that doubles cannot tell apart, a large ball and little noise: still outer, on both sides."""
    rng = np.random.default_rng(0)
    space, bound = ls.RKHS(RBF(0.3), bound=100.0), 100.0
    base = np.array([0.1, 0.5, 0.9])
    x = np.concatenate([base, base + 1e-9, base + 3e-9])
    for _ in range(20):
        f = from_the_ball(space.kernel, rng.uniform(size=(6, 1)), bound, rng)
        sequence = ls.ConfidenceSequence(family, space, 0.05, ls.Mixture([1e-4]), windows=None)
        sequence.update(x, family.sample(f(x[:, None]), rng))
        if exact_log_ratio(sequence, f) <= np.log(20):
            at = np.concatenate([x, base + 2e-9, [0.3, 0.7]])
            low, high = sequence.set.interval(at)
            values = f(at[:, None])
            assert (low <= values).all() and (values <= high).all()


def test_a_time_series_without_a_domain():
    """Steps of a twentieth of a length scale: every point is extrapolated from the past."""
    rng = np.random.default_rng(1)
    space = ls.RKHS(RBF(1.0), bound=3.0)
    x = 0.05 * np.arange(150)[:, None]
    f = from_the_ball(space.kernel, x, 3.0, rng)
    sequence = ls.ConfidenceSequence(ls.Gaussian(0.2), space, 0.05, ls.Mixture([0.5]))
    for k in range(0, 150, 10):
        sequence.update(x[k : k + 10], rng.normal(f(x[k : k + 10]), 0.2))
        if exact_log_ratio(sequence, f) <= np.log(20):
            ahead = np.concatenate([x[: k + 10], x[k + 9] + 0.05 * np.arange(1, 6)[:, None]])
            low, high = sequence.set.interval(ahead)
            assert (low <= f(ahead)).all() and (f(ahead) <= high).all()
    assert exact_log_ratio(sequence, f) <= np.log(20)


def test_two_dimensions_scanned_by_rows():
    axis = np.linspace(0, 1, 15)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    space = ls.RKHS(RBF([0.3, 0.5]), 2.0, domain=grid)
    rng = np.random.default_rng(0)
    f = from_the_ball(space.kernel, grid, 2.0, rng)
    sequence = ls.ConfidenceSequence(ls.Gaussian(0.2), space, 0.05, ls.Mixture([0.5]), windows=None)
    sequence.update(grid, rng.normal(f(grid), 0.2))
    assert sequence.set.contains(f(grid)) == (exact_log_ratio(sequence, f) <= np.log(20))
    low, high = sequence.set.interval(grid)
    assert (low <= f(grid)).all() and (f(grid) <= high).all()


@pytest.mark.parametrize("kernel", [Matern(0.3, nu=0.5), 1e6 * RBF(0.02), 1e-6 * Matern(0.1, nu=2.5)], ids=str)
@pytest.mark.parametrize("count", [150, pytest.param(1100, marks=pytest.mark.slow)])
def test_many_points_in_order_keep_the_factor_sound(kernel, count):
    """The check that runs whenever the basis has doubled passes, and once more at the end."""
    basis = ls.RKHS(kernel, 2.0).start()
    for x in np.sort(np.random.default_rng(0).uniform(size=(count, 1)), axis=0):
        basis = basis.including(x)
    basis._verify()


@pytest.mark.slow
def test_two_thousand_points_in_order():
    rng = np.random.default_rng(0)
    space = ls.RKHS(RBF(0.1), 6.0)
    x = np.sort(rng.uniform(size=2000))[:, None]
    f = from_the_ball(space.kernel, x, 6.0, rng)
    sequence = ls.ConfidenceSequence(ls.Gaussian(0.1), space, 0.05, ls.Mixture([0.1]))
    sequence.update(x, rng.normal(f(x), 0.1))
    assert exact_log_ratio(sequence, f) <= np.log(20)
    low, high = sequence.set.interval(np.linspace(0, 1, 200))
    values = f(np.linspace(0, 1, 200)[:, None])
    assert (low <= values).all() and (values <= high).all()
    assert sequence.set.charge < 1.0


# -- the charge ---------------------------------------------------------------------------------------------------


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from(["quadratic", "exponential", "softplus", "points", "callable"]))
def test_the_charge_covers_what_sticking_out_can_do(seed, kind):
    """sum phi_k(z_k - d_k) <= sum phi_k(z_k) + D for every z below the level and |d_k| <= B r_k."""
    rng = np.random.default_rng(seed)
    count, bound = int(rng.integers(1, 6)), float(rng.uniform(0.3, 5.0))
    squares = 10.0 ** rng.uniform(-8, -1, size=count)
    if kind == "points":
        starts = np.arange(0, 3 * count + 1, 3)
        terms = PointTerms(starts, np.sort(rng.normal(size=(count, 3)), axis=1).ravel(), rng.uniform(0.1, 3, 3 * count))
    else:
        curve = {"quadratic": Curve.QUADRATIC, "softplus": Curve.SOFTPLUS}.get(kind, Curve.EXPONENTIAL)
        a = 10.0 ** rng.uniform(-1, 2, size=count)
        s = a * rng.uniform(0, 1, size=count) if curve is Curve.SOFTPLUS else rng.poisson(3.0, size=count).astype(float)
        terms = CurveTerms(curve, a, s)
        if kind == "exponential" and rng.random() < 0.5:  # the same, counted from a reference
            origins = rng.normal(size=count)
            terms = CurveTerms(curve, a, s - a * np.exp(origins), origins)
    reach = np.full(count, 3.0)
    z = rng.uniform(-3.0, 3.0, size=(200, count))
    if kind == "callable":
        a, s = terms.a, terms.s
        terms = CallableTerms(lambda Z: (a * np.exp(Z) - s * Z, a * np.exp(Z) - s, a * np.exp(Z)))
    lowest = minima(terms)
    values = term_values(terms, z).sum(axis=1)
    for level in np.quantile(values, [0.1, 0.6, 1.0]):
        slack = 0.0 if lowest is None else level - lowest.sum()
        allowed = charge_of(terms, squares, bound, slack, reach)
        below = z[values <= level]
        for signs in rng.choice([-1.0, 1.0], size=(4, count)):
            moved = term_values(terms, below - signs * bound * np.sqrt(squares)).sum(axis=1)
            rise = moved - values[values <= level]
            assert (rise <= allowed + 1e-9 * (1 + np.abs(moved))).all()


def test_nothing_is_charged_where_the_basis_holds_every_point():
    space = ls.RKHS(RBF(0.06), 4.0, domain=GRID)
    sequence = ls.ConfidenceSequence(ls.Gaussian(0.15), space)
    sequence.update(GRID[[3, 20, 41, 60, 20]], [0.1, -0.3, 0.2, 0.4, 0.0])
    assert sequence.set.charge == 0.0
    linear = ls.ConfidenceSequence(ls.Poisson(), ls.Linear(2, 1.0))
    linear.update([[1.0, 0.0], [1.0, 1e-13]], [1, 2])
    assert linear.set.charge == 0.0


# -- kernels that are none ----------------------------------------------------------------------------------------


def asymmetric(x, y):
    return np.exp(-np.abs(x - y.T)) + 0.1 * (x - y.T)


def indefinite(x, y):
    return np.cos(3 * (x - y.T)) * (1 + np.abs(x - y.T)) ** 2


def infinite_beyond(x, y):
    return np.where((x > 0.5) & (y.T > 0.5), np.inf, np.exp(-np.abs(x - y.T)))


def fine_on_four(x, y):
    """A covariance on the first points of the grid, and none beyond."""
    far = (x > 0.3) & (y.T > 0.3) & (x != y.T)
    return np.where(far, 1.5, np.exp(-((x - y.T) ** 2)))


@pytest.mark.parametrize("kernel", [asymmetric, indefinite, infinite_beyond, fine_on_four], ids=lambda k: k.__name__)
def test_kernels_are_checked_on_the_whole_domain(kernel):
    with pytest.raises(ls.InvalidArgumentError, match="kernel"):
        ls.RKHS(kernel, 2.0, domain=GRID)


@pytest.mark.parametrize("kernel", [asymmetric, indefinite, infinite_beyond, fine_on_four], ids=lambda k: k.__name__)
def test_kernels_are_checked_at_every_new_point(kernel):
    """Without a domain: at the latest when the points seen show it; nothing of the refused point is recorded."""
    with pytest.raises(ls.InvalidArgumentError, match="kernel"):
        sequence = ls.ConfidenceSequence(ls.Gaussian(0.5), ls.RKHS(kernel, 2.0))
        for i, x in enumerate(np.linspace(0, 2, 30)):
            assert sequence.n_observations == i
            sequence.update([x], [0.0])


def test_the_parameter_dimension_is_an_upper_bound_of_the_rank():
    for kernel, points in [(RBF(0.3), GRID), (RBF(0.06), GRID), (DotProduct(0.0), np.linspace(1, 2, 10))]:
        space = ls.RKHS(kernel, 2.0, domain=points)
        eigenvalues = np.linalg.eigvalsh(kernel(space.domain))
        assert parameter_dimension(space) >= np.sum(eigenvalues > 1e-13 * eigenvalues[-1])
        assert parameter_dimension(space) <= len(points)


def test_copies_in_two_threads_do_not_write_into_each_other():
    """Copies share the table of the basis; each row of it has one writer."""
    space = ls.RKHS(RBF(0.02), 2.0, domain=np.linspace(0, 1, 200))
    start = ls.ConfidenceSequence(ls.Gaussian(0.3), space, windows=None)
    start.update(space.domain[:5], np.zeros(5))

    def grown(seed):
        rng = np.random.default_rng(seed)
        twin = copy.deepcopy(start)
        for i in rng.permutation(200)[:40]:
            twin.update(space.domain[i], rng.normal())
        return twin.set.upper(space.domain)

    alone = [grown(seed) for seed in range(4)]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(grown, range(4)))
    for one, other in zip(alone, together, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9)


# -- attacks that once succeeded ----------------------------------------------------------------------------------


def test_window_charges_count_the_slack_of_every_covariate():
    """A near-duplicate with many observations beside one surprising outcome, all in one window."""
    sigma, gap, count = 1e-6, 0.95e-6, 1000
    domain = np.array([0.0, gap, 50.0, 100.0])
    surprise = sigma * np.sqrt(2e4)
    sequence = ls.ConfidenceSequence(
        ls.Gaussian(sigma), ls.RKHS(RBF(1.0), 1.0, domain=domain), 0.05, ls.Fixed(np.zeros(4)),
        windows=ls.Windows.from_masks(domain, [[1, 1, 1, 1], [0, 0, 0, 1]]),
    )  # fmt: skip
    sequence.update([0.0], [0.0])
    sequence.update(np.full(count, gap), np.zeros(count))
    sequence.update([50.0, 100.0], [surprise, 0.0])
    values = np.array([5.32e-6, 5.32e-6 - 0.9 * gap, surprise, 0.0])  # norm 0.9: the difference over the gap
    assert sequence.set.log_ratio(values) <= np.log(20)
    assert sequence.set.upper([0.0])[0] >= values[0]


def combination(points, weights):
    """sum w k_p / its norm for RBF(1), in extended precision where the machine has it."""
    points, weights = np.array(points, np.longdouble), np.array(weights, np.longdouble)
    deviations = np.expm1(-((points[:, None] - points) ** 2) / 2)
    norm = np.sqrt(weights.sum() ** 2 + weights @ deviations @ weights)
    return lambda x: float((weights.sum() + weights @ np.expm1(-((points - np.longdouble(x)) ** 2) / 2)) / norm)


@pytest.mark.parametrize(
    ("gap", "x", "seen"),
    [(3.690872333624498e-06, 0.0026349834463666854, 0), (3.237172019562047e-06, 0.0006228116985114519, 1)],
    ids=["query", "observation"],
)
def test_extrapolation_from_two_close_points(gap, x, seen):
    """Coefficients of hundreds: rounding of L L' counts times their squares."""
    space = ls.RKHS(RBF(1.0), 1.0)
    basis = space.start().including(np.array([0.0])).including(np.array([gap]))
    slopes = np.linalg.solve(basis.factor.T, basis.coordinates(np.array([[x]]))[0][0][: basis.dimension])
    f = combination([x, 0.0, gap], [1.0, -slopes[0], -slopes[1]])
    sequence = ls.ConfidenceSequence(ls.Gaussian(1e-10), space, 0.05, ls.Fixed(lambda p: f(p[0])), windows=None)
    rows = np.array([0.0, gap] * (3000 if seen else 1) + [x] * seen)
    sequence.update(rows, [f(p) for p in rows])
    low, high = sequence.set.interval([x])
    assert low[0] <= f(x) <= high[0]


def test_differences_keep_tiny_lengths_apart():
    p, q, x = 1.2948879316842665, 1.2948849253668444, 1.294813483501529
    level, slope = 0.999999999 * np.cos(4.750180642641808), 0.999999999 * np.sin(4.750180642641808)
    sequence = ls.ConfidenceSequence(
        ls.Gaussian(1e-7), ls.RKHS(DotProduct(1.0), 1.0), 0.05, ls.Fixed(lambda v: level + slope * float(v[0]))
    )
    sequence.update([p, q], [level + slope * p, level + slope * q])
    assert sequence.set.upper_difference([[x]], [[q]])[0] >= slope * (x - q)


def test_a_forecaster_made_again_sees_what_it_saw():
    class Sums:
        failing = False

        def __init__(self):
            self.total = 0.0

        def forecast(self, phi):
            if Sums.failing:
                raise RuntimeError("not now")
            return ls.PlugIn(ls.Gaussian(1.0), 1e5 * self.total)

        def observe(self, phi, y):
            self.total += phi.outside

    pair = [ls.ConfidenceSequence(ls.Gaussian(1.0), ls.RKHS(RBF(1.0), 1.0), predictor=Sums()) for _ in range(2)]
    for sequence in pair:
        sequence.update(np.linspace(0, 1, 30), np.zeros(30))
    Sums.failing = True
    with pytest.raises(RuntimeError):
        pair[0].update([0.5], [0.0])
    Sums.failing = False
    for sequence in pair:
        sequence.update([0.123], [1.0])
    assert pair[0].ledger.log_q.rows[-1] == pair[1].ledger.log_q.rows[-1]


def test_kernels_whose_diagonal_spans_orders_of_magnitude():
    """Polynomial kernels: sections are scaled to length one before they are compared."""
    space = ls.RKHS(DotProduct(1.0) ** 4, 1.0)
    basis = space.start()
    for x in np.random.default_rng(0).uniform(-30, 30, size=(150, 1)):
        basis = basis.including(x)
    assert basis.dimension <= 15  # five features
    assert pickle.loads(pickle.dumps(basis)).dimension == basis.dimension
