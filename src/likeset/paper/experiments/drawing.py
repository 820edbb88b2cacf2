"""What all drawings share: files in two formats, lines that say who is provable, quantile bands, panels of regret."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from likeset.paper.experiments.methods import Method, newer, of_the_paper, sorted_methods
from likeset.paper.experiments.store import write_atomically
from likeset.paper.experiments.tables import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

Shape = tuple[int, int, float, float]
"""Rows, columns, width and height in inches."""

_STYLE: Any = {
    "font.size": 9.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "svg.hashsalt": "likeset",  # the same picture is the same file
}
_FORMATS: dict[str, Any] = {"png": {"dpi": 160, "metadata": {"Software": None}}, "svg": {"metadata": {"Date": None}}}


def canvas(rows: int, columns: int, width: float, height: float) -> tuple[Canvas, Any]:
    """A figure without a window, and its axes as an array of shape (rows, columns)."""
    import matplotlib  # slow to load: only when something is drawn
    from matplotlib.figure import Figure as Canvas

    with matplotlib.rc_context(_STYLE):
        figure = Canvas(figsize=(width, height), layout="constrained")
        return figure, figure.subplots(rows, columns, squeeze=False)


def save(figure: Canvas, stem: Path) -> Path:
    """Write stem.png and stem.svg; returns the stem."""
    import matplotlib

    for ending, options in _FORMATS.items():
        picture = io.BytesIO()
        with matplotlib.rc_context(_STYLE):
            figure.savefig(picture, format=ending, **options)
        write_atomically(stem.with_name(f"{stem.name}.{ending}"), picture.getvalue())
    return stem


def line_style(method: Method) -> dict[str, Any]:
    """Solid for provable, dashed for heuristic; ours and the paper's heavier."""
    return {
        "color": method.colour,
        "linestyle": "-" if method.provable else (0, (4, 2)),
        "linewidth": 2.0 if method.heavy else 1.2,
        "marker": method.marker,
        "markersize": 3.5,
        "markerfacecolor": "white",
        "markeredgewidth": 0.8,
        "label": method.label,
    }


def draw_regret_figures(
    stem: Path,
    table: Table,
    titles: Mapping[str, str],
    methods_of: Callable[[str], dict[str, Method]],
    shape: Shape,
    quartiles: bool = False,
) -> list[Path]:
    """One panel per problem, medians over repeats; and the same for the sets that the paper does not compare with.

    quartiles  shade them for every method and not for the heavy ones only
    """
    stems = []
    for suffix, belongs in (("", of_the_paper), ("-newer", newer)):
        figure, axes = canvas(*shape)
        for axis, (problem, title) in zip(axes.flat, titles.items(), strict=True):
            methods = {name: method for name, method in methods_of(problem).items() if belongs(name)}
            draw_regret(axis, table.where(problem=problem), methods, title, quartiles)
        shared_legend(figure, axes, 4)
        stems.append(save(figure, stem.with_name(stem.name + suffix)))
    return stems


def draw_regret(axes: Axes, table: Table, methods: Mapping[str, Method], title: str, quartiles: bool = False) -> None:
    """Median cumulative regret against rounds, with quartiles of the heavy methods, or of all, as bands."""
    top = 0.0
    found = set(table.distinct("method")) & set(methods)
    for number, name in enumerate(sorted_methods(found)):
        method, part = methods[name], table.where(method=name)
        t, middle, low, high = quantiles(part, "regret")
        marks: Any = {"markevery": (0.02 + 0.015 * (number % 6), 0.12)}
        axes.plot(t, middle, **line_style(method), **marks, zorder=3 if method.heavy else 2)
        if method.heavy or quartiles:
            shade = 0.15 if method.heavy else 0.08
            axes.fill_between(t, low, high, color=method.colour, alpha=shade, linewidth=0)
        top = max(top, float(middle[-1]))
    axes.set_xlim(0, None)
    axes.set_ylim(0, 1.05 * top if top > 0 else 1.0)
    axes.set_xlabel("round")
    axes.set_ylabel("cumulative regret, median")
    axes.set_title(title, fontsize=10.5)


def draw_certificates(
    stem: Path, table: Table, titles: Mapping[str, str], methods_of: Callable[[str], dict[str, Method]], shape: Shape
) -> list[Path]:
    """Arms that may still be best against rounds: medians and, as bands, quartiles. One is a certificate."""
    if "left" not in table.columns:
        return []
    figure, axes = canvas(*shape)
    for axis, (problem, title) in zip(axes.flat, titles.items(), strict=True):
        methods, part = methods_of(problem), table.where(problem=problem)
        for number, name in enumerate(sorted_methods(set(part.distinct("method")) & set(methods))):
            t, middle, low, high = quantiles(part.where(method=name), "left")
            method = methods[name]
            axis.plot(t, middle, **line_style(method), markevery=(0.02 + 0.015 * number, 0.12))
            axis.fill_between(t, low, high, color=method.colour, alpha=0.12, linewidth=0)
        axis.set_xlim(0, None)
        axis.set_yscale("log", base=2)
        axis.set_ylim(0.9, 1.25 * float(np.nanmax(table["left"])))
        axis.yaxis.set_major_formatter("{x:.0f}")
        axis.set_xlabel("round")
        axis.set_ylabel("arms that may be best, median")
        axis.set_title(title, fontsize=10.5)
    shared_legend(figure, axes, 2)
    return [save(figure, stem)]


def quantiles(table: Table, column: str) -> tuple[Any, Any, Any, Any]:
    """(t, median, lower quartile, upper quartile) of a column over the repeats."""
    order = np.lexsort((table["repeat"], table["t"]))
    t, values = table["t"][order], table[column][order].astype(np.float64)
    times = np.unique(t)
    grid = values.reshape(len(times), -1)
    low, middle, high = np.quantile(grid, [0.25, 0.5, 0.75], axis=1)
    return times, middle, low, high


def shared_legend(figure: Canvas, axes: Any, columns: int) -> None:
    """One legend below for all panels, each label once."""
    found: dict[str, Any] = {}
    for axis in np.ravel(axes):
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    figure.legend(found.values(), found.keys(), loc="outside lower center", ncols=columns, fontsize=9, frameon=False)
