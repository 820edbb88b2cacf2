"""The facade: feeding observations, and bad input that must change nothing."""

import copy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import likeset as ls
from likeset.persistence.piece_states import state_of


def fresh(family=None, dim=2, **kwargs):
    return ls.ConfidenceSequence(family or ls.Poisson(), ls.Linear(dim, 2.0), **{"voices": None, **kwargs})


def fingerprint(sequence):
    ledger = sequence.ledger
    rows = [getattr(ledger, name).rows.tobytes() for name in ("x", "y", "weights", "log_q", "covariate")]
    state = state_of(sequence.forecaster)
    return rows, ledger.gains.tobytes(), {k: v.tobytes() for k, v in state.items()}


# -- feeding ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("predictor", [ls.Mixture(), ls.FTRL(), ls.VAW()], ids=repr)
@given(data=st.data())
@settings(max_examples=15, deadline=None)
def test_batches_and_single_updates_agree(predictor, data):
    n = data.draw(st.integers(2, 9))
    seed = data.draw(st.integers(0, 1000))
    rng = np.random.default_rng(seed)
    X = rng.integers(-2, 3, size=(n, 2)).astype(float)
    X[~X.any(axis=1)] = 1.0
    y = rng.poisson(1.0, size=n)
    cut = data.draw(st.integers(1, n - 1))
    one, two = fresh(predictor=predictor), fresh(predictor=predictor)
    one.update(X[:cut], y[:cut])
    one.update(X[cut:], y[cut:])
    for xi, yi in zip(X, y, strict=True):
        two.update(xi, yi)
    assert fingerprint(one) == fingerprint(two)
    np.testing.assert_array_equal(one.set.upper(X), two.set.upper(X))


def test_repeated_covariates_are_merged():
    sequence = fresh()
    sequence.update([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [-0.0, 1.0]], [1, 2, 3, 4])
    assert sequence.n_observations == 4
    assert sequence.ledger.merged.count == 2


@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
def test_one_dimensional_covariates_in_any_shape(shape):
    sequence = fresh(dim=1)
    sequence.update(np.full(shape, 0.5), 2)
    assert sequence.n_observations == 1


def test_survival_pairs_and_plain_times():
    sequence = fresh(ls.Weibull(2.0))
    sequence.update([1.0, 0.0], (0.7, 0))  # one pair
    sequence.update([1.0, 0.0], 0.9)  # one event
    sequence.update([[1.0, 0.0], [0.0, 1.0]], [0.3, 0.4])  # two events
    sequence.update([[1.0, 0.0], [0.0, 1.0]], [(0.3, 1), (0.4, 0)])  # two pairs
    np.testing.assert_array_equal(sequence.ledger.y.rows[:, 1], [0, 1, 1, 1, 1, 0])
    # Censoring is information about z from one side only.
    censored = fresh(ls.Weibull(1.0), dim=1)
    censored.update(np.ones(30), [(0.5, 0)] * 30)
    low, high = censored.set.interval([1.0])
    assert low[0] == pytest.approx(-2.0)
    assert high[0] < 0


def test_log_weibull_equals_weibull_on_the_log_scale():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(15, 2))
    times = rng.weibull(2.0, size=15)
    a, b = fresh(ls.Weibull(2.0)), fresh(ls.LogWeibull(2.0))
    a.update(X, times)
    b.update(X, np.log(times))
    np.testing.assert_allclose(a.set.upper(X), b.set.upper(X), rtol=1e-6)


def test_the_sequence_describes_itself():
    text = repr(fresh(alpha=0.1))
    assert "Poisson()" in text and "alpha=0.1" in text and "Mixture()" in text


# -- bad settings -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "argument"),
    [
        (lambda: ls.Gaussian(0.0), "sigma"),
        (lambda: ls.Gaussian(-1.0), "sigma"),
        (lambda: ls.Gaussian(np.nan), "sigma"),
        (lambda: ls.Gaussian(np.inf), "sigma"),
        (lambda: ls.Gaussian(1e-200), "sigma"),
        (lambda: ls.Gaussian(1e200), "sigma"),
        (lambda: ls.Gaussian(10**400), "sigma"),
        (lambda: ls.Linear(np.inf, 1.0), "dim"),
        (lambda: ls.Linear(2, 1e-160), "bound"),
        (lambda: ls.Linear(2, 1e160), "bound"),
        (lambda: ls.ConfidenceSequence(ls.Poisson, ls.Linear(1, 1.0)), "family"),
        (lambda: ls.ConfidenceSequence(ls.Poisson(), ls.Linear), "space"),
        (lambda: fresh(predictor=ls.FTRL), "predictor"),
        (lambda: fresh(weighting=ls.BiasWeighting), "weighting"),
        (lambda: ls.Aggregate(ls.FTRL), "predictors[0]"),
        (lambda: ls.CustomFamily(lambda y, z: y, support="real", z_range=3), "z_range"),
        (lambda: ls.CustomFamily(lambda y, z: y, support=["a", "b"]), "support"),
        (lambda: ls.Gaussian("wide"), "sigma"),
        (lambda: ls.Laplace(0), "scale"),
        (lambda: ls.Laplace(True), "scale"),
        (lambda: ls.Weibull(-2), "shape"),
        (lambda: ls.Binomial(0), "trials"),
        (lambda: ls.Binomial(2.5), "trials"),
        (lambda: ls.Linear(0, 1.0), "dim"),
        (lambda: ls.Linear(2, 0.0), "bound"),
        (lambda: ls.Linear(2, -3.0), "bound"),
        (lambda: ls.Linear(2, np.nan), "bound"),
        (lambda: ls.FTRL(penalty=0), "penalty"),
        (lambda: ls.FTRL(penalty=None), "penalty"),
        (lambda: ls.Mixture(precisions=[]), "precisions"),
        (lambda: ls.Mixture(precisions=[1.0, -1.0]), "precisions"),
        (lambda: ls.Aggregate(), "predictors"),
        (lambda: ls.Aggregate(3), "predictors[0]"),
        (lambda: ls.BiasWeighting("best"), "estimate"),
        (lambda: ls.BiasWeighting(penalty=-1), "penalty"),
        (lambda: ls.Fixed([np.nan, 1.0]), "theta"),
        (lambda: fresh(alpha=0.0), "alpha"),
        (lambda: fresh(alpha=1.0), "alpha"),
        (lambda: fresh(alpha=1.7), "alpha"),
        (lambda: fresh(alpha="5%"), "alpha"),
        (lambda: fresh(predictor="ftrl"), "predictor"),
        (lambda: fresh(weighting=0.5), "weighting"),
        (lambda: fresh(ls.Laplace(1.0), predictor=ls.VAW()), "predictor"),
        (lambda: fresh(predictor=ls.Fixed([1.0])), "theta"),
        (lambda: ls.ConfidenceSequence("poisson", ls.Linear(1, 1.0)), "family"),
        (lambda: ls.ConfidenceSequence(ls.Poisson(), 3), "space"),
        (lambda: ls.ConfidenceSequence(ls.Poisson(), ls.Linear(1, np.inf), weighting=ls.BiasWeighting()), "weighting"),
        (lambda: ls.CustomFamily(3, support="real"), "negative_log_density"),
        (lambda: ls.CustomFamily(lambda y, z: y, support="integers"), "support"),
        (lambda: ls.CustomFamily(lambda y, z: y, support="real", z_range=(1, 0)), "z_range"),
    ],
)  # fmt: skip
def test_bad_settings_name_argument_value_and_remedy(make, argument):
    with pytest.raises(ls.InvalidArgumentError) as caught:
        make()
    assert caught.value.argument == argument
    assert caught.value.remedy
    assert isinstance(caught.value, ValueError)
    assert str(caught.value).startswith(argument)


def test_custom_family_pieces_are_checked():
    with pytest.raises(ls.PieceError, match="integrates to"):
        ls.CustomFamily(lambda y, z: 0.5 * (y - z) ** 2, support="real")
    with pytest.raises(ls.PieceError, match="first derivative"):
        ls.CustomFamily(
            lambda y, z: 0.5 * (y - z) ** 2 + 0.5 * np.log(2 * np.pi), support="real", first=lambda y, z: y - z
        )
    with pytest.raises(ls.PieceError, match="vectorised"):
        ls.CustomFamily(lambda y, z: 1.0, support="real")
    with pytest.raises(ls.PieceError, match="failed on arrays"):
        ls.CustomFamily(lambda y, z: y.nonsense(), support="real")
    with pytest.raises(ls.NotConvexError):
        ls.CustomFamily(lambda y, z: np.log(np.pi) + np.log1p((y - z) ** 2), support="real", convex=True)


# -- bad data: a typed error, and nothing changed ------------------------------------------------------------------

BAD_UPDATES = [
    (ls.Poisson(), [1.0, np.nan], 1, "x"),
    (ls.Poisson(), [np.inf, 0.0], 1, "x"),
    (ls.Poisson(), [1.0, 2.0, 3.0], 1, "x"),
    (ls.Poisson(), [[1.0, 0.0], [1.0]], [1, 2], "x"),
    (ls.Poisson(), ["a", "b"], 1, "x"),
    (ls.Poisson(), [1.0 + 2j, 0.0], 1, "x"),
    (ls.Poisson(), None, 1, "x"),
    (ls.Poisson(), [1.0, 0.0], None, "y"),
    (ls.Poisson(), [1.0, 0.0], "three", "y"),
    (ls.Poisson(), [1.0, 0.0], np.nan, "y"),
    (ls.Poisson(), [1.0, 0.0], np.inf, "y"),
    (ls.Poisson(), [1.0, 0.0], 1e200, "y"),
    (ls.Poisson(), [1.0, 0.0], 1e17, "y[0]"),
    (ls.Poisson(), [1e200, 0.0], 1, "x"),
    (ls.Poisson(), [10**400, 0], 1, "x"),
    (ls.Poisson(), np.array(["1", "0"], dtype=object), 1, "x"),
    (ls.Poisson(), np.ma.masked_array([1.0, 2.0], [False, True]), 1, "x"),
    (ls.Gaussian(1.0), [1.0, 0.0], 1e200, "y"),
    (ls.Poisson(), [1.0, 0.0], -1, "y[0]"),
    (ls.Poisson(), [1.0, 0.0], 1.5, "y[0]"),
    (ls.Poisson(), [1.0, 0.0], [1, 2], "y"),
    (ls.Poisson(), [[1.0, 0.0], [0.0, 1.0]], [1, -2], "y[1]"),
    (ls.Bernoulli(), [1.0, 0.0], 2, "y[0]"),
    (ls.Binomial(3), [1.0, 0.0], 4, "y[0]"),
    (ls.Gaussian(1.0), [1.0, 0.0], [[1.0, 2.0]], "y"),
    (ls.Weibull(2.0), [1.0, 0.0], 0.0, "y[0]"),
    (ls.Weibull(2.0), [1.0, 0.0], -0.3, "y[0]"),
    (ls.Weibull(2.0), [1.0, 0.0], (0.3, 2), "y[0]"),
    (ls.Weibull(2.0), [1.0, 0.0], 1e200, "y"),
    (ls.Weibull(8.0), [1.0, 0.0], 1e50, "y[0]"),
    (ls.LogWeibull(2.0), [1.0, 0.0], 800.0, "y[0]"),
    (ls.Laplace(1.0), [1.0, 0.0], [], "y"),
]


@pytest.mark.parametrize(("family", "x", "y", "argument"), BAD_UPDATES)
def test_bad_observations_change_nothing(family, x, y, argument):
    sequence = fresh(family)
    good = family.sample(np.array([0.1, 0.2]), np.random.default_rng(0))
    sequence.update([[1.0, 0.0], [0.5, 0.5]], good)
    before = fingerprint(sequence)
    upper = sequence.set.upper([1.0, 0.0])
    with pytest.raises(ls.InvalidArgumentError) as caught:
        sequence.update(x, y)
    assert caught.value.argument == argument
    assert fingerprint(sequence) == before
    assert sequence.set.upper([1.0, 0.0]) == upper
    sequence.update([1.0, 0.0], good[:1])
    assert sequence.n_observations == 3


@pytest.mark.parametrize(
    "call",
    [
        lambda s: s.upper([1.0, np.nan]),
        lambda s: s.upper([1.0]),
        lambda s: s.lower("x"),
        lambda s: s.interval([[1.0, 2.0, 3.0]]),
        lambda s: s.contains([np.inf, 0.0]),
        lambda s: s.contains([1.0]),
        lambda s: s.log_ratio(None),
        lambda s: s.support([1.0, 0.0], covariate_weights=[0.5]),
        lambda s: s.support([1.0, 0.0], covariate_weights=[0.5, 1.5]),
        lambda s: s.support([1.0, 0.0], covariate_weights=[-0.1, 1.0]),
        lambda s: s.support([1.0, 0.0], level=np.nan),
        lambda s: s.boundary(0),
        lambda s: s.boundary("many"),
    ],
)
def test_bad_queries(call):
    sequence = fresh()
    sequence.update([[1.0, 0.0], [0.0, 1.0]], [1, 2])
    with pytest.raises(ls.InvalidArgumentError):
        call(sequence.set)


def test_boundary_needs_two_dimensions():
    sequence = fresh(dim=3)
    with pytest.raises(ls.InvalidArgumentError, match="dim"):
        sequence.set.boundary()


class Scripted:
    """A user's predictor and weighting in one, whose answers the test chooses, and which breaks on demand."""

    def __init__(self, forecasts=None, weights=None, fail_observe_at=None):
        self.forecasts, self.weights, self.fail_observe_at = forecasts, weights, fail_observe_at
        self.n = 0

    def forecast(self, phi):
        make = (self.forecasts or {}).get(self.n)
        return make if make is not None else ls.PlugIn(ls.Poisson(), 0.0)

    def weight(self, phi):
        return (self.weights or {}).get(self.n, 1.0)

    def observe(self, phi, y):
        if self.n == self.fail_observe_at:
            raise RuntimeError("out of memory")
        self.n += 1


class Density:
    def __init__(self, function):
        self.log_density = function


@pytest.mark.parametrize("weight", [1.2, -0.1, np.nan, np.inf, None, "heavy", [0.5, 0.5]])
def test_a_bad_weight_in_the_middle_of_a_batch_changes_nothing(weight):
    sequence = fresh(weighting=Scripted(weights={3: weight}))
    sequence.update([1.0, 0.0], 1)
    before = fingerprint(sequence)
    with pytest.raises(ls.PieceError, match=r"\[0, 1\]"):
        sequence.update([[1.0, 0.0]] * 5, [1, 2, 0, 1, 1])
    assert fingerprint(sequence) == before
    assert sequence._running.weigher.n == 1
    sequence.update([[1.0, 0.0]] * 2, [1, 2])
    assert sequence.n_observations == 3


@pytest.mark.parametrize(
    "log_density",
    [
        lambda y: np.zeros_like(y),  # probability one for every count
        lambda y: np.full_like(y, np.nan),
        lambda y: np.full_like(y, np.inf),
        lambda y: ls.Poisson().log_density(y, 0.0) + 0.1,
        lambda y: -1.0,  # not vectorised
        lambda y: "likely",
        lambda y: np.zeros((2, 2)),
    ],
)
def test_a_forecast_that_is_no_density_changes_nothing(log_density):
    sequence = fresh(predictor=Scripted(forecasts={2: Density(log_density)}))
    sequence.update([1.0, 0.0], 1)
    before = fingerprint(sequence)
    with pytest.raises(ls.PieceError):
        sequence.update([[1.0, 0.0]] * 4, [1, 2, 0, 1])
    assert fingerprint(sequence) == before
    assert sequence.forecaster.n == 1


def test_a_plug_in_of_another_family_is_inspected():
    """PlugIn(Gaussian) for counts: a density on the line, but not a probability mass function."""
    sequence = fresh(predictor=Scripted(forecasts={0: ls.PlugIn(ls.Gaussian(0.1), 0.0)}))
    with pytest.raises(ls.PieceError, match="integrates"):
        sequence.update([1.0, 0.0], 1)


@pytest.mark.parametrize("wrap", [lambda p: p, lambda p: ls.Aggregate(p, ls.FTRL())], ids=["own", "in an aggregate"])
def test_a_predictor_that_crashes_changes_nothing(wrap):
    sequence = fresh(predictor=wrap(Scripted(fail_observe_at=2)))
    sequence.update([1.0, 0.0], 1)
    before = fingerprint(sequence)
    with pytest.raises(RuntimeError, match="out of memory"):
        sequence.update([[1.0, 0.0]] * 4, [1, 2, 0, 1])
    assert fingerprint(sequence) == before


def test_a_failing_function_leaves_the_basis_alone():
    sequence = fresh(predictor=ls.Fixed(lambda x: np.nan if x[1] else 0.0))
    sequence.update([1.0, 0.0], 1)
    with pytest.raises(ls.PieceError):
        sequence.update([0.0, 1.0], 1)
    assert sequence._running.basis.dimension == 1


def test_forecasts_that_hide_their_mass():
    """Beyond the grid of the check, at the observed y, in unnormalised blends, in densities of other families."""
    from likeset.predictors import Blend

    def seen(family, forecast, y, bound=2.0):
        space = ls.Linear(2, bound)
        ls.ConfidenceSequence(family, space, predictor=Scripted(forecasts={0: forecast})).update([1.0, 0.0], y)

    poisson, gaussian = ls.Poisson(), ls.Gaussian(0.5)
    spike = Density(lambda y: np.where(np.asarray(y) > 1e5, 50.0, poisson.log_density(y, 0.0)))
    tall = Density(lambda y: 3.0 + gaussian.log_density(y, 20.0))
    censored = Density(lambda y: np.where(y[..., 1] == 0, 30.0, ls.Weibull(2.0).log_density(y, 0.0)))
    double = Blend([ls.PlugIn(gaussian, 0.0), ls.PlugIn(gaussian, 0.1)], np.zeros(2))
    for family, forecast, y in [
        (poisson, spike, 200_000),
        (gaussian, tall, 20.0),
        (ls.Weibull(2.0), censored, (0.5, 0)),
        (gaussian, double, 0.0),
        (gaussian, ls.PlugIn(ls.CustomFamily(lambda y, z: 0 * y + 0 * z + np.log(2), support=[0, 1]), 0.0), 0.5),
        (ls.Binomial(5), ls.PlugIn(ls.Binomial(2), 0.0), 5),
    ]:
        with pytest.raises(ls.PieceError):
            seen(family, forecast, y, bound=100.0)


def test_alpha_is_fixed():
    with pytest.raises(AttributeError):
        fresh().alpha = 0.5


def test_a_running_forecaster_is_not_shared():
    running = ls.FTRL().start(ls.Poisson(), ls.Linear(2, 2.0))
    a, b = fresh(predictor=running), fresh(predictor=running)
    a.update([[1.0, 0.0]] * 3, [5, 5, 5])
    b.update([1.0, 0.0], 5)
    assert b.ledger.log_q.rows[0] == a.ledger.log_q.rows[0]


def test_a_piece_that_cannot_be_copied_is_refused():
    class Uncopyable(Scripted):
        def __deepcopy__(self, memo):
            raise TypeError("holds a socket")

    sequence = fresh(predictor=Uncopyable())
    with pytest.raises(ls.PieceError, match="__deepcopy__"):
        sequence.update([1.0, 0.0], 1)
    assert sequence.n_observations == 0


def test_sequences_do_not_share_state():
    predictor = ls.FTRL()
    a, b = fresh(predictor=predictor), fresh(predictor=predictor)
    a.update([[1.0, 0.0]] * 3, [5, 5, 5])
    b.update([1.0, 0.0], 5)
    c = copy.deepcopy(a)
    c.update([1.0, 0.0], 1)
    assert (a.n_observations, b.n_observations, c.n_observations) == (3, 1, 4)
    assert b.ledger.log_q.rows[0] == a.ledger.log_q.rows[0]
