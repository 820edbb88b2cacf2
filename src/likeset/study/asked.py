"""What was asked for, in the store: runs that are pending, and what became of the others.

    asked    run, setting (JSON, as the user reads it), width, due, optimistic, state, asked, changed

A run is pending until a row with its number, or with its setting, is told, or it is cancelled. It is written in the
transaction that chose it, so that it survives a kill, and other processes see it.
"""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass
from typing import Any

from likeset.study.database import StoredStudy, now

PENDING, TOLD, FAILED, CANCELLED = "pending", "told", "failed", "cancelled"
TABLE = (
    "CREATE TABLE IF NOT EXISTS asked (study INTEGER NOT NULL, run INTEGER NOT NULL, setting TEXT NOT NULL, "
    "width REAL NOT NULL, due INTEGER NOT NULL, optimistic INTEGER NOT NULL, state TEXT NOT NULL, asked TEXT NOT NULL, "
    "changed TEXT NOT NULL, PRIMARY KEY (study, run)) STRICT"
)
_COLUMNS = "run, setting, width, due, optimistic, state, asked, changed"


@dataclass(frozen=True)
class Run:
    """One run that was asked for; ``width`` was that of its certified interval, ``due`` and ``optimistic`` tell how
    it was chosen (:class:`~likeset.Guarded`).
    """

    number: int
    setting: dict[str, Any]
    width: float = 0.0
    due: bool = False
    optimistic: bool = False
    state: str = PENDING
    asked: str = ""
    changed: str = ""

    def to_json(self) -> dict[str, Any]:
        """Plain data, as an export holds it."""
        return {
            "run": self.number, "setting": self.setting, "width": self.width, "due": self.due,
            "optimistic": self.optimistic, "state": self.state, "asked": self.asked, "changed": self.changed,
        }  # fmt: skip

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Run:
        """The inverse of ``to_json``."""
        return cls(
            int(data["run"]), dict(data["setting"]), float(data["width"]), bool(data["due"]), bool(data["optimistic"]),
            str(data["state"]), str(data["asked"]), str(data["changed"]),
        )  # fmt: skip


def runs(connection: sqlite3.Connection, study: StoredStudy) -> list[Run]:
    """All runs of a study, oldest first; none in a store in which nobody has asked yet."""
    if not _has_table(connection):
        return []
    found = connection.execute(f"SELECT {_COLUMNS} FROM asked WHERE study = ? ORDER BY run", (study.id,))
    return [Run(n, json.loads(s), w, bool(d), bool(o), st, a, c) for n, s, w, d, o, st, a, c in found]


def add(connection: sqlite3.Connection, study: StoredStudy, new: list[Run]) -> None:
    """Write runs down; inside ``writing``."""
    connection.execute(TABLE)
    entries = [
        (study.id, r.number, json.dumps(r.setting), r.width, int(r.due), int(r.optimistic), r.state,
         r.asked or now(), r.changed or now())
        for r in new
    ]  # fmt: skip
    connection.executemany("INSERT INTO asked VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", entries)


def change(connection: sqlite3.Connection, study: StoredStudy, states: dict[int, str]) -> None:
    """What became of runs; inside ``writing``."""
    if not states:
        return  # there may be no table
    entries = [(state, now(), study.id, number) for number, state in states.items()]
    connection.executemany("UPDATE asked SET state = ?, changed = ? WHERE study = ? AND run = ?", entries)


def _has_table(connection: sqlite3.Connection) -> bool:
    query = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'asked'"
    return connection.execute(query).fetchone() is not None
