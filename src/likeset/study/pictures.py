"""Pictures of a study: intervals over time, intervals now, survival curves with bands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from likeset._typing import Array
from likeset.errors import InvalidArgumentError
from likeset.extras import optional_packages
from likeset.study.advice import setting_text
from likeset.study.looks import columns_over_time
from likeset.study.wording import has_no_mean, with_units

if TYPE_CHECKING:
    from likeset.study.study import Study

with optional_packages():
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from likeset.plots.over_time import plot_intervals, plot_over_time, ticks_of_numbers
    from likeset.plots.theme import DASHES, checked_axes, dressed, legend_below, theme_of

MOST_LINES, MOST_BARS = 5, 40  # over time, where lines lie over each other, and side by side
_LONGEST_LINE = 26  # characters of a label
_WIDTHS_SHOWN = 2.5  # beyond the last intervals, in units of the widest: what was wide at first is cut


def draw(study: Study, over_time: bool, axes: Any) -> Axes:
    """Differences from the control, or means of levels, or coefficients; over time or as they are now."""
    found = study._looks() if over_time else [(study.n, study.rows())]
    table = next((t for _, t in reversed(found) if t is not None), None)
    if not found or not table:
        raise InvalidArgumentError("study", study.name, "has nothing to draw", "tell it rows; see alarm()")
    definition = study.definition.to_json()
    prefix, lines, reference = comparable(table)
    entries = len(lines)
    shown = chosen([table[i] for i in lines], MOST_LINES if over_time else MOST_BARS)
    lines = [lines[k] for k in shown]
    names = (f"{prefix}lower", f"{prefix}upper", prefix.rstrip("_") or "estimate")
    lower, upper, estimate = columns_over_time(found, names, lines)
    labels = [wrapped(str(table[i]["level"])) for i in lines]
    alone = labels[0] if over_time and len(lines) == 1 else None
    if over_time:
        n = np.array([rows for rows, _ in found], dtype=np.float64)
        seen = sight(n, lower, upper, reference)
        if seen is not None:
            lower, upper = seen.cut(lower), seen.cut(upper)
        drawn = plot_over_time(
            n,
            lower,
            upper,
            estimate=estimate,
            labels=None if alone else labels,
            reference=reference,
            log=n[-1] > 200,
            axes=axes,
        )
        if seen is not None:
            seen.show(drawn)
        drawn.set_xlabel("rows")
    else:
        drawn = plot_intervals(lower[0], upper[0], labels=labels, estimate=estimate[0], reference=reference, axes=axes)
    if axes is None:
        _make_room(drawn, None if over_time else height_of_bars(len(lines)))
    scale = scale_text(definition, table[lines[0]]["kind"], bool(prefix), alone, hazard=prefix == "hazard_")
    (drawn.set_ylabel if over_time else drawn.set_xlabel)(fill(scale, 44 if over_time else 56))
    more = f" ({len(lines)} of {entries})" if entries > len(lines) else ""
    drawn.set_title(f"{study.name}{more}", loc="left")
    return drawn


def _make_room(axes: Axes, height: float | None = None) -> None:
    """For long names, in a figure that holds nothing else."""
    figure = axes.figure
    if isinstance(figure, Figure) and figure.axes == [axes]:
        figure.set_layout_engine("constrained")
        if height is not None:
            figure.set_figheight(height)


def draw_survival(study: Study, curves: Any, rows: Sequence[dict[str, Any]], axes: Any) -> Axes:
    """Curves with bands, one for each row asked about; ``rows``: their settings."""
    alone, axes = axes is None, checked_axes(axes)
    theme = theme_of(axes)
    dressed(axes, theme)
    for i, (setting, (_, curve)) in enumerate(zip(rows, curves.groupby("row", sort=False), strict=True)):
        label, colour = wrapped(setting_text(setting)), theme.colour(i)
        axes.fill_between(curve["time"], curve["lower"], curve["upper"], color=colour, alpha=0.2, linewidth=0)
        axes.plot(curve["time"], curve["estimate"], label=label, color=colour, linestyle=DASHES[i % len(DASHES)])
    axes.set_ylim(0.0, 1.0)
    axes.set_xlabel(with_units(study.definition.to_json()))
    axes.set_ylabel("probability to be event-free")
    legend_below(axes, 3)
    if alone:
        _make_room(axes)
    return axes


def scale_text(
    definition: dict[str, Any], kind: str, compared: bool, alone: str | None = None, hazard: bool = False
) -> str:
    """What an axis shows, in the user's words; ``alone``: the only level or coefficient that is drawn.

    >>> made = {"outcome": "yield", "units": "%", "control": {"catalyst": "X"}, "family": {"type": "Gaussian"}}
    >>> scale_text(made, "level", True), scale_text(made, "level", True, "Y")
    ('difference from X in yield (%)', 'Y minus X: mean of yield (%)')
    """
    if compared:
        control = " or ".join(map(str, definition["control"].values()))
        if hazard:
            return f"{'' if alone is None else f'{alone}: '}hazard ratio, against {control}"
        if alone is not None and len(definition["control"]) == 1:
            return f"{alone} minus {control}: mean of {with_units(definition)}"
        return f"difference from {control} in {with_units(definition)}"
    mean = f"z of {definition['outcome']}" if has_no_mean(definition["family"]) else f"mean of {with_units(definition)}"
    shown = "coefficient" if kind == "coefficient" else mean
    return shown if alone is None else f"{alone}: {shown}"


def chosen(rows: Sequence[dict[str, Any]], most: int) -> list[int]:
    """Which lines of a table are drawn, if there are too many: what is decided, then what differs most; in order.

    >>> lines = [{"verdict": "not yet", "difference": d} for d in (0.1, -0.5, 0.2)] + [{"verdict": "better"}]
    >>> chosen(lines, 3), chosen(lines, 9)
    ([1, 2, 3], [0, 1, 2, 3])
    """
    size = [abs(row.get("difference") or 0.0) for row in rows]
    undecided = [row["verdict"] in (None, "control", "not yet") for row in rows]
    return sorted(sorted(range(len(rows)), key=lambda i: (undecided[i], -size[i]))[:most])


def height_of_bars(count: int) -> float:
    """Inches that so many intervals side by side take."""
    return 1.2 + 0.42 * min(count, MOST_BARS)


def wrapped(label: str) -> str:
    """A long name on several lines."""
    return fill(label, _LONGEST_LINE) if len(label) > _LONGEST_LINE else label


@dataclass(frozen=True)
class Sight:
    """What part of intervals over time is worth showing: what became of them, and not how wide they were at first."""

    x: tuple[float, float]
    y: tuple[float, float]

    def cut(self, ends: Array) -> Array:
        """Ends that are far outside, cut: numbers of a hundred digits have no place on a page."""
        reach = 5.0 * (self.y[1] - self.y[0])
        return np.clip(ends, self.y[0] - reach, self.y[1] + reach)

    def show(self, axes: Axes) -> None:
        """Set the limits of axes."""
        axes.set_ylim(*self.y)
        axes.set_xlim(*self.x)
        if axes.get_xscale() == "log":
            ticks_of_numbers(axes, *self.x)


def sight(n: Array, lower: Array, upper: Array, reference: float | None) -> Sight | None:
    """From a fiftieth of the rows on, and at most a few widths beyond the present intervals; None: all of it.

    >>> looks, ends = np.array([1.0, 10.0, 100.0]), np.array([[1e9], [4.0], [1.0]])
    >>> sight(looks, -ends, ends, None)
    Sight(x=(10.0, 100.0), y=(-4.48, 4.48))
    """
    late = n >= max(n[-1] / 50, min(10.0, n[-1]))
    widths = upper[-1] - lower[-1]
    known = np.isfinite(widths) & (widths > 0)
    if not known.any() or n[-1] <= n[late][0]:
        return None
    far = _WIDTHS_SHOWN * widths[known].max()
    least, most = lower[-1][known].min() - far, upper[-1][known].max() + far
    low, high = (ends[late][np.isfinite(ends[late])] for ends in (lower, upper))
    compared = [] if reference is None else [reference]
    least, most = min([max(least, low.min()), *compared]), max([min(most, high.max()), *compared])
    margin = 0.06 * (most - least)
    return Sight((float(n[late][0]), float(n[-1])), (float(least - margin), float(most + margin)))


def comparable(table: list[dict[str, Any]]) -> tuple[str, list[int], float | None]:
    """Which entries are drawn, of which lines, and what they are compared with.

    The entries are ``{prefix}lower`` and so on, with "difference_", "hazard_" or nothing as prefix.
    """
    for of, neutral in (("difference", 0.0), ("hazard", 1.0)):
        compared = [i for i, row in enumerate(table) if row[f"{of}_lower"] is not None]
        if compared:
            return f"{of}_", compared, neutral
    levels = [i for i, row in enumerate(table) if row["kind"] != "coefficient"]
    return "", levels or list(range(len(table))), None if levels else 0.0
