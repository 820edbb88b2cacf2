r"""Maxima of x'theta with the parameters that attain them: over a set, and over the set of reweighted evidence,

{ theta in Theta : sum_k v_k [gain_k + phi_k(x_k'theta)] <= c },     v_k in [0, 1], one per distinct covariate.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, log
from typing import TYPE_CHECKING, Any

import numpy as np

from likeset._solver import Kernel
from likeset._solver.linalg.threads import SingleThreadedBlas
from likeset._solver.problem import Solution
from likeset._typing import Array, Mask
from likeset.answers.directions import split, starting_points
from likeset.arguments import LARGEST, real_array, real_number, signs
from likeset.errors import InvalidArgumentError, ShapeError

if TYPE_CHECKING:
    from likeset.sets import LikelihoodSet

_GRADIENT_STEP = 1e-5


@dataclass(frozen=True)
class Support:
    """Answers of ``LikelihoodSet.support`` for the rows of X.

    values       x'theta attained at ``maximisers`` (a lower bound of the maximum)
    maximisers   parameters in the set, in the user's coordinates; in a function space with a ``charge``, in the
                 slightly larger set that was solved for
    upper        certified outer bound of the maximum: what ``LikelihoodSet.upper`` returns; where it is infinite,
                 values and maximisers are those of some parameter in the set
    """

    values: Array
    maximisers: Array
    upper: Array

    @property
    def gap(self) -> Array:
        """How far the maximum may lie from ``values`` at most."""
        return self.upper - self.values


def support(s: LikelihoodSet, X: Any, sign: Any, covariate_weights: Any, level: float | None, near: Any) -> Support:
    """What ``LikelihoodSet.support`` answers."""
    x = s.space.covariates(X, "X")
    plain = covariate_weights is None and level is None
    everything = np.ones(len(x), dtype=bool)
    kernels = s._kernels(everything, s._asked(X)) if plain else [(everything, _reweighted(s, covariate_weights, level))]
    direction = signs("sign", sign, len(x))
    with SingleThreadedBlas():
        inside, outside = s._basis.coordinates(x)
        starts = None if near is None else starting_points(s.space, s._basis, near, len(x))
        signed = direction[:, None] * inside
        solution = _attained(kernels, signed, _maximise(s, kernels, signed, outside, starts))
        # The part outside the span was measured along sign * x.
        maximisers = s._basis.lift(solution.points[:, :-1], direction * solution.points[:, -1], x)
    return Support(solution.values, maximisers, solution.upper)


def upper_gradient(s: LikelihoodSet, X: Any) -> tuple[Array, Array]:
    """Upper bounds and their gradients in x: the maximiser held fixed, differentiated by central differences."""
    if getattr(s.space, "domain", None) is not None:
        raise InvalidArgumentError(
            "space", s.space, "has a finite domain", "ask upper(domain), or leave the domain out"
        )
    x = s.space.covariates(X, "X")
    kernels = s._kernels(np.ones(len(x), dtype=bool), s._asked(X))
    solution = _maximise(s, kernels, *s._basis.coordinates(x))
    inside, outside = solution.points[:, :-1], solution.points[:, -1]
    gradient = np.empty_like(x)
    for j in range(x.shape[1]):
        step = np.zeros_like(x)
        step[:, j] = _GRADIENT_STEP * (1.0 + np.abs(x[:, j]))
        above = s._basis.evaluate(inside, outside, x, x + step)
        below = s._basis.evaluate(inside, outside, x, x - step)
        gradient[:, j] = (above - below) / (2 * step[:, j])
    return solution.upper, gradient


def _maximise(
    s: LikelihoodSet, kernels: list[tuple[Mask, Kernel]], inside: Array, outside: Array, near: Array | None = None
) -> Solution:
    """Maxima for directions given by coordinates in the basis and length outside the span.

    Points have one more coordinate: their component along the direction's part outside.
    """
    leaving, spill = split(s.space.bound, inside, outside)
    values, upper, points = np.empty(len(inside)), spill, np.empty((len(inside), inside.shape[1] + 1))
    with SingleThreadedBlas():
        for mask, kernel in kernels:
            rows = slice(None) if np.count_nonzero(mask) == len(mask) else mask
            starts = None if near is None else near[rows]
            found = kernel.solve(inside[rows], outside=leaving[rows], near=starts)
            values[rows], points[rows] = found.values, found.points
            upper[rows] += found.upper
    return Solution(values, points, upper)


def _attained(kernels: list[tuple[Mask, Kernel]], inside: Array, found: Solution) -> Solution:
    """The same with a parameter of the set for every direction: its centre where a kernel names none.

    Kernels that know a set to be endless along a direction say so by a value of inf and a point of NaN.
    """
    values, points = found.values.copy(), found.points.copy()
    for rows, kernel in kernels:
        nameless = rows & np.isnan(points).any(axis=1)
        if nameless.any():
            points[nameless] = np.append(kernel.centre, 0.0)
            values[nameless] = np.minimum(values[nameless], inside[nameless] @ kernel.centre)
    return Solution(values, points, found.upper)


def _reweighted(s: LikelihoodSet, covariate_weights: Any, level: float | None) -> Kernel:
    """The kernel of the reweighted set, checked."""
    count = len(s._evidence.groups.covariates)
    weights = np.ones(count) if covariate_weights is None else real_array("covariate_weights", covariate_weights)
    if weights.shape != (count,):
        raise ShapeError(
            "covariate_weights",
            covariate_weights,
            f"has shape {weights.shape}",
            f"pass one weight for each of the {count} distinct covariates",
        )
    if (weights < 0).any() or (weights > 1).any():
        raise InvalidArgumentError(
            "covariate_weights",
            covariate_weights,
            "has an entry outside [0, 1]",
            "pass weights in [0, 1]",
        )
    c = -log(s.alpha) if level is None else real_number("level", level)
    if LARGEST < abs(c) < inf:
        raise InvalidArgumentError("level", level, f"is beyond {LARGEST:g} nats", "pass a level such as log(1/alpha)")
    return s._of(s._evidence.reweighted(weights, c), s.alpha)._answering()
