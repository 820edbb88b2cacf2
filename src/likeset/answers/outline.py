"""The boundary of a set in the plane, point by point."""

from __future__ import annotations

from typing import Any

import numpy as np

from likeset._typing import Array
from likeset.errors import InvalidArgumentError
from likeset.progress import counted

_HALVINGS = 80


def outline(s: Any, n_points: int) -> Array:
    """Where rays from the centre leave the set, shape (n_points, 2): bisection on a convex function along each ray."""
    low_corner, high_corner = s.bounding_box()
    if not np.isfinite([low_corner, high_corner]).all():
        raise InvalidArgumentError(
            "bound", s.space.bound, "leaves this set unbounded", "give the space a finite bound to draw it"
        )
    angles = np.linspace(0.0, 2 * np.pi, n_points, endpoint=False)
    rays = np.column_stack([np.cos(angles), np.sin(angles)])
    low, high = np.zeros(n_points), np.full(n_points, 1.01 * float(np.linalg.norm(high_corner - low_corner)))
    for _ in counted(range(_HALVINGS), _HALVINGS, "drawing the boundary"):
        middle = 0.5 * (low + high)
        inside = s.contains(s.centre + middle[:, None] * rays)
        low, high = np.where(inside, middle, low), np.where(inside, high, middle)
    return np.asarray(s.centre + low[:, None] * rays)
