"""Benchmark: the page under load. 50 readers and 5 writers on loopback, for a minute, with all limits on; then a kill.

Readers look at the page of a study, at its JSON and at the list, about once a second each; writers tell one row at a
time, about twice a second each. At the end the server is killed with signal 9 and every acknowledged row is looked for.
The first byte after a restart is measured on the same store, whose worker processes have not been started then, and on
a store with a study of a million rows, from the answers that the last server left beside it and from the rows alone.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx
import numpy as np
from rich.progress import Progress

import likeset as ls
from benchmarks.common import Report

READERS, WRITERS = 50, 5
TOKEN = "benchmark-token"
COLUMNS = [
    ("what", "what", ""),
    ("requests", "requests", "d"),
    ("p50", "p50 (ms)", ".1f"),
    ("p99", "p99 (ms)", ".1f"),
    ("errors", "errors", "d"),
]
PAGES = ("/study?name=load", "/api/study?name=load", "/")


def run(progress: Progress, quick: bool) -> Report:
    """Load, kill, restart."""
    seconds = 10.0 if quick else 60.0
    rows = 500 if quick else 5000
    report = Report(f"The page: {READERS} readers and {WRITERS} writers for {seconds:g} s", COLUMNS)
    task = progress.add_task("page", total=seconds)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "load.db"
        _filled(path, rows)
        server, address = _serving(path)
        try:
            _wait_for_answers(address)
            waits, acknowledged, errors = asyncio.run(_load(address, seconds, lambda: progress.advance(task, 1.0)))
        finally:
            os.kill(server.pid, signal.SIGKILL)
            server.wait()
        for what, times in waits.items():
            report.records.append(_record(what, times, errors[what]))
        time.sleep(2.0)
        study = ls.Study("load", store=path)
        told = study.tell([{"id": key, "v": "A", "y": 1} for key in sorted(acknowledged)])
        report.records.append(_record("first byte after the kill", _first_byte(path), 0))
        large = Path(folder) / "large.db"
        count = 20_000 if quick else 1_000_000
        _filled_with_totals(large, count)
        report.records.append(_record(f"complete page of {count} rows, nothing known", _whole_page(large), 0))
        report.records.append(_record(f"first byte of {count} rows", _first_byte(large), 0))
        report.notes.append(f"{os.getloadavg()[0]:.1f} jobs were running or waiting on {os.cpu_count()} processors.")
        report.notes.append(f"{len(acknowledged)} rows acknowledged, {told.recorded} of them missing after signal 9.")
    return report


def _record(what: str, times: list[float], errors: int) -> dict[str, Any]:
    p50, p99 = 1e3 * np.quantile(times, [0.5, 0.99]) if times else (np.nan, np.nan)
    return {"what": what, "requests": len(times), "p50": float(p50), "p99": float(p99), "errors": errors}


def _filled(path: Path, rows: int) -> None:
    rng = np.random.default_rng(0)
    study = ls.Study(
        "load", factors={"v": ["A", "B"]}, outcome={"y": ls.Bernoulli()}, control="A", key="id", store=path
    )
    outcomes = rng.integers(2, size=rows).tolist()
    study.tell({"id": [f"r{i}" for i in range(rows)], "v": ["AB"[i % 2] for i in range(rows)], "y": outcomes})
    study.store.close()


def _filled_with_totals(path: Path, rows: int) -> None:
    rng = np.random.default_rng(1)
    level = rng.integers(2, size=rows)
    outcome = rng.random(rows) < np.array([0.10, 0.12])[level]
    study = ls.Study("load", factors={"v": ["A", "B"]}, outcome={"y": ls.Bernoulli()}, control="A", store=path)
    study.tell({"v": np.array(["A", "B"])[level].tolist(), "y": outcome})
    study.store.close()


def _whole_page(path: Path) -> list[float]:
    """Seconds until a server that knows nothing has answers; it leaves them beside the store."""
    server, address = _serving(path)
    try:
        began = time.monotonic()
        _wait_for_answers(address)
        taken = time.monotonic() - began
        server.send_signal(signal.SIGINT)
        server.wait(30)
        return [taken]
    finally:
        if server.poll() is None:
            os.kill(server.pid, signal.SIGKILL)
            server.wait()


def _serving(path: Path) -> tuple[subprocess.Popen[str], str]:
    environment = {**os.environ, "LIKESET_TOKEN": TOKEN, "PYTHONPATH": str(Path(ls.__file__).parent.parent)}
    command = [sys.executable, "-m", "likeset", "serve", str(path), "--port", "0"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    assert server.stdout is not None
    line = next(line for line in server.stdout if line.startswith("Page:"))
    found = re.search(r"http://[^/]+", line)
    assert found is not None
    return server, found.group()


def _wait_for_answers(address: str) -> None:
    for _ in range(120):
        if httpx.get(f"{address}/api/study?name=load", timeout=60).status_code == 200:
            return
        time.sleep(1.0)


async def _load(address: str, seconds: float, tick: Any) -> tuple[dict[str, list[float]], set[str], dict[str, int]]:
    waits: dict[str, list[float]] = {"page": [], "JSON": [], "list": [], "tell": []}
    errors = dict.fromkeys(waits, 0)
    acknowledged: set[str] = set()
    end = time.monotonic() + seconds + 2.0  # making so many clients takes a moment

    async def timed(client: httpx.AsyncClient, what: str, method: str, path: str, **options: Any) -> bool:
        began = time.monotonic()
        try:
            answer = await client.request(method, path, **options)
            fine = answer.status_code == 200
        except httpx.HTTPError:
            fine = False
        waits[what].append(time.monotonic() - began)
        errors[what] += not fine
        return fine

    async def reader(i: int) -> None:
        async with httpx.AsyncClient(base_url=address, timeout=30, verify=False) as client:
            await asyncio.sleep(i / READERS)
            while time.monotonic() < end:
                for what, path in zip(("page", "JSON", "list"), PAGES, strict=True):
                    began = time.monotonic()
                    await timed(client, what, "GET", path)
                    await asyncio.sleep(max(0.0, 1.0 - (time.monotonic() - began)))

    async def writer(i: int) -> None:
        headers = {"Authorization": f"Bearer {TOKEN}"}
        async with httpx.AsyncClient(base_url=address, timeout=30, headers=headers, verify=False) as client:
            number = 0
            while time.monotonic() < end:
                key, number, began = f"w{i}-{number}", number + 1, time.monotonic()
                if await timed(
                    client, "tell", "POST", "/api/study/tell?name=load", json=[{"id": key, "v": "A", "y": 1}]
                ):
                    acknowledged.add(key)
                await asyncio.sleep(max(0.0, 0.5 - (time.monotonic() - began)))

    async def clock() -> None:
        while time.monotonic() < end:
            await asyncio.sleep(1.0)
            tick()

    await asyncio.gather(clock(), *(reader(i) for i in range(READERS)), *(writer(i) for i in range(WRITERS)))
    return waits, acknowledged, errors


def _first_byte(path: Path) -> list[float]:
    """Seconds from the request to the first byte of the answers, right after a start."""
    server, address = _serving(path)
    try:
        began = time.monotonic()
        with httpx.stream("GET", f"{address}/study?name=load", timeout=60) as answer:
            next(answer.iter_raw())
            taken = time.monotonic() - began
        return [taken]
    finally:
        os.kill(server.pid, signal.SIGKILL)
        server.wait()
