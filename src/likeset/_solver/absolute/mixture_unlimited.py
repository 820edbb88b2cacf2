r"""Window mixtures of absolute values without a ball.

In the span of the covariates C is bounded: the ceilings of :mod:`~likeset._solver.absolute.mixture` say how far every
z_b = x_b'theta can go,

    |z_b| <= R_b = (ceiling_b + sum_i u_bi |y_bi|) / sum_i u_bi        because  u |z| <= u |y - z| + u |y|,

so that |theta| <= |R| / sigma_min(X). That ball takes the place of the missing one and is not felt. In directions that
leave the span C is unbounded.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from likeset._solver.absolute.mixture import ceilings, memberships, prepare
from likeset._solver.evaluate import term_values
from likeset._solver.problem import Kernel, MixtureSet, PointTerms, Solution, with_zero
from likeset._solver.span import Span
from likeset._solver.through import Through
from likeset._typing import EPS, Array


@dataclass(frozen=True)
class Prepared(Through):
    """A set in the span of the covariates, and the way there."""

    span: Span = field(repr=False)

    @property
    def centre(self) -> Array:  # type: ignore[override]
        """A point of the set; if empty, the best point found."""
        return self.span.expand(self.inner.centre[None], np.zeros((1, self.span.dimension)))[0]

    @property
    def padded(self) -> Prepared:
        """The same with a coordinate outside the span."""
        assert self.span.basis is not None
        basis = with_zero(self.span.basis)
        return Prepared(self.inner, Span(basis, False, self.span.dimension + 1))

    def _solve(self, A: Array, near: Array | None, tolerance: float) -> Solution:
        """Bounds are inf outside the span."""
        inside = self.span.contains(A, np.linalg.norm(A, axis=1))
        points, upper = np.tile(self.centre, (len(A), 1)), np.full(len(A), np.inf)
        if inside.any():
            found = self.inner.solve(self.span.reduce(A[inside]), tolerance)
            points[inside] = self.span.expand(found.points, A[inside])
            upper[inside] = found.upper + 64.0 * EPS * np.abs(found.upper)
        values = np.einsum("ij,ij->i", A, points)
        return Solution(values, points, np.maximum(upper, values))


def prepare_unlimited(target: MixtureSet) -> Kernel:
    """Reduce to the span and put a ball around C; the bound of the target is infinite."""
    terms = target.terms
    assert isinstance(terms, PointTerms)
    K, d = target.X.shape
    owner = np.repeat(np.arange(K), np.diff(terms.starts))
    totals = np.bincount(owner, terms.weights, minlength=K)
    seen = totals > 0.0
    _, sizes, rows = np.linalg.svd(target.X[seen], full_matrices=False)
    rank = int(np.sum(sizes > 8.0 * EPS * max(K, d) * sizes.max(initial=0.0)))
    basis = np.ascontiguousarray(rows[:rank].T)
    span = Span(basis, False, d)
    if rank == 0:
        return Prepared(prepare(replace(target, X=np.zeros((K, 1)), bound=0.0)), Span(np.zeros((d, 1)), False, d))
    ceiling = np.maximum(ceilings(target, memberships(target))[0], 0.0) + term_values(terms, np.zeros(K))
    reach = ceiling[seen] / totals[seen]
    bound = 1.01 * float(np.linalg.norm(reach)) / float(sizes[rank - 1])
    return Prepared(prepare(replace(target, X=target.X @ basis, bound=bound)), span)
