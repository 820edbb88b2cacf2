r"""Any model at all: confidence sets from a log density and a list of candidates.

The method asks nothing of a model but p_theta(y | x). For candidates theta_1, ..., theta_m with prior weights pi_j,

    q_s(y) = sum_j pi_j,s p_{theta_j}(y | x_s),       pi_j,s proportional to pi_j prod_{r<s} p_{theta_j}(y_r | x_r),

is a normalised density made before y_s, and  R_t(theta) = prod_s q_s(y_s | x_s) / p_theta(y_s | x_s)  ever exceeds
1/alpha at the true theta with probability at most alpha. theta may be anything: vectors of which several z are made
(multinomial, ordinal), rates of a differential equation, the weights of a network.

Nothing is assumed convex, so there are no extrema over all of Theta, as :class:`~likeset.ConfidenceSequence` has them:
membership of any parameter, evidence against finitely many, and what the candidates not refuted say.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from math import inf, log
from typing import Any

import numpy as np

from likeset._solver.evaluate import log_sum_exp
from likeset._typing import Array, Mask
from likeset.arguments import error_level, real_array
from likeset.errors import EmptySetError, InvalidArgumentError, PieceError, ShapeError, _brief

_MASS = 1e-9  # by which probabilities of all outcomes may exceed one


class ModelSequence:
    """Anytime-valid sets for the parameter of any model, from observations at covariates chosen adaptively.

    Parameters
    ----------
    log_density  ``log_density(y, x, theta)``, normalised. With an array of candidates, theta is an array with one row
                 per parameter, and one number per row is returned; with a list of anything, theta is one of them
    candidates   parameters that forecast: an array (m, p), or a list of anything. The truth need not be among them
    alpha        error level in (0, 1)
    weights      prior weights of the candidates; equal if left out
    forecaster   your own numerator instead: ``forecast(x)`` returns an object with ``log_density(y)``, made before y is
                 known, and ``observe(x, y)`` shows it the row
    outcomes     all possible y, where they are finitely many: then every density is checked to add up to one

    Example: three treatments with outcomes "worse", "same", "better": a multinomial logit, two z per observation.

    >>> def logit(y, x, theta):                                # theta (m, 2): log odds of same and better
    ...     z = np.column_stack([np.zeros(len(theta)), theta[:, 0], theta[:, 1] * x])
    ...     return z[:, y] - np.logaddexp.reduce(z, axis=1)
    >>> grid = np.array([[a, b] for a in np.linspace(-2, 2, 9) for b in np.linspace(-2, 2, 9)])
    >>> model = ModelSequence(logit, grid, alpha=0.05, outcomes=[0, 1, 2])
    >>> for y in [2, 2, 1, 2, 0, 2, 2, 2, 1, 2] * 6:
    ...     model.update(1.0, y)
    >>> model.contains([0.5, 1.5]), model.contains([0.0, -1.0])
    (True, False)
    >>> low, high = model.interval(lambda theta: theta[:, 1])        # over the candidates not refuted
    >>> bool(0.0 < low < high)
    True
    """

    def __init__(
        self,
        log_density: Callable[[Any, Any, Any], Any],
        candidates: Any,
        alpha: float = 0.05,
        weights: Any = None,
        forecaster: Any = None,
        outcomes: Any = None,
    ) -> None:
        if not callable(log_density):
            raise InvalidArgumentError("log_density", log_density, "is not callable", "pass log_density(y, x, theta)")
        self._log_density = log_density
        self._stacked = isinstance(candidates, np.ndarray)
        self.candidates: Any = real_array("candidates", candidates) if self._stacked else _listed(candidates)
        if len(np.shape(candidates) if self._stacked else (0, 0)) != 2 or len(self.candidates) == 0:
            raise ShapeError("candidates", candidates, "is no list of parameters", "pass an array (m, p), or a list")
        self.alpha = error_level("alpha", alpha)
        prior = np.ones(len(self.candidates)) if weights is None else real_array("weights", weights)
        if prior.shape != (len(self.candidates),) or (prior < 0).any() or not prior.sum() > 0:
            raise InvalidArgumentError("weights", weights, "are no prior weights", "pass one number >= 0 per candidate")
        with np.errstate(divide="ignore"):
            self._log_prior = np.log(prior / prior.sum())
        if forecaster is not None and not all(callable(getattr(forecaster, n, None)) for n in ("forecast", "observe")):
            raise InvalidArgumentError(
                "forecaster", forecaster, "is no forecaster", "pass an object with forecast(x) and observe(x, y)"
            )
        self._forecaster = copy.deepcopy(forecaster)
        self._outcomes = None if outcomes is None else _listed(outcomes, "outcomes")
        self._rows: list[tuple[Any, Any]] = []  # of which the first ``_count`` count
        self._count = 0
        self._log_likelihoods = np.zeros(len(self.candidates))
        self._log_q = 0.0

    def __repr__(self) -> str:
        return f"<ModelSequence: {len(self.candidates)} candidates, alpha={self.alpha:g}, {self._count} observations>"

    @property
    def n_observations(self) -> int:
        """Number of observations recorded."""
        return self._count

    @property
    def log_numerator(self) -> float:
        """sum_s log q_s(y_s | x_s)."""
        return self._log_q

    def update(self, x: Any, y: Any) -> None:
        """Record one observation. All or nothing: after an error or Ctrl-C the state is the old or the new one."""
        try:
            row = copy.deepcopy((x, y))
        except Exception as error:
            raise PieceError(f"x or y cannot be copied ({_brief(error)}); pass plain values.") from error
        shares = self._shares()
        densities = self._densities(y, x, self.candidates)
        self._check_masses(x)
        forecaster = self._forecaster
        if forecaster is None:
            log_q = float(log_sum_exp(shares + densities))
        else:
            forecaster = copy.deepcopy(forecaster)  # before y: an update that fails leaves it as it was
            log_q = self._scored(forecaster.forecast(x), y)
            forecaster.observe(x, y)
        if not log_q < inf:
            raise PieceError(
                f"the forecast of y = {_brief(y)} has log-density {log_q}; a density is a number below infinity."
            )
        del self._rows[self._count :]
        self._rows.append(row)
        # In one step: an interrupt comes before it, or after.
        self.__dict__.update(
            _count=self._count + 1, _log_likelihoods=self._log_likelihoods + densities, _log_q=self._log_q + log_q,
            _forecaster=forecaster,
        )  # fmt: skip

    def log_ratio(self, theta: Any) -> Any:
        """log R(theta), the evidence against one parameter (or against each row of several), in nats."""
        parameters, single = self._parameters(theta)
        total = np.zeros(len(parameters))
        for x, y in self._rows[: self._count]:
            total = total + self._densities(y, x, parameters)
        ratios = np.full(len(total), -inf) if self._log_q == -inf else self._log_q - total
        return float(ratios[0]) if single else ratios

    def contains(self, theta: Any) -> Any:
        """Whether log R(theta) <= log(1/alpha); one bool, or one per row."""
        ratios = self.log_ratio(theta)
        plausible = ratios <= -log(self.alpha) + 1e-9 * (1.0 + abs(self._log_q))
        return bool(plausible) if np.ndim(ratios) == 0 else plausible

    def evidence(self, thetas: Any) -> float:
        """The log e-value against "theta is one of these": the smallest log R among finitely many parameters.

        p-value: exp(-max(log e, 0)). Against infinitely many, cover them by candidates only if you know how log_density
        varies in between.
        """
        parameters, _ = self._parameters(thetas)
        if not len(parameters):
            raise ShapeError("thetas", thetas, "is empty", "pass at least one parameter")
        return float(np.min(self.log_ratio(parameters)))

    @property
    def plausible(self) -> Mask:
        """Which candidates are not refuted."""
        ratios = np.full(len(self.candidates), -inf) if self._log_q == -inf else self._log_q - self._log_likelihoods
        return np.asarray(ratios <= -log(self.alpha) + 1e-9 * (1.0 + abs(self._log_q)))

    def interval(self, function: Callable[[Any], Any]) -> tuple[float, float]:
        """Smallest and largest value of a function of theta over the candidates not refuted: their union.

        It covers the true value if the truth is among the candidates, and only then.
        """
        if not callable(function):
            raise InvalidArgumentError("function", function, "is not callable", "pass a function of theta")
        kept = np.flatnonzero(self.plausible)
        if not len(kept):
            raise EmptySetError(self.alpha)
        try:
            if self._stacked:
                values = real_array("function(theta)", function(self.candidates[kept]))
            else:
                values = real_array("function(theta)", [function(self.candidates[i]) for i in kept])
        except Exception as error:
            raise PieceError(f"the function of theta failed ({_brief(error)}).") from error
        return float(values.min()), float(values.max())

    # -- inside -------------------------------------------------------------------------------------------------

    def _shares(self) -> Array:
        joint = self._log_prior + self._log_likelihoods
        total = float(log_sum_exp(joint))
        return joint - total if np.isfinite(total) else self._log_prior

    def _parameters(self, theta: Any) -> tuple[Any, bool]:
        if self._stacked:
            array = real_array("theta", theta)
            width = self.candidates.shape[1]
            if array.ndim not in (1, 2) or array.shape[-1] != width:
                raise ShapeError("theta", theta, f"has shape {array.shape}", f"pass parameters of length {width}")
            return np.atleast_2d(array), array.ndim == 1
        if isinstance(theta, list):
            return theta, False
        return [theta], True

    def _densities(self, y: Any, x: Any, parameters: Any) -> Array:
        """log p(y | x) of every parameter, checked."""
        try:
            if self._stacked:
                values = np.asarray(self._log_density(y, x, parameters), dtype=np.float64)
            else:
                values = np.array([self._log_density(y, x, theta) for theta in parameters], dtype=np.float64)
        except Exception as error:
            raise PieceError(f"log_density failed at y = {_brief(y)} ({_brief(error)}).") from error
        if values.shape != (len(parameters),):
            raise PieceError(
                f"log_density returned shape {values.shape} for {len(parameters)} parameters; return one number each."
            )
        if not (values < inf).all():
            raise PieceError(
                f"log_density is {values[~(values < inf)][0]} at y = {_brief(y)}; a density is below infinity."
            )
        return values

    def _check_masses(self, x: Any) -> None:
        """Probabilities of all outcomes add up to one at most, where these are listed."""
        if self._outcomes is None:
            return
        total = np.exp(log_sum_exp(np.stack([self._densities(y, x, self.candidates) for y in self._outcomes], axis=-1)))
        if (total > 1.0 + _MASS).any():
            raise PieceError(
                f"the probabilities of all outcomes add up to {total.max():.6g} at x = {_brief(x)}; normalise them."
            )

    def _scored(self, forecast: Any, y: Any) -> float:
        try:
            if self._outcomes is not None:
                mass = float(sum(np.exp(float(forecast.log_density(outcome))) for outcome in self._outcomes))
                if not mass <= 1.0 + _MASS:
                    raise PieceError(f"the forecast's probabilities add up to {mass:.6g}; normalise them.")
            return float(forecast.log_density(y))
        except PieceError:
            raise
        except Exception as error:
            raise PieceError(f"the forecast {_brief(forecast)} failed ({_brief(error)}).") from error


def _listed(value: Any, name: str = "candidates") -> list[Any]:
    if isinstance(value, (list, tuple, np.ndarray)) and np.ndim(value if isinstance(value, np.ndarray) else 1.0) < 3:
        return list(value)
    raise InvalidArgumentError(name, value, "is no list", "pass a list, or an array with one row each")
