"""Running cells: in this process, on processes of this machine, or on a dask cluster. The rows are the same.

Workers only compute; the calling process writes each result as it arrives, so a cluster needs no shared disk and a
worker that dies loses nothing but the cell it was busy with, which another one takes over. Processes of this machine
are in :mod:`likeset.paper.experiments.processes`.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from likeset.errors import FileFormatError, InvalidArgumentError, LikesetError
from likeset.paper.experiments.cells import Cell, Rows
from likeset.paper.experiments.interrupts import Interrupts
from likeset.paper.experiments.store import Store

_LOST_WORKERS = 5  # how often a cell whose worker died is given to another one


@dataclass(frozen=True)
class Outcome:
    """A cell with its rows, or with the text of the error that stopped it; ``seconds`` of processor time it took."""

    cell: Cell
    rows: Rows | None
    error: str | None = None
    seconds: float = 0.0


Executor = Callable[[Sequence[Cell]], Generator[Outcome]]


def run(
    cells: Sequence[Cell],
    store: Store,
    execute: Executor,
    *,
    progress: Callable[[Outcome], None] = lambda outcome: None,
    warn: Callable[[str], None] = lambda text: None,
) -> list[Outcome]:
    """Rows of all cells: read from the store where they are finished, computed and stored where not."""
    outcomes: list[Outcome] = []
    missing: list[Cell] = []
    for cell in cells:
        try:
            rows = store.load(cell)
        except FileFormatError as error:
            warn(f"{error} It is run again.")
            rows = None
        if rows is None:
            missing.append(cell)
        else:
            outcomes.append(Outcome(cell, rows))
            progress(outcomes[-1])
    with closing(execute(in_order(missing))) as finished:  # an interrupt or a full disk stops the workers at once
        for outcome in finished:
            if outcome.rows is not None:
                store.save(outcome.cell, outcome.rows, outcome.seconds)
            outcomes.append(outcome)
            progress(outcome)
    return outcomes


def in_order(cells: Sequence[Cell]) -> list[Cell]:
    """Long cells first, so that no worker is left alone with one at the end; Laplace last, but one of it first of all.

    The kernels for Laplace noise take minutes to compile where that was never done. One worker does so at once, with
    the default method, which needs all of them, while the others go on with different cells; before these need the
    kernels, they are in the cache on disk that all share.
    """
    by_cost = sorted(cells, key=lambda cell: (-cell.cost, cell.key))
    laplace = sorted((cell for cell in by_cost if "laplace" in cell.problem), key=lambda cell: cell.method != "default")
    others = [cell for cell in by_cost if "laplace" not in cell.problem]
    return laplace[:1] + others + laplace[1:]


def compute(cell: Cell) -> Outcome:
    """Run one cell; an error becomes part of the outcome, so that it does not stop the others."""
    from likeset.paper.experiments.figures import run_cell

    start = time.process_time()
    try:
        return Outcome(cell, run_cell(cell), seconds=time.process_time() - start)
    except Exception:
        return Outcome(cell, None, traceback.format_exc())


def in_this_process(cells: Sequence[Cell]) -> Generator[Outcome]:
    """One after the other. Ctrl-C stops it even where compiled code turned the interrupt into an error of the cell."""
    for cell in cells:
        with Interrupts() as interrupts, interrupts.not_errors():
            outcome = compute(cell)
        yield outcome


def on_dask(address: str, timeout: float = 10.0) -> Executor:
    """On a dask.distributed cluster, e.g. ``tcp://127.0.0.1:8786``; likeset must be installed on its workers."""
    try:
        distributed: Any = import_module("distributed")
    except ImportError as error:
        raise InvalidArgumentError(
            "dask", address, "needs the package distributed", 'pip install "likeset[cluster]"'
        ) from error
    try:
        client = distributed.Client(address, timeout=timeout)
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise InvalidArgumentError(
            "dask", address, f"is not a scheduler that answers ({error})", "start one with `dask scheduler`"
        ) from error

    def execute(cells: Sequence[Cell]) -> Generator[Outcome]:
        try:
            yield from _collect(client, distributed, cells)
        finally:
            client.close(timeout=2)

    return execute


def _collect(client: Any, distributed: Any, cells: Sequence[Cell]) -> Generator[Outcome]:
    priorities = range(len(cells), 0, -1)
    submitted = {
        client.submit(compute, cell, pure=False, priority=priority): (cell, 0)
        for cell, priority in zip(cells, priorities, strict=True)
    }
    pending = distributed.as_completed(list(submitted))
    for future in pending:
        cell, lost = submitted.pop(future)
        try:
            yield future.result()
        except distributed.KilledWorker:
            if lost >= _LOST_WORKERS:
                yield Outcome(cell, None, f"{lost + 1} times in a row the cluster lost the worker that ran this cell")
                continue
            again = client.submit(compute, cell, pure=False)
            submitted[again] = (cell, lost + 1)
            pending.add(again)
        except (distributed.CancelledError, distributed.client.FutureCancelledError) as error:
            raise LikesetError(f"the dask scheduler went away ({error}); what is finished is kept.") from error
