"""Compile beforehand: run, in small, what the defaults of each family run, so that its kernels are in the cache.

``likeset warmup`` on the command line, with or without the packages of the extra "cli"; one short run for each family,
space (linear, functions) and kind of set (joint, windows), with rows alone and in a batch, bounds, membership and a few
rounds of :class:`~likeset.UCB`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from likeset._typing import Array
from likeset.bandits import UCB
from likeset.checks import built_in_families
from likeset.compiling import cache_folder, compilations
from likeset.errors import InvalidArgumentError
from likeset.families import FAMILIES, Family
from likeset.progress import QUIET
from likeset.sequence import ConfidenceSequence
from likeset.spaces import RKHS, Linear, Space
from likeset.voices.windows import Windows

Running = Callable[[str, int, int], None]  # told the name of what runs, how many ran before, and how many there are
NAMES = tuple(cls.__name__.lower() for cls in FAMILIES)


def runs(family: str | None = None) -> Iterator[tuple[str, Callable[[], None]]]:
    """What is to be run, and its name: for one family, or for all of them.

    >>> [name for name, run in runs("poisson")][:2]
    ['Poisson, linear, joint', 'Poisson, linear, windows']
    """
    if family is not None and family.lower() not in NAMES:
        raise InvalidArgumentError("family", family, "is no built-in family", f"choose one of {', '.join(NAMES)}")
    for law in built_in_families():
        name = type(law).__name__
        if family is None or name.lower() == family.lower():
            for where, space, arms in _spaces():
                yield f"{name}, {where}, joint", partial(_run, law, space, arms, None)
                if law.convex:
                    yield f"{name}, {where}, windows", partial(_run, law, space, arms, Windows.covering(space, arms))


def warm_up(family: str | None, running: Running) -> str:
    """Run all of them, and tell ``running`` of each before; what came of it, in words."""
    began, before = time.perf_counter(), compilations()
    os.environ[QUIET] = "1"  # whoever asked shows how far it is
    jobs = list(runs(family))
    for number, (name, run) in enumerate(jobs):
        running(name, number, len(jobs))
        run()
    seconds, compiled, folder = time.perf_counter() - began, compilations() - before, cache_folder()
    kept = f"kept in {folder}" if folder is not None else "lost: no folder for them can be written, see NUMBA_CACHE_DIR"
    return f"{compiled} kernels compiled in {seconds:.0f} s; {kept}."


def _spaces() -> list[tuple[str, Space, Array]]:
    rng = np.random.default_rng(0)
    arms = rng.normal(size=(12, 3))
    grid = np.linspace(0.0, 1.0, 24)
    return [
        ("linear", Linear(dim=3, bound=1.5), arms / np.linalg.norm(arms, axis=1, keepdims=True)),
        ("functions", RKHS(_bell, bound=1.5, domain=grid), grid[:, None]),
    ]


def _bell(x: Array, y: Array) -> Array:
    """The squared-exponential kernel of length 0.15; scikit-learn need not be there."""
    return np.asarray(np.exp(-0.5 * ((x[:, None, 0] - y[None, :, 0]) / 0.15) ** 2))


def _run(family: Family, space: Space, arms: Array, windows: Windows | None) -> None:
    rng = np.random.default_rng(1)
    seq = ConfidenceSequence(family, space, windows=windows)
    first = rng.integers(len(arms), size=30)
    seq.update(arms[0], family.sample(np.zeros(1), rng))
    seq.update(arms[first], family.sample(np.zeros(30), rng))
    inside = np.zeros(len(arms) if isinstance(space, RKHS) else space.covariate_shape[0])
    seq.set.contains(inside)
    seq.set.log_ratio(inside)
    if not family.convex:  # membership is all there is
        return
    policy = UCB(seq, arms)
    for _ in range(8):
        policy.tell(policy.ask(), family.sample(np.zeros(1), rng)[0])
        if seq.set.is_empty:  # possible, with probability alpha at most; what is needed has been compiled by then
            return
    seq.set.interval(arms)
