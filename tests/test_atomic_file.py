"""Saving is durable, private and all or nothing, whoever else is at work in the same folder."""

import errno
import os
import stat
import subprocess
import sys
import threading
import time
import zipfile

import numpy as np
import pytest
from typer.testing import CliRunner

import likeset as ls
from likeset import cli
from likeset.persistence import atomic_file

posix = pytest.mark.skipif(os.name != "posix", reason="modes, links and locks of POSIX")


def sequence(n=4, value=1.0):
    seq = ls.ConfidenceSequence(ls.Gaussian(1.0), ls.Linear(2, 2.0))
    seq.update(np.random.default_rng(n).normal(size=(n, 2)), np.full(n, value))
    return seq


def test_file_and_folder_are_synchronised_in_this_order(tmp_path, monkeypatch):
    steps, made = [], sequence()  # made before: compiling kernels replaces files, too
    fsync, replace = os.fsync, os.replace

    def noted_fsync(descriptor):
        steps.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")
        if steps[-1] == "file":
            assert os.fstat(descriptor).st_size > 1000  # everything has been handed over
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", noted_fsync)
    monkeypatch.setattr(os, "replace", lambda *names: (steps.append("replace"), replace(*names)))
    made.save(tmp_path / "a")
    assert steps == ["file", "replace", "folder"] or os.name != "posix"


@posix
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o666])
def test_the_mode_of_an_existing_file_is_kept(tmp_path, mode):
    path = tmp_path / "a"
    sequence().save(path)
    path.chmod(mode)
    sequence(5).save(path)
    assert stat.S_IMODE(path.stat().st_mode) == mode
    assert ls.load(path).n_observations == 5


@posix
def test_a_new_file_gets_what_the_umask_allows(tmp_path):
    old = os.umask(0o027)
    try:
        sequence().save(tmp_path / "a")
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o640


@posix
def test_nobody_else_can_read_a_private_file_while_it_is_written(tmp_path, monkeypatch):
    path = tmp_path / "a"
    sequence().save(path)
    path.chmod(0o600)
    seen = []

    def noted(stream, *args, **kwargs):
        seen.append(stat.S_IMODE(os.fstat(stream.fileno()).st_mode))
        stream.write(b"secret")

    atomic_file.replace_file(path, noted)
    assert seen == [0o600]


@posix
def test_a_link_stays_a_link_and_its_target_is_replaced(tmp_path):
    (tmp_path / "real").mkdir()
    real, link, chain = tmp_path / "real" / "a", tmp_path / "link", tmp_path / "chain"
    sequence().save(real)
    link.symlink_to("real/a")
    chain.symlink_to(link)
    sequence(7).save(chain)
    assert link.is_symlink() and chain.is_symlink() and not real.is_symlink()
    assert ls.load(real).n_observations == 7
    dangling = tmp_path / "dangling"
    dangling.symlink_to("real/b")
    sequence(3).save(dangling)
    assert ls.load(tmp_path / "real" / "b").n_observations == 3
    assert dangling.is_symlink()


@posix
def test_links_in_a_circle_and_devices_are_refused(tmp_path):
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    os.mkfifo(tmp_path / "pipe")
    for name in ("a", "pipe"):
        with pytest.raises(ls.InvalidArgumentError, match="cannot be written"):
            sequence().save(tmp_path / name)
        with pytest.raises(ls.InvalidArgumentError, match="cannot be read"):
            ls.load(tmp_path / name)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a", "b", "pipe"]
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


@posix
def test_a_planted_link_is_not_followed(tmp_path, monkeypatch):
    """Names cannot be guessed; and where one is, the link is refused, not followed."""
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / f"a.{os.getpid()}.part").symlink_to(victim)  # the name of earlier releases
    sequence().save(tmp_path / "a")
    assert victim.read_text() == "precious"
    monkeypatch.setattr(atomic_file.secrets, "token_hex", lambda n: "guessed")
    planted = tmp_path / f"{atomic_file._prefix(tmp_path / 'a')}guessed.part"
    planted.symlink_to(victim)
    with pytest.raises(ls.InvalidArgumentError, match="cannot be written"):
        sequence().save(tmp_path / "a")
    assert victim.read_text() == "precious"


def test_threads_saving_to_one_path_while_others_load(tmp_path):
    path = tmp_path / "a"
    sequences = [sequence(n) for n in (20, 40, 60)]
    sequences[0].save(path)
    stop, failures, seen = time.monotonic() + 2.0, [], set()

    def work(act):
        while time.monotonic() < stop and not failures:
            try:
                act()
            except Exception as error:
                failures.append(error)

    acts = [lambda s=s: s.save(path) for s in sequences] + [lambda: seen.add(ls.load(path).n_observations)] * 2
    threads = [threading.Thread(target=work, args=(act,)) for act in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert seen <= {20, 40, 60} and len(seen) > 1
    assert [p.name for p in tmp_path.iterdir()] == ["a"]


@posix
def test_orphans_of_killed_processes_go_when_they_are_old_and_nobody_holds_them(tmp_path):
    path, prefix = tmp_path / "a", atomic_file._prefix(tmp_path / "a")
    old, young, held, other = (tmp_path / f"{prefix}{n}.part" for n in ("old", "young", "held", "x"))
    other = tmp_path / f"{atomic_file._prefix(tmp_path / 'b')}old.part"
    for orphan in (old, young, held, other):
        orphan.write_bytes(b"half")
    hours = time.time() - 2 * atomic_file.ORPHAN_AGE
    for orphan in (old, held, other):
        os.utime(orphan, (hours, hours))
    with held.open("r+b") as stream:
        atomic_file._lock(stream)
        sequence().save(path)
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(p.name for p in (path, young, held, other))


KILLED = """
import os, signal, sys
import likeset as ls
from likeset.persistence import files
def write(stream, *args, **kwargs):
    stream.write(b"half")
    stream.flush()
    os.kill(os.getpid(), signal.SIGKILL)
files.write_archive = write
ls.load(sys.argv[1]).save(sys.argv[1])
"""

FULL = """
import resource, signal, sys
import likeset as ls
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
seq = ls.load(sys.argv[1])
seq.update([[1.0, 0.0]] * 5000, [0.123] * 5000)
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
try:
    seq.save(sys.argv[1])
except ls.InvalidArgumentError as error:
    print("refused", "cannot be written" in str(error))
"""


@posix
def test_a_killed_save_keeps_the_old_file(tmp_path):
    path = tmp_path / "a"
    sequence().save(path)
    before = path.read_bytes()
    done = subprocess.run([sys.executable, "-c", KILLED, path])
    assert done.returncode == -9
    assert path.read_bytes() == before
    assert all(p.name.startswith(".likeset-") for p in tmp_path.iterdir() if p != path)


@posix
def test_a_full_disk_keeps_the_old_file_and_leaves_nothing(tmp_path):
    path = tmp_path / "a"
    sequence().save(path)
    before = path.read_bytes()
    done = subprocess.run([sys.executable, "-c", FULL, path], capture_output=True, text=True)
    assert done.stdout.split() == ["refused", "True"], done.stderr
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["a"]


def test_the_longest_name_can_be_saved(tmp_path):
    path = tmp_path / ("ü" * 127)
    sequence().save(path)
    assert zipfile.is_zipfile(path)


# -- tables and pictures -----------------------------------------------------------------------------------------------


def compared():
    return ls.comparison.compare(
        ls.Gaussian(0.5), ls.Linear(2, 1.0), [0.4, -0.3], np.eye(2), rounds=2, repeats=1,
        sets=lambda: {"AY": ls.comparison.AbbasiYadkori(ls.Linear(2, 1.0), 0.1, 0.5)},
    )  # fmt: skip


def played():
    environment = ls.environments.linear(dim=2, n_arms=3)
    return ls.simulate(ls.UCB(environment.sequence(), environment.arms), environment, 3, 0)


WRITERS = {
    "comparison": lambda folder: compared().write_csv(folder / "compare.csv"),
    "trace": lambda folder: played().to_csv(folder / "trace.csv"),
    "theory": lambda folder: ls.theory.study(rounds=2, repeats=1).write_csv(folder),
    "picture of theory": lambda folder: ls.theory.study(rounds=2, repeats=1).figure(folder / "theory.png"),
    "the command compare": lambda folder: command("compare", folder, "--rounds", "2", "--repeats", "1"),
    "the command theory": lambda folder: command("theory", folder, "--rounds", "10", "--repeats", "1"),
}


def command(name, folder, *options):
    found = CliRunner().invoke(cli.app, [name, "--out", str(folder), *options])
    if found.exception is not None:
        raise found.exception


@posix
@pytest.mark.parametrize("writer", WRITERS)
def test_what_is_not_written_to_the_end_leaves_the_old_file(tmp_path, monkeypatch, writer):
    """A disk that fills up while a file is written: the old files are whole, and no half of a new one stays."""
    WRITERS[writer](tmp_path)
    old = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert old and all(old.values())
    fsync = os.fsync

    def full(descriptor):
        if not stat.S_ISDIR(os.fstat(descriptor).st_mode):
            os.truncate(descriptor, 10)
            raise OSError(errno.ENOSPC, "no space left on device")
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises((OSError, ls.InvalidArgumentError), match="space"):
        WRITERS[writer](tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == old


@posix
def test_tables_go_to_pipes_and_devices_too(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    played().to_csv(pipe)
    reader.join(timeout=30)
    assert read[0].startswith("round,arm,x0") and len(read[0].splitlines()) == 4
    played().to_csv("/dev/null")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
