"""Predictors and weightings of the user's own: how a failed update leaves them as they were.

They have two methods and no undo. So a copy is kept of how they were before the sequence showed them anything, and
only when an update fails are they made anew: a copy of that copy observes the recorded rows again. Success costs
nothing. What this asks of a piece is written in :class:`~likeset.predictors.base.Forecaster`.
"""

from __future__ import annotations

import copy
from typing import Any

from likeset.errors import PieceError
from likeset.evidence.running import Running
from likeset.families.base import Family
from likeset.predictors import PREDICTORS, Aggregate
from likeset.spaces.base import Space
from likeset.weights import WEIGHTINGS


class OwnPieces:
    """The running pieces named by ``roles``, as they were after the first ``start`` observations."""

    def __init__(self, running: Running, roles: tuple[str, ...], family: Family, space: Space) -> None:
        self.roles, self.start = roles, len(running.ledger)
        self._shared = (family, space)  # constant, and forecasts are recognised by their family
        # Together, so that one object in two roles stays one.
        self._pristine = copied(tuple(getattr(running, role) for role in roles), *self._shared)
        self.rebuild(running)  # the sequence works with copies: what the user passed in stays the user's

    def rebuild(self, running: Running) -> None:
        """Pieces that have observed what the ledger holds, and nothing else. May be repeated if interrupted."""
        pieces = copied(self._pristine, *self._shared)
        for phi, y in running.ledger.replay(self.start):
            for piece in pieces:
                piece.observe(phi, y)
        for role, piece in zip(self.roles, pieces, strict=True):
            setattr(running, role, piece)


def copied(pieces: Any, *shared: object) -> Any:
    """Independent copies of pieces of the user's own; what is ``shared`` stays one."""
    try:
        return copy.deepcopy(pieces, {id(constant): constant for constant in shared})
    except Exception as error:
        raise PieceError(
            f"a predictor or weighting of your own cannot be copied ({error}); updates are all-or-nothing, so it "
            "must support copy.deepcopy: define __deepcopy__."
        ) from error


def is_built_in(piece: object) -> bool:
    """Whether a piece is a built-in one, started by the sequence itself and made of built-in parts only."""
    if isinstance(piece, Aggregate):
        return all(is_built_in(p) for p in piece.predictors)
    return type(piece) in (*PREDICTORS, *WEIGHTINGS)
