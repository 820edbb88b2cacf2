"""What a piece of evidence works out once for all levels: ``replace(evidence, threshold=...)`` hands it on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class AtAllLevels:
    """Results by name, for the very parts they were made from; other parts begin anew."""

    def __init__(self) -> None:
        self._kept: tuple[tuple[object, ...], dict[str, Any]] = (), {}

    def once(self, parts: tuple[object, ...], name: str, make: Callable[[], Any]) -> Any:
        """What ``make`` returned when it was first asked for with these parts."""
        of, made = self._kept  # both at once: another thread may ask with other parts meanwhile
        if len(parts) != len(of) or any(a is not b for a, b in zip(parts, of, strict=True)):
            made = {}
            self._kept = parts, made
        if name not in made:
            made[name] = make()
        return made[name]

    def __reduce__(self) -> tuple[Any, ...]:
        return AtAllLevels, ()  # copies work it out again
