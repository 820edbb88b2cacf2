"""Evidence that is measured in nats as it stands: questions about its level sets are questions about log R."""

from __future__ import annotations

from typing import TYPE_CHECKING

from likeset._typing import Array
from likeset.evidence.judging import Judging

if TYPE_CHECKING:
    from typing import Self


class OwnLevels(Judging):
    """What asks for a function with the level sets of log R gets log R."""

    @property
    def level_sets(self) -> Self:
        """A function of theta with the same level sets: log R itself."""
        return self

    def nats(self, heights: Array) -> Array:
        """log R where the function of ``level_sets`` has these values."""
        return heights

    def height_of_a_nat(self, height: float) -> float:
        """By how much that function grows, about, where log R grows by one."""
        return 1.0
