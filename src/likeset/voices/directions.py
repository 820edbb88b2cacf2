r"""Directional voices at work: how far every announced contrast has been measured, by sums that grow with the rows.

For noise whose log-density is a quadratic in z, with information i = 1/sigma^2 and response y, the voice of a contrast
a compares theta with alternatives whose z differs by u v_s at row s,

    R(theta) = ∫ prod_s [ p(y_s | z_s + u v_s) / p(y_s | z_s) ]^{w_s} dN(u; 0, 1/(i lambda))
    log R    = i (b - g'theta)^2 / (2 (Q + lambda)) + log(lambda / (Q + lambda)) / 2,
    b = sum w_s v_s y_s,   g = sum w_s v_s x_s,   Q = sum w_s v_s^2.

Any v_s known before y_s will do (docs/contrasts.md). Which are good: if all v_s = x_s'w with V w = a / (a'V^-1 a), V
the sum of all x x', then g is parallel to a and the voice hears about a'theta alone. V is not known beforehand, so

    v_s = x_s'P_s [ a / q_s - STEER e_s ],      P_s = (sum_{r <= s} x_r x_r' + ridge I)^-1,   q_s = a'P_s a,
    e_s = g - a (a'P_s g) / q_s:                what g has so far that is not parallel to a; it is steered away.

With x_s in P_s rows of high leverage are damped, which keeps the first rows from deciding. A voice opens when its
contrast has been measured at all, and only then is lambda fixed, in units of the information i_1 that one row brought
so far: lambda = i_1 HORIZONS / 8, the best for about as many rows as that. Nothing here looks at y except b, nor at
sigma where it is unknown: u is measured in sigmas, and i is that of the sigma under test.

    symbol      here
    P, ridge    ``inverse``, ``ridge``
    a           rows of ``contrasts`` in today's basis
    g           ``pulls`` in coordinates; ``loads``, one entry per distinct covariate: g = sum_k load_k x_k
    b, Q        ``targets``, ``squares``
    i_1         ``units``, 0 as long as a voice is closed
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from math import inf
from operator import setitem
from typing import Any

import numpy as np

from likeset._typing import Array, IntArray
from likeset.compiling import kernel
from likeset.embedded import Embedded
from likeset.families.answers import canonical_scale
from likeset.families.base import Family
from likeset.spaces.base import Basis
from likeset.undo import Undo

STEER = 2.0  # 1 to 3 are alike on the diabetes data; 0 is 8 % wider
HORIZONS = np.array([32.0, 512.0, 8192.0, 131072.0])  # rows for which lambda is best; good from a quarter to four times
SHARES = np.array([0.3, 0.35, 0.25, 0.1])  # of these, in what the contrast has
MEASURED = 0.25  # of its variance under the ridge alone, where a contrast's voice opens
ROWS_PER_DIMENSION = 2.0  # that the design must have had by then
_RIDGE = 1e-6  # times |x_1|^2, where there is no bound, or no sigma to compare it with


@dataclass(frozen=True)
class Measured:
    """What the open voices know: one column of ``loads`` and one entry of ``targets`` per contrast; read only.

    z of contrast j is sum_k loads[k, j] z_k, and voice (j, l) is

        scale (targets_j - z)^2 / (2 (squares_j + lambda_jl)) + log(lambda_jl / (squares_j + lambda_jl)) / 2
    """

    which: IntArray
    loads: Array
    targets: Array
    squares: Array
    lambdas: Array
    scale: float

    def only(self, contrast: int) -> Measured:
        """The same of one contrast; nothing if its voice is not open."""
        kept = self.which == contrast
        return Measured(
            self.which[kept], self.loads[:, kept], self.targets[kept], self.squares[kept], self.lambdas[kept],
            self.scale,
        )  # fmt: skip


@kernel()
def tilts_at(
    x: Array, contrasts: Array, before: Array, pulls: Array, inverse: Array, variances: Array, tilts: Array, work: Array
) -> None:
    """Write P after a row at x, and q and v of every contrast: inf and 0 where they cannot be had as numbers.

    ``before`` is P without the row, ``work`` scratch for two vectors of the length of x.
    """
    d = len(x)
    image, solved = work[0], work[1]
    leverage = 1.0
    for i in range(d):
        image[i] = 0.0
    for i in range(d):
        for j in range(d):
            image[j] += before[i, j] * x[i]
    for i in range(d):
        leverage += x[i] * image[i]
    for i in range(d):
        for j in range(d):
            inverse[i, j] = before[i, j] - image[i] * image[j] / leverage
    for i in range(d):
        image[i] /= leverage  # P_s x_s
    for k in range(len(contrasts)):
        for i in range(d):
            solved[i] = 0.0
        for i in range(d):
            a = contrasts[k, i]
            if a != 0.0:  # most entries of most contrasts are
                for j in range(d):
                    solved[j] += a * inverse[i, j]
        q, pulled, direct = 0.0, 0.0, 0.0
        for i in range(d):
            q += solved[i] * contrasts[k, i]
            pulled += solved[i] * pulls[k, i]
            direct += contrasts[k, i] * image[i]
        if not q > 0.0:
            q = math.inf
        aligned, apart = pulled / q, 0.0
        for i in range(d):
            apart += (pulls[k, i] - aligned * contrasts[k, i]) * image[i]
        v = direct / q - STEER * apart
        variances[k], tilts[k] = q, v if math.isfinite(v) else 0.0


@kernel()
def add_measurement(
    x: Array,
    y: float,
    weight: float,
    tilts: Array,
    targets: Array,
    rests: Array,
    squares: Array,
    pulls: Array,
    loads: Array,
) -> None:
    """Add what the row at x says to b, with what rounding takes from it (Neumaier), to Q, g and the row's loads."""
    for k in range(len(tilts)):
        part = weight * tilts[k]
        old, added = targets[k], part * y
        targets[k] = old + added
        if abs(old) >= abs(added):
            rests[k] += (old - targets[k]) + added
        else:
            rests[k] += (added - targets[k]) + old
        squares[k] += part * tilts[k]
        for i in range(len(x)):
            pulls[k, i] += part * x[i]
        loads[k] += part


class Directions:
    """The running sums of the contrasts (differences ``first`` - ``second``) that one sequence announced."""

    def __init__(self, first: Array, second: Array | None, family: Family, bound: float) -> None:
        self._first, self._second = first, second
        self._family = family
        known = canonical_scale(family)
        self._scale = 1.0 if known is None else float(known)
        self._basis: Basis | None = None
        m = len(first)
        self._contrasts, self._sizes, self._beyond = np.zeros((m, 0)), np.zeros(m), np.zeros(m)
        # v_s is the same for every sigma that may be tested: where none is known, the ridge cannot be in units of it.
        self.ridge = 1.0 / (self._scale * bound**2) if bound < inf and known is not None else 0.0
        self.inverse = np.zeros((0, 0))
        self.pulls = np.zeros((m, 0))
        self.units = np.zeros(m)
        self.targets, self.rests, self.squares = np.zeros(m), np.zeros(m), np.zeros(m)
        self.rows = 0
        self.count = 0
        self.loads = np.zeros((16, m))

    def remember(self, undo: Undo, phi: Embedded) -> None:
        """Before ``record`` of an observation at phi: keep what it will change."""
        undo.keep(self)
        if phi.index < self.count and not undo.done(self, phi.index):
            undo.when_rolled_back(partial(setitem, self.loads, phi.index, self.loads[phi.index].copy()))
            undo.mark(self, phi.index)

    def record(self, basis: Basis, phi: Embedded, y: Array, weight: float) -> None:
        """One observation at phi, which ``basis`` includes."""
        x = np.array(phi.coordinates)
        tilts, _ = self._tilts(basis, x)
        self._place(phi.index)
        if weight > 0.0 and tilts.any():
            a, s, _ = phi.law_or(self._family).statistics(y)
            self.targets, self.rests = self.targets.copy(), self.rests.copy()
            self.squares, self.pulls = self.squares.copy(), self.pulls.copy()
            sums = self.targets, self.rests, self.squares, self.pulls, self.loads[phi.index]
            add_measurement(x, float(s) / float(a), weight, tilts, *sums)

    def _tilts(self, basis: Basis, x: Array) -> tuple[Array, Array]:
        """v_s and q_s of every contrast, from the design alone; the row enters P."""
        self._embed(basis, x)
        inverse, variance, tilts = np.empty_like(self.inverse), np.empty_like(self.units), np.empty_like(self.units)
        tilts_at(x, self._contrasts, self.inverse, self.pulls, inverse, variance, tilts, np.empty((2, len(x))))
        self.inverse = inverse
        self.rows += 1
        opened = self.units > 0.0
        if opened.all():
            return tilts, variance
        known = len(x) - self.ridge * float(np.trace(inverse))  # dimensions that the design has measured
        with np.errstate(all="ignore"):  # numbers near the end of the range: the voice stays silent
            variance = variance + self._beyond / self.ridge  # what no row has touched is known from the ridge alone
            ready = ~opened & (variance < MEASURED * self._sizes / self.ridge)
            if self.rows > ROWS_PER_DIMENSION * known and ready.any():
                self.units = np.where(ready, 1.0 / (variance * max(self.rows - known, 1.0)), self.units)
        return np.where(opened, tilts, 0.0), variance

    def _embed(self, basis: Basis, x: Array) -> None:
        """Contrasts in the basis, and room in P for its new vectors."""
        d = len(x)
        if self.ridge == 0.0:
            self.ridge = _RIDGE * float(x @ x)
        if basis is not self._basis:
            inside, outside = basis.coordinates(self._first)
            squares = outside**2
            if self._second is not None:
                other, sticking = basis.coordinates(self._second)
                inside, squares = inside - other, squares + sticking**2
            self._basis, self._contrasts, self._beyond = basis, np.ascontiguousarray(inside), squares
            self._sizes = np.einsum("ij,ij->i", inside, inside) + squares
        if len(self.inverse) < d:
            with np.errstate(divide="ignore", invalid="ignore"):
                grown = np.eye(d) / self.ridge
            grown[: len(self.inverse), : len(self.inverse)] = self.inverse
            self.inverse = grown
            self.pulls = np.pad(self.pulls, ((0, 0), (0, d - self.pulls.shape[1])))

    def _place(self, index: int) -> None:
        if index >= len(self.loads):
            self.loads = np.concatenate([self.loads, np.zeros_like(self.loads)])
        if index >= self.count:
            self.loads[index] = 0.0
            self.count = index + 1

    def measured(self) -> Measured:
        """What the open voices know now; later observations do not change it."""
        (which,) = np.nonzero(self.units > 0.0)
        lambdas = self.units[which, None] * (HORIZONS / 8.0)
        targets = (self.targets + self.rests)[which]
        return Measured(which, self.loads[: self.count, which], targets, self.squares[which], lambdas, self._scale)

    def state(self) -> dict[str, Array]:
        """Everything needed to continue bit for bit."""
        return {
            "ridge": np.array(self.ridge), "inverse": self.inverse, "pulls": self.pulls, "units": self.units,
            "targets": self.targets, "rests": self.rests, "squares": self.squares, "rows": np.array(float(self.rows)),
            "loads": self.loads[: self.count],
        }  # fmt: skip

    def restore(self, state: dict[str, Array]) -> None:
        """The inverse of ``state``; ValueError if it is not that of these contrasts."""
        m, d = len(self._first), len(state["inverse"])
        shapes: dict[str, tuple[Any, ...]] = {
            "inverse": (d, d), "pulls": (m, d), "units": (m,), "targets": (m,), "rests": (m,), "squares": (m,),
            "loads": (len(state["loads"]), m),
        }  # fmt: skip
        for name, shape in shapes.items():
            if state[name].shape != shape or not np.isfinite(state[name]).all():
                raise ValueError(f"{name} has shape {state[name].shape}, not {shape}, or is not finite")
        for name in ("inverse", "pulls", "units", "targets", "rests", "squares"):
            setattr(self, name, state[name].astype(np.float64, order="C"))
        self.ridge, self.rows, self.count = float(state["ridge"]), int(state["rows"]), len(state["loads"])
        self.loads = np.concatenate([state["loads"], np.zeros((16, m))])
