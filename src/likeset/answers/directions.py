"""Directions of a question: coordinates in the basis of the covariates seen, and the length outside their span."""

from __future__ import annotations

from typing import Any

import numpy as np

from likeset._typing import Array
from likeset.errors import InvalidArgumentError, ShapeError
from likeset.spaces.base import IN_SPAN, Basis, Space


def split(bound: float, inside: Array, outside: Array) -> tuple[Array, Array]:
    """Lengths outside the span that are solved for, and what the others, which are tiny, can add at most."""
    if not np.count_nonzero(outside):
        return outside, outside
    squares = outside * outside  # where these vanish, or overflow, a length is tiny, which is as good a bound
    tiny = squares <= IN_SPAN**2 * (np.einsum("ij,ij->i", inside, inside) + squares)
    if not np.count_nonzero(tiny):
        return outside, np.zeros(len(outside))
    spill = np.zeros(len(outside))
    np.multiply(bound, outside, out=spill, where=tiny & (outside > 0))
    return np.where(tiny, 0.0, outside), spill


def starting_points(space: Space, basis: Basis, near: Any, count: int) -> Array:
    """Coordinates of parameters to start from, one for each of ``count`` directions."""
    if getattr(space, "domain", ...) is None:
        raise InvalidArgumentError(
            "near", near, "cannot be located in a function space without a domain", "leave near out"
        )
    coordinates = basis.project(near, "near")
    if len(coordinates) != count:
        raise ShapeError("near", near, f"has {len(coordinates)} rows", f"pass one parameter per row of X: {count}")
    return coordinates
