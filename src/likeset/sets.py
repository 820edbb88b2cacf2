r"""The confidence set: an immutable snapshot that answers questions about plausible parameters.

    C = { theta : |theta| <= B,  log R(theta) <= log(1/alpha) }

log R is the :class:`~likeset.evidence.evidence.Evidence` against theta, a convex function, so that C is convex and the
extrema of x'theta over C are exact. Here is the user's side: covariates and parameters in the user's coordinates.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import inf, log
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likeset._solver import Kernel
from likeset._solver.linalg.threads import SingleThreadedBlas
from likeset._solver.problem import Solution
from likeset._typing import EPS, Array, IntArray, Mask
from likeset.arguments import LARGEST, choice, error_level, positive_integer, real_array, real_number, signs
from likeset.contrasts_of_means import LINK, contrast_of_means
from likeset.cuts import CutSet
from likeset.errors import EmptySetError, InvalidArgumentError, NotConvexError, ShapeError
from likeset.evidence.alarm import Diagnosis, Heard
from likeset.evidence.evidence import ROUNDING, Evidence
from likeset.evidence.scale_voices import ScaleVoices
from likeset.evidence.unknown_scale import AnyEvidence, ScaleEvidence
from likeset.evidence.unknown_shape import ShapeEvidence
from likeset.families.base import Family
from likeset.hypotheses import EValue, least_evidence
from likeset.mean_contrasts import of_announced_pairs
from likeset.outline import outline
from likeset.pairs import Bounds, bounds_of_function
from likeset.peaks import Peak, maximise_upper
from likeset.questions import Questions
from likeset.spaces.base import IN_SPAN, Basis, Space
from likeset.spaces.linear import Linear

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

    has_other_levels = True  # whether R is free of alpha and an e-process

    def __init__(
        self,
        space: Space,
        basis: Basis,
        evidence: AnyEvidence,
        alpha: float,
        convex: bool,
        n_observations: int,
        questions: Questions | None = None,
        family: Family | None = None,
        heard: Heard | None = None,
    ) -> None:
        self.space = space
        self.alpha = alpha
        self.n_observations = n_observations
        self._basis = basis
        self._convex = convex
        self._family = family
        self._others = evidence  # without the voices of announced questions
        self._questions = questions
        self._evidence = evidence if questions is None else questions.of_all(evidence)
        self._own_sets: dict[int, LikelihoodSet] = {}
        self._heard = heard

    def __repr__(self) -> str:
        return f"<LikelihoodSet: alpha={self.alpha:g}, {self.n_observations} observations, {self.space!r}>"

    # -- membership ---------------------------------------------------------------------------------------------

    def log_ratio(self, theta: Any, nuisance: float | None = None) -> Any:
        """log R(theta): the evidence against theta, in nats. One number, or one per row of theta.

        Where the scale of the noise is unknown: against theta with the scale ``nuisance``, or, if that is left out,
        with the scale that suits theta best.

        +inf where theta gives an outcome density zero that the forecast did not. Where the forecast gave an outcome
        density zero, q = 0, the ratio is zero for good and log R is -inf: evidence against nothing. That goes for a
        theta with p = 0 as well, although 0/0 could be anything at an outcome that theta rules out: the set then is all
        of Theta, and stays convex. With windows only those that hold such an outcome are silent; the others count. An
        observation of weight zero does not count, whatever its q.
        """
        with SingleThreadedBlas():
            return _like(theta, self._evidence.log_ratio(self._values(theta), *self._nuisance(nuisance)))

    def log_ratio_by_covariate(self, theta: Any) -> Array:
        """The contributions gain_k + phi_k(x_k'theta) to log R(theta), shape (n, number of distinct covariates)."""
        return self._evidence.groups.gathered(self._evidence.contributions(self._values(theta)))

    def contains(self, theta: Any, nuisance: float | None = None) -> Any:
        """Whether |theta| <= bound and log R(theta) <= log(1/alpha), up to rounding. One bool, or one per row.

        Where the scale of the noise is unknown: with the scale ``nuisance``, or with any if that is left out.
        """
        with SingleThreadedBlas():
            norms = self._basis.norms(theta)
            plausible = self._evidence.allows(self._values(theta), norms, *self._nuisance(nuisance))
        return _like(theta, plausible & (norms <= self.space.bound * (1 + ROUNDING)))

    @property
    def is_empty(self) -> bool:
        """Whether no parameter is plausible: a certified alarm, at level alpha, that the model is wrong."""
        return not self._evidence.says_nothing and self._kernel.status == "empty"

    def diagnose(self) -> Diagnosis:
        """What beat the model, in words (``str``) and nats; for sequences with an alarm.

        >>> import likeset as ls
        >>> rng = np.random.default_rng(0)
        >>> seq = ls.ConfidenceSequence(ls.Gaussian(0.5), ls.Linear(dim=1, bound=2.0), alarm=True)
        >>> seq.update(np.ones((50, 1)), rng.normal(0.3, 1.0, size=50))
        >>> seq.set.is_empty
        True
        >>> print(seq.set.diagnose())                        # doctest: +ELLIPSIS
        the model is refuted at level 0.05: noise of 2 times the scale forecast better than the model, by ... nats
        """
        if self._heard is None:
            raise InvalidArgumentError(
                "alarm", None, "was not asked for", "make the sequence with ConfidenceSequence(..., alarm=True)"
            )
        return Diagnosis(self._heard.names, self._heard.nats.copy(), self.is_empty, self.alpha)

    def nuisance_interval(self) -> tuple[float, float]:
        """(low, high): the values of the unknown number of the family (a scale) that some theta makes plausible.

        With probability at least 1 - alpha the true value is inside at all times, at once with theta in the set.

        >>> import likeset as ls
        >>> seq = ls.ConfidenceSequence(ls.Gaussian(sigma=ls.Unknown()), ls.Linear(dim=1, bound=10.0))
        >>> seq.update([[1.0]] * 40, [2.9, 3.1, 3.0, 2.8, 3.2] * 8)
        >>> low, high = seq.set.nuisance_interval()
        >>> bool(0.05 < low < 0.15 < high < 0.3)
        True
        """
        evidence = self._uncertain()
        with SingleThreadedBlas():
            found = evidence.interval_of_scale()
        if found is None:
            raise EmptySetError(self.alpha)
        return found

    # -- extrema ------------------------------------------------------------------------------------------------

    def upper(self, X: Any, *, alpha: float | None = None) -> Array:
        """Largest x'theta over the set for every row x of X, rounded outward; ``alpha`` as in :meth:`interval`."""
        return self._at(alpha)._bounds(*self._directions(X), self._asked(X))

    def lower(self, X: Any, *, alpha: float | None = None) -> Array:
        """Smallest x'theta over the set for every row x of X, rounded outward; ``alpha`` as in :meth:`interval`."""
        inside, outside = self._directions(X)
        return -self._at(alpha)._bounds(-inside, outside, self._asked(X))

    def interval(self, X: Any, *, alpha: float | None = None) -> tuple[Array, Array]:
        """(lower, upper) for every row of X; with ``alpha``, at another error level than the set's own.

        R does not depend on alpha, the set at another level is { R <= 1/alpha } of the same R: all levels come from one
        snapshot and are nested. Shares of windows and voices of patience belong to R and stay as they are. The
        guarantee is for a level chosen without looking at the data; what these say themselves is :meth:`evidence`.
        """
        inside, outside = self._directions(X)
        n, asked = len(inside), self._asked(X)
        twice = None if asked is None else np.concatenate([asked, asked])
        at = self._at(alpha)
        both = at._bounds(np.concatenate([inside, -inside]), np.concatenate([outside, outside]), twice)
        return -both[n:], both[:n]

    # -- hypotheses ---------------------------------------------------------------------------------------------

    def evidence(
        self, x: Any = None, *, below: Any = None, above: Any = None, equal: Any = None, theta: Any = None
    ) -> EValue:
        """Evidence against a hypothesis: the least log R over the parameters of Theta that it allows.

        The hypothesis is x'theta <= ``below``, x'theta >= ``above`` or x'theta = ``equal``, one for each row of x and
        each bound (one row or one bound serves all), or ``theta`` itself, one parameter or one per row, which is judged
        by the data alone, in Theta or not. The answer is an e-value, certified from below, and an anytime p-value
        (:class:`~likeset.EValue`): whoever rejects when e > 1/alpha, whenever they look, is wrong with probability at
        most alpha. It exceeds 1/alpha exactly when the bounds of this set exclude the hypothesis: with ``below=c`` when
        ``lower(x) > c``; if the set is empty, whatever the hypothesis.

        Where a function space carries a ``charge``, that many nats are taken off.

        >>> import likeset as ls
        >>> seq = ls.ConfidenceSequence(ls.Bernoulli(), ls.Linear(dim=1, bound=3.0))
        >>> seq.update([[1.0]] * 40, [1] * 32 + [0] * 8)
        >>> found = seq.set.evidence([1.0], below=0.0)        # "a success is at most as likely as a failure"
        >>> bool(found.e_value[0] > 20), bool(seq.set.lower([1.0])[0] > 0.0)
        (True, True)
        """
        if not self.has_other_levels:
            raise InvalidArgumentError(
                "set", self, "is no level set of an e-process", "ask a ConfidenceSequence, or this set's bounds"
            )
        limits = {"below": below, "above": above, "equal": equal}
        given = [name for name, limit in limits.items() if limit is not None]
        if theta is not None:
            if x is not None or given:
                name, value = ("x", x) if x is not None else (given[0], limits[given[0]])
                raise InvalidArgumentError(name, value, "stands beside theta", "ask about theta, or about x'theta")
            return self._evidence_against_points(theta)
        if x is None:
            raise InvalidArgumentError("x", x, "is missing", "pass rows x and below=, above= or equal=, or theta=")
        if len(given) != 1:
            said = "comes without a hypothesis" if not given else f"comes with {len(given)} hypotheses"
            raise InvalidArgumentError("x", x, said, "give one of below=, above= and equal=")
        inside, outside, limit, asked = self._rows_and_limits(x, given[0], limits[given[0]])
        low, high = np.full(len(limit), -inf), np.full(len(limit), -inf)
        for sign in {"below": (-1.0,), "above": (1.0,), "equal": (-1.0, 1.0)}[given[0]]:
            for question in np.unique(asked):
                rows, answering = asked == question, self if question < 0 else self._of_its_own(int(question))
                with SingleThreadedBlas():
                    found = least_evidence(answering, sign * inside[rows], outside[rows], sign * limit[rows])
                # of two sides the larger, by convexity
                low[rows] = np.maximum(low[rows], found.log_e_value)
                high[rows] = np.maximum(high[rows], found.log_e_value + found.gap)
        gap = np.zeros(len(limit))
        np.subtract(high, low, out=gap, where=high > low)
        return EValue(low, gap)

    def upper_difference(self, X: Any, Y: Any) -> Array:
        """Largest x'theta - y'theta over the set for every pair of rows, rounded outward.

        Never above ``upper(X) - lower(Y)``, and often far below: what the two share cancels. In a function space, where
        x or y leaves the span of the covariates seen, their parts outside are taken at their worst.
        """
        first, second = self._pairs(X, Y)
        ones = np.ones(len(first))
        inside, leaving, answer, apart, _ = self._combined(first, second, ones, -ones)
        if apart.any():
            asked = self._asked(X, Y)
            with SingleThreadedBlas():
                for rows, kernel in self._kernels(apart, asked):
                    answer[rows] += kernel.bounds(inside[rows], leaving[rows])
        return answer

    def given(self, G: Any, *, at_least: Any = None, at_most: Any = None) -> CutSet:
        """This set cut with half-spaces known to hold: g'theta >= ``at_least``, g'theta <= ``at_most``, rows g of G.

        Coefficients known to be positive, a box, effects in order; one number for all rows, or one each. What is known
        must be known without the data; then nothing is paid for it (:mod:`likeset.cuts`). For linear spaces.

        >>> import numpy as np, likeset as ls
        >>> seq = ls.ConfidenceSequence(ls.Poisson(), ls.Linear(dim=2, bound=3.0))
        >>> seq.update([[1.0, 0.0], [1.0, 1.0]] * 20, [1, 2, 0, 1] * 10)
        >>> effect = [0.0, 1.0]
        >>> bool(seq.set.lower(effect)[0] < 0.0), seq.set.given(effect, at_least=0.0).lower(effect).round(6)
        (True, array([-0.]))
        """
        self._plain_dimension("half-spaces")
        if at_least is None and at_most is None:
            raise InvalidArgumentError("at_least", None, "is missing", "give at_least=, at_most= or both")
        rows = self.space.covariates(G, "G")
        signed, limits = [], []
        for name, value, sign in (("at_least", at_least, 1.0), ("at_most", at_most, -1.0)):
            if value is not None:
                numbers = real_array(name, value)
                if numbers.shape not in ((), (1,), (len(rows),)):
                    raise ShapeError(
                        name,
                        value,
                        f"has shape {numbers.shape}",
                        f"pass one number, or one for each of {len(rows)} rows",
                    )
                signed.append(sign * rows)
                limits.append(np.broadcast_to(sign * numbers, (len(rows),)))
        return CutSet(self, np.concatenate(signed), np.concatenate(limits))

    # -- functions of two predictors ----------------------------------------------------------------------------

    def contrast(self, X: Any, Y: Any, of: str = "difference") -> Bounds:
        """Bounds of the difference, ratio or odds ratio of the means E[y] at rows X against rows Y (one of each, or one
        for all).

        ``of`` is "difference", "ratio" or "odds" (mean / (1 - mean), of X relative to Y). Exact where the contrast is a
        function of x'theta - y'theta: differences of means for noise around z, ratios for counts, rates and times, odds
        ratios for proportions. Otherwise certified outer bounds, within 1e-4 of the width of the best ones
        (:mod:`likeset.pairs`). Means are those without offset and exposure. All contrasts hold at once, but for pairs
        announced with ``simultaneous=False``. Pairs of arms that were announced (``likeset.Contrasts``) are sharper.

        >>> import likeset as ls
        >>> seq = ls.ConfidenceSequence(ls.Bernoulli(), ls.Linear(dim=2, bound=3.0))
        >>> seq.update([[1.0, 0.0], [1.0, 1.0]] * 60, [0, 1, 0, 1, 1, 0] * 20)
        >>> for of in ("difference", "ratio", "odds"):
        ...     low, high = seq.set.contrast([1.0, 1.0], [1.0, 0.0], of=of)
        ...     print(f"{of}: {low[0]:.2f} to {high[0]:.2f}")
        difference: -0.01 to 0.59
        ratio: 0.97 to 4.54
        odds: 0.94 to 16.18
        """
        of = choice("of", of, tuple(LINK))
        if self._family is None:
            raise InvalidArgumentError("set", self, "knows no family, and so no means", "ask a ConfidenceSequence")
        first, second = self._pairs(X, Y)
        with np.errstate(all="ignore"):  # equal rows and enormous ones: zeros and infinities are answers
            return self._contrast(first, second, of)

    def _contrast(self, first: Array, second: Array, of: str) -> Bounds:
        assert self._family is not None
        announced, found = of_announced_pairs(self, self._family, first, second, of)
        if not announced.all():
            rest = contrast_of_means(self, self._family, first[~announced], second[~announced], of)
            for mine, theirs in zip(
                (found.lower, found.upper, found.gap), (rest.lower, rest.upper, rest.gap), strict=True
            ):
                mine[~announced] = theirs
        return found

    def bounds_of(self, function: Any, X: Any, Y: Any) -> Bounds:
        """Bounds of any function f(x'theta, y'theta) of two predictors that is monotone in each of them, row by row.

        ``function`` takes two arrays. That it rises or falls in each argument is looked at on a grid over the two
        intervals; what lies between is the caller's claim. The bounds are certified, within 1e-4 of the width of the
        best ones.

        >>> import numpy as np, likeset as ls
        >>> seq = ls.ConfidenceSequence(ls.Poisson(), ls.Linear(dim=2, bound=3.0))
        >>> seq.update([[1.0, 0.0], [0.0, 1.0]] * 50, [2, 1, 1, 0, 3, 1, 2, 0, 2, 1] * 10)
        >>> low, high = seq.set.bounds_of(lambda a, b: 5.0 * np.exp(a) - 2.0 * np.exp(b), [1.0, 0.0], [0.0, 1.0])
        >>> bool(low[0] < 5 * 2.0 - 2 * 0.6 < high[0])
        True
        """
        first, second = self._pairs(X, Y)
        return bounds_of_function(self, function, first, second)

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
        everything = np.ones(len(x), dtype=bool)
        kernels = (
            self._kernels(everything, self._asked(X))
            if plain
            else [(everything, self._with_weights(covariate_weights, level))]
        )
        direction = signs("sign", sign, len(x))
        with SingleThreadedBlas():
            inside, outside = self._basis.coordinates(x)
            starts = None if near is None else self._starts(near, len(x))
            solution = self._maximise(kernels, direction[:, None] * inside, outside, starts)
            # The part outside the span was measured along sign * x.
            maximisers = self._basis.lift(solution.points[:, :-1], direction * solution.points[:, -1], x)
        return Support(solution.values, maximisers, solution.upper)

    @property
    def starts_near(self) -> bool:
        """Whether ``support`` gains from starting points, as mixtures solved by Newton's method do."""
        return self._kernel.starts_near

    @property
    def closed_form(self) -> bool:
        """Whether extrema are so cheap that bookkeeping to save some does not pay."""
        return self._kernel.closed_form

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
        kernels = self._kernels(np.ones(len(x), dtype=bool), self._asked(X))
        solution = self._maximise(kernels, *self._basis.coordinates(x))
        inside, outside = solution.points[:, :-1], solution.points[:, -1]
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
        return self._basis.lift(self._answering().centre[None, :], np.zeros(1), np.zeros((1, 0)))[0]

    # -- inside -------------------------------------------------------------------------------------------------

    @property
    def charge(self) -> float:
        """Nats by which bounds raise the level, because in a function space covariates were merged to numerical rank.

        Zero in linear models and wherever the basis holds every covariate seen; see :mod:`likeset._solver.charge`.
        ``log_ratio`` and ``contains`` are exact without it.
        """
        return self._evidence.charge

    @cached_property
    def _kernel(self) -> Kernel:
        if not (self._convex or self._evidence.says_nothing):
            raise NotConvexError(
                "extrema and emptiness need a negative log-density that is convex in z, and this family is not "
                "declared so; contains() and log_ratio() work for any family."
            )
        with SingleThreadedBlas():
            return self._evidence.kernel

    def _answering(self) -> Kernel:
        """The kernel of a set that is not empty."""
        if self._kernel.status == "empty":
            raise EmptySetError(self.alpha)
        return self._kernel

    def _at(self, alpha: float | None) -> LikelihoodSet:
        """The set of the same evidence at another level."""
        if alpha is None:
            return self
        level = error_level("alpha", alpha)
        if level == self.alpha:
            return self
        if not self.has_other_levels:
            raise InvalidArgumentError(
                "alpha", alpha, f"is not {self.alpha:g}, the level this set was made for", "make one with that alpha"
            )
        evidence = replace(self._others, threshold=-log(level))
        return LikelihoodSet(
            self.space, self._basis, evidence, level, self._convex, self.n_observations, self._questions, self._family
        )

    def _evidence_against_points(self, theta: Any) -> EValue:
        with SingleThreadedBlas():
            values, norms = self._values(theta), self._basis.norms(theta)
            found, rounding = self._evidence.log_ratio_with_rounding(values, norms)
        gap = np.where(np.isfinite(found) & np.isfinite(rounding), 2 * rounding, 0.0)
        # As in ``contains``: on the same side of log(1/alpha).
        allowed = (found < inf) & (found - self._evidence.threshold <= rounding)
        level, margin = self._evidence.threshold, 8 * EPS * (1.0 + abs(self._evidence.threshold))
        low = np.where(
            allowed, np.minimum(found - 0.5 * gap, level - margin), np.maximum(found - 0.5 * gap, level + margin)
        )
        return EValue(_like(theta, low), _like(theta, gap))

    def _rows_and_limits(self, x: Any, name: str, value: Any) -> tuple[Array, Array, Array, IntArray]:
        """Directions, limits, and the announced question that each of them is, or -1."""
        inside, outside = self._directions(x)
        asked = self._asked(x)
        limits = real_array(name, value)
        if limits.ndim > 1 or (limits.ndim == 1 and len(limits) != len(inside) and 1 not in (len(limits), len(inside))):
            raise ShapeError(
                name,
                value,
                f"has shape {limits.shape}",
                f"pass one number, or one for each of the {len(inside)} rows of x",
            )
        n = max(len(inside), limits.size)
        return (
            np.broadcast_to(inside, (n, inside.shape[1])),
            np.broadcast_to(outside, (n,)),
            np.broadcast_to(limits, (n,)),
            np.broadcast_to(-1 if asked is None else asked, (n,)),
        )

    def _pairs(self, X: Any, Y: Any) -> tuple[Array, Array]:
        """Rows of X and of Y, as many of each."""
        first, second = self.space.covariates(X, "X"), self.space.covariates(Y, "Y")
        if len(first) != len(second) and 1 not in (len(first), len(second)):
            raise ShapeError(
                "Y", Y, f"has {len(second)} rows", f"pass one for each of the {len(first)} rows of X, or one"
            )
        n = max(len(first), len(second)) if len(first) and len(second) else 0
        shape = (n, *first.shape[1:])
        return np.broadcast_to(first, shape).copy(), np.broadcast_to(second, shape).copy()

    def _pair_support(self, X: Array, Y: Array, c: Array, e: Array) -> tuple[Array, Array]:
        """Outer bounds of c x'theta + e y'theta, row by row, and (x'theta, y'theta) where attained; NaN if not known.

        In a linear space c x + e y is a covariate as any other. In a function space the parts outside the span of the
        covariates seen are taken at their worst.
        """
        kernel = self._answering()
        inside, leaving, heights, apart, first_and_second = self._combined(X, Y, c, e)
        points = np.full((len(X), 2), np.nan)
        if apart.any():
            with SingleThreadedBlas():
                found = kernel.solve(inside[apart], outside=leaving[apart])
            heights[apart] += found.upper
            within, rows = found.points[:, :-1], first_and_second
            if isinstance(self.space, Linear):
                combined = c[:, None] * X + e[:, None] * Y
                within, rows = self._basis.lift(within, found.points[:, -1], combined[apart]), (X, Y)
            at = np.column_stack([np.einsum("ij,ij->i", each[apart], within) for each in rows])
            if not isinstance(self.space, Linear):
                at[leaving[apart] > 0.0] = np.nan
            points[apart] = at
        return heights, points

    def _combined(
        self, X: Array, Y: Array, c: Array, e: Array
    ) -> tuple[Array, Array, Array, Mask, tuple[Array, Array]]:
        """Directions c x + e y, and what is not solved for.

        Coordinates, lengths outside the span, what parts left out and rounding can add at most, whether anything is
        left to solve for, and the coordinates of x and y.
        """
        first, first_outside = self._basis.coordinates(X)
        second, second_outside = self._basis.coordinates(Y)
        rounding = np.zeros(len(X))
        if isinstance(self.space, Linear):
            combined = c[:, None] * X + e[:, None] * Y  # for differences correctly rounded, entry by entry
            inside, outside = self._basis.coordinates(combined)
            leaving, spill = self._split(inside, outside)
            apart = np.linalg.norm(combined, axis=1) > 1 / LARGEST
            if self.space.bound < inf and not (np.abs(c) == np.abs(e)).all():
                rounding = np.abs(c) * np.linalg.norm(X, axis=1) + np.abs(e) * np.linalg.norm(Y, axis=1)
        else:
            inside = c[:, None] * first + e[:, None] * second
            leaving_1, spill_1 = self._split(first, first_outside)
            leaving_2, spill_2 = self._split(second, second_outside)
            # What is tiny is judged for each covariate on its own: it stays apart from what is solved for.
            leaving, spill = np.abs(c) * leaving_1 + np.abs(e) * leaving_2, np.abs(c) * spill_1 + np.abs(e) * spill_2
            # Cancellation in the combination is worth at most this much of theta's length.
            rounding = np.abs(c) * np.linalg.norm(first, axis=1) + np.abs(e) * np.linalg.norm(second, axis=1)
            apart = np.hypot(np.linalg.norm(inside, axis=1), leaving) > ROUNDING * rounding
        np.multiply(self.space.bound, ROUNDING * rounding, out=rounding, where=rounding > 0)
        return inside, leaving, spill + rounding, apart, (first, second)

    def _uncertain(self) -> ScaleEvidence | ScaleVoices | ShapeEvidence:
        """The evidence, if something about the family is unknown."""
        if isinstance(self._evidence, Evidence):
            raise InvalidArgumentError(
                "nuisance",
                None,
                "does not exist: every number of this set's family is known",
                "give one as ls.Unknown(), e.g. Gaussian(sigma=ls.Unknown())",
            )
        return self._evidence

    def _nuisance(self, value: Any) -> tuple[float, ...]:
        """The value to ask about, if one was given."""
        return () if value is None else (self._uncertain().terms.checked("nuisance", value),)

    def _values(self, theta: Any) -> Array:
        """z at the covariates, as the user's parameters have it: no basis is involved."""
        return self._basis.values(theta, self._evidence.groups.covariates)

    def _directions(self, X: Any) -> tuple[Array, Array]:
        return self._basis.coordinates(self.space.covariates(X, "X"))

    def _asked(self, X: Any, Y: Any = None) -> IntArray | None:
        """Which announced question each row is, where these have sets of their own; None: this set answers all."""
        if self._questions is None or self._questions.contrasts.simultaneous:
            return None
        first = self.space.covariates(X, "X")
        second = None if Y is None else self.space.covariates(Y, "Y")
        if second is not None and len(first) != len(second):
            first, second = np.broadcast_arrays(first, second)
        return self._questions.asked(self.space, first, second)

    def _kernels(self, rows: Mask, asked: IntArray | None) -> list[tuple[Mask, Kernel]]:
        """Who answers which of the rows."""
        if asked is None:
            return [(rows, self._answering())]
        found = []
        for contrast in np.unique(asked[rows]):
            answering = self if contrast < 0 else self._of_its_own(int(contrast))
            found.append((rows & (asked == contrast), answering._answering()))
        return found

    def _of_its_own(self, contrast: int) -> LikelihoodSet:
        """The set of one announced question."""
        if contrast not in self._own_sets:
            assert self._questions is not None
            evidence = self._questions.of_one(self._others, contrast)
            self._own_sets[contrast] = LikelihoodSet(
                self.space, self._basis, evidence, self.alpha, self._convex, self.n_observations
            )
        return self._own_sets[contrast]

    def _bounds(self, inside: Array, outside: Array, asked: IntArray | None = None) -> Array:
        """The outer bounds of ``_maximise`` alone."""
        leaving, spill = self._split(inside, outside)
        with SingleThreadedBlas():
            if asked is None:
                return self._answering().bounds(inside, leaving) + spill
            for rows, kernel in self._kernels(np.ones(len(inside), dtype=bool), asked):
                spill[rows] += kernel.bounds(inside[rows], leaving[rows])
        return spill

    def _maximise(
        self, kernels: list[tuple[Mask, Kernel]], inside: Array, outside: Array, near: Array | None = None
    ) -> Solution:
        """Maxima for directions given by coordinates in the basis and length outside the span.

        Points have one more coordinate: their component along the direction's part outside.
        """
        leaving, spill = self._split(inside, outside)
        values, upper, points = np.empty(len(inside)), spill, np.empty((len(inside), inside.shape[1] + 1))
        with SingleThreadedBlas():
            for rows, kernel in kernels:
                starts = None if near is None else near[rows]
                found = kernel.solve(inside[rows], outside=leaving[rows], near=starts)
                values[rows], points[rows] = found.values, found.points
                upper[rows] += found.upper
        return Solution(values, points, upper)

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

    def _with_weights(self, covariate_weights: Any, level: float | None) -> Kernel:
        count = len(self._evidence.groups.covariates)
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
        c = -log(self.alpha) if level is None else real_number("level", level)
        if LARGEST < abs(c) < inf:
            raise InvalidArgumentError(
                "level", level, f"is beyond {LARGEST:g} nats", "pass a level such as log(1/alpha)"
            )
        evidence = self._evidence.reweighted(weights, c)
        asked = LikelihoodSet(self.space, self._basis, evidence, self.alpha, self._convex, self.n_observations)
        return asked._answering()

    def _plain_dimension(self, what: str) -> int:
        if not isinstance(self.space, Linear):
            raise InvalidArgumentError("space", self.space, f"has no {what}", "use a finite-dimensional Linear space")
        return self.space.dim


def _like(theta: Any, answers: NDArray[Any]) -> Any:
    """A plain number or bool for a single parameter, an array for rows of parameters."""
    return answers[0].item() if len(answers) == 1 and np.ndim(theta) < 2 else answers
