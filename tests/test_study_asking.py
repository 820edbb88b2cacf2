"""Studies that choose: settings asked for, pending in the store, answered, failed, safe; recommendations and claims."""

import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest

import likeset as ls
from likeset import cli

FACTORS = {"temperature": (20, 90), "hours": range(1, 9), "catalyst": ["X", "Y"]}


def begun(store, **options):
    settings = {
        "factors": FACTORS, "outcome": {"yield": ls.Gaussian(2.0)}, "model": "smooth", "range": (0, 100), "units": "%",
    } | options  # fmt: skip
    return ls.Study("reaction", store=store, **settings)


def truth(row):
    height = 80 if row["catalyst"] == "X" else 50
    return height * np.exp(-(((row["temperature"] - 60) / 25) ** 2) - ((row["hours"] - 4) / 4) ** 2)


def run(study, rounds, rng, n=2):
    asked = []
    for _ in range(rounds):
        for row in study.ask(n=n):
            asked.append(row)
            study.tell([row | {"yield": truth(row) + 2.0 * rng.normal()}])
    return asked


def test_settings_are_different_within_the_box_and_pending_for_everyone(tmp_path):
    study, other = begun(tmp_path / "a"), begun(tmp_path / "a")
    first = study.ask(n=3)
    assert len({json.dumps(row | {"run": 0}) for row in first}) == 3 and [row["run"] for row in first] == [1, 2, 3]
    for row in first:
        assert 20 <= row["temperature"] <= 90 and row["temperature"] == round(row["temperature"], 1)
        assert row["hours"] in range(1, 9) and type(row["hours"]) is int and row["catalyst"] in ("X", "Y")
    assert other.pending() == first and other.ask()["run"] == 4
    other.tell([first[1] | {"yield": 30.0}])  # by its number, in any order
    by_setting = {name: first[0][name] for name in FACTORS} | {"yield": 20.0}
    study.tell([by_setting])
    study.tell([first[2]], failed=True)
    other.cancel(4)
    assert (
        study.pending() == []
        and study.n == 3
        and [r.state for r in other.runs()]
        == ["told"] * 2
        + [
            "failed",
            "cancelled",
        ]
    )
    assert study.set.n_observations == 2 and study.rows() == begun(tmp_path / "a").rows()
    study.tell([by_setting])  # the same setting once more, though nobody asked
    assert study.n == 4


def test_what_cannot_be_told_or_asked_is_refused_and_changes_nothing():
    study = begun(None)
    row = study.ask() | {"yield": 10.0}
    before = study.fingerprint
    for wrong, message in [
        (row | {"temperature": 95}, "outside"),
        (row | {"hours": 2.5}, "whole number"),
        (row | {"catalyst": "Z"}, "no level"),
        (row | {"yield": None}, "missing"),
        (row | {"run": 7}, "never asked for"),
        (row | {"run": 1.5}, "no number of a run"),
        (row | {"failed": 2}, "neither 0 nor 1"),
    ]:
        with pytest.raises(ls.RowError, match=message):
            study.tell([wrong])
    assert study.fingerprint == before and len(study.pending()) == 1
    study.tell([row])
    with pytest.raises(ls.RowError, match="it was told"):
        study.tell([row])
    for call in (lambda: study.ask(n=0), lambda: study.ask(n=10**6), lambda: study.cancel(1)):
        with pytest.raises(ls.InvalidArgumentError):
            call()
    plain = ls.Study("plain", factors={"age": float}, outcome={"y": "gaussian"}, store=None)
    with pytest.raises(ls.InvalidArgumentError, match="no ends to choose between"):
        plain.ask()
    with pytest.raises(ls.InvalidArgumentError, match="does not choose"):
        plain.tell([{"age": 3.0}], failed=True)
    with pytest.raises(ls.InvalidArgumentError, match="range"):
        begun(None, range=None)
    with pytest.raises(ls.InvalidArgumentError, match="has an end that"):
        begun(None, outcome={"yield": "bernoulli"}, range=(0, 1))


def test_any_process_asks_recommends_and_certifies_the_same(tmp_path):
    until = {"gain": 99.0}
    one, rng = begun(None, until=until), np.random.default_rng(0)
    first = run(one, 4, rng)
    rng, again = np.random.default_rng(0), []
    for _ in range(4):  # a new process each time, as far as the study can tell
        again += run(begun(tmp_path / "a", until=until), 1, rng)
    reopened = ls.Study.open("reaction", tmp_path / "a", read_only=True)
    assert again == first and one.recommend() == reopened.recommend()
    claim = reopened.certificate()
    assert claim == one.certificate() and "no setting is better than that by more than 99 %" in str(claim)
    assert begun(None, seed=1).ask(n=4) != begun(None).ask(n=4)
    with pytest.raises(ls.StoreError, match="reading only"):
        reopened.ask()
    advice = one.recommend()
    best = max(truth({"temperature": t, "hours": h, "catalyst": "X"}) for t in range(20, 91) for h in range(1, 9))
    assert advice.bound <= truth(advice.setting) <= 100 and advice.bound + advice.gap >= best
    assert json.loads(json.dumps(advice.to_json()))["text"] == str(advice)


def test_minimising_mirrors_maximising():
    rng, up = np.random.default_rng(1), begun(None, range=(-100, 100))
    down = begun(None, goal="minimise", range=(-100, 100))
    for _ in range(3):
        a, b = up.ask(n=2), down.ask(n=2)
        assert a == b
        y = [truth(row) + rng.normal() for row in a]
        up.tell([row | {"yield": v} for row, v in zip(a, y, strict=True)])
        down.tell([row | {"yield": -v} for row, v in zip(b, y, strict=True)])
    first, second = up.recommend(), down.recommend()
    assert first.setting == second.setting and second.bound == pytest.approx(-first.bound)
    assert first.gap == pytest.approx(second.gap) and "at most" in str(second)


def test_the_best_of_a_few_levels_and_those_above_a_threshold():
    rng, means = np.random.default_rng(2), {"A": 0.2, "B": 0.7, "C": 0.4}
    best, above = "drug = B is best", "1 setting better than cured 0.55, 2 settings not"
    for until, word in [("best", best), ({"above": 0.55}, above)]:
        study = ls.Study("d", factors={"drug": list("ABC")}, outcome={"cured": "bernoulli"}, until=until, store=None)
        for _ in range(40):
            if study.certificate() is not None:
                break
            drugs = [row["drug"] for row in study.ask(n=2) for _ in range(12)]
            study.tell({"drug": drugs, "cured": [int(rng.random() < means[drug]) for drug in drugs]})
        assert word in str(study.certificate()) and study.pending() == []
    assert study.certificate().above == ({"drug": "B"},)


def constrained(store):
    return ls.Study(
        "safe", factors={"dose": (0, 10)}, outcome={"effect": ls.Gaussian(0.5)}, model="smooth", range=(0, 10),
        safe={"harm": ls.Below(0.5, ls.Gaussian(0.05), bound=3.0)}, known_safe=[{"dose": 0.5}], store=store,
    )  # fmt: skip


def test_only_settings_certified_to_be_safe_are_asked_for(tmp_path):
    study, rng = constrained(tmp_path / "a"), np.random.default_rng(3)
    assert study.ask()["dose"] == 0.5  # all that is known
    doses = []
    for i in range(12):
        row = study.ask()
        doses.append(row["dose"])
        study.tell([row | {"effect": row["dose"] + 0.5 * rng.normal(), "harm": 0.008 * row["dose"] ** 2}])
        if i == 5:
            study = constrained(tmp_path / "a")
    assert max(doses) > 1.5 and 0.008 * max(doses) ** 2 <= 0.5 and len(set(doses)) > 4
    study.tell([{"dose": 1.0, "failed": 1}])  # a failed run needs no outcomes
    with pytest.raises(ls.RowError, match="harm"):
        study.tell([{"dose": 1.0, "effect": 1.0}])
    study.export(tmp_path / "files")
    copied = ls.Study.import_from(tmp_path / "files", None)
    assert copied.fingerprint == study.fingerprint and copied.runs() == study.runs()
    assert copied.ask(n=2) == study.ask(n=2) and copied.recommend() == study.recommend()
    bare = ls.Study(
        "bare", factors={"dose": (0, 10)}, outcome={"effect": "gaussian"}, model="smooth", range=(0, 10),
        safe={"harm": ls.Below(0.5, ls.Bernoulli())}, store=None,
    )  # fmt: skip
    with pytest.raises(ls.InvalidArgumentError, match="known to be safe"):
        bare.ask()


ASKING = """
import sys
from test_study_asking import begun
study = begun(sys.argv[1])
while True:
    print(*(row["run"] for row in study.ask(n=2)), flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_what_was_asked_for_survives_a_kill(tmp_path):
    begun(tmp_path / "a").ask()
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([os.path.dirname(__file__), *sys.path])}
    with subprocess.Popen(
        [sys.executable, "-c", ASKING, tmp_path / "a"], stdout=subprocess.PIPE, text=True, env=environment
    ) as worker:
        said = [worker.stdout.readline() for _ in range(3)]
        os.kill(worker.pid, signal.SIGKILL)
        said += worker.stdout.readlines()  # what was still on its way
    numbers = [int(word) for line in said for word in line.split()]
    pending = [row["run"] for row in begun(tmp_path / "a").pending()]
    assert pending == list(range(1, len(pending) + 1)) and set(numbers) <= set(pending)
    assert len(pending) - 1 - len(numbers) in (0, 2)  # a batch in flight is there as a whole, or is not


def test_the_command_line_asks_recommends_and_refuses(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["likeset", "study", *map(str, arguments)])
        code = 0
        try:
            cli.main()
        except SystemExit as left:
            code = left.code or 0
        return code, *capsys.readouterr()

    new = ["new", "r", "--outcome", "yield", "--family", "gaussian(sigma=2)", "--number", "t=20:90", "--whole", "h=1:8"]
    new += ["--by", "c=X,Y", "--model", "smooth", "--range", "0:100", "--until", "gain=99", "--units", "%"]
    code, out, _ = call(*new)
    assert code == 0 and "Next: likeset study ask r" in out
    code, out, _ = call("ask", "r", "-n", 2, "--json")
    asked = json.loads(out)
    assert code == 0 and asked["pending"] == asked["runs"] and asked["certificate"] is None
    names = ["run", "t", "h", "c"]
    lines = [",".join([*names, "yield", "failed"])]
    lines += [
        ",".join([*(str(row[n]) for n in names), end]) for row, end in zip(asked["runs"], ("55,", ",1"), strict=True)
    ]
    (tmp_path / "rows.csv").write_text("\n".join(lines) + "\n")
    assert call("tell", "r", "rows.csv")[0] == 0 and call("pending", "r")[1].startswith("Nothing is pending")
    code, out, err = call("tell", "r", "rows.csv")
    assert code == 2 and err.startswith("Error: run, row 1 (line 2)") and err.count("\n") <= 2
    code, out, _ = call("recommend", "r", "--json")
    found = json.loads(out)
    assert code == 0 and found["setting"]["c"] in "XY" and found["rows"] == 2
    assert "the mean of yield is at least" in call("recommend", "r")[1] and "run" in call("ask", "r")[1]
    assert call("cancel", "r", 3)[0] == 0 and call("cancel", "r", 3)[0] == 2
    assert call("new", "s", *new[2:], "--safe", "harm")[0] == 2
    code, _, err = call("new", "s", *new[2:], "--safe", "harm<0.5:gaussian(sigma=0.1)")
    assert code == 2 and "harm<0.5:law:bound" in " ".join(err.split())
    safe = ["--safe", "harm<0.5:gaussian(sigma=0.1):4", "--known-safe", "t=30,h=2,c=X"]
    assert call("new", "s", *new[2:], *safe)[0] == 0
    out = " ".join(call("ask", "s", "-n", 3)[1].split())
    assert "These are 1 of the 3 asked for: no other setting is certified to be safe yet" in out
