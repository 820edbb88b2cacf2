"""The pictures of a study's page: intervals now, intervals over time with the moment of certainty, a band."""

from __future__ import annotations

from textwrap import fill
from typing import Any

import numpy as np

from likeset.extras import optional_packages
from likeset.plots.over_time import plot_intervals, plot_over_time
from likeset.plots.theme import DASHES, both_themes, dressed, legend_below, theme_of, themed
from likeset.study.factors import Number
from likeset.study.pictures import (
    MOST_BARS,
    MOST_LINES,
    chosen,
    comparable,
    height_of_bars,
    scale_text,
    sight,
    wrapped,
)
from likeset.study.study import Study
from likeset.study.wording import with_units

with optional_packages():
    from matplotlib.figure import Figure

_GRID = 61
_WIDE, _NARROW = 6.4, 3.8  # inches


def pictures(
    study: Study,
    answers: dict[str, Any],
    looks: list[dict[str, Any]],
    advice: dict[str, Any] | None = None,
    pending: list[dict[str, Any]] | None = None,
) -> dict[str, str]:
    """SVG texts by kind: "now", "over-time", "band"; only those that have something to show.

    Each is drawn again as "now-narrow" and so on, with letters that can be read on a phone.
    """
    band = _band(study, answers, (advice or {}).get("recommended"), pending or [])
    drawn = {"now": _now(answers), "over-time": over_time(answers, looks), "band": band}
    figures = {kind: figure for kind, figure in drawn.items() if figure is not None}
    wide = {kind: both_themes(figure) for kind, figure in figures.items()}
    for figure in figures.values():
        figure.set_figwidth(_NARROW)
    return wide | {f"{kind}-narrow": both_themes(figure) for kind, figure in figures.items()}


def _figure(height: float = 3.4) -> tuple[Figure, Any]:
    figure = Figure(figsize=(_WIDE, height), layout="constrained")
    return figure, figure.subplots()


def _now(answers: dict[str, Any]) -> Figure | None:
    """Intervals side by side: of means for levels, of coefficients otherwise."""
    lines = [line for line in answers["rows"] if line["lower"] is not None and line["upper"] is not None and line["n"]]
    if not lines or answers["alarm"]["rings"]:
        return None
    lines = [lines[i] for i in chosen(lines, MOST_BARS)]
    with themed("light"):
        figure, axes = _figure(height_of_bars(len(lines)))
        coefficients = all(line["kind"] == "coefficient" for line in lines)
        low, high, middle = ([line[of] for line in lines] for of in ("lower", "upper", "estimate"))
        names, reference = [wrapped(line["level"]) for line in lines], 0.0 if coefficients else None
        plot_intervals(low, high, labels=names, estimate=middle, reference=reference, axes=axes)
        axes.set_xlabel(scale_text(answers["definition"], lines[0]["kind"], compared=False))
    return figure


def over_time(answers: dict[str, Any], looks: list[dict[str, Any]]) -> Figure | None:
    """Against the number of rows: what the study's own picture shows (:func:`~likeset.study.pictures.comparable`)."""
    if len(looks) < 2:
        return None
    if answers["rows"][0]["kind"] == "setting":
        return _best_so_far(answers, looks)
    lines = looks[-1]["lines"]
    prefix, shown, reference = comparable(lines)
    low, high, middle = f"{prefix}lower", f"{prefix}upper", prefix.rstrip("_") or "estimate"
    among = [lines[i] for i in shown]
    names = [among[i]["level"] for i in chosen(among, MOST_LINES)]
    n = np.array([look["rows"] for look in looks])
    ends = {of: np.full((len(n), len(names)), np.nan) for of in (low, high, middle)}
    for i, look in enumerate(looks):
        for line in look["lines"]:
            if line["level"] in names:
                for of in ends:
                    ends[of][i, names.index(line["level"])] = np.nan if line[of] is None else line[of]
    if not np.isfinite(ends[low][-1]).any():
        return None
    seen = sight(n, ends[low], ends[high], reference)
    lower, upper = (ends[end] if seen is None else seen.cut(ends[end]) for end in (low, high))
    with themed("light"):
        figure, axes = _figure()
        labels, log = list(map(wrapped, names)), bool(n[-1] > 200)
        alone = labels[0] if len(labels) == 1 else None
        plot_over_time(
            n,
            lower,
            upper,
            estimate=ends[middle],
            labels=None if alone else labels,
            reference=reference,
            log=log,
            axes=axes,
        )
        if seen is not None:
            seen.show(axes)
        axes.set_xlabel("rows")
        kind, hazard = among[0]["kind"], prefix == "hazard_"
        axes.set_ylabel(fill(scale_text(answers["definition"], kind, bool(prefix), alone, hazard=hazard), 44))
        if len(among) > len(names):
            axes.set_title(f"{len(names)} of {len(among)}: what is decided, then what differs most")
    return figure


def _best_so_far(answers: dict[str, Any], looks: list[dict[str, Any]]) -> Figure | None:
    """A campaign as it went: what is certain of the best setting, and the best average that was seen."""
    more = answers["definition"]["goal"] == "maximise"
    end, best, side = ("lower", max, "at least") if more else ("upper", min, "at most")
    told = [look for look in looks if any(line[end] is not None for line in look["lines"])]
    if len(told) < 2:
        return None
    n = [look["rows"] for look in told]
    certain, seen = (
        [best(line[of] for line in look["lines"] if line[of] is not None) for look in told] for of in (end, "estimate")
    )
    with themed("light"):
        figure, axes = _figure()
        theme = theme_of(axes)
        dressed(axes, theme)
        axes.plot(n, seen, "s", color=theme.colour(1), linestyle=DASHES[1], label="best result, with its noise")
        axes.plot(n, certain, "o", color=theme.colour(0), linestyle="-", label=f"certain: the best setting has {side}")
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.set_xlabel("rows")
        axes.set_ylabel(f"mean of {with_units(answers['definition'])}")
        legend_below(axes, columns=1)
    return figure


def _band(
    study: Study, answers: dict[str, Any], recommended: dict[str, Any] | None, pending: list[dict[str, Any]]
) -> Figure | None:
    """The mean outcome over the first factor that is an interval, the others as recommended, or at their reference.

    Dashed lines are where runs are pending.
    """
    interval = next((f for f in study.definition.factors if isinstance(f, Number) and np.isfinite(f.low)), None)
    said = answers["rows_recorded"] and not answers["alarm"]["rings"]
    if interval is None or study.definition.formula is not None or not said:
        return None
    grid = np.linspace(interval.low, interval.high, _GRID)
    if interval.whole:
        grid = np.unique(np.round(grid))
    setting = {} if recommended is None else recommended["setting"]
    frame: dict[str, Any] = {interval.name: grid.tolist()}
    for f in study.definition.factors:
        if f.name != interval.name:
            first = f.centre if isinstance(f, Number) else f.shown(np.zeros(1))[0]
            first = int(first) if isinstance(f, Number) and f.whole else first
            frame[f.name] = [setting.get(f.name, study.definition.control.get(f.name, first))] * len(grid)
    band = study.predict(frame)
    low, high = band["lower"].to_numpy(), band["upper"].to_numpy()
    if not np.isfinite(low).any() or not np.isfinite(high).any():
        return None
    with themed("light"):
        figure, axes = _figure()
        theme = theme_of(axes)
        dressed(axes, theme)
        axes.fill_between(
            grid, low, high, color=theme.fill(0), linewidth=0, label=f"plausible at {1 - study.definition.alpha:.0%}"
        )
        axes.plot(grid, band["estimate"], color=theme.colour(0), linewidth=2.0, label="estimate")
        nexts = sorted({float(run[interval.name]) for run in pending})
        for i, place in enumerate(nexts):
            axes.axvline(place, color=theme.colour(1), linestyle="--", label="pending" if i == 0 else None)
        held = ", ".join(f"{name} = {cells[0]}" for name, cells in frame.items() if name != interval.name)
        axes.set_xlabel(f"{interval.name}, at {held}" if held else interval.name)
        axes.set_ylabel(scale_text(answers["definition"], "level", compared=False))
        legend_below(axes, columns=3)
    return figure
