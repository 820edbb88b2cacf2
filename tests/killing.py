"""Kill -9 of a process that records, again and again, and what it had acknowledged by then.

The worker (``journal_worker.py``, ``study_worker.py``) says on a pipe how many rows have been acknowledged, so that
this outlives the process that is killed.
"""

import os
import select
import signal
import subprocess
import sys
import time


def check_kills(worker, path, kills, rng, most, pause, recorded):
    """(rows acknowledged, how often a batch was there unacknowledged) after so many kills.

    worker    the module of the process; it records batches of 1 + n % 3 rows
    most      it is killed after fewer updates than this, and up to ``pause`` seconds later: at any point of the next
    recorded  opens what is there after a kill, checks the rows, and returns how many they are
    """
    receive, send = os.pipe()
    os.set_blocking(receive, False)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    parent = subprocess.Popen(
        [sys.executable, worker.__file__, str(path), str(send)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, pass_fds=[send], text=True, env=environment,
    )  # fmt: skip
    acknowledged = extra = 0
    try:
        for _ in range(kills):
            parent.stdin.write("\n")
            parent.stdin.flush()
            child = int(parent.stdout.readline())
            said, updates = [], int(rng.integers(0, most))
            while len(said) < updates:
                select.select([receive], [], [], 60.0)
                said += _received(receive)
            time.sleep(float(rng.uniform(0.0, pause)))
            os.kill(child, signal.SIGKILL)
            assert parent.stdout.readline() == "gone\n"
            said += _received(receive)
            acknowledged = said[-1] if said else acknowledged
            n = recorded()
            assert n == acknowledged or n == acknowledged + 1 + acknowledged % 3, (n, acknowledged)
            extra += n > acknowledged
            acknowledged = n
    finally:
        parent.stdin.close()
        parent.wait(timeout=60)
        parent.stdout.close()
        os.close(receive)
        os.close(send)
    return acknowledged, extra


def _received(pipe):
    data = b""
    while True:
        try:
            data += os.read(pipe, 1 << 16)
        except BlockingIOError:
            return [int.from_bytes(data[i : i + 8], "little") for i in range(0, len(data), 8)]


def fork_for_every_line(work):
    """What a worker does: for every line on its standard input a child that works until it is killed."""
    for _ in sys.stdin:
        child = os.fork()
        if child == 0:
            work()
        print(child, flush=True)
        os.waitpid(child, 0)
        print("gone", flush=True)
