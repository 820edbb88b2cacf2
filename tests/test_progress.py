"""Progress: shown after two seconds, where somebody watches, with the time left; silent everywhere else."""

from __future__ import annotations

import io
import os
import pty
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

import likeset as ls
from likeset import progress
from likeset.progress import counted, told
from likeset.study.csv_files import read_stream

SLOW = """
import time, numpy as np
import likeset as ls
from likeset import progress
progress.PATIENCE, progress.EVERY = 0.05, 0.05
class Slow:
    def forecast(self, phi):
        time.sleep(0.01)
        return ls.PlugIn(ls.Gaussian(1.0), 0.0)
    def observe(self, phi, y):
        pass
seq = ls.ConfidenceSequence(ls.Gaussian(1.0), ls.Linear(dim=1, bound=1.0), predictor=Slow())
seq.update([[1.0]] * 60, np.zeros(60))
print(seq.n_observations)
"""


LONG = """
import numpy as np
from sklearn.gaussian_process.kernels import RBF
import likeset as ls
from likeset import progress
progress.PATIENCE, progress.EVERY = 0.02, 0.01
seq = ls.ConfidenceSequence(ls.Gaussian(0.1), ls.RKHS(RBF(0.3), bound=2.0, dim=3), alpha=0.1)
x = np.random.default_rng(0).uniform(size=(60, 3))
seq.update(x, x[:, 0])
choice = ls.Guarded(seq, bounds=[(0.0, 1.0)] * 3, rng=0).recommend()
print(seq.n_observations)
"""


def run(program, watched, **environment):
    """Standard error of a program, in a terminal or in a pipe."""
    environment = {**os.environ, "PYTHONPATH": str(Path(ls.__file__).parent.parent), **environment}
    environment.pop("LIKESET_QUIET", None) if not environment.get("LIKESET_QUIET") else None
    if not watched:
        return subprocess.run([sys.executable, "-c", program], capture_output=True, env=environment, check=True).stderr
    ours, theirs = pty.openpty()
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=theirs, env=environment)
    os.close(theirs)
    seen = b""
    while True:
        try:
            part = os.read(ours, 4096)
        except OSError:
            break
        if not part:
            break
        seen += part
    os.close(ours)
    assert process.communicate()[0].strip() == b"60" and process.returncode == 0
    return seen


def test_a_long_update_shows_how_long_it_will_take_in_a_terminal():
    seen = run(SLOW, watched=True, LIKESET_QUIET="").decode()
    shares = [int(share) for share in re.findall(r"updating (\d+) %, \d+ s left", seen)]
    assert len(shares) >= 3 and shares == sorted(shares) and seen.endswith("\r")


def test_branch_and_bound_shows_how_far_it_is():
    seen = run(LONG, watched=True, LIKESET_QUIET="").decode()
    shares = [int(share) for share in re.findall(r"certifying the maximum over the box (\d+) %, \d+ s left", seen)]
    assert len(shares) >= 3 and shares == sorted(shares) and seen.endswith("\r")


def test_pipes_and_logs_stay_clean_and_quiet_is_quiet():
    assert b"updating" not in run(SLOW, watched=False, LIKESET_QUIET="")
    assert run(SLOW, watched=True, LIKESET_QUIET="1") == b""


def test_short_work_shows_nothing(monkeypatch):
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(progress, "_can_be_watched", lambda: pytest.fail("asked for nothing"))
    assert list(counted(range(1000), 1000, "counting")) == list(range(1000)) and stream.getvalue() == ""


def test_times_left_are_those_of_the_rate_so_far():
    assert told("x", 1, 100, 1.0) == "likeset: x 1 %, 1 min 39 s left"
    assert told("x", 0, 100, 1.0) == "likeset: x 0 %" and told("x", 0, 0, 1.0).endswith("0 s left")


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_studies_show_scoring_reopening_and_looking_back(tmp_path, monkeypatch):
    """One line at a time: what is inside of something that shows its progress is silent."""
    monkeypatch.setattr(progress, "PATIENCE", -1.0)
    monkeypatch.setattr(progress, "EVERY", -1.0)
    monkeypatch.setattr("likeset.study.engine.ROWS_AT_ONCE", 20)
    monkeypatch.delenv("LIKESET_QUIET", raising=False)

    def seen(call):
        terminal = Terminal()
        monkeypatch.setattr(sys, "stderr", terminal)
        call()
        return set(re.findall(r"likeset: ([a-z ]+) \d+ %", terminal.getvalue()))

    def begun():
        factors, outcome = {"v": ["a", "b"]}, {"y": ls.Bernoulli()}
        return ls.Study("long", factors=factors, outcome=outcome, control="a", store=tmp_path / "s.db")

    study = begun()
    rows = [{"v": "ab"[i % 2], "y": i % 3 % 2} for i in range(60)]
    assert seen(lambda: study.tell(rows)) == {"scoring rows"}
    assert "taking rows up again" in seen(lambda: begun().rows())
    assert seen(lambda: study._looks(5)) == {"looking at earlier times"}
    with progress.shown_elsewhere():
        assert seen(lambda: study.tell(rows[:41])) == set()


def seen_in_terminal(monkeypatch, call):
    """What a terminal is shown while something is called."""
    monkeypatch.delenv("LIKESET_QUIET", raising=False)
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    call()
    return terminal.getvalue()


def wait_for(condition):
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_what_has_no_meter_is_shown_with_the_time_it_has_taken(monkeypatch):
    """While a meter runs, its share is shown, and kept up to date where a step takes long."""
    monkeypatch.setattr(progress, "PATIENCE", 0.02)
    monkeypatch.setattr(progress, "EVERY", 0.01)

    def shows(pattern):
        wait_for(lambda: re.search(pattern, sys.stderr.getvalue()))

    def call():
        with progress.working("tidying up"):
            shows(r"likeset: tidying up, for \d+ s so far")
            with progress.working("something smaller"):
                pass
            with progress.meter("sweeping", 4) as at:
                at(1)
                shows(r"likeset: sweeping 25 %, \d+ s left")
        assert not progress._working

    seen = seen_in_terminal(monkeypatch, call)
    assert seen.endswith("\r") and "smaller" not in seen
    with progress.shown_elsewhere():
        assert seen_in_terminal(monkeypatch, lambda: _worked_on(0.1)) == ""
    monkeypatch.setattr(progress, "PATIENCE", 60.0)
    assert seen_in_terminal(monkeypatch, lambda: _worked_on(0.1)) == ""


def _worked_on(seconds):
    with progress.working("nothing much"):
        time.sleep(seconds)


def test_short_steps_that_follow_each_other_are_shown_once_all_of_them_take_long(monkeypatch):
    clock = [100.0]
    monkeypatch.setattr(progress, "_ended", 0.0)
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock[0])

    def step(name):
        with progress.meter(name, 2) as at:
            clock[0] += 0.9
            at(1)
            clock[0] += 0.1

    def steps():
        for name in ("first", "second", "third"):
            step(name)
        clock[0] += 10.0  # somebody thinks
        step("later")

    seen = seen_in_terminal(monkeypatch, steps)
    assert "third 50 %" in seen and not any(name in seen for name in ("first", "second", "later"))


def test_where_nobody_knows_how_much_there_is_the_amount_is_shown(monkeypatch):
    monkeypatch.setattr(progress, "PATIENCE", -1.0)
    monkeypatch.setattr(progress, "EVERY", -1.0)
    monkeypatch.setattr("likeset.study.csv_files._CHUNK", 10)
    heard = []

    def read():
        with progress.heard_by(lambda what, share, elapsed: heard.append((what, share))):
            read_stream(io.BytesIO(b"v,y\n" + b"a,1\n" * 25), "standard input")

    assert "likeset: reading rows, 20 so far" in seen_in_terminal(monkeypatch, read)
    assert ("reading rows, 10 so far", None) in heard


def test_files_of_rows_say_how_much_of_them_has_been_read_and_written(tmp_path, monkeypatch):
    monkeypatch.setattr(progress, "PATIENCE", -1.0)
    monkeypatch.setattr(progress, "EVERY", -1.0)
    monkeypatch.setattr("likeset.study.csv_files._CHUNK", 10)
    monkeypatch.setattr("likeset.study.record._AT_ONCE", 10)
    (tmp_path / "rows.csv").write_text("id,v,y\n" + "".join(f"{i},{'ab'[i % 2]},{i % 3 % 2}\n" for i in range(40)))
    study = ls.Study("s", factors={"v": ["a", "b"]}, outcome={"y": ls.Bernoulli()}, key="id", store=tmp_path / "s.db")

    def shown(call):
        return set(re.findall(r"likeset: ([a-z ]+) [1-9]\d* %", seen_in_terminal(monkeypatch, call)))

    assert {"reading rows", "looking for rows told before", "writing keys"} <= shown(
        lambda: study.tell(tmp_path / "rows.csv")
    )
    assert "writing rows" in shown(lambda: study.export(tmp_path / "out"))
    assert "reading rows" in shown(lambda: ls.Study.import_from(tmp_path / "out", tmp_path / "t.db"))


def any_of():
    seq = ls.AnyOf((ls.Gaussian(0.3), ls.Linear(1, 2.0)), (ls.Laplace(0.3), ls.Linear(1, 2.0)), alpha=0.1)
    seq.update([[1.0]] * 8, np.zeros(8))


def choosing():
    seq = ls.ConfidenceSequence(ls.Gaussian(0.1), ls.RKHS(RBF(0.3), bound=2.0, dim=1), alpha=0.1)
    seq.update([[0.2], [0.7]], [0.1, 0.4])
    ls.Guarded(seq, bounds=[(0.0, 1.0)], rng=0).ask(n=3)


def arms():
    ls.Guarded(ls.ConfidenceSequence(ls.Gaussian(0.1), ls.Linear(2, 1.0), 0.1), np.eye(2), rng=0).ask(n=2)


@pytest.mark.parametrize(
    ("call", "what"),
    [
        (any_of, "updating"),
        (choosing, "choosing"),
        (arms, "choosing"),
        (lambda: laplace_set().boundary(64), "drawing the boundary"),
    ],
)
def test_what_goes_step_by_step_says_how_far_it_is(call, what, monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(progress, "PATIENCE", -1.0)
    monkeypatch.setattr(progress, "EVERY", -1.0)
    monkeypatch.delenv("LIKESET_QUIET", raising=False)
    monkeypatch.setattr(sys, "stderr", terminal)
    call()
    assert re.search(rf"likeset: {what} \d+ %, [\d a-z]+ left", terminal.getvalue())


def test_who_shows_it_elsewhere_is_told_what_is_done_and_the_share(monkeypatch):
    monkeypatch.setattr(progress, "EVERY", -1.0)
    heard = []
    with progress.heard_by(lambda what, share, elapsed: heard.append((what, share)) or elapsed >= 0 or 1 / 0):
        assert list(counted("abcd", 4, "one by one")) == list("abcd")
    assert list(counted("ab", 2, "later")) == ["a", "b"]
    assert heard == [("one by one", share) for share in (0.0, 0.25, 0.5, 0.75)] + [("", None)]


def test_a_long_step_is_told_by_what_is_inside_of_it(monkeypatch):
    """The shares of meters inside, which may come one after the other, are shares of the step, and never fall."""
    monkeypatch.setattr(progress, "EVERY", -1.0)
    heard = []
    with progress.heard_by(lambda what, share, elapsed: heard.append((what, share))):
        for _ in counted("ab", 2, "outside"):
            for _ in range(2):
                for _ in counted("xy", 2, "inside"):
                    assert list(counted("vw", 2, "innermost")) == ["v", "w"]
        with progress.meter("by itself", 10.0) as at:
            at(2.0)
            assert list(counted("xy", 2, "inside")) == ["x", "y"]
    assert {what for what, _ in heard} == {"outside", "by itself", ""} and progress._around is None
    shares = [share for what, share in heard if what == "outside"]
    assert shares == sorted(shares) and set(shares) == {i / 8 for i in range(8)}
    assert [share for what, share in heard if what == "by itself"] == [0.2]


def poisson_set(**settings):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 3)) / 2
    seq = ls.ConfidenceSequence(ls.Poisson(), ls.Linear(3, 2.0), **settings)
    seq.update(x, rng.poisson(np.exp(x @ [0.3, 0.0, 0.2])))
    return seq.set


def laplace_set(**settings):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 2))
    seq = ls.ConfidenceSequence(ls.Laplace(1.0), ls.Linear(2, 2.0), **settings)
    seq.update(x, rng.laplace(size=60))
    return seq.set


def band_set():
    rng = np.random.default_rng(0)
    x = rng.uniform(size=(20, 1))
    seq = ls.ConfidenceSequence(ls.Poisson(), ls.RKHS(RBF(0.3), bound=2.0, dim=1))
    seq.update(x, rng.poisson(1.0, size=20))
    return seq.set


def unknown_shape_set():
    rng = np.random.default_rng(0)
    x = np.column_stack([np.ones(30), rng.normal(size=30)])
    seq = ls.ConfidenceSequence(ls.Weibull(ls.Unknown(0.5, 3.0)), ls.Linear(2, 3.0))
    seq.update(x, np.column_stack([rng.weibull(1.4, size=30) + 0.01, np.ones(30)]))
    return seq.set


LONG_BOUNDS = {
    "voices of counts": (poisson_set, 400),
    "counts": (lambda: poisson_set(voices=None, alarm=False), 9000),
    "voices of Laplace noise": (laplace_set, 200),
    "a band": (band_set, 5000),
    "an unknown shape": (unknown_shape_set, 80),
}


@pytest.mark.parametrize(("make", "count"), LONG_BOUNDS.values(), ids=LONG_BOUNDS)
def test_one_long_question_is_asked_in_shares_and_shown(make, count, monkeypatch):
    """The same bounds, as far as certificates go, as where each direction is asked for among few others."""
    s = make()
    rng = np.random.default_rng(1)
    x = rng.uniform(size=(count, 1)) if "RKHS" in repr(s.space) else rng.normal(size=(count, s.space.dim))
    few = np.arange(0, count, count // 8)
    apart = s.upper(x[few])
    monkeypatch.setattr(progress, "PATIENCE", -1.0)
    monkeypatch.setattr(progress, "EVERY", -1.0)
    monkeypatch.setattr("likeset.answers.shares.SECONDS", 1e-3)
    monkeypatch.delenv("LIKESET_QUIET", raising=False)
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    together = s.upper(x)
    shown = [int(share) for share in re.findall(r"likeset: finding bounds (\d+) %", terminal.getvalue())]
    assert len(shown) >= 2 and shown == sorted(shown) and shown[0] == 0 and terminal.getvalue().endswith("\r")
    np.testing.assert_allclose(together[few], apart, rtol=0, atol=1e-6 * np.abs(apart).max())
    terminal.truncate(0)
    with progress.shown_elsewhere():
        s.upper(x)
    assert terminal.getvalue() == ""


def test_a_question_of_few_directions_goes_to_the_kernel_as_it_is(monkeypatch):
    s = poisson_set()
    monkeypatch.setattr("likeset.answers.shares.meter", lambda *_: pytest.fail("measured what is quick"))
    assert len(s.upper(np.random.default_rng(1).normal(size=(100, 3)))) == 100
    gaussian = ls.ConfidenceSequence(ls.Gaussian(1.0), ls.Linear(2, 1.0), voices=None)
    gaussian.update([[1.0, 0.0]] * 3, [0.1, 0.2, 0.3])
    assert len(gaussian.set.upper(np.random.default_rng(1).normal(size=(100_000, 2)))) == 100_000


def test_what_is_inside_of_a_meter_stays_silent(monkeypatch):
    monkeypatch.setattr(progress, "PATIENCE", -1.0)
    monkeypatch.setattr(progress, "EVERY", -1.0)
    monkeypatch.delenv("LIKESET_QUIET", raising=False)
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    for _ in counted(range(3), 3, "outside"):
        assert list(counted(range(3), 3, "inside")) == [0, 1, 2]
    assert "outside" in terminal.getvalue() and "inside" not in terminal.getvalue()
    assert list(counted(range(3), 3, "afterwards")) == [0, 1, 2] and "afterwards" in terminal.getvalue()


def test_an_interrupt_between_shares_leaves_the_set_as_it_was(monkeypatch):
    s = poisson_set()
    x = np.random.default_rng(1).normal(size=(400, 3))
    before = s.upper(x[:5])
    kernel, calls = s._kernel, []
    bounds = type(kernel).bounds

    def interrupted(self, A, outside):
        calls.append(len(A))
        if len(calls) == 2:
            raise KeyboardInterrupt
        return bounds(self, A, outside)

    with monkeypatch.context() as patch:
        patch.setattr(type(kernel), "bounds", interrupted)
        with pytest.raises(KeyboardInterrupt):
            s.upper(x)
    np.testing.assert_array_equal(s.upper(x[:5]), before)
    assert not progress.metering()
