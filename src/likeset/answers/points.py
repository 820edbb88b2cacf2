"""Questions about single parameters: one, or one per row."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from likeset._solver.linalg.threads import SingleThreadedBlas
from likeset._typing import EPS
from likeset.answers.hypotheses import EValue
from likeset.evidence.evidence import ROUNDING
from likeset.progress import counted

if TYPE_CHECKING:
    from likeset.sets import LikelihoodSet

_ENTRIES = 1 << 21  # linear predictors that are looked at between two signs of progress


def like(theta: Any, answers: NDArray[Any]) -> Any:
    """A plain number or bool for a single parameter, an array for rows of parameters."""
    return answers[0].item() if len(answers) == 1 and np.ndim(theta) < 2 else answers


def plausible(s: LikelihoodSet, theta: Any, nuisance: tuple[Any, ...]) -> NDArray[np.bool_]:
    """Which of the parameters theta are in the set; many of them are looked at a part at a time."""
    with SingleThreadedBlas():
        norms, values = s._basis.norms(theta), s._values(theta)
        rows = max(1, _ENTRIES // max(values.shape[1], 1))
        starts = range(0, max(len(values), 1), rows)
        parts = (slice(start, start + rows) for start in starts)
        found = [
            s._evidence.allows(values[part], norms[part], *nuisance)
            for part in counted(parts, len(starts), "looking at parameters")
        ]
    return np.concatenate(found) & (norms <= s.space.bound * (1 + ROUNDING))


def against_points(s: LikelihoodSet, theta: Any) -> EValue:
    """Evidence against the parameters theta, less what rounding may have added."""
    with SingleThreadedBlas():
        values, norms = s._values(theta), s._basis.norms(theta)
        found, rounding = s._evidence.log_ratio_with_rounding(values, norms)
    gap = np.where(np.isfinite(found) & np.isfinite(rounding), 2 * rounding, 0.0)
    # As in ``contains``: on the same side of log(1/alpha).
    allowed = (found < inf) & (found - s._evidence.threshold <= rounding)
    level, margin = s._evidence.threshold, 8 * EPS * (1.0 + abs(s._evidence.threshold))
    low = np.where(
        allowed, np.minimum(found - 0.5 * gap, level - margin), np.maximum(found - 0.5 * gap, level + margin)
    )
    return EValue(like(theta, low), like(theta, gap))
