r"""Contrasts: voices for questions that are announced before the first observation.

A set for all of theta pays for every dimension. The evidence against theta may depend on the theta *under test*, so one
voice compares it with alternatives that differ along the question only, and pays for one dimension:

    C_a = { theta in Theta :  (1 - share) R_others(theta) + share R_a(theta) <= 1/alpha }

R_others are voices that keep the rest of theta in place (patience, windows, the joint ratio), R_a the directional voice
of :mod:`~likeset.voices.directions`. For every theta, R_a has expectation one under theta, whatever the design: the
average is a martingale at the truth. docs/contrasts.md has the proof on one page.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from likeset.arguments import flag
from likeset.curves import Curve
from likeset.errors import InvalidArgumentError, ShapeError
from likeset.families.base import Family
from likeset.families.canonical import canonical_form
from likeset.families.curve_family import CurveFamily
from likeset.spaces.base import Space, checked_space
from likeset.spaces.linear import Linear
from likeset.voices.announced import Announced, rows_of
from likeset.voices.base import Membership
from likeset.voices.directions import Directions
from likeset.voices.tilts import Tilts


class Contrasts(Announced):
    """Questions a'theta announced before the first observation, each with a voice of its own.

    Parameters
    ----------
    A             one contrast per row: coefficients of theta; in a function space, points x, for f(x)
    simultaneous  True: one set at alpha for all answers together. False: every announced question has a set of its own
                  at alpha, as fixed-sample intervals of coefficients do; ``contains``, ``is_empty`` and questions that
                  were not announced then belong to the other voices alone
    minus         rows to be subtracted: differences of arms; in a function space f(x) - f(x')
    share         of the error level for the contrasts; the rest is for ``others``
    others        voices that keep the rest of theta in place, ``Patience()`` if not given; None: one joint ratio

    For Gaussian and log-normal noise any contrast; for counts, proportions and lifetimes any contrast of coefficients
    of a linear model (:mod:`~likeset.voices.tilts`), or pairs of arms, ``A`` minus ``minus``, each of which is observed
    as such: ``s.contrast(X, Y, of=...)`` answers, and ``s.evidence(x - y, equal=0)``. Contrasts are part of the model:
    they must not depend on any y.

    >>> import likeset as ls
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(300, 5))
    >>> y = x @ [0.5, 0.0, -0.3, 0.2, 0.1] + rng.normal(size=300)
    >>> width = []
    >>> for voices in (ls.Contrasts(np.eye(5), simultaneous=False), ls.Patience()):
    ...     seq = ls.ConfidenceSequence(ls.Gaussian(1.0), ls.Linear(dim=5, bound=3.0), voices=voices)
    ...     seq.update(x, y)
    ...     low, high = seq.set.interval(np.eye(5))
    ...     width.append(np.mean(high - low))
    >>> bool(width[0] < 0.8 * width[1])
    True
    """

    def __init__(
        self, A: Any, simultaneous: bool = True, *, minus: Any = None, share: float = 0.7, others: Any = ...
    ) -> None:
        self.A = rows_of("A", A)
        self.simultaneous = flag("simultaneous", simultaneous)
        self.minus = None if minus is None else rows_of("minus", minus)
        if self.minus is not None:
            if len(self.minus) == 1:
                self.minus = np.repeat(self.minus, len(self.A), axis=0)
            if self.minus.shape != self.A.shape:
                raise ShapeError(
                    "minus", minus, f"has shape {self.minus.shape}", f"pass one row, or one for each of {len(self.A)}"
                )
        super().__init__(share, others)

    def __repr__(self) -> str:
        kind = "" if self.simultaneous else ", simultaneous=False"
        return f"Contrasts({len(self.A)} contrasts{kind}, share={self.share:g}, others={self.others!r})"

    def settings(self) -> dict[str, Any]:
        """Constructor arguments, but for ``others`` where there are any."""
        minus = None if self.minus is None else self.minus.tolist()
        found = {"A": self.A.tolist(), "simultaneous": int(self.simultaneous), "minus": minus, "share": self.share}
        return found | {"others": None} if self.others is None else found

    @classmethod
    def from_settings(cls, settings: dict[str, Any]) -> Contrasts:
        """The inverse of ``settings``; files know no booleans."""
        return cls(**settings | {"simultaneous": {0: False, 1: True}[settings["simultaneous"]]})

    def start(self, space: Space) -> Membership:
        """Membership of the other voices."""
        first = space.covariates(self.A, "A")
        if self.minus is not None:
            second = space.covariates(self.minus, "minus")
            same = (first == second).all(axis=1)
            if same.any():
                index = int(np.argmax(same))
                raise InvalidArgumentError(
                    f"minus[{index}]", second[index], "is the same row as in A", "a contrast must not be zero"
                )
        elif isinstance(space, Linear) and not first.any(axis=1).all():
            index = int(np.argmin(first.any(axis=1)))
            raise InvalidArgumentError(f"A[{index}]", first[index], "is the zero vector", "a contrast must not be zero")
        return super().start(space)

    def directions(self, family: Family, space: Space) -> Directions | None:
        """What directional voices go by before anything was seen; None for pairs of arms, where counts suffice."""
        checked_space(space)
        form = canonical_form(family)
        if form is None:
            raise InvalidArgumentError(
                "voices",
                self,
                f"have no directional voices for {family!r}",
                "use an exponential family such as Gaussian, Bernoulli or Poisson, or Patience()",
            )
        if form.curve is not Curve.QUADRATIC:
            if self.minus is not None:
                return None
            if not has_tilts(family, space):
                raise InvalidArgumentError(
                    "voices",
                    self,
                    f"are not pairs of arms, which {family!r} needs in {space!r}",
                    "announce differences, Contrasts(arms, minus=control)",
                )
            return Tilts(space.covariates(self.A, "A"), family, space.bound)  # type: ignore[attr-defined]
        first = space.covariates(self.A, "A")
        second = None if self.minus is None else space.covariates(self.minus, "minus")
        return Directions(first, second, family, space.bound)


def has_tilts(family: Family, space: Space) -> bool:
    """Whether coefficients can be announced although the log-density is no quadratic: exponential families."""
    form = canonical_form(family)
    curved = form is not None and form.curve is not Curve.QUADRATIC
    return curved and isinstance(family, CurveFamily) and isinstance(space, Linear)
