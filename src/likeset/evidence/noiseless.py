"""The set at scale zero: every theta that explains all outcomes, where the scale of the noise is unknown.

A continuous law gives tied outcomes probability zero at every scale above zero, and a numerator may refute all of these
scales. A scale that may be anything may be zero, too, and there a theta that fits without noise is right.
"""

from __future__ import annotations

import numpy as np

from likeset._solver import Kernel, prepare_joint
from likeset._solver.evaluate import reweighted
from likeset._solver.nuisance import ScaleTerms
from likeset._solver.problem import CurveTerms, LevelSet, PointTerms
from likeset._typing import EPS
from likeset.evidence.evidence import Groups


def noiseless(groups: Groups, terms: ScaleTerms, bound: float) -> Kernel:
    """{ F = 0 } up to rounding, by the groups that hold outcomes; empty where there is noise.

    A covariate that sticks out of the basis by l leaves z open by B l, and F by weight (B l)^power at most.
    """
    kept = terms.counts > 0.0
    unit = reweighted(terms.unit, np.ones(len(kept)), kept)
    rest, apart = float(terms.rest.sum()), groups.sticking_out
    open_z = np.multiply(bound, apart, out=np.zeros(len(apart)), where=apart > 0.0)
    level = 64 * EPS * rest - rest + float((terms.counts * open_z**terms.power).sum())
    return prepare_joint(LevelSet(groups.coordinates[groups.owners[kept]], unit, level, bound))


def fits_without_noise(groups: Groups, terms: ScaleTerms, bound: float) -> bool:
    """Whether some theta explains all outcomes, and these are more than it has coordinates."""
    rows, dimension = terms.power * float(terms.counts.sum()), groups.coordinates.shape[1]
    if terms.lo > 0.0 or rows <= dimension or _differ(terms):
        return False
    return noiseless(groups, terms, bound).status != "empty"


def _differ(terms: ScaleTerms) -> bool:
    """Whether some group has outcomes that are clearly different, which no theta explains."""
    unit = terms.unit
    if isinstance(unit, CurveTerms):
        heard = unit.a > 0.0
        explained = 0.5 * np.divide(unit.s**2, unit.a, out=np.zeros(len(unit.s)), where=heard)
        return bool((terms.rest[heard] > 2.0 * explained[heard]).any())
    if isinstance(unit, PointTerms) and len(unit.points):
        sizes = np.diff(unit.starts)
        first = unit.points[np.minimum(unit.starts[:-1], len(unit.points) - 1)]
        return bool((np.abs(unit.points - np.repeat(first, sizes)) > 1e-6 * np.abs(unit.points)).any())
    return False
