"""The store of studies: continued, shared, killed, damaged, altered; nothing is lost, nothing counted twice."""

import gc
import os
import sqlite3
import subprocess
import sys
import threading

import numpy as np
import pytest

import likeset as ls
import study_worker
from killing import check_kills
from likeset.study import connections, database, engine

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="forks and signals")
FACTORS = {"arm": ["a", "b"]}


def opened(path, name="trial", **options):
    settings = {"factors": FACTORS, "outcome": {"y": ls.Poisson()}, "control": "a", "key": "id"} | options
    return ls.Study(name, store=path, **settings)


def rows(start, stop):
    return [{"id": i, "arm": "ab"[i % 2], "y": i * i % 5} for i in range(start, stop)]


def evidence(study):
    """Everything that the set rests on, bit for bit."""
    sequence = study._fresh().sequence
    ledger = sequence.ledger
    parts = (ledger.x, ledger.y, ledger.weights, ledger.log_q, ledger.classes, ledger.covariate)
    probe = np.full(sequence.space.dim, 0.1)
    phi = ledger.embed(sequence._running.basis, ledger.x.rows[0])[1]
    next_score = sequence.forecaster.forecast(phi).log_density(ledger.y.rows[0])
    ratio = sequence.set.log_ratio(probe)
    ends = () if sequence.set.is_empty else sequence.set.interval(np.eye(len(probe)))
    return (
        [part.rows.tobytes() for part in parts],
        ledger.gains.tobytes(),
        ratio,
        float(next_score),
        np.array(ends).tobytes(),
    )


# -- continue ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("states", ["kept", "none"])
def test_a_study_continues_bit_for_bit(tmp_path, monkeypatch, states):
    monkeypatch.setattr(engine, "STATE_EVERY", 4 if states == "kept" else 10**9)
    monkeypatch.setattr(engine, "STATE_BYTES_PER_ROW", 10**9)
    memory = opened(None)
    for start in range(0, 20, 5):
        memory.tell(rows(start, start + 5))
        with opened(tmp_path / "a").store as store:
            store.study("trial").tell(rows(start, start + 5))
    study = ls.Study("trial", store=tmp_path / "a")
    assert evidence(study) == evidence(memory)
    assert study.rows() == memory.rows()
    assert (kept_state(tmp_path / "a") is not None) == (states == "kept")


def kept_state(path):
    with sqlite3.connect(path) as connection:
        return connection.execute("SELECT rows, contents FROM states").fetchone()


def test_several_studies_live_in_one_store(tmp_path):
    store = ls.Store(tmp_path / "a")
    assert store.studies() == [] and not (tmp_path / "a").exists()
    opened(store).tell(rows(0, 3))
    opened(store, "other", alpha=0.1).tell(rows(0, 5))
    assert [(s["name"], s["rows"], s["outcome"]) for s in store.studies()] == [("trial", 3, "y"), ("other", 5, "y")]
    assert store.study("other").definition.alpha == 0.1
    with pytest.raises(ls.InvalidArgumentError, match="holds 'trial', 'other'"):
        store.study("third")


def test_another_definition_under_the_same_name_is_refused(tmp_path):
    opened(tmp_path / "a")
    with pytest.raises(ls.StudyMismatchError, match=r"alpha: 0\.05 there, 0\.1 here") as caught:
        opened(tmp_path / "a", alpha=0.1)
    assert caught.value.differences == {"alpha": (0.05, 0.1)}


def test_a_family_of_ones_own_is_passed_again(tmp_path):
    half_log_tau = 0.5 * np.log(2 * np.pi)
    family = ls.CustomFamily(lambda y, z: 0.5 * (y - z) ** 2 + half_log_tau, support="real", convex=True, name="Mine")
    opened(tmp_path / "a", outcome={"y": family}, bound=2.0).tell(rows(0, 3))
    assert opened(tmp_path / "a", outcome={"y": family}, bound=2.0).n == 3
    with pytest.raises(ls.InvalidArgumentError, match="pass the definition again"):
        ls.Study("trial", store=tmp_path / "a")


def test_a_study_travels_without_loss(tmp_path):
    study = opened(tmp_path / "a", factors={"arm": ["a", "b, c"], "dose": (0, 1)}, exposure="h", control=None)
    rng = np.random.default_rng(0)
    for start in (0, 4):
        study.tell(
            [
                {"id": f'{start + i}"\n', "arm": ["a", "b, c"][i % 2], "dose": rng.random(), "y": i, "h": rng.random()}
                for i in range(4)
            ]
        )
    study.export(tmp_path / "out")
    again = ls.Study.import_from(tmp_path / "out", store=tmp_path / "b")
    assert evidence(again) == evidence(study) and again.fingerprint == study.fingerprint
    assert again.rows() == study.rows()
    with pytest.raises(ls.InvalidArgumentError, match="which the store has already"):
        ls.Study.import_from(tmp_path / "out", store=tmp_path / "b")
    text = (tmp_path / "out" / "rows.csv").read_text()
    (tmp_path / "out" / "rows.csv").write_text(text.replace(",2.0,", ",3.0,"))
    with pytest.raises(ls.FileFormatError, match="altered after it was exported"):
        ls.Study.import_from(tmp_path / "out", store=tmp_path / "c")
    (tmp_path / "out" / "rows.csv").write_text(text[:-20])
    with pytest.raises(ls.FileFormatError, match="export again"):
        ls.Study.import_from(tmp_path / "out", store=tmp_path / "d")
    with pytest.raises(ls.InvalidArgumentError, match="cannot be read"):
        ls.Study.import_from(tmp_path / "nothing", store=tmp_path / "e")
    assert ls.Store(tmp_path / "c").studies() == []


def test_a_study_without_rows_travels_too(tmp_path):
    opened(None).export(tmp_path / "out")
    again = ls.Study.import_from(tmp_path / "out", store=None)
    assert again.n == 0 and again.tell(rows(0, 2)).total == 2


# -- several at once ---------------------------------------------------------------------------------------------------


def test_writers_take_what_others_have_told(tmp_path):
    one, two = opened(tmp_path / "a"), opened(tmp_path / "a")
    for start in range(0, 40, 4):
        one.tell(rows(start, start + 2))
        two.tell(rows(start + 2, start + 4))
    alone = opened(None)
    for start in range(0, 40, 2):
        alone.tell(rows(start, start + 2))
    assert evidence(one) == evidence(two) == evidence(alone)
    assert one.fingerprint == two.fingerprint


def test_the_same_rows_told_by_several_processes_count_once(tmp_path):
    code = (
        "import sys, likeset as ls, test_study_store as t\n"
        "study = t.opened(sys.argv[1])\n"
        "for start in range(0, 30, 3):\n"
        "    study.tell(t.rows(start, start + 6))\n"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    command = [sys.executable, "-c", code, str(tmp_path / "a")]
    running = [subprocess.Popen(command, env=environment) for _ in range(2)]
    assert [process.wait(timeout=300) for process in running] == [0, 0]
    study = ls.Study("trial", store=tmp_path / "a")
    assert study.n == 33
    assert sorted(i for batch in raw(study) for i in batch["id"]) == sorted(map(str, range(33)))
    alone = opened(None)
    alone.tell(
        {name: [cell for batch in raw(study) for cell in batch[name]] for name in ("id", "y")} | {"arm": arms(study)}
    )
    assert evidence(alone) == evidence(study)


def raw(study):
    with study._database.reading() as connection:
        return [study._raw(batch) for batch in study._database.batches(connection, study._stored, None)]


def arms(study):
    return ["ab"[int(number)] for batch in raw(study) for number in batch["arm"]]


def test_threads_share_a_study(tmp_path):
    study, errors = opened(tmp_path / "a"), []

    def tell(first):
        try:
            for i in range(10):
                study.tell([{"id": f"{first}/{i}", "arm": "a", "y": i}])
                study.rows()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=tell, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert study.n == len(study._fresh()) == 40


def test_a_fork_can_ask_and_tell(tmp_path):
    study = opened(tmp_path / "a")
    study.tell(rows(0, 3))
    child = os.fork()
    if child == 0:
        try:
            study.tell(rows(3, 5))
            os._exit(0 if study.n == 5 else 1)
        except BaseException:
            os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    study.tell(rows(5, 6))
    assert study.n == len(study._fresh()) == 6


# -- errors and interrupts ---------------------------------------------------------------------------------------------


class Interrupt(BaseException):
    pass


@pytest.mark.parametrize("where", ["append", "add_keys", "head"])
def test_an_interrupt_anywhere_leaves_memory_and_disk_agreed(tmp_path, monkeypatch, where):
    """Memory may be ahead of the disk for a moment; what it says afterwards is what is on disk."""
    study = opened(tmp_path / "a")
    study.tell(rows(0, 5))
    before = evidence(study)
    method = getattr(database.Database, where)
    calls = []

    def interrupted(*args, **options):
        calls.append(where)
        answer = method(*args, **options)
        if len(calls) >= (2 if where == "head" else 1):
            raise Interrupt
        return answer

    monkeypatch.setattr(database.Database, where, interrupted)
    with pytest.raises(Interrupt):
        study.tell(rows(5, 9))
    monkeypatch.undo()
    assert study.n == len(study._fresh()) == 5 and evidence(study) == before
    study.tell(rows(5, 9))
    whole = opened(None)
    whole.tell(rows(0, 5))
    whole.tell(rows(5, 9))
    assert evidence(study) == evidence(whole)


def test_a_commit_that_fails_is_forgotten(tmp_path, monkeypatch):
    """Also when another writer then tells as many rows: memory must not go on from rows that never happened."""
    study, other = opened(tmp_path / "a"), opened(tmp_path / "a")
    study.tell(rows(0, 5))
    connect = database.Database._connection

    class Failing:
        def __init__(self, connection):
            self._connection = connection

        def __getattr__(self, name):
            return getattr(self._connection, name)

        def execute(self, statement, *values):
            if statement == "COMMIT":
                raise sqlite3.OperationalError("disk I/O error")
            return self._connection.execute(statement, *values)

    monkeypatch.setattr(study._database, "_connection", lambda: Failing(connect(study._database)))
    with pytest.raises(ls.StoreError, match="disk I/O error"):
        study.tell(rows(5, 7))
    monkeypatch.undo()
    other.tell(rows(100, 103))
    assert study.n == 8 and evidence(study) == evidence(other)
    assert study.tell(rows(5, 7)).recorded == 2


def test_a_full_disk_is_an_error_and_nothing_changed(tmp_path):
    study = opened(tmp_path / "a")
    study.tell(rows(0, 5))
    before = evidence(study), study.fingerprint
    connection = study._database._connection()
    pages = connection.execute("PRAGMA page_count").fetchone()[0]
    connection.execute(f"PRAGMA max_page_count = {pages}")  # what SQLite does when the disk is full
    with pytest.raises(ls.StoreError, match="nothing was recorded"):
        study.tell([{"id": f"{i:0100d}", "arm": "a", "y": 1} for i in range(2000)])
    assert (evidence(study), study.fingerprint) == before
    connection.execute("PRAGMA max_page_count = 1000000")
    assert study.tell(rows(5, 6)).total == 6


def test_a_store_that_cannot_be_written_can_be_read(tmp_path):
    folder = tmp_path / "readonly"
    folder.mkdir()
    study = opened(folder / "a")
    study.tell(rows(0, 5))
    expected = study.rows()
    study.store.close()
    store = ls.Store(folder / "a", read_only=True)
    reader = store.study("trial")
    assert reader.rows() == expected
    with pytest.raises(ls.StoreError, match="for reading only"):
        reader.tell(rows(5, 6))
    with pytest.raises(ls.StoreError, match="reading only"):
        opened(store, "new")
    store.close()
    if os.geteuid() == 0:
        return  # the administrator may write anything
    (folder / "a").chmod(0o444)
    folder.chmod(0o555)
    try:
        assert ls.Store(folder / "a", read_only=True).study("trial").rows() == expected
        with pytest.raises(ls.StoreError, match="permissions"):
            ls.Study("trial", store=folder / "a").tell(rows(5, 6))
    finally:
        folder.chmod(0o755)


def test_a_closed_store_says_so(tmp_path):
    study = opened(tmp_path / "a")
    study.store.close()
    with pytest.raises(ls.StoreError, match="is closed"):
        study.tell(rows(0, 1))


def test_a_store_that_nobody_closes_closes_its_connections(tmp_path):
    study = opened(tmp_path / "a")
    study.tell(rows(0, 2))
    (connection,) = study.store._database._open
    del study
    gc.collect()
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        connection.execute("SELECT 1")
    assert opened(tmp_path / "a").n == 2


# -- files that are not what they were ---------------------------------------------------------------------------------


def altered(path, statement, *values):
    connection = sqlite3.connect(path)
    with connection:
        connection.execute(statement, values)
    connection.close()


def test_a_damaged_state_is_made_again_from_the_rows(tmp_path, monkeypatch):
    monkeypatch.setattr(engine, "STATE_EVERY", 4)
    monkeypatch.setattr(engine, "STATE_BYTES_PER_ROW", 10**9)
    study = opened(tmp_path / "a")
    study.tell(rows(0, 10))
    expected = evidence(study)
    study.store.close()
    contents = bytearray(kept_state(tmp_path / "a")[1])
    contents[len(contents) // 2] ^= 1
    for number, damaged in enumerate((bytes(contents), b"", bytes(contents[:100]))):
        altered(tmp_path / "a", "UPDATE states SET contents = ?", damaged)
        if number == 1:  # even with a checksum that fits
            altered(tmp_path / "a", "UPDATE states SET crc = ?", database._checksum(10, damaged))
        study = ls.Study("trial", store=tmp_path / "a")
        assert evidence(study) == expected
        assert study.tell(rows(0, 10)).repeated == 10
        study.store.close()


ALTERATIONS = {
    "a row": "UPDATE batches SET scored = (SELECT scored FROM batches WHERE number = 0) WHERE number = 1",
    "a value as told": "UPDATE batches SET raw = (SELECT raw FROM batches WHERE number = 1) WHERE number = 0",
    "the time": "UPDATE batches SET told = '2020' WHERE number = 0",
    "a batch removed": "DELETE FROM batches WHERE number = 1",
    "the last batch removed": "DELETE FROM batches WHERE number = 2",
    "the definition": "UPDATE studies SET definition = replace(definition, '0.05', '0.01')",
    "a batch twice": "INSERT INTO batches SELECT study, 3, first, count, told, raw, scored, hash FROM batches "
    "WHERE number = 2",
    "the last batch removed and the count": "UPDATE studies SET batches = 2, rows = 4",
}


@pytest.mark.parametrize("kind", ALTERATIONS)
def test_rows_that_were_altered_are_noticed(kind, tmp_path):
    study = opened(tmp_path / "a")
    for start in (0, 2, 4):
        study.tell(rows(start, start + 2))
    study.store.close()
    altered(tmp_path / "a", ALTERATIONS[kind])
    study = ls.Study("trial", store=tmp_path / "a")
    with pytest.raises(ls.FileFormatError, match="not what was recorded"):
        study.rows()
    with pytest.raises(ls.FileFormatError, match="not what was recorded"):
        study.tell(rows(6, 7))


def test_an_index_of_keys_that_was_lost_is_made_again(tmp_path):
    study = opened(tmp_path / "a")
    study.tell(rows(0, 6))
    altered(tmp_path / "a", "DELETE FROM keys WHERE key = '3'")
    assert study.tell(rows(0, 8)) == ls.Told(2, 6, 8)


def test_other_files_are_refused(tmp_path):
    (tmp_path / "text").write_text("not a database, but long enough to be taken for one" * 100)
    with pytest.raises(ls.FileFormatError, match="not a store"):
        opened(tmp_path / "text")
    altered(tmp_path / "other", "CREATE TABLE t (a)")
    with pytest.raises(ls.FileFormatError, match="not a store of studies"):
        opened(tmp_path / "other")
    with ls.ConfidenceSequence.open(tmp_path / "journal", ls.Poisson(), ls.Linear(1, 1.0)):
        pass
    with pytest.raises(ls.FileFormatError, match="not a store of studies"):
        opened(tmp_path / "journal")
    with pytest.raises(ls.InvalidArgumentError, match="is a folder"):
        opened(tmp_path)
    with pytest.raises(ls.StoreError, match="could not be"):
        opened(tmp_path / "no" / "such" / "folder")


def test_a_store_of_a_newer_release_is_refused(tmp_path):
    opened(tmp_path / "a").store.close()
    altered(tmp_path / "a", f"PRAGMA user_version = {connections.VERSION + 1}")
    with pytest.raises(ls.FileFormatError, match="install the release that wrote it"):
        opened(tmp_path / "a")


# -- kills -------------------------------------------------------------------------------------------------------------


def killed(folder, kills, seed):
    """(rows acknowledged, batches found unacknowledged) of a study whose process is killed again and again."""
    path = folder / "a"

    def recorded():
        study = study_worker.opened(path)
        n, ledger = study.n, study._fresh().sequence.ledger
        assert np.array_equal(ledger.y.rows, [study_worker.row(i)["y"] for i in range(n)])
        study.store.close()
        return n

    acknowledged, extra = check_kills(
        study_worker, path, kills, np.random.default_rng(seed), most=6, pause=0.01, recorded=recorded
    )
    memory = study_worker.opened(None)
    for i in range(acknowledged):
        memory.tell([study_worker.row(i)])
    assert evidence(study_worker.opened(path)) == evidence(memory)
    return acknowledged, extra


def test_kills_lose_nothing_that_was_acknowledged(tmp_path):
    acknowledged, _ = killed(tmp_path, 12, seed=0)
    assert acknowledged > 12


@pytest.mark.slow
def test_hundreds_of_kills(tmp_path):
    acknowledged, extra = killed(tmp_path, 300, seed=1)
    assert acknowledged > 300 and extra > 0  # some were hit between the disk and the acknowledgement


def test_factors_mean_the_same_in_whatever_order_they_are_named(tmp_path):
    """The order of factors is that of the design's columns: it is the stored one for everybody."""
    factors = {"dose": (0, 10), "arm": ["left", "right"]}
    one = ls.Study("s", factors=factors, outcome={"y": ls.Gaussian(1.0)}, store=tmp_path / "x.db")
    one.tell([{"dose": float(i % 11), "arm": ("left", "right")[i % 2], "y": 5.0 * (i % 2)} for i in range(40)])
    turned = dict(reversed(factors.items()))
    for other in (
        ls.Study("s", store=tmp_path / "x.db"),
        ls.Study("s", factors=turned, outcome={"y": ls.Gaussian(1.0)}, store=tmp_path / "x.db"),
    ):
        assert other.rows() == one.rows() and other.definition.columns == one.definition.columns
