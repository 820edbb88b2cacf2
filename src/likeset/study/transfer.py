"""A study as plain files and back, without loss: ``study.json``, ``rows.csv`` (as told) and ``scored.csv`` (as scored).

Numbers are written with as many digits as they have, so evidence and hashes are the same after an import; an import
whose last hash is not the exported one is refused.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from likeset._typing import Array
from likeset.arguments import file_path, writing
from likeset.errors import FileFormatError, InvalidArgumentError
from likeset.persistence.atomic_file import write_file, write_table
from likeset.progress import counted
from likeset.study import asked
from likeset.study.database import Database, StoredBatch
from likeset.study.factors import Levels
from likeset.study.packing import packed, unpacked

if TYPE_CHECKING:
    from likeset.study.study import Study

FORMAT, VERSION = "likeset study", 1
FILES = ("study.json", "rows.csv", "scored.csv")


def export(study: Study, folder: Any) -> Path:
    """Write the study to a folder, which is made if there is none."""
    target = file_path("folder", folder)
    with study._database.reading() as connection:
        batches = list(study._database.batches(connection, study._stored, None))
        runs = asked.runs(connection, study._stored)
    raw = [unpacked(batch.raw) for batch in batches]
    scored = [unpacked(batch.scored) for batch in batches]
    shown = [study._shown_columns(part) for part in raw]
    about = {
        "format": FORMAT, "version": VERSION, "definition": study._stored.definition, "engine": study._stored.engine,
        "batches": [
            {"count": batch.count, "scored": len(part["x"]), "told": batch.told}
            for batch, part in zip(batches, scored, strict=True)
        ],
        "columns": _kinds(raw), "scored": _shapes(scored), "fingerprint": study.fingerprint,
        "asked": [run.to_json() for run in runs],
    }  # fmt: skip
    with writing(target):
        target.mkdir(parents=True, exist_ok=True)
        _write_json(target / FILES[0], about)
        write_table(target / FILES[1], _lines(shown))
        write_table(target / FILES[2], _lines([_flat(part) for part in scored]))
    return target


def read_export(folder: Any, database: Database, study_from: Any) -> Any:
    """The study that a folder holds, in a store that has none of its name."""
    source = file_path("folder", folder)
    try:
        about = json.loads((source / FILES[0]).read_text("utf-8"))
        if about.get("format") != FORMAT or about.get("version") != VERSION:
            raise FileFormatError(
                f"{source / FILES[0]} is no exported study of version {VERSION}; install the release that wrote it, or "
                "pass the folder of an export."
            )
        rows, scored = (_read(source / name) for name in FILES[1:])
        parts = _parts(about, rows, scored)
        runs = [asked.Run.from_json(run) for run in about.get("asked", [])]
    except OSError as error:
        raise InvalidArgumentError(
            "folder", str(source), f"cannot be read ({error.strerror or error})", "pass the folder of an export"
        ) from error
    except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        if isinstance(error, InvalidArgumentError):
            raise
        raise FileFormatError(f"{source} is not an export as it was written ({error}); export again.") from error
    name = about["definition"]["name"]
    with database.writing() as connection:
        if database.find(name) is not None:
            raise InvalidArgumentError(
                "folder", str(source), f"holds the study {name!r}, which the store has already", "pass another store="
            )
        stored = database.insert(connection, about["definition"], about["engine"])
        for batch in parts:
            database.append(connection, stored, batch.raw, batch.scored, batch.count, batch.told)
        if runs:
            asked.add(connection, stored, runs)
        if database.head(connection, stored).hash.hex() != about["fingerprint"]:
            raise FileFormatError(
                f"{source} was altered after it was exported: its fingerprint is another; export again."
            )
    return study_from(name)


def _parts(about: dict[str, Any], rows: list[list[str]], scored: list[list[str]]) -> Iterable[StoredBatch]:
    from likeset.study.definition import Definition

    definition = Definition.from_json(about["definition"]) if "own" not in about["definition"]["family"] else None
    if definition is None:
        raise InvalidArgumentError("folder", about["definition"]["name"], "has a family of one's own", "copy the store")
    levels = {f.name: f for f in definition.factors if isinstance(f, Levels)}
    start, scored_start, found = 1, 1, []
    for batch in about["batches"]:
        part, scored_part = (slice(a, a + batch[n]) for a, n in ((start, "count"), (scored_start, "scored")))
        start, scored_start = part.stop, scored_part.stop
        raw = {}
        for i, (name, kind) in enumerate(about["columns"]):
            cells = [row[i] for row in rows[part]]
            if name in levels:
                raw[name] = np.array([levels[name].number(cell) for cell in cells], dtype=np.float64)
            else:
                raw[name] = cells if kind == "text" else np.array(cells, dtype=np.float64)  # type: ignore[assignment]
        done, at = {}, 0
        for name, shape in about["scored"]:
            width = int(np.prod(shape, dtype=int))
            block = np.array([row[at : at + width] for row in scored[scored_part]], dtype=np.float64)
            done[name] = block.reshape(batch["scored"], *shape)
            at += width
        if any(len(cells) != batch["count"] for cells in raw.values()):
            raise ValueError("rows are missing")
        found.append(StoredBatch(0, 0, batch["count"], batch["told"], packed(raw), packed(done), b""))
    if (start, scored_start) != (len(rows), len(scored)) and about["batches"]:
        raise ValueError("there are more rows than batches")
    return found


def _kinds(raw: list[dict[str, Any]]) -> list[list[str]]:
    first = raw[0] if raw else {}
    return [[name, "number" if isinstance(cells, np.ndarray) else "text"] for name, cells in first.items()]


def _shapes(scored: list[dict[str, Array]]) -> list[Any]:
    first = scored[0] if scored else {}
    return [[name, list(array.shape[1:])] for name, array in first.items()]


def _flat(part: dict[str, Array]) -> dict[str, list[Any]]:
    """Arrays as columns of one number each."""
    columns: dict[str, list[Any]] = {}
    for name, array in part.items():
        width = int(np.prod(array.shape[1:], dtype=int))
        flat = array.reshape(len(array), width)
        columns |= {name if width == 1 else f"{name}[{j}]": flat[:, j].tolist() for j in range(width)}
    return columns


def _lines(parts: list[dict[str, Any]]) -> Iterable[Iterable[Any]]:
    if parts:
        yield list(parts[0])
    for part in parts:
        count = len(next(iter(part.values())))
        yield from counted(zip(*part.values(), strict=True), count, "writing rows")


def _write_json(path: Path, data: Any) -> None:
    def write(stream: BinaryIO) -> None:
        stream.write(json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False).encode())

    write_file(path, write)


def _read(path: Path) -> list[list[str]]:
    with open(path, encoding="utf-8", newline="") as stream:
        csv.field_size_limit(max(csv.field_size_limit(), 1 << 24))
        text = stream.read()
        return list(counted(csv.reader(io.StringIO(text, newline="")), text.count("\n"), "reading rows"))
