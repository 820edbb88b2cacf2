r"""The confidence set: an immutable snapshot that answers questions about plausible parameters.

    C = { theta : |theta| <= B,  log R(theta) <= log(1/alpha) },     log R(theta) = sum_k [ gain_k + phi_k(x_k'theta) ]

one term per distinct covariate x_k, phi_k convex, so C is convex and the extrema of x'theta over C are exact. With
windows of covariates W_1, W_2, ... and shares pi the log ratio is that of an average of ratios,

    log R(theta) = log sum_j pi_j exp sum_{k in W_j} [ gain_k + phi_k(x_k'theta) ],

and everything else stays as it is; one window of all covariates is the plain case.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import inf, log, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likeset import _solver
from likeset._solver import Ellipsoid, PreparedSet, is_quadratic
from likeset._solver.charge import charge_of, minima
from likeset._solver.evaluate import log_sum_exp, reweighted, term_values, values_and_slopes
from likeset._solver.linalg.threads import SingleThreadedBlas
from likeset._solver.problem import CurveTerms, LevelSet, Solution, StartsNear, Terms, WindowedSet, WindowTable
from likeset._solver.voice_sums import window_exponents
from likeset._typing import EPS, Array
from likeset.arguments import LARGEST, positive_integer, real_array, real_number, signs
from likeset.errors import EmptySetError, InvalidArgumentError, NotConvexError, ShapeError
from likeset.families.merged import Seen, with_columns
from likeset.outline import outline
from likeset.peaks import Peak, maximise_upper
from likeset.spaces.base import IN_SPAN, Basis, Space
from likeset.spaces.linear import Linear

_ROUNDING = 64 * EPS
_GRADIENT_STEP = 1e-5


@dataclass(frozen=True)
class Support:
    """Answers of ``LikelihoodSet.support`` for the rows of X.

    values       x'theta attained at ``maximisers`` (a lower bound of the maximum)
    maximisers   parameters in the set, in the user's coordinates; in a function space with a ``charge``, in the
                 slightly larger set that was solved for
    upper        certified outer bound of the maximum: what ``LikelihoodSet.upper`` returns
    """

    values: Array
    maximisers: Array
    upper: Array

    @property
    def gap(self) -> Array:
        """How far the maximum may lie from ``values`` at most."""
        return self.upper - self.values


class LikelihoodSet:
    """Parameters not refuted at level alpha. Made by ``ConfidenceSequence.set``; never changes."""

    def __init__(
        self,
        space: Space,
        basis: Basis,
        seen: Seen,
        terms: Terms,
        gains: Array,
        alpha: float,
        convex: bool,
        n_observations: int,
        windows: WindowTable | None = None,
    ) -> None:
        self.space = space
        self.alpha = alpha
        self.n_observations = n_observations
        self._basis = basis
        self._convex = convex
        self._gains = gains
        self._terms = terms
        self._seen = seen
        self._coordinates = with_columns(seen.coordinates, basis.dimension)
        self._windows = None if windows is None else _audible(windows, gains)
        self._level = -log(alpha) - float(gains.sum())

    def __repr__(self) -> str:
        return f"<LikelihoodSet: alpha={self.alpha:g}, {self.n_observations} observations, {self.space!r}>"

    # -- membership ---------------------------------------------------------------------------------------------

    def log_ratio(self, theta: Any) -> Any:
        """log R(theta): the evidence against theta, in nats. One number, or one per row of theta.

        +inf where theta gives an outcome density zero that the forecast did not. Where the forecast gave an outcome
        density zero, q = 0, the ratio is zero for good and log R is -inf: evidence against nothing. That goes for a
        theta with p = 0 as well, although 0/0 could be anything at an outcome that theta rules out: the set then is all
        of Theta, and stays convex. With windows only those that hold such an outcome are silent; the others count. An
        observation of weight zero does not count, whatever its q.
        """
        with SingleThreadedBlas():
            contributions = self.log_ratio_by_covariate(theta)
        if self._windows is None:
            ruled_out = np.isneginf(self._gains).any()
            return _like(theta, np.full(len(contributions), -inf) if ruled_out else contributions.sum(axis=1))
        return _like(theta, log_sum_exp(window_exponents(self._windows, contributions)))

    def log_ratio_by_covariate(self, theta: Any) -> Array:
        """The contributions gain_k + phi_k(x_k'theta) to log R(theta), shape (n, number of distinct covariates)."""
        return self._contributions(self._losses(theta))

    def contains(self, theta: Any) -> Any:
        """Whether |theta| <= bound and log R(theta) <= log(1/alpha), up to rounding. One bool, or one per row."""
        with SingleThreadedBlas():
            norms = self._basis.norms(theta)
            losses, slopes = values_and_slopes(self._terms, self._values(theta))
        # Gains and losses cancel: the rounding of their sum is that of the numbers it was made from. So does the
        # rounding of z = x'theta count, times the slope of the loss.
        reach = norms[:, None] * np.linalg.norm(self._coordinates, axis=1)
        parts = np.abs(losses) + np.abs(self._gains) + np.abs(slopes) * reach
        if self._whole_ball:
            excess, sizes = np.zeros(len(losses)), np.zeros(len(losses))
        elif self._windows is None:
            excess = losses.sum(axis=1) - self._level
            sizes = parts.sum(axis=1)
        else:
            excess = log_sum_exp(window_exponents(self._windows, self._contributions(losses))) + log(self.alpha)
            sizes = 1.0 + window_exponents(self._windows, parts).max(axis=1, initial=0.0)
        within = (excess < inf) & (excess <= 4 * _ROUNDING * sizes)
        return _like(theta, within & (norms <= self.space.bound * (1 + _ROUNDING)))

    @property
    def is_empty(self) -> bool:
        """Whether no parameter is plausible: a certified alarm, at level alpha, that the model is wrong."""
        if self._whole_ball:
            return False
        with SingleThreadedBlas():
            return bool(self._prepared.status == "empty")

    # -- extrema ------------------------------------------------------------------------------------------------

    def upper(self, X: Any) -> Array:
        """Largest x'theta over the set for every row x of X, rounded outward."""
        return self._bounds(*self._directions(X))

    def lower(self, X: Any) -> Array:
        """Smallest x'theta over the set for every row x of X, rounded outward."""
        inside, outside = self._directions(X)
        return -self._bounds(-inside, outside)

    def interval(self, X: Any) -> tuple[Array, Array]:
        """(lower, upper) for every row of X."""
        inside, outside = self._directions(X)
        n = len(inside)
        both = self._bounds(np.concatenate([inside, -inside]), np.concatenate([outside, outside]))
        return -both[n:], both[:n]

    def upper_difference(self, X: Any, Y: Any) -> Array:
        """Largest x'theta - y'theta over the set for every pair of rows, rounded outward.

        Never above ``upper(X) - lower(Y)``, and often far below: what the two share cancels. Where x or y leaves the
        span of the covariates seen, their parts outside are taken at their worst.
        """
        first, first_outside = self._directions(X)
        second, second_outside = self._directions(Y)
        if len(first) != len(second) and 1 not in (len(first), len(second)):
            raise ShapeError(
                "Y", Y, f"has {len(second)} rows", f"pass one for each of the {len(first)} rows of X, or one"
            )
        # What is tiny is judged for each covariate on its own: it stays apart from what is solved for.
        first_leaving, first_spill = self._split(first, first_outside)
        second_leaving, second_spill = self._split(second, second_outside)
        inside, leaving, spill = first - second, first_leaving + second_leaving, first_spill + second_spill
        # Cancellation in the difference is worth at most this much of theta's length.
        lost = _ROUNDING * (np.linalg.norm(first, axis=1) + np.linalg.norm(second, axis=1))
        apart = np.hypot(np.linalg.norm(inside, axis=1), leaving) > lost
        slack = spill.copy()
        np.add(slack, self.space.bound * lost, out=slack, where=lost > 0)
        answer = np.where(apart, 0.0, slack)
        if apart.any():
            answer[apart] = self._maximise_leaving(inside[apart], leaving[apart], slack[apart]).upper
        return answer

    def support(
        self,
        X: Any,
        *,
        sign: Any = 1.0,
        covariate_weights: Any = None,
        level: float | None = None,
        near: Any = None,
    ) -> Support:
        """Maxima of x'theta with maximisers and certified gap; of -x'theta where ``sign``, one or one per row, is -1.

        By default over this set. With ``covariate_weights`` v_k in [0, 1], one per distinct covariate in order of
        first appearance, and ``level`` c, over the reweighted set { sum_k v_k [gain_k + phi_k] <= c, |theta| <= B }:
        the building block of mixtures of sets. ``level`` defaults to log(1/alpha).

        ``near``, one parameter per row of X: where to start, such as the maximisers over the set before the latest
        observation. Any will do (zeros: none known); good ones make window mixtures several times faster
        (``starts_near``). For linear spaces and finite domains, where maximisers are parameters.
        """
        x = self.space.covariates(X, "X")
        plain = covariate_weights is None and level is None
        asked = self if plain else self._with_weights(covariate_weights, level)
        direction = signs("sign", sign, len(x))
        with SingleThreadedBlas():
            inside, outside = self._basis.coordinates(x)
            starts = None if near is None else self._starts(near, len(x))
            solution = asked._maximise(direction[:, None] * inside, outside, starts)
            found, beyond = _parts(solution, self._basis.dimension)
            # The part outside the span was measured along sign * x.
            maximisers = self._basis.lift(found, direction * beyond, x)
        return Support(solution.values, maximisers, solution.upper)

    @property
    def starts_near(self) -> bool:
        """Whether ``support`` gains from starting points: is this a window mixture solved by Newton's method?"""
        return self._windows is not None and isinstance(self._terms, CurveTerms) and np.isfinite(self.space.bound)

    def upper_gradient(self, X: Any) -> tuple[Array, Array]:
        """``upper`` and its gradient in x, one row per row of X, by the envelope theorem.

        The maximiser is differentiated by central differences; the gradient is meaningful where the kernel is
        differentiable. Not for spaces with a finite domain.
        """
        if getattr(self.space, "domain", None) is not None:
            raise InvalidArgumentError(
                "space", self.space, "has a finite domain", "ask upper(domain), or leave the domain out"
            )
        x = self.space.covariates(X, "X")
        solution = self._maximise(*self._basis.coordinates(x))
        inside, outside = _parts(solution, self._basis.dimension)
        gradient = np.empty_like(x)
        for j in range(x.shape[1]):
            step = np.zeros_like(x)
            step[:, j] = _GRADIENT_STEP * (1.0 + np.abs(x[:, j]))
            above = self._basis.evaluate(inside, outside, x, x + step)
            below = self._basis.evaluate(inside, outside, x, x - step)
            gradient[:, j] = (above - below) / (2 * step[:, j])
        return solution.upper, gradient

    def maximize_upper(self, bounds: Any, starts: int = 8, seed: int = 0) -> Peak:
        """The covariate in a box with the highest upper bound, by multi-start; ``bounds`` holds (low, high) pairs."""
        return maximise_upper(self, bounds, starts, seed)

    def bounding_box(self) -> tuple[Array, Array]:
        """(lower, upper) of every coordinate of theta (finite-dimensional spaces)."""
        return self.interval(np.eye(self._plain_dimension("bounding_box")))

    def boundary(self, n_points: int = 256) -> Array:
        """Points on the boundary in order of angle, shape (n_points, 2), for two-dimensional parameters."""
        dim = self._plain_dimension("boundary")
        if dim != 2:
            raise InvalidArgumentError("dim", dim, "is not 2", "boundary curves exist for two-dimensional theta only")
        return outline(self, positive_integer("n_points", n_points, 10**6, "every point takes many evaluations"))

    @cached_property
    def centre(self) -> Array:
        """A parameter well inside the set (about the maximum-likelihood one), in the user's coordinates."""
        if self._whole_ball:
            middle = np.zeros((1, self._basis.dimension))
        else:
            prepared = self._prepared
            if prepared.status == "empty":
                raise EmptySetError(self.alpha)
            middle = prepared.centre[None, :]
        return self._basis.lift(middle, np.zeros(1), np.zeros((1, 0)))[0]

    # -- inside -------------------------------------------------------------------------------------------------

    @property
    def _whole_ball(self) -> bool:
        if self._windows is not None:
            return len(self._windows.members) == 0
        return len(self._gains) == 0 or self._level == inf

    def _losses(self, theta: Any) -> Array:
        """phi_k at the values that the user's parameters take at the covariates: no basis is involved."""
        return term_values(self._terms, self._values(theta))

    def _values(self, theta: Any) -> Array:
        return self._basis.values(theta, self._seen.covariates)

    @cached_property
    def charge(self) -> float:
        """Nats by which bounds raise the level, because in a function space covariates were merged to numerical rank.

        Zero in linear models and wherever the basis holds every covariate seen; see :mod:`likeset._solver.charge`.
        ``log_ratio`` and ``contains`` are exact without it.
        """
        squares = np.where(np.isneginf(self._gains), 0.0, self._seen.outside**2)
        if not squares.any():
            return 0.0
        lowest, slack = minima(self._terms), 0.0
        if lowest is not None and self._windows is None:
            slack = self._level - float(lowest.sum())
        elif lowest is not None and self._windows is not None:
            quiet = window_exponents(self._windows, np.where(np.isneginf(self._gains), 0.0, self._gains + lowest))
            slack = -log(self.alpha) - float(quiet.min(initial=inf))
        reach = self.space.bound * np.hypot(np.linalg.norm(self._coordinates, axis=1), np.sqrt(squares))
        return charge_of(self._terms, squares, self.space.bound, slack, reach)

    def _contributions(self, losses: Array) -> Array:
        """gain_k + phi_k; -inf where q was zero, whatever the likelihood."""
        return self._gains + np.where(np.isneginf(self._gains), 0.0, losses)

    def _directions(self, X: Any) -> tuple[Array, Array]:
        return self._basis.coordinates(self.space.covariates(X, "X"))

    def _bounds(self, inside: Array, outside: Array) -> Array:
        """The outer bounds of ``_maximise`` alone."""
        with SingleThreadedBlas():
            ellipsoid = self._ellipsoid()
            if ellipsoid is not None:
                leaving, spill = self._split(inside, outside)
                return ellipsoid.bounds(inside, leaving) + spill
        return self._maximise(inside, outside).upper

    def _split(self, inside: Array, outside: Array) -> tuple[Array, Array]:
        """Lengths outside the span that are solved for, and what the others, which are tiny, can add at most."""
        tiny = outside <= IN_SPAN * np.hypot(np.linalg.norm(inside, axis=1), outside)
        spill = np.zeros(len(outside))
        np.multiply(self.space.bound, outside, out=spill, where=tiny & (outside > 0))
        return np.where(tiny, 0.0, outside), spill

    def _starts(self, near: Any, count: int) -> Array:
        if getattr(self.space, "domain", ...) is None:
            raise InvalidArgumentError(
                "near", near, "cannot be located in a function space without a domain", "leave near out"
            )
        coordinates = self._basis.project(near, "near")
        if len(coordinates) != count:
            raise ShapeError("near", near, f"has {len(coordinates)} rows", f"pass one parameter per row of X: {count}")
        return coordinates

    def _maximise(self, inside: Array, outside: Array, near: Array | None = None) -> Solution:
        """Maxima for directions given by coordinates in the basis and length outside the span.

        Where a direction leaves the span, points have one more coordinate: their component along its part outside.
        """
        return self._maximise_leaving(inside, *self._split(inside, outside), near)

    def _maximise_leaving(self, inside: Array, leaving: Array, spill: Array, near: Array | None = None) -> Solution:
        """The same, with lengths outside the span that are solved for and what else may be added."""
        if self._whole_ball:
            solution = self._maximise_over_ball(inside, leaving)
        else:
            with SingleThreadedBlas():
                ellipsoid = self._ellipsoid()
                if ellipsoid is not None:
                    solution = ellipsoid.solve(inside, outside=leaving)
                else:
                    solution = self._solved(inside, leaving, near)
        return Solution(solution.values, solution.points, solution.upper + spill)

    def _solved(self, inside: Array, outside: Array, near: Array | None) -> Solution:
        """``_maximise`` for sets that are no ellipsoids."""
        leaves_span = outside.any()
        prepared = self._prepared_padded if leaves_span else self._prepared
        if prepared.status == "empty":
            raise EmptySetError(self.alpha)
        directions = np.column_stack([inside, outside]) if leaves_span else inside
        if near is None or not isinstance(prepared, StartsNear):
            return prepared.solve(directions)
        if leaves_span:  # what norm is left is best spent outside the span, where the likelihood is flat
            left = np.maximum(self.space.bound**2 - np.einsum("ij,ij->i", near, near), 0.0)
            near = np.column_stack([near, np.where(near.any(axis=1), np.sqrt(left), 0.0)])
        return prepared.solve_near(directions, near)

    def _ellipsoid(self) -> Ellipsoid | None:
        """The prepared set if it is an ellipsoid cut with a ball, which takes directions outside the span as well."""
        if self._windows is not None or self._whole_ball or not is_quadratic(self._terms):
            return None
        prepared = self._prepared
        assert isinstance(prepared, Ellipsoid)
        if prepared.status == "empty":
            raise EmptySetError(self.alpha)
        return prepared

    def _maximise_over_ball(self, inside: Array, outside: Array) -> Solution:
        directions = np.column_stack([inside, outside])
        lengths = np.linalg.norm(directions, axis=1)
        step = (self.space.bound if np.isfinite(self.space.bound) else 0.0) / lengths
        return Solution(step * lengths**2, step[:, None] * directions, self.space.bound * lengths * (1 + _ROUNDING))

    @cached_property
    def _prepared(self) -> PreparedSet:
        return self._prepare(self._coordinates)

    @cached_property
    def _prepared_padded(self) -> PreparedSet:
        # Directions that leave the span get one more coordinate, on which the likelihood is flat.
        return self._prepare(with_columns(self._coordinates, self._basis.dimension + 1))

    def _prepare(self, coordinates: Array) -> PreparedSet:
        if not self._convex:
            raise NotConvexError(
                "extrema and emptiness need a negative log-density that is convex in z, and this family is not "
                "declared so; contains() and log_ratio() work for any family."
            )
        if self._windows is None:
            # The sum of the gains was rounded; the sum of their sizes is at most this root.
            rounding = _ROUNDING * sqrt(len(self._gains) * float(self._gains.dot(self._gains)))
            level = self._level + rounding + self.charge
            return _solver.prepare(LevelSet(coordinates, self._terms, level, self.space.bound))
        level = -log(self.alpha) + self.charge
        return _solver.prepare_windows(
            WindowedSet(coordinates, self._terms, self._gains, self._windows, level, self.space.bound)
        )

    def _with_weights(self, covariate_weights: Any, level: float | None) -> LikelihoodSet:
        weights = np.ones(len(self._gains)) if covariate_weights is None else real_array(
            "covariate_weights", covariate_weights
        )  # fmt: skip
        if weights.shape != self._gains.shape:
            raise ShapeError(
                "covariate_weights",
                covariate_weights,
                f"has shape {weights.shape}",
                f"pass one weight for each of the {len(self._gains)} distinct covariates",
            )
        if (weights < 0).any() or (weights > 1).any():
            raise InvalidArgumentError(
                "covariate_weights",
                covariate_weights,
                "has an entry outside [0, 1]",
                "pass weights in [0, 1]",
            )
        c = -log(self.alpha) if level is None else real_number("level", level)
        if LARGEST < abs(c) < inf:
            raise InvalidArgumentError(
                "level", level, f"is beyond {LARGEST:g} nats", "pass a level such as log(1/alpha)"
            )
        gains = np.where(weights > 0, weights * np.where(weights > 0, self._gains, 0.0), 0.0)
        return _Reweighted(self, gains, reweighted(self._terms, weights), c)

    def _plain_dimension(self, what: str) -> int:
        if not isinstance(self.space, Linear):
            raise InvalidArgumentError("space", self.space, f"has no {what}", "use a finite-dimensional Linear space")
        return self.space.dim


class _Reweighted(LikelihoodSet):
    """The set { sum_k v_k [gain_k + phi_k] <= level } beside a parent set."""

    def __init__(self, parent: LikelihoodSet, gains: Array, terms: Terms, level: float) -> None:
        super().__init__(
            parent.space, parent._basis, parent._seen, terms, gains, parent.alpha, parent._convex,
            parent.n_observations,
        )  # fmt: skip
        self._level = level - float(gains.sum())


def _audible(windows: WindowTable, gains: Array) -> WindowTable:
    """The windows whose ratio is not zero for good: those without an outcome that was forecast with density zero."""
    silenced = np.bincount(
        windows.owners, weights=np.isneginf(gains)[windows.members], minlength=len(windows.log_shares)
    )
    if not silenced.any():
        return windows
    keep = silenced == 0
    sizes = np.diff(windows.starts)[keep]
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return WindowTable(starts, windows.members[keep[windows.owners]], windows.log_shares[keep])


def _like(theta: Any, answers: NDArray[Any]) -> Any:
    """A plain number or bool for a single parameter, an array for rows of parameters."""
    return answers[0].item() if len(answers) == 1 and np.ndim(theta) < 2 else answers


def _parts(solution: Solution, dimension: int) -> tuple[Array, Array]:
    """Coordinates of the maximisers in the basis, and their component outside the span."""
    points = solution.points
    return points[:, :dimension], points[:, dimension] if points.shape[1] > dimension else np.zeros(len(points))
