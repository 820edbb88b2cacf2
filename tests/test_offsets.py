"""Offsets for every family, and lifetimes watched from an entry on: laws, exact extrema, interim looks, files."""

from __future__ import annotations

import copy

import cvxpy as cp
import numpy as np
import pytest
from scipy.stats import binom

import likeset as ls
from likeset import checks
from likeset.errors import InvalidArgumentError, ObservationError
from likeset.families.shifted import Shifted
from likeset.families.weibull import Entered
from test_exposure import ALPHA, ARMS, THETA, THETAS, same_sets, started

OWN = ls.CustomFamily(
    lambda y, z: 0.5 * (y - z) ** 2 / 0.04 + np.log(0.2 * np.sqrt(2 * np.pi)), support="real", convex=True
)
FAMILIES = [*checks.built_in_families(), OWN]
STAYS = [ls.Bernoulli(), ls.Binomial(3), ls.Geometric(), ls.NegativeBinomial(0.5)]  # offsets that no sum absorbs


def observed(family, predictor=None, voices=None, n=24, seed=0, distinct=5):
    rng = np.random.default_rng(seed)
    x, offset = ARMS[rng.integers(len(ARMS), size=n)], rng.choice(rng.normal(size=distinct), size=n)
    offset[::4] = 0.0
    sequence = started(family, predictor, voices)
    sequence.update(x, family.sample(x @ THETA + offset, rng), offset=offset)
    return sequence


@pytest.mark.parametrize("family", FAMILIES, ids=repr)
def test_the_ratio_is_that_of_shifted_laws(family):
    for predictor in (None, ls.FTRL(), ls.VAW()):
        if checks.applicable(predictor or ls.Mixture(), family):
            ledger = (sequence := observed(family, predictor)).ledger
            z = THETAS @ ledger.x.rows.T + ledger.given.rows[:, 0]
            law = np.array([family.log_density(ledger.y.rows, row).sum() for row in z])
            assert sequence.set.log_ratio(THETAS) == pytest.approx(ledger.log_q.rows.sum() - law, abs=1e-8)


@pytest.mark.parametrize("family", [f for f in FAMILIES if f.convex], ids=repr)
def test_shifted_laws_keep_the_contract(family):
    checks.check_family(Shifted(family, 0.7), z_values=(-1.5, 0.4))


@pytest.mark.parametrize("family", [*STAYS, ls.Laplace(0.3), ls.Gamma(2.0)], ids=repr)
@pytest.mark.parametrize("predictor", [None, ls.FTRL(), ls.VAW()], ids=repr)
def test_one_step_growth_with_offsets(family, predictor):
    if checks.applicable(predictor or ls.Mixture(), family):
        sequence = observed(family, predictor, n=8)
        checks.check_growth(sequence, ARMS[1], THETAS[:2], offset=-0.8)


@pytest.mark.parametrize("voices", [None, "auto"])
def test_exact_extrema_of_logits_with_offsets(voices):
    sequence = observed(ls.Binomial(3), voices=voices, n=40)
    s, ledger = sequence.set, sequence.ledger
    evidence = s._evidence
    offset, y, theta = ledger.given.rows[:, 0], ledger.y.rows, cp.Variable(2)
    groups = np.array(
        [ledger.group(int(k), int(c)) for k, c in zip(ledger.covariate.rows, ledger.classes.rows, strict=True)]
    )
    z = ledger.x.rows @ theta + offset
    constants = np.array([float(ledger.family.statistics(np.asarray(one))[2]) for one in y])
    losses = 3 * cp.logistic(z) - cp.multiply(y, z) - constants
    gains = ledger.log_q.rows
    table = evidence.audible
    exponents = []
    for k, log_share in enumerate(table.log_shares):
        members = np.isin(groups, table.members[table.starts[k] : table.starts[k + 1]])
        exponents.append(
            log_share + (gains[members].sum() + cp.sum(losses[np.flatnonzero(members)]) if members.any() else 0.0)
        )
    problem = [cp.log_sum_exp(cp.hstack(exponents)) <= -np.log(ALPHA), cp.norm(theta) <= 1.5]
    for x, upper in zip(ARMS[:3], s.upper(ARMS[:3]), strict=True):
        best = cp.Problem(cp.Maximize(x @ theta), problem).solve(solver=cp.CLARABEL)
        assert upper == pytest.approx(best, abs=2e-6)
        assert upper >= best - 2e-6


@pytest.mark.parametrize("family", STAYS[2:], ids=repr)
def test_extrema_of_counts_with_offsets_by_brute_force(family):
    s = observed(family, voices="auto", n=40).set
    angles, radii = np.meshgrid(np.linspace(0, 2 * np.pi, 721), np.linspace(0, 1.5, 301))
    grid = np.column_stack([(radii * np.cos(angles)).ravel(), (radii * np.sin(angles)).ravel()])
    inside = grid[s.contains(grid)]
    best = (inside @ ARMS.T).max(axis=0)
    assert (s.upper(ARMS) >= best - 1e-9).all()
    assert s.upper(ARMS) == pytest.approx(best, abs=0.02)
    assert s.log_ratio(s.support(ARMS).maximisers).max() <= -np.log(ALPHA) + 1e-6


def test_items_of_one_offset_are_one():
    """A thousand rows with three offsets cost what three cost."""
    sequence = observed(ls.Bernoulli(), n=1000, distinct=3)
    assert len(sequence.set._evidence.terms.points) <= 4 * len(ARMS)


@pytest.mark.parametrize("family", [*STAYS, OWN], ids=repr)
@pytest.mark.parametrize("predictor", [None, ls.FTRL()], ids=repr)
def test_files_journals_and_failed_updates(family, predictor, tmp_path):
    own = {"family": family} if family is OWN else {}
    sequence = observed(family, predictor, "auto")
    ledger = sequence.ledger
    rows, offset = (ledger.x.rows.copy(), ledger.y.rows.copy()), ledger.given.rows[:, 0].copy()
    before = {k: v.copy() for k, v in ledger.state().items()}
    undone = copy.deepcopy(sequence)
    undone._scoring.score = failing(undone._scoring.score, after=2)
    with pytest.raises(RuntimeError):
        undone.update(ARMS[:4], rows[1][:4], offset=[0.3, 0.31, 0.32, 0.0])
    del undone._scoring.score
    assert all(np.array_equal(before[k], v) for k, v in undone.ledger.state().items())
    sequence.save(tmp_path / "file")
    others = [ls.load(tmp_path / "file", **own), undone]
    for _ in range(2):
        with ls.ConfidenceSequence.open(tmp_path / "journal", family, sequence.space, ALPHA, predictor) as durable:
            if not durable.n_observations:
                durable.update(*rows, offset=offset)
    others.append(ls.ConfidenceSequence.open(tmp_path / "journal", family, sequence.space, ALPHA, predictor))
    sequence.update(ARMS[:4], rows[1][:4], offset=[0.3, 0.31, 0.32, 0.0])
    for other in others:
        other.update(ARMS[:4], rows[1][:4], offset=[0.3, 0.31, 0.32, 0.0])
        same_sets(other, sequence)
        assert np.array_equal(other.ledger.log_q.rows, sequence.ledger.log_q.rows)
    others[-1].close()


def failing(score, after):
    calls = []

    def scored(*arguments):
        calls.append(1)
        if len(calls) > after:
            raise RuntimeError("enough")
        return score(*arguments)

    return scored


# -- lifetimes ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("family", "entry"), [(ls.Weibull(2.0), 1.3), (ls.Weibull(0.7), 0.2), (ls.LogWeibull(1.5), 0.4)]
)
def test_laws_from_an_entry_on(family, entry):
    checks.check_family(Entered(family, entry))
    for voices in (None, "auto"):
        sequence = started(family, voices=voices)
        sequence.update(ARMS[:3], [[entry, entry + 1.0, 0], [entry, entry + 0.3, 1], [0.1, 0.5, 1]])
        checks.check_growth(sequence, ARMS[1], THETAS[:2], entry=entry, offset=None if voices else 0.5)


@pytest.mark.parametrize("family", [ls.Exponential(), ls.Weibull(1.7), ls.LogWeibull(1.7)], ids=repr)
def test_two_looks_are_the_likelihood_of_one(family):
    once, twice = started(family, voices=None), started(family, voices=None)
    once.update(ARMS[0], [[1.7, 1]])
    twice.update(ARMS[0], [[0.9, 0]])
    twice.update(ARMS[0], [0.9, 1.7, 1])
    difference = once.set.log_ratio(THETAS) - twice.set.log_ratio(THETAS)
    assert difference == pytest.approx(np.full(3, difference[0]), abs=1e-12)


def interim_misses(entries, runs, seed):
    """Runs in which theta* is out of the set after some look; a trial of 30 patients in two arms, five looks."""
    family, missed, theta = ls.Weibull(1.5), 0, np.array([0.5, -0.8])
    for run in range(runs):
        rng = np.random.default_rng([seed, run])
        x = np.column_stack([np.ones(30), np.arange(30) % 2])
        joined = rng.uniform(0, 0.5, size=30)  # calendar time
        lives = family.sample(x @ theta, rng)[:, 0]
        sequence = ls.ConfidenceSequence(family, ls.Linear(2, 2.0), ALPHA)
        seen = np.zeros(30)
        for now in (0.4, 0.8, 1.2, 1.6, 2.0):
            watched = np.minimum(now - joined, lives)
            at_risk = (seen < lives) & (watched > seen)
            rows = np.column_stack([seen, watched, watched == lives])[at_risk]
            sequence.update(x[at_risk], rows if entries else rows[:, 1:])
            seen = np.maximum(seen, watched)
            if not sequence.set.contains(theta):
                missed += 1
                break
    return missed


def test_interim_looks_keep_coverage():
    """False alarm below 1e-6."""
    assert interim_misses(True, 30, 3) <= binom.ppf(1 - 1e-6, 30, ALPHA)


def test_counting_the_same_time_twice_fails():
    """Negative control: every look feeds the whole life so far."""
    assert interim_misses(False, 30, 3) > binom.ppf(1 - 1e-6, 30, ALPHA)


def test_entries_are_kept_in_files_and_journals(tmp_path):
    family, space = ls.LogWeibull(1.5), ls.Linear(2, 1.5)
    rows = [[-np.inf, 0.2, 1], [-0.3, 0.4, 0], [0.4, 0.9, 1]]
    sequence = ls.ConfidenceSequence(family, space, ALPHA)
    sequence.update(ARMS[:3], rows)
    sequence.save(tmp_path / "file")
    with ls.ConfidenceSequence.open(tmp_path / "journal", family, space, ALPHA) as durable:
        durable.update(ARMS[:3], rows)
    with ls.ConfidenceSequence.open(tmp_path / "journal", family, space, ALPHA) as durable:
        for other in (ls.load(tmp_path / "file"), durable):
            same_sets(other, sequence)
            assert np.array_equal(other.ledger.given.rows[:, 2], [-np.inf, -0.3, 0.4])


@pytest.mark.parametrize(
    ("y", "error"),
    [
        ([1.0, 0.5, 1], ObservationError),
        ([0.5, 0.5, 0], ObservationError),
        ([-1.0, 0.5, 1], InvalidArgumentError),
        ([0.1, 0.5, 2], ObservationError),
        ([np.nan, 0.5, 1], InvalidArgumentError),
        ([np.inf, 0.5, 1], InvalidArgumentError),
        (["born", 0.5, 1], InvalidArgumentError),
    ],
)
def test_entries_that_are_none(y, error):
    sequence = started(ls.Weibull(2.0))
    with pytest.raises(error):
        sequence.update(ARMS[0], y)
    assert sequence.n_observations == 0


def test_an_entry_means_nothing_elsewhere():
    with pytest.raises(ls.LikesetError):
        started(ls.Gamma()).update(ARMS[0], [0.1, 0.5, 1])
    with pytest.raises(InvalidArgumentError):
        checks.one_step_growth(started(ls.Gamma()), ARMS[0], THETA, entry=0.5)
