"""A worker process: cells come in on standard input, outcomes go out on standard output, both pickled.

Nothing but the parent holds the other end of standard input, so when the parent is gone, however it went, the input
ends, and so does the worker, in the middle of a cell if need be.
"""

from __future__ import annotations

import os
import pickle
import queue
import signal
import threading
import traceback
from typing import Any, BinaryIO


def serve() -> None:
    """Run what arrives until the parent closes the input or dies."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # ctrl-C is the parent's business, which stops its workers itself
    orders = os.fdopen(os.dup(0), "rb")
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a cell prints must not end up among the answers
    waiting: queue.SimpleQueue[Any] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(orders, waiting), daemon=True).start()
    try:
        while True:
            work, cell = waiting.get()
            pickle.dump(work(cell), answers)
            answers.flush()
    except BrokenPipeError:
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        os._exit(1)


def _listen(orders: BinaryIO, waiting: queue.SimpleQueue[Any]) -> None:
    try:
        while True:
            waiting.put(pickle.load(orders))
    except EOFError:
        os._exit(0)  # the main thread may be busy for minutes: do not ask it
    except BaseException:
        traceback.print_exc()
        os._exit(1)
