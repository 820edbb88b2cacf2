r"""A menu of function spaces for those who know neither kernel nor bound: made by ``RKHS(kernel=None, ...)``.

    f = c + g,     c^2 + |g|_l^2 <= B_l^2     for one l of the menu at least;      B_l = height sqrt(1 + N_l)

    symbol   here
    |.|_l    the norm of the Matérn 5/2 kernel with the length scale l times the width of the domain, in each coordinate
    N_l      prod over coordinates of (1 + 1/(2 l)): how many bumps, two length scales apart, the domain has room for
    height   how far z may be from zero: N_l bumps of this height, beside a constant, are in the ball

**What is on the menu, and why not more.** For one length scale the union over several bounds is the set of the largest,
so there is one bound for each l. A function that varies more slowly than l is in the ball of l as well, with a larger
norm: |f|_l <= (l'/l)^(d/2) |f|_l' for l' > l, since the spectral densities of Matérn kernels have the ratio

    S_l'(w) / S_l(w) = (l'/l)^d [ (1 + l^2 w^2/5) / (1 + l'^2 w^2/5) ]^(5/2 + d/2)  <=  (l'/l)^d.

So what lies between two length scales is in the ball of the shorter one if its norm is smaller by that factor, sqrt(2)
for one coordinate and neighbours of ratio two. And bands are about as wide as those of the shortest length scale not
refuted: whoever does not know how smooth a function is pays for the least smooth one that is allowed for.
"""

from __future__ import annotations

from math import prod, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from likeset._typing import Array
from likeset.arguments import positive, real_array
from likeset.errors import InvalidArgumentError, ShapeError
from likeset.extras import optional_packages
from likeset.families.answers import information, mean_link, nuisance
from likeset.families.base import Family

if TYPE_CHECKING:
    from likeset.spaces.rkhs import RKHS

LENGTH_SCALES = (0.1, 0.2, 0.4, 0.8)
HEIGHTS = {"identity": 30.0, "log": 3.0, "logit": 3.0}  # in units of the noise, I(0)^-1/2; e^3 = 20 for rates


class Menu:
    """Functions of several smoothnesses, for ``AnyOf``: a list of spaces once the family is known.

    Parameters
    ----------
    domain         the points on which functions live, as of :class:`~likeset.RKHS`
    box            instead of a domain: rows (low, high), one for each coordinate; any point may then be asked about
    height         how far z = f(x) may be from zero. If left out, 30 standard deviations of noise around z, a factor
                   of 20 (e^3) for rates, log-odds of 6. Needed where the scale of the noise is unknown
    length_scales  in units of the width of the domain

    >>> import likeset as ls
    >>> grid = np.linspace(0, 10, 21)
    >>> seq = ls.AnyOf((ls.Gaussian(sigma=ls.Unknown()), ls.RKHS(kernel=None, domain=grid, height=20.0)))
    >>> rng = np.random.default_rng(0)
    >>> x = rng.choice(grid, size=60)
    >>> seq.update(x[:, None], 5 + 3 * np.sin(x) + 0.5 * rng.normal(size=60))
    >>> low, high = seq.set.interval(grid)
    >>> bool(((low < 5 + 3 * np.sin(grid)) & (5 + 3 * np.sin(grid) < high)).all()), len(seq.models)
    (True, 4)
    """

    def __init__(
        self, domain: Any = None, box: Any = None, height: float | None = None, length_scales: Any = LENGTH_SCALES
    ) -> None:
        if (domain is None) == (box is None):
            raise InvalidArgumentError(
                "domain", domain, "has to tell the units of length scales", "give domain= or box=, one of the two"
            )
        self.domain = None if domain is None else np.atleast_2d(_points("domain", domain))
        if self.domain is not None and len(self.domain) < 2:
            raise InvalidArgumentError(
                "domain", domain, "has fewer than two points, and no width", "pass more, or box="
            )
        self.widths = np.ptp(_box(box), axis=1) if self.domain is None else np.ptp(self.domain, axis=0)
        self.widths[self.widths == 0.0] = 1.0  # a coordinate that is the same everywhere
        self.height = None if height is None else positive("height", height)
        scales = np.atleast_1d(real_array("length_scales", length_scales))
        if scales.ndim != 1 or not len(scales) or not (scales > 0.0).all():
            raise InvalidArgumentError(
                "length_scales", length_scales, "is no list of positive numbers", "pass e.g. (0.1, 0.2, 0.4, 0.8)"
            )
        self.length_scales = tuple(np.sort(scales).tolist())

    def __repr__(self) -> str:
        where = f"dim={len(self.widths)}" if self.domain is None else f"domain of {len(self.domain)} points"
        height = "" if self.height is None else f", height={self.height:g}"
        return f"RKHS(kernel=None, {where}{height}, length_scales={list(self.length_scales)})"

    @property
    def covariate_shape(self) -> tuple[int, ...]:
        """(number of coordinates,)."""
        return (len(self.widths),)

    def spaces(self, family: Family) -> list[RKHS]:
        """One space for each length scale."""
        from likeset.spaces.rkhs import RKHS

        with optional_packages():
            from sklearn.gaussian_process.kernels import ConstantKernel, Matern
        height, dim = self._height(family), len(self.widths)
        found = []
        for length in self.length_scales:
            scales = length * self.widths
            kernel = ConstantKernel(1.0) + Matern(float(scales[0]) if dim == 1 else tuple(scales.tolist()), nu=2.5)
            bound = height * sqrt(1.0 + prod([1.0 + 0.5 / length] * dim))
            found.append(RKHS(kernel, bound, self.domain, None if self.domain is not None else dim))
        return found

    def _height(self, family: Family) -> float:
        if self.height is not None:
            return self.height
        if nuisance(family) not in (None, "shape"):
            raise InvalidArgumentError(
                "height", None, f"is missing, and {family!r} has no unit to choose it in",
                "give height=, how far the function may be from zero: e.g. the largest outcome that is possible",
            )  # fmt: skip
        unit = 1.0 if nuisance(family) else float(information(family, np.zeros(1))[0]) ** -0.5
        link = mean_link(family)
        return HEIGHTS["log" if family.observation_shape or link is None else link] * unit


def _points(name: str, value: Any) -> Array:
    array = real_array(name, value)
    return array.reshape(-1, 1) if array.ndim <= 1 else array


def _box(box: Any) -> Array:
    array = np.atleast_2d(real_array("box", box))
    if array.ndim != 2 or array.shape[1] != 2 or not (array[:, 0] < array[:, 1]).all():
        raise ShapeError("box", box, "is no list of (low, high)", "pass one pair for each coordinate, low < high")
    return array
