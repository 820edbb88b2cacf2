"""A cell: the smallest piece of an experiment that is run, stored and resumed as a whole.

A cell is (figure, problem, method, repeat, settings) -> rows, a pure function: the same cell gives the same rows, bit
for bit, in whichever process and order it runs, because all its randomness comes from :meth:`Cell.rng`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from likeset import __version__

Scalar = str | int | float | bool | None
Rows = dict[str, list[Scalar]]
"""Tidy rows by column; all columns are equally long."""

RESULTS_VERSION = 3
"""Raise it when a change of the code changes the rows: stored cells of an older version are then run again."""


@dataclass(frozen=True)
class Cell:
    """What to run: names, the number of the repeat, and everything else that the rows depend on.

    ``cost`` is a rough number of seconds, for the order of running and the time left; the rows do not depend on it.
    """

    figure: str
    problem: str
    method: str
    repeat: int
    settings: Mapping[str, Scalar] = field(default_factory=dict)
    cost: float = field(default=1.0, compare=False)

    @property
    def key(self) -> str:
        """A name for people: ``fig2/gaussian/ay2011/003``."""
        return f"{self.figure}/{self.problem}/{self.method}/{self.repeat:03d}"

    @property
    def digest(self) -> str:
        """Changes whenever the rows might: with the key, any setting, the version of likeset or of the results."""
        content = {"key": self.key, "settings": dict(self.settings), "likeset": __version__, "results": RESULTS_VERSION}
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()

    def number(self, name: str) -> float:
        """A setting that is a number."""
        value = self.settings[name]
        assert isinstance(value, (int, float))
        return value

    def count(self, name: str) -> int:
        """A setting that is a whole number."""
        return int(self.number(name))

    def rng(self, stream: str = "") -> np.random.Generator:
        """The cell's random numbers. The method is left out: every method meets the same noise in the same repeat.

        >>> a, b = Cell("fig2", "gaussian", "ay2011", 3), Cell("fig2", "gaussian", "nr2021", 3)
        >>> bool(a.rng().normal() == b.rng().normal()), bool(a.rng().normal() == a.rng("arms").normal())
        (True, False)
        """
        name = f"{self.figure}|{self.problem}|{self.repeat}|{self.settings.get('seed', 0)}|{stream}"
        return np.random.default_rng(int.from_bytes(hashlib.sha256(name.encode()).digest()[:16], "little"))
