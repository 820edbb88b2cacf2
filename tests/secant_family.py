"""Hyperbolic-secant noise with known scale: a family that likeset has never heard of, complete in this file."""

from __future__ import annotations

import math

import numpy as np

from likeset.arguments import floats, positive, real_array
from likeset.elementwise import exp_parts, log_parts
from likeset.families.base import largest_predictor, node_count, observation_vector, panels, predictor_vector
from likeset.families.loss_family import LossFamily
from likeset.losses import Loss

LARGE = 600.0


def log_cosh(y, z, scale):
    """L = log cosh v = |v| + log(1 + e^-2|v|) - log 2, v = (z - y)/scale; L' = tanh(v)/scale.

    L'' = 1/(scale cosh v)^2.
    """
    v = (z - y) / scale
    e, _ = exp_parts(-2.0 * abs(v))
    logarithm, _ = log_parts(e)
    small = e / (1.0 + e)
    sign = 1.0 if v > 0.0 else -1.0
    value = abs(v) + logarithm - math.log(2.0)
    return value, sign * (1.0 - 2.0 * small) / scale, 4.0 * small / ((1.0 + e) * scale * scale)


def log_cosh_remainder(y, z, u, scale):
    """With w = 2v and r = 2u/scale, log cosh v is log(1 + e^w) and a line, and D(w, r) = D(-w, -r): with w <= 0,

    b = 1/(1 + e^-w) and q = b (e^r - 1),  D = log(1 + q) - b r,  for small r [log(1 + q) - q] + b [e^r - 1 - r].
    """
    w, r = 2.0 * (z - y) / scale, 2.0 * u / scale
    sign = -1.0 if w > 0.0 else 1.0
    r = sign * r
    e, _ = exp_parts(-abs(w))
    b = e / (1.0 + e)
    c = min(r, LARGE)  # beyond, log(1 + q) is a straight line
    growth, remainder = exp_parts(c)
    is_small = abs(r) < 0.25
    gain = remainder + c if is_small else growth - 1.0
    q = b * gain
    logarithm, log_remainder = log_parts(q)
    D = log_remainder + b * remainder if is_small else logarithm + (r - c) - b * r
    bend = b * (1.0 - b) / (1.0 + q)
    return D, 2.0 * sign * bend * gain / scale, 4.0 * bend * growth / ((1.0 + q) * scale * scale)


class Secant(LossFamily):
    """y = z + scale * noise of density 1/(pi cosh)."""

    loss = Loss(log_cosh, log_cosh_remainder)

    def __init__(self, scale=1.0):
        self.scale = positive("scale", scale)
        self.parameters = (self.scale,)

    def settings(self):
        return {"scale": self.scale}

    def constant(self, y):
        return -math.log(math.pi * self.scale)

    def observations(self, y):
        return observation_vector(y)

    def sample(self, z, rng):
        z = real_array("z", z)
        return z + self.scale * np.log(np.tan(0.5 * np.pi * rng.uniform(1e-300, 1.0, size=z.shape)))

    def mean(self, z):
        return floats("z", z)

    def curvature_bounds(self, bound):
        largest_predictor(bound)
        return 0.0, 1.0 / self.scale**2

    def outcomes(self, z):
        z = predictor_vector(z)
        low, high = np.min(z) - 40 * self.scale, np.max(z) + 40 * self.scale
        return panels(np.linspace(low, high, 2 + node_count(z, (high - low) / self.scale)), nodes_per_panel=8)


class Subtracting(Secant):
    """The same without an accurate remainder: what rounding may cost is added to bounds."""

    loss = Loss(log_cosh)
