"""Pictures: bands, sets in the plane, intervals over time. One style, legible in grey, light and dark.

Matplotlib is imported here and nowhere in the engine. Functions draw on axes and return them; none calls ``show``.
Colours follow the paper they are drawn on: on dark axes the dark theme is used.

>>> import matplotlib.pyplot as plt
>>> import likeset as ls
>>> seq = ls.ConfidenceSequence(ls.Poisson(), ls.Linear(dim=1, bound=2.0))
>>> seq.update([[0.5], [1.0]] * 10, [1, 2] * 10)
>>> with ls.plots.themed("dark"):
...     axes = ls.plots.plot_band(seq, [0.25, 0.5, 1.0])
>>> axes.get_ylabel()
'mean count'
>>> plt.close(axes.figure)
"""

from likeset.plots.bands import plot_band
from likeset.plots.over_time import plot_intervals, plot_over_time
from likeset.plots.plane import plot_sets
from likeset.plots.theme import DARK, LIGHT, Theme, both_themes, themed

__all__ = [
    "DARK",
    "LIGHT",
    "Theme",
    "both_themes",
    "plot_band",
    "plot_intervals",
    "plot_over_time",
    "plot_sets",
    "themed",
]
