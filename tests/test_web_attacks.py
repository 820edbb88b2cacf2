"""The page under attack, and under clumsy programs: what cannot be read is refused, nobody keeps others waiting."""

from __future__ import annotations

import contextlib
import os
import re
import socket
import subprocess
import sys
import time
import warnings
from pathlib import Path

import pytest

import likeset as ls
from likeset.web import connections
from likeset.web.app import create_app
from likeset.web.events import Streams
from likeset.web.security import POLICY, Gate, Limits
from likeset.web.worker import Worker

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # which HTTP client it would rather have
    from starlette.testclient import TestClient

TOKEN = "a-token-of-the-tests"
BEARER = {"Authorization": f"Bearer {TOKEN}"}
HEAD = b" HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer " + TOKEN.encode() + b"\r\n"
ENOUGH = {"reads": (1e5, 1e5), "writes": (1e5, 1e5)}


def client_of(app, **options):
    options = {"base_url": "http://127.0.0.1", "client": ("127.0.0.1", 5000), "follow_redirects": False} | options
    return TestClient(app, raise_server_exceptions=False, **options)


@pytest.fixture(scope="module")
def app(tmp_path_factory):
    path = tmp_path_factory.mktemp("attacked") / "likeset.db"
    study = ls.Study(
        "signup", factors={"variant": ["A", "B"]}, outcome={"converted": ls.Bernoulli()}, key="id", store=path
    )
    study.tell([{"variant": "AB"[i % 2], "converted": i % 3 % 2, "id": i} for i in range(6)])
    made = create_app(path, token=TOKEN, limits=Limits(guesses=(1e5, 1e5), **ENOUGH))
    yield made
    made.state.desk.close()


@pytest.fixture
def reader(app):
    return client_of(app)


@pytest.fixture
def writer(app):
    client = client_of(app)
    assert client.get(f"/enter?token={TOKEN}").status_code == 303
    return client


def form_value(writer):
    return re.search(r'name="csrf" value="([^"]+)"', writer.get("/new").text).group(1)


# -- what cannot be read -----------------------------------------------------------------------------------------------


def test_texts_that_are_no_ascii_are_wrong_and_not_a_failure(reader, writer):
    cookie = "likeset-session=me.\xfc".encode("latin-1")
    assert reader.get("/", headers={"Cookie": cookie}).status_code == 200  # reading is free; the cookie is none
    assert reader.post("/new", headers={"Cookie": cookie}).status_code == 401
    assert writer.post("/new", data={"csrf": "ü" * 64}).status_code == 403
    assert reader.get("/api/studies", headers={"Authorization": b"Bearer \xfc"}).status_code == 200
    assert reader.get("/", headers={"Host": "127.0.0.1:\xb2".encode("latin-1")}).status_code == 200
    value = form_value(writer)
    assert writer.post("/study/ask?name=signup", data={"csrf": value, "count": "²"}).status_code == 422
    assert writer.post("/study/run?name=signup", data={"csrf": value, "run": "²"}).status_code == 422
    assert reader.post("/api/study/ask?name=signup&count=%C2%B2", headers=BEARER).status_code == 422


@pytest.mark.parametrize("depth", [100, 500, 800, 2000, 100_000])
def test_nested_json_is_refused_and_no_call_is_left_behind(reader, app, depth):
    nested = b"[" * depth + b"]" * depth
    for path, body in (
        ("/api/study/tell?name=signup", nested),
        ("/api/study/tell?name=signup", b'[{"variant": ' + nested + b', "converted": 0, "id": 99}]'),
        ("/api/studies", b'{"name": "n", "family": "bernoulli", "factors": {"v": ' + nested + b"}}"),
    ):
        answer = reader.post(path, content=body, headers=BEARER)
        assert answer.status_code == 422 and answer.json()["error"] in ("InvalidArgumentError", "RowError")
    assert not app.state.desk._clerk._calls


@pytest.mark.parametrize("outcome", [["y"], {"a": 1}, 5, None])
def test_an_outcome_that_is_no_name_is_refused(reader, outcome):
    given = {"name": "n", "family": "bernoulli", "factors": {"v": ["a", "b"]}, "outcome": outcome}
    assert reader.post("/api/studies", json=given, headers=BEARER).status_code == 422


def test_halves_of_characters_poison_nothing(reader, writer):
    half = "\\ud800"
    given = (
        f'{{"name": "halves", "family": "poisson", "outcome": "y{half}", "factors": {{"v{half}": ["{half}", "b"]}}}}'
    )
    assert reader.post("/api/studies", content=given, headers=BEARER).status_code == 201
    row = f'[{{"v{half}": "{half}", "y{half}": 2}}]'
    assert reader.post("/api/study/tell?name=halves", content=row, headers=BEARER).json()["recorded"] == 1
    for path in ("/", "/study?name=halves", "/api/studies", "/api/study?name=halves", "/study/data.csv?name=halves"):
        assert writer.get(path).status_code == 200, path
    assert reader.get("/api/study?name=halves").json()["definition"]["outcome"] == "y\ud800"


def test_messages_about_a_text_do_not_name_files_of_the_server(reader):
    answer = reader.post("/api/study/tell?name=signup", content=b"", headers=BEARER | {"Content-Type": "text/csv"})
    assert answer.status_code == 422 and "tmp" not in answer.text and "the file" in answer.text


def test_programs_hear_errors_as_json_and_people_as_pages(reader, writer, app):
    for answer, status in (
        (reader.post("/api/study/tell?name=signup", json=[]), 401),
        (reader.get("/api/nowhere"), 404),
        (reader.put("/api/studies", headers=BEARER), 405),
        (reader.get("/api/studies", headers={"Host": "evil.example"}), 421),
    ):
        assert answer.status_code == status and set(answer.json()) == {"error", "text"}
    for answer in (
        reader.post("/new"),
        writer.put("/new"),
        writer.post("/new", data={f"a{i}": "" for i in range(300)}),
    ):
        assert answer.status_code in (400, 401, 403, 405) and "<h1>" in answer.text
    away = client_of(app, client=("10.0.0.9", 1)).get("/")
    assert away.status_code == 401 and "likeset.db" not in away.text  # strangers do not hear what there is


def test_a_failure_has_the_headers_too(app, monkeypatch):
    monkeypatch.setattr(app.state.desk, "heads", lambda: 1 / 0)
    for path in ("/", "/api/studies"):
        answer = client_of(app).get(path)
        assert answer.status_code == 500 and answer.headers["content-security-policy"] == POLICY
        assert "ZeroDivisionError" not in answer.text


def test_the_address_of_a_form_leads_back_to_its_study(reader):
    answer = reader.get("/study/tell?name=sign%20up%0d%0aSet-Cookie:%20x")
    assert answer.status_code == 303 and answer.headers["location"] == "/study?name=sign%20up%0D%0ASet-Cookie%3A%20x"


# -- who may read ------------------------------------------------------------------------------------------------------


def test_behind_a_proxy_everything_needs_the_token(app):
    """The proxy runs on this computer, and whoever asks it does not."""
    for header in ("X-Forwarded-For", "X-Forwarded-Proto", "Forwarded", "Via", "X-Real-IP"):
        assert client_of(app).get("/", headers={header: "203.0.113.7"}).status_code == 401
    named = create_app(app.state.desk.path, token=TOKEN, hosts=("page.example.org",))
    outside = client_of(named, base_url="https://page.example.org")
    assert outside.get("/").status_code == 401  # a proxy that says nothing of whom it speaks for
    entered = outside.get(f"/enter?token={TOKEN}")
    assert entered.status_code == 303 and outside.get("/new").status_code == 200
    value = form_value(outside)
    told = {"csrf": value, "name": "n", "factors": "v: a, b", "family": "poisson"}
    away = outside.post("/new", data=told, headers={"Origin": "https://other.example.org"})
    assert away.status_code == 403
    assert outside.post("/new", data=told, headers={"Origin": "https://page.example.org"}).status_code in (303, 422)
    named.state.desk.close()


def test_pages_of_other_ports_of_this_computer_are_other_sites(writer):
    value = form_value(writer)
    answer = writer.post("/new", data={"csrf": value}, headers={"Origin": "http://127.0.0.1:9999"})
    assert answer.status_code == 403


def test_two_servers_of_one_computer_do_not_take_each_others_cookies(app):
    entered = [client_of(app, base_url=f"http://127.0.0.1:{port}").get(f"/enter?token={TOKEN}") for port in (81, 82)]
    names = {answer.headers["set-cookie"].partition("=")[0] for answer in entered}
    assert names == {"likeset-session-81", "likeset-session-82"}


@pytest.mark.parametrize("host", ["10.0.0.7:8765", "[fe80::1]:8765", "192.168.1.2", "localhost:1"])
def test_addresses_cannot_be_pointed_elsewhere_and_are_taken(reader, host):
    assert reader.get("/", headers={"Host": host}).status_code == 200


def test_tokens_cannot_be_guessed_quickly(app):
    guarded = create_app(app.state.desk.path, token=TOKEN, limits=Limits(guesses=(0.001, 3), **ENOUGH))
    guesser, other = client_of(guarded), client_of(guarded, client=("127.0.0.2", 1))
    wrong = {"Authorization": "Bearer wrong-wrong"}
    assert [guesser.post("/api/studies", json={}, headers=wrong).status_code for _ in range(4)] == [401] * 3 + [429]
    assert guesser.get(f"/enter?token={TOKEN}").status_code == 429  # not even the right one, from there
    assert other.get("/api/studies", headers=BEARER).status_code == 200
    guarded.state.desk.close()
    with pytest.raises(ls.InvalidArgumentError, match="has 5 characters"):
        Gate("12345")


# -- nobody keeps others waiting ---------------------------------------------------------------------------------------


class Deaf:
    def sleep(self, seconds, text):
        time.sleep(seconds)
        return len(text)


def test_much_to_tell_a_busy_worker_keeps_nobody_waiting():
    """A pipe that is full makes whoever writes to it wait, and the server must not be the one who writes."""
    worker = Worker(Deaf)
    first = worker.submit("sleep", 1.5, "")
    began = time.monotonic()
    second = worker.submit("sleep", 0.0, "x" * 5_000_000)
    assert time.monotonic() - began < 0.7
    assert first.future.result(60) == 0 and second.future.result(60) == 5_000_000
    worker.close()


def test_files_do_not_wait_for_pictures(app):
    desk = app.state.desk
    assert desk._printer is not desk._draughtsman and desk._printer is not desk._clerk


def test_streams_are_counted_when_they_are_promised(app):
    streams = Streams(app.state.desk, most=3)
    assert [streams.response(None).status_code for _ in range(5)] == [200, 200, 200, 503, 503]


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """A server of its own, with short patience."""
    path = tmp_path_factory.mktemp("served") / "likeset.db"
    ls.Study("empty", factors={"v": ["a", "b"]}, outcome={"y": ls.Poisson()}, store=path)
    environment = {**os.environ, "PYTHONPATH": str(Path(ls.__file__).parent.parent)}
    command = [sys.executable, str(Path(__file__).parent / "page_server.py"), str(path), TOKEN]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment)
    port = int(process.stdout.readline())
    end = time.monotonic() + 60
    while time.monotonic() < end and b" 200 " not in answered(("127.0.0.1", port), b"GET /" + HEAD + b"\r\n"):
        time.sleep(0.1)  # it listens, and does not answer yet
    yield "127.0.0.1", port
    process.terminate()
    process.wait(20)
    process.stdout.close()


def answered(address, request, seconds=10.0):
    """What comes back before the connection is closed; b"" if it is closed without a word."""
    with socket.create_connection(address, timeout=seconds) as made:
        made.sendall(request)
        with contextlib.suppress(ConnectionResetError):
            return made.recv(300)
    return b""


@pytest.mark.parametrize("half", [b"", b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: "])
def test_connections_that_ask_for_nothing_are_closed(address, half):
    began = time.monotonic()
    assert answered(address, half) == b""
    assert 0.5 < time.monotonic() - began < 8.0


def test_bodies_that_stop_coming_are_closed(address):
    began = time.monotonic()
    stopped = b"POST /api/study/tell?name=empty" + HEAD + b"Content-Length: 100\r\n\r\n["
    assert b" 408 " in answered(address, stopped)
    assert time.monotonic() - began < 8.0


def test_one_address_does_not_get_all_connections(address):
    held = []
    with contextlib.ExitStack() as open_ones:
        for _ in range(connections.MOST_OF_ONE + 40):
            held.append(open_ones.enter_context(socket.create_connection(address)))
        closed = 0
        time.sleep(0.3)
        for made in held:
            made.setblocking(False)
            try:
                closed += made.recv(1) == b""
            except BlockingIOError:
                pass
            except ConnectionResetError:
                closed += 1
    assert closed >= 40 and connections.MOST_OF_ONE < connections.MOST_CONNECTIONS
    time.sleep(0.3)
    assert b" 200 " in answered(address, b"GET /" + HEAD + b"\r\n")
