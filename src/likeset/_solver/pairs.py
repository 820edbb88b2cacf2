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
(:mod:`~likeset._solver.planar`). And "no difference", m_1 = m_2, is a straight line: the least log R on it is the
minimum of a convex function of one number, and if it exceeds the level, C lies on one side of it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import inf

import numpy as np

from likeset._solver.evaluate import log_sum_exp
from likeset._typing import EPS, Array
from likeset.curves import Curve, curve_derivatives, curve_heights

UNHEARD = 14.0  # nats below the level at which a node is left out: C grows, by next to nothing
ACCURACY = 1e-9  # of the least log R on the diagonal, relative to 1 + |log R|
_BISECTIONS = 60
_POINTS = 9  # looked at together between two ends
_ROUNDS = 40
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

    @cached_property
    def rounding(self) -> float:
        """By how much the left side may be off: its parts are large and cancel."""
        with np.errstate(over="ignore"):
            heights = np.abs(curve_heights(self.curve, self.low)) + np.abs(curve_heights(self.curve, self.high))
            middle = np.abs(curve_heights(self.curve, self.most_likely()))
        # Within C the losses are of the size of the constants: beyond, no accuracy is needed to leave a point out.
        lengths = np.abs(self.most_likely()) + np.abs(self.nodes).max(axis=0, initial=0.0)
        size = np.abs(self.constants).max(initial=0.0) + float(np.abs(self.total_s) @ lengths)
        return 64 * EPS * (1.0 + abs(self.level) + size + float(self.total_a @ np.minimum(heights, 1.0 + middle)))

    def most_likely(self) -> Array:
        """The two z at which the likelihood is largest, within the box."""
        return _minimisers(self.curve, self.total_a, self.total_s, self.low, self.high)

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

    def predictors(self, m: Array) -> Array:
        """z of means; its limits where the mean is at the end of its range."""
        if self.curve is Curve.QUADRATIC:
            return m
        with np.errstate(divide="ignore"):
            return np.log(m) if self.curve is Curve.EXPONENTIAL else np.log(m) - np.log1p(-m)

    @cached_property
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

    def enclosed(self) -> tuple[PairSet, Array, Array] | None:
        """C without nodes that say nothing in it, and a box of z that holds it; None if the ratios leave nothing."""
        found = self._ranges()
        if found is None:
            return None
        low, high = found
        with np.errstate(over="ignore", invalid="ignore"):
            # A(z + u) - A(z) rises with z where u > 0, and falls where u < 0: the largest D_u is at an end.
            loudest = self._tilts(np.where(self.nodes > 0.0, low, high)[None])[0]
        heard = ~(loudest < self.level - UNHEARD)
        return replace(self, nodes=self.nodes[heard], log_nodes=self.log_nodes[heard]), low, high

    def _ranges(self) -> tuple[Array, Array] | None:
        """Of either z, where every ratio stays below the level if the other z suits it best: M_k is a convex sum."""
        if not len(self.constants):
            return self.low, self.high
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


def _ratio(part: Array, whole: Array) -> Array:
    """part / whole, and 0 / 0 = 0."""
    return np.where(part > 0.0, part / whole, 0.0)


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


# -- the diagonal ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Diagonal:
    """log R where both arms are alike.

    ``least`` is a certified lower bound of its minimum there, ``attained`` a value; ``apart`` is the sign of
    z_1 - z_2 in C if ``least`` exceeds the level, zero otherwise; ``lowest`` a lower bound of log R everywhere.
    """

    least: float
    attained: float
    apart: int
    likely: int
    lowest: float
    somewhere: float

    def against(self, sign: int) -> tuple[float, float]:
        """Bounds of the least log R over sign (z_1 - z_2) >= 0; over z_1 = z_2 for 0."""
        if sign == 0 or (self.likely == -sign and self.somewhere < self.least):
            return self.least, self.attained
        return self.lowest, min(self.attained, self.somewhere if self.likely in (0, sign) else inf)


def diagonal(target: PairSet) -> Diagonal:
    r"""The least log R for z_1 = z_2, which says what it is for z_1 <= z_2 and z_1 >= z_2, too.

    log R is convex in the means. If it is lower at some point with m_1 > m_2 than anywhere on the diagonal, then every
    y with m_1 <= m_2 has a diagonal point d between the two, log R(d) <= max of both, and so log R(y) >= log R(d).
    """
    z = target.most_likely()
    point = target.means(z)
    likely = int(np.sign(point[0] - point[1]))
    somewhere = float(target.values(z[None])[0]) + target.rounding
    least, attained = _least_on_diagonal(target)
    least -= target.rounding
    sure = least > target.level and somewhere < least
    apart = likely if sure else 0
    return Diagonal(least, attained, apart, likely, _floor(target), somewhere)


def _floor(target: PairSet) -> float:
    """A lower bound of log R: the ratios alone, each where it is least."""
    low, high = np.broadcast_to(target.low, target.a.shape), np.broadcast_to(target.high, target.a.shape)
    at = _minimisers(target.curve, target.a, target.s, low, high)
    with np.errstate(over="ignore", invalid="ignore"):
        parts = target.a * curve_heights(target.curve, at) - target.s * at
    parts = np.where((target.a == 0.0) & (target.s == 0.0), 0.0, parts)
    return float(log_sum_exp((target.constants + parts.sum(axis=1))[None])[0]) - target.rounding


def _least_on_diagonal(target: PairSet) -> tuple[float, float]:
    """(lower bound, attained value) of the least log R over equal means, by tangents from both sides."""
    a, s = target.total_a.sum(), target.total_s.sum()
    ends = target.means(np.array([target.low, target.high]))
    low, high = float(ends[0].max()), float(ends[1].min())
    if low > high:
        return inf, inf
    if not a > 0.0:
        value = float(target.heights(np.full((1, 2), min(max(0.0, low), high)))[0][0])
        return value, value
    middle = min(max(float(s / a), low), high)
    unit = {
        Curve.QUADRATIC: a**-0.5,
        Curve.EXPONENTIAL: max(middle, 1.0 / a) ** 0.5 * a**-0.5,
        Curve.SOFTPLUS: max(middle * (1.0 - middle), 1.0 / a) ** 0.5 * a**-0.5,
    }[target.curve]
    at = np.array([middle])
    for step in range(1, 64):  # until the minimum lies between the ends
        with np.errstate(over="ignore"):
            wider = np.clip([middle - unit * 2.0**step, middle + unit * 2.0**step], low, high)
        at = np.unique(np.concatenate([at, wider]))
        values, slopes = _along(target, at)
        if (slopes[0] >= 0.0 and at[0] == low) or (slopes[-1] <= 0.0 and at[-1] == high):  # least at an end
            return float(values.min()), float(values.min())
        if slopes[0] < 0.0 < slopes[-1]:
            break
    else:
        return -inf, float(values.min())
    for _ in range(_ROUNDS):
        attained = float(values.min())
        i = int(np.searchsorted(slopes, 0.0, side="right")) - 1
        least = _meeting(at[i : i + 2], values[i : i + 2], slopes[i : i + 2])
        if attained - least <= ACCURACY * (1.0 + abs(attained)) or not at[i] < at[i + 1]:
            break
        at = np.unique(np.linspace(at[i], at[i + 1], _POINTS + 2))
        values, slopes = _along(target, at)
    return least, attained


def _along(target: PairSet, at: Array) -> tuple[Array, Array]:
    """log R on the diagonal and its slope there, which rises."""
    values, gradients = target.heights(np.repeat(at[:, None], 2, axis=1))
    slopes = gradients.sum(axis=1)
    slopes = np.where(np.isfinite(values), slopes, np.where(at < at[np.argmin(values)], -inf, inf))
    return values, np.maximum.accumulate(slopes)


def _meeting(at: Array, values: Array, slopes: Array) -> float:
    """The height at which tangents meet: a convex function is nowhere lower between the two points."""
    if slopes[0] == 0.0:
        return float(values[0])
    if not np.isfinite(slopes).all():  # an infinite end: the other tangent alone
        known = 0 if np.isfinite(slopes[0]) else 1
        reach = (at[1] - at[0]) * abs(slopes[known]) if np.isfinite(slopes[known]) else inf
        return float(values[known] - reach)
    step = (values[0] - values[1] + slopes[1] * (at[1] - at[0])) / (slopes[1] - slopes[0])
    return float(values[0] + slopes[0] * step)


def surely_below(target: PairSet) -> bool:
    """Whether C surely has no point with z_1 >= z_2."""
    found = diagonal(target)
    if found.least == inf or found.likely >= 0 or found.least <= target.level:
        return False
    return found.apart < 0 or target.enclosed() is None
