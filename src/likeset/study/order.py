r"""A trap: rows sorted by their outcome. Forecasts then know what comes next, intervals shrink, and coverage is lost.

Rows of each covariate that are monotone in y are suspicious where chance would hardly have them so: among n outcomes
with counts n_1, ..., n_k of equal ones, prod n_i! / n! of all orders are ascending.
"""

from __future__ import annotations

import warnings
from math import exp, lgamma, log  # noqa: F401 (exp: the example)

import numpy as np

from likeset._typing import Array
from likeset.errors import OrderWarning

CHANCE = 1e-6
FEWEST = 12


def log_chance_of_order(groups: Array, y: Array) -> float:
    """Log probability that chance would sort the outcomes of every group as they are; 0 if they are not sorted.

    >>> round(24 * exp(log_chance_of_order(np.zeros(4), np.array([0.0, 1.0, 1.0, 2.0]))), 9)    # 2!, both ways
    4.0
    """
    total = 0.0
    for sign in (1.0, -1.0):
        chance = _log_chance(groups, sign * y)
        total = min(total, chance)
    return min(0.0, total + log(2.0)) if total < 0 else 0.0


def _log_chance(groups: Array, y: Array) -> float:
    order = np.argsort(groups, kind="stable")
    sorted_groups, sorted_y = groups[order], y[order]
    same = sorted_groups[1:] == sorted_groups[:-1]
    if (same & (sorted_y[1:] < sorted_y[:-1])).any():
        return 0.0
    pairs = np.column_stack([sorted_groups, sorted_y])
    counts = np.unique(pairs, axis=0, return_counts=True)[1]
    sizes = np.unique(sorted_groups, return_counts=True)[1]
    return sum(lgamma(n + 1) for n in counts) - sum(lgamma(n + 1) for n in sizes)


def warn_if_sorted(column: str, x: Array, y: Array) -> None:
    """Warn where rows seem to be sorted by their outcome, over all or within every covariate."""
    if len(y) < FEWEST:
        return
    outcome = y if y.ndim == 1 else y[:, 0]
    overall = log_chance_of_order(np.zeros(len(y)), outcome)
    within = 0.0
    if overall > log(CHANCE) and x.shape[1] and len(y) <= 10**6:
        labels = np.unique(x, axis=0, return_inverse=True)[1].reshape(-1).astype(np.float64)
        within = log_chance_of_order(labels, outcome) if len(np.unique(labels)) <= len(y) // 4 else 0.0
    if min(overall, within) < log(CHANCE):
        warnings.warn(
            f"the rows seem to be sorted by {column!r}: intervals of rows in an order that depends on their outcomes "
            f"are too "
            "narrow and not valid; tell rows in the order in which they were observed.",
            OrderWarning,
            stacklevel=4,
        )
