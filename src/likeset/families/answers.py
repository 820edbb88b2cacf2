r"""What a family may say for itself beyond :class:`~likeset.families.base.Family`, and what holds where it does not.

    question                                     asked of a family by      answer of one that is silent
    how do observations merge?                   ``merged_sums``           distinct (covariate, y) pairs
    ... for the evidence, to the last digit?     ``evidence_sums``         ``merged_sums``
    what is believed of theta, given a prior?    ``posterior``             Gaussian at the mode, by its curvature there
    which prior precisions, in units of noise?   ``prior_precisions``      the bound of theta, or a wide grid
    which density of y does N(m, s^2) give?      ``predictive``            Gauss-Hermite quadrature over z
    how is it fitted with a penalty?             ``penalised_fit``         Newton's method, or interior points
    what is a in the log-partition a A(z)?       ``canonical_scale``       there is none
    how much does one y tell about z?            ``information``           quadrature, or enumeration
    do window mixtures have a fast kernel?       ``fast_windows``          no
    ... where theta has no bound?                ``fast_without_bound``    no
    which number in it is not known?             ``nuisance``              none: all are
    ... does patience repay its time then?       ``patience_pays``         no
    does it hold for z as far as here, for y?    ``check_reach``, ``check_outcome``     nobody looks
    can density and derivatives be had at once?  ``density_and_derivatives``           they are asked for one by one
    where do its densities vary, for given z?    ``breakpoints``           some of its ``outcomes``
    is a function of y unbiased for z?           ``unbiased_response``     none is known
    what may be given of a row's size?           ``size_name``             nothing: neither exposure nor trials
    may rows have a time of entry?               ``_with_entry``           no
    on which scale is the mean affine in z?      ``mean_link``             on none that is known
    is it one of the three curves, at sign z + c?  ``canonical_form``      if it is a ``CurveFamily``, at z
    which laws lie outside it, for the alarm?    ``outside``               none are known
    how large may an offset be?                  ``largest_offset``        300, for the sake of e^offset

Everything here is optional: the generic answers are right for any family, the others are faster or sharper.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np

from likeset._typing import Array
from likeset.families.base import Family
from likeset.families.beliefs import Posterior
from likeset.families.exact_posterior import ExactPosterior
from likeset.families.fitted_posterior import GenericPosterior
from likeset.families.outside import Outside
from likeset.families.pair_sums import PairSums
from likeset.families.penalised import DirectFit, Fit, LookAhead
from likeset.families.predictive import Predictive, QuadraturePredictive
from likeset.families.quadratic_fit import Penalty, QuadraticFit
from likeset.families.responses import Response
from likeset.families.sums import Sums

_BREAKPOINTS = 24  # per law
NOISE_GRID = 10.0 ** np.arange(-8.0, 3.0)
FITTED_GRID = 100.0 ** np.arange(-3.0, 2.0)  # every one of them is fitted to the data again and again
LARGEST_EXPONENT = 300.0  # of an offset: e^300 still leaves room for squares


@runtime_checkable
class Merges(Protocol):
    """A family with a shorter description of its data than all distinct pairs."""

    def merged_sums(self) -> Sums:
        """Empty sums."""
        ...


@runtime_checkable
class MergesEvidence(Protocol):
    """A family that needs more careful sums for the evidence than for a fit."""

    def evidence_sums(self) -> Sums:
        """Empty sums."""
        ...


@runtime_checkable
class Believes(Protocol):
    """A family with beliefs of its own."""

    def posterior(self, priors: Array) -> Posterior:
        """Beliefs without data, one for each prior precision."""
        ...


class Predicts(Protocol):
    """A family with predictive densities of its own."""

    def predictive(self, mean: Array, sd: Array, reach: float) -> Predictive:
        """Densities of y under the beliefs N(mean_j, sd_j^2) about z, where |z| <= reach."""
        ...


@runtime_checkable
class FitsItself(Protocol):
    """A family with a penalised fit of its own."""

    def penalised_fit(self, penalty: float, bound: float) -> Fit:
        """A fit without data."""
        ...


@runtime_checkable
class ChecksItself(Protocol):
    """A family of functions that may fail far out, or at single outcomes."""

    def check_reach(self, reach: float) -> None:
        """Raise unless the family holds for |z| <= reach."""
        ...

    def check_outcome(self, y: float, reach: float) -> None:
        """Raise unless it holds at the outcome y."""
        ...


@runtime_checkable
class KnowsBreakpoints(Protocol):
    """A family that knows on which scales its densities vary."""

    def breakpoints(self, z: float) -> Array:
        """Edges of panels over y for densities like p(. | z)."""
        ...


@runtime_checkable
class Responds(Protocol):
    """A family in which some function of y is z plus centred noise."""

    def unbiased_response(self) -> Response:
        """That function, and what is known of the noise."""
        ...


def merged_sums(family: Family) -> Sums:
    """Empty sums for fits."""
    return family.merged_sums() if isinstance(family, Merges) else PairSums(family)


def evidence_sums(family: Family) -> Sums:
    """Empty sums for the evidence."""
    return family.evidence_sums() if isinstance(family, MergesEvidence) else merged_sums(family)


def posterior(family: Family, priors: Array) -> Posterior:
    """Beliefs without data, one for each prior precision."""
    return family.posterior(priors) if isinstance(family, Believes) else GenericPosterior(merged_sums(family), priors)


def predictive(family: Family, mean: Array, sd: Array, reach: float) -> Predictive:
    """The predictive densities of J Gaussian beliefs N(mean_j, sd_j^2) about z."""
    # Asked at every forecast, and a protocol takes longer to look up than an attribute.
    own = getattr(family, "predictive", None)
    return QuadraturePredictive(family, mean, sd, reach) if own is None else own(mean, sd, reach)


def penalised_fit(family: Family, penalty: float, bound: float) -> Fit:
    """A penalised fit without data."""
    if isinstance(family, FitsItself):
        return family.penalised_fit(penalty, bound)
    return DirectFit(merged_sums(family), penalty, bound)


def quadratic_fit(family: Family, penalty: Penalty, centre: Array | None, bound: float) -> QuadraticFit:
    """A fit without data whose penalty is any quadratic; refused by families that have no fit at all."""
    penalised_fit(family, 1.0, bound)
    return QuadraticFit(merged_sums(family), penalty, centre, bound)


def information(family: Family, z: Array) -> Array:
    """Fisher's information I(z) = E[ (d log p(y | z) / dz)^2 ] of one observation.

    >>> from likeset.families import Bernoulli
    >>> information(Bernoulli(), np.array([0.0]))
    array([0.25])
    """
    own = getattr(family, "information", None)  # asked before every observation
    if own is not None:
        return own(z)  # type: ignore[no-any-return]
    found = np.empty_like(z)
    for i, at in enumerate(z):
        y, weights = family.outcomes(np.array([at]))
        score = family.derivatives(y, np.full(len(y), at))[0]
        found[i] = np.sum(weights * np.exp(family.log_density(y, np.full(len(y), at))) * score**2)
    return found


def prior_precisions(family: Family, bounded: bool) -> Array | None:
    """A wide geometric grid of precisions of priors for theta, in units of the noise, I(0)^-1/2.

    None where theta is bounded and the noise has a known scale: then the bound tells what is wide.
    """
    own = getattr(family, "prior_precisions", None)
    if own is not None or bounded:
        return own
    if forgets_data(family):
        return NOISE_GRID * float(information(family, np.zeros(1))[0])
    return FITTED_GRID * min(max(float(information(family, np.zeros(1))[0]), 1e-12), 1e12)


def forgets_data(family: Family) -> bool:
    """Whether beliefs are exact, by rank-one updates, so that they need no data and more of them cost little."""
    return isinstance(posterior(family, np.ones(1)), ExactPosterior)


def canonical_scale(family: Family) -> float | None:
    """a, where a A(z) is the family's log-partition function; None where it has none."""
    return getattr(family, "canonical_scale", None)


def look_ahead(family: Family) -> LookAhead:
    """(a, s) of the log-partition function a A(z) - s z of a family that has one: s is not zero in shifted rows."""
    own: LookAhead | None = getattr(family, "look_ahead", None)
    return (canonical_scale(family) or 0.0, 0.0) if own is None else own


def fast_windows(family: Family, bounded: bool = True) -> bool:
    """Whether window mixtures of this family are solved by a kernel of their own; with theta bounded, or without."""
    return bool(getattr(family, "fast_windows" if bounded else "fast_without_bound", False))


def nuisance(family: Family) -> str | None:
    """The name of the number that nobody knows, "sigma" or "shape", say; None where the law of y given z is known.

    >>> import likeset as ls
    >>> nuisance(ls.Gaussian(sigma=ls.Unknown())), nuisance(ls.Gaussian(sigma=1.0))
    ('sigma', None)
    """
    return getattr(family, "nuisance", None)


def patience_pays(family: Family) -> bool:
    """Whether patience is worth its time, where a number is unknown and every bound is a search over its values."""
    return bool(getattr(family, "patience_pays", False))


def response(family: Family) -> Response | None:
    """The unbiased response of a family; None where there is none (counts: their mean is not linear in z)."""
    return family.unbiased_response() if isinstance(family, Responds) else None


def size_name(family: Family) -> str | None:
    """What ``update`` calls the size of a row, "exposure" or "trials"; None where rows have none."""
    return getattr(family, "size_name", None)


def has_entries(family: Family) -> bool:
    """Whether rows may have a time of entry."""
    return hasattr(family, "_with_entry")


def outside(family: Family) -> Outside | None:
    """Laws outside the family, for the alarm; None where nothing is known of such.

    >>> from likeset.families import Poisson
    >>> outside(Poisson()).names[3]
    'counts with 2 times the variance'
    """
    own = getattr(family, "outside", None)
    return None if own is None else own()


def largest_offset(family: Family) -> float:
    """The largest absolute offset: without limit where outcomes are z and noise; none where a number is unknown,
    unless the family says so."""
    if hasattr(family, "nuisance") and not hasattr(family, "largest_offset"):
        return 0.0
    return float(getattr(family, "largest_offset", LARGEST_EXPONENT))


def breakpoints(family: Family, z: float) -> Array:
    """Where to cut densities like p(. | z) into panels, in rising order."""
    if isinstance(family, KnowsBreakpoints):
        return family.breakpoints(z)
    nodes = family.outcomes(np.array([z]))[0]
    nodes = np.sort(nodes[:, 0] if nodes.ndim == 2 else nodes)
    return nodes[np.linspace(0, len(nodes) - 1, _BREAKPOINTS).astype(np.int64)]


def mean_link(family: Family) -> str | None:
    """The scale on which E[y given z] is affine in z: "identity", "log" or "logit"; None if none is known."""
    found = getattr(family, "mean_link", None)
    return found if found in ("identity", "log", "logit") else None
