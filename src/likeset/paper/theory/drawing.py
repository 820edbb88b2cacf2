"""The picture of a study: realised against bound over time, three quantities by two models. Legible in grey."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from likeset.extras import optional_packages
from likeset.paper.theory.looseness import Line, Looseness
from likeset.paper.theory.trial import MODELS
from likeset.persistence.atomic_file import write_picture

with optional_packages():
    import matplotlib
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.ticker import LogLocator, NullFormatter

_RC: Any = {"font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "svg.hashsalt": "likeset"}
_PANELS = {
    "online regret": "online regret R_t (nats)",
    "set size": "largest D_Z(theta, theta*) in the set (nats)",
    "bandit regret": "cumulative bandit regret",
}
_MARKERS = {
    "FTRL": "o",
    "FTRL, weighted": "D",
    "VAW, weighted": "s",
    "Mixture": "^",
    "UCB, FTRL": "o",
    "UCB, AY 2011": "v",
    "UCB, weighted": "D",
}
_SHADES = {
    "FTRL, weighted": "0.6",
    "VAW, weighted": "0.45",
    "Mixture": "0.3",
    "UCB, AY 2011": "0.5",
    "UCB, weighted": "0.6",
}
_PAPER = ("FTRL, weighted", "UCB, weighted")  # the paper's own method
_HIDDEN = ("Theorem 5, excess realised", "Theorem 5 as printed")  # nearly on top of Theorem 5
_SHORT = {
    "Theorem 5, weights in all terms (ours)": "5, all weights (ours)",
    "curvature of the data (ours)": "by the data (ours)",
    "the same without sup 1/w (ours)": "without sup 1/w (ours)",
}
_MARKS = 7
_GAP = 0.052  # between labels, in heights of the axes


def draw(found: Looseness, path: Path) -> Path:
    """Write ``path`` with the endings .png and .svg; returns the PNG's path."""
    with matplotlib.rc_context(_RC):
        figure = Figure(figsize=(11.6, 10.4))
        axes = figure.subplots(len(_PANELS), len(MODELS), sharex=True)
        figure.subplots_adjust(left=0.06, right=0.8, top=0.93, bottom=0.05, wspace=0.86, hspace=0.12)
        for column, model in enumerate(MODELS):
            for row, (panel, label) in enumerate(_PANELS.items()):
                lines = [x for x in found.lines if x.row.model == model.name and x.row.panel == panel]
                ends = _curves(axes[row, column], [x for x in lines if x.row.result not in _HIDDEN])
                if panel == "bandit regret":
                    span = float(np.ptp(model.family.mean(np.array([-model.bound, model.bound]))))
                    axes[row, column].plot(lines[0].t, span * lines[0].t, color="0.75", linewidth=3, zorder=0)
                    ends.append(("largest possible regret", span * lines[0].t[-1], "0.55"))
                _scales(axes[row, column])
                _label_ends(axes[row, column], ends)
                if column == 0:  # beside the other column stand the names of curves
                    axes[row, column].set_ylabel(label)
            axes[0, column].set_title(f"{model.name}: {model.family!r}, B = {model.bound:g}", fontsize=10, loc="left")
            axes[-1, column].set_xlabel("round t")
        figure.suptitle(
            f"Solid, bold: realised, median and quartiles (runs: {found.repeats}).   Dashed: bound with a proof.   "
            "Dotted: bound as printed, or under an assumption not proved here.",
            fontsize=9,
        )
        png = path.with_suffix(".png")
        write_picture(png, figure, dpi=140, metadata={"Software": None})
        write_picture(path.with_suffix(".svg"), figure, metadata={"Date": None})
    return png


def _curves(axes: Axes, lines: list[Line]) -> list[tuple[str, float, str]]:
    """Draw the lines; returns (label, last value, colour) of each curve."""
    ends: list[tuple[str, float, str]] = []
    drawn: list[str] = []
    for line in lines:
        name, shade = line.row.name, _SHADES.get(line.row.name, "black")
        if name not in drawn:
            drawn.append(name)
            marks: Any = {"marker": _MARKERS[name], "markersize": 4, "markevery": _marks(line.t, len(drawn))}
            axes.plot(line.t, _positive(line.realised), color=shade, linewidth=2, **marks)
            low, high = _positive(line.realised_low), _positive(line.realised_high)
            axes.fill_between(line.t, low, high, color=shade, alpha=0.15, linewidth=0)
            whose = " (paper)" if name in _PAPER else ""
            ends.append((f"{name}{whose}, realised", float(line.realised[-1]), shade))
        marks = {"marker": _MARKERS[name], "markersize": 4, "markevery": _marks(line.t, len(drawn))}
        style = "--" if line.row.status == "proved" else ":"
        axes.plot(
            line.t, _positive(line.bound), color=shade, linestyle=style, linewidth=1.1, markerfacecolor="white",
            markeredgewidth=0.8, **marks,
        )  # fmt: skip
        who = f"{name}: " if line.row.panel == "online regret" else ""
        ends.append((who + _SHORT.get(line.row.result, line.row.result), float(line.bound[-1]), shade))
    return ends


def _scales(axes: Axes) -> None:
    axes.set_xscale("log")
    axes.set_yscale("log")
    low, high = axes.get_ylim()
    axes.set_ylim(max(low, 0.05), high)
    axes.margins(x=0)
    decades = np.log10(high / max(low, 0.05))
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if decades < 2.5 else (1.0,)))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(lambda value, _: f"{value:g}")
        axis.set_minor_formatter(NullFormatter())


def _label_ends(axes: Axes, ends: list[tuple[str, float, str]]) -> None:
    """Labels to the right of the axes, pushed apart, each with a thin line to where its curve ends."""
    shown = sorted((end for end in ends if end[1] > 0), key=lambda end: end[1])
    low, high = np.log(axes.get_ylim())
    heights = [(np.log(value) - low) / (high - low) for _, value, _ in shown]
    places = list(heights)
    for _ in range(300):  # neighbours closer than the gap push each other apart
        for j in range(1, len(places)):
            lack = _GAP - (places[j] - places[j - 1])
            if lack > 0:
                places[j - 1] -= lack / 2
                places[j] += lack / 2
    for (label, _, shade), height, place in zip(shown, heights, places, strict=True):
        axes.plot([1.0, 1.04], [height, place], transform=axes.transAxes, color="0.6", linewidth=0.6, clip_on=False)
        weight = "bold" if label.endswith(", realised") else "normal"
        axes.text(
            1.05, place, label, transform=axes.transAxes, fontsize=8, va="center", weight=weight,
            color="black" if shade == "black" else "0.35",
        )  # fmt: skip


def _marks(t: Any, offset: int) -> list[int]:
    """A few marks, evenly spaced on the logarithmic axis, shifted so that curves on top of each other stay apart."""
    wanted = np.geomspace(t[0], t[-1], _MARKS) * (t[-1] / t[0]) ** (0.03 * offset)
    chosen: list[int] = np.unique(np.searchsorted(t, np.minimum(wanted, t[-1]))).tolist()
    return chosen


def _positive(values: Any) -> Any:
    """NaN where a logarithmic axis has no place."""
    return np.where(np.asarray(values) > 0, values, np.nan)
