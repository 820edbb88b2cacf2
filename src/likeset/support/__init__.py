"""The exact support function  h(a) = max { a'theta : theta in C }  of a likelihood set, with certificates.

``prepare`` does the work shared by all directions (is the set empty? where is its centre?) and returns an object
whose ``solve`` answers any number of directions. The kernel depends on the shape of the terms:

* :mod:`~likeset.support.quadratic`   an ellipsoid cut with a ball (Gaussian noise)
* :mod:`~likeset.support.smooth`      other exponential families and users' own
* :mod:`~likeset.support.piecewise`   Laplace noise
"""

from __future__ import annotations

from typing import Protocol

from likeset.support import piecewise, quadratic, smooth
from likeset.support.quadratic import Prepared as Ellipsoid
from likeset.support.terms import Array, Curve, CurveTerms, LevelSet, PointTerms, Solution, Terms

__all__ = ["Ellipsoid", "PreparedSet", "is_quadratic", "prepare"]


class PreparedSet(Protocol):
    """A level set ready to answer directions."""

    @property
    def status(self) -> str:
        """ "regular", "point" (one point within rounding) or "empty" (certified)."""
        ...

    @property
    def centre(self) -> Array:
        """A point of the set; for an empty one, the point that comes closest."""
        ...

    def solve(self, A: Array, tolerance: float = 1e-7) -> Solution:
        """Maxima of a'theta for the rows a of A."""
        ...


def is_quadratic(terms: Terms) -> bool:
    """Whether F is quadratic, so that ``prepare`` returns an :class:`Ellipsoid`."""
    return isinstance(terms, CurveTerms) and terms.curve is Curve.QUADRATIC


def prepare(level_set: LevelSet) -> PreparedSet:
    """Prepare a level set with the kernel that fits its terms."""
    terms = level_set.terms
    if isinstance(terms, PointTerms):
        return piecewise.prepare(level_set)
    if is_quadratic(terms):
        return quadratic.prepare(level_set)
    return smooth.prepare(level_set)
