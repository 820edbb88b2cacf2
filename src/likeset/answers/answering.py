"""Who answers for a set: its own kernel, the set at another level, or the set of an announced question."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import log
from typing import TYPE_CHECKING, Any

import numpy as np

from likeset._solver import Kernel
from likeset._solver.linalg.threads import SingleThreadedBlas
from likeset._typing import Array, IntArray, Mask
from likeset.answers.directions import split
from likeset.answers.duels import ArmsInDuels
from likeset.answers.mean_contrasts import PairAnswers
from likeset.answers.questions import Questions
from likeset.answers.shares import at_once, bounds_in_shares
from likeset.arguments import error_level
from likeset.errors import EmptySetError, InvalidArgumentError, NotConvexError
from likeset.evidence.alarm import Diagnosis, Heard
from likeset.evidence.evidence import Evidence
from likeset.evidence.scale_voices import ScaleVoices
from likeset.evidence.unknown_scale import AnyEvidence, ScaleEvidence
from likeset.evidence.unknown_shape import ShapeEvidence
from likeset.families.base import Family
from likeset.parts import MadeFromParts, worked_out
from likeset.spaces.base import Basis, Space

if TYPE_CHECKING:
    from likeset.sets import LikelihoodSet


class Answering(MadeFromParts):
    """What a set is made of, and what all its answers begin with."""

    has_other_levels = True  # whether R is free of alpha and an e-process
    diagnose: Callable[[], Diagnosis]

    def __init__(
        self,
        space: Space,
        basis: Basis,
        evidence: AnyEvidence,
        alpha: float,
        convex: bool,
        n_observations: int,
        questions: Questions | ArmsInDuels | None = None,
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
        self._pairs: dict[tuple[bytes, bytes], PairAnswers | None] = {}  # of arms, as far as they were asked about
        self._heard = heard

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"_own_sets": {}, "_pairs": {}}

    @worked_out
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
            raise EmptySetError(self.alpha, "" if self._heard is None else self.diagnose().beaten)
        return self._kernel

    def _at(self, alpha: float | None) -> LikelihoodSet:
        """The set of the same evidence at another level."""
        level = self.alpha if alpha is None else error_level("alpha", alpha)
        if level == self.alpha:
            return self  # type: ignore[return-value]
        if not self.has_other_levels:
            raise InvalidArgumentError(
                "alpha", alpha, f"is not {self.alpha:g}, the level this set was made for", "make one with that alpha"
            )
        return self._of(replace(self._others, threshold=-log(level)), level, self._questions, self._family)

    def _of(
        self,
        evidence: AnyEvidence,
        alpha: float,
        questions: Questions | ArmsInDuels | None = None,
        family: Family | None = None,
    ) -> LikelihoodSet:
        """The set of other evidence from the same observations."""
        raise NotImplementedError  # by the set itself

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
        if self._questions is None or self._questions.one_set:
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
            self._own_sets[contrast] = self._of(self._questions.of_one(self._others, contrast), self.alpha)
        return self._own_sets[contrast]

    def _bounds(self, inside: Array, outside: Array, asked: IntArray | None = None) -> Array:
        """The outer bounds of ``_maximise`` alone."""
        leaving, spill = split(self.space.bound, inside, outside)
        with SingleThreadedBlas():
            if asked is None and at_once(self._answering(), len(inside)):
                return self._kernel.bounds(inside, leaving) + spill
            return bounds_in_shares(self._kernels(np.ones(len(inside), dtype=bool), asked), inside, leaving) + spill
