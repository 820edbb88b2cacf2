r"""Which arms need solving again: a witness per arm says no without solving.

The ceiling of an arm is the smallest upper bound of its score so far (running intersection). A *witness* of the arm is
a parameter that was in the set some time ago and whose score reaches the ceiling. While it stays in the set, the upper
bound of the arm is at least its ceiling, so solving could not lower the ceiling and is skipped: the result is that of
the full computation. Membership of all witnesses is one evaluation of log R, far cheaper than the extrema.

Likelihood-ratio sets are not nested: away from the last observation the bounds of most rounds are above those of an
earlier one, which is why most witnesses survive most rounds.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from likeset._typing import Array, Mask
from likeset.spaces import RKHS, Linear

_SOUND = 3e-7  # relative rounding that a witness may have; less than what counts as a tie
_REACH = 1e-9  # relative margin by which a witness is placed above the ceiling


def parameter_size(space: Any) -> int:
    """Length of a parameter that can be evaluated at arms: dim, or the number of points of the domain; else 0."""
    if isinstance(space, RKHS):
        return 0 if space.domain is None else len(space.domain)
    return space.dim if isinstance(space, Linear) else 0


def can_witness(space: Any, current: Any) -> bool:
    """Whether parameters of this space can be evaluated at arms, and this set tells maximisers and log R."""
    if not parameter_size(space) or not all(hasattr(current, name) for name in ("support", "log_ratio")):
        return False
    return _takes_signs(getattr(type(current), "support", current.support))


@lru_cache(maxsize=64)
def _takes_signs(support: Callable[..., Any]) -> bool:
    return "sign" in inspect.signature(support).parameters


def reader_at(space: Any, rows: Array) -> Callable[[Array], Array]:
    """A function of parameters, one per row: z of parameter i at row i."""
    if isinstance(space, Linear):
        return lambda theta: np.einsum("ij,ij->i", theta, rows)
    each, places = np.arange(len(rows)), space.places(rows)
    return lambda theta: np.asarray(theta[each, places])


def survivors(current: Any, alpha: float, witnesses: Array) -> Mask:
    """Which sound witnesses are still plausible. Their norms do not change, so only log R is asked."""
    level = -np.log(alpha) + getattr(current, "charge", 0.0)
    return np.asarray(np.atleast_1d(current.log_ratio(witnesses)) <= level)


def place_witnesses(space: Any, sign: float, rows: Array, inside: Array, ceilings: Array) -> tuple[Array, Mask]:
    """Witnesses for solved arms, as deep inside the set as the ceiling allows, and which of them are sound.

    ``inside`` holds plausible parameters, the arms' maximisers last. The set is convex, so every point on the segment
    from the mean of them all to a maximiser is plausible. The one whose score equals the ceiling is the deepest that
    will do: it stays plausible longest.

    A sound witness keeps the norm bound and reaches the ceiling, both up to rounding. Maximisers written as function
    values may lose the first, where a section barely leaves the span of those seen.
    """
    maximisers = inside[len(inside) - len(rows) :]
    centre = np.empty(maximisers.shape)
    centre[:] = inside.mean(axis=0)
    values_of = reader_at(space, rows)
    low, high = sign * values_of(centre), sign * values_of(maximisers)
    goal = ceilings + _REACH * (1.0 + np.abs(ceilings))
    share = np.ones(len(rows))
    np.divide(goal - low, high - low, out=share, where=high - low > 1e-9 * (1.0 + np.abs(high)))
    placed = np.asarray(centre + np.clip(share, 0.0, 1.0)[:, None] * (maximisers - centre))
    norms = np.linalg.norm(placed, axis=1) if isinstance(space, Linear) else space.norms(placed)
    reached = sign * values_of(placed) >= ceilings - _SOUND * (1.0 + np.abs(ceilings))
    return placed, reached & (norms <= space.bound * (1.0 + _SOUND))
