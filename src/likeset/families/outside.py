"""What the alarm asks of laws outside a family, and what it tells them of the model's own forecast."""

from __future__ import annotations

from math import lgamma, log, log1p, nan, pi
from typing import NamedTuple

from likeset._typing import Array


class Believed(NamedTuple):
    """What the model believes of an outcome before it is known.

    mean, sd    of z
    number      where the family has an unknown one, a scale or a shape: what it is thought to be
    rows        from which that was learnt
    """

    mean: float
    sd: float
    number: float = nan
    rows: int = 0


class Outside:
    """The laws outside one family: their ``names``, and log-densities in the same order.

    The family's own law is at hand as well, for corrections of its mean (:mod:`likeset.evidence.corrections`).
    """

    names: tuple[str, ...]
    silent = 0  # rows during which nothing is known of an unknown number, and nothing is said

    def learnt(self, believed: Believed) -> Outside:
        """The same with an unknown number as it is thought to be."""
        return self

    def log_densities(self, y: Array, m: float, s: float) -> list[float]:
        """log q(y) of every law, where z is believed to be m, up to a deviation s."""
        raise NotImplementedError

    def own(self, y: Array, z: float, s: float) -> float:
        """log p(y | z) of the family itself; with noise around z, widened by the deviation s."""
        raise NotImplementedError

    def slope(self, y: Array, z: float) -> float:
        """d log p(y | z) / dz."""
        raise NotImplementedError

    def information(self, z: float) -> float:
        """About Fisher's information of one y about z."""
        raise NotImplementedError


class Student:
    """Student's t with so many degrees of freedom."""

    __slots__ = ("_constant", "freedom")

    def __init__(self, freedom: float) -> None:
        self.freedom = freedom
        self._constant = lgamma(0.5 * (freedom + 1.0)) - lgamma(0.5 * freedom) - 0.5 * log(freedom * pi)

    def log_density(self, misfit: float, width: float) -> float:
        """At a distance from its centre."""
        u = misfit / width
        tail = log1p(u * u / self.freedom) if u < 1e150 else 2.0 * log(u) - log(self.freedom)
        return self._constant - log(width) - 0.5 * (self.freedom + 1.0) * tail
