r"""Windows that open by themselves, at the covariates that come.

Windows of covariates (:mod:`~likeset.voices.windows`) have to be placed before the first observation, so somebody must
know where observations will be made. But a window may as well *open* at a covariate when that is first seen. Its share
was fixed beforehand, for the j-th window to open, wherever that will be; it hears what comes from then on, the first
observation at its centre included, and nothing from before:

    c_1, c_2, ...    centres: x_s becomes one if it correlates with all centres so far by less than ``cover``
    m_sj = 1 { c_j is among x_1, ..., x_s,  |correlation(c_j, x_s)| >= correlation }.

The mask is made of x_1, ..., x_s. All of these are known before y_s, so it is a predictable weight, and
:mod:`~likeset.voices.base` applies word for word. A window that has not opened yet has ratio one.

Without a bound of |theta| the columns of a linear model have no common unit, and neither has their correlation. Then
columns are measured by what was seen of them (:mod:`~likeset.voices.frames`): by their range so far to decide whether
a window opens, and by their range when the window opened to decide whether it holds a covariate. Ranges are made of
covariates, x_s included, so that masks are as predictable as before. Files of the first edition go on with columns as
they come, which is what their windows were made by.

Observations of one covariate before and after another window around it has opened belong to different groups: the
class of an observation says how many open windows held it at its time. As windows open in an order, the number tells
which.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any, Self

import numpy as np

from likeset._typing import Array, Mask
from likeset.arguments import positive_integer
from likeset.spaces.base import Space
from likeset.voices.base import CLASSES, Membership, Opened, Voices
from likeset.voices.frames import correlations, frame_of, in_frames, range_with, says_something, widens
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
        self.edition = 1
        self.windows = positive_integer("windows", windows, MOST, "each would have next to nothing of the error level")
        self.correlation = inside_unit_interval("correlation", correlation)
        self.cover = inside_unit_interval("cover", cover)

    def __repr__(self) -> str:
        return f"OpeningWindows(windows={self.windows}, correlation={self.correlation:g}, cover={self.cover:g})"

    def settings(self) -> dict[str, Any]:
        """Constructor arguments."""
        return {"windows": self.windows, "correlation": self.correlation, "cover": self.cover}

    def of_edition(self, edition: int) -> Self:
        """Of the first one, 0: columns without a common unit were measured as they came."""
        if type(edition) is not int or edition not in (0, 1):
            return super().of_edition(edition)
        other = copy.copy(self)
        other.edition = edition
        return other

    def start(self, space: Space) -> Membership:
        """Membership before any covariate was seen."""
        correlation_of(space)
        weights = 1.0 / (np.arange(self.windows) + 1.0 + LEVEL)
        return Membership(self, space, np.log(weights / weights.sum()), np.zeros((self.windows, 0), dtype=bool))

    @property
    def opening(self) -> bool:
        """They do."""
        return True

    def _look(self, space: Space, x: Array, opened: Opened) -> tuple[Opened, int]:
        """A window opens at x if x is unlike all centres, as long as there is one left."""
        holding = int((self._similar(space, x, opened) >= self.correlation).sum())
        if not self._in_frames(space):
            similar, frame = self._similar(space, x, opened), np.zeros((2, *x.shape))
        else:
            opened = replace(opened, range=range_with(x, opened.range)) if widens(x, opened.range) else opened
            assert opened.range is not None
            frame = frame_of(opened.range)
            similar = correlations(opened.centres, frame[None], x)
            if not says_something(x, frame):
                return opened, holding
        if len(opened.centres) == self.windows or similar.max(initial=0.0) >= self.cover:
            return opened, holding
        centres, frames = np.concatenate([opened.centres, x[None]]), np.concatenate([opened.frames, frame[None]])
        return replace(opened, centres=centres, frames=frames), holding + 1

    def of(self, space: Space, x: Array, label: int = 0, opened: Opened | None = None) -> Mask:
        """The first windows that hold x, as many as were open."""
        mask = np.zeros(self.windows, dtype=bool)
        if opened is not None:
            mask[np.flatnonzero(self._similar(space, x, opened) >= self.correlation)[: label // CLASSES]] = True
        return mask

    def _in_frames(self, space: Space) -> bool:
        return self.edition > 0 and in_frames(space)

    def _similar(self, space: Space, x: Array, opened: Opened) -> Array:
        """|correlation| of x with every centre, each as its window measures it."""
        if not len(opened.centres):
            return np.zeros(0)
        if self._in_frames(space):
            return correlations(opened.centres, opened.frames, x)
        return np.asarray(np.abs(correlation_of(space)(opened.centres, x[None])[:, 0]))
