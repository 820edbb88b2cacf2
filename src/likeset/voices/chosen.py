"""Voices as they are given to a sequence: under one of two names, by a word, or as an object that has to fit."""

from __future__ import annotations

from typing import Any

from likeset.errors import InvalidArgumentError
from likeset.families.base import Family
from likeset.spaces.base import Space
from likeset.voices.automatic import automatic_voices
from likeset.voices.base import Voices


def one_of(voices: Any, windows: Any) -> tuple[str, Any]:
    """The choice of voices, and under which name it was given."""
    if isinstance(windows, str) and windows == "auto":
        return "voices", voices
    if not (isinstance(voices, str) and voices == "auto"):
        raise InvalidArgumentError("voices", voices, "stands beside windows, its other name", "give one of the two")
    return "windows", windows


def chosen_voices(name: str, voices: Any, family: Family, space: Space) -> Voices | None:
    """The voices meant, which fit family and space; None is the joint set."""
    if voices is None:
        return None
    if isinstance(voices, Voices):
        voices.start(space)  # refuses what does not fit
        voices.directions(family, space)
        return voices
    if isinstance(voices, str) and voices == "auto":
        return automatic_voices(family, space)
    raise InvalidArgumentError(name, voices, "is no choice of voices", 'pass Windows(...), Patience(), None or "auto"')
