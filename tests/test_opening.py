"""Windows that open by themselves: masks known before y, validity, extrema, files, undo, when they are the default."""

from __future__ import annotations

import copy
import json
import sqlite3
import zipfile
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom

import likeset as ls
from likeset import checks
from likeset._solver.problem import MixtureSet
from likeset.voices import Beside
from likeset.voices.automatic import automatic_voices
from test_windows import cvxpy_maximum, log_ratio_by_hand

RNG = np.random.default_rng(11)
ARMS = RNG.standard_normal((12, 4))
ARMS /= np.linalg.norm(ARMS, axis=1)[:, None]
THETA = np.array([0.5, -0.3, 0.2, 0.4])
SPACE = ls.Linear(4, 1.5)
ALPHA = 0.1
FAMILIES = [ls.Gaussian(0.3), ls.Laplace(0.3), ls.Poisson(), ls.Bernoulli(), ls.Weibull(2.0)]


def kinds():
    return {
        "alone": ls.OpeningWindows(5, 0.5, 0.9),
        "beside": ls.Patience().beside(ls.OpeningWindows(), share=0.4),
        "within": ls.Patience(3, tail=0.0).within(ls.OpeningWindows(4, 0.3, 0.8)),
        "announced": automatic_voices(ls.Poisson(), SPACE, ARMS),
        "contrasts": ls.Contrasts(np.eye(4)[:1], others=ls.Patience().beside(ls.OpeningWindows(6))),
    }


def observed(family, voices, n=60, seed=0):
    rng = np.random.default_rng(seed)
    index = rng.integers(len(ARMS), size=n)
    sequence = ls.ConfidenceSequence(family, SPACE, ALPHA, voices=voices)
    sequence.update(ARMS[index], family.sample(ARMS[index] @ THETA, rng))
    return sequence


def assert_same_windows(found, wanted):
    np.testing.assert_array_equal(found.centres, wanted.centres)
    np.testing.assert_array_equal(found.frames, wanted.frames)


def masks_by_hand(X, windows, correlation, cover):
    """Row s is heard by window j: straight from the definition, one row after the other."""
    centres, heard = [], np.zeros((len(X), windows), dtype=bool)
    for s, x in enumerate(X):
        similar = [abs(x @ c) / np.linalg.norm(x) / np.linalg.norm(c) for c in centres]
        if len(centres) < windows and max(similar, default=0.0) < cover:
            centres.append(x)
            similar.append(1.0)
        heard[s, : len(centres)] = np.array(similar) >= correlation
    return heard


def test_the_ratio_is_that_of_the_definition():
    sequence = observed(ls.Gaussian(0.3), ls.OpeningWindows(5, 0.5, 0.9))
    ledger, theta = sequence.ledger, np.array([0.1, 0.3, 0.0, -0.2])
    heard = masks_by_hand(ledger.x.rows, 5, 0.5, 0.9)
    assert heard.any(axis=0).all() and not heard[:3].all()
    early = heard[ledger.covariate.rows == 0]
    assert early[0].sum() < early[-1].sum()  # windows that opened later hold the first covariate, too
    terms = ledger.log_q.rows - sequence.family.log_density(ledger.y.rows, ledger.x.rows @ theta)
    shares = 1.0 / (np.arange(5) + 5.0)
    logs = np.log(shares / shares.sum()) + heard.T @ terms
    assert sequence.set.log_ratio(theta) == pytest.approx(np.logaddexp.reduce(logs), rel=1e-9)


def test_classes_do_not_depend_on_their_own_outcome():
    sequence = observed(ls.Poisson(), ls.Patience().beside(ls.OpeningWindows()), n=15)
    for x in (ARMS[0], np.array([0.1, 0.2, -0.9, 0.4])):
        found = []
        for y in (0, 1, 9):
            step = copy.deepcopy(sequence)
            step.update(x, y)
            found.append((step.ledger.classes.rows[-1], len(step._running.membership.opened.centres)))
        assert len(set(found)) == 1


@pytest.mark.parametrize("kind", ["alone", "beside", "within", "announced"])
@pytest.mark.parametrize("family", FAMILIES, ids=repr)
def test_one_step_growth_is_at_most_one(family, kind):
    sequence = observed(family, kinds()[kind], n=8)
    for x in (ARMS[1], np.array([0.1, 0.2, -0.9, 0.4])):  # seen or not: at the other one a window opens
        checks.check_growth(sequence, x, [THETA, np.zeros(4)])


@pytest.mark.parametrize("family", FAMILIES, ids=repr)
def test_adaptive_anytime_coverage(family):
    """The widest interval is asked, every step counts; false-alarm probability below 1e-6."""
    runs, misses = 60, 0
    for number in range(runs):
        rng = np.random.default_rng([31, number])
        theta = rng.normal(size=4)
        theta *= 1.4 * np.sqrt(rng.uniform()) / np.linalg.norm(theta)
        sequence = ls.ConfidenceSequence(family, SPACE, ALPHA)
        for _ in range(5):
            low, high = sequence.set.interval(ARMS)
            x = np.repeat(ARMS[[int(np.argmax(high - low + 1e-6 * rng.uniform(size=len(ARMS))))]], 6, axis=0)
            sequence.update(x, family.sample(x @ theta, rng))
            if not sequence.set.contains(theta):
                misses += 1
                break
    assert misses <= binom.ppf(1 - 1e-6, runs, ALPHA)


def test_windows_that_open_where_outcomes_were_telling_and_hear_those_do_not_cover():
    """Negative control: a window that hears rows from before it opened, around the covariate that has told most."""
    runs, misses = 30, 0
    for number in range(runs):
        rng = np.random.default_rng([32, number])
        sequence = ls.ConfidenceSequence(ls.Gaussian(1.0), ls.Linear(30, 1.0), ALPHA, ls.Mixture([1.0]), voices=None)
        y = rng.normal(size=(30, 10))  # theta* = 0
        sequence.update(np.repeat(np.eye(30), 10, axis=0), y.ravel())
        ratios = sequence.ledger.log_q.rows - sequence.family.log_density(y.ravel(), np.zeros(300))
        misses += ratios.reshape(30, 10).cumsum(axis=1).max() > np.log(1 / ALPHA)
    assert misses > binom.ppf(1 - 1e-6, runs, ALPHA)


@pytest.mark.parametrize("kind", ["alone", "beside", "within", "announced"])
@pytest.mark.parametrize("family", [ls.Gaussian(0.3), ls.Laplace(0.3), ls.Poisson(), ls.Bernoulli()], ids=repr)
def test_extrema_agree_with_cvxpy(family, kind):
    s = observed(family, kinds()[kind]).set
    e = s._evidence
    target = MixtureSet(e.groups.coordinates[e.groups.owners], e.terms, e.gains, e.audible, e.threshold, e.bound)
    assert s.log_ratio(THETA) == pytest.approx(
        log_ratio_by_hand(target, s._basis.project(THETA)[0]), rel=1e-9, abs=1e-9
    )
    asked = ARMS[:3]
    found = s.support(asked)
    values = [cvxpy_maximum(target, a) for a in s._basis.coordinates(asked)[0]]
    assert sum(value is not None for value in values) >= 2
    for upper, value in zip(found.upper, values, strict=True):
        assert value is None or upper == pytest.approx(value, abs=1e-5 * max(1.0, abs(value)))
    assert (s.log_ratio(found.maximisers) <= -np.log(ALPHA) + 1e-9).all()


def test_the_default_from_four_dimensions_on_and_narrower_where_rows_were_chosen():
    voices = ls.ConfidenceSequence(ls.Poisson(), ls.Linear(4, 2.0)).voices
    assert isinstance(voices.second.second, ls.OpeningWindows)
    assert isinstance(ls.ConfidenceSequence(ls.Poisson(), ls.Linear(3, 2.0)).voices, ls.Patience)
    free = ls.ConfidenceSequence(ls.Poisson(), ls.Linear(4)).voices
    assert repr(free) == repr(ls.Patience().beside(ls.OpeningWindows()))
    assert isinstance(ls.ConfidenceSequence(ls.Poisson(), ls.Linear(3)).voices, ls.Patience)
    rng = np.random.default_rng(3)
    arms = rng.standard_normal((40, 5))
    arms /= np.linalg.norm(arms, axis=1)[:, None]
    index = rng.integers(40, size=300)
    y = 0.3 * arms[index, 0] + 0.3 * rng.normal(size=300)
    width = {}
    for name, own in (("default", "auto"), ("patience", ls.Patience())):
        sequence = ls.ConfidenceSequence(ls.Gaussian(0.3), ls.Linear(5, 1.0), 0.05, voices=own, alarm=False)
        sequence.update(arms[index], y)
        low, high = sequence.set.interval(arms)
        width[name] = float((high - low).mean())
    assert width["default"] < width["patience"]


# -- without a bound ------------------------------------------------------------------------------------------------


FREE = ls.Linear(4)
UNITS = np.array([1.0, 1e3, 1e-4, 30.0])
AGES = np.column_stack([np.ones(60), 20.0 + 60.0 * RNG.uniform(size=60), RNG.normal(size=(60, 2))])


def framed(low, high):
    """Middles and units: columns on one side of zero from the middle of their range, others from zero."""
    one_sided = (low * high > 0) & (low < high)
    largest = np.maximum(np.abs(low), np.abs(high))
    return np.where(one_sided, (low + high) / 2, 0.0), np.where(one_sided, (high - low) / 2, largest)


def correlation_by_hand(a, b, frame):
    a, b = (a - frame[0]) / frame[1], (b - frame[0]) / frame[1]
    return abs(a @ b) / np.sqrt((a @ a) * (b @ b))


def test_columns_are_measured_by_their_ranges_so_far():
    windows = ls.OpeningWindows(6, 0.5, 0.8)
    sequence = ls.ConfidenceSequence(ls.Gaussian(0.3), FREE, ALPHA, voices=windows)
    sequence.update(AGES, np.zeros(60))
    centres, frames, heard = [], [], np.zeros((60, 6), dtype=bool)
    for s, x in enumerate(AGES):
        now = framed(AGES[: s + 1].min(axis=0), AGES[: s + 1].max(axis=0))
        if len(centres) < 6 and max((correlation_by_hand(x, c, now) for c in centres), default=0.0) < 0.8:
            centres.append(x)
            frames.append(now)
        heard[s, : len(centres)] = [correlation_by_hand(x, c, f) >= 0.5 for c, f in zip(centres, frames, strict=True)]
    assert len(centres) == 6 and not heard.all()
    np.testing.assert_array_equal(sequence._running.membership.masks.T, heard)


def test_windows_do_not_depend_on_units_of_columns():
    masks = []
    for units in (np.ones(4), UNITS, -UNITS):
        sequence = ls.ConfidenceSequence(ls.Gaussian(0.3), FREE, ALPHA)
        sequence.update(AGES * units, AGES[:, 2])
        masks.append(sequence._running.membership.masks)
    np.testing.assert_array_equal(masks[0], masks[1])
    np.testing.assert_array_equal(masks[0], masks[2])


@pytest.mark.parametrize("family", [ls.Gaussian(0.3), ls.Poisson(), ls.Bernoulli()], ids=repr)
def test_one_step_growth_without_a_bound(family):
    sequence = ls.ConfidenceSequence(family, FREE, ALPHA)
    rng = np.random.default_rng(8)
    X = ARMS[rng.integers(len(ARMS), size=10)] + [1.5, 0.0, 0.0, 0.0]
    sequence.update(X, family.sample(X @ THETA, rng))
    for x in (X[2], np.array([3.0, 0.2, -0.9, 0.4])):  # the other one widens ranges and opens a window
        checks.check_growth(sequence, x, [THETA, np.zeros(4)])


def test_adaptive_anytime_coverage_without_a_bound():
    """The widest interval is asked, in units that grow; false-alarm probability below 1e-6."""
    runs, misses, family = 60, 0, ls.Gaussian(0.3)
    for number in range(runs):
        rng = np.random.default_rng([33, number])
        theta, sequence = rng.normal(size=4), ls.ConfidenceSequence(family, FREE, ALPHA)
        for step in range(6):
            rows = ARMS * (1.0 + step)
            low, high = sequence.set.interval(rows)
            best = int(np.argmax(np.where(np.isfinite(high - low), high - low, 1e9) + rng.uniform(size=len(rows))))
            x = np.repeat(rows[[best]], 5, axis=0)
            sequence.update(x, family.sample(x @ theta, rng))
            if not sequence.set.contains(theta):
                misses += 1
                break
    assert misses <= binom.ppf(1 - 1e-6, runs, ALPHA)


def test_a_checkpoint_of_ranges(tmp_path):
    rng = np.random.default_rng(9)
    X = np.repeat(AGES, 45, axis=0)[rng.permutation(2700)]
    y = X[:, 2] + rng.normal(size=2700)
    with ls.ConfidenceSequence.open(tmp_path / "journal", ls.Gaussian(1.0), FREE, ALPHA, alarm=False) as sequence:
        sequence.update(X[:2650], y[:2650])
        sequence.save(tmp_path / "saved")
    loaded = ls.load(tmp_path / "saved")
    with ls.ConfidenceSequence.open(tmp_path / "journal", ls.Gaussian(1.0), FREE, ALPHA, alarm=False) as again:
        whole = ls.ConfidenceSequence(ls.Gaussian(1.0), FREE, ALPHA, alarm=False)
        whole.update(X, y)
        for continued in (again, loaded):
            continued.update(X[2650:], y[2650:])
            assert_same_windows(continued._running.membership.opened, whole._running.membership.opened)
            np.testing.assert_array_equal(continued.ledger.classes.rows, whole.ledger.classes.rows)
            np.testing.assert_array_equal(continued._running.membership.masks, whole._running.membership.masks)


def test_entries_of_all_sizes_are_measured():
    X = np.array([[1e-120, 0.0, 1.0, 0.0], [1e120, 1.0, 1.0, 0.0], [0.0, 0.0, 0.0, 0.0], [0.0, -1e120, 1.0, 1e-120]])
    sequence = ls.ConfidenceSequence(ls.Gaussian(1.0), FREE, ALPHA, voices=ls.OpeningWindows())
    for x in X:
        membership = sequence._running.membership
        membership = membership.including(x, membership.label(x, lambda: 1.0))
        assert np.isfinite(membership.masks).all()


# -- files, undo, refusals ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", kinds())
def test_saved_and_durable_sequences_continue_bit_for_bit(tmp_path, kind):
    rng = np.random.default_rng(5)
    index = rng.integers(len(ARMS), size=50)
    y = ls.Gaussian(0.3).sample(ARMS[index] @ THETA, rng)
    made = dict(family=ls.Gaussian(0.3), space=SPACE, alpha=ALPHA, voices=kinds()[kind])
    whole = ls.ConfidenceSequence(**made)
    whole.update(ARMS[index], y)
    half = ls.ConfidenceSequence(**made)
    half.update(ARMS[index[:5]], y[:5])  # some windows are still to open
    half.save(tmp_path / "half")
    loaded = ls.load(tmp_path / "half")
    with ls.ConfidenceSequence.open(tmp_path / "journal", **made) as durable:
        durable.update(ARMS[index[:5]], y[:5])
    durable = ls.ConfidenceSequence.open(tmp_path / "journal", **made)
    for sequence in (loaded, durable):
        sequence.update(ARMS[index[5:]], y[5:])
        assert repr(sequence.voices) == repr(whole.voices)
        assert_same_windows(sequence._running.membership.opened, whole._running.membership.opened)
        np.testing.assert_array_equal(sequence.ledger.classes.rows, whole.ledger.classes.rows)
        np.testing.assert_array_equal(sequence._running.membership.masks, whole._running.membership.masks)
        np.testing.assert_array_equal(sequence.set.upper(ARMS), whole.set.upper(ARMS))
    durable.close()


def test_a_checkpoint_knows_which_windows_have_opened(tmp_path):
    index = np.random.default_rng(6).integers(len(ARMS), size=2600)
    y = ls.Gaussian(0.3).sample(ARMS[index] @ THETA, np.random.default_rng(7))
    with ls.ConfidenceSequence.open(tmp_path / "journal", ls.Gaussian(0.3), SPACE, ALPHA) as sequence:
        sequence.update(ARMS[index], y)
        opened, masks = sequence._running.membership.opened, sequence._running.membership.masks.copy()
    with ls.ConfidenceSequence.open(tmp_path / "journal", ls.Gaussian(0.3), SPACE, ALPHA) as again:
        assert_same_windows(again._running.membership.opened, opened)
        np.testing.assert_array_equal(again._running.membership.masks, masks)


def test_a_failed_batch_leaves_windows_as_they_were_and_others_may_open():
    sequence = observed(ls.Poisson(), ls.OpeningWindows(), n=2)
    before = sequence._running.membership.opened
    other = np.array([[0.0, 0.0, 1.0, 0.0], [0.9, 0.1, 0.0, 0.4]])
    with pytest.raises(ls.LikesetError):
        sequence.update(np.vstack([other[:1], ARMS[:1]]), [1.0, -3.0])  # no count
    assert sequence._running.membership.opened is before
    sequence.update(other[1:], [1.0])
    fresh = ls.ConfidenceSequence(ls.Poisson(), SPACE, ALPHA, voices=ls.OpeningWindows())
    fresh.update(sequence.ledger.x.rows, sequence.ledger.y.rows)
    assert_same_windows(fresh._running.membership.opened, sequence._running.membership.opened)
    np.testing.assert_array_equal(fresh.ledger.classes.rows, sequence.ledger.classes.rows)


def test_files_from_before_ranges_go_on_with_the_windows_they_have(tmp_path):
    """Without a bound columns were measured as they come: 12 rows, the next 8 and the numbers are that release's."""
    X = np.array([
        [1.0, 1.51, 1.36, -1.55], [1.0, 1.89, 0.86, 0.12], [1.0, 2.01, -0.64, 2.0], [1.0, 2.11, 0.76, -1.2],
        [1.0, 2.99, 0.07, 0.58], [1.0, 2.59, -0.19, 0.68], [1.0, 2.24, -0.07, 0.67], [1.0, 2.98, 1.44, -0.68],
    ])  # fmt: skip
    theta, answers = [0.4, 0.4, 0.9, -1.1], (0.0433035331041297, 0.23447947483602136)
    loaded = ls.load(Path(__file__).parent / "data" / "opening-v4.likeset")
    first = loaded.ledger.x.rows.copy(), loaded.ledger.y.rows.copy()
    assert loaded.set.log_ratio(theta) == pytest.approx(answers[0], rel=1e-11)
    loaded.save(tmp_path / "again")
    asked = dict(voices=loaded.voices.first.beside(ls.OpeningWindows(6)))
    journal = tmp_path / "journal"
    ls.ConfidenceSequence.open(journal, loaded.family, loaded.space, **asked).close()
    with closing(sqlite3.connect(journal, isolation_level=None)) as database:  # described without an edition
        (said,) = database.execute("SELECT description FROM windows").fetchone()
        described = json.loads(said)
        assert described["parts"]["second"].pop("edition") == 1
        database.execute("UPDATE windows SET description = ?", (json.dumps(described),))
    with ls.ConfidenceSequence.open(journal, loaded.family, loaded.space, **asked) as durable:
        durable.update(*first)
        assert durable.set.log_ratio(theta) == pytest.approx(answers[0], rel=1e-11)
    with ls.ConfidenceSequence.open(journal, loaded.family, loaded.space, **asked) as durable:
        for sequence in (loaded, ls.load(tmp_path / "again"), durable):
            sequence.update(X, [3.78, 1.95, -0.71, 3.65, 1.02, 0.48, 0.53, 4.57])
            assert sequence.set.log_ratio(theta) == pytest.approx(answers[1], rel=1e-11)
            assert sequence._running.membership.masks.sum(axis=1).tolist() == [20, 10, 9, 19, 18, 7, 5, 0, 0]
            assert sequence.ledger.classes.rows[-3:].tolist() == [131, 132, 130]


def test_a_file_of_a_later_edition_is_refused(tmp_path):
    sequence = ls.ConfidenceSequence(ls.Gaussian(0.3), FREE, ALPHA, voices=ls.OpeningWindows())
    sequence.save(tmp_path / "file")
    for edition in (2, -1, "1", None):
        with zipfile.ZipFile(tmp_path / "file") as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
        header = json.loads(members["header.json"])
        header["windows"]["edition"] = edition
        with zipfile.ZipFile(tmp_path / "other", "w") as archive:
            for name, contents in (members | {"header.json": json.dumps(header)}).items():
                archive.writestr(name, contents)
        with pytest.raises(ls.FileFormatError, match="edition"):
            ls.load(tmp_path / "other")


@pytest.mark.parametrize(
    ("make", "argument"),
    [
        (lambda: ls.OpeningWindows(0), "windows"),
        (lambda: ls.OpeningWindows(31), "windows"),
        (lambda: ls.OpeningWindows(correlation=1.0), "correlation"),
        (lambda: ls.OpeningWindows(cover=0.0), "cover"),
        (lambda: Beside(ls.OpeningWindows(), ls.Patience().within(ls.OpeningWindows())), "second"),
    ],
)
def test_bad_input(make, argument):
    with pytest.raises(ls.InvalidArgumentError) as caught:
        make()
    assert caught.value.argument == argument
