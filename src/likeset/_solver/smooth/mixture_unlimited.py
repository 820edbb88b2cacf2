r"""Mixtures of smooth terms without a ball: one is put around them that is not felt.

By Jensen's inequality the average F of the M_k with weights r is at most L = level + sum_k r_k log(r_k/pi_k) on C. Both
curves, e^z and log(1 + e^z), have |A'''| <= A'', so that A''(z + u) >= A''(z) e^-|u|, and integrated twice

    A(z + u) - A(z) - A'(z) u  >=  A''(z) (e^-|u| + |u| - 1)  =  A''(z) u^2 w(|u|),      w decreasing.

With H the Hessian of F at theta_0, g the gradient, v the value, ell = max_b |x_b| in the norm of H^-1, t = |delta| in
that of H and S = ell t >= |x_b'delta| for every b this gives

    F(theta_0 + delta)  >=  v - |g|_{H^-1} t + t^2 w(S)  =  v + (e^-S + S - 1) / ell^2 - |g|_{H^-1} S / ell,

convex in S and, if |g|_{H^-1} ell < 1, beyond L from some S on. So C lies in a ball in the norm of H, hence in one
around zero, and the kernel for balls answers. Columns are scaled by powers of two first, which rounds nothing, so that
the ball is not much wider than the set along some of them.

If F has no minimiser (zeros and ones that a plane separates, no counts yet) C is unbounded, and
:mod:`~likeset._solver.dual` says where.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from likeset._solver.evaluate import evaluate_terms, log_sum_exp, reweighted, term_sizes
from likeset._solver.newton import Goal, minimise_over_ball
from likeset._solver.problem import CurveTerms, Kernel, MixtureSet, Solution
from likeset._solver.quadratic.mixture import Enclosed
from likeset._solver.smooth import mixture
from likeset._solver.through import Through
from likeset._solver.voice_sums import group_pulls
from likeset._typing import EPS, Array

STEPS = 30  # of Newton's method, to a minimiser that may not exist
HALVINGS = 60
WIDE = 1e-4  # of the distance to the centre: the slower kernel is slow, and asked where much can be gained


@dataclass(frozen=True)
class Rescaled(Through):
    """A set in coordinates scale * theta."""

    scale: Array
    starts_near = True

    @property
    def centre(self) -> Array:  # type: ignore[override]
        """In the coordinates asked for."""
        return self.inner.centre / self.scale

    def _solve(self, A: Array, near: Array | None, tolerance: float) -> Solution:
        found = self.inner._solve(A / self.scale, None if near is None else near * self.scale, tolerance)
        return replace(found, points=found.points / self.scale)


def prepare(target: MixtureSet, otherwise: Callable[[MixtureSet], Kernel]) -> Kernel:
    """A mixture of curves; ``otherwise`` where it is unbounded, or the ball cannot be found."""
    assert isinstance(target.terms, CurveTerms)
    scale = np.exp2(np.round(np.log2(np.maximum(np.linalg.norm(target.X, axis=0), 1e-300))))
    scaled = replace(target, X=np.ascontiguousarray(target.X / scale))
    bound = _bound_of(scaled)
    if not bound < math.inf:
        return otherwise(target)
    inner = mixture.prepare(replace(scaled, bound=2.0 * bound))
    return Enclosed(Rescaled(inner, scale), partial(otherwise, target), WIDE)


def _bound_of(target: MixtureSet) -> float:
    """Of a ball around zero that contains C, rounded upwards; inf where none was found."""
    log_shares = target.voices.log_shares
    r = np.exp(log_shares - float(log_sum_exp(log_shares)))
    loud = r > 0.0
    level = target.level + float(r[loud] @ (np.log(r[loud]) - log_shares[loud]))
    pulls = group_pulls(target.voices, r, len(target.X))
    held = pulls > 0.0
    X, terms = target.X[held], reweighted(target.terms, pulls, held)
    assert isinstance(terms, CurveTerms)
    gains = pulls[held] * target.gains[held]
    goal = Goal(1e-6, iterations=STEPS)
    theta = minimise_over_ball(X, terms, 0.0, math.inf, np.zeros(X.shape[1]), goal).theta
    z = X @ theta
    with np.errstate(over="ignore", invalid="ignore"):
        heights, slopes, bends = evaluate_terms(terms, z)
        hessian = (X.T * bends) @ X
        sizes = float(term_sizes(terms, z, heights).sum() + np.abs(gains).sum())
        room = level - float(gains.sum() + heights.sum()) + 64 * EPS * (1.0 + abs(level) + sizes)
    if not (np.isfinite(hessian).all() and math.isfinite(room)):
        return math.inf
    values, vectors = np.linalg.eigh(hessian)
    slack = 64 * EPS * len(values) * float(values[-1])
    if not values[0] > 16.0 * slack:  # so that what follows errs by little
        return math.inf
    roots = np.sqrt(values - slack)
    ell = 1.01 * float(np.sqrt(np.max(np.sum(((X @ vectors) / roots) ** 2, axis=1))))
    g = 1.01 * float(np.linalg.norm((X.T @ slopes) @ vectors / roots))
    reach = _farthest(max(room, 0.0), g, ell)
    return 1.01 * (float(np.linalg.norm(theta)) + reach / float(roots[0]))


def _farthest(room: float, g: float, ell: float) -> float:
    """The largest t with (e^-S + S - 1) / ell^2 - g S / ell <= room, S = ell t; rounded upwards."""
    slope = 1.0 - g * ell
    if not slope > 1e-3:
        return math.inf
    low, high = 0.0, (room * ell * ell + 1.0) / slope  # e^-S left out
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        beyond = math.exp(-middle) + slope * middle - 1.0 > room * ell * ell + 1e-12
        low, high = (low, middle) if beyond else (middle, high)
    return 1.01 * high / ell
