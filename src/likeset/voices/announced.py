"""Voices of announced questions: they take a share of the error level, and other voices keep the rest."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from likeset._typing import Array, Mask
from likeset.arguments import real_array, real_number
from likeset.errors import InvalidArgumentError, ShapeError
from likeset.spaces.base import Space
from likeset.voices.base import Membership, Opened, Voices
from likeset.voices.patience import Patience

MOST = 4096  # contrasts, or pairs of arms: more would leave next to nothing of the error level to each


class Announced(Voices):
    """``share`` of the error level for the questions; rows are heard by ``others``, ``Patience()`` if not given."""

    lone: ClassVar[bool] = True

    def __init__(self, share: float, others: Any = ...) -> None:
        self.share = real_number("share", share)
        if not 0.0 < self.share < 1.0:
            raise InvalidArgumentError("share", share, "is not between 0 and 1", "pass e.g. 0.7")
        self.others: Voices | None = Patience() if others is ... else others
        if self.others is not None and (not isinstance(self.others, Voices) or self.others.lone):
            raise InvalidArgumentError(
                "others", others, "are no voices that hear rows", "pass e.g. Patience(), Windows(...), or None"
            )
        self.ratio = None if self.others is None else self.others.ratio

    @property
    def parts(self) -> dict[str, Voices]:
        """The other voices, described on their own."""
        return {} if self.others is None else {"others": self.others}

    def label(self, spread: float) -> int:
        """The class that the other voices ask for."""
        return 0 if self.others is None else self.others.label(spread)

    def start(self, space: Space) -> Membership:
        """Membership of the other voices."""
        shares = np.zeros(1) if self.others is None else self.others.start(space).log_shares
        return Membership(self, space, shares, np.zeros((len(shares), 0), dtype=bool))

    def whole(self, space: Space) -> Mask:
        """Which of the other voices hear everything."""
        return np.ones(1, dtype=bool) if self.others is None else self.others.whole(space)

    def of(self, space: Space, x: Array, label: int = 0, opened: Opened | None = None) -> Mask:
        """Which of the other voices hear the group."""
        return np.ones(1, dtype=bool) if self.others is None else self.others.of(space, x, label, opened)

    @property
    def opening(self) -> bool:
        """Whether windows of the other voices open by themselves."""
        return self.others is not None and self.others.opening

    def _look(self, space: Space, x: Array, opened: Opened) -> tuple[Opened, int]:
        """As the other voices say."""
        return (opened, 0) if self.others is None else self.others._look(space, x, opened)


def rows_of(name: str, value: Any) -> Array:
    """One row per contrast or arm, or a typed error."""
    array = real_array(name, value)
    array = array.reshape(1, -1) if array.ndim <= 1 else array
    if array.ndim != 2 or array.size == 0:
        raise ShapeError(name, value, f"has shape {array.shape}", "pass one per row")
    if len(array) > MOST:
        raise ShapeError(name, value, f"has {len(array)} rows", f"announce at most {MOST}")
    return array
