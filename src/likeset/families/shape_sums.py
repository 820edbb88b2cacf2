"""Lifetimes with their groups, where the shape of the law is unknown: t^p can only be summed once p is given."""

from __future__ import annotations

from typing import Any

import numpy as np

from likeset._solver.shapes import ShapeTerms
from likeset._typing import Array
from likeset.state_checks import expect_array
from likeset.undo import Undo


class ShapeSums:
    """Rows (group, log t, event, weight), append-only."""

    def __init__(self, family: Any, jacobian: float, lo: float, hi: float) -> None:
        self.family, self.jacobian, self.lo, self.hi = family, jacobian, lo, hi
        self.rows = np.zeros((16, 4))
        self.length = 0

    def remember(self, undo: Undo, index: int) -> None:
        """Keep the length; rows beyond it do not count."""
        undo.keep(self)

    def add(self, index: int, y: Array, weight: float, law: Any = None) -> float:
        """Append one observation; nothing of its log-density is free of z *and* of the shape."""
        if self.length == len(self.rows):
            self.rows = np.concatenate([self.rows, np.zeros_like(self.rows)])
        log_time = float(np.log(y[0])) if self.jacobian else float(y[0])
        self.rows[self.length] = (index, log_time, float(y[1]), weight)
        self.length += 1
        return 0.0

    def terms(self, count: int) -> ShapeTerms:
        """-log p of the first ``count`` groups, as later observations will not change them."""
        group, log_time, event, weight = self.rows[: self.length].T.copy()
        return ShapeTerms(
            group.astype(np.int64), log_time, event, weight, count, self.jacobian, self.lo, self.hi
        )  # fmt: skip

    snapshot = terms

    def state(self) -> dict[str, Array]:
        """The rows."""
        return {"lifetimes": self.rows[: self.length]}

    def restore(self, state: dict[str, Array], count: int) -> None:
        """The inverse of ``state``."""
        rows = expect_array(state, "lifetimes", (None, 4))
        group, _, event, weight = rows.T
        if not (np.isin(group, np.arange(count)).all() and np.isin(event, (0.0, 1.0)).all() and (weight >= 0).all()):
            raise ValueError("lifetimes are not rows of (group, log time, event, weight)")
        self.rows, self.length = np.concatenate([rows, np.zeros((16, 4))]), len(rows)
