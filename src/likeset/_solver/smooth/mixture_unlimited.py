r"""Window mixtures of quadratics without a ball.

For probabilities r over the voices, Jensen's inequality says that on C

    sum_k r_k M_k(theta) <= level + sum_k r_k log(r_k / pi_k),

a quadratic with the Hessian H = sum_b w_b a_b x_b x_b'. In coordinates in which H is the identity, counted from the
minimiser of the left side, that is a ball: it takes the place of the missing one and is not felt. In directions that
leave the span of the covariates C is unbounded. Any r will do; equal ones are taken.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from likeset._solver.evaluate import term_values
from likeset._solver.problem import CurveTerms, Kernel, MixtureSet, Solution
from likeset._solver.smooth.mixture import prepare
from likeset._solver.span import Span
from likeset._solver.voice_sums import group_pulls, voice_exponents
from likeset._typing import EPS, Array

WIDER = 1.01  # than the ball that holds C


@dataclass(frozen=True)
class Prepared(Kernel):
    """A set in coordinates of its own: theta = basis (origin + delta) / sizes, basis orthonormal."""

    inner: Kernel
    span: Span = field(repr=False)
    origin: Array = field(repr=False)
    sizes: Array = field(repr=False)

    @property
    def status(self) -> str:  # type: ignore[override]
        """ "regular", "point" or "empty"."""
        return self.inner.status

    @property
    def centre(self) -> Array:  # type: ignore[override]
        """A point of the set; if empty, the best point found."""
        return self._lifted(self.inner.centre[None])[0]

    @property
    def padded(self) -> Prepared:
        """The same with a coordinate outside the span."""
        assert self.span.basis is not None
        basis = np.pad(self.span.basis, ((0, 1), (0, 0)))
        return replace(self, span=Span(basis, False, self.span.dimension + 1))

    def _lifted(self, delta: Array) -> Array:
        assert self.span.basis is not None
        return ((self.origin + delta) / self.sizes) @ self.span.basis.T

    def _solve(self, A: Array, near: Array | None, tolerance: float) -> Solution:
        """Bounds are inf outside the span."""
        inside = self.span.contains(A, np.linalg.norm(A, axis=1))
        points, upper = np.tile(self.centre, (len(A), 1)), np.full(len(A), np.inf)
        if inside.any():
            a = self.span.reduce(A[inside]) / self.sizes
            found = self.inner.solve(a, tolerance)
            points[inside] = self._lifted(found.points)
            rounding = 64.0 * EPS * (np.abs(a) @ np.abs(self.origin) + np.abs(found.upper))
            upper[inside] = a @ self.origin + found.upper + rounding
        values = np.einsum("ij,ij->i", A, points)
        return Solution(values, points, np.maximum(upper, values))


def prepare_unlimited(target: MixtureSet) -> Kernel:
    """Whiten, and put a ball around C; the radius of the target is infinite and its terms are quadratic."""
    terms, voices = target.terms, target.voices
    assert isinstance(terms, CurveTerms)
    K, d = target.X.shape
    count = len(voices.log_shares)
    r = np.full(count, 1.0 / count)
    curvatures = group_pulls(voices, r, K) * terms.a
    roots = np.sqrt(curvatures)
    left, sizes, rows = np.linalg.svd(roots[:, None] * target.X, full_matrices=False)
    rank = int(np.sum(sizes > 8.0 * EPS * max(K, d) * sizes.max(initial=0.0)))
    basis, sizes = np.ascontiguousarray(rows[:rank].T), sizes[:rank]
    origins = np.zeros(K) if terms.origins is None else terms.origins
    best = origins + np.divide(terms.s, terms.a, out=np.zeros(K), where=terms.a > 0.0)  # z at which a term is least
    origin = left[:, :rank].T @ (roots * best)
    X = (target.X @ basis) / sizes
    shifted = CurveTerms(terms.curve, terms.a, terms.s, origins - X @ origin)
    parts = target.gains + term_values(shifted, np.zeros(K))
    heights = voice_exponents(voices, parts) - voices.log_shares
    room = target.level + float(r @ (np.log(r) - voices.log_shares - heights))
    sized = voice_exponents(voices, np.abs(target.gains) + np.abs(term_values(shifted, np.zeros(K))))
    rounding = 1e-9 * (1.0 + float(np.abs(sized).max()) + abs(target.level))
    radius = WIDER * float(np.sqrt(2.0 * max(room + rounding, rounding)))
    inner = prepare(replace(target, X=X, terms=shifted, radius=radius))
    return Prepared(inner, Span(basis, False, d), origin, sizes)
