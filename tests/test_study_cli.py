"""``likeset watch`` and ``likeset study``: answers, files, exit codes, one-line errors."""

import gzip
import json
import os
import shlex
import subprocess
import sys
import time

import numpy as np
import pytest

import likeset as ls
from likeset import cli

OPTIONS = ["--outcome", "converted", "--family", "bernoulli", "--control", "A"]


@pytest.fixture
def run(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["likeset", *map(str, arguments)])
        code = 0
        try:
            cli.main()
        except SystemExit as left:
            code = left.code or 0
        out, err = capsys.readouterr()
        return code, out, err

    return call


def write_visits(path, n=300, start=0):
    rng = np.random.default_rng(start)
    with open(path, "a" if start else "w") as file:
        if not start:
            file.write("id,variant,converted\n")
        for i in range(start, start + n):
            variant = "AB"[rng.integers(2)]
            file.write(f"{i},{variant},{int(rng.random() < {'A': 0.1, 'B': 0.6}[variant])}\n")


def test_watch_answers_with_one_command(run, tmp_path):
    write_visits(tmp_path / "v.csv")
    code, out, err = run("watch", "v.csv", *OPTIONS, "--by", "variant")
    assert code == 0 and "better" in out and "300 rows of converted" in out and not err
    code, out, err = run("watch", "v.csv", *OPTIONS, "--by", "variant", "--json")
    found = json.loads(out)
    study = ls.Study("v", factors={"variant": ["A", "B"]}, outcome={"converted": "bernoulli"}, control="A", store=None)
    study.tell(tmp_path / "v.csv")
    assert found["rows"] == study.to_json()["rows"] and found["alarm"] == study.alarm()
    needed = {"level", "n", "estimate", "lower", "upper", "e_value", "verdict"}
    assert needed <= set(found["rows"][0])
    assert not (tmp_path / "likeset.db").exists()


def test_watch_reads_standard_input_and_formulas(tmp_path):
    write_visits(tmp_path / "v.csv", 60)
    command = [sys.executable, "-m", "likeset", "watch", "-", "--outcome", "converted", "--family", "bernoulli"]
    command += ["--formula", "~ id", "--json"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    with open(tmp_path / "v.csv") as file:
        out = subprocess.run(command, stdin=file, capture_output=True, env=environment, check=True, timeout=300).stdout
    assert [row["level"] for row in json.loads(out)["rows"]] == ["Intercept", "id"]


def test_a_study_from_begin_to_end(run, tmp_path):
    write_visits(tmp_path / "v.csv")
    code, out, _ = run("study", "new", "signup", *OPTIONS, "--by", "variant=A,B", "--key", "id")
    assert code == 0 and "likeset.db" in out and "likeset study tell signup rows.csv" in out
    code, out, _ = run("study", "tell", "signup", "v.csv")
    assert code == 0 and "300 rows recorded" in out and "likeset study show signup" in out
    write_visits(tmp_path / "v.csv", 20, start=300)
    code, out, _ = run("study", "tell", "signup", "v.csv", "--json")
    assert json.loads(out)["recorded"] == 20 and json.loads(out)["repeated"] == 300
    code, out, _ = run("study", "show", "signup")
    assert code == 0 and "better" in out
    assert json.loads(run("study", "list", "--json")[1])[0]["rows"] == 320
    assert run("study", "plot", "signup", "a.png")[0] == 0 and (tmp_path / "a.png").stat().st_size > 1000
    assert run("study", "report", "signup", "a.html")[0] == 0 and "<svg" in (tmp_path / "a.html").read_text()
    assert run("study", "export", "signup", "out")[0] == 0
    assert run("study", "import", "out", "--store", "other.db")[0] == 0
    shown = [json.loads(run("study", "show", "signup", "--json", "--store", s)[1]) for s in ("likeset.db", "other.db")]
    assert shown[0]["rows"] == shown[1]["rows"]


ERRORS = {
    "no such file": (["watch", "none.csv", *OPTIONS, "--by", "variant"], "none.csv"),
    "no such column": (["watch", "v.csv", *OPTIONS, "--by", "page"], "the column 'page' is missing"),
    "no such family": (["watch", "v.csv", "--outcome", "converted", "--family", "binary", "--by", "variant"], "binary"),
    "a family that must know more": (
        ["watch", "v.csv", "--outcome", "converted", "--family", "binomial", "--by", "variant"], "must know its trials"
    ),
    "nothing to depend on": (["watch", "v.csv", *OPTIONS], "pass --by variant"),
    "no such level": (["watch", "v.csv", *OPTIONS, "--by", "variant=A,C"], "variant, row"),
    "no such study": (["study", "show", "none"], "'none' is no study"),
    "levels not named": (["study", "new", "x", *OPTIONS, "--by", "variant"], "write --by variant=A,B,C"),
    "a bad number": (["study", "new", "x", "--outcome", "y", "--family", "poisson", "--number", "d=0"], "d=0:10"),
    "no folder": (["study", "import", "none"], "cannot be read"),
}  # fmt: skip


@pytest.mark.parametrize("kind", ERRORS)
def test_errors_are_one_line_that_says_what_to_do(kind, run, tmp_path):
    write_visits(tmp_path / "v.csv", 30)
    arguments, message = ERRORS[kind]
    code, out, err = run(*arguments)
    assert code == 2 and not out
    assert err.startswith("Error: ") and message in err and err.count("\n") == 1


def test_a_refuted_model_has_an_exit_code_of_its_own(run, tmp_path):
    (tmp_path / "a.csv").write_text("arm,y\n" + "a,50\na,49\n" * 20)
    options = ["--outcome", "y", "--family", "gaussian(sigma=0.1)", "--by", "arm=a", "--bound", "1"]
    code, out, _ = run("watch", "a.csv", *options, "--json")
    assert (code, json.loads(out)["alarm"]["rings"]) == (3, True)


def test_sorted_rows_are_warned_about_on_standard_error(run, tmp_path):
    (tmp_path / "a.csv").write_text("arm,y\n" + "a,0\n" * 40 + "a,1\n" * 40)
    code, out, err = run("watch", "a.csv", "--outcome", "y", "--family", "bernoulli", "--by", "arm", "--json")
    assert code == 0 and "sorted by 'y'" in err and json.loads(out)["rows_recorded"] == 80


def test_following_a_file_that_grows_and_one_that_shrinks(tmp_path):
    path = tmp_path / "v.csv"
    write_visits(path, 40)
    command = [sys.executable, "-m", "likeset", "watch", str(path), *OPTIONS, "--by", "variant=A,B", "--json"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    process = subprocess.Popen(
        [*command, "--follow", "--every", "0.05"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=environment,
    )  # fmt: skip
    assert json.loads(process.stdout.readline())["rows_recorded"] == 40
    with open(path, "a") as file:
        file.write("40,A,1\n41,B")  # a line and a half
        file.flush()
        assert json.loads(process.stdout.readline())["rows_recorded"] == 41
        file.write(",0\n")
        file.flush()
        assert json.loads(process.stdout.readline())["rows_recorded"] == 42
    path.write_text("id,variant,converted\n")
    _, err = process.communicate(timeout=120)
    assert process.returncode == 2 and "shorter than what was read" in err


def test_following_ends_with_an_answer(tmp_path):
    path = tmp_path / "v.csv"
    write_visits(path, 40)
    command = [sys.executable, "-m", "likeset", "watch", str(path), *OPTIONS, "--by", "variant", "--json", "--follow"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    assert json.loads(process.stdout.readline())["rows_recorded"] == 40
    time.sleep(0.2)
    process.send_signal(2)
    out, _ = process.communicate(timeout=120)
    assert process.returncode == 0 and json.loads(out)["rows_recorded"] == 40


def test_watch_says_how_to_keep_the_rows(run, tmp_path):
    """The command that it prints begins a study that takes the very file, with every option that was given."""
    write_visits(tmp_path / "v.csv", 60)
    out = run("watch", "v.csv", *OPTIONS, "--by", "variant", "--alpha", "0.1", "--no-alarm")[1]
    (command,) = [line.strip() for line in out.splitlines() if line.strip().startswith("likeset study new")]
    assert run(*shlex.split(command)[1:])[0] == 0
    assert "  likeset study tell v v.csv" in out.splitlines()
    assert run("study", "tell", "v", "v.csv")[0] == 0
    made = ls.Study.open("v", tmp_path / "likeset.db", read_only=True).definition
    assert (made.alpha, made.alarm, made.control) == (0.1, False, {"variant": "A"})
    assert "--control A" in run("watch", "v.csv", *OPTIONS[:4], "--by", "variant")[1]
    (tmp_path / "comma.csv").write_text('variant,converted\n"A, old",1\n"B, new",0\n')
    out = run("watch", "comma.csv", *OPTIONS[:4], "--by", "variant")[1]
    assert "study new" not in out and "ls.Study" in out


def test_levels_of_a_file_that_are_none(run, tmp_path):
    write_visits(tmp_path / "v.csv", 150)
    code, _, err = run("watch", "v.csv", *OPTIONS[:4], "--by", "id")
    assert code == 2 and "150 different cells" in err and "--number id" in err
    (tmp_path / "none.csv").write_text("variant,converted\n")
    code, _, err = run("watch", "none.csv", *OPTIONS, "--by", "variant")
    assert code == 2 and "there are no rows" in err
    (tmp_path / "case.csv").write_text("variant,converted\nA,1\na,0\nB,0\n")
    code, _, err = run("watch", "case.csv", *OPTIONS, "--by", "variant")
    assert code == 0 and "'A' and 'a' of 'variant' differ in capitals only" in err


def test_what_was_probably_meant_is_said(run, tmp_path):
    write_visits(tmp_path / "v.csv", 30)
    study = ["--by", "variant=A,B", "--key", "id"]
    assert "Next: likeset study tell" in run("study", "new", "signup", *OPTIONS, *study)[1]
    assert "There are no rows yet" in run("study", "show", "signup")[1]
    (tmp_path / "w.csv").write_text("id,variant,converted\n1,b,1\n")
    for arguments, meant in (
        (["watch", "v.csv", "--outcome", "convertd", *OPTIONS[2:], "--by", "variant"], "did you mean 'converted'?"),
        (["watch", "v.csv", *OPTIONS[:2], "--family", "bernouli", "--by", "variant"], "did you mean 'bernoulli'?"),
        (["watch", "v.csv", *OPTIONS[:2], "--family", "normal", "--by", "variant"], "gaussian is the normal law"),
        (["study", "show", "sigup"], "did you mean 'signup'?"),
        (["study", "tell", "signup", "w.csv"], "did you mean 'B'?"),
        (["watch", "v.csv", *OPTIONS[:4], "--formula", "~ variant"], "--by variant"),
    ):
        code, _, err = run(*arguments)
        assert code == 2 and meant in err, err


@pytest.mark.parametrize(
    ("cell", "remedy"),
    [('"1,409.96"', "write 1409.96,"), ("53.2%", "write 53.2,"), ("$7", "write 7,"), ("NA", "leave the row out")],
)
def test_cells_that_are_nearly_numbers(run, tmp_path, cell, remedy):
    (tmp_path / "r.csv").write_text(f"variant,rate\nA,1\nB,{cell}\n")
    code, _, err = run("watch", "r.csv", "--outcome", "rate", "--family", "gaussian", "--by", "variant")
    assert code == 2 and "rate, row 2 (line 3)" in err and remedy in err, err


def test_every_command_of_a_study_speaks_json(run, tmp_path):
    write_visits(tmp_path / "v.csv", 60)
    run("study", "new", "signup", *OPTIONS, "--by", "variant=A,B", "--key", "id")
    for arguments, wanted in (
        (["tell", "signup", "v.csv"], {"recorded": 60}),
        (["plot", "signup", "p.png"], {"picture": "p.png"}),
        (["report", "signup", "r.html"], {"report": "r.html"}),
        (["export", "signup", "out"], {"folder": "out"}),
        (["ask", "signup"], {"certificate": None}),
        (["cancel", "signup", "1"], {"cancelled": 1, "pending": []}),
        (["recommend", "signup"], {"rows": 60}),
        (["show", "signup"], {"rows_recorded": 60}),
    ):
        code, out, _ = run("study", *arguments, "--json")
        assert code == 0 and wanted.items() <= json.loads(out).items(), out


def test_files_that_are_no_plain_csv(run, tmp_path):
    write_visits(tmp_path / "v.csv", 60)
    (tmp_path / "v.csv.gz").write_bytes(gzip.compress((tmp_path / "v.csv").read_bytes()))
    plain, packed = (
        json.loads(run("watch", name, *OPTIONS, "--by", "variant", "--json")[1]) for name in ("v.csv", "v.csv.gz")
    )
    assert plain["rows"] == packed["rows"]
    (tmp_path / "half.gz").write_bytes((tmp_path / "v.csv.gz").read_bytes()[:150])
    (tmp_path / "v.xlsx").write_bytes(b"PK\x03\x04" + bytes(100))
    (tmp_path / "about.csv").write_text("# written by a tool\nvariant,converted\nA,1\n")
    (tmp_path / "v.parquet").write_bytes(b"PAR1")
    for name, more, said in (
        ("half.gz", [], "cannot be unpacked"),
        ("v.xlsx", [], "save the table as CSV"),
        ("about.csv", [], "begins with '# written by a tool'"),
        ("v.parquet", ["--follow"], "leave --follow out"),
        ("-", ["--follow"], "write --by variant=A,B,C"),  # which levels there will be nobody knows
    ):
        code, _, err = run("watch", name, *OPTIONS, "--by", "variant", *more)
        assert code == 2 and said in err and len(err.splitlines()) == 1, (name, err)


def test_pictures_have_an_ending_that_is_known(run, tmp_path):
    assert run("study", "new", "s", *OPTIONS, "--by", "variant=A,B")[0] == 0
    code, _, err = run("study", "plot", "s", "s.foo")
    assert code == 2 and "no ending of a picture" in err and "png" in err


def test_a_refuted_model_comes_with_what_to_do_and_not_with_a_way_to_keep_it(run, tmp_path):
    rng = np.random.default_rng(0)
    rows = "".join(f"{'AB'[i % 2]},{value}\n" for i, value in enumerate(rng.standard_cauchy(400).round(3)))
    (tmp_path / "tails.csv").write_text("variant,y\n" + rows)
    code, out, _ = run("watch", "tails.csv", "--outcome", "y", "--family", "gaussian", "--by", "variant")
    assert code == 3 and "--no-alarm" in out and "study new" not in out


def test_long_names_are_cut_in_the_table_of_a_terminal(run, tmp_path):
    write_visits(tmp_path / "v.csv", 40)
    text = (tmp_path / "v.csv").read_text().replace(",B,", f',"{"x" * 300}\n{"y" * 300}",')
    (tmp_path / "v.csv").write_text(text)
    out = run("watch", "v.csv", *OPTIONS, "--by", "variant")[1].splitlines()
    (row,) = [line for line in out if "xxx…" in line]
    assert row.split("  ")[0] == f"{'x' * 20}…{'y' * 19}" and len(row) < 200
