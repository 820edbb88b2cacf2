"""Least squares on unbiased responses (:mod:`likeset.families.responses`): what it cannot use."""

from __future__ import annotations

import numpy as np

from likeset._typing import Array
from likeset.errors import ObservationError
from likeset.families.answers import response

__all__ = ["refuse_censored", "response"]


def refuse_censored(Y: Array) -> None:
    """Raise if a (time, event) pair is censored: its time says nothing unbiased about z."""
    if Y.ndim == 2 and (Y[:, 1] == 0).any():
        index = int(np.argmax(Y[:, 1] == 0))
        raise ObservationError(
            f"y[{index}]", tuple(Y[index]), "is censored, and least squares cannot use censored times",
            "use a likelihood-based set, e.g. ConfidenceSequence",
        )  # fmt: skip
