r"""The maximum of a'theta over C = { log R <= level }, certified, where R is an average with tilts in it.

    log R(theta) = log [ sum_k exp M_k(theta) + sum_u exp D_u(theta) ],      see :mod:`~likeset._solver.tilt_terms`

C need not be convex either, and a maximiser of a'theta that Newton's method finds, theta_b, proves nothing. But for
weights w that add up to one, log R >= Phi = sum_i w_i (M_i or D_i - log w_i): Jensen's inequality, an equality at
theta_b for weights in proportion to the summands there. Phi is one sum of functions of the z, and its second derivative
along each of them can be bounded from below on a range of z: the Hessian of Phi is at least some matrix H. With
delta = theta - theta_b, every theta in C whose z are in these ranges has

    sigma >= g'delta + delta'H delta / 2,            sigma = level - Phi(theta_b),   g the gradient of Phi at theta_b.

If H is positive definite this is an ellipsoid, and the largest a'delta in it an outer bound. To make it so, the M_k get
more weight than they have at theta_b: that costs little, for Phi is flat in w there. Ranges are at first those of
{ log sum_k exp M_k <= level }, which holds C and is convex. Then only theta with a'delta >= 0 matter. For these g'delta
is at least (g - mu a)'delta, whatever mu >= 0, and the ellipsoid

    sigma >= (g - mu a)'delta + delta'H delta / 2

around theta_b is small. It gives narrower ranges, these a better H, and so on: a few rounds come close to a'theta_b.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np

from likeset._solver.evaluate import log_sum_exp
from likeset._solver.tilt_terms import Ratios, Tilt
from likeset._typing import EPS, Array
from likeset.curves import curve_derivatives

STEPS = 40
ROUNDS = 12
WORTH = 1e-3  # of what is open between theta_b and the first bound: a round that gains less is the last
SHRINKING = 0.03  # of the ranges, in one round: less is as good as nothing
_MORE = np.array([0.0, 0.01, 0.02, 0.04, 0.07, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.7, 0.9, 1.0 - 1e-9])
_UNHEARD = 20.0  # nats below the loudest: left out of Phi


@dataclass(frozen=True)
class There:
    """Both kinds of voices at one theta: logs of their sums, shares within, gradients, Hessian of log R."""

    log_ratios: float
    log_tilts: float
    of_ratios: Array
    of_tilts: Array
    slope_of_ratios: Array
    slope_of_tilts: Array
    hessian: Array
    sizes: float

    @property
    def height(self) -> float:
        """log R."""
        return float(np.logaddexp(self.log_ratios, self.log_tilts))

    @property
    def part(self) -> float:
        """The share of the M_k in R."""
        return float(np.exp(self.log_ratios - self.height))

    def slope(self, q: float) -> Array:
        """The gradient of Phi where the M_k have the weight q."""
        return q * self.slope_of_ratios + (1.0 - q) * self.slope_of_tilts


class Search:
    """The certified maximum of a'theta over C, with the u that speak against large a'theta."""

    def __init__(self, ratios: Ratios, tilt: Tilt, downwards: bool, level: float) -> None:
        self.ratios, self.tilt, self.level = ratios, tilt, level
        self.curve = ratios.terms.curve
        self.u = -tilt.effects if downwards else tilt.effects
        self.X = ratios.X

    def at(self, theta: Array) -> There:
        """All that is needed at one theta."""
        values, slopes, _, sizes = self.ratios.at(theta)
        z = self.X @ theta
        heights, first, tilt_sizes = self.tilt.heights(self.curve, z, self.u, self.tilt.logs)
        loud = heights > heights.max() - _UNHEARD
        log_ratios, log_loud = float(log_sum_exp(values)), float(log_sum_exp(heights[loud]))
        log_tilts = float(np.logaddexp(log_loud, self.tilt.silent))
        of_ratios = np.exp(values - log_ratios)
        of_tilts = np.where(loud, np.exp(heights - log_tilts), 0.0)
        # Of those that say nothing: their slopes may be no numbers, and nothing times these would be none either.
        pulls = np.where(loud, -(self.tilt.a[:, None] * first), 0.0)
        gathered = np.zeros((len(self.X), len(self.u)))
        np.add.at(gathered, self.tilt.index, pulls)
        tilt_slopes = gathered.T @ self.X
        g_ratios, g_tilts = of_ratios @ slopes, of_tilts @ tilt_slopes
        # The Hessian of log R: that of the loudest mixture, and how far the slopes are apart.
        q = float(np.exp(log_ratios - np.logaddexp(log_ratios, log_tilts)))
        here = self.ratios.coefficients(of_ratios) * curve_derivatives(self.curve, z)[1]
        bend = np.zeros(len(self.X))
        if (1.0 - q) > 0.0:
            shifted = z[self.tilt.index] + self.tilt.shifts
            base = curve_derivatives(self.curve, shifted)[1]
            there = curve_derivatives(self.curve, shifted[:, None] + self.tilt.tilts[:, None] * self.u[loud])[1]
            shares = of_tilts[loud]
            bends = self.tilt.a * (base * shares.sum() - there @ shares)
            bend = np.bincount(self.tilt.index, bends, minlength=len(self.X)).astype(np.float64)
        g = q * g_ratios + (1.0 - q) * g_tilts
        hessian = (self.X * (q * here + (1.0 - q) * bend)[:, None]).T @ self.X
        hessian += q * (slopes * of_ratios[:, None]).T @ slopes
        hessian += (1.0 - q) * (tilt_slopes * of_tilts[:, None]).T @ tilt_slopes - np.outer(g, g)
        rounding = float(sizes.sum()) + float(tilt_sizes[loud].max(initial=0.0))
        return There(log_ratios, log_tilts, of_ratios, of_tilts, g_ratios, g_tilts, hessian, rounding)

    # -- a good point ---------------------------------------------------------------------------------------------

    def climbed(self, a: Array, theta: Array, scale: Array) -> tuple[Array, There]:
        """Where a'theta is about largest with log R <= level; ``scale`` is a metric, of rows W: |W delta|."""
        there = self.at(theta)
        inverse_scale = np.linalg.inv(scale)
        for _ in range(STEPS):
            q = there.part
            g = there.slope(q)
            w, E = np.linalg.eigh(inverse_scale.T @ there.hessian @ inverse_scale)
            w = np.maximum(w, 1e-6 * max(float(w.max()), 1e-6))
            solve = inverse_scale @ E
            Hg, Ha = solve @ ((solve.T @ g) / w), solve @ ((solve.T @ a) / w)
            room = 2.0 * (self.level - there.height) + float(g @ Hg)
            step = -Hg if room <= 0.0 else Ha * np.sqrt(room / float(a @ Ha)) - Hg
            limit = max(self.level + 2.0, there.height)
            moved, length = there, 1.0
            for _ in range(30):
                moved = self.at(theta + length * step)
                if moved.height <= limit:
                    break
                length *= 0.5
            else:
                return theta, there
            theta, there = theta + length * step, moved
            small = abs(float(a @ step)) <= 1e-8 * np.sqrt(float(a @ Ha)) and float(np.linalg.norm(scale @ step)) < 1e-4
            if small and abs(there.height - self.level) < 1e-6 * (1.0 + abs(self.level)):
                break
        return theta, there

    # -- and a proof ----------------------------------------------------------------------------------------------

    def certified(self, a: Array, theta: Array, there: There, low: Array, high: Array, first: float) -> float:
        """An outer bound of a'theta over C, given finite ranges of z that hold for C and ``first``, another bound."""
        X, z = self.X, self.X @ theta
        slack = 256 * EPS * (1.0 + abs(self.level) + there.sizes)
        height = float(a @ theta)
        best, q0 = first - height, there.part
        loud = there.of_tilts > 0.0
        coefficients = self.ratios.coefficients(there.of_ratios)
        open_at_first = max(best, 0.0)
        for _ in range(ROUNDS):
            # Second derivatives are asked for between theta_b and theta.
            low, high = np.minimum(low, z), np.maximum(high, z)
            ends = (curve_derivatives(self.curve, end)[1] for end in (low, high))
            plain = coefficients * np.minimum(*ends)  # A'' of both curves is least at an end
            bent = self.tilt.least_curvature(self.curve, low, high, self.u[loud], there.of_tilts[loud])
            bent = np.pad(bent, (0, len(X) - len(bent)))
            H_plain, H_bent = (X * plain[:, None]).T @ X, (X * bent[:, None]).T @ X
            if not (np.isfinite(H_plain).all() and np.isfinite(H_bent).all()):
                break
            reach, least, most = self._enclosed(a, there, q0, H_plain, H_bent, slack)
            narrower = np.minimum(high, z + most) - np.maximum(low, z + least)
            shrunk = float(np.sum(high - low) - np.sum(narrower)) / max(float(np.sum(high - low)), 1e-300)
            low, high = np.maximum(low, z + least), np.minimum(high, z + most)
            gained, best = best - reach, min(best, reach)
            if gained < WORTH * open_at_first and shrunk < SHRINKING:
                break
        best = max(best, 0.0)
        return height + best + 64 * EPS * (abs(height) + best)

    def _enclosed(
        self, a: Array, there: There, q0: float, H_plain: Array, H_bent: Array, slack: float
    ) -> tuple[float, Array, Array]:
        """The least bound of a'delta over weights of the M_k, and ranges of x'delta where a'delta >= 0."""
        reach, least, most = inf, np.full(len(self.X), -inf), np.full(len(self.X), inf)
        size = np.sqrt(np.maximum(np.diag(H_plain), 1e-300))
        for q in q0 + (1.0 - q0) * _MORE:
            H = q * H_plain + (1.0 - q) * H_bent
            w, E = np.linalg.eigh(H / np.outer(size, size))
            w = w - 1e-10 * float(np.abs(w).max())  # for the rounding of H
            if not w[0] > 1e-9:
                continue
            root = (E / np.sqrt(w)) / size[:, None]  # H^-1 = root root'
            entropy = -(q * np.log(q) if q > 0.0 else 0.0) - (1.0 - q) * np.log1p(-q)
            sigma = self.level + slack - q * there.log_ratios - (1.0 - q) * there.log_tilts - entropy
            g, along = root.T @ there.slope(q), root.T @ a
            room = 2.0 * sigma + float(g @ g)
            length = float(np.linalg.norm(along))
            own = length * np.sqrt(room) - float(along @ g) if room > 0.0 else 0.0
            if not (np.isfinite(room) and np.isfinite(own)):  # numbers overflowed: nothing is proved
                continue
            reach = min(reach, own)
            rest = g - max(float(along @ g) / length**2, 0.0) * along
            extent = np.sqrt(max(2.0 * sigma + float(rest @ rest), 0.0)) * (1.0 + 1e-9)
            rows = self.X @ root
            middle, spread = -rows @ rest, extent * np.linalg.norm(rows, axis=1) * (1.0 + 1e-9)
            least, most = np.maximum(least, middle - spread), np.minimum(most, middle + spread)
        return reach, least, most
