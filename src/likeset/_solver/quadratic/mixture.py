r"""Mixtures of quadratics: many rows become few, and a set without a ball gets one that contains it.

**Few rows.** Groups that the same voices hold enter every M_k as one sum. Around a reference theta_0, with delta =
theta - theta_0, W = diag(sqrt a) X and f_b = sqrt(a_b) (o_b + s_b / a_b - x_b'theta_0),

    sum_b a_b (z_b - o_b)^2 / 2 - s_b (z_b - o_b)  =  |W delta - f|^2 / 2 - sum_b s_b^2 / (2 a_b),
    |W delta - f|^2  =  |R delta - u|^2 + rest^2          [W f] = Q [R u; 0 rest],

so that d rows of R with origins R theta_0 + u stand for all of them: a million rows cost what twenty do. Q R errs by a
few eps |W| and eps |f|, hence M_k by at most  c eps |W| D (|W| D + |f|)  where |delta| <= D; the level is raised by it.
Where nearly every row is heard by other voices (many windows), each voice has d rows of its own instead.

**A ball.** By Jensen's inequality the average of the M_k with weights r is at most L = level + sum_k r_k log(r_k/pi_k)
on C. It is a quadratic of delta with gradient g, height v and smallest curvature lam at theta_0, so that C lies in

    |delta| <= D = (|g| + sqrt(|g|^2 + 2 lam (L - v))) / lam.

A larger ball around zero changes nothing, and the kernel for balls can be used.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np

from likeset._solver.evaluate import evaluate_terms, log_sum_exp
from likeset._solver.problem import CurveTerms, Kernel, MixtureSet, Solution, VoiceTable, with_column
from likeset._solver.through import Through
from likeset._solver.voice_sums import group_pulls
from likeset._typing import EPS, Array, IntArray
from likeset.parts import worked_out

PLAIN = 64  # different rows: as few are not worth being made fewer
FEW = 4  # times d: as many rows of one kind are left as they are
BLOCK = 1 << 16  # rows that are factorised at once
_SMALLEST = 1e-140  # bound of a ball: outcomes that are all zero leave a point, and squares must not vanish
WIDE = 1e-6  # of the distance to the centre: gaps that are looked at again
DEAREST = 1e-7  # nats that few rows may cost; otherwise all of them are kept


@dataclass(frozen=True)
class Enclosed(Through):
    """A set without a ball that lies in one: along a direction that leaves the span it is unbounded.

    ``otherwise`` makes a slower kernel of the same set. It is asked where ``inner`` leaves a wide gap, which happens
    where rounding is large beside the level: both bounds hold, the sharper one counts.
    """

    otherwise: Callable[[], Kernel]
    wide: float = WIDE
    starts_near = True

    def _solve(self, A: Array, near: Array | None, tolerance: float) -> Solution:
        found = self.inner._solve(A, near, tolerance)
        width = found.upper - A @ self.inner.centre
        wide = np.flatnonzero(found.upper - found.values > self.wide * width)
        if len(wide) == 0 or self._other.status != "regular":
            return found
        again = self._other.solve(A[wide], tolerance)
        sharper = np.minimum(found.upper[wide], again.upper)
        attained = (again.values > found.values[wide]) & (again.upper < np.inf)
        found.upper[wide] = sharper
        found.points[wide[attained]], found.values[wide[attained]] = again.points[attained], again.values[attained]
        return found

    @worked_out
    def _other(self) -> Kernel:
        return self.otherwise()

    def _solve_outside(self, A: Array, outside: Array, near: Array | None, tolerance: float) -> Solution:
        n, d = A.shape
        values, points = np.full(n, np.inf), np.full((n, d + 1), np.nan)
        upper, kept = values.copy(), outside == 0.0
        if kept.any():
            found = self.solve(A[kept], tolerance, near=None if near is None else near[kept])
            values[kept], upper[kept], points[kept] = found.values, found.upper, with_column(found.points)
        return Solution(values, points, upper)


def prepare(target: MixtureSet, otherwise: Callable[[MixtureSet], Kernel]) -> Kernel:
    """A mixture of quadratics; ``otherwise`` where the rows do not span the space and there is no ball."""
    from likeset._solver.smooth import mixture

    plain = _distinct(target) <= PLAIN
    if plain and target.bound < math.inf:
        return mixture.prepare(target)
    theta = reference(target)
    target = target if plain else _with_few_rows(target, theta)
    if target.bound < math.inf:
        return mixture.prepare(target)
    distance = _distance(target, theta)
    if not distance < math.inf:
        return otherwise(target)
    bound = max(2.0 * (float(np.linalg.norm(theta)) + distance), _SMALLEST)
    return Enclosed(mixture.prepare(replace(target, bound=bound)), partial(otherwise, target))


def _distinct(target: MixtureSet) -> int:
    """How many different rows there are at most: what the kernel's time goes by."""
    return len(target.X) if target.owners is None else len(np.unique(target.owners))


def reference(target: MixtureSet) -> Array:
    """About the minimiser of the sum of all terms; where there are many, the least one."""
    terms, X = target.terms, target.X
    assert isinstance(terms, CurveTerms)
    theta = np.zeros(X.shape[1])
    inverse = np.linalg.pinv((X.T * terms.a) @ X, rcond=1e-12, hermitian=True)
    for _ in range(2):  # the second step mends what the first one lost
        _, slopes, _ = evaluate_terms(terms, X @ theta)
        theta = theta - inverse @ (X.T @ slopes)
    return theta if np.isfinite(theta).all() else np.zeros_like(theta)


def _distance(target: MixtureSet, theta: Array) -> float:
    """D, rounded upwards; inf where a direction is left open. Weights pi / sum pi, or equal ones: the smaller."""
    log_shares = target.voices.log_shares
    equal = np.full(len(log_shares), 1.0 / len(log_shares))
    weights = (np.exp(log_shares - float(log_sum_exp(log_shares))), equal)
    return min(_distance_of_average(target, theta, r) for r in weights)


def _distance_of_average(target: MixtureSet, theta: Array, r: Array) -> float:
    """D of the average of the M_k with weights r: at most level + sum_k r_k log(r_k / pi_k) on C."""
    loud = r > 0.0
    level = target.level + float(r[loud] @ (np.log(r[loud]) - target.voices.log_shares[loud]))
    pulls = group_pulls(target.voices, r, len(target.X))
    heights, slopes, bends = evaluate_terms(target.terms, target.X @ theta)  # type: ignore[arg-type]
    parts = pulls * (target.gains + heights)
    sizes = abs(target.level) + abs(level) + float(np.abs(parts).sum())
    room = level - float(parts.sum()) + 64 * EPS * (1.0 + sizes)
    values = np.linalg.eigvalsh((target.X.T * (pulls * bends)) @ target.X)
    lam = float(values[0]) - 64 * EPS * len(values) * float(values[-1])
    if not lam > 0.0:
        return math.inf
    g = float(np.linalg.norm(target.X.T @ (pulls * slopes)))
    return 1.01 * (g + math.sqrt(g * g + 2.0 * lam * max(room, 0.0))) / lam


class Fewer(NamedTuple):
    """A mixture from few rows.

    small    without what that may cost
    theta    the reference
    sizes    |W|, |f| and the size of what was added up, for every triangle
    total    whether all triangles enter each voice
    """

    small: MixtureSet
    theta: Array
    sizes: list[tuple[float, float, float]]
    total: bool

    def cost(self, small: MixtureSet, scale: float = 1.0) -> float:
        """Nats that few rows may cost in ``small``, whose terms are ``scale`` times those that were made fewer.

        c eps |W| D (|W| D + |f|), and the rounding of what was added up, for every triangle.
        """
        reach = min(2.0 * _distance(small, self.theta), small.bound + float(np.linalg.norm(self.theta)))
        d = small.X.shape[1]
        costs = [64 * EPS * scale * (d * w * reach * (w * reach + f) + added) for w, f, added in self.sizes]
        return sum(costs) if self.total else max(costs)


def _with_few_rows(target: MixtureSet, theta: Array) -> MixtureSet:
    """The same set from few rows, its level raised by what that may cost; as it is where that is not worth while."""
    found = fewer_rows(target, theta)
    if found is None:
        return target
    cost = found.cost(found.small)
    return replace(found.small, level=target.level + cost) if is_cheap(cost, target.level) else target


def is_cheap(cost: float, level: float) -> bool:
    """Whether few rows may stand for all."""
    return cost <= DEAREST * (1.0 + abs(level))


def fewer_rows(target: MixtureSet, theta: Array) -> Fewer | None:
    """Few rows that stand for all; None where that is not worth while."""
    terms, (count, d) = target.terms, target.X.shape
    assert isinstance(terms, CurveTerms)
    if count <= FEW * d or not (terms.a > 0.0).all():
        return None
    kinds = _kinds(target.voices, count)
    if kinds is None:
        return _voice_by_voice(target, theta)
    origins = np.zeros(count) if terms.origins is None else terms.origins
    roots = np.sqrt(terms.a)
    apart = roots * (origins + terms.s / terms.a - target.X @ theta)
    constants = target.gains - 0.5 * terms.s**2 / terms.a
    X, a, s, o, gains, numbers = [], [], [], [], [], np.full(count, -1, dtype=np.int64)
    sizes, made = [], 0
    order = np.argsort(kinds, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(kinds[order])) + 1):
        if len(rows) <= FEW * d:
            X.append(target.X[rows])
            a.append(terms.a[rows])
            s.append(terms.s[rows])
            o.append(origins[rows])
            gains.append(target.gains[rows])
            numbers[rows] = made + np.arange(len(rows))
            made += len(rows)
            continue
        triangle = _triangle(target.X, roots, apart, rows)
        R, u, rest = triangle[:d, :d], triangle[:d, d], float(triangle[d, d])
        X.append(R)
        a.append(np.ones(d))
        s.append(np.zeros(d))
        o.append(R @ theta + u)
        gains.append(np.append(float(constants[rows].sum()) + 0.5 * rest * rest, np.zeros(d - 1)))
        numbers[rows[:d]] = made + np.arange(d)
        made += d
        added = float(np.abs(target.gains[rows]).sum() + np.abs(constants[rows]).sum()) + rest * rest
        sizes.append((float(np.linalg.norm(R)), math.hypot(float(np.linalg.norm(u)), rest), added))
    if not sizes:
        return None
    held = numbers[target.voices.members]
    kept, owners = held >= 0, target.voices.owners
    starts = np.searchsorted(owners[kept], np.arange(len(target.voices.log_shares) + 1)).astype(np.int64)
    small = replace(
        target, X=np.ascontiguousarray(np.vstack(X)), gains=np.concatenate(gains), owners=None,
        terms=CurveTerms(terms.curve, np.concatenate(a), np.concatenate(s), np.concatenate(o)),
        voices=VoiceTable(starts, held[kept], target.voices.log_shares),
    )  # fmt: skip
    return Fewer(small, theta, sizes, total=True)


def _voice_by_voice(target: MixtureSet, theta: Array) -> Fewer | None:
    """A triangle of its own for every voice; None where that is not worth while."""
    terms, voices, d = target.terms, target.voices, target.X.shape[1]
    assert isinstance(terms, CurveTerms)
    count = len(voices.log_shares)
    if len(voices.members) <= FEW * d * count:
        return None
    origins = np.zeros(len(terms.a)) if terms.origins is None else terms.origins
    roots = np.sqrt(terms.a)
    apart = roots * (origins + terms.s / terms.a - target.X @ theta)
    constants = target.gains - 0.5 * terms.s**2 / terms.a
    X, o, gains, sizes = np.empty((count * d, d)), np.empty(count * d), np.zeros(count * d), []
    for k in range(count):
        rows = voices.members[voices.starts[k] : voices.starts[k + 1]]
        triangle = _triangle(target.X, roots, apart, rows)
        R, u, rest = triangle[:d, :d], triangle[:d, d], float(triangle[d, d])
        X[k * d : (k + 1) * d], o[k * d : (k + 1) * d] = R, R @ theta + u
        gains[k * d] = float(constants[rows].sum()) + 0.5 * rest * rest
        added = float(np.abs(target.gains[rows]).sum() + np.abs(constants[rows]).sum()) + rest * rest
        sizes.append((float(np.linalg.norm(R)), math.hypot(float(np.linalg.norm(u)), rest), added))
    small = replace(
        target, X=X, gains=gains, owners=None,
        terms=CurveTerms(terms.curve, np.ones(count * d), np.zeros(count * d), o),
        voices=VoiceTable(np.arange(count + 1) * d, np.arange(count * d), voices.log_shares),
    )  # fmt: skip
    return Fewer(small, theta, sizes, total=False)


def _triangle(X: Array, roots: Array, apart: Array, rows: IntArray) -> Array:
    """The upper triangle of a Q R factorisation of [W f], shape (d + 1, d + 1), block by block."""
    d = X.shape[1]
    found = np.zeros((0, d + 1))
    for start in range(0, len(rows), BLOCK):
        part = rows[start : start + BLOCK]
        block = np.column_stack([roots[part, None] * X[part], apart[part]])
        found = np.asarray(np.linalg.qr(np.vstack([found, block]), mode="r"))
    return found if len(found) == d + 1 else np.pad(found, ((0, d + 1 - len(found)), (0, 0)))


def _kinds(voices: VoiceTable, count: int) -> IntArray | None:
    """A number for every group, equal for those that the same voices hold; None if there are too many kinds."""
    order = np.lexsort((voices.owners, voices.members))
    owners, members = voices.owners[order], voices.members[order]
    held = np.bincount(members, minlength=count)
    first = np.cumsum(held) - held
    marks = np.random.default_rng(0).random((2, len(voices.log_shares)))
    sums = np.column_stack([held, *(np.bincount(members, mark[owners], minlength=count) for mark in marks)])
    _, start, kinds = np.unique(sums, axis=0, return_index=True, return_inverse=True)
    kinds = kinds.reshape(-1)
    if 2 * len(start) > count:
        return None
    # Sums of random marks tell sets apart but for chance; that equal ones are equal is looked up.
    alike = np.repeat(first[start[kinds]] - first, held) + np.arange(len(owners))
    return kinds if np.array_equal(owners[alike], owners) else None
