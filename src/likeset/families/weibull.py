r"""Survival times: Weibull with known shape, right-censored or not, and its logarithm.

T has hazard  p t^(p-1) e^z,  so larger z means shorter life, and with the event indicator e
(1 = died at t, 0 = still alive at t)

    -log p(t, e | z) = t^p e^z - e [ z + log p + (p - 1) log t ].

This is an exponential curve in z, with a = t^p and s = e, for every shape p > 0. Censoring must not be
informative: given the past, the censoring time may not depend on the unseen lifetime.

A lifetime watched only from its *entry* on (left truncation, or a second look at somebody seen alive before) is judged
given that it was longer than the entry:  t^p - entry^p  takes the place of t^p (:class:`Entered`).
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, Self

import numpy as np

from likeset._typing import Array
from likeset.arguments import floats, positive, real_array
from likeset.curves import Curve
from likeset.errors import ShapeError
from likeset.families.alternatives import Lifetimes
from likeset.families.base import (
    largest_predictor,
    node_count,
    panels,
    predictor_vector,
    refuse,
    source_of_noise,
)
from likeset.families.curve_family import CurveFamily
from likeset.families.responses import Response
from likeset.families.unknown import Unknown

EULER = 0.5772156649015329


def survival_pairs(y: Any) -> Array:
    """(n, 2) array of (time, event). A number or 1-D array means that every time is an event."""
    array = real_array("y", y)
    if array.ndim == 0:
        array = array.reshape(1)
    if array.ndim == 1:
        array = np.column_stack([array, np.ones_like(array)])
    if array.ndim != 2 or array.shape[1] != 2:
        raise ShapeError(
            "y",
            y,
            f"has shape {array.shape}",
            "pass times, or (time, event) pairs as an array of shape (n, 2)",
        )
    refuse(
        array,
        (array[:, 1] != 0) & (array[:, 1] != 1),
        "has an event flag other than 0 or 1",
        "use 1 for an observed event and 0 for a time censored on the right",
    )
    return array


def refuse_out_of_range(pairs: Array, log_times: Array, shape: float) -> None:
    """Refuse times whose power t^p under- or overflows."""
    refuse(
        pairs,
        np.abs(log_times) * shape > 700,
        f"is out of range: time^{shape:g} is not representable",
        "use a unit of time in which typical times are of order one",
    )


def _gamma(x: float) -> float:
    """Gamma(x), infinite where it overflows: tiny shapes have lifetimes without bound."""
    return math.gamma(x) if x < 171.0 else math.inf


class _Survival(CurveFamily):
    """What Weibull and LogWeibull share: exponential curve, shape, log-times from the unit exponential."""

    curve = Curve.EXPONENTIAL
    observation_shape = (2,)
    logs: ClassVar[bool]  # whether y is the logarithm of a time

    def __new__(cls, shape: float | Unknown = 1.0) -> Self:
        """Of unknown shape, a family of such laws."""
        if isinstance(shape, Unknown):
            from likeset.families import weibull_unknown  # which is made of these

            if cls is Weibull:
                return weibull_unknown.WeibullOfUnknownShape(shape)  # type: ignore[return-value]
            if cls is LogWeibull:
                return weibull_unknown.LogWeibullOfUnknownShape(shape)  # type: ignore[return-value]
        return super().__new__(cls)

    def __init__(self, shape: float | Unknown = 1.0) -> None:
        self.shape = positive("shape", shape)

    def settings(self) -> dict[str, float]:
        """Constructor arguments."""
        return {"shape": self.shape}

    def information(self, z: Array) -> Array:
        """I(z) = E[T^p e^z] = 1 for a time that is not censored."""
        return np.ones_like(floats("z", z))

    def curvature_bounds(self, bound: float) -> tuple[float, float]:
        """mu = e^-B, L = e^B, as the paper takes them (the true curvature t^p e^z depends on t)."""
        bound = largest_predictor(bound)
        with np.errstate(over="ignore"):
            return float(np.exp(-bound)), float(np.exp(bound))

    def outside(self) -> Lifetimes:
        """Lifetimes of other shapes."""
        return Lifetimes(float(self.shape), self.logs)

    def unbiased_response(self) -> Response:
        """-(p log t + g), g Euler's constant."""

        def of(y: Array) -> float:
            return -(self.shape * self._log_time(y) + EULER)

        return Response(of, float(np.pi / np.sqrt(6.0)), None, (1.507, 2.0))

    def _with_entry(self, entry: float) -> Entered:
        """The law of a lifetime that is watched from ``entry`` on, in the units of y."""
        return Entered(self, entry)

    def _entry_power(self, entry: Array) -> Array:
        """entry^p, zero for no entry; NaN for what is no time."""
        with np.errstate(over="ignore"):
            powers = np.maximum(entry, 0.0) ** self.shape
        return np.where((entry < 0) & ~np.isneginf(entry), np.nan, powers)

    def _time_after(self, past: float, lived: Array) -> Array:
        """The outcome of a lifetime of which t^p = past + lived."""
        with np.errstate(over="ignore"):
            return np.asarray((past + lived) ** (1.0 / self.shape))

    def _log_time(self, y: Array) -> float:
        """log t of one observation."""
        return float(np.log(y[0]))

    def _log_times(self, z: Array, rng: np.random.Generator) -> Array:
        # t^p e^z is standard exponential.
        z = real_array("z", z)
        return np.asarray((np.log(source_of_noise(rng).exponential(size=z.shape)) - z) / self.shape)

    def _log_time_panels(self, z: Array) -> tuple[Array, Array]:
        # Unit-exponential quantiles from 1e-14 to 45, in log-time; panels as wide as the noise scale 1/p.
        z = predictor_vector(z)
        low = (np.log(1e-14) - np.max(z)) / self.shape
        high = (np.log(45.0) - np.min(z)) / self.shape
        return panels(np.linspace(low, high, 2 + node_count(z, self.shape * (high - low))), nodes_per_panel=10)


class Weibull(_Survival):
    """Survival times t > 0, given as times or as (time, event) pairs.

    >>> family = Weibull(shape=2.0)
    >>> family.observations([[0.5, 1], [1.2, 0]])       # an event at 0.5; still alive at 1.2
    array([[0.5, 1. ],
           [1.2, 0. ]])
    >>> float(family.log_density([1.2, 0.0], 0.0).round(2))    # log of the survival function exp(-t^2)
    -1.44
    """

    mean_link = "log"
    logs = False

    def observations(self, y: Any) -> Array:
        """Positive times, with event flags."""
        pairs = survival_pairs(y)
        refuse(pairs, pairs[:, 0] <= 0, "is not a survival time", "times must be > 0")
        refuse_out_of_range(pairs, np.log(pairs[:, 0]), self.shape)
        return pairs

    def _allows(self, *y: float) -> bool:
        return y[0] > 0.0 and y[1] in (0.0, 1.0) and abs(math.log(y[0])) * self.shape <= 700

    def statistics(self, y: Array) -> tuple[Array, Array, Array]:
        """a = t^p, s = event, c = event (log p + (p - 1) log t)."""
        time, event = y[..., 0], y[..., 1]
        return time**self.shape, event, event * (np.log(self.shape) + (self.shape - 1) * np.log(time))

    def sample(self, z: Array, rng: np.random.Generator) -> Array:
        """Uncensored (time, event = 1) pairs."""
        with np.errstate(over="ignore"):
            times = np.clip(np.exp(self._log_times(z, rng)), np.finfo(float).tiny, np.finfo(float).max)
        return np.stack([times, np.ones_like(times)], axis=-1)

    def mean(self, z: Array) -> Array:
        """E[T] = e^(-z/p) Gamma(1 + 1/p)."""
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray(np.exp(-floats("z", z) / self.shape) * _gamma(1 + 1 / self.shape))

    def outcomes(self, z: Array) -> tuple[Array, Array]:
        """Uncensored outcomes, integrated in log-time."""
        log_times, weights = self._log_time_panels(z)
        with np.errstate(over="ignore"):
            times = np.exp(log_times)
        return np.column_stack([times, np.ones_like(times)]), weights * times


class Exponential(Weibull):
    """Exponential survival times with rate e^z: Weibull with shape 1."""

    def __init__(self) -> None:
        super().__init__(shape=1.0)

    def settings(self) -> dict[str, float]:
        """Constructor arguments."""
        return {}


class LogWeibull(_Survival):
    """Logarithms Y = log T of Weibull times; pairs (log time, event) when censored.

    The Jacobian cancels in every ratio: sets equal those of :class:`Weibull` on e^Y.
    E[Y] = -(z + 0.5772...) / p.
    """

    mean_link = "identity"
    logs = True

    def observations(self, y: Any) -> Array:
        """Real log-times whose t^p is representable, with event flags."""
        pairs = survival_pairs(y)
        refuse_out_of_range(pairs, pairs[:, 0], self.shape)
        return pairs

    def _allows(self, *y: float) -> bool:
        return abs(y[0]) * self.shape <= 700 and y[1] in (0.0, 1.0)

    def _entry_power(self, entry: Array) -> Array:
        """e^(p entry)."""
        with np.errstate(over="ignore"):
            return np.exp(self.shape * np.asarray(entry, dtype=np.float64))

    def _time_after(self, past: float, lived: Array) -> Array:
        """The logarithm of the time."""
        return np.asarray(np.log(past + lived) / self.shape)

    def _log_time(self, y: Array) -> float:
        return float(y[0])

    def statistics(self, y: Array) -> tuple[Array, Array, Array]:
        """a = e^(pY), s = event, c = event (log p + p Y)."""
        log_time, event = y[..., 0], y[..., 1]
        return np.exp(self.shape * log_time), event, event * (np.log(self.shape) + self.shape * log_time)

    def sample(self, z: Array, rng: np.random.Generator) -> Array:
        """Uncensored (log time, event = 1) pairs."""
        log_times = self._log_times(z, rng)
        return np.stack([log_times, np.ones_like(log_times)], axis=-1)

    def mean(self, z: Array) -> Array:
        """E[Y] = -(z + Euler's constant) / p."""
        return -(floats("z", z) + EULER) / self.shape

    def outcomes(self, z: Array) -> tuple[Array, Array]:
        """Uncensored outcomes."""
        log_times, weights = self._log_time_panels(z)
        return np.column_stack([log_times, np.ones_like(log_times)]), weights


class Entered(CurveFamily):
    """Lifetimes of ``family``, given that they are longer than ``entry``; pairs (exit, event).

    -log p(t, e | z, T > entry) = (t^p - entry^p) e^z - e [ z + log p + (p - 1) log t ].

    >>> law = Entered(Weibull(shape=2.0), 1.0)
    >>> float(law.log_density([1.2, 0.0], 0.0).round(2))      # alive at 1.2, having been alive at 1: -(1.2^2 - 1)
    -0.44
    """

    curve = Curve.EXPONENTIAL
    observation_shape = (2,)

    def __init__(self, family: _Survival, entry: float) -> None:
        self.family, self.entry = family, entry
        self.past = float(family._entry_power(np.asarray(entry)))

    def __repr__(self) -> str:
        return f"<{self.family!r} from {self.entry:g} on>"

    def settings(self) -> dict[str, float]:
        """The family's, and the entry."""
        return self.family.settings() | {"entry": self.entry}

    def observations(self, y: Any) -> Array:
        """Times after the entry, with event flags."""
        pairs = self.family.observations(y)
        refuse(pairs, pairs[:, 0] <= self.entry, f"is not after its entry at {self.entry:g}", "pass exit > entry")
        return pairs

    def _allows(self, *y: float) -> bool:
        return y[0] > self.entry and self.family._allows(*y)

    def statistics(self, y: Array) -> tuple[Array, Array, Array]:
        """a = t^p - entry^p, the rest as without an entry."""
        a, s, c = self.family.statistics(y)
        return a - self.past, s, c

    def sample(self, z: Array, rng: np.random.Generator) -> Array:
        """Uncensored (exit, event = 1) pairs: (t^p - entry^p) e^z is standard exponential."""
        z = real_array("z", z)
        lived = np.maximum(source_of_noise(rng).exponential(size=z.shape) * np.exp(-z), 1e-12 * self.past)
        times = self.family._time_after(self.past, lived)
        return np.stack([times, np.ones_like(times)], axis=-1)

    def mean(self, z: Array) -> Array:
        """E[T | T > entry], by quadrature."""
        flat = np.ravel(floats("z", z))
        means = np.empty(len(flat))
        for i, at in enumerate(flat):
            y, weights = self.outcomes(np.array([at]))
            means[i] = np.sum(weights * y[:, 0] * np.exp(self.log_density(y, np.full(len(y), at))))
        return means.reshape(np.shape(z))

    def outside(self) -> Lifetimes:
        """Lifetimes of other shapes, given that they are longer than the entry."""
        return Lifetimes(float(self.family.shape), self.family.logs, float(self.entry))

    def information(self, z: Array) -> Array:
        """I(z) = 1 for a time that is not censored."""
        return np.ones_like(floats("z", z))

    def curvature_bounds(self, bound: float) -> tuple[float, float]:
        """As without an entry."""
        return self.family.curvature_bounds(bound)

    def outcomes(self, z: Array) -> tuple[Array, Array]:
        """Uncensored outcomes, integrated in the logarithm of a = t^p - entry^p."""
        logs, weights = self.family._log_time_panels(z)
        lived = np.exp(self.family.shape * logs)
        kept = lived > 1e-14 * self.past  # below, t is the entry within rounding
        lived, weights = lived[kept], weights[kept]
        times = self.family._time_after(self.past, lived)
        scale = times if isinstance(self.family, Weibull) else np.ones_like(times)  # d log t = a/(past + a) d log a/p
        return np.column_stack([times, np.ones_like(times)]), weights * scale * lived / (self.past + lived)
