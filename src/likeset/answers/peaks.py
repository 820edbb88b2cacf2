r"""The highest upper bound over a box of covariates: optimism on a continuous domain.

Let h(x) = max over the set of f(x). At a maximiser f* the envelope theorem gives

    grad h(x) = grad f*(x),      f* held fixed,

so one support solve yields value and gradient. ``maximise_upper`` looks at many points at once, then climbs from the
best of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from likeset._typing import Array
from likeset.arguments import positive_integer, real_array, seed_number
from likeset.errors import ShapeError

if TYPE_CHECKING:
    from likeset.sets import LikelihoodSet

_CANDIDATES_PER_START = 16


@dataclass(frozen=True)
class Peak:
    """Where the upper bound is highest, as far as the search found.

    x       the covariate
    upper   the certified upper bound of x'theta (of f(x)) there: no plausible parameter exceeds it at this x.
            That no other x of the box has a higher one is the search's finding, not a certificate
    solves  number of support problems solved
    """

    x: Array
    upper: float
    solves: int


def maximise_upper(s: LikelihoodSet, bounds: Any, starts: int, seed: int) -> Peak:
    """Best of ``starts`` climbs (L-BFGS-B) from the best of random points and corners of the box ``bounds``."""
    from scipy.optimize import minimize

    box = real_array("bounds", bounds)
    dim = s.space.covariate_shape[0]
    if box.shape == (2,) and dim == 1:
        box = box[None, :]
    if box.shape != (dim, 2) or not (box[:, 0] < box[:, 1]).all():
        raise ShapeError("bounds", bounds, "is not a box", f"pass {dim} pairs (low, high), low < high")
    starts = positive_integer("starts", starts, 10**4, "every start is a search of its own")
    rng = np.random.default_rng(seed_number("seed", seed))
    candidates = rng.uniform(box[:, 0], box[:, 1], size=(starts * _CANDIDATES_PER_START, dim))
    if dim <= 6:
        corners = np.stack(np.meshgrid(*box, indexing="ij"), axis=-1).reshape(-1, dim)
        candidates = np.concatenate([candidates, corners])
    heights = s.upper(candidates)
    solves = len(candidates)
    best = int(np.argmax(heights))
    peak_x, peak = candidates[best], float(heights[best])

    def fall(x: Array) -> tuple[float, Array]:
        nonlocal peak_x, peak, solves
        upper, gradient = s.upper_gradient(x[None, :])
        solves += 1
        if upper[0] > peak:
            peak_x, peak = x.copy(), float(upper[0])
        return -float(upper[0]), -gradient[0]

    for start in candidates[np.argsort(-heights)[:starts]]:
        minimize(fall, start, jac=True, method="L-BFGS-B", bounds=box, options={"maxiter": 100, "ftol": 1e-10})
    return Peak(peak_x, peak, solves)
