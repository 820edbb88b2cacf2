"""Benchmark: time to import, and time of the first answer with an empty and with a warm compile cache.

``import likeset`` loads names when they are first used; what loading them all takes is measured as well.

Every measurement is a fresh Python process. The first answer is one update and one ``upper`` for each family.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile

import numpy as np
from rich.progress import Progress

from benchmarks.common import FAMILIES, Report

TARGET = 0.5
IMPORT = "import time; t = time.perf_counter(); import likeset; print(time.perf_counter() - t)"
NAMES = "import time; t = time.perf_counter(); from likeset import *; print(time.perf_counter() - t)"
FIRST = """
import time
import numpy as np
import likeset as ls
rng = np.random.default_rng(0)
family = ls.{family!r}
X = rng.standard_normal((8, 3))
y = family.sample(X @ np.array([0.3, 0.2, -0.1]), rng)
t = time.perf_counter()
sequence = ls.ConfidenceSequence(family, ls.Linear(dim=3, bound=2.0))
sequence.update(X, y)
sequence.set.upper(X)
print(time.perf_counter() - t)
"""

COLUMNS = [("what", "what", ""), ("seconds", "seconds", ".2f"), ("target", "target", ".1f")]


def run(progress: Progress, quick: bool) -> Report:
    """Import, then the first answer of each family: cold and warm."""
    report = Report("starting up (fresh processes)", COLUMNS)

    def add(what: str, elapsed: float, target: float | None = None) -> None:
        report.records.append({"what": what, "seconds": elapsed, "target": target})

    names = list(FAMILIES)[:1] if quick else list(FAMILIES)
    task = progress.add_task("start", total=1 + 2 * len(names))
    child(NAMES)  # writes the byte code
    times = 3 if quick else 9
    add("import likeset", median_of(IMPORT, times), TARGET)
    add("import likeset, and load every public name", median_of(NAMES, times))
    add("for comparison: import numba", median_of(IMPORT.replace("likeset", "numba"), times))
    progress.advance(task)
    with tempfile.TemporaryDirectory() as cache:
        for state in ("empty", "warm"):
            for name in names:
                repeats = 1 if state == "empty" or quick else 3  # a cache is empty once
                program = FIRST.format(family=FAMILIES[name])
                add(f"first answer, {name}, {state} compile cache", median_of(program, repeats, cache))
                progress.advance(task)
    report.notes.append("families share compiled functions: with an empty cache the first pays for those after it")
    return report


def median_of(program: str, times: int, cache: str | None = None) -> float:
    """Median of what the program prints in so many runs."""
    return float(np.median([child(program, cache) for _ in range(times)]))


def child(program: str, cache: str | None = None) -> float:
    """Run a program in a new process and read the number that it prints."""
    environment = dict(os.environ, **({"NUMBA_CACHE_DIR": cache} if cache else {}))
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    return float(done.stdout)
