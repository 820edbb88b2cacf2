"""What every competing confidence set has in common: the interface of ``ConfidenceSequence``, and how to stream data.

A comparison set is one file with one class derived from :class:`Comparison`. It says what it is (``name``,
``provable``, ``anytime``, ``assumptions``, ``source``), takes its constants in the constructor, before any data, and
implements two hooks: ``_observe`` (called once per observation) and ``_snapshot`` (the set of what has been seen).
A third, ``_remember``, is there to make updates cheap.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from functools import partial
from typing import Any, ClassVar, Protocol, Self

import numpy as np

from likeset._typing import Array
from likeset.all_or_nothing import Atomic
from likeset.arguments import error_level, has_shape
from likeset.comparison.ellipsoid import Ellipsoid
from likeset.embedded import Embedded
from likeset.errors import InvalidArgumentError, PieceError, ShapeError
from likeset.evidence.ledger import Ledger
from likeset.families.answers import nuisance
from likeset.families.base import Family, checked_family
from likeset.spaces.base import Basis, Space, checked_space
from likeset.spaces.linear import Linear
from likeset.spaces.rkhs import RKHS
from likeset.undo import Undo


class Snapshot(Protocol):
    """The immutable answer of a comparison set; the queries of :class:`~likeset.LikelihoodSet`."""

    space: Space
    alpha: float
    n_observations: int

    @property
    def radius(self) -> float | None:
        """Size in nats: half the squared radius of an ellipsoid, or the allowed fall of the log-likelihood."""
        ...

    @property
    def is_empty(self) -> bool:
        """Whether no parameter is left."""
        ...

    def upper(self, X: Any) -> Array:
        """Largest x'theta over the set, one per row of X."""
        ...

    def lower(self, X: Any) -> Array:
        """Smallest x'theta over the set, one per row of X."""
        ...

    def interval(self, X: Any) -> tuple[Array, Array]:
        """(lower, upper)."""
        ...

    def contains(self, theta: Any) -> Any:
        """Membership: one bool, or one per row of theta (function values on the domain in an RKHS)."""
        ...


class Stream:
    """Observations, checked, embedded in the growing basis and merged by covariate."""

    def __init__(self, family: Family, space: Space) -> None:
        self.family, self.space = family, space
        self.basis: Basis = space.start()
        self.ledger = Ledger(family, space.covariate_shape)

    def checked(self, x: Any, y: Any) -> tuple[Array, Array]:
        """x and y in canonical form, or a typed error; nothing is recorded."""
        X = self.space.covariates(x)
        if self.family.observation_shape and len(X) == 1 and has_shape(y, self.family.observation_shape):
            y = [y]  # one (time, event) pair for one covariate, not two times
        Y = self.family.observations(y)
        if len(X) != len(Y):
            raise ShapeError(
                "y",
                y,
                f"has {len(Y)} observations for {len(X)} covariates",
                "pass one observation for each row of x",
            )
        return X, Y

    def append(self, x: Array, y: Array, undo: Undo) -> Embedded:
        """Record one checked observation; what that changes is kept first."""
        basis, phi = self.ledger.embed(self.basis, x)
        undo.keep(self)
        self.ledger.remember(undo, phi)
        self.basis = basis
        self.ledger.append(phi, y, 1.0, 0.0)
        return phi


_OF_THE_BASE = frozenset({"space", "family", "_alpha", "_stream", "_set", "_lock", "_pending"})
_EVERYTHING = -1  # what is kept of a set that does not say what an observation touches


class Comparison(Atomic, ABC):
    """A competing confidence set with the interface of ``ConfidenceSequence``: ``update(x, y)`` and ``set``."""

    name: ClassVar[str]
    """Short label for tables and legends."""

    provable: ClassVar[bool]
    """Whether coverage 1 - alpha is a theorem under ``assumptions`` (at all times at once if ``anytime``)."""

    anytime: ClassVar[bool]
    """Whether the claim is about all times at once and adaptive covariates, or about one fixed sample."""

    assumptions: ClassVar[str]
    """What the proof asks for."""

    source: ClassVar[str]
    """Where the set was published."""

    within_theta: bool = False
    """Whether an ellipsoid is cut with { |theta| <= B }; by default it is the set as published."""

    unknown_numbers: ClassVar[bool] = False
    """Whether the set is defined where a number of the family (its scale) is unknown."""

    def __init__(self, space: Space, alpha: float, family: Family) -> None:
        super().__init__()
        check_model(family, space, alpha)
        if nuisance(family) and not self.unknown_numbers:
            raise InvalidArgumentError(
                "family", family, f"has an unknown number, and {type(self).__name__} wants to know it",
                "pass family.known(value)",
            )  # fmt: skip
        self.space, self.family = space, family
        self._alpha = error_level("alpha", alpha)
        self._stream = Stream(family, space)
        self._set: Snapshot | None = None

    @classmethod
    @abstractmethod
    def for_model(cls, family: Family, space: Space, alpha: float) -> Self | None:
        """The set with constants chosen beforehand from the model alone; None where it does not apply."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: alpha={self.alpha:g}, {self.n_observations} observations, {self.space!r}>"

    @property
    def alpha(self) -> float:
        """The error level."""
        return self._alpha

    @property
    def n_observations(self) -> int:
        """Number of observations recorded."""
        with self._lock:
            self._settle()
            return len(self._stream.ledger)

    def update(self, x: Any, y: Any) -> None:
        """Record one observation or a batch in order.

        All or nothing: after an error, or Ctrl-C at any moment, the set is as it was before the call, or as it is after
        it. Threads may share a set: updates of several take turns.
        """
        X, Y = self._stream.checked(x, y)
        self._refuse(X, Y)
        with self._lock:
            self._settle()
            self._all_or_nothing(lambda undo: self._record_all(undo, X, Y))

    @property
    def set(self) -> Snapshot:
        """The set of what has been seen: an immutable snapshot."""
        with self._lock:
            self._settle()
            if self._set is None:
                self._set = self._snapshot()
            return self._set

    def at_level(self, alpha: float) -> Snapshot:
        """The set of the same observations at another level, with the constants that were chosen for the first one.

        Constants are chosen before the data, so that this is as valid as the set itself.
        """
        level = error_level("alpha", alpha)
        with self._lock:
            self._settle()
            other = object.__new__(type(self))  # a twin that shares what was recorded; nothing is recorded through it
            vars(other).update({**vars(self), "_alpha": level, "_set": None})
            return other.set

    def _record_all(self, undo: Undo, X: Array, Y: Array) -> None:
        self._set = None  # made anew when asked for; until the change is complete nobody can ask
        for row, outcome in zip(X, Y, strict=True):
            phi = self._stream.append(row, outcome, undo)
            self._remember(undo, phi)
            self._observe(phi, outcome)

    def _refuse(self, X: Array, Y: Array) -> None:
        """Raise a typed error for observations beyond the method's own assumptions."""

    def _observe(self, phi: Embedded, y: Array) -> None:
        """Take note of one observation. What is public cannot be asked meanwhile: neither ``set`` nor the count."""

    def _remember(self, undo: Undo, phi: Embedded) -> None:
        """Before ``_observe(phi, y)``: keep what it will change, see :class:`~likeset.undo.Undo`.

        By default copies of all attributes that a class adds to these; built-in ones keep what an observation touches.
        """
        if undo.done(self, _EVERYTHING) or type(self)._observe is Comparison._observe:
            return
        shared = (self, self.space, self.family, self._stream, self._lock, undo, *vars(self._stream).values())
        own = {name: value for name, value in vars(self).items() if name not in _OF_THE_BASE}
        try:
            kept = copy.deepcopy(own, {id(thing): thing for thing in shared})
        except Exception as error:
            raise PieceError(
                f"{type(self).__name__} cannot be copied ({error}); updates are all or nothing, so its attributes must "
                "support copy.deepcopy, or the class define _remember(undo, phi)."
            ) from error
        undo.when_rolled_back(partial(self._put_back, kept))
        undo.mark(self, _EVERYTHING)

    def _put_back(self, kept: dict[str, Any]) -> None:
        for name in set(vars(self)) - set(kept) - _OF_THE_BASE:
            delattr(self, name)
        vars(self).update(kept)

    @abstractmethod
    def _snapshot(self) -> Snapshot:
        """The set now."""

    @property
    def misfit(self) -> float:
        """What numerical rank may add to the radius of an ellipsoid: zero in linear models."""
        return 0.0

    def _ellipsoid(self, *, centre: Array, precision: Array, outside: float, squared_radius: float) -> Ellipsoid:
        """{ |theta - centre|_V^2 <= squared_radius }, V = precision on the span and ``outside`` times I beyond it."""
        return Ellipsoid(
            self.space, self._stream.basis, self.alpha, self.n_observations, centre=centre, precision=precision,
            outside=outside, squared_radius=(np.sqrt(squared_radius) + self.misfit) ** 2,
            within_theta=self.within_theta,
        )  # fmt: skip


def check_model(family: Any, space: Any, alpha: Any) -> None:
    """Refuse what is not a family, a space and an error level."""
    checked_space(space)
    checked_family(family)
    error_level("alpha", alpha)


def is_one_convex_law(family: Family) -> bool:
    """Whether -log p(y | z) is one convex function of z, with every number in it known."""
    return family.convex and not nuisance(family)


def parameter_dimension(space: Space) -> int | None:
    """Dimension of theta: of R^d, or an upper bound of that of the functions on a finite domain; None if infinite."""
    return space.dim if isinstance(space, Linear) else space.rank if isinstance(space, RKHS) else None


def longest_covariate(space: Space) -> float:
    """Largest |x|: from the domain of an RKHS; where nothing tells it, the literature's convention |x| <= 1."""
    if isinstance(space, RKHS) and space.domain is not None:
        return float(np.sqrt(space.diagonal(space.domain).max()))
    return 1.0


def default_penalty(space: Space) -> float:
    """lambda = 1 / B^2: a prior N(0, I / lambda) as wide as Theta, and a bias sqrt(lambda) B of one; 1 if B = inf."""
    return 1.0 / space.bound**2 if np.isfinite(space.bound) else 1.0


def finite_bound(space: Space, method: str) -> float:
    """B, or a typed error where a method needs one."""
    if not np.isfinite(space.bound):
        raise InvalidArgumentError(
            "space", space, f"has no bound on |theta|, which {method} needs", "give the space a finite bound"
        )
    return space.bound
