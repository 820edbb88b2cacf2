"""Width against the number of observations, one line per set, labelled at its end; legible in grey."""

from __future__ import annotations

from typing import Any

import numpy as np

from likeset.comparison.compare import OURS, Comparisons
from likeset.extras import optional_packages

with optional_packages():
    import matplotlib.pyplot as plt
    from matplotlib.axes import Axes
    from matplotlib.ticker import LogLocator, NullFormatter

_GAP = 0.034  # between labels, in heights of the axes


def plot_widths(result: Comparisons, axes: Axes | None = None, title: str | None = None) -> Axes:
    """Mean width over runs and queries. Solid: provable; dashed: not; thick: this library's default."""
    axes = axes or plt.gca()
    n, widths = result.checkpoints, result.mean_widths()
    shown = [i for i in range(len(result.names)) if np.isfinite(widths[i, -1])]
    for i in shown:
        style: dict[str, Any] = {"color": "0.25", "linestyle": "-", "linewidth": 1.1}
        if not result.provable[i]:
            style = {"color": "0.55", "linestyle": (0, (4, 2)), "linewidth": 1.1}
        if result.names[i] == OURS:
            style = {"color": "black", "linestyle": "-", "linewidth": 2.4}
        axes.plot(n, np.where(np.isfinite(widths[i]), widths[i], np.nan), **style)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(n[0], n[-1])
    for axis in (axes.xaxis, axes.yaxis):  # 1, 2, 5, 10, ... as plain numbers
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.set_major_formatter(lambda value, _: f"{value:g}")
        axis.set_minor_formatter(NullFormatter())
    axes.set_xlabel("observations")
    axes.set_ylabel("mean width of the band")
    if title:
        axes.set_title(title, fontsize=9, loc="left")
    _label_ends(axes, [result.names[i] for i in shown], [result.provable[i] for i in shown], widths[shown, -1])
    return axes


def _label_ends(axes: Axes, names: list[str], provable: list[bool], ends: Any) -> None:
    """Names to the right of the axes, pushed apart, each with a line to where its curve ends."""
    low, high = np.log(axes.get_ylim())
    heights = (np.log(ends) - low) / (high - low)
    order = np.argsort(heights)
    places = heights[order].copy()
    for _ in range(200):  # relax: neighbours closer than the gap push each other apart
        for j in range(1, len(places)):
            lack = _GAP - (places[j] - places[j - 1])
            if lack > 0:
                places[j - 1] -= lack / 2
                places[j] += lack / 2
    for j, i in enumerate(order):
        shade = "black" if provable[i] else "0.45"
        axes.plot(
            [1.0, 1.05], [heights[i], places[j]], transform=axes.transAxes, color="0.6", linewidth=0.6, clip_on=False
        )
        axes.text(
            1.06, places[j], names[i] if provable[i] else f"{names[i]} (not provable)", transform=axes.transAxes,
            fontsize=7.5, va="center", color=shade, weight="bold" if names[i] == OURS else "normal",
        )  # fmt: skip
