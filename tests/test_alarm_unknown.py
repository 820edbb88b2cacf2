"""The alarm where a scale or a shape is unknown: what it hears, validity, exactness, units, files."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from scipy.stats import binom

import likeset as ls
from likeset import checks
from likeset.families.answers import outside
from likeset.families.outside import Believed

THETA = np.array([0.8, -0.5, 0.3])
GAUSSIAN, LAPLACE = ls.Gaussian(ls.Unknown()), ls.Laplace(ls.Unknown())
WEIBULL, LOG_WEIBULL = ls.Weibull(ls.Unknown()), ls.LogWeibull(ls.Unknown())
FAMILIES = [GAUSSIAN, LAPLACE, WEIBULL, LOG_WEIBULL]


def told(family, y_of, n=500, seed=0, dim=3, alpha=0.05, **more):
    """A sequence that sees y_of(z, rng), with looks every 50 rows until it is refuted."""
    rng = np.random.default_rng([71, seed])
    sequence = ls.ConfidenceSequence(family, ls.Linear(dim), alpha, **more)
    for _ in range(n // 50):
        x = rng.normal(size=(50, dim)) / np.sqrt(dim)
        sequence.update(x, y_of(x @ THETA[:dim], rng))
        if sequence.set.is_empty:
            return sequence, True
    return sequence, False


def lived(log_time):
    return np.column_stack([np.exp(log_time), np.ones(len(log_time))])


DEPARTURES = {
    "heavy tails": (GAUSSIAN, lambda z, rng: z + rng.standard_t(2, size=len(z)), "heavy tails"),
    "a long tail": (GAUSSIAN, lambda z, rng: z + 3.0 * rng.exponential(size=len(z)) - 3.0, "to the right"),
    "intercept missing": (GAUSSIAN, lambda z, rng: rng.normal(z + 1.0, 1.0), "the same noise around a"),
    "Laplace noise, intercept missing": (LAPLACE, lambda z, rng: rng.laplace(z + 1.0, 1.0), "the same noise around a"),
    "lifetimes, intercept missing": (
        WEIBULL, lambda z, rng: lived((np.log(rng.exponential(size=len(z))) - z - 1.0) / 1.4),
        "the same noise around a",
    ),
}  # fmt: skip


SLOW = "Laplace noise, intercept missing"


@pytest.mark.parametrize("departure", [pytest.param(d, marks=[pytest.mark.slow] * (d == SLOW)) for d in DEPARTURES])
def test_the_alarm_rings(departure):
    family, y_of, word = DEPARTURES[departure]
    for seed in range(2):
        sequence, rang = told(family, y_of, seed=seed)
        assert rang and word in str(sequence.set.diagnose())
        silent = ls.ConfidenceSequence(family, ls.Linear(3), alarm=False)
        silent.update(sequence.ledger.x.rows, sequence.ledger.y.rows)
        assert not silent.set.is_empty  # nothing else hears it


def true_outcomes(family, z, rng):
    return family.known(1.4).sample(z, rng)


@pytest.mark.parametrize("family", FAMILIES, ids=repr)
def test_a_right_model_is_not_refuted(family):
    """False-alarm probability of the test below 1e-6."""
    runs = 4
    alarms = sum(told(family, lambda z, r: true_outcomes(family, z, r), n=150, seed=i)[1] for i in range(runs))
    assert alarms <= binom.ppf(1 - 1e-6, runs, 0.05)


@pytest.mark.parametrize("sharp", [False, True], ids=["normal", "laplace"])
@pytest.mark.parametrize("rows", [3, 40])
def test_laws_of_real_outcomes_are_densities(sharp, rows):
    laws = outside(LAPLACE if sharp else GAUSSIAN).learnt(Believed(0.0, 0.0, 0.7, rows))
    t = np.linspace(-14.0, 14.0, 20001)  # y = sinh(t): tails like Student's are long
    assert_normalised(laws, np.sinh(t), np.log(np.cosh(t)) + np.log(t[1] - t[0]))


@pytest.mark.parametrize("family", [WEIBULL, LOG_WEIBULL], ids=repr)
@pytest.mark.parametrize("end", [np.inf, 0.3])
def test_laws_of_lifetimes_are_densities(family, end):
    """Times are watched up to an end: beyond it all that is seen is that they are longer."""
    laws, logs = outside(family).learnt(Believed(0.0, 0.0, 1.4, 40)), family is LOG_WEIBULL
    t = np.linspace(-60.0, 30.0 if end == np.inf else end, 12001)
    step = t[1] - t[0]
    y = np.column_stack([t if logs else np.exp(t), np.ones(len(t))])
    weights = (0.0 if logs else t) + np.full(len(t), np.log(step))
    weights[[0, -1]] += np.log(0.5)
    if end < np.inf:
        y = np.vstack([y, [end if logs else np.exp(end), 0.0]])
        weights = np.append(weights, 0.0)
    assert_normalised(laws, y, weights)


def assert_normalised(laws, outcomes, log_weights):
    found = np.array([[laws.own(y, 0.4, 0.2), *laws.log_densities(y, 0.4, 0.3)] for y in outcomes])
    with np.errstate(under="ignore"):
        np.testing.assert_allclose(np.exp(found + log_weights[:, None]).sum(axis=0), 1.0, atol=1e-5)
    assert len(set(laws.names)) == found.shape[1] - 1
    for y in outcomes[:: len(outcomes) // 7]:
        numeric = (laws.own(y, 0.4 + 1e-6, 0.0) - laws.own(y, 0.4 - 1e-6, 0.0)) / 2e-6
        assert laws.slope(y, 0.4) == pytest.approx(numeric, rel=1e-4, abs=1e-4)
    assert laws.information(0.4) > 0.0


def test_far_survivors_keep_their_logarithm():
    """P(N > u) continues where it underflows, never above the truth."""
    laws = outside(LOG_WEIBULL).learnt(Believed(0.0, 0.0, 1.0, 40))
    from scipy.stats import norm

    for at in (5.0, 20.0, 24.9, 25.6, 60.0):
        found = laws.log_densities(np.array([at, 0.0]), 0.0, 0.0)[2]
        true = norm.logsf(at + 0.5)
        assert true - 1e-5 <= found <= true + 1e-12 * abs(true)


SHORT = ls.Unknown(0.5, 4.0)  # shapes with which every outcome of the check can be written


@pytest.mark.parametrize("family", [GAUSSIAN, LAPLACE, ls.Weibull(SHORT), ls.LogWeibull(SHORT)], ids=repr)
@pytest.mark.parametrize("voices", ["joint", "auto", "windows"])
def test_one_step_growth_is_at_most_one(family, voices):
    """After rows that the alarm has spoken about, for several values of the unknown number."""
    chosen = {"joint": None, "auto": "auto", "windows": ls.Windows(np.eye(2), 0.6)}[voices]
    rng = np.random.default_rng(1)
    sequence = ls.ConfidenceSequence(family, ls.Linear(2, 2.0), 0.1, alarm=True, voices=chosen)
    x = rng.normal(size=(14, 2))
    sequence.update(x, true_outcomes(family, x @ THETA[:2], rng))
    assert sequence._running.alarm.excess != 0.0
    for number in (0.7, 1.4) if voices == "joint" else (1.4,):
        checks.check_growth(copy.deepcopy(sequence), [0.3, 0.5], [THETA[:2]], nuisance=number)


def test_one_step_growth_beside_announced_contrasts():
    """What a study of unknown sigma with a control asks."""
    rng = np.random.default_rng(8)
    sequence = ls.ConfidenceSequence(GAUSSIAN, ls.Linear(2), 0.1)
    sequence.expect(np.eye(2), purpose="inference", contrasts=[[-1.0, 1.0]])
    x = np.eye(2)[rng.integers(0, 2, 14)]
    sequence.update(x, rng.normal(x @ THETA[:2], 1.4))
    assert sequence.alarm and sequence._running.alarm.excess != 0.0
    checks.check_growth(sequence, [0.0, 1.0], [THETA[:2]], nuisance=1.4)


@pytest.mark.parametrize("family", FAMILIES, ids=repr)
@pytest.mark.parametrize("voices", [None, "auto"])
def test_the_ratio_is_the_average_it_says(family, voices):
    """Nine tenths of the ratio without an alarm, and a tenth of q'/p; so the price is log(10/9) at most."""
    rng = np.random.default_rng(2)
    x = rng.normal(size=(60, 2))
    y = true_outcomes(family, x @ THETA[:2], rng)
    with_alarm, without = (
        ls.ConfidenceSequence(family, ls.Linear(2), alarm=alarm, voices=voices) for alarm in (True, False)
    )
    for sequence in (with_alarm, without):
        sequence.update(x, y)
    alarm = with_alarm._running.alarm
    log_q = float(with_alarm.ledger.log_q.rows.sum())
    for theta in (THETA[:2], np.zeros(2)):
        for number in (0.8, 1.4, 3.0):
            log_p = float(np.sum(family.known(number).log_density(family.observations(y), x @ theta)))
            model = without.set.log_ratio(theta, number)
            expected = np.logaddexp(np.log(0.9) + model, np.log(0.1) + log_q + alarm.excess - log_p)
            assert with_alarm.set.log_ratio(theta, number) == pytest.approx(expected, abs=1e-8)
        assert with_alarm.set.log_ratio(theta) >= without.set.log_ratio(theta) + np.log(0.9) - 1e-9


@pytest.mark.parametrize("family", [GAUSSIAN, LAPLACE], ids=repr)
def test_bounds_are_where_the_ratio_crosses_the_threshold(family):
    """In one dimension the ends of the set can be found by bisection."""
    rng = np.random.default_rng(3)
    sequence = ls.ConfidenceSequence(family, ls.Linear(1), alarm=True, voices=None)
    sequence.update(np.ones((40, 1)), 0.5 + rng.standard_t(2, size=40))  # the alarm has something to say
    s = sequence.set
    low, high = (float(end[0]) for end in s.interval([[1.0]]))
    inside, outside = 0.5 * (low + high), high + 1.0
    for _ in range(60):
        middle = 0.5 * (inside + outside)
        inside, outside = (middle, outside) if s.log_ratio([middle]) <= np.log(20.0) else (inside, middle)
    assert outside - 1e-12 <= high <= outside + 1e-6
    ends = s.nuisance_interval()
    for number, plausible in ((ends[0] * 1.01, True), (ends[1] * 0.99, True), (ends[0] * 0.97, False)):
        grid = np.linspace(low, high, 2001)[:, None]
        assert bool((s.log_ratio(grid, number) <= np.log(20.0)).any()) == plausible


def test_a_study_with_unknown_sigma_listens(tmp_path):
    """What studies begin with when nothing is said about the noise; read again from the store."""
    rng = np.random.default_rng(4)
    study = ls.Study(
        "spend", factors={"page": ["A", "B"]}, outcome={"money": "gaussian"}, control="A", store=tmp_path / "s.db"
    )
    study.tell({"page": rng.choice(["A", "B"], size=300), "money": rng.lognormal(0.0, 1.2, size=300)})
    assert study.alarm()["listens"] and study.alarm()["rings"]
    again = ls.Study.open("spend", tmp_path / "s.db")
    assert "forecast better than the model" in again.summary().splitlines()[1]
    assert again.diagnose().nats.max() == pytest.approx(study.diagnose().nats.max(), abs=1e-9)


def test_a_study_may_do_without(tmp_path):
    """Part of the definition: said beforehand, kept, and not to be changed afterwards."""
    rng = np.random.default_rng(4)
    rows = {"page": rng.choice(["A", "B"], size=300), "money": rng.lognormal(0.0, 1.2, size=300)}
    made = dict(factors={"page": ["A", "B"]}, outcome={"money": "gaussian"}, store=tmp_path / "s.db")
    study = ls.Study("spend", **made, alarm=False)
    study.tell(rows)
    again = ls.Study.open("spend", tmp_path / "s.db")
    for one in (study, again):
        assert one.alarm() == {"rings": False, "text": "", "listens": False, "nats": {}}
        assert one.rows()[0]["lower"] is not None
    with pytest.raises(ls.StudyMismatchError, match="alarm: False there, None here"):
        ls.Study("spend", **made)
    with pytest.raises(ls.InvalidArgumentError, match="alarm"):
        ls.Study("other", **made, alarm="off")


def test_outcomes_without_noise_leave_answers():
    """First rows that are all zero, as money is where few buy, with and without an alarm."""
    for alarm in (True, False):
        study = ls.Study("z", factors={"page": ["A", "B"]}, outcome={"y": "gaussian"}, store=None, alarm=alarm)
        for page in "ABABA":
            study.tell([{"page": page, "y": 0.0}])
            assert study.rows()[0]["n"] and study.summary()


def test_what_it_hears_has_no_unit():
    rng = np.random.default_rng(5)
    x, noise = rng.normal(size=(120, 2)), rng.standard_t(2, size=120)
    heard = []
    for unit in (1.0, 1e-3, 1e3):
        sequence = ls.ConfidenceSequence(GAUSSIAN, ls.Linear(2))
        sequence.update(x, unit * (x @ THETA[:2] + noise))
        heard.append(sequence.set.diagnose().nats)
    np.testing.assert_allclose(heard[1], heard[0], atol=0.3)
    np.testing.assert_allclose(heard[2], heard[0], atol=0.3)


@pytest.mark.parametrize("family", FAMILIES, ids=repr)
def test_saved_and_durable_sequences_continue_bit_for_bit(family, tmp_path):
    rng = np.random.default_rng(6)
    x = rng.normal(size=(40, 2))
    y = true_outcomes(family, x @ THETA[:2], rng)
    made = dict(family=family, space=ls.Linear(2))
    whole = ls.ConfidenceSequence(**made)
    whole.update(x, y)
    assert whole.alarm
    half = ls.ConfidenceSequence(**made)
    half.update(x[:25], y[:25])
    half.save(tmp_path / "half")
    with ls.ConfidenceSequence.open(tmp_path / "journal", **made) as durable:
        durable.update(x[:25], y[:25])
    durable = ls.ConfidenceSequence.open(tmp_path / "journal", **made)
    for sequence in (ls.load(tmp_path / "half"), durable, copy.deepcopy(half)):
        sequence.update(x[25:], y[25:])
        assert sequence._running.alarm.excess == whole._running.alarm.excess
        np.testing.assert_array_equal(sequence.set.log_ratio(THETA[:2]), whole.set.log_ratio(THETA[:2]))
    durable.close()


def test_windows_over_a_function_get_one_voice_more():
    """Where no voice hears everything the alarm is the only one that does."""
    from sklearn.gaussian_process.kernels import RBF

    rng = np.random.default_rng(7)
    space = ls.RKHS(RBF(0.1), 3.0, domain=np.linspace(0, 1, 12))
    made = [
        ls.ConfidenceSequence(GAUSSIAN, space, voices=ls.Windows(space.domain, 0.6), alarm=a) for a in (True, False)
    ]
    x = rng.choice(space.domain[:, 0], size=(200, 1))
    y = np.sin(6 * x[:, 0]) + 0.3 * rng.standard_t(1.5, size=200)
    for sequence in made:
        sequence.update(x, y)
    assert made[0].set.is_empty and not made[1].set.is_empty


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES, ids=repr)
def test_false_alarms_and_misses_in_200_runs(family):
    """Of the pair (theta, number), at most alpha; a right model fails this with probability below 1e-6."""
    alpha, runs, missed = 0.1, 200, 0
    for seed in range(runs):
        rng = np.random.default_rng([72, seed])
        sequence = ls.ConfidenceSequence(family, ls.Linear(2), alpha)
        out = False
        for _ in range(8):
            x = rng.normal(size=(20, 2))
            sequence.update(x, true_outcomes(family, x @ THETA[:2], rng))
            out = out or not sequence.set.contains(THETA[:2], 1.4)
        missed += out
    assert missed <= binom.ppf(1 - 1e-6, runs, alpha)
