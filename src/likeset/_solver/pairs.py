r"""Contrasts of two linear predictors, by a certified search in two unknowns.

    C = { (z_1, z_2) in a box :  log sum_k exp M_k(z_1, z_2)  +  sum over nodes u of exp D_u(z_1, z_2)  <= level }

    M_k = c_k + sum_i [ a_ki A(z_i) - s_ki z_i ]                          likelihood ratios: convex
    D_u = c_u + sum_i [ u_i s_i - a_i (A(z_i + u_i) - A(z_i)) ]           tilts of the parameter under test: not convex

What is asked for is the largest F(z_1) - F(z_2) over C, F monotone, or whether C has a point with z_1 >= z_2 at all.
C need not be convex, but on a rectangle every M_k and D_u has an exact minimum: they are sums of functions of one
variable, of which the former are convex and the latter monotone, since A' rises. The log of the sum of the minima
bounds the left side from below, so rectangles where it exceeds the level are empty; the others are halved, best first,
until nothing above the best point found is left.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import inf

import numpy as np

from likeset._solver.evaluate import log_sum_exp
from likeset._typing import EPS, Array, IntArray
from likeset.curves import Curve, curve_heights

MOST_IN_ORDER = 4_000  # the same, where only an order is asked for
MOST_RECTANGLES = 60_000  # looked at in one search; what is left then is taken at its worst
TOLERANCE = 5e-4  # of the width found
_BISECTIONS = 60
UNHEARD = 14.0  # nats below the level at which a node is left out: C grows, by next to nothing


@dataclass(frozen=True)
class PairSet:
    """C of the module's text, for any of the three curves A.

    ``a`` and ``s`` have one row per voice k, the last axis is the two unknowns.

    ``total_a`` and ``total_s`` are the sums that tilts are made of, ``nodes`` the rows u, ``log_nodes`` the c_u.
    ``low`` and ``high`` are the box, which stands for the whole plane if it is ``endless``.
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
    low: Array
    high: Array
    endless: bool = False

    @property
    def rounding(self) -> float:
        """By how much the left side may be off: its parts are large and cancel."""
        with np.errstate(over="ignore"):
            heights = np.abs(curve_heights(self.curve, self.low)) + np.abs(curve_heights(self.curve, self.high))
            middle = np.abs(curve_heights(self.curve, self.most_likely()))
        # Within C the losses are of the size of the constants: beyond, no accuracy is needed to leave a point out.
        size = np.abs(self.constants).max(initial=0.0) + float(np.abs(self.total_s) @ np.abs(self.most_likely()))
        return 64 * EPS * (1.0 + abs(self.level) + size + float(self.total_a @ np.minimum(heights, 1.0 + middle)))

    def most_likely(self) -> Array:
        """The two z at which the likelihood is largest, within the box."""
        return _minimisers(self.curve, self.total_a, self.total_s, self.low, self.high)

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
        if self.curve is Curve.QUADRATIC:
            growth = self.nodes * (at + 0.5 * self.nodes)
        elif self.curve is Curve.SOFTPLUS:
            growth = np.log1p(np.expm1(self.nodes) / (1.0 + np.exp(-at)))
        else:
            growth = np.expm1(self.nodes) * np.exp(at)
        return np.asarray(self.log_nodes + (self.nodes * self.total_s - self.total_a * growth).sum(axis=2))

    def _joined(self, ratios: Array, tilts: Array) -> Array:
        return np.logaddexp(log_sum_exp(ratios), log_sum_exp(tilts))

    def enclosed(self) -> tuple[PairSet, Array, Array] | None:
        """C without nodes that say nothing in it, and a rectangle that holds it; None if the ratios leave nothing."""
        found = self._ranges()
        if found is None:
            return None
        low, high = found
        with np.errstate(over="ignore", invalid="ignore"):
            loudest = self._tilts(np.where(self.nodes > 0.0, low, high)[None])[0]
        heard = ~(loudest < self.level - UNHEARD)
        return replace(self, nodes=self.nodes[heard], log_nodes=self.log_nodes[heard]), low, high

    def _ranges(self) -> tuple[Array, Array] | None:
        """Of either z, where every ratio stays below the level if the other z suits it best: M_k is a convex sum."""
        low, high = np.broadcast_to(self.low, self.a.shape), np.broadcast_to(self.high, self.a.shape)
        best = _minimisers(self.curve, self.a, self.s, low, high)

        def height(at: Array) -> Array:
            with np.errstate(over="ignore", invalid="ignore"):
                return np.asarray(self.a * curve_heights(self.curve, at) - self.s * at)

        least = height(best)
        limit = self.level + self.rounding - self.constants[:, None] - least[:, ::-1]
        if (least > limit).any():
            return None
        if self.curve is Curve.QUADRATIC:
            with np.errstate(divide="ignore", invalid="ignore"):
                vertex = np.where(self.a > 0.0, self.s / self.a, 0.0)
                reach = np.sqrt(np.maximum(2.0 * limit / self.a + vertex**2, 0.0)) * (1.0 + 1e-12)
            reach = np.where((self.a > 0.0) & np.isfinite(reach), reach + 8 * EPS * np.abs(vertex), inf)
            return np.maximum(low, vertex - reach).max(axis=0), np.minimum(high, vertex + reach).min(axis=0)
        ends = []
        for edge in (low, high):
            inside, outside = best.copy(), edge.astype(np.float64).copy()
            reached = height(outside) <= limit
            for _ in range(_BISECTIONS):
                middle = 0.5 * (inside + outside)
                within = height(middle) <= limit
                inside, outside = np.where(within, middle, inside), np.where(within, outside, middle)
            ends.append(np.where(reached, edge, outside))
        return ends[0].max(axis=0), ends[1].min(axis=0)


def _minimisers(curve: Curve, a: Array, s: Array, low: Array, high: Array) -> Array:
    """Where a A(z) - s z is least on [low, high]."""
    with np.errstate(divide="ignore", invalid="ignore"):
        slope = s / a
        if curve is Curve.QUADRATIC:
            free = slope
        else:
            free = np.log(slope) if curve is Curve.EXPONENTIAL else np.log(slope) - np.log1p(-slope)
    free = np.where(np.isnan(free), np.where(s > 0, inf, -inf), free)
    return np.clip(np.where((a == 0.0) & (s == 0.0), 0.0, free), low, high)


def largest_difference(target: PairSet, F: Callable[[Array], Array], rising: bool) -> tuple[float, float]:
    """(certified upper bound, attained value) of max F(z_1) - F(z_2) over C; (-inf, -inf) if C is empty.

    ``F`` is vectorised and monotone, rising or falling.
    """
    level, ends = target.level + target.rounding, (target.low, target.high)
    enclosed = target.enclosed()
    if enclosed is None:
        return -inf, -inf
    target, least, most = enclosed
    low, high = least[None, :], most[None, :]
    extent = np.maximum(most - least, 1e-300)

    def ceilings(low: Array, high: Array) -> Array:
        if target.endless:  # what reaches the end of the box goes on
            low, high = np.where(low <= ends[0], -inf, low), np.where(high >= ends[1], inf, high)
        first, second = (high[:, 0], low[:, 1]) if rising else (low[:, 0], high[:, 1])
        return F(first) - F(second)

    best, upper = -inf, inf
    start = target.most_likely()[None, :]
    if float(target.values(start)[0]) <= target.level:
        best = float((F(start[:, 0]) - F(start[:, 1]))[0])
    bounds = ceilings(low, high)
    if bounds[0] == inf:
        return inf, best
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
        new_low, new_high = _halved(low[order], high[order], 0.5 * (low[order] + high[order]), side)
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


def surely_below(target: PairSet) -> bool:
    """Whether C surely has no point with z_1 >= z_2; False if it has one, or if the search does not tell in time."""
    level = target.level + target.rounding
    likely = target.most_likely()
    # Most often one point tells: the likeliest of those on the diagonal.
    total_a, total_s = target.total_a.sum(keepdims=True), target.total_s.sum(keepdims=True)
    ends = target.low.max(keepdims=True), target.high.min(keepdims=True)
    if likely[0] >= likely[1] or ends[0] > ends[1]:
        return False
    together = _minimisers(target.curve, total_a, total_s, *ends)
    if target.values(np.repeat(together, 2)[None, :])[0] <= level:
        return False
    enclosed = target.enclosed()
    if enclosed is None:
        return True
    target, least, most = enclosed
    low, high = least[None, :], most[None, :]
    looked = 0
    while True:
        alive = high[:, 0] >= low[:, 1]
        alive[alive] = target.floors(low[alive], high[alive]) <= level
        low, high = low[alive], high[alive]
        looked += len(low)
        if len(low) == 0:
            return True
        middle = 0.5 * (low + high)
        highest_on_diagonal, lowest = np.minimum(high[:, 0], high[:, 1]), np.maximum(low[:, 0], low[:, 1])
        diagonal = np.repeat(0.5 * (lowest + np.maximum(highest_on_diagonal, lowest))[:, None], 2, axis=1)
        if looked > MOST_IN_ORDER or (target.values(diagonal) <= level).any():
            return False
        low, high = _halved(low, high, middle, np.argmax(high - low, axis=1))


def _halved(low: Array, high: Array, middle: Array, side: IntArray) -> tuple[Array, Array]:
    """Both halves of every rectangle, cut along ``side``."""
    rows = np.arange(len(low))
    left_high, right_low = high.copy(), low.copy()
    left_high[rows, side], right_low[rows, side] = middle[rows, side], middle[rows, side]
    return np.concatenate([low, right_low]), np.concatenate([left_high, high])
