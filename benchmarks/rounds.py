"""Benchmark: rounds of optimism on the paper's 1-D problem, side by side with another work tree of the project.

``python -m benchmarks --against PATH``, where PATH is a checkout of another commit (``git worktree add PATH COMMIT``).
Every measurement is a fresh process with one tree on its path and a compile cache of the tree's own; the trees take
turns, so that the machine's moods hit both alike. Processor time of ``ask`` and of ``tell``. Both trees are dealt the
same y at the same arms as long as they choose alike, which is counted, too.

A process plays the game several times and keeps the best time of every round: what disturbs a round only adds to it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
from rich.progress import Progress

import likeset as ls
from benchmarks.common import Array, Report

ROUNDS = 150
GAMES = 5

PLAY = """
import json, sys, time
import numpy as np
import likeset as ls
noise, rounds, games = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
environment = ls.environments.paper_1d(noise)
clock = time.process_time_ns
times, arms = np.full((rounds, 2), np.inf), []
for game in range(games + 1):
    policy = ls.UCB(environment.sequence(0.1), environment.arms, reward=environment.reward)
    rng = np.random.default_rng(0)
    took, arms = np.zeros((rounds, 2)), []
    for t in range(rounds):
        start = clock()
        arm = policy.ask()
        middle = clock()
        y = environment.sample(arm, rng)
        before = clock()
        policy.tell(arm, y)
        took[t] = middle - start, clock() - before
        arms.append(int(arm))
    if game:  # the first one compiles
        times = np.minimum(times, took)
print(json.dumps([times.tolist(), arms]))
"""

COLUMNS = [
    ("noise", "noise", ""),
    ("tell_us", "tell (us)", ".0f"),
    ("other_tell_us", "other tree", ".0f"),
    ("ask_us", "ask (us)", ".0f"),
    ("other_ask_us", "other tree", ".0f"),
    ("tell_ratio", "tell, ratio", ".2f"),
    ("ask_ratio", "ask, ratio", ".2f"),
    ("ratio", "round, ratio", ".2f"),
    ("lowest", "lowest pair", ".2f"),
    ("highest", "highest pair", ".2f"),
    ("alike", "rounds chosen alike", "d"),
]


def run(progress: Progress, quick: bool, other: Path) -> Report:
    """Every noise of the paper, several pairs of processes each; a ratio above one: this tree is slower."""
    pairs = 3 if quick else 9
    trees = {"this": Path(__file__).resolve().parents[1], "other": other.resolve()}
    report = Report(
        f"rounds of UCB on the paper's 1-D problem, against {other.name}",
        COLUMNS,
        notes=[
            f"{ROUNDS} rounds, best of {GAMES} games, median of {pairs} pairs of processes that take turns",
            "processor time; a ratio above one means that this tree is slower",
        ],
    )
    noises = ls.environments.NOISES
    task = progress.add_task("rounds", total=len(noises) * pairs)
    for noise in noises:
        times: dict[str, list[Array]] = defaultdict(list)
        arms: dict[str, list[int]] = {}
        for pair in range(pairs):
            for name in sorted(trees, reverse=pair % 2 == 0):
                took, arms[name] = play(trees[name], noise)
                times[name].append(took)
            progress.advance(task)
        report.records.append(record(noise, np.array(times["this"]), np.array(times["other"]), arms))
    return report


def record(noise: str, this: Array, other: Array, arms: dict[str, list[int]]) -> dict[str, Any]:
    """One line of the table from mean times of (ask, tell) per process, in microseconds."""
    ratios = this.sum(axis=1) / other.sum(axis=1)
    ask, tell = np.median(this / other, axis=0)
    mine, others = np.median(this, axis=0), np.median(other, axis=0)
    return {
        "noise": noise,
        "tell_us": mine[1],
        "other_tell_us": others[1],
        "ask_us": mine[0],
        "other_ask_us": others[0],
        "tell_ratio": tell,
        "ask_ratio": ask,
        "ratio": float(np.median(ratios)),
        "lowest": float(ratios.min()),
        "highest": float(ratios.max()),
        "alike": sum(a == b for a, b in zip(arms["this"], arms["other"], strict=True)),
    }


def play(tree: Path, noise: str) -> tuple[Array, list[int]]:
    """Mean microseconds of (ask, tell) in a fresh process of one tree, and the arms it chose."""
    environment = dict(os.environ, LIKESET_QUIET="1", PYTHONPATH=str(tree / "src"))
    environment.pop("NUMBA_CACHE_DIR", None)  # each tree has a cache of its own beside its files
    call = [sys.executable, "-c", PLAY, noise, str(ROUNDS), str(GAMES)]
    done = subprocess.run(call, env=environment, cwd=tree, capture_output=True, text=True, check=True)
    times, arms = json.loads(done.stdout)
    return 1e-3 * np.mean(times, axis=0), arms
