"""States of the pieces that learn: written down, given back, or made anew where a piece has none or it does not fit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from likeset._typing import Array
from likeset.errors import PieceError
from likeset.families.merged import MergedData
from likeset.persistence.descriptions import describe
from likeset.predictors.aggregate import started

if TYPE_CHECKING:
    from likeset.sequence import ConfidenceSequence

PIECES = ("forecaster", "weigher", "gauge")  # that learn; of a gauge there is none as a rule


def restored(piece: Any, state: dict[str, Array], data: MergedData, built_in: bool) -> bool:
    """Let a piece take its state back; False if a built-in one cannot, because it does not fit."""
    try:
        with np.errstate(all="ignore"):
            piece.restore(state)
            if hasattr(piece, "fits") and not piece.fits(data.count, data.dimension):
                raise ValueError(f"it is not that of {data.count} covariates in {data.dimension} dimensions")
            if hasattr(piece, "resume"):
                piece.resume(data)
        return True
    except Exception as error:
        if built_in:
            return False
        raise PieceError(
            f"{type(piece).__name__} could not restore its state from the file ({type(error).__name__}: {error}); "
            "the file is damaged or of another version of the class; leave `restore` out to have it observe the "
            "recorded data instead."
        ) from error


def fresh(role: str, sequence: ConfidenceSequence) -> Any:
    """A piece that has observed nothing; of the user's own, the one that was passed to ``load``."""
    if role == "gauge":
        return sequence._gauge()
    if role == "forecaster":
        return started(sequence.predictor, sequence.family, sequence.space)
    return started(sequence.weighting, sequence.family, sequence.space)  # type: ignore[arg-type]


def is_built_in(role: str, sequence: ConfidenceSequence) -> bool:
    """Whether the piece in a role is not the user's own."""
    pieces = {"forecaster": sequence.predictor, "weigher": sequence.weighting}
    return role not in pieces or "own" not in describe(pieces[role])


def state_of(running_piece: Any) -> dict[str, Array]:
    """What a piece has learnt, as arrays; nothing of a piece without a state."""
    if not has_state(running_piece):
        return {}
    state = running_piece.state()
    try:
        return {str(name): np.asarray(array, dtype=np.float64) for name, array in state.items()}
    except (AttributeError, TypeError, ValueError) as error:
        raise PieceError(
            f"the state of {running_piece!r} cannot be saved ({error}); state() must return a dict of numeric arrays."
        ) from error


def has_state(running_piece: Any) -> bool:
    """Whether a piece can write its state down and take it back, and all its members can."""
    members = getattr(running_piece, "members", [])
    return hasattr(running_piece, "state") and hasattr(running_piece, "restore") and all(map(has_state, members))
