r"""The confidence set: an immutable snapshot that answers questions about plausible parameters.

    C = { theta : |theta| <= B,  log R(theta) <= log(1/alpha) }

log R is the :class:`~likeset.evidence.evidence.Evidence` against theta, a convex function, so that C is convex and the
extrema of x'theta over C are exact. Here is the user's side: covariates and parameters in the user's coordinates.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from likeset._solver.linalg.threads import SingleThreadedBlas
from likeset._typing import Array, Mask
from likeset.answers.answering import Answering
from likeset.answers.combinations import pairs_of_rows, upper_difference
from likeset.answers.contrasts_of_means import contrast_of_means
from likeset.answers.cuts import CutSet, cut
from likeset.answers.duels import ArmsInDuels, beaten
from likeset.answers.evidence_against import evidence_against
from likeset.answers.hypotheses import EValue
from likeset.answers.margins import LINK
from likeset.answers.mean_contrasts import refuted_by_pairs
from likeset.answers.outline import outline
from likeset.answers.pairs import Bounds, bounds_of_function
from likeset.answers.peaks import Peak, maximise_upper
from likeset.answers.points import like, plausible
from likeset.answers.questions import Questions
from likeset.answers.steep_pairs import bounds_of_steep
from likeset.answers.support import Support, support, upper_gradient
from likeset.arguments import choice, positive_integer
from likeset.errors import EmptySetError, InvalidArgumentError
from likeset.evidence.alarm import Diagnosis
from likeset.evidence.evidence import Evidence
from likeset.evidence.unknown_scale import AnyEvidence
from likeset.families.base import Family
from likeset.parts import worked_out
from likeset.spaces.linear import Linear

__all__ = ["LikelihoodSet", "Support"]


class LikelihoodSet(Answering):
    """Parameters not refuted at level alpha. Made by ``ConfidenceSequence.set``; never changes."""

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
            return like(theta, self._evidence.log_ratio(self._values(theta), *self._nuisance(nuisance)))

    def log_ratio_by_covariate(self, theta: Any) -> Array:
        """The contributions gain_k + phi_k(x_k'theta) to log R(theta), shape (n, number of distinct covariates)."""
        return self._evidence.groups.gathered(self._evidence.contributions(self._values(theta)))

    def contains(self, theta: Any, nuisance: float | None = None) -> Any:
        """Whether |theta| <= bound and log R(theta) <= log(1/alpha), up to rounding. One bool, or one per row.

        Where the scale of the noise is unknown: with the scale ``nuisance``, or with any if that is left out.
        """
        return like(theta, plausible(self, theta, self._nuisance(nuisance)))

    @property
    def is_empty(self) -> bool:
        """Whether no parameter is plausible: a certified alarm, at level alpha, that the model is wrong.

        Pairs of arms that share the error level say so as well: with one of them that leaves no two means, none is.
        """
        empty = not self._evidence.says_nothing and self._kernel.status == "empty"
        return empty or self._refuted_by_pairs

    @worked_out
    def _refuted_by_pairs(self) -> bool:
        return refuted_by_pairs(self)

    @property
    def has_alarm(self) -> bool:
        """Whether laws outside the model were listened to, so that :meth:`diagnose` has something to say."""
        return self._heard is not None

    def diagnose(self) -> Diagnosis:
        """What beat the model, in words (``str``) and nats; for sequences with an alarm (docs/alarm.md).

        >>> import likeset as ls
        >>> rng = np.random.default_rng(0)
        >>> seq = ls.ConfidenceSequence(ls.Gaussian(0.5), ls.Linear(dim=1, bound=2.0))
        >>> seq.update(np.ones((50, 1)), rng.normal(0.3, 1.0, size=50))
        >>> seq.set.is_empty
        True
        >>> print(seq.set.diagnose())                        # doctest: +ELLIPSIS
        the model is refuted at level 0.05: noise of 2 times the scale forecast better than the model, by ... nats
        """
        if self._heard is None:
            raise InvalidArgumentError(
                "alarm", False, "is off, by choice or because no laws outside the family are known",
                "make the sequence with ConfidenceSequence(..., alarm=True)",
            )  # fmt: skip
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

    @property
    def fits_without_noise(self) -> bool:
        """Whether, where the scale of the noise is unknown, some theta explains more outcomes than it has coordinates.

        Scale zero is then plausible, whatever else is. A law without ties explains no outcome twice: rounded ones, or
        zeros that mean "nothing happened", are better asked about apart from the others.

        >>> import likeset as ls
        >>> seq = ls.ConfidenceSequence(ls.Gaussian(sigma=ls.Unknown()), ls.Linear(dim=1))
        >>> seq.update([[1.0]] * 20, [0.0] * 20)
        >>> seq.set.fits_without_noise, seq.set.is_empty, seq.set.nuisance_interval()
        (True, False, (0.0, 0.0))
        """
        return self._others.fits_without_noise

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
        snapshot and are nested (but for ends of announced contrasts that are proved level by level, docs/contrasts.md:
        outward, not always the nearest). Shares of windows and voices of patience belong to R and stay as they are. The
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
        self,
        x: Any = None,
        *,
        minus: Any = None,
        of: str | None = None,
        below: Any = None,
        above: Any = None,
        equal: Any = None,
        theta: Any = None,
    ) -> EValue:
        """Evidence against a hypothesis: the least log R over the parameters of Theta that it allows.

        The hypothesis is x'theta <= ``below``, x'theta >= ``above`` or x'theta = ``equal``, one for each row of x and
        each bound (one row or one bound serves all), or ``theta`` itself, one parameter or one per row, which is judged
        by the data alone, in Theta or not. The answer is an e-value, certified from below, and an anytime p-value
        (:class:`~likeset.EValue`): whoever rejects when e > 1/alpha, whenever they look, is wrong with probability at
        most alpha. It exceeds 1/alpha exactly when the bounds of this set exclude the hypothesis: with ``below=c`` when
        ``lower(x) > c``; if the set is empty, whatever the hypothesis.

        With ``minus`` and ``of`` it is about a contrast of means, as in :meth:`contrast`: x against y has a difference,
        ratio or odds ratio of at most ``below``, at least ``above``, or ``equal``. So margins are asked about: "worse
        by 0.01 or more" is ``evidence(x, minus=y, of="difference", below=-0.01)``. That is possible for announced pairs
        of arms, and where the contrast is a function of x'theta - y'theta.

        Where a function space carries a ``charge``, that many nats are taken off. What is asked about two announced
        arms, x = a - a' or x = a and ``minus`` = a', is answered by the pair's own set: beyond 1/alpha exactly when
        :meth:`contrast` excludes it.

        >>> import likeset as ls
        >>> seq = ls.ConfidenceSequence(ls.Bernoulli(), ls.Linear(dim=1, bound=3.0))
        >>> seq.update([[1.0]] * 40, [1] * 32 + [0] * 8)
        >>> found = seq.set.evidence([1.0], below=0.0)        # "a success is at most as likely as a failure"
        >>> bool(found.e_value[0] > 20), bool(seq.set.lower([1.0])[0] > 0.0)
        (True, True)
        """
        return evidence_against(self, x, minus, of, below, above, equal, theta)

    def upper_difference(self, X: Any, Y: Any) -> Array:
        """Largest x'theta - y'theta over the set for every pair of rows, rounded outward.

        Never above ``upper(X) - lower(Y)``, and often far below: what the two share cancels. In a function space, where
        x or y leaves the span of the covariates seen, their parts outside are taken at their worst.
        """
        return upper_difference(self, X, Y)

    def beaten(self, X: Any, Y: Any) -> Mask:
        """Whether row x of X surely is not the best arm, since row y of Y is better: for sequences with ``Duels``.

        With probability at least 1 - alpha the best arm is never beaten, by whichever rows are asked about and at all
        times. That x'theta < y'theta is *not* claimed for arms that are not best. False where x and y are no announced
        arms.

        >>> import numpy as np, likeset as ls
        >>> seq = ls.ConfidenceSequence(ls.Poisson(), ls.Linear(dim=2, bound=3.0), voices=ls.Duels(np.eye(2)))
        >>> seq.update([[1.0, 0.0], [0.0, 1.0]] * 30, [2, 1, 1, 0, 3, 1] * 10)
        >>> seq.set.beaten([0.0, 1.0], [1.0, 0.0]), seq.set.beaten([1.0, 0.0], [0.0, 1.0])
        (array([ True]), array([False]))
        """
        return beaten(self, *pairs_of_rows(self.space, X, Y))

    def given(self, G: Any, *, at_least: Any = None, at_most: Any = None, norm: Any = None) -> CutSet:
        """This set cut with half-spaces known to hold: g'theta >= ``at_least``, g'theta <= ``at_most``, rows g of G.

        Coefficients known to be positive, a box, effects in order; one number for all rows, or one each. With ``norm``
        1 or inf, the set cut with | G theta | <= ``at_most`` in that norm. What is known must be known without the
        data; then nothing is paid for it. Bounds are certified and, as a rule, within 1e-7 of the width of this set
        of the best ones, which ``support`` states (:mod:`likeset.answers.cuts`). For linear spaces.

        >>> import numpy as np, likeset as ls
        >>> seq = ls.ConfidenceSequence(ls.Poisson(), ls.Linear(dim=2, bound=3.0))
        >>> seq.update([[1.0, 0.0], [1.0, 1.0]] * 20, [1, 2, 0, 1] * 10)
        >>> effect = [0.0, 1.0]
        >>> bool(seq.set.lower(effect)[0] < 0.0), seq.set.given(effect, at_least=0.0).lower(effect).round(6)
        (True, array([-0.]))
        >>> seq.set.given(np.eye(2), at_most=0.5, norm=1).upper(effect).round(6)
        array([0.5])
        """
        return cut(self, G, at_least, at_most, norm)

    # -- functions of two predictors ----------------------------------------------------------------------------

    def contrast(self, X: Any, Y: Any, of: str = "difference") -> Bounds:
        """Bounds of the difference, ratio or odds ratio of the means E[y] at rows X against rows Y (one of each, or one
        for all).

        ``of`` is "difference", "ratio" or "odds" (mean / (1 - mean), of X relative to Y). Exact where the contrast is a
        function of x'theta - y'theta: differences of means for noise around z, ratios for counts, rates and times, odds
        ratios for proportions. Otherwise certified outer bounds, within 1e-4 of the width of the best ones
        (:mod:`likeset.answers.pairs`). Means are those without offset and exposure. All contrasts hold at once, but for
        pairs announced with ``simultaneous=False``. Pairs of arms that were announced (``likeset.Contrasts``) are
        sharper.

        >>> import likeset as ls
        >>> seq = ls.ConfidenceSequence(ls.Bernoulli(), ls.Linear(dim=2, bound=3.0))
        >>> seq.update([[1.0, 0.0], [1.0, 1.0]] * 60, [0, 1, 0, 1, 1, 0] * 20)
        >>> for of in ("difference", "ratio", "odds"):
        ...     low, high = seq.set.contrast([1.0, 1.0], [1.0, 0.0], of=of)
        ...     print(f"{of}: {low[0]:.2f} to {high[0]:.2f}")
        difference: -0.02 to 0.59
        ratio: 0.97 to 4.55
        odds: 0.94 to 16.23
        """
        of = choice("of", of, tuple(LINK))
        if self._family is None:
            raise InvalidArgumentError("set", self, "knows no family, and so no means", "ask a ConfidenceSequence")
        first, second = pairs_of_rows(self.space, X, Y)
        with np.errstate(all="ignore"):  # equal rows and enormous ones: zeros and infinities are answers
            return contrast_of_means(self, self._family, first, second, of)

    def bounds_of(self, function: Any, X: Any, Y: Any, steepness: Any = None) -> Bounds:
        """Bounds of any function f(x'theta, y'theta) of two predictors that is monotone in each of them, row by row.

        ``function`` takes two arrays. That it rises or falls in each argument is looked at on a grid over the two
        intervals; what lies between is the caller's claim. The bounds are certified, within 1e-4 of the width of the
        best ones. Any other smooth function needs its ``steepness`` (L1, L2), bounds of the sizes of its two partial
        derivatives for all plausible values (:mod:`likeset.answers.steep_pairs`).

        >>> import numpy as np, likeset as ls
        >>> seq = ls.ConfidenceSequence(ls.Poisson(), ls.Linear(dim=2, bound=3.0))
        >>> seq.update([[1.0, 0.0], [0.0, 1.0]] * 50, [2, 1, 1, 0, 4, 3, 0, 0, 3, 1] * 10)
        >>> low, high = seq.set.bounds_of(lambda a, b: 5.0 * np.exp(a) - 2.0 * np.exp(b), [1.0, 0.0], [0.0, 1.0])
        >>> bool(low[0] < 5 * 2.0 - 2 * 0.6 < high[0])
        True
        >>> apart = seq.set.bounds_of(lambda a, b: np.abs(a - b), [1.0, 0.0], [0.0, 1.0], steepness=(1.0, 1.0))
        >>> bool(apart.lower[0] <= np.log(2.0 / 0.6) <= apart.upper[0])
        True
        """
        first, second = pairs_of_rows(self.space, X, Y)
        if steepness is not None:
            return bounds_of_steep(self, function, first, second, steepness)
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
        return support(self, X, sign, covariate_weights, level, near)

    @property
    def starts_near(self) -> bool:
        """Whether ``support`` gains from starting points, as mixtures solved by Newton's method do."""
        return self._kernel.starts_near

    @property
    def closed_form(self) -> bool:
        """Whether extrema are so cheap that bookkeeping to save some does not pay."""
        if self._convex and isinstance(self._evidence, Evidence):
            return self._evidence.closed_form  # a policy that solves for nothing this round prepares nothing
        return self._kernel.closed_form

    def upper_gradient(self, X: Any) -> tuple[Array, Array]:
        """``upper`` and its gradient in x, one row per row of X, by the envelope theorem.

        The maximiser is differentiated by central differences; the gradient is meaningful where the kernel is
        differentiable. Not for spaces with a finite domain.
        """
        return upper_gradient(self, X)

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

    @worked_out
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

    def _of(
        self,
        evidence: AnyEvidence,
        alpha: float,
        questions: Questions | ArmsInDuels | None = None,
        family: Family | None = None,
    ) -> LikelihoodSet:
        """The set of other evidence from the same observations."""
        return LikelihoodSet(
            self.space, self._basis, evidence, alpha, self._convex, self.n_observations, questions, family
        )

    def _plain_dimension(self, what: str) -> int:
        if not isinstance(self.space, Linear):
            raise InvalidArgumentError("space", self.space, f"has no {what}", "use a finite-dimensional Linear space")
        return self.space.dim
