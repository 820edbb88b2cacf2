r"""Predictors: who supplies the numerator q_s(y | x_s) of the ratio.

A predictor is *started* for a family and a space; the running object, a :class:`Forecaster`, has two methods,
called in this order at every step:

    forecast(phi) -> Forecast       a frozen density for y at phi: y is not known to anyone yet
    observe(phi, y)                 now y may be used, for later forecasts

Nothing lets a forecaster see the y on which it will be scored; that is the whole condition of validity, with
q being normalised. Any object with these two methods may be passed as ``predictor``; see :class:`Forecaster`.
"""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np

from likeset._solver.evaluate import log_sum_exp
from likeset._typing import Array
from likeset.arguments import real_number
from likeset.embedded import Embedded
from likeset.families.base import Family
from likeset.predictors.belief import Belief
from likeset.spaces.base import Basis, Space


@runtime_checkable
class Forecast(Protocol):
    """A density for the next observation, fixed before it is seen."""

    def log_density(self, y: Array) -> Array:
        """log q(y), for one observation or an array of them (canonical form of the family)."""
        ...


@runtime_checkable
class Forecaster(Protocol):
    """A running predictor: the two methods a user's own must have.

    Example: a scikit-learn regression as forecaster for Gaussian noise. The raw covariate is ``phi.x``.
    :class:`PlugIn` is the family's own density at the predicted z, hence normalised.

    An update that fails is taken back: a copy made by ``copy.deepcopy`` before the first observation is then shown the
    recorded rows again. So a forecaster must support ``deepcopy``; ``observe`` must do the same when it is repeated;
    and what later forecasts depend on must be changed by ``observe`` alone, not by ``forecast``. A forecaster must not
    ask the sequence it serves. All of this holds for a weighting of your own as well.

    >>> from sklearn.linear_model import Ridge
    >>> import likeset as ls
    >>> class RidgeForecaster:
    ...     def __init__(self, family):
    ...         self.family, self.x, self.y = family, [], []
    ...     def forecast(self, phi):
    ...         if not self.x:
    ...             return ls.PlugIn(self.family, 0.0)
    ...         model = Ridge(alpha=0.1).fit(self.x, self.y)
    ...         return ls.PlugIn(self.family, model.predict([phi.x])[0])
    ...     def observe(self, phi, y):
    ...         self.x.append(phi.x)
    ...         self.y.append(float(y))
    >>> family = ls.Gaussian(sigma=0.5)
    >>> seq = ls.ConfidenceSequence(family, ls.Linear(dim=2, bound=3.0), predictor=RidgeForecaster(family))
    >>> seq.update([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [0.9, -0.4, 0.6])
    >>> seq.n_observations
    3
    """

    def forecast(self, phi: Embedded) -> Forecast:
        """The density of y at phi, from past observations only."""
        ...

    def observe(self, phi: Embedded, y: Array) -> None:
        """Take note of the observation (x, y)."""
        ...


@runtime_checkable
class Predictor(Protocol):
    """Settings of a predictor, from which a sequence starts its own :class:`Forecaster`."""

    def start(self, family: Family, space: Space) -> Forecaster:
        """A fresh forecaster."""
        ...


@runtime_checkable
class Gauge(Protocol):
    """A forecaster that says how well it knows z: voices that choose by that may ask it, before y is known."""

    def spread(self, phi: Embedded) -> float:
        """The variance of z = x'theta under what is believed so far, times the information of one y about z."""
        ...


@runtime_checkable
class Believer(Protocol):
    """A forecaster that believes something about theta itself, and shows it: policies may choose by that."""

    def belief(self, space: Space, basis: Basis) -> Belief:
        """What is believed now, frozen, for questions in terms of this basis."""
        ...


def is_piece(thing: object, *protocols: Any) -> bool:
    """Whether an object keeps one of the protocols, with methods where these have methods (a range has a start)."""
    return not isinstance(thing, type) and any(
        isinstance(thing, protocol) and all(callable(getattr(thing, name)) for name in _methods(protocol))
        for protocol in protocols
    )


def _methods(protocol: Any) -> list[str]:
    return [name for name, value in vars(protocol).items() if callable(value) and not name.startswith("_")]


class PlugIn:
    """The family's own density at one value of z.

    >>> from likeset.families import Poisson
    >>> float(PlugIn(Poisson(), 0.0).log_density(np.array(1.0)))
    -1.0
    """

    __slots__ = ("family", "z")

    def __init__(self, family: Family, z: float) -> None:
        self.family = family
        self.z = z if type(z) is float else real_number("z", z)

    def log_density(self, y: Array) -> Array:
        """log p(y | z)."""
        return self.family.log_density(y, np.float64(self.z))  # type: ignore[arg-type]


class Blend:
    """A mixture sum_j pi_j q_j of forecasts; the weights sum to one."""

    __slots__ = ("components", "log_shares")

    def __init__(self, components: list[Forecast], log_shares: Array) -> None:
        self.components = components
        self.log_shares = log_shares

    def log_densities(self, y: Array) -> Array:
        """log q_j(y) of every component along the last axis."""
        return np.stack([np.asarray(c.log_density(y)) for c in self.components], axis=-1)

    def log_density(self, y: Array) -> Array:
        """log sum_j pi_j q_j(y)."""
        return log_sum_exp(self.log_shares + self.log_densities(y))


def updated_shares(log_shares: Array, log_densities: Array) -> Array:
    """Bayes' rule: pi_j <- pi_j q_j(y) / sum_i pi_i q_i(y); unchanged where no component allows y."""
    joint = log_shares + log_densities
    total = log_sum_exp(joint)
    return joint - total if np.isfinite(total) else log_shares
