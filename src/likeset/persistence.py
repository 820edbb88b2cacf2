r"""Saving and loading a sequence: a zip file with a JSON header and plain arrays. Not pickle; see docs/file-format.md.

    header.json            format name and version; alpha; names, settings of family, space, predictor and so on
    ledger/*.npy           every observation, its weight and its forecast's log-density, and their merged sums
    basis/*.npy            the orthonormal basis of the span
    forecaster/*.npy       the running predictor (warm starts, beliefs, shares)
    weigher/*.npy          the running weighting
    windows/*.npy          which window every covariate belongs to

Settings name classes found in the package's own lists (``FAMILIES``, ``SPACES``, ``PREDICTORS``, ``WEIGHTINGS``); a
piece of the user's own cannot be rebuilt from a file and must be passed to ``load`` again.
"""

from __future__ import annotations

import io
import json
import math
import os
import zipfile
import zlib
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from likeset.errors import FileFormatError, InvalidArgumentError, LikesetError
from likeset.families import FAMILIES
from likeset.predictors import PREDICTORS, Aggregate, Fixed
from likeset.spaces import SPACES
from likeset.support.terms import Array
from likeset.weights import WEIGHTINGS
from likeset.windows import WINDOWS

if TYPE_CHECKING:
    from likeset.sequence import ConfidenceSequence

FORMAT = "likeset sequence"
VERSION = 2
READABLE_VERSIONS = (1, 2)  # 1 knew no windows: a joint set
_GROUPS = ("ledger", "basis", "forecaster", "weigher", "windows")
_CLASSES: dict[str, Any] = {cls.__name__: cls for cls in (*FAMILIES, *SPACES, *PREDICTORS, *WEIGHTINGS, *WINDOWS)}


def save(sequence: ConfidenceSequence, path: str | PathLike[str]) -> None:
    """Write a sequence to ``path``, replacing an existing file only once the new one is complete."""
    running = sequence._running
    groups = {
        "ledger": running.ledger.state(),
        "basis": running.basis.state(),
        "forecaster": _state_of(running.forecaster),
        "weigher": _state_of(running.weigher),
        "windows": {} if running.membership is None else running.membership.state(),
    }
    header = {
        "format": FORMAT,
        "version": VERSION,
        "alpha": sequence.alpha,
        "family": describe(sequence.family),
        "space": describe(sequence.space),
        "predictor": describe(sequence.predictor),
        "weighting": describe(sequence.weighting),
        "windows": None if sequence.windows is None else describe(sequence.windows),
        "n_observations": sequence.n_observations,
        "arrays": [f"{group}/{name}" for group, state in groups.items() for name in state],
    }
    target = _path(path)
    temporary = target.with_name(f"{target.name}.{os.getpid()}.part")
    try:
        with zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("header.json", json.dumps(header, indent=1))
            for group, state in groups.items():
                for name, array in state.items():
                    buffer = io.BytesIO()
                    np.save(buffer, np.ascontiguousarray(array, dtype=np.float64), allow_pickle=False)
                    archive.writestr(f"{group}/{name}.npy", buffer.getvalue())
        os.replace(temporary, target)
    except OSError as error:
        raise InvalidArgumentError("path", str(path), f"cannot be written ({error})", "pass a writable path") from error
    finally:
        temporary.unlink(missing_ok=True)


def load(
    path: str | PathLike[str],
    *,
    family: Any = None,
    space: Any = None,
    predictor: Any = None,
    weighting: Any = None,
) -> ConfidenceSequence:
    """Read a sequence written by ``ConfidenceSequence.save``; it continues with bit-identical results.

    ``family``, ``space``, ``predictor`` and ``weighting`` are needed only where the saved one was the user's own.
    A user's predictor or weighting with ``restore(state)`` gets back what its ``state()`` returned; one without is
    shown the recorded observations again through ``observe``.
    """
    from likeset.sequence import ConfidenceSequence

    header, groups = _read(_path(path))
    try:
        given = {"family": family, "space": space, "predictor": predictor, "weighting": weighting}
        pieces = {role: _piece(role, header[role], own) for role, own in given.items()}
        windows = None if header.get("windows") is None else _piece("windows", header["windows"], None)
        sequence = ConfidenceSequence(
            pieces["family"], pieces["space"], header["alpha"], pieces["predictor"], pieces["weighting"], windows
        )
        running = sequence._running
        _check_ledger(groups["ledger"], header["n_observations"], sequence)
        running.ledger.restore(groups["ledger"])
        running.basis = sequence.space.restore(groups["basis"])
        if running.ledger.merged.dimension > running.basis.dimension:
            raise ValueError("the basis is smaller than the ledger's coordinates")
        if running.membership is not None:
            running.membership = running.membership.restored(groups["windows"])
            if running.membership.masks.shape[1] != running.ledger.merged.count:
                raise ValueError("the windows do not fit the covariates")
        own_pieces: dict[str, Any] = {"forecaster": running.forecaster, "weigher": running.weigher}
        for role, running_piece in own_pieces.items():
            if _has_state(running_piece):
                running_piece.restore(groups[role])
            else:
                _replay(running_piece, sequence)
    except LikesetError:
        raise
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise FileFormatError(
            f"{path} is damaged: its contents do not fit together ({type(error).__name__}: {error}); "
            "restore it from a backup."
        ) from error
    return sequence


def describe(piece: Any) -> dict[str, Any]:
    """Name and settings of a piece; a piece of the user's own only by its name."""
    name = type(piece).__name__
    if _CLASSES.get(name) is not type(piece) or (isinstance(piece, Fixed) and piece.function is not None):
        return {"own": name}
    if isinstance(piece, Aggregate):
        members = [describe(p) for p in piece.predictors]
        return {"own": name} if any("own" in m for m in members) else {"type": name, "members": members}
    settings = piece.settings()
    if settings is None:
        return {"own": name}
    return {"type": name, "settings": {k: "inf" if v == math.inf else v for k, v in settings.items()}}


def _piece(role: str, description: dict[str, Any], own: Any) -> Any:
    if "own" in description:
        if own is None:
            raise InvalidArgumentError(
                role,
                None,
                f"is missing: the saved sequence used {description['own']}, which a file cannot hold",
                f"pass it again: load(path, {role}=...)",
            )
        return own
    if own is not None:
        raise InvalidArgumentError(role, own, "is not needed", f"the file holds its own {description['type']}")
    if description["type"] not in _CLASSES:
        raise FileFormatError(f"the file names an unknown {role} {description['type']!r}; it may need a newer likeset.")
    cls = _CLASSES[description["type"]]
    if "members" in description:
        return cls(*(_piece(role, member, None) for member in description["members"]))
    settings = {k: math.inf if v == "inf" else v for k, v in description["settings"].items()}
    return cls.from_settings(settings) if hasattr(cls, "from_settings") else cls(**settings)


def _state_of(running_piece: Any) -> dict[str, Array]:
    return dict(running_piece.state()) if _has_state(running_piece) else {}


def _has_state(running_piece: Any) -> bool:
    members = getattr(running_piece, "members", [])
    return hasattr(running_piece, "state") and hasattr(running_piece, "restore") and all(map(_has_state, members))


def _check_ledger(state: dict[str, Array], n: int, sequence: ConfidenceSequence) -> None:
    """Raise ValueError unless the ledger's arrays fit each other, the space and the family."""
    count = len(state["merged.coordinates"])
    shapes = {
        "x": (n, *sequence.space.covariate_shape), "y": (n, *sequence.family.observation_shape), "weights": (n,),
        "log_q": (n,), "covariate": (n,), "gains": (count,),
    }  # fmt: skip
    for name, shape in shapes.items():
        if state[name].shape != shape:
            raise ValueError(f"ledger/{name} has shape {state[name].shape}, not {shape}")
    for name, array in state.items():
        if np.isnan(array).any():
            raise ValueError(f"ledger/{name} contains NaN")
    w, k = state["weights"], state["covariate"]
    if n and not (((w >= 0) & (w <= 1)).all() and (k >= 0).all() and set(k) == set(range(count))):
        raise ValueError("weights or covariate numbers are out of range")


def _path(path: str | PathLike[str]) -> Path:
    try:
        return Path(path)
    except TypeError:
        raise InvalidArgumentError("path", path, "is not a path", "pass a string or pathlib.Path") from None


def _replay(running_piece: Any, sequence: ConfidenceSequence) -> None:
    for phi, y in sequence.ledger.replay():
        running_piece.observe(phi, y)


def _read(path: Path) -> tuple[dict[str, Any], dict[str, dict[str, Array]]]:
    try:
        with zipfile.ZipFile(path) as archive:
            header = json.loads(archive.read("header.json"))
            if not isinstance(header, dict) or header.get("format") != FORMAT:
                raise FileFormatError(f"{path} is not a saved likeset sequence; pass a file written by save().")
            if header.get("version") not in READABLE_VERSIONS:
                raise FileFormatError(
                    f"{path} has format version {header.get('version')}, and this likeset reads versions "
                    f"{READABLE_VERSIONS}; install the release that wrote it, or a newer one."
                )
            groups: dict[str, dict[str, Array]] = {group: {} for group in _GROUPS}
            for entry in header["arrays"]:
                group, name = entry.split("/", 1)
                array = np.load(io.BytesIO(archive.read(f"{entry}.npy")), allow_pickle=False)
                if array.dtype != np.float64:
                    raise FileFormatError(f"{path} is damaged: array {entry} has dtype {array.dtype}.")
                groups[group][name] = array
    except FileNotFoundError:
        raise InvalidArgumentError("path", str(path), "does not exist", "pass the path of a saved sequence") from None
    except OSError as error:
        raise InvalidArgumentError("path", str(path), f"cannot be read ({error})", "pass a readable file") from error
    except (
        zipfile.BadZipFile,
        KeyError,
        ValueError,
        NotImplementedError,
        RuntimeError,
        EOFError,
        AttributeError,
        TypeError,
        zlib.error,
    ) as error:
        raise FileFormatError(
            f"{path} is damaged or not a saved likeset sequence ({type(error).__name__}: {error}); "
            "restore it from a backup."
        ) from error
    return header, groups
