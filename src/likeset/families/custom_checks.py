r"""What is checked of a family of the user's own.

values       finite at probe outcomes
derivatives  first and second against differences of the function
convexity    no negative second derivative, if claimed
mass         |∫ p(y | z) dy - 1| <= 1e-6, by adaptive quadrature or by summation
outcomes     at a y that came, no atom and no spike that the quadrature had not seen
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from likeset._typing import EPS, Array
from likeset.errors import NotConvexError, PieceError
from likeset.families.differences import STEP, differences
from likeset.families.mass import Mass, around, distances, integrate, nearest_scale

if TYPE_CHECKING:
    from likeset.families.custom import CustomFamily

_ROUNDING = 50 * EPS  # of the sums in a difference, relative to the function
_MASS_ERROR = 1e-6
_MOST_COUNTS = 2**17
_DROP = np.log(4.0)  # a density that falls by this factor within half the width of its law has a spike


def check_range(family: CustomFamily, z: Array, mass_at: Array) -> Array:
    """Check values, derivatives and convexity at every z, the mass at every entry of ``mass_at``.

    Returns, for the latter, the highest density averaged over a panel with some mass: its inverse is the law's width.
    """
    with np.errstate(all="ignore"):
        for y in family.probes():
            _check_derivatives(family, float(y), z)
        return np.array([check_mass(family, float(at)) for at in mass_at])


def _check_derivatives(family: CustomFamily, y: float, z: Array) -> None:
    column = np.full(len(z), y)
    values = -family.log_density(column, z)
    if not np.isfinite(values).all():
        where = z[~np.isfinite(values)][0]
        raise PieceError(
            f"{family.name}: the negative log-density at (y, z) = ({y:g}, {where:g}) is not finite; "
            f"check the support, or narrow z_range = {family.z_range}."
        )
    plain = lambda u, v: -family.log_density(u, v)  # noqa: E731
    rounding = _ROUNDING * (1.0 + np.abs(values))
    first, second = (-d for d in family.derivatives(column, z))
    _, slope, bend = differences(plain, column, z)
    _match(family.name, "first", first, slope, y, z, rounding / STEP)
    _match(family.name, "second", second, bend, y, z, rounding / STEP**2)
    if family.convex and np.min(second + rounding / STEP**2 + 1e-6 * (1.0 + np.abs(second).max())) < 0.0:
        raise NotConvexError(
            f"{family.name} was declared convex in z, but its second derivative at y = {y:g} is negative at "
            f"z = {z[np.argmin(second)]:g}; leave the claim out to use it without exact extrema."
        )


def check_mass(family: CustomFamily, z: float, near: float | None = None) -> float:
    """The density at z integrates to one, with breakpoints at every scale around the outcome ``near``, if given.

    Returns its highest average over a panel.
    """
    mass, peak = _counted(family, z) if family.discrete else _integrated(family, z, near)
    total, error = float(mass.integral.sum()), float(mass.error.sum())
    if not abs(total - 1.0) <= _MASS_ERROR:
        seen = "" if near is None else f" if one looks closely at the observed y = {near:g}"
        beyond = f" over the counts below {_MOST_COUNTS}" if _has_counts(family) else ""
        raise PieceError(
            f"{family.name}: the density integrates to {total:.8g}{beyond} at z = {z:g}{seen}, not to 1; "
            "add the log of the normalising constant (densities, not scores)."
        )
    if not error <= 1e-3:
        raise PieceError(
            f"{family.name}: the density at z = {z:g} could not be integrated (error {error:.2g}); it has too many "
            "jumps or spikes to be told from a function that is no density."
        )
    return peak


def _counted(family: CustomFamily, z: float) -> tuple[Mass, float]:
    y, _ = family.outcomes(np.array([z]))
    probability = np.exp(family.log_density(y, np.full(len(y), z)))
    if _has_counts(family) and probability.sum() < 1.0 - _MASS_ERROR:
        rest = np.arange(float(len(y)), _MOST_COUNTS)
        probability = np.concatenate([probability, np.exp(family.log_density(rest, np.full(len(rest), z)))])
    return Mass(probability, np.zeros(1)), 1.0


def _integrated(family: CustomFamily, z: float, near: float | None) -> tuple[Mass, float]:
    edges = family.breakpoints(z)
    if near is not None:
        local = around(near, nearest_scale(near), 1e6)
        edges = np.unique(np.concatenate([edges, local[_inside(family, local)]]))
    mass = integrate(lambda y: family.log_density(y, np.full(len(y), z)), edges)
    peak = float(np.max(np.where(mass.integral > 1e-3, mass.integral / np.diff(edges), 0.0)))
    return (_near_one(family, z, edges, mass) if family.support == "unit" else mass), peak


def _near_one(family: CustomFamily, z: float, edges: Array, mass: Mass) -> Mass:
    """The mass near 1, where numbers are 1e-16 apart and quadrature sees steps (near 0 they are as dense as needed).

    A density p(1 - d) that grows like d^(k - 1) as d goes to zero, as Beta laws do, has the mass d p(1 - d)/k below d.
    That is taken instead where the quadrature agrees as far as it can see.
    """
    d = 2.0 ** np.array([-30.0, -40.0, -52.0])
    log_p = family.log_density(1.0 - d, np.full(3, z))
    k = 1.0 + float(log_p[1] - log_p[0]) / float(np.log(d[1] / d[0]))
    if not (np.isfinite(log_p).all() and k > 0.0):
        return mass
    tails = d * np.exp(log_p) / k
    close = edges[:-1] >= 1.0 - d[0]
    seen = float(mass.integral[close].sum())
    if not abs(seen - float(tails[0] - tails[2])) <= 0.1 * seen + 1e-9:
        return mass  # something else goes on there
    return Mass(np.append(mass.integral[~close], tails[0]), np.append(mass.error[~close], 0.0))


def check_outcome(family: CustomFamily, y: float, z: Array, peaks: Array) -> None:
    """Refuse an atom at y, or mass hidden in a spike around it, for the laws of these z.

    An ordinary density is recognised with one call: within half the width 1 / peak of its law it does not drop to a
    quarter on both sides. Where it does, the mass is computed with breakpoints around y.
    """
    if family.discrete:
        _check_probability(family, y, z)
        return
    nearest = nearest_scale(y)
    steps = distances(nearest, 0.5 / float(np.min(peaks)))
    outcomes = np.concatenate([[y], y - steps, y + steps])
    outside = ~_inside(family, outcomes)
    outcomes[outside] = y
    with np.errstate(all="ignore"):
        values = family.log_density(outcomes[None, :], z[:, None])
    values[:, outside] = -np.inf
    at_y = values[:, 0]
    if not (at_y < np.inf).all():
        raise PieceError(
            f"{family.name}: the log-density at the observed y = {y:g} is {at_y[~(at_y < np.inf)][0]} for some z."
        )
    sides = np.maximum(values[:, 1 : 1 + len(steps)], values[:, 1 + len(steps) :])
    if (at_y > sides[:, 0] + np.log(2.0)).any():
        raise PieceError(
            f"{family.name}: the density has an atom at the observed y = {y:g}; under support={family.support!r} "
            "every single outcome has probability zero: declare a list of outcomes, or smooth it."
        )
    # The higher value at this distance and at four times it: one of them may sit in a dip.
    ring = np.maximum(sides[:, :-1], sides[:, 1:])
    drops = (at_y[:, None] > ring + _DROP) & (steps[:-1] < 0.5 / peaks[:, None])
    for at in z[drops.any(axis=1)]:
        with np.errstate(all="ignore"):
            check_mass(family, float(at), near=y)


def _check_probability(family: CustomFamily, y: float, z: Array) -> None:
    """At a count that came, which may lie beyond those that were summed."""
    with np.errstate(all="ignore"):
        values = family.log_density(np.full(len(z), y), z)
    if not (values <= 1e-9).all():
        raise PieceError(
            f"{family.name}: the observed y = {y:g} has log-probability {values[~(values <= 1e-9)][0]:.4g} at "
            f"z = {z[~(values <= 1e-9)][0]:g}; a probability is at most one."
        )


def _has_counts(family: CustomFamily) -> bool:
    return isinstance(family.support, str) and family.discrete


def _inside(family: CustomFamily, y: Array) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    low = -np.inf if family.support == "real" else 0.0
    high = 1.0 if family.support == "unit" else np.inf
    return (low < y) & (y < high)


def _match(name: str, which: str, given: Array, numeric: Array, y: float, z: Array, rounding: Array) -> None:
    wrong = ~(np.abs(given - numeric) <= 1e-4 * (1.0 + np.abs(numeric)) + rounding)
    if wrong.any():
        i = int(np.argmax(wrong))
        raise PieceError(
            f"{name}: the {which} derivative at (y, z) = ({y:g}, {z[i]:g}) is {given[i]:g}, but differences of the "
            f"negative log-density give {numeric[i]:g}; correct it or leave it out to have it computed."
        )
