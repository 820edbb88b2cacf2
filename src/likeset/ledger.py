"""The ledger: an append-only record of every observation, its weight and its forecast. The single truth."""

from __future__ import annotations

import numpy as np

from likeset.families.base import Family
from likeset.merged import MergedData
from likeset.spaces.base import Basis, Embedded
from likeset.support.terms import Array


class GrowingRows:
    """Rows appended to a buffer that doubles."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self._buffer = np.zeros((16, *shape))
        self._length = 0

    def append(self, row: Array | float) -> None:
        """Add one row."""
        if self._length == len(self._buffer):
            self._buffer = np.concatenate([self._buffer, np.zeros_like(self._buffer)])
        self._buffer[self._length] = row
        self._length += 1

    @property
    def rows(self) -> Array:
        """All rows; a view, do not write."""
        return self._buffer[: self._length]

    def restore(self, rows: Array) -> None:
        """Replace the contents."""
        self._buffer = np.concatenate([rows, np.zeros((16, *rows.shape[1:]))])
        self._length = len(rows)


class Ledger:
    """Raw rows (x, y, w, log q, covariate number) and what the set needs, merged by covariate.

    gain_k = sum_{s: x_s = x_k} [ w_s log q_s(y_s) - (the part of w_s log p(y_s | z) that is free of z) ],
    so that  log R(theta) = sum_k [ gain_k + phi_k(x_k'theta) ].
    """

    def __init__(self, family: Family, covariate_shape: tuple[int, ...]) -> None:
        self.x = GrowingRows(covariate_shape)
        self.y = GrowingRows(family.observation_shape)
        self.weights = GrowingRows(())
        self.log_q = GrowingRows(())
        self.covariate = GrowingRows(())
        self.merged = MergedData(family)
        self._gains = np.zeros(8)
        self._number_of: dict[bytes, int] = {}

    def __len__(self) -> int:
        return len(self.x.rows)

    @property
    def gains(self) -> Array:
        """gain_k of every distinct covariate; a view, do not write."""
        return self._gains[: self.merged.count]

    def number(self, x: Array) -> int | None:
        """The number of a covariate seen before, by exact equality."""
        return self._number_of.get(x.tobytes())

    def embed(self, basis: Basis, x: Array) -> tuple[Basis, Embedded]:
        """The basis including x, and x in it; nothing is recorded."""
        index = self.number(x)
        if index is None:
            basis = basis.including(x)
            return basis, Embedded(x, basis.coordinates(x[None, :])[0][0], self.merged.count)
        coordinates = self.merged.coordinates[index]
        missing = basis.dimension - len(coordinates)
        return basis, Embedded(x, np.pad(coordinates, (0, missing)) if missing else coordinates, index)

    def append(self, phi: Embedded, y: Array, weight: float, log_q: float) -> None:
        """Record one observation."""
        self.x.append(phi.x)
        self.y.append(y)
        self.weights.append(weight)
        self.log_q.append(log_q)
        self.covariate.append(phi.index)
        if phi.index == self.merged.count:
            self._number_of[phi.x.tobytes()] = phi.index
            if phi.index == len(self._gains):
                self._gains = np.concatenate([self._gains, np.zeros_like(self._gains)])
        base = self.merged.add(phi, y, weight)
        if weight > 0:  # a weight of zero removes the observation, even where q is zero
            self._gains[phi.index] += weight * log_q - base

    def state(self) -> dict[str, Array]:
        """Everything needed to continue bit for bit."""
        raw = {
            "x": self.x.rows, "y": self.y.rows, "weights": self.weights.rows, "log_q": self.log_q.rows,
            "covariate": self.covariate.rows, "gains": self.gains,
        }  # fmt: skip
        return raw | {f"merged.{key}": value for key, value in self.merged.state().items()}

    def restore(self, state: dict[str, Array]) -> None:
        """The inverse of ``state``."""
        for name in ("x", "y", "weights", "log_q", "covariate"):
            getattr(self, name).restore(state[name])
        self.merged.restore({k.removeprefix("merged."): v for k, v in state.items() if k.startswith("merged.")})
        self._gains = np.concatenate([state["gains"], np.zeros(max(8, len(state["gains"])))])
        self._number_of = {}
        for x, k in zip(self.x.rows, self.covariate.rows, strict=True):
            self._number_of.setdefault(x.tobytes(), int(k))
