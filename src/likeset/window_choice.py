r"""Windows or not: what ``windows="auto"`` means, chosen by measurement (docs/windows.md).

Function spaces get windows that cover their finite domain, or the arms if these are known.

Linear models get windows around their arms, if these are known, and if there is much to learn. A joint set pays for
learning every direction of theta, windows for less of that and for log K besides, K their number. Where few
observations say little, the first is small. The measure is how far apart two parameters of Theta can be in the eyes of
one observation, the Kullback-Leibler divergence in nats

    KL( p(. | z = reach/2)  |  p(. | z = -reach/2) ),       reach = B max_i |x_i|,

for Gaussian noise (reach/sigma)^2 / 2. From ``MUCH`` nats on windows were better, below they were not. Half of the
error level stays with the joint window: never more than log 2 = 0.7 nats worse than the joint set.
"""

from __future__ import annotations

import numpy as np

from likeset.families.base import Family
from likeset.spaces.base import Array, Space
from likeset.spaces.linear import Linear
from likeset.windows import Correlated, Windows

MUCH = 2.5
_SMALLEST = 2.0**-40


def automatic_windows(family: Family, space: Space, arms: Array | None = None) -> Windows | None:
    """Windows where they were measured to be better, else None: the joint set. So also where norms are unlimited."""
    if not np.isfinite(space.bound) or not isinstance(space, Correlated):
        return None
    if getattr(space, "domain", None) is not None:
        return Windows.covering(space)
    if arms is None or len(arms) < 2:
        return None
    if not isinstance(space, Linear):
        return Windows.covering(space, arms)
    reach = space.bound * float(np.linalg.norm(arms, axis=1).max())
    return Windows.covering(space, arms, correlation=0.4, joint_share=0.5) if tells_much(family, reach) else None


def tells_much(family: Family, reach: float) -> bool:
    """Whether z = reach/2 and z = -reach/2 are ``MUCH`` nats apart for one observation.

    >>> from likeset.families import Bernoulli, Gaussian
    >>> tells_much(Gaussian(0.2), 1.0), tells_much(Gaussian(1.0), 1.0), tells_much(Bernoulli(), 2.0)
    (True, False, False)
    """
    # The divergence grows with the reach: going up from small ones, extremes that overflow are never evaluated.
    shorter = reach * _SMALLEST
    while shorter < reach:
        if nats_apart(family, 0.5 * shorter) >= MUCH:
            return True
        shorter *= 2.0
    return nats_apart(family, 0.5 * reach) >= MUCH


def nats_apart(family: Family, z: float) -> float:
    """KL( p(. | z) | p(. | -z) ) by quadrature or enumeration."""
    y, weights = family.outcomes(np.array([z, -z]))
    log_p, log_q = (family.log_density(y, np.full(len(y), at)) for at in (z, -z))
    likely = log_p > -700.0
    gap = np.where(likely, log_p, 0.0) - np.where(likely, log_q, 0.0)
    return float(np.sum(weights * np.exp(log_p) * gap))
