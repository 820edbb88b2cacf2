"""Pieces of the user's own: what is no density is refused or charged before anything changes; what is one, passes."""

import math

import numpy as np
import pytest
from scipy.special import gammaln, logsumexp
from scipy.stats import nbinom, norm, t

import likeset as ls
from likeset import checks
from likeset.families.answers import predictive
from likeset.families.mass import GAUSS, KRONROD, NODES, around, integrate, nearest_scale
from likeset.families.predictive import GaussianPredictive
from likeset.predictors import Blend, MixtureForecast

GAUSSIAN, WEIBULL = ls.Gaussian(0.5), ls.Weibull(2.0)
LOG_ROOT_TWO_PI = 0.5 * math.log(2 * math.pi)


class Always:
    """A forecaster of the user's own that says the same at every step; a function stands for its log-density."""

    def __init__(self, forecast):
        self.log_density = forecast
        self.made = forecast if hasattr(forecast, "log_density") else self

    def forecast(self, phi):
        return self.made

    def observe(self, phi, y):
        pass


def sequence_with(family, forecast, bound=2.0, **settings):
    return ls.ConfidenceSequence(family, ls.Linear(2, bound), predictor=Always(forecast), **settings)


def refused(family, forecast, y, match, bound=2.0, x=(1.0, 0.0)):
    sequence = sequence_with(family, forecast, bound)
    with pytest.raises(ls.PieceError, match=match):
        sequence.update(list(x), y)
    assert sequence.n_observations == 0
    assert sequence._running.basis.dimension == 0


def charged(family, forecast, y, bound=2.0):
    """log q(y) as said minus log q(y) as recorded."""
    sequence = sequence_with(family, forecast, bound)
    sequence.update([1.0, 0.0], [y] if np.ndim(y) else y)
    outcome = family.observations([y] if np.ndim(y) else y)[0]
    said = forecast.log_density(outcome) if hasattr(forecast, "log_density") else forecast(outcome)
    return float(np.ravel(said)[0]) - float(sequence.ledger.log_q.rows[0])


def log_normal(y, centre=0.0, sd=1.0):
    return -0.5 * ((np.asarray(y) - centre) / sd) ** 2 - math.log(sd) - LOG_ROOT_TWO_PI


def log_poisson(y, rate=1.0):
    return np.asarray(y) * math.log(rate) - rate - gammaln(np.asarray(y) + 1.0)


# -- lifetimes ---------------------------------------------------------------------------------------------------


def ignores_the_flag(family, z):
    return lambda y: family.log_density(np.stack([y[..., 0], np.ones_like(y[..., 0])], axis=-1), z)


@pytest.mark.parametrize("y", [(1.0, 0), (0.2, 0), (4.0, 0), (0.7, 1)])
@pytest.mark.parametrize("z", [-1.0, 0.0, 1.5])
def test_a_survival_forecaster_that_ignores_the_event_flag_is_refused(y, z):
    refused(WEIBULL, ignores_the_flag(ls.Weibull(2.0), z), y, "censoring|flag")


def test_densities_for_censored_logarithms_of_times_are_refused():
    refused(ls.LogWeibull(3.0), ignores_the_flag(ls.LogWeibull(3.0), 0.2), (-0.3, 0), "flag")


def test_ignoring_the_flag_is_noticed_where_it_only_loses_power():
    """With a rate below one the density is below the survival function: a valid mistake, and a mistake."""
    refused(ls.Exponential(), ignores_the_flag(ls.Exponential(), -1.0), (0.5, 0), "event flag")


def test_a_censored_outcome_of_too_much_probability_is_charged_or_refused():
    def generous(factor):
        return lambda y: ls.Weibull(2.0).log_density(y, 0.1) + np.where(y[..., 1] == 0, math.log(factor), 0.0)

    early = (0.01, 0)  # F(c) is nearly 0, so that the sum is nearly the factor
    assert charged(WEIBULL, generous(1.0005), early) == pytest.approx(math.log(1.0005), abs=1e-6)
    refused(WEIBULL, generous(1.01), early, "censoring")


def test_a_density_for_censored_outcomes_is_refused_if_it_is_not_the_same_density():
    """Sooner or later F(c) + q(c, 0) is above one, for some c; it need not be the c that came."""
    wrong = lambda y: WEIBULL.log_density(np.stack([y[..., 0], np.ones_like(y[..., 0])], axis=-1), 0.1 * y[..., 1])  # noqa: E731
    for y in ((0.1, 0), (1.5, 0), (0.4, 1)):
        refused(WEIBULL, wrong, y, "under censoring at")


@pytest.mark.parametrize("y", [(1.0, 0), (0.3, 1), (1e-9, 1), (30.0, 0)])
@pytest.mark.parametrize("family", [ls.Weibull(2.0), ls.Exponential()])
def test_an_honest_survival_forecaster_is_accepted(family, y):
    log_normal_times = lambda y: np.where(  # noqa: E731
        y[..., 1] == 1,
        norm.logpdf(np.log(y[..., 0]), 0.1, 0.8) - np.log(y[..., 0]),
        norm.logsf(np.log(y[..., 0]), 0.1, 0.8),
    )
    assert 0.0 <= charged(family, log_normal_times, y) < 1e-6
    assert charged(family, lambda y: ls.Weibull(1.5).log_density(y, 0.4), y) < 1e-6
    assert charged(ls.Exponential(), lambda y: -y[..., 0], y) < 1e-6  # rate one: the flag makes no difference


# -- one outcome, alone and in arrays ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("family", "y"), [(ls.Bernoulli(), 1), (ls.Poisson(), 3), (ls.Binomial(6), 2)], ids=["0/1", "counts", "binomial"]
)
def test_a_softmax_over_the_array_it_is_handed_is_refused(family, y):
    def softmax(y):
        scores = -0.2 * np.atleast_1d(y)
        return (scores - logsumexp(scores)).reshape(np.shape(y))

    refused(family, softmax, y, "alone")


def test_a_density_normalised_over_the_nodes_it_is_handed_is_refused():
    def normalised_on_the_grid(y):
        grid = np.atleast_1d(y)
        scores = -0.5 * grid**2
        steps = np.gradient(grid) if len(grid) > 1 else np.ones(1)
        return (scores - math.log(abs(np.sum(np.exp(scores) * steps)))).reshape(np.shape(y))

    refused(GAUSSIAN, normalised_on_the_grid, 0.3, "alone|integrates")


def test_the_second_of_two_equal_outcomes_counts_as_much_as_the_first():
    def once(y):
        values = np.array(log_poisson(y))
        if values.ndim:
            values[np.unique(y, return_index=True)[1]] -= 1.0
        return values

    refused(ls.Poisson(), once, 2, "alone")


def test_single_precision_is_accepted_and_takes_the_lower_value():
    def single(y):
        return log_normal(np.asarray(y, dtype=np.float32)).astype(np.float32)

    assert 0.0 <= charged(GAUSSIAN, single, 0.3) < 1e-4

    def wobbling(y):
        return log_normal(y) + (4e-6 if np.ndim(y) == 0 else 0.0)

    assert charged(GAUSSIAN, wobbling, 0.3) == pytest.approx(4e-6, abs=1e-8)


# -- mass above one ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("excess", [9e-4, 1e-5])
@pytest.mark.parametrize(
    ("family", "log_density", "y"),
    [
        (GAUSSIAN, log_normal, 0.3),
        (GAUSSIAN, log_normal, -7.0),
        (ls.Poisson(), log_poisson, 2),
        (WEIBULL, lambda y: ls.Weibull(1.5).log_density(y, 0.1), (0.4, 1)),
        (WEIBULL, lambda y: ls.Weibull(1.5).log_density(y, 0.1), (0.4, 0)),
    ],
    ids=["number", "far number", "count", "event", "censored"],
)
def test_mass_above_one_is_charged(family, log_density, y, excess):
    paid = charged(family, lambda y: log_density(y) + math.log1p(excess), y)
    assert math.log1p(excess) - 1e-12 <= paid < math.log1p(excess) + 1e-6


def test_mass_below_one_is_not_paid_back():
    assert charged(GAUSSIAN, lambda y: log_normal(y) - 0.5, 0.3) == 0.0


@pytest.mark.parametrize("width", [1e-2, 1e-6, 1e-9])
@pytest.mark.parametrize("y", [0.3, 0.0, -250.0])
def test_a_narrow_spike_at_y_is_refused(y, width):
    spike = lambda v: np.logaddexp(log_normal(v), math.log(0.5) + log_normal(v, y + 0.3 * width, width))  # noqa: E731
    refused(GAUSSIAN, spike, y, "integrates to 1.5")


def test_a_narrow_spike_at_a_time_is_refused():
    def spike(y):
        peak = math.log(0.5) + log_normal(y[..., 0], 0.7, 1e-6)
        return np.logaddexp(ls.Weibull(2.0).log_density(y, 0.0), np.where(y[..., 1] == 1, peak, -np.inf))

    refused(WEIBULL, spike, (0.7, 1), "integrates to 1.5")


@pytest.mark.parametrize("log_height", [1.0, 5.0, 40.0])
def test_an_atom_is_refused(log_height):
    atom = lambda y: np.where(np.asarray(y) == 0.0, log_height, log_normal(y))  # noqa: E731
    refused(GAUSSIAN, atom, 0.0, "atom")
    timed = lambda y: np.where((y[..., 0] == 1.0) & (y[..., 1] == 1), log_height, WEIBULL.log_density(y, 0.0))  # noqa: E731
    refused(WEIBULL, timed, (1.0, 1), "atom")


def test_a_small_step_up_at_y_alone_is_charged():
    step = lambda y: np.where(np.asarray(y) == 0.0, 0.5, 0.0) + log_normal(y)  # noqa: E731
    assert charged(GAUSSIAN, step, 0.0) == pytest.approx(0.5, abs=1e-6)


@pytest.mark.parametrize("far", [40.0, 1e6, -1e9])
def test_a_second_unit_of_mass_around_a_y_far_out_is_refused(far):
    two = lambda y: np.logaddexp(log_normal(y), log_normal(y, far))  # noqa: E731
    refused(GAUSSIAN, two, far + 0.4, "integrates to 2")


def test_a_second_unit_of_probability_far_out_is_refused():
    two = lambda y: np.where(np.asarray(y) > 5e4, nbinom.logpmf(np.asarray(y) - 99_900, 100, 0.5), log_poisson(y))  # noqa: E731
    refused(ls.Poisson(), two, 100_000, "integrates to 2")


# -- shares ------------------------------------------------------------------------------------------------------


def mixture(log_shares, family=GAUSSIAN):
    mean = np.array([0.0, 0.5])
    return MixtureForecast(family, predictive(family, mean, np.array([0.3, 1.0]), 2.0), np.asarray(log_shares))


@pytest.mark.parametrize("family", [GAUSSIAN, ls.Laplace(0.5), ls.Poisson(), WEIBULL], ids=repr)
def test_shares_of_a_mixture_forecast_are_added_up(family):
    y = (0.5, 1) if family is WEIBULL else 1.0
    assert charged(family, mixture(np.log([0.25, 0.75]), family), y) <= 1e-12
    assert charged(family, mixture([-np.inf, 0.0], family), y) <= 1e-12
    for shares in (np.log([0.68, 0.68]), [np.nan, 0.0], [np.inf, 0.0], 0.0, [[0.0]]):
        refused(family, mixture(shares, family), y, "shares")


def test_one_share_does_not_count_for_several_densities():
    refused(GAUSSIAN, mixture([0.0]), 0.3, "integrates to 2")
    refused(GAUSSIAN, Blend([ls.PlugIn(GAUSSIAN, 0.0), ls.PlugIn(GAUSSIAN, 0.1)], np.zeros(1)), 0.3, "integrates to 2")


def test_components_of_a_mixture_forecast_are_looked_at():
    forecast = mixture(np.log([0.5, 0.5]))
    forecast.components.log_scale = forecast.components.log_scale - 1.0
    refused(GAUSSIAN, forecast, 0.3, "integrates to 2.7")

    class Generous:
        def log_densities(self, y):
            return np.stack([log_normal(y) + 0.2] * 2, axis=-1)

    refused(GAUSSIAN, MixtureForecast(GAUSSIAN, Generous(), np.log([0.5, 0.5])), 0.3, "integrates to 1.2")
    numbers = GaussianPredictive(GAUSSIAN.sigma, np.array([1.0]), np.array([0.0]))
    numbers.sd, numbers.log_scale = np.array([0.05]), np.log(np.array([0.05]) * math.sqrt(2 * math.pi))
    refused(ls.Poisson(), MixtureForecast(ls.Poisson(), numbers, np.zeros(1)), 1, "above one|integrates")


@pytest.mark.parametrize("log_shares", [np.log([0.68, 0.68]), [np.nan, 0.0], [[-1.0, -1.0]]], ids=str)
def test_shares_of_a_blend_are_added_up(log_shares):
    for second in (ls.PlugIn(GAUSSIAN, 0.1), Always(log_normal)):
        refused(GAUSSIAN, Blend([ls.PlugIn(GAUSSIAN, 0.0), second], np.asarray(log_shares)), 0.3, "shares")


def test_forecasts_of_the_sequences_own_predictors_are_not_inspected(monkeypatch):
    """The fast path: nothing but log_density(y) is asked of them."""
    calls = []
    original = MixtureForecast.log_density
    monkeypatch.setattr(MixtureForecast, "log_density", lambda self, y: calls.append(np.shape(y)) or original(self, y))
    ls.ConfidenceSequence(GAUSSIAN, ls.Linear(1, 2.0)).update(1.0, 0.3)
    assert calls == [()]


# -- families of the user's own ----------------------------------------------------------------------------------


def family_of(function, support="real", **settings):
    return ls.CustomFamily(function, support=support, name="Mine", **settings)


def negative_log_normal(y, z):
    return 0.5 * (y - z) ** 2 + LOG_ROOT_TWO_PI


@pytest.mark.parametrize(
    ("function", "error"),
    [
        (lambda y, z: negative_log_normal(y, z) + 0.01 * np.maximum(np.abs(z) - 3.0, 0.0), ls.PieceError),
        (lambda y, z: negative_log_normal(y, z) - 0.01 * np.maximum(-z - 3.0, 0.0), ls.PieceError),
        (lambda y, z: np.where(np.abs(z) > 4.0, np.inf, negative_log_normal(y, z)), ls.PieceError),
        (lambda y, z: negative_log_normal(y, np.sin(np.clip(z, -3.1, 3.1) / 2)), ls.NotConvexError),
    ],
    ids=["too little mass", "too much mass", "not finite", "not convex"],
)
def test_a_custom_family_is_checked_as_far_as_theta_reaches(function, error):
    convex = error is ls.NotConvexError
    family = family_of(function, convex=convex, z_range=(-0.2, 0.2) if convex else (-3.0, 3.0))
    for predictor in (ls.Fixed([0.0, 0.0]), ls.FTRL(), Always(log_normal)):
        near = ls.ConfidenceSequence(family, ls.Linear(2, 0.2), predictor=predictor, windows=None)
        near.update([1.0, 0.0], 0.3)
        wide = ls.ConfidenceSequence(family, ls.Linear(2, 5.0), predictor=predictor, windows=None)
        wide.update([0.04, 0.0], 0.3)  # Theta reaches |z| = 0.2 here
        with pytest.raises(error, match=r"z_range = .* reaches \|z\| = 7\.5"):
            wide.update([[0.0, 0.02], [0.9, 1.2]], [0.3, 0.1])
        assert wide.n_observations == 1


def test_a_plug_in_beyond_theta_is_checked_too():
    family = family_of(lambda y, z: negative_log_normal(y, z) - 0.01 * np.maximum(z - 4.0, 0.0))
    refused(family, ls.PlugIn(family, 9.0), 8.0, "z_range")
    sequence = ls.ConfidenceSequence(family, ls.Linear(2, math.inf), predictor=Always(ls.PlugIn(family, 9.0)))
    with pytest.raises(ls.PieceError, match="z_range"):
        sequence.update([1.0, 0.0], 8.0)


def test_the_range_of_a_custom_family_is_checked_once():
    calls = []

    def counting(y, z):
        calls.append(np.size(y))
        return negative_log_normal(y, z)

    family = family_of(counting, convex=True)
    sequence = ls.ConfidenceSequence(family, ls.Linear(1, 5.0), predictor=ls.Fixed([0.0]))
    sequence.update(2.0, 0.1)
    calls.clear()
    sequence.update(2.0, 0.2)
    sequence.update(2.2, 0.2)  # within the margin of the first extension
    assert len(calls) <= 4 and max(calls) < 500


@pytest.mark.parametrize(
    ("function", "support", "bound"),
    [
        (negative_log_normal, "real", 1e4),
        (lambda y, z: np.abs(y - z) + 2 * np.log1p(np.exp(-np.abs(y - z))), "real", 300.0),
        (lambda y, z: 0.5 * (y * np.exp(-z)) ** 2 + z + LOG_ROOT_TWO_PI, "real", 12.0),
        (lambda y, z: np.log(np.pi) + np.log1p((y - z) ** 2), "real", 50.0),
        (lambda y, z: y * np.exp(z) - z, "positive", 60.0),
        (lambda y, z: 0.5 * (np.log(y) - z) ** 2 + np.log(y) + LOG_ROOT_TWO_PI, "positive", 60.0),
        (lambda y, z: 0.5 * np.log(y * np.pi) + y * np.exp(z) - 0.5 * z, "positive", 40.0),
        (lambda y, z: -z - (np.exp(z) - 1.0) * np.log(y), "unit", 3.0),
        (lambda y, z: np.exp(z) - y * z + gammaln(y + 1.0), "counts", 10.0),
        (lambda y, z: np.log1p(np.exp(-z)) + z * (1 - y), [0, 1], 200.0),
    ],
    ids=[
        "normal",
        "logistic",
        "scale",
        "Cauchy",
        "exponential",
        "log-normal",
        "gamma",
        "power",
        "Poisson",
        "Bernoulli",
    ],
)
def test_honest_custom_families_reach_far(function, support, bound):
    family = family_of(function, support)
    sequence = ls.ConfidenceSequence(family, ls.Linear(1, bound), predictor=ls.Fixed([0.0]))
    y = {"unit": [0.3, 0.9], "counts": [0, 3]}.get(support if isinstance(support, str) else "", [1, 1])
    with np.errstate(all="ignore"):
        sequence.update([1.0, 0.5], y)
    assert sequence.n_observations == 2


def test_a_family_of_counts_is_checked_as_far_as_it_can_be_summed():
    family = family_of(lambda y, z: np.exp(z) - y * z + gammaln(y + 1.0), "counts")
    sequence = ls.ConfidenceSequence(family, ls.Linear(1, 15.0), predictor=ls.Fixed([0.0]))
    with pytest.raises(ls.PieceError, match="counts below"):
        sequence.update(1.0, 3)


def test_a_count_beyond_those_summed_has_no_probability_above_one():
    family = family_of(lambda y, z: np.exp(z) - y * z + gammaln(y + 1.0) - np.where(y > 1e6, 1e8, 0.0), "counts")
    sequence = ls.ConfidenceSequence(family, ls.Linear(1, 2.0), predictor=ls.Fixed([0.0]))
    with pytest.raises(ls.PieceError, match="probability"):
        sequence.update(1.0, 2_000_000)
    assert sequence.n_observations == 0


@pytest.mark.parametrize("predictor", [None, ls.FTRL()], ids=repr)
def test_a_refused_family_leaves_no_trace(predictor):
    """Built-in predictors are not copied around an update of one row; the family is checked before they forecast."""
    family = family_of(lambda y, z: negative_log_normal(y, z) + 0.01 * np.maximum(np.abs(z) - 3.0, 0.0))
    one, other = (ls.ConfidenceSequence(family, ls.Linear(1, 1.0), predictor=predictor) for _ in range(2))
    for y in (0.4, -0.2, 0.9):
        one.update(1.0, y)
        other.update(1.0, y)
        with pytest.raises(ls.PieceError):
            one.update(9.0, y)
    np.testing.assert_array_equal(one.ledger.log_q.rows, other.ledger.log_q.rows)
    assert one.n_observations == 3 and one._running.basis.dimension == 1


@pytest.mark.parametrize("predictor", [ls.Fixed([0.0]), ls.FTRL()], ids=repr)
def test_a_custom_family_with_an_atom_or_a_spike_is_refused_when_it_comes(predictor):
    def atom(y, z):
        return np.where(y == 0.0, 0.1 * z * z - 2.0, negative_log_normal(y, z))

    def spike(y, z):
        bump = -0.5 * ((y - 0.2713) / 1e-6) ** 2 - math.log(1e-6) - LOG_ROOT_TWO_PI + math.log(0.5)
        return -np.logaddexp(-negative_log_normal(y, z), bump + 0.0 * z)

    def spike_of_a_wide_law(y, z):  # wider than the narrowest law that Theta reaches
        bump = -0.5 * ((y - 0.3137) / 1e-3) ** 2 - math.log(1e-3) - LOG_ROOT_TWO_PI + math.log(0.1)
        return -np.logaddexp(-0.5 * (y * np.exp(3 * z)) ** 2 + 3 * z - LOG_ROOT_TWO_PI, bump + 0.0 * z)

    seen = "looks closely at the observed y = 0."
    for function, y, match in ((atom, 0.0, "atom"), (spike, 0.2713, seen), (spike_of_a_wide_law, 0.3137, seen)):
        sequence = ls.ConfidenceSequence(family_of(function), ls.Linear(1, 2.0), predictor=predictor)
        sequence.update(1.0, 0.7)
        with pytest.raises(ls.PieceError, match=match):
            sequence.update(1.0, y)
        assert sequence.n_observations == 1


def test_narrow_honest_custom_families_are_accepted():
    """A law of width 1e-4 next to one of width one, and outcomes at its centre, on its flank and far away."""

    def function(y, z):
        wide = -negative_log_normal(y, z) + math.log(0.5)
        narrow = -0.5 * ((y - z) / 1e-4) ** 2 - math.log(1e-4) - LOG_ROOT_TWO_PI + math.log(0.5)
        return -np.logaddexp(wide, narrow)

    family = family_of(function, z_range=(-0.5, 0.5), first=None)
    sequence = ls.ConfidenceSequence(family, ls.Linear(1, 0.5), predictor=ls.Fixed([0.0]))
    sequence.update(np.ones(4), [0.0, 1e-4, 0.3, 4.0])
    assert sequence.n_observations == 4


# -- honest forecasters ------------------------------------------------------------------------------------------


class Regression:
    """A Student t around a running ridge regression: heavier tails than the family, any location."""

    def __init__(self, df):
        self.df, self.x, self.y = df, [], []

    def forecast(self, phi):
        X, y = np.reshape(self.x, (-1, 2)), np.array(self.y)
        centre = phi.x @ np.linalg.solve(X.T @ X + np.eye(2), X.T @ y)
        outer = self

        class Student:
            def log_density(self, y):
                return t.logpdf(y, outer.df, centre, 0.6)

        return Student()

    def observe(self, phi, y):
        self.x.append(phi.x)
        self.y.append(float(y))


@pytest.mark.parametrize("df", [1, 3, 30])
def test_a_student_t_around_a_regression_is_accepted(df):
    rng = np.random.default_rng(df)
    sequence = ls.ConfidenceSequence(GAUSSIAN, ls.Linear(2, 2.0), predictor=Regression(df))
    X = rng.normal(size=(30, 2))
    sequence.update(X, GAUSSIAN.sample(X @ [0.5, -1.0], rng))
    mirror, total = Regression(df), 0.0
    for row, y, recorded in zip(X, sequence.ledger.y.rows, sequence.ledger.log_q.rows, strict=True):
        phi = type("phi", (), {"x": row})
        total += float(mirror.forecast(phi).log_density(y)) - recorded
        mirror.observe(phi, y)
    assert 0.0 <= total < 3e-6  # the charge of thirty observations together
    assert sequence.set.contains([0.5, -1.0])


def histogram(y):
    edges, heights = np.linspace(-3.0, 3.0, 25), np.arange(1.0, 25.0)
    heights /= heights.sum() * np.diff(edges)
    place = np.searchsorted(edges, np.asarray(y), side="right") - 1
    with np.errstate(divide="ignore"):
        return np.log(np.where((place >= 0) & (place < 24), heights[np.clip(place, 0, 23)], 0.0))


@pytest.mark.parametrize("sd", [1e-7, 1e-5, 0.01, 50.0])
@pytest.mark.parametrize("off", [0.0, 1.3, -3.0])
def test_honest_normal_forecasts_of_any_width_are_accepted(sd, off):
    for y in (0.3, 0.0, 1700.0):
        assert 0.0 <= charged(GAUSSIAN, lambda v, y=y: log_normal(v, y - off * sd, sd), y) < 1e-6


def test_jumps_anywhere_are_resolved():
    """A jump between the last node of a panel and its end is seen by no rule of the panel."""
    edges = around(0.0, 1e-9, 1e6)
    for width in 4.0 ** np.linspace(0.0, 1.0, 400):  # from one breakpoint to the next
        mass = integrate(lambda v, w=width: np.where(np.abs(v) < w, -math.log(2 * w), -np.inf), edges)
        assert 1.0 - 1e-6 < mass.lower <= mass.upper < 1.0 + 1e-6


@pytest.mark.parametrize("y", [-1.9, 0.25, 1.0, 2.99, 7.0])
def test_a_normalised_histogram_is_accepted(y):
    if y == 7.0:  # impossible under the histogram: allowed, and no evidence is left
        sequence = sequence_with(GAUSSIAN, histogram)
        sequence.update([1.0, 0.0], y)
        assert sequence.ledger.log_q.rows[0] == -np.inf
    else:
        assert 0.0 <= charged(GAUSSIAN, histogram, y) < 5e-6


@pytest.mark.parametrize(
    ("family", "log_density", "y"),
    [
        (ls.Poisson(), lambda y: nbinom.logpmf(y, 3, 0.4), 4),
        (ls.Poisson(), lambda y: nbinom.logpmf(y, 300, 0.01), 31_000),
        (ls.Binomial(9), lambda y: np.full(np.shape(y), -math.log(10)), 9),
        (ls.Bernoulli(), lambda y: np.log(np.where(np.asarray(y) == 1, 0.3, 0.7)), 0),
        (ls.Laplace(0.4), lambda y: log_normal(y, 0.2, 0.7), 0.1),
        (ls.Laplace(0.4), lambda y: -np.abs(np.asarray(y) - 0.123) - math.log(2), 0.9),
        (GAUSSIAN, lambda y: np.reshape(log_normal(y), np.shape(y) or (1,)), 0.3),
        (GAUSSIAN, ls.PlugIn(ls.Gaussian(0.9), 0.1), 0.3),
        (GAUSSIAN, Blend([ls.PlugIn(GAUSSIAN, 0.1), Always(log_normal)], np.log([0.5, 0.5])), 0.3),
        (ls.LogWeibull(2.0), lambda y: ls.LogWeibull(1.3).log_density(y, 0.2), (0.4, 0)),
    ],
)
def test_other_honest_forecasts_are_accepted(family, log_density, y):
    assert -1e-15 <= charged(family, log_density, y) < 1e-6


def test_formulas_that_overflow_far_out_are_accepted():
    gumbel = lambda y: np.asarray(y) - np.exp(y)  # noqa: E731
    assert charged(GAUSSIAN, gumbel, 0.3) < 1e-6


def test_outcomes_at_the_end_of_the_support_and_of_the_numbers():
    family = family_of(lambda y, z: -z - (np.exp(z) - 1.0) * np.log(y), "unit", z_range=(-1, 1))
    beta = lambda y: math.log(0.5) - 0.5 * np.log1p(-np.asarray(y))  # noqa: E731
    for y in (1e-300, 0.5, 1.0 - 1e-13, np.nextafter(1.0, 0.0)):
        assert charged(family, beta, y, bound=0.5) < (1e-2 if y < 1.0 - 1e-15 else 0.5)  # one rounding from infinity
    for y in (1e99, -1e40, 1e-310):
        assert charged(GAUSSIAN, lambda v: t.logpdf(v, 2), y) < 1e-6


def test_the_contract_suite_accepts_an_honest_forecaster_and_its_charge():
    checks.check_predictor(Always(lambda y: -np.abs(np.asarray(y) - 0.123) - math.log(2)), ls.Laplace(0.5))


# -- the quadrature itself ---------------------------------------------------------------------------------------


def test_the_rules_are_exact_for_polynomials():
    for degree in range(23):
        exact = 2.0 / (degree + 1) if degree % 2 == 0 else 0.0
        assert NODES**degree @ KRONROD == pytest.approx(exact, abs=1e-14)
        if degree < 14:
            assert NODES**degree @ GAUSS == pytest.approx(exact, abs=1e-14)


@pytest.mark.parametrize("width", [1e-6, 1e-3, 1.0, 1e4])
@pytest.mark.parametrize("y", [0.0, 3.3, -1e5])
def test_densities_of_any_width_around_y_are_resolved(y, width):
    edges = around(y, nearest_scale(y), 1e9)
    for log_density in (
        lambda v: norm.logpdf(v, y + 0.4 * width, width),
        lambda v: -np.abs(v - y - 0.4 * width) / width - np.log(2 * width),
        lambda v: np.where(np.abs(v - y - 0.4 * width) < width, -np.log(2 * width), -np.inf),
    ):
        mass = integrate(log_density, edges)
        assert 1.0 - 1e-5 < mass.lower <= mass.upper < 1.0 + 1e-5
