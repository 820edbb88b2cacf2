"""Objects that are what they were made from: answers are worked out when first asked for, and copies leave them out."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Generic, Self, TypeVar, overload

Answer = TypeVar("Answer")


class worked_out(cached_property[Answer], Generic[Answer]):
    """``functools.cached_property`` without the lock that Python 3.11 takes for it, which costs as much as a small sum.

    Two threads that ask at once may both work it out; one of the two answers, which are alike, is kept.
    """

    @overload
    def __get__(self, instance: None, owner: type[Any] | None = None) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type[Any] | None = None) -> Answer: ...
    def __get__(self, instance: object | None, owner: type[Any] | None = None) -> Self | Answer:
        if instance is None:
            return self
        assert self.attrname is not None
        answer = instance.__dict__[self.attrname] = self.func(instance)
        return answer


class MadeFromParts:
    """An object that answers may have been worked out from; a copy of it works them out again.

    Solvers that stand ready hold compiled code, functions and buffers, which do not fit into a pickle.
    """

    def __getstate__(self) -> dict[str, Any]:
        worked = {
            name for cls in type(self).__mro__ for name, what in vars(cls).items() if isinstance(what, worked_out)
        }
        state = self.__dict__.copy()  # in one step: another thread may be asking
        return {name: value for name, value in state.items() if name not in worked}
