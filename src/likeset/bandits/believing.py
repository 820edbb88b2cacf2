"""Whose beliefs a policy chooses by: those of its sequence, or of a model that runs beside it."""

from __future__ import annotations

from typing import Any

import numpy as np

from likeset._typing import Array
from likeset.any_of import AnyOf
from likeset.errors import InvalidArgumentError
from likeset.families.answers import size_name
from likeset.predictors import Belief, Believer, Predictor
from likeset.predictors.base import is_piece
from likeset.sequence import ConfidenceSequence


class Beliefs:
    """The beliefs of ``seq``, or of ``companion``, a sequence that is shown all that ``seq`` is told.

    A companion never bounds anything: it may have another prior, family or length scale, right or wrong.
    """

    def __init__(self, seq: Any, belief: Any = None) -> None:
        self.seq, self.companion = seq, _companion(seq, belief)
        self._shown = 0

    def now(self) -> Any:
        """The belief given all that the sequence holds."""
        if self.companion is None:
            return self.seq.belief
        if isinstance(self.seq, ConfidenceSequence):
            ledger = self.seq.ledger
            new = slice(self._shown, len(ledger))
            x, y, given = (rows.rows[new].copy() for rows in (ledger.x, ledger.y, ledger.given))
            if len(x):
                known = {"offset": given[:, 0]} if given[:, 0].any() else {}
                if given[:, 1].all() and (size := size_name(self.seq.family)):
                    known[size] = given[:, 1]
                self.companion.update(x, y, **known)
                self._shown += len(x)
        return self.companion.belief

    def told(self, x: Any, y: Any) -> None:
        """One observation, for companions of sequences that keep no ledger."""
        if self.companion is not None and not isinstance(self.seq, ConfidenceSequence):
            self.companion.update(x, y)


def hopes(belief: Any, rows: Array, sign: float, deviations: float) -> Array:
    """Scores that a belief holds possible: mean + so many standard deviations of sign * z."""
    if isinstance(belief, Belief):
        return belief.optimistic(rows, sign, deviations)
    mean, sd = belief.moments(rows)
    return np.asarray(sign * np.asarray(mean) + deviations * np.asarray(sd))


def _companion(seq: Any, belief: Any) -> Any:
    if belief is None:
        if isinstance(seq, ConfidenceSequence) and isinstance(seq.forecaster, Believer):
            return None
        if isinstance(seq, AnyOf) and seq.belief is not None:
            return None
        return _beside(seq, None)
    if isinstance(belief, ConfidenceSequence):
        if belief is seq or belief.n_observations:
            raise InvalidArgumentError(
                "belief",
                belief,
                "has observations, or is the sequence itself",
                "pass a fresh sequence, or leave it out",
            )
        if belief.space.covariate_shape != seq.space.covariate_shape:
            raise InvalidArgumentError(
                "belief", belief, "takes other covariates than the sequence", "pass one with as many coordinates"
            )
        if not isinstance(belief.forecaster, Believer):
            raise InvalidArgumentError("belief", belief, "has a predictor that shows no beliefs", "use Mixture()")
        return belief
    if is_piece(belief, Predictor):
        return _beside(seq, belief)
    if not isinstance(belief, type) and hasattr(belief, "belief") and callable(getattr(belief, "update", None)):
        return belief
    raise InvalidArgumentError(
        "belief", belief, "is nothing to choose by",
        "pass Mixture(...), a fresh ConfidenceSequence, or an object with update(x, y) and belief",
    )  # fmt: skip


def _beside(seq: Any, predictor: Any) -> ConfidenceSequence:
    """A sequence of the same model that exists for its beliefs; nobody asks for its sets."""
    family = getattr(seq, "family", None)
    try:
        made = ConfidenceSequence(family, seq.space, seq.alpha, predictor, voices=None, alarm=False)  # type: ignore[arg-type]
    except InvalidArgumentError as error:
        raise InvalidArgumentError(
            "belief", predictor, f"cannot be had for {seq!r} ({error})", "pass a fresh ConfidenceSequence as belief"
        ) from error
    if not isinstance(made.forecaster, Believer):
        raise InvalidArgumentError(
            "belief", predictor, "shows no beliefs about theta", "use Mixture(), the default, or leave it out"
        )
    return made
