r"""Directional voices where the log-density is no quadratic: counts, proportions and lifetimes with covariates.

For an exponential family, -log p(y | z) = a A(z) - s z up to a constant, the voice of a contrast is

    R(theta) = sum_u nu_u exp sum_r [ u v_r s_r - a_r (A(z_r + u v_r) - A(z_r)) ],        z_r = x_r'theta (+ offset)

with v_r known before y_r, and a finite mixture nu over effects u. No sums suffice: rows are kept, with their v.

v_r is that of :mod:`~likeset.voices.directions` for rows sqrt(i_r) x_r, i_r being Fisher's information of the row at
the z believed beforehand, by one Newton step per row: how much it tells depends on where theta is. nu is made of the
same four normal laws, N(0, 1/lambda), cut into cells that grow by a quarter each, with a cell's mass at its middle.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf

import numpy as np
from scipy.special import ndtr

from likeset._typing import Array, IntArray
from likeset.curves import curve_derivatives
from likeset.embedded import Embedded
from likeset.families.answers import information
from likeset.families.base import Family
from likeset.families.shifted import Shifted
from likeset.spaces.base import Basis
from likeset.undo import Undo
from likeset.voices.directions import HORIZONS, SHARES, Directions

_CELLS = 1.25  # of one cell's end to that of the one before
_NEAREST, _FURTHEST = 0.3, 3.5  # deviations of the narrowest and of the widest law, where cells begin and end
_FURTHEST_Z = 30.0  # believed z beyond which information is taken from there
_STEP = 1.0  # of z at most, in one row's Newton step


@dataclass(frozen=True)
class Tilted:
    """What the open voices know; read only, later observations do not change it.

    which      the contrasts whose voices are open
    index      of every row kept: the number of its covariate
    a, s       its statistics times its weight; ``shifts`` the offset that its curve cannot absorb
    tilts      v, one column per open voice
    lambdas    of the laws of u, one row per open voice
    """

    which: IntArray
    index: IntArray
    a: Array
    s: Array
    shifts: Array
    tilts: Array
    lambdas: Array

    def only(self, contrast: int) -> Tilted:
        """The same of one contrast; nothing if its voice is not open."""
        kept = self.which == contrast
        return replace(self, which=self.which[kept], tilts=self.tilts[:, kept], lambdas=self.lambdas[kept])


def effects(lambdas: Array) -> tuple[Array, Array]:
    """The u > 0 of nu, and the log of their masses, the same for -u; what is missing of one is at u = 0."""
    sd = lambdas**-0.5
    first, last = _NEAREST * float(sd.min()), _FURTHEST * float(sd.max())
    count = int(np.ceil(np.log(last / first) / np.log(_CELLS)))
    ends = first * _CELLS ** np.arange(count + 1)
    masses = np.diff(SHARES @ ndtr(ends / sd[:, None]))
    return np.sqrt(ends[:-1] * ends[1:]), np.log(masses)


class Tilts(Directions):
    """The rows and tilts of the contrasts that one sequence announced."""

    def __init__(self, first: Array, family: Family, bound: float) -> None:
        super().__init__(first, None, family, bound)
        self._scale = 1.0  # information is that of every row
        self.ridge = 1.0 / bound**2 if bound < inf else 0.0
        self.believed = np.zeros(0)
        self.kept = 0
        self.numbers = np.zeros(16, dtype=np.int64)
        self.parts = np.zeros((16, 3 + len(first)))  # a, s, shift, and v of every contrast

    def remember(self, undo: Undo, phi: Embedded) -> None:
        """Before ``record``: rows are appended, and all else is replaced."""
        undo.keep(self)

    def record(self, basis: Basis, phi: Embedded, y: Array, weight: float) -> None:
        """One observation at phi, which ``basis`` includes."""
        law, x = phi.law_or(self._family), phi.coordinates
        believed = np.pad(self.believed, (0, len(x) - len(self.believed)))
        z = float(np.clip(x @ believed, -_FURTHEST_Z, _FURTHEST_Z))
        told = float(information(law, np.array([z]))[0])
        root = float(np.sqrt(min(max(told, 1e-12), 1e12))) if told > 0.0 else 1e-6
        with np.errstate(all="ignore"):  # numbers near the end of the range: the voice stays silent
            tilts = self._tilts(basis, root * x)
            self.pulls = self.pulls + weight * tilts[:, None] * (root * x)
            tilts = tilts / root
        self._place(phi.index)
        # Only now is y looked at.
        shift = law.shift if isinstance(law, Shifted) and law.stays_shifted else 0.0
        a, s, _ = (law.family if shift else law).statistics(y)
        if weight > 0.0 and tilts.any():
            self._append(phi.index, np.concatenate([[weight * float(a), weight * float(s), shift], tilts]))
        first = float(curve_derivatives(self._family.curve, np.array([z + shift]))[0][0])  # type: ignore[attr-defined]
        step = weight * (float(s) - float(a) * first) * (self.inverse @ x)
        size = abs(float(x @ step))
        if np.isfinite(step).all():
            believed = believed + step * min(1.0, _STEP / size if size > 0.0 else 1.0)
        self.believed = believed

    def _append(self, index: int, row: Array) -> None:
        if self.kept == len(self.numbers):
            self.numbers = np.concatenate([self.numbers, np.zeros_like(self.numbers)])
            self.parts = np.concatenate([self.parts, np.zeros_like(self.parts)])
        self.numbers[self.kept], self.parts[self.kept] = index, row
        self.kept += 1

    def tilted(self) -> Tilted:
        """What the open voices know now."""
        (which,) = np.nonzero(self.units > 0.0)
        a, s, shifts = self.parts[: self.kept, :3].T
        lambdas = self.units[which, None] * (HORIZONS / 8.0)
        return Tilted(which, self.numbers[: self.kept], a, s, shifts, self.parts[: self.kept, 3:][:, which], lambdas)

    def state(self) -> dict[str, Array]:
        """Everything needed to continue bit for bit."""
        return super().state() | {
            "believed": self.believed, "numbers": self.numbers[: self.kept].astype(np.float64),
            "parts": self.parts[: self.kept],
        }  # fmt: skip

    def restore(self, state: dict[str, Array]) -> None:
        """The inverse of ``state``; ValueError if it is not that of these contrasts."""
        super().restore(state)
        shapes = {
            "believed": (len(state["inverse"]),), "numbers": (len(state["parts"]),),
            "parts": (len(state["numbers"]), self.parts.shape[1]),
        }  # fmt: skip
        for name, shape in shapes.items():
            if state[name].shape != shape or not np.isfinite(state[name]).all():
                raise ValueError(f"{name} has shape {state[name].shape}, not {shape}, or is not finite")
        numbers = state["numbers"]
        if ((numbers < 0) | (numbers >= self.count) | (numbers != np.floor(numbers))).any():
            raise ValueError("rows belong to covariates that there are not")
        self.believed = state["believed"].astype(np.float64)
        self.kept = len(state["numbers"])
        self.numbers = np.concatenate([state["numbers"].astype(np.int64), np.zeros(16, dtype=np.int64)])
        self.parts = np.concatenate([state["parts"].astype(np.float64), np.zeros((16, self.parts.shape[1]))])
