r"""Several models at once: the union of their sets, at one alpha.

If at least one of the models 1..m is right, the union of their confidence sets at level alpha covers, because the set
of the right one does: nothing is paid in alpha. Models whose set is empty are refuted and drop out.

All of them share one numerator, the blend of their forecasters with shares by Bayes' rule,

    q_s(y) = sum_k pi_k(s) q_k,s(y),      pi_k(s) proportional to prod_{r < s} q_k,r(y_r),

a normalised density that is made before y, so that every one of the sets stays valid. It costs the right model at most
log m nats, and it refutes a wrong one with what the others forecast, which its own forecaster could not.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from math import log
from os import PathLike
from typing import Any, Literal

import numpy as np

from likeset._solver.evaluate import log_sum_exp
from likeset._typing import Array
from likeset.all_or_nothing import Atomic
from likeset.answers.hypotheses import EValue
from likeset.answers.pairs import Bounds
from likeset.arguments import choice, error_level
from likeset.embedded import Given
from likeset.errors import EmptySetError, InvalidArgumentError
from likeset.evidence.alarm import Diagnosis
from likeset.evidence.intake import checked_rows
from likeset.families.base import Family
from likeset.predictors.base import updated_shares
from likeset.predictors.blended_belief import BlendedBelief
from likeset.progress import counted
from likeset.sequence import ConfidenceSequence
from likeset.sets import LikelihoodSet
from likeset.spaces.base import Space
from likeset.spaces.menu import Menu
from likeset.undo import Undo
from likeset.voices.automatic import PURPOSES
from likeset.voices.base import Voices


class AnyOf(Atomic):
    """Confidence sets that hold if any one of several models is right.

    Parameters
    ----------
    models   pairs (family, space), or sequences that have seen nothing yet, for the same covariates and the same y;
             ``RKHS(kernel=None, ...)`` as a space stands for several
    alpha    error level of the union; sequences must have the same
    voices   of the models given as pairs
    alarm    of the models given as pairs, see :class:`~likeset.ConfidenceSequence`

    It stands in for a :class:`~likeset.ConfidenceSequence`: ``update``, ``expect``, ``set``, ``belief``, ``save``, and
    policies take it. Sequences are copied. A
    model of unknown sigma keeps the numerator of its own, which is made for the test of every sigma.

    >>> import likeset as ls
    >>> line = ls.Linear(dim=1, bound=3.0)
    >>> seq = ls.AnyOf((ls.Poisson(), line), (ls.Geometric(), line), alpha=0.05)
    >>> seq.update([[1.0]] * 200, [3, 6, 1, 3, 4, 5, 0, 2] * 25)
    >>> seq.set.refuted
    ('Geometric() on Linear(dim=1, bound=3)',)
    >>> low, high = seq.set.interval([1.0])
    >>> bool(low[0] < 1.0986 < high[0])
    True
    """

    def __init__(
        self, *models: Any, alpha: float = 0.05, voices: Voices | Literal["auto"] | None = "auto",
        alarm: bool | Literal["auto"] = "auto",
    ) -> None:  # fmt: skip
        self._alpha = error_level("alpha", alpha)
        if not models:
            raise InvalidArgumentError("models", models, "is empty", "pass pairs (family, space)")
        listed = [one for i, model in enumerate(models) for one in _listed(i, model)]
        self._start(tuple(_member(i, model, self._alpha, voices, alarm) for i, model in listed))

    @classmethod
    def _of(cls, sequences: tuple[ConfidenceSequence, ...], alpha: float, log_shares: Array) -> AnyOf:
        """Models as they were saved."""
        models = cls.__new__(cls)
        models._alpha = error_level("alpha", alpha)
        models._start(sequences)
        models._log_shares = log_shares
        return models

    def _start(self, sequences: tuple[ConfidenceSequence, ...]) -> None:
        self._sequences = sequences
        first = self._sequences[0]
        for i, member in enumerate(self._sequences):
            if member.space.covariate_shape != first.space.covariate_shape:
                raise InvalidArgumentError(
                    f"models[{i}]", member.space, "has other covariates than the first model", "pass equal shapes"
                )
            kinds = [(m.family.discrete, m.family.observation_shape) for m in (first, member)]
            if kinds[0] != kinds[1]:
                raise InvalidArgumentError(
                    f"models[{i}]", member.family, f"has densities of another kind of y than {first.family!r}",
                    "pass families of the same outcomes: all of counts, all of numbers, or all of survival times",
                )  # fmt: skip
        self._log_shares = np.full(len(self._sequences), -log(len(self._sequences)))
        self._set: AnyOfSet | None = None
        super().__init__()

    def __repr__(self) -> str:
        return f"AnyOf({', '.join(self.models)}; alpha={self.alpha:g}) with {self.n_observations} observations"

    @property
    def alpha(self) -> float:
        """The error level; fixed when the sequence starts."""
        return self._alpha

    @property
    def models(self) -> tuple[str, ...]:
        """The models in words."""
        return tuple(_name(member) for member in self._sequences)

    @property
    def shares(self) -> Array:
        """How much each model's forecaster counts in the shared numerator: its posterior probability among them."""
        with self._lock:
            self._settle()
            return np.exp(self._log_shares)

    @property
    def belief(self) -> BlendedBelief | None:
        """What the models' forecasters believe of z, each by its share, frozen; None if one of them does not say."""
        with self._lock:
            self._settle()
            beliefs = [member.belief for member in self._sequences]
            found = [belief for belief in beliefs if belief is not None]
            return BlendedBelief(found, np.exp(self._log_shares)) if len(found) == len(beliefs) else None

    def save(self, path: str | PathLike[str]) -> None:
        """Write all models to one file that ``likeset.load`` continues bit for bit."""
        from likeset.persistence.files import save_models

        with self._lock:
            self._settle()
            save_models(self, path)

    @property
    def family(self) -> Family:
        """The family of the first model."""
        return self._sequences[0].family

    @property
    def space(self) -> Space:
        """The space of the first model."""
        return self._sequences[0].space

    @property
    def n_observations(self) -> int:
        """Number of observations recorded."""
        with self._lock:
            self._settle()
            return self._sequences[0].n_observations

    def expect(self, arms: Any = None, purpose: str = "optimism") -> None:
        """As :meth:`ConfidenceSequence.expect`, for every model."""
        purpose = choice("purpose", purpose, PURPOSES)
        with self._lock:
            self._settle()
            for member in self._sequences:
                if arms is not None:
                    member.space.covariates(arms, "arms")
            for member in self._sequences:
                member.expect(arms, purpose)
            self._set = None

    def update(self, x: Any, y: Any, offset: Any = None, exposure: Any = None, trials: Any = None) -> None:
        """Record one observation, or a batch in order, in all models or in none."""
        rows = [checked_rows(m.family, m.space, x, y, offset, exposure, trials) for m in self._sequences]
        with self._lock:
            self._settle()
            self._all_or_nothing(lambda undo: self._record_all(undo, rows))

    @property
    def set(self) -> AnyOfSet:
        """The union of the models' sets: an immutable snapshot."""
        with self._lock:
            self._settle()
            if self._set is None:
                self._set = AnyOfSet(self.models, tuple(member.set for member in self._sequences), self.alpha)
            return self._set

    def _record_all(self, undo: Undo, rows: list[tuple[Array, Array, Array]]) -> None:
        undo.keep(self)
        self._set = None
        for member in self._sequences:
            undo.keep(member)
            undo.keep(member._running)
            member._set = None
        count = len(rows[0][0])
        for i in counted(range(count), count, "updating"):
            steps = [
                member._scored(undo, X[i], Y[i], Given(*given[i].tolist()))
                for member, (X, Y, given) in zip(self._sequences, rows, strict=True)
            ]
            scores = np.array([step.log_q for step in steps])
            log_q = float(log_sum_exp(self._log_shares + scores))
            self._log_shares = updated_shares(self._log_shares, scores)
            for member, step, (_, Y, _) in zip(self._sequences, steps, rows, strict=True):
                member._take(step, Y[i], log_q)


class AnyOfSet:
    """The union of the sets of several models. Made by ``AnyOf.set``; never changes.

    models    in words
    sets      one :class:`~likeset.LikelihoodSet` each
    """

    def __init__(self, models: tuple[str, ...], sets: tuple[LikelihoodSet, ...], alpha: float) -> None:
        self.models, self.sets, self.alpha = models, sets, alpha
        self.n_observations = sets[0].n_observations

    def __repr__(self) -> str:
        return f"<AnyOfSet: alpha={self.alpha:g}, {self.n_observations} observations, {len(self.models)} models>"

    @property
    def refuted(self) -> tuple[str, ...]:
        """Models whose set is empty: certified, at level alpha, not to be right."""
        return tuple(name for name, s in zip(self.models, self.sets, strict=True) if s.is_empty)

    @property
    def has_alarm(self) -> bool:
        """Whether every model listens to laws outside it."""
        return all(s.has_alarm for s in self.sets)

    def diagnose(self) -> dict[str, Diagnosis]:
        """What beat each model, see :meth:`LikelihoodSet.diagnose`; of those that have an alarm."""
        return {name: s.diagnose() for name, s in zip(self.models, self.sets, strict=True) if s.has_alarm}

    @property
    def left(self) -> tuple[str, ...]:
        """Models that are not refuted."""
        return tuple(name for name in self.models if name not in self.refuted)

    @property
    def is_empty(self) -> bool:
        """Whether every model is refuted."""
        return all(s.is_empty for s in self.sets)

    def contains(self, theta: Any) -> Any:
        """Whether some model finds theta plausible; for models whose parameters are of one kind."""
        return _any([s.contains(theta) for s in self.sets])

    def log_ratio(self, theta: Any) -> Any:
        """The least evidence against theta in any of the models."""
        found = np.min([s.log_ratio(theta) for s in self.sets], axis=0)
        return found if np.ndim(found) else float(found)

    def upper(self, X: Any, *, alpha: float | None = None) -> Array:
        """Largest x'theta over the sets of all models not refuted, rounded outward."""
        return self._largest(lambda s: s.upper(X, alpha=alpha), alpha)

    def lower(self, X: Any, *, alpha: float | None = None) -> Array:
        """Smallest x'theta over the sets of all models not refuted, rounded outward."""
        return -self._largest(lambda s: -s.lower(X, alpha=alpha), alpha)

    def interval(self, X: Any, *, alpha: float | None = None) -> tuple[Array, Array]:
        """(lower, upper) for every row of X; with ``alpha``, at another level."""
        return self.lower(X, alpha=alpha), self.upper(X, alpha=alpha)

    def upper_difference(self, X: Any, Y: Any) -> Array:
        """Largest x'theta - y'theta over the sets of all models not refuted."""
        return self._largest(lambda s: s.upper_difference(X, Y), None)

    def contrast(self, X: Any, Y: Any, of: str = "difference") -> Bounds:
        """Bounds of a contrast of means over all models not refuted, see :meth:`LikelihoodSet.contrast`."""
        found = [s.contrast(X, Y, of) for s in self._plausible(None)]
        return Bounds(
            np.min([b.lower for b in found], axis=0),
            np.max([b.upper for b in found], axis=0),
            np.max([b.gap for b in found], axis=0),
        )

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
        """Evidence against a hypothesis whichever model is right: the least over the models."""
        asked: dict[str, Any] = {"minus": minus, "of": of, "below": below, "above": above, "equal": equal}
        found = [s.evidence(x, theta=theta, **asked) for s in self.sets]
        low = np.min([e.log_e_value for e in found], axis=0)
        high = np.min([e.log_e_value + e.gap for e in found], axis=0)
        gap = np.zeros(np.shape(low))
        np.subtract(high, low, out=gap, where=np.asarray(high > low))
        return EValue(low, gap)

    def _plausible(self, alpha: float | None) -> list[LikelihoodSet]:
        left = [s for s in self.sets if not s._at(alpha).is_empty]
        if not left:
            raise EmptySetError(self.alpha if alpha is None else alpha)
        return left

    def _largest(self, bound: Callable[[LikelihoodSet], Array], alpha: float | None) -> Array:
        return np.asarray(np.max([bound(s) for s in self._plausible(alpha)], axis=0))


def _any(answers: list[Any]) -> Any:
    found = np.any(answers, axis=0)
    return found if np.ndim(found) else bool(found)


def _name(member: ConfidenceSequence) -> str:
    return f"{member.family!r} on {member.space!r}"


def _listed(i: int, model: Any) -> list[tuple[int, Any]]:
    """The model, or those that a menu of spaces stands for, with the place of what was passed."""
    if isinstance(model, tuple) and len(model) == 2 and isinstance(model[1], Menu):
        if isinstance(model[0], type) or not isinstance(model[0], Family):
            raise InvalidArgumentError(f"models[{i}]", model[0], "is not a family", "pass e.g. (Gaussian(0.1), space)")
        return [(i, (model[0], space)) for space in model[1].spaces(model[0])]
    return [(i, model)]


def _member(i: int, model: Any, alpha: float, voices: Any, alarm: Any) -> ConfidenceSequence:
    if isinstance(model, ConfidenceSequence):
        with model._lock:
            problem = None
            if model.n_observations:
                problem = f"has seen {model.n_observations} observations without the others"
            elif model.alpha != alpha:
                problem = f"has alpha = {model.alpha:g}, not {alpha:g}"
            elif model._own_roles or model._durable is not None:
                problem = "has pieces of its own or a journal"
        if problem is not None:
            raise InvalidArgumentError(f"models[{i}]", model, problem, "pass a new sequence, or (family, space)")
        return copy.deepcopy(model)
    if not isinstance(model, tuple) or len(model) != 2:
        raise InvalidArgumentError(f"models[{i}]", model, "is no model", "pass (family, space), or a new sequence")
    return ConfidenceSequence(*model, alpha, voices=voices, alarm=alarm)
