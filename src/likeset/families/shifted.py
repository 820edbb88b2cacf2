r"""The law of y in a row of which more is known than its covariate: offset, exposure, trials, time of entry.

Everything is a function of x'theta, as the engine wants it, and made before y is known:

    offset o       z = x'theta + o: the family's law at a shifted place             (:class:`Shifted`)
    exposure e     mean counts e times as large: an offset of log e                 (Poisson and other counts)
    trials n       the number of successes in n trials instead of one               (``_with_trials`` of the family)
    entry          the lifetime, given that it is longer than this                  (``_with_entry`` of the family)

Where the curve allows it a shift goes into the sums and splits no group: A(z + o) is, up to constants,

    z^2/2 + o z  (quadratic),        e^o e^z  (exponential).

So do noise around z (y - o) and scales e^z (y e^-o). The rest keep items (:mod:`~likeset.families.shifted_items`).
"""

from __future__ import annotations

from math import exp, log
from typing import Any

import numpy as np

from likeset._typing import Array
from likeset.arguments import floats
from likeset.curves import Curve
from likeset.embedded import NOTHING, Given
from likeset.families.answers import breakpoints, canonical_scale, information, size_name
from likeset.families.base import Family
from likeset.families.predictive import Predictive, QuadraturePredictive


def law_of(family: Family, given: Given) -> Family | None:
    """The law of y given x'theta in a row of which this is known; None where it is the family's own.

    >>> from likeset.families import Bernoulli, Poisson
    >>> law_of(Bernoulli(), Given(size=10.0))
    Binomial(trials=10)
    >>> law_of(Poisson(), Given(size=24.0))
    <Poisson() shifted by 3.17805>
    """
    if given == NOTHING:
        return None
    law, shift, growth = family, given.offset, 1.0
    if given.entry > NOTHING.entry:
        law = family._with_entry(given.entry)  # type: ignore[attr-defined]
    if given.size and size_name(family) == "trials":
        law = family._with_trials(int(given.size))  # type: ignore[attr-defined]
    elif given.size:
        shift, growth = shift + log(given.size), given.size
    if shift:
        return Shifted(law, shift, growth * _exp(given.offset))
    return None if law is family else law


class Shifted(Family):
    """The law of ``family`` at z = x'theta + shift, as a law of y given x'theta; ``growth`` is e^shift."""

    def __init__(self, family: Family, shift: float, growth: float | None = None) -> None:
        self.family, self.shift = family, shift
        self.growth = _exp(shift) if growth is None else growth
        self.convex, self.discrete, self.observation_shape = family.convex, family.discrete, family.observation_shape

    def __repr__(self) -> str:
        return f"<{self.family!r} shifted by {self.shift:g}>"

    def settings(self) -> dict[str, float]:
        """The family's, and the shift."""
        return self.family.settings() | {"shift": self.shift}

    def observations(self, y: Any) -> Array:
        """As the family takes them."""
        return self.family.observations(y)

    def log_density(self, y: Array, z: Array) -> Array:
        """log p(y | z + shift)."""
        return self.family.log_density(y, self._moved(z))

    def derivatives(self, y: Array, z: Array) -> tuple[Array, Array]:
        """Of log p(y | z + shift) in z."""
        return self.family.derivatives(y, self._moved(z))

    def sample(self, z: Array, rng: np.random.Generator) -> Array:
        """One y per entry of z."""
        return self.family.sample(self._moved(z), rng)

    def mean(self, z: Array) -> Array:
        """E[y | z + shift]."""
        return self.family.mean(self._moved(z))

    def outcomes(self, z: Array) -> tuple[Array, Array]:
        """Nodes for the laws at z + shift."""
        return self.family.outcomes(self._moved(z))

    def breakpoints(self, z: float) -> Array:
        """Edges for densities like p(. | z + shift)."""
        return breakpoints(self.family, z + self.shift)

    def information(self, z: Array) -> Array:
        """I(z + shift)."""
        return information(self.family, self._moved(z))

    def curvature_bounds(self, bound: float) -> tuple[float, float]:
        """Over |z| <= bound, hence as far as bound + |shift|; where the curve is e^z the shift is a factor."""
        if getattr(self.family, "curve", None) == Curve.EXPONENTIAL:
            mu, L = self.family.curvature_bounds(bound)
            return self.growth * mu, self.growth * L
        return self.family.curvature_bounds(bound + abs(self.shift))

    def predictive(self, mean: Array, sd: Array, reach: float) -> Predictive:
        """The family's own, around means that are shifted."""
        own = getattr(self.family, "predictive", None)
        if own is None:
            return QuadraturePredictive(self, mean, sd, reach)
        return own(mean + self.shift, sd, reach + abs(self.shift))  # type: ignore[no-any-return]

    @property
    def stays_shifted(self) -> bool:
        """Whether sums of a curve cannot absorb the shift: softplus."""
        return getattr(self.family, "curve", None) == Curve.SOFTPLUS

    # -- for sums ------------------------------------------------------------------------------------------------

    @property
    def curve(self) -> Curve:
        """The family's curve."""
        return self.family.curve  # type: ignore[attr-defined, no-any-return]

    @property
    def look_ahead(self) -> tuple[float, float]:
        """(a, s) of the log-partition a A(z) - s z."""
        scale = canonical_scale(self.family)
        assert scale is not None
        if self.curve == Curve.QUADRATIC:
            return scale, -scale * self.shift
        return scale * (1.0 if self.stays_shifted else self.growth), 0.0

    def statistics(self, y: Array) -> tuple[Array, Array, Array]:
        """(a, s, c) with -log p(y | z + shift) = a A(z) - s z - c: the shift is absorbed by the curve."""
        assert not self.stays_shifted
        a, s, c = self.family.statistics(y)  # type: ignore[attr-defined]
        if self.curve == Curve.QUADRATIC:
            return a, s - a * self.shift, c + self.shift * (s - 0.5 * a * self.shift)
        return a * self.growth, s, c + s * self.shift

    def reference(self, y: Array) -> float:
        """A place where y is likely."""
        return float(self.family.reference(y)) - self.shift  # type: ignore[attr-defined]

    def statistics_from(self, y: Array, origin: float) -> tuple[float, float, float]:
        """The same counted from an origin: differences from it are not changed by a shift."""
        a, s, c = self.family.statistics_from(y, origin + self.shift)  # type: ignore[attr-defined]
        return (a if self.curve == Curve.QUADRATIC else a * self.growth), s, c

    def _moved(self, z: Any) -> Array:
        return floats("z", z) + self.shift


def _exp(x: float) -> float:
    return exp(x) if x < 709.0 else float("inf")
