r"""Ends of announced contrasts where the evidence is not convex: tilts of exponential families with covariates.

    log R(theta) = log [ sum_k exp M_k(theta) + sum_u exp D_u(theta) ],      C = { log R <= level }

    M_k   likelihood ratios with their shares, sums of gain + a A(z) - s z over groups: convex in theta
    D_u = c_u + sum_r [ u v_r s_r - a_r (A(z_r + u v_r) - A(z_r)) ]: not convex

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

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf

import numpy as np

from likeset._solver.evaluate import evaluate_terms, log_sum_exp
from likeset._solver.problem import CurveTerms, Kernel, Solution, VoiceTable
from likeset._solver.voice_sums import group_pulls, voice_exponents
from likeset._typing import EPS, Array, IntArray, Mask
from likeset.curves import Curve, curve_derivatives

STEPS = 40
ROUNDS = 12
WORTH = 1e-3  # of what is open between theta_b and the first bound: a round that gains less is the last
SHRINKING = 0.03  # of the ranges, in one round: less is as good as nothing
OPEN = 0.02  # between theta_b and the bound, of the distance to the centre: then quieter tilts are not tried
_QUIETER = (0.0, 1.0, 2.0, 4.0)  # nats
_MORE = np.array([0.0, 0.01, 0.02, 0.04, 0.07, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.7, 0.9, 1.0 - 1e-9])
_UNHEARD = 20.0  # nats below the loudest: left out of Phi
_POINTS = 9  # at which the second derivative of tilted softplus terms is computed on a range
_SOFTPLUS_FOURTH = 0.125  # the largest |A''''| of softplus
_PARALLEL = 1e-12


@dataclass(frozen=True)
class Ratios:
    """The M_k: groups (rows of X by ``owners``) in voices."""

    X: Array
    owners: IntArray
    terms: CurveTerms
    gains: Array
    voices: VoiceTable

    def at(self, theta: Array) -> tuple[Array, Array, Array, Array]:
        """Every M_k, its gradient, second derivatives of the groups' terms, and sizes that rounding goes by."""
        z = (self.X @ theta)[self.owners]
        value, first, second = evaluate_terms(self.terms, z)
        parts = self.gains + value
        voices = self.voices
        slopes = np.zeros((len(voices.log_shares), self.X.shape[1]))
        for k in range(len(slopes)):
            members = voices.members[voices.starts[k] : voices.starts[k + 1]]
            pulled = np.bincount(self.owners[members], first[members], minlength=len(self.X))
            slopes[k] = pulled @ self.X
        sizes = np.abs(self.gains) + np.abs(value) + np.abs(first * z)
        return voice_exponents(voices, parts), slopes, second, sizes

    def coefficients(self, shares: Array) -> Array:
        """sum_k shares_k a_g over the groups of every covariate: what A'' is multiplied by in Phi."""
        pulls = group_pulls(self.voices, shares, len(self.gains)) * self.terms.a
        return np.bincount(self.owners, pulls, minlength=len(self.X)).astype(np.float64)


@dataclass(frozen=True)
class Tilt:
    """The D_u of one contrast, u > 0 and -u: rows by number of covariate, ``tilts`` v, ``logs`` the c_u less the rows.

    ``silent`` is the log of what does not depend on theta.
    """

    index: IntArray
    a: Array
    s: Array
    shifts: Array
    tilts: Array
    effects: Array
    logs: Array
    silent: float

    def quieter(self, nats: float) -> Tilt:
        """With so many nats less."""
        return replace(self, logs=self.logs - nats, silent=self.silent - nats) if nats else self

    def heights(self, curve: Curve, z: Array, u: Array, logs: Array) -> tuple[Array, Array, Array]:
        """Every D_u at the z of the covariates, A(z + h) - A(z) differentiated once (rows by u), and sizes."""
        at = z[self.index] + self.shifts
        h = self.tilts[:, None] * u
        with np.errstate(over="ignore", invalid="ignore"):
            if curve is Curve.EXPONENTIAL:
                growth = np.exp(at)[:, None] * np.expm1(h)
                first = growth
            else:
                # log(1 + (e^h - 1) A'(z)), mirrored where h < 0: nothing cancels.
                towards = np.where(h < 0.0, -at[:, None], at[:, None])
                growth = np.log1p(np.expm1(np.abs(h)) / (1.0 + np.exp(-towards))) + np.minimum(h, 0.0)
                far = np.logaddexp(0.0, at[:, None] + h) - np.logaddexp(0.0, at)[:, None]
                growth = np.where(np.isfinite(growth), growth, far)
                first = 1.0 / (1.0 + np.exp(-(at[:, None] + h))) - 1.0 / (1.0 + np.exp(-at))[:, None]
            pushed = u * float(self.tilts @ self.s)
            values = logs + pushed - self.a @ growth
        sizes = np.abs(u) * float(np.abs(self.tilts) @ np.abs(self.s)) + self.a @ (np.abs(growth) + np.abs(h))
        return np.where(np.isnan(values), -inf, values), first, sizes

    def log_ratio(self, curve: Curve, z: Array) -> tuple[float, float]:
        """log of the sum over all u, and what its rounding is proportional to."""
        u, logs = np.concatenate([self.effects, -self.effects]), np.tile(self.logs, 2)
        values, _, sizes = self.heights(curve, z, u, logs)
        loud = np.isfinite(values)
        return float(log_sum_exp(np.append(values, self.silent))), float(sizes[loud].max(initial=0.0))

    def least_curvature(self, curve: Curve, low: Array, high: Array, u: Array, shares: Array) -> Array:
        """A lower bound of the second derivative of sum_u shares_u D_u along every covariate, z in [low, high]."""
        low, high = low[self.index] + self.shifts, high[self.index] + self.shifts
        h = self.tilts[:, None] * u
        if curve is Curve.EXPONENTIAL:
            bend = -np.expm1(h) @ shares
            found = bend * np.exp(np.where(bend > 0.0, low, high))
        else:
            found = np.full(len(low), inf)
            for part in np.linspace(0.0, 1.0, _POINTS):
                at = low + part * (high - low)
                here = curve_derivatives(curve, at)[1]
                there = curve_derivatives(curve, at[:, None] + h)[1] @ shares
                found = np.minimum(found, here * shares.sum() - there)
            # Between two points it is no steeper than |h| |A''''|.
            found -= _SOFTPLUS_FOURTH * (np.abs(h) @ shares) * (high - low) / (2 * (_POINTS - 1))
        return np.bincount(self.index, self.a * found).astype(np.float64)


@dataclass(frozen=True)
class _There:
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

    def at(self, theta: Array) -> _There:
        """All that is needed at one theta."""
        values, slopes, _, sizes = self.ratios.at(theta)
        z = self.X @ theta
        heights, first, tilt_sizes = self.tilt.heights(self.curve, z, self.u, self.tilt.logs)
        loud = heights > heights.max() - _UNHEARD
        log_ratios, log_loud = float(log_sum_exp(values)), float(log_sum_exp(heights[loud]))
        log_tilts = float(np.logaddexp(log_loud, self.tilt.silent))
        of_ratios = np.exp(values - log_ratios)
        of_tilts = np.where(loud, np.exp(heights - log_tilts), 0.0)
        pulls = -(self.tilt.a[:, None] * first)
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
        return _There(log_ratios, log_tilts, of_ratios, of_tilts, g_ratios, g_tilts, hessian, rounding)

    # -- a good point ---------------------------------------------------------------------------------------------

    def climbed(self, a: Array, theta: Array, scale: Array) -> tuple[Array, _There]:
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

    def certified(self, a: Array, theta: Array, there: _There, low: Array, high: Array, first: float) -> float:
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
        self, a: Array, there: _There, q0: float, H_plain: Array, H_bent: Array, slack: float
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
            if not np.isfinite(own):
                continue
            reach = min(reach, own)
            rest = g - max(float(along @ g) / length**2, 0.0) * along
            extent = np.sqrt(max(2.0 * sigma + float(rest @ rest), 0.0)) * (1.0 + 1e-9)
            rows = self.X @ root
            middle, spread = -rows @ rest, extent * np.linalg.norm(rows, axis=1) * (1.0 + 1e-9)
            least, most = np.maximum(least, middle - spread), np.minimum(most, middle + spread)
        return reach, least, most


class TiltedKernel(Kernel):
    """C with tilts of announced contrasts: certified ends of these, the bounds of the M_k alone of anything else.

    ``outer`` is the kernel of { log sum_k exp M_k <= level }, ``height`` log R of points; ``bound`` that of theta.
    """

    def __init__(
        self, outer: Kernel, ratios: Ratios, contrasts: Array, tilts: list[Tilt], level: float, bound: float,
        height: Callable[[Array], Array],
    ) -> None:  # fmt: skip
        self._outer, self._ratios, self._contrasts, self._tilts = outer, ratios, contrasts, tilts
        self._level, self._bound, self._height = level, bound, height
        self.status, self.centre = outer.status, outer.centre
        self._box: tuple[Array, Array, Array] | None = None
        if self.status == "regular":
            self._settle()

    def _settle(self) -> None:
        """A centre with a small log R: Newton's steps for the M_k from the outer centre."""
        theta = self.centre
        best = float(self._height(theta[None])[0])
        for _ in range(8 if np.isfinite(best) else 0):
            values, slopes, second, _ = self._ratios.at(theta)
            shares = np.exp(values - log_sum_exp(values))
            pulls = group_pulls(self._ratios.voices, shares, len(second)) * second
            per_row = np.bincount(self._ratios.owners, pulls, minlength=len(self._ratios.X))
            H = (self._ratios.X * per_row[:, None]).T @ self._ratios.X
            try:
                theta = theta - np.linalg.solve(H, shares @ slopes)
            except np.linalg.LinAlgError:
                return
            if not np.isfinite(theta).all() or float(np.linalg.norm(theta)) > self._bound:
                return
            height = float(self._height(theta[None])[0])
            if not height < best - 1e-9:
                return
            best, self.centre = height, theta

    def _ranges(self) -> tuple[Array, Array, Array]:
        """A metric, and ranges of the z of all covariates, from the extent of the outer set along its axes."""
        if self._box is None:
            X = self._ratios.X
            values, _, second, _ = self._ratios.at(self.centre)
            shares = np.exp(values - log_sum_exp(values))
            pulls = group_pulls(self._ratios.voices, shares, len(second)) * second
            per_row = np.bincount(self._ratios.owners, pulls, minlength=len(X))
            H = (X * per_row[:, None]).T @ X
            w, E = np.linalg.eigh(H)
            scale = np.sqrt(np.maximum(w, 1e-12 * max(float(w.max()), 1e-300)))[:, None] * E.T
            ends = self._outer.solve(np.vstack([scale, -scale])).upper
            if not np.isfinite(ends).all():  # some direction is open: no range is known
                self._box = scale, np.full(len(X), -inf), np.full(len(X), inf)
                return self._box
            high, low = ends[: len(scale)], -ends[len(scale) :]
            rows = X @ np.linalg.inv(scale)
            middle, spread = rows @ (0.5 * (low + high)), np.abs(rows) @ (0.5 * (high - low))
            spread = spread * (1.0 + 1e-9) + 1e-12 * np.abs(middle)
            self._box = scale, middle - spread, middle + spread
        return self._box

    def _which(self, A: Array) -> tuple[IntArray, Mask]:
        """The contrast that every direction is a multiple of, -1 for none, and whether a positive one."""
        lengths, own = np.linalg.norm(A, axis=1), np.linalg.norm(self._contrasts, axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            cosines = (A / lengths[:, None]) @ (self._contrasts / own[:, None]).T
        if not cosines.size:
            return np.full(len(A), -1), np.ones(len(A), dtype=bool)
        best = np.argmax(np.abs(cosines), axis=1)
        chosen = cosines[np.arange(len(A)), best]
        return np.where(np.abs(chosen) >= 1.0 - _PARALLEL, best, -1), chosen > 0.0

    def _solve(self, A: Array, near: Array | None, tolerance: float) -> Solution:
        found = self._outer.solve(A, tolerance)
        upper, points = found.upper.copy(), found.points.copy()
        which, along = self._which(A)
        if self.status == "regular":
            for i in np.flatnonzero(which >= 0):
                with np.errstate(all="ignore"):  # far away, where nothing is claimed, numbers overflow
                    tilt, start = self._tilts[which[i]], points[i]
                    points[i], upper[i] = self._end(A[i], tilt, bool(along[i]), start, float(upper[i]))
        for row in range(len(A)):
            points[row] = self._pulled_in(points[row])
        values = np.minimum(np.einsum("ij,ij->i", A, points), upper) if self._attained else np.full(len(A), -inf)
        return Solution(values, points, upper)

    @cached_property
    def _attained(self) -> bool:
        """Whether a point of C is known: the centre, on the way to which all others are looked for."""
        return float(self._height(self.centre[None])[0]) <= self._level

    def _end(self, a: Array, tilt: Tilt, downwards: bool, known: Array, upper: float) -> tuple[Array, float]:
        """About the maximiser of a'theta, and a bound, from those of the outer set.

        R is at least what it is with quieter tilts, for which a bound may be easier to prove.
        """
        scale, low, high = self._ranges()
        if not (np.isfinite(low).all() and np.isfinite(upper)):
            return known, upper
        best: Array | None = None
        for quieter in _QUIETER:
            search = Search(self._ratios, tilt.quieter(quieter), downwards, self._level)
            point, there = search.climbed(a, self.centre if best is None else best, scale)
            if not np.isfinite(point).all():
                break
            upper = min(upper, search.certified(a, point, there, low, high, upper))
            best = point if best is None else best
            if not upper - float(a @ best) > OPEN * float(a @ (best - self.centre)):
                break
        return known if best is None else best, upper

    def _pulled_in(self, point: Array) -> Array:
        """The point, or one on the way to the centre that is in C."""
        if not np.isfinite(point).all():
            return self.centre
        for back in (0.0, 1e-9, 1e-7, 1e-5, 1e-4, 1e-3, 1e-2, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9):
            trial = point + back * (self.centre - point)
            if float(np.linalg.norm(trial)) <= self._bound and float(self._height(trial[None])[0]) <= self._level:
                return trial
        return self.centre

    def _solve_outside(self, A: Array, outside: Array, near: Array | None, tolerance: float) -> Solution:
        if not outside.any():
            found = self._solve(A, None, tolerance)
            return Solution(found.values, np.column_stack([found.points, np.zeros(len(A))]), found.upper)
        leaving = self._outer.solve(A, tolerance, outside)
        points = np.column_stack([np.tile(self.centre, (len(A), 1)), np.zeros(len(A))])
        values = A @ self.centre if self._attained else np.full(len(A), -inf)
        return Solution(values, points, leaving.upper)
