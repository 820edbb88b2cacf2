"""Bands over a one-dimensional domain, on the scale of the outcome."""

from __future__ import annotations

from typing import Any

import numpy as np

from likeset._typing import Array
from likeset.arguments import choice, real_array, real_number
from likeset.errors import InvalidArgumentError, PieceError, ShapeError
from likeset.extras import optional_packages
from likeset.plots.theme import Theme, checked_axes, dressed, legend_below, theme_of

with optional_packages():
    from matplotlib.axes import Axes

# What the mean of an outcome is called, by the name of its family.
_MEANS = {
    "Poisson": "mean count",
    "NegativeBinomial": "mean count",
    "Geometric": "mean count",
    "Bernoulli": "probability",
    "Binomial": "mean count of successes",
    "Weibull": "mean lifetime",
    "Exponential": "mean lifetime",
    "LogWeibull": "mean log-lifetime",
}


def plot_band(
    s: Any,
    x: Any,
    *,
    data: tuple[Any, Any] | None = None,
    truth: Any = None,
    next_query: float | None = None,
    label: str | None = None,
    scale: str = "outcome",
    axes: Axes | None = None,
) -> Axes:
    """The band [lower, upper] over points x on a line, with observations, truth and the next query if given.

    s           a sequence or one of its sets; a set that does not know its family is drawn in z
    x           points on a line
    data        (x, y) as observed; lifetimes may be pairs (time, event), and censored ones are drawn hollow
    truth       z at the points x, if known
    next_query  where the next observation will be made
    scale       "outcome": bounds of the mean of y (counts on the mean's scale, probabilities between 0 and 1);
                "predictor": bounds of z itself

    >>> import likeset as ls
    >>> import matplotlib.pyplot as plt
    >>> seq = ls.ConfidenceSequence(ls.Bernoulli(), ls.Linear(dim=1, bound=3.0))
    >>> seq.update([[1.0]] * 8, [1, 0, 1, 1, 1, 0, 1, 1])
    >>> axes = plot_band(seq, np.linspace(-1, 1, 8), data=([1.0] * 8, [1, 0, 1, 1, 1, 0, 1, 1]))
    >>> axes.get_ylabel(), bool(axes.get_ylim()[1] <= 1.1)
    ('probability', True)
    >>> plt.close(axes.figure)
    """
    known, family = _set_and_family(s)
    if choice("scale", scale, ("outcome", "predictor")) == "predictor":
        family = None
    axes = checked_axes(axes)
    points = real_array("x", x).reshape(-1)
    order = np.argsort(points, kind="stable")
    low, high = known.interval(points)
    if len(low) != len(points):
        raise ShapeError("x", x, f"is not {len(low)} points on a line", "bands are drawn over one-dimensional domains")
    low, high = _on_scale(family, low, high)
    theme = theme_of(axes)
    dressed(axes, theme)
    name = label or f"plausible at {1 - known.alpha:.0%}"
    shown = _fill(axes, theme, points[order], low[order], high[order], name)
    if truth is not None:
        heights = real_array("truth", truth).reshape(-1)
        if len(heights) != len(points):
            raise ShapeError("truth", truth, f"has {len(heights)} values", f"pass one for each of {len(points)} points")
        heights = heights if family is None else np.asarray(family.mean(heights))
        axes.plot(points[order], heights[order], color=theme.ink, linestyle=(0, (5, 2)), linewidth=1.5, label="truth")
        shown.append(heights)
    if data is not None:
        shown.append(_draw_observations(axes, theme, data))
    if next_query is not None:
        place = real_number("next_query", next_query)
        axes.axvline(place, color=theme.colour(1), linestyle=(0, (1.5, 1.5)), linewidth=1.6, label="next query")
    axes.set_xlabel("x")
    axes.set_ylabel(_axis_name(family, scale))
    _limit(axes, shown)
    legend_below(axes, columns=4)
    return axes


def _set_and_family(s: Any) -> tuple[Any, Any]:
    """The set and the family of a sequence, or of a set that knows its family."""
    known = s.set if hasattr(s, "update") and hasattr(s, "set") and not isinstance(s, type) else s
    check_set("s", known)
    family = getattr(s, "family", None) or getattr(known, "family", None)
    return known, family


def check_set(name: str, s: Any) -> None:
    """A typed error for what is no confidence set."""
    if not all(hasattr(s, needed) for needed in ("interval", "alpha", "space")) or isinstance(s, type):
        raise InvalidArgumentError(name, s, "is not a confidence set", "pass e.g. ConfidenceSequence(...).set")


def _on_scale(family: Any, low: Array, high: Array) -> tuple[Array, Array]:
    """Bounds of the mean from bounds of z; the mean may rise or fall with z."""
    if family is None:
        return low, high
    try:
        a, b = np.asarray(family.mean(low), dtype=float), np.asarray(family.mean(high), dtype=float)
    except (AttributeError, TypeError) as error:
        raise PieceError(
            f"the family {family!r} does not say what its mean is ({error}); draw the band with scale='predictor'."
        ) from error
    return np.minimum(a, b), np.maximum(a, b)


def _axis_name(family: Any, scale: str) -> str:
    if family is None:
        return "z = f(x)" if scale == "predictor" else "f(x)"
    return _MEANS.get(type(family).__name__, "mean outcome")


def _fill(axes: Axes, theme: Theme, points: Array, low: Array, high: Array, name: str) -> list[Array]:
    finite = np.concatenate([low[np.isfinite(low)], high[np.isfinite(high)], [0.0]])
    reach = 10 * (np.ptp(finite) + 1.0)  # a band without an end goes beyond the axes
    low, high = np.maximum(low, finite.min() - reach), np.minimum(high, finite.max() + reach)
    axes.fill_between(points, low, high, color=theme.fill(0), linewidth=0, label=name)
    for edge in (low, high):
        axes.plot(points, edge, color=theme.colour(0), linewidth=1.2)
    return [edge[np.abs(edge) < np.abs(finite).max() + reach] for edge in (low, high)]


def _limit(axes: Axes, shown: list[Array]) -> None:
    values = np.concatenate([np.asarray(part, dtype=float).ravel() for part in shown])
    values = values[np.isfinite(values)]
    if len(values):
        margin = 0.05 * (np.ptp(values) or 1.0)
        axes.set_ylim(values.min() - margin, values.max() + margin)


def _draw_observations(axes: Axes, theme: Theme, data: Any) -> Array:
    x, y, censored = _observations(data)
    axes.plot(x[~censored], y[~censored], "o", color=theme.ink, markersize=3.2, label="observations")
    if censored.any():
        axes.plot(x[censored], y[censored], "o", color=theme.ink, markerfacecolor=theme.paper, markersize=4.2,
                  label="censored")  # fmt: skip
    return y


def _observations(data: Any) -> tuple[Array, Array, Any]:
    if not isinstance(data, (list, tuple)) or len(data) != 2:
        raise InvalidArgumentError("data", data, "is not a pair", "pass (x, y), the observations")
    x, y = (real_array("data", part) for part in data)
    x, censored = x.reshape(-1), np.zeros(len(x.reshape(-1)), dtype=bool)
    if y.ndim == 2 and y.shape == (len(x), 2):
        y, censored = y[:, 0], y[:, 1] == 0
    y = y.reshape(-1)
    if len(x) != len(y):
        raise ShapeError("data", data, f"has {len(x)} covariates and {len(y)} outcomes", "pass as many of each")
    return x, y, censored
