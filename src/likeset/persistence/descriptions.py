"""Pieces of a sequence as plain names and settings, and back: what a file's header says about them.

Settings name classes found in the package's own lists (``FAMILIES``, ``SPACES``, ``PREDICTORS``, ``WEIGHTINGS``,
``VOICES``); a piece of the user's own cannot be rebuilt from a file and must be passed to ``load`` again.
"""

from __future__ import annotations

import math
from typing import Any

from likeset.errors import FileFormatError, InvalidArgumentError
from likeset.families import FAMILIES, Unknown
from likeset.predictors import PREDICTORS, Aggregate, Fixed
from likeset.spaces import SPACES
from likeset.voices import VOICES, Voices
from likeset.weights import WEIGHTINGS

MAX_PIECES = 1000  # predictors in one aggregate, members of members included
_LISTS: dict[str, tuple[Any, ...]] = {
    "family": FAMILIES, "space": SPACES, "predictor": PREDICTORS, "weighting": WEIGHTINGS, "windows": VOICES,
}  # fmt: skip
_CLASSES = {role: {cls.__name__: cls for cls in classes} for role, classes in _LISTS.items()}
_BUILT_IN = {cls for classes in _LISTS.values() for cls in classes}


def describe(piece: Any) -> dict[str, Any]:
    """Name and settings of a piece; a piece of the user's own only by its name."""
    cls = getattr(piece, "constructor", type(piece))  # of a family with an unknown number: that of its laws
    name = cls.__name__
    if cls not in _BUILT_IN or (isinstance(piece, Fixed) and piece.function is not None):
        return {"own": name}
    if isinstance(piece, Aggregate):
        members = [describe(p) for p in piece.predictors]
        return {"own": name} if any("own" in m for m in members) else {"type": name, "members": members}
    settings = piece.settings()
    if settings is None:
        return {"own": name}
    described = {"type": name, "settings": _written(settings)}
    if isinstance(piece, Voices) and piece.edition:
        described["edition"] = piece.edition
    if isinstance(piece, Voices) and (parts := getattr(piece, "parts", None)):
        described["parts"] = {role: describe(part) for role, part in parts.items()}
        if any("own" in part for part in described["parts"].values()):
            return {"own": name}
    return described


def piece_from(role: str, description: Any, own: Any) -> Any:
    """The piece that ``describe`` described, or the user's own where it could not."""
    if not isinstance(description, dict):
        raise ValueError(f"{role} is {type(description).__name__}, not a description")
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
        raise InvalidArgumentError(role, own, "is not needed", f"the file holds its own {description.get('type')}")
    if count_of(description) > MAX_PIECES:
        raise ValueError(f"{role} has more than {MAX_PIECES} members")
    return _made(role, description)


def _made(role: str, description: dict[str, Any]) -> Any:
    name = description["type"]
    if not isinstance(name, str) or name not in _CLASSES[role]:
        raise FileFormatError(f"the file names an unknown {role} {name!r}; it may need a newer likeset.")
    cls = _CLASSES[role][name]
    if cls is Aggregate:
        return cls(*(_made(role, member) for member in description["members"]))
    settings = _read(description["settings"])
    if "parts" in description:
        if not isinstance(description["parts"], dict):
            raise ValueError(f"the parts of {role} are {type(description['parts']).__name__}, not descriptions")
        settings |= {part: _made(role, inner) for part, inner in description["parts"].items()}
    made = cls.from_settings(settings) if hasattr(cls, "from_settings") else cls(**settings)
    return made.of_edition(description.get("edition", 0)) if isinstance(made, Voices) else made


def settings_alone(description: Any) -> Any:
    """A description of voices without what releases make of their settings: what somebody has asked for."""
    if not isinstance(description, dict):
        return description
    asked = {key: value for key, value in description.items() if key != "edition"}
    if "parts" in asked:
        asked["parts"] = {role: settings_alone(part) for role, part in asked["parts"].items()}
    return asked


def _written(value: Any) -> Any:
    """Settings without infinite and unknown numbers, which JSON does not know."""
    if isinstance(value, Unknown):
        return {"unknown": [value.lo, "inf" if value.hi == math.inf else value.hi]}
    if isinstance(value, dict):
        return {key: _written(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return list(map(_written, value))
    return "inf" if isinstance(value, float) and value == math.inf else value


def _read(value: Any) -> Any:
    if isinstance(value, dict):
        if list(value) == ["unknown"]:
            lo, hi = _read(value["unknown"])
            return Unknown(lo, hi)
        return {key: _read(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return list(map(_read, value))
    return math.inf if isinstance(value, str) and value == "inf" else value


def count_of(description: Any) -> int:
    """Number of pieces in a description: 1, and the members of an aggregate."""
    if not isinstance(description, dict):
        return 1
    members, parts = description.get("members", []), description.get("parts", {})
    inner = [*members, *(parts.values() if isinstance(parts, dict) else [])]
    return 1 + sum(count_of(member) for member in inner)
