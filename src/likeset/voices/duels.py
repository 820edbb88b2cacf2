r"""Duels: voices for one question, which of some arms is best.

Let i be the arm whose z is largest. It is a function of theta, not of the data, and the evidence against theta may
depend on theta. So only the comparisons of *this* arm with its rivals j share the error level, and not all pairs:

    R(theta) = (1 - share) R_others(theta) + share / (K - 1) sum_{j != i(theta)} R_ij(z_i, z_j),    C = { R <= 1/alpha }

R_ij is the average of a pair of arms (:mod:`likeset.evidence.pairs`), with the tilts that make i smaller and j larger.
At the true theta every R_ij is a martingale, i is fixed, and so R is one. An arm b *is beaten by* a if

    R_ba(z_b, z_a) > (K - 1) / (share alpha)      for all z_b >= z_a:

then no theta of C has b as its best arm. With probability 1 - alpha the best arm is never beaten, at all times at once,
by whichever arm and however arms and rivals were picked. docs/contrasts.md has the proof with its conditions.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from likeset.arguments import flag
from likeset.errors import InvalidArgumentError, ShapeError
from likeset.families.answers import nuisance
from likeset.families.base import Family
from likeset.families.canonical import canonical_form
from likeset.spaces.base import Space, checked_space
from likeset.voices.announced import Announced, rows_of
from likeset.voices.base import Membership


class Duels(Announced):
    """Every arm against every other, for a certified best arm; :class:`~likeset.Elimination` takes them by itself.

    Parameters
    ----------
    arms      covariates, one row each, all different, which are observed as such
    largest   whether the best arm has the largest z, or the smallest
    share     of the error level for the duels; the rest is for ``others``, which answer every other question
    others    voices, ``Patience()`` if not given; None: one joint ratio

    They pay where arms have nothing in common, since a duel learns from the rows of its two arms only. Arms are part of
    the model: they must not depend on any y.

    >>> import likeset as ls
    >>> rng, rates = np.random.default_rng(0), np.array([0.3, 0.4, 0.55])
    >>> count = {}
    >>> for name, voices in (("duels", ls.Duels(np.eye(3))), ("patience", ls.Patience())):
    ...     seq = ls.ConfidenceSequence(ls.Bernoulli(), ls.Linear(3, 4.0), voices=voices)
    ...     policy = ls.Elimination(seq, np.eye(3))
    ...     while not policy.stopped:
    ...         i = policy.ask()
    ...         policy.seq.update(np.eye(3)[i], rng.binomial(10, rates[i]), trials=10)
    ...     count[name] = seq.n_observations
    >>> policy.best, count["duels"] < count["patience"]
    (2, True)
    """

    def __init__(self, arms: Any, largest: bool = True, *, share: float = 0.7, others: Any = ...) -> None:
        self.arms = rows_of("arms", arms)
        if len(self.arms) < 2:
            raise ShapeError("arms", arms, "has one row", "pass the arms to compare")
        if len(np.unique(self.arms, axis=0)) < len(self.arms):
            raise InvalidArgumentError("arms", arms, "has an arm twice", "pass each arm once")
        self.largest = flag("largest", largest)
        super().__init__(share, others)

    def __repr__(self) -> str:
        which = "" if self.largest else ", largest=False"
        return f"Duels({len(self.arms)} arms{which}, share={self.share:g}, others={self.others!r})"

    def settings(self) -> dict[str, Any]:
        """Constructor arguments, but for ``others`` where there are any."""
        found = {"arms": self.arms.tolist(), "largest": int(self.largest), "share": self.share}
        return found | {"others": None} if self.others is None else found

    @classmethod
    def from_settings(cls, settings: dict[str, Any]) -> Duels:
        """The inverse of ``settings``; files know no booleans."""
        return cls(**settings | {"largest": {0: False, 1: True}[settings["largest"]]})

    def start(self, space: Space) -> Membership:
        """Membership of the other voices."""
        space.covariates(self.arms, "arms")
        return super().start(space)

    def directions(self, family: Family, space: Space) -> None:
        """Counts suffice, so there are no sums; a typed error if the family is not of the right kind."""
        checked_space(space)
        if canonical_form(family) is None or nuisance(family):
            raise InvalidArgumentError(
                "voices", self, f"cannot be had for {family!r}",
                "use an exponential family such as Bernoulli or Poisson, or Patience()",
            )  # fmt: skip
