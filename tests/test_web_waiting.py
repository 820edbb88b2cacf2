"""Pages that wait for what takes long: how far it is, where they lead, who may look, what is kept and for how long."""

from __future__ import annotations

import csv
import io
import os
import re
import signal
import threading
import time
import warnings
from pathlib import Path

import pytest

import likeset as ls
from likeset import progress
from likeset.web import jobs
from likeset.web.app import create_app
from likeset.web.security import POLICY, Limits
from likeset.web.tasks import Tasks
from page_held import HeldTasks, hold, release

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # which HTTP client it would rather have
    from starlette.testclient import TestClient

TOKEN = "a-token-of-the-tests"
BEARER = {"Authorization": f"Bearer {TOKEN}"}
BROWSER = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


def made(path):
    ls.Study(
        "lab",
        factors={"heat": (20, 90)},
        outcome={"yield": ls.Gaussian(3.0)},
        model="smooth",
        range=(0, 100),
        store=path,
    )
    rows = [{"v": "ab"[i % 2], "y": i % 3} for i in range(7)]
    ls.Study("counts", factors={"v": ["a", "b"]}, outcome={"y": ls.Poisson()}, store=path).tell(rows)


def served(path, **options):
    limits = Limits(reads=(1e5, 1e5), writes=(1e5, 1e5), guesses=(1e5, 1e5))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("likeset.web.desk.Tasks", HeldTasks)
        return create_app(path, token=TOKEN, limits=limits, **options)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    path = tmp_path_factory.mktemp("waiting") / "likeset.db"
    made(path)
    return path


@pytest.fixture(scope="module")
def app(store):
    app = served(store)
    yield app
    app.state.desk.close()


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(jobs, "PATIENCE", 0.05)


def client_of(app, enter=True, **options):
    options = {"base_url": "http://127.0.0.1", "client": ("127.0.0.1", 5000), "follow_redirects": False} | options
    client = TestClient(app, raise_server_exceptions=False, headers=BROWSER, **options)
    if enter:
        assert client.get(f"/enter?token={TOKEN}").status_code == 303
    return client


@pytest.fixture
def writer(app):
    return client_of(app)


def csrf(client):
    return re.search(r'name="csrf" value="([^"]+)"', client.get("/new").text).group(1)


def sent(client, address, **form):
    """The address of the page that waits for what a form asked for."""
    answer = client.post(address, data={"csrf": csrf(client), **form})
    assert answer.status_code == 303 and answer.headers["location"].startswith("/waiting?job="), answer.text
    return answer.headers["location"]


def eventually(look, seconds=60.0):
    end = time.monotonic() + seconds
    while not (found := look()):
        assert time.monotonic() < end, "nothing came of it"
        time.sleep(0.02)
    return found


def answer_at(client, waiting):
    """What a page that waits leads to."""

    def arrived():
        page = client.get(waiting)
        return page if page.status_code != 200 or "data-waiting" not in page.text else None

    return eventually(arrived)


def state_of(client, waiting, text):
    """How far it is, once that says so."""
    address = waiting.replace("/waiting", "/api/waiting")
    return eventually(lambda: next((s for s in [client.get(address).json()] if text in s["text"]), None))


def test_asking_shows_how_far_it_is_and_how_long_it_will_take_and_asks_once(writer, store):
    hold(store, "ask")
    waiting = sent(writer, "/study/ask?name=lab", count="2")
    state = state_of(writer, waiting, "choosing 40 %")
    assert not state["finished"] and state["share"] == 0.4 and re.search(r"choosing 40 %, \d s left", state["text"])
    for _ in range(3):  # a page that is loaded again asks for nothing
        page = writer.get(waiting)
        assert page.status_code == 200 and "Choosing what to run next" in page.text
        assert 'value="0.400"' in page.text and re.search(r"choosing 40 %, \d s left", page.text)
        assert '<noscript><meta http-equiv="refresh"' in page.text and "data-refresh" not in page.text
    assert ls.Study.open("lab", store).pending() == []
    release(store, "ask")
    for _ in range(2):
        answer = answer_at(writer, waiting)
        assert (answer.status_code, answer.headers["location"]) == (303, "/study?name=lab&asked=2#pending")
    assert [run.number for run in ls.Study.open("lab", store).runs()] == [1, 2]
    assert writer.get(waiting.replace("/waiting", "/api/waiting")).json()["finished"]


def test_results_of_runs_and_new_studies_are_waited_for(writer, store):
    hold(store, "run")
    (run,) = writer.post("/api/study/ask?name=lab", headers=BEARER).json()
    number = str(run["run"])
    waiting = sent(writer, "/study/run?name=lab", **{"run": number, "what": "told", "field-0": "41.5"})
    assert f"Recording run {number}" in writer.get(waiting).text
    release(store, "run")
    assert answer_at(writer, waiting).headers["location"] == "/study?name=lab&told=1#pending"
    hold(store, "create")
    waiting = sent(writer, "/new", name="later", factors="v: a, b", family="poisson")
    assert "Beginning the study" in writer.get(waiting).text
    release(store, "create")
    assert answer_at(writer, waiting).headers["location"] == "/study?name=later"


def test_what_is_quick_leads_on_at_once(writer, monkeypatch):
    monkeypatch.setattr(jobs, "PATIENCE", 120.0)
    form = {"csrf": csrf(writer), "field-0": "a", "field-1": "3"}
    assert writer.post("/study/tell?name=counts", data=form).headers["location"] == "/study?name=counts&told=1#tell"
    assert writer.get("/study/data.csv?name=counts").headers["content-type"].startswith("text/csv")


def test_a_refusal_arrives_with_what_was_typed(writer, store):
    before = ls.Study.open("counts", store).n
    hold(store, "tell")
    text = "v,y\na,1\nb,minus one\n"
    waiting = sent(writer, "/study/tell?name=counts", csv=text)
    release(store, "tell")
    for _ in range(2):
        answer = answer_at(writer, waiting)
        assert answer.status_code == 422 and "line 3" in answer.text and 'role="alert"' in answer.text
        assert "b,minus one" in answer.text  # to be mended
    assert ls.Study.open("counts", store).n == before


def test_texts_that_are_too_long_to_show_again_are_not_kept(writer, store, monkeypatch):
    monkeypatch.setattr("likeset.web.forms._LONGEST_REFILLED", 10)
    hold(store, "tell")
    waiting = sent(writer, "/study/tell?name=counts", csv="v,y\na,1\nb,minus one\n")
    release(store, "tell")
    answer = answer_at(writer, waiting)
    assert answer.status_code == 422 and "line 3" in answer.text and "b,minus one" not in answer.text


@pytest.mark.parametrize(("ending", "method"), [("data.csv", "data"), ("report.html", "report")])
def test_a_file_is_made_once_fetched_once_and_gone(writer, store, app, ending, method, monkeypatch):
    hold(store, method)
    address = f"/study/{ending}?name=counts"
    waiting = writer.get(address).headers["location"]
    assert writer.get(address).headers["location"] == waiting  # who asks again waits for the same one
    page = writer.get(waiting)
    assert page.status_code == 200 and "counts" in page.text and "is saved as soon as it is ready" in page.text
    file = waiting.replace("/waiting", "/waiting/file")
    assert writer.get(file).headers["location"] == waiting  # too early
    release(store, method)
    ready = answer_at(writer, waiting)
    assert ready.status_code == 200 and "The file is ready" in ready.text
    assert f'<meta http-equiv="refresh" content="0; url={file}">' in ready.text
    assert writer.get(address).headers["location"] == waiting
    folder = Path(app.state.desk._folder.name)
    assert len(list(folder.iterdir())) == 1
    assert writer.get(file, headers={"Range": "bytes=0-3"}).status_code == 206 and writer.head(file).status_code == 200
    fetched = writer.get(file)
    assert fetched.status_code == 200 and "attachment" in fetched.headers["content-disposition"]
    if method == "data":
        rows = list(csv.DictReader(io.StringIO(fetched.text)))
        assert len(rows) == ls.Study.open("counts", store).n and rows[1] == {"v": "b", "y": "1"}
    else:
        assert "sandbox" in fetched.headers["content-security-policy"] and "<svg" in fetched.text
    assert list(folder.iterdir()) == []
    assert writer.get(file).headers["location"] == waiting
    gone = writer.get(waiting)
    assert "The file was fetched" in gone.text and f'href="{address}"' in gone.text and "http-equiv" not in gone.text
    monkeypatch.setattr(jobs, "PATIENCE", 120.0)
    assert writer.get(address).status_code == 200  # made anew


def test_programs_get_the_answer_itself_however_long_it_takes(app, store):
    hold(store, "data")
    program = client_of(app, enter=False)
    answers = []
    asking = threading.Thread(
        target=lambda: answers.append(program.get("/study/data.csv?name=counts", headers={"Accept": "*/*"}))
    )
    asking.start()
    asking.join(0.5)
    assert asking.is_alive()
    release(store, "data")
    asking.join(60)
    assert answers[0].status_code == 200 and answers[0].text.startswith("v,y")


def test_what_comes_before_is_named(writer, store):
    hold(store, "ask")
    first = sent(writer, "/study/ask?name=lab", count="1")
    second = sent(writer, "/study/tell?name=counts", **{"field-0": "a", "field-1": "3"})
    state_of(writer, first, "choosing 40 %")
    assert "waiting for its turn; before it: choosing 40 %" in state_of(writer, second, "before it: choosing")["text"]
    release(store, "ask")
    assert answer_at(writer, first).status_code == answer_at(writer, second).status_code == 303


# -- who may look --------------------------------------------------------------------------------------------


def test_other_sessions_and_strangers_see_nothing(writer, app, store):
    hold(store, "ask")
    waiting = sent(writer, "/study/ask?name=lab", count="1")
    others = (client_of(app), client_of(app, enter=False))
    for address in (waiting, waiting.replace("/waiting", "/waiting/file"), "/waiting?job=unknown", "/waiting"):
        for other in others:
            answer = other.get(address)
            assert answer.status_code == 404 and "<h1>" in answer.text and "Choosing" not in answer.text
    answer = others[0].get(waiting.replace("/waiting", "/api/waiting"))
    assert answer.status_code == 404 and set(answer.json()) == {"error", "text"}
    away = client_of(app, enter=False, client=("10.0.0.9", 1))
    assert away.get(waiting).status_code == 401
    release(store, "ask")
    assert answer_at(writer, waiting).status_code == 303


def test_files_of_readers_without_a_session_need_the_number(app, store):
    hold(store, "data")
    reader = client_of(app, enter=False)
    waiting = reader.get("/study/data.csv?name=counts").headers["location"]
    assert client_of(app).get(waiting).status_code == 404  # of a session
    release(store, "data")
    assert "The file is ready" in answer_at(reader, waiting).text
    assert len(re.search("job=(.*)", waiting).group(1)) >= 24
    assert reader.get(waiting.replace("/waiting", "/waiting/file")).text.startswith("v,y")


def test_forged_forms_wait_for_nothing(writer, app, store):
    before = len(ls.Study.open("lab", store).runs())
    assert writer.post("/study/ask?name=lab", data={"count": "1"}).status_code == 403
    assert client_of(app, enter=False).post("/study/ask?name=lab", data={"count": "1"}).status_code == 401
    good = {"csrf": csrf(writer), "count": "1"}
    assert writer.post("/study/ask?name=lab", data=good, headers={"Origin": "http://evil.example"}).status_code == 403
    assert writer.post("/study/ask?name=nothing", data=good).status_code == 404
    assert len(ls.Study.open("lab", store).runs()) == before


def test_pages_that_wait_keep_the_policy(writer, store):
    hold(store, "ask")
    waiting = sent(writer, "/study/ask?name=lab", count="1")
    page = writer.get(waiting)
    assert page.headers["content-security-policy"] == POLICY and page.headers["cache-control"] == "no-store"
    assert not re.search(r"<script(?! src=\"/static/page.js\" defer></script>)", page.text)
    assert " style=" not in page.text and not re.search(r"\son\w+=", page.text)
    release(store, "ask")
    answer_at(writer, waiting)


def test_readers_of_a_read_only_server_wait_for_files_and_nobody_writes(store):
    app = served(store, read_only=True)
    reader = client_of(app)
    hold(store, "report")
    waiting = reader.get("/study/report.html?name=counts").headers["location"]
    assert "Making the report" in reader.get(waiting).text
    assert reader.post("/study/ask?name=lab", data={"count": "1"}).status_code == 403
    release(store, "report")
    assert "The file is ready" in answer_at(reader, waiting).text
    app.state.desk.close()


# -- what is kept --------------------------------------------------------------------------------------------


def test_a_worker_that_dies_is_said_in_words(writer, app, store):
    hold(store, "tell")
    waiting = sent(writer, "/study/tell?name=counts", **{"field-0": "a", "field-1": "3"})
    state_of(writer, waiting, "choosing")
    os.kill(app.state.desk._clerk.process_id, signal.SIGKILL)
    answer = answer_at(writer, waiting)
    assert answer.status_code == 503 and "It is not known whether that worked" in answer.text
    assert "look before you send it again" in answer.text and 'href="/study?name=counts"' in answer.text
    release(store, "tell")
    assert writer.post("/api/study/tell?name=counts", json=[{"v": "a", "y": 1}], headers=BEARER).status_code == 200


def test_a_file_that_could_not_be_made_is_begun_again(writer, app, store):
    hold(store, "data")
    waiting = writer.get("/study/data.csv?name=counts").headers["location"]
    state_of(writer, waiting, "choosing")
    os.kill(app.state.desk._printer.process_id, signal.SIGKILL)
    failed = answer_at(writer, waiting)
    assert failed.status_code == 503 and "Try again" in failed.text
    again = writer.get("/study/data.csv?name=counts").headers["location"]
    assert again != waiting
    release(store, "data")
    assert "The file is ready" in answer_at(writer, again).text
    assert writer.get(again.replace("/waiting", "/waiting/file")).text.startswith("v,y")


def test_no_more_begin_than_can_be_waited_for(writer, store, monkeypatch):
    monkeypatch.setattr(jobs, "MOST_UNFINISHED", 1)
    before = len(ls.Study.open("lab", store).runs())
    hold(store, "ask")
    waiting = sent(writer, "/study/ask?name=lab", count="1")
    refused = writer.post("/study/ask?name=lab", data={"csrf": csrf(writer), "count": "1"})
    assert refused.status_code == 503 and "Nothing was done" in refused.text
    assert writer.get("/study/data.csv?name=counts").status_code == 503
    release(store, "ask")
    assert answer_at(writer, waiting).status_code == 303
    assert len(ls.Study.open("lab", store).runs()) == before + 1


def held_file(client, store, name):
    hold(store, "data")
    waiting = client.get(f"/study/data.csv?name={name}").headers["location"]
    release(store, "data")
    assert "The file is ready" in answer_at(client, waiting).text
    return waiting


def test_files_that_nobody_fetches_are_few_and_go_by_themselves(tmp_path, monkeypatch):
    store = tmp_path / "likeset.db"
    made(store)
    app = served(store)
    writer, folder = client_of(app), Path(app.state.desk._folder.name)
    monkeypatch.setattr(jobs, "MOST_KEPT", 1)
    first = held_file(writer, store, "counts")
    second = held_file(writer, store, "lab")
    assert writer.get(first).status_code == 404 and writer.get(second).status_code == 200
    assert len(list(folder.iterdir())) == 1
    monkeypatch.setattr(jobs, "SECONDS_KEPT", 0.3)
    writer.post("/study/tell?name=counts", data={"csrf": csrf(writer), "field-0": "a", "field-1": "1"})
    third = held_file(writer, store, "counts")
    eventually(lambda: not list(folder.iterdir()))
    assert writer.get(third).status_code == 404
    monkeypatch.setattr(jobs, "SECONDS_KEPT", 600.0)
    held_file(writer, store, "counts")
    app.state.desk.close()
    assert not folder.exists()


# -- what is told --------------------------------------------------------------------------------------------


def test_what_takes_long_in_a_worker_says_how_far_it_is(store, tmp_path, monkeypatch):
    monkeypatch.setattr(progress, "EVERY", -1.0)
    monkeypatch.setattr("likeset.web.tasks._ROWS_AT_ONCE", 2)
    tasks, heard = Tasks(str(store), False), []
    listener = lambda what, share, elapsed: heard.append((what, share))  # noqa: E731

    def told(method, *given):
        heard.clear()
        with progress.heard_by(listener):
            getattr(tasks, method)(*given)
        shares: dict[str, list[float]] = {}
        for what, share in heard:
            if share is not None:
                shares.setdefault(what, []).append(share)
        return {what for what, found in shares.items() if len(found) > 1}

    assert "writing rows" in told("data", "counts", str(tmp_path))
    assert "looking at earlier times" in told("history", "counts")
    assert "looking at earlier times" in told("report", "counts", str(tmp_path))
    assert "choosing" in told("ask", "lab", 3)
    monkeypatch.setattr("likeset.study.engine.ROWS_AT_ONCE", 3)
    assert "scoring rows" in told("tell", "counts", [{"v": "ab"[i % 2], "y": 1} for i in range(9)])


def test_compiling_is_told_to_who_waits(monkeypatch):
    from likeset import compiling

    monkeypatch.setattr(compiling, "EVERY", 0.01)
    monkeypatch.setattr(compiling, "MINUTE", 0.4)
    monkeypatch.setattr(compiling, "say", lambda text: None)
    announcer, heard = compiling._Announcer(), []
    announcer._depth, announcer._since = 1, time.monotonic()
    with progress.heard_by(lambda what, share, elapsed: heard.append(what)):
        announcer._announce()
        eventually(lambda: heard)
        announcer._depth = 0
        eventually(lambda: not announcer._ticking)
    assert re.fullmatch(r"compiling kernels, once, at most \d s left", heard[0])
