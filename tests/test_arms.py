"""Announced pairs of arms: exact sets of two linear predictors, certified contrasts of means, validity, refusals."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from scipy.stats import binom

import likeset as ls
from likeset import checks
from likeset._solver.borders import division
from likeset._solver.planar import Outline
from likeset._solver.problem import CurveTerms
from likeset.answers.mean_contrasts import scale_of
from likeset.curves import Curve
from likeset.evidence.pairs import effects
from likeset.families import LogWeibull
from likeset.families.canonical import canonical_form

ARMS = np.eye(3)
FAMILIES = [
    ls.Bernoulli(), ls.Binomial(4), ls.Poisson(), ls.Weibull(1.5), ls.Exponential(), ls.Geometric(), ls.Gamma(2.0),
    ls.NegativeBinomial(0.5),
]  # fmt: skip


def observed(family, n=40, simultaneous=False, voices=..., seed=0, theta=(-0.5, 0.3, 0.0), bound=3.0):
    rng = np.random.default_rng(seed)
    if voices is ...:
        voices = ls.Contrasts(ARMS[1:], simultaneous, minus=ARMS[0], others=ls.Patience(3, tail=0.0))
    sequence = ls.ConfidenceSequence(family, ls.Linear(3, bound), 0.1, voices=voices)
    index = rng.integers(3, size=n)
    sequence.update(ARMS[index], family.sample(np.array(theta)[index], rng))
    return sequence


def pair_of(sequence, first, second):
    s = sequence.set
    return s._questions.pair(s._others, s.space, ARMS[first], ARMS[second], np.ones(2))


# -- what the set is ------------------------------------------------------------------------------------------------


def test_effects_are_a_distribution():
    nodes, logs = effects()
    assert np.exp(logs).sum() == pytest.approx(1.0, abs=1e-12)
    np.testing.assert_allclose((np.exp(logs)[:, None] * nodes).sum(axis=0), 0.0, atol=1e-12)


@pytest.mark.parametrize("family", FAMILIES, ids=repr)
def test_the_ratio_is_that_of_the_definition(family):
    """From rows, forecasts and classes of the ledger; tilts as differences of log-densities."""
    sequence = observed(family)
    pair, ledger = pair_of(sequence, 1, 0), sequence.ledger
    arm = ledger.x.rows.argmax(axis=1)
    for z in ([0.2, -0.3], [-1.0, 1.5]):
        at = np.select([arm == 1, arm == 0], z, 0.0)
        mask = arm != 2
        log_p = sequence.family.log_density(ledger.y.rows, at)
        ratios = [
            np.log(0.3 / 3) + (ledger.log_q.rows - log_p)[mask & (ledger.classes.rows >= k)].sum() for k in range(3)
        ]
        nodes, logs = effects()
        tilts, form = [], canonical_form(family)
        for (u, v), weight in zip(form.sign * form.unit * nodes, logs, strict=True):
            moved = at + np.select([arm == 1, arm == 0], [u, v], 0.0)
            tilts.append(np.log(0.7) + weight + (sequence.family.log_density(ledger.y.rows, moved) - log_p)[mask].sum())
        expected = np.logaddexp.reduce([*ratios, *tilts])
        at_u = form.sign * np.array([z]) + form.shift
        assert pair.values(at_u)[0] == pytest.approx(expected, rel=1e-9, abs=1e-8)


CASES = [
    *((family, of, 3.0) for family in FAMILIES[:5] for of in ("difference", "ratio", "odds")),
    *((family, "ratio", bound) for family in FAMILIES[5:] for bound in (3.0, np.inf)),
    *((family, "difference", np.inf) for family in FAMILIES[:3]),
]


@pytest.mark.parametrize(("family", "of", "bound"), CASES, ids=str)
def test_bounds_agree_with_brute_force(family, of, bound):
    if of == "odds" and not hasattr(family, "trials"):
        with pytest.raises(ls.InvalidArgumentError, match="odds"):
            scale_of(family, of)
        return
    sequence, form = observed(family, bound=bound), canonical_form(family)
    pair, scale = pair_of(sequence, 1, 0), scale_of(family, of).at(form)
    z = np.linspace(-3.0, 3.0, 81) + form.shift
    grid = np.stack(np.meshgrid(z, z, indexing="ij"), axis=-1).reshape(-1, 2)
    inside = grid[np.concatenate([pair.values(part) for part in np.array_split(grid, 40)]) <= pair.level]
    best = scale.F(inside[:, 0]) - scale.F(inside[:, 1])
    found = sequence.set.contrast(ARMS[[1]], ARMS[[0]], of=of)
    low, high = (np.log(end) if of != "difference" else end for end in found)
    assert high[0] >= best.max() and low[0] <= best.min()  # outward
    step = 2 * (z[1] - z[0]) * (1.0 if of != "difference" else float(np.abs(np.gradient(scale.F(z), z)).max()))
    assert high[0] - best.max() < 0.01 * (high - low)[0] + step and best.min() - low[0] < 0.01 * (high - low)[0] + step


@pytest.mark.parametrize("family", FAMILIES, ids=repr)
def test_the_ratio_is_convex_in_the_means(family):
    """Along random segments of the plane of means, which is not so in the predictors; with its gradient."""
    pair, rng = pair_of(observed(family, n=80), 1, 0), np.random.default_rng(2)
    z = rng.uniform(-2.5, 2.5, size=(2, 300, 2)) + canonical_form(family).shift
    first, last = (pair.means(one) for one in z)
    np.testing.assert_allclose(pair.heights(first)[0], pair.values(z[0]), rtol=1e-9, atol=1e-9)
    middle = 0.5 * (first + last)
    (left, right, between), (slopes, _, _) = zip(*(pair.heights(m) for m in (first, last, middle)), strict=True)
    assert (between <= 0.5 * (left + right) + 1e-9 * (1 + np.abs(left) + np.abs(right))).all()
    tangents = left + (slopes * (middle - first)).sum(axis=1)
    assert (between >= tangents - 1e-9 * (1 + np.abs(left))).all()
    if family.discrete:
        in_z = pair.values(0.5 * (z[0] + z[1])) - 0.5 * (pair.values(z[0]) + pair.values(z[1]))
        assert np.isfinite(in_z).all()
    step = 1e-6 * first
    for axis in range(2):
        moved = first + step * (np.arange(2) == axis)
        slope = (pair.heights(moved)[0] - left) / step[:, axis]
        np.testing.assert_allclose(slope, slopes[:, axis], rtol=1e-3, atol=1e-3 * np.abs(slopes).max())


@pytest.mark.parametrize("family", FAMILIES, ids=repr)
def test_the_least_evidence_on_the_diagonal_is_certified(family):
    """Against a fine grid; and every point on the other side of the diagonal has more than the least on it."""
    for theta in ((-0.5, 0.3, 0.0), (0.0, 0.0, 0.0), (0.8, -0.9, 0.0)):
        pair = pair_of(observed(family, n=90, theta=theta), 1, 0)
        found = division(pair)
        z = np.linspace(float(pair.low.max()), float(pair.high.min()), 4001)
        least = np.concatenate([pair.values(part) for part in np.array_split(np.column_stack([z, z]), 8)]).min()
        assert least - 1e-3 * (1 + abs(least)) <= found.least <= found.attained <= least + 1e-6
        grid = np.stack(np.meshgrid(z[::100], z[::100], indexing="ij"), axis=-1).reshape(-1, 2)
        values = pair.values(grid)
        for sign in (-1, 1):
            low, high = found.against(sign)
            there = values[sign * (grid[:, 0] - grid[:, 1]) >= 0].min()
            assert low <= there + 1e-9 and low <= high
            if low == found.least:
                assert high <= there + 1e-6  # what the whole half-plane has is on its edge


def test_contrasts_and_evidence_say_the_same():
    """At every level: no difference is excluded by all contrasts, by the e-value, and by one side of it, or by none."""
    seen = set()
    cases = ((ls.Bernoulli(), True), (ls.Bernoulli(), False), (ls.Poisson(), True), (ls.Gamma(2.0), False))
    for family, simultaneous in cases:
        for n, theta in ((40, (-0.5, 0.3, 0.0)), (100, (-0.9, 0.8, 0.0)), (100, (0.8, -0.9, 0.0))):
            s = observed(family, n=n, theta=theta, simultaneous=simultaneous).set
            asked = ARMS[1:] - ARMS[0]
            e = s.evidence(asked, equal=0.0).log_e_value
            below, above = s.evidence(asked, below=0.0).log_e_value, s.evidence(-2.0 * asked, below=0.0).log_e_value
            assert np.array_equal(above, s.evidence(asked, above=0.0).log_e_value)
            assert (np.maximum(below, above) == e).all() and (np.minimum(below, above) <= 0.0).all()
            decided = e > -np.log(s.alpha)
            for of in ("difference", "ratio", *(["odds"] if hasattr(family, "trials") else [])):
                low, high = s.contrast(ARMS[1:], ARMS[[0]], of=of)
                neutral = 0.0 if of == "difference" else 1.0
                assert np.array_equal(decided, (low > neutral) | (high < neutral))
                assert np.array_equal(decided & (below > above), low > neutral)
            seen |= set(decided.tolist())
    assert seen == {True, False}


def test_a_pair_without_plausible_means_refutes_the_model():
    """The truth lies outside Theta: long before the other voices are sure of it, a pair that shares the level is."""
    for simultaneous in (True, False):
        voices = ls.Contrasts(ARMS[[1]], simultaneous, minus=ARMS[0], others=None, share=0.9)
        sequence = ls.ConfidenceSequence(ls.Bernoulli(), ls.Linear(3, 1.0), 0.05, voices=voices, alarm=False)
        sequence.update(ARMS[:2], [10.0, 4.0], trials=[20, 20])
        assert not sequence.set.is_empty
        sequence.update(ARMS[:2], [90.0, 0.0], trials=[180, 180])
        s = sequence.set
        assert s.log_ratio([0.0, -0.99, 0.0]) < np.log(20.0)
        with pytest.raises(ls.EmptySetError):
            s.contrast(ARMS[[1]], ARMS[[0]])
        assert s.is_empty == simultaneous
        if simultaneous:
            assert (s.evidence(ARMS, below=[0.1, 0.0, 0.5]).e_value > 20.0).all()


def test_what_was_never_observed_has_no_bound():
    for family in (ls.Poisson(), ls.Bernoulli(), ls.Gamma(2.0)):
        voices = ls.Contrasts(ARMS[1:], minus=ARMS[0], others=None)
        sequence = ls.ConfidenceSequence(family, ls.Linear(3), 0.1, voices=voices)
        sequence.update(ARMS[[0] * 40], family.sample(np.zeros(40), np.random.default_rng(3)))
        low, high = sequence.set.contrast(ARMS[[1]], ARMS[[0]], of="ratio")
        assert low[0] == 0.0 and (high[0] == np.inf or (hasattr(family, "trials") and high[0] > 1.0))
        assert sequence.set.evidence(ARMS[[1]] - ARMS[[0]], equal=0.0).log_e_value[0] <= 0.0
        sequence.update(ARMS[[1] * 40], np.full(40, 1e-9) if family.discrete is False else np.zeros(40))
        low, high = sequence.set.contrast(ARMS[[1]], ARMS[[0]], of="ratio")
        assert 0.0 <= low[0] < 1e-3 and high[0] < 1.0
        empty = ls.ConfidenceSequence(family, ls.Linear(3), 0.1, voices=voices).set.contrast(ARMS[[1]], ARMS[[0]])
        assert empty.lower[0] < 0.0 < empty.upper[0]


@pytest.mark.parametrize("family", [ls.Bernoulli(), ls.Geometric()], ids=repr)
def test_ratios_far_from_zero_need_no_origin(family):
    """Softplus terms are counted from zero (the solver refuses origins for them); also where means are extreme."""
    voices = ls.Contrasts(ARMS[[1]], minus=ARMS[0], others=None)
    sequence = ls.ConfidenceSequence(family, ls.Linear(3), 0.1, voices=voices)
    trials = {"trials": [1_000_000, 300_000]} if hasattr(family, "trials") else {}
    sequence.update(ARMS[:2], [5.0, 4.0] if trials else [2e7, 5e8], **trials)
    s, ledger = sequence.set, sequence.ledger
    assert s._evidence.terms.origins is None
    at = np.array([-12.2, -11.0] if trials else [16.0, 20.0])  # of the control and the variant
    law = [ls.Binomial(n) for n in trials["trials"]] if trials else [family, family]
    y, log_q = ledger.y.rows, ledger.log_q.rows.sum()
    log_p = np.array([float(one.log_density(v, z)) for one, v, z in zip(law, y, at, strict=True)])
    parts = [np.log(0.3) + log_q - log_p.sum()]
    for (u, v), weight in zip(*effects(), strict=True):
        moved = [float(one.log_density(w, z)) for one, w, z in zip(law, y, (at[0] + v, at[1] + u), strict=True)]
        parts.append(np.log(0.7) + weight + sum(moved) - log_p.sum())
    assert pair_of(sequence, 1, 0).values(at[None, ::-1])[0] == pytest.approx(np.logaddexp.reduce(parts), abs=1e-5)
    with pytest.raises(ValueError, match="origins"):
        CurveTerms(Curve.SOFTPLUS, np.ones(1), np.ones(1), np.ones(1))


def test_polygons_hold_ellipses():
    """The outline of a convex set from outside, against the closed form: found from a far start, thin, empty."""
    rng = np.random.default_rng(4)
    for number in range(30):
        root = rng.normal(size=(2, 2)) * [1.0, 10.0 ** rng.uniform(-3, 1)]
        M = np.linalg.inv(root @ root.T)
        middle, level = rng.uniform(-1, 1, 2), 1.0 if number % 5 else -0.1
        box = np.sqrt(np.diag(root @ root.T)) * 3.0

        def f(v, M=M, middle=middle):
            away = v - middle
            return np.einsum("ni,ij,nj->n", away, M, away), 2.0 * away @ M

        found = Outline(f, level, middle - box, middle + box, middle + rng.uniform(-1, 1, 2) * box)
        if level < 0.0:
            assert found.is_empty and found.largest(np.array, np.array) == (-np.inf, -np.inf)
            continue
        for a, b in ((1.0, -1.0), (-1.0, 1.0), (1.0, 0.0), (0.3, 2.0)):
            upper, attained = found.largest(lambda x, a=a: a * x, lambda y, b=b: b * y)
            d = np.array([a, b])
            width = np.sqrt(d @ root @ root.T @ d)
            assert attained <= d @ middle + width * (1 + 1e-9) and d @ middle + width <= upper
            assert upper - (d @ middle + width) <= 2e-3 * width


def test_bounds_are_close_to_what_is_attained():
    for n in (80, 2000):
        s = observed(ls.Bernoulli(), n=n).set
        for of in ("difference", "ratio", "odds"):
            found = s.contrast(ARMS[[1]], ARMS[[0]], of=of)
            assert 0.0 <= found.gap[0] <= 2e-3 * (found.upper - found.lower)[0]


def test_simultaneous_pairs_and_pairs_of_their_own():
    own, joint = observed(ls.Bernoulli(), n=200), observed(ls.Bernoulli(), n=200, simultaneous=True)
    a, b = (s.set.contrast(ARMS[1:], ARMS[:1]) for s in (own, joint))
    assert (a.upper < b.upper).all() and (a.lower > b.lower).all()
    assert pair_of(joint, 1, 0).level == pytest.approx(np.log(10) + np.log(2 / 0.7))
    plain = observed(ls.Bernoulli(), n=200, voices=ls.Patience(3, tail=0.0))
    theta = [0.1, 0.2, 0.3]
    assert own.set.log_ratio(theta) == pytest.approx(plain.set.log_ratio(theta))
    assert joint.set.log_ratio(theta) == pytest.approx(plain.set.log_ratio(theta) + np.log(0.3))
    swapped = own.set.contrast(ARMS[:1], ARMS[1:])
    np.testing.assert_allclose(swapped.upper, -a.lower, rtol=1e-2)
    unannounced = own.set.contrast(ARMS[[1]], ARMS[[2]])
    assert unannounced.lower[0] < unannounced.upper[0]


def test_totals_are_as_good_as_rows():
    """Counts suffice: trials in one row, in the same order of forecasts or not, leave the tilts what they were."""
    voices = ls.Contrasts(ARMS[[1]], minus=ARMS[0])
    rows = ls.ConfidenceSequence(ls.Bernoulli(), ls.Linear(3, 3.0), 0.1, voices=voices)
    totals = ls.ConfidenceSequence(ls.Bernoulli(), ls.Linear(3, 3.0), 0.1, voices=voices)
    rows.update(np.repeat(ARMS[:2], [30, 50], axis=0), [0] * 20 + [1] * 10 + [0] * 20 + [1] * 30)
    totals.update(ARMS[:2], [10, 30], trials=[30, 50])
    for name in ("total_a", "total_s"):
        np.testing.assert_allclose(getattr(pair_of(rows, 1, 0), name), getattr(pair_of(totals, 1, 0), name))


@pytest.mark.parametrize(
    ("family", "outcome"), [(ls.Weibull(2.0), [1.0, 1.0]), (LogWeibull(2.0), [0.0, 1.0])], ids=repr
)
@pytest.mark.parametrize("rows", [(0, 0), (30, 0), (0, 30), (30, 30)])
def test_what_nothing_is_known_about_has_infinite_ends(family, outcome, rows):
    """Without a bound an arm that was never observed may have any mean: a positive one if outcomes are."""
    sequence = ls.ConfidenceSequence(
        family, ls.Linear(2, np.inf), voices=ls.Contrasts(ARMS[:1, :2], minus=ARMS[1:2, :2])
    )
    if sum(rows):
        sequence.update(np.repeat(ARMS[:2, :2], rows, axis=0), np.tile(outcome, (sum(rows), 1)))
    found = sequence.set.contrast(ARMS[:1, :2], ARMS[1:2, :2])
    positive = isinstance(family, ls.Weibull)
    low_known = rows[1] > 0 and (rows[0] > 0 or positive)
    high_known = rows[0] > 0 and (rows[1] > 0 or positive)
    assert np.isfinite([found.lower[0], found.upper[0]]).tolist() == [low_known, high_known]
    assert found.lower[0] < 0.0 < found.upper[0]


# -- validity -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", [ls.Bernoulli(), ls.Binomial(4), ls.Poisson()], ids=repr)
def test_one_step_growth_of_a_pair_is_at_most_one(family):
    """∫ R after / R before p dy at every arm, for several (z, z'): R of the pair, which is all that its set goes by."""
    sequence = observed(family, n=10)
    for arm in range(3):
        for z in ([0.2, -0.3], [-1.0, 1.5]):
            at = [z[1], z[0], 0.4][arm]
            before = pair_of(sequence, 1, 0).values(np.array([z]))[0]
            y, v = family.outcomes(np.array([at, -1.0, 1.0]))
            growth = 0.0
            for outcome, weight in zip(y, v, strict=True):
                log_p = float(family.log_density(outcome, at))
                if log_p > -30.0:
                    after = copy.deepcopy(sequence)
                    after.update(ARMS[[arm]], outcome[None])
                    growth += weight * np.exp(log_p + pair_of(after, 1, 0).values(np.array([z]))[0] - before)
            assert growth <= 1.0 + checks.TOLERANCE


def excludes_zero(pair):
    """Whether no (z, z) is in the set; 1-D, on a grid around the most likely z."""
    z = np.linspace(-2.5, 1.0, 57)
    return bool((pair.values(np.column_stack([z, z])) > pair.level).all())


def test_equal_arms_are_not_separated_under_peeking():
    """A bandit's allocation, looks all the time, equal arms: false-alarm probability of the test below 1e-6."""
    runs, alarms = 50, 0
    for number in range(runs):
        rng = np.random.default_rng([41, number])
        voices = ls.Contrasts(ARMS[[1]], simultaneous=False, minus=ARMS[0], others=None)
        sequence = ls.ConfidenceSequence(ls.Bernoulli(), ls.Linear(3, 4.0), 0.1, voices=voices)
        wins, tries = np.ones(2), 2 * np.ones(2)
        for _ in range(15):
            arm = int(np.argmax(wins / tries + rng.normal(size=2) / np.sqrt(tries)))
            y = rng.binomial(30, 0.3)
            sequence.update(ARMS[[arm]], [y], trials=[30])
            wins[arm], tries[arm] = wins[arm] + y, tries[arm] + 30
            if excludes_zero(pair_of(sequence, 1, 0)):
                alarms += 1
                break
    assert alarms <= binom.ppf(1 - 1e-6, runs, 0.1)


def test_all_pairs_of_twenty_arms_with_a_bandits_allocation():
    """190 pairs at once: whichever is asked about, the truth is inside; the better arm is told from its rivals."""
    arms, (i, j) = np.eye(20), np.triu_indices(20, 1)
    rates = np.full(20, 0.2)
    rates[7] = 0.35
    for number in range(3):
        rng = np.random.default_rng([43, number])
        voices = ls.Contrasts(arms[i], minus=arms[j], others=None)
        sequence = ls.ConfidenceSequence(ls.Bernoulli(), ls.Linear(20, 12.0), 0.05, voices=voices)
        wins, tries = np.ones(20), 2 * np.ones(20)
        for _ in range(60):
            leading = np.argsort(rng.beta(wins, tries - wins + 1))[-4:]
            y = rng.binomial(100, rates[leading])
            sequence.update(arms[leading], y, trials=[100] * 4)
            wins[leading], tries[leading] = wins[leading] + y, tries[leading] + 100
        rivals = np.argsort(-tries + 1e9 * (np.arange(20) == 7))[:4]
        found = sequence.set.contrast(arms[[7] * 4], arms[rivals])
        assert (found.lower <= rates[7] - rates[rivals]).all() and (rates[7] - rates[rivals] <= found.upper).all()
        assert found.lower.max() > 0.0
        between = sequence.set.contrast(arms[rivals[:1]], arms[rivals[1:2]], of="odds")
        assert between.lower[0] <= 1.0 <= between.upper[0]


def test_pairs_chosen_afterwards_are_separated_too_often():
    """Negative control: the best against the worst of 200 equal arms, as if that pair had been announced."""
    runs, wrong = 30, 0
    for number in range(runs):
        counts = np.random.default_rng([42, number]).binomial(2000, 0.3, size=200)
        voices = ls.Contrasts(ARMS[[1]], simultaneous=False, minus=ARMS[0], others=None)
        sequence = ls.ConfidenceSequence(ls.Bernoulli(), ls.Linear(3, 8.0), 0.2, voices=voices)
        sequence.update(ARMS[:2], [counts.min(), counts.max()], trials=[2000, 2000])
        wrong += excludes_zero(pair_of(sequence, 1, 0))
    assert wrong > binom.ppf(1 - 1e-6, runs, 0.2)


def test_an_effect_is_found_sooner_than_by_the_joint_set():
    sequence = observed(ls.Poisson(), n=120, theta=(0.0, 0.6, 0.0))
    found = sequence.set.contrast(ARMS[[1]], ARMS[[0]], of="ratio")
    low, high = observed(ls.Poisson(), n=120, theta=(0.0, 0.6, 0.0), voices=None).set.interval(ARMS[[1]] - ARMS[[0]])
    assert np.log(found.upper[0] / found.lower[0]) < 0.9 * (high - low)[0]


# -- files, refusals ------------------------------------------------------------------------------------------------


def test_saved_sequences_answer_the_same(tmp_path):
    sequence = observed(ls.Poisson())
    sequence.save(tmp_path / "file")
    again, first = (s.set.contrast(ARMS[[1]], ARMS[[0]]) for s in (ls.load(tmp_path / "file"), sequence))
    np.testing.assert_array_equal([again.lower, again.upper], [first.lower, first.upper])


@pytest.mark.parametrize(
    ("family", "bound", "voices"),
    [
        (ls.Gamma(2.0), 2.0, ls.Contrasts(ARMS)),
        (ls.Laplace(1.0), 2.0, ls.Contrasts(ARMS[1:], minus=ARMS[0])),
    ],
)
def test_bad_input(family, bound, voices):
    with pytest.raises(ls.InvalidArgumentError, match="voices"):
        ls.ConfidenceSequence(family, ls.Linear(3, bound), voices=voices)
