"""Answers to claims about shapes and widths (Fig. 1)."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from likeset.paper.experiments.evidence import NO, YES, Answer, compare, middle
from likeset.paper.experiments.fig2 import BOUND
from likeset.paper.experiments.methods import PAPER, label_of
from likeset.paper.experiments.names import panel
from likeset.paper.experiments.tables import Column, Table

_ELLIPSE, _NO_ELLIPSE = 0.001, 0.02


def ellipses(table: Table) -> Iterable[Answer]:
    """How far each boundary is from its best conic, relative to its size: not at all only for Gaussian noise."""
    for (problem,), part in table.at(table["problem"] != "band").groups("problem"):
        misfit = max(conic_misfit(own["x"].astype(float), own["y"].astype(float)) for _, own in part.groups("n"))
        expected = misfit < _ELLIPSE if problem == "plane-gaussian" else misfit > _NO_ELLIPSE
        detail = f"the boundary departs from its best conic by {misfit:.2%} of its size"
        yield Answer(panel(problem), YES if expected else NO, detail)


def conic_misfit(x: Column, y: Column) -> float:
    """Largest distance (to first order) of points from the conic that fits them best, over their reach.

    >>> angles = np.linspace(0, 2 * np.pi, 50)
    >>> conic_misfit(3 + 2 * np.cos(angles), np.sin(angles)) < 1e-9
    True
    """
    points = np.column_stack([x, y]) - [np.mean(x), np.mean(y)]
    u, v = (points / np.linalg.norm(points, axis=1).max()).T
    design = np.column_stack([u * u, u * v, v * v, u, v])
    a, b, c, d, e = coefficients = np.linalg.lstsq(design, np.ones(len(u)), rcond=None)[0]
    slope = np.hypot(2 * a * u + b * v + d, b * u + 2 * c * v + e)
    return float(np.max(np.abs(design @ coefficients - 1) / slope))


def narrower_than(rival: str, limit: float) -> Callable[[Table], Iterable[Answer]]:
    """Mean width of the paper's band against a rival's, both cut at |f| <= B, which everybody knows."""

    def answer(table: Table) -> Iterable[Answer]:
        widths = {}
        for (method,), own in table.where(problem="band").groups("method"):
            widths[method] = {int(repeat): _width(part) for (repeat,), part in own.groups("repeat")}
        ours = min((m for m in PAPER if m in widths), key=lambda m: middle(widths[m]), default=None)
        if ours is not None and rival in widths:
            ratio = compare(widths[ours], widths[rival])
            yield Answer("mean width", ratio.below(limit), f"{label_of(ours)} against {rival}: {ratio}")

    return answer


def _width(band: Table) -> float:
    low, high = (np.clip(band[name].astype(float), -BOUND, BOUND) for name in ("lower", "upper"))
    return float(np.mean(high - low))
