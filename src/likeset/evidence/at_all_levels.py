"""What a piece of evidence works out once for all levels: ``replace(evidence, threshold=...)`` hands it on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class AtAllLevels:
    """Results by name, for the very parts they were made from; other parts begin anew."""

    def __init__(self) -> None:
        self._parts: tuple[object, ...] = ()
        self._made: dict[str, Any] = {}

    def once(self, parts: tuple[object, ...], name: str, make: Callable[[], Any]) -> Any:
        """What ``make`` returned when it was first asked for with these parts."""
        if len(parts) != len(self._parts) or any(a is not b for a, b in zip(parts, self._parts, strict=True)):
            self._parts, self._made = parts, {}
        made = self._made  # of these parts, whatever another thread asks for meanwhile
        if name not in made:
            made[name] = make()
        return made[name]
