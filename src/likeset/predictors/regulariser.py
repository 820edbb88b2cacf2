r"""Quadratic regularisers of Follow-the-Regularised-Leader (Algorithm 1):  psi_t(theta) = (theta - c)'P_t (theta - c).

P_t, the ``penalty``, is lambda I for a number lambda, a matrix, or what a function of t makes of the number t of
observations so far, which is known before y_{t+1}; c is the ``centre``. Penalties and centres are in the user's
coordinates; where a space has turned theta into a ball, T'^-1 theta for its ``turn`` T, so is the regulariser.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Number
from typing import Any

import numpy as np

from likeset._typing import Array
from likeset.arguments import positive, real_array
from likeset.errors import InvalidArgumentError, LikesetError, PieceError, ShapeError
from likeset.spaces.base import Space

WORST_CONDITION = 1e12  # of P_t; beyond it the fit would be rounding in some directions


def checked_penalty(value: Any) -> float | Array | Callable[[int], Any]:
    """A positive number, a positive definite matrix, or a function of t."""
    if callable(value) and not isinstance(value, type):
        return value  # type: ignore[no-any-return]
    if isinstance(value, Number):
        return positive("penalty", value)
    matrix = real_array("penalty", value)
    if matrix.ndim == 0:
        return positive("penalty", matrix.item())
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not len(matrix):
        raise ShapeError("penalty", value, f"has shape {matrix.shape}", "pass a number or a square matrix")
    if not np.allclose(matrix, matrix.T, rtol=1e-12, atol=0.0):
        raise InvalidArgumentError("penalty", value, "is not symmetric", "pass (P + P') / 2")
    matrix = 0.5 * (matrix + matrix.T)
    sizes = np.linalg.eigvalsh(matrix)
    if not sizes[0] > sizes[-1] / WORST_CONDITION:
        raise InvalidArgumentError(
            "penalty", value, f"has eigenvalues from {sizes[0]:g} to {sizes[-1]:g}",
            f"pass a positive definite matrix with eigenvalues within a factor of {WORST_CONDITION:g}",
        )  # fmt: skip
    return matrix


def checked_centre(value: Any) -> Array | None:
    """A parameter, or nothing."""
    if value is None:
        return None
    centre = real_array("centre", value)
    if centre.ndim != 1 or not len(centre):
        raise ShapeError("centre", value, f"has shape {centre.shape}", "pass one parameter, a vector")
    return centre


@dataclass(frozen=True)
class Regulariser:
    """psi_t of a sequence, in coordinates in which Theta is a ball; ``turn`` is None in function spaces."""

    penalty: float | Array | Callable[[int], Any]
    centre: Array | None
    turn: Array | None

    @classmethod
    def on(cls, space: Space, penalty: float | Array | Callable[[int], Any], centre: Array | None) -> Regulariser:
        """For one space; refused if matrix or centre do not fit it."""
        turn = getattr(space, "turn", None)
        for name, value in (("penalty", penalty), ("centre", centre)):
            if not isinstance(value, np.ndarray):
                continue
            if turn is None:
                raise InvalidArgumentError(
                    name, value, f"does not fit {space!r}", "use a number, or a linear space of the same dimension"
                )
            if len(value) != len(turn):
                raise ShapeError(name, value, f"has {len(value)} rows", f"pass {len(turn)}, as many as {space!r} has")
        if turn is not None and centre is not None:
            centre = np.linalg.solve(turn.T, centre)
        return cls(penalty, centre, turn)

    def at(self, t: int, dimension: int) -> Array:
        """P_t."""
        found: Any = self.penalty
        if callable(found):
            found = self._asked(found, t)
        if not isinstance(found, np.ndarray):
            found = found * np.eye(dimension)
        elif self.turn is None or len(found) != len(self.turn):
            raise PieceError(f"the penalty at t = {t} is a matrix of {len(found)} rows, which does not fit the space.")
        return np.asarray(found if self.turn is None else self.turn @ found @ self.turn.T)

    @staticmethod
    def _asked(function: Callable[[int], Any], t: int) -> Any:
        try:
            found = checked_penalty(function(t))
            if callable(found):
                raise TypeError("it returned a function")
        except LikesetError as error:
            raise PieceError(f"the penalty at t = {t} is none: {error}") from error
        except Exception as error:
            raise PieceError(f"the penalty failed at t = {t} ({type(error).__name__}: {error}).") from error
        return found
