"""Intervals as they shrink: over time, with the moment at which they became certain; and side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from likeset._typing import Array
from likeset.arguments import flag, real_array, real_number
from likeset.errors import InvalidArgumentError, ShapeError
from likeset.extras import optional_packages
from likeset.plots.theme import DASHES, MARKERS, Theme, checked_axes, dressed, legend_below, theme_of

with optional_packages():
    from matplotlib.axes import Axes
    from matplotlib.ticker import LogLocator, NullFormatter


_LEGEND = 84  # characters in a line of the legend
_MOST_FILLED = 2  # of more bands over each other nothing is to be seen but grey


def plot_over_time(
    n: Any,
    lower: Any,
    upper: Any,
    *,
    estimate: Any = None,
    labels: Sequence[str] | None = None,
    reference: float | None = None,
    log: bool = False,
    axes: Axes | None = None,
) -> Axes:
    """Intervals of one or several quantities against the number of observations.

    n           observations at each look, rising; shape (looks,)
    lower       ends of the intervals, shape (looks,) or (looks, quantities); ``upper`` alike. NaN: not known then
    estimate    drawn inside, if given
    labels      one for each quantity
    reference   a value to compare with, e.g. 0 for a difference; the first look from which an interval excludes it is
                marked and named: that is the moment at which the verdict became certain
    log         a logarithmic axis of n

    >>> import matplotlib.pyplot as plt
    >>> axes = plot_over_time([10, 20, 40], [-0.3, -0.1, 0.05], [0.6, 0.5, 0.4], labels=["B - A"], reference=0.0)
    >>> [text.get_text() for text in axes.texts]
    ['certain at 40']
    >>> plt.close(axes.figure)
    """
    looks = real_array("n", n).reshape(-1)
    low, high = _columns("lower", lower, looks), _columns("upper", upper, looks)
    if low.shape != high.shape:
        raise ShapeError("upper", upper, f"has shape {high.shape}, lower {low.shape}", "pass as many of each")
    middle = None if estimate is None else _columns("estimate", estimate, looks)
    if middle is not None and middle.shape != low.shape:
        raise ShapeError("estimate", estimate, f"has shape {middle.shape}", f"pass one of shape {low.shape}")
    names = _names(labels, low.shape[1])
    compared = None if reference is None else real_number("reference", reference)
    if flag("log", log) and (len(looks) == 0 or looks.min() <= 0):
        raise InvalidArgumentError("n", n, "is not positive", "pass log=False")
    axes = checked_axes(axes)
    theme = theme_of(axes)
    dressed(axes, theme)
    for i in range(low.shape[1]):
        style = {"color": theme.colour(i), "linestyle": DASHES[i % len(DASHES)]}
        filled = {"color": theme.fill(i)} if low.shape[1] == 1 else {"color": theme.colour(i), "alpha": 0.14}
        if low.shape[1] <= _MOST_FILLED:
            axes.fill_between(looks, low[:, i], high[:, i], linewidth=0, **filled)
        axes.plot(looks, low[:, i], linewidth=1.4, label=names[i] if middle is None else None, **style)
        axes.plot(looks, high[:, i], linewidth=1.4, **style)
        if middle is not None:
            axes.plot(looks, middle[:, i], linewidth=2.4, label=names[i], **style)
        if compared is not None:
            _mark_certain(axes, theme, i, looks, low[:, i], high[:, i], compared, bool(log))
    if compared is not None:
        axes.axhline(compared, color=theme.ink, linewidth=1.2)
    if log:
        axes.set_xscale("log")
        ticks_of_numbers(axes, float(looks.min()), float(looks.max()))
    axes.set_xlabel("observations")
    if labels:
        longest = max(len(line) for name in names for line in name.split("\n"))
        legend_below(axes, columns=max(1, min(4, len(names), _LEGEND // (longest + 6))))
    return axes


def plot_intervals(
    lower: Any,
    upper: Any,
    *,
    labels: Sequence[str] | None = None,
    estimate: Any = None,
    reference: float | None = None,
    axes: Axes | None = None,
) -> Axes:
    """Intervals side by side, one row each, the first on top; those that exclude the reference are drawn solid.

    >>> import matplotlib.pyplot as plt
    >>> axes = plot_intervals([-0.1, 0.2], [0.3, 0.5], labels=["B - A", "C - A"], reference=0.0)
    >>> [text.get_text() for text in axes.get_yticklabels()]
    ['B - A', 'C - A']
    >>> plt.close(axes.figure)
    """
    low, high = real_array("lower", lower).reshape(-1), real_array("upper", upper).reshape(-1)
    if len(low) != len(high):
        raise ShapeError("upper", upper, f"has {len(high)} ends, lower {len(low)}", "pass as many of each")
    middle = None if estimate is None else real_array("estimate", estimate).reshape(-1)
    if middle is not None and len(middle) != len(low):
        raise ShapeError("estimate", estimate, f"has {len(middle)} values", f"pass {len(low)}")
    names = _names(labels, len(low))
    compared = None if reference is None else real_number("reference", reference)
    axes = checked_axes(axes)
    theme = theme_of(axes)
    dressed(axes, theme)
    places = np.arange(len(low))
    for i in places:
        decided = compared is None or low[i] > compared or high[i] < compared
        axes.plot([low[i], high[i]], [i, i], color=theme.colour(0), linewidth=7.0 if decided else 1.6,
                  linestyle="-" if decided else DASHES[1], solid_capstyle="butt")  # fmt: skip
    if middle is not None:
        axes.plot(middle, places, "o", color=theme.paper, markeredgecolor=theme.ink, markersize=6)
    if compared is not None:
        axes.axvline(compared, color=theme.ink, linewidth=1.2)
    axes.set_yticks(places, names)
    axes.set_ylim(len(low) - 0.4, -0.6)
    axes.grid(False, axis="y")
    return axes


def _columns(name: str, value: Any, looks: Array) -> Array:
    array = np.asarray(value, dtype=float) if _is_numeric(value) else real_array(name, value)
    array = array[:, None] if array.ndim == 1 else array
    if array.ndim != 2 or len(array) != len(looks):
        raise ShapeError(name, value, f"has shape {array.shape}", f"pass one row for each of {len(looks)} looks")
    return array


def _is_numeric(value: Any) -> bool:
    """Arrays of floats may hold NaN, where an end is not known; everything else is checked number by number."""
    return isinstance(value, np.ndarray) and value.dtype.kind == "f" and value.ndim in (1, 2)


def _names(labels: Any, count: int) -> list[str]:
    if labels is None:
        return [""] * count
    if not isinstance(labels, (list, tuple)) or len(labels) != count:
        raise InvalidArgumentError("labels", labels, "does not fit", f"pass a list of {count} labels")
    return [str(label) for label in labels]


def _mark_certain(
    axes: Axes, theme: Theme, i: int, looks: Array, low: Array, high: Array, reference: float, log: bool
) -> None:
    decided = np.flatnonzero((low > reference) | (high < reference))
    if len(decided) == 0:
        return
    first = decided[0]
    height = low[first] if low[first] > reference else high[first]
    axes.plot(looks[first], height, MARKERS[i % len(MARKERS)], color=theme.colour(i), markersize=8, clip_on=False)
    places = np.log(looks) if log else looks
    late = places[first] > places[0] + 0.6 * (places[-1] - places[0])  # then the words go to the left, into the axes
    others = 13 * len(axes.texts)  # words that are there already
    away = (-6 if late else 6, 8 + others if low[first] > reference else -14 - others)
    axes.annotate(
        f"certain at {looks[first]:,.10g}", (looks[first], height), xytext=away, ha="right" if late else "left",
        textcoords="offset points", fontsize=9, color=theme.ink,
        bbox={"boxstyle": "round,pad=0.15", "facecolor": theme.paper, "edgecolor": "none"},
    )  # fmt: skip


def ticks_of_numbers(axes: Axes, low: float, high: float) -> None:
    """Ticks of a logarithmic axis from low to high: 1, 2, 5, 10, ..., or powers of ten alone where these are many."""
    few = high < 2e3 * low
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if few else (1.0,), numticks=12))
    axes.xaxis.set_major_formatter(_number)
    axes.xaxis.set_minor_formatter(NullFormatter())


def _number(value: float, position: float) -> str:
    """Numbers of rows as they are written, and not as powers of ten."""
    return f"{value:,.0f}" if value >= 1.0 else f"{value:g}"
