r"""What is believed of theta and of the shape of a Weibull law together.

A grid of shapes p_k, and one belief N(m_j, S_j) about theta for each prior, fitted at a running estimate of the shape.
-z/p is where lifetimes are, on the scale of log t, and that is what data tell best: for another shape p_k the belief
about z is moved to m_j p_k / p. Components are pairs (lambda_j, p_k), the latter running faster; each is a mixture of
Weibull densities over a few z, hence a density, whatever the quality of the belief.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np

from likeset._solver.evaluate import evaluate_terms, log_sum_exp
from likeset._solver.linalg.matrix import cholesky
from likeset._solver.linalg.threads import SingleThreadedBlas
from likeset._solver.newton import Goal, curve_sum, newton_ball
from likeset._typing import Array
from likeset.embedded import Embedded
from likeset.families.base import Family
from likeset.families.beliefs import Beliefs
from likeset.families.fitted_posterior import MODE_GAP, FittedPosterior
from likeset.families.outside import Believed
from likeset.families.shape_sums import ShapeSums
from likeset.state_checks import expect_array

NODES = 12
_REACH = 600.0  # |z| of a node


class ShapePredictive:
    """sum_i v_i p(y | z_ji, p_j) for J pairs of a belief about z and a shape."""

    def __init__(self, shapes: Array, mean: Array, sd: Array, jacobian: float) -> None:
        nodes, self.log_weights = _rule()
        self.shapes, self.jacobian = shapes, jacobian
        self.z = np.clip(mean[:, None] + np.minimum(sd, _REACH)[:, None] * nodes, -_REACH, _REACH)

    def log_densities(self, y: Array) -> Array:
        """log q_j(y) along a new last axis of length J; y are pairs (time or its logarithm, event)."""
        y = np.asarray(y, dtype=np.float64)
        with np.errstate(divide="ignore"):
            log_time = (np.log(y[..., 0]) if self.jacobian else y[..., 0])[..., None, None]
        event = y[..., 1][..., None, None]
        p = self.shapes[:, None]
        with np.errstate(over="ignore", invalid="ignore"):
            hazard = np.exp(p * log_time + self.z)
            values = event * (self.z + np.log(p) + (p - self.jacobian) * log_time) - hazard
        return log_sum_exp(self.log_weights + values)

    def count_for(self, family: Family) -> int | None:
        """Nobody's but its own family's: foreign forecasts made of these are inspected."""
        return None


class ShapePosterior(FittedPosterior):
    """Beliefs about theta at a running estimate of the shape."""

    def __init__(self, sums: ShapeSums, priors: Array, shapes: Array) -> None:
        super().__init__(sums, priors)  # type: ignore[arg-type]
        self.shapes, self.shape = shapes, 1.0

    @property
    def components(self) -> int:
        """Number of densities that are blended."""
        return len(self.shapes) * len(self.beliefs.priors)

    def predict(self, phi: Embedded) -> tuple[Array, Array]:
        """Mean of z and its standard deviation for every component."""
        mean, sd = super().predict(phi)
        return np.outer(mean, self.shapes / self.shape).ravel(), np.repeat(sd, len(self.shapes))

    def believed_of_z(self, shares: Array, mean: Array, sd: Array) -> Believed:
        """z at the running estimate of the shape, and that."""
        sums: Any = self.data.sums
        at_shape = mean * np.tile(self.shape / self.shapes, len(self.beliefs.priors))
        centre = float(shares @ at_shape)
        variance = float(shares @ (sd**2 + (at_shape - centre) ** 2))
        return Believed(centre, float(np.sqrt(variance)), self.shape, sums.length)

    def predictive(self, mean: Array, sd: Array, phi: Embedded) -> ShapePredictive:
        """The forecasts of all components, from what ``predict`` returned."""
        shapes = np.tile(self.shapes, len(self.beliefs.priors))
        sums: Any = self.data.sums
        return ShapePredictive(shapes, mean, sd, sums.jacobian)

    def fit(self) -> None:
        """The shape for the locations believed before; then modes and curvatures at it."""
        sums: Any = self.data.sums
        X, terms = self.data.coordinates, sums.snapshot(self.data.count)
        means, factors = self.beliefs.writable()
        middle = len(means) // 2
        shape = terms.likely((X @ means[middle]) / self.shape)
        means *= shape / self.shape
        self.shape = shape
        at, _ = terms.at(shape)
        with SingleThreadedBlas():
            for j, prior in enumerate(self.beliefs.priors):
                goal = Goal(MODE_GAP, iterations=50)
                means[j] = newton_ball(curve_sum(X, at), 0.5 * prior, math.inf, means[j], goal).theta
                cholesky((X.T * evaluate_terms(at, X @ means[j])[2]) @ X, prior, factors[j])

    def evidence(self) -> None:
        """Of theta and of the shape together: not known in other units."""

    def believed(self, shares: Array) -> tuple[Beliefs, Array, Array]:
        """Of theta alone, at the running estimate of the shape."""
        total = shares.reshape(len(self.beliefs.priors), len(self.shapes)).sum(axis=1)
        return self.settled(), total, np.ones(len(total))

    def state(self) -> dict[str, Array]:
        """Data, beliefs and the shape they were fitted at."""
        return super().state() | {"shape": np.array([self.shape])}

    def restore(self, state: dict[str, Array]) -> None:
        """The inverse of ``state``."""
        super().restore(state)
        shape = float(expect_array(state, "shape", (1,))[0])
        if not shape > 0.0:
            raise ValueError(f"shape = {shape} is not positive")
        self.shape = shape


@cache
def _rule() -> tuple[Array, Array]:
    nodes, weights = np.polynomial.hermite_e.hermegauss(NODES)
    return nodes, np.log(weights / weights.sum())
