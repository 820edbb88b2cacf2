"""The reproduction among real processes: workers and parents that are killed, ctrl-C, full disks, odd names."""

import os
import pickle
import random
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest
from rich.console import Console
from typer.testing import CliRunner

from likeset.cli import app, main
from likeset.errors import LikesetError
from likeset.messages import say
from likeset.paper.experiments.cells import Cell
from likeset.paper.experiments.figures import Scale, figures
from likeset.paper.experiments.interrupts import Interrupts
from likeset.paper.experiments.processes import on_processes
from likeset.paper.experiments.running import Outcome, compute, in_this_process, run
from likeset.paper.experiments.store import OutputError, Store, write_atomically

QUICK = ["reproduce", "fig1", "--quick", "--repeats", "1"]
LONG = ["reproduce", "fig3", "--quick", "--repeats", "20"]
ODD_NAMES = ["a [b] 'c' [/bold] :smile: größe 数 $HOME \\[x]", os.fsdecode(b"--jobs [red]\xff")]


def started(arguments, limit=None, **options):
    """The command line in a process; its file sizes may be limited."""
    command = [sys.executable, "-c", "from likeset.cli import main; main()", *map(str, arguments)]
    if limit is not None:
        options["preexec_fn"] = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="surrogateescape", **options
    )


def ended(process, timeout=120):
    try:
        output, _ = process.communicate(timeout=timeout)
    finally:
        process.kill()
    return process.returncode, output


def wait_for(condition, seconds=120.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.002)


def finished_cells(folder):
    return len(list((folder / "cells").rglob("*.json")))


def workers_of(pid):
    return [child for child in psutil.Process(pid).children() if "serve()" in " ".join(child.cmdline())]


def alive(process):
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def resume_command(output):
    return shlex.split(output.partition("esume with: ")[2].splitlines()[0])


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    out = tmp_path_factory.mktemp("finished")
    code, output = ended(started([*QUICK, "--jobs", "2", "--out", out]))
    assert code == 0, output
    return out


# -- killed workers --------------------------------------------------------------------------------------------------


def kill_own_worker(cell: Cell) -> Outcome:
    """Runs in a worker: the cells named "always" kill it whenever they run, those named "once" the first time."""
    if cell.problem == "always":
        os.kill(os.getpid(), signal.SIGKILL)
    if cell.problem == "once":
        witness = Path(str(cell.settings["witness"]))
        if not witness.exists():
            witness.touch()
            os.kill(os.getpid(), signal.SIGKILL)
    return Outcome(cell, {"worker": [os.getpid()]})


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_killed_worker_costs_its_cell_one_more_try(tmp_path, jobs):
    cells = [Cell("fig1", "good", "m", i) for i in range(4)]
    cells += [Cell("fig1", "always", "m", 0), Cell("fig1", "once", "m", 0, {"witness": str(tmp_path / "witness")})]
    outcomes = run(cells, Store(tmp_path), on_processes(jobs, work=kill_own_worker))
    assert sorted(o.cell.key for o in outcomes) == sorted(cell.key for cell in cells)
    (failed,) = [o for o in outcomes if o.rows is None]
    assert failed.cell.problem == "always"
    assert "its worker was killed, 2 times" in failed.error and "SIGKILL" in failed.error


@pytest.mark.slow
def test_killing_a_worker_by_hand_does_not_cost_the_report(tmp_path):
    (tmp_path / "failures.txt").write_text("of an earlier run")
    process = started([*QUICK, "--jobs", "2", "--out", tmp_path])
    wait_for(lambda: finished_cells(tmp_path) >= 1)
    victim = workers_of(process.pid)[0]
    victim.kill()
    code, output = ended(process)
    assert code == 0, output
    assert (tmp_path / "report.html").exists() and not (tmp_path / "failures.txt").exists()
    assert finished_cells(tmp_path) == len(figures()["fig1"].plan(Scale(quick=True, repeats=1)))


def leave(cell: Cell) -> Outcome:
    """Ends its worker with an exit code."""
    raise SystemExit(3)


def test_a_worker_that_ends_by_itself_is_told_apart(tmp_path, capfd):
    (outcome,) = run([Cell("fig1", "x", "m", 0)], Store(tmp_path), on_processes(1, work=leave))
    assert "exit code 1" in outcome.error
    assert "SystemExit: 3" in capfd.readouterr().err


def test_workers_that_cannot_be_started_are_failures_not_a_hang(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "executable", str(tmp_path / "nowhere"))
    outcomes = run([Cell("fig1", "x", "m", i) for i in range(3)], Store(tmp_path), on_processes(2))
    assert len(outcomes) == 3 and all("could not be started" in o.error for o in outcomes)


def fill_memory(cell: Cell) -> Outcome:
    """Grows for good, as a worker does that compiles its kernels for the first time."""
    kept.append(bytearray(os.urandom(1000)) * 150_000)
    time.sleep(1.2)
    return Outcome(cell, {"worker": [os.getpid()]})


kept: list[bytearray] = []


def test_a_worker_that_grows_is_kept_without_a_warning(tmp_path, capfd):
    outcomes = run([Cell("fig1", "x", "m", i) for i in range(3)], Store(tmp_path), on_processes(1, work=fill_memory))
    assert len({o.rows["worker"][0] for o in outcomes}) == 1
    assert capfd.readouterr() == ("", "")


def chatty(cell: Cell) -> Outcome:
    """Prints, below Python too; the answer must not suffer."""
    print("to be or not to be", flush=True)
    os.write(1, b"and more\n")
    return Outcome(cell, {"text": ["x" * 1_000_000]})


def test_what_a_cell_prints_is_not_taken_for_its_answer(tmp_path, capfd):
    (outcome,) = run([Cell("fig1", "x", "m", 0)], Store(tmp_path), on_processes(1, work=chatty))
    assert outcome.error is None and len(outcome.rows["text"][0]) == 1_000_000
    assert "to be or not to be" in capfd.readouterr().err


def threads_of(cell: Cell) -> Outcome:
    """How many threads BLAS uses in a worker."""
    import threadpoolctl

    import likeset.paper.experiments.fig1  # noqa: F401  (loads all libraries)

    return Outcome(cell, {"threads": [pool["num_threads"] for pool in threadpoolctl.threadpool_info()]})


def test_workers_have_one_thread_each(tmp_path, monkeypatch):
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        monkeypatch.setenv(name, "4")
    (outcome,) = run([Cell("fig1", "x", "m", 0)], Store(tmp_path), on_processes(1, work=threads_of))
    assert outcome.rows["threads"] and set(outcome.rows["threads"]) == {1}


# -- killed parents --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGKILL, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)])
def test_workers_do_not_outlive_a_killed_parent(tmp_path, number):
    process = started([*LONG, "--jobs", "2", "--out", tmp_path])
    wait_for(lambda: finished_cells(tmp_path) >= 1)
    workers = workers_of(process.pid)
    assert len(workers) == 2 and all(map(alive, workers))
    process.send_signal(number)
    process.wait(timeout=60)
    wait_for(lambda: not any(map(alive, workers)), seconds=5.0)
    process.stdout.close()
    store, plan = Store(tmp_path / "cells"), figures()["fig3"].plan(Scale(quick=True, repeats=20))
    assert sum(store.load(cell) is not None for cell in plan) == finished_cells(tmp_path) >= 1


# -- ctrl-C ----------------------------------------------------------------------------------------------------------


def interrupt_at(delay, folder, jobs):
    """Press ctrl-C some time after the run has begun: SIGINT to the whole group, as a terminal sends it."""
    process = started([*LONG, "--jobs", str(jobs), "--out", folder], start_new_session=True)
    wait_for(folder.exists)
    time.sleep(delay)
    workers = workers_of(process.pid)
    os.killpg(process.pid, signal.SIGINT)
    pressed = time.monotonic()
    code, output = ended(process)
    assert time.monotonic() - pressed < 20.0, output
    assert code == 130, output
    assert "Traceback" not in output and "Exception ignored" not in output
    kept = finished_cells(folder)
    plan = figures()["fig3"].plan(Scale(quick=True, repeats=20))
    assert f"Stopped: {kept} of {len(plan)} cells" in output
    assert resume_command(output) == ["likeset", *LONG, "--jobs", str(jobs), "--out", str(folder)]
    assert not (folder / "failures.txt").exists() and not (folder / "report.html").exists()
    assert not any(map(alive, workers))
    store = Store(folder / "cells")
    assert sum(store.load(cell) is not None for cell in plan) == kept


DELAYS = [random.Random(11).uniform(0, 3) for _ in range(12)]


@pytest.mark.parametrize("number", [0, 1, *(pytest.param(k, marks=pytest.mark.slow) for k in range(2, len(DELAYS)))])
def test_ctrl_c_at_random_moments(tmp_path, number):
    interrupt_at(DELAYS[number], tmp_path / "a [b]", jobs=1 + number % 2)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(60))
def test_ctrl_c_at_more_random_moments(tmp_path, number):
    interrupt_at(random.Random(100 + number).uniform(0, 6), tmp_path / "out", jobs=1 + number % 2)


@pytest.mark.parametrize("wait", [0.1, *(pytest.param(t, marks=pytest.mark.slow) for t in (0.0, 0.3))])
def test_ctrl_c_while_the_pictures_are_drawn(finished, tmp_path, wait):
    folder = tmp_path / "copy"
    shutil.copytree(finished, folder)
    for name in ("report.html", "fig1.csv"):
        (folder / name).unlink()
    process = started([*QUICK, "--jobs", "2", "--out", folder])
    wait_for((folder / "fig1.csv").exists)
    time.sleep(wait)
    written = (folder / "report.html").exists()
    process.send_signal(signal.SIGINT)
    code, output = ended(process)
    assert written or code == 130, output
    assert "Traceback" not in output
    assert finished_cells(folder) == finished_cells(finished)


class Swallows:
    """A piece of code that turns interrupts into errors of its own, as compilers do."""

    def __call__(self, *arguments):
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            raise SystemError("returned a result with an exception set") from None


def test_an_interrupt_is_never_a_failed_cell(tmp_path, monkeypatch):
    monkeypatch.setattr("likeset.paper.experiments.figures.run_cell", Swallows())
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        run([Cell("fig1", "x", "m", 0)], Store(tmp_path), in_this_process)
    assert signal.getsignal(signal.SIGINT) is before


def test_an_interrupt_is_no_error_outside_the_cells_either(finished, tmp_path, monkeypatch):
    folder = tmp_path / "a b"
    shutil.copytree(finished, folder)
    monkeypatch.setattr("likeset.paper.experiments.claims.judge", Swallows())
    result = CliRunner().invoke(app, [*QUICK, "--jobs", "2", "--out", str(folder)])
    assert result.exit_code == 130, result.output
    assert resume_command(result.output)[-1] == str(folder)


def test_interrupts_elsewhere_than_in_the_main_thread_and_where_ignored():
    before = signal.getsignal(signal.SIGINT)
    seen = []

    def other():
        with Interrupts() as interrupts:
            seen.append(signal.getsignal(signal.SIGINT))
            interrupts.check()

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    assert seen == [before]
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with Interrupts():
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
            signal.raise_signal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)


def test_leaving_early_stops_the_workers(tmp_path):
    """A full disk, or any error of the caller's, in the middle of the run."""
    cells = figures()["fig3"].plan(Scale(quick=True, repeats=20))

    def stop(outcome):
        raise LikesetError("enough")

    with pytest.raises(LikesetError, match="enough"):
        run(cells, Store(tmp_path), on_processes(2), progress=stop)
    assert not workers_of(os.getpid())


# -- full disks ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [12_000, *(pytest.param(n, marks=pytest.mark.slow) for n in (1_000, 60_000))])
def test_a_full_disk_is_one_line_and_keeps_what_is_finished(finished, tmp_path, limit):
    """Files of more than ``limit`` bytes cannot be written: no cell, some cells, or cells but no pictures."""
    folder = tmp_path / "a [b] 'c'"
    code, output = ended(started([*QUICK, "--jobs", "2", "--out", folder], limit=limit))
    assert code == 2, output
    assert "Traceback" not in output
    (line,) = [line for line in output.splitlines() if line.startswith("Error: ")]
    assert "cannot be written (File too large)" in line
    plan = figures()["fig1"].plan(Scale(quick=True, repeats=1))
    kept = finished_cells(folder)
    assert f"{kept} of {len(plan)} cells are finished and kept" in line
    assert (kept == 0) if limit == 1_000 else (kept == len(plan)) if limit == 60_000 else (kept < len(plan))
    store = Store(folder / "cells")
    assert sum(store.load(cell) is not None for cell in plan) == kept
    assert not list(folder.rglob("*.part"))
    again = resume_command(line)
    assert again == ["likeset", *QUICK, "--jobs", "2", "--out", str(folder)]
    if limit == 60_000:  # the shortest to finish
        code, output = ended(started(again[1:]))
        assert code == 0, output


def test_a_folder_that_is_gone_or_in_the_way_is_a_typed_error(tmp_path):
    (tmp_path / "fig2").write_text("in the way")
    with pytest.raises(OutputError, match="cannot be written") as caught:
        Store(tmp_path).save(Cell("fig2", "gaussian", "default", 0), {"t": [1]})
    assert caught.value.path.parent == tmp_path / "fig2" and caught.value.reason
    with pytest.raises(OutputError):
        write_atomically(Path("/proc/nowhere/file"), b"x")


@pytest.mark.parametrize("command", ["reproduce", "compare", "theory"])
def test_an_unusable_folder_is_one_line_in_every_command(tmp_path, monkeypatch, capsys, command):
    file = tmp_path / "a [b] [/c]"
    file.parent.mkdir()
    file.write_text("in the way")
    monkeypatch.setattr(sys, "argv", ["likeset", command, "--out", str(file)])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 2
    error = capsys.readouterr().err
    assert error.startswith("Error: ") and error.count("\n") == 1 and "a [b] [/c]" in error


# -- odd names -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", [ODD_NAMES[0], *(pytest.param(n, marks=pytest.mark.slow) for n in ODD_NAMES[1:])], ids=ascii
)
def test_odd_names_are_printed_as_they_are(finished, tmp_path, name):
    folder = tmp_path / name
    shutil.copytree(finished, folder)
    damaged = min((folder / "cells" / "fig1").iterdir())
    damaged.write_text("{")
    code, output = ended(started([*QUICK, "--jobs", "2", "--out", name], cwd=tmp_path))
    assert code == 0, output
    printed = name.encode("utf-8", "backslashreplace").decode()
    assert output.splitlines()[-1] == f"Report: {printed}/report.html"
    assert f"Warning: the results file {printed}/cells/fig1/{damaged.name}" in output


def test_messages_are_letter_by_letter(capsys):
    text = "[b]x[/b] [/nothing] :smile: " + "long " * 60
    say(Console(), text)
    assert capsys.readouterr().out == text + "\n"


def test_outcomes_travel_whole():
    outcome = compute(Cell("fig1", "nowhere", "none", 0))
    assert pickle.loads(pickle.dumps(outcome)) == outcome and "KeyError" in outcome.error
