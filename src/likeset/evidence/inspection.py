r"""Inspection of a density that is not ours: what it must be charged at the y that came, or why it is refused.

Looked at, in a few calls with arrays:

* log q(y) alone and as an entry of arrays of several lengths: it must be the same number;
* its mass, with breakpoints at distances from 1e-12 to 1e6 around y and where the family's own laws have theirs:
  narrow spikes at y, and a second unit of mass around a y far out, count together with the rest;
* for numbers, log q(y) against its nearest neighbours: a density has no atoms;
* for counts, q(y) and the sum over the family's counts and those near y;
* for lifetimes, the law under censoring at c, for many c and for the time that came: ∫_{t < c} q(t, 1) dt + q(c, 0).

Quadrature errs on both sides. A density is refused when even the least credible mass is above ``REFUSED``, and is
charged the log of the largest credible one. Sums over counts are exact.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from likeset._typing import Array
from likeset.errors import LikesetError, PieceError
from likeset.families.answers import breakpoints
from likeset.families.base import Family
from likeset.families.mass import around, integrate, nearest_scale
from likeset.predictors.base import Forecast

REFUSED = 1.001  # least credible mass from which on a density is refused; below, the excess is charged
UNRESOLVED = 1.1  # largest credible mass from which on the quadrature has understood nothing
_DISAGREEMENT = 1e-5  # of one density in arrays of different lengths: single precision gets through, and pays
_LIKELIHOOD_REACH = 6.0  # |z| of the laws whose breakpoints are used
_NEIGHBOURS = 2048  # counts on either side of a y outside the enumeration


class Inspection:
    """Looks at the foreign forecasts of one sequence; what it learns of the family's support is kept."""

    def __init__(self, family: Family, predictor: object) -> None:
        self.family, self.predictor = family, predictor
        self._breakpoints = Breakpoints(family)

    def charge(self, forecast: Forecast, reach: float, y: Array, log_q: float, law: Family | None = None) -> float:
        """What to subtract from log q(y), at least 0; PieceError if the forecast is no density.

        ``law`` is the row's own where something is given of it: its outcomes need not be those of the family.
        """
        watched = Watched(forecast, y, self.predictor)
        family, edges = (self.family, self._breakpoints) if law is None else (law, Breakpoints(law))
        reach = min(reach, _LIKELIHOOD_REACH)
        if family.discrete:
            mass = _counts(watched, family, reach, log_q)
        elif family.observation_shape == (2,):
            mass = _lifetimes(watched, edges.around(float(y[0]), reach), log_q)
        else:
            mass = _numbers(watched, edges.around(float(y), reach))
        return watched.excess(log_q) + mass.charge(watched.name)


class Watched:
    """A forecast's log-density on arrays. Each array holds y first and last; what is said there is remembered."""

    def __init__(self, forecast: Forecast, y: Array, predictor: object) -> None:
        self.forecast, self.y, self.predictor = forecast, y, predictor
        self._at_y: list[float] = []
        self._next_to_y = np.inf

    def __call__(self, outcomes: Array) -> Array:
        """log q of every outcome."""
        own = np.asarray(self.y)[None]
        array = np.concatenate([own, outcomes, own])
        try:
            with np.errstate(all="ignore"):  # far out, an honest formula may overflow on its way to zero
                values = np.array(self.forecast.log_density(array), dtype=np.float64)
        except Exception as error:
            raise PieceError(
                f"the forecast {self.name} failed on an array of outcomes: {error}; "
                "log_density(y) must be vectorised in y."
            ) from error
        if values.shape != (len(array),):
            raise PieceError(
                f"the forecast {self.name} returned shape {values.shape} for {len(array)} outcomes; "
                "log_density(y) must be vectorised in y."
            )
        self._at_y += [float(values[0]), float(values[-1])]
        values[np.isnan(values)] = -np.inf  # refused where it comes, so no outcome is ever scored with it
        return values[1:-1]

    @property
    def name(self) -> str:
        """Who is to blame."""
        return f"{self.forecast!r} of {self.predictor!r}"

    def excess(self, log_q: float) -> float:
        """How far log q(y) alone is above what arrays say of it and of its neighbours.

        Refused if arrays differ by more than rounding, or neighbours by more than a factor of two: an atom.
        """
        values = np.array(self._at_y)
        differ = values != log_q
        if np.isfinite(log_q):
            differ &= ~(np.abs(values - log_q) <= _DISAGREEMENT * (1.0 + abs(log_q)))
        if differ.any():
            raise PieceError(
                f"the forecast {self.name} says log q = {log_q:.6g} of y = {self.y} alone and "
                f"{values[differ][0]:.6g} when y is an entry of an array; log_density(y) must treat every outcome by "
                "itself: normalise over all outcomes, not over the array that is handed in."
            )
        if log_q == -np.inf:
            return 0.0
        if not log_q - self._next_to_y <= np.log(2.0):
            raise PieceError(
                f"the forecast {self.name} has an atom at y = {self.y}: log q = {log_q:.4g} there and at most "
                f"{self._next_to_y:.4g} right next to it; a density of real numbers has none (rule 3 of validity)."
            )
        return max(log_q - min(self._next_to_y, float(values.min())), 0.0)

    def look_next_to_y(self, outcomes: Array) -> None:
        """Remember the highest density at the neighbours of y."""
        self._next_to_y = float(np.max(self(outcomes)))


@dataclass(frozen=True, slots=True)
class CredibleMass:
    """The least and the largest total mass that the quadrature lets believe, and where it was looked for."""

    lower: float
    upper: float
    where: str = "over the outcomes"

    def charge(self, name: str) -> float:
        """The log of the largest, at least 0; PieceError if the least is above one by more than a thousandth."""
        if not self.lower <= REFUSED:
            raise PieceError(
                f"the forecast {name} is not a density: it integrates to {self.lower:.4g} {self.where}; "
                "normalise it (rule 3 of validity)."
            )
        if not self.upper <= UNRESOLVED:
            raise PieceError(
                f"the forecast {name} could not be integrated: its mass {self.where} is between {self.lower:.4g} and "
                f"{self.upper:.4g}; it varies too wildly to be told from a forecast that is no density, smooth it."
            )
        return float(np.log(max(self.upper, 1.0)))


def _numbers(watched: Watched, edges: Array) -> CredibleMass:
    mass = integrate(watched, edges)
    watched.look_next_to_y(_neighbours(edges, float(watched.y)))
    return CredibleMass(mass.lower, mass.upper)


def _lifetimes(watched: Watched, edges: Array, log_q: float) -> CredibleMass:
    time = float(watched.y[0])
    events = integrate(lambda t: watched(np.column_stack([t, np.ones_like(t)])), edges)
    flags = np.repeat([0.0, 1.0], len(edges))
    log_alive, log_dead = watched(np.column_stack([np.tile(edges, 2), flags])).reshape(2, -1)
    with np.errstate(over="ignore"):
        alive = np.exp(log_alive)
        if not watched.y[1]:  # the score itself, not only what arrays say
            alive[edges == time] = np.exp(max(log_q, float(log_alive[edges == time][0])))
    total, wrong = (np.concatenate([[0.0], np.cumsum(part)]) for part in (events.integral, events.error))
    lower, upper = total - wrong + alive, total + wrong + alive
    if np.array_equal(log_alive, log_dead) and float(upper.min()) < 0.99:
        raise PieceError(
            f"the forecast {watched.name} ignores the event flag: q(t, 0) = q(t, 1) for every t; "
            "an outcome (t, 0) has the probability of living longer than t, (t, 1) the density at t."
        )
    if watched.y[1]:
        near = _neighbours(edges, time)
        watched.look_next_to_y(np.column_stack([near, np.ones_like(near)]))
    if events.lower > REFUSED:
        return CredibleMass(events.lower, events.upper)
    c = f"{edges[np.argmax(lower)]:.4g}"
    return CredibleMass(
        float(lower.max()), max(float(upper.max()), events.upper),
        f"under censoring at {c}, the integral of q(t, 1) up to there plus q({c}, 0): an outcome (t, 0) has the "
        "probability of living longer than t, not a density",
    )  # fmt: skip


def _counts(watched: Watched, family: Family, reach: float, log_q: float) -> CredibleMass:
    counts, volumes = family.outcomes(np.linspace(-reach, reach, 7))
    y = float(watched.y)
    if y not in counts:
        near = y + np.arange(-_NEIGHBOURS, _NEIGHBOURS + 1.0)
        near = np.setdiff1d(near if _is_outcome(family, near) else near[near >= 0], counts)
        near = near if _is_outcome(family, near) else np.array([y])
        counts, volumes = np.concatenate([counts, near]), np.concatenate([volumes, np.ones_like(near)])
    values = watched(counts)
    if not log_q <= np.log(REFUSED):
        raise PieceError(
            f"the forecast of {watched.predictor!r} gives y = {watched.y} a probability above one "
            f"(log q = {log_q:.4g}); normalise it (rule 3 of validity)."
        )
    with np.errstate(over="ignore"):
        mass = float(np.sum(volumes * np.exp(values)))
    watched(counts[:: max(1, len(counts) // 3)])  # a second, shorter array around y
    return CredibleMass(mass, mass)


def _neighbours(edges: Array, y: float) -> Array:
    """The breakpoints next to y, and the points halfway to them."""
    place = int(np.searchsorted(edges, y))
    next_to = edges[[i for i in (place - 1, place + 1) if 0 <= i < len(edges)]]
    return np.concatenate([next_to, 0.5 * (next_to + y)])


class Breakpoints:
    """Where densities of one family's outcomes are cut into panels; never outside the support, which is an interval."""

    def __init__(self, family: Family) -> None:
        self.family = family
        self._laws: dict[float, Array] = {}
        self._lowest, self._highest = np.inf, -np.inf  # outcomes known to be possible
        self._below, self._above = -np.inf, np.inf  # and known not to be

    def around(self, y: float, reach: float) -> Array:
        """Those of the family's laws for |z| <= reach, and geometric ones around y."""
        laws = self._of_laws(reach)
        scale = 1e6 * max(1.0, float(laws[-1] - laws[0]))
        edges = np.unique(np.concatenate([laws, around(y, nearest_scale(y), scale)]))
        self._lowest, self._highest = min(self._lowest, y), max(self._highest, y)
        self._explore(edges[(self._below < edges) & (edges < self._lowest)])
        self._explore(edges[(self._highest < edges) & (edges < self._above)][::-1])
        return edges[(self._lowest <= edges) & (edges <= self._highest)]

    def _of_laws(self, reach: float) -> Array:
        if reach not in self._laws:
            if len(self._laws) > 100:
                self._laws.clear()
            self._laws[reach] = np.unique(np.concatenate([breakpoints(self.family, z) for z in {-reach, 0.0, reach}]))
        return self._laws[reach]

    def _explore(self, unknown: Array) -> None:
        """Find where the support begins among candidates, ordered from the outside in."""
        impossible, possible, middle = -1, len(unknown), 0
        while possible - impossible > 1:
            value = float(unknown[middle])
            if _is_outcome(self.family, value):
                possible = middle
                self._lowest, self._highest = min(self._lowest, value), max(self._highest, value)
            else:
                impossible = middle
                if value < self._lowest:
                    self._below = value
                else:
                    self._above = value
            middle = (possible + impossible) // 2


def _is_outcome(family: Family, value: float | Array) -> bool:
    try:
        family.observations(value)
    except LikesetError:
        return False
    return True
