"""Logistic noise with known scale: a family with a curve that likeset has never heard of, complete in this file."""

from __future__ import annotations

import math

import numpy as np

from likeset.arguments import floats, positive, real_array
from likeset.elementwise import exp_parts, log_parts
from likeset.families.base import largest_predictor, node_count, observation_vector, panels, predictor_vector
from likeset.families.loss_family import LossFamily
from likeset.losses import Loss

LARGE = 600.0


def logistic(y, z, scale):
    """L = |v| + 2 log(1 + e^-|v|), v = (z - y)/scale, with L' = tanh(v/2)/scale and L'' = 2 s(v) s(-v)/scale^2."""
    v = (z - y) / scale
    e, _ = exp_parts(-abs(v))
    logarithm, _ = log_parts(e)
    small = e / (1.0 + e)
    sign = 1.0 if v > 0.0 else -1.0
    return abs(v) + 2.0 * logarithm, sign * (1.0 - 2.0 * small) / scale, 2.0 * small / ((1.0 + e) * scale * scale)


def logistic_remainder(y, z, u, scale):
    """L is 2 log(1 + e^v) and a line, and D(v, r) = D(-v, -r): with v <= 0, b = s(v), q = b (e^r - 1), r = u/scale,

    D / 2 = log(1 + q) - b r,  for small r [log(1 + q) - q] + b [e^r - 1 - r], which does not cancel.
    """
    v, r = (z - y) / scale, u / scale
    sign = -1.0 if v > 0.0 else 1.0
    r = sign * r
    e, _ = exp_parts(-abs(v))
    b = e / (1.0 + e)
    c = min(r, LARGE)  # beyond, log(1 + q) is a straight line
    growth, remainder = exp_parts(c)
    is_small = abs(r) < 0.25
    gain = remainder + c if is_small else growth - 1.0
    q = b * gain
    logarithm, log_remainder = log_parts(q)
    D = log_remainder + b * remainder if is_small else logarithm + (r - c) - b * r
    bend = b * (1.0 - b) / (1.0 + q)
    return 2.0 * D, 2.0 * sign * bend * gain / scale, 2.0 * bend * growth / ((1.0 + q) * scale * scale)


class Logistic(LossFamily):
    """y = z + scale * standard logistic noise."""

    loss = Loss(logistic, logistic_remainder)

    def __init__(self, scale=1.0):
        self.scale = positive("scale", scale)
        self.parameters = (self.scale,)

    def settings(self):
        return {"scale": self.scale}

    def constant(self, y):
        return -math.log(self.scale)

    def observations(self, y):
        return observation_vector(y)

    def sample(self, z, rng):
        return np.asarray(rng.logistic(real_array("z", z), self.scale))

    def mean(self, z):
        return floats("z", z)

    def curvature_bounds(self, bound):
        largest_predictor(bound)
        return 0.0, 0.5 / self.scale**2

    def outcomes(self, z):
        z = predictor_vector(z)
        low, high = np.min(z) - 40 * self.scale, np.max(z) + 40 * self.scale
        return panels(np.linspace(low, high, 2 + node_count(z, (high - low) / self.scale)), nodes_per_panel=8)


class Subtracting(Logistic):
    """The same without an accurate remainder: what rounding may cost is added to bounds."""

    loss = Loss(logistic)
