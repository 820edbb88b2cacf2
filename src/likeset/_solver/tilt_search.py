r"""Where a'theta is about largest with log R <= level, and where log R is about least with a'theta = b: good points.

    log R(theta) = log [ sum_k exp M_k(theta) + sum_u exp D_u(theta) ],      see :mod:`~likeset._solver.tilt_terms`

Newton's method finds them, and proves nothing; a proof starts from such a point (:mod:`~likeset._solver.tilt_proof`).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np

from likeset._solver.evaluate import log_sum_exp
from likeset._solver.tilt_bends import second_derivatives
from likeset._solver.tilt_sides import Side
from likeset._solver.tilt_terms import Ratios
from likeset._typing import Array
from likeset.parts import worked_out

STEPS = 40
_CLOSE = 1e-5  # of the size of a Newton step, where the point is good enough to prove something from
_UNHEARD = 20.0  # nats below the loudest: left out


@dataclass(frozen=True)
class There:
    """Both kinds of voices at one theta: logs of their sums, shares within, gradients, and sizes for rounding."""

    theta: Array
    z: Array
    log_ratios: float
    log_tilts: float
    of_ratios: Array
    of_tilts: Array
    slopes_of_ratios: Array
    slopes_of_tilts: Array
    sizes: float

    @worked_out
    def height(self) -> float:
        """log R."""
        return float(np.logaddexp(self.log_ratios, self.log_tilts))

    @worked_out
    def part(self) -> float:
        """The share of the M_k in R."""
        return float(np.exp(self.log_ratios - self.height))

    def slope(self, q: float) -> Array:
        """The gradient of Phi where the M_k have the weight q."""
        return q * (self.of_ratios @ self.slopes_of_ratios) + (1.0 - q) * (self.of_tilts @ self.slopes_of_tilts)


class Search:
    """log R with the u of one side of a contrast; ``scale`` is a metric, of rows W: |W delta|."""

    def __init__(self, ratios: Ratios, side: Side, scale: Array) -> None:
        self.ratios, self.side, self.scale = ratios, side, scale
        self._unit = np.linalg.inv(scale)

    def at(self, theta: Array) -> There:
        """All but the Hessian at one theta."""
        values, slopes, sizes = self.ratios.at(theta)
        z = self.ratios.X @ theta
        heights, tilt_slopes, tilt_sizes = self.side.at(z)
        loud = heights > heights.max(initial=-inf) - _UNHEARD
        log_ratios, log_loud = float(log_sum_exp(values)), float(log_sum_exp(heights[loud]))
        log_tilts = float(np.logaddexp(log_loud, self.side.tilt.silent))
        # Of those that say nothing: their slopes may be no numbers, and nothing times these would be none either.
        of_tilts = np.where(loud, np.exp(heights - log_tilts), 0.0)
        tilt_slopes = np.where(loud[:, None], tilt_slopes, 0.0)
        rounding = sizes + float(tilt_sizes[loud].max(initial=0.0))
        return There(
            theta, z, log_ratios, log_tilts, np.exp(values - log_ratios), of_tilts, slopes, tilt_slopes, rounding
        )  # fmt: skip

    def _newton(self, there: There) -> tuple[Array, Array]:
        """The gradient of log R, and root with root root' the inverse of its Hessian, made positive definite.

        The Hessian is that of the mixture with the shares there, and how far the slopes are apart.
        """
        X, q = self.ratios.X, there.part
        bend = q * second_derivatives(self.ratios.curve, self.ratios.curved(there.of_ratios), there.z)
        if q < 1.0:
            bend = bend + (1.0 - q) * self.side.bends(there.z, there.of_tilts)[0]
        g = there.slope(q)
        hessian = (X * bend[:, None]).T @ X - np.outer(g, g)
        for part, shares, slopes in (
            (q, there.of_ratios, there.slopes_of_ratios), (1.0 - q, there.of_tilts, there.slopes_of_tilts),
        ):  # fmt: skip
            hessian += part * (slopes * shares[:, None]).T @ slopes
        w, E = np.linalg.eigh(self._unit.T @ hessian @ self._unit)
        w = np.maximum(w, 1e-6 * max(float(w.max()), 1e-6))
        return g, (self._unit @ E) / np.sqrt(w)

    def climbed(self, a: Array, theta: Array, level: float) -> There:
        """Where a'theta is about largest with log R <= level."""
        there = self.at(theta)
        for _ in range(STEPS):
            g, root = self._newton(there)
            ga, aa = root.T @ g, root.T @ a
            Hg, length = root @ ga, float(np.linalg.norm(aa))
            room = 2.0 * (level - there.height) + float(ga @ ga)
            step = -Hg if room <= 0.0 else root @ aa * (np.sqrt(room) / length) - Hg
            moved = self._moved(there, step, max(level + 2.0, there.height))
            if moved is None:
                return there
            there = moved
            if np.linalg.norm(self.scale @ step) < _CLOSE * 10 and abs(float(a @ step)) <= _CLOSE * length:
                break
        return there

    def least(self, a: Array, b: float, theta: Array) -> There | None:
        """Where log R is about least with a'theta = b, from a theta for which that holds; None if it is infinite."""
        there = self.at(theta)
        if not np.isfinite(there.height):
            return None
        for _ in range(STEPS):
            g, root = self._newton(there)
            ga, aa = root.T @ g, root.T @ a
            # Within the plane, and what rounding has left of the way to it.
            along = aa / float(aa @ aa)
            step = root @ (along * (b - float(a @ there.theta) + float(aa @ ga)) - ga)
            rest = ga - float(aa @ ga) * along
            if float(rest @ rest) <= _CLOSE * (1.0 + abs(there.height)) * 1e-2:
                break
            moved = self._moved(there, step, there.height)
            if moved is None:
                break
            there = moved
        return there

    def _moved(self, there: There, step: Array, limit: float) -> There | None:
        """After the step, or the first half of it after which log R is below the limit."""
        for halvings in range(30):
            moved = self.at(there.theta + 0.5**halvings * step)
            if moved.height <= limit:
                return moved
        return None
