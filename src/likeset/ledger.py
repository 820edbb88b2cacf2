"""The ledger: an append-only record of every observation, its weight and its forecast. The single truth."""

from __future__ import annotations

import numpy as np

from likeset.evidence_sums import CompensatedSums, EvidenceSums
from likeset.families.base import CurveFamily, Family
from likeset.merged import MergedData
from likeset.spaces.base import Embedded
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
    so that  log R(theta) = sum_k [ gain_k + phi_k(x_k'theta) ]. The part free of z is log p at a reference near y, so
    that both are of the size of the evidence: :mod:`likeset.evidence_sums`.
    """

    def __init__(self, family: Family, covariate_shape: tuple[int, ...]) -> None:
        self.x = GrowingRows(covariate_shape)
        self.y = GrowingRows(family.observation_shape)
        self.weights = GrowingRows(())
        self.log_q = GrowingRows(())
        self.covariate = GrowingRows(())
        self.merged = MergedData(family, EvidenceSums(family) if isinstance(family, CurveFamily) else None)
        self._gains = CompensatedSums()
        self._number_of: dict[bytes, int] = {}

    def __len__(self) -> int:
        return len(self.x.rows)

    @property
    def gains(self) -> Array:
        """gain_k of every distinct covariate; a view, do not write."""
        return self._gains.values(self.merged.count)

    def number(self, x: Array) -> int | None:
        """The number of a covariate seen before, by exact equality."""
        return self._number_of.get(x.tobytes())

    def append(self, phi: Embedded, y: Array, weight: float, log_q: float) -> None:
        """Record one observation."""
        self.x.append(phi.x)
        self.y.append(y)
        self.weights.append(weight)
        self.log_q.append(log_q)
        self.covariate.append(phi.index)
        if phi.index == self.merged.count:
            self._number_of[phi.x.tobytes()] = phi.index
        base = self.merged.add(phi, y, weight)
        # A weight of zero removes the observation, even where q is zero.
        self._gains.add(phi.index, weight * log_q - base if weight > 0 else 0.0)

    def state(self) -> dict[str, Array]:
        """Everything needed to continue bit for bit."""
        raw = {
            "x": self.x.rows, "y": self.y.rows, "weights": self.weights.rows, "log_q": self.log_q.rows,
            "covariate": self.covariate.rows,
        }  # fmt: skip
        raw |= {name: part[: self.merged.count] for name, part in self._gains.state("gains").items()}
        return raw | {f"merged.{key}": value for key, value in self.merged.state().items()}

    def restore(self, state: dict[str, Array]) -> None:
        """The inverse of ``state``."""
        for name in ("x", "y", "weights", "log_q", "covariate"):
            getattr(self, name).restore(state[name])
        merged = {k.removeprefix("merged."): v for k, v in state.items() if k.startswith("merged.")}
        if isinstance(self.merged.sums, EvidenceSums) and "origins" not in merged:
            self._merge_again(merged)
        else:
            self.merged.restore(merged)
            self._gains.restore(state, "gains")
        self._number_of = {}
        for x, k in zip(self.x.rows, self.covariate.rows, strict=True):
            self._number_of.setdefault(x.tobytes(), int(k))

    def _merge_again(self, merged: dict[str, Array]) -> None:
        """Sums from the rows: those in files of old were counted from zero, and may have lost the evidence."""
        self.merged.restore_coordinates(merged)
        rows = (self.covariate.rows, self.y.rows, self.weights.rows, self.log_q.rows)
        for k, y, weight, log_q in zip(*rows, strict=True):
            base = self.merged.sums.add(int(k), y, float(weight))
            self._gains.add(int(k), float(weight) * float(log_q) - base if weight > 0 else 0.0)
