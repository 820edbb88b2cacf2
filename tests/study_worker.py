"""A process that is killed: it tells a study rows and says on a pipe what has been acknowledged.

Run as ``python study_worker.py path descriptor``. It forks a child that works until it is killed, waits for it, and
forks the next one for every line on its standard input: interpreter and library are loaded once for many kills.
"""

import os
import sys

import likeset as ls
from killing import fork_for_every_line


def opened(path):
    return ls.Study(
        "killed", factors={"arm": ["a", "b"]}, outcome={"y": ls.Gaussian(0.5)}, control="a", key="id", store=path
    )


def row(number):
    """The observation that comes as number ``number``: the order can be checked afterwards."""
    return {"id": number, "arm": "ab"[number % 2], "y": (number % 7) / 8.0}


def work(path, pipe):
    study = opened(path)
    while True:
        n = study.n
        size = 1 + n % 3
        # The row before comes again each time, as it does when a job is repeated.
        study.tell([row(i) for i in range(max(0, n - 1), n + size)])
        os.write(pipe, (n + size).to_bytes(8, "little"))  # after tell has returned


if __name__ == "__main__":
    file, descriptor = sys.argv[1], int(sys.argv[2])
    warm = opened(f"{file}-warm")
    warm.tell([row(0)])  # kernels are loaded before the first fork
    warm.store.close()
    fork_for_every_line(lambda: work(file, descriptor))
