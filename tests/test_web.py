"""The page, without a browser: answers, security, limits, workers that die, servers that are killed."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import numpy as np
import pytest

import likeset as ls
from likeset.progress import overheard
from likeset.web.app import create_app
from likeset.web.demo import _rows, _simulated, build_demo
from likeset.web.drawing import over_time
from likeset.web.history import History, became_certain, looks_between
from likeset.web.rows import definition_from, fields_of
from likeset.web.security import POLICY, Gate, Limits
from likeset.web.tasks import Tasks
from likeset.web.worker import Refused, Worker, WorkerDied

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # which HTTP client it would rather have
    from starlette.testclient import TestClient

TOKEN = "a-token-of-the-tests"
NASTY = "<script>alert(1)</script> & \"quotes\" 'n' {{ 7*7 }} / ../x"


def study_in(store, name="signup", rows=60, **options):
    study = ls.Study(
        name,
        factors={"variant": ["A", "B"]},
        outcome={"converted": ls.Bernoulli()},
        control="A",
        store=store,
        **options,
    )
    study.tell([{"variant": "AB"[i % 2], "converted": int(i % 2 == 1 or i % 7 == 0)} for i in range(rows)])
    return study


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "likeset.db"
    study_in(path)
    study_in(path, NASTY, 4)
    return path


@pytest.fixture(scope="module")
def app(store):
    app = create_app(store, token=TOKEN, limits=Limits(reads=(1e5, 1e5), writes=(1e5, 1e5)))
    yield app
    app.state.desk.close()


@pytest.fixture
def reader(app):
    return TestClient(app, base_url="http://127.0.0.1", client=("127.0.0.1", 5000), follow_redirects=False)


@pytest.fixture
def writer(app):
    client = TestClient(app, base_url="http://127.0.0.1", client=("127.0.0.1", 5000), follow_redirects=False)
    assert client.get(f"/enter?token={TOKEN}").status_code == 303
    return client


def settled(client, path, seconds=240.0):
    """A page once nothing is on its way."""
    end = time.monotonic() + seconds
    while True:
        page = client.get(path)
        if "data-refresh" not in page.text or time.monotonic() > end:
            return page
        time.sleep(0.1)


def csrf(page):
    return re.search(r'name="csrf" value="([^"]+)"', page.text).group(1)


# -- what is shown -------------------------------------------------------------------------------------------


def test_the_list_and_the_page_say_what_the_study_says(reader, store):
    assert "signup" in settled(reader, "/").text
    page = settled(reader, "/study?name=signup")
    answers = ls.Store(store, read_only=True).study("signup").to_json()
    assert "<strong>B</strong> is better than A" in page.text and answers["rows"][1]["verdict"] == "better"
    assert "certain by row" in page.text and "picture.svg?name=signup&amp;kind=over-time" in page.text
    told = reader.get("/api/study?name=signup").json()
    assert told["current"] and told["rows"] == answers["rows"]
    studies = reader.get("/api/studies").json()
    assert [s["name"] for s in studies] == ["signup", NASTY]


def test_pictures_are_svg_without_scripts_and_follow_the_theme(reader):
    settled(reader, "/study?name=signup")
    for kind in ("over-time", "now"):
        picture = reader.get(f"/study/picture.svg?name=signup&kind={kind}")
        assert picture.headers["content-type"].startswith("image/svg+xml")
        assert "prefers-color-scheme: dark" in picture.text and "<script" not in picture.text
        narrow = reader.get(f"/study/picture.svg?name=signup&kind={kind}-narrow")  # for phones
        width, less = (float(re.search(r'<svg[^>]* width="([\d.]+)pt"', p.text).group(1)) for p in (picture, narrow))
        assert less < 0.7 * width
    assert reader.get("/study/picture.svg?name=signup&kind=other").status_code == 404


def test_where_the_shape_is_unknown_the_page_draws_hazard_ratios_as_the_study_does(tmp_path):
    study = ls.Study(
        "s", factors={"late": ["A", "B"]}, outcome={"t": ls.Weibull(ls.Unknown())}, control="A", store=tmp_path / "s.db"
    )
    rng = np.random.default_rng(0)
    study.tell({"late": ["A", "B"] * 60, "t": rng.weibull(1.5, 120) * np.tile([1.0, 2.0], 60)})
    answers, looks = study.to_json(), History(study).advance()
    row, line = answers["rows"][1], looks[-1]["lines"][1]
    ends = [row[name] for name in ("hazard_lower", "hazard", "hazard_upper")]
    assert [line[name] for name in ("hazard_lower", "hazard", "hazard_upper")] == ends and ends[0] < 2**-1.5 < ends[2]
    (axes,) = over_time(answers, looks).axes
    assert "hazard ratio, against A" in " ".join(axes.get_ylabel().split())
    low, high = axes.get_ylim()
    assert low < ends[0] < ends[2] < high and low < 1.0 < high  # the reference is a ratio of one


def test_history_says_when_the_verdict_became_certain(reader, store):
    history = reader.get("/api/study/history?name=signup").json()
    (certain,) = history["certain"]
    study = ls.Store(store, read_only=True).study("signup")
    assert certain["level"] == "B" and 2 < certain["rows"] <= 60
    rows = [{"variant": "AB"[i % 2], "converted": int(i % 2 == 1 or i % 7 == 0)} for i in range(certain["rows"])]
    for n, verdict in ((certain["rows"], "better"), (looks_between(0, certain["rows"])[-2], "not yet")):
        fresh = ls.Study(
            "again", factors={"variant": ["A", "B"]}, outcome={"converted": ls.Bernoulli()}, control="A", store=None
        )
        fresh.tell(rows[:n])  # told at once, or in two parts: the same answers
        assert fresh.verdict() == {"B": verdict}
    last = history["looks"][-1]["lines"]
    assert [line["lower"] for line in last] == [row["lower"] for row in study.to_json()["rows"]]


def test_a_history_counts_rows_that_were_told_and_not_rows_that_were_scored(tmp_path):
    """From some hundred rows on, rows of one level are pooled and scored together."""
    rng = np.random.default_rng(8)
    factors = {"variant": ["A", "B"]}
    study = ls.Study("pooled", factors=factors, outcome={"y": ls.Bernoulli()}, control="A", store=tmp_path / "s.db")
    growing = History(study)
    for size in (700, 900, 1400):
        rows = {"variant": rng.choice(["A", "B"], size).tolist(), "y": (rng.random(size) < 0.2).astype(int).tolist()}
        study.tell(rows)
        growing.advance()
    looks = History(study).advance()
    assert looks == growing.looks
    assert [sum(line["n"] for line in look["lines"]) for look in looks] == [look["rows"] for look in looks]
    assert looks[-1]["rows"] == 3000
    widths = [look["lines"][0]["upper"] - look["lines"][0]["lower"] for look in looks if look["rows"] >= 600]
    assert widths[-1] < 0.8 * widths[0]


def test_a_history_that_grows_is_the_history_from_the_beginning(tmp_path):
    study = study_in(tmp_path / "x.db", rows=7)
    growing = History(study)
    growing.advance()
    study.tell([{"variant": "AB"[i % 2], "converted": i % 2} for i in range(5)])
    growing.advance()
    assert growing.looks == History(study).advance()
    assert became_certain(growing.looks).keys() <= {("variant", "B")}


def test_files_hold_all_rows_and_everything_said(reader, store):
    data = reader.get("/study/data.csv?name=signup")
    rows = list(csv.DictReader(io.StringIO(data.text)))
    assert len(rows) == ls.Store(store, read_only=True).study("signup").n
    assert rows[1] == {"variant": "B", "converted": "1"}
    assert "attachment" in data.headers["content-disposition"]
    report = reader.get("/study/report.html?name=signup")
    assert "<svg" in report.text and "better" in report.text and "<script" not in report.text
    assert 'src="' not in report.text and "sandbox" in report.headers["content-security-policy"]


def test_cells_that_look_like_formulas_are_defused():
    from likeset.web.tasks import csv_text

    assert csv_text([{"level": "=HYPERLINK(1)", "n": -3.0}]).splitlines()[1] == "'=HYPERLINK(1),-3"


@pytest.mark.parametrize("path", ["/study?name=nothing", "/nowhere", "/static/../app.py", "/static/nothing.css"])
def test_what_is_not_there(reader, path):
    assert reader.get(path).status_code == 404


# -- writing -------------------------------------------------------------------------------------------------


def test_a_study_from_the_first_form_to_the_verdict(writer):
    page = writer.get("/new")
    form = {"csrf": csrf(page), "name": "doses", "factors": "dose: 0 to 10\narm: left, right", "outcome": "hits",
            "family": "poisson", "control": "left", "goal": "maximise"}  # fmt: skip
    made = writer.post("/new", data=form)
    assert (made.status_code, made.headers["location"]) == (303, "/study?name=doses")
    page = settled(writer, "/study?name=doses")
    row = {"csrf": csrf(page), "field-0": "2.5", "field-1": "right", "field-2": "4"}
    told = writer.post("/study/tell?name=doses", data=row)
    assert told.status_code == 303 and "told=1" in told.headers["location"]
    assert "Recorded 1 row" in writer.get(told.headers["location"]).text
    for bad, problem in (("eleven", "is not a number"), ("11", "lies outside"), ("", "is empty")):
        refused = writer.post("/study/tell?name=doses", data=row | {"field-0": bad})
        assert refused.status_code == 422 and problem in refused.text and 'role="alert"' in refused.text
        assert f'value="{bad}"' in refused.text  # what was typed is not lost
    text = "dose,arm,hits\n" + "1.0,left,2\n" * 3 + "9,right,7\n"
    assert writer.post("/study/tell?name=doses", data={"csrf": csrf(page), "csv": text}).status_code == 303
    broken = writer.post("/study/tell?name=doses", data={"csrf": csrf(page), "csv": "dose,arm,hits\n1,up,2\n"})
    assert broken.status_code == 422 and "line 2" in broken.text
    assert writer.get("/api/study?name=doses").json()["rows_recorded"] == 5
    again = writer.post("/new", data=form | {"family": "bernoulli"})
    assert again.status_code == 422 and "another definition" in again.text


def test_a_scale_that_is_left_empty_is_unknown_and_not_one(writer, store):
    form = {"csrf": csrf(writer.get("/new")), "name": "weights", "factors": "diet: plain, rich", "outcome": "grams",
            "family": "gaussian", "setting": "", "control": "plain", "units": "grams"}  # fmt: skip
    assert writer.post("/new", data=form).status_code == 303
    assert repr(ls.Study.open("weights", store).definition.family) == "Gaussian(sigma=Unknown())"
    rows = [{"diet": ("plain", "rich")[i % 2], "grams": 700.0 + 150 * (i % 2) + 7 * (i % 5)} for i in range(24)]
    bearer = {"Authorization": f"Bearer {TOKEN}"}
    assert writer.post("/api/study/tell?name=weights", json=rows, headers=bearer).status_code == 200
    assert "<strong>rich</strong> is better than plain" in settled(writer, "/").text
    made = {"name": "w", "factors": {"d": ["a", "b"]}, "outcome": "y", "family": ["gaussian", {"sigma": "unknown"}]}
    assert writer.post("/api/studies", json=made, headers=bearer).status_code == 201
    made |= {"name": "v", "family": ["gaussian", {"sigma": "not known"}]}
    assert writer.post("/api/studies", json=made, headers=bearer).status_code == 422


def test_a_campaign_asks_and_hears_of_its_runs(writer, store):
    form = {"csrf": csrf(writer.get("/new")), "name": "lab", "factors": "heat: 20 to 90\nsolvent: a, b",
            "outcome": "yield", "family": "gaussian", "setting": "3", "model": "smooth",
            "range": "0 to 100"}  # fmt: skip
    refused = writer.post("/new", data=form | {"range": "a lot"})
    assert refused.status_code == 422 and "0 to 100" in refused.text
    assert writer.post("/new", data=form).status_code == 303
    page = settled(writer, "/study?name=lab")
    assert "Nothing is pending" in page.text and "Recommended" not in page.text
    sent = {"csrf": csrf(page)}
    assert writer.post("/study/ask?name=lab", data=sent | {"count": "0"}).status_code == 422
    asked = writer.post("/study/ask?name=lab", data=sent | {"count": "3"})
    assert asked.status_code == 303 and "asked=3" in asked.headers["location"]
    page = writer.get("/study?name=lab").text
    assert all(f"Tell run {number}" in page for number in (1, 2, 3)) and "It failed" in page
    results = ({"run": "2", "what": "told", "field-0": "41.5"}, {"run": "1", "what": "failed", "field-0": ""})
    for answer in (*results, {"run": "3", "what": "cancelled"}):
        assert writer.post("/study/run?name=lab", data=answer | sent).status_code == 303
    for wrong in (results[0], {"run": "7", "field-0": "1"}, {"run": "x"}, {"run": "2", "field-0": ""}):
        assert writer.post("/study/run?name=lab", data=wrong | sent).status_code == 422
    page = settled(writer, "/study?name=lab").text
    assert "Nothing is pending" in page and "Recommended:" in page and "kind=band" in page
    assert "<strong>heat = " in writer.get("/").text and "yield at least" in writer.get("/").text
    asked = writer.post("/study/ask?name=lab", data=sent | {"count": "1"})
    assert "1 run is pending" in writer.get("/").text
    assert writer.post("/study/run?name=lab", data=sent | {"run": "4", "field-0": "47"}).status_code == 303
    page = settled(writer, "/study?name=lab").text
    assert "what is certain of the best setting" in page and "kind=over-time" in page
    picture = writer.get("/study/picture.svg?name=lab&kind=over-time").text
    assert "certain: the best setting has at least" in picture and "heat" not in picture
    study = ls.Study.open("lab", store)
    assert [run.state for run in study.runs()] == ["failed", "told", "cancelled", "told"] and study.n == 3
    assert study.recommend().to_json() == writer.get("/api/study/advice?name=lab").json()["recommended"]


def test_programs_ask_and_answer(reader):
    bearer = {"Authorization": f"Bearer {TOKEN}"}
    made = {"name": "runs", "factors": {"dose": {"whole": [1, 8]}}, "outcome": "y",
            "family": ["gaussian", {"sigma": 0.5}], "model": "smooth", "range": [0, 10],
            "until": {"gain": 1.0}}  # fmt: skip
    assert reader.post("/api/studies", json=made, headers=bearer).status_code == 201
    asked = reader.post("/api/study/ask?name=runs&count=2", headers=bearer).json()
    assert [set(run) for run in asked] == [{"run", "dose"}] * 2
    assert reader.get("/api/study/advice?name=runs").json()["pending"] == asked
    told = reader.post("/api/study/run?name=runs", json={"run": 1, "result": {"y": 4.0}}, headers=bearer)
    assert told.json()["recorded"] == 1
    assert reader.post("/api/study/run?name=runs", json={"run": 2, "failed": True}, headers=bearer).status_code == 200
    for body in ({"run": 1, "result": {"y": 1}}, {"run": "1"}, {"run": 1}, [], {"run": 2, "result": 3}):
        answer = reader.post("/api/study/run?name=runs", json=body, headers=bearer)
        assert answer.status_code == 422 and set(answer.json()) == {"error", "text"}
    advice = reader.get("/api/study/advice?name=runs").json()
    assert advice["pending"] == [] and advice["certificate"] is None and advice["recommended"]["gap"] > 0


def test_a_file_is_told(writer):
    page = settled(writer, "/study?name=signup")
    before = writer.get("/api/study?name=signup").json()["rows_recorded"]
    file = {"csv": ("rows.csv", b"\xef\xbb\xbfvariant,converted\nA,0\nB,1\n", "text/csv")}
    assert writer.post("/study/tell?name=signup", data={"csrf": csrf(page)}, files=file).status_code == 303
    assert writer.get("/api/study?name=signup").json()["rows_recorded"] == before + 2


def test_programs_write_json_with_the_token(reader):
    bearer = {"Authorization": f"Bearer {TOKEN}"}
    made = {
        "name": "api",
        "factors": {"dose": {"interval": [0, 1]}},
        "outcome": "y",
        "family": ["gaussian", {"sigma": 0.5}],
    }
    assert reader.post("/api/studies", json=made, headers=bearer).json() == {"name": "api"}
    told = reader.post("/api/study/tell?name=api", json=[{"dose": 0.5, "y": 1.0}], headers=bearer)
    assert told.json() == {"recorded": 1, "repeated": 0, "total": 1, "warnings": []}
    text = reader.post(
        "/api/study/tell?name=api", content="dose,y\n0.1,2\n", headers=bearer | {"Content-Type": "text/csv"}
    )
    assert text.json()["total"] == 2
    for path, body, status in (
        ("/api/study/tell?name=api", {"not": "a list"}, 422),
        ("/api/study/tell?name=api", [{"dose": 3, "y": 1}], 422),
        ("/api/study/tell?name=gone", [], 404),
        ("/api/studies", {"name": "x", "surprise": 1}, 422),
        ("/api/studies", {"name": "x", "family": ["gaussian", {"sigma": -1}], "factors": {"v": ["a"]}}, 422),
        ("/api/studies", {"name": "", "family": "poisson", "factors": {"v": ["a"]}}, 422),
        ("/api/studies", {"name": "x", "family": ["gaussian", {"surprise": 1}], "factors": {"v": ["a"]}}, 422),
        ("/api/studies", [1], 422),
    ):
        answer = reader.post(path, json=body, headers=bearer)
        assert answer.status_code == status and set(answer.json()) == {"error", "text"}, answer.text
    assert reader.post("/api/study/tell?name=api", content=b"{", headers=bearer).status_code == 422


def test_rows_sorted_by_outcome_are_warned_about(writer):
    page = writer.get("/study?name=signup")
    text = "variant,converted\n" + "A,0\nB,0\n" * 40 + "A,1\nB,1\n" * 40
    answer = writer.post("/study/tell?name=signup", data={"csrf": csrf(page), "csv": text})
    assert answer.status_code == 200 and "sorted" in answer.text and 'role="alert"' in answer.text


# -- security ------------------------------------------------------------------------------------------------


def test_names_of_the_users_own_are_text_everywhere(writer):
    from urllib.parse import quote

    for path in (
        "/",
        f"/study?name={quote(NASTY)}",
        f"/study/report.html?name={quote(NASTY)}",
        f"/study?name={quote('<script>x')}",
    ):
        page = settled(writer, path)
        assert (
            "<script>alert" not in page.text
            and "<script>x" not in page.text
            and "49" not in re.findall(r"&#34;n&#34; (\d+)", page.text)
        )
    assert "&lt;script&gt;" in writer.get("/").text
    named = writer.get(f"/study/data.csv?name={quote(NASTY)}").headers["content-disposition"]
    assert "<" not in named and "/" not in named.split("filename")[1]


def test_every_answer_has_the_headers(reader):
    for path in ("/", "/study?name=signup", "/api/studies", "/nowhere", "/static/page.css", "/enter?token=wrong"):
        headers = reader.get(path).headers
        assert headers["content-security-policy"] == POLICY, path
        assert headers["x-content-type-options"] == "nosniff" and headers["x-frame-options"] == "DENY"
    assert "unsafe" not in POLICY and "default-src 'none'" in POLICY


def test_pages_hold_nothing_that_the_policy_forbids(writer):
    for path in ("/", "/study?name=signup", "/new", "/nowhere"):
        text = settled(writer, path).text
        assert not re.search(r"<script(?! src=\"/static/page.js\" defer></script>)", text), path
        assert " style=" not in text and "<style" not in text and not re.search(r"\son\w+=", text)
        assert not re.search(r'(?:src|href)="(?!/|#)', text)


def test_writing_needs_the_token(reader):
    for path in (
        "/new",
        "/study/tell?name=signup",
        "/study/ask?name=signup",
        "/study/run?name=signup",
        "/api/study/ask?name=signup",
        "/api/study/run?name=signup",
        "/api/study/tell?name=signup",
        "/api/studies",
    ):
        assert reader.post(path, data={}).status_code == 401, path
    assert (
        reader.post("/api/study/tell?name=signup", json=[], headers={"Authorization": "Bearer wrong"}).status_code
        == 401
    )
    assert "Enter a result" not in reader.get("/study?name=signup").text
    assert reader.get("/enter?token=wrong").status_code == 401 and not reader.cookies


def test_forged_forms_are_refused(writer):
    page = settled(writer, "/study?name=signup")
    row = {"field-0": "A", "field-1": "0"}
    before = writer.get("/api/study?name=signup").json()["rows_in_store"]
    assert writer.post("/study/tell?name=signup", data=row).status_code == 403
    assert writer.post("/study/tell?name=signup", data=row | {"csrf": "0" * 64}).status_code == 403
    good = row | {"csrf": csrf(page)}
    for headers in ({"Origin": "http://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}):
        assert writer.post("/study/tell?name=signup", data=good, headers=headers).status_code == 403
    assert writer.get("/api/study?name=signup").json()["rows_in_store"] == before
    assert writer.post("/study/tell?name=signup", data=good, headers={"Origin": "http://127.0.0.1"}).status_code == 303


def test_cookies_are_strict_and_cannot_be_made_up(app, writer):
    entered = writer.get(f"/enter?token={TOKEN}").headers["set-cookie"].lower()
    assert "httponly" in entered and "samesite=strict" in entered and TOKEN not in entered
    forger = TestClient(
        app, base_url="http://127.0.0.1", client=("127.0.0.1", 1), cookies={"likeset-session": "me." + "0" * 64}
    )
    assert forger.post("/new", data={}).status_code == 401


def test_other_computers_need_the_token_for_everything(app):
    away = TestClient(app, base_url="http://127.0.0.1", client=("192.168.1.5", 5000), follow_redirects=False)
    for path in ("/", "/study?name=signup", "/api/studies", "/events"):
        assert away.get(path).status_code == 401
    assert away.get("/api/studies", headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 200
    assert away.get(f"/enter?token={TOKEN}").status_code == 303
    assert away.get("/").status_code == 200


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8765", "127.0.0.1.evil.example", ""])
def test_names_that_were_pointed_at_this_server_are_refused(reader, host):
    assert reader.get("/", headers={"Host": host}).status_code == 421


def test_a_read_only_server_writes_nothing(store):
    app = create_app(store, read_only=True, token=TOKEN)
    client = TestClient(app, base_url="http://127.0.0.1", client=("127.0.0.1", 5000), follow_redirects=False)
    client.get(f"/enter?token={TOKEN}")
    files = set(os.listdir(store.parent))
    bearer = {"Authorization": f"Bearer {TOKEN}"}
    assert (
        client.post("/api/study/tell?name=signup", json=[{"variant": "A", "converted": 1}], headers=bearer).status_code
        == 403
    )
    page = settled(client, "/study?name=signup")
    assert page.status_code == 200 and "Enter a result" not in page.text and "read-only" in page.text
    app.state.desk.close()
    assert set(os.listdir(store.parent)) <= files | {f"{store.name}-wal", f"{store.name}-shm"}


def test_sizes_and_rates_are_limited(store):
    limits = Limits(reads=(0.001, 3), writes=(0.001, 2), guesses=(0.001, 2), largest_body=1000)
    app = create_app(store, token=TOKEN, limits=limits)
    client = TestClient(app, base_url="http://127.0.0.1", client=("127.0.0.1", 5000), follow_redirects=False)
    bearer = {"Authorization": f"Bearer {TOKEN}"}
    assert client.post("/api/study/tell?name=signup", content=b"x" * 1001, headers=bearer).status_code == 413

    def chunks():  # no length is announced
        for _ in range(100):
            yield b"y" * 100

    answer = client.post("/api/study/tell?name=signup", content=chunks(), headers=bearer)
    assert answer.status_code == 413 and answer.json()["error"] == "TooLarge"
    assert client.post("/api/study/tell?name=signup", json=[], headers=bearer).status_code == 429
    assert [client.get("/enter?token=guess").status_code for _ in range(3)] == [401, 401, 429]
    assert client.get("/").status_code == 429
    other = TestClient(app, base_url="http://127.0.0.1", client=("127.0.0.2", 5000))
    assert other.get("/static/page.css").status_code == 200  # others are not punished for it
    app.state.desk.close()


def test_tokens_are_compared_in_full():
    gate = Gate("a secret")
    assert (
        gate.is_token("a secret")
        and not gate.is_token("a secre")
        and not gate.is_token("a secretx")
        and not gate.is_token("ü")
    )
    assert Gate().token != Gate().token and len(Gate().token) >= 32


def test_the_number_of_clients_remembered_is_bounded():
    limits = Limits(reads=(1.0, 1.0))
    assert all(limits.allows("reads", str(i)) for i in range(5000))
    assert len(limits._buckets) <= 4096


# -- workers -------------------------------------------------------------------------------------------------


class Slow:
    def sleep(self, seconds):
        for i in range(10):
            time.sleep(seconds / 10)
            overheard("sleeping", (i + 1) / 10, (i + 1) * seconds / 10)
        return os.getpid()

    def fail(self):
        raise ls.InvalidArgumentError("x", 1, "is wrong", "mend it")


def test_a_worker_reports_progress_and_passes_errors_on():
    worker = Worker(Slow)
    call = worker.submit("sleep", 0.5)
    seen = set()
    while not call.future.done():
        seen.add(call.share)
        time.sleep(0.01)
    assert call.future.result() == worker.process_id and len(seen) >= 3
    with pytest.raises(Refused, match="mend it"):
        worker.submit("fail").future.result(10)
    worker.close()
    with pytest.raises(WorkerDied):
        worker.submit("sleep", 0.1)


def test_a_worker_that_is_killed_is_replaced():
    worker = Worker(Slow)
    call = worker.submit("sleep", 30.0)
    while worker.process_id is None or (call.share is None and time.monotonic() - call.made < 4):
        time.sleep(0.05)
    os.kill(worker.process_id, signal.SIGKILL)
    with pytest.raises(WorkerDied):
        call.future.result(10)
    assert worker.submit("sleep", 0.01).future.result(30) == worker.process_id
    worker.close()


def test_long_computations_do_not_keep_the_page_waiting(reader, app):
    """While the worker that answers is busy for a second, pages come at once, from what is at hand."""
    settled(reader, "/study?name=signup")
    desk = app.state.desk
    stopped = desk._clerk.process_id
    os.kill(stopped, signal.SIGSTOP)  # the longest of computations
    try:
        began = time.monotonic()
        page = reader.get("/study?name=signup")
        assert page.status_code == 200 and time.monotonic() - began < 2.0
        assert "Intervals and verdicts" in page.text
    finally:
        os.kill(stopped, signal.SIGCONT)


def test_rows_told_elsewhere_are_seen(reader, store):
    settled(reader, "/study?name=signup")
    elsewhere = ls.Study("signup", store=store)
    before = elsewhere.n
    elsewhere.tell([{"variant": "A", "converted": 0}])
    assert reader.get("/api/study?name=signup").json()["rows_recorded"] == before + 1
    assert f"{before + 1}" in settled(reader, "/study?name=signup").text


def test_what_was_known_is_shown_at_once_after_a_restart(store):
    first = create_app(store, token=TOKEN)
    client = TestClient(first, base_url="http://127.0.0.1", client=("127.0.0.1", 5000))
    settled(client, "/study?name=signup")
    first.state.desk.close()
    assert Path(f"{store}-page").exists()
    second = create_app(store, token=TOKEN)
    client = TestClient(second, base_url="http://127.0.0.1", client=("127.0.0.1", 5000))
    assert (
        "Intervals and verdicts" in client.get("/study?name=signup").text
    )  # although its worker has only begun to start
    Path(f"{store}-page").write_text('{"format": 1, "answers": {"signup": 3}}')
    second.state.desk.close()
    Path(f"{store}-page").write_text('{"format": 1, "answers": {"signup": 3}}')
    third = create_app(store, token=TOKEN)  # a damaged cache is no cache
    assert third.state.desk._known == {}
    third.state.desk.close()


def test_events_tell_of_new_rows(app, store):
    import anyio

    from likeset.web.events import Streams

    async def two():
        stream = Streams(app.state.desk, 5)._stream("signup")
        first = await anext(stream)
        await anyio.to_thread.run_sync(lambda: ls.Study("signup", store=store).tell([{"variant": "B", "converted": 1}]))
        with anyio.fail_after(20):
            while True:
                then = await anext(stream)
                if json.loads(then.split("data: ")[1])["rows"] != json.loads(first.split("data: ")[1])["rows"]:
                    break
        await stream.aclose()
        return first, then

    first, then = (json.loads(e.split("data: ")[1]) for e in anyio.run(two))
    assert then["rows"] == first["rows"] + 1


# -- forms ---------------------------------------------------------------------------------------------------


def test_forms_ask_for_every_column_of_a_study():
    study = ls.Study(
        "life", factors={"ward": ["a", "b"], "age": (20, 90)}, outcome={"days": ls.Weibull(1.5)}, event="seen",
        key="id", units="d", store=None,
    )  # fmt: skip
    found = fields_of(study.definition.to_json())
    assert [(f.name, f.kind) for f in found] == [
        ("ward", "choice"), ("age", "number"), ("days", "number"), ("seen", "yes or no"), ("id", "text"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "form",
    [
        {"factors": "variant A, B", "family": "poisson"},
        {"factors": "v: a, b\nv: c", "family": "poisson"},
        {"factors": "v: 0 to much", "family": "poisson"},
        {"factors": "v: a, b", "family": "cauchy"},
        {"factors": "v: a, b", "family": "gaussian", "setting": "wide"},
    ],
)
def test_forms_that_make_no_sense_are_refused(form):
    with pytest.raises(ls.InvalidArgumentError):
        definition_from(form)


# -- demo, command line, kills -------------------------------------------------------------------------------


def test_the_examples_are_what_the_simulation_makes():
    for name, rows in _simulated().items():
        assert [{k: str(v) for k, v in row.items()} for row in rows] == [
            {k: str(int(v)) if isinstance(v, float) and isinstance(rows[0][k], int) else str(v) for k, v in row.items()}
            for row in _rows(name)
        ], name


def test_the_demo_holds_three_studies_and_can_be_built_twice(tmp_path):
    fractions = []
    names = build_demo(tmp_path / "demo.db", fractions.append)
    assert names == ["Sign-up page", "Length of stay", "Yield of the coupling"] == build_demo(tmp_path / "demo.db")
    assert fractions[-1] == 1.0 and sorted(fractions) == fractions
    store = ls.Store(tmp_path / "demo.db", read_only=True)
    assert store.study("Sign-up page").verdict() == {"B": "not yet", "C": "better"}
    assert not any(store.study(name).alarm()["rings"] for name in names)
    assert len(store.study("Yield of the coupling").pending()) == 2


@pytest.mark.slow
def test_every_study_of_the_demo_is_drawn(tmp_path):
    drawn = {name: Tasks(str(tmp_path / "demo.db"), True) for name in build_demo(tmp_path / "demo.db")}
    kinds = {name: set(tasks.pictures(name)["svg"]) for name, tasks in drawn.items()}
    assert all({"now", "over-time"} <= found for found in kinds.values()) and "band" in kinds["Yield of the coupling"]


def serving(store, *options):
    """A server in a process of its own; (process, address)."""
    environment = {**os.environ, "LIKESET_TOKEN": TOKEN, "PYTHONPATH": str(Path(ls.__file__).parent.parent)}
    command = [sys.executable, "-m", "likeset", "serve", str(store), "--port", "0", *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment)
    for line in process.stdout:
        if line.startswith("Page:"):
            return process, re.search(r"http://[^/]+", line).group()
    raise AssertionError("the server did not start")


def ended(process, seconds=20):
    """The exit code; pipes are closed."""
    try:
        return process.wait(seconds)
    finally:
        process.stdout.close()


def test_killing_the_server_loses_nothing_acknowledged(tmp_path):
    import httpx

    path = tmp_path / "kill.db"
    ls.Study("k", factors={"v": ["a", "b"]}, outcome={"y": ls.Poisson()}, key="id", store=path).store.close()
    acknowledged, attempted = set(), set()
    for attempt in range(1):
        process, address = serving(path)

        def write(worker, attempt=attempt, address=address):
            with httpx.Client(base_url=address, headers={"Authorization": f"Bearer {TOKEN}"}, timeout=30) as client:
                for i in range(10_000):
                    key = f"{attempt}-{worker}-{i}"
                    attempted.add(key)
                    try:
                        answer = client.post("/api/study/tell?name=k", json=[{"id": key, "v": "a", "y": i % 3}])
                    except httpx.HTTPError:
                        return
                    if answer.status_code != 200:
                        return
                    acknowledged.add(key)

        threads = [threading.Thread(target=write, args=(w,)) for w in range(3)]
        for thread in threads:
            thread.start()
        goal = len(acknowledged) + 12
        end = time.monotonic() + 60
        while len(acknowledged) < goal and time.monotonic() < end:
            time.sleep(0.02)
        os.kill(process.pid, signal.SIGKILL)
        for thread in threads:
            thread.join()
        ended(process)
    time.sleep(1.0)  # the worker finishes what it was busy with, and ends
    study = ls.Study("k", store=path)
    told = study.tell([{"id": key, "v": "a", "y": int(key.split("-")[2]) % 3} for key in sorted(acknowledged)])
    assert len(acknowledged) >= 12 and told.recorded == 0 and told.repeated == len(acknowledged)
    assert len(acknowledged) <= study.n <= len(attempted)


def test_the_server_binds_to_this_computer_only_and_stops_on_ctrl_c(tmp_path):
    process, address = serving(tmp_path / "new.db")
    assert address.startswith("http://127.0.0.1:")
    port = int(address.rsplit(":", 1)[1])
    with socket.socket() as other:
        other.settimeout(2)
        assert other.connect_ex(("127.0.0.1", port)) == 0
    process.send_signal(signal.SIGINT)
    assert ended(process) == 0


def test_a_store_that_cannot_be_served_is_one_line(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "likeset", "serve", str(tmp_path / "none.db"), "--read-only"], capture_output=True,
        text=True, env={**os.environ, "PYTHONPATH": str(Path(ls.__file__).parent.parent)},
    )  # fmt: skip
    assert done.returncode == 2 and done.stderr.count("Error") == 1 and "does not exist" in done.stderr
