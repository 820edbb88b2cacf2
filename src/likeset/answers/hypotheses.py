r"""Evidence against a hypothesis: the least log R over the parameters that it allows.

If theta* obeys a hypothesis H, the least ratio over H never exceeds R(theta*), so that

    e = min { R(theta) : theta in H cut with Theta }

is at most an e-process under H: it exceeds 1/alpha at some time with probability at most alpha. For a half-space
H = { a'theta >= b } its logarithm g(b) is a convex, increasing function of b, and the inverse of what kernels compute:

    h(L) = max { a'theta : log R(theta) <= L, theta in Theta } < b    <=>    g(b) > L.

Every level L that was solved for leaves a certified bound u >= h(L) and an attained value v <= h(L). Then
g(u) >= L >= g(v), and by convexity more is known than one inequality per level:

    below   the line from an attained (v_j, L_j) through a certified (u_i, L_i) bounds g beyond u_i from below;
    above   the chord between two attained points bounds g from above.

:func:`least_evidence` looks for the level with h(L) = b until the two agree. sqrt(L - min log R) is nearly linear in
a'theta (exactly so for an ellipsoid), and is what is interpolated; where to look needs no proof, what is returned has
one. All of this is about log R in the basis of the set; ``charge`` (zero in linear models) is taken off at the end.
Where log R is only quasi-convex (an unknown scale), the search is for the height of a convex function with the same
level sets, ``Evidence.level_sets``, which is translated into nats. With several voices there is no such function: lines
and chords are left out, and levels close in from both sides.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf
from typing import TYPE_CHECKING

import numpy as np

from likeset._typing import EPS, Array, IntArray
from likeset.answers.directions import split
from likeset.answers.floor import ACCURACY, COARSE, Floor, close, find_floor
from likeset.progress import meter

if TYPE_CHECKING:
    from likeset.sets import LikelihoodSet

_SOLVES = 14
_LIKELY = 2  # rounds that are left, when it is said how far the search is
_SHARED = 4  # levels at which all rows are solved for at once before each goes its own way
_NEIGHBOURS = 4
_LITTLE = 0.9  # of a small gap: where a level leaves more of it than this, it is the precision of kernels


@dataclass(frozen=True)
class EValue:
    r"""Evidence against one hypothesis, or one per row; what ``LikelihoodSet.evidence`` returns.

    log_e_value   a certified lower bound of min log R over the hypothesis, in nats; +inf where the hypothesis leaves
                  no parameter of Theta
    gap           how far the minimum lies above it at most

    Rounded to the safe side: never more evidence than there is.
    """

    log_e_value: Array
    gap: Array

    @property
    def e_value(self) -> Array:
        """exp(log_e_value): under the hypothesis it ever exceeds 1/alpha with probability at most alpha."""
        with np.errstate(over="ignore"):
            return np.exp(self.log_e_value)

    @property
    def p_value(self) -> Array:
        """min(1, 1/e), an anytime-valid p-value: under the hypothesis ever <= alpha with probability at most alpha."""
        return np.exp(-np.maximum(self.log_e_value, 0.0))


def least_evidence(
    s: LikelihoodSet, inside: Array, outside: Array, reach: Array, floor: Floor | None = None
) -> tuple[Array, Array]:
    """Certified bounds of min { log R(theta) : a'theta >= b, theta in Theta } for every direction a and b, ``reach``.

    Directions are given by coordinates ``inside`` the basis and lengths ``outside`` its span. At the set's own alpha
    the answer is on the side of log(1/alpha) that ``upper`` says: above it where the bound of a'theta is below b,
    below it where it is not. The ``floor`` is the same for all hypotheses, and found if it is not given.
    """
    search = _Search(s, inside, outside, reach)
    if s._evidence.says_nothing:
        return search.silence()
    search.run(floor or find_floor(s))
    return search.answer()


class _Search:
    """What is known of g for every direction: levels solved for (rows) by directions (columns)."""

    def __init__(self, s: LikelihoodSet, inside: Array, outside: Array, reach: Array) -> None:
        self.s, self.inside, self.outside, self.reach = s, inside, outside, reach
        self.evidence = s._evidence.level_sets
        self.accuracy = ACCURACY if self.evidence.convex else COARSE
        n = len(reach)
        self.lengths = np.hypot(np.linalg.norm(inside, axis=1), outside)
        self.levels, self.attained, self.certified = (np.empty((0, n)) for _ in range(3))
        self.low, self.high = np.full(n, -inf), np.full(n, inf)
        bound = s.space.bound
        zero = self.lengths == 0.0
        most = np.full(n, inf)  # of a'theta over Theta
        np.multiply(bound, self.lengths * (1 + 64 * EPS), out=most, where=~zero)
        self.impossible = np.where(zero, 0.0, most) < reach
        self.decided = np.full(n, inf)  # the bound of a'theta at the set's own alpha

    def run(self, floor: Floor) -> None:
        """Floor, the set's own level, levels for all directions, then each on its own."""
        self.centre, self.floor, self.rounding = floor.centre, floor.value, floor.rounding
        self.low[:] = floor.certified
        self.heights = self.inside @ self.centre
        self.high = np.where(self.heights >= self.reach, self.floor + self.rounding, self.high)
        self._reachable()
        open_to_doubt = self.reach > self.heights
        if self.s._kernel.status == "empty":
            self.decided[:] = -inf
        elif open_to_doubt.any():  # the others allow the centre, which is in the set
            self.decided[open_to_doubt] = self.s._bounds(self.inside[open_to_doubt], self.outside[open_to_doubt])
        everyone = np.flatnonzero(~self.impossible & open_to_doubt)
        if not len(everyone):
            return
        own = self.evidence.threshold
        if self.floor < own < inf:
            self._solve(own, everyone)
        active = self._open(everyone)
        with meter("weighing evidence", 1.0) as at:
            done = 0  # directions that were solved for, one by one or with others
            if len(active) > _SHARED:
                roots = np.sqrt(self._guesses(active) - self.floor)
                levels = np.unique(np.quantile(roots, np.linspace(0.0, 1.0, _SHARED)))
                for number, root in enumerate(levels):
                    at(done / (done + (len(levels) - number + _LIKELY) * len(active)))
                    self._solve(self.floor + root**2, active)
                    done += len(active)
                active = self._open(active)
            for _ in range(_SOLVES):
                if not len(active):
                    break
                gaps = self.high[active] - self.low[active]
                for number, (row, level) in enumerate(zip(active, self._guesses(active), strict=True)):
                    at(done / (done + (1 + _LIKELY) * len(active) - number))
                    self._solve(float(level), np.array([row]))
                    done += 1
                if self.evidence.convex:
                    stuck = close(self.s, self.low[active], self.high[active], COARSE)
                    active = active[~stuck | (self.high[active] - self.low[active] < _LITTLE * gaps)]
                active = self._open(active)

    def answer(self) -> tuple[Array, Array]:
        """The bounds found, less what the basis may owe, on the side of log(1/alpha) that ``upper`` is on."""
        low, high = self.low.copy(), np.maximum(self.high, self.low)
        if self.evidence.charge > 0.0:
            low = np.array([level - replace(self.evidence, threshold=level).charge for level in low])
            high = np.array([level + replace(self.evidence, threshold=level).charge for level in high])
        whole = self.s._evidence
        low, high = whole.nats(low), whole.nats(high)
        low = low - 64 * EPS * (1.0 + whole.size + np.where(np.isfinite(low), np.abs(low), 0.0))
        level = whole.threshold
        margin = 8 * EPS * (1.0 + abs(level))  # far less than kernels allow for the rounding of a level
        refuted = self.decided < self.reach
        low = np.where(refuted, np.maximum(low, level + margin), np.minimum(low, level - margin))
        return np.where(self.impossible, inf, low), np.where(self.impossible, inf, np.maximum(high, low))

    def silence(self) -> tuple[Array, Array]:
        """The answer where log R is the same for every theta."""
        constant = float(self.s._evidence.log_ratio(np.zeros((1, len(self.s._evidence.groups.covariates))))[0])
        both = np.where(self.impossible, inf, min(constant, 0.0))
        return both, both

    # -- one level ----------------------------------------------------------------------------------------------

    def _solve(self, level: float, rows: IntArray) -> None:
        """Solve for one level and some directions, and note what follows."""
        threshold = level - replace(self.evidence, threshold=level).charge
        asked = replace(self.evidence, threshold=threshold)
        kernel = asked.kernel
        solved_level, n = threshold + asked.charge, len(self.reach)
        known = np.full((3, n), np.nan)
        if kernel.status == "empty":
            known[0, rows], known[2, rows] = solved_level, -inf
        else:
            leaving, spill = split(self.s.space.bound, self.inside[rows], self.outside[rows])
            found = kernel.solve(self.inside[rows], 1e-9, outside=leaving)
            finite = np.isfinite(found.values)
            reached = np.where(finite, found.values, 0.0)
            reached -= 64 * EPS * (np.abs(reached) + np.abs(self.heights[rows]))
            known[0, rows], known[2, rows] = solved_level, found.upper + spill
            known[1, rows] = np.where(finite, reached, np.where(found.upper == inf, inf, np.nan))
        self.levels = np.vstack([self.levels, known[:1]])
        self.attained = np.vstack([self.attained, known[1:2]])
        self.certified = np.vstack([self.certified, known[2:]])
        self._conclude(rows)

    def _conclude(self, rows: IntArray) -> None:
        """Bounds of g(b) from all levels solved for: one by one, by lines and by chords."""
        L, v, u, b = (array[:, rows] for array in (self.levels, self.attained, self.certified, self.reach[None]))
        low, high = self.low[rows], self.high[rows]
        attained = L + self.rounding
        with np.errstate(invalid="ignore", divide="ignore"):
            low = np.fmax(low, np.fmax.reduce(np.where(u < b, L, -inf), axis=0, initial=-inf))
            high = np.fmin(high, np.fmin.reduce(np.where(v >= b, attained, inf), axis=0, initial=inf))
            if not self.evidence.convex:  # nor is g, and no more is known
                self.low[rows], self.high[rows] = low, high
                return
            # lines: i certified on the first axis, j attained on the second
            run = u[:, None] - v[None]
            between = ((run > 0) & (b >= u)[:, None]) | ((run < 0) & (b <= u)[:, None])
            far = np.abs(run) > 1e-9 * (np.abs(u)[:, None] + np.abs(v)[None])
            line = L[:, None] + (L[:, None] - attained[None]) / run * (b - u)[:, None]
            line = np.where(between & far & np.isfinite(run), line, -inf)
            low = np.fmax(low, np.fmax.reduce(line, axis=(0, 1), initial=-inf))
            # chords: i at or below b on the first axis, j above it on the second
            share = (b - v)[:, None] / (v[None] - v[:, None])
            chord = attained[:, None] + (L[None] - L[:, None]) * share
            chord = np.where((v <= b)[:, None] & (v > b)[None] & np.isfinite(v)[None], chord, inf)
            high = np.fmin(high, np.fmin.reduce(chord, axis=(0, 1), initial=inf))
        self.low[rows], self.high[rows] = low, high

    # -- where to look ------------------------------------------------------------------------------------------

    def _reachable(self) -> None:
        """A parameter that the hypothesis allows, on the way from the centre: an upper bound of g, to start from."""
        bound = self.s.space.bound
        far = np.divide(
            self.inside, self.lengths[:, None], out=np.zeros(self.inside.shape), where=self.lengths[:, None] > 0
        )
        far = self.centre + far if bound == inf else bound * far
        most = self.lengths * bound if bound < inf else self.heights + self.lengths
        with np.errstate(invalid="ignore", divide="ignore"):
            share = np.clip((self.reach - self.heights) / (most - self.heights), 0.0, 1.0 if bound < inf else inf)
        share = np.where(np.isfinite(share), share, 0.0)
        points = self.centre + share[:, None] * (far - self.centre)
        values = self.evidence.log_ratio(points @ self.evidence.groups.coordinates.T)
        wanted = ~self.impossible & (self.reach > self.heights)
        self.high = np.where(wanted & np.isfinite(values), np.fmin(self.high, values + self.rounding), self.high)

    def _open(self, rows: IntArray) -> IntArray:
        """Rows whose bounds are not close enough yet, and can be brought closer."""
        low, high = self.low[rows], self.high[rows]
        # Where the least value known is attained, levels above it say nothing.
        return rows[~close(self.s, low, high, self.accuracy) & (high > self.floor + 2.0 * self.rounding)]

    def _guesses(self, rows: IntArray) -> Array:
        """Levels at which a'theta should reach b: sqrt(L - floor) as a polynomial in a'theta through close points."""
        return np.array([self._guess(row) for row in rows])

    def _guess(self, row: int) -> float:
        low, high = max(float(self.low[row]), self.floor), float(self.high[row])
        v, L, b = self.attained[:, row], self.levels[:, row], self.reach[row]
        usable = np.isfinite(v) & (self.floor < L)
        v, w = np.append(self.heights[row], v[usable]), np.sqrt(np.append(0.0, L[usable] - self.floor))
        order = np.argsort(np.abs(v - b))[:_NEIGHBOURS]
        root = _interpolated(v[order], w[order], b)
        level = self.floor + root * abs(root)
        if not self.evidence.convex and low < level < high < inf:
            # A little to the side of which less is known: the answer is then between two levels.
            aside = 0.4 * self.accuracy * (1.0 + abs(level))
            level = max(level - aside, low) if level - low > high - level else min(level + aside, high)
        if low < level < high:
            return float(level)
        if high == inf:
            return low + 2.0 * (1.0 + abs(low))
        return float(self.floor + (0.5 * (np.sqrt(low - self.floor) + np.sqrt(max(high - self.floor, 0.0)))) ** 2)


def _interpolated(x: Array, y: Array, at: float) -> float:
    """The polynomial through (x_i, y_i) at a point, by Neville's scheme; NaN where two x_i are equal."""
    value = y.copy()
    with np.errstate(invalid="ignore", divide="ignore"):
        for k in range(1, len(x)):
            value = ((at - x[k:]) * value[:-1] - (at - x[:-k]) * value[1:]) / (x[:-k] - x[k:])
    return float(value[0])
