r"""Windows that open by themselves, at the covariates that come.

Windows of covariates (:mod:`~likeset.voices.windows`) have to be placed before the first observation, so somebody must
know where observations will be made. But a window may as well *open* at a covariate when that is first seen. Its share
was fixed beforehand, for the j-th window to open, wherever that will be; it hears what comes from then on, the first
observation at its centre included, and nothing from before:

    c_1, c_2, ...    centres: x_s becomes one if it correlates with all centres so far by less than ``cover``
    m_sj = 1 { c_j is among x_1, ..., x_s,  |correlation(c_j, x_s)| >= correlation }.

The mask is made of x_1, ..., x_s. All of these are known before y_s, so it is a predictable weight, and
:mod:`~likeset.voices.base` applies word for word. A window that has not opened yet has ratio one.

Observations of one covariate before and after another window around it has opened belong to different groups: the
class of an observation says how many open windows held it at its time. As windows open in an order, the number tells
which.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from likeset._typing import Array, Mask
from likeset.arguments import positive_integer
from likeset.spaces.base import Space
from likeset.voices.base import CLASSES, Membership, Voices
from likeset.voices.windows import correlation_of, inside_unit_interval

MOST = 30  # windows: more of them leave little of the error level to each
LEVEL = 4.0  # shares fall like 1 / (j + LEVEL): slowly, as any of the first may turn out to matter


class OpeningWindows(Voices):
    """Windows { x : |correlation(centre, x)| >= correlation } around covariates that are seen, from then on.

    Parameters
    ----------
    windows      how many may open; their shares fall slowly, in the proportion 1/(j + 4)
    correlation  how similar a covariate must be to belong to a window, in (0, 1)
    cover        a covariate that correlates with a centre by this much opens no window of its own, in (0, 1)

    Meant to stand beside voices that hear everything: what comes before a window opens is lost to it.

    >>> import likeset as ls
    >>> ls.Patience().beside(ls.OpeningWindows())
    Beside(Patience(voices=8, ratio=2, tail=0.1), OpeningWindows(windows=24, correlation=0.4, cover=0.8), share=0.5)
    """

    def __init__(self, windows: int = 24, correlation: float = 0.4, cover: float = 0.8) -> None:
        self.windows = positive_integer("windows", windows, MOST, "each would have next to nothing of the error level")
        self.correlation = inside_unit_interval("correlation", correlation)
        self.cover = inside_unit_interval("cover", cover)

    def __repr__(self) -> str:
        return f"OpeningWindows(windows={self.windows}, correlation={self.correlation:g}, cover={self.cover:g})"

    def settings(self) -> dict[str, Any]:
        """Constructor arguments."""
        return {"windows": self.windows, "correlation": self.correlation, "cover": self.cover}

    def start(self, space: Space) -> Membership:
        """Membership before any covariate was seen."""
        correlation_of(space)
        weights = 1.0 / (np.arange(self.windows) + 1.0 + LEVEL)
        return Membership(self, space, np.log(weights / weights.sum()), np.zeros((self.windows, 0), dtype=bool))

    @property
    def opening(self) -> bool:
        """They do."""
        return True

    def _look(self, space: Space, x: Array, opened: Array) -> tuple[bool, int]:
        """A window opens at x if x is unlike all centres, as long as there is one left."""
        similar = self._similar(space, x, opened)
        opens = len(opened) < self.windows and bool(similar.max(initial=0.0) < self.cover)
        return opens, int((similar >= self.correlation).sum()) + opens

    def of(self, space: Space, x: Array, label: int = 0, opened: Array | None = None) -> Mask:
        """The first windows that hold x, as many as were open."""
        holding = np.flatnonzero(self._similar(space, x, opened) >= self.correlation)[: label // CLASSES]
        mask = np.zeros(self.windows, dtype=bool)
        mask[holding] = True
        return mask

    def _similar(self, space: Space, x: Array, opened: Array | None) -> Array:
        if opened is None or len(opened) == 0:
            return np.zeros(0)
        return np.asarray(np.abs(correlation_of(space)(opened, x[None])[:, 0]))
