r"""Evidence against half-spaces and planes where announced contrasts have voices that are not convex.

    log R >= log [ (1 - share) R_others ]  =: F,      convex;      e >= the least F over what the hypothesis allows,

and what :meth:`TiltedKernel.least` proves of announced contrasts: the larger of the two. A plane a'theta = b lies in
two half-spaces; the one without the centre has the larger least ratio, so the search is there, and ends on the plane.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from likeset._solver.tilted import TiltedKernel
from likeset._typing import EPS, Array
from likeset.answers.hypotheses import least_evidence

if TYPE_CHECKING:
    from likeset.sets import LikelihoodSet


def least_with_tilts(
    s: LikelihoodSet, inside: Array, outside: Array, limit: Array, hypothesis: str
) -> tuple[Array, Array]:
    """Bounds of the least log R for the rows of a hypothesis, "below", "above" or "equal" to their limits.

    Beyond the threshold exactly where the bounds of the set exclude it.
    """
    evidence = s._evidence
    convex = s._of(evidence.others, s.alpha)  # type: ignore[union-attr]
    ahead = limit >= inside @ s._kernel.centre  # where "at least the limit" does not allow the centre
    sign = np.where(ahead if hypothesis == "equal" else hypothesis == "above", 1.0, -1.0) * np.ones(len(limit))
    A, b = sign[:, None] * inside, sign * limit
    low, high = least_evidence(convex, A, outside, b)
    high = np.where(np.isinf(low), high, np.inf)  # of the others alone; inf where nothing of Theta is allowed
    kernel = s._kernel
    if isinstance(kernel, TiltedKernel):
        for i in np.flatnonzero((outside == 0.0) & np.isfinite(low)):
            proved, high[i] = kernel.least(A[i], float(b[i]))
            if proved > low[i]:
                low[i] = max(low[i], proved - 64 * EPS * (1.0 + evidence.size + abs(proved)))
    refuted = s._bounds(A, outside) < b
    if hypothesis == "equal":
        refuted |= s._bounds(-A, outside) < -b
    margin = 8 * EPS * (1.0 + abs(evidence.threshold))
    decided = np.where(
        refuted, np.maximum(low, evidence.threshold + margin), np.minimum(low, evidence.threshold - margin)
    )
    low = np.where(np.isposinf(low), low, decided)
    return low, np.maximum(high, low)
