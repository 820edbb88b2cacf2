r"""Saving and loading a sequence: a zip file with a JSON header and plain arrays. Not pickle; see docs/file-format.md.

    header.json            format name and version; alpha; names and settings of family, space, predictor and so on
    ledger/*.npy           every observation, its weight and its forecast's log-density: the truth
    forecaster/*.npy       the running predictor (warm starts, beliefs, shares)
    weigher/*.npy          the running weighting
    alarm/*.npy            what laws outside the model have forecast, if there is an alarm

What follows from the rows is not read but made again, see ``rebuild``. The states of forecaster, weigher and alarm
are taken over if they fit, and if rows and states bear the seal that they were written with; otherwise, or if the basis
is no longer the one they were saved with, the pieces observe the rows again. Validity hardly ever hangs on them, since
any normalised forecast made before y will do; but what the alarm has heard, and where a scale is unknown what the
numerator has earned, is evidence. The seal is for accidents: who can write the file can write another seal.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from likeset._typing import Array
from likeset.arguments import error_level, file_path
from likeset.embedded import NOTHING
from likeset.errors import FileFormatError, InvalidArgumentError, MissingPackageError, PieceError
from likeset.families.answers import nuisance
from likeset.persistence.archive import Archive, header_bytes, write_archive
from likeset.persistence.atomic_file import replace_file
from likeset.persistence.descriptions import MAX_PIECES, count_of, describe, piece_from
from likeset.persistence.piece_states import PIECES, fresh, has_state, is_built_in, restored, state_of
from likeset.persistence.rebuild import Limits, Rows, rebuilt, same_coordinates
from likeset.state_checks import expect_log_shares

if TYPE_CHECKING:
    from likeset.any_of import AnyOf
    from likeset.sequence import ConfidenceSequence

FORMAT = "likeset sequence"
MODELS = "likeset models"
VERSION = 4
# 1 knew no windows: a joint set; 1 and 2 held more that follows from the rows; before 4 only covariates were given
READABLE_VERSIONS = (1, 2, 3, 4)
ROLES = ("family", "space", "predictor", "weighting")
NEEDED = {"ledger/x", "ledger/y", "ledger/weights", "ledger/log_q", "ledger/merged.coordinates"}
CLASSES = "ledger/classes"  # of the rows, where voices gave them any
GIVEN = "ledger/given"  # offset, size and entry of the rows, where any was given
COORDINATES = "ledger/merged.coordinates"  # tell whether the states of the pieces mean the same in today's basis
FREE_ROWS = 1_000_000  # that a file may hold, whatever its size
FREE_DIMENSIONS = 256  # that a span may have, whatever it had when the file was written
MAX_DIM = 1_000_000  # of covariates in a file without any; otherwise their own size is the limit


def save(sequence: ConfidenceSequence, path: str | PathLike[str]) -> None:
    """Write a sequence to ``path``, replacing an existing file only once the new one is complete and on disk."""
    target = file_path("path", path)
    _write(target, *_contents(sequence))


def save_models(models: AnyOf, path: str | PathLike[str]) -> None:
    """Write the sequences of several models to one file: their arrays in folders 0, 1, ..., their headers in a list."""
    target = file_path("path", path)
    headers, arrays = [], {"log_shares": np.ascontiguousarray(models._log_shares)}
    for k, member in enumerate(models._sequences):
        header, own = _contents(member)
        if any("own" in header[role] for role in ROLES):
            raise InvalidArgumentError(
                "models", models.models[k], "has a piece of your own, which files of several models cannot name",
                "save a ConfidenceSequence of each, or use built-in families and spaces",
            )  # fmt: skip
        headers.append(header)
        arrays |= {f"{k}/{name}": array for name, array in own.items()}
    header = {"format": MODELS, "version": VERSION, "alpha": models.alpha, "models": headers, "arrays": list(arrays)}
    _write(target, header, arrays)


def _write(target: Path, header: dict[str, Any], arrays: dict[str, Array]) -> None:
    header_bytes(header)  # refuses what could not be read again
    try:
        replace_file(target, lambda stream: write_archive(stream, header, arrays, plain="ledger/log_q"))
    except OSError as error:
        raise InvalidArgumentError(
            "path", str(target), f"cannot be written ({error})", "pass a writable path"
        ) from error


def _contents(sequence: ConfidenceSequence) -> tuple[dict[str, Any], dict[str, Array]]:
    """Header and arrays of one sequence."""
    ledger = sequence._running.ledger
    arrays = {
        "ledger/x": ledger.x.rows, "ledger/y": ledger.y.rows, "ledger/weights": ledger.weights.rows,
        "ledger/log_q": ledger.log_q.rows, COORDINATES: ledger.merged.coordinates,
    }  # fmt: skip
    if ledger.classes.rows.any():
        arrays[CLASSES] = ledger.classes.rows
    if (ledger.given.rows != NOTHING).any():
        arrays[GIVEN] = ledger.given.rows
    for role in (*PIECES, "alarm"):
        piece = getattr(sequence._running, role)
        arrays |= {f"{role}/{name}": array for name, array in state_of(piece).items()}
    arrays = {name: np.ascontiguousarray(array, dtype=np.float64) for name, array in arrays.items()}
    header: dict[str, Any] = {"format": FORMAT, "version": VERSION, "alpha": sequence.alpha}
    header |= {role: describe(getattr(sequence, role)) for role in ROLES}
    header["windows"] = None if sequence.voices is None else describe(sequence.voices)
    if sequence.alarm:  # files of earlier releases have none
        header["alarm"] = 1
    header |= {"n_observations": len(ledger), "arrays": list(arrays), "seal": _seal(arrays)}
    if count_of(header["predictor"]) > MAX_PIECES:
        raise InvalidArgumentError(
            "predictor", sequence.predictor, f"has more than {MAX_PIECES} members", "aggregate fewer predictors"
        )
    return header, arrays


def load(
    path: str | PathLike[str],
    *,
    family: Any = None,
    space: Any = None,
    predictor: Any = None,
    weighting: Any = None,
) -> Any:
    """Read a sequence written by ``ConfidenceSequence.save``, or models written by ``AnyOf.save``.

    It continues with bit-identical results.

    ``family``, ``space``, ``predictor`` and ``weighting`` are needed only where the saved one was the user's own.
    A user's predictor or weighting with ``restore(state)`` gets back what its ``state()`` returned; one without is
    shown the recorded observations again through ``observe``, as is any where the basis of a function space has changed
    since the file was written (another release or machine).
    """
    own = {"family": family, "space": space, "predictor": predictor, "weighting": weighting}
    with _opened(file_path("path", path)) as archive:
        if archive.header.get("format") == MODELS:
            return _models_from(archive)
        return _sequence_from(archive, own)


def _models_from(archive: Archive) -> AnyOf:
    """Several models; nothing of their own."""
    from likeset.any_of import AnyOf

    with _blaming_the_file(archive):
        _check_version(archive)
        headers = archive.header["models"]
        if not isinstance(headers, list) or not 1 <= len(headers) <= MAX_PIECES:
            raise ValueError("no list of models")
        members = []
        for k, header in enumerate(headers):
            part = Part(archive, header, f"{k}/")
            if any("own" in header[role] for role in ROLES):
                raise ValueError("a model has pieces of its author's own")
            members.append(_sequence_from(part, dict.fromkeys(ROLES)))
        first = members[0]._running.ledger
        for member in members:
            ledger = member._running.ledger
            same = all(np.array_equal(getattr(ledger, n).rows, getattr(first, n).rows) for n in ("x", "y", "given"))
            if not same or member.alpha != archive.header["alpha"]:
                raise ValueError("models that have seen different rows, or have different levels")
        shares = expect_log_shares({"log_shares": archive.read("log_shares")}, "log_shares", len(members))
        return AnyOf._of(tuple(members), archive.header["alpha"], shares)


def _sequence_from(archive: Archive | Part, own: dict[str, Any]) -> ConfidenceSequence:
    from likeset.sequence import ConfidenceSequence

    header = archive.header
    with _blaming_the_file(archive):
        _check_header(archive)
    is_own = any("own" in header[role] for role in ROLES)
    with _blaming_the_file(archive, arguments_too=not is_own):
        pieces = {role: piece_from(role, header[role], own[role]) for role in ROLES}
        windows = None if header.get("windows") is None else piece_from("windows", header["windows"], None)
    with _blaming_the_file(archive):
        rows = _rows(archive, pieces["family"], pieces["space"])
        saved = archive.read(COORDINATES)
        states = {role: _state_in(archive, role) for role in PIECES}
        heard = _state_in(archive, "alarm")
    with _blaming_the_file(archive, arguments_too=not is_own):
        alarm = {0: False, 1: True}[header.get("alarm", 0)]
        sequence = ConfidenceSequence(alpha=header["alpha"], windows=windows, alarm=alarm, **pieces)
    # A span of d dimensions has d distinct covariates, with d coordinates each.
    limits = Limits(archive.limit, FREE_DIMENSIONS + 4 * math.isqrt(saved.size))
    running = sequence._running
    todo = {role: getattr(running, role) for role in states if getattr(running, role) is not None}
    shown = {role: piece for role, piece in todo.items() if not has_state(piece)}
    with _blaming_the_file(archive, arguments_too=not is_own):
        data = rebuilt(sequence, rows, shown.values(), limits)
    hold_evidence = running.alarm is not None or nuisance(sequence.family) is not None
    agree = same_coordinates(saved, running.ledger.merged.coordinates) and _sealed(
        archive, rows, states, heard, hold_evidence
    )
    again = {
        role: fresh(role, sequence)
        for role, piece in todo.items()
        if role not in shown and not (agree and restored(piece, states[role], data, is_built_in(role, sequence)))
    }
    if running.alarm is not None and not (agree and restored(running.alarm, heard, data, built_in=True)):
        role = "forecaster" if running.source is running.forecaster else "gauge"
        again[role] = fresh(role, sequence)
    if again:
        for role, piece in again.items():
            setattr(running, role, piece)
        with _blaming_the_file(archive, arguments_too=not is_own):
            rebuilt(sequence, rows, again.values(), limits)
    return sequence


def _seal(arrays: Mapping[str, Array]) -> str:
    """A digest of arrays and their names; that of the coordinates is not in it: they are compared as numbers."""
    digest = hashlib.sha256()
    for name in sorted(arrays.keys() - {COORDINATES}):
        digest.update(f"{name} {arrays[name].shape} ".encode())
        digest.update(np.ascontiguousarray(arrays[name], dtype="<f8").tobytes())
    return digest.hexdigest()


def _sealed(
    archive: Archive | Part,
    rows: Rows,
    states: dict[str, dict[str, Array]],
    heard: dict[str, Array],
    hold_evidence: bool,
) -> bool:
    """Whether rows and states are those that were written together.

    Files of earlier releases do not say: there states are believed unless they ``hold_evidence``.
    """
    if "seal" not in archive.header:
        return not hold_evidence
    arrays = {f"ledger/{name}": getattr(rows, name) for name in ("x", "y", "weights", "log_q", "classes", "given")}
    arrays |= {f"{role}/{name}": array for role, state in states.items() for name, array in state.items()}
    arrays |= {f"alarm/{name}": array for name, array in heard.items()}
    return bool(archive.header["seal"] == _seal({n: a for n, a in arrays.items() if n in archive.header["arrays"]}))


class Part:
    """One model in a file of several: what an :class:`Archive` offers, for the arrays in one folder."""

    def __init__(self, archive: Archive, header: Any, folder: str) -> None:
        if not isinstance(header, dict):
            raise ValueError("a model without a header")
        self._archive, self.header, self._folder = archive, header, folder
        self.path, self.size, self.limit, self.damaged = archive.path, archive.size, archive.limit, archive.damaged
        self.arrays = {name.removeprefix(folder) for name in archive.arrays if name.startswith(folder)}

    def read(self, name: str, shape: tuple[int, ...] | None = None) -> Array:
        """One array of the folder."""
        return self._archive.read(self._folder + name, shape)


@contextmanager
def _opened(path: Path) -> Iterator[Archive]:
    try:
        archive = Archive(path)
    except FileNotFoundError:
        raise InvalidArgumentError("path", str(path), "does not exist", "pass the path of a saved sequence") from None
    except OSError as error:
        raise InvalidArgumentError("path", str(path), f"cannot be read ({error})", "pass a readable file") from error
    with archive:
        yield archive


@contextmanager
def _blaming_the_file(archive: Archive | Part, arguments_too: bool = True) -> Iterator[None]:
    """Turn whatever goes wrong with untrusted contents into FileFormatError; not errors about the user's own pieces."""
    try:
        # What a hostile number overflows is found by the checks that follow, not by a warning.
        with np.errstate(all="ignore"):
            yield
    except (FileFormatError, MissingPackageError, PieceError):
        raise
    except Exception as error:
        if isinstance(error, InvalidArgumentError) and not arguments_too:
            raise
        raise archive.damaged(error) from error


def _check_header(archive: Archive | Part) -> None:
    header = archive.header
    if header.get("format") != FORMAT:
        raise FileFormatError(f"{archive.path} is not a saved likeset sequence; pass a file written by save().")
    _check_version(archive)
    for role in ROLES:
        if not isinstance(header[role], dict):
            raise ValueError(f"{role} is no description")
    error_level("alpha", header["alpha"])  # here, where the user's own pieces cannot be to blame
    n, names = header["n_observations"], header["arrays"]
    # A row takes 8 bytes of log q, which save does not compress: the time to load is bounded by the size of the file.
    if not isinstance(n, int) or not 0 <= n <= FREE_ROWS + 4 * archive.size:
        raise ValueError(f"n_observations is {n!r}")
    if not isinstance(names, list) or not archive.arrays.issuperset(names) or not NEEDED.issubset(names):
        raise ValueError("arrays are missing, or not listed by the header")


def _check_version(archive: Archive | Part) -> None:
    version = archive.header.get("version")
    if not isinstance(version, int) or version not in READABLE_VERSIONS:
        raise FileFormatError(
            f"{archive.path} has format version {version}, and this likeset reads versions "
            f"{READABLE_VERSIONS}; install the release that wrote it, or a newer one."
        )


def _rows(archive: Archive | Part, family: Any, space: Any) -> Rows:
    n, covariate_shape = archive.header["n_observations"], space.covariate_shape
    if n == 0 and math.prod(covariate_shape) > MAX_DIM:
        raise ValueError(f"covariates of shape {covariate_shape}")
    shapes = {"x": covariate_shape, "y": family.observation_shape, "weights": (), "log_q": ()}
    read = {name: archive.read(f"ledger/{name}", (n, *shape)) for name, shape in shapes.items()}
    classes = archive.read(CLASSES, (n,)) if CLASSES in archive.header["arrays"] else np.zeros(n)
    nothing = np.tile(NOTHING, (n, 1))
    given = archive.read(GIVEN, nothing.shape) if GIVEN in archive.header["arrays"] else nothing
    rows = Rows(**read, classes=classes, given=given)
    return rows.checked(family, space)


def _state_in(archive: Archive | Part, role: str) -> dict[str, Array]:
    prefix = f"{role}/"
    return {n.removeprefix(prefix): archive.read(n) for n in archive.header["arrays"] if n.startswith(prefix)}
