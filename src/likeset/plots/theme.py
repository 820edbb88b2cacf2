"""One style for all pictures: two themes with the same roles, and one SVG file that serves both.

Series differ in colour, in lightness and in the dashes of their lines, so that a grey print and readers who do not
see red or green can tell them apart.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from likeset.arguments import choice
from likeset.errors import InvalidArgumentError
from likeset.extras import optional_packages

with optional_packages():
    import matplotlib
    import matplotlib.pyplot as plt
    from matplotlib.axes import Axes
    from matplotlib.colors import to_rgb
    from matplotlib.figure import Figure

DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1.5, 1.5)), (0, (6, 2, 1.5, 2)), (0, (3, 1, 1, 1, 1, 1)))
MARKERS = ("o", "s", "^", "D", "v")


@dataclass(frozen=True)
class Theme:
    """Colours by what they are for.

    paper    behind everything
    ink      text, axes, truth, observations
    muted    what is there to be compared with: other labels, the outline of Theta
    grid     thin lines
    wash     how much of a series' colour fills its band
    series   one colour for each line, set or arm; dashes differ as well
    """

    paper: str
    ink: str
    muted: str
    grid: str
    wash: float
    series: tuple[str, ...]

    def colour(self, i: int) -> str:
        """The colour of series i; they come again after the last."""
        if not isinstance(i, int):
            raise InvalidArgumentError("i", i, "is no number of a series", "pass 0, 1, 2, ...")
        return self.series[i % len(self.series)]

    def fill(self, i: int) -> str:
        """The colour of series i, washed out on paper: for bands. Not transparent, so that files look alike."""
        return _mixed(self.colour(i), self.paper, self.wash)


LIGHT = Theme("#ffffff", "#1a1f26", "#5f6b78", "#dfe4ea", 0.16, ("#004488", "#d55e00", "#6cb8e6", "#b0457f", "#3d3d00"))
DARK = Theme("#12161b", "#e8ecf0", "#98a4b0", "#2b333c", 0.30, ("#9ad1fa", "#e8762a", "#3f78b8", "#fbe3f4", "#f2e07a"))


@contextmanager
def themed(theme: str = "light") -> Iterator[Theme]:
    """Figures made inside are drawn in the theme, "light" or "dark".

    >>> with themed("dark") as theme:
    ...     figure, axes = plt.subplots()
    >>> theme is DARK and theme_of(axes) is DARK
    True
    >>> plt.close(figure)
    """
    chosen = {"light": LIGHT, "dark": DARK}[choice("theme", theme, ("light", "dark"))]
    with matplotlib.rc_context(settings(chosen)):
        yield chosen


def settings(theme: Theme) -> Any:
    """Matplotlib's settings for a theme."""
    return {
        "figure.facecolor": theme.paper,
        "savefig.facecolor": theme.paper,
        "axes.facecolor": theme.paper,
        "axes.edgecolor": theme.muted,
        "axes.labelcolor": theme.ink,
        "axes.titlecolor": theme.ink,
        "text.color": theme.ink,
        "xtick.color": theme.muted,
        "xtick.labelcolor": theme.ink,
        "ytick.color": theme.muted,
        "ytick.labelcolor": theme.ink,
        "font.size": 10.0,
        "axes.titlesize": 11.0,
        "axes.titlelocation": "left",
        "svg.hashsalt": "likeset",  # the same picture is the same file
        "svg.fonttype": "path",  # looks the same on machines without the font
    }


def theme_of(axes: Axes) -> Theme:
    """The theme whose paper is like that of the axes: dark where they are dark."""
    red, green, blue = to_rgb(axes.get_facecolor())
    return LIGHT if 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.45 else DARK


def dressed(axes: Axes, theme: Theme) -> Axes:
    """Axes with two spines and a thin grid behind what is drawn."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(True, color=theme.grid, linewidth=0.7)
    axes.set_axisbelow(True)
    return axes


def legend_below(axes: Axes, columns: int) -> None:
    """A legend under the axes, where it covers nothing."""
    axes.legend(frameon=False, fontsize=9, loc="upper center", bbox_to_anchor=(0.5, -0.16), ncol=columns)


def checked_axes(axes: Any) -> Axes:
    """The axes, the current ones if none are given, or a typed error."""
    if axes is None:
        return plt.gca()
    if not isinstance(axes, Axes):
        raise InvalidArgumentError("axes", axes, "are not axes of Matplotlib", "pass plt.gca(), or leave it out")
    return axes


def both_themes(figure: Any) -> str:
    """A figure drawn in the light theme as one SVG text that is light or dark as its reader prefers.

    Every colour of the light theme becomes a variable, to which a media query gives its dark value. No script, no font
    and nothing from outside.

    >>> figure, axes = plt.subplots()
    >>> "prefers-color-scheme: dark" in both_themes(figure)
    True
    >>> plt.close(figure)
    """
    if not isinstance(figure, Figure):
        raise InvalidArgumentError("figure", figure, "is not a figure of Matplotlib", "pass axes.figure")
    text = plain_svg(figure)
    light = "".join(f"--{name}:{colour};" for name, colour, _ in _roles())
    dark = "".join(f"--{name}:{colour};" for name, _, colour in _roles())
    rules = f"svg{{{light}}}@media (prefers-color-scheme: dark){{svg{{{dark}}}}}"
    for name, colour, _ in _roles():
        text = re.sub(f"{colour}(?![0-9a-f])", f"var(--{name})", text)
    return re.sub(r"(<svg[^>]*>)", lambda opening: f"{opening.group(1)}<style>{rules}</style>", text, count=1)


def plain_svg(figure: Figure, theme: Theme = LIGHT) -> str:
    """A figure drawn in the light theme as an SVG text, in the light theme or in the dark one."""
    buffer = io.StringIO()
    with matplotlib.rc_context(settings(LIGHT)):
        figure.savefig(buffer, format="svg", metadata={"Date": None}, bbox_inches="tight")
    text = re.sub(r"^.*?(?=<svg)", "", buffer.getvalue(), count=1, flags=re.DOTALL)
    if theme is DARK:
        dark = {light: dark for _, light, dark in _roles()}
        text = re.sub("|".join(dark), lambda found: dark[found.group()], text)
    return text


def _roles() -> list[tuple[str, str, str]]:
    roles = [(name, getattr(LIGHT, name), getattr(DARK, name)) for name in ("paper", "ink", "muted", "grid")]
    for i in range(len(LIGHT.series)):
        roles += [(f"series-{i}", LIGHT.colour(i), DARK.colour(i)), (f"fill-{i}", LIGHT.fill(i), DARK.fill(i))]
    return roles


def _mixed(colour: str, paper: str, share: float) -> str:
    parts = [share * a + (1 - share) * b for a, b in zip(to_rgb(colour), to_rgb(paper), strict=True)]
    return "#" + "".join(f"{round(255 * part):02x}" for part in parts)
