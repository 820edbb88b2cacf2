r"""Certified, from a point theta_b: how far a'theta goes over { log R <= level }, how small log R is beyond a plane.

    log R(theta) = log [ sum_k exp M_k(theta) + sum_u exp D_u(theta) ],      see :mod:`~likeset._solver.tilt_terms`

C need not be convex, and a point theta_b that Newton's method finds proves nothing. But for weights w that add up to
one, log R >= Phi = sum_i w_i (M_i or D_i - log w_i): Jensen's inequality, an equality at theta_b for weights in
proportion to the summands there. Phi is one sum of functions of the z, and how much each of them bends between z_b and
z can be bounded from below on a range of z (:mod:`~likeset._solver.tilt_bends`): with delta = theta - theta_b and
bends k, H = sum_k k x x', every theta whose z are in these ranges has

    log R(theta) >= Phi(theta_b) + g'delta + delta'H delta / 2,            g the gradient of Phi at theta_b.

To make H positive definite, the M_k get more weight than they have at theta_b: that costs little, for Phi is flat in w
there. Ranges are at first those of { log sum_k exp M_k <= level }, which holds C and is convex. Only theta with
a'delta >= 0 matter. For these g'delta is at least (g - mu a)'delta, whatever mu >= 0, so that theta in C lie in

    level - Phi(theta_b) >= (g - mu a)'delta + delta'H delta / 2,

a small ellipsoid around theta_b. It gives narrower ranges, these a better H, and so on: after a few rounds the largest
a'delta over the ellipsoid of g itself is about zero, and so is what log R can be below log R(theta_b).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np

from likeset._solver.evaluate import log_sum_exp
from likeset._solver.tilt_bends import (
    exponential_mean_bend,
    least_of_series,
    least_softplus_bend,
    second_derivatives,
    softplus_series,
)
from likeset._solver.tilt_search import There
from likeset._solver.tilt_sides import Side
from likeset._solver.tilt_terms import Ratios
from likeset._typing import EPS, Array
from likeset.curves import Curve

ROUNDS = 16
WORTH = 1e-3  # of what is open between theta_b and the first bound: a round that gains less is the last
_FIRST_ROUNDS = 4  # for the M_k alone
SHRINKING = 0.06  # of the ranges, in one round: less is as good as nothing
_MORE = np.array([0.0, 0.01, 0.02, 0.04, 0.07, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.7, 0.9, 1.0 - 1e-9])
_NEIGHBOURS = 1  # weights on either side of the best one that the next round looks at
_RANGING = 3  # weights whose ellipsoids narrow the ranges
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Proved:
    """What holds for all theta with a'delta >= 0: those in C have a'delta <= ``reach``, and those with z in the ranges
    log R >= ``least``.
    """

    reach: float
    least: float


@dataclass(frozen=True)
class _Quadratic:
    """What one weight q gives: the same, and mean and root of the ellipsoid of delta, H^-1 = root root'."""

    reach: float
    least: float
    rest: Array
    root: Array
    extent: float

    def ranges(self, X: Array) -> tuple[Array, Array]:
        """Of x'delta over the ellipsoid."""
        rows = X @ self.root
        middle = -rows @ self.rest
        spread = self.extent * np.sqrt(np.einsum("ij,ij->i", rows, rows)) * (1.0 + _ROUNDING)
        return middle - spread, middle + spread


class Proof:
    """Bounds around one theta_b, ``there``, for one direction a; with a'delta >= -``behind`` if theta_b is too far."""

    def __init__(
        self, ratios: Ratios, side: Side, there: There, a: Array, level: float, behind: float = 0.0
    ) -> None:  # fmt: skip
        self.X, self.curve, self.there, self.a, self.level = ratios.X, ratios.curve, there, a, level
        self.behind = behind
        self.slack = 256 * EPS * (1.0 + abs(level) + there.sizes)
        self._plain = ratios.curved(there.of_ratios)
        self._bent = side.bends(there.z, there.of_tilts)
        if self.curve is Curve.EXPONENTIAL:
            self._plain_second = second_derivatives(self.curve, self._plain, there.z)
        else:
            self._series = softplus_series(self._plain, there.z)
            self._least_plain = np.zeros(0)  # of the ranges of a round

    def within(self, low: Array, high: Array, first: float) -> Proved:
        """Given finite ranges of z that hold for C, and ``first``, a bound of a'delta that is known already."""
        low, high = low - self.there.z, high - self.there.z
        q0 = self.there.part
        weights = q0 + (1.0 - q0) * _MORE
        reach, least, open_at_first = first, -inf, max(first, 0.0)
        chosen = np.arange(len(weights))
        for _ in range(ROUNDS):
            low, high = np.minimum(low, 0.0), np.maximum(high, 0.0)  # bends are asked for between theta_b and theta
            if self.curve is not Curve.EXPONENTIAL:
                self._least_plain = least_softplus_bend(self._plain, self.there.z, low, high)
            found = {int(i): self._quadratic(float(weights[i]), low, high) for i in chosen}
            definite = {i: one for i, one in found.items() if one is not None}
            if not definite:
                break
            best = sorted(definite, key=lambda i: definite[i].extent)[:_RANGING]
            width = float(np.sum(high - low))
            for i in best:
                below, above = definite[i].ranges(self.X)
                low, high = np.maximum(low, below), np.minimum(high, above)
            before = reach, least
            reach = min(reach, *(one.reach for one in definite.values()))
            least = max(least, *(one.least for one in definite.values()))
            shrunk = 1.0 - float(np.sum(high - low)) / max(width, 1e-300)
            gained = before[0] - reach > WORTH * open_at_first or least - before[1] > WORTH
            if reach <= 0.0 or least >= self.level or (not gained and shrunk < SHRINKING):
                break
            middle = min(definite, key=lambda i: definite[i].reach)
            chosen = np.arange(max(middle - _NEIGHBOURS, 0), min(middle + _NEIGHBOURS + 1, len(weights)))
        return Proved(max(reach, 0.0), least)

    def _bends(self, q: float, low: Array, high: Array) -> Array:
        """Lower bounds of the mean bend of Phi along every covariate."""
        second, third, fourth = self._bent
        if self.curve is Curve.EXPONENTIAL:
            factor = q * self._plain_second + (1.0 - q) * second
            mean = exponential_mean_bend(np.where(factor > 0.0, low, high))
            return factor * mean - _ROUNDING * np.abs(factor) * mean
        p = 1.0 - q
        plain = self._series
        apart = q * self._least_plain + p * least_of_series(second, third, fourth, low, high)
        both = least_of_series(
            q * plain[0] + p * second, q * plain[1] + p * third, q * plain[2] + p * fourth, low, high
        )
        found = np.maximum(apart, both)
        return found - _ROUNDING * np.abs(found)

    def _quadratic(self, q: float, low: Array, high: Array) -> _Quadratic | None:
        """The bounds that weight q of the M_k gives; None where H is not positive definite."""
        there, a = self.there, self.a
        H = (self.X * self._bends(q, low, high)[:, None]).T @ self.X
        root = _root_of_inverse(H)
        if root is None:
            return None
        entropy = -(q * np.log(q) if q > 0.0 else 0.0) - (1.0 - q) * np.log1p(-q)
        height = q * there.log_ratios + (1.0 - q) * there.log_tilts + entropy - self.slack
        g, along = root.T @ there.slope(q), root.T @ a
        mu = max(float(along @ g), 0.0) / float(along @ along)
        rest, height = g - mu * along, height - mu * self.behind
        sigma, length = self.level - height, float(np.linalg.norm(along))
        room = 2.0 * sigma + float(g @ g)
        reach = length * np.sqrt(room) - float(along @ g) if room > 0.0 else 0.0
        extent = np.sqrt(max(2.0 * sigma + float(rest @ rest), 0.0)) * (1.0 + _ROUNDING)
        least = height - 0.5 * float(rest @ rest) * (1.0 + _ROUNDING)
        if not (np.isfinite(reach) and np.isfinite(extent) and np.isfinite(least)):  # overflown: nothing is proved
            return None
        return _Quadratic(reach, least, rest, root, extent)


def ranges_of_ratios(ratios: Ratios, theta: Array, level: float, low: Array, high: Array) -> tuple[Array, Array]:
    """Ranges of all z over { log sum_k exp M_k <= level } from such as are known: the same with D_u left out."""
    values, slopes, sizes = ratios.at(theta)
    log_ratios = float(log_sum_exp(values))
    shares = np.exp(values - log_ratios)
    part, z, slack = ratios.curved(shares), ratios.X @ theta, 256 * EPS * (1.0 + abs(level) + sizes)
    sigma = level - log_ratios + slack
    for _ in range(_FIRST_ROUNDS):
        below, above = np.minimum(low - z, 0.0), np.maximum(high - z, 0.0)
        if ratios.curve is Curve.EXPONENTIAL:
            bends = second_derivatives(ratios.curve, part, z) * exponential_mean_bend(below) * (1.0 - _ROUNDING)
        else:
            bends = least_softplus_bend(part, z, below, above)
        root = _root_of_inverse((ratios.X * bends[:, None]).T @ ratios.X)
        if root is None:
            break
        g = root.T @ (shares @ slopes)
        extent = np.sqrt(max(2.0 * sigma + float(g @ g), 0.0)) * (1.0 + _ROUNDING)
        least, most = _Quadratic(inf, -inf, g, root, extent).ranges(ratios.X)
        low, high = np.maximum(low, z + least), np.minimum(high, z + most)
    return low, high


def _root_of_inverse(H: Array) -> Array | None:
    """A root with H^-1 <= root root', None if H may not be positive definite."""
    if not (np.isfinite(H).all() and (np.diag(H) > 0.0).all()):
        return None
    size = np.sqrt(np.diag(H))
    with np.errstate(over="ignore"):
        scaled = H / size / size[:, None]
    if not (np.abs(scaled) <= 2.0).all():  # of a positive definite one no entry is above one
        return None
    w, E = np.linalg.eigh(scaled)
    w = w - 1e-10 * float(np.abs(w).max())  # for the rounding of H
    return (E / np.sqrt(w)) / size[:, None] if w[0] > 1e-9 else None
