"""Pictures: bands over a one-dimensional domain, and sets in the plane. Drawn to be legible in grey.

Matplotlib is imported here and nowhere in the engine.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from likeset._typing import Array
from likeset.arguments import one_row, real_array, real_number
from likeset.errors import InvalidArgumentError, ShapeError
from likeset.extras import optional_packages
from likeset.sets import LikelihoodSet

with optional_packages():
    import matplotlib.pyplot as plt
    from matplotlib.axes import Axes

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
    _check_set("s", s)
    axes = _checked_axes(axes)
    points = real_array("x", x).reshape(-1)
    low, high = s.interval(points)
    if len(low) != len(points):
        raise ShapeError("x", x, f"is not {len(low)} points on a line", "bands are drawn over one-dimensional domains")
    axes.fill_between(points, low, high, color=_FILLS[0], label=label or f"plausible at {1 - s.alpha:.0%}")
    axes.plot(points, high, color="0.35", linewidth=0.9)
    axes.plot(points, low, color="0.35", linewidth=0.9)
    if truth is not None:
        heights = real_array("truth", truth).reshape(-1)
        if len(heights) != len(points):
            raise ShapeError("truth", truth, f"has {len(heights)} values", f"pass one for each of {len(points)} points")
        axes.plot(points, heights, color="black", linestyle="--", linewidth=1.3, label="truth")
    if data is not None:
        axes.plot(*_observations(data), "o", color="black", markersize=3, label="observations")
    if next_query is not None:
        axes.axvline(
            real_number("next_query", next_query), color="black", linestyle=":", linewidth=1.2, label="next query"
        )
    axes.set_xlabel("x")
    axes.set_ylabel("f(x)")
    _legend_below(axes, columns=4)
    return axes


def plot_sets(
    sets: Sequence[LikelihoodSet], *, labels: Sequence[str] | None = None, truth: Any = None, axes: Axes | None = None
) -> Axes:
    """Two-dimensional sets over each other, largest first, with the outline of Theta."""
    if not isinstance(sets, (list, tuple)) or not sets:
        raise InvalidArgumentError("sets", sets, "is not a list of sets", "pass at least one set, e.g. [seq.set]")
    for i, s in enumerate(sets):
        _check_set(f"sets[{i}]", s)
    if labels is not None and (not isinstance(labels, (list, tuple)) or len(labels) != len(sets)):
        raise InvalidArgumentError("labels", labels, "does not fit the sets", f"pass {len(sets)} labels")
    axes = _checked_axes(axes)
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
        axes.plot(*one_row("truth", truth, 2), "x", color="black", markersize=7, label="truth")
    axes.set_aspect("equal")
    axes.set_xlabel("theta[0]")
    axes.set_ylabel("theta[1]")
    _legend_below(axes, columns=2)
    return axes


def _check_set(name: str, s: Any) -> None:
    if not all(hasattr(s, needed) for needed in ("interval", "alpha", "space")) or isinstance(s, type):
        raise InvalidArgumentError(name, s, "is not a confidence set", "pass e.g. ConfidenceSequence(...).set")


def _checked_axes(axes: Any) -> Axes:
    if axes is None:
        return plt.gca()
    if not isinstance(axes, Axes):
        raise InvalidArgumentError("axes", axes, "are not axes of Matplotlib", "pass plt.gca(), or leave it out")
    return axes


def _observations(data: Any) -> tuple[Array, Array]:
    if not isinstance(data, (list, tuple)) or len(data) != 2:
        raise InvalidArgumentError("data", data, "is not a pair", "pass (x, y), the observations")
    x, y = (real_array("data", part).reshape(-1) for part in data)
    if len(x) != len(y):
        raise ShapeError("data", data, f"has {len(x)} covariates and {len(y)} outcomes", "pass as many of each")
    return x, y


def _closed(curve: Array) -> Array:
    return np.concatenate([curve, curve[:1]])


def _legend_below(axes: Axes, columns: int) -> None:
    axes.legend(frameon=False, fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.14), ncol=columns)
