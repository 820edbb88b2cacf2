r"""The set of two linear predictors: convex in the two means, whatever it is in the predictors.

    C = { (z_1, z_2) in a box :  log R = log [ sum_k exp M_k + sum over nodes u of exp D_u ]  <= level }

    M_k = c_k + sum_i [ a_ki A(z_i) - s_ki z_i ]                          likelihood ratios
    D_u = c_u + sum_i [ u_i s_i - a_i (A(z_i + u_i) - A(z_i)) ]           tilts of the parameter under test

D_u is not convex in z. But let m = A'(z), the mean, and b = e^u - 1:

    curve          m             a A(z) - s z                            A(z + u) - A(z)
    QUADRATIC      z             a m^2 / 2 - s m                         u m + u^2 / 2
    EXPONENTIAL    e^z           a m - s log m                           b m
    SOFTPLUS       1/(1+e^-z)    -(a - s) log(1 - m) - s log m           log(1 + b m)

In m the left one is convex, for 0 <= s <= a, and the right one concave. So M_k and D_u are convex in (m_1, m_2), log R
is, being their log-sum-exp, and C is a convex set of means. Two things follow. Tangents bound C from outside
(:mod:`~likeset._solver.planar`). And where the least log R on the line "no difference", m_1 = m_2, or on another border
between the two means exceeds the level, C lies on one side of it (:mod:`~likeset._solver.borders`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf

import numpy as np

from likeset._solver.evaluate import log_sum_exp
from likeset._typing import EPS, Array
from likeset.curves import Curve, curve_derivatives, curve_heights
from likeset.parts import worked_out

UNHEARD = 14.0  # nats below the level at which a node is left out: C grows, by next to nothing
_BISECTIONS = 60
_FAR = -1e300  # instead of log 0


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

    @worked_out
    def rounding(self) -> float:
        """By how much the left side may be off: its parts are large and cancel."""
        with np.errstate(over="ignore"):
            heights = np.abs(curve_heights(self.curve, self.low)) + np.abs(curve_heights(self.curve, self.high))
            middle = np.abs(curve_heights(self.curve, self.most_likely()))
        # Within C the losses are of the size of the constants: beyond, no accuracy is needed to leave a point out.
        # The unit of rates is anybody's: e^z may be tiny and a huge.
        near = 4.0 * middle if self.curve is Curve.EXPONENTIAL else 1.0 + middle
        lengths = np.abs(self.most_likely()) + np.abs(self.nodes).max(axis=0, initial=0.0)
        size = np.abs(self.constants).max(initial=0.0) + float(np.abs(self.total_s) @ lengths)
        return 64 * EPS * (1.0 + abs(self.level) + size + float(self.total_a @ np.minimum(heights, near)))

    def most_likely(self) -> Array:
        """The two z at which the likelihood is largest, within the box."""
        return minimisers(self.curve, self.total_a, self.total_s, self.low, self.high)

    def values(self, z: Array) -> Array:
        """The left side at points z (n, 2)."""
        with np.errstate(over="ignore", invalid="ignore"):
            ratios = self.constants + (self.a * curve_heights(self.curve, z)[:, None, :] - self.s * z[:, None, :]).sum(
                axis=2
            )
            tilts = self._tilts(z[:, None, :])
        return np.logaddexp(log_sum_exp(ratios), log_sum_exp(np.where(np.isnan(tilts), -inf, tilts)))

    def _tilts(self, at: Array) -> Array:
        """D_u with the two z of every node at ``at`` (n, number of nodes, 2)."""
        if self.curve is Curve.QUADRATIC:
            growth = self.nodes * (at + 0.5 * self.nodes)
        elif self.curve is Curve.SOFTPLUS:
            growth = np.log1p(np.expm1(self.nodes) / (1.0 + np.exp(-at)))
        else:
            growth = np.expm1(self.nodes) * np.exp(at)
        return np.asarray(self.log_nodes + (self.nodes * self.total_s - self.total_a * growth).sum(axis=2))

    # -- in the means -------------------------------------------------------------------------------------------

    def means(self, z: Array) -> Array:
        """m = A'(z), and its limits at the ends of a box without end."""
        with np.errstate(over="ignore"):
            m = np.asarray(curve_derivatives(self.curve, z)[0])
        if not self.endless or self.curve is Curve.QUADRATIC:
            return m
        top = 1.0 if self.curve is Curve.SOFTPLUS else inf
        return np.where(z <= self.low, 0.0, np.where(z >= self.high, top, m))

    def means_around(self, low: Array, high: Array) -> tuple[Array, Array]:
        """The range of the means whose z are in [low, high], a little further for the rounding."""
        first, last = self.means(low), self.means(high)
        first, last = first - 4 * EPS * np.abs(first), last + 4 * EPS * np.abs(last)
        return first, np.minimum(last, 1.0) if self.curve is Curve.SOFTPLUS else last

    def predictors(self, m: Array) -> Array:
        """z of means; its limits where the mean is at the end of its range."""
        if self.curve is Curve.QUADRATIC:
            return m
        with np.errstate(divide="ignore"):
            return np.log(m) if self.curve is Curve.EXPONENTIAL else np.log(m) - np.log1p(-m)

    @worked_out
    def _in_means(self) -> tuple[Array, Array, Array]:
        """Failures a - s of every voice, c_u + u's of every node, and what multiplies m in its tilt."""
        fixed = self.log_nodes + self.nodes @ self.total_s
        if self.curve is Curve.QUADRATIC:
            return self.a, fixed - 0.5 * self.nodes**2 @ self.total_a, self.nodes
        return np.maximum(self.a - self.s, 0.0), fixed, np.expm1(self.nodes)

    def heights(self, m: Array) -> tuple[Array, Array]:
        """log R at means m (n, 2), and its gradient."""
        rest, fixed, growth = self._in_means
        s = self.s
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            if self.curve is Curve.QUADRATIC:
                ratios = 0.5 * m**2 @ self.a.T - m @ s.T
                slopes = self.a * m[:, None, :] - s
            else:
                logs, per_mean = np.maximum(np.log(m), _FAR), _ratio(s, m[:, None, :])
                ratios = -logs @ s.T
                if self.curve is Curve.EXPONENTIAL:
                    ratios, slopes = ratios + m @ self.a.T, self.a - per_mean
                else:
                    others = np.maximum(np.log1p(-m), _FAR)
                    ratios, slopes = ratios - others @ rest.T, _ratio(rest, 1.0 - m[:, None, :]) - per_mean
            if self.curve is Curve.SOFTPLUS:
                factors = 1.0 + growth * m[:, None, :]
                tilts, tilted = fixed - np.log(factors) @ self.total_a, -self.total_a * growth / factors
            else:
                tilted = np.broadcast_to(-self.total_a * growth, (len(m), *growth.shape))
                tilts = fixed - m @ (self.total_a * growth).T
            parts = np.concatenate([self.constants + ratios, tilts], axis=1)
            parts = np.where(np.isnan(parts), -inf, parts)
            top = parts.max(axis=1, initial=-inf)
            weights = np.exp(parts - np.where(np.isfinite(top), top, 0.0)[:, None])
            total = weights.sum(axis=1)
            every = np.concatenate([slopes, tilted], axis=1)
            gradient = np.einsum("nk,nki->ni", weights, np.where(weights[:, :, None] > 0.0, every, 0.0))
            return np.where(np.isfinite(top), top + np.log(total), top), gradient / total[:, None]

    def losses(self, z: Array) -> Array:
        """a A(z) - s z of every voice and arm, at z of the same shape."""
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray(self.a * curve_heights(self.curve, z) - self.s * z)

    def enclosed(self) -> tuple[PairSet, Array, Array] | None:
        """C without nodes that say nothing in it, and a box of z that holds it; None if the ratios leave nothing."""
        found = self.ranges()
        if found is None:
            return None
        low, high = found
        with np.errstate(over="ignore", invalid="ignore"):
            # A(z + u) - A(z) rises with z where u > 0, and falls where u < 0: the largest D_u is at an end.
            loudest = self._tilts(np.where(self.nodes > 0.0, low, high)[None])[0]
        heard = ~(loudest < self.level - UNHEARD)
        return replace(self, nodes=self.nodes[heard], log_nodes=self.log_nodes[heard]), low, high

    def ranges(self, bisections: int = _BISECTIONS) -> tuple[Array, Array] | None:
        """Of either z, where every ratio stays below the level if the other z suits it best: M_k is a convex sum.

        None if the ratios leave nothing.
        """
        if not len(self.constants):
            return self.low, self.high
        low, high = np.broadcast_to(self.low, self.a.shape), np.broadcast_to(self.high, self.a.shape)
        best = minimisers(self.curve, self.a, self.s, low, high)
        least = self.losses(best)
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
            reached = self.losses(outside) <= limit
            for _ in range(bisections):
                middle = 0.5 * (inside + outside)
                within = self.losses(middle) <= limit
                inside, outside = np.where(within, middle, inside), np.where(within, outside, middle)
            ends.append(np.where(reached, edge, outside))
        return ends[0].max(axis=0), ends[1].min(axis=0)


def _ratio(part: Array, whole: Array) -> Array:
    """part / whole, and 0 / 0 = 0."""
    return np.where(part > 0.0, part / whole, 0.0)


def minimisers(curve: Curve, a: Array, s: Array, low: Array, high: Array) -> Array:
    """Where a A(z) - s z is least on [low, high]."""
    with np.errstate(divide="ignore", invalid="ignore"):
        slope = s / a
        if curve is Curve.QUADRATIC:
            free = slope
        else:
            free = np.log(slope) if curve is Curve.EXPONENTIAL else np.log(slope) - np.log1p(-slope)
    free = np.where(np.isnan(free), np.where(s > 0, inf, -inf), free)
    return np.clip(np.where((a == 0.0) & (s == 0.0), 0.0, free), low, high)
