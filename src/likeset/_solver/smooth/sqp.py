r"""Many directions over one bounded smooth set: feasible sequential quadratic programming in lock-step.

For every direction a (a row of A), maximise a'delta over C (centred coordinates, see
:mod:`~likeset._solver.smooth.rays`). One iteration, from a point on the boundary of C:

1. gradient  g = g_c + X'(phi'(z + u) - phi'(z))  of all directions at once: a matrix product;
2. the certificate of the tangent (:mod:`~likeset._solver.certificate`) gives an outer bound and the multipliers
   (lam, mu); stop where the bound meets a'delta;
3. packed Hessians  sum_k phi_k'' x_k x_k'  of all directions, another matrix product, in the coordinates in which they
   count (``leading``), and a step along both boundaries (:mod:`~likeset._solver.smooth.steps`);
4. back along the ray from theta_c to the boundary (:mod:`~likeset._solver.smooth.rays`), so that every iterate is in C.
   A step that does not raise a'delta is undone; from then on this direction takes careful steps (an eigendecomposition
   each: the quadratic model is maximised with the ball as it is), damped until they succeed.

Convergence is quadratic, 2-4 iterations as a rule; the bound is valid whether or not it converges.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from likeset._solver.certificate import certify
from likeset._solver.evaluate import evaluate_terms
from likeset._solver.linalg.eigen import eigen
from likeset._solver.linalg.lanes import packed_indices
from likeset._solver.problem import CallableTerms, SmoothTerms, with_column, with_zero
from likeset._solver.smooth.centred import CalledTerms, CentredTerms, called_at, centred_at
from likeset._solver.smooth.ellipsoids import model_maximisers
from likeset._solver.smooth.leading import SMALL, leading_block, packed_products
from likeset._solver.smooth.rays import SLIVER, project_called_rays, project_rays
from likeset._solver.smooth.steps import follow_boundaries, linearised_steps
from likeset._typing import EPS, Array
from likeset.parts import worked_out

MAX_ITERATIONS = 120
FIRST_DAMPING, MAX_DAMPING = 1e-3, 1e12
ROUNDING = 2 * EPS
PACKED_LIMIT = 4_000_000  # numbers in the table of products x_ki x_kj (32 MB); beyond, Hessians one by one
BLOCK_LIMIT = 200_000  # numbers in an (n, K) block of directions
WORTH_DROPPING = 0.9  # directions that are done go on with the others until there are enough of them to drop


@dataclass(frozen=True)
class CentredSet:
    """C = { delta : g_c'delta + sum_k D_k(x_k'delta) <= e, |delta|^2 + 2 theta_c'delta <= e2 }.

    z = X theta_c; ``centred`` are the terms around z. The Hessian of F at the centre has eigenvalues ``curvatures``,
    largest first, and eigenvectors ``axes``.
    """

    X: Array
    terms: SmoothTerms
    theta_c: Array
    bound: float
    e: float
    e2: float
    z: Array
    centred: CentredTerms | CalledTerms
    g_c: Array
    curvatures: Array
    axes: Array

    @worked_out
    def products(self) -> Array | None:
        """The table of x_ki x_kj, i <= j; None if it would be too large."""
        K, d = self.X.shape
        return packed_products(self.X, d) if K * d * (d + 1) // 2 <= PACKED_LIMIT else None

    @worked_out
    def turned(self) -> Array:
        """The covariates in the coordinates of ``axes``."""
        return self.X @ self.axes

    @worked_out
    def turned_squares(self) -> Array:
        """Their squares: weights times this is the diagonal of a Hessian in these coordinates."""
        return self.turned**2

    def with_flat(self) -> CentredSet:
        """The same with one more coordinate, on which F does not depend."""
        d = len(self.theta_c)
        axes = np.zeros((d + 1, d + 1))
        axes[:d, :d], axes[d, d] = self.axes, 1.0
        return replace(
            self, X=with_column(self.X), theta_c=with_zero(self.theta_c), g_c=with_zero(self.g_c),
            curvatures=with_zero(self.curvatures), axes=axes,
        )  # fmt: skip

    def project(self, Y: Array, U: Array, slopes: Array, weights: Array, rise: Array) -> None:
        """Rows of Y and U = Y X' to the boundary of C, in place; derivatives there to slopes, weights, rise."""
        around = self.g_c, self.theta_c, self.e, self.e2
        if isinstance(self.centred, CalledTerms):
            project_called_rays(Y, U, self.centred, *around, slopes, weights, rise)
        else:
            project_rays(Y, U, self.centred, *around, slopes, weights, rise)

    def hessians(self, weights: Array) -> Array:
        """Packed upper triangles of X' diag(w) X, one column for every row w of weights."""
        if self.products is not None:
            return self.products @ weights.T
        upper = packed_indices(self.X.shape[1])
        return np.column_stack([((self.X.T * w) @ self.X)[upper] for w in weights])

    def maximise(self, A: Array, tolerance: float) -> tuple[Array, Array]:
        """(delta, upper): feasible points and outer bounds of a'delta for unit rows a of A (n, d)."""
        block = max(1, BLOCK_LIMIT // max(1, len(self.X), self.X.shape[1] ** 2 // 2))
        pieces = [self._maximise_block(A[i : i + block], tolerance) for i in range(0, len(A), block)]
        return np.concatenate([p[0] for p in pieces]), np.concatenate([p[1] for p in pieces])

    def _maximise_block(self, A: Array, tolerance: float) -> tuple[Array, Array]:
        n, K = len(A), len(self.X)
        best, upper = np.zeros_like(A), np.full(n, np.inf)
        rows = np.arange(n)  # directions still going; the arrays below hold only those
        Y = self._start(A)
        U = Y @ self.X.T
        slopes, weights, rise = np.empty((n, K)), np.empty((n, K)), np.empty(n)
        self.project(Y, U, slopes, weights, rise)
        damping, careful, value = np.zeros(n), np.zeros(n, dtype=bool), np.einsum("ij,ij->i", A, Y)
        rounding = ROUNDING * float(np.linalg.norm(self.theta_c))  # a smaller gap is lost in a'theta_c + a'delta
        for _ in range(MAX_ITERATIONS):
            G = self.g_c + slopes @ self.X
            ceiling, lam, mu, slack_g, slack_b = certify(A, Y, G, rise, self.theta_c, self.e, self.e2, self.bound)
            upper[rows] = ceiling = np.minimum(upper[rows], ceiling)
            best[rows] = Y
            going = (ceiling - value > np.maximum(tolerance * ceiling, rounding)) & (damping < MAX_DAMPING)
            left = np.flatnonzero(going)
            if len(left) == 0:
                break
            if len(left) <= WORTH_DROPPING * len(going):
                rows, careful, going = rows.take(left), careful.take(left), going.take(left)
                A, Y, U, G, slopes, weights = (x.take(left, axis=0) for x in (A, Y, U, G, slopes, weights))
                rise, value, lam, mu, damping, slack_g, slack_b = (
                    x.take(left) for x in (rise, value, lam, mu, damping, slack_g, slack_b)
                )
            steps = self._steps(A, Y, U, G, weights, lam, mu, slack_g, slack_b)
            for i in np.flatnonzero(careful & going) if careful.any() else ():
                steps[i] = self._careful_step(A[i], Y[i], G[i], weights[i], float(rise[i]), float(damping[i]))
            new_Y, new_U = Y + steps, U + steps @ self.X.T
            new_slopes, new_weights, new_rise = np.empty_like(slopes), np.empty_like(weights), np.empty_like(rise)
            self.project(new_Y, new_U, new_slopes, new_weights, new_rise)
            new_value = np.einsum("ij,ij->i", A, new_Y)
            # Within the sliver of the projection a value may fall although the point improves.
            better = new_value > value - 4.0 * SLIVER * np.abs(value)
            failed = np.flatnonzero(~better)
            if len(failed) or careful.any():
                relaxed = np.where(damping > 1e-6, 0.1 * damping, 0.0)
                tighter = np.where(careful, np.maximum(FIRST_DAMPING, 10.0 * damping), 0.0)  # careful, then damped
                damping = np.where(better, relaxed, tighter)
                careful |= ~better & going
                new_Y[failed], new_U[failed], new_slopes[failed] = Y[failed], U[failed], slopes[failed]
                new_weights[failed], new_rise[failed], new_value[failed] = weights[failed], rise[failed], value[failed]
            Y, U, slopes, weights, rise, value = new_Y, new_U, new_slopes, new_weights, new_rise, new_value
        return best, upper

    def _steps(
        self,
        A: Array,
        Y: Array,
        U: Array,
        G: Array,
        weights: Array,
        lam: Array,
        mu: Array,
        slack_g: Array,
        slack_b: Array,
    ) -> Array:
        """The steps of all directions; in the coordinates of ``axes`` if a part of them suffices for the curvature."""
        d = A.shape[1]
        X, g_c, B, leading = self.X, self.g_c, self.theta_c + Y, d
        if d >= SMALL:
            diagonals = weights @ self.turned_squares
            leading = leading_block(diagonals, lam, mu)
        if leading < d:
            X, g_c, A, G, B = self.turned, g_c @ self.axes, A @ self.axes, G @ self.axes, B @ self.axes
            hessians, rest = packed_products(X, leading) @ weights.T, diagonals[:, leading:]
        else:
            hessians, rest = self.hessians(weights), weights[:, :0]
        steps, solved, inner_products, follows = linearised_steps(A, G, B, hessians, rest, lam, mu, slack_g, slack_b)
        if not isinstance(self.centred, CalledTerms):
            follow_boundaries(
                steps, solved, inner_products, follows, slack_g, slack_b, Y, U, X,
                self.centred, self.g_c, g_c, self.e * (1.0 - SLIVER), self.e2,
            )  # fmt: skip
        return steps @ self.axes.T if leading < d else steps

    def _careful_step(self, a: Array, delta: Array, g: Array, weights: Array, rise: float, damping: float) -> Array:
        """The step p to the maximiser over { g'p + p'Hp/2 <= e - dF } cut with the ball itself.

        Worth an eigendecomposition where the two constraints meet at a sharp edge, and linearising them fails. With
        enough damping (times the diagonal of H, on top) the model lies inside C, and the step cannot fail.
        """
        d = len(a)
        H = (self.X.T * weights) @ self.X
        curvatures, axes = np.linalg.eigh(H + damping * np.diag(np.diag(H)))
        theta = self.theta_c + delta
        share = max(0.0, 1.0 - rise / self.e), max(0.0, 1.0 - float(delta @ (self.theta_c + theta)) / self.e2)
        step = np.empty((1, d))
        model_maximisers(
            (a @ axes)[None], np.maximum(curvatures, 0.0), g @ axes, theta @ axes, self.e, self.e2, *share, 1e-12, step
        )  # fmt: skip
        return axes @ step[0]

    def _start(self, A: Array) -> Array:
        """Maximisers of the second-order model of C at the centre."""
        rotated = A @ self.axes
        delta = np.empty_like(A)
        g, theta = self.g_c @ self.axes, self.theta_c @ self.axes
        model_maximisers(rotated, self.curvatures, g, theta, self.e, self.e2, 1.0, 1.0, 1e-2, delta)
        start: Array = delta @ self.axes.T
        return start


def centre_terms(X: Array, terms: SmoothTerms, theta_c: Array, bound: float, e: float, e2: float) -> CentredSet:
    """Everything about the centre that all directions share."""
    z = X @ theta_c
    _, first, second = evaluate_terms(terms, z)
    curvatures, axes = eigen((X.T * second) @ X)
    return CentredSet(
        X=X,
        terms=terms,
        theta_c=theta_c,
        bound=bound,
        e=e,
        e2=e2,
        z=z,
        centred=called_at(terms, z) if isinstance(terms, CallableTerms) else centred_at(terms, z),
        g_c=X.T @ first,
        curvatures=np.maximum(curvatures[::-1], 0.0),
        axes=np.ascontiguousarray(axes[:, ::-1]),
    )
