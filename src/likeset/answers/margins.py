r"""Hypotheses about two means as borders between them: E[y] is at most E'[y] + 0.01, at least 0.9 E'[y], odds as large.

Where E[y] is a Moebius function of the mean m of the family's curve, E = (p m + q) / (r m + s), a contrast of two E
that equals a number is a :class:`~likeset._solver.borders.Border` of m and m', with the matrix G^-1 B G:

    contrast = c            B                      family                                             G, up to a factor
    difference              (1, c; 0, 1)           proportions                                        (n, 0; 0, 1)
    ratio                   (c, 0; 0, 1)           log E = z + ..., counts or lifetimes, u = z        (k, 0; 0, 1)
    odds                    (c, 0; c - 1, 1)       the same, u = -z                                   (0, k; 1, 0)
                                                   the same, over-dispersed counts: m / (1 - m) = E   (k, 0; -1, 1)

Contrasts that are functions of z - z' alone are borders in any family, for u - u' = delta is one.
"""

from __future__ import annotations

from math import exp, isfinite, log

import numpy as np

from likeset._solver.borders import Border
from likeset._typing import Array
from likeset.curves import Curve
from likeset.families.answers import mean_link
from likeset.families.base import Family
from likeset.families.canonical import Canonical

LINK = {"difference": "identity", "ratio": "log", "odds": "logit"}
"""The contrasts, and the scale on which the mean must be affine in z for the contrast to be a function of z - z'."""
_LARGEST = 600.0  # of z - z': e^600 still leaves room for squares


def slope_of(family: Family, of: str) -> float | None:
    """g where the contrast is g (z - z'), or exp(g (z - z')) if it is a ratio or odds; None if it is none of these."""
    if LINK[of] != mean_link(family):
        return None
    if of == "odds":
        return 1.0
    ends = np.asarray(family.mean(np.array([0.0, 1.0])), dtype=np.float64)
    return float(ends[1] - ends[0] if of == "difference" else np.log(ends[1]) - np.log(ends[0]))


def exact_contrast(family: Family) -> tuple[str, float] | None:
    """The contrast that is a function of z - z' alone, and its ``slope_of``; None if there is none."""
    for of in LINK:
        slope = slope_of(family, of)
        if slope is not None:
            return of, slope
    return None


def border_of(family: Family, form: Canonical, of: str, limit: float) -> Border | None:
    """Where the contrast ``of`` equals ``limit``, in the means of the family's curve; None if that is no border."""
    slope = slope_of(family, of)
    if slope is not None:
        apart = limit if of == "difference" else log(limit)
        return _of_predictors(form, apart / slope)
    of_mean = _mean_matrix(family, form)
    if of_mean is None:
        return None
    B = {"difference": [[1.0, limit], [0.0, 1.0]], "ratio": [[limit, 0.0], [0.0, 1.0]]}[of]
    (a, b), (c, d) = np.linalg.solve(of_mean, np.array(B) @ of_mean).tolist()
    return Border(a, b, c, d)


def _of_predictors(form: Canonical, apart: float) -> Border | None:
    """z - z' = ``apart``."""
    if not (isfinite(apart) and abs(apart) <= _LARGEST):
        return None
    apart *= form.sign
    if form.curve is Curve.QUADRATIC:
        return Border(b=apart)
    times = exp(apart)
    return Border(a=times) if form.curve is Curve.EXPONENTIAL else Border(a=times, c=times - 1.0)


def _mean_matrix(family: Family, form: Canonical) -> Array | None:
    """G, with E[y] = (G_11 m + G_12) / (G_21 m + G_22)."""
    link, at = mean_link(family), np.array([0.0, 1.0])
    mean = np.asarray(family.mean(at), dtype=np.float64)
    if link == "logit" and form.curve is Curve.SOFTPLUS:
        return np.array([[2.0 * mean[0], 0.0], [0.0, 1.0]])
    if link != "log":
        return None
    power = float(np.log(mean[1] / mean[0])) * form.sign  # E = k e^(power u)
    if abs(abs(power) - 1.0) > 1e-12:
        return None
    k = float(mean[0]) * exp(-power * form.shift)
    if form.curve is Curve.EXPONENTIAL:
        return np.array([[k, 0.0], [0.0, 1.0]] if power > 0.0 else [[0.0, k], [1.0, 0.0]])
    return np.array([[k, 0.0], [-1.0, 1.0]] if power > 0.0 else [[-k, k], [1.0, 0.0]])
