"""What a policy needs of a sequence of sets: likelihood-ratio or competing, built in or a user's own."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from likeset._typing import Array
from likeset.arguments import real_array
from likeset.errors import InvalidArgumentError, ShapeError
from likeset.sequence import ConfidenceSequence


class QuerySet(Protocol):
    """A set of plausible parameters that bounds z = x'theta."""

    def upper(self, X: Any) -> Array:
        """Upper bound of z for every row of X."""
        ...

    def lower(self, X: Any) -> Array:
        """Lower bound of z for every row of X."""
        ...

    def interval(self, X: Any) -> tuple[Array, Array]:
        """(lower, upper)."""
        ...

    def contains(self, theta: Any) -> Any:
        """Whether theta is plausible."""
        ...


@runtime_checkable
class SetSequence(Protocol):
    """A running sequence of sets: ``ConfidenceSequence``, or anything that looks like it from outside."""

    @property
    def alpha(self) -> float:
        """The error level of the sets, at all times at once."""
        ...

    @property
    def space(self) -> Any:
        """Where theta lives."""
        ...

    @property
    def set(self) -> Any:
        """The current :class:`QuerySet`."""
        ...

    def update(self, x: Any, y: Any) -> None:
        """Record an observation."""
        ...


def checked_sequence(seq: Any) -> SetSequence:
    """The sequence, or a typed error."""
    if isinstance(seq, type) or not isinstance(seq, SetSequence):
        raise InvalidArgumentError(
            "seq",
            seq,
            "is not a sequence of sets",
            "pass a ConfidenceSequence or an object with update, set, space, alpha",
        )
    if getattr(getattr(seq, "voices", None), "simultaneous", True) is False:
        raise InvalidArgumentError(
            "seq",
            seq,
            "has a set for every question, each at alpha, and a policy picks its questions by what it sees",
            "announce contrasts with simultaneous=True",
        )
    return seq


def refuse_outcome(seq: SetSequence, y: Any) -> None:
    """A typed error for a y that is not made of finite numbers, before a sequence of the user's own takes it.

    A ``ConfidenceSequence`` asks its family, and is as it was if the answer is no.
    """
    if not isinstance(seq, ConfidenceSequence) and real_array("y", y).size == 0:
        raise ShapeError("y", y, "is empty", "tell one observation at a time")
