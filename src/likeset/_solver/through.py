"""A set that another kernel answers for."""

from __future__ import annotations

from dataclasses import dataclass

from likeset._solver.problem import Kernel
from likeset._typing import Array


@dataclass(frozen=True)
class Through(Kernel):
    """As empty as the set of ``inner``, and with its centre; a kernel derived from it says how answers are found."""

    inner: Kernel

    @property
    def status(self) -> str:  # type: ignore[override]
        """That of the other set."""
        return self.inner.status

    @property
    def centre(self) -> Array:  # type: ignore[override]
        """That of the other set."""
        return self.inner.centre
