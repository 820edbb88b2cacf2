"""The reproduction: resuming, interrupting, damage, determinism, dask."""

import csv
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from likeset.cli import app, main
from likeset.errors import FileFormatError, InvalidArgumentError
from likeset.paper.experiments import processes, running
from likeset.paper.experiments.cells import Cell
from likeset.paper.experiments.figures import Scale, figures
from likeset.paper.experiments.methods import LIKELIHOOD_RATIO, PAPER, is_certifying
from likeset.paper.experiments.store import Store, writable_folder

SMALL = ["reproduce", "fig1", "--quick", "--repeats", "1", "--jobs", "1"]


def reproduce(*arguments: object) -> object:
    return CliRunner().invoke(app, [str(a) for a in arguments], catch_exceptions=True)


def in_process(arguments: list[str]) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", "from likeset.cli import main; main()", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A small finished run, shared by tests that only look."""
    out = tmp_path_factory.mktemp("finished")
    result = reproduce(*SMALL, "--out", out)
    assert result.exit_code == 0, result.output
    return out


# -- results ---------------------------------------------------------------------------------------------------------


def test_a_run_leaves_tidy_rows_pictures_and_one_report(finished):
    rows = list(csv.DictReader((finished / "fig1.csv").read_text().splitlines()))
    assert {"problem", "method", "repeat"} <= set(rows[0])
    assert {row["method"] for row in rows if row["problem"] == "band"} >= set(LIKELIHOOD_RATIO) | {"AY 2011"}
    for ending in ("png", "svg"):
        assert (finished / f"fig1.{ending}").stat().st_size > 10_000
    page = (finished / "report.html").read_text()
    assert page.count("data:image/svg+xml;base64,") == 1
    assert 'src="http' not in page and "<link" not in page and "<script" not in page
    assert "likeset reproduce fig1 --quick --repeats 1" in page
    assert "Quick run" in page


def test_a_finished_cell_is_not_run_again(finished, monkeypatch):
    before = {path: path.stat().st_mtime_ns for path in (finished / "cells").rglob("*.json")}
    table = (finished / "fig1.csv").read_bytes()
    monkeypatch.setattr(processes, "_Worker", lambda: pytest.fail("something was run again"))
    result = reproduce(*SMALL, "--out", finished)
    assert result.exit_code == 0, result.output
    assert {path: path.stat().st_mtime_ns for path in (finished / "cells").rglob("*.json")} == before
    assert (finished / "fig1.csv").read_bytes() == table


def test_changed_settings_are_run_anew():
    cell = Cell("fig2", "gaussian", "default", 0, {"rounds": 5, "seed": 0})
    assert cell.digest != Cell("fig2", "gaussian", "default", 0, {"rounds": 6, "seed": 0}).digest
    assert cell.digest == Cell("fig2", "gaussian", "default", 0, {"seed": 0, "rounds": 5}, cost=9.0).digest


def test_rows_do_not_depend_on_the_workers(finished, tmp_path):
    """But for the last digits: other processes may have compiled the kernels in another order, and inlined others."""
    result = reproduce(*SMALL[:-1], "2", "--out", tmp_path)
    assert result.exit_code == 0, result.output
    here, there = (
        list(csv.DictReader((folder / "fig1.csv").read_text().splitlines())) for folder in (tmp_path, finished)
    )
    assert len(here) == len(there)
    labels = ("problem", "method", "repeat")
    assert [[row[k] for k in labels] for row in here] == [[row[k] for k in labels] for row in there]
    numbers = [[[float(row[k]) for k in row if k not in labels] for row in rows] for rows in (here, there)]
    np.testing.assert_allclose(numbers[0], numbers[1], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("figure", ["fig2", "fig3", "fig4", "weights"])
def test_cells_are_pure_functions(figure):
    """Every method of every figure: the first cell run twice gives the same rows, bit for bit, and sane ones."""
    plan = figures()[figure].plan(Scale(quick=True, repeats=1))
    problem = plan[0].problem
    for cell in (c for c in plan if c.problem == problem):
        short = Cell(cell.figure, cell.problem, cell.method, 0, {**cell.settings, "rounds": 4, "runs": 1, "last": 30})
        rows = figures()[figure].run(short)
        assert rows == figures()[figure].run(short)
        assert len({len(values) for values in rows.values()}) == 1
        if figure == "fig3":
            assert 0 <= rows["alpha_anytime"][0] <= rows["alpha_final"][0] <= 1
        elif figure == "weights":
            assert rows["t"] == [10, 30] and all(0 <= w <= 1 for w in rows["weight"])
        else:
            assert np.all(np.diff(rows["regret"]) >= 0)


def test_weights_on_one_side_lose_the_truth():
    """The negative control: the unweighted set and a lower level, so inside it; the truth is lost in most runs."""
    from likeset.paper.experiments import fig3
    from likeset.paper.experiments.play import play

    control, joint = (fig3._methods("bandit-random-0.1")[name] for name in ("lr-one-sided", "lr-plug-in"))
    lost = 0
    for i in range(10):
        problem = fig3._problem("bandit-random-0.1", np.random.default_rng(i))
        sequence = control.build(problem.family, problem.space, 0.1)
        trace = play(problem, sequence, 15, np.random.default_rng(100 + i), np.random.default_rng(200 + i))
        lost += not trace.always_covered
        unweighted = joint.build(problem.family, problem.space, 0.1)
        unweighted.update(trace.x, trace.y)
        if not sequence.set.is_empty:
            assert np.all(sequence.set.upper(problem.arms) <= unweighted.set.upper(problem.arms) + 1e-6)
    assert lost >= 8  # a set that covers at 90 % would lose it so often with probability below 1e-5


def test_the_plans_hold_what_the_paper_shows():
    full = {name: figure.plan(Scale()) for name, figure in figures().items()}
    assert {c.problem for c in full["fig2"]} == {"gaussian", "laplace", "survival", "poisson"}
    games = [c for c in full["fig2"] + full["fig4"] if not is_certifying(c.method)]
    assert all(c.settings["rounds"] >= 200 for c in games)
    assert len({c.problem for c in full["fig3"]}) == 8
    for name in ("fig2", "fig4"):
        cells = full[name]
        assert {c.repeat for c in cells} == set(range(10))
        assert {"default", "lr-mixture", "lr-plug-in", *PAPER} <= {c.method for c in cells}
    runs: dict[tuple[str, str], int] = {}
    for c in full["fig3"]:
        runs[c.problem, c.method] = runs.get((c.problem, c.method), 0) + c.settings["runs"]
    assert set(runs.values()) == {200}
    for cells in full.values():
        assert len({c.digest for c in cells}) == len(cells)


def test_critical_levels_agree_with_membership():
    """The level read off the ratio is where `contains` turns, for a likelihood ratio and for an ellipsoid."""
    from likeset.paper.experiments import fig3

    rng = np.random.default_rng(5)
    problem = fig3._problem("iid-random-0.1", rng)
    arms = rng.integers(0, 64, size=6)
    y = problem.family.sample(problem.z[arms], rng) + 0.25  # shifted, so that the truth is in doubt
    for name in ("lr-plug-in", "lr-one-sided", "AY 2011", "heuristic"):
        method = fig3._methods("iid-random-0.1")[name]
        levels = fig3.critical_levels(method, problem, arms, y)
        for alpha in (0.002, 0.07, 0.35, 0.65):
            sequence = method.build(problem.family, problem.space, alpha)
            for t, (arm, outcome) in enumerate(zip(arms, y, strict=True)):
                sequence.update(problem.arms[arm], outcome)
                if alpha <= levels[t]:
                    assert sequence.set.contains(problem.theta)
                elif name.startswith("lr-") or alpha >= fig3.LEVELS[levels[t] < fig3.LEVELS][0]:
                    assert not sequence.set.contains(problem.theta)


# -- the store -------------------------------------------------------------------------------------------------------


def test_store_returns_what_was_saved_and_nothing_else(tmp_path):
    store = Store(tmp_path)
    cell = Cell("fig2", "gaussian", "default", 3, {"rounds": 2})
    assert store.load(cell) is None
    rows = {"t": [1, 2], "regret": [0.1 + 0.2, 1e-300], "covered": [True, False]}
    store.save(cell, rows)
    assert store.load(cell) == rows
    assert store.load(Cell("fig2", "gaussian", "default", 3, {"rounds": 3})) is None
    assert not list(tmp_path.rglob("*.part"))


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"format": 1}', "truncate", "edit"])
def test_a_damaged_file_is_noticed(tmp_path, damage):
    store = Store(tmp_path)
    cell = Cell("fig2", "gaussian", "default", 0)
    store.save(cell, {"regret": [1.0, 2.0]})
    path = store.path(cell)
    whole = path.read_text()
    path.write_text({"truncate": whole[:-9], "edit": whole.replace("2.0", "3.0")}.get(damage, damage))
    with pytest.raises(FileFormatError, match="results file"):
        store.load(cell)


def test_a_damaged_file_is_run_again_with_a_warning(finished, tmp_path):
    store = Store(finished / "cells")
    cell = next(c for c in figures()["fig1"].plan(Scale(quick=True, repeats=1)) if c.method == "heuristic")
    path = store.path(cell)
    whole = json.loads(path.read_text())
    path.write_text(path.read_text()[:50])
    result = reproduce(*SMALL, "--out", finished)
    assert result.exit_code == 0, result.output
    assert "Warning" in result.output and path.name in result.output.replace("\n", "")
    assert json.loads(path.read_text())["rows"] == whole["rows"]


# -- bad input -------------------------------------------------------------------------------------------------------


def test_unknown_figure_is_one_line_and_exit_code_2(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["likeset", "reproduce", "fig9", "--out", str(tmp_path / "new")])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 2
    output = capsys.readouterr().err.replace("\n", " ")
    assert "fig9" in output and "fig1, fig2, fig3, fig4, weights, power, theory or all" in output
    assert not (tmp_path / "new").exists()


def test_unwritable_folder(tmp_path):
    file = tmp_path / "file"
    file.write_text("in the way")
    for folder in (file, file / "below", Path("/proc/likeset")):
        with pytest.raises(InvalidArgumentError, match="--out"):
            writable_folder(folder)
    result = reproduce(*SMALL, "--out", file)
    assert isinstance(result.exception, InvalidArgumentError)


@pytest.mark.parametrize("arguments", [["--repeats", "0"], ["--jobs", "0"], ["--jobs", "two"], ["--seed", "-1"]])
def test_numbers_out_of_range(arguments, tmp_path):
    assert reproduce("reproduce", "fig1", "--out", tmp_path, *arguments).exit_code == 2
    assert not list(tmp_path.iterdir())


def test_jobs_and_dask_exclude_each_other(tmp_path):
    result = reproduce("reproduce", "fig1", "--jobs", "2", "--dask", "tcp://127.0.0.1:1", "--out", tmp_path)
    assert isinstance(result.exception, InvalidArgumentError) and "--dask" in str(result.exception)


def test_a_dask_address_without_a_scheduler(tmp_path):
    with pytest.raises(InvalidArgumentError, match="scheduler"):
        running.on_dask("tcp://127.0.0.1:1", timeout=0.5)


# -- stopping and failing --------------------------------------------------------------------------------------------


def test_ctrl_c_keeps_finished_cells_and_says_how_to_resume(tmp_path):
    run = in_process(["reproduce", "fig3", "--quick", "--repeats", "20", "--jobs", "2", "--out", str(tmp_path)])
    deadline = time.monotonic() + 300
    while len(list((tmp_path / "cells").rglob("*.json"))) < 2:
        assert run.poll() is None and time.monotonic() < deadline
        time.sleep(0.05)
    run.send_signal(signal.SIGINT)
    output, _ = run.communicate(timeout=120)
    assert run.returncode == 130, output
    assert "Traceback" not in output
    flat = output.replace("\n", "")
    assert "Resume with: likeset reproduce fig3 --quick --repeats 20 --jobs 2 --out" in flat
    kept = list((tmp_path / "cells").rglob("*.json"))
    plan = figures()["fig3"].plan(Scale(quick=True, repeats=20))
    assert 2 <= len(kept) < len(plan) and f"{len(kept)} of {len(plan)}" in flat
    store = Store(tmp_path / "cells")
    assert sum(store.load(cell) is not None for cell in plan) == len(kept)


def test_a_failing_cell_does_not_stop_the_others(tmp_path):
    good, bad = Cell("fig1", "plane-gaussian", "lr-plug-in", 0, {"alpha": 0.1}), Cell("fig1", "nowhere", "none", 0)
    store = Store(tmp_path)
    outcomes = running.run([bad, good], store, running.in_this_process)
    assert [o.rows is None for o in outcomes] in ([True, False], [False, True])
    assert store.load(good) is not None and store.load(bad) is None
    assert "KeyError" in next(o.error for o in outcomes if o.rows is None)


def test_laplace_is_compiled_once_while_others_run():
    cells = [
        Cell("fig2", problem, "m", i, cost=c) for problem, c in (("laplace", 3.0), ("poisson", 1.0)) for i in (0, 1)
    ]
    assert [c.problem for c in running.in_order(cells)] == ["laplace", "poisson", "poisson", "laplace"]


# -- dask ------------------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("default")  # closing a cluster whose worker was killed is noisy inside distributed
def test_dask_gives_the_same_rows_and_survives_a_killed_worker(tmp_path):
    distributed = pytest.importorskip("distributed")
    plan = [c for c in figures()["fig3"].plan(Scale(repeats=2)) if c.problem == "iid-zero-0.1"]
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster:
        store = Store(tmp_path)
        killed: list[int] = []

        def kill_one(outcome: running.Outcome) -> None:
            if not killed:
                killed.append(next(iter(cluster.workers.values())).pid)
                os.kill(killed[0], signal.SIGKILL)

        outcomes = running.run(plan, store, running.on_dask(cluster.scheduler_address), progress=kill_one)
    assert killed and len(outcomes) == len(plan)
    for cell in plan:
        assert store.load(cell) == running.compute(cell).rows
