"""Patience: classes that are known before y, validity, exact extrema, combinations with windows, files."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from scipy.stats import binom
from sklearn.datasets import load_diabetes
from sklearn.gaussian_process.kernels import RBF

import likeset as ls
from likeset import checks
from likeset._solver.problem import MixtureSet
from likeset.voices import Beside, Within
from likeset.voices.base import Voices
from test_windows import cvxpy_maximum, log_ratio_by_hand

FAMILIES = [
    ls.Gaussian(0.2), ls.Laplace(0.2), ls.Poisson(), ls.Bernoulli(), ls.Binomial(3), ls.Weibull(2.0),
    ls.LogWeibull(2.0), ls.Exponential(),
]  # fmt: skip
OWN = ls.CustomFamily(lambda y, z: 0.5 * (y - z) ** 2 / 0.04 + np.log(0.2 * np.sqrt(2 * np.pi)), support="real",
                      convex=True)  # fmt: skip
ARMS = np.array([[np.cos(t), np.sin(t)] for t in np.linspace(0, np.pi, 8, endpoint=False)])
GRID = np.linspace(0.0, 1.0, 16)
ALPHA = 0.1


def kinds() -> dict[str, Voices]:
    windows = ls.Windows(ARMS, correlation=0.6)
    return {
        "patience": ls.Patience(),
        "no tail": ls.Patience(3, ratio=2.0, tail=0.0),
        "beside": ls.Patience().beside(windows, share=0.3),
        "within": ls.Patience(3, tail=0.0).within(windows),
        "both": ls.Patience(2, tail=0.0).beside(ls.Patience(3, tail=0.0).within(windows)),
    }


def observed(family, voices, n=60, seed=0, predictor=None, alpha=ALPHA):
    rng = np.random.default_rng(seed)
    theta = np.array([0.7, -0.4])
    index = rng.integers(len(ARMS), size=n)
    sequence = ls.ConfidenceSequence(family, ls.Linear(2, 1.5), alpha, predictor=predictor, voices=voices)
    sequence.update(ARMS[index], family.sample(ARMS[index] @ theta, rng))
    return sequence, theta


def problem(s) -> MixtureSet:
    e = s._evidence
    X = e.groups.coordinates[e.groups.owners]
    return MixtureSet(X, e.terms, e.gains, e.audible, e.threshold, e.bound)


# -- what is heard --------------------------------------------------------------------------------------------------


def test_shares_add_up_to_one_and_classes_are_thresholds():
    for patience in (
        ls.Patience(),
        ls.Patience(1),
        ls.Patience(24),
        ls.Patience(3, tail=0.0),
        ls.Patience(5, 2.0, 0.5),
    ):
        assert patience.shares.sum() == pytest.approx(1.0, abs=1e-12)
        assert (patience.shares > 0).all() and len(patience.shares) <= 24
    patience = ls.Patience(ratio=4.0)
    for k in range(1, 10):
        assert patience.label(4.0 ** -(k - 1) * 0.999) == k
        assert patience.label(4.0 ** -(k - 1) * 1.001) == k - 1
    assert patience.label(np.inf) == patience.label(np.nan) == 0
    assert patience.of(None, None, 2).nonzero()[0].tolist() == [0, 1, 2]


def test_the_ratio_is_that_of_the_definition():
    """M_k by hand, from rows, forecasts and classes of the ledger."""
    sequence, _ = observed(ls.Gaussian(0.2), ls.Patience(4, tail=0.0))
    ledger, theta = sequence.ledger, np.array([0.1, 0.3])
    terms = ledger.log_q.rows - sequence.family.log_density(ledger.y.rows, ledger.x.rows @ theta)
    labels = ledger.classes.rows
    assert len(set(labels)) > 2
    logs = [terms[labels >= k].sum() for k in range(4)]
    assert sequence.set.log_ratio(theta) == pytest.approx(np.logaddexp.reduce(np.array(logs) - np.log(4)), rel=1e-9)


def test_classes_do_not_depend_on_their_own_outcome():
    """Two sequences that differ in the last y alone give it one class; and the class is that of the beliefs before."""
    for family in FAMILIES:
        sequence, _ = observed(family, ls.Patience(), n=20)
        labels = []
        for y in family.sample(np.array([-0.9, 0.0, 0.9]), np.random.default_rng(1)):
            step = copy.deepcopy(sequence)
            step.update(ARMS[3], y[None])
            labels.append(step.ledger.classes.rows[-1])
        assert len(set(labels)) == 1


@pytest.mark.parametrize(
    "predictor", [ls.FTRL(), ls.Fixed([0.1, 0.1]), ls.Aggregate(ls.FTRL(), ls.Mixture())], ids=repr
)
def test_predictors_without_beliefs_are_gauged_by_a_mixture(predictor):
    sequence, theta = observed(ls.Poisson(), ls.Patience(), predictor=predictor)
    default, _ = observed(ls.Poisson(), ls.Patience())
    np.testing.assert_array_equal(sequence.ledger.classes.rows, default.ledger.classes.rows)
    assert sequence.set.contains(theta)


# -- validity -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", kinds())
@pytest.mark.parametrize("family", FAMILIES, ids=repr)
def test_one_step_growth_is_at_most_one(family, kind):
    sequence, theta = observed(family, kinds()[kind], n=12)
    checks.check_growth(sequence, ARMS[1], [theta, [0.0, 0.0], [-1.0, 0.8]])


@pytest.mark.slow
def test_one_step_growth_of_a_family_of_the_users_own():
    sequence = ls.ConfidenceSequence(OWN, ls.Linear(2, 1.5), ALPHA, voices=ls.Patience())
    sequence.update(ARMS[[0, 3, 0, 5]], [0.5, -0.1, 0.7, 0.2])
    checks.check_growth(sequence, ARMS[1], [[0.7, -0.4]])


@pytest.mark.parametrize("family", FAMILIES, ids=repr)
def test_adaptive_anytime_coverage(family):
    """The widest interval is asked, every step counts; false-alarm probability below 1e-6."""
    runs, misses = 80, 0
    for number in range(runs):
        rng = np.random.default_rng([21, number])
        theta = rng.normal(size=2)
        theta *= 1.4 * np.sqrt(rng.uniform()) / np.linalg.norm(theta)
        sequence = ls.ConfidenceSequence(family, ls.Linear(2, 1.5), ALPHA)
        assert isinstance(sequence.voices, ls.Patience)
        for _ in range(6):
            low, high = sequence.set.interval(ARMS)
            x = np.repeat(ARMS[[int(np.argmax(high - low + 1e-6 * rng.uniform(size=len(ARMS))))]], 6, axis=0)
            sequence.update(x, family.sample(x @ theta, rng))
            if not sequence.set.contains(theta):
                misses += 1
                break
    assert misses <= binom.ppf(1 - 1e-6, runs, ALPHA)


def test_a_class_chosen_after_y_does_not_cover():
    """Negative control: hear, in hindsight, what speaks against the truth. The same test catches it."""
    runs, misses = 60, 0
    for number in range(runs):
        rng = np.random.default_rng([22, number])
        sequence = ls.ConfidenceSequence(ls.Gaussian(1.0), ls.Linear(2, 1.5), ALPHA, ls.Mixture([0.25]), voices=None)
        index = rng.integers(len(ARMS), size=120)
        y = rng.normal(size=120)  # theta* = 0
        sequence.update(ARMS[index], y)
        ratios = sequence.ledger.log_q.rows - sequence.family.log_density(y, np.zeros(120))
        misses += np.maximum(ratios, 0.0).sum() > np.log(1 / ALPHA)
    assert misses > binom.ppf(1 - 1e-6, runs, ALPHA)


# -- extrema --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", kinds())
@pytest.mark.parametrize("family", [ls.Gaussian(0.2), ls.Laplace(0.2), ls.Poisson(), ls.Bernoulli()], ids=repr)
def test_extrema_agree_with_cvxpy(family, kind):
    sequence, theta = observed(family, kinds()[kind])
    s, target = sequence.set, problem(sequence.set)
    assert s.log_ratio(theta) == pytest.approx(
        log_ratio_by_hand(target, s._basis.project(theta)[0]), rel=1e-9, abs=1e-9
    )
    asked = np.vstack([ARMS[::3], [[0.3, -1.0]]])
    found = s.support(asked)
    A = s._basis.coordinates(asked)[0]
    checked = 0
    for i, a in enumerate(A):
        value = cvxpy_maximum(target, a)
        if value is not None:
            checked += 1
            assert found.upper[i] == pytest.approx(value, abs=1e-5 * max(1.0, abs(value)))
    assert checked >= 2
    assert (found.gap <= 1e-6 * np.maximum(1.0, np.abs(found.upper))).all()
    assert (s.log_ratio(found.maximisers) <= -np.log(ALPHA) + 1e-9).all()  # bounds are attained


def test_users_own_families_have_patience_too():
    rng = np.random.default_rng(2)
    index = rng.integers(len(ARMS), size=25)
    y = ls.Gaussian(0.2).sample(ARMS[index] @ [0.7, -0.4], rng)
    bands = []
    for family in (OWN, ls.Gaussian(0.2)):
        sequence = ls.ConfidenceSequence(family, ls.Linear(2, 1.5), ALPHA, voices=ls.Patience(3, tail=0.0))
        sequence.update(ARMS[index], y)
        bands.append(sequence.set.interval(ARMS[:2]))
    np.testing.assert_allclose(bands[0], bands[1], atol=2e-3)


def test_functions_and_directions_outside_the_span():
    space = ls.RKHS(RBF(0.15), 2.0, domain=GRID)
    rng = np.random.default_rng(3)
    f = np.sin(6 * GRID)
    for family in (ls.Gaussian(0.1), ls.Laplace(0.1), ls.Poisson()):
        sequence = ls.ConfidenceSequence(family, space, ALPHA)
        assert isinstance(sequence.voices, Within)
        index = rng.integers(8, size=60)  # the other half is never seen
        sequence.update(GRID[index], family.sample(f[index], rng))
        low, high = sequence.set.interval(GRID)
        assert (low < high).all() and (high[8:] - low[8:]).min() > (high[:8] - low[:8]).max()
        plain = ls.ConfidenceSequence(family, space, ALPHA, voices=None)
        plain.update(GRID[index], sequence.ledger.y.rows)
        assert sequence.set.contains(f * 0) == (float(sequence.set.log_ratio(f * 0)) <= -np.log(ALPHA))


# -- narrower -------------------------------------------------------------------------------------------------------


def test_the_default_is_narrower_than_the_joint_set_where_much_was_learnt():
    rng = np.random.default_rng(4)
    arms = rng.normal(size=(40, 5))
    arms /= np.linalg.norm(arms, axis=1)[:, None]
    theta = rng.normal(size=5)
    theta *= 0.8 / np.linalg.norm(theta)
    index = rng.integers(40, size=300)
    y = arms[index] @ theta + 0.1 * rng.normal(size=300)
    width = {}
    for name, voices in (("default", "auto"), ("joint", None)):
        sequence = ls.ConfidenceSequence(ls.Gaussian(0.1), ls.Linear(5, 1.0), 0.05, voices=voices)
        sequence.update(arms[index], y)
        low, high = sequence.set.interval(np.eye(5))
        width[name] = float((high - low).mean())
        assert (low <= theta).all() and (theta <= high).all()
    assert width["default"] < 0.85 * width["joint"]


@pytest.mark.parametrize("bound", [100.0, np.inf])
def test_coefficients_of_the_diabetes_data(bound):
    """Mean width relative to fixed-sample OLS, in the order of the file: 3.05 and 3.06; of the joint set 3.9."""
    X, y = load_diabetes(return_X_y=True)
    X, y = (X - X.mean(axis=0)) / X.std(axis=0), (y - y.mean()) / y.std()
    X = np.column_stack([np.ones(len(X)), X])
    sequence = ls.ConfidenceSequence(ls.Gaussian(0.7), ls.Linear(X.shape[1], bound), 0.05)
    sequence.update(X, y)
    low, high = sequence.set.interval(np.eye(X.shape[1]))
    ols = 2 * 1.96 * 0.7 * np.sqrt(np.diag(np.linalg.inv(X.T @ X)))
    assert ((high - low) / ols).mean() <= 3.1


# -- defaults, files, undo, refusals --------------------------------------------------------------------------------


def test_voices_by_purpose():
    linear, domain = ls.Linear(2, 4.0), ls.RKHS(RBF(0.2), 2.0, domain=GRID)
    assert isinstance(ls.ConfidenceSequence(ls.Poisson(), linear).voices, ls.Patience)
    sequence = ls.ConfidenceSequence(ls.Poisson(), linear)
    sequence.expect(ARMS, purpose="inference")
    assert isinstance(sequence.voices, ls.Patience)
    large = ls.ConfidenceSequence(ls.Poisson(), ls.Linear(4, 1.0))
    large.expect(np.eye(4), purpose="inference")
    assert isinstance(large.voices, Beside) and isinstance(large.voices.second, Beside)
    assert isinstance(large.voices.second.first, ls.Windows)
    assert isinstance(large.voices.second.second, ls.OpeningWindows)
    sequence.expect(ARMS)
    assert isinstance(sequence.voices, ls.Windows) and sequence.windows is sequence.voices
    sequence.expect(purpose="optimism")
    assert sequence.voices is None
    assert isinstance(ls.ConfidenceSequence(ls.Poisson(), domain).voices, Within)
    for policy, kind in ((ls.UCB, ls.Windows), (ls.Elimination, Within), (ls.LowerBound, Within)):
        assert isinstance(policy(ls.ConfidenceSequence(ls.Poisson(), domain)).seq.voices, kind)
    assert ls.UCB(ls.ConfidenceSequence(ls.Poisson(), linear)).seq.voices is None  # arms come with every ask
    with pytest.raises(ls.InvalidArgumentError, match="purpose"):
        sequence.expect(ARMS, purpose="fun")
    with pytest.raises(ls.InvalidArgumentError, match="other name"):
        ls.ConfidenceSequence(ls.Poisson(), linear, voices=None, windows=ls.Windows(ARMS))


@pytest.mark.parametrize("kind", kinds())
@pytest.mark.parametrize("predictor", [None, ls.FTRL()], ids=repr)
def test_saved_and_durable_sequences_continue_bit_for_bit(tmp_path, kind, predictor):
    rng = np.random.default_rng(5)
    index = rng.integers(len(ARMS), size=50)
    y = rng.poisson(1.0, size=50)
    made = dict(family=ls.Poisson(), space=ls.Linear(2, 1.5), alpha=ALPHA, predictor=predictor, voices=kinds()[kind])
    whole = ls.ConfidenceSequence(**made)
    whole.update(ARMS[index], y)
    half = ls.ConfidenceSequence(**made)
    half.update(ARMS[index[:30]], y[:30])
    half.save(tmp_path / "half")
    loaded = ls.load(tmp_path / "half")
    with ls.ConfidenceSequence.open(tmp_path / "journal", **made) as durable:
        durable.update(ARMS[index[:30]], y[:30])
    durable = ls.ConfidenceSequence.open(tmp_path / "journal", **made)
    for sequence in (loaded, durable):
        sequence.update(ARMS[index[30:]], y[30:])
        assert repr(sequence.voices) == repr(whole.voices)
        np.testing.assert_array_equal(sequence.ledger.classes.rows, whole.ledger.classes.rows)
        np.testing.assert_array_equal(sequence.ledger.log_q.rows, whole.ledger.log_q.rows)
        np.testing.assert_array_equal(sequence.set.upper(ARMS), whole.set.upper(ARMS))
    durable.close()


def test_a_failed_batch_leaves_classes_and_groups_as_they_were():
    class Stumbles:
        """A predictor that fails at the third forecast after it was told to."""

        def __init__(self):
            self.left = -1

        def forecast(self, phi):
            self.left -= 1
            if self.left == 0:
                raise ZeroDivisionError
            return ls.PlugIn(ls.Poisson(), 0.0)

        def observe(self, phi, y):
            pass

    sequence = ls.ConfidenceSequence(ls.Poisson(), ls.Linear(2, 1.5), ALPHA, predictor=Stumbles(), voices=ls.Patience())
    sequence.update(np.tile(ARMS, (3, 1)), np.ones(24))
    before = {k: v.copy() for k, v in sequence.ledger.state().items()}, sequence._running.membership.masks.copy()
    upper = sequence.set.upper(ARMS)
    sequence._running.forecaster.left = 7
    with pytest.raises(ZeroDivisionError):
        sequence.update(np.tile(ARMS, (2, 1)), np.ones(16))
    after = sequence.ledger.state()
    assert len(sequence.ledger) == 24
    for name in ("x", "classes", "covariate", "gains"):
        np.testing.assert_array_equal(after[name], before[0][name])
    np.testing.assert_array_equal(sequence._running.membership.masks, before[1])
    np.testing.assert_array_equal(sequence.set.upper(ARMS), upper)


@pytest.mark.parametrize(
    ("make", "argument"),
    [
        (lambda: ls.Patience(0), "voices"),
        (lambda: ls.Patience(25), "voices"),
        (lambda: ls.Patience(ratio=1.0), "ratio"),
        (lambda: ls.Patience(tail=1.0), "tail"),
        (lambda: ls.Patience(tail=-0.1), "tail"),
        (lambda: ls.Patience().beside(ls.Windows(ARMS), share=1.0), "share"),
        (lambda: ls.Patience().beside("windows"), "second"),
        (lambda: ls.Patience(ratio=4.0).beside(ls.Patience(ratio=2.0)), "second"),
        (lambda: ls.Patience().within(None), "second"),
        (lambda: ls.ConfidenceSequence(ls.Poisson(), ls.Linear(2, 1.0), voices="always"), "voices"),
    ],
)
def test_bad_input(make, argument):
    with pytest.raises(ls.InvalidArgumentError) as caught:
        make()
    assert caught.value.argument == argument
