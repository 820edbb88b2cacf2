"""Exposure, trials, offsets, times of entry: laws, sums, files, validity, and what goes wrong without them."""

from __future__ import annotations

import copy
import sqlite3

import numpy as np
import pytest
from scipy.stats import binom, nbinom, norm, poisson

import likeset as ls
from likeset import checks
from likeset.errors import InvalidArgumentError, ObservationError, PieceError, ShapeError
from test_persistence import reshaped, rewritten

ALPHA = 0.1
ARMS = np.array([[np.cos(t), np.sin(t)] for t in np.linspace(0, np.pi, 6, endpoint=False)])
THETA = np.array([0.6, -0.5])
THETAS = np.array([[0.3, 0.2], [-0.9, 0.8], [0.0, 0.0]])


def started(family, predictor=None, voices="auto", bound=1.5, weighting=None, alarm="auto"):
    return ls.ConfidenceSequence(family, ls.Linear(2, bound), ALPHA, predictor, weighting, voices, alarm=alarm)


def same_sets(one, other):
    assert np.array_equal(one.set.log_ratio(THETAS), other.set.log_ratio(THETAS))
    assert np.array_equal(one.set.upper(ARMS), other.set.upper(ARMS))


def rows_of(family, rng, n=40):
    """Covariates, outcomes and what is given, of a family whose rows have sizes."""
    x = ARMS[rng.integers(len(ARMS), size=n)]
    z = x @ THETA
    if family.size_name == "trials":
        sizes = rng.integers(1, 30, size=n).astype(float)
        return x, rng.binomial(sizes.astype(int), 1 / (1 + np.exp(-z))).astype(float), {"trials": sizes}
    sizes = rng.uniform(0.05, 20.0, size=n)
    return x, rng.poisson(sizes * np.exp(z)).astype(float), {"exposure": sizes}


SIZED = [ls.Poisson(), ls.Bernoulli(), ls.Binomial(4)]


# -- the likelihood -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", SIZED, ids=repr)
@pytest.mark.parametrize("voices", [None, "auto"])
def test_the_ratio_is_that_of_the_textbook(family, voices):
    x, y, given = rows_of(family, np.random.default_rng(0))
    sequence = started(family, voices=voices)
    sequence.update(x, y, **given)
    sizes = next(iter(given.values()))
    z = THETAS @ x.T
    law = binom.logpmf(y, sizes, 1 / (1 + np.exp(-z))) if "trials" in given else poisson.logpmf(y, sizes * np.exp(z))
    by_hand = sequence.ledger.log_q.rows.sum() - law.sum(axis=1)
    if voices is None:
        assert sequence.set.log_ratio(THETAS) == pytest.approx(by_hand, abs=1e-9)
    assert sequence.set.log_ratio_by_covariate(THETAS).sum(axis=1) == pytest.approx(by_hand, abs=1e-9)
    assert len(sequence.ledger.owners.rows) <= len(ARMS) * (1 if voices is None else 24)  # sizes split no group


def test_exposure_is_an_offset_of_its_logarithm():
    x, y, given = rows_of(ls.Poisson(), np.random.default_rng(1))
    one, other, both = started(ls.Poisson()), started(ls.Poisson()), started(ls.Poisson())
    one.update(x, y, exposure=given["exposure"])
    other.update(x, y, offset=np.log(given["exposure"]))
    both.update(x, y, exposure=given["exposure"] / 3.0, offset=np.log(3.0))
    for sequence in (other, both):
        assert sequence.set.log_ratio(THETAS) == pytest.approx(one.set.log_ratio(THETAS), abs=1e-8)
        assert sequence.set.upper(ARMS) == pytest.approx(one.set.upper(ARMS), abs=1e-6)


def test_exposure_one_and_the_familys_own_trials_change_nothing():
    rng = np.random.default_rng(2)
    for family, given in (
        (ls.Poisson(), {"exposure": 1.0}),
        (ls.Binomial(4), {"trials": 4}),
        (ls.Bernoulli(), {"trials": 1}),
    ):
        x = ARMS[rng.integers(len(ARMS), size=30)]
        y = family.sample(x @ THETA, rng)
        plain, sized = started(family), started(family)
        plain.update(x, y)
        sized.update(x, y, **given)
        same_sets(plain, sized)


@pytest.mark.parametrize("predictor", [None, ls.FTRL(), ls.VAW(), ls.Fixed(THETA)], ids=repr)
def test_offsets_of_gaussian_noise_are_subtracted(predictor):
    rng = np.random.default_rng(3)
    x, offset = ARMS[rng.integers(len(ARMS), size=30)], rng.normal(scale=50.0, size=30)
    y = x @ THETA + rng.normal(scale=0.3, size=30)
    # Without the alarm, which looks for a mean bent with the forecast, offset and all.
    plain, moved = (started(ls.Gaussian(0.3), predictor, alarm=False) for _ in range(2))
    plain.update(x, y)
    moved.update(x, y + offset, offset=offset)
    if isinstance(predictor, ls.VAW):  # its look ahead at y = 0 is not the same problem once zero has moved
        assert moved.set.log_ratio_by_covariate(THETAS[:1]).shape == plain.set.log_ratio_by_covariate(THETAS[:1]).shape
        law = norm.logpdf(y[None], THETAS @ x.T, 0.3).sum(axis=1)
        by_hand = moved.ledger.log_q.rows.sum() - law
        assert moved.set.log_ratio_by_covariate(THETAS).sum(axis=1) == pytest.approx(by_hand, abs=1e-8)
    else:
        assert moved.set.log_ratio(THETAS) == pytest.approx(plain.set.log_ratio(THETAS), abs=1e-8)
        assert moved.set.upper(ARMS) == pytest.approx(plain.set.upper(ARMS), abs=1e-6)


def test_rows_of_trials_are_the_likelihood_of_their_trials():
    """n rows of one trial, or one row (n, sum): the same likelihood of theta, whatever the forecasts were."""
    rng = np.random.default_rng(4)
    apart, together = started(ls.Bernoulli(), voices=None), started(ls.Bernoulli(), voices=None)
    for arm in ARMS:
        y = (rng.random(25) < 1 / (1 + np.exp(-arm @ THETA))).astype(float)
        apart.update(np.tile(arm, (25, 1)), y)
        together.update(arm, y.sum(), trials=25)
    difference = apart.set.log_ratio(THETAS) - together.set.log_ratio(THETAS)
    assert difference == pytest.approx(np.full(3, difference[0]), abs=1e-9)
    assert abs(difference[0]) < 0.2  # nats: beliefs that are nearly exact lose next to nothing by being frozen
    assert together.set.upper(ARMS) == pytest.approx(apart.set.upper(ARMS), abs=0.1)


# -- validity -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("predictor", [None, ls.FTRL(), ls.VAW(), ls.Aggregate(ls.FTRL(), ls.Mixture())], ids=repr)
@pytest.mark.parametrize("family", [*SIZED, ls.Gaussian(0.3)], ids=repr)
def test_one_step_growth_with_what_is_given(family, predictor):
    for weighting in (None, ls.BiasWeighting()) if predictor is None else (None,):
        sequence = started(family, predictor, voices=None, weighting=weighting)
        if isinstance(family, ls.Gaussian):
            sequence.update(ARMS[:3], [3.0, -2.0, 0.4], offset=[2.5, -2.5, 0.0])
            probes = [{"offset": 30.0}]
        else:
            x, y, given = rows_of(family, np.random.default_rng(5), n=6)
            sequence.update(x, y, **given)
            probes = [{next(iter(given)): size} for size in (12,)]
        for given in probes:
            checks.check_growth(sequence, ARMS[1], THETAS, **given)


def test_the_check_sees_a_forecast_for_another_number_of_trials():
    class Forgetful:  # a density for one trial, repeated: no density of the number of successes
        def forecast(self, phi):
            return ls.PlugIn(ls.Binomial(1), 0.0)

        def observe(self, phi, y):
            pass

    sequence = started(ls.Bernoulli(), Forgetful())
    with pytest.raises(PieceError):
        sequence.update(ARMS[0], 3, trials=5)
    assert sequence.n_observations == 0


def adaptive_misses(family, runs, steps, seed, record=lambda sequence, x, y, given: sequence.update(x, y, **given)):
    """Runs in which theta* ever leaves the set; covariates by optimism, sizes by the past."""
    count = 0
    for run in range(runs):
        rng = np.random.default_rng([seed, run])
        theta = rng.normal(size=2)
        theta *= 1.5 * np.sqrt(rng.uniform()) / np.linalg.norm(theta)
        sequence = started(family)
        size = 5.0
        for _ in range(steps):
            x = ARMS[int(np.argmax(sequence.set.upper(ARMS) + 1e-6 * rng.uniform(size=len(ARMS))))]
            z = x @ theta
            if family.size_name == "trials":
                y, given = rng.binomial(int(size), 1 / (1 + np.exp(-z))), {"trials": size}
            else:
                y, given = rng.poisson(size * np.exp(z)), {"exposure": size}
            record(sequence, x, float(y), given)
            if not sequence.set.contains(theta):
                count += 1
                break
            size = float(1 + y % 17)  # the next day's size depends on all that was seen
    return count


@pytest.mark.parametrize("family", SIZED[:2], ids=repr)
def test_adaptive_sizes_keep_coverage(family):
    """False alarm below 1e-6: misses are at most Binomial(40, 0.1)."""
    assert adaptive_misses(family, 40, 12, 11) <= binom.ppf(1 - 1e-6, 40, ALPHA)


def test_exposure_that_depends_on_y_fails():
    """Negative control: days without counts are forgotten together with their exposure."""
    missed = 0
    for run in range(20):
        rng = np.random.default_rng([12, run])
        x = ARMS[rng.integers(len(ARMS), size=80)]
        y = rng.poisson(0.3 * np.exp(x @ THETA)).astype(float)
        sequence = started(ls.Poisson(), voices=None)
        sequence.update(x[y > 0], y[y > 0], exposure=0.3)
        missed += not sequence.set.contains(THETA)
    assert missed > binom.ppf(1 - 1e-6, 20, ALPHA)


# -- files, journals, undo ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("predictor", [None, ls.FTRL()], ids=repr)
@pytest.mark.parametrize("family", SIZED, ids=repr)
def test_files_and_journals_continue_bit_for_bit(family, predictor, tmp_path):
    x, y, given = rows_of(family, np.random.default_rng(6))
    ((name, sizes),) = given.items()
    first, second = {name: sizes[:20]}, {name: sizes[20:]}
    sequence = started(family, predictor)
    sequence.update(x[:20], y[:20], **first)
    sequence.save(tmp_path / "file")
    loaded = ls.load(tmp_path / "file")
    for _ in range(2):
        with ls.ConfidenceSequence.open(tmp_path / "journal", family, sequence.space, ALPHA, predictor) as durable:
            if not durable.n_observations:
                durable.update(x[:20], y[:20], **first)
            same_sets(durable, sequence)
    sequence.update(x[20:], y[20:], **second)
    loaded.update(x[20:], y[20:], **second)
    with ls.ConfidenceSequence.open(tmp_path / "journal", family, sequence.space, ALPHA, predictor) as durable:
        durable.update(x[20:], y[20:], **second)
        for other in (loaded, durable, copy.deepcopy(sequence)):
            same_sets(other, sequence)
            assert np.array_equal(other.ledger.given.rows, sequence.ledger.given.rows)


@pytest.mark.parametrize(
    "change",
    [
        lambda a: a * np.nan,
        lambda a: a + np.array([0.0, -1e3, 0.0]),
        lambda a: a + np.array([400.0, 0.0, 0.0]),
        lambda a: np.where(np.isinf(a), 1.0, a),
        lambda a: a[:, :2].copy(),
        lambda a: a[:-1],
    ],
)
def test_what_is_given_in_a_damaged_file(change, tmp_path):
    sequence = started(ls.Poisson())
    sequence.update(ARMS, [1, 0, 2, 3, 1, 0], exposure=2.0)
    sequence.save(tmp_path / "file")
    path = rewritten(tmp_path / "file", reshaped("ledger/given.npy", change))
    with pytest.raises(ls.FileFormatError, match="damaged"):
        ls.load(path)


def test_a_journal_of_version_2_is_read_and_continued(tmp_path):
    path, space = tmp_path / "journal", ls.Linear(2, 1.5)
    with ls.ConfidenceSequence.open(path, ls.Poisson(), space) as durable:
        durable.update(ARMS, [1, 0, 2, 3, 1, 0])
    with sqlite3.connect(path) as connection:  # as it was: no such column
        connection.execute("ALTER TABLE rows DROP COLUMN given")
        connection.execute("DELETE FROM states")
        connection.execute("PRAGMA user_version = 2")
    connection.close()
    plain = ls.ConfidenceSequence(ls.Poisson(), space)
    plain.update(ARMS, [1, 0, 2, 3, 1, 0])
    with ls.ConfidenceSequence.open(path, ls.Poisson(), space) as durable:
        same_sets(durable, plain)
        durable.update(ARMS[0], 30, exposure=12.0)
    plain.update(ARMS[0], 30, exposure=12.0)
    with ls.ConfidenceSequence.open(path, ls.Poisson(), space) as durable:
        same_sets(durable, plain)


def test_a_batch_that_fails_in_the_middle_leaves_nothing():
    class Fails:
        def __init__(self):
            self.seen = []

        def forecast(self, phi):
            if len(self.seen) == 3:
                raise RuntimeError("enough")
            return ls.PlugIn(phi.law_or(ls.Poisson()), 0.1 * len(self.seen))

        def observe(self, phi, y):
            self.seen.append((phi.given.size, float(y)))

    sequence = started(ls.Poisson(), Fails())
    sequence.update(ARMS[0], 3, exposure=2.0)
    before = {k: v.copy() for k, v in sequence.ledger.state().items()}
    with pytest.raises(RuntimeError):
        sequence.update(ARMS[:4], [1, 2, 3, 4], exposure=[1.0, 2.0, 3.0, 4.0])
    assert all(np.array_equal(before[k], v) for k, v in sequence.ledger.state().items())
    assert sequence.forecaster.seen == [(2.0, 3.0)]
    sequence.update(ARMS[1], 9, exposure=4.0)
    assert sequence.forecaster.seen == [(2.0, 3.0), (4.0, 9.0)]


# -- refusals -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("family", "y", "given", "error"),
    [
        (ls.Gaussian(), 1.0, {"exposure": 2.0}, InvalidArgumentError),
        (ls.Poisson(), 1, {"trials": 2}, InvalidArgumentError),
        (ls.Bernoulli(), 1, {"exposure": 2}, InvalidArgumentError),
        (ls.Bernoulli(), 3, {"trials": 2}, ObservationError),
        (ls.Bernoulli(), 3, {}, ObservationError),
        (ls.Bernoulli(), 1, {"trials": 2.5}, InvalidArgumentError),
        (ls.Bernoulli(), 1, {"trials": 0}, InvalidArgumentError),
        (ls.Bernoulli(), 1, {"trials": 1e9}, InvalidArgumentError),
        (ls.Bernoulli(), 1, {"trials": [2, 3]}, ShapeError),
        (ls.Bernoulli(), [1, 1], {"trials": 2}, ShapeError),
        (ls.Poisson(), 1, {"exposure": 0.0}, InvalidArgumentError),
        (ls.Poisson(), 1, {"exposure": -1.0}, InvalidArgumentError),
        (ls.Poisson(), 1, {"exposure": np.nan}, InvalidArgumentError),
        (ls.Poisson(), 1, {"exposure": "a day"}, InvalidArgumentError),
        (ls.Poisson(), 1, {"offset": 400.0}, InvalidArgumentError),
        (ls.Poisson(), 1, {"offset": np.inf}, InvalidArgumentError),
        (ls.Poisson(), 1, {"offset": [[1.0, 2.0]]}, ShapeError),
    ],
)  # fmt: skip
def test_refusals_come_before_anything_changes(family, y, given, error):
    sequence = started(family)
    with pytest.raises(error):
        sequence.update(ARMS[0], y, **given)
    assert sequence.n_observations == 0


def test_checks_refuse_names_that_update_does_not_know():
    with pytest.raises(InvalidArgumentError):
        checks.one_step_growth(started(ls.Poisson()), ARMS[0], THETA, exposures=2.0)


def test_a_forecaster_of_ones_own_sees_what_is_given():
    """And may forecast with any density of the row's outcomes; what is none is refused."""

    class Own:
        def __init__(self, make):
            self.make = make

        def forecast(self, phi):
            return self.make(phi)

        def observe(self, phi, y):
            pass

    class Counts:
        def __init__(self, mean):
            self.mean = mean

        def log_density(self, y):
            return nbinom.logpmf(y, 3.0, 3.0 / (3.0 + self.mean))

    sequence = started(ls.Poisson(), Own(lambda phi: Counts(phi.given.size)))
    sequence.update(ARMS[0], 30, exposure=24.0)
    assert sequence.ledger.log_q.rows[0] == pytest.approx(nbinom.logpmf(30, 3.0, 3.0 / 27.0))
    checks.check_growth(sequence, ARMS[1], THETAS, exposure=7.0)
    sequence = started(ls.Bernoulli(), Own(lambda phi: ls.PlugIn(phi.law, 0.2)))
    sequence.update(ARMS[0], 3, trials=10)
    assert sequence.ledger.log_q.rows[0] == pytest.approx(binom.logpmf(3, 10, 1 / (1 + np.exp(-0.2))))
