r"""Windows or not: what ``windows="auto"`` means, chosen by measurement (docs/windows.md).

Function spaces get windows that cover their finite domain; without a domain, the arms, if these are known.

Linear models get windows around their arms, if these are known and one observation can tell much. A joint set pays for
learning every direction of theta; windows pay for fewer directions, and for log K besides, K their number. Where
observations tell little, little is learnt, and there is nothing to save. The measure is how different the law of one
observation can be for two parameters of Theta: four times the Bhattacharyya distance,

    -4 log integral sqrt( p(y | z = reach/2) p(y | z = -reach/2) ) dy,       reach = B max_i |x_i|,

which is (reach/sigma)^2 / 2 for Gaussian noise. From about three on windows were as good or better in every case
measured; below, the differences went both ways. Half of the error level stays with the joint window: never more than
log 2 = 0.7 nats worse than the joint set.

Families of the user's own keep the joint set: their windows are solved for by the dual, slowly.
"""

from __future__ import annotations

import numpy as np

from likeset._typing import Array
from likeset.families.base import CurveFamily, Family
from likeset.families.laplace import Laplace
from likeset.spaces.base import Space
from likeset.spaces.linear import Linear
from likeset.voices.windows import Correlated, Windows

MUCH = 2.5
_SMALLEST = 2.0**-20


def automatic_windows(family: Family, space: Space, arms: Array | None = None) -> Windows | None:
    """Windows where they were measured to be better, else None: the joint set. So also where norms are unlimited."""
    solved_fast = isinstance(family, CurveFamily | Laplace)
    if not solved_fast or not np.isfinite(space.bound) or not isinstance(space, Correlated):
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
    """Whether the laws at z = reach/2 and z = -reach/2 differ by ``MUCH`` or more.

    >>> from likeset.families import Bernoulli, Gaussian
    >>> tells_much(Gaussian(0.2), 1.0), tells_much(Gaussian(1.0), 1.0), tells_much(Bernoulli(), 2.0)
    (True, False, False)
    """
    # The difference grows with the reach: going up from small ones, those that overflow are never evaluated.
    shorter = min(reach, _SMALLEST)
    while shorter < reach:
        if difference(family, 0.5 * shorter) >= MUCH:
            return True
        shorter *= 4.0
    return difference(family, 0.5 * reach) >= MUCH


def difference(family: Family, z: float) -> float:
    """-4 log of the integral of sqrt( p(y | z) p(y | -z) ), by quadrature or enumeration."""
    y, weights = family.outcomes(np.array([z, -z]))
    log_densities = [family.log_density(y, np.full(len(y), at)) for at in (z, -z)]
    overlap = float(np.sum(weights * np.exp(0.5 * (log_densities[0] + log_densities[1]))))
    return -4.0 * float(np.log(overlap)) if overlap > 0.0 else np.inf
