"""A process that is killed: it updates a durable sequence and says on a pipe what has been acknowledged.

Run as ``python journal_worker.py path descriptor``. It forks a child that works until it is killed, waits for it, and
forks the next one for every line on its standard input: interpreter and library are loaded once for many kills.
"""

import os
import sys

import numpy as np

import likeset as ls
from killing import fork_for_every_line


def opened(path):
    return ls.ConfidenceSequence.open(path, ls.Gaussian(0.5), ls.Linear(2, 2.0))


def row(number):
    """The observation that comes as number ``number``: the order can be checked afterwards."""
    return np.array([1.0, (number % 7) / 8.0]), number / 1024.0


def work(path, pipe):
    sequence = opened(path)
    while True:
        n, size = sequence.n_observations, 1 + sequence.n_observations % 3
        batch = [row(n + i) for i in range(size)]
        sequence.update(np.array([x for x, _ in batch]), np.array([y for _, y in batch]))
        os.write(pipe, (n + size).to_bytes(8, "little"))  # after update has returned


if __name__ == "__main__":
    file, descriptor = sys.argv[1], int(sys.argv[2])
    opened(f"{file}-warm").update(*row(0))  # kernels are loaded before the first fork
    fork_for_every_line(lambda: work(file, descriptor))
