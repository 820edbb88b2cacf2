"""Duels: which arm is best, by comparing arms two by two; validity, certainty of the search, files, refusals."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from scipy.stats import binom

import likeset as ls
from likeset import checks
from likeset._solver.borders import surely_below
from likeset.evidence.pairs import effects
from likeset.families.canonical import canonical_form
from likeset.voices.automatic import automatic_voices

ARMS = np.eye(3)
FAMILIES = [
    ls.Gaussian(0.7),
    ls.Bernoulli(),
    ls.Binomial(4),
    ls.Poisson(),
    ls.Weibull(1.5),
    ls.Geometric(),
    ls.Gamma(2.0),
    ls.NegativeBinomial(0.5),
]


def observed(family, n=40, seed=0, theta=(-0.5, 0.6, 0.0), others=..., largest=True, alarm=False):
    rng = np.random.default_rng(seed)
    others = ls.Patience(3, tail=0.0) if others is ... else others
    voices = ls.Duels(ARMS, largest, others=others)
    sequence = ls.ConfidenceSequence(family, ls.Linear(3, 3.0), 0.1, voices=voices, alarm=alarm)
    index = rng.integers(3, size=n)
    sequence.update(ARMS[index], family.sample(np.array(theta)[index], rng))
    return sequence


def duel_of(sequence, first, second):
    s = sequence.set
    return s._questions.duel(s._others, s.space, ARMS[first], ARMS[second], np.ones(2))


# -- what a duel is -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", FAMILIES, ids=repr)
@pytest.mark.parametrize("largest", [True, False])
def test_the_ratio_is_that_of_the_definition(family, largest):
    """From rows, forecasts and classes of the ledger; tilts make the arm under test worse and its rival better."""
    sequence = observed(family, largest=largest)
    duel, ledger = duel_of(sequence, 1, 0), sequence.ledger
    arm = ledger.x.rows.argmax(axis=1)
    form = canonical_form(family)
    for z in ([0.2, -0.3], [-1.0, 1.5]):  # of arms 1 and 0
        at = np.select([arm == 1, arm == 0], z, 0.0)
        mask = arm != 2
        log_p = sequence.family.log_density(ledger.y.rows, at)
        terms = [
            np.log(0.3 / 3) + (ledger.log_q.rows - log_p)[mask & (ledger.classes.rows >= k)].sum() for k in (0, 1, 2)
        ]
        for (u, v), weight in zip(*effects(falling=True), strict=True):
            assert u < 0.0 < v
            tested, rival = (u, v) if largest else (v, u)  # the arm under test gets worse
            moved = at + form.unit * np.select([arm == 1, arm == 0], [tested, rival], 0.0)
            terms.append(np.log(0.7) + weight + (sequence.family.log_density(ledger.y.rows, moved) - log_p)[mask].sum())
        first_is_tested = largest == (form.sign > 0)
        point = form.sign * np.array([z if first_is_tested else z[::-1]]) + form.shift
        assert duel.values(point)[0] == pytest.approx(np.logaddexp.reduce(terms), rel=1e-9, abs=1e-8)
    assert duel.level == pytest.approx(np.log(10) + np.log(2 / 0.7))  # two rivals share what duels have
    assert np.exp(effects(falling=True)[1]).sum() == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("family", FAMILIES, ids=repr)
def test_beaten_agrees_with_brute_force(family):
    z = np.linspace(-3.0, 3.0, 41) + canonical_form(family).shift
    grid = np.stack(np.meshgrid(z, z, indexing="ij"), axis=-1).reshape(-1, 2)
    grid = grid[grid[:, 0] >= grid[:, 1]]
    answers = []
    for n in (5, 60, 400):
        sequence = observed(family, n=n, seed=n)
        for first, second in ((0, 1), (1, 0), (2, 1), (0, 2)):
            duel = duel_of(sequence, first, second)
            least = min(duel.values(part).min() for part in np.array_split(grid, 10))
            found = bool(sequence.set.beaten(ARMS[[first]], ARMS[[second]])[0])
            answers.append(found)
            assert found == surely_below(duel)
            if found:
                assert least > duel.level  # certified: no point of the grid is left
            elif least > duel.level:
                assert least < duel.level + 0.5  # on the grid, but not between its points
    assert any(answers) and not all(answers)


def test_the_largest_and_the_smallest():
    up, down = (observed(ls.Poisson(), n=300, largest=largest) for largest in (True, False))
    assert up.set.beaten(ARMS[0], ARMS[1])[0] and not up.set.beaten(ARMS[1], ARMS[0])[0]
    assert down.set.beaten(ARMS[1], ARMS[0])[0] and not down.set.beaten(ARMS[0], ARMS[1])[0]
    assert not up.set.beaten([[0.5, 0.0, 0.0]], ARMS[1])[0]  # was not announced
    assert not observed(ls.Poisson(), n=2).set.beaten(ARMS[0], ARMS[1])[0]


def test_other_questions_have_what_is_left_of_the_level():
    sequence = observed(ls.Bernoulli(), n=100)
    plain = ls.ConfidenceSequence(ls.Bernoulli(), ls.Linear(3, 3.0), 0.1, voices=ls.Patience(3, tail=0.0))
    plain.update(sequence.ledger.x.rows, sequence.ledger.y.rows)
    theta = [0.1, 0.2, 0.3]
    assert sequence.set.log_ratio(theta) == pytest.approx(plain.set.log_ratio(theta) + np.log(0.3))
    low, high = sequence.set.interval(ARMS)
    inner, outer = plain.set.interval(ARMS, alpha=0.03)
    np.testing.assert_allclose([low, high], [inner, outer], atol=1e-6)


# -- validity -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("alarm", [False, True])
@pytest.mark.parametrize("family", [ls.Bernoulli(), ls.Poisson()], ids=repr)
def test_one_step_growth_of_a_duel_is_at_most_one(family, alarm):
    """∫ R after / R before p dy at every arm, observed in the duel or not, with an alarm beside it or not."""
    sequence = observed(family, n=12, alarm=alarm)
    for arm in range(3):
        for z in ([0.2, -0.3], [-1.0, 1.5]):
            at = [z[1], z[0], 0.4][arm]
            before = duel_of(sequence, 1, 0).values(np.array([z]))[0]
            y, v = family.outcomes(np.array([at, -1.0, 1.0]))
            growth = 0.0
            for outcome, weight in zip(y, v, strict=True):
                log_p = float(family.log_density(outcome, at))
                if log_p > -30.0:
                    after = copy.deepcopy(sequence)
                    after.update(ARMS[[arm]], outcome[None])
                    growth += weight * np.exp(log_p + duel_of(after, 1, 0).values(np.array([z]))[0] - before)
            assert growth <= 1.0 + checks.TOLERANCE


def wrongly_ended(family, theta, runs, rule, rounds, seed, alpha=0.2):
    """Runs in which the best arm is ruled out, looking after every batch, arms chosen by the policy itself."""
    wrong, best = 0, int(np.argmax(theta))
    for number in range(runs):
        rng = np.random.default_rng([seed, number])
        sequence = ls.ConfidenceSequence(family, ls.Linear(3, 3.0), alpha)
        policy = ls.Elimination(sequence, ARMS, rule=rule)
        assert isinstance(sequence.voices, ls.Duels)
        for _ in range(rounds):
            arm = policy.ask()
            sequence.update(np.repeat(ARMS[[arm]], 10, axis=0), family.sample(np.full(10, theta[arm]), rng))
            if best not in policy.active:
                wrong += 1
                break
            if policy.stopped:
                break
    return wrong


@pytest.mark.parametrize("family", [ls.Bernoulli(), ls.Gaussian(0.7)], ids=repr)
def test_the_best_arm_is_not_ruled_out(family):
    """A best arm that is hardly better: false-alarm probability of the test below 1e-6."""
    runs = 20
    wrong = wrongly_ended(family, np.array([0.0, 0.01, 0.0]), runs, "soonest", 10, 51)
    assert wrong <= binom.ppf(1 - 1e-6, runs, 0.2)


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES, ids=repr)
@pytest.mark.parametrize("rule", ["soonest", "widest"])
def test_the_best_arm_is_not_ruled_out_at_length(family, rule):
    runs = 200
    wrong = wrongly_ended(family, np.array([0.0, 0.01, 0.0]), runs, rule, 60, 52)
    assert wrong <= binom.ppf(1 - 1e-6, runs, 0.2)


def test_arms_chosen_after_the_data_are_beaten_too_often():
    """Negative control: the luckiest and the unluckiest of 200 equal arms, as if only these two had been announced."""
    runs, wrong = 30, 0
    for number in range(runs):
        counts = np.random.default_rng([53, number]).binomial(2000, 0.3, size=200)
        voices = ls.Duels(np.eye(2), others=None)
        sequence = ls.ConfidenceSequence(ls.Bernoulli(), ls.Linear(2, 8.0), 0.2, voices=voices)
        sequence.update(np.eye(2), [counts.min(), counts.max()], trials=[2000, 2000])
        wrong += bool(sequence.set.beaten([1.0, 0.0], [0.0, 1.0])[0])
    assert wrong > binom.ppf(1 - 1e-6, runs, 0.2)


# -- elimination, files, refusals -----------------------------------------------------------------------------------


def test_who_takes_duels():
    space = ls.Linear(3, 3.0)
    assert automatic_voices(ls.Poisson(), space, ARMS, "largest").largest
    assert not automatic_voices(ls.Poisson(), space, ARMS, "smallest").largest
    for family, arms in (
        (ls.Laplace(1.0), ARMS),
        (ls.Poisson(), np.vstack([ARMS, [1.0, 1.0, 0.0]])),
        (ls.Poisson(), None),
    ):
        assert not isinstance(automatic_voices(family, space, arms, "largest"), ls.Duels)
    for settings, reward, expected in (
        ({}, "increasing", True), ({}, "decreasing", False), ({"epsilon": 0.1}, "increasing", None),
        ({"until": {"above": 0.3}}, "increasing", None),
    ):  # fmt: skip
        sequence = ls.ConfidenceSequence(ls.Poisson(), space)
        ls.Elimination(sequence, ARMS, reward=reward, **settings)
        assert getattr(sequence.voices, "largest", None) is expected


def test_elimination_over_other_duels_does_not_use_them():
    """Announced for the largest, asked for the smallest: the set alone decides."""
    sequence = observed(ls.Poisson(), n=150, largest=True)
    assert sequence.set.beaten(ARMS[0], ARMS[1])[0]
    policy = ls.Elimination(sequence, ARMS, reward="decreasing")
    assert 0 in policy.active  # the best by now


def test_a_certificate_by_duels(tmp_path):
    rng = np.random.default_rng(3)
    sequence = ls.ConfidenceSequence(ls.Bernoulli(), ls.Linear(3, 3.0), 0.05)
    policy = ls.Elimination(sequence, ARMS, reward="mean")
    rates = np.array([0.2, 0.3, 0.45])
    while not policy.stopped:
        arm = policy.ask()
        sequence.update(ARMS[arm], rng.binomial(10, rates[arm]), trials=10)
    claim = policy.certificate
    assert claim.arm == 2 and claim.epsilon == 0.0 and claim.lead >= 0.0 and claim.provable
    sequence.save(tmp_path / "file")
    again = ls.Elimination(ls.load(tmp_path / "file"), ARMS, reward="mean")
    assert again.stopped and again.best == 2


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"arms": ARMS[:1]}, "arms"), ({"arms": ARMS[[0, 1, 0]]}, "arms"), ({"arms": ARMS, "share": 1.0}, "share"),
        ({"arms": ARMS, "others": ls.Duels(ARMS)}, "others"), ({"arms": ARMS, "largest": 2}, "largest"),
    ],
)  # fmt: skip
def test_bad_arguments(arguments, name):
    with pytest.raises(ls.InvalidArgumentError, match=name):
        ls.Duels(**arguments)


@pytest.mark.parametrize("family", [ls.Laplace(1.0), ls.StudentT(5.0, 1.0)])
def test_families_without_duels(family):
    with pytest.raises(ls.InvalidArgumentError, match="voices"):
        ls.ConfidenceSequence(family, ls.Linear(3, 3.0), voices=ls.Duels(ARMS))
