r"""Patience: voices that wait until forecasts have become good.

A likelihood ratio pays for learning. The first forecasts are poor, and what they lose stays in the ratio for ever,
about (d/2) log n nats in d dimensions. Which forecasts are poor is known beforehand, by the variance of z = x_s'theta
under what is believed before y_s, in units of the noise:

    r_s = sum_j pi_j I(m_j) s_j^2             beliefs N(m_j, s_j^2) of z with shares pi_j, I the information of one y

So several ratios speak, each with another patience: voice k hears the observations that were forecast well enough,

    M_k(theta) = prod_{s: r_s <= c_k} q_s(y_s|x_s) / p_theta(y_s|x_s),      c_0 = inf,   c_k = ratio^-(k - 1),

and the set is that of their average. What a voice does not hear still trains the forecaster. The masks 1{r_s <= c_k}
are predictable, so :mod:`~likeset.voices.base` applies word for word; docs/patience.md has the proof on one page.

No horizon has to be chosen: the first voices have equal shares, all further ones the rest, in the proportion
1/(j (j + 1)). Voices that have heard nothing yet have ratio one and cost next to nothing.
"""

from __future__ import annotations

from math import inf, log
from typing import Any

import numpy as np

from likeset._typing import Array, Mask
from likeset.arguments import positive_integer, real_number
from likeset.errors import InvalidArgumentError
from likeset.spaces.base import Space
from likeset.voices.base import CLASSES, Membership, Opened, Voices

MOST = 24  # voices: with a ratio of 2 the last one waits for a variance of 1e-7, reached after some 1e7 observations


class Patience(Voices):
    """Voices that hear only what was forecast well: narrow intervals where much has been learnt.

    Parameters
    ----------
    voices   number of voices with equal shares; the first of them hears everything
    ratio    of one threshold of the predicted variance to the next
    tail     share of the error level for all later voices together, in [0, 1); 0 for none

    >>> import likeset as ls
    >>> seq = ls.ConfidenceSequence(ls.Gaussian(0.1), ls.Linear(dim=2, bound=1.0), voices=ls.Patience())
    >>> seq.update([[1.0, 0.0], [0.6, 0.8]] * 40, [0.3, 0.5] * 40)
    >>> low, high = seq.set.interval([[1.0, 0.0]])
    >>> joint = ls.ConfidenceSequence(ls.Gaussian(0.1), ls.Linear(dim=2, bound=1.0), voices=None)
    >>> joint.update([[1.0, 0.0], [0.6, 0.8]] * 40, [0.3, 0.5] * 40)
    >>> low_joint, high_joint = joint.set.interval([[1.0, 0.0]])
    >>> bool((high - low)[0] < 0.9 * (high_joint - low_joint)[0])
    True
    """

    def __init__(self, voices: int = 8, ratio: float = 2.0, tail: float = 0.1) -> None:
        self.voices = positive_integer("voices", voices, MOST, "more are never needed")
        self.ratio: float = real_number("ratio", ratio)
        if not 1.0 < self.ratio <= 1e6:
            raise InvalidArgumentError("ratio", ratio, "is not between 1 and 1e6", "pass e.g. 4")
        self.tail = real_number("tail", tail)
        if not 0.0 <= self.tail < 1.0:
            raise InvalidArgumentError("tail", tail, "is outside [0, 1)", "pass e.g. 0.1, or 0 for none")

    def __repr__(self) -> str:
        return f"Patience(voices={self.voices}, ratio={self.ratio:g}, tail={self.tail:g})"

    def settings(self) -> dict[str, Any]:
        """Constructor arguments."""
        return {"voices": self.voices, "ratio": self.ratio, "tail": self.tail}

    @property
    def shares(self) -> Array:
        """pi_k, k = 0, 1, ...; they add up to one."""
        further = MOST - self.voices if self.tail else 0
        if not further:
            return np.full(self.voices, 1.0 / self.voices)
        j = np.arange(1.0, further + 1.0)
        rest = 1.0 / (j * (j + 1.0))
        rest[-1] += 1.0 - rest.sum()  # of all that would come later
        return np.concatenate([np.full(self.voices, (1.0 - self.tail) / self.voices), self.tail * rest])

    def start(self, space: Space) -> Membership:
        """Membership before anything was seen."""
        shares = self.shares
        return Membership(self, space, np.log(shares), np.zeros((len(shares), 0), dtype=bool))

    def label(self, spread: float) -> int:
        """How many thresholds c_1 > c_2 > ... the variance has passed.

        >>> [Patience(ratio=4.0).label(r) for r in (5.0, 1.0, 0.3, 0.25, 0.0)]
        [0, 1, 1, 2, 23]
        """
        spread = spread if type(spread) is float else real_number("spread", spread)
        if not spread <= 1.0:
            return 0
        steps = -log(spread) / log(self.ratio) if spread > 0.0 else inf
        return min(1 + int(steps + 1e-9), MOST - 1) if steps < MOST else MOST - 1

    def whole(self, space: Space) -> Mask:
        """The first."""
        return np.arange(len(self.shares)) == 0

    def of(self, space: Space, x: Array, label: int = 0, opened: Opened | None = None) -> Mask:
        """Voices up to the label."""
        return np.arange(len(self.shares)) <= label % CLASSES

    def beside(self, windows: Voices, share: float = 0.5) -> Beside:
        """These voices with ``share`` of the error level, and windows with the rest: never far from the better one."""
        return Beside(self, windows, share)

    def within(self, windows: Voices) -> Within:
        """Every window with every patience: voices that wait for good forecasts near a point."""
        return Within(self, windows)


class _Pair(Voices):
    """Voices made of two kinds, which share their classes."""

    def __init__(self, first: Voices, second: Voices) -> None:
        self.first, self.second = _checked("first", first), _checked("second", second)
        self.ratio = _one_ratio(first, second)
        if first.opening and second.opening:
            raise InvalidArgumentError(
                "second", second, "has windows that open by themselves, like the first", "combine one such kind"
            )

    @property
    def parts(self) -> dict[str, Voices]:
        """The voices that this is made of, by the names of the constructor's arguments."""
        return {"first": self.first, "second": self.second}

    def label(self, spread: float) -> int:
        """The class that those of the two say which ask for one."""
        return max(self.first.label(spread), self.second.label(spread))

    @property
    def opening(self) -> bool:
        """Whether windows of either open by themselves."""
        return self.first.opening or self.second.opening

    def _look(self, space: Space, x: Array, opened: Opened) -> tuple[Opened, int]:
        """As the one says whose windows do."""
        return (self.first if self.first.opening else self.second)._look(space, x, opened)


class Beside(_Pair):
    """Two kinds of voices in one average, the first with ``share`` of the error level.

    >>> from likeset import Patience, Windows
    >>> Patience().beside(Windows([[1.0, 0.0], [0.0, 1.0]]))
    Beside(Patience(voices=8, ratio=2, tail=0.1), Windows(2 centres, correlation=0.3), share=0.5)
    """

    def __init__(self, first: Voices, second: Voices, share: float = 0.5) -> None:
        super().__init__(first, second)
        self.share = real_number("share", share)
        if not 0.0 < self.share < 1.0:
            raise InvalidArgumentError("share", share, "is not between 0 and 1", "pass e.g. 0.5")

    def __repr__(self) -> str:
        return f"Beside({self.first!r}, {self.second!r}, share={self.share:g})"

    def settings(self) -> dict[str, Any]:
        """The share; the voices themselves are described on their own."""
        return {"share": self.share}

    def start(self, space: Space) -> Membership:
        """Membership before anything was seen."""
        first, second = self.first.start(space).log_shares, self.second.start(space).log_shares
        shares = np.concatenate([np.log(self.share) + first, np.log1p(-self.share) + second])
        return Membership(self, space, shares, np.zeros((len(shares), 0), dtype=bool))

    def whole(self, space: Space) -> Mask:
        """Those of either."""
        return np.concatenate([self.first.whole(space), self.second.whole(space)])

    def of(self, space: Space, x: Array, label: int = 0, opened: Opened | None = None) -> Mask:
        """Which voices of either hear the group."""
        return np.concatenate([part.of(space, x, label, opened) for part in (self.first, self.second)])


class Within(_Pair):
    """Every voice of one kind crossed with every voice of another: both must hear an observation.

    >>> from likeset import Patience, Windows
    >>> Patience(voices=3, ratio=4.0, tail=0.0).within(Windows([[1.0, 0.0], [0.0, 1.0]]))
    Within(Patience(voices=3, ratio=4, tail=0), Windows(2 centres, correlation=0.3))
    """

    def __repr__(self) -> str:
        return f"Within({self.first!r}, {self.second!r})"

    def settings(self) -> dict[str, Any]:
        """Nothing but its parts."""
        return {}

    def start(self, space: Space) -> Membership:
        """Membership before anything was seen."""
        shares = np.add.outer(self.first.start(space).log_shares, self.second.start(space).log_shares).ravel()
        return Membership(self, space, shares, np.zeros((len(shares), 0), dtype=bool))

    def whole(self, space: Space) -> Mask:
        """Pairs of voices that both hear everything."""
        return np.logical_and.outer(self.first.whole(space), self.second.whole(space)).ravel()

    def of(self, space: Space, x: Array, label: int = 0, opened: Opened | None = None) -> Mask:
        """Pairs of voices that both hear the group."""
        return np.logical_and.outer(*(part.of(space, x, label, opened) for part in (self.first, self.second))).ravel()


def _checked(name: str, voices: Any) -> Voices:
    if isinstance(voices, Voices) and not voices.lone:
        return voices
    if isinstance(voices, Voices):
        raise InvalidArgumentError(name, voices, "cannot be a part of others", "say Contrasts(..., others=...) instead")
    raise InvalidArgumentError(name, voices, "is no kind of voices", "pass e.g. Windows(...) or Patience()")


def _one_ratio(first: Voices, second: Voices) -> float | None:
    """The ratio of the classes' thresholds, None if neither asks for classes."""
    if first.ratio is not None and second.ratio not in (None, first.ratio):
        raise InvalidArgumentError(
            "second", second, f"has the ratio {second.ratio:g} and not {first.ratio:g}", "use one ratio of thresholds"
        )
    return second.ratio if first.ratio is None else first.ratio
