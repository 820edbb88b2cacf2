"""The exact support function  h(a) = max { a'theta : theta in C }  of a likelihood set, with certificates.

``prepare`` does the work shared by all directions (is the set empty? where is its centre?) and returns an object
whose ``solve`` answers any number of directions. The kernel depends on the shape of the terms:

* :mod:`~likeset.support.quadratic`   an ellipsoid cut with a ball (Gaussian noise)
* :mod:`~likeset.support.smooth`      other exponential families and users' own
* :mod:`~likeset.support.piecewise`   Laplace noise

Window mixtures, several likelihoods averaged, have kernels of their own:

* :mod:`~likeset.support.window_mixture`   Newton's method on the log-sum-exp, for exponential families
* :mod:`~likeset.support.window_dual`      weighted joint sets, for everything else
"""

from __future__ import annotations

import math

import numpy as np

from likeset.support import piecewise, quadratic, smooth, window_dual, window_mixture
from likeset.support.evaluate import reweighted
from likeset.support.terms import Curve, CurveTerms, LevelSet, PointTerms, PreparedSet, WindowedSet


def prepare(level_set: LevelSet) -> PreparedSet:
    """Prepare a level set with the kernel that fits its terms."""
    terms = level_set.terms
    if isinstance(terms, PointTerms):
        return piecewise.prepare(level_set)
    if isinstance(terms, CurveTerms) and terms.curve is Curve.QUADRATIC:
        return quadratic.prepare(level_set)
    return smooth.prepare(level_set)


def prepare_windows(target: WindowedSet) -> PreparedSet:
    """Prepare a window mixture; one window alone is a joint set."""
    if len(target.windows.log_shares) == 1:
        used = target.windows.members
        keep = np.zeros(len(target.X), dtype=bool)
        keep[used] = True
        level = target.level - float(target.windows.log_shares[0]) - float(target.gains[used].sum())
        return prepare(LevelSet(target.X[keep], reweighted(target.terms, keep * 1.0, keep), level, target.radius))
    if isinstance(target.terms, CurveTerms) and target.radius < math.inf:
        return window_mixture.prepare(target)
    return window_dual.prepare(target, prepare)
