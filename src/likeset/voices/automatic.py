r"""Which voices: what ``voices="auto"`` means, chosen by measurement (docs/patience-measured.md has the tables).

    purpose                              linear models                              function spaces
    inference: nothing announced         patience; from four dimensions on beside   three patiences within windows
                                         windows around directions fixed
                                         beforehand, and windows that open by
                                         themselves (an unknown scale or shape:
                                         see below)
    inference about announced arms,      the same, with windows around the arms     the same, around the arms
    guarantees (``LowerBound``)          and the directions                         where there is no domain
    which arm is best                    duels beside patience, if the arms         as inference
    (``Elimination``)                    are linearly independent; else
                                         as inference
    optimism (``UCB``)                   windows around the arms, half joint,       windows
                                         if one observation tells much; or joint

Patience pays for learning once instead of for ever (:mod:`~likeset.voices.patience`), which makes well-explored
directions narrow first: what inference and certified stops want, and an optimist does not, whom it sends exploring.

Duels compare arms two by two (:mod:`~likeset.voices.duels`), each pair by its own rows: where arms tell nothing about
each other, learning about the others is not paid for.

Windows pay for what had to be learnt near a point. In few dimensions there is little else to learn, and their share of
the error level is better spent on patience. An optimist in a linear model gains from windows where one observation
tells much; where it tells little, little is learnt, and there is nothing to save. The measure is how different the law
of one observation can be for two parameters of Theta: four times the Bhattacharyya distance,

    -4 log integral sqrt( p(y | z = reach/2) p(y | z = -reach/2) ) dy,       reach = B max_i |x_i|,

which is (reach/sigma)^2 / 2 for Gaussian noise. From about three on windows were as good or better in every case
measured; below, the differences went both ways. Half of the error level stays with the joint or the patient voices:
never more than log 2 = 0.7 nats worse than these.

For inference windows stand beside patience. Those that open by themselves (:mod:`~likeset.voices.opening`) do most
where rows come at random. An optimist's rows are few and alike: there windows around directions where nothing was
observed do most, whether these were announced or belong to a net (:mod:`~likeset.voices.net`). With shares of 0.4 for
patience and 0.3 for windows of either kind the set is never far from the best of them.

Without a bound directions have no measure of likeness, so windows only open by themselves, by the ranges of the columns
seen, beside patience with one half; an optimist has the joint set.

Where the scale of Gaussian noise or a shape is unknown inference has patience alone, also from four dimensions on.
Optimism and functions have the joint set, and so has everything with Laplace noise of unknown scale: patience would be
20 to 25 % narrower from some hundreds of rows on, takes some 30 to 50 times as long (a table of four levels with 3000
rows 2.2 seconds, not 0.07), and has no bounds for outcomes that are equal but for rounding.

Families that do not say that a fast kernel serves them keep the joint set: their mixtures are solved for by the dual,
slowly (without a bound, families with a loss of their own, such as Gamma).
"""

from __future__ import annotations

import numpy as np

from likeset._typing import Array
from likeset.families.answers import fast_windows, nuisance, patience_pays
from likeset.families.base import Family
from likeset.families.canonical import canonical_form
from likeset.spaces.base import Space
from likeset.spaces.linear import Linear
from likeset.voices.announced import MOST
from likeset.voices.base import Voices
from likeset.voices.duels import Duels
from likeset.voices.net import alike, net_of_directions
from likeset.voices.opening import OpeningWindows
from likeset.voices.patience import Beside, Patience
from likeset.voices.windows import Correlated, Windows

MUCH = 2.5
ALIKE = 0.4  # correlation of arms in one window of an optimist in a linear model
PATIENT = 0.4  # share of patience beside windows of both kinds, which have equal shares
SEVERAL = 4  # dimensions from which on windows help inference
_SMALLEST = 2.0**-20


PURPOSES = ("optimism", "inference", "largest", "smallest")


def automatic_voices(
    family: Family, space: Space, arms: Array | None = None, purpose: str = "inference"
) -> Voices | None:
    """The voices that were measured to be best for a purpose; None is the joint set."""
    if isinstance(space, Linear):
        return _in_linear_model(family, space, arms, purpose)
    if not fast_windows(family):
        return None
    if not np.isfinite(space.bound):
        return None
    if not isinstance(space, Correlated):
        return None
    if getattr(space, "domain", None) is not None:
        arms = None
    elif arms is None or len(arms) < 2:
        return None
    if purpose == "optimism":
        return Windows.covering(space, arms)
    return Patience(voices=3, ratio=4.0).within(Windows.covering(space, arms, correlation=0.6))


def _in_linear_model(family: Family, space: Linear, arms: Array | None, purpose: str) -> Voices | None:
    bounded = bool(np.isfinite(space.bound))
    if nuisance(family):
        return Patience() if patience_pays(family) and purpose != "optimism" else None
    if not fast_windows(family, bounded):
        return None
    if purpose == "optimism":
        return _around(family, space, arms) if bounded else None
    if bounded and purpose in ("largest", "smallest") and _alone(family, arms):
        return Duels(arms, purpose == "largest")
    if space.dim < SEVERAL:
        return Patience()
    if not bounded:
        return Patience().beside(OpeningWindows())
    centres, correlation = net_of_directions(space.dim), alike(space.dim)
    if arms is not None and len(arms) > 1:
        centres = Windows.covering(space, np.vstack([arms, centres])).centres
    windows = Beside(Windows(centres, correlation), OpeningWindows(correlation=correlation))
    return Patience().beside(windows, PATIENT)


def _alone(family: Family, arms: Array | None) -> bool:
    """Whether arms tell nothing about each other, so that comparing them two by two loses nothing."""
    if arms is None or not 2 <= len(arms) <= MOST or nuisance(family):
        return False
    if canonical_form(family) is None:
        return False
    return len(arms) <= arms.shape[1] and int(np.linalg.matrix_rank(arms)) == len(arms)


def _around(family: Family, space: Linear, arms: Array | None) -> Windows | None:
    """Windows for an optimist in a linear model, where they pay."""
    if arms is None or len(arms) < 2:
        return None
    reach = space.bound * float(np.linalg.norm(arms, axis=1).max())
    much = tells_much(family, reach)
    return Windows.covering(space, arms, correlation=ALIKE, joint_share=0.5) if much else None


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
