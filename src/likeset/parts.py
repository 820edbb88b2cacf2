"""Objects that are what they were made from: copies and pickles leave out what was worked out meanwhile."""

from __future__ import annotations

from functools import cached_property
from typing import Any


class MadeFromParts:
    """An object that answers may have been worked out from; a copy of it works them out again.

    Solvers that stand ready hold compiled code, functions and buffers, which do not fit into a pickle.
    """

    def __getstate__(self) -> dict[str, Any]:
        worked_out = {
            name for cls in type(self).__mro__ for name, what in vars(cls).items() if isinstance(what, cached_property)
        }
        state = self.__dict__.copy()  # in one step: another thread may be asking
        return {name: value for name, value in state.items() if name not in worked_out}
