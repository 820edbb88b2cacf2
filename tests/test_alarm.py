"""The alarm: what it hears, what it costs, validity, files."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from scipy.stats import binom

import likeset as ls
from likeset import checks
from likeset.families.answers import outside

SPACE = ls.Linear(3, 2.0)
THETA = np.array([0.8, -0.5, 0.3])


def told(family, y_of, n=500, seed=0, alarm=True, voices="auto"):
    """A sequence that believes in ``family`` and sees y_of(z, rng), with looks every 50 rows until it is refuted."""
    rng = np.random.default_rng([51, seed])
    sequence = ls.ConfidenceSequence(family, SPACE, 0.05, alarm=alarm, voices=voices)
    for _ in range(n // 50):
        x = rng.normal(size=(50, 3)) / np.sqrt(3)
        sequence.update(x, y_of(x @ THETA, rng))
        if sequence.set.is_empty:
            return sequence, True
    return sequence, False


DEPARTURES = {
    "sigma told at half": (ls.Gaussian(0.5), lambda z, rng: rng.normal(z, 1.0)),
    "sigma told at double": (ls.Gaussian(2.0), lambda z, rng: rng.normal(z, 1.0)),
    "heavy tails": (ls.Gaussian(1.0), lambda z, rng: z + rng.standard_t(2, size=len(z))),
    "intercept missing": (ls.Gaussian(1.0), lambda z, rng: rng.normal(z + 1.0, 1.0)),
    "theta beyond the bound": (ls.Gaussian(1.0), lambda z, rng: rng.normal(5 * z, 1.0)),
    "variance twice the mean": (ls.Poisson(), lambda z, rng: rng.negative_binomial(np.exp(z), 0.5)),
    "shape 0.7 told for 1.4": (ls.Weibull(0.7), lambda z, rng: lifetimes(z, 1.4, rng)),
    "shape 3 told for 1.4": (ls.Weibull(3.0), lambda z, rng: lifetimes(z, 1.4, rng)),
}


def lifetimes(z, shape, rng):
    return np.column_stack([(rng.exponential(size=len(z)) / np.exp(z)) ** (1 / shape), np.ones(len(z))])


@pytest.mark.parametrize("departure", DEPARTURES)
def test_the_alarm_rings(departure):
    family, y_of = DEPARTURES[departure]
    for seed in range(2):
        sequence, rang = told(family, y_of, seed=seed)
        assert rang
        assert "refuted at level 0.05" in str(sequence.set.diagnose())
        if (
            departure != "theta beyond the bound"
        ):  # the model's own forecasts go there, and the set is empty without help
            assert sequence.set.diagnose().nats.max() > 0


@pytest.mark.parametrize("family", [ls.Gaussian(1.0), ls.Poisson(), ls.Weibull(1.4)], ids=repr)
def test_a_right_model_is_not_refuted(family):
    """False-alarm probability of the test below 1e-6."""
    alarms = sum(told(family, lambda z, rng: family.sample(z, rng), n=100, seed=seed)[1] for seed in range(5))
    assert alarms <= binom.ppf(1 - 1e-6, 5, 0.05)


@pytest.mark.parametrize(
    "family", [ls.Gaussian(0.7), ls.LogNormal(0.7), ls.Laplace(0.7), ls.Weibull(1.4), ls.LogWeibull(1.4)], ids=repr
)
def test_alternatives_of_real_outcomes_are_densities(family):
    logs = isinstance(family, ls.LogNormal | ls.Weibull)
    t = np.linspace(-45.0, 45.0, 1801)  # y, or its logarithm
    y = np.exp(t) if logs else t
    if family.observation_shape:
        y = np.column_stack([y, np.ones(len(y))])
    assert_normalised(outside(family), y, (t if logs else 0.0) + np.log(t[1] - t[0]), 2e-3)


def test_alternatives_of_lifetimes_with_an_entry_are_densities():
    for family, entry in ((ls.Weibull(1.4), 0.8), (ls.LogWeibull(1.4), -0.3)):
        laws = outside(family._with_entry(entry))
        start = np.log(entry) if isinstance(family, ls.Weibull) else entry
        t = start + (np.arange(5000) + 0.5) * 4e-3
        times = np.exp(t) if isinstance(family, ls.Weibull) else t
        jacobian = t if isinstance(family, ls.Weibull) else 0.0
        assert_normalised(laws, np.column_stack([times, np.ones(len(t))]), jacobian + np.log(4e-3), 3e-3)


@pytest.mark.parametrize("family", [ls.Poisson(), ls.Binomial(7), ls.Bernoulli()], ids=repr)
def test_alternatives_of_counts_are_probabilities(family):
    top = 1500 if isinstance(family, ls.Poisson) else family.trials
    assert_normalised(outside(family), np.arange(top + 1.0), 0.0, 1e-6)


def assert_normalised(laws, outcomes, log_weights, tolerance):
    """The laws and the family's own have mass one; the slope is the derivative of the family's own."""
    found = np.array([[laws.own(y, 0.4, 0.0), *laws.log_densities(y, 0.4, 0.3)] for y in outcomes])
    with np.errstate(under="ignore"):
        mass = np.exp(found + np.reshape(log_weights * np.ones(len(outcomes)), (-1, 1))).sum(axis=0)
    np.testing.assert_allclose(mass, 1.0, atol=tolerance)
    assert len(laws.names) == found.shape[1] - 1
    for y in outcomes[:: max(1, len(outcomes) // 7)]:
        numeric = (laws.own(y, 0.4 + 1e-6, 0.0) - laws.own(y, 0.4 - 1e-6, 0.0)) / 2e-6
        assert laws.slope(y, 0.4) == pytest.approx(numeric, rel=1e-4, abs=1e-4)
    assert laws.information(0.4) > 0.0


@pytest.mark.parametrize("family", [ls.Gaussian(0.7), ls.Poisson(), ls.Binomial(7), ls.Weibull(1.4)], ids=repr)
def test_the_familys_own_law_is_the_familys(family):
    rng = np.random.default_rng(9)
    for y in family.observations(family.sample(np.full(5, 0.3), rng)):
        assert outside(family).own(y, 0.2, 0.0) == pytest.approx(float(np.ravel(family.log_density(y, 0.2))[0]))


@pytest.mark.parametrize("voices", [None, "auto", ls.Windows(np.eye(3), 0.6)], ids=["joint", "auto", "windows"])
@pytest.mark.parametrize("family", [ls.Gaussian(0.5), ls.Poisson(), ls.Binomial(3)], ids=repr)
def test_one_step_growth_is_at_most_one(family, voices):
    rng = np.random.default_rng(1)
    sequence = ls.ConfidenceSequence(family, SPACE, 0.1, alarm=True, voices=voices)
    x = rng.normal(size=(8, 3))
    sequence.update(x, family.sample(x @ THETA, rng))
    checks.check_growth(sequence, [0.3, 0.2, -0.5], [THETA, [0.0, 0.0, 0.0]])


def test_the_price_is_a_tenth_of_a_nat():
    rng = np.random.default_rng(2)
    x = rng.normal(size=(60, 3))
    y = x @ THETA + rng.normal(size=60)
    with_alarm, without = (ls.ConfidenceSequence(ls.Gaussian(1.0), SPACE, alarm=a) for a in (True, False))
    for sequence in (with_alarm, without):
        sequence.update(x, y)
    for theta in (THETA, np.zeros(3), -THETA):
        assert with_alarm.set.log_ratio(theta) >= without.set.log_ratio(theta) + np.log(0.9) - 1e-9
    with pytest.raises(ls.InvalidArgumentError, match="alarm"):
        without.set.diagnose()


def test_saved_and_durable_sequences_continue_bit_for_bit(tmp_path):
    rng = np.random.default_rng(3)
    x = rng.normal(size=(40, 3))
    y = x @ THETA + rng.normal(size=40)
    made = dict(family=ls.Gaussian(1.0), space=SPACE, alarm=True)
    whole = ls.ConfidenceSequence(**made)
    whole.update(x, y)
    half = ls.ConfidenceSequence(**made)
    half.update(x[:25], y[:25])
    half.save(tmp_path / "half")
    with ls.ConfidenceSequence.open(tmp_path / "journal", **made) as durable:
        durable.update(x[:25], y[:25])
    durable = ls.ConfidenceSequence.open(tmp_path / "journal", **made)
    for sequence in (ls.load(tmp_path / "half"), durable, copy.deepcopy(half)):
        assert sequence.alarm
        sequence.update(x[25:], y[25:])
        assert sequence._running.alarm.excess == whole._running.alarm.excess
        np.testing.assert_array_equal(sequence.set.upper(np.eye(3)), whole.set.upper(np.eye(3)))
    durable.close()
    with pytest.raises(ls.LikesetError):
        ls.ConfidenceSequence.open(tmp_path / "journal", ls.Gaussian(1.0), SPACE, alarm=False)


def test_a_failed_update_leaves_the_alarm_as_it_was():
    sequence, _ = told(ls.Gaussian(1.0), lambda z, rng: rng.normal(z, 1.0), n=50)
    before = {name: array.copy() for name, array in sequence._running.alarm.state().items()}
    original = type(sequence)._take

    def stumble(self, step, y, log_q):
        original(self, step, y, log_q)
        if len(self._running.ledger) == 53:
            raise ZeroDivisionError

    type(sequence)._take = stumble
    try:
        with pytest.raises(ZeroDivisionError):
            sequence.update(np.ones((5, 3)), np.ones(5))
    finally:
        type(sequence)._take = original
    for name, array in sequence._running.alarm.state().items():
        np.testing.assert_array_equal(array, before[name])


def test_bad_input():
    with pytest.raises(ls.InvalidArgumentError, match="alarm"):
        ls.ConfidenceSequence(ls.Gaussian(), SPACE, alarm=1)
    with pytest.raises(ls.InvalidArgumentError, match="alarm"):
        ls.ConfidenceSequence(ls.Logistic(1.0), SPACE, alarm=True)


def counts_of_visits(n=400, seed=0):
    """Twice the variance of a Poisson law."""
    rng = np.random.default_rng([52, seed])
    return {"page": rng.choice(["A", "B"], size=n), "clicks": rng.negative_binomial(4, 0.5, size=n)}


def visits(store=None, family=None):
    factors = {"page": ["A", "B"]}
    return ls.Study("visits", factors=factors, outcome={"clicks": family or ls.Poisson()}, control="A", store=store)


def test_a_study_of_the_wrong_family_rings_and_says_why(tmp_path):
    """Without a bound: only a law from outside can empty the set. Kept, read again, shown first everywhere."""
    study = visits(tmp_path / "s.db")
    study.tell(counts_of_visits())
    said = str(study.diagnose())
    assert "refuted at level 0.05" in said and "times the variance forecast better" in said
    again = ls.Study.open("visits", tmp_path / "s.db")
    answers = again.to_json()
    assert answers["alarm"]["rings"] and answers["alarm"]["listens"]
    assert max(answers["alarm"]["nats"].values()) == pytest.approx(study.diagnose().nats.max(), abs=1e-9)
    assert again.summary().splitlines()[1].startswith("ALARM. ") and "times the variance" in again.summary()
    page = again.report(tmp_path / "r.html") or (tmp_path / "r.html").read_text()
    assert page.index("ALARM") < page.index("<table")
    with pytest.raises(ls.EmptySetError, match="times the variance"):
        again.set.upper(np.eye(2))


def test_a_quiet_alarm_is_shown_first_and_hears_rows_that_are_scored_alone():
    rng = np.random.default_rng(53)
    study = visits()
    study.tell({"page": rng.choice(["A", "B"], size=900), "clicks": rng.poisson(4.0, size=900)})
    assert study.summary().splitlines()[1].startswith("The alarm is quiet")
    assert not study.alarm()["rings"] and study._fresh().sequence._running.alarm.left == 0
    heard = study._fresh().sequence._running.alarm.excess
    study.tell({"page": ["A"] * 300, "clicks": [40] * 300})  # pooled: no matter for laws outside the model
    assert study._fresh().sequence._running.alarm.excess == heard


def test_zeros_and_ones_per_level_leave_nothing_to_hear():
    study = ls.Study("ab", factors={"page": ["A", "B"]}, outcome={"hit": ls.Bernoulli()}, store=None)
    study.tell({"page": ["A", "B"], "hit": [0, 1]})
    assert not study.alarm()["listens"] and study.alarm()["text"] == ""
    with pytest.raises(ls.InvalidArgumentError, match="alarm"):
        study.diagnose()


def test_what_was_kept_without_an_alarm_goes_on_without_it(tmp_path):
    """Journals, files and studies of earlier releases."""
    made = dict(family=ls.Gaussian(1.0), space=SPACE)
    with ls.ConfidenceSequence.open(tmp_path / "journal", **made, alarm=False) as old:
        old.update([1.0, 0.0, 0.0], 0.3)
        old.save(tmp_path / "file")
    with ls.ConfidenceSequence.open(tmp_path / "journal", **made) as now:
        now.update([1.0, 0.0, 0.0], 0.3)
        assert not now.alarm and not now.set.has_alarm and now.n_observations == 2
    assert not ls.load(tmp_path / "file").alarm
    with pytest.raises(ls.LikesetError):
        ls.ConfidenceSequence.open(tmp_path / "journal", **made, alarm=True)
    from likeset.study.engine import Engine

    settings = Engine(visits().definition).settings()
    assert settings.pop("alarm") is True
    assert not Engine(visits().definition, settings).sequence.alarm


def test_other_predictors_and_voices_have_no_alarm_unless_it_is_asked_for():
    assert ls.ConfidenceSequence(ls.Gaussian(), SPACE).alarm
    assert not ls.ConfidenceSequence(ls.Gaussian(), SPACE, voices=None).alarm
    assert not ls.ConfidenceSequence(ls.Gaussian(), SPACE, predictor=ls.FTRL(1.0)).alarm
    rng = np.random.default_rng(54)
    sequence = ls.ConfidenceSequence(ls.Gaussian(0.5), SPACE, predictor=ls.FTRL(1.0), alarm=True, voices=None)
    x = rng.normal(size=(120, 3))
    sequence.update(x, x @ THETA + rng.normal(size=120))
    assert sequence.set.is_empty


def test_an_optimist_among_windows_has_no_alarm_unless_it_is_asked_for(tmp_path):
    from sklearn.gaussian_process.kernels import RBF

    rng = np.random.default_rng(55)
    space = ls.RKHS(RBF(0.05), 2.0, domain=np.linspace(0, 1, 8))
    quiet = ls.ConfidenceSequence(ls.Gaussian(0.3), space)
    assert quiet.alarm
    quiet.expect(purpose="optimism")
    assert not quiet.alarm and not ls.ConfidenceSequence(ls.Gaussian(0.3), space, voices=quiet.voices).alarm
    asked = ls.ConfidenceSequence(ls.Gaussian(0.3), space, voices=quiet.voices, alarm=True)
    x = rng.choice(space.domain[:, 0], size=(60, 1))
    for one in (quiet, asked):
        one.update(x, rng.normal(0.0, 1.0, size=60))
    assert not quiet.set.is_empty and asked.set.is_empty
    for _ in range(2):  # a journal remembers that the choice of voices switched it off
        with ls.ConfidenceSequence.open(tmp_path / "journal", ls.Gaussian(0.3), space) as durable:
            if not durable.n_observations:
                durable.expect(purpose="optimism")
            durable.update(x[:5], rng.normal(size=5))
            assert not durable.alarm and not durable.set.has_alarm


@pytest.mark.slow
@pytest.mark.parametrize("family", [ls.Gaussian(1.0), ls.Poisson(), ls.Weibull(1.4)], ids=repr)
def test_false_alarms_in_400_runs(family):
    """At most alpha; a right model fails this with probability below 1e-6."""
    alarms = sum(told(family, lambda z, rng: family.sample(z, rng), n=500, seed=seed)[1] for seed in range(400))
    assert alarms <= binom.ppf(1 - 1e-6, 400, 0.05)


def test_a_family_of_ones_own_says_what_lies_outside_it():
    class Own(ls.Logistic):
        def outside(self):
            return ls.Gaussian(1.8 * self.scale).outside()

    sequences = [ls.ConfidenceSequence(family, ls.Linear(1, 2.0)) for family in (ls.Logistic(0.5), Own(0.5))]
    assert [sequence.alarm for sequence in sequences] == [False, True]
    sequences[1].update(np.ones((60, 1)), 4.0 * np.random.default_rng(0).normal(size=60))
    assert sequences[1].set.is_empty and "times the scale" in str(sequences[1].set.diagnose())
