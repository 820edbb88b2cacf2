"""Pictures: bands over a one-dimensional domain, and sets in the plane. Drawn to be legible in grey.

Matplotlib is imported here and nowhere in the engine.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from likeset.sets import LikelihoodSet
from likeset.support.terms import Array

_FILLS = ("0.88", "0.68", "0.5")
_EDGES = ("-", "--", ":")


def plot_band(
    s: LikelihoodSet,
    x: Any,
    *,
    data: tuple[Any, Any] | None = None,
    truth: Any = None,
    next_query: float | None = None,
    label: str | None = None,
    axes: Axes | None = None,
) -> Axes:
    """The band [lower, upper] over points x on a line, with observations, truth and the next query if given."""
    axes = axes or plt.gca()
    points = np.asarray(x, dtype=np.float64).reshape(-1)
    low, high = s.interval(points)
    axes.fill_between(points, low, high, color=_FILLS[0], label=label or f"plausible at {1 - s.alpha:.0%}")
    axes.plot(points, high, color="0.35", linewidth=0.9)
    axes.plot(points, low, color="0.35", linewidth=0.9)
    if truth is not None:
        axes.plot(points, np.asarray(truth), color="black", linestyle="--", linewidth=1.3, label="truth")
    if data is not None:
        axes.plot(*map(np.ravel, data), "o", color="black", markersize=3, label="observations")
    if next_query is not None:
        axes.axvline(next_query, color="black", linestyle=":", linewidth=1.2, label="next query")
    axes.set_xlabel("x")
    axes.set_ylabel("f(x)")
    _legend_below(axes, columns=4)
    return axes


def plot_sets(
    sets: Sequence[LikelihoodSet], *, labels: Sequence[str] | None = None, truth: Any = None, axes: Axes | None = None
) -> Axes:
    """Two-dimensional sets over each other, largest first, with the outline of Theta."""
    axes = axes or plt.gca()
    bound = sets[0].space.bound
    angles = np.linspace(0, 2 * np.pi, 400)
    if np.isfinite(bound):
        axes.plot(bound * np.cos(angles), bound * np.sin(angles), color="0.55", linewidth=1.0, label="Theta")
    for i, s in enumerate(sets):
        curve = _closed(s.boundary(400))
        name = labels[i] if labels else f"{s.n_observations} observations"
        axes.fill(*curve.T, facecolor=_FILLS[i % 3], edgecolor="none")
        axes.plot(*curve.T, color="black", linestyle=_EDGES[i % 3], linewidth=1.2, label=name)
    if truth is not None:
        axes.plot(*np.asarray(truth, dtype=np.float64), "x", color="black", markersize=7, label="truth")
    axes.set_aspect("equal")
    axes.set_xlabel("theta[0]")
    axes.set_ylabel("theta[1]")
    _legend_below(axes, columns=2)
    return axes


def _closed(curve: Array) -> Array:
    return np.concatenate([curve, curve[:1]])


def _legend_below(axes: Axes, columns: int) -> None:
    axes.legend(frameon=False, fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.14), ncol=columns)
