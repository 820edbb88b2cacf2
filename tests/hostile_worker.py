"""Loads hostile files in a process of its own, with little memory, and says what came out: one JSON line per file.

    python hostile_worker.py GIGABYTES < list of (kind, path)

A crash of the interpreter, a hang or a file that takes more memory than allowed shows as a missing line.
"""

import contextlib
import json
import resource
import sys
import time
import warnings
from pathlib import Path

import numpy as np

import likeset as ls
from make_files import own_pieces

COVARIATES = {"linear": [[0.3, -0.2, 0.5], [1.0, 0.4, -0.7]], "rkhs": [[0.3], [0.8]]}


def answers(sequence, kind):
    """What the set says; the sequence then goes on, or refuses with a typed error to build on a state that is a lie."""
    rows = np.array(COVARIATES[kind.partition("-")[0]])
    rows = rows if rows.shape[1:] == sequence.space.covariate_shape else sequence.ledger.x.rows[:2]
    if not sequence.family.convex:  # no extrema: what it says of two parameters
        said = sequence.set.log_ratio(np.array([np.zeros(sequence.space.dim), np.full(sequence.space.dim, 0.1)]))
    else:
        said = [] if sequence.set.is_empty else [*sequence.set.upper(rows), *sequence.set.lower(rows)]
    later = sequence.ledger.y.rows[:1] if sequence.n_observations else sequence.family.sample(np.zeros(1), RNG)
    with contextlib.suppress(ls.errors.LikesetError):
        for row in rows:
            sequence.update(row, later)
    return [float(v) for v in said]


def outcome(kind, path):
    """Answers, or the name of the error; only a piece of the user's own may be at a loss with a state of its own."""
    expected = (ls.FileFormatError, ls.InvalidArgumentError, *((ls.PieceError,) if kind == "linear-own-state" else ()))
    try:
        sequence = ls.load(path, **own_pieces(kind))
    except expected as error:
        return {"error": type(error).__name__, "message": str(error)[-200:]}
    with np.errstate(all="ignore"):
        try:
            return {"answers": answers(sequence, kind)}
        except ls.errors.LikesetError as error:
            return {"refused": repr(error)}


def timed(kind, path):
    """The outcome and the processor time it took."""
    start = time.process_time()
    return outcome(kind, path), time.process_time() - start


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    RNG = np.random.default_rng(0)
    space = ls.Linear(2, 1.0)
    ls.ConfidenceSequence(ls.Poisson(), space).set.upper([[1.0, 0.0]])  # what is compiled counts before the limit
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    allowed = used + int(float(sys.argv[1]) * (1 << 30))
    resource.setrlimit(resource.RLIMIT_AS, (allowed, allowed))
    for line in sys.stdin:
        kind, path = json.loads(line)
        said, seconds = timed(kind, path)
        if seconds > 5.0:  # kernels are compiled once, and are none of the file's doing
            said, seconds = timed(kind, path)
        print(json.dumps({"path": path, "seconds": seconds, **said}), flush=True)
