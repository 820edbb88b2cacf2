"""The exact support function  h(a) = max { a'theta : theta in C }  of a likelihood set, with certificates.

``prepare`` does the work shared by all directions (is the set empty? where is its centre?) and returns an object
whose ``solve`` answers any number of directions. The kernel depends on the shape of the terms:

* :mod:`~likeset._solver.quadratic.kernel`   an ellipsoid cut with a ball (Gaussian noise)
* :mod:`~likeset._solver.smooth.kernel`      other exponential families and users' own
* :mod:`~likeset._solver.absolute.kernel`   Laplace noise

Window mixtures, several likelihoods averaged, have kernels of their own:

* :mod:`~likeset._solver.smooth.mixture`   Newton's method on the log-sum-exp, for exponential families
* ``mixture``    an interior point method, for Laplace noise (`mixture_unlimited`: no ball)
* :mod:`~likeset._solver.dual`      weighted joint sets, for everything else
"""

from __future__ import annotations

import math

import numpy as np

from likeset._solver.evaluate import reweighted
from likeset._solver.problem import CurveTerms, LevelSet, PointTerms, PreparedSet, Terms, WindowedSet, WindowTable
from likeset._solver.quadratic import kernel as quadratic
from likeset._solver.quadratic.kernel import Prepared as Ellipsoid
from likeset._solver.smooth import kernel as smooth
from likeset.curves import Curve

__all__ = ["Ellipsoid", "PreparedSet", "is_quadratic", "prepare", "prepare_windows"]


def is_quadratic(terms: Terms) -> bool:
    """Whether F is quadratic, so that ``prepare`` returns an :class:`Ellipsoid`."""
    return isinstance(terms, CurveTerms) and terms.curve is Curve.QUADRATIC


def prepare(level_set: LevelSet) -> PreparedSet:
    """Prepare a level set with the kernel that fits its terms."""
    terms = level_set.terms
    if isinstance(terms, PointTerms):
        from likeset._solver.absolute import kernel  # a large one, loaded when needed: importing likeset stays quick

        return kernel.prepare(level_set)
    if is_quadratic(terms):
        return quadratic.prepare(level_set)
    return smooth.prepare(level_set)


def prepare_windows(target: WindowedSet) -> PreparedSet:
    """Prepare a window mixture; one window alone is a joint set."""
    target = _without_idle_covariates(target)
    if len(target.windows.log_shares) == 1:
        level = target.level - float(target.windows.log_shares[0]) - float(target.gains.sum())
        return prepare(LevelSet(target.X, target.terms, level, target.radius))
    from likeset._solver import dual
    from likeset._solver.absolute import mixture as absolute_mixture
    from likeset._solver.absolute import mixture_unlimited
    from likeset._solver.smooth import mixture as smooth_mixture

    if isinstance(target.terms, CurveTerms) and target.radius < math.inf:
        return smooth_mixture.prepare(target)
    if isinstance(target.terms, PointTerms):
        limited = target.radius < math.inf
        return absolute_mixture.prepare(target) if limited else mixture_unlimited.prepare_unlimited(target)
    return dual.prepare(target, prepare)


def _without_idle_covariates(target: WindowedSet) -> WindowedSet:
    """The same set, described by the covariates that lie in some window."""
    windows, count = target.windows, len(target.X)
    used = np.zeros(count, dtype=bool)
    used[windows.members] = True
    if used.all():
        return target
    number = np.cumsum(used) - 1
    table = WindowTable(windows.starts, number[windows.members], windows.log_shares)
    terms = reweighted(target.terms, np.ones(count), used)
    return WindowedSet(target.X[used], terms, target.gains[used], table, target.level, target.radius)
