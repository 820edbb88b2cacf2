"""Pictures of a study: intervals over time, intervals now, survival curves with bands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from likeset._typing import Array
from likeset.errors import InvalidArgumentError
from likeset.extras import optional_packages
from likeset.study.looks import columns_over_time

if TYPE_CHECKING:
    from likeset.study.study import Study

with optional_packages():
    from matplotlib.axes import Axes

    from likeset.plots import plot_intervals, plot_over_time
    from likeset.plots.theme import checked_axes, dressed, legend_below, theme_of

MOST_LINES = 8


def draw(study: Study, over_time: bool, axes: Any) -> Axes:
    """Differences from the control, or means of levels, or coefficients; over time or as they are now."""
    found = study._looks() if over_time else [(study.n, study.rows())]
    table = next((t for _, t in reversed(found) if t is not None), None)
    if not found or table is None:
        raise InvalidArgumentError("study", study.name, "has nothing to draw", "tell it rows; see alarm()")
    prefix, lines, reference = _shown(table)
    names = (f"{prefix}lower", f"{prefix}upper", "difference" if prefix else "estimate")
    lower, upper, estimate = columns_over_time(found, names, lines)
    labels = [_label(table, i, prefix, study.definition.control) for i in lines]
    if over_time:
        n = np.array([rows for rows, _ in found], dtype=np.float64)
        lower, upper = _within_sight(lower, upper, estimate)
        drawn = plot_over_time(
            n, lower, upper, estimate=estimate, labels=labels, reference=reference, log=n[-1] > 50, axes=axes
        )
        drawn.set_xlabel("rows")
    else:
        drawn = plot_intervals(lower[0], upper[0], labels=labels, estimate=estimate[0], reference=reference, axes=axes)
    named = f"{study.definition.outcome}{f' ({study.definition.units})' if study.definition.units else ''}"
    what = (
        f"difference in {named}" if prefix else ("coefficient" if table[lines[0]]["kind"] == "coefficient" else named)
    )
    (drawn.set_ylabel if over_time else drawn.set_xlabel)(what)
    drawn.set_title(study.name, loc="left")
    return drawn


def draw_survival(study: Study, curves: Any, axes: Any) -> Axes:
    """Curves with bands, one for each row asked about."""
    axes = checked_axes(axes)
    dressed(axes, theme_of(axes))
    for i, (label, curve) in enumerate(curves.groupby("row", sort=False)):
        (line,) = axes.plot(curve["time"], curve["estimate"], label=str(label), linestyle=("-", "--", ":")[i % 3])
        axes.fill_between(curve["time"], curve["lower"], curve["upper"], color=line.get_color(), alpha=0.2, linewidth=0)
    axes.set_ylim(0.0, 1.0)
    axes.set_xlabel(f"{study.definition.outcome}{f' ({study.definition.units})' if study.definition.units else ''}")
    axes.set_ylabel("probability to be event-free")
    legend_below(axes, 3)
    return axes


def _shown(table: list[dict[str, Any]]) -> tuple[str, list[int], float | None]:
    """Which entries are drawn, of which lines, and what they are compared with."""
    compared = [i for i, row in enumerate(table) if row["difference_lower"] is not None]
    if compared:
        return "difference_", compared[:MOST_LINES], 0.0
    levels = [i for i, row in enumerate(table) if row["kind"] != "coefficient"]
    return "", (levels or list(range(len(table))))[:MOST_LINES], None if levels else 0.0


def _label(table: list[dict[str, Any]], i: int, prefix: str, control: dict[str, Any]) -> str:
    row = table[i]
    return f"{row['level']} - {control[row['factor']]}" if prefix else str(row["level"])


def _within_sight(lower: Array, upper: Array, estimate: Array) -> tuple[Array, Array]:
    """Ends far beyond the last intervals would leave nothing to see: they are cut at the margin."""
    widths = upper[-1] - lower[-1]
    known = np.isfinite(widths) & (widths > 0)
    if not known.any():
        return lower, upper
    width = widths[known].max()
    bottom, top = lower[-1][known].min() - 6 * width, upper[-1][known].max() + 6 * width
    return np.clip(lower, bottom, None), np.clip(upper, None, top)
