r"""How much mass a density has: adaptive quadrature that reports its own error, and breakpoints at every scale.

Each panel is integrated by the Gauss rule of 7 nodes and by its Kronrod extension to 15; where they disagree the panel
is cut in four. So it is where the density at an end is not what the nearest nodes suggest: a jump beyond the last node
is seen by neither rule. All panels of a round are evaluated in one call: a vectorised density is called a few times.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from likeset._typing import Array

# Nodes on [0, 1) from the outside in, and weights, of Kronrod's rule of order 15; every second one is a Gauss node.
_HALF = [0.9914553711208126, 0.9491079123427585, 0.8648644233597691, 0.7415311855993945,
         0.5860872354676911, 0.4058451513773972, 0.2077849550078985, 0.0]  # fmt: skip
_HALF_KRONROD = [0.0229353220105292, 0.0630920926299786, 0.1047900103222502, 0.1406532597155259,
                 0.1690047266392679, 0.1903505780647854, 0.2044329400752989, 0.2094821410847278]  # fmt: skip
_HALF_GAUSS = [0.0, 0.1294849661688697, 0.0, 0.2797053914892767, 0.0, 0.3818300505051189, 0.0, 0.4179591836734694]
NODES = np.array([-t for t in _HALF] + _HALF[-2::-1])
KRONROD = np.array(_HALF_KRONROD + _HALF_KRONROD[-2::-1])
GAUSS = np.array(_HALF_GAUSS + _HALF_GAUSS[-2::-1])

_END = 1.0 - 1e-6  # inside the panel: what happens at a breakpoint itself has no mass
_ALL_NODES = np.concatenate([[-_END], NODES, [_END]])
# The parabola through the first three nodes, at -_END (Lagrange), and the width that lies outside the first node.
_OUTER = np.array([np.prod([(-_END - NODES[j]) / (NODES[i] - NODES[j]) for j in range(3) if j != i]) for i in range(3)])
_GAP = 1.0 + NODES[0]

_PANEL_ERROR = 3e-8  # a panel whose error is below this is done
_ROUNDS = 14  # a jump is then enclosed to 4^-14 of its panel
_LARGEST_CALL = 60_000  # nodes; a density that still needs more keeps its error
_RATIO = 4.0  # of consecutive distances: a smooth density of any width is resolved by one or two panels per side


@dataclass(frozen=True, slots=True)
class Mass:
    """Integrals over consecutive panels, and how wrong each may be (an estimate, not a proof)."""

    integral: Array
    error: Array

    @property
    def lower(self) -> float:
        """The least total that is credible."""
        return float(np.sum(self.integral) - np.sum(self.error))

    @property
    def upper(self) -> float:
        """The largest total that is credible."""
        return float(np.sum(self.integral) + np.sum(self.error))


def integrate(log_density: Callable[[Array], Array], edges: Array) -> Mass:
    r"""∫ exp(log_density(y)) dy over every panel between consecutive sorted ``edges``.

    >>> mass = integrate(lambda y: -0.5 * y * y - 0.5 * np.log(2 * np.pi), np.linspace(-9.0, 9.0, 7))
    >>> abs(float(mass.integral.sum()) - 1.0) < 1e-9
    True
    """
    left, right = edges[:-1], edges[1:]
    owner = np.arange(len(left))
    integral, error = np.zeros(len(left)), np.zeros(len(left))
    for remaining in reversed(range(_ROUNDS)):
        value, wrong = _both_rules(log_density, left, right)
        rough = wrong > _PANEL_ERROR
        if (
            not remaining
            or 4 * len(_ALL_NODES) * np.count_nonzero(rough) > _LARGEST_CALL
            or not np.isfinite(value).all()
        ):
            rough = np.zeros(len(left), dtype=bool)
        done = ~rough
        np.add.at(integral, owner[done], value[done])
        np.add.at(error, owner[done], wrong[done])
        if done.all():
            break
        cuts = left[rough, None] + (right - left)[rough, None] * np.array([0.0, 0.25, 0.5, 0.75, 1.0])
        cuts[:, -1] = right[rough]
        left, right = cuts[:, :-1].ravel(), cuts[:, 1:].ravel()
        owner = np.repeat(owner[rough], 4)
    return Mass(integral, error)


def _both_rules(log_density: Callable[[Array], Array], left: Array, right: Array) -> tuple[Array, Array]:
    half = 0.5 * (right - left)
    nodes = (left + half)[:, None] + half[:, None] * _ALL_NODES
    with np.errstate(over="ignore", invalid="ignore"):
        everywhere = np.exp(log_density(nodes.ravel())).reshape(nodes.shape)
        density = everywhere[:, 1:-1]
        kronrod = density @ KRONROD
        difference = half * np.abs(kronrod - density @ GAUSS)
        spread = half * (np.abs(density - 0.5 * kronrod[:, None]) @ KRONROD)
        # Kronrod's rule is far better than the difference says, once that is small against the variation (QUADPACK).
        relative = np.divide(200.0 * difference, spread, out=np.zeros_like(spread), where=spread > 0.0)
        ends = np.abs(everywhere[:, 0] - density[:, :3] @ _OUTER) + np.abs(
            everywhere[:, -1] - density[:, -1:-4:-1] @ _OUTER
        )
        return half * kronrod, spread * np.minimum(1.0, relative) ** 1.5 + half * _GAP * ends


def around(centre: float, smallest: float, largest: float) -> Array:
    """Breakpoints at geometric distances on both sides of ``centre``, itself included."""
    steps = distances(smallest, largest)
    return np.concatenate([centre - steps[::-1], [centre], centre + steps])


def distances(smallest: float, largest: float) -> Array:
    """A geometric sequence from ``smallest`` to ``largest`` and a little beyond."""
    first, last, step = np.log(smallest), np.log(largest), np.log(_RATIO)
    return np.exp(first + step * np.arange(2.0 + int(max((last - first) / step, 1.0))))


def nearest_scale(y: float) -> float:
    """The smallest distance from y that is looked at: 1e-12, less where y itself is small, never below rounding."""
    scale = min(1e-12, 1e-6 * abs(y)) if y else 1e-12
    return max(scale, 16.0 * float(np.spacing(abs(y))), 1e-307)
