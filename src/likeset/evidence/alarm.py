r"""The alarm: a voice whose numerator can be right where the model is wrong.

The set is empty when the data refute every theta, but only a numerator that is *better* than all of them can show that,
and one with the model's own noise never is. So one more voice hears everything, with a tenth of the error level and a
numerator q' from outside the model: a Bayes mixture of laws with other scales, shapes and tails
(:mod:`likeset.families.alternatives`), and of the same noise with an intercept and a parameter beyond the bound.

    R' = 0.9 R + 0.1 prod_s [ q'_s / p_theta ]^{w_s}
    prod (q'/p)^w = exp(excess) prod (q/p)^w,              excess = sum_s w_s log(q'_s / q_s)

R' is an average of supermartingales at the truth: same guarantee, log(10/9) = 0.105 nats dearer at most. Since the
excess is a number, the voice is the joint one with another share, and no kernel sees anything new.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, log, log1p
from typing import Any

import numpy as np

from likeset._solver.problem import VoiceTable
from likeset._typing import Array
from likeset.embedded import Embedded
from likeset.errors import InvalidArgumentError
from likeset.families.alternatives import alternatives
from likeset.families.base import Family
from likeset.families.shifted import Shifted
from likeset.predictors import Mixture
from likeset.spaces.base import Space
from likeset.spaces.linear import Linear
from likeset.undo import Undo

SHARE = 0.1
WIDER = 4.0  # times the bound: how far the alarm's own beliefs reach
OWN = "the same noise, with an intercept or a parameter beyond the bound"


@dataclass(frozen=True)
class Diagnosis:
    """What beat the model's forecasts, and by how much.

    names      laws outside the model
    nats       by which each of them forecast better than the model did (negative: worse), in order of ``names``
    refuted    whether the set is empty: a certified alarm
    alpha      the error level
    """

    names: tuple[str, ...]
    nats: Array
    refuted: bool
    alpha: float

    def __str__(self) -> str:
        best = int(np.argmax(self.nats)) if len(self.nats) else -1
        if best < 0 or self.nats[best] <= 0.0:
            beaten = "nothing outside the model forecast better than the model did"
        else:
            beaten = f"{self.names[best]} forecast better than the model, by {self.nats[best]:.1f} nats"
        if self.refuted:
            return f"the model is refuted at level {self.alpha:g}: {beaten}"
        return f"the model is not refuted: {beaten}"


class Alarm:
    """Forecasts from outside the model, running; built for one family and space."""

    def __init__(self, family: Family, space: Space) -> None:
        if not alternatives(family):
            raise InvalidArgumentError(
                "alarm", family, "has no laws outside it that are known", "leave the alarm out for this family"
            )
        self.family = family
        bound = space.bound if space.bound < inf else 10.0
        precisions = np.array([0.03, 0.3, 3.0, 30.0]) / bound**2
        self.believer = Mixture(precisions.tolist()).start(family, Linear(2, WIDER * bound))
        self.names = (OWN, *(one.name for one in alternatives(family)))
        self.logs = np.zeros(len(self.names))  # sum log q_j, less log q
        self.log_shares = np.full(len(self.names), -log(len(self.names)))
        self.excess, self.lost = 0.0, False

    def remember(self, undo: Undo, phi: Embedded) -> None:
        """Before ``record`` of an observation at phi: keep what it will change."""
        undo.keep(self)
        self.believer.remember(undo, self._seen(phi))

    def record(self, phi: Embedded, y: Array, weight: float, log_q: float) -> None:
        """One observation, forecast by the model with log-density ``log_q``."""
        seen = self._seen(phi)
        made = self.believer.forecast(seen)
        mean, sd = self.believer.belief_about_z()
        law: Any = phi.law_or(self.family)
        shift = 0.0
        if isinstance(law, Shifted):
            law, shift = law.family, law.shift
        laws = alternatives(law)
        own = float(np.ravel(made.log_density(y))[0])
        found = np.array([own, *(one.log_density(y, mean + shift, sd) for one in laws)])
        found = np.where(np.isnan(found), -inf, found)
        if weight > 0.0:
            with np.errstate(invalid="ignore"):
                mixed = float(np.logaddexp.reduce(self.log_shares + found))
                if log_q == -inf or mixed == -inf:
                    self.lost = self.lost or log_q == -inf
                    added = 0.0 if log_q == -inf else -inf
                else:
                    added = weight * (mixed - log_q)
                self.excess += added
                posterior = self.log_shares + found
                if mixed > -inf:
                    self.log_shares = posterior - mixed
                if log_q > -inf:
                    self.logs = self.logs + weight * (found - log_q)
        self.believer.observe(seen, y)

    def heard(self) -> Heard:
        """What a snapshot keeps."""
        return Heard(self.names, self.logs, self.excess, self.lost)

    def _seen(self, phi: Embedded) -> Embedded:
        """phi with an intercept, as its first coordinate."""
        coordinates = np.concatenate([[1.0], phi.coordinates])
        return Embedded(phi.x, coordinates, phi.index, phi.outside, phi.given, phi.law)


@dataclass(frozen=True)
class Heard:
    """The alarm at one moment; ``lost``: the model gave an outcome density zero, and the comparison ends."""

    names: tuple[str, ...]
    nats: Array
    excess: float
    lost: bool

    def beside(self, voices: VoiceTable, groups: int) -> VoiceTable:
        """The voices with nine tenths of the error level, and the alarm with the rest."""
        shares = voices.log_shares + log1p(-SHARE)
        own = log(SHARE) + self.excess
        if groups == 0 or self.lost or not own > -inf:
            return VoiceTable(voices.starts, voices.members, shares)
        (whole,) = np.nonzero(np.diff(voices.starts) == groups)
        if len(whole):  # a voice that hears everything is there: two with the same members are one
            shares[whole[0]] = np.logaddexp(shares[whole[0]], own)
            return VoiceTable(voices.starts, voices.members, shares)
        starts = np.append(voices.starts, voices.starts[-1] + groups)
        return VoiceTable(starts, np.concatenate([voices.members, np.arange(groups)]), np.append(shares, own))
