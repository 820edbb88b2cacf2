r"""Which arm to observe so that a question is decided soonest.

A question is about v'z, a combination v of the arms' z: leader minus rival, or one arm against a level. Under a
Gaussian belief with covariance S of z, one observation of arm i, whose noise has precision I_i, takes

    (S v)_i^2 / (1 / I_i + S_ii)

from the variance of v'z. The arm that takes most, summed over the questions, is observed: for two arms that share
nothing, the one of the two that is known less; in linear models and function spaces also one that is itself out of the
race. Heteroscedastic families are served by I_i.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from likeset._typing import Array
from likeset.predictors import Belief


def most_telling(belief: Belief, rows: Array, questions: Array, n: int, among: Any = None) -> list[int]:
    """``n`` different rows, each the best given those before; ``questions`` has one combination of rows per row.

    ``among``: flags of the rows that may be chosen, if not all.
    """
    shares, covariance, precision = belief.shares, belief.covariance(rows), belief.noise_precision(rows)
    chosen: list[int] = []
    for _ in range(min(n, len(rows))):
        noise = 1.0 / np.maximum(precision, 1e-12)
        spread = np.diagonal(covariance, axis1=1, axis2=2)
        taken = (covariance @ questions.T) ** 2 / (noise + spread)[:, :, None]
        worth = shares @ taken.sum(axis=2)
        worth[chosen] = -np.inf
        if among is not None:
            worth[~among] = -np.inf
        best = int(np.argmax(worth >= worth.max() * (1.0 - 1e-9)))
        chosen.append(best)
        column = covariance[:, :, best]
        covariance = covariance - column[:, :, None] * column[:, None, :] / (noise + spread)[:, best, None, None]
    return chosen
