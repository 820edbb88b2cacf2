"""Contrasts of means and functions of two predictors: exact where they can be, certified and tight otherwise."""

import numpy as np
import pytest
from scipy.stats import binom
from sklearn.gaussian_process.kernels import RBF

import likeset as ls
from likeset import checks
from likeset.families.answers import mean_link

THETA = np.array([0.5, -0.4, 0.3])


def filled(family, dim=2, n=80, bound=2.0, voices=None, seed=0, **pieces):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, dim))
    sequence = ls.ConfidenceSequence(family, ls.Linear(dim, bound), voices=voices, **pieces)
    sequence.update(X, family.sample(X @ THETA[:dim], rng))
    return sequence


def of_means(family, of):
    mean = family.mean
    return {
        "difference": lambda a, b: mean(a) - mean(b),
        "ratio": lambda a, b: mean(a) / mean(b),
        "odds": lambda a, b: mean(a) / (1 - mean(a)) / (mean(b) / (1 - mean(b))),
    }[of]


@pytest.mark.parametrize("family", checks.built_in_families(), ids=repr)
def test_links_are_what_families_say(family):
    link = mean_link(family)
    if link is None:
        return
    z = np.linspace(-2, 2, 9)
    mean = family.mean(z) / getattr(family, "trials", 1)
    scale = {"identity": lambda m: m, "log": np.log, "logit": lambda m: np.log(m / (1 - m))}[link]
    assert np.ptp(np.diff(scale(mean))) < 1e-12


@pytest.mark.parametrize(
    ("family", "of"),
    [(ls.Gaussian(0.5), "difference"), (ls.Poisson(), "ratio"), (ls.Bernoulli(), "odds"), (ls.Weibull(2.0), "ratio")],
    ids=repr,
)
@pytest.mark.parametrize("voices", [None, "auto"], ids=repr)
def test_what_is_linear_in_theta_is_exact(family, of, voices):
    s = filled(family, dim=3, voices=voices).set
    X, Y = np.random.default_rng(1).normal(size=(2, 5, 3))
    low, high = s.contrast(X, Y, of)
    upper, lower = s.upper_difference(X, Y), -s.upper_difference(Y, X)
    if isinstance(family, ls.Weibull):
        upper, lower = -lower / 2.0, -upper / 2.0  # the mean falls with z
    expected = (lower, upper) if of == "difference" else (np.exp(lower), np.exp(upper))
    assert low == pytest.approx(expected[0], rel=1e-12) and high == pytest.approx(expected[1], rel=1e-12)
    assert (s.contrast(X, Y, of).gap <= 1e-4 * (high - low)).all()


CASES = [
    (ls.Bernoulli(), "difference"),
    (ls.Bernoulli(), "ratio"),
    (ls.Binomial(4), "difference"),
    (ls.Poisson(), "difference"),
    (ls.Weibull(2.0), "difference"),
    (ls.Gamma(2.0), "difference"),
    (ls.LogNormal(0.5), "difference"),
]


@pytest.mark.parametrize(("family", "of"), CASES, ids=repr)
@pytest.mark.parametrize("voices", [None, "auto"], ids=repr)
def test_bounds_enclose_the_boundary_and_hardly_more(family, of, voices):
    """In two dimensions a monotone function of both predictors is largest on the boundary of the set."""
    s = filled(family, voices=voices).set
    edge = s.boundary(600)
    X, Y = np.random.default_rng(2).normal(size=(2, 3, 2))
    found = s.contrast(X, Y, of)
    for i in range(3):
        values = of_means(family, of)(edge @ X[i], edge @ Y[i])
        width = np.ptp(values)
        assert found.lower[i] <= values.min() and values.max() <= found.upper[i]
        assert found.upper[i] - found.lower[i] <= width * (1 + 5e-4)
        assert found.gap[i] <= 1.01e-4 * width
    # and what two separate intervals say is wider
    low, high = s.interval(X)
    low_y, high_y = s.interval(Y)
    corners = [of_means(family, of)(a, b) for a in (low, high) for b in (low_y, high_y)]
    assert (found.upper <= np.max(corners, axis=0) * (1 + 1e-9) + 1e-12).all()
    assert (found.upper - found.lower < np.max(corners, axis=0) - np.min(corners, axis=0)).all()


def test_members_of_larger_spaces_stay_inside():
    rng = np.random.default_rng(3)
    s = filled(ls.Bernoulli(), dim=3, n=40).set
    members = s.support(rng.normal(size=(500, 3))).maximisers
    X, Y = rng.normal(size=(2, 4, 3))
    found = s.contrast(X, Y)
    values = of_means(ls.Bernoulli(), "difference")(X @ members.T, Y @ members.T)
    assert (found.lower[:, None] <= values + 1e-12).all() and (values <= found.upper[:, None] + 1e-12).all()


def test_other_functions_of_two_predictors():
    s = filled(ls.Poisson()).set
    edge = s.boundary(600)
    x, y = np.array([1.0, 0.3]), np.array([-0.2, 1.0])
    for function in (
        lambda a, b: 3.0 * np.exp(a) - np.exp(b),
        lambda a, b: np.exp(a + 2 * b),
        lambda a, b: a + b,
        lambda a, b: np.where(a > b, 1.0, 0.0),  # a step
        lambda a, b: np.full_like(a, 2.0),
        lambda a, b: np.maximum(a, b),
    ):
        low, high = s.bounds_of(function, x, y)
        values = function(edge @ x, edge @ y)
        assert low[0] <= values.min() + 1e-12 and values.max() <= high[0] + 1e-12
        assert high[0] - low[0] <= np.ptp(values) * (1 + 5e-4) + 1e-9


def test_function_spaces():
    rng = np.random.default_rng(4)
    grid = np.linspace(0, 1, 15)
    space = ls.RKHS(RBF(0.3), 2.0, domain=grid)
    sequence = ls.ConfidenceSequence(ls.Bernoulli(), space, voices=None)
    x = rng.choice(grid, size=120)
    sequence.update(x[:, None], rng.binomial(1, 1 / (1 + np.exp(-np.sin(6 * x)))))
    s = sequence.set
    points, others = grid[[2, 9]][:, None], grid[[10, 3]][:, None]
    found = s.contrast(points, others)
    members = s.support(np.repeat(grid, 2)[:, None], sign=np.tile([1.0, -1.0], 15)).maximisers
    mean = ls.Bernoulli().mean
    for i, (a, b) in enumerate(((2, 10), (9, 3))):
        values = mean(members[:, a]) - mean(members[:, b])
        assert found.lower[i] <= values.min() and values.max() <= found.upper[i]
    # without a domain, next to what was seen: never wider than two separate intervals
    free = ls.ConfidenceSequence(ls.Bernoulli(), ls.RKHS(RBF(0.1), 2.0), voices=None)
    free.update([[0.1], [0.2]] * 20, [0, 1] * 20)
    (low, low_y), (high, high_y) = free.set.interval([[0.15], [0.9]])
    bounds = free.set.contrast([[0.15]], [[0.9]])
    assert bounds.upper[0] <= mean(high) - mean(low_y) + 1e-9 and bounds.lower[0] >= mean(low) - mean(high_y) - 1e-9


def test_the_same_covariate_twice_and_one_against_many():
    s = filled(ls.Bernoulli()).set
    same = s.contrast([1.0, 2.0], [1.0, 2.0])
    assert same.lower[0] == pytest.approx(0.0, abs=1e-3) and same.upper[0] == pytest.approx(0.0, abs=1e-3)
    assert s.contrast([1.0, 2.0], [1.0, 2.0], "odds").upper[0] == pytest.approx(1.0)
    assert s.contrast([1.0, 2.0], np.zeros((0, 2))).upper.shape == (0,)
    early = filled(ls.Poisson(), n=3).set.contrast([[0.8, 0.1], [0.3, 0.9]], [[0.8, 0.1], [0.3, 0.9]])
    assert (np.abs(early.upper) < 0.1).all()
    many = s.contrast(np.eye(2), [1.0, 1.0])
    assert many.upper.shape == (2,)
    assert many.upper[1] == pytest.approx(s.contrast([0.0, 1.0], [1.0, 1.0]).upper[0], abs=1e-3)


def test_unbounded_sets():
    sequence = ls.ConfidenceSequence(ls.Bernoulli(), ls.Linear(2, np.inf), voices=None)
    sequence.update([[1.0, 0.0]] * 20, [0, 1] * 10)
    low, high = sequence.set.contrast([1.0, 0.0], [0.0, 1.0])
    assert -1.0 <= low[0] < -0.5 and 0.5 < high[0] <= 1.0
    low, high = sequence.set.contrast([1.0, 0.0], [0.0, 1.0], "odds")
    assert low[0] == 0.0 and high[0] == np.inf


def test_an_unknown_scale_has_differences():
    rng = np.random.default_rng(5)
    x = rng.normal(size=(60, 2))
    sequence = ls.ConfidenceSequence(ls.Gaussian(sigma=ls.Unknown()), ls.Linear(2, 5.0), voices=None)
    sequence.update(x, x @ THETA[:2] + 0.3 * rng.normal(size=60))
    low, high = sequence.set.contrast([1.0, 0.0], [0.0, 1.0])
    assert low[0] < 0.9 < high[0] < low[0] + 1.0


def test_the_difference_of_proportions_is_covered():
    """60 adaptive runs of three looks; false-alarm probability 1e-6."""
    rng, runs, misses = np.random.default_rng(6), 60, 0
    p = np.array([0.7, 0.4])
    theta = np.log(p / (1 - p))
    for _ in range(runs):
        sequence = ls.ConfidenceSequence(ls.Bernoulli(), ls.Linear(2, 2.0), 0.1, voices=None)
        missed, wins, plays = False, np.ones(2), 2 * np.ones(2)
        for _ in range(3):
            arms = np.argmax(rng.beta(wins, plays - wins + 1, size=(8, 2)), axis=1)
            y = rng.binomial(1, p[arms])
            sequence.update(np.eye(2)[arms], y)
            np.add.at(wins, arms, y)
            np.add.at(plays, arms, 1)
            low, high = sequence.set.contrast([1.0, 0.0], [0.0, 1.0])
            missed |= not low[0] <= p[0] - p[1] <= high[0]
        misses += missed
    assert np.linalg.norm(theta) < 2.0
    assert misses <= binom.ppf(1 - 1e-6, runs, 0.1)


@pytest.mark.parametrize(
    "call",
    [
        lambda s: s.contrast(np.eye(2), np.ones((3, 2))),
        lambda s: s.contrast(np.eye(2), np.eye(2), "product"),
        lambda s: s.contrast(np.eye(2), np.eye(2), of=None),
        lambda s: s.contrast([1.0], [1.0, 2.0]),
        lambda s: s.bounds_of(lambda a, b: a * b, np.eye(2), -np.eye(2)),  # falls where the other is negative
        lambda s: s.bounds_of(lambda a, b: np.sin(9 * a) + b, [3.0, 0.0], [0.0, 3.0]),
        lambda s: s.bounds_of(lambda a, b: np.nan * a, np.eye(2), np.eye(2)),
        lambda s: s.bounds_of(lambda a: a, np.eye(2), np.eye(2)),
        lambda s: s.bounds_of(lambda a, b: 1.0, np.eye(2), np.eye(2)),
        lambda s: s.bounds_of("sum", np.eye(2), np.eye(2)),
    ],
)
def test_what_makes_no_sense_is_refused(call):
    with pytest.raises(ls.LikesetError):
        call(filled(ls.Bernoulli(), n=10).set)


def test_ratios_of_means_that_may_be_negative_are_refused_and_others_are_not():
    s = filled(ls.Gaussian(0.5)).set
    with pytest.raises(ls.InvalidArgumentError, match="positive"):
        s.contrast([0.1, 0.0], [0.0, 1.0], "ratio")
    with pytest.raises(ls.InvalidArgumentError, match="below one"):
        filled(ls.Poisson()).set.contrast([2.0, 0.0], [0.0, 1.0], "odds")
    # Where both means are surely positive, the ratio of Gaussian means has bounds as well.
    positive = ls.ConfidenceSequence(ls.Gaussian(0.1), ls.Linear(2, 10.0), voices=None)
    positive.update(np.tile(np.eye(2), (40, 1)), np.tile([4.0, 2.0], 40))
    low, high = positive.set.contrast([1.0, 0.0], [0.0, 1.0], "ratio")
    assert 1.85 < low[0] < 2.0 < high[0] < 2.15


@pytest.mark.parametrize("of", ["ratio", "odds"])
def test_means_that_may_be_zero_leave_an_end_open_instead_of_an_error(of):
    """One arm without a success and without a bound: its mean may be as small as it likes."""
    seq = ls.ConfidenceSequence(ls.Bernoulli(), ls.Linear(3))
    seq.update(np.repeat(np.eye(3), [30, 30, 1], axis=0), [0] * 30 + [1, 0] * 15 + [1])
    bounds = seq.set.contrast(np.eye(3)[[0, 1, 1]], np.eye(3)[[1, 0, 2]], of=of)
    assert (bounds.lower >= 0.0).all() and (bounds.lower <= bounds.upper).all()
    assert bounds.upper[1] == np.inf and np.isfinite(bounds.upper[0])
    theta = seq.set.support(np.eye(3)).maximisers
    means = 1 / (1 + np.exp(-theta[:, :2]))
    odds = means / (1 - means)
    realised = means[:, 0] / means[:, 1] if of == "ratio" else odds[:, 0] / odds[:, 1]
    assert (realised >= bounds.lower[0] - 1e-9).all() and (realised <= bounds.upper[0] + 1e-9).all()


FUNCTIONS = {
    "distance": (lambda a, b: np.abs(a - b), (1.0, 1.0)),
    "product": (lambda a, b: a * b, (3.0, 3.0)),
    "wave": (lambda a, b: np.sin(3 * a) * np.cos(2 * b), (3.0, 2.0)),
    "difference": (lambda a, b: a - b, (1.0, 1.0)),
}


@pytest.mark.parametrize(
    ("name", "family"), [(name, ls.Gaussian(0.5)) for name in FUNCTIONS] + [("product", ls.Laplace(0.5))], ids=repr
)
def test_functions_that_are_not_monotone(name, family):
    """Members never leave the bounds and come close to them; a difference is the exact one."""
    f, steepness = FUNCTIONS[name]
    rng = np.random.default_rng(0)
    X, theta = rng.normal(size=(50, 3)), np.array([0.4, -0.3, 0.2])
    sequence = ls.ConfidenceSequence(family, ls.Linear(3, 2.0), voices=None)
    sequence.update(X, family.sample(X @ theta, rng))
    s, x, y = sequence.set, np.array([1.0, 0.2, 0.0]), np.array([0.0, 1.0, 0.5])
    found = s.bounds_of(f, x, y, steepness=steepness)
    width = found.upper[0] - found.lower[0]
    assert 0.0 <= found.gap[0] <= 2e-3 * width
    directions = rng.normal(size=(300, 2)) @ np.array([x, y])  # extreme points of the projection, and between them
    points = s.support(directions).maximisers
    share = rng.random((300, 1))
    points = np.concatenate([points, share * points + (1 - share) * points[rng.permutation(300)]])
    values = f(points @ x, points @ y)
    assert (found.lower[0] <= values).all() and (values <= found.upper[0]).all()
    assert values.max() > found.upper[0] - 0.05 * width and values.min() < found.lower[0] + 0.05 * width
    if name == "difference":
        assert found.upper[0] == pytest.approx(s.upper_difference(x, y)[0], abs=2e-4 * width)


def test_a_steepness_that_is_none_is_refused():
    s = ls.ConfidenceSequence(ls.Poisson(), ls.Linear(2, 2.0)).set
    for steepness in ((0.5, 1.0), (1.0,), (-1.0, 1.0), "steep"):
        with pytest.raises(ls.LikesetError, match="steepness"):
            s.bounds_of(lambda a, b: a - b, [1.0, 0.0], [0.0, 1.0], steepness=steepness)
    unbounded = ls.ConfidenceSequence(ls.Poisson(), ls.Linear(2)).set
    low, high = unbounded.bounds_of(lambda a, b: a - b, [1.0, 0.0], [0.0, 1.0], steepness=(1.0, 1.0))
    assert low[0] == -np.inf and high[0] == np.inf
