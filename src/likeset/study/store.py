"""Store: several studies in one file."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from likeset.study.database import Database

if TYPE_CHECKING:
    from likeset.study.study import Study

DEFAULT = "likeset.db"


class Store:
    """Studies in one file.

    Parameters
    ----------
    path        of the file, which is made with the first study; None keeps everything in memory
    read_only   never write

    >>> store = Store(None)
    >>> store.studies()
    []
    """

    def __init__(self, path: str | PathLike[str] | None = DEFAULT, read_only: bool = False) -> None:
        self._database = Database(path, read_only)

    def __repr__(self) -> str:
        return f"Store({None if self.path is None else str(self.path)!r})"

    @property
    def path(self) -> Path | None:
        """Where the file is; None for a store in memory."""
        return self._database.path

    @property
    def read_only(self) -> bool:
        """Whether nothing can be told."""
        return self._database.read_only

    def studies(self) -> list[dict[str, Any]]:
        """Name, number of rows, date and outcome of every study, as plain dicts."""
        return [
            {"name": name, "rows": rows, "created": created, "outcome": definition["outcome"]}
            for name, definition, created, rows in self._database.listed()
        ]

    def study(self, name: str, read_only: bool = False) -> Study:
        """The study of this name."""
        from likeset.study.study import Study

        return Study.open(name, self, read_only=read_only)

    def close(self) -> None:
        """Let go of the file; a store in memory is lost."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
