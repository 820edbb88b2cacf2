"""Durable sequences: nothing acknowledged is lost, nothing is there twice, evidence is restored bit for bit."""

import copy
import os
import pickle
import shutil
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

import journal_worker
import likeset as ls
from killing import check_kills
from likeset.evidence.ledger import Ledger
from likeset.persistence import durable, journal
from test_update import CASES, GRID, Average, Injected, arms, fingerprint, linear, rows

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="forks and signals")


def opened(path, case="poisson"):
    """The sequence of a case of test_update, durable."""
    made = CASES[case][0]()
    windows = "auto" if made._voices_are_automatic else made.voices
    pieces = {"predictor": made.predictor, "weighting": made.weighting, "windows": windows}
    return ls.ConfidenceSequence.open(path, made.family, made.space, made.alpha, **pieces)


def filled(path, case="poisson", n=7):
    sequence = opened(path, case)
    sequence.update(*rows(CASES[case][1], n, seed=1))
    return sequence


# -- open, continue ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("states", ["kept", "none"])
def test_a_sequence_continues_bit_for_bit(case, states, tmp_path, monkeypatch):
    """Closed and opened after every few rows, it is the sequence that was never closed; with and without states."""
    monkeypatch.setattr(durable, "STATE_EVERY", 2)
    if states == "none":
        monkeypatch.setattr(durable.DurableRecord, "keep_state", lambda *_, **__: None)
    memory, kind = CASES[case][0](), CASES[case][1]
    if "own" in case:  # a user's own family or forecaster is observed again, and may warm-start differently
        memory.predictor = copy.deepcopy(memory.predictor)
    for seed in range(4):
        batch = rows(kind, 3, seed)
        memory.update(*batch)
        with opened(tmp_path / "a", case) as sequence:
            sequence.update(*batch)
        assert fingerprint(sequence) == fingerprint(memory)
    with opened(tmp_path / "a", case) as sequence:
        assert fingerprint(sequence) == fingerprint(memory)
        asked = GRID if kind == "function" else arms()
        assert np.array_equal(sequence.set.upper(asked), memory.set.upper(asked))


def test_what_was_scored_is_never_forecast_again(tmp_path, monkeypatch):
    """Rows with weights and log-densities as recorded, -inf and -0.0 included, whatever a forecaster says today."""

    class Oracle(Average):
        says = 0.25

        def forecast(self, phi):
            return ls.PlugIn(self.family, self.says)

    family = ls.Gaussian(0.5)
    first = ls.ConfidenceSequence.open(tmp_path / "a", family, ls.Linear(3, 3.0), predictor=Oracle(family))
    first.update(*rows("real", 6, seed=0))
    first.close()
    Oracle.says = -1.0
    second = ls.ConfidenceSequence.open(tmp_path / "a", family, ls.Linear(3, 3.0), predictor=Oracle(family))
    assert np.array_equal(second.ledger.log_q.rows, first.ledger.log_q.rows)
    assert second.set.log_ratio([0.1, 0.2, 0.3]) == first.set.log_ratio([0.1, 0.2, 0.3])
    assert second.forecaster.count == 6
    second.close()


def test_an_outcome_of_density_zero_is_kept(tmp_path):
    family, space = ls.Poisson(), ls.Linear(1, 1.0)

    class NeverTwo(Average):
        def forecast(self, phi):
            return self

        def log_density(self, y):
            return np.where(np.asarray(y) == 2, -np.inf, self.family.log_density(y, 0.0))

    with ls.ConfidenceSequence.open(tmp_path / "a", family, space, predictor=NeverTwo(family)) as sequence:
        sequence.update([1.0], 2)
        assert sequence.ledger.log_q.rows[0] == -np.inf
    with ls.ConfidenceSequence.open(tmp_path / "a", family, space, predictor=NeverTwo(family)) as again:
        assert again.ledger.log_q.rows[0] == -np.inf


def test_windows_chosen_before_the_first_row_are_kept(tmp_path):
    def fresh():
        return ls.ConfidenceSequence.open(tmp_path / "a", ls.Gaussian(0.1), ls.Linear(3, 3.0))

    with fresh() as sequence:
        assert isinstance(sequence.voices, ls.Patience)
        sequence.expect(arms())
        chosen = sequence.windows.settings()
    with fresh() as sequence:
        assert sequence.windows.settings() == chosen
        sequence.update(arms()[0], 0.1)
    with fresh() as sequence:
        assert sequence.windows.settings() == chosen
        assert sequence._running.membership.masks.shape[1] == 1


def test_another_definition_is_refused(tmp_path):
    filled(tmp_path / "a").close()
    before = (tmp_path / "a").read_bytes()
    with pytest.raises(ls.JournalMismatchError, match=r"alpha: 0\.05 there, 0\.1 here") as caught:
        ls.ConfidenceSequence.open(
            tmp_path / "a", ls.Poisson(), ls.Linear(3, 3.0), 0.1, weighting=ls.BiasWeighting("exact")
        )
    assert set(caught.value.differences) == {"alpha", "weighting"}
    assert (tmp_path / "a").read_bytes() == before
    assert opened(tmp_path / "a").n_observations == 7


def test_what_is_no_journal_is_refused(tmp_path):
    (tmp_path / "text").write_text("x, y\n" * 1000)
    connection = sqlite3.connect(tmp_path / "other")
    connection.execute("CREATE TABLE t (x)")
    connection.close()
    for name in ("text", "other"):
        before = (tmp_path / name).read_bytes()
        with pytest.raises(ls.FileFormatError, match="not a likeset journal"):
            opened(tmp_path / name)
        assert (tmp_path / name).read_bytes() == before
    with pytest.raises(ls.InvalidArgumentError, match="folder"):
        opened(tmp_path)
    with pytest.raises(ls.JournalError, match="writable"):
        opened(tmp_path / "missing" / "a")


def test_a_damaged_state_is_not_used_and_a_damaged_row_is_found(tmp_path, monkeypatch):
    monkeypatch.setattr(durable, "STATE_EVERY", 3)
    sequence = filled(tmp_path / "a")
    sequence.close()
    kept = fingerprint(sequence)
    for change in (
        "UPDATE states SET contents = zeroblob(100)",
        "UPDATE states SET contents = zeroblob(100), crc = 0",
        "UPDATE states SET number = number + 1",
        "UPDATE states SET number = 1000",
        "DELETE FROM states",
    ):
        _tamper(tmp_path / "a", change)
        with opened(tmp_path / "a") as again:
            assert fingerprint(again) == kept
    for change in ("UPDATE rows SET log_q = zeroblob(8) WHERE number = 3", "DELETE FROM rows WHERE number = 2"):
        shutil.copy(tmp_path / "a", tmp_path / "b")
        _tamper(tmp_path / "b", change)
        with pytest.raises(ls.FileFormatError, match="row"):
            opened(tmp_path / "b")


def _tamper(path, change):
    with sqlite3.connect(path) as connection:
        assert connection.execute(change).rowcount
    connection.close()


# -- one writer -------------------------------------------------------------------------------------------------------


def test_a_second_writer_is_refused_at_once(tmp_path):
    sequence = filled(tmp_path / "a")
    (tmp_path / "link").symlink_to(tmp_path / "a")
    (tmp_path / "a").read_bytes()  # closing a file drops the locks that POSIX gives a process; ours stays
    start = time.perf_counter()
    for name in ("a", "link"):
        with pytest.raises(ls.JournalInUseError, match="one writer"):
            opened(tmp_path / name)
    script = (
        "import sys, likeset as ls\n"
        "try: ls.ConfidenceSequence.open(sys.argv[1], ls.Poisson(), ls.Linear(3, 3.0))\n"
        "except ls.JournalInUseError: print('refused')"
    )
    answer = subprocess.run([sys.executable, "-c", script, str(tmp_path / "a")], capture_output=True, text=True)
    assert answer.stdout == "refused\n", answer.stderr
    assert time.perf_counter() - start < 60.0
    sequence.update(*rows("count", 1, seed=2))
    sequence.close()
    sequence.close()
    with opened(tmp_path / "a") as again:
        assert again.n_observations == 8


def test_a_fork_can_neither_write_nor_harm(tmp_path):
    sequence = filled(tmp_path / "a")
    child = os.fork()
    if child == 0:
        answer = 1
        try:
            sequence.set.log_ratio([0.0, 0.0, 0.0])
            try:
                sequence.update(*rows("count", 1, seed=2))
            except ls.JournalError:
                answer = 0 if sequence.n_observations == 7 else 2
            sequence.close()
            del sequence
        finally:
            os._exit(answer)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    sequence.update(*rows("count", 2, seed=2))
    with pytest.raises(ls.JournalInUseError):
        opened(tmp_path / "a")
    sequence.close()
    with opened(tmp_path / "a") as again:
        assert again.n_observations == 9


def test_a_closed_sequence_answers_and_does_not_record(tmp_path):
    sequence = filled(tmp_path / "a")
    sequence.close()
    assert np.isfinite(sequence.set.upper(arms())).all()
    with pytest.raises(ls.JournalError, match="closed"):
        sequence.update(*rows("count", 1, seed=2))
    assert sequence.n_observations == 7


def test_copies_live_in_memory(tmp_path):
    with filled(tmp_path / "a") as sequence:
        for other in (copy.deepcopy(sequence), pickle.loads(pickle.dumps(sequence))):
            other.update(*rows("count", 2, seed=2))
            assert (other.n_observations, sequence.n_observations) == (9, 7)
    with opened(tmp_path / "a") as again:
        assert again.n_observations == 7


# -- errors, interrupts, threads --------------------------------------------------------------------------------------


@pytest.mark.parametrize("pragma", ["max_page_count = 1", "query_only = ON"])
def test_a_full_or_read_only_disk_changes_nothing(tmp_path, pragma):
    sequence = filled(tmp_path / "a")
    before = fingerprint(sequence)
    connection = sequence._durable.journal._connection
    connection.execute(f"PRAGMA {pragma}")
    big = rows("count", 3000, seed=2)
    with pytest.raises(ls.JournalError, match="nothing was recorded"):
        sequence.update(*big)
    assert fingerprint(sequence) == before
    connection.execute("PRAGMA max_page_count = 1000000")
    connection.execute("PRAGMA query_only = OFF")
    sequence.update(*rows("count", 2, seed=3))
    sequence.close()
    with opened(tmp_path / "a") as again:
        assert fingerprint(again) == fingerprint(sequence)
        assert again.n_observations == 9


def check_interrupts(tmp_path, share, twice):
    """Interrupt durable updates at a share of their lines: afterwards memory and disk say the same, each row once."""
    rng = np.random.default_rng(0)
    sequence, (X, Y) = opened(tmp_path / "a"), rows("count", 4000, seed=2)
    sequence.update(X[:2], Y[:2])
    tracer, before = Injected(()), sys.gettrace()
    sys.settrace(tracer)
    sequence.update(X[2:4], Y[2:4])
    sys.settrace(before)
    n, forward = 4, 0
    chosen = rng.random(tracer.count + 60) < share
    chosen[-100:] = True  # the last lines come after the disk has the rows; updates differ by a few lines
    for k in np.flatnonzero(chosen) + 1:
        at = (int(k), int(k + rng.integers(1, 30))) if twice else (int(k),)
        sys.settrace(Injected(at))
        interrupted = False
        try:
            sequence.update(X[n : n + 2], Y[n : n + 2])
        except KeyboardInterrupt:
            interrupted = True
        finally:
            sys.settrace(before)
        forward += interrupted and sequence.n_observations > n
        n = sequence.n_observations
        assert sequence._durable.journal.extent()[0] == n
    sequence.update(X[n : n + 1], Y[n : n + 1])
    memory = CASES["poisson"][0]()
    memory.update(X[: n + 1], Y[: n + 1])
    assert np.array_equal(sequence.ledger.x.rows, X[: n + 1]) and np.array_equal(sequence.ledger.y.rows, Y[: n + 1])
    assert fingerprint(sequence) == fingerprint(memory)
    sequence.close()
    with opened(tmp_path / "a") as again:
        assert fingerprint(again) == fingerprint(memory)
    return forward


def test_interrupts_leave_memory_and_disk_in_agreement(tmp_path):
    assert check_interrupts(tmp_path, 0.2, twice=False)
    shutil.rmtree(tmp_path)
    tmp_path.mkdir()
    check_interrupts(tmp_path, 0.1, twice=True)


@pytest.mark.slow
def test_many_interrupts_leave_memory_and_disk_in_agreement(tmp_path):
    check_interrupts(tmp_path, 1.0, twice=False)
    shutil.rmtree(tmp_path)
    tmp_path.mkdir()
    check_interrupts(tmp_path, 1.0, twice=True)


def test_threads_may_share_a_durable_sequence(tmp_path, monkeypatch):
    monkeypatch.setattr(journal, "SYNCHRONOUS", "OFF")
    sequence, errors = opened(tmp_path / "a"), []

    def write(seed):
        try:
            for x, y in zip(*rows("count", 40, seed), strict=True):
                sequence.update(x, y)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=write, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    sequence.close()
    with opened(tmp_path / "a") as again:
        assert again.n_observations == 320
        assert fingerprint(again) == fingerprint(sequence)


# -- kills, torn files ------------------------------------------------------------------------------------------------


def killed(folder, kills, seed):
    """(rows acknowledged, batches found unacknowledged) of a durable sequence, killed again and again."""
    path = folder / "a"

    def recorded():
        with journal_worker.opened(path) as sequence:  # the lock of the dead is gone
            n = sequence.n_observations
            assert np.array_equal(sequence.ledger.y.rows, [journal_worker.row(i)[1] for i in range(n)])
        return n

    acknowledged, extra = check_kills(
        journal_worker, path, kills, np.random.default_rng(seed), most=8, pause=0.006, recorded=recorded
    )
    memory = ls.ConfidenceSequence(ls.Gaussian(0.5), ls.Linear(2, 2.0))
    for i in range(acknowledged):
        memory.update(*journal_worker.row(i))
    with journal_worker.opened(path) as sequence:
        assert fingerprint(sequence) == fingerprint(memory)
    return acknowledged, extra


def test_kills_lose_nothing_that_was_acknowledged(tmp_path):
    acknowledged, _ = killed(tmp_path, 25, seed=0)
    assert acknowledged > 25


@pytest.mark.slow
def test_hundreds_of_kills(tmp_path):
    acknowledged, extra = killed(tmp_path, 300, seed=1)
    assert acknowledged > 300 and extra > 0  # some were hit between the disk and the acknowledgement


def check_lost_tails(tmp_path, cuts, seed):
    """What a power failure leaves: synchronised bytes, and any part of what was written after them.

    A file system that lies about fsync cannot be simulated from here, nor single sectors. What can: the files are
    copied after every update (``synced``: what was on disk when it returned) and once more after the next one, and the
    tail between the two is cut, zeroed or filled with noise at every kind of place. Opened again, the sequence must
    hold everything acknowledged at the first copy, and be a prefix of what was sent.
    """
    rng, (X, Y) = np.random.default_rng(seed), rows("count", 40, seed=5)
    sequence, log = opened(tmp_path / "a"), Path(f"{tmp_path / 'a'}-wal")
    for k in range(8):
        sequence.update(X[3 * k : 3 * k + 2], Y[3 * k : 3 * k + 2])
        acknowledged, synced, main = sequence.n_observations, log.read_bytes(), (tmp_path / "a").read_bytes()
        sequence.update(X[3 * k + 2], Y[3 * k + 2])
        written = log.read_bytes()
        assert (tmp_path / "a").read_bytes() == main and written[: len(synced)] == synced
        frames = range(len(synced), len(written) + 1, 24 + 4096)
        places = [*frames, len(synced) + 1, len(written) - 1, *rng.integers(len(synced), len(written), size=cuts)]
        for place in map(int, places):
            rest = len(written) - place
            for tail in (b"", bytes(rest), rng.bytes(rest)):
                (tmp_path / "b").write_bytes(main)
                (tmp_path / "b-wal").write_bytes(written[:place] + tail)
                with opened(tmp_path / "b") as found:
                    n = found.n_observations
                    assert n == acknowledged or (n == acknowledged + 1 and place >= len(written) - 1)
                    assert np.array_equal(found.ledger.y.rows, Y[:n])
                Path(f"{tmp_path / 'b'}-wal").unlink(missing_ok=True)
    # Beyond what fsync promises: a log cut anywhere opens with a prefix.
    for place in rng.integers(0, len(written), size=cuts):
        (tmp_path / "b").write_bytes(main)
        (tmp_path / "b-wal").write_bytes(written[: int(place)])
        try:
            with opened(tmp_path / "b") as found:
                assert np.array_equal(found.ledger.y.rows, Y[: found.n_observations])
        finally:
            Path(f"{tmp_path / 'b'}-wal").unlink(missing_ok=True)
    sequence.close()


def test_rows_acknowledged_before_the_disk_has_them_would_be_missed(tmp_path):
    """What the checks around this one look for: a journal that returned from ``update`` too early, then lost power."""
    X, Y = rows("count", 3, seed=5)
    with opened(tmp_path / "a") as sequence:
        sequence.update(X[:2], Y[:2])
        (tmp_path / "b").write_bytes((tmp_path / "a").read_bytes())
        (tmp_path / "b-wal").write_bytes(Path(f"{tmp_path / 'a'}-wal").read_bytes())
        sequence.update(X[2], Y[2])
        acknowledged = sequence.n_observations
    with opened(tmp_path / "b") as found:  # the disk of that moment
        assert found.n_observations == acknowledged - 1


def test_unsynchronised_writes_may_be_lost(tmp_path):
    check_lost_tails(tmp_path, cuts=2, seed=0)


@pytest.mark.slow
def test_unsynchronised_writes_may_be_lost_anywhere(tmp_path):
    check_lost_tails(tmp_path, cuts=60, seed=1)


def test_update_returns_after_the_disk_has_it(tmp_path):
    """The setting on which all of this rests is that of the open connection."""
    with filled(tmp_path / "a") as sequence:
        connection = sequence._durable.journal._connection
        assert connection.execute("PRAGMA synchronous").fetchone()[0] == 2  # FULL
        assert connection.execute("PRAGMA journal_mode").fetchone()[0] == "wal"
        assert not connection.in_transaction


# -- cost -------------------------------------------------------------------------------------------------------------


def test_a_long_journal_is_opened_from_the_state_kept(tmp_path, monkeypatch):
    """Not row by row: `python -m benchmarks --only updates` has the times."""
    monkeypatch.setattr(journal, "SYNCHRONOUS", "OFF")
    family, space, predictor = ls.Poisson(), ls.Linear(3, 3.0), ls.Fixed([0.1, 0.2, 0.3])
    with ls.ConfidenceSequence.open(tmp_path / "a", family, space, predictor=predictor) as sequence:
        for k in range(30):
            sequence.update(arms(100, seed=k % 3), np.zeros(100))
        expected = sequence.set.log_ratio([0.1, 0.0, 0.2])
    replayed = []
    monkeypatch.setattr(
        Ledger, "append", lambda ledger, *row, was=Ledger.append: replayed.append(1) or was(ledger, *row)
    )
    with ls.ConfidenceSequence.open(tmp_path / "a", family, space, predictor=predictor) as sequence:
        assert sequence.n_observations == 3000
        assert sequence.set.log_ratio([0.1, 0.0, 0.2]) == expected
    assert len(replayed) < 2000


def test_rkhs_without_a_domain(tmp_path):
    space, rng = ls.RKHS(RBF(0.3), 2.0, dim=2), np.random.default_rng(0)
    X, Y = rng.random((30, 2)), rng.normal(size=30)
    memory = ls.ConfidenceSequence(ls.Gaussian(0.5), space)
    memory.update(X, Y)
    for k in range(3):
        with ls.ConfidenceSequence.open(tmp_path / "a", ls.Gaussian(0.5), space) as sequence:
            sequence.update(X[10 * k : 10 * k + 10], Y[10 * k : 10 * k + 10])
    assert fingerprint(sequence) == fingerprint(memory)
    assert linear(ls.Gaussian(0.5)).close() is None  # nothing to close in memory
