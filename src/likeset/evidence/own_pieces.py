"""Predictors and weightings of the user's own: how a failed update leaves them as they were.

They have two methods and no undo. So a copy is kept of how they were before the sequence showed them anything, and
only when an update fails are they made anew: a copy of that copy observes the recorded rows again. Success costs
nothing. What this asks of a piece is written in :class:`~likeset.predictors.base.Forecaster`.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

from likeset.embedded import Embedded
from likeset.errors import PieceError
from likeset.evidence.alarm import Alarm
from likeset.evidence.ledger import Ledger
from likeset.families.base import Family
from likeset.families.outside import Believed
from likeset.predictors import PREDICTORS, Aggregate, Forecaster
from likeset.predictors.base import Gauge
from likeset.predictors.mixture import MixtureForecaster
from likeset.spaces.base import Basis, Space
from likeset.voices.base import Membership
from likeset.voices.directions import Directions
from likeset.weights import WEIGHTINGS, Weigher


@dataclass
class Running:
    """Everything that changes with an observation."""

    ledger: Ledger
    basis: Basis
    forecaster: Forecaster
    weigher: Weigher
    membership: Membership | None
    alarm: Alarm | None = None  # forecasts from outside the model, if there are any
    directions: Directions | None = None  # sums of directional voices, if there are any
    gauge: Any = None  # says how well z is known, if voices or the alarm ask and the forecaster does not

    def pieces(self, but: tuple[str, ...] = ()) -> list[Any]:
        """What learns from observations, without the roles named."""
        found = [] if self.gauge is None else [self.gauge]  # ours, whoever forecasts
        if "weigher" not in but:
            found.insert(0, self.weigher)
        if "forecaster" not in but:
            found.insert(0, self.forecaster)
        return found

    def label(self, phi: Embedded) -> int:
        """The class of an observation at phi, before its y is known."""
        if self.membership is None:
            return 0
        gauge: Any = self.forecaster if self.gauge is None or isinstance(self.forecaster, Gauge) else self.gauge
        return self.membership.label(phi.x, lambda: float(gauge.spread(phi)))

    def believed(self, phi: Embedded) -> Believed:
        """What is believed of z at phi, before its y is known; for the alarm."""
        return self.source.belief_about_z(phi)  # type: ignore[no-any-return]

    @property
    def source(self) -> Any:
        """Whose beliefs the alarm reads."""
        return self.forecaster if isinstance(self.forecaster, MixtureForecaster) else self.gauge


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
