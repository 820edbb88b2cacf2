r"""Directional voices where the log-density is no quadratic: counts, proportions and lifetimes with covariates.

For an exponential family, -log p(y | z) = a A(z) - s z up to a constant, the voice of a contrast is

    R(theta) = sum_u nu_u exp sum_r [ u v_r s_r - a_r (A(z_r + u v_r) - A(z_r)) ],        z_r = x_r'theta (+ offset)

with v_r known before y_r, and a finite mixture nu over effects u. No sums suffice: rows are kept, with their v.

v_r is that of :mod:`~likeset.voices.directions` for rows sqrt(i_r) x_r, i_r being Fisher's information of the row at
the z believed beforehand, by one Newton step per row: how much it tells depends on where theta is. nu is made of the
same four normal laws, N(0, 1/lambda), cut into cells that grow by a quarter each, with a cell's mass at its middle.

Where a covariate comes again and its v have hardly changed, the row takes the v that its covariate had: known before
y_r, too, and rows of the same covariate and v are one, with the sums of their a and s. So what is kept grows with the
number of covariates, and hardly with that of rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from math import inf
from operator import setitem

import numpy as np
from scipy.special import ndtr

from likeset._typing import Array, IntArray
from likeset.curves import Curve, curve_derivatives
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
_ALIKE = 0.1  # of v, or of its typical size 1 / sqrt(i q rows): for so small a change a row takes the former v


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
        self.totals = np.zeros(2)  # sums of a and s
        self.kept = 0
        self.numbers = np.zeros(16, dtype=np.int64)
        self.parts = np.zeros((16, 3 + len(first)))  # a, s, shift, and v of every contrast
        self.latest = np.full(16, -1)  # of every covariate: the number of what was kept last, or -1

    def remember(self, undo: Undo, phi: Embedded) -> None:
        """Before ``record``: rows are appended or added to the latest of their covariate, and all else is replaced."""
        undo.keep(self)
        if phi.index < self.count and not undo.done(self, phi.index):
            number = int(self.latest[phi.index])
            undo.when_rolled_back(partial(setitem, self.latest, phi.index, number))
            if number >= 0:
                undo.when_rolled_back(partial(setitem, self.parts, number, self.parts[number].copy()))
            undo.mark(self, phi.index)

    def record(self, basis: Basis, phi: Embedded, y: Array, weight: float) -> None:
        """One observation at phi, which ``basis`` includes."""
        law, x = phi.law_or(self._family), phi.coordinates
        believed = np.pad(self.believed, (0, len(x) - len(self.believed)))
        shift = law.shift if isinstance(law, Shifted) and law.stays_shifted else 0.0
        asked = float(x @ believed)
        z = self._plausible(asked + shift, len(x)) - shift
        told = float(information(law, np.array([z]))[0])
        root = float(np.sqrt(min(max(told, 1e-12), 1e12))) if told > 0.0 else 1e-6
        with np.errstate(all="ignore"):  # numbers near the end of the range: the voice stays silent
            tilts, variances = self._tilts(basis, root * x)
            tilts = tilts / root
            self._place(phi.index)
            number = self._alike(phi.index, shift, tilts, 1.0 / (root * np.sqrt(variances * self.rows)))
            tilts = tilts if number < 0 else self.parts[number, 3:]
            self.pulls = self.pulls + (weight * root * root) * tilts[:, None] * x
        # Only now is y looked at.
        a, s, _ = (law.family if shift else law).statistics(y)
        if weight > 0.0 and tilts.any():
            if number < 0:
                self._append(phi.index, np.concatenate([[0.0, 0.0, shift], tilts]))
                number = self.kept - 1
            self.parts[number, 0] += weight * float(a)
            self.parts[number, 1] += weight * float(s)
        self.totals = self.totals + weight * np.array([float(a), float(s)])
        first = float(curve_derivatives(self._family.curve, np.array([z + shift]))[0][0])  # type: ignore[attr-defined]
        image = self.inverse @ x
        with np.errstate(all="ignore"):
            move = weight * (float(s) - float(a) * first)
            size = abs(move * float(x @ image))
            move *= min(1.0, _STEP / size if size > 0.0 else 1.0)
            along = float(x @ image)
            given_up = (z - asked) / along if along > 0.0 else 0.0  # what is implausible goes first
            step = image * (move + given_up)
        if np.isfinite(step).all():
            believed = believed + step
        self.believed = believed

    def _plausible(self, z: float, dimension: int) -> float:
        """A believed z, not too far from that of all outcomes so far, and further where they are many.

        Without a bound the first estimates may be anything. A row that is believed to tell e^10 times as much as it
        does would decide v for ever.
        """
        a, s = self.totals
        if a > 0.0:
            if self._family.curve is Curve.EXPONENTIAL:  # type: ignore[attr-defined]
                middle = float(np.log((s + 0.5) / a))
            else:
                middle = float(np.log((s + 0.5) / (max(a - s, 0.0) + 0.5)))
            reach = 1.0 + float(np.log1p(self.rows / dimension))
            z = min(max(z, middle - reach), middle + reach)
        return min(max(z, -_FURTHEST_Z), _FURTHEST_Z)

    def _place(self, index: int) -> None:
        if index >= len(self.latest):
            self.latest = np.concatenate([self.latest, np.full(len(self.latest), -1)])
        if index >= self.count:
            self.latest[index] = -1
        super()._place(index)

    def _alike(self, index: int, shift: float, tilts: Array, sizes: Array) -> int:
        """The number of what was kept last of the covariate, if its v are about these; -1 if not."""
        number = int(self.latest[index])
        if number < 0 or self.parts[number, 2] != shift:
            return -1
        change = np.abs(self.parts[number, 3:] - tilts)
        return number if (change <= _ALIKE * np.maximum(np.abs(tilts), sizes)).all() else -1

    def _append(self, index: int, row: Array) -> None:
        if self.kept == len(self.numbers):
            self.numbers = np.concatenate([self.numbers, np.zeros_like(self.numbers)])
            self.parts = np.concatenate([self.parts, np.zeros_like(self.parts)])
        self.numbers[self.kept], self.parts[self.kept], self.latest[index] = index, row, self.kept
        self.kept += 1

    def tilted(self) -> Tilted:
        """What the open voices know now."""
        (which,) = np.nonzero(self.units > 0.0)
        a, s, shifts = self.parts[: self.kept, :3].T.copy()  # later rows are added to these
        lambdas = self.units[which, None] * (HORIZONS / 8.0)
        return Tilted(which, self.numbers[: self.kept], a, s, shifts, self.parts[: self.kept, 3:][:, which], lambdas)

    def state(self) -> dict[str, Array]:
        """Everything needed to continue bit for bit."""
        return super().state() | {
            "believed": self.believed, "totals": self.totals, "numbers": self.numbers[: self.kept].astype(np.float64),
            "parts": self.parts[: self.kept],
        }  # fmt: skip

    def restore(self, state: dict[str, Array]) -> None:
        """The inverse of ``state``; ValueError if it is not that of these contrasts."""
        super().restore(state)
        shapes = {
            "believed": (len(state["inverse"]),), "totals": (2,), "numbers": (len(state["parts"]),),
            "parts": (len(state["numbers"]), self.parts.shape[1]),
        }  # fmt: skip
        for name, shape in shapes.items():
            if state[name].shape != shape or not np.isfinite(state[name]).all():
                raise ValueError(f"{name} has shape {state[name].shape}, not {shape}, or is not finite")
        numbers = state["numbers"]
        if ((numbers < 0) | (numbers >= self.count) | (numbers != np.floor(numbers))).any():
            raise ValueError("rows belong to covariates that there are not")
        self.believed, self.totals = (state[name].astype(np.float64) for name in ("believed", "totals"))
        self.kept = len(state["numbers"])
        self.numbers = np.concatenate([state["numbers"].astype(np.int64), np.zeros(16, dtype=np.int64)])
        self.parts = np.concatenate([state["parts"].astype(np.float64), np.zeros((16, self.parts.shape[1]))])
        self.latest = np.full(self.count + 16, -1)
        self.latest[self.numbers[: self.kept]] = np.arange(self.kept)  # the last one of equal numbers stays
