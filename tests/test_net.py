"""Windows around directions that are fixed beforehand: what they are, validity, and what they bring an optimist."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

import likeset as ls
from likeset import checks
from likeset.voices import Beside
from likeset.voices.automatic import automatic_voices
from likeset.voices.net import alike, net_of_directions

DIM, ALPHA = 5, 0.1
SPACE = ls.Linear(DIM, 1.5)
FAMILIES = [ls.Gaussian(0.3), ls.Laplace(0.3), ls.Poisson(), ls.Bernoulli(), ls.Weibull(2.0)]


def unit(rows):
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


def correlations(x, y):
    return np.abs(unit(x) @ unit(y).T)


@pytest.mark.parametrize("dim", [4, 5, 8, 15, 24, 40, 60])
def test_directions_are_spread_evenly_and_windows_hold_about_half(dim):
    net = net_of_directions(dim)
    assert len(net) == min(max(20, 2 * dim), 48)
    assert np.array_equal(net[:dim], np.eye(dim)) == (dim <= 48)
    np.testing.assert_array_equal(net, np.round(net))
    anywhere = np.random.default_rng(dim).standard_normal((2000, dim))
    at_random = correlations(anywhere[: len(net)], anywhere[: len(net)])
    assert (correlations(net, net) - np.eye(len(net))).max() < (at_random - np.eye(len(net))).max()
    held = correlations(anywhere, net) >= alike(dim)
    assert 0.4 < held.mean() < 0.52
    assert held.any(axis=1).all()


def test_a_net_is_the_same_every_time_and_cannot_be_written():
    net = net_of_directions(DIM)
    first = net.copy()
    net_of_directions.cache_clear()
    np.testing.assert_array_equal(net_of_directions(DIM), first)
    np.testing.assert_array_equal(first[5:8], [[-4, 0, 4, 3, -2], [-4, -5, -5, 2, 2], [-5, 0, 0, 5, 1]])
    with pytest.raises(ValueError, match="read-only"):
        net[0, 0] = 2.0


def test_the_default_has_it_beside_windows_that_open_and_around_announced_arms_too():
    voices = automatic_voices(ls.Poisson(), SPACE)
    opening = ls.OpeningWindows(correlation=alike(DIM))
    wanted = ls.Patience().beside(Beside(ls.Windows(net_of_directions(DIM), alike(DIM)), opening), 0.4)
    assert repr(voices) == repr(wanted)
    np.testing.assert_array_equal(voices.second.first.centres, net_of_directions(DIM))
    arms = np.random.default_rng(1).standard_normal((3, DIM))
    announced = automatic_voices(ls.Poisson(), SPACE, arms).second.first.centres
    for rows in (arms, net_of_directions(DIM)):
        assert correlations(rows, announced).max(axis=1).min() >= 0.9
    # Axes that are announced have one window each, not two.
    assert len(automatic_voices(ls.Poisson(), SPACE, np.eye(DIM)).second.first.centres) == len(net_of_directions(DIM))
    free = automatic_voices(ls.Poisson(), ls.Linear(DIM))  # no common unit of columns, so no directions
    assert repr(free) == repr(ls.Patience().beside(ls.OpeningWindows()))
    assert isinstance(automatic_voices(ls.Poisson(), ls.Linear(3, 1.5)), ls.Patience)


@pytest.mark.parametrize("family", FAMILIES, ids=repr)
def test_one_step_growth_is_at_most_one(family):
    rng = np.random.default_rng(2)
    theta = 1.2 * unit(rng.standard_normal(DIM))
    sequence = ls.ConfidenceSequence(family, SPACE, ALPHA)
    X = unit(rng.standard_normal((10, DIM)))
    sequence.update(X, family.sample(X @ theta, rng))
    for x in (X[2], net_of_directions(DIM)[7] / 10.0):  # in a window's very middle, too
        checks.check_growth(sequence, x, [theta, np.zeros(DIM), -theta])


@pytest.mark.parametrize("family", FAMILIES, ids=repr)
def test_adaptive_anytime_coverage_of_an_optimists_rows(family):
    """The best upper bound of unannounced arms is asked, many times over; false-alarm probability below 1e-6."""
    runs, misses = 60, 0
    for number in range(runs):
        rng = np.random.default_rng([41, number])
        arms = unit(rng.standard_normal((15, DIM)))
        theta = 1.4 * np.sqrt(rng.uniform()) * unit(rng.standard_normal(DIM))
        sequence = ls.ConfidenceSequence(family, SPACE, ALPHA)
        for _ in range(5):
            x = np.repeat(arms[[int(np.argmax(sequence.set.upper(arms)))]], 6, axis=0)
            sequence.update(x, family.sample(x @ theta, rng))
            if not sequence.set.contains(theta):
                misses += 1
                break
    assert misses <= binom.ppf(1 - 1e-6, runs, ALPHA)


def test_coverage_of_rows_in_order_that_turn_from_what_has_told_most():
    """Rows lie along the net, in order; each direction is left once its window is against the truth."""
    runs, misses, family, net = 60, 0, ls.Gaussian(0.3), net_of_directions(DIM)
    for number in range(runs):
        rng = np.random.default_rng([42, number])
        theta, sequence = 1.2 * unit(rng.standard_normal(DIM)), ls.ConfidenceSequence(family, SPACE, ALPHA)
        for x in unit(net)[:12]:
            for _ in range(8):
                before = sequence.set.log_ratio(theta)
                sequence.update(x, family.sample(x[None] @ theta, rng))
                misses += not sequence.set.contains(theta)
                if not sequence.set.contains(theta) or sequence.set.log_ratio(theta) > before:
                    break
            if not sequence.set.contains(theta):
                break
    assert misses <= binom.ppf(1 - 1e-6, runs, ALPHA)


def test_directions_chosen_after_outcomes_do_not_cover():
    """Negative control: of windows around 120 axes, the one that has told most, with all of the error level."""
    runs, misses, dim = 30, 0, 120
    X = np.repeat(np.eye(dim), 10, axis=0)
    for number in range(runs):
        y = np.random.default_rng([43, number]).normal(size=len(X))  # theta* = 0
        space, predictor = ls.Linear(dim, 1.0), ls.Mixture([1.0])
        sequence = ls.ConfidenceSequence(ls.Gaussian(1.0), space, ALPHA, predictor, voices=None)
        sequence.update(X, y)
        ratios = sequence.ledger.log_q.rows - sequence.family.log_density(y, np.zeros(len(y)))
        windows = correlations(np.eye(dim), X) >= alike(dim)
        misses += np.cumsum(windows * ratios, axis=1).max() > np.log(1 / ALPHA)
    assert misses > binom.ppf(1 - 1e-6, runs, ALPHA)


@pytest.mark.parametrize("family", [ls.Gaussian(0.1), ls.Laplace(0.1)], ids=repr)
def test_narrower_where_an_optimist_chose_the_rows_and_nobody_announced_arms(family):
    widths = {"default": 0.0, "without the net": 0.0, "joint": 0.0}
    for number in range(3):
        rng = np.random.default_rng([44, number])
        arms, asked = unit(rng.standard_normal((40, DIM))), unit(rng.standard_normal((10, DIM)))
        theta = 0.8 * unit(rng.standard_normal(DIM))
        space = ls.Linear(DIM, 1.0)
        policy = ls.UCB(ls.ConfidenceSequence(family, space, 0.05), arms, rng=rng)
        for _ in range(100):
            arm = policy.ask()
            policy.tell(arm, family.sample(arms[arm : arm + 1] @ theta, rng)[0])
        ledger = policy.seq.ledger
        kinds = {"default": "auto", "without the net": ls.Patience().beside(ls.OpeningWindows()), "joint": None}
        for name, voices in kinds.items():
            sequence = ls.ConfidenceSequence(family, space, 0.05, voices=voices, alarm=False)
            sequence.update(ledger.x.rows, ledger.y.rows)
            low, high = sequence.set.interval(asked)
            widths[name] += float((high - low).mean())
    assert widths["default"] < 0.97 * widths["without the net"]
    assert widths["default"] < 0.93 * widths["joint"]


def test_files_and_journals_go_on_with_their_voices(tmp_path, monkeypatch):
    """Those begun before there was a net, and those with one if it should ever change."""
    rng = np.random.default_rng(6)
    X = unit(rng.standard_normal((40, DIM)))
    y = ls.Gaussian(0.3).sample(X[:, 0], rng)
    older = ls.Patience().beside(ls.OpeningWindows())
    for number, voices in enumerate((older, "auto")):
        asked = dict(family=ls.Gaussian(0.3), space=SPACE, alpha=ALPHA)
        whole = ls.ConfidenceSequence(**asked, voices=voices)
        with ls.ConfidenceSequence.open(tmp_path / f"journal {number}", **asked, voices=voices) as begun:
            for sequence in (whole, begun):
                sequence.update(X[:20], y[:20])
            whole.save(tmp_path / f"file {number}")
            whole.update(X[20:], y[20:])
        with monkeypatch.context() as patched:
            patched.setattr("likeset.voices.automatic.net_of_directions", lambda dim: np.eye(dim))
            loaded = ls.load(tmp_path / f"file {number}")
            with ls.ConfidenceSequence.open(tmp_path / f"journal {number}", **asked, voices=voices) as again:
                for sequence in (loaded, again):
                    sequence.update(X[20:], y[20:])
                    assert repr(sequence.voices) == repr(whole.voices)
                    np.testing.assert_array_equal(sequence.ledger.classes.rows, whole.ledger.classes.rows)
                    np.testing.assert_array_equal(sequence.set.upper(X), whole.set.upper(X))
