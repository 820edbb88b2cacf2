"""The arms on offer: a fixed table, or another one every round (contexts)."""

from __future__ import annotations

from typing import Any

import numpy as np

from likeset._typing import Array
from likeset.arguments import positive_integer
from likeset.errors import InvalidArgumentError, ShapeError


def index_among(name: str, value: Any, count: int) -> int:
    """An index of one of ``count`` arms: a whole number, not a float that happens to be one."""
    try:
        number = np.asarray(value)
    except Exception:  # ragged lists, and objects that are no arrays
        number = np.zeros(0)
    if number.shape != () or number.dtype.kind not in "iu":
        raise InvalidArgumentError(name, value, "is not an index", "pass what ask() returned, a whole number")
    if not 0 <= number < count:
        raise InvalidArgumentError(
            name, value, f"is not one of the {count} arms", f"pass an index from 0 to {count - 1}"
        )
    return int(number)


def how_many(n: Any, count: int) -> int:
    """How many of ``count`` arms are asked for."""
    return positive_integer("n", n, count, "there are no more arms to choose from")


class Arms:
    """Checks what is offered and remembers which covariate an index means."""

    def __init__(self, space: Any, arms: Any) -> None:
        self.space = space
        if arms is None:
            arms = getattr(space, "domain", None)
        self.fixed: Array | None = None if arms is None else self._checked(arms)
        self.current = self.fixed

    def __repr__(self) -> str:
        return "changing arms" if self.fixed is None else f"{len(self.fixed)} arm{'s' * (len(self.fixed) != 1)}"

    def rows(self, arms: Any) -> Array:
        """Checked rows of ``arms``, or the fixed table if they are None."""
        if arms is not None:
            return self._checked(arms)
        if self.fixed is None:
            raise InvalidArgumentError(
                "arms",
                None,
                "leaves nothing to choose from",
                "give arms to the policy, or to every call, as in ask(arms)",
            )
        return self.fixed

    def offer(self, rows: Array) -> None:
        """Checked rows to choose from in this round; indices mean these from now on."""
        self.current = rows

    def covariate(self, arm: Any) -> Array:
        """The row that an index means, in the table offered last."""
        if self.current is None:
            raise InvalidArgumentError("arm", arm, "means nothing before arms were offered", "call ask(arms) first")
        return self.current[index_among("arm", arm, len(self.current))]

    def _checked(self, arms: Any) -> Array:
        rows = self.space.covariates(arms, "arms")
        if len(rows) == 0:
            raise ShapeError("arms", arms, "is empty", "offer at least one arm")
        return np.asarray(rows)
