r"""Contrasts of two linear predictors, by a certified search in two unknowns.

    C = { (z_1, z_2) in a box :  log sum_k exp M_k(z_1, z_2)  +  sum over nodes u of exp D_u(z_1, z_2)  <= level }

    M_k = c_k + sum_i [ a_ki A(z_i) - s_ki z_i ]                          likelihood ratios: convex
    D_u = c_u + sum_i [ u_i s_i - a_i (A(z_i + u_i) - A(z_i)) ]           tilts of the parameter under test: not convex

What is asked for is the largest F(z_1) - F(z_2) over C, F monotone. C need not be convex, but on a rectangle every
M_k and D_u has an exact minimum: they are sums of functions of one variable, of which the former are convex and the
latter monotone, since A' rises. The log of the sum of the minima bounds the left side from below, so rectangles where
it exceeds the level are empty; the others are halved, best first, until nothing above the best point found is left.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import inf

import numpy as np

from likeset._solver.evaluate import log_sum_exp
from likeset._typing import EPS, Array
from likeset.curves import Curve, curve_heights

MOST_RECTANGLES = 60_000  # looked at in one search; what is left then is taken at its worst
TOLERANCE = 5e-4  # of the width found
SLABS = 32
UNHEARD = 14.0  # nats below the level at which a node is left out: C grows, by next to nothing


@dataclass(frozen=True)
class PairSet:
    """C of the module's text, for the curves e^z and log(1 + e^z).

    ``a`` and ``s`` have one row per voice k, the last axis is the two unknowns.

    ``total_a`` and ``total_s`` are the sums that tilts are made of, ``nodes`` the rows u, ``log_nodes`` the c_u.
    """

    curve: Curve
    constants: Array
    a: Array
    s: Array
    nodes: Array
    log_nodes: Array
    total_a: Array
    total_s: Array
    level: float
    reach: Array

    @property
    def rounding(self) -> float:
        """By how much the left side may be off: its parts are large and cancel."""
        with np.errstate(over="ignore"):
            heights = np.abs(curve_heights(self.curve, self.reach)) + np.abs(curve_heights(self.curve, -self.reach))
            middle = np.abs(curve_heights(self.curve, self.most_likely()))
        # Within C the losses are of the size of the constants: beyond, no accuracy is needed to leave a point out.
        size = np.abs(self.constants).max(initial=0.0) + float(np.abs(self.total_s) @ np.abs(self.most_likely()))
        return 64 * EPS * (1.0 + abs(self.level) + size + float(self.total_a @ np.minimum(heights, 1.0 + middle)))

    def most_likely(self) -> Array:
        """The two z at which the likelihood is largest, within reach."""
        return _minimisers(self.curve, self.total_a, self.total_s, -self.reach, self.reach)

    def values(self, z: Array) -> Array:
        """The left side at points (n, 2)."""
        return self._joined(*self._parts(z, z))

    def floors(self, low: Array, high: Array) -> Array:
        """A lower bound of the left side on rectangles [low, high], each (n, 2)."""
        return self._joined(*self._parts(low, high))

    def _parts(self, low: Array, high: Array) -> tuple[Array, Array]:
        with np.errstate(over="ignore", invalid="ignore"):
            ratios = self._ratios(low, high)
            # A(z + u) - A(z) rises with z where u > 0, and falls where u < 0: its largest value is at an end.
            tilts = self._tilts(np.where(self.nodes > 0.0, high[:, None, :], low[:, None, :]))
        return ratios, np.where(np.isnan(tilts), -inf, tilts)

    def _ratios(self, low: Array, high: Array) -> Array:
        at = _minimisers(self.curve, self.a, self.s, low[:, None, :], high[:, None, :])
        return np.asarray(self.constants + (self.a * curve_heights(self.curve, at) - self.s * at).sum(axis=2))

    def _tilts(self, at: Array) -> Array:
        """D_u with the two z of every node at ``at`` (n, number of nodes, 2)."""
        if self.curve is Curve.SOFTPLUS:
            growth = np.log1p(np.expm1(self.nodes) / (1.0 + np.exp(-at)))
        else:
            growth = np.expm1(self.nodes) * np.exp(at)
        return np.asarray(self.log_nodes + (self.nodes * self.total_s - self.total_a * growth).sum(axis=2))

    def _joined(self, ratios: Array, tilts: Array) -> Array:
        return np.logaddexp(log_sum_exp(ratios), log_sum_exp(tilts))

    def enclosed(self) -> tuple[PairSet, Array, Array]:
        """A rectangle that holds C, from the likelihood ratios alone, and C without nodes that say nothing there."""
        low, high = -self.reach, self.reach.copy()
        level = self.level + self.rounding
        with np.errstate(over="ignore", invalid="ignore"):
            for _ in range(4):
                for i in (0, 1):
                    edges = np.linspace(low[i], high[i], SLABS + 1)
                    lows, highs = np.tile(low, (SLABS, 1)), np.tile(high, (SLABS, 1))
                    lows[:, i], highs[:, i] = edges[:-1], edges[1:]
                    alive = np.flatnonzero(log_sum_exp(self._ratios(lows, highs)) <= level)
                    if len(alive) == 0:
                        return self, low, low
                    low[i], high[i] = edges[alive[0]], edges[alive[-1] + 1]
            loudest = self._tilts(np.where(self.nodes > 0.0, low, high)[None])[0]
        heard = ~(loudest < self.level - UNHEARD)
        kept = replace(self, nodes=self.nodes[heard], log_nodes=self.log_nodes[heard])
        return kept, low, high


def _minimisers(curve: Curve, a: Array, s: Array, low: Array, high: Array) -> Array:
    """Where a A(z) - s z is least on [low, high]."""
    with np.errstate(divide="ignore", invalid="ignore"):
        slope = s / a
        free = np.log(slope) if curve is Curve.EXPONENTIAL else np.log(slope) - np.log1p(-slope)
    free = np.where(np.isnan(free), np.where(s > 0, inf, -inf), free)
    return np.clip(np.where((a == 0.0) & (s == 0.0), 0.0, free), low, high)


def largest_difference(target: PairSet, F: Callable[[Array], Array], rising: bool) -> tuple[float, float]:
    """(certified upper bound, attained value) of max F(z_1) - F(z_2) over C; (-inf, -inf) if C is empty.

    ``F`` is vectorised and monotone, rising or falling.
    """
    level = target.level + target.rounding
    target, least, most = target.enclosed()
    if (least == most).all():
        return -inf, -inf
    low, high = least[None, :], most[None, :]
    extent = np.maximum(most - least, 1e-300)

    def ceilings(low: Array, high: Array) -> Array:
        first, second = (high[:, 0], low[:, 1]) if rising else (low[:, 0], high[:, 1])
        return F(first) - F(second)

    best, upper = -inf, inf
    start = target.most_likely()[None, :]
    if float(target.values(start)[0]) <= target.level:
        best = float((F(start[:, 0]) - F(start[:, 1]))[0])
    bounds = ceilings(low, high)
    looked = 0
    scale = float(bounds[0]) - best if best > -inf else float(bounds[0])
    while len(low):
        upper = max(float(bounds.max()), best)
        # The scale of the answer: how far the best point lies from the most likely one.
        if best > -inf:
            scale = max(best - float((F(start[:, 0]) - F(start[:, 1]))[0]), 1e-12 * abs(best))
        if upper - best <= TOLERANCE * scale or looked > MOST_RECTANGLES:
            return upper, best
        # Halve the most promising ones, the side along which they are longer relative to the reach of the whole.
        order = np.argsort(-bounds)[:256]
        rest = np.setdiff1d(np.arange(len(low)), order, assume_unique=True)
        size = high[order] - low[order]
        side = np.argmax(size / extent, axis=1)
        middle = 0.5 * (low[order] + high[order])
        left_high, right_low = high[order].copy(), low[order].copy()
        rows = np.arange(len(order))
        left_high[rows, side], right_low[rows, side] = middle[rows, side], middle[rows, side]
        new_low, new_high = np.concatenate([low[order], right_low]), np.concatenate([left_high, high[order]])
        looked += len(new_low)
        new_bounds = ceilings(new_low, new_high)
        promising = np.argsort(-new_bounds)[:32]
        centre = 0.5 * (new_low + new_high)[promising]
        inside = target.values(centre) <= target.level
        if inside.any():
            best = max(best, float((F(centre[inside, 0]) - F(centre[inside, 1])).max()))
        alive = target.floors(new_low, new_high) <= level
        low, high = np.concatenate([low[rest], new_low[alive]]), np.concatenate([high[rest], new_high[alive]])
        bounds = np.concatenate([bounds[rest], new_bounds[alive]])
        worth = bounds > best
        low, high, bounds = low[worth], high[worth], bounds[worth]
    return best, best
