"""ConfidenceSequence: the facade that puts family, space, predictor, weighting and ledger together."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from os import PathLike
from typing import Any, Literal

import numpy as np

from likeset.arguments import error_level
from likeset.errors import InvalidArgumentError, PieceError, ShapeError
from likeset.families import FAMILIES
from likeset.families.base import Array, Family
from likeset.ledger import Ledger
from likeset.predictors import (
    PREDICTORS,
    Aggregate,
    Blend,
    Fixed,
    Forecast,
    Forecaster,
    Mixture,
    MixtureForecast,
    PlugIn,
    Predictor,
)
from likeset.predictors.aggregate import started
from likeset.predictors.base import is_piece
from likeset.sets import LikelihoodSet
from likeset.spaces.base import Basis, Embedded, Space
from likeset.weights import WEIGHTINGS, Unweighted, Weigher, Weighting
from likeset.window_choice import automatic_windows
from likeset.windows import WINDOWS, AnyWindows, Membership

_LIKELIHOOD_REACH = 6.0  # |z| up to which a foreign forecast's total probability is looked at


@dataclass
class Running:
    """Everything that changes with an observation."""

    ledger: Ledger
    basis: Basis
    forecaster: Forecaster
    weigher: Weigher
    membership: Membership | None


class ConfidenceSequence:
    r"""Anytime-valid confidence sets for theta, from observations in any adaptive order.

        C_t = { theta in Theta : prod_s [ q_s(y_s|x_s) / p_theta(y_s|x_s) ]^{w_s} <= 1/alpha }

    contains the true theta at all times t at once with probability at least 1 - alpha, if y given x follows the
    ``family`` with z = x'theta and theta lies in the ``space``.

    Parameters
    ----------
    family     the law of y given z, e.g. ``Poisson()``
    space      where theta lives, e.g. ``Linear(dim=3, bound=2.0)``
    alpha      error level in (0, 1)
    predictor  supplies q_s; ``None`` is the hyper-mixture :class:`~likeset.Mixture`, the tightest provable choice here;
               any object with ``forecast(phi)`` and ``observe(phi, y)`` will do
    weighting  supplies w_s in [0, 1]; ``None`` is w = 1
    windows    windows of covariates whose ratios are averaged, see :class:`~likeset.Windows`; ``None`` is one joint set
               of all data; ``"auto"`` is ``Windows.covering(space)`` for function spaces with a finite domain, where it
               is much the tightest, and otherwise the joint set, until :meth:`expect` says what will be asked

    >>> import likeset as ls
    >>> seq = ls.ConfidenceSequence(ls.Poisson(), ls.Linear(dim=2, bound=2.0), alpha=0.05)
    >>> seq.update([1.0, 0.0], 3)                         # one observation
    >>> seq.update([[0.0, 1.0], [1.0, 1.0]], [0, 2])      # several, in order
    >>> s = seq.set
    >>> s.contains([0.5, -0.5])
    True
    >>> low, high = s.interval([[1.0, 0.0]])
    >>> bool(low[0] < 0.5 < high[0])
    True
    """

    def __init__(
        self,
        family: Family,
        space: Space,
        alpha: float = 0.05,
        predictor: Predictor | Forecaster | None = None,
        weighting: Weighting | Weigher | None = None,
        windows: AnyWindows | Literal["auto"] | None = "auto",
    ) -> None:
        if isinstance(family, type) or not isinstance(family, Family):
            raise InvalidArgumentError("family", family, "is not a family", "pass e.g. Poisson() or CustomFamily(...)")
        if isinstance(space, type) or not isinstance(space, Space):
            raise InvalidArgumentError("space", space, "is not a space", "pass e.g. Linear(dim=3, bound=2.0)")
        self.family = family
        self.space = space
        self._alpha = error_level("alpha", alpha)
        self.predictor = Mixture() if predictor is None else predictor
        self.weighting = Unweighted() if weighting is None else weighting
        if not is_piece(self.predictor, Predictor, Forecaster):
            raise InvalidArgumentError(
                "predictor",
                predictor,
                "is not a predictor",
                "pass e.g. FTRL() or an object with forecast and observe",
            )
        if not is_piece(self.weighting, Weighting, Weigher):
            raise InvalidArgumentError(
                "weighting",
                weighting,
                "is not a weighting",
                "pass e.g. BiasWeighting() or an object with weight and observe",
            )
        self.windows = _chosen_windows(windows, family, space)
        self._windows_are_automatic = isinstance(windows, str)
        basis = space.start()
        self._running = Running(
            ledger=Ledger(family, space.covariate_shape),
            basis=basis,
            forecaster=started(self.predictor, family, space),
            weigher=self.weighting.start(family, space) if isinstance(self.weighting, Weighting) else self.weighting,
            membership=None if self.windows is None else self.windows.start(space),
        )
        self._trusted = _cannot_fail(self.predictor) and _cannot_fail(self.weighting)
        self._set: LikelihoodSet | None = None

    def __repr__(self) -> str:
        return (
            f"ConfidenceSequence({self.family!r}, {self.space!r}, alpha={self.alpha:g}, predictor={self.predictor!r}, "
            f"weighting={self.weighting!r}, windows={self.windows!r}) with {self.n_observations} observations"
        )

    @property
    def alpha(self) -> float:
        """The error level; fixed when the sequence starts."""
        return self._alpha

    @property
    def n_observations(self) -> int:
        """Number of observations recorded."""
        return len(self._running.ledger)

    @property
    def forecaster(self) -> Forecaster:
        """The running predictor."""
        return self._running.forecaster

    @property
    def ledger(self) -> Ledger:
        """The record of every observation, weight and forecast; read only."""
        return self._running.ledger

    def expect(self, arms: Any) -> None:
        """Say, before the first observation, which covariates will be asked about.

        With ``windows="auto"`` the sequence then takes windows around these arms (in a linear model, if one observation
        can tell much, see :mod:`~likeset.window_choice`): tighter bounds for them, and as valid, since arms known
        beforehand do not depend on any y. A finite domain, or windows given, stay what they are.
        """
        if self.n_observations:
            raise InvalidArgumentError(
                "arms", arms, f"come after {self.n_observations} observations", "call expect before the first update"
            )
        if self._windows_are_automatic:
            self.windows = automatic_windows(self.family, self.space, self.space.covariates(arms, "arms"))
            self._running.membership = None if self.windows is None else self.windows.start(self.space)
            self._set = None

    def update(self, x: Any, y: Any) -> None:
        """Record one observation, or a batch in order (rows of x, entries of y); survival y: (time, event) pairs.

        All or nothing: after an error the sequence is as it was before the call.
        """
        X, Y = self._checked(x, y)
        if self._trusted and len(X) == 1:
            # Nothing below can fail once the input is checked; skip the copy.
            self._record(self._running, X[0], Y[0])
        else:
            working = _independent_copy(self._running)
            for row, outcome in zip(X, Y, strict=True):
                self._record(working, row, outcome)
            self._running = working
        self._set = None

    @property
    def set(self) -> LikelihoodSet:
        """The confidence set of what has been seen: an immutable snapshot."""
        if self._set is None:
            ledger, membership = self._running.ledger, self._running.membership
            coordinates, terms = ledger.merged.snapshot()
            self._set = LikelihoodSet(
                self.space, self._running.basis, coordinates, terms, ledger.gains.copy(), self.alpha,
                self.family.convex, len(ledger), None if membership is None else membership.table,
            )  # fmt: skip
        return self._set

    def save(self, path: str | PathLike[str]) -> None:
        """Write the sequence to a file that ``likeset.load`` continues bit for bit."""
        from likeset.persistence import save

        save(self, path)

    def _checked(self, x: Any, y: Any) -> tuple[Array, Array]:
        X = self.space.covariates(x)
        if self.family.observation_shape and len(X) == 1 and np.shape(y) == self.family.observation_shape:
            y = [y]  # one pair for one covariate, not two times
        Y = self.family.observations(y)
        if len(X) != len(Y):
            raise ShapeError(
                "y",
                y,
                f"has {len(Y)} observations for {len(X)} covariates",
                "pass one observation for each row of x",
            )
        return X, Y

    def _record(self, running: Running, x: Array, y: Array) -> None:
        """Algorithm 1, one step: embed, forecast, weigh; then, and only then, look at y."""
        ledger = running.ledger
        index = ledger.number(x)
        basis, membership = running.basis, running.membership
        if index is None:
            index = ledger.merged.count
            basis = basis.including(x)
            membership = None if membership is None else membership.including(x)
            coordinates = basis.coordinates(x[None, :])[0][0]
        else:
            coordinates = ledger.merged.coordinates[index]
        missing = basis.dimension - len(coordinates)
        phi = Embedded(x, np.pad(coordinates, (0, missing)) if missing else coordinates, index)

        forecast = running.forecaster.forecast(phi)
        weight = self._checked_weight(running.weigher.weight(phi))
        log_q = self._checked_score(forecast, phi, y)

        running.basis, running.membership = basis, membership
        ledger.append(phi, y, weight, log_q)
        running.forecaster.observe(phi, y)
        running.weigher.observe(phi, y)

    def _checked_weight(self, weight: Any) -> float:
        if isinstance(weight, (float, int)) and 0.0 <= weight <= 1.0:
            return float(weight)
        try:
            number = float(weight)
        except (TypeError, ValueError):
            number = np.nan
        if not 0.0 <= number <= 1.0:
            raise PieceError(
                f"the weighting {self.weighting!r} returned w = {weight!r}, outside [0, 1]; "
                "with w > 1 the ratio is no supermartingale and coverage is lost."
            )
        return number

    def _checked_score(self, forecast: Forecast, phi: Embedded, y: Array) -> float:
        foreign = not _is_density_of(forecast, self.family)
        if foreign:
            self._check_total_probability(forecast, phi, y)
        try:
            log_q = float(np.asarray(forecast.log_density(y)).reshape(()))
        except (TypeError, ValueError) as error:
            raise PieceError(
                f"the forecast {forecast!r} of {self.predictor!r} did not return one number for log_density(y): {error}"
            ) from error
        if np.isnan(log_q) or log_q == np.inf:
            raise PieceError(
                f"the forecast of {self.predictor!r} has log-density {log_q} at y = {y}; "
                "a density must be a number below infinity (zero density, -inf, is allowed)."
            )
        is_probability = self.family.discrete or (self.family.observation_shape == (2,) and y[1] == 0)
        if foreign and is_probability and log_q > 1e-9:
            raise PieceError(
                f"the forecast of {self.predictor!r} gives y = {y} a probability above one (log q = {log_q:.4g}); "
                "normalise it (rule 3 of validity)."
            )
        return log_q

    def _check_total_probability(self, forecast: Forecast, phi: Embedded, y: Array) -> None:
        """Refuse a foreign forecast whose density integrates to more than one, over Theta's reach or around y."""
        reach = min(self.space.bound * float(np.linalg.norm(phi.coordinates)), _LIKELIHOOD_REACH)
        grid = np.linspace(-reach, reach, 7)
        # A spike between nodes fools one rule, hardly two.
        rules = [[self.family.outcomes(grid + shift) for shift in (0.0, 0.37)]]
        if not self.family.discrete and not self.family.observation_shape:
            rules.append([self.family.outcomes(np.array([float(y) + shift])) for shift in (0.0, 0.37)])
        for pair in rules:
            mass = min(self._total_probability(forecast, *rule) for rule in pair)
            if not mass <= 1.001:
                raise PieceError(
                    f"the forecast {forecast!r} of {self.predictor!r} is not a density: it integrates to {mass:.4g} "
                    "over the outcomes; normalise it (rule 3 of validity)."
                )

    def _total_probability(self, forecast: Forecast, y: Array, v: Array) -> float:
        try:
            values = np.asarray(forecast.log_density(y), dtype=np.float64)
        except Exception as error:
            raise PieceError(
                f"the forecast {forecast!r} of {self.predictor!r} failed on an array of outcomes: {error}; "
                "log_density(y) must be vectorised in y."
            ) from error
        if values.shape != v.shape:
            raise PieceError(
                f"the forecast {forecast!r} of {self.predictor!r} returned shape {values.shape} for {len(v)} "
                "outcomes; log_density(y) must be vectorised in y."
            )
        with np.errstate(over="ignore"):
            mass = float(np.sum(v * np.exp(values)))
        return np.inf if np.isnan(mass) else mass


def _chosen_windows(windows: Any, family: Family, space: Space) -> AnyWindows | None:
    if windows is None or (isinstance(windows, WINDOWS) and windows.start(space)):
        return windows
    if isinstance(windows, str) and windows == "auto":
        return automatic_windows(family, space)
    raise InvalidArgumentError("windows", windows, "is no choice of windows", 'pass Windows(...), None or "auto"')


def _is_density_of(forecast: Forecast, family: Family) -> bool:
    """Whether a forecast is a density of this family's outcomes by construction."""
    if type(forecast) is PlugIn or type(forecast) is MixtureForecast:
        own = forecast.family
        same_outcomes = type(own) is type(family) and (not family.discrete or own.settings() == family.settings())
        return own is family or (same_outcomes and type(own) in FAMILIES)
    if type(forecast) is Blend:
        shares = float(np.exp(forecast.log_shares).sum())
        return shares <= 1.0 + 1e-9 and all(_is_density_of(c, family) for c in forecast.components)
    return False


def _cannot_fail(piece: object) -> bool:
    """Whether a piece is a built-in one, started by the sequence itself and made of built-in parts only."""
    if isinstance(piece, Aggregate):
        return all(_cannot_fail(p) for p in piece.predictors)
    if isinstance(piece, Fixed) and piece.function is not None:
        return False
    return type(piece) in (*PREDICTORS, *WEIGHTINGS)


def _independent_copy(running: Running) -> Running:
    try:
        return copy.deepcopy(running)
    except Exception as error:
        raise PieceError(
            f"a predictor or weighting of your own cannot be copied ({error}); updates are all-or-nothing, so it must "
            "support copy.deepcopy: define __deepcopy__."
        ) from error
