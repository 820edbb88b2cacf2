"""Sets in the plane."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from likeset._typing import Array
from likeset.arguments import one_row
from likeset.errors import InvalidArgumentError
from likeset.extras import optional_packages
from likeset.plots.bands import check_set
from likeset.plots.theme import DASHES, checked_axes, dressed, legend_below, theme_of
from likeset.sets import LikelihoodSet

with optional_packages():
    from matplotlib.axes import Axes


def plot_sets(
    sets: Sequence[LikelihoodSet], *, labels: Sequence[str] | None = None, truth: Any = None, axes: Axes | None = None
) -> Axes:
    """Two-dimensional sets over each other, largest first, with the outline of Theta."""
    if not isinstance(sets, (list, tuple)) or not sets:
        raise InvalidArgumentError("sets", sets, "is not a list of sets", "pass at least one set, e.g. [seq.set]")
    for i, s in enumerate(sets):
        check_set(f"sets[{i}]", s)
    if labels is not None and (not isinstance(labels, (list, tuple)) or len(labels) != len(sets)):
        raise InvalidArgumentError("labels", labels, "does not fit the sets", f"pass {len(sets)} labels")
    axes = checked_axes(axes)
    theme = theme_of(axes)
    dressed(axes, theme)
    bound = sets[0].space.bound
    angles = np.linspace(0, 2 * np.pi, 400)
    if np.isfinite(bound):
        axes.plot(bound * np.cos(angles), bound * np.sin(angles), color=theme.muted, linewidth=1.0, label="Theta")
    for i, s in enumerate(sets):
        curve = _closed(s.boundary(400))
        name = labels[i] if labels else f"{s.n_observations} observations"
        axes.fill(*curve.T, facecolor=theme.fill(i), edgecolor="none")
        axes.plot(*curve.T, color=theme.colour(i), linestyle=DASHES[i % len(DASHES)], linewidth=1.6, label=name)
    if truth is not None:
        axes.plot(*one_row("truth", truth, 2), "x", color=theme.ink, markersize=8, markeredgewidth=2, label="truth")
    axes.set_aspect("equal")
    axes.set_xlabel("theta[0]")
    axes.set_ylabel("theta[1]")
    legend_below(axes, columns=2)
    return axes


def _closed(curve: Array) -> Array:
    return np.concatenate([curve, curve[:1]])
