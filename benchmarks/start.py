"""Benchmark: time to import, and time of the first answer with an empty and with a warm compile cache.

``import likeset`` loads names when they are first used; what loading them all takes is measured as well.

Every measurement is a fresh Python process, from its start to its first ``upper`` after one update, imports
included. With an empty cache each family and kind of set compiles all of its kernels by itself. Wall time and CPU time
are both reported: on a busy machine the wall time says more about the others than about us.

The default (``voices="auto"``) is a mixture over patience, with a bound and without one: it takes the kernels of
windows and is held to their targets.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from typing import Any

import numpy as np
from rich.progress import Progress

from benchmarks.common import FAMILIES, Report

IMPORT_TARGET = 0.5
KINDS = {  # space, and what is asked for beside the defaults
    "joint": ("bound=2.0", "voices=None"),
    "windows": ("bound=2.0", "voices=ls.Windows.covering(space, X)"),
    "default": ("bound=2.0", ""),
    "default without a bound": ("", ""),
}
IMPORT = "import time; t = time.perf_counter(); import likeset; print(time.perf_counter() - t)"
NAMES = "import time; t = time.perf_counter(); from likeset import *; print(time.perf_counter() - t)"
FIRST = """
import json, time
import numpy as np
import likeset as ls
from likeset.compiling import compilations
rng = np.random.default_rng(0)
family, space = ls.{family!r}, ls.Linear(3, {bound})
X = rng.standard_normal((8, 3))
y = family.sample(X @ np.array([0.3, 0.2, -0.1]), rng)
sequence = ls.ConfidenceSequence(family, space, {voices})
sequence.update(X, y)
sequence.set.upper(X)
print(json.dumps([time.process_time(), compilations()]))
"""

COLUMNS = [
    ("what", "what", ""),
    ("seconds", "wall (s)", ".2f"),
    ("cpu_seconds", "CPU (s)", ".2f"),
    ("compiled", "functions compiled", "d"),
    ("target", "target", ".1f"),
]


def target(family: str, kind: str) -> float:
    """Seconds to the first answer with an empty cache, on a quiet machine."""
    if kind == "joint":
        return 5.0 if family == "Gaussian" else 15.0
    return 40.0 if family == "Laplace" else 25.0


def run(progress: Progress, quick: bool) -> Report:
    """Import, then the first answer of each family and kind of set: cold and warm."""
    report = Report("starting up (fresh processes)", COLUMNS)
    names = list(FAMILIES)[:1] if quick else list(FAMILIES)
    task = progress.add_task("start", total=1 + len(names) * len(KINDS))
    child(NAMES)  # writes the byte code
    times = 3 if quick else 9
    for what, program, wanted in (
        ("import likeset", IMPORT, IMPORT_TARGET),
        ("import likeset, and load every public name", NAMES, None),
        ("for comparison: import numba", IMPORT.replace("likeset", "numba"), None),
    ):
        elapsed = float(np.median([float(child(program)) for _ in range(times)]))
        report.records.append(record(what, elapsed, wanted=wanted))
    progress.advance(task)
    for name in names:
        for kind in KINDS:
            report.records += first_answers(name, kind)
            progress.advance(task)
    report.notes.append("from the start of the process to its first answer; targets are for a quiet machine")
    report.notes.append("functions compiled: those of the package; numba's own come on top")
    return report


def first_answers(name: str, kind: str) -> list[dict[str, Any]]:
    """One family and kind of set, with an empty cache and then with the one that this has filled."""
    bound, voices = KINDS[kind]
    program = FIRST.format(family=FAMILIES[name], bound=bound, voices=voices)
    records = []
    with tempfile.TemporaryDirectory() as cache:
        for state in ("empty", "warm"):
            start = time.perf_counter()
            cpu, compiled = json.loads(child(program, cache))
            wanted = target(name, kind) if state == "empty" else None
            what = f"first answer, {name}, {kind}, {state} cache"
            records.append(record(what, time.perf_counter() - start, cpu, compiled, wanted))
    return records


def record(
    what: str, elapsed: float, cpu: float | None = None, compiled: int | None = None, wanted: float | None = None
) -> dict[str, Any]:
    return {"what": what, "seconds": elapsed, "cpu_seconds": cpu, "compiled": compiled, "target": wanted}


def child(program: str, cache: str | None = None) -> str:
    """Run a program in a new process; what it prints."""
    environment = dict(os.environ, LIKESET_QUIET="1", **({"NUMBA_CACHE_DIR": cache} if cache else {}))
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    return done.stdout
