r"""The alarm: a voice whose numerator can be right where the model is wrong.

The set is empty when the data refute every theta, but only a numerator that is *better* than all of them can show that,
and one with the model's own noise never is. So one more voice hears everything, with a tenth of the error level and a
numerator q' from outside the model: a Bayes mixture of laws with other scales, shapes and tails around the z that the
model believes in (:mod:`likeset.families.alternatives`), and of the same noise around a mean that is shifted or bent
(:mod:`likeset.evidence.corrections`).

    R' = 0.9 R + 0.1 prod_s [ q'_s / p_theta ]^{w_s}
    prod (q'/p)^w = exp(excess) prod (q/p)^w,              excess = sum_s w_s log(q'_s / q_s)

R' is an average of supermartingales at the truth: same guarantee, log(10/9) = 0.105 nats dearer at most. Since the
excess is a number, the voice is the joint one with another share, and no kernel sees anything new. Where no voice hears
everything (windows), it is one voice more.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, inf, log, log1p
from typing import Any

import numpy as np

from likeset._solver.nuisance import EitherGain, Gain, PlainGain, ScaleTerms
from likeset._solver.problem import VoiceTable
from likeset._typing import Array
from likeset.arguments import flag
from likeset.embedded import Embedded
from likeset.errors import InvalidArgumentError
from likeset.evidence.corrections import Bend, Shift
from likeset.families.answers import outside
from likeset.families.base import Family
from likeset.families.outside import Believed, Outside
from likeset.families.shifted import Shifted
from likeset.predictors import Mixture
from likeset.state_checks import expect_log_shares, expect_shape
from likeset.undo import Undo

SHARE = 0.1
CLEARLY = 3.0  # nats: below, what one of many laws is ahead by is chance
CORRECTED = (
    "the same noise around a shifted mean (is an intercept missing?)",
    "the same noise around a bent mean (powers of the forecast)",
)


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

    @property
    def beaten(self) -> str:
        """The law that forecast best, if it was better than the model by ``CLEARLY`` at least, in words."""
        best = int(np.argmax(self.nats)) if len(self.nats) else -1
        if best < 0 or not self.nats[best] >= CLEARLY:
            return "nothing outside the model forecast clearly better than the model did"
        return f"{self.names[best]} forecast better than the model, by {self.nats[best]:.1f} nats"

    def __str__(self) -> str:
        if self.refuted:
            return f"the model is refuted at level {self.alpha:g}: {self.beaten}"
        return f"the model is not refuted: {self.beaten}"


class Alarm:
    """Forecasts from outside the model, running; built for one family."""

    def __init__(self, family: Family, rows: float = inf) -> None:
        """``rows``: how many it hears. For later ones q' is q."""
        found = outside(family)
        if found is None:
            raise InvalidArgumentError(
                "alarm", family, "has no laws outside it that are known", "leave the alarm out for this family"
            )
        self.family, self.outside = family, found
        self.names = (*CORRECTED, *found.names)
        self.corrections = (Shift(), Bend())
        self.logs = [0.0] * len(self.names)  # sum log q_j, less log q
        self.log_shares = [-log(len(self.names))] * len(self.names)
        self.excess, self.lost, self.left = 0.0, False, rows

    def remember(self, undo: Undo) -> None:
        """Before ``record``: keep what it will change."""
        undo.keep(self)
        for one in self.corrections:
            one.remember(undo)

    def record(self, phi: Embedded, y: Array, weight: float, log_q: float, believed: Believed) -> None:
        """One observation, forecast by the model with log-density ``log_q``, where that was ``believed`` of z."""
        if self.left <= 0:
            return
        self.left -= 1
        found = [log_q] * len(self.names)
        if believed.rows >= self.outside.silent:
            found = self._log_densities(phi, y, believed)
        if not weight > 0.0:
            return
        if log_q == -inf:  # the model gave this outcome density zero: its ratio is lost, and the comparison ends
            self.lost = True
            return
        self.logs = [total + weight * (one - log_q) for total, one in zip(self.logs, found, strict=True)]
        joint = [share + one for share, one in zip(self.log_shares, found, strict=True)]
        top = max(joint)
        if top == -inf:
            self.excess = -inf
            return
        mixed = top + log(sum(exp(one - top) for one in joint))
        self.excess += weight * (mixed - log_q)
        self.log_shares = [one - mixed for one in joint]

    def heard(self) -> Heard:
        """What a snapshot keeps."""
        return Heard(self.names, np.array(self.logs), self.excess, self.lost)

    def state(self) -> dict[str, Array]:
        """Everything that follows from the rows."""
        return {
            "logs": np.array(self.logs), "log_shares": np.array(self.log_shares), "excess": np.array([self.excess]),
            "lost": np.array([float(self.lost)]), "left": np.array([self.left]), "shifted": self.corrections[0].state(),
            "bent": self.corrections[1].state(),
        }  # fmt: skip

    def restore(self, state: dict[str, Array]) -> None:
        """The inverse of ``state``; ValueError if it is not one of this family."""
        logs = expect_shape(state, "logs", (len(self.names),))
        shares = expect_log_shares(state, "log_shares", len(self.names))
        excess, lost, left = (float(expect_shape(state, name, (1,))[0]) for name in ("excess", "lost", "left"))
        if not excess < inf or lost not in (0.0, 1.0) or not left >= 0.0 or np.isnan(logs).any():
            raise ValueError("not the state of an alarm")
        for one, name in zip(self.corrections, ("shifted", "bent"), strict=True):
            one.restore(state[name])
        self.logs, self.log_shares = logs.tolist(), shares.tolist()
        self.excess, self.lost, self.left = excess, bool(lost), left

    def _log_densities(self, phi: Embedded, y: Array, believed: Believed) -> list[float]:
        """log q_j(y) of every law; -inf where it cannot be computed, so that such a law counts for nothing."""
        mean, sd = believed.mean, believed.sd
        law: Any = self.family if phi.law is None else phi.law
        if isinstance(law, Shifted):
            law, mean = law.family, mean + law.shift
        laws: Outside | None = self.outside if law is self.family else outside(law)
        found = [-inf] * len(self.names)
        if laws is not None:
            try:
                laws = laws.learnt(believed)
                corrected = [one.log_density(laws, y, mean, sd) for one in self.corrections]
                found = corrected + laws.log_densities(y, mean, sd)
            except (ValueError, OverflowError, ZeroDivisionError):
                pass
        return [one if one == one else -inf for one in found]


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

    def beside_scales(
        self, gain: Gain | None, parts: tuple[VoiceTable, float] | None, terms: ScaleTerms, gains: Array
    ) -> tuple[Gain | None, tuple[VoiceTable, float] | None]:
        """The same where the scale of the noise is unknown, see :func:`~likeset.evidence.unknown_scale.evidence_of`.

        Laws outside the model know no scale, and their ratio to the model's has the F of all data: what they have
        earned is one more summand in G of the voice that hears everything.
        """
        none = VoiceTable(np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0))
        part, own = (none, 0.0) if parts is None else parts
        part, own = VoiceTable(part.starts, part.members, part.log_shares + log1p(-SHARE)), own + log1p(-SHARE)
        count, earned = float(terms.counts.sum()), float((gains + terms.constants).sum())
        if gain is None and not earned > -inf:
            return gain, (part, own)
        rings = -inf if self.lost or not count else log(SHARE)
        model = PlainGain(earned, count) if gain is None else gain
        outside = PlainGain(earned + self.excess, count)
        if not outside.log_q > -inf:
            rings = -inf
        if max(own, rings) == -inf:
            return gain, (part, own)
        if rings == -inf:
            outside = PlainGain(0.0, count)
        return EitherGain((model, outside), (own, rings)), (part, 0.0)


def alarm_wanted(alarm: Any, family: Family, predictor: Any, automatic: bool) -> bool:
    """Whether there is to be an alarm.

    "auto" where it costs little, because it reads what a mixture believes, and where voices are ``automatic``: whoever
    chooses the ratios that are averaged chooses this one as well.
    """
    if isinstance(alarm, str) and alarm == "auto":
        return automatic and type(predictor) is Mixture and outside(family) is not None
    return flag("alarm", alarm)
